"""Slow codes: one number at a time, small floats by looking at all of them."""

import math

import numpy as np

from tests.oracle.loops import each

RANGES = {"Q8F": (-128, 127), "Q4S": (-7, 7), "Q2S": (-1, 1)}
HALVES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]  # E2M1


def to_codes(x, scale, offset=0, *, value):
    def one(a, s, z):
        if value == "E2M1":
            far = [abs(number - abs(a / s)) for number in HALVES]
            return far.index(min(far)) + (8 if a < 0 else 0)
        low, high = RANGES[value]
        ratio = a / s + z
        away = math.floor(abs(ratio) + 0.5)
        return min(max(int(math.copysign(away, ratio)), low), high)

    return each(one, x, scale, np.asarray(offset).reshape((1, 1)))


def from_codes(codes, scale, offset=0, *, value):
    def one(q, s, z):
        if value == "E2M1":
            return s * HALVES[int(q) % 8] * (-1 if q >= 8 else 1)
        return s * (q - z)

    return each(one, codes, scale, np.asarray(offset).reshape((1, 1)))


def lines(function, x):
    return np.array([function(row.tolist()) for row in x.reshape(-1, x.shape[-1])])


def pack(codes, *, bits, word):
    def one(row):
        each = word // bits
        groups = [row[i : i + each] for i in range(0, len(row), each)]
        return [sum(q << (bits * i) for i, q in enumerate(g)) for g in groups]

    out = lines(one, codes)
    return out.reshape((*codes.shape[:-1], -1))


def unpack(words, *, bits, word, size, signed):
    def one(row):
        text = [format(number, f"0{word}b")[::-1] for number in row]
        parts = [t[i : i + bits][::-1] for t in text for i in range(0, word, bits)]
        found = [int(part, 2) for part in parts[:size]]
        half = 2 ** (bits - 1)
        return [q - 2 * half if signed and q >= half else q for q in found]

    return lines(one, words).reshape((*words.shape[:-1], size))
