"""Trees: values inside values, and the one way to walk them.

Lists, tuples and dicts have parts; what has none is a leaf. A `Pytree` knows which
other classes have parts as well: modules for a model, dataclasses for the state of an
optimizer, parameters for a record. All its walks are depth first, in the order of the
parts, and a path is the names on the way: ("layers", "0", "weight").
"""

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import NoneType
from typing import Any, NamedTuple, TypeVar

Path = tuple[str, ...]
Part = tuple[str, Any]
T = TypeVar("T")

PLAIN = frozenset((int, float, bool, str, NoneType))  # leaves that no walk changes


class Kind(NamedTuple):
    """How values of one class come apart, and how others are made like them.

    parts: the parts of a value with their names; the name "" adds nothing to a path.
    map: what is like the value and has `go(part)` in the place of each part. values:
    the parts alone.
    """

    parts: Callable[[Any], Iterable[Part]]
    map: Callable[[Any, "Go"], Any]
    values: Callable[[Any], Iterable[Any]]


def like(container: Iterable[object], parts: Iterable[object]) -> Any:
    """A list, tuple or named tuple of the same type with other parts."""
    make: Any = getattr(type(container), "_make", type(container))
    return make(parts)


def fields(value: Any) -> list[Part]:
    """The fields of a dataclass."""
    return [(f.name, getattr(value, f.name)) for f in dataclasses.fields(value)]


def refilled(value: Any, parts: dict[str, object]) -> Any:
    """A dataclass of the same type with other fields.

    Why: what stands in for a part may be no such thing, so its constructor is called
    without the check of its arguments (`core.arguments`).
    """
    made = object.__new__(type(value))
    inspect.unwrap(type(value).__init__)(made, **parts)
    return made


SEQUENCE = Kind(
    parts=lambda value: [(str(i), part) for i, part in enumerate(value)],
    map=lambda value, go: like(value, [go(part) for part in value]),
    values=iter,
)
MAPPING = Kind(
    parts=lambda value: [(str(key), part) for key, part in value.items()],
    map=lambda value, go: {key: go(part) for key, part in value.items()},
    values=dict.values,
)
DATACLASS = Kind(
    parts=fields,
    map=lambda value, go: refilled(value, {n: go(part) for n, part in fields(value)}),
    values=lambda value: [part for _, part in fields(value)],
)


class Pytree:
    """Walks over trees whose nodes are containers and values of these kinds.

    kinds: classes with parts, subclasses included. dataclass: of all other dataclasses.

    Example:
        >>> tree = {"norm": [1.0, None], "step": 3}
        >>> [(".".join(path), leaf) for path, leaf in Pytree({}).leaves(tree)]
        [('norm.0', 1.0), ('norm.1', None), ('step', 3)]
    """

    def __init__(self, kinds: Mapping[type, Kind], dataclass: Kind | None = None):
        self.kinds = {list: SEQUENCE, tuple: SEQUENCE, dict: MAPPING, **kinds}
        self.dataclass = dataclass
        self.known: dict[type, Kind | None] = dict.fromkeys(PLAIN)

    def kind(self, cls: type) -> Kind | None:
        """How values of a class come apart; None for leaves."""
        try:
            return self.known[cls]
        except KeyError:
            found = [self.kinds[base] for base in cls.__mro__ if base in self.kinds]
            if self.dataclass and dataclasses.is_dataclass(cls):
                found.append(self.dataclass)
            self.known[cls] = found[0] if found else None
            return self.known[cls]

    def parts(self, value: object) -> Iterable[Part]:
        """The parts of a value with their names; a leaf has none."""
        kind = self.kind(type(value))
        return () if kind is None else kind.parts(value)

    def nodes(self, value: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
        """The value and everything inside it, each with the path to it."""
        yield path, value
        for name, part in self.parts(value):
            yield from self.nodes(part, (*path, name) if name else path)

    def leaves(self, value: object, path: Path = ()) -> Iterator[tuple[Path, Any]]:
        """What has no parts, each with the path to it."""
        kind = self.kind(type(value))
        if kind is None:
            yield path, value
            return
        for name, part in kind.parts(value):
            yield from self.leaves(part, (*path, name) if name else path)

    def collect(self, value: object, cls: type[T], found: list[T]) -> list[T]:
        """Add all leaves of this class to a list, and give it back."""
        kind = self.known.get(type(value)) or self.kind(type(value))
        if kind is None:
            if isinstance(value, cls):
                found.append(value)
            return found
        for part in kind.values(value):
            made = type(part)
            if made is cls:  # hot
                found.append(part)
            elif made not in PLAIN:
                self.collect(part, cls, found)
        return found

    def map(self, value: T, change: Callable[[Any], Any]) -> T:
        """The same tree with other leaves; numbers, texts and None stay."""
        return Go(self, change)(value)


class Go:
    """One walk of `map`: what becomes of a leaf, and so of any value.

    Why a class: a function that calls itself is a cycle, and would keep the old tree
    until Python looks for cycles.
    """

    __slots__ = ("change", "known", "tree")

    def __init__(self, tree: Pytree, change: Callable[[Any], Any]):
        self.tree, self.known, self.change = tree, tree.known, change

    def __call__(self, value: Any) -> Any:
        """What becomes of a value, with everything inside it."""
        cls = type(value)
        kind = self.known.get(cls) or self.tree.kind(cls)
        if kind is not None:
            return kind.map(value, self)
        return value if cls in PLAIN else self.change(value)
