"""The small loops that recurrent kernels are made of.

σ and tanh come from one exponential, which is a polynomial and a shift of bits, so that
loops over them run in vector registers.

Measured by W4 and the families lstm and gru, of tests/bench.
"""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, part
from burnbook.backend.compiled.runtime.registry import F32, plain_f32
from burnbook.backend.compiled.runtime.vector_math import float_of

GROUP = 16  # sequences that are carried along together
LEAST = 8  # sequences that a thread takes: the rows of a tile (runtime/gemm.py)
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
def tanh(x):
    """tanh x = m / (m + 2), where m = e²ˣ − 1; exact near 0 too."""
    u = x + x
    u = MOST_TANH if u > MOST_TANH else u
    u = -MOST_TANH if u < -MOST_TANH else u
    s, p = exponential(u)
    m = s * p + (s - ONE)
    return m / (m + ONE + ONE)


@part
def tanhs(z, out):
    """out = tanh z, for two arrays.

    Why: a loop that reads and writes one memory under two names runs one by one.
    """
    for j in range(z.size):
        out[j] = tanh(z[j])


@part
def tanhs_in_place(z):
    """z = tanh z."""
    for j in range(z.size):
        z[j] = tanh(z[j])


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
    return x.dtype is F32 and x.size > 0 and all(map(plain_f32, given))


def zeros_for(held: Any, shape: tuple[int, ...]) -> Any:
    """An input that may be missing; missing ones are zero."""
    return np.zeros(shape, f32) if held is None else held
