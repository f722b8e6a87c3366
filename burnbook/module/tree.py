"""A module as a tree: its fields, and how to walk them.

What may be a field: a module, a Param, a Tensor (a constant), plain values, and lists,
tuples, dicts and options of these. A field whose type names several modules,
`conv: DwsConv | Conv2d`, is what Burn writes as an enum.
"""

import dataclasses
import functools
import inspect
import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any, ClassVar, TypeVar

from burnbook.core.converters import ANYTHING, TypeSpec, look_up, type_spec
from burnbook.core.errors import ArgumentError
from burnbook.core.tree import PLAIN, Go, Kind, Part, Pytree
from burnbook.module.param import Param
from burnbook.module.reparameterization import Reparameterized
from burnbook.tensor import Tensor

T = TypeVar("T")


class Tree:
    """What Module is for the functions of this folder: something with fields."""

    #: A field whose parts are parts of the module itself: in paths and records their
    #: names come without that of the field.
    spread: ClassVar[str] = ""

    def find_part(self, part: object) -> str | None:
        """The path to a module or parameter inside this one: "layers.0"; or None.

        Raises:
            ArgumentError: this is a path already.
        """
        if isinstance(part, str):
            steps = [f"[{s}]" if s.isdigit() else f".{s}" for s in part.split(".")]
            what = "it finds the path of a part, and this is a path"
            raise ArgumentError("find_part", what, cure=f"model{''.join(steps)}")
        found = (path for path, held in MODULES.nodes(self) if held is part and path)
        return next(map(".".join, found), None)


@functools.cache
def field_specs(cls: type) -> dict[str, TypeSpec]:
    """The fields of a module class, in order, with what their annotations say."""
    found = {}
    for field in dataclasses.fields(cls):
        owners = (c for c in cls.__mro__ if field.name in inspect.get_annotations(c))
        resolve = functools.partial(look_up, owner=next(owners, cls))
        found[field.name] = type_spec(field.type, resolve)
    return found


def classes_of(spec: TypeSpec) -> tuple[Any, ...]:
    """The classes that an annotation names, also inside lists; or their names."""
    known_only_by_name = spec.annotation in PLACES
    if known_only_by_name or spec.of_class(Param, Tree) or not spec.parts:
        return (spec.annotation if spec.kind is None else spec.kind,)
    parts = spec.meant if spec.form == "union" else spec.parts
    return tuple(cls for part in parts for cls in classes_of(part))


def places(spec: TypeSpec, count: int) -> tuple[TypeSpec, ...]:
    """What the annotation of a list or tuple says about each of its parts."""
    inner = next((part for part in spec.meant if part.contains), None)
    found = (ANYTHING,) * count if inner is None else inner.places(count)
    return found if len(found) == count else (spec.item,) * count


def named_arm(value: object, spec: TypeSpec) -> tuple[str, TypeSpec] | None:
    """The variant of a union that a list, a parameter or a number is, and its type.

    Only one with a name: Annotated[list[Linear], "Many"]. Modules have their class's.
    """
    if not spec.choice or isinstance(value, Tree):
        return None
    for part in spec.meant:
        name = part.notes[0] if part.notes else None
        fits = isinstance(part.kind, type) and isinstance(value, part.kind)
        if isinstance(name, str) and fits and _may_hold(part, value):
            return name, part
    return None


def _may_hold(spec: TypeSpec, value: object) -> bool:
    """Whether the first of what a container holds is of its type."""
    if not isinstance(value, (list, tuple)) or not value or not spec.contains:
        return True
    inner, first = spec.places(len(value))[0], value[0]
    if isinstance(first, (list, tuple)):
        return inner.contains and _may_hold(inner, first)
    known = tuple(cls for cls in classes_of(inner) if isinstance(cls, type))
    return not (inner.contains or known) or isinstance(first, known)


def spelled(name: str) -> str:
    """The name of a field in records and paths: that of `forward_` is "forward".

    Why: a field cannot have the name of a method, and Burn has one called forward.
    """
    return name.rstrip("_")


def walk(value: object) -> Iterator[tuple[str, Param | Tensor]]:
    """Every Param and every constant Tensor with the path to it, depth first."""
    for path, leaf in MODULES.leaves(value):
        if isinstance(leaf, (Param, Tensor)):
            yield ".".join(path), leaf


def children(value: object) -> Iterable[Part]:
    """The parts of a module or container, by name or position."""
    return MODULES.parts(value)


def params_of(value: object) -> list[Param]:
    """Every Param, depth first, in the order of the fields."""
    return MODULES.collect(value, Param, [])


def rebuild(
    value: T,
    param: Callable[[Param], Param],
    tensor: Callable[[Tensor], Tensor],
    fold: Callable[[Reparameterized], Param] | None = None,
) -> T:
    """A copy of the tree in which every Param and constant Tensor is replaced.

    A parameter that stands in several places is replaced once, so tied weights stay
    tied. Where a module is attached to a parameter, the stored one and those of the
    module are replaced, or with `fold` all of it by one plain parameter.
    """
    return PARTS.map(value, _Once(param, tensor, fold))


class _Once:
    """Replaces each parameter once, and each constant tensor."""

    def __init__(
        self,
        param: Callable[[Param], Param],
        tensor: Callable[[Tensor], Tensor],
        fold: Callable[[Reparameterized], Param] | None,
    ):
        self.param, self.tensor, self.fold = param, tensor, fold
        self.done: dict[Param, Param] = {}

    def __call__(self, old: object) -> Any:
        """What stands in the place of a leaf."""
        if not isinstance(old, Param):
            return self.tensor(old) if isinstance(old, Tensor) else old
        made = self.done.get(old)
        if made is None:
            if not isinstance(old, Reparameterized):
                made = self.param(old)
            elif self.fold is not None:
                made = self.fold(old)
            else:
                made = Reparameterized(self(old.stored), PARTS.map(old.attached, self))
            self.done[old] = made
        return made


def _map_fields(value: Tree, go: Go) -> Tree:
    made = object.__new__(type(value))
    held, change = made.__dict__, go.change
    held.update(value.__dict__)
    for name in field_specs(type(value)):
        part = held[name]
        if type(part) is Param:  # hot
            held[name] = change(part)
        elif type(part) not in PLAIN:
            held[name] = go(part)
    return made


def _field_values(value: Tree) -> Iterable[Any]:
    return _getter(type(value))(value.__dict__)


@functools.cache
def _getter(cls: type) -> Callable[[dict[str, Any]], Iterable[Any]]:
    names = tuple(field_specs(cls))
    if len(names) > 1:
        return operator.itemgetter(*names)  # hot
    return lambda held: [held[name] for name in names]


def _named_parts(value: Tree) -> Iterable[Part]:
    if value.spread:
        return list(getattr(value, value.spread).items())
    return [(spelled(n), getattr(value, n)) for n in field_specs(type(value))]


FIELDS = Kind(
    parts=_named_parts,
    map=_map_fields,
    values=_field_values,
)
#: Modules down to the parameters, computed ones as what they are computed from.
MODULES = Pytree(
    {
        Tree: FIELDS,
        Reparameterized: Kind(
            parts=lambda value: [
                ("", value.stored),
                (value.attached.NAME, value.attached),
            ],
            map=lambda value, go: Reparameterized(go(value.stored), go(value.attached)),
            values=lambda value: [value.stored, value.attached],
        ),
    }
)
#: The same with every parameter as a leaf.
PARTS = Pytree({Tree: FIELDS})


def is_constant(value: object) -> bool:
    """Whether a module has no tensor and no place for one: Relu, Dropout, a pool."""
    return not any(
        isinstance(held, (Param, Tensor))
        or (isinstance(held, Tree) and has_place(type(held)))
        for _, held in PARTS.nodes(value)
    )


PLACES = ("Param", "RunningState", "Tensor")
_PLACES: dict[type, bool] = {}


def has_place(cls: type) -> bool:
    """Whether the class declares a Param, a Tensor, or a module that does."""
    if cls not in _PLACES:
        _PLACES[cls] = False  # what a class that holds itself sees on the way
        specs = field_specs(cls).values()
        _PLACES[cls] = any(is_place(one) for s in specs for one in classes_of(s))
    return _PLACES[cls]


def is_place(leaf: object) -> bool:
    """Whether a class that an annotation names can hold a tensor."""
    if isinstance(leaf, str):
        return leaf in PLACES
    if isinstance(leaf, type) and issubclass(leaf, Tree):
        return dataclasses.is_dataclass(leaf) and has_place(leaf)
    if isinstance(leaf, type):
        return issubclass(leaf, (Param, Tensor))
    return isinstance(leaf, type(Tensor[1]))
