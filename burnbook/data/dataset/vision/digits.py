"""1,797 small handwritten digits that need no network.

scikit-learn ships them with 8×8 pixels; here they are scaled to 28×28, so that what is
written for MNIST runs on them unchanged, in seconds and offline.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.data.dataset.split import Part
from burnbook.data.dataset.transform.transform import MapperDataset
from burnbook.data.dataset.vision.mnist import (
    HEIGHT,
    WIDTH,
    BytesToImage,
    LabeledImages,
    MnistItem,
)
from burnbook.data.shuffle import SPLIT, check_seed, permutation

COUNT = 1797
TEST_SHARE = 0.2


class DigitsDataset(Part[MnistItem]):
    """Handwritten digits in the shape of MNIST: 1,438 for training, 359 for testing.

    The split is drawn from a seed within every class, so both parts have the same mix.

    Example:
        >>> train, test = DigitsDataset.train(), DigitsDataset.test()
        >>> len(train), len(test), train.get(0)
        (1438, 359, MnistItem(image=28×28 floats, label=1))
    """

    @classmethod
    def train(cls, seed: int = 0) -> DigitsDataset:
        """Return four fifths of the digits."""
        return cls._load("train", seed)

    @classmethod
    def test(cls, seed: int = 0) -> DigitsDataset:
        """Return the other fifth."""
        return cls._load("test", seed)

    @classmethod
    def _load(cls, split: str, seed: int) -> DigitsDataset:
        images, labels = _scaled_digits()
        train, test = stratified(labels, check_seed("DigitsDataset", seed))
        chosen = train if split == "train" else test
        part = LabeledImages(images[chosen], labels[chosen])
        return cls(MapperDataset(part, BytesToImage()), split)


def stratified(
    labels: NDArray[Any], seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split indices so that every class gives a fifth of its items to the test part."""
    test: list[NDArray[np.int64]] = []
    for label in range(10):
        members = np.flatnonzero(labels == label)
        shuffled = members[permutation(len(members), seed, SPLIT, label)]
        test.append(shuffled[: int(len(members) * TEST_SHARE + 0.5)])
    chosen = np.zeros(len(labels), dtype=bool)
    chosen[np.concatenate(test)] = True
    return np.flatnonzero(~chosen), np.flatnonzero(chosen)


def scale_bilinear(images: NDArray[Any], height: int, width: int) -> NDArray[Any]:
    """Scale images bilinearly: each new pixel is a weighted mean of its neighbors.

    Shapes: images [n, h, w] -> [n, height, width]
    Why: pixel i lies at (i + ½) · old / new − ½, so both borders are treated alike.
    """
    low, high, share = _places(images.shape[1], height)
    share = share[:, None]  # [height, 1]
    rows = images[:, low] * (1 - share) + images[:, high] * share  # [n, height, w]
    low, high, share = _places(images.shape[2], width)
    return rows[:, :, low] * (1 - share) + rows[:, :, high] * share


def _places(old: int, new: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    place = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
    low = np.floor(place).astype(np.int64)
    return low, np.minimum(low + 1, old - 1), place - low


@lru_cache(maxsize=1)
def _scaled_digits() -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Return all digits, 0 … 255: images [1797, 28, 28] and labels [1797]."""
    table = _read_digits()
    pixels = table[:, :64].reshape(-1, 8, 8) * (255 / 16)  # 0 … 16 as shipped
    images = scale_bilinear(pixels, HEIGHT, WIDTH).astype(np.float32)
    labels = table[:, 64].astype(np.uint8)
    images.flags.writeable = labels.flags.writeable = False
    return images, labels


def _read_digits() -> NDArray[np.float64]:
    """Read the table that scikit-learn ships: 64 pixels and a label per row.

    Why: reading its file takes milliseconds, importing scikit-learn a second.
    """
    found = importlib.util.find_spec("sklearn")
    for folder in (found and found.submodule_search_locations) or []:
        path = Path(folder) / "datasets" / "data" / "digits.csv.gz"
        if path.is_file():
            return _checked(np.loadtxt(path, delimiter=","))
    if found is None:
        what = "scikit-learn is not installed; the digits come with it"
        raise DataError("DigitsDataset", what, cure="pip install scikit-learn")
    datasets: Any = importlib.import_module("sklearn.datasets")
    digits = datasets.load_digits()
    return _checked(np.column_stack([digits.data, digits.target]))


def _checked(table: NDArray[np.float64]) -> NDArray[np.float64]:
    if table.shape != (COUNT, 65):
        what = f"scikit-learn's digits have the shape {list(table.shape)}"
        facts = [("expected", f"[{COUNT}, 65]")]
        raise DataError("DigitsDataset", what, facts, "pip install -U scikit-learn")
    return table
