"""Pooling of one plane where the windows lie side by side, for kernels that hold it.

Measured by W1, inference and the family pool, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.runtime.jit import f32, part
from burnbook.backend.compiled.runtime.simd import LANES, load, store

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


@part
def largest_plane(x, at, width, window, shape, line, out, to):
    """The largest of windows of rows × cols, side by side, of a plane of x; NaN wins.

    shape: how many windows there are; line: room for a row of x.
    """
    rows, cols = window
    used = shape[1] * cols
    best = line[:used]
    for r in range(shape[0]):
        for p in range(used):
            best[p] = x[at + p]
        for k in range(1, rows):
            row = x[at + k * width : at + k * width + used]
            for p in range(used):
                value, so_far = row[p], best[p]
                better = (value > so_far) | (value != value)
                best[p] = value if better else so_far
        for q in range(shape[1]):
            largest = LOWEST
            for k in range(q * cols, (q + 1) * cols):
                value = best[k]
                better = (value > largest) | (value != value)
                largest = value if better else largest
            out[to + q] = largest
        at += rows * width
        to += shape[1]
