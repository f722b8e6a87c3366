"""Building blocks · Dataset. IDX files, the format of MNIST, read within bounds.

An IDX file is a magic number (two zeros, the element type, the number of dims), the
size of every dim as a big-endian 32-bit number, and the elements. Nothing is believed
before it is checked: the header must say exactly the length that is there.
"""

from __future__ import annotations

import math
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.errors import DataError

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP = b"\x1f\x8b"
CHUNK = 1 << 20
LONGEST_HEADER = 4 + 4 * 255
AGAIN = "downloading or copying the file again"


def read_idx(path: str | os.PathLike[str], max_bytes: int = 1 << 30) -> NDArray[Any]:
    """Read an IDX file, gzipped or not, whose elements take at most `max_bytes`.

    Shapes: as the header says -> the same
    """
    name = os.fspath(path)
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        what = f"{name} cannot be read: {error.strerror or error}"
        raise DataError("read_idx", what) from None
    if data[:2] == GZIP:
        head = Inflate(LONGEST_HEADER, name).peek(data)
        expected = _header(head, name)[2] if len(head) >= 4 else 0
        data = unpacked(data, min(expected, max_bytes + LONGEST_HEADER), name)
    return parse_idx(data, name)


def parse_idx(data: bytes, name: str) -> NDArray[Any]:
    """Turn the bytes of an IDX file into an array, or say what is wrong with them."""
    dtype, shape, expected = _header(data, name)
    if expected != len(data):
        off = "cut off" if len(data) < expected else "too long"
        what = f"{name} is {off}: its header does not fit its length"
        facts = [
            ("header", f"{list(shape)} of {dtype.name}: {expected:,} bytes in all"),
            ("file", f"{len(data):,} bytes"),
        ]
        raise DataError("read_idx", what, facts, AGAIN)
    return np.frombuffer(data, dtype, offset=4 + 4 * len(shape)).reshape(shape)


def _header(data: bytes, name: str) -> tuple[np.dtype[Any], tuple[int, ...], int]:
    """Return the element type, the sizes, and how long the whole file must be."""
    kind = TYPES.get(data[2]) if len(data) >= 4 else None
    if kind is None or data[:2] != b"\0\0":
        begin = data[:4].hex(" ") or "nothing"
        raise DataError(
            "read_idx", f"{name} is not an IDX file: it begins with {begin}"
        )
    start = 4 + 4 * data[3]
    if len(data) < start:
        what = f"{name} ends inside its header of {start} bytes"
        raise DataError("read_idx", what, cure=AGAIN)
    shape = struct.unpack(f">{data[3]}I", data[4:start])
    dtype = np.dtype(kind)
    return dtype, shape, start + math.prod(shape) * dtype.itemsize


def unpacked(data: bytes, limit: int, name: str) -> bytes:
    """Return gzipped bytes decompressed, others as they are: `limit` at most."""
    if data[:2] != GZIP:
        if len(data) > limit:
            raise _too_long(name, limit)
        return data
    inflate = Inflate(limit, name)
    return inflate.feed(data) + inflate.end()


class Inflate:
    """Decompress a gzip stream piece by piece and stop at a limit.

    Why: a few kilobytes of gzip can hold gigabytes of zeros, so the output is bounded
    while it is made, not after.
    """

    def __init__(self, limit: int, name: str) -> None:
        self.limit = limit
        self.name = name
        self.size = 0
        self._zlib = zlib.decompressobj(wbits=31)

    def peek(self, data: bytes) -> bytes:
        """Return the beginning of the content, at most `limit` bytes."""
        try:
            return self._zlib.decompress(data, self.limit)
        except zlib.error as error:
            raise self._damaged(error) from None

    def feed(self, data: bytes) -> bytes:
        """Return what this piece decompresses to."""
        return b"".join(self.pieces(data))

    def pieces(self, data: bytes) -> Iterator[bytes]:
        """Give what this piece decompresses to, a megabyte at a time."""
        while data and not self._zlib.eof:
            try:
                piece = self._zlib.decompress(data, CHUNK)
            except zlib.error as error:
                raise self._damaged(error) from None
            data = self._zlib.unconsumed_tail
            self.size += len(piece)
            if self.size > self.limit:
                raise _too_long(self.name, self.limit)
            yield piece

    def end(self) -> bytes:
        """Check that the stream is whole."""
        rest = self._zlib.flush()
        self.size += len(rest)
        if not self._zlib.eof:
            what = f"{self.name} is cut off after {self.size:,} decompressed bytes"
            raise DataError("gzip", what, cure=AGAIN)
        return rest

    def _damaged(self, error: Exception) -> DataError:
        why = "its checksum is another" if "check" in str(error) else "it is no gzip"
        what = f"{self.name} is damaged after {self.size:,} decompressed bytes: {why}"
        return DataError("gzip", what, cure=AGAIN)


def _too_long(name: str, limit: int) -> DataError:
    what = f"{name} unpacks to more than the {limit:,} bytes that it should hold"
    return DataError("gzip", what)
