"""Exponentials and maxima in whole vector registers.

A loop that calls exp for every number runs number by number. Written out as arithmetic,
sixteen numbers go through it at once; the same holds for the largest of many.
"""

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, part

LOWEST = f32(-87.0)  # the exponential of anything below is 0
LOG2_E = f32(1.44269504)
LN2_HIGH = f32(0.693359375)  # has few digits: n · LN2_HIGH is exact
LN2_LOW = f32(-2.12194440e-4)
SIGN = np.int32(31)
MAGNITUDE = np.int32(0x7FFFFFFF)


@part
def exp_below(x):
    """eˣ for x ≤ 0: 2ⁿ times a polynomial in x − n ln 2, after the Cephes library.

    It is 0 below −87; NaN stays.
    """
    y = LOWEST if x < LOWEST else x
    n = np.floor(y * LOG2_E + f32(0.5))
    r = y - n * LN2_HIGH - n * LN2_LOW
    p = f32(1.9875691500e-4) * r + f32(1.3981999507e-3)
    p = p * r + f32(8.3334519073e-3)
    p = p * r + f32(4.1665795894e-2)
    p = p * r + f32(1.6666665459e-1)
    p = p * r + f32(5.0000001201e-1)
    p = p * r * r + r + f32(1)
    power = np.int32((np.int32(n) + np.int32(127)) << np.int32(23))
    return f32(0) if x < LOWEST else p * power.view(np.float32)


@part
def largest(x):
    """The largest of some floats, found as whole numbers that have the same order.

    Why: a choice between floats must look out for NaN, and so goes one by one.
    """
    bits = x.view(np.int32)
    most = np.int32(-0x80000000)
    for c in range(bits.size):
        i = bits[c]
        key = np.int32(i ^ ((i >> SIGN) & MAGNITUDE))
        most = key if key > most else most
    return np.int32(most ^ ((most >> SIGN) & MAGNITUDE)).view(np.float32)


@part
def exp_and_sum(x, peak):
    """x becomes exp(x − peak), whose sum this gives.

    Why: in place, because a loop that reads and writes the same memory under two names
    runs one by one.
    """
    total = f32(0)
    for c in range(x.size):
        y = exp_below(x[c] - peak)
        x[c] = y
        total += y
    return total
