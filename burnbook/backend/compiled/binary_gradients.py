"""The gradients of functions of two elements.

Measured by W3 and the families elementwise, trigonometry, rounding, of tests/bench.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook.backend.compiled.binary import in_one_piece, kernels_of_pairs
from burnbook.backend.compiled.runtime.loops import compile_loops, run_loop
from burnbook.backend.compiled.runtime.registry import F32, kernel
from burnbook.backend.compiled.runtime.vector_math import (
    ONE,
    ZERO,
    hypot_of,
    vectorizable,
)
from burnbook.backend.compiled.shape import copied, stretched, whole
from burnbook.backend.compiled.threaded_ufuncs import in_ranges
from burnbook.ops.elementwise import div, max_pair, min_pair, mul, sub
from burnbook.ops.trigonometry import atan2, hypot

Slope = tuple[Callable[..., Any], int, int]

if_max = vectorizable(lambda g, x, y: g if (x >= y) | (x != x) else ZERO)
if_not_max = vectorizable(lambda g, x, y: ZERO if (x >= y) | (x != x) else g)
if_min = vectorizable(lambda g, x, y: g if (x <= y) | (x != x) else ZERO)
if_not_min = vectorizable(lambda g, x, y: ZERO if (x <= y) | (x != x) else g)
share = vectorizable(lambda g, x, out: g * (x / (ONE if out == ZERO else out)))
less_share = vectorizable(lambda g, out, y: -g * out / y)


@vectorizable
def atan2_y(g, x, y):
    """x / (x² + y²), without squares; zero at the origin."""
    length = hypot_of(x, y)
    length = ONE if length == ZERO else length
    return g * (x / length) * (ONE / length)


atan2_x = vectorizable(lambda g, y, x: atan2_y(-g, y, x))
LOOPS = [
    *(if_max, if_not_max, if_min, if_not_min, share, less_share),
    *(atan2_y, atan2_x),
]

# op: for each input a function of g and two of what the tape keeps; None: it is g
SLOPES: dict[Any, tuple[Slope | None, Slope | None]] = {
    max_pair: ((if_max, 0, 1), (if_not_max, 0, 1)),  # x, y are kept
    min_pair: ((if_min, 0, 1), (if_not_min, 0, 1)),  # x, y
    hypot: ((share, 0, 2), (share, 1, 2)),  # x, y, out
    atan2: ((atan2_y, 1, 0), (atan2_x, 0, 1)),  # y, x
}
loops = compile_loops(__file__, "slope_loops", LOOPS, 3)


def slope_of(slope: Slope, g: Any, kept: tuple[Any, ...]) -> Any:
    """Run the loop of a slope; None where it does not serve these arrays."""
    function, i, j = slope
    arrays = [in_one_piece(v, g, F32) for v in (g, kept[i], kept[j])]
    if any(v is None for v in arrays):
        return None
    full = tuple(stretched(v, g.shape) for v in arrays)
    return run_loop(loops, LOOPS.index(function), full)


def register(op: Any, slopes: tuple[Slope | None, Slope | None]) -> None:
    """Make the loops of an op's slopes the kernel of its gradient."""

    def backward(g: Any, *kept: Any, needs: tuple[bool, ...]) -> Any:
        parts: list[Any] = []
        g = whole(g)
        if g is None:
            return None
        for slope, need in zip(slopes, needs, strict=True):
            part = g if slope is None else slope_of(slope, g, kept) if need else None
            if part is None and need:
                return None
            parts.append(part if need else None)
        return tuple(parts)

    kernel(op.backward)(backward)


def by_kernel(op: Any, x: Any, y: Any) -> Any:
    """An op of two elements by its kernel, or by its plain code."""
    found = kernels_of_pairs[op](x, y)
    return op.forward(np, x, y) if found is None else found


@kernel(mul.backward)
def mul_backward(g, x, y, *, needs):
    g = g if g.flags.carray else copied(g)
    dx = by_kernel(mul, g, y) if needs[0] else None
    return dx, by_kernel(mul, g, x) if needs[1] else None


@kernel(sub.backward)
def sub_backward(g, *, needs):
    return g, in_ranges(np.negative, (g,), g.dtype) if needs[1] else None


@kernel(div.backward)
def div_backward(g, y, out, *, needs):
    g = g if g.flags.carray else copied(g)
    dx = by_kernel(div, g, y) if needs[0] else None
    if not needs[1]:
        return dx, None
    dy = slope_of((less_share, 1, 0), g, (y, out))
    return dx, -g * out / y if dy is None else dy


for _op, _slopes in SLOPES.items():
    register(_op, _slopes)
