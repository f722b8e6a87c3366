"""Named MessagePack, byte for byte as Burn writes it.

Structs are maps with text keys, tensors hold byte strings, None is nil, the marker `_b`
an empty array. The msgpack package does the packing; this file decides what to pack,
and when reading asks for one item at a time so that no header is believed before the
bytes behind it have been counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgpack
import numpy as np

from burnbook.record.layout import Lowering, Raw
from burnbook.record.tree import (
    MAX_DEPTH,
    Marker,
    Path,
    Single,
    Trouble,
    named,
    short,
)


def encode(top: Any, lower: Lowering) -> Iterator[bytes]:
    """The bytes of a record, piece by piece: no second copy of a model is held."""
    pack = msgpack.Packer(use_bin_type=True)
    try:
        yield from _pieces(top, lower, pack, ())
    except (ValueError, OverflowError) as cause:  # 4 GiB at once, an unpaired surrogate
        raise Trouble(f"MessagePack cannot hold this: {short(cause)}") from None


def _pieces(node: object, lower: Lowering, pack: Any, path: Path) -> Iterator[bytes]:
    node = lower(node, path)
    if isinstance(node, dict):
        yield pack.pack_map_header(len(node))
        for key, value in node.items():
            yield pack.pack(key)
            yield from _pieces(value, lower, pack, (*path, key))
    elif isinstance(node, list):
        yield pack.pack_array_header(len(node))
        for i, value in enumerate(node):
            yield from _pieces(value, lower, pack, (*path, str(i)))
    elif node is Marker:
        yield pack.pack_array_header(0)
    elif isinstance(node, Single):
        yield msgpack.Packer(use_single_float=True).pack(float(node))
    elif not isinstance(node, Raw):
        yield pack.pack(node)
    elif isinstance(node.content, np.ndarray):
        is_single = node.content.dtype == np.float32
        old = msgpack.Packer(use_single_float=is_single)
        yield old.pack(node.content.tolist())
    else:
        yield pack.pack(node.content)


def decode(data: bytes) -> Any:
    """Read maps, lists, scalars and bytes; anything incomplete raises Trouble."""
    if not data or not _is_group(data[0]):
        found = f"byte {data[0]:#04x} at the start" if data else "no bytes"
        raise Trouble("this is not a record in MessagePack", "a map", found)
    reader = _Reader(data)
    try:
        plain = reader.item(())
        rest = len(data) - reader.unpacker.tell()
    except msgpack.OutOfData:
        raise Trouble(
            f"the file ends inside {named(reader.path)}", found=f"{len(data)} bytes"
        ) from None
    except UnicodeDecodeError:
        what = f"a text in {named(reader.path)} is not UTF-8"
        raise Trouble(what) from None
    except (msgpack.UnpackException, ValueError, RecursionError):
        where = f"at byte {reader.unpacker.tell()}, in {named(reader.path)}"
        raise Trouble("this is not MessagePack", found=where) from None
    if rest:
        raise Trouble(f"{rest} bytes follow the end of the record", "none")
    return plain


class _Reader:
    """Walks through the items; counts and sizes are checked before they are believed.

    Why: a header of five bytes may promise four billion items, and msgpack's own reader
    would make room for all of them, at every level of nesting again.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.unpacker = msgpack.Unpacker(
            max_buffer_size=max(len(data), 1), strict_map_key=False, max_ext_len=0
        )
        self.unpacker.feed(data)
        self.room = container_room(len(data))
        self.path: Path = ()

    def item(self, path: Path) -> Any:
        """Read the item that starts here, with everything in it."""
        self.path = path
        start = self.unpacker.tell()
        if start >= len(self.data):
            raise msgpack.OutOfData
        first = self.data[start]
        if not _is_group(first):
            return self.unpacker.unpack()
        if first & 0xF0 == 0x80 or first >= 0xDE:
            return self._map(path)
        count = self._count(self.unpacker.read_array_header(), path)
        return [self.item((*path, str(i))) for i in range(count)]

    def _map(self, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for _ in range(self._count(self.unpacker.read_map_header(), path)):
            key = self.item(path)
            if not isinstance(key, str):
                what = f"{named(path)} has a key that is not text"
                raise Trouble(what, "names or ids", type(key).__name__)
            if key in found:
                raise Trouble(f"{named(path)} has {short(repr(key))} twice")
            found[key] = self.item((*path, key))
        return found

    def _count(self, count: int, path: Path) -> int:
        self.room -= 1
        left = len(self.data) - self.unpacker.tell()
        if count > left:
            expected = f"{count} items in {named(path)}"
            raise Trouble("the file is shorter than it says", expected, f"{left} bytes")
        if self.room < 0 or len(path) > MAX_DEPTH:
            raise Trouble(f"{named(path[:5])} is nested more deeply than any record")
        return count


def _is_group(first: int) -> bool:
    """Whether an item that starts with this byte is a map or an array."""
    return first & 0xE0 == 0x80 or 0xDC <= first <= 0xDF


def container_room(size: int) -> int:
    """How many maps and lists a file of `size` bytes may hold: far more than any has.

    Why: an empty map is one byte on disk and sixty in memory.
    """
    return 10_000 + size // 16
