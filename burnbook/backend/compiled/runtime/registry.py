"""The list of compiled kernels, and what they ask of an array."""

from typing import Any

import numpy as np

from burnbook.backend.kernels import Kernel, kernels_in

KERNELS: dict[Any, Kernel] = {}
kernel = kernels_in(KERNELS)
F32 = np.dtype(np.float32)


def plain_f32(x: Any) -> bool:
    """Whether x is an array of float32 in one piece, aligned and writable."""
    return type(x) is np.ndarray and x.dtype is F32 and x.flags.carray


def flat(x: np.ndarray) -> np.ndarray:
    """The same memory with one dim."""
    return x.reshape(-1)
