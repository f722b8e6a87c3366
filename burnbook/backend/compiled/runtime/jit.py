"""How the kernels of this folder are compiled.

Sums may be reordered, so that they run in vector registers. NaN and inf are respected:
a loss that becomes NaN must be seen. Python's lock is released while a kernel runs.
"""

import threading
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


exact_flags = {**_FLAGS, "fastmath": False}
_lock = threading.RLock()
_waiting: list[Callable[[], None]] = []  # what compiles each kernel not called yet


def kernel_code(signature: str) -> Callable[..., Any]:
    """Compile for one signature, or take it from the cache, at the first call."""
    return _at_first_call(signature, _FLAGS)


def exact_code(signature: str) -> Callable[..., Any]:
    """The same without reordering: for results that are equal bit for bit."""
    return _at_first_call(signature, exact_flags)


def compile_waiting() -> None:
    """Compile every kernel of the files imported so far, so that all are kept."""
    while _waiting:
        _waiting.pop()()


def _at_first_call(signature: str, flags: dict[str, Any]) -> Callable[..., Any]:
    """The decorator for both.

    Why: a step of training calls few kernels of a file, and each that is loaded costs
    milliseconds and memory. Numba would compile for whatever types come first, so the
    place where it does is taken by a compilation for the types that are declared; after
    it a call costs nothing more.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        code: Any = njit(cache=True, **flags)(function)

        def compile_() -> None:
            with _lock:
                if not code.signatures:
                    code.compile(signature)
                    code.disable_compile()
                    del code._compile_for_args

        def instead(*args: Any) -> Any:
            compile_()
            return code  # numba calls it now

        code._compile_for_args = instead
        _waiting.append(compile_)
        return code

    return decorate


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
