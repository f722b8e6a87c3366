"""The list of compiled kernels, and what they ask of an array.

A kernel takes what its op's forward code takes and gives what that gives; it returns
None for arrays that it was not compiled for, and then the plain code runs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

KERNELS: dict[Any, Callable[..., Any]] = {}
F32 = np.dtype(np.float32)


def kernel(op: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function as the compiled kernel of an op or of its gradient."""

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        KERNELS[op] = function
        return function

    return register


def plain_f32(x: Any) -> bool:
    """Whether x is an array of float32 in one piece, aligned and writable."""
    return type(x) is np.ndarray and x.dtype is F32 and x.flags.carray


def flat(x: np.ndarray) -> np.ndarray:
    """The same memory with one dim."""
    return x.reshape(-1)
