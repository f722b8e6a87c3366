"""Slow lengths, hot rows and windows that slide along a dim."""

import math

import numpy as np

from tests.oracle.loops import by_line

length_dim = by_line(lambda line: math.sqrt(math.fsum(a * a for a in line)))


def hot_rows(x, size, on, off):
    out = np.empty((*x.shape, size))
    for place in np.ndindex(out.shape):
        out[place] = on if place[-1] == x[place[:-1]] else off
    return out


@by_line
def roll(line, shift):
    return [line[(i - shift) % len(line)] for i in range(len(line))]


def windows(shape, dim, step):
    """(a place in the windows, where it lies on the array) for every place."""
    for place in np.ndindex(shape):
        there = list(place[:-1])
        there[dim] = place[dim] * step + place[-1]
        yield place, tuple(there)


def slide(x, dim, size, step):
    many = (x.shape[dim] - size) // step + 1
    out = np.empty((*x.shape[:dim], many, *x.shape[dim + 1 :], size))
    for place, source in windows(out.shape, dim, step):
        out[place] = x[source]
    return out


def slide_back(x, shape, dim, size, step):
    out = np.zeros(shape)
    for place, target in windows(x.shape, dim, step):
        out[target] += x[place]
    return out
