"""A module as a tree: its fields, and how to walk them.

What may be a field: a module, a Param, a Tensor (a constant), plain values, and lists,
tuples, dicts and options of these. A field whose type names several modules,
`conv: DwsConv | Conv2d`, is what Burn writes as an enum.
"""

import ast
import dataclasses
import functools
import inspect
import sys
import types
import typing
import weakref
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from burnbook.core.error_context import names_around
from burnbook.module.param import Param
from burnbook.module.reparameterization import Reparameterized
from burnbook.tensor import Tensor


class Tree:
    """What Module is for the functions of this folder: something with fields."""

    def find_part(self, part: object) -> str | None:
        """The path to a module or parameter inside this one: "layers.0"; or None."""
        return _find(self, part, "")


class Hint(NamedTuple):
    """What a field's annotation says about the values in it."""

    optional: bool = False  # X | None
    choice: bool = False  # X | Y: Burn's enum
    item: Any = None  # the Hint of the elements of a list or tuple
    leaves: tuple[Any, ...] = ()  # the types that are named, or their names
    variants: tuple[tuple[Any, str], ...] = ()  # Annotated[BatchNorm, "Batch"]

    def variant(self, cls: type) -> str:
        """What a choice calls a module of this class."""
        return dict(self.variants).get(cls, cls.__name__)


@functools.cache
def field_hints(cls: type) -> dict[str, Hint]:
    """The fields of a module class, in order, with what their annotations say."""
    found = {}
    for field in dataclasses.fields(cls):
        owners = (c for c in cls.__mro__ if field.name in inspect.get_annotations(c))
        owner = next(owners, cls)
        found[field.name] = _read_hint(field.type, owner)
    return found


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
        for name in field_hints(type(value)):
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
        for name in field_hints(type(value)):
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
        for name in field_hints(type(value)):
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


_PLACES: dict[type, bool] = {}


def has_place(cls: type) -> bool:
    """Whether the class declares a Param, a Tensor, or a module that does."""
    if cls not in _PLACES:
        _PLACES[cls] = False  # what a class that holds itself sees on the way
        hints = field_hints(cls).values()
        _PLACES[cls] = any(_is_place(leaf) for hint in hints for leaf in hint.leaves)
    return _PLACES[cls]


def _is_place(leaf: Any) -> bool:
    if isinstance(leaf, str):
        return leaf in ("Param", "RunningState", "Tensor")
    if isinstance(leaf, type) and issubclass(leaf, Tree):
        return dataclasses.is_dataclass(leaf) and has_place(leaf)
    if isinstance(leaf, type):
        return issubclass(leaf, (Param, Tensor))
    return isinstance(leaf, type(Tensor[1]))


def remember_scope(cls: type) -> None:
    """Keep what the names in the annotations of a class mean where it is made."""
    texts = [a for a in inspect.get_annotations(cls).values() if isinstance(a, str)]
    if texts:
        _SCOPES[cls] = names_around(cls, " ".join(texts))


# What could be seen where a class was made whose annotations are texts.
_SCOPES: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()


def resolved(annotation: Any, owner: type) -> Any:
    """What an annotation of a class stands for; a syntax tree if that is not known."""
    annotation = getattr(annotation, "__value__", annotation)
    if not isinstance(annotation, (str, typing.ForwardRef)):
        return annotation
    text: str = getattr(annotation, "__forward_arg__", annotation)  # type: ignore[assignment]
    scope = dict(vars(sys.modules.get(owner.__module__, types)))
    scope |= _SCOPES.get(owner, {}) | {owner.__name__: owner}
    try:
        return resolved(eval(text, scope, dict(vars(owner))), owner)
    except Exception:  # a name of a function, or one that only type checkers know
        try:
            return ast.parse(text, mode="eval").body
        except SyntaxError:
            return Any


def _read_hint(annotation: Any, owner: type) -> Hint:
    annotation = resolved(annotation, owner)
    if isinstance(annotation, ast.expr):
        return _from_text(annotation)
    return _from_type(annotation, owner)


def _from_type(annotation: Any, owner: type) -> Hint:
    origin, arms = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        named = isinstance(arms[1], str) and isinstance(arms[0], type)
        hint = _read_hint(arms[0], owner)
        return hint._replace(variants=((arms[0], arms[1]),)) if named else hint
    if isinstance(origin, type) and issubclass(origin, (Param, Tree)):
        return Hint(leaves=(origin,))  # Param[Tensor[2]], Block[int]
    hints = [_read_hint(arm, owner) for arm in arms if arm is not ...]
    if origin in (typing.Union, types.UnionType):
        return _union(hints, [arm is types.NoneType for arm in arms])
    if arms:
        return _container(hints)
    return Hint(leaves=(annotation,))


def _from_text(tree: ast.expr) -> Hint:
    """The same from an annotation that cannot be evaluated here."""
    if isinstance(tree, ast.BinOp):
        arms: list[ast.expr] = [tree]
        while isinstance(arms[0], ast.BinOp):
            arms[:1] = [arms[0].left, arms[0].right]
        return _union([_from_text(arm) for arm in arms], [_is_none(a) for a in arms])
    if isinstance(tree, ast.Subscript):
        inside = tree.slice
        arms = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        hints = [_from_text(arm) for arm in arms]
        name = ast.unparse(tree.value).rpartition(".")[2]
        if name == "Optional":
            return hints[0]._replace(optional=True)
        if name == "Union":
            return _union(hints, [_is_none(arm) for arm in arms])
        if name in ("Param", "RunningState"):
            return Hint(leaves=(name,))
        return _container(hints)
    return Hint(leaves=(ast.unparse(tree).rpartition(".")[2],))


def _is_none(arm: ast.expr) -> bool:
    return isinstance(arm, ast.Constant) and arm.value is None


def _union(hints: list[Hint], empty: list[bool]) -> Hint:
    meant = [hint for hint, none in zip(hints, empty, strict=True) if not none]
    leaves = tuple(leaf for hint in meant for leaf in hint.leaves)
    item = next((hint.item for hint in meant if hint.item), None)
    variants = tuple(pair for hint in meant for pair in hint.variants)
    return Hint(any(empty), len(meant) > 1, item, leaves, variants)


def _container(hints: list[Hint]) -> Hint:
    leaves = tuple(leaf for hint in hints for leaf in hint.leaves)
    return Hint(item=hints[-1] if hints else None, leaves=leaves)
