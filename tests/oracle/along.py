"""Slow lengths, hot rows and windows that slide along a dim."""

import math

import numpy as np

from tests.oracle.loops import lines


def length_dim(x, dim):
    return lines(lambda line: math.sqrt(math.fsum(a * a for a in line)), x, dim)


def hot_rows(x, size, on, off):
    out = np.empty((*x.shape, size))
    for place in np.ndindex(out.shape):
        out[place] = on if place[-1] == x[place[:-1]] else off
    return out


def roll(x, shift, dim):
    return lines(
        lambda line: [line[(i - shift) % len(line)] for i in range(len(line))], x, dim
    )


def slide(x, dim, size, step):
    many = (x.shape[dim] - size) // step + 1
    out = np.empty((*x.shape[:dim], many, *x.shape[dim + 1 :], size))
    for place in np.ndindex(out.shape):
        source = list(place[:-1])
        source[dim] = place[dim] * step + place[-1]
        out[place] = x[tuple(source)]
    return out


def slide_back(x, shape, dim, size, step):
    out = np.zeros(shape)
    for place in np.ndindex(x.shape):
        target = list(place[:-1])
        target[dim] = place[dim] * step + place[-1]
        out[tuple(target)] += x[place]
    return out
