"""Ops on numbers that need care (NaN, infinity, zeros), for writers of programs."""

import numpy as np

from burnbook.backend import Numpy
from burnbook.tensor import Tensor, activation
from burnbook.tensor.module import max_pool2d

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
    "times zero": lambda x, y: (x * 0.0, x * -0.0, (x * 0.0).recip(), x * 0.0 + y),
    "angle": lambda x, y: x.atan2(y),
    "angles": lambda x, y: (x.atan(), x.asin(), x.acos()),
    "relu": lambda x, y: (activation.relu(x), activation.leaky_relu(x, 0.1)),
    "tanh": lambda x, y: (x.tanh(), activation.sigmoid(x)),
    "gelu": lambda x, y: (activation.gelu(x), activation.silu(x), activation.mish(x)),
    "softplus": lambda x, y: (activation.softplus(x, 1.0), x.log1p(), x.erf()),
    "equal": lambda x, y: (x.equal(y), x.not_equal(y), x.equal(x), x.not_equal(x)),
    "greater": lambda x, y: (x.greater(y), x.greater_equal(y), x.lower(y)),
    "literals": lambda x, y: (
        *(x.equal_elem(1.0), x.not_equal_elem(1.0), x.greater_elem(0.0)),
        *(x.not_equal_elem(NAN), x.lower_equal_elem(NAN)),
    ),
    "true": lambda x, y: (x.bool(), x.any_dim(0), lines(x).all_dim(1)),
    "extremes": lambda x, y: (x.max(), x.min(), lines(x).max_dim(1)),
    "extremes of lines": lambda x, y: (
        *(lines(x).min_dim(1), lines(x).max_abs_dim(1), lines(y).max_dim(0)),
    ),
    "places of extremes": lambda x, y: (
        *(lines(x).argmax(1), lines(x).argmin(1), lines(y).argmax(0)),
        *(lines(y).argmax(1), lines(y).argmin(1), lines(y).argmin(0)),
    ),
    "extremes so far": lambda x, y: (lines(y).cummax(1), lines(y).cummin(1)),
    "shares": lambda x, y: activation.softmax(lines(y), 1),
    "largest of windows": lambda x, y: max_pool2d(
        x.reshape([1, 1, 8, 8]), [2, 2], [1, 1], [0, 0], [1, 1]
    ),
}
LINES = np.float32(
    [[3, NAN, 1, NAN, 2], [NAN, 1, 2, 3, 4], [5, 4, 3, 2, 1], [1, 2, 3, 4, NAN]]
)

BEYOND = [300.0, -129.0, 127.0, 128.0, 65536.0, -1.0]  # what narrow whole numbers hold


def narrowed(x):
    """The numbers in narrow types, and then some more in a wide one."""
    names = ("i8", "u8", "i16", "u16")
    return tuple(x.cast(name).cast("i32") + 1 for name in names)


def lines(x):
    """The numbers of a pair as eight rows."""
    return x.reshape([8, 8])


def pairs():
    """All pairs of numbers, as two tensors."""
    return [Tensor.from_numpy(PAIRS[:, i].copy(), Numpy()) for i in range(2)]


def wanted(run, *given):
    """What burnbook gives, as a list of arrays."""
    with np.errstate(all="ignore"):
        found = run(*given)
    return list(map(np.asarray, found if isinstance(found, tuple) else (found,)))
