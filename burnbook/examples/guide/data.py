"""From digits to batches of tensors."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from burnbook.backend import Backend, Numpy
from burnbook.core.dtypes import Float, Int
from burnbook.core.errors import ConfigError
from burnbook.data import (
    Batcher,
    Dataset,
    DigitsDataset,
    MnistDataset,
    MnistItem,
    available_datasets,
)
from burnbook.tensor import Tensor


@dataclass
class MnistBatch:
    """A batch of digits.

    Shapes: images [n, 28, 28]; targets [n]
    """

    images: Tensor
    targets: Tensor


class MnistBatcher(Batcher[MnistItem, MnistBatch]):
    """Turn items into a batch: pixels with mean 0 and variance 1, labels as numbers."""

    def __init__(self, device: Backend | None = None) -> None:
        self.device = device

    def batch(
        self, items: list[MnistItem], device: Backend | None = None
    ) -> MnistBatch:
        """Make one batch, on the device of the loader or on the batcher's own."""
        device = device or self.device or Numpy()
        pixels = np.stack([item.image for item in items])  # [n, 28, 28], 0 … 255
        images = Tensor.from_data(pixels, device, Float)
        images = ((images / 255) - 0.1307) / 0.3081  # MNIST's own mean and deviation
        targets = Tensor.from_data([item.label for item in items], device, Int)
        return MnistBatch(images, targets)


@dataclass(frozen=True)
class Digits:
    """A choice of data for the guide, and how long to train on it."""

    name: str
    train: Dataset[MnistItem]
    test: Dataset[MnistItem]
    num_epochs: int


def choose_digits(name: str | None = None) -> Digits:
    """The digits by name; without, MNIST if it is at hand, else the small digits.

    At hand means: downloaded before, or BURNBOOK_MNIST_MIRROR says where from.
    """
    if name is None:
        name = "mnist" if mnist_is_at_hand() else "digits"
    if name == "mnist":
        return Digits("MNIST", MnistDataset.train(), MnistDataset.test(), 10)
    if name == "digits":
        return Digits("digits", DigitsDataset.train(), DigitsDataset.test(), 30)
    raise ConfigError("guide", f"no dataset {name!r}", cure="digits or mnist")


def mnist_is_at_hand() -> bool:
    """Whether MNIST comes without a download that nobody has asked for."""
    here = {info.name: info.available for info in available_datasets()}
    return here["MnistDataset"] or bool(os.environ.get("BURNBOOK_MNIST_MIRROR"))
