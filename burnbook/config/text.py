"""The JSON text of a config, as Burn writes it, both ways.

Numbers read as in Rust (0.00001 and 1e-7, never 1e-05), a choice is its name or the
name with what it holds, an enum member is its name, a set is a sorted list.
"""

import dataclasses
import enum
import json
import math
import pathlib
from collections.abc import Callable, Mapping, Set
from typing import Any, NamedTuple

import numpy as np

from burnbook.config.fields import (
    LARGEST,
    SMALLEST,
    Choices,
    Repeated,
    attribute,
    cut,
    has_half,
)
from burnbook.core.errors import ConfigError
from burnbook.core.versions import VERSION, release_of

MAX_DEPTH = 100  # levels; Rust reads 127
MAX_BYTES = 2**24
OURS = release_of(VERSION)


class Place(NamedTuple):
    """Where a value stands in a text, and which release of Burn is to read it."""

    path: str = ""
    indent: int = 0
    release: tuple[int, ...] = OURS

    @property
    def is_newer(self) -> bool:
        """Whether that Burn wants every field that came after 0.15."""
        return self.release >= (0, 16)

    def inside(self, path: str) -> "Place":
        """One level deeper."""
        return Place(path, self.indent + 1, self.release)


def encode(value: object, at: Place = Place()) -> str:  # noqa: B008 - it never changes
    """The JSON text of a value; two spaces per level.

    Example:
        >>> print(encode({"rate": 1e-5, "sizes": (1, 2), "note": None}))
        {
          "rate": 0.00001,
          "sizes": [
            1,
            2
          ],
          "note": null
        }
    """
    if at.indent > MAX_DEPTH:
        raise ConfigError(cut(at.path), f"it nests deeper than {MAX_DEPTH} levels")
    if isinstance(value, np.generic):
        value = value.item()
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value, at)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _dataclass(value, at)
    what = f"{type(value).__name__} has no place in JSON"
    cure = "numbers, texts, lists, dicts, enums, dataclasses and configs"
    raise ConfigError(at.path or "config", what, cure=cure)


def decode(text: str | bytes, where: str) -> Any:
    """What a JSON text holds, in plain data; a ConfigError where it is not JSON."""
    if len(text) > MAX_BYTES:
        what = f"this is too large for a config: {len(text)} bytes"
        raise ConfigError(where, what, cure=f"at most {MAX_BYTES}")
    try:
        tree = json.loads(
            text,
            object_pairs_hook=_pairs,
            parse_constant=_no_constant,
            parse_int=_integer,
            parse_float=_finite,
        )
    except (ValueError, RecursionError) as cause:
        what, facts = _why_no_json(text, cause)
        raise ConfigError(where, what, facts) from None
    level = [tree]
    for _ in range(MAX_DEPTH + 1):
        level = [part for held in level for part in _inside(held)]
    if level:
        raise ConfigError(where, f"this nests deeper than {MAX_DEPTH} levels")
    return tree


def float_text(x: float, path: str = "") -> str:
    """A float as Rust writes it in JSON: shortest digits, 0.00001, 1e-7, 1e16."""
    if not math.isfinite(x):
        what = f"{x} has no place in JSON"
        raise ConfigError(path or "config", what, cure="a finite number")
    shortest = str(np.format_float_scientific(x, trim="-", exp_digits=1))
    digits, _, exponent = shortest.partition("e")
    power = int(exponent)
    if -6 < power < 16:
        return str(np.format_float_positional(x, trim="0"))
    return f"{digits}e{power}"


def _whole(value: int, at: Place) -> str:
    if SMALLEST <= value <= LARGEST:
        return str(int(value))
    raise ConfigError(at.path or "config", "a whole number has 64 bits at most")


def _member(value: enum.Enum, at: Place) -> str:
    if value.name not in type(value).__members__:
        what = f"{value!r} is not one member but a combination of several"
        raise ConfigError(
            at.path or "config", what, cure="one member, or a list of them"
        )
    return _quoted(value.name, at)


def _quoted(value: object, at: Place) -> str:
    text = str(value)
    if has_half(text):
        what = f"{cut(repr(text))} holds an unpaired surrogate"
        raise ConfigError(at.path or "config", what, cure="a text that UTF-8 can hold")
    return json.dumps(text, ensure_ascii=False)


def _list(value: Any, at: Place) -> str:
    rows = [encode(v, at.inside(f"{at.path}[{i}]")) for i, v in enumerate(value)]
    return _block("[", rows, "]", at.indent)


def _set(value: Set[Any], at: Place) -> str:
    try:
        ordered = sorted(value)
    except TypeError:
        ordered = sorted(value, key=encode)
    return _list(ordered, at)


def _dict(value: Mapping[Any, Any], at: Place) -> str:
    rows = []
    for key, held in value.items():
        name = key.name if isinstance(key, enum.Enum) else key
        if isinstance(name, bool) or not isinstance(name, (str, int)):
            what = f"{cut(repr(key))} cannot be a key in JSON"
            raise ConfigError(at.path or "config", what, cure="texts or whole numbers")
        inner = at.inside(f"{at.path}.{name}" if at.path else str(name))
        rows.append(f"{_quoted(name, inner)}: {encode(held, inner)}")
    return _block("{", rows, "}", at.indent)


def _dataclass(value: object, at: Place) -> str:
    """The fields of a config in the order of its JSON, or those of a dataclass."""
    cls: Any = type(value)
    if not hasattr(cls, "json_fields"):
        names = [field.name for field in dataclasses.fields(cls) if field.init]
        return _dict({name: getattr(value, name) for name in names}, at)
    rows = cls.json_fields()
    held = {n: (getattr(value, attribute(cls, n)), was) for n, _, was in rows}
    unknown = cls.ours if at.is_newer else (*cls.ours, *cls.newer)
    shown = {n: x for n, (x, was) in held.items() if n not in unknown or x != was}
    for name, nothing in cls.absent.items():
        shown[name] = nothing if shown[name] is None else shown[name]
    if at.is_newer:  # both names: Burn passes over one that it does not know
        shown |= {later: shown[name] for name, later in cls.renamed.items()}
    return _dict(shown, at)


def _choice(value: Any, at: Place) -> str:
    name = json.dumps(value.variant)
    if not value.values:
        return name
    values = value.values_in(at.release)
    if value.names:
        held: Any = dict(zip(value.names, values, strict=True))
    else:
        held = values[0] if len(values) == 1 else values
    inner = at.inside(at.path)
    return _block("{", [f"{name}: {encode(held, inner)}"], "}", at.indent)


_WRITERS: list[tuple[Any, Callable[[Any, Place], str]]] = [
    (type(None), lambda value, at: "null"),
    (bool, lambda value, at: "true" if value else "false"),
    (enum.Enum, _member),
    (int, _whole),
    (float, lambda value, at: float_text(float(value), at.path)),
    (Choices, _choice),
    ((list, tuple), _list),
    (Set, _set),
    (Mapping, _dict),
    ((str, pathlib.PurePath), _quoted),
]


def _block(start: str, rows: list[str], end: str, indent: int) -> str:
    if not rows:
        return start + end
    inner = "  " * (indent + 1)
    lines = ",\n".join(inner + row for row in rows)
    return f"{start}\n{lines}\n{'  ' * indent}{end}"


def _inside(held: object) -> Any:
    if isinstance(held, dict):
        return held.values()
    return held if isinstance(held, list) else ()


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    return found if len(found) == len(pairs) else Repeated(pairs)


def _why_no_json(text: str | bytes, cause: Exception) -> tuple[str, list[Any]]:
    if not text.strip():
        return "it is empty", []
    if isinstance(cause, json.JSONDecodeError):
        around = (
            f"{text[: cause.pos]}".rstrip()[-1:],
            f"{text[cause.pos :]}".lstrip()[:1],
        )
        if isinstance(text, str) and "," in around and around[1] in ("}", "]", ","):
            what = f"line {cause.lineno}: a comma stands before the end, leave it out"
            return f"this is not JSON: {what}", [("there", cause.msg)]
        what = f"this is not JSON from line {cause.lineno}, column {cause.colno} on"
        return what, [("there", cause.msg)]
    if isinstance(cause, RecursionError):
        return "this is not JSON: it nests too deeply", []
    return f"this is not JSON: {cut(str(cause))}", []


def _integer(text: str) -> int | float:
    """A whole number; one of more than 64 bits is a float, as for Rust's reader."""
    if len(text) <= 20 and SMALLEST <= int(text) <= LARGEST:
        return int(text)
    return _finite(text)


def _finite(text: str) -> float:
    if math.isinf(found := float(text)):
        raise ValueError(f"{cut(text, 20)} is too large a number")
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")
