"""PNG files with 16 bits per channel, read in full depth.

Pillow gives colors of 16 bits as 8. This reads what it leaves out: PNG of bit depth 16
that is not interlaced, by the PNG specification (ISO/IEC 15948).
"""

from __future__ import annotations

import struct
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
CHANNELS = {0: 1, 2: 3, 4: 2, 6: 4}  # by color type
CURE = "another copy of the file, or leave it out"


def deep_png(data: bytes, most_pixels: int, name: str) -> NDArray[np.uint16] | None:
    """Return the pixels of a PNG file with 16 bits per channel, None of any other file.

    Shapes: the file -> [height, width, channels]
    """
    if data[:8] != SIGNATURE or data[12:16] != b"IHDR" or len(data) < 33:
        return None
    width, height, depth, color, _, _, interlaced = struct.unpack(
        ">IIBBBBB", data[16:29]
    )
    if depth != 16 or color not in CHANNELS or interlaced:
        return None
    if not 0 < width * height <= most_pixels:
        what = f"{name} claims {width:,} × {height:,} pixels, {most_pixels:,} at most"
        raise DataError("image", what, cure=CURE)
    step = 2 * CHANNELS[color]
    lines = _inflated(_stream(data, name), height * (1 + width * step), name)
    table = np.frombuffer(lines, np.uint8).reshape(height, 1 + width * step)
    if table[:, 0].max() > 4:
        raise _damaged(name, "a line has an unknown filter")
    pixels = _unfilter(table[:, 0], table[:, 1:].reshape(height, width, step))
    return (
        pixels.reshape(height, width * step)
        .view(">u2")
        .astype(np.uint16)
        .reshape(height, width, CHANNELS[color])
    )


def _stream(data: bytes, name: str) -> bytes:
    """Put the pieces of compressed pixels together, checking each."""
    place, pieces = 8, []
    while place + 12 <= len(data):
        (length,) = struct.unpack(">I", data[place : place + 4])
        kind = data[place + 4 : place + 8]
        end = place + 8 + length
        if kind == b"IEND":
            return b"".join(pieces)
        if end + 4 > len(data):
            break
        if kind == b"IDAT":
            (check,) = struct.unpack(">I", data[end : end + 4])
            if zlib.crc32(data[place + 4 : end]) != check:
                raise _damaged(name, "a checksum is wrong")
            pieces.append(data[place + 8 : end])
        place = end + 4
    raise _damaged(name, "it is cut off")


def _inflated(stream: bytes, size: int, name: str) -> bytes:
    inflate = zlib.decompressobj()
    try:
        lines = inflate.decompress(stream, size + 1)
    except zlib.error:
        raise _damaged(name, "its pixels cannot be decompressed") from None
    if len(lines) != size:
        raise _damaged(name, "its number of pixels is not as stated")
    return lines


def _unfilter(kinds: NDArray[Any], coded: NDArray[Any]) -> NDArray[np.uint8]:
    """Undo the filters: each pixel was stored as its difference from a guess.

    Shapes: kinds [h]; coded [h, w, k] -> [h, w, k]
    Why: the guess needs the pixels to the left (a), above (b) and above left (c), so
    all pixels on a diagonal from lower left to upper right can be computed at once.
    """
    h, w, k = coded.shape
    out = np.zeros((h + 1, w + 1, k), np.int16)  # a row and a column of zeros before
    for diagonal in range(h + w - 1):
        y = np.arange(max(0, diagonal - w + 1), min(h, diagonal + 1))
        x = diagonal - y
        a, b, c = out[y + 1, x], out[y, x + 1], out[y, x]  # each [n, k]
        guess = np.choose(
            kinds[y, None], [np.zeros_like(a), a, b, (a + b) >> 1, _nearest(a, b, c)]
        )
        out[y + 1, x + 1] = (coded[y, x] + guess) & 0xFF
    return out[1:, 1:].astype(np.uint8)


def _nearest(a: NDArray[Any], b: NDArray[Any], c: NDArray[Any]) -> NDArray[Any]:
    """Return which of a, b, c is nearest to a + b − c (A. Paeth, 1991)."""
    to_a, to_b, to_c = abs(b - c), abs(a - c), abs(a + b - 2 * c)
    other = np.where(to_b <= to_c, b, c)
    return np.where((to_a <= to_b) & (to_a <= to_c), a, other)


def _damaged(name: str, why: str) -> DataError:
    what = f"{name} cannot be decoded as an image: {why}"
    return DataError("image", what, cure=CURE)
