"""What the record of a module has where, in each release of Burn.

Bincode writes values back to back; only the module knows whether a byte is a length, an
option or the start of a parameter. A schema says it, read off the module and the
annotations of its fields; no parameter is initialized for that. Named formats have the
schema's names in its order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from burnbook.core.converters import ANYTHING, TypeSpec
from burnbook.core.dtypes import Float
from burnbook.module.param import Param, ParamRecord
from burnbook.module.releases import (
    Field,
    Release,
    changed_since,
    fields_of,
    variants_of,
)
from burnbook.module.reparameterization import Reparameterized
from burnbook.module.tree import (
    Tree,
    classes_of,
    field_specs,
    is_constant,
    is_place,
    named_arm,
    places,
    spelled,
)
from burnbook.tensor import TensorData

CONSTANT, PARAM, STRUCT, CHOICE = "constant", "parameter", "struct", "choice"
LIST, TUPLE, MAP = "list", "tuple", "map"


class Part(NamedTuple):
    """One place of a record: what stands there, and the places inside it."""

    kind: str = CONSTANT
    parts: tuple[tuple[str, Any], ...] = ()  # name or position, and its Part
    optional: bool = False
    present: bool = True  # of an optional part
    variant: tuple[int, str] | None = None  # which type of a choice
    of_outer: bool = False  # its fields are those of the part around it
    newer: str = ""  # a field that the release lacks, and that changes what it computes
    element: Any = Float  # the kind of a parameter


def schema(value: object, spec: TypeSpec = ANYTHING, release: Release = ()) -> Part:
    """The schema of a module or of a part of one, in a release of Burn."""
    if spec.choice and isinstance(value, Tree):
        arm = spec.arm(type(value)) or ANYTHING
        made = _inside(value, spec, release)
        if arm.choice:  # one enum holds another
            made = Part(CHOICE, (("", schema(value, arm, release)),))
        names = [_variant(spec, part) for part in spec.meant]
        name = spec.variant(type(value))
        position = variants_of(names, release).index(name)
        made = made._replace(variant=(position, name))
    elif (variant := named_arm(value, spec)) is not None:
        name, arm = variant
        names = variants_of([_variant(spec, part) for part in spec.meant], release)
        made = _inside(value, arm, release)
        made = made._replace(variant=(names.index(name), name))
    else:
        made = _inside(value, spec, release)
    return made._replace(optional=spec.optional, present=value is not None)


def arranged(part: Part, node: Any) -> Any:
    """A record with the names of its schema, in that order.

    Parameters that the release has no place for stay at the end.
    """
    if part.kind in (CONSTANT, PARAM) and not part.variant:
        return node if part.kind == PARAM or _has_leaves(node) else None
    if part.variant:
        inner = node.get(part.variant[1]) if isinstance(node, dict) else None
        return {part.variant[1]: arranged(part._replace(variant=None), inner)}
    if part.kind == CHOICE:
        return arranged(part.parts[0][1], node)
    if part.kind == STRUCT and isinstance(node, dict):
        found = {
            name: arranged(inner, node if inner.of_outer else node.get(name))
            for name, inner in part.parts
        }
        if part.newer:
            found[part.newer] = None
        return found | without_place(part, node)
    if part.kind == MAP and isinstance(node, dict):
        known = dict(part.parts)
        return {k: arranged(known[k], v) if k in known else v for k, v in node.items()}
    if isinstance(node, list | tuple) and len(node) == len(part.parts):
        pairs = zip(part.parts, node, strict=True)
        return [arranged(inner, held) for (_, inner), held in pairs]
    return node


def without_place(part: Part, node: dict[str, Any]) -> dict[str, Any]:
    """What a struct holds beyond the fields of its release."""
    names = {name for name, _ in part.parts}
    if part.of_outer or any(inner.of_outer for _, inner in part.parts):
        return {}
    return {k: v for k, v in node.items() if k not in names and _has_leaves(v)}


def _has_leaves(node: object) -> bool:
    if isinstance(node, dict):
        return any(map(_has_leaves, node.values()))
    if isinstance(node, list | tuple):
        return any(map(_has_leaves, node))
    return isinstance(node, ParamRecord | TensorData)


def _inside(value: object, spec: TypeSpec, release: Release) -> Part:
    if isinstance(value, Reparameterized):
        name = value.attached.NAME
        attached = schema(value.attached, release=release)
        return Part(STRUCT, (("base", Part(PARAM)), (name, attached)))
    if isinstance(value, Param):
        return Part(PARAM, element=value.kind)
    if value is None and any(map(_is_param, classes_of(spec))):
        return Part(PARAM)
    if isinstance(value, Tree) and not value.spread:
        return _struct(value, release)
    if isinstance(value, Tree):
        return Part() if is_constant(value) else _spread(value, release)
    if isinstance(value, dict):
        item = spec.item
        pairs = [(str(k), schema(held, item, release)) for k, held in value.items()]
        return Part(MAP, tuple(pairs))
    if isinstance(value, list | tuple):
        rows = zip(value, places(spec, len(value)), strict=True)
        made = [schema(held, item, release) for held, item in rows]
        pairs = [(str(i), part) for i, part in enumerate(made)]
        return Part(LIST if isinstance(value, list) else TUPLE, tuple(pairs))
    return Part()


def _spread(value: Tree, release: Release) -> Part:
    parts = getattr(value, value.spread).items()
    return Part(
        STRUCT, tuple((name, schema(held, ANYTHING, release)) for name, held in parts)
    )


def _struct(value: Tree, release: Release) -> Part:
    specs = {spelled(name): (name, h) for name, h in field_specs(type(value)).items()}
    known = fields_of(type(value), release)
    if known is None:
        if is_constant(value):
            return Part()
        known = tuple(map(Field, specs))

    def one(field: Field) -> Part:
        if field.inside:
            inner = tuple((each.name, one(each)) for each in field.inside)
            return Part(STRUCT, inner, of_outer=True)
        if field.name not in specs or field.constant:
            return Part()
        name, spec = specs[field.name]
        held = getattr(value, name)
        if release >= (0, 21) and is_constant(held) and not _on_backend(spec):
            return Part()  # Burn 0.21 writes one nothing, however large the field
        if not field.always:
            return schema(held, spec, release)
        example = _beside(value, spec) if held is None else held
        return schema(example, spec, release)._replace(optional=False)

    if not known:
        return Part()
    parts = tuple((field.name, one(field)) for field in known)
    old = changed_since(value, release)
    return Part(STRUCT, parts, newer=old.field if old else "")


def _beside(value: Tree, spec: TypeSpec) -> object:
    """What stands in another field of the same type; None if nothing does."""
    types = tuple(cls for cls in classes_of(spec) if isinstance(cls, type))
    held = (getattr(value, name) for name in field_specs(type(value)))
    return next((one for one in held if isinstance(one, types)), None)


def _on_backend(spec: TypeSpec) -> bool:
    """Whether a type of Burn would name the backend."""
    return any(map(is_place, classes_of(spec)))


def _variant(spec: TypeSpec, part: TypeSpec) -> str:
    if part.notes:
        return str(part.notes[0])
    if isinstance(part.kind, type):
        return spec.variant(part.kind)
    return str(part.annotation)


def _is_param(leaf: object) -> bool:
    named = leaf in ("Param", "RunningState")
    return named or (isinstance(leaf, type) and issubclass(leaf, Param))
