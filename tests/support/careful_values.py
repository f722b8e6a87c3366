"""Ops on numbers that need care (NaN, infinity, zeros), for writers of programs."""

import numpy as np

from burnbook.backend import Numpy
from burnbook.tensor import Tensor

INF, NAN = float("inf"), float("nan")
SOME = [1.0, -1.0, 0.0, 2.5, -2.5, INF, -INF, NAN]
PAIRS = np.array([[x, y] for x in SOME for y in SOME], np.float32)
CAREFUL = {
    "power": lambda x, y: x.powf(y),
    "to infinity": lambda x, y: x.powf_scalar(INF),
    "to a half": lambda x, y: x.powf_scalar(0.5),
    "remainder": lambda x, y: x.remainder(y),
    "of infinity": lambda x, y: (x % INF, x % -INF),
    "fmod": lambda x, y: x.fmod(y),
    "larger": lambda x, y: x.max_pair(y),
    "smaller": lambda x, y: x.min_pair(y),
    "clamp": lambda x, y: x.clamp(-0.5, 0.5),
    "by zero": lambda x, y: (x / 0.0, x / -0.0, x % 0.0, x.fmod(0.0)),
}
LINES = np.float32(
    [[3, NAN, 1, NAN, 2], [NAN, 1, 2, 3, 4], [5, 4, 3, 2, 1], [1, 2, 3, 4, NAN]]
)


def pairs():
    """All pairs of numbers, as two tensors."""
    return [Tensor.from_numpy(PAIRS[:, i].copy(), Numpy()) for i in range(2)]


def wanted(run, *given):
    """What burnbook gives, as a list of arrays."""
    with np.errstate(all="ignore"):
        found = run(*given)
    return list(map(np.asarray, found if isinstance(found, tuple) else (found,)))
