"""A module as a tree: its fields, and how to walk them.

What may be a field: a module, a Param, a Tensor (a constant), plain values, and lists,
tuples, dicts and options of these. A field whose type names several modules,
`conv: DwsConv | Conv2d`, is what Burn writes as an enum.
"""

import dataclasses
import functools
import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

from burnbook.core.converters import TypeSpec, look_up, type_spec
from burnbook.module.param import Param
from burnbook.module.reparameterization import Reparameterized
from burnbook.tensor import Tensor


class Tree:
    """What Module is for the functions of this folder: something with fields."""

    def find_part(self, part: object) -> str | None:
        """The path to a module or parameter inside this one: "layers.0"; or None."""
        return _find(self, part, "")


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


def spelled(name: str) -> str:
    """The name of a field in records and paths: that of `forward_` is "forward".

    Why: a field cannot have the name of a method, and Burn has one called forward.
    """
    return name.rstrip("_")


def walk(value: Any, path: str = "") -> Iterator[tuple[str, Param | Tensor]]:
    """Every Param and every constant Tensor with the path to it, depth first."""
    if isinstance(value, Reparameterized):
        yield path, value.stored
    elif isinstance(value, (Param, Tensor)):
        yield path, value
        return
    for name, held in children(value):
        if type(held) not in PLAIN:
            yield from walk(held, f"{path}.{name}" if path else name)


def children(value: Any) -> Iterator[tuple[str, Any]]:
    """The parts of a module or container, by name or position."""
    if isinstance(value, Tree):
        for name in field_specs(type(value)):
            yield spelled(name), getattr(value, name)
    elif isinstance(value, Reparameterized):
        yield value.attached.NAME, value.attached
    elif isinstance(value, (list, tuple)):
        for position, held in enumerate(value):
            yield str(position), held
    elif isinstance(value, dict):
        for key, held in value.items():
            yield str(key), held


def _find(value: Any, part: object, path: str) -> str | None:
    for name, held in children(value):
        at = f"{path}.{name}" if path else name
        found = at if held is part else _find(held, part, at)
        if found is not None:
            return found
    return None


def each_param(value: Any, act: Callable[[Param], Any]) -> None:
    """Call `act` for every Param, depth first, in the order of the fields."""
    if isinstance(value, Tree):
        held = value.__dict__
        for name in field_specs(type(value)):
            part = held[name]
            if type(part) is Param:  # hot
                act(part)
            elif type(part) not in PLAIN:
                each_param(part, act)
    elif isinstance(value, Reparameterized):
        act(value.stored)
        each_param(value.attached, act)
    elif isinstance(value, Param):
        act(value)
    elif isinstance(value, (list, tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            if type(part) not in PLAIN:
                each_param(part, act)


def rebuild(
    value: Any,
    param: Callable[[Param], Param],
    tensor: Callable[[Tensor], Tensor],
    fold: Callable[[Reparameterized], Param] | None = None,
) -> Any:
    """A copy of the tree in which every Param and constant Tensor is replaced.

    A parameter that stands in several places is replaced once, so tied weights stay
    tied. Where a module is attached to a parameter, the stored one and those of the
    module are replaced, or with `fold` all of it by one plain parameter.
    """
    return _rebuild(value, _Once(param, tensor, fold), tensor)


class _Once:
    """Replaces each parameter once.

    Why a class: a function that calls itself is a cycle, and would keep the old tree
    until Python looks for cycles.
    """

    def __init__(
        self,
        param: Callable[[Param], Param],
        tensor: Callable[[Tensor], Tensor],
        fold: Callable[[Reparameterized], Param] | None,
    ):
        self.param, self.tensor, self.fold = param, tensor, fold
        self.done: dict[Param, Param] = {}

    def __call__(self, old: Param) -> Param:
        made = self.done.get(old)
        if made is None:
            if not isinstance(old, Reparameterized):
                made = self.param(old)
            elif self.fold is not None:
                made = self.fold(old)
            else:
                attached = _rebuild(old.attached, self, self.tensor)
                made = Reparameterized(self(old.stored), attached)
            self.done[old] = made
        return made


def _rebuild(
    value: Any, param: Callable[[Param], Param], tensor: Callable[[Tensor], Tensor]
) -> Any:
    if isinstance(value, Param):
        return param(value)
    if isinstance(value, Tree):
        made = object.__new__(type(value))
        held = made.__dict__
        held.update(value.__dict__)
        for name in field_specs(type(value)):
            part = held[name]
            if type(part) is Param:  # hot
                held[name] = param(part)
            elif type(part) not in PLAIN:
                held[name] = _rebuild(part, param, tensor)
        return made
    if isinstance(value, Tensor):
        return tensor(value)
    if isinstance(value, (list, tuple)):
        parts = [
            part if type(part) in PLAIN else _rebuild(part, param, tensor)
            for part in value
        ]
        return like(value, parts)
    if isinstance(value, dict):
        return {key: _rebuild(part, param, tensor) for key, part in value.items()}
    return value


def like(container: Any, parts: list[Any]) -> Any:
    """A list, tuple or named tuple of the same type with other parts."""
    make = getattr(type(container), "_make", type(container))
    return make(parts)


def is_constant(value: Any) -> bool:
    """Whether a module has no tensor and no place for one: Relu, Dropout, a pool."""
    if isinstance(value, Tree):
        if has_place(type(value)):
            return False
        return all(is_constant(held) for _, held in children(value))
    if isinstance(value, (Param, Tensor)):
        return False
    return all(is_constant(held) for _, held in children(value))


PLAIN = frozenset((int, float, bool, str, types.NoneType))


PLACES = ("Param", "RunningState", "Tensor")
_PLACES: dict[type, bool] = {}


def has_place(cls: type) -> bool:
    """Whether the class declares a Param, a Tensor, or a module that does."""
    if cls not in _PLACES:
        _PLACES[cls] = False  # what a class that holds itself sees on the way
        specs = field_specs(cls).values()
        _PLACES[cls] = any(_is_place(one) for s in specs for one in classes_of(s))
    return _PLACES[cls]


def _is_place(leaf: Any) -> bool:
    if isinstance(leaf, str):
        return leaf in PLACES
    if isinstance(leaf, type) and issubclass(leaf, Tree):
        return dataclasses.is_dataclass(leaf) and has_place(leaf)
    if isinstance(leaf, type):
        return issubclass(leaf, (Param, Tensor))
    return isinstance(leaf, type(Tensor[1]))
