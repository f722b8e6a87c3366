"""Errors that say where, what, the facts, and a cure.

Every error of the library has the same four parts: a first line `where: what is wrong`
that is enough on its own, the facts one per line, and the cure when it is known. The
text is built only when something has failed, so it costs nothing before.
"""

import dataclasses
import difflib
import functools
import inspect
import re
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from burnbook.core.error_context import running_modules, running_shapes
from burnbook.core.traceback_view import (
    render,
    show_library_frames as show_library_frames,
)

Fact = str | tuple[str, str]
MOST_FACTS = 40  # lines of an error, and
MOST_CURE = 600  # letters of its cure


def explain(
    where: str, what: str, facts: Iterable[Fact] = (), cure: str | None = None
) -> str:
    """Lay out the four parts of an error: `where: what`, the facts, `try: cure`.

    Example:
        >>> print(explain("matmul", "3 ≠ 4", [("x", "Float [2, 3]")], "a transpose"))
        matmul: 3 ≠ 4
          x  Float [2, 3]
          try: a transpose
    """
    rows = _bounded(list(facts))
    names = [len(row[0]) for row in rows if not isinstance(row, str)]
    width = max(names, default=0)
    lines = [f"{where}: {what}" if where else what]
    for row in rows:
        lines.append("  " + (row if isinstance(row, str) else _pair(row, width)))
    if cure:
        lines.append(f"  try: {_cut(cure)}")
    return "\n".join(lines)


def _bounded(rows: list[Fact]) -> list[Fact]:
    """The first facts, and how many more there are."""
    if len(rows) <= MOST_FACTS:
        return rows
    return [*rows[: MOST_FACTS - 1], f"… and {len(rows) - MOST_FACTS + 1} more"]


def _cut(cure: str) -> str:
    """A cure of bounded length: of many, the first."""
    if len(cure) <= MOST_CURE:
        return cure
    return cure[: cure.rfind("; ", 0, MOST_CURE) % MOST_CURE] + "; …"


def _pair(row: tuple[str, str], width: int) -> str:
    return f"{row[0]:<{width}}  {row[1]}"


class BurnbookError(Exception):
    """The base of every error that the library explains.

    Made while a module runs, it says which one: `path` is "Model.conv1".
    """

    draws_shapes = False

    def __init__(
        self,
        where: str,
        what: str = "",
        facts: Iterable[Fact] = (),
        cure: str | None = None,
    ) -> None:
        self.where = where
        self.what = what
        self.facts = list(facts)
        self.cure = cure
        self.path = running_modules()
        if self.path and self.draws_shapes:
            self.facts += running_shapes()
        super().__init__(where, what, self.facts, cure)

    def _render_traceback_(self) -> list[str]:
        """What IPython shows of this error."""
        return render(self)

    def __str__(self) -> str:
        where = self.where
        again = re.match(rf"{re.escape(self.path)}\b", where)  # once is enough
        if self.path and not again:
            where = f"{self.path}: {where}"
        return explain(where, self.what, self.facts, self.cure)


# Functions that know what a field is called here; other_names adds one.
ADVISERS: list[Callable[[str, list[str]], str | None]] = []


PLAIN = (bool, int, float, str)  # what most defaults are


def explain_fields(cls: type[Any]) -> None:
    """Let the constructor of a dataclass say which field is missing or misspelled."""
    make = cls.__init__

    @functools.wraps(make)
    def init(made: Any, *args: Any, **named: Any) -> None:
        try:
            make(made, *args, **named)
        except TypeError:
            wrong = _wrong_fields(make, args, named, getattr(cls, "elsewhere", {}))
            if wrong is None:
                raise
            plain = [name for name in named if type(vars(cls).get(name)) in PLAIN]
            if plain and wrong[0].startswith(f"{plain[0]} is not one"):
                value = vars(cls)[plain[0]]
                wrong = (
                    f"{plain[0]} has no annotation, so it is not a field",
                    (f"{plain[0]}: {type(value).__name__} = {value!r} in the class"),
                )
            names = ", ".join(list(inspect.signature(make).parameters)[1:])
            facts: list[Fact] = [("fields", names or "none")]
            raise FieldError(type(made).__name__, wrong[0], facts, wrong[1]) from None

    cls.__init__ = init


def _wrong_fields(
    make: Any,
    args: tuple[Any, ...],
    named: dict[str, Any],
    elsewhere: dict[str, str],
) -> tuple[str, str | None] | None:
    """What is wrong with the arguments of a constructor, and the cure.

    elsewhere: what the class itself says of names that are not its fields.
    """
    fields = list(inspect.signature(make).parameters.values())[1:]
    places = [f.name for f in fields if f.kind is f.POSITIONAL_OR_KEYWORD]
    given = {*places[: len(args)], *named}
    free = [f.name for f in fields if f.name not in given]
    missing = [f.name for f in fields if f.name in free and f.default is f.empty]
    for name in named:
        if name not in [f.name for f in fields]:
            what = f"{name} is not one of its fields"
            cure = elsewhere.get(name) or _advised(name, free)
            if cure:
                return what, _with_values(cure, named[name])
            near = difflib.get_close_matches(name, free, 1)
            return what, _with_values(f"{near[0]}=…", named[name]) if near else None
    if len(args) > len(places):
        rate = not places and "weight_decay" in free and _advised("lr", free)
        if rate:  # the first number that other libraries give to an optimizer
            return "fields are given by name; the learning rate is not one", rate
        what = f"{len(args)} values given by position, at most {len(places)} fit"
        shown = ", ".join([*places, *[f"{name}=…" for name in free]][: len(args)])
        sizes = all(type(value) is int for value in args)
        if places[:2] == ["channels", "kernel_size"] and sizes:
            shown = _of_pairs(fields, args)
        return what, f"{shown}" if shown else None
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        return f"{' and '.join(missing)} {verb} missing", None
    return None


def _of_pairs(fields: list[inspect.Parameter], args: tuple[Any, ...]) -> str:
    """The sizes of a convolution, which other libraries take one by one, in lists."""
    first, second, *rest = args
    dims = str(fields[1].annotation).count("int")
    kernel = f"[{', '.join([repr(rest[0])] * dims)}]" if dims > 1 else repr(rest[0])
    more = [f"{f.name}=…" for f in fields[2 : 1 + len(rest)]]
    return ", ".join([f"[{first}, {second}]", kernel, *more])


def _with_values(cure: str, value: object) -> str:
    """Fields with the values that were given to the misspelt one, if they are plain.

    Example:
        >>> _with_values("beta_1=…, beta_2=…", (0.9, 0.99))
        'beta_1=0.9, beta_2=0.99'
    """
    values = value if isinstance(value, (tuple, list)) else (value,)
    if cure.count("=…") != len(values) or not all(type(v) in PLAIN for v in values):
        return cure.split(", ")[0] if cure.endswith("=…") else cure
    for each in values:
        cure = cure.replace("=…", f"={each!r}", 1)
    return cure


def _advised(name: str, free: list[str]) -> str | None:
    return next(filter(None, (advise(name, free) for advise in ADVISERS)), None)


class ShapeError(BurnbookError, ValueError):
    """Sizes or ranks do not fit; while modules run, the shapes in each are shown."""

    draws_shapes = True


class DimError(ShapeError, IndexError):
    """A dim or an index lies outside the tensor."""


class KindError(BurnbookError, TypeError):
    """Float, Int and Bool are mixed."""


class ArgumentError(BurnbookError, TypeError):
    """A call has an argument too many, too few, or of a wrong type."""


class DivisionError(BurnbookError, ZeroDivisionError):
    """A whole number is divided by zero."""


class BackendError(BurnbookError, TypeError):
    """Tensors live on different backends, or the backend cannot do it."""


class NotFiniteError(BurnbookError, ArithmeticError):
    """NaN or infinity came out of an operation; only `Checked` looks for them."""


class GraphError(BurnbookError, RuntimeError):
    """The graph behind a tensor cannot give the gradient asked for."""


class DataError(BurnbookError, ValueError):
    """A dataset, a loader or a download is not as it should be."""


class TrainingError(BurnbookError, RuntimeError):
    """Training cannot go on."""


class ConfigError(BurnbookError, ValueError):
    """A config has an unknown, missing or impossible field."""


class FieldError(ConfigError, TypeError):
    """A config or module gets wrong fields: too many, misspelled, of a wrong type."""


class UnknownNameError(BurnbookError, AttributeError):
    """A name that is not there; it says what it is called here, where that is known.

    Why: `name` is set, or Python would add a suggestion of its own.
    """

    def __init__(
        self,
        where: str,
        what: str = "",
        facts: Iterable[Fact] = (),
        cure: str | None = None,
    ) -> None:
        super().__init__(where, what, facts, cure)
        self.name = where.rpartition(".")[2]


class FrozenError(BurnbookError, dataclasses.FrozenInstanceError):
    """Something that never changes is assigned to."""


def warn_caller(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn, with the line outside of this library from which the call came.

    In a thread of the library's own there is none; then its first line is named.
    """
    level, frame = 0, inspect.currentframe()
    while frame and frame.f_globals.get("__name__", "").partition(".")[0] == "burnbook":
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level + 1)


class ResultDropped(UserWarning):
    """A method was called that changes nothing itself, and its result thrown away."""


class FractionDropped(UserWarning):
    """Whole numbers were divided with `/`, and a rest was cut off."""


class RecordError(BurnbookError, ValueError):
    """A record cannot be read, or does not match the module."""


class ImportFailed(BurnbookError, ValueError):
    """A foreign file uses something that cannot be imported."""
