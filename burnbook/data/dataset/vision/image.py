"""An image as an array, and what is known about it.

Pixels keep the depth of their file: bytes, 16-bit whole numbers or 32-bit floats. A
file is opened only as the few formats named here, and only if its header promises a
reasonable size, so neither a broken nor a hostile image does harm.
"""

from __future__ import annotations

import importlib.util
import io
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.core.files import PathLike, printable, read_whole, within_memory
from burnbook.data.formats.png import deep_png

MOST_PIXELS = 89_478_485  # what Pillow takes for a decompression bomb
SMALL = 8 << 20  # bytes of pixels that any file may hold
PACKING = 1100  # bytes of pixels for a byte of the file
FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")
PLAIN = ("L", "LA", "RGB", "RGBA", "F")
SIXTEEN = ("I;16", "I;16L", "I;16B", "I;16N")
CURE = "another copy of the file, or leave it out"


@dataclass(frozen=True, slots=True)
class Label:
    """The class of an image: its index in the list of classes."""

    label: int


@dataclass(frozen=True, slots=True)
class MultiLabel:
    """The classes of an image, in the order given."""

    labels: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BoundingBox:
    """An object in an image: [x, y, width, height] in pixels, and its class."""

    coords: tuple[float, float, float, float]
    label: int


@dataclass(frozen=True, slots=True)
class BoundingBoxes:
    """All objects found in an image."""

    boxes: tuple[BoundingBox, ...]


@dataclass(frozen=True, slots=True, eq=False)
class SegmentationMask:
    """The class of every pixel.

    Shapes: mask [height, width]
    """

    mask: NDArray[np.int64]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SegmentationMask):
            return NotImplemented
        return np.array_equal(self.mask, other.mask)

    def __repr__(self) -> str:
        height, width = self.mask.shape
        return f"SegmentationMask({height}×{width})"


Annotation = Label | MultiLabel | BoundingBoxes | SegmentationMask


@dataclass(slots=True, eq=False)
class ImageDatasetItem:
    """An image, what is known about it, and where it came from.

    Shapes: image [height, width, channels]
    Why: flattened, the image is the list of pixels that Burn gives: rows one after the
    other, the channels of a pixel side by side.
    """

    image: NDArray[Any]
    annotation: Annotation
    image_path: str = ""

    @property
    def image_height(self) -> int:
        """The number of rows."""
        return self.image.shape[0]

    @property
    def image_width(self) -> int:
        """The number of pixels in a row."""
        return self.image.shape[1]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ImageDatasetItem):
            return NotImplemented
        same = self.image.dtype == other.image.dtype
        return (
            same
            and np.array_equal(self.image, other.image)
            and (self.annotation, self.image_path)
            == (other.annotation, other.image_path)
        )

    def __repr__(self) -> str:
        size = "×".join(map(str, self.image.shape))
        return f"ImageDatasetItem(image={size} {self.image.dtype}, {self.annotation})"


def read_image(path: PathLike) -> NDArray[Any]:
    """Read an image file as bytes, 16-bit whole numbers or floats, as the file has it.

    Shapes: the file -> [height, width, channels]
    Why: a palette or CMYK becomes red, green, blue (and opacity); one bit per pixel
    becomes 0 or 255.
    """
    name = printable(path)
    data = read_whole(path)
    with within_memory(f"image {name}"):
        deep = deep_png(data, MOST_PIXELS, name)
        if deep is not None:
            return deep
        with _opened(data, name) as image:
            array = _pixels(image, name)
    return array[:, :, None] if array.ndim == 2 else array


def read_mask(path: PathLike) -> NDArray[np.int64]:
    """Read an image whose pixels are classes: palette indices, or the first channel.

    Shapes: the file -> [height, width]
    """
    name = printable(path)
    data = read_whole(path)
    with within_memory(f"image {name}"):
        deep = deep_png(data, MOST_PIXELS, name)
        if deep is not None:
            return deep[:, :, 0].astype(np.int64)
        with _opened(data, name) as image:
            if image.mode in ("P", "1"):
                array = np.asarray(image)
            else:
                array = _pixels(image, name)
    plain = array[:, :, 0] if array.ndim == 3 else array
    return plain.astype(np.int64)


class _opened:  # noqa: N801 (used like a function, in `with`)
    """Open and decode the bytes of an image file, or say what is wrong with them."""

    def __init__(self, data: bytes, name: str) -> None:
        if importlib.util.find_spec("PIL") is None:
            what = f"Pillow is not installed; it reads {os.path.basename(name)}"
            raise DataError("image", what, cure="pip install 'burnbook[lab]'")
        self.data = data
        self.name = name

    def __enter__(self) -> Any:
        from PIL import Image

        try:
            self.image = Image.open(io.BytesIO(self.data), formats=FORMATS)
            width, height = self.image.size
            if 0 < width * height <= _most_pixels(self.image, len(self.data)):
                self.image.load()
                return self.image
        except MemoryError:
            raise
        except Exception as error:  # Pillow's readers raise errors of many kinds
            raise self._undecodable(error) from None
        size = f"{width:,} × {height:,} pixels"
        most = _most_pixels(self.image, len(self.data))
        what = f"{self.name} claims {size}, {most:,} at most"
        raise DataError("image", what, cure=CURE)

    def __exit__(self, kind: object, error: Any, _: object) -> None:
        self.image.close()
        if isinstance(error, Exception) and not isinstance(
            error, (DataError, MemoryError)
        ):  # decoded, but its pixels mean nothing, such as indices beyond the palette
            raise self._undecodable(error) from None

    def _undecodable(self, error: Exception) -> DataError:
        what = f"{self.name} cannot be decoded as an image"
        facts = [("file", f"{len(self.data):,} bytes"), ("why", _reason(error))]
        return DataError("image", what, facts, CURE)


def _most_pixels(image: Any, size: int) -> int:
    """Return how many pixels a file of this size may claim.

    Why: 8 MB harm nobody, and no compression of those formats goes far beyond 1,032 to
    1.
    """
    depth = 4 if image.mode in ("I", "F") else len(image.getbands())
    return min(MOST_PIXELS, (SMALL + PACKING * size) // depth)


def _pixels(image: Any, name: str) -> NDArray[Any]:
    """Return the pixels of a decoded image at the depth of its file."""
    mode = image.mode
    if mode == "I":  # 32 bits, in which Pillow also keeps 16
        array = np.asarray(image)
        if array.size and (array.min() < 0 or array.max() > 0xFFFF):
            what = f"{name} has pixels beyond 16 bits"
            raise DataError("image", what, cure="saving it with 8 or 16 bits")
        return array.astype(np.uint16)
    if mode in SIXTEEN:
        return np.asarray(image).astype(np.uint16)
    if mode == "1":
        return np.asarray(image.convert("L"))
    if mode not in PLAIN:
        clear = mode in ("PA", "RGBa", "La") or "transparency" in image.info
        image = image.convert("RGBA" if clear else "RGB")
    return np.asarray(image)


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    if kind == "UnidentifiedImageError":
        return f"it is none of {', '.join(FORMATS)}"
    text = printable(str(error).replace("invalid", "wrong").strip())
    return f"{kind}: {text[:100]}" if text else kind
