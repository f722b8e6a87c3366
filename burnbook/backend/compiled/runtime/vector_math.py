"""Exponentials and other functions of one number, for vector registers.

Each is a few products and sums without a branch, so that a loop over it runs on as many
numbers at once as a register holds. Errors are a few units in the last place. NaN gives
NaN, and what e^x makes smaller than 1.2e-38 is zero.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.jit import intrinsic, ir, part_with, types
from burnbook.ops.erf import ERF_SHORT_P, ERF_SHORT_Q

f32, i32 = np.float32, np.int32
# Products and sums may be fused; nothing is reordered: `magic` below depends on it.
FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"contract"},
}
# A function of one number, without a branch, so that loops over it vectorize.
vectorizable = part_with(forceinline=True, **FLAGS)

ZERO, HALF, ONE, TWO = f32(0), f32(0.5), f32(1), f32(2)
LOWEST = f32(-87.33)  # e to this is the smallest number that is not subnormal
LOG2E = f32(1.4426950408889634)
LN2_HIGH, LN2_LOW = f32(0.693359375), f32(-2.12194440e-4)
MAGIC = f32(12582912)  # 1.5 · 2²³: adding it rounds to a whole number, in the low bits
E2, E3, E4, E5, E6, E7 = (
    *(f32(5.0000001201e-1), f32(1.6666665459e-1), f32(4.1665795894e-2)),
    *(f32(8.3334519073e-3), f32(1.3981999507e-3), f32(1.9875691500e-4)),
)
L0, L1, L2, L3 = f32(0.3333332), f32(0.20003836), f32(0.14116979), f32(0.13433774)
P5, P4, P3, P2, P1, P0 = (f32(c) for c in ERF_SHORT_P)
Q5, Q4, Q3, Q2, Q1, Q0 = (f32(c) for c in ERF_SHORT_Q)
SQRT_HALF, INV_SQRT_2PI = f32(0.7071067811865476), f32(0.3989422804014327)
TWO_OVER_SQRT_PI = f32(1.1283791670955126)
SIGN_BIT = i32(-0x80000000)
INFINITY = f32(np.inf)


@intrinsic
def bits_of(typing, x):
    """The 32 bits of a float as a whole number."""

    def build(context, builder, signature, args):
        return builder.bitcast(args[0], ir.IntType(32))

    return types.int32(types.float32), build


@intrinsic
def float_of(typing, x):
    """The float that 32 bits mean."""

    def build(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType())

    return types.float32(types.int32), build


@intrinsic
def fused(typing, a, b, c):
    """a · b + c, rounded once."""

    def build(context, builder, signature, args):
        return builder.fma(*args)

    return types.float32(types.float32, types.float32, types.float32), build


@vectorizable
def expm1_reduced(r):
    """e^r − 1 for |r| ≤ ln 2 / 2."""
    tail = ((((E7 * r + E6) * r + E5) * r + E4) * r + E3) * r + E2
    return tail * (r * r) + r


@vectorizable
def exp_low(x):
    """e^x for x ≤ 0: x = n ln 2 + r, so e^x = 2ⁿ e^r."""
    u = LOWEST if x < LOWEST else x
    shifted = u * LOG2E + MAGIC
    n = shifted - MAGIC
    r = (u - n * LN2_HIGH) - n * LN2_LOW
    power = float_of((bits_of(shifted) << i32(23)) + i32(0x3F800000))
    out = (expm1_reduced(r) + ONE) * power
    return ZERO if x < LOWEST else out


@vectorizable
def expm1_low(x):
    """e^x − 1 for x ≤ 0, exact near zero."""
    u = LOWEST if x < LOWEST else x
    shifted = u * LOG2E + MAGIC
    n = shifted - MAGIC
    r = (u - n * LN2_HIGH) - n * LN2_LOW
    power = float_of((bits_of(shifted) << i32(23)) + i32(0x3F800000))
    return expm1_reduced(r) * power + (power - ONE)


@vectorizable
def log1p_unit(u):
    """ln(1 + u) for 0 ≤ u ≤ 1: 2 artanh(s), s = u / (2 + u)."""
    s = u / (TWO + u)
    y = s * s
    return TWO * s * (ONE + y * (((L3 * y + L2) * y + L1) * y + L0))


@vectorizable
def erf_of(x):
    """The error function: the quotient of burnbook.ops.erf."""
    u = f32(-4) if x < f32(-4) else x
    u = f32(4) if u > f32(4) else u
    y = u * u
    above = ((((P5 * y + P4) * y + P3) * y + P2) * y + P1) * y + P0
    below = ((((Q5 * y + Q4) * y + Q3) * y + Q2) * y + Q1) * y + Q0
    out = u * above / below
    out = -ONE if out < -ONE else out
    return ONE if out > ONE else out


@vectorizable
def sigmoid_of(x):
    """1 / (1 + e⁻ˣ), from e^−|x|, which never overflows."""
    e = exp_low(-abs(x))
    return (ONE if x >= ZERO else e) / (ONE + e)


@vectorizable
def softplus_of(x):
    """ln(1 + eˣ) = max(x, 0) + ln(1 + e^−|x|)."""
    return (x if x > ZERO else ZERO) + log1p_unit(exp_low(-abs(x)))


@vectorizable
def sign_of(x):
    """−1, 0 or 1; NaN gives 0."""
    return (ONE if x > ZERO else ZERO) - (ONE if x < ZERO else ZERO)


@vectorizable
def mish_of(x):
    """x tanh(softplus(x)) = x n / (n + 2), n = eˣ (eˣ + 2), without overflow."""
    e = exp_low(-abs(x))
    up = x >= ZERO
    above = ONE + TWO * e if up else e * (e + TWO)
    return x * (above / (above + (TWO * e * e if up else TWO)))


@vectorizable
def mish_slope(g, x):
    """t + x σ(x) (1 − t²), t = n / (n + 2)."""
    e = exp_low(-abs(x))
    up = x >= ZERO
    above = ONE + TWO * e if up else e * (e + TWO)
    rest = TWO * e * e if up else TWO
    below = above + rest
    gate = (ONE if up else e) / ((ONE + e) * below * below)
    return g * (above / below + x * gate * rest * (below + above))


@vectorizable
def hypot_of(x, y):
    """m √(1 + (n / m)²), m the larger and n the smaller: no square overflows."""
    a, b = abs(x), abs(y)
    most, least = (a, b) if a > b else (b, a)
    ratio = least / most
    out = most * np.sqrt(ONE + ratio * ratio)
    out = most + least if most == ZERO else out
    endless = (a == INFINITY) | (b == INFINITY)
    return INFINITY if endless else out
