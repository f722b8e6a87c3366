"""PNG files of a few pixels, whose bytes are the same everywhere."""

import struct
import zlib

BLOCK = 0xFFFF  # bytes that one stored block can hold


def png(
    pixels: bytes,
    width: int,
    height: int,
    channels: int = 1,
    palette: bytes = b"",
    alpha: bytes = b"",
) -> bytes:
    """A PNG file of gray, of red, green, blue, or of places in a palette.

    channels: 1 or 3. palette: red, green, blue of each place; alpha: how opaque it is.
    Why: stored, not deflated, so that equal pictures are equal text whatever version
    of zlib writes them; they are small.
    """
    line = width * channels
    rows = b"".join(
        b"\0" + pixels[at : at + line] for at in range(0, height * line, line)
    )
    stored = b"\x78\x01"
    for at in range(0, len(rows), BLOCK):
        block = rows[at : at + BLOCK]
        is_last = at + BLOCK >= len(rows)
        stored += struct.pack("<BHH", is_last, len(block), len(block) ^ BLOCK) + block
    stored += struct.pack(">I", zlib.adler32(rows))
    color = 3 if palette else 2 if channels == 3 else 0
    chunks = [(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))]
    if palette:
        chunks += [(b"PLTE", palette), (b"tRNS", alpha)]
    chunks += [(b"IDAT", stored), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body))
        + name
        + body
        + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
