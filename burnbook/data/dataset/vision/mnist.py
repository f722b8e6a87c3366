"""MNIST: 70,000 handwritten digits of 28×28 pixels.

The images come from the web once and stay in the user's cache folder. A dataset holds
them as bytes; a mapper makes an item of floats when it is asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.data.dataset.base import Dataset, no_item, no_number
from burnbook.data.dataset.source.download import RemoteFile, Report
from burnbook.data.dataset.source.downloaded import Source
from burnbook.data.dataset.split import Part
from burnbook.data.dataset.transform.transform import Mapper, MapperDataset
from burnbook.data.formats.idx import parse_idx

WIDTH = HEIGHT = 28
MIRRORS = [
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://azureopendatastorage.blob.core.windows.net/mnist/",
    "https://raw.githubusercontent.com/fgnt/mnist/master/",
]
FILES = {
    "train": (
        RemoteFile(
            "train-images-idx3-ubyte",
            47_040_016,
            "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        ),
        RemoteFile(
            "train-labels-idx1-ubyte",
            60_008,
            "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        ),
    ),
    "test": (
        RemoteFile(
            "t10k-images-idx3-ubyte",
            7_840_016,
            "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        ),
        RemoteFile(
            "t10k-labels-idx1-ubyte",
            10_008,
            "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        ),
    ),
}


@dataclass(slots=True, eq=False)
class MnistItem:
    """A digit: its image as floats 0 … 255, and which digit it is.

    Shapes: image [28, 28]
    """

    image: NDArray[np.float32]
    label: int

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MnistItem):
            return NotImplemented
        same = np.array_equal(self.image, other.image)
        return same and self.label == other.label

    def __repr__(self) -> str:
        rows, columns = self.image.shape
        return f"MnistItem(image={rows}×{columns} floats, label={self.label})"


@dataclass(slots=True, eq=False)
class MnistItemRaw:
    """A digit as it is stored: pixels as bytes.

    Shapes: image_bytes [28, 28]
    """

    image_bytes: NDArray[Any]
    label: int


class BytesToImage(Mapper[MnistItemRaw, MnistItem]):
    """Turn stored pixels into an image of floats."""

    def map(self, item: MnistItemRaw) -> MnistItem:
        """Return the item with its pixels as float32."""
        return MnistItem(item.image_bytes.astype(np.float32), item.label)

    def map_many(self, items: list[MnistItemRaw]) -> list[MnistItem]:
        """Return the items, their pixels converted in one go."""
        block = np.array([item.image_bytes for item in items], dtype=np.float32)
        pairs = zip(block, items, strict=True)
        return [MnistItem(image, item.label) for image, item in pairs]


class LabeledImages(Dataset[MnistItemRaw]):
    """Images and labels held as two arrays.

    Shapes: images [n, 28, 28]; labels [n]
    """

    def __init__(self, images: NDArray[Any], labels: NDArray[Any]) -> None:
        if len(images) != len(labels):
            what = f"{len(images):,} images, but {len(labels):,} labels"
            raise DataError("LabeledImages", what)
        self.images = images
        self.labels = labels

    def get(self, index: int) -> MnistItemRaw | None:
        """Return stored item `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self.labels):
            return None
        return MnistItemRaw(self.images[index], int(self.labels[index]))

    def get_many(self, indices: Sequence[int]) -> list[MnistItemRaw]:
        """Return several stored items."""
        images, size = self.images, len(self.labels)
        for i in indices:
            if not 0 <= i < size:
                raise no_item(self, i)
        labels = self.labels[list(indices)].tolist()
        pairs = zip(indices, labels, strict=True)
        return [MnistItemRaw(images[i], label) for i, label in pairs]

    def __len__(self) -> int:
        return len(self.labels)


def labeled_images(files: Sequence[tuple[str, Path]]) -> Dataset[MnistItem]:
    """Read a file of images and one of labels."""
    images, labels = (parse_idx(path.read_bytes(), name) for name, path in files)
    return MapperDataset(LabeledImages(images, labels), BytesToImage())


class MnistDataset(Part[MnistItem]):
    """The MNIST digits: 60,000 for training, 10,000 for testing.

    The first use downloads the files (11 MB) and checks them; later uses read the
    cache. `BURNBOOK_MNIST_MIRROR` names a mirror to try first (`http://`, `https://`
    or `file://`), `BURNBOOK_CACHE` another cache folder.
    """

    @classmethod
    def train(cls, progress: Report | None = None) -> MnistDataset:
        """Return the training digits; calls `progress(file, received, total)`."""
        return cls._load("train", progress)

    @classmethod
    def test(cls, progress: Report | None = None) -> MnistDataset:
        """Return the test digits; calls `progress(file, received, total)`."""
        return cls._load("test", progress)

    @classmethod
    def _load(cls, split: str, progress: Report | None) -> MnistDataset:
        return cls(labeled_images(cls.source().obtain(split, progress)), split)

    @classmethod
    def source(cls) -> Source:
        """Return where the files come from, and where they are kept."""
        return Source(
            "mnist",
            "BURNBOOK_MNIST_MIRROR",
            MIRRORS,
            FILES,
            "DigitsDataset (burnbook guide --dataset digits), which needs no network; "
            "or put the four files into {folder}; "
            "or {variable}=file:///folder/with/them",
        )
