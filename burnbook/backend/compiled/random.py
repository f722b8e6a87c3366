"""Normally distributed numbers (Box–Muller), from random bits in one pass.

The bits, the steps and their order are those of burnbook.ops.random. The logarithm, the
sine and the cosine are written out as series in float64, so that eight pairs go through
them at once. They are good to some 1e-15: rounded to float32, it is a number in a
hundred million whose last digit is another than the plain code's.

Measured by the family random (normal), of tests/bench.
"""

import math
from typing import Any

import numpy as np

from burnbook.backend.compiled.dropout import draw
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    exact_flags,
    f32,
    kernel_with,
    part_with,
)
from burnbook.backend.compiled.runtime.registry import F32, flat, kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.random import normal

BLOCK = 512  # pairs, whose bits stay in the first cache
FLAGS: dict[str, Any] = {**exact_flags, "fastmath": {"contract"}}
UNIT = 2.0**-53  # the step between two fractions
QUARTER = math.pi / 2
HALF_ROOT = np.int64(0x3FE6A09E667F3BCD)  # the bits of √½
LN2 = math.log(2.0)
A3, A5, A7, A9, A11, A13, A15, A17, A19, A21 = [1 / n for n in range(3, 22, 2)]
S3, S5, S7, S9, S11, S13, S15 = [
    (-1) ** (n // 2) / math.factorial(n) for n in range(3, 16, 2)
]
C2, C4, C6, C8, C10, C12, C14, C16 = [
    (-1) ** (n // 2) / math.factorial(n) for n in range(2, 17, 2)
]


@part_with(**FLAGS)
def radii(words, out, std):
    """out = std √(−2 ln(1 − u)), where u are the fractions that the words stand for.

    1 − u = 2ᵏ m with m around 1, and ln m = 2 artanh((m − 1) / (m + 1)).
    """
    for i in range(out.size):
        y = np.float64(1.0 - np.int64(words[i] >> np.uint64(11)) * UNIT)
        bits = y.view(np.int64)
        k = (bits - HALF_ROOT) >> np.int64(52)
        m = np.int64(bits - (k << np.int64(52))).view(np.float64)
        s = (m - 1.0) / (m + 1.0)
        z = s * s
        p = ((((A21 * z + A19) * z + A17) * z + A15) * z + A13) * z + A11
        p = ((((p * z + A9) * z + A7) * z + A5) * z + A3) * z
        out[i] = math.sqrt(-2.0 * (k * LN2 + 2.0 * (s + s * p))) * std


@part_with(**FLAGS)
def box_muller(words, radius, first, second, mean):
    """first = mean + r cos 2πv, second = mean + r sin 2πv, from a quarter at a time."""
    for i in range(first.size):
        v = np.int64(words[i] >> np.uint64(11)) * (4.0 * UNIT)
        n = np.floor(v + 0.5)
        r = (v - n) * QUARTER
        z = r * r
        p = (((S15 * z + S13) * z + S11) * z + S9) * z + S7
        sine = ((p * z + S5) * z + S3) * z * r + r
        p = ((((C16 * z + C14) * z + C12) * z + C10) * z + C8) * z + C6
        cosine = ((p * z + C4) * z + C2) * z + 1.0
        quarter = np.int64(n)
        odd = (quarter & 1) == 1
        a = sine if odd else cosine
        b = cosine if odd else sine
        a = -a if ((quarter + 1) & 2) == 2 else a
        b = -b if (quarter & 2) == 2 else b
        first[i] = f32(radius[i] * a + mean)
        second[i] = f32(radius[i] * b + mean)


@kernel_with("void(f4[::1], u8, u8, f8, f8, i8, i8)", **FLAGS)
def draw_normal(out, key_0, key_1, mean, std, start, stop):
    """Some pairs: one number in the first half of out, one in the second."""
    half = (out.size + 1) // 2
    shift = half % 4
    words = np.empty(BLOCK + 4, np.uint64)
    radius, scratch = np.empty(BLOCK), np.empty(BLOCK, f32)
    for low in range(start, stop, BLOCK):
        high = min(low + BLOCK, stop)
        size = high - low
        draw(words, np.uint64(low // 4 + 1), key_0, key_1)
        radii(words[:size], radius[:size], std)
        draw(words, np.uint64((half + low) // 4 + 1), key_0, key_1)
        whole = half + high <= out.size
        second = out[half + low : half + high] if whole else scratch[:size]
        box_muller(
            words[shift : shift + size], radius[:size], out[low:high], second, mean
        )
        if not whole:  # the last one has no place
            out[half + low :] = second[: size - 1]


@kernel(normal)
def normal_kernel(*, shape, mean, std, key, dtype):
    if np.dtype(dtype) is not F32 or 0 in shape:
        return None
    out = empty(shape)
    numbers = (np.uint64(key[0]), np.uint64(key[1]), float(mean), float(std))
    threads.run(draw_normal, (flat(out), *numbers), (out.size + 1) // 2, BLOCK * 8)
    return out
