"""The small loops that normalization kernels are made of.

A row, or one plane of a channel, stays in the first cache while it is read twice, so a
variance is that of the differences from the mean and loses no digits.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, part
from burnbook.backend.compiled.runtime.registry import F32, plain_f32
from burnbook.ops.norm import FLOOR

ELEMENTS = 1 << 14  # a part has no fewer


@part
def sum_of(x):
    total = f32(0)
    for j in range(x.size):
        total += x[j]
    return total


@part
def squares_around(x, mean):
    """Σ (x − mean)²."""
    total = f32(0)
    for j in range(x.size):
        total += (x[j] - mean) * (x[j] - mean)
    return total


@part
def sum_around(x, mean):
    """Σ (x − mean), which has the digits that a sum of large numbers loses."""
    total = f32(0)
    for j in range(x.size):
        total += x[j] - mean
    return total


@part
def spread_around(x, mean):
    """Σ (x − mean), which tells what a rounded mean is off by, and Σ (x − mean)²."""
    rest = total = f32(0)
    for j in range(x.size):
        far = x[j] - mean
        rest += far
        total += far * far
    return rest, total


@part
def above_zero(var):
    """A variance, where rounding took it below 0."""
    return max(var, f32(0))


@part
def sum_and_dot(g, x, mean):
    """Σ g and Σ g (x − mean)."""
    total = dot = f32(0)
    for j in range(x.size):
        total += g[j]
        dot += g[j] * (x[j] - mean)
    return total, dot


@part
def straight(x, a, b, out):
    """out = a x + b."""
    for j in range(x.size):
        out[j] = a * x[j] + b


@part
def straight_from(x, mean, a, b, out):
    """out = a (x − mean) + b. Why: beside a large mean, a x loses the digits."""
    for j in range(x.size):
        out[j] = a * (x[j] - mean) + b


@part
def straight_of_two(g, x, mean, a, b, c, out):
    """out = a g + b (x − mean) + c."""
    for j in range(x.size):
        out[j] = a * g[j] + b * (x[j] - mean) + c


@part
def scale_of(var, epsilon, inside):
    """What x − μ is multiplied by."""
    below = np.sqrt(var + epsilon) if inside else np.sqrt(var) + epsilon
    return f32(1) / below


@part
def fall_of(var, scale, inside):
    """How the scale falls with σ; see `slope` in burnbook/ops/norm.py."""
    if inside:
        return scale * scale * scale
    return scale * scale / max(np.sqrt(var), f32(FLOOR))


def served(*arrays: Any) -> bool:
    return all(array is None or plain_f32(array) for array in arrays)


def whole(g: Any) -> Any:
    """The gradient in one piece; that of a mean is one number, seen many times."""
    return np.ascontiguousarray(g) if g.dtype is F32 and not g.flags.carray else g


def line(values: Any, size: int, otherwise: float) -> Any:
    return np.full(size, otherwise, f32) if values is None else values


def grain(elements: int) -> int:
    """How many rows of this size make a part."""
    return max(1, ELEMENTS // elements)
