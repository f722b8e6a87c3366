"""Files that lie beside the project: those of Burn and PyTorch, and MNIST's digits."""

import gzip
from pathlib import Path

import numpy as np
import pytest

from burnbook.tensor import Tensor

SHARED = Path(__file__).resolve().parents[3] / "shared"
BURN = SHARED / "golden" / "burn"
PYTORCH = SHARED / "golden" / "pytorch"
MNIST = SHARED / "data" / "mnist"

needs_burn = pytest.mark.skipif(
    not BURN.is_dir(),
    reason="no golden files: shared/golden lies not beside the project",
)
needs_mnist = pytest.mark.skipif(
    not MNIST.is_dir(), reason="no MNIST files beside the project"
)


def digits(count=10_000):
    """The first test digits, [count, 28, 28], and what they are."""
    found = []
    for name, skip, size in (("images-idx3", 16, 784), ("labels-idx1", 8, 1)):
        with gzip.open(MNIST / f"t10k-{name}-ubyte.gz") as file:
            held = file.read(skip + count * size)
        found.append(np.frombuffer(held[skip:], np.uint8))
    images, labels = found
    return images.reshape(-1, 28, 28), labels


def read_right(model, count, batch, shape, device):
    """How many of the first test digits a model reads right."""
    images, labels = digits(count)
    right = 0
    for start in range(0, count, batch):
        pixels = images[start : start + batch].astype(np.float32).reshape(shape)
        pixels = (pixels / 255 - 0.1307) / 0.3081
        scores = np.asarray(model.forward(Tensor.from_numpy(pixels, device)))
        right += int((scores.argmax(1) == labels[start : start + batch]).sum())
    return right
