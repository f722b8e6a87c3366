"""Numbers of eight bits as files hold them: read exactly, never computed with.

A sign, a few bits of exponent and a few of fraction, as in every float; the formats
differ in how many, and in what stands for infinity and NaN.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np


class Float8(NamedTuple):
    """How one format divides its bits: `bias` is taken from the exponent.

    special: "ieee" has infinities and NaNs in the highest exponent; "fn" one NaN, all
    bits set; "fnuz" one NaN where −0 would be.
    """

    exponent: int
    fraction: int
    bias: int
    special: str


#: By PyTorch's names of them.
FLOAT8 = {
    "f8_e4m3fn": Float8(4, 3, 7, "fn"),
    "f8_e5m2": Float8(5, 2, 15, "ieee"),
    "f8_e4m3fnuz": Float8(4, 3, 8, "fnuz"),
    "f8_e5m2fnuz": Float8(5, 2, 16, "fnuz"),
    "f8_e8m0fnu": Float8(8, 0, 127, "powers"),
}


def widen_float8(bits: np.ndarray, dtype: str) -> np.ndarray:
    """The f32 numbers behind the bits (u8) of a format in FLOAT8, exactly.

    "f8_e8m0fnu" is for scales: powers of two without a sign, 2⁻¹²⁷ to 2¹²⁷.

    Example:
        >>> widen_float8(np.array([0x38, 0xC4, 0x7E], np.uint8), "f8_e4m3fn").tolist()
        [1.0, -3.0, 448.0]
    """
    return _numbers(dtype)[bits]


@functools.cache
def _numbers(dtype: str) -> np.ndarray:
    """The f32 number of every code from 0 to 255."""
    form, codes = FLOAT8[dtype], np.arange(256)
    if form.special == "powers":
        found = np.ldexp(1.0, codes - form.bias)
        found[255] = np.nan
        return found.astype(np.float32)
    highest = (1 << form.exponent) - 1
    exponent = (codes >> form.fraction) & highest
    fraction = codes & ((1 << form.fraction) - 1)
    whole = fraction + np.where(exponent > 0, 1 << form.fraction, 0)
    power = np.maximum(exponent, 1) - form.bias - form.fraction
    found = np.ldexp(whole.astype(np.float64), power)
    if form.special == "ieee":
        found[exponent == highest] = np.inf
        found[(exponent == highest) & (fraction > 0)] = np.nan
    if form.special == "fn":
        found[[0x7F, 0xFF]] = np.nan
    found = np.where(codes > 127, -found, found)
    if form.special == "fnuz":
        found[0x80] = np.nan
    return found.astype(np.float32)
