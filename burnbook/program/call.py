"""How a program is called: as the function that was captured."""

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from math import copysign
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.errors import ArgumentError
from burnbook.core.tree import Path
from burnbook.module import Module
from burnbook.program.trees import ARGUMENTS, arguments
from burnbook.tensor import Tensor

MOST_FACTS = 100  # elements of a container that is compared
MISSING = object()  # no value at all, where None may be one


class Lost:
    """In a copy, a default that it has not; equal to nothing."""

    def __eq__(self, other: object) -> bool:
        return False

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return "a default of the function"


LOST = Lost()


class Call:
    """The arguments of a captured function: their names, and where tensors stand.

    It keeps no function and no tensor of an example, so a program that was pickled
    needs neither.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        examples: Sequence[Any],
        opens: Callable[[Module], Any] | None = None,
    ):
        self.parameters = _parameters(function)
        self.names = _names(self.parameters, examples)
        self.paths: list[str] = []
        self.places: list[Path] = []
        self.opened: dict[Path, Any] = {}  # models whose arrays are inputs
        self.others: dict[Path, Any] = {}  # what is no tensor, by its place
        self.facts: dict[Path, dict[str, Any]] = {}  # what these held
        self.outside: Any = None  # compares what the function takes from elsewhere
        for path, leaf in arguments(list(examples)):
            if isinstance(leaf, Tensor):
                self.paths.append(self._name(path))
                self.places.append(path)
            elif isinstance(leaf, Module) and opens and (found := opens(leaf)):
                self.opened[path] = found
                self.paths += [f"{self._name(path)}.{name}" for name in found.names]
                self.places += _places_in(path, found)
            elif hides_tensor(leaf):
                kind = type(leaf).__name__
                what = f"{self._name(path)} is a {kind}, whose tensors nobody sees"
                cure = f"@dataclass above {kind}, or its tensors as arguments"
                raise ArgumentError("capture", what, cure=cure)
            else:
                is_kept = _is_array(leaf) or isinstance(leaf, set)
                self.others[path] = copy.copy(leaf) if is_kept else leaf
                if facts := facts_of(leaf):
                    self.facts[path] = facts

    def __getstate__(self) -> dict[str, Any]:
        """All but defaults that cannot be told to be the same ones in a copy."""
        kept = {
            name: one if _is_kept(one.default) else one.replace(default=LOST)
            for name, one in self.parameters.items()
        }
        return {**vars(self), "parameters": kept, "outside": None}

    def alone(self) -> "Call":
        """The same without what the function takes from elsewhere."""
        made = copy.copy(self)
        made.outside = None
        return made

    def __call__(self, given: tuple[Any, ...], named: dict[str, Any]) -> list[Tensor]:
        """The tensors of a call, in the order of the inputs.

        Raises:
            ArgumentError: the captured function cannot be called so; or something else
                than a tensor is not what it was at the capture, of which the program
                has made constants.
        """
        if self.outside is not None:
            self.outside.check()
        if named:
            given = self._in_order(given, named)
        if self.others or any(type(value) is not Tensor for value in given):
            found = self._compared(given)
        else:
            found = list(given)
        if len(found) != len(self.places):
            what = f"it takes {len(self.places)} tensors, and {len(found)} came"
            facts = [("inputs", ", ".join(self.paths) or "none")]
            raise ArgumentError("program", what, facts)
        return found

    def _in_order(
        self, given: tuple[Any, ...], named: dict[str, Any]
    ) -> tuple[Any, ...]:
        """The arguments in the order in which the function takes them."""
        try:
            bound = _signature(self.parameters).bind(*given, **named)
        except TypeError as error:
            facts = [("inputs", ", ".join(self.paths) or "none")]
            what = f"it cannot be called so: {error}"
            raise ArgumentError("program", what, facts) from None
        for name, value in bound.kwargs.items():
            self._same(name, value, self._default(name))
        return bound.args

    def _compared(self, given: tuple[Any, ...]) -> list[Tensor]:
        """The tensors of a call whose other arguments are those of the capture."""
        found: dict[Path, Tensor] = {}
        came: set[Path] = set()
        for path, leaf in arguments(list(given)):
            if isinstance(leaf, Tensor):
                found[path] = leaf
            elif path in self.opened:
                opened = self.opened[path]
                tensors = opened.tensors(leaf, self._name(path))
                found.update(zip(_places_in(path, opened), tensors, strict=True))
            elif path in self.others:
                came.add(path)
                self._same(self._name(path), leaf, self.others[path])
                if hasattr(leaf, "__dict__"):
                    self._refuse_changes(path, leaf)
            elif not _is_array(leaf):
                alone = len(path) == 1
                wanted = self._default(self._name(path)) if alone else MISSING
                self._same(self._name(path), leaf, wanted)
        for path in self.others.keys() - came:
            default = self._default(self._name(path)) if len(path) == 1 else MISSING
            if default is not MISSING:
                self._same(self._name(path), default, self.others[path])
        if found.keys() == set(self.places):  # a dict may come in another order
            return [found[path] for path in self.places]
        return list(found.values())

    def _refuse_changes(self, path: Path, leaf: Any) -> None:
        """Raise for an object of which something was set anew since the capture."""
        before, now = self.facts.get(path, {}), facts_of(leaf)
        for name in before.keys() | now.keys():
            of_class = getattr(type(leaf), name, MISSING)
            wanted = before.get(name, of_class)
            if wanted is not MISSING:
                value = getattr(leaf, name, LOST)
                self._same(f"{self._name(path)}.{name}", value, wanted)

    def _name(self, path: Path) -> str:
        """What the function calls the place of an argument or of a part of it."""
        at, *inside = path
        known = self.names
        if int(at) >= len(known):
            known = list(self.parameters)
        name = known[int(at)] if int(at) < len(known) else f"x{at}"
        return ".".join([name, *inside])

    def _default(self, name: str) -> Any:
        """What the function takes where an argument is not given."""
        found = self.parameters.get(name)
        has_none = found is None or found.default is inspect.Parameter.empty
        return MISSING if has_none else found.default  # type: ignore[union-attr]

    def _same(self, name: str, value: Any, wanted: Any) -> None:
        """Raise for an argument that would be ignored."""
        if wanted is not MISSING and are_equal(value, wanted):
            return
        what = f"{name} is another value than the program is made for"
        captured = "no such argument" if wanted is MISSING else _short(wanted)
        facts = [("given", _short(value)), ("captured", captured)]
        cure = "capture again with it; or a tensor, in the examples and in each call"
        raise ArgumentError("program", what, facts, cure)


def _places_in(path: Path, opened: Any) -> list[Path]:
    """Where the tensors of a model stand that is an argument."""
    return [(*path, *name.split(".")) for name in opened.names]


def taken(
    name: str,
    takes: Callable[..., list[Any]] | None,
    given: tuple[Any, ...],
    named: dict[str, Any],
    other: str = "or run(array) for arrays",
) -> list[Any]:
    """The tensors of a call of a program; other: what else there is for arrays.

    Raises:
        ArgumentError: there are more or fewer than it takes, or arrays among them.
    """
    found: list[Any] = []
    problem: ArgumentError | None = None
    try:
        found = list(given) if takes is None else takes(given, named)
    except ArgumentError as error:
        problem = error
    if problem is not None or not all(isinstance(one, Tensor) for one in found):
        for place, leaf in ARGUMENTS.leaves([*given, named]):
            if isinstance(leaf, np.ndarray):
                at = f" ({'.'.join(place[1:])})" if place[1:] else ""
                what = f"a NumPy array came{at}, and it takes tensors"
                facts = [("array", f"{list(leaf.shape)} {leaf.dtype}")]
                cure = f"Tensor.from_numpy(array, device), {other}".rstrip(", ")
                raise ArgumentError(name, what, facts, cure)
    if problem is not None:
        raise problem
    return found


def are_equal(a: Any, b: Any) -> bool:
    """Whether a program that was made for the one value is right for the other."""
    if a is b:
        return True
    if isinstance(a, Module) or isinstance(b, Module):
        return False
    if _is_array(a) or _is_array(b):
        same = _is_array(a) and _is_array(b) and a.dtype == b.dtype
        return same and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, bool) is not isinstance(b, bool):
        return False
    if isinstance(a, float) and isinstance(b, float) and a == b and not a:
        return copysign(1, a) == copysign(1, b)
    try:
        return bool(a == b) or bool(a != a and b != b)
    except (TypeError, ValueError):
        return False


def facts_of(leaf: Any) -> dict[str, Any]:
    """The numbers and texts that an object has as attributes: they may be set anew."""
    # A backend keeps what it has found out about ops, which is no fact of a call.
    if isinstance(leaf, (Module, Backend, type)) or not hasattr(leaf, "__dict__"):
        return {}
    held = vars(leaf).items()
    return {name: copy.deepcopy(fact) for name, fact in held if is_fact(fact)}


def is_fact(value: Any) -> bool:
    """Whether a value is a number or a text, or a small container of these."""
    if type(value) in (list, tuple, set):
        return len(value) <= MOST_FACTS and all(map(is_fact, value))
    if type(value) is dict:
        parts = (*value, *value.values())
        return len(value) <= MOST_FACTS and all(map(is_fact, parts))
    return value is None or isinstance(value, (int, float, complex, str, np.generic))


def hides_tensor(leaf: Any) -> bool:
    """Whether an object that is no container of ours has a tensor in it."""
    if isinstance(leaf, (set, frozenset)):
        return any(isinstance(part, Tensor) for part in leaf)
    held = vars(leaf) if hasattr(leaf, "__dict__") else {}
    if isinstance(leaf, (Module, Tensor, type)) or callable(leaf):
        return False
    return bool(ARGUMENTS.collect(dict(held), Tensor, []))


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray)


def _short(value: Any) -> str:
    is_model = isinstance(value, Module)
    text = f"a {type(value).__name__}" if is_model else repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """The parameters of a function, less their annotations; none where nobody knows."""
    try:
        found = inspect.signature(function).parameters
    except (TypeError, ValueError):
        found = {"x": VARIOUS}
    none = inspect.Parameter.empty
    return {name: one.replace(annotation=none) for name, one in found.items()}


def _is_kept(default: Any) -> bool:
    """Whether a default goes along with a copy: not models, tensors and functions."""
    if isinstance(default, (Module, Tensor, Lost)):
        return False
    return isinstance(default, type) or not callable(default)


def _signature(parameters: Mapping[str, inspect.Parameter]) -> inspect.Signature:
    return inspect.Signature(list(parameters.values()))


VARIOUS = inspect.Parameter("x", inspect.Parameter.VAR_POSITIONAL)


def _names(
    parameters: Mapping[str, inspect.Parameter], examples: Sequence[Any]
) -> list[str]:
    """What the function calls its arguments."""
    try:
        bound = _signature(parameters).bind(*examples)
    except TypeError as error:
        what = f"it cannot be called with {len(examples)} examples: {error}"
        raise ArgumentError("capture", what, cure="an example for each input") from None
    names: list[str] = []
    for name, value in bound.arguments.items():
        if parameters[name].kind is inspect.Parameter.VAR_POSITIONAL:
            names += [f"{name}.{i}" for i in range(len(value))]
        else:
            names.append(name)
    return names
