"""How the kernels of this folder are compiled.

Sums may be reordered, so that they run in vector registers. NaN and inf are respected:
a loss that becomes NaN must be seen. Python's lock is released while a kernel runs.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

f32 = np.float32

_FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract", "reassoc", "nsz", "arcp"},
}


def kernel_code(signature: str) -> Callable[..., Any]:
    """Compile for one signature, now or from the cache."""
    return njit(signature, cache=True, **_FLAGS)


exact_flags = {**_FLAGS, "fastmath": False}


def exact_code(signature: str) -> Callable[..., Any]:
    """The same without reordering: for results that are equal bit for bit."""
    return njit(signature, cache=True, **exact_flags)


part = njit(**_FLAGS)  # a function that kernels of the same file are made of
exact_part = njit(**exact_flags)
inlined_part = njit(inline="always", **exact_flags)  # where a call costs too much


@intrinsic
def wide_product(typing, a, b):
    """The high and low 64 bits of a 64 by 64 bit product, as one instruction."""
    result = types.UniTuple(types.uint64, 2)

    def build(context, builder, signature, args):
        from llvmlite import ir

        double, single = ir.IntType(128), ir.IntType(64)
        x, y = (builder.zext(value, double) for value in args)
        product = builder.mul(x, y)
        high = builder.trunc(builder.lshr(product, double(64)), single)
        low = builder.trunc(product, single)
        return context.make_tuple(builder, result, (high, low))

    return result(types.uint64, types.uint64), build
