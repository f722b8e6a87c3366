"""What type annotations say, read once for everyone.

Configs, items of datasets, states of optimizers and fields of modules are declared by
annotations. `type_spec` turns one into a small tree, and each place walks the tree for
its own purpose: to read JSON, to check a value, to make a random one.
"""

from __future__ import annotations

import ast
import collections.abc as abc
import dataclasses
import functools
import inspect
import sys
import types
import typing
import weakref
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from burnbook.core.error_context import names_around

Resolve = Callable[[object], object]
#: any: every value; items: any number of one type; tuple: a type for each place;
#: name: only a text, which cannot be looked up; other: not a type to Python.
Form = Literal[
    "any",
    "none",
    "literal",
    "union",
    "items",
    "tuple",
    "dict",
    "class",
    "name",
    "other",
]
WRAPPERS = (typing.Annotated, typing.Required, typing.NotRequired)
NO_ITEMS = (str, bytes, bytearray, memoryview, np.ndarray)  # one value each


def _as_it_is(annotation: object) -> object:
    return annotation


@dataclasses.dataclass(frozen=True)
class TypeSpec:
    """What one annotation says about a value.

    kind: the class of the value: list of list[int]. None where there is no one class.
    values: those of a Literal.
    notes: what Annotated adds: ("Batch",) of Annotated[BatchNorm, "Batch"].
    """

    form: Form
    annotation: object = Any
    kind: Any = None
    arms: tuple[object, ...] = ()  # the annotations of the parts
    values: tuple[object, ...] = ()
    notes: tuple[object, ...] = ()
    resolve: Resolve = _as_it_is

    @functools.cached_property
    def parts(self) -> tuple[TypeSpec, ...]:
        """The types of a union, or of what a container holds.

        Why only when asked: a type may hold itself.
        """
        return tuple(type_spec(arm, self.resolve) for arm in self.arms)

    @functools.cached_property
    def meant(self) -> tuple[TypeSpec, ...]:
        """The types of a union but for None; of anything else, itself."""
        parts = self.parts if self.form == "union" else (self,)
        return tuple(part for part in parts if part.form != "none")

    @functools.cached_property
    def optional(self) -> bool:
        """Whether it is a union with None."""
        return self.form == "union" and len(self.meant) < len(self.parts)

    @functools.cached_property
    def choice(self) -> bool:
        """Whether it is a union of several types, as Burn's enums are."""
        return self.form == "union" and len(self.meant) > 1

    @functools.cached_property
    def contains(self) -> bool:
        """Whether it is a container that says what it holds: list[int], not list."""
        return self.form in ("items", "tuple", "dict") and bool(self.arms)

    @functools.cached_property
    def item(self) -> TypeSpec:
        """The type of what a container holds; the container may be optional."""
        if self.form == "union":
            items = (part.item for part in self.meant)
            return next((item for item in items if item is not ANYTHING), ANYTHING)
        return self.parts[-1] if self.contains else ANYTHING

    def places(self, count: int) -> tuple[TypeSpec, ...]:
        """The type of each of so many items; a tuple has its own number."""
        return self.parts if self.form == "tuple" else (self.item,) * count

    def of_class(self, *kinds: type) -> bool:
        """Whether the values are of one of these classes, or of a class below it."""
        return isinstance(self.kind, type) and issubclass(self.kind, kinds)

    def arm(self, cls: type) -> TypeSpec | None:
        """The type of a union that a value of this class has.

        It may be a union with a name: Annotated[A | B, "Inner"].
        """
        for part in self.meant:
            if part.kind is cls:
                return part
        inner = (part for part in self.meant if part.choice and part.notes)
        return next((part for part in inner if part.arm(cls)), None)

    def variant(self, cls: type) -> str:
        """What a union calls a value of this class."""
        arm = self.arm(cls)
        if arm is not None and arm.notes and isinstance(arm.notes[0], str):
            return arm.notes[0]
        return cls.__name__

    def text(self, either: str = " | ") -> str:
        """How the type reads: `tuple[int, int]`, `float | None`."""
        if self.form in ("any", "none"):
            return self.form.capitalize()
        if self.form == "literal":
            return either.join(map(repr, self.values))
        if self.kind is abc.Callable:
            return "function"
        inside = [part.text(either) for part in self.parts]
        if self.form == "union":
            return either.join(inside)
        if self.form == "name":
            return str(self.annotation)
        named = isinstance(self.kind, type)
        name = self.kind.__name__ if named else repr(self.annotation)
        if self.form == "items" and self.kind is tuple and inside:
            inside.append("...")
        return f"{name}[{', '.join(inside)}]" if inside else name


ANYTHING = TypeSpec("any")


def type_spec(annotation: object, resolve: Resolve = _as_it_is) -> TypeSpec:
    """Read an annotation.

    resolve: what a text stands for, also one inside; a syntax tree if not known.

    Example:
        >>> spec = type_spec(dict[str, int] | None)
        >>> spec.form, spec.optional, spec.item.kind, spec.text()
        ('union', True, <class 'int'>, 'dict[str, int] | None')
    """
    found: Any = resolve(annotation)
    while hasattr(found, "__value__"):  # type Sizes = list[int]
        found = resolve(found.__value__)
    if isinstance(found, ast.expr):
        return _from_syntax(found, resolve)
    origin, arms = typing.get_origin(found), typing.get_args(found)
    if origin in WRAPPERS:
        inner = type_spec(arms[0], resolve)
        return dataclasses.replace(inner, notes=arms[1:] or inner.notes)
    if isinstance(found, typing.NewType):
        return type_spec(found.__supertype__, resolve)
    if isinstance(found, typing.TypeVar):
        found = Any if found.__bound__ is None else found.__bound__
        return type_spec(found, resolve)
    if found in (None, types.NoneType):
        return TypeSpec("none", types.NoneType, types.NoneType)
    if found in (Any, object):
        return ANYTHING
    if origin is Literal:
        return TypeSpec("literal", found, values=arms)
    if origin in (typing.Union, types.UnionType):
        return TypeSpec("union", found, arms=arms, resolve=resolve)
    return _from_class(found, origin or found, arms, resolve)


def _from_class(
    annotation: object, kind: object, arms: tuple[object, ...], resolve: Resolve
) -> TypeSpec:
    form: Form = "class"
    if not isinstance(kind, type):
        form, kind = "other", None
    elif issubclass(kind, abc.Mapping):
        form = "dict"
    elif kind is tuple and arms and ... not in arms:
        form = "tuple"
    elif issubclass(kind, abc.Collection) and not issubclass(kind, NO_ITEMS):
        form = "items"
        arms = arms[:1]
    return TypeSpec(form, annotation, kind, arms, resolve=resolve)


def _from_syntax(tree: ast.expr, resolve: Resolve) -> TypeSpec:
    """Read an annotation that names something which cannot be looked up."""
    union = functools.partial(TypeSpec, "union", resolve=resolve)
    if isinstance(tree, ast.Constant):
        return TypeSpec("none", types.NoneType, types.NoneType)
    if isinstance(tree, ast.BinOp):
        sides: list[ast.expr] = [tree]
        while isinstance(sides[0], ast.BinOp):
            sides[:1] = [sides[0].left, sides[0].right]
        return union(tree, arms=tuple(sides))
    if not isinstance(tree, ast.Subscript):
        return TypeSpec("name", ast.unparse(tree).rpartition(".")[2])
    inside = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    arms = tuple(... if ast.unparse(arm) == "..." else arm for arm in inside)
    name = ast.unparse(tree.value).rpartition(".")[2]
    if name in ("Optional", "Union"):
        return union(tree, arms=(*arms, None) if name == "Optional" else arms)
    outer = resolve(tree.value)
    if isinstance(outer, ast.expr):
        outer = name
    return _from_class(outer, typing.get_origin(outer) or outer, arms, resolve)


def remember_scope(cls: type) -> None:
    """Keep what the names in the annotations of a class mean where it is made."""
    texts = [a for a in inspect.get_annotations(cls).values() if isinstance(a, str)]
    _SCOPES[cls] = names_around(cls, " ".join(texts)) if texts else {}


# What could be seen where a class was made whose annotations are texts.
_SCOPES: weakref.WeakKeyDictionary[type, dict[str, Any]] = weakref.WeakKeyDictionary()


@functools.cache
def type_specs(cls: type) -> dict[str, TypeSpec]:
    """What the annotations of a class say, those of the classes above it first.

    Raises:
        NameError: one of them names something that cannot be found.
        TypeError: `cls` has no annotations that can be read.
    """
    local: dict[str, Any] = {}
    for base in reversed(getattr(cls, "__mro__", ())):
        if base in _SCOPES:
            local |= _SCOPES[base] | {base.__name__: base}
    hints = typing.get_type_hints(cls, localns=local or None, include_extras=True)
    return {name: type_spec(hint) for name, hint in hints.items()}


def look_up(annotation: object, owner: type) -> object:
    """What an annotation of a class stands for; a syntax tree if that is not known."""
    if isinstance(annotation, ast.expr):
        text = ast.unparse(annotation)
    elif isinstance(annotation, typing.ForwardRef):
        text = annotation.__forward_arg__
    elif isinstance(annotation, str):
        text = annotation
    else:
        return annotation
    scope = dict(vars(sys.modules.get(owner.__module__, types)))
    scope |= _SCOPES.get(owner, {}) | {owner.__name__: owner}
    try:
        return look_up(eval(text, scope, dict(vars(owner))), owner)
    except Exception:  # a name of a function, or one that only type checkers know
        return syntax_of(text)


def resolved(function: Any, annotation: object) -> object:
    """What an annotation of a function stands for; a syntax tree if that is unknown."""
    home = sys.modules.get(function.__module__, types)
    owner = type("function", (), {"__module__": home.__name__})
    return look_up(annotation, owner)


def syntax_of(annotation: object) -> object:
    """The syntax tree of an annotation that is a text; Any where it is not Python."""
    if not isinstance(annotation, str):
        return annotation
    try:
        return ast.parse(annotation, mode="eval").body
    except SyntaxError:
        return Any
