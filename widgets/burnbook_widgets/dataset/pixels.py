"""Arrays as the few bytes that a page needs to show them.

Small images go as they are, large ones as JPEG (or as fewer pixels, without Pillow); a
sound becomes the lowest and the highest value of each stretch. What fits no budget is
made smaller, never left out.
"""

from __future__ import annotations

import base64
import io
import struct
from typing import Any

import numpy as np

from burnbook.text.png import png

SIDES = (320, 256, 192, 144, 112, 88, 64, 48, 32)
COLUMNS = 140  # of a waveform


class Pack:
    """Bytes laid end to end; each picture remembers where it begins."""

    def __init__(self) -> None:
        self.data = bytearray()

    def put(self, data: bytes) -> int:
        """Append bytes and return where they begin."""
        at = len(self.data)
        self.data += data
        return at

    def picture(self, array: np.ndarray, budget: int) -> list[int]:
        """Append an image; [start, bytes, width, height, channels], 0 for JPEG."""
        width, height, channels, data = shrink(as_pixels(array), budget)
        return [self.put(data), len(data), width, height, channels]

    def wave(self, samples: np.ndarray, columns: int = COLUMNS) -> list[int]:
        """Append the outline of a curve; [start, columns]."""
        outline = envelope(samples, columns)
        return [self.put(outline.tobytes()), len(outline)]


def as_pixels(array: np.ndarray) -> np.ndarray:
    """Bytes of gray or red, green, blue: what the values mean is guessed from them.

    Shapes: array [h, w], [h, w, c] or [c, h, w] -> [h, w] or [h, w, 3]
    Why: 0 … 1 and 0 … 255 are taken as they are; anything else is stretched from its
    lowest to its highest value, as normalized images are else black.
    """
    array = np.asarray(array)
    if array.ndim == 3 and array.shape[2] > 4:
        array = np.moveaxis(array, 0, 2)
    if array.ndim == 3:
        array = array[:, :, 0] if array.shape[2] < 3 else array[:, :, :3]
    if array.dtype == np.uint8:
        return array
    if array.dtype == bool:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype == np.uint16:
        return (array >> 8).astype(np.uint8)
    low, scale = _range(array)
    values = np.nan_to_num((array.astype(np.float64) - low) * scale, posinf=255)
    return np.clip(np.round(values), 0, 255).astype(np.uint8)


def is_stretched(array: np.ndarray) -> bool:
    """Whether the tones of a picture are not those of its values."""
    if array.dtype == bool or array.dtype == np.uint8 or array.dtype == np.uint16:
        return False
    return _range(array) not in ((0.0, 1.0), (0.0, 255.0))


def _range(array: np.ndarray) -> tuple[float, float]:
    finite = array[np.isfinite(array)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0, 0)
    if low >= 0 and high <= 255:
        return 0.0, 255.0 if high <= 1 and array.dtype.kind == "f" else 1.0
    return low, 255 / ((high - low) or 1.0)


def shrink(pixels: np.ndarray, budget: int) -> tuple[int, int, int, bytes]:
    """Make an image fit into `budget` bytes: as it is, as JPEG, or with fewer pixels.

    Returns (width, height, channels, data); 0 channels mean JPEG.
    """
    height, width = pixels.shape[:2]
    channels = 1 if pixels.ndim == 2 else 3
    if pixels.nbytes <= budget:
        return width, height, channels, np.ascontiguousarray(pixels).tobytes()
    for side in SIDES:
        found = _jpeg(pixels, side)
        if found is not None and len(found[2]) <= budget:
            return found[0], found[1], 0, found[2]
    step = 2
    while pixels[::step, ::step].nbytes > budget:
        step += 1
    small = np.ascontiguousarray(pixels[::step, ::step])
    return small.shape[1], small.shape[0], channels, small.tobytes()


def _jpeg(pixels: np.ndarray, side: int) -> tuple[int, int, bytes] | None:
    try:
        from PIL import Image
    except ImportError:
        return None
    image: Any = Image.fromarray(np.ascontiguousarray(pixels))
    image.thumbnail((side, side))
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG", quality=82, optimize=True)
    return image.width, image.height, buffer.getvalue()


def envelope(samples: np.ndarray, columns: int = COLUMNS) -> np.ndarray:
    """The lowest and highest value of every stretch, as −127 … 127 of the loudest.

    Shapes: samples [n] -> [min(n, columns), 2]
    """
    values = np.nan_to_num(np.asarray(samples, dtype=np.float64))
    loudest = float(np.abs(values).max()) or 1.0
    cuts = np.linspace(0, len(values), min(len(values), columns) + 1).astype(int)
    starts = cuts[:-1]
    low = np.minimum.reduceat(values, starts)
    high = np.maximum.reduceat(values, starts)
    return np.round(np.stack([low, high], 1) / loudest * 127).astype(np.int8)


def loud(samples: np.ndarray) -> bytes:
    """Samples as 16-bit numbers, quieter only if they would not fit."""
    values = np.nan_to_num(np.asarray(samples, dtype=np.float64))
    if np.asarray(samples).dtype.kind in "iu":
        values = values / np.iinfo(np.asarray(samples).dtype).max
    loudest = max(1.0, float(np.abs(values).max(initial=0)))
    return np.round(values / loudest * 32767).astype("<i2").tobytes()


def sound_uri(samples: np.ndarray, rate: int, seconds: float = 3.0) -> str:
    """The beginning of a sound as an address that holds it: 8 bits, 8,000 a second.

    Why: a page without a script plays it too, and stays small.
    """
    step = max(1, round(rate / 8000))
    kept = np.asarray(samples)[: int(seconds * rate)]
    if len(kept) >= step > 1:  # the mean of neighbors, or high tones become low ones
        whole = kept[: len(kept) // step * step].astype(np.float64)
        kept = whole.reshape(-1, step).mean(axis=1).astype(kept.dtype)
    values = np.frombuffer(loud(kept), "<i2").astype(np.int32)
    data = (values // 256 + 128).astype(np.uint8).tobytes()
    slow = max(1, rate // step)
    head = struct.pack(
        "<4sI8sIHHIIHH4sI", b"RIFF", 36 + len(data), b"WAVEfmt ", 16, 1, 1, slow, slow,
        1, 8, b"data", len(data),
    )  # fmt: skip
    return f"data:audio/wav;base64,{base64.b64encode(head + data).decode('ascii')}"


def data_uri(picture: list[int], data: bytes) -> str:
    """A packed picture as an address that holds it, for pages without a script."""
    start, count, width, height, channels = picture
    part = bytes(data[start : start + count])
    kind = "jpeg" if channels == 0 else "png"
    if channels:
        part = png(part, width, height, channels)
    return f"data:image/{kind};base64,{base64.b64encode(part).decode('ascii')}"
