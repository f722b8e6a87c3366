"""Gzip around a record, written and read piece by piece."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from burnbook.record.tree import Trouble

GZIP = 31  # zlib's number for one gzip member with the largest window
LEVEL = 6
PIECE = 1 << 20
FREE = 1 << 24  # a file may always unpack to this many bytes
RATIO = 32  # and to this many times its size; weights reach two


def pack(pieces: Iterable[bytes | memoryview]) -> Iterator[bytes]:
    """Compress pieces as they come."""
    packer = zlib.compressobj(LEVEL, zlib.DEFLATED, GZIP)
    for piece in pieces:
        yield packer.compress(piece)
    yield packer.flush()


def unpack(data: bytes, max_bytes: int | None = None) -> bytes:
    """Decompress, but never to more than `max_bytes` (by default 32 times the size).

    Why: a small file can unpack to a thousand times its size.
    """
    limit = max(FREE, RATIO * len(data)) if max_bytes is None else max_bytes
    unpacker, rest, found = zlib.decompressobj(GZIP), data, bytearray()
    try:
        while not unpacker.eof:
            piece = unpacker.decompress(rest, PIECE)
            found += piece
            rest = unpacker.unconsumed_tail
            if not piece and not rest and not unpacker.eof:
                raise Trouble(
                    "the file ends inside its gzip", found=f"{len(data)} bytes"
                )
            if len(found) > limit:
                raise Trouble(
                    "the file unpacks to more than it may",
                    f"at most {limit} bytes from {len(data)}",
                    cure="max_bytes=… on the recorder, if you trust the file",
                )
    except zlib.error as cause:
        what = "a different checksum" if "check" in str(cause) else "not gzip data"
        found = f"{what} after {len(found)} bytes"
        raise Trouble("the gzip around the record is damaged", found=found) from None
    if unpacker.unused_data:
        count = len(unpacker.unused_data)
        raise Trouble(f"{count} bytes follow the end of the gzip", "none")
    return bytes(found)
