"""The small loops that recurrent kernels are made of.

Four sequences are carried along together: what is read of a weight serves all four, and
their sums stay in vector registers. σ and tanh come from one exponential, which is a
polynomial and a shift of bits, so that loops over them run in vector registers as well.

Measured by W4 and the families lstm and gru, of tests/bench.
"""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, part
from burnbook.backend.compiled.runtime.registry import F32, plain_f32
from burnbook.backend.compiled.runtime.vector_math import float_of

GROUP = 4  # sequences at a time
ONE, HALF, MOST, MOST_TANH = f32(1), f32(0.5), f32(80), f32(40)
PER_DOUBLING, DOUBLING = f32(1 / math.log(2)), f32(math.log(2))
C2, C3, C4 = f32(1 / 2), f32(1 / 6), f32(1 / 24)
C5, C6, C7 = f32(1 / 120), f32(1 / 720), f32(1 / 5040)
i32 = np.int32
LINE, ROWS, BLOCKS = "f4[::1], ", "f4[:,::1], ", "f4[:,:,::1], "


@part
def exponential(x) -> Any:
    """eˣ = s + s p, where s = 2ᵏ and p = eʳ − 1 for x = k ln 2 + r, |r| ≤ ½ ln 2."""
    k = np.floor(x * PER_DOUBLING + HALF)
    r = x - k * DOUBLING
    p = r * (ONE + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * C7))))))
    return float_of((i32(k) + i32(127)) << i32(23)), p


@part
def sigmoids(z):
    """z = σ(z) = 1 / (1 + e⁻ᶻ)."""
    for j in range(z.size):
        u = -z[j]
        u = MOST if u > MOST else u  # NaN stays
        u = -MOST if u < -MOST else u
        s, p = exponential(u)
        z[j] = ONE / (ONE + s + s * p)


@part
def tanhs(z, out):
    """out = tanh z = m / (m + 2), where m = e²ᶻ − 1; exact near 0 too."""
    for j in range(z.size):
        u = z[j] + z[j]
        u = MOST_TANH if u > MOST_TANH else u
        u = -MOST_TANH if u < -MOST_TANH else u
        s, p = exponential(u)
        m = s * p + (s - ONE)
        out[j] = m / (m + ONE + ONE)


@part
def four_rows(a, k, w0, w1, w2, w3, y):
    """Add four rows of a weight to four sums."""
    y0, y1, y2, y3 = y[0], y[1], y[2], y[3]
    a0, a1, a2, a3 = a[0, k], a[0, k + 1], a[0, k + 2], a[0, k + 3]
    b0, b1, b2, b3 = a[1, k], a[1, k + 1], a[1, k + 2], a[1, k + 3]
    c0, c1, c2, c3 = a[2, k], a[2, k + 1], a[2, k + 2], a[2, k + 3]
    d0, d1, d2, d3 = a[3, k], a[3, k + 1], a[3, k + 2], a[3, k + 3]
    for j in range(y0.size):
        u0, u1, u2, u3 = w0[j], w1[j], w2[j], w3[j]
        y0[j] += a0 * u0 + a1 * u1 + a2 * u2 + a3 * u3
        y1[j] += b0 * u0 + b1 * u1 + b2 * u2 + b3 * u3
        y2[j] += c0 * u0 + c1 * u1 + c2 * u2 + c3 * u3
        y3[j] += d0 * u0 + d1 * u1 + d2 * u2 + d3 * u3


@part
def add_product(a, weight, first, y):
    """y += a · weight, for the columns of the weight from `first` on."""
    last = first + y.shape[1]
    for k in range(0, weight.shape[0], 4):
        w0, w1 = weight[k, first:last], weight[k + 1, first:last]
        w2, w3 = weight[k + 2, first:last], weight[k + 3, first:last]
        four_rows(a, k, w0, w1, w2, w3, y)


@part
def sixteen_sums(a, w0, w1, w2, w3, j, y):
    """Multiply four rows with each of four rows of a weight."""
    a0, a1, a2, a3 = a[0], a[1], a[2], a[3]
    s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = f32(0)
    s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = f32(0)
    for k in range(w0.size):
        u0, u1, u2, u3 = a0[k], a1[k], a2[k], a3[k]
        v0, v1, v2, v3 = w0[k], w1[k], w2[k], w3[k]
        s00, s01, s02, s03 = s00 + u0 * v0, s01 + u0 * v1, s02 + u0 * v2, s03 + u0 * v3
        s10, s11, s12, s13 = s10 + u1 * v0, s11 + u1 * v1, s12 + u1 * v2, s13 + u1 * v3
        s20, s21, s22, s23 = s20 + u2 * v0, s21 + u2 * v1, s22 + u2 * v2, s23 + u2 * v3
        s30, s31, s32, s33 = s30 + u3 * v0, s31 + u3 * v1, s32 + u3 * v2, s33 + u3 * v3
    y[0, j], y[0, j + 1], y[0, j + 2], y[0, j + 3] = s00, s01, s02, s03
    y[1, j], y[1, j + 1], y[1, j + 2], y[1, j + 3] = s10, s11, s12, s13
    y[2, j], y[2, j + 1], y[2, j + 2], y[2, j + 3] = s20, s21, s22, s23
    y[3, j], y[3, j + 1], y[3, j + 2], y[3, j + 3] = s30, s31, s32, s33


@part
def product_transposed(a, weight, first, y):
    """y = a · weightᵀ, for the columns of the weight from `first` on."""
    last = first + a.shape[1]
    for j in range(0, weight.shape[0], 4):
        w0, w1 = weight[j, first:last], weight[j + 1, first:last]
        w2, w3 = weight[j + 2, first:last], weight[j + 3, first:last]
        sixteen_sums(a, w0, w1, w2, w3, j, y)


@part
def copy(target, source):
    for j in range(target.size):
        target[j] = source[j]


@part
def add_vectors(target, a, b):
    for j in range(target.size):
        target[j] = a[j] + b[j]


def served(x: Any, *others: Any) -> bool:
    """Whether a kernel was compiled for these arrays; x itself is copied anyway."""
    given = [held for held in others if held is not None]
    fours = others[1].shape[0] % GROUP == 0
    return fours and x.dtype is F32 and x.size > 0 and all(map(plain_f32, given))


def zeros_for(held: Any, shape: tuple[int, ...]) -> Any:
    """An input that may be missing; missing ones are zero."""
    return np.zeros(shape, f32) if held is None else held
