"""Pooling of one plane where the windows lie side by side, for kernels that hold it.

Measured by W1, inference and the family pool, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, inlined_part, part
from burnbook.backend.compiled.runtime.simd import LANES, larger, load, store

LOWEST = f32(-np.inf)


@part
def add_rows(x, at, width, rows, line, n):
    """Add up every `rows` rows of n numbers, `width` apart, to one row of line."""
    for to in range(0, line.size, n):
        p = 0
        while p < n:
            if n < LANES:
                total = f32(0)
                for k in range(rows):
                    total += x[at + k * width + p]
                line[to + p] = total
                p += 1
            else:
                p = min(p, n - LANES)
                sums = load(x, at + p)
                for k in range(1, rows):
                    sums = sums + load(x, at + k * width + p)
                store(line, to + p, sums)
                p += LANES
        at += rows * width


@part
def average_plane(x, at, width, window, shape, line, out, to):
    """Average windows of rows × cols, side by side, of a plane of x from a place on.

    shape: how many windows there are; line: room for a line of each row of windows.
    """
    rows, cols = window
    count = shape[0] * shape[1]
    share = f32(1 / (rows * cols))
    add_rows(x, at, width, rows, line[: count * cols], shape[1] * cols)
    averages = out[to : to + count]
    if cols == 3:
        for q in range(averages.size):
            total = line[3 * q] + line[3 * q + 1] + line[3 * q + 2]
            averages[q] = total * share
    elif cols == 2:
        for q in range(averages.size):
            averages[q] = (line[2 * q] + line[2 * q + 1]) * share
    else:
        for q in range(averages.size):
            total = f32(0)
            for k in range(q * cols, (q + 1) * cols):
                total += line[k]
            averages[q] = total * share


@inlined_part
def larger_of(a, b):
    """The larger of two numbers, or NaN if one of them is."""
    return b if (b > a) | (b != b) else a


@part
def largest_of_rows(x, at, width, rows, best):
    """best = the largest of rows of x, `width` apart, number by number."""
    used = best.size
    if used < LANES:
        for p in range(used):
            most = x[at + p]
            for k in range(1, rows):
                most = larger_of(most, x[at + k * width + p])
            best[p] = most
        return
    last, p = used - LANES, 0
    while p < used:  # the last vector may begin inside the one before
        p = min(p, last)
        many = load(x, at + p)
        for k in range(1, rows):
            many = larger(many, load(x, at + k * width + p))
        store(best, p, many)
        p += LANES


@part
def largest_of_columns(best, cols, target):
    """target = the largest of every `cols` numbers of best."""
    if cols == 2:
        for q in range(target.size):
            target[q] = larger_of(best[2 * q], best[2 * q + 1])
    elif cols == 3:
        for q in range(target.size):
            two = larger_of(best[3 * q], best[3 * q + 1])
            target[q] = larger_of(two, best[3 * q + 2])
    else:
        for q in range(target.size):
            largest = LOWEST
            for k in range(q * cols, (q + 1) * cols):
                largest = larger_of(largest, best[k])
            target[q] = largest


@part
def largest_plane(x, at, width, window, shape, line, out, to):
    """The largest of windows of rows × cols, side by side, of a plane of x; NaN wins.

    shape: how many windows there are; line: room for a row of x.
    """
    rows, cols = window
    best = line[: shape[1] * cols]
    for _ in range(shape[0]):
        largest_of_rows(x, at, width, rows, best)
        largest_of_columns(best, cols, out[to : to + shape[1]])
        at += rows * width
        to += shape[1]
