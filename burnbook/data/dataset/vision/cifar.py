"""CIFAR: 60,000 small color images of 10 or 100 classes.

A. Krizhevsky, "Learning multiple layers of features from tiny images", 2009. Its
binary form is read here: one or two bytes of labels and 32 × 32 bytes each of red,
green and blue for every image. (The other forms are pickles, which run code.)
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from enum import Enum
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.core.files import read_whole
from burnbook.data.dataset.base import Dataset, no_number
from burnbook.data.dataset.source.download import Archive, RemoteFile, Report
from burnbook.data.dataset.source.downloaded import (
    Checksums,
    DownloadedDataset,
    Source,
)
from burnbook.data.dataset.vision.image import ImageDatasetItem, Label
from burnbook.data.formats.idx import AGAIN

SIDE = 32
PIXELS = 3 * SIDE * SIDE
BATCH = 10_000 * (1 + PIXELS)  # bytes of a file of CIFAR-10
OFFLINE = (
    "DigitsDataset, which needs no network; "
    "or put {archive} into {folder}; or {variable}=file:///folder/with/it"
)
VARIABLES = ("BURNBOOK_CIFAR10_MIRROR", "BURNBOOK_CIFAR100_MIRROR")


def _archives(name: str, size: int, checksum: str) -> list[Archive]:
    folders = ("https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/")
    return [Archive(folder + name, size, checksum) for folder in folders]


MIRRORS_10 = _archives(
    "cifar-10-binary.tar.gz",
    170_052_171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
MIRRORS_100 = _archives(
    "cifar-100-binary.tar.gz",
    168_513_733,
    "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
)
FILES_10 = {
    "train": [
        RemoteFile(f"data_batch_{i}.bin", BATCH, checksum, "")
        for i, checksum in enumerate(
            [
                "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5",
                "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed",
                "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67",
                "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48",
                "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add",
            ],
            1,
        )
    ],
    "test": [
        RemoteFile(
            "test_batch.bin",
            BATCH,
            "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b",
            "",
        )
    ],
}
FILES_100 = {
    "train": [RemoteFile("train.bin", 50_000 * (2 + PIXELS), None, "")],
    "test": [RemoteFile("test.bin", 10_000 * (2 + PIXELS), None, "")],
}


class SmallImages(Dataset[ImageDatasetItem]):
    """Images and labels held as two arrays.

    Shapes: planes [n, 3, 32, 32]; labels [n]
    """

    def __init__(self, planes: NDArray[Any], labels: NDArray[Any]) -> None:
        self.planes = planes
        self.labels = labels

    def get(self, index: int) -> ImageDatasetItem | None:
        """Return image `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self.labels):
            return None
        image = self.planes[index].transpose(1, 2, 0)  # [32, 32, 3]
        label = Label(int(self.labels[index]))
        return ImageDatasetItem(np.ascontiguousarray(image), label)

    def __len__(self) -> int:
        return len(self.labels)


def parse_cifar(data: bytes, name: str, label_bytes: int, classes: int) -> SmallImages:
    """Turn the bytes of a CIFAR file into images; the last label byte counts."""
    size = label_bytes + PIXELS
    if not data or len(data) % size:
        what = f"{name} does not hold a whole number of images"
        facts = [("file", f"{len(data):,} bytes"), ("an image", f"{size:,} bytes")]
        raise DataError("cifar", what, facts, AGAIN)
    table = np.frombuffer(data, np.uint8).reshape(-1, size)
    labels = table[:, label_bytes - 1]
    if labels.max() >= classes:
        bad = int(np.argmax(labels >= classes))
        what = f"{name}: image {bad:,} has the label {labels[bad]} of {classes} classes"
        raise DataError("cifar", what, cure=AGAIN)
    planes = table[:, label_bytes:].reshape(-1, 3, SIDE, SIDE)
    return SmallImages(planes, labels)


class Cifar10Dataset(DownloadedDataset[ImageDatasetItem]):
    """Small photographs of ten kinds: 50,000 for training, 10,000 for testing.

    The first use downloads the archive (170 MB) and checks it; later uses read the
    cache. `BURNBOOK_CIFAR10_MIRROR` names an archive, or a folder with the files, to
    try first; `checksums` gives the SHA-256 or MD5 of files that are not the original
    ones. Items are those of `ImageFolderDataset`: an image of bytes and a `Label`.

    Shapes: image [32, 32, 3]
    """

    classes: Sequence[str] = (
        "airplane",
        "automobile",
        "bird",
        "cat",
        "deer",
        "dog",
        "frog",
        "horse",
        "ship",
        "truck",
    )

    @classmethod
    def _load(cls, split: str, progress: Report | None, checksums: Checksums) -> Self:
        files = cls.source().obtain(split, progress, checksums)
        return cls(_joined(files, 1, 10), split)

    @classmethod
    def source(cls) -> Source:
        """Return where the files come from, and where they are kept."""
        return Source("cifar10", VARIABLES[0], MIRRORS_10, FILES_10, OFFLINE)


class Cifar100Dataset(DownloadedDataset[ImageDatasetItem]):
    """Small photographs of a hundred kinds: 50,000 for training, 10,000 for testing.

    The first use downloads the archive (169 MB); `BURNBOOK_CIFAR100_MIRROR` and
    `checksums` are as for `Cifar10Dataset`. Labels are the fine ones.

    Shapes: image [32, 32, 3]
    """

    classes: Sequence[str] = """
        apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy
        bridge bus butterfly camel can castle caterpillar cattle chair chimpanzee clock
        cloud cockroach couch crab crocodile cup dinosaur dolphin elephant flatfish
        forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion
        lizard lobster man maple_tree motorcycle mountain mouse mushroom oak_tree orange
        orchid otter palm_tree pear pickup_truck pine_tree plain plate poppy porcupine
        possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk skyscraper
        snail snake spider squirrel streetcar sunflower sweet_pepper table tank
        telephone television tiger tractor train trout tulip turtle wardrobe whale
        willow_tree wolf woman worm
    """.split()  # noqa: SIM905 (a hundred lines otherwise)

    @classmethod
    def _load(cls, split: str, progress: Report | None, checksums: Checksums) -> Self:
        files = cls.source().obtain(split, progress, checksums)
        return cls(_joined(files, 2, 100), split)

    @classmethod
    def source(cls) -> Source:
        """Return where the files come from, and where they are kept."""
        return Source("cifar100", VARIABLES[1], MIRRORS_100, FILES_100, OFFLINE)


class CifarType(Enum):
    """Which of the two: ten classes or a hundred."""

    Cifar10 = 10
    Cifar100 = 100


class CifarDataset:
    """Both parts of a CIFAR dataset, under the name that newer Burn has for them."""

    def __init__(self, kind: CifarType) -> None:
        self.source: type[Cifar10Dataset] | type[Cifar100Dataset] = (
            Cifar10Dataset if kind is CifarType.Cifar10 else Cifar100Dataset
        )

    def train(self) -> Dataset[ImageDatasetItem]:
        """Return the training images."""
        return self.source.train()

    def test(self) -> Dataset[ImageDatasetItem]:
        """Return the test images."""
        return self.source.test()


def _joined(
    files: Sequence[tuple[str, Path]], label_bytes: int, classes: int
) -> SmallImages:
    """Read the files of one part and put them together."""
    found = [
        parse_cifar(read_whole(path), name, label_bytes, classes)
        for name, path in files
    ]
    planes = np.concatenate([part.planes for part in found])
    return SmallImages(planes, np.concatenate([part.labels for part in found]))
