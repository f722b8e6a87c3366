"""The safetensors format: names first, then the elements without gaps.

Eight bytes with the length of a JSON text, the text (names, element types, shapes,
positions), and the elements, little-endian. Everything the text claims is checked
before any element is read: what it promises must be exactly what the file has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burnbook.record import json_text
from burnbook.record.flat import Named, Slot, placed
from burnbook.record.layout import Pieces, read_dims, read_tensor
from burnbook.record.tree import Trouble, short
from burnbook.tensor.data import TensorData
from burnbook.tensor.float8 import widen_float8

HEAD = 8
MAX_HEADER = 100_000_000  # bytes; the format's own limit
TEXTS = "__metadata__"
# From the widest type to the narrowest, so that every tensor starts at a multiple of
# its element's size; in the order of the format's own writer.
ORDER: dict[str, int] = {
    name: place
    for place, name in enumerate(
        "U64 I64 F64 F32 U32 I32 BF16 F16 U16 I16 I8 U8 BOOL".split()  # noqa: SIM905
    )
}
#: Floats of eight bits, and what they are called elsewhere.
EIGHT_BITS = {
    "F8_E4M3": "f8_e4m3fn",
    "F8_E5M2": "f8_e5m2",
    "F8_E4M3FNUZ": "f8_e4m3fnuz",
    "F8_E5M2FNUZ": "f8_e5m2fnuz",
    "F8_E8M0": "f8_e8m0fnu",
}
#: The bits of one element, of every type in the format.
BITS = {
    **dict.fromkeys(("U64", "I64", "F64", "C64"), 64),
    **dict.fromkeys(("U32", "I32", "F32"), 32),
    **dict.fromkeys(("U16", "I16", "F16", "BF16"), 16),
    **dict.fromkeys(("U8", "I8", "BOOL", *EIGHT_BITS), 8),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}
_UNREADABLE = {
    "C64": "complex numbers",
    "F4": "floats of 4 bits",
    "F6_E2M3": "floats of 6 bits",
    "F6_E3M2": "floats of 6 bits",
}


class TensorEntry(NamedTuple):
    """What the header says about one tensor: the bytes from `start` to `end` are its.

    dtype: as the format calls it, "BF16". Positions count from the end of the header.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class Header(NamedTuple):
    """The names of a file, in the order of their bytes, and its free texts.

    start: where in the file the elements begin.
    """

    entries: list[TensorEntry]
    texts: dict[str, str]
    start: int


def header_length(head: bytes, size: int) -> int:
    """How many bytes the names take, from the first eight of a file of `size` bytes."""
    length = int.from_bytes(head[:HEAD], "little")
    if len(head) < HEAD or length > size - HEAD:
        found = f"{max(size - HEAD, 0)} bytes"
        raise Trouble("the file ends inside its names", f"{length} bytes", found)
    if length < 2:
        what = "the head is empty, so the file names no tensors"
        raise Trouble(what, "at least 2 bytes", f"{length} bytes")
    if length > MAX_HEADER:
        expected = f"at most {MAX_HEADER:,} bytes"
        raise Trouble("the names are too long", expected, f"{length:,} bytes")
    return length


def read_header(text: bytes, size: int) -> Header:
    """The header of a file of `size` bytes, whose every claim is checked."""
    start = HEAD + len(text)
    top = json_text.decode(text)
    if not isinstance(top, dict):
        raise Trouble("the names are not a map", "tensors by name")
    texts = top.pop(TEXTS, None)
    texts = {} if texts is None else texts
    if not isinstance(texts, dict) or not all(
        isinstance(text, str) for text in texts.values()
    ):
        raise Trouble(f"{TEXTS} holds no texts", "names and texts")
    slots = [_slot(name, about) for name, about in top.items()]
    found: list[TensorEntry] = []
    for slot, first, last in placed(slots, size - start):
        found.append(_entry(slot, first, last))
    return Header(found, texts, start)


def _slot(name: str, about: Any) -> Slot:
    keys = ("dtype", "shape", "data_offsets")
    if not isinstance(about, dict) or not set(keys) <= about.keys():
        raise Trouble(f"{short(name)} is not described", ", ".join(keys))
    return Slot(name, about["dtype"], about["shape"], about["data_offsets"])


def _entry(slot: Slot, start: int, end: int) -> TensorEntry:
    dtype, dims = slot.dtype, read_dims(slot.shape, (slot.name,))
    if not isinstance(dtype, str) or dtype not in BITS:
        found = short(repr(dtype)) if isinstance(dtype, str) else "no text"
        what = f"{short(slot.name)} has an unknown element type"
        raise Trouble(what, ", ".join(BITS), found)
    wanted = prod(dims) * BITS[dtype]
    if wanted != 8 * (end - start):
        expected = f"{-(-wanted // 8)} bytes for {dtype} {list(dims)}"
        what = f"{short(slot.name)} does not fit its shape"
        raise Trouble(what, expected, f"{end - start} bytes")
    return TensorEntry(slot.name, dtype, dims, start, end)


def tensor_of(entry: TensorEntry, content: memoryview) -> TensorData:
    """The tensor of an entry and its bytes, without a copy where there can be none.

    Why: floats of eight bits become f32, exactly, because nothing here computes with
    them; bf16 stays as its bits, as in every TensorData.
    """
    if entry.dtype in EIGHT_BITS:
        bits = np.frombuffer(content, np.uint8).reshape(entry.shape)
        return TensorData.of(widen_float8(bits, EIGHT_BITS[entry.dtype]))
    if entry.dtype in _UNREADABLE:
        what = f"{short(entry.name)} is {entry.dtype}: {_UNREADABLE[entry.dtype]}"
        raise Trouble(what, "whole numbers, truth values, floats of 8 to 64 bits")
    dtype = "Bool" if entry.dtype == "BOOL" else entry.dtype
    return read_tensor(content, list(entry.shape), dtype, (entry.name,))


def read_tensors(data: bytes) -> tuple[dict[str, TensorData], dict[str, str]]:
    """Every tensor of a whole file by name, and its texts."""
    length = header_length(data, len(data))
    header = read_header(data[HEAD : HEAD + length], len(data))
    body = memoryview(data)[header.start :]
    found = {one.name: tensor_of(one, body[one.start : one.end]) for one in header[0]}
    return found, header.texts


class Written(NamedTuple):
    """A tensor to write: `content()` gives its bytes when their turn has come.

    dtype: of the format or of a record, "BF16"; "Bool" is BOOL. size: in bytes.
    """

    name: str
    dtype: str
    shape: list[int]
    size: int
    content: Callable[[], memoryview]

    @classmethod
    def of(cls, part: Named) -> Written:
        """A tensor whose bytes are there already."""
        size = part.content.nbytes
        return cls(part.name, part.dtype, part.shape, size, lambda: part.content)


def encode(tensors: Iterable[Written], texts: dict[str, str]) -> Pieces:
    """A whole file, the widest element types first."""
    parts = [part._replace(dtype=part.dtype.upper()) for part in tensors]
    parts.sort(key=lambda part: (ORDER[part.dtype], part.name))
    top: dict[str, Any] = {TEXTS: texts} if texts else {}
    end = 0
    for part in parts:
        if part.name == TEXTS:
            raise Trouble(f"{TEXTS} is not the name of a tensor", "another name")
        span = [end, end := end + part.size]
        about = {"dtype": part.dtype, "shape": part.shape, "data_offsets": span}
        top[part.name] = about
    try:
        text = json.dumps(top, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        raise Trouble("a name is not Unicode", "whole characters") from None
    text += b" " * (-len(text) % 8)
    yield len(text).to_bytes(HEAD, "little") + text
    for part in parts:
        yield part.content()
