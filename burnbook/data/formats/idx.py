"""IDX files, the format of MNIST, read within bounds.

An IDX file is a magic number (two zeros, the element type, the number of dims), the
size of every dim as a big-endian 32-bit number, and the elements. Nothing is trusted
before it is checked: the header must say exactly the length that is there.
"""

from __future__ import annotations

import itertools
import math
import os
import struct
import sys
import zlib
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.core.files import PathLike, open_regular, printable, within_memory

TYPES = {0x08: "u1", 0x09: "i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
GZIP = b"\x1f\x8b"
CHUNK = 1 << 20
LONGEST_HEADER = 4 + 4 * 255
MOST_DIMS = 32
MOST, SMALL, PACKING = 1 << 30, 32 << 20, 64  # bytes that a file may unpack to
AGAIN = "downloading or copying the file again"


def read_idx(path: PathLike, max_bytes: int | None = None) -> NDArray[Any]:
    """Read an IDX file, gzipped or not, whose elements take at most `max_bytes`.

    Without `max_bytes`, a file may hold up to 1 GB, and a gzipped one not more than
    32 MB and 64 times its own size. The memory taken is that of both together.

    Shapes: as the header says -> the same
    """
    name = printable(path)
    where = "read_idx"
    with open_regular(path, DataError, f"{where} {name}") as file:
        size = os.fstat(file.fileno()).st_size
        begin = file.read(2)
        file.seek(0)
        packed = begin == GZIP
        most = _most(size, packed) if max_bytes is None else max_bytes
        with within_memory(f"{where} {name}"):
            source = _inflated(file, most, name) if packed else _pieces(file)
            return _filled(source, most, name, None if packed else size)


def _most(size: int, packed: bool) -> int:
    return min(MOST, SMALL + PACKING * size) if packed else MOST


def _pieces(file: IO[bytes]) -> Iterator[bytes]:
    while piece := file.read(CHUNK):
        yield piece


def _inflated(file: IO[bytes], most: int, name: str) -> Iterator[bytes]:
    inflate = Inflate(most + LONGEST_HEADER, name)
    for piece in _pieces(file):
        yield from inflate.pieces(piece)
    yield inflate.end()


def _filled(
    source: Iterator[bytes], most: int, name: str, size: int | None
) -> NDArray[Any]:
    """Put the pieces of a file into an array of the size that its header says."""
    head = b""
    while len(head) < 4 or len(head) < 4 + 4 * head[3]:
        piece = next(source, None)
        if piece is None:
            break
        head += piece
    dtype, shape, expected = _header(head, name)
    start = 4 + 4 * len(shape)
    if size is not None and size != expected:
        raise _not_that_long(name, (dtype, shape, expected), size)
    if expected - start > most:
        what = f"{name} is larger than allowed, according to its header"
        facts = [
            ("header", f"{list(shape)} of {dtype.name}: {expected - start:,} bytes"),
            ("most", f"{most:,} bytes"),
        ]
        raise DataError("read_idx", what, facts, "max_bytes=…, if the file is your own")
    made = np.empty(expected - start, np.uint8)  # pages count when they are filled
    at = 0
    for piece in itertools.chain([head[start:]], source):
        if at + len(piece) > len(made):
            longer = start + at + len(piece)
            raise _not_that_long(name, (dtype, shape, expected), longer)
        made[at : at + len(piece)] = np.frombuffer(piece, np.uint8)
        at += len(piece)
    if at != len(made):
        raise _not_that_long(name, (dtype, shape, expected), start + at)
    made.flags.writeable = False
    return made.view(dtype).reshape(shape)


def _not_that_long(
    name: str, header: tuple[np.dtype[Any], tuple[int, ...], int], size: int
) -> DataError:
    dtype, shape, expected = header
    off = "cut off" if size < expected else "too long"
    what = f"{name} is {off}: its header does not fit its length"
    facts = [
        ("header", f"{list(shape)} of {dtype.name}: {expected:,} bytes in all"),
        ("file", f"{size:,} bytes"),
    ]
    return DataError("read_idx", what, facts, AGAIN)


def parse_idx(data: bytes, name: str) -> NDArray[Any]:
    """Turn the bytes of an IDX file into an array, or say what is wrong with them."""
    dtype, shape, expected = _header(data, name)
    if expected != len(data):
        raise _not_that_long(name, (dtype, shape, expected), len(data))
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
    if len(shape) > MOST_DIMS:
        what = f"{name} has {len(shape)} dims, {MOST_DIMS} at most"
        raise DataError("read_idx", what, cure=AGAIN)
    if math.prod(size or 1 for size in shape) * dtype.itemsize > sys.maxsize:
        what = f"{name} is cut off: its header does not fit its length"
        facts = [("header", f"{list(shape)} of {dtype.name}")]
        raise DataError("read_idx", what, facts, AGAIN)
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
        why = "its checksum differs" if "check" in str(error) else "it is not gzip data"
        what = f"{self.name} is damaged after {self.size:,} decompressed bytes: {why}"
        return DataError("gzip", what, cure=AGAIN)


def _too_long(name: str, limit: int) -> DataError:
    what = f"{name} unpacks to more than the {limit:,} bytes that it should hold"
    return DataError("gzip", what)
