"""How the annotations of a class convert stored values.

A dataclass says what an item is: its fields name the columns, its annotations say what
each value must be. An annotation is turned once into a function value -> value that
refuses what does not fit (by ValueError), and a row then costs one call per field.
Rows of JSON files, SQLite files and dataframes become items this way.
"""

from __future__ import annotations

import base64
import dataclasses
import datetime
import decimal
import enum
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from burnbook.core.converters import ANYTHING, TypeSpec, type_spec, type_specs
from burnbook.core.errors import DataError

Converter = Callable[[Any], Any]
LISTS = (list, tuple, set, frozenset)
CLOCKS = (datetime.date, datetime.time, datetime.datetime)


@dataclasses.dataclass(frozen=True)
class Field:
    """One field of an item: its type, its converter, and whether it may be missing."""

    spec: TypeSpec
    convert: Converter
    optional: bool


def fields_of(item: type[Any]) -> dict[str, Field]:
    """Return the fields that make an item, in their order.

    Example:
        >>> @dataclasses.dataclass
        ... class Point:
        ...     x: float
        ...     name: str = ""
        >>> [(name, field.optional) for name, field in fields_of(Point).items()]
        [('x', False), ('name', True)]
    """
    specs = _specs(item)
    if dataclasses.is_dataclass(item):
        wanted = [f for f in dataclasses.fields(item) if f.init]
        needed = dataclasses.MISSING
        has_default = {
            f.name: {f.default, f.default_factory} != {needed}  # type: ignore[misc]
            for f in wanted
        }
    else:
        defaults = getattr(item, "_field_defaults", vars(item))  # of a NamedTuple
        has_default = {name: name in defaults for name in specs}
    if not has_default:
        cure = "a dataclass, or no class at all to get dicts"
        what = f"{getattr(item, '__name__', item)} does not name its fields"
        raise DataError("rows", what, cure=cure)
    return {
        name: Field(specs[name], of_spec(specs[name]), optional)
        for name, optional in has_default.items()
    }


def is_item_class(kind: object) -> bool:
    """Say whether a class names fields: a dataclass, a NamedTuple, a TypedDict."""
    if not isinstance(kind, type) or issubclass(kind, enum.Enum):
        return False
    return dataclasses.is_dataclass(kind) or bool(inspect.get_annotations(kind))


def converter(kind: object) -> Converter:
    """Turn an annotation into a function that makes or refuses a value.

    Example:
        >>> converter(list[float] | None)([1, 2.5])
        [1.0, 2.5]
        >>> converter(int)("7")
        Traceback (most recent call last):
        ValueError: '7' is not int
    """
    return of_spec(type_spec(kind))


def of_spec(spec: TypeSpec) -> Converter:
    """The same for an annotation that has been read already."""
    if spec.form == "any":
        return _same
    if spec.form == "none":
        return _nothing
    if spec.form == "union":
        return first_of(spec, [of_spec(part) for part in spec.meant], _is_none)
    if spec.form == "literal":
        return lambda value: value if value in spec.values else _refuse(value, spec)
    if spec.kind is None:
        fits = callable(spec.annotation)
        return lambda value: value if fits else _refuse(value, spec)
    return _of_class(spec)


def object_builder(item: type[Any]) -> Converter:
    """Return a function that makes an item from a dict, a list of fields, an item."""
    fields = fields_of(item)
    names = list(fields)
    uses = [field.convert for field in fields.values()]
    whole = len(names) if _takes_positions(item) else -1
    least = max(
        (i + 1 for i, f in enumerate(names) if not fields[f].optional), default=0
    )

    def pairs_of(value: object) -> list[tuple[str, Any]]:
        value = from_json(value)
        if isinstance(value, Mapping):
            missing = [n for n in names if n not in value and not fields[n].optional]
            if missing:
                raise ValueError(f"{', '.join(missing)} is missing")
            return [(name, value[name]) for name in names if name in value]
        if not isinstance(value, list | tuple):
            found = type(value).__name__
            raise ValueError(f"an object in braces is needed, got {found}")
        if not least <= len(value) <= len(names):
            raise ValueError(f"{len(value)} values where {len(names)} are needed")
        return list(zip(names, value, strict=False))

    def build(value: object) -> Any:
        if type(value) is list and len(value) == whole:  # as packed rows come
            with suppress(ValueError, TypeError, OverflowError):
                return item(*[use(one) for use, one in zip(uses, value, strict=True)])
        pairs = pairs_of(value)
        return item(**{n: named(n, fields[n].convert, v) for n, v in pairs})

    return build


def _takes_positions(item: type[Any]) -> bool:
    if dataclasses.is_dataclass(item):
        return not any(f.kw_only for f in dataclasses.fields(item))
    return issubclass(item, tuple)


def named(name: str, convert: Converter, value: object) -> Any:
    """Convert a value; an error names the field."""
    try:
        return convert(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise ValueError(f"{name}: {error}") from None


def shown(value: object) -> str:
    """Show a value in a message, shortened if it is long."""
    text = repr(value[:50] if isinstance(value, str | bytes | list) else value)
    text = text.partition("\n")[0]  # of an array, the first row
    return text if len(text) <= 40 else text[:39] + "…"


def _of_class(spec: TypeSpec) -> Converter:
    base = spec.kind
    if base in _PLAIN:
        return _PLAIN[base]
    for classes, make in _CLASSES:
        if issubclass(base, classes):
            return make(spec)
    if is_item_class(base):
        return object_builder(base)
    if spec.form == "dict":
        return _mapping(spec)
    if spec.of_class(*LISTS) or base is Sequence:
        return _listing(spec)
    return lambda value: value if isinstance(value, base) else base(value)


def _same(value: object) -> Any:
    return value


def _nothing(value: object) -> None:
    return None if value is None else _refuse(value, "None")


def _is_none(value: object) -> bool:
    return value is None


def _refuse(value: object, kind: TypeSpec | type | str) -> Any:
    wanted = kind.text() if isinstance(kind, TypeSpec) else kind
    wanted = wanted.__name__ if isinstance(wanted, type) else wanted
    raise ValueError(f"{shown(value)} is not {wanted}")


def _int(value: object) -> int:
    return value if type(value) is int else _refuse(value, int)


def _bool(value: object) -> bool:
    """SQLite has no bool: there it is 0 or 1."""
    return (
        bool(value)
        if type(value) in (bool, int) and value in (0, 1)
        else _refuse(value, bool)
    )


def _float(value: Any) -> float:
    """A number; tables also have decimal ones."""
    known = type(value) in (float, int) or isinstance(value, decimal.Decimal)
    return float(value) if known else _refuse(value, float)


def _str(value: object) -> str:
    return value if isinstance(value, str) else _refuse(value, str)


def _bytes(value: object) -> bytes:
    """Bytes; or what Rust's Vec<u8> makes of them, a list of numbers; or base64."""
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if isinstance(value, list) and all(type(i) is int for i in value):
        return bytes(value)
    with suppress(ValueError):
        if isinstance(value, str):
            return base64.b64decode(value, validate=True)
    return _refuse(value, bytes)


_PLAIN: dict[Any, Converter] = {
    int: _int,
    bool: _bool,
    float: _float,
    str: _str,
    bytes: _bytes,
}


def first_of(
    spec: TypeSpec, options: list[Converter], is_nothing: Callable[[Any], bool]
) -> Converter:
    """Return the converter of a union: the first type that takes the value."""
    optional, only = spec.optional, len(options) == 1
    if only and optional:  # a plain type's own error does not say that None is allowed
        only = not (spec.meant[0].kind in _PLAIN or spec.meant[0].of_class(np.number))

    def convert(value: object) -> Any:
        if optional and is_nothing(value):
            return None
        if only:
            return options[0](value)  # its own error says more
        for option in options:
            with suppress(ValueError, TypeError, OverflowError):
                return option(value)
        return _refuse(value, spec)

    return convert


def _member(spec: TypeSpec) -> Converter:
    """A member by its name, as Burn's serde writes it, or by its value."""
    kind: type[enum.Enum] = spec.kind

    def convert(value: object) -> Any:
        if isinstance(value, kind):
            return value
        if isinstance(value, str) and value in kind.__members__:
            return kind[value]
        found = [member for member in kind if member.value == value]
        return found[0] if found else _refuse(value, kind)

    return convert


def _scalar(spec: TypeSpec) -> Converter:
    kind, name, whole = spec.kind, spec.text(), spec.of_class(np.integer)

    def convert(value: object) -> Any:
        if isinstance(value, kind):
            return value
        if type(value) is not int and (whole or type(value) is not float):
            return _refuse(value, name)
        try:
            return kind(value)  # the abstract ones refuse
        except (OverflowError, TypeError):
            return _refuse(value, name)

    return convert


def dtype_of(spec: TypeSpec) -> type | None:
    """Return the type that an array's annotation names: uint8 of NDArray[np.uint8]."""
    inner = [part.kind for one in spec.parts[1:] for part in one.parts]
    return inner[0] if inner else None


def _array(spec: TypeSpec) -> Converter:
    """An array of bytes, or of a list of numbers, of the type that is named."""
    named_type = dtype_of(spec)
    dtype = None if named_type is None else np.dtype(named_type)

    def convert(value: object) -> Any:
        if isinstance(value, bytes):
            return np.frombuffer(value, dtype or np.uint8)
        if isinstance(value, np.ndarray) and value.dtype.kind == "O":
            value = value.tolist()
        value = from_json(value)
        if not isinstance(value, np.ndarray):
            if not isinstance(value, list) or not _all_numbers(value):
                return _refuse(value, "an array")
            value = np.array(value)
        if value.dtype.kind not in "biufc":
            return _refuse(value, "an array")
        return value if dtype is None else _as_type(value, dtype)

    return convert


def _as_type(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Convert an array; whole numbers that would come out as others are refused."""
    if dtype.kind not in "iub" or array.dtype == dtype:
        return array.astype(dtype)
    with np.errstate(invalid="ignore"):  # NaN, which differs from what becomes of it
        made = array.astype(dtype)
    wrong = np.flatnonzero(made != array)
    return made if not len(wrong) else _refuse(array.reshape(-1)[wrong[0]], dtype.name)


def _all_numbers(value: object) -> bool:
    if isinstance(value, list):
        return all(map(_all_numbers, value))
    return isinstance(value, int | float)


def _clock(spec: TypeSpec) -> Converter:
    kind = spec.kind

    def convert(value: object) -> Any:
        if kind is datetime.date and isinstance(value, datetime.datetime):
            at_midnight = value.time() == datetime.time()
            return value.date() if at_midnight else _refuse(value, kind)
        if isinstance(value, kind):
            return value
        return (
            kind.fromisoformat(value)
            if isinstance(value, str)
            else _refuse(value, kind)
        )

    return convert


def _listing(spec: TypeSpec) -> Converter:
    make = list if spec.kind is Sequence else spec.kind
    fixed = spec.form == "tuple"
    each = [of_spec(part) for part in spec.parts]

    def convert(value: object) -> Any:
        value = from_json(value)
        if not isinstance(value, LISTS):
            return _refuse(value, spec)
        if not each:
            return make(value)
        if fixed and len(each) != len(value):
            raise ValueError(f"{len(value)} values where {len(each)} are needed")
        uses = each if fixed else each * len(value)
        pairs = enumerate(zip(uses, value, strict=False))
        return make([named(f"[{i}]", use, one) for i, (use, one) in pairs])

    return convert


def _mapping(spec: TypeSpec) -> Converter:
    key, inner = map(of_spec, spec.parts or (ANYTHING, ANYTHING))

    def convert(value: object) -> Any:
        value = from_json(value)
        if not isinstance(value, Mapping):
            return _refuse(value, spec)
        return {key(k): named(f"[{shown(k)}]", inner, v) for k, v in value.items()}

    return convert


_CLASSES: tuple[tuple[tuple[type, ...], Callable[[TypeSpec], Converter]], ...] = (
    ((np.ndarray,), _array),
    ((enum.Enum,), _member),
    ((np.generic,), _scalar),
    (CLOCKS, _clock),
)


def from_json(value: object) -> Any:
    """Read a list or an object that a table keeps as JSON text."""
    if isinstance(value, str) and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def to_json(value: object) -> str:
    """Write a list or an object as JSON text; bytes inside become base64."""
    return json.dumps(value, ensure_ascii=False, default=_for_json)


def _for_json(value: object) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, CLOCKS):
        return value.isoformat()
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


def _specs(item: type[Any]) -> dict[str, TypeSpec]:
    try:
        return type_specs(item)
    except (NameError, TypeError) as error:
        what = (
            f"the fields of {getattr(item, '__name__', item)} cannot be read: {error}"
        )
        cure = "classes defined at the top of a module, or no class to get dicts"
        raise DataError("rows", what, cure=cure) from None
