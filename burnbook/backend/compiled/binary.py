"""Functions of two elements, where one tensor may stretch.

Measured by W3 (sums) and the families elementwise, bits, compare, of tests/bench.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.loops import compile_rows, run_rows
from burnbook.backend.compiled.runtime.registry import F32, kernel
from burnbook.backend.compiled.runtime.thread_pool import ALONE, SLOW_ALONE
from burnbook.backend.compiled.runtime.vector_math import (
    ONE,
    ZERO,
    bits_of,
    f32,
    float_of,
    fused,
    hypot_of,
    i32,
    vectorizable,
)
from burnbook.ops.bits import (
    bitwise_and,
    bitwise_left_shift,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
)
from burnbook.ops.compare import bool_and, bool_not, bool_or, bool_xor
from burnbook.ops.elementwise import add, div, max_pair, min_pair, mul, remainder, sub
from burnbook.ops.rounding import fmod
from burnbook.ops.trigonometry import hypot

Table = dict[Any, Callable[..., Any]]
Pair = Callable[[Any, Any], Any]
I64, U8, BOOL = np.dtype(np.int64), np.dtype(np.uint8), np.dtype(bool)
HEAD_START = 1 << 19  # bytes of truth that one thread reads before another is awake
SIGN_BIT = i32(-0x80000000)
MOST_WHOLE = f32(1 << 22)


@vectorizable
def rest_of(x, y):
    """x − y trunc(x / y), exact for quotients below 2²²; NaN says: ask fmod.

    Why: the rounded quotient may be a whole number too large, never one too small, and
    then the rest is just below zero; both products are rounded once, to nothing lost.
    """
    quotient = x / y
    rest = fused(-np.trunc(quotient), y, x)
    rest = rest + abs(y) * (ONE if x > ZERO else -ONE) if rest * x < ZERO else rest
    rest = float_of((bits_of(rest) & i32(0x7FFFFFFF)) | (bits_of(x) & SIGN_BIT))
    fits = (abs(quotient) < MOST_WHOLE) & (abs(y) < f32(np.inf))
    return rest if fits else f32(np.nan)


@vectorizable
def fmod_row(x, y, out):
    """Quick for most numbers; where it says NaN, again and exactly."""
    odd = 0
    for j in range(out.size):
        rest = rest_of(x[j], y[j])
        out[j] = rest
        odd += rest != rest
    if odd:
        for j in range(out.size):
            if out[j] != out[j]:
                out[j] = np.fmod(x[j], y[j])


@vectorizable
def remainder_row(x, y, out):
    """The same with the sign of the divisor."""
    fmod_row(x, y, out)
    for j in range(out.size):
        turned = (out[j] < ZERO) != (y[j] < ZERO)
        out[j] = out[j] + y[j] if turned & (out[j] != ZERO) else out[j]


FLOATS: Table = {
    add: vectorizable(lambda x, y: x + y),
    sub: vectorizable(lambda x, y: x - y),
    mul: vectorizable(lambda x, y: x * y),
    div: vectorizable(lambda x, y: x / y),
    max_pair: vectorizable(lambda x, y: x if (x >= y) | (x != x) else y),
    min_pair: vectorizable(lambda x, y: x if (x <= y) | (x != x) else y),
    hypot: hypot_of,
}
ROWS: Table = {fmod: fmod_row, remainder: remainder_row}
INTS: Table = {
    bitwise_and: vectorizable(lambda x, y: x & y),
    bitwise_or: vectorizable(lambda x, y: x | y),
    bitwise_xor: vectorizable(lambda x, y: x ^ y),
    bitwise_left_shift: vectorizable(lambda x, y: x << y if (y >= 0) & (y < 64) else 0),
    bitwise_right_shift: vectorizable(
        lambda x, y: x >> (y if (y >= 0) & (y < 64) else 63)
    ),
}
TRUTHS: Table = {
    bool_and: vectorizable(lambda x, y: (x != 0) & (y != 0)),
    bool_or: vectorizable(lambda x, y: (x | y) != 0),
    bool_xor: vectorizable(lambda x, y: (x != 0) != (y != 0)),
}
# As quick in NumPy, where one thread works and no row stretches.
NUMPY = {add: np.add, sub: np.subtract, mul: np.multiply, div: np.divide}
COMMUTATIVE = {add, mul}  # x and y may change places


def register(table: Table, name: str, dtype: np.dtype, whole: bool = False) -> None:
    """Compile the loops of a table and make them the kernels of its ops."""
    functions = list(table.values())
    loops = compile_rows(__file__, name, functions, dtype.str[1:], whole)
    for code, op in enumerate(table):
        pair = kernels_of_pairs[op] = _pair(loops, code, op, dtype, whole)
        kernel(op)(pair)


def _pair(loops: Any, code: int, op: Any, dtype: np.dtype, slow: bool) -> Pair:
    ufunc, turned = NUMPY.get(op), op in COMMUTATIVE
    alone = SLOW_ALONE if slow else ALONE
    few = alone // dtype.itemsize

    def pair(x: Any, y: Any) -> Any:
        if (
            type(x) is type(y) is ndarray
            and x.dtype is y.dtype is dtype
            and x.shape == y.shape
            and x.size < few
        ):  # quickly, as one row
            if not (x.flags.carray and y.flags.carray):
                return None
            out = empty(x.shape, dtype)
            if ufunc is not None:
                return ufunc(x, y, out=out)
            loops(code, x.reshape(1, -1), y.reshape(1, -1), out.reshape(1, -1), 0, 1)
            return out
        x, y = in_one_piece(x, y, dtype), in_one_piece(y, x, dtype)
        if x is None or y is None:
            return None
        if x.size < y.size and turned:
            x, y = y, x
        one = y.size == 1 and y.ndim == x.ndim
        if one and ufunc is not None and x.size < few:
            return ufunc(x, y, out=empty(x.shape))
        if x.size < few and x.ndim == 2:  # quickly, without a look at layouts
            (rows, length), (y_rows, y_length) = x.shape, y.shape
            same = y_length == length
            if y_rows in (1, rows) and (same or y_length == 1):
                out = empty(x.shape, dtype)
                loops(code, x, y, out, 0, rows)
                return out
        return run_rows(loops, code, x, y, alone=alone)

    return pair


def in_one_piece(x: Any, other: Any, dtype: np.dtype) -> Any:
    """An array of this type that kernels take; a number as an array that stretches."""
    if isinstance(x, np.ndarray):
        return x if x.dtype is dtype and x.flags.carray else None
    return np.full((1,) * other.ndim, x, dtype)


def register_truths() -> None:
    """The same for Bool, whose elements are bytes of 0 and 1."""
    loops = compile_rows(__file__, "truth_rows", list(TRUTHS.values()), "u1")

    def truths(code: int) -> Pair:
        def pair(x: Any, y: Any) -> Any:
            x, y = in_one_piece(x, y, BOOL), in_one_piece(y, x, BOOL)
            if x is None or y is None:
                return None
            out = run_rows(loops, code, x.view(U8), y.view(U8), head_start=HEAD_START)
            return None if out is None else out.view(BOOL)

        return pair

    for code, op in enumerate(TRUTHS):
        kernel(op)(truths(code))
    flip = truths(list(TRUTHS).index(bool_xor))
    kernel(bool_not)(lambda x: flip(x, True))


kernels_of_pairs: dict[Any, Pair] = {}
register(FLOATS, "float_rows", F32)
register(ROWS, "rest_rows", F32, whole=True)
register(INTS, "int_rows", I64)
register_truths()
