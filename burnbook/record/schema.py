"""What a module has where, for formats without names.

Bincode writes values back to back; only the module knows whether a byte is a length, an
option or the start of a parameter. A schema says it, read off the module and the
annotations of its fields; no parameter is initialized for that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from burnbook.core.converters import ANYTHING, TypeSpec
from burnbook.module.param import Param
from burnbook.module.reparameterization import Reparameterized
from burnbook.module.tree import Tree, classes_of, field_specs, is_constant, spelled

CONSTANT, PARAM, STRUCT = "constant", "parameter", "struct"
LIST, TUPLE, MAP = "list", "tuple", "map"


class Part(NamedTuple):
    """One place of a module: what stands there, and the places inside it."""

    kind: str = CONSTANT
    parts: tuple[tuple[str, Any], ...] = ()  # name or position, and its Part
    optional: bool = False
    present: bool = True  # of an optional part
    variant: tuple[int, str] | None = None  # which type of a choice
    plain: bool = False  # numbers and texts only: Burn 0.21 writes one nothing


def schema(value: object, spec: TypeSpec = ANYTHING) -> Part:
    """The schema of a module or of a part of one."""
    made = _inside(value, spec)
    if spec.choice and isinstance(value, Tree):
        names = [getattr(leaf, "__name__", leaf) for leaf in classes_of(spec)]
        name = spec.variant(type(value))
        position = names.index(type(value).__name__)
        made = made._replace(variant=(position, name))
    return made._replace(optional=spec.optional, present=value is not None)


def _inside(value: object, spec: TypeSpec) -> Part:
    if isinstance(value, Reparameterized):
        name = value.attached.NAME
        inside = (("base", Part(PARAM)), (name, schema(value.attached)))
        return Part(STRUCT, inside)
    if isinstance(value, Param) or (value is None and _may_be_param(spec)):
        return Part(PARAM)
    if isinstance(value, Tree):
        if is_constant(value):
            return Part()
        specs = field_specs(type(value)).items()
        fields = [(spelled(n), schema(getattr(value, n), h)) for n, h in specs]
        return Part(STRUCT, tuple(fields))
    item = spec.item
    if isinstance(value, dict):
        pairs = [(str(key), schema(held, item)) for key, held in value.items()]
        return Part(MAP, tuple(pairs))
    if isinstance(value, list | tuple):
        pairs = [(str(i), schema(held, item)) for i, held in enumerate(value)]
        plain = is_constant(value) and not any(isinstance(v, Tree) for v in value)
        kind = LIST if isinstance(value, list) else TUPLE
        return Part(kind, tuple(pairs), plain=plain)
    return Part(plain=True)


def _may_be_param(spec: TypeSpec) -> bool:
    return any(
        leaf in ("Param", "RunningState")
        or (isinstance(leaf, type) and issubclass(leaf, Param))
        for leaf in classes_of(spec)
    )
