"""What both sides of a whole training read: examples, batch sizes, epochs."""

import numpy as np

RATE = 1e-3


def digits():
    """The small digits as images of 28 by 28, and labels, of both splits."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    large = np.kron(pixels.reshape(-1, 8, 8), np.ones((3, 3)))
    images = np.pad(large / 16, ((0, 0), (2, 2), (2, 2))).astype(np.float32)
    images = (images - 0.1307) / 0.3081
    return [images[:1438], labels[:1438], images[1438:], labels[1438:]]


def drawn(shape, count):
    """Random examples of ten classes, and a quarter as many for validation."""
    rng, found = np.random.default_rng(0), []
    for size in (count, count // 4):
        found += [rng.standard_normal((size, *shape), np.float32)]
        found += [rng.integers(0, 10, size)]
    return found


# name: the examples, the batch size, the epochs of one training
WORKS = {
    "w1": (digits, 64, 8),
    "w2": (digits, 64, 8),
    "w3": (lambda: drawn((128, 256), 16 * 12), 16, 2),
    "w4": (lambda: drawn((100, 64), 32 * 32), 32, 4),
    "w6": (lambda: drawn((3, 32, 32), 64 * 16), 64, 2),
}
