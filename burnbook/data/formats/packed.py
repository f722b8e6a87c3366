"""An item as bytes: Burn's compact MessagePack.

It is what Rust's serde writes: a struct is the list of its fields without their names,
a member of an enum is its name, an Option is nothing or the value. `bytes` become bytes
(serde_bytes); a field of Rust that is a plain Vec<u8> is `list[int]` here, and both are
read as `bytes`.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

import msgpack
import numpy as np


def pack_item(item: object) -> bytes:
    """Write an item; what MessagePack cannot hold is a ValueError or a TypeError.

    Example:
        >>> @dataclasses.dataclass
        ... class Text:
        ...     text: str
        ...     label: int
        >>> pack_item(Text("hi", 3)).hex(" ")
        '92 a2 68 69 03'
    """
    packed: Any = msgpack.packb(item, default=_lowered, strict_types=True)
    return packed


def unpack_item(data: object) -> Any:
    """Read what an item was made of: lists, dicts, texts, numbers, bytes.

    Why: msgpack bounds every length by that of the data, so a few bytes never ask for
    a large list.
    """
    if not isinstance(data, bytes):
        raise ValueError(f"{type(data).__name__} is not bytes")
    try:
        return msgpack.unpackb(data, strict_map_key=False, ext_hook=_no_extension)
    except msgpack.exceptions.ExtraData as error:
        raise ValueError(f"{len(error.extra)} bytes follow the item") from None
    except (msgpack.exceptions.FormatError, msgpack.exceptions.StackError):
        raise ValueError("this is not MessagePack") from None


def _lowered(value: object) -> Any:
    """Say what serde makes of a value that MessagePack itself does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, f.name) for f in dataclasses.fields(value) if f.init]
    if isinstance(value, enum.Enum):
        return value.name
    if isinstance(value, np.ndarray | np.generic):
        if value.dtype.kind in "biuf":
            return value.tolist()
        raise TypeError(f"an array of {value.dtype} cannot be stored")
    for plain, kinds in _BASES:
        if isinstance(value, kinds):
            return plain(value)
    raise TypeError(f"{type(value).__name__} cannot be stored")


_BASES: list[tuple[Any, Any]] = [
    (list, (tuple, set, frozenset, list)),
    (dict, Mapping),
    (str, str),
    (int, int),
    (float, float),
    (bytes, bytes | bytearray | memoryview),
]


def _no_extension(code: int, data: bytes) -> Any:
    raise ValueError(f"an extension of type {code} cannot be part of an item")
