"""Numbers of Python that a captured program computes anew in each run.

A learning rate and a count of steps are plain numbers, which an optimizer turns into
factors before an op sees them. For the time of a capture they are numbers that remember
how they were computed: `lr * 0.5` is a float, and knows that it is that.
"""

import functools
import operator
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Formula:
    """How a number is computed: a function of numbers and formulas, or just a name.

    part: which of several results of the function it is.

    Example:
        >>> half = unknown(0.1, Formula("lr")) * 0.5
        >>> half.formula, half.formula({"lr": 4.0})
        (lr * 0.5, 2.0)
    """

    function: Callable[..., Any] | str
    arguments: tuple[Any, ...] = ()
    part: int | None = None

    def __call__(self, numbers: Mapping[str, float]) -> Any:
        """The number, where the names are these numbers."""
        if isinstance(self.function, str):
            return numbers[self.function]
        given = [a(numbers) if type(a) is Formula else a for a in self.arguments]
        found = self.function(*given)
        return found if self.part is None else found[self.part]

    @property
    def names(self) -> frozenset[str]:
        """The names in it."""
        if isinstance(self.function, str):
            return frozenset({self.function})
        found = [a.names for a in self.arguments if type(a) is Formula]
        return frozenset[str]().union(*found)

    def __str__(self) -> str:
        if isinstance(self.function, str):
            return self.function
        given = [
            f"({a})" if type(a) is Formula and a.function in SIGNS else str(a)
            for a in self.arguments
        ]
        sign = SIGNS.get(self.function)
        if sign is not None:
            return f" {sign} ".join(given) if len(given) == 2 else f"{sign}{given[0]}"
        name = getattr(self.function, "__name__", "function")
        part = "" if self.part is None else f"[{self.part}]"
        return f"{name}({', '.join(map(str, self.arguments))}){part}"

    __repr__ = __str__


SIGNS: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.pow: "**",
    operator.neg: "-",
}


class Unknown:
    """A number that remembers its formula; arithmetic with it gives another one."""

    formula: Formula


class UnknownFloat(Unknown, float):
    """An unknown float: it is as large as in this run."""


class UnknownInt(Unknown, int):
    """An unknown int: it is as large as in this run.

    Why `t * 0.5` and not `0.5 * t`: Python asks a float on the left alone. A number
    that forgets its formula so is refused in a capture: other runs have other ones.
    """


def unknown(number: float, formula: Formula) -> Any:
    """A number that remembers a formula."""
    made: Any = UnknownInt(number) if isinstance(number, int) else UnknownFloat(number)
    made.formula = formula
    return made


def known(number: Any) -> Any:
    """The plain number."""
    if not isinstance(number, Unknown):
        return number
    return int(number) if isinstance(number, int) else float(number)  # type: ignore[arg-type] # a number


def deferred(function: F) -> F:
    """Let a function of numbers give unknown numbers where one of its arguments is.

    Example:
        >>> twice = deferred(lambda x: (x, x + x))
        >>> [part.formula for part in twice(unknown(3, Formula("n")))]
        [<lambda>(n)[0], <lambda>(n)[1]]
    """

    @functools.wraps(function)
    def run(*arguments: Any) -> Any:
        for argument in arguments:
            if isinstance(argument, Unknown):
                break
        else:
            return function(*arguments)
        found = function(*map(known, arguments))
        named = function if function in SIGNS else run  # what its module calls so
        if type(found) is tuple:
            rows = enumerate(found)
            return tuple([unknown(n, _formula(named, arguments, i)) for i, n in rows])
        return unknown(found, _formula(named, arguments))

    return run  # type: ignore[return-value] # the same parameters


def _formula(
    function: Callable[..., Any], arguments: tuple[Any, ...], part: int | None = None
) -> Formula:
    given = [a.formula if isinstance(a, Unknown) else a for a in arguments]
    return Formula(function, tuple(given), part)


def _operator(function: Callable[..., Any], turned: bool = False) -> Any:
    compute = deferred(function)

    def method(self: Any, *others: Any) -> Any:
        if not all(isinstance(other, (int, float)) for other in others):
            return NotImplemented
        return compute(*others, self) if turned else compute(self, *others)

    return method


Comparison = tuple[Formula, bool]  # what was compared, and how it came out
_COMPARED: ContextVar[list[Comparison] | None] = ContextVar("compared", default=None)


@contextmanager
def comparisons() -> Generator[list[Comparison]]:
    """What this block compares unknown numbers with, and how each came out.

    Example:
        >>> with comparisons() as found:
        ...     is_small = unknown(0.1, Formula("lr")) < 1.0
        >>> [(str(formula), result) for formula, result in found]
        [('lt(lr, 1.0)', True)]
    """
    found: list[Comparison] = []
    token = _COMPARED.set(found)
    try:
        yield found
    finally:
        _COMPARED.reset(token)


def _comparison(function: Callable[..., Any], plain: Callable[..., Any]) -> Any:
    def method(self: Unknown, *others: object) -> Any:
        result = plain(known(self), *map(known, others))
        told = _COMPARED.get()
        if told is not None and result is not NotImplemented:
            told.append((_formula(function, (self, *others)), result))
        return result

    return method


for _name, _function in {
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "bool": bool,
}.items():
    for _cls, _base in (UnknownFloat, float), (UnknownInt, int):
        _plain = getattr(_base, f"__{_name}__")
        setattr(_cls, f"__{_name}__", _comparison(_function, _plain))
for _cls, _base in (UnknownFloat, float), (UnknownInt, int):
    _cls.__hash__ = _base.__hash__  # type: ignore[method-assign]
for _name, _function in {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "truediv": operator.truediv,
    "pow": operator.pow,
}.items():
    for _cls in (UnknownFloat, UnknownInt):
        setattr(_cls, f"__{_name}__", _operator(_function))
        setattr(_cls, f"__r{_name}__", _operator(_function, turned=True))
for _cls in (UnknownFloat, UnknownInt):
    _cls.__neg__ = _operator(operator.neg)  # type: ignore[method-assign]
