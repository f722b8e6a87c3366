"""Weighted sums of shifted stretches, held in registers.

A convolution adds up stretches of its input, each shifted to one tap of the kernel and
weighted. Four sums share every stretch that is read, and leave the vector registers
when they are complete: of four vectors each where registers hold them, or of one.

Measured by W1, inference and the family conv, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.runtime.jit import HELD, counting_part, part
from burnbook.backend.compiled.runtime.simd import (
    LANES,
    broadcast,
    load,
    rectify,
    store,
)

SUMS = 4  # how many sums share what is read
FULL = 4 * LANES  # how far they reach at a time
FITS = HELD >= 4 * SUMS  # whether registers hold so many
REACH = 1024  # numbers of a plane to sum up before the sums are put in their places


@part
def whole_steps(n):
    """n, rounded up so that a loop over vector registers has no rest."""
    return (n + LANES - 1) // LANES * LANES


@part
def stops_of(x, how):
    """The size of what a convolution with stride 1 gives; how: see conv.py."""
    top, left, down, right, _, _, rows, columns = how
    height = x.shape[2] + 2 * top - down * (rows - 1)
    return height, x.shape[3] + 2 * left - right * (columns - 1)


@counting_part
def places_of(channels, rows, columns, plane, down, right):
    """Where each tap of a kernel reads, with planes and taps so far apart."""
    places = np.empty(channels * rows * columns, np.int64)
    for c in range(channels):
        for a in range(rows):
            for b in range(columns):
                k = (c * rows + a) * columns + b
                places[k] = c * plane + a * down + b * right
    return places


@part
def rows_under(band, more, top, height):
    """The first row of an image, and how many, that a band of lines needs.

    more: rows beyond its lines; top: of zeros, above the image.
    """
    first = max(band[0] - top, 0)
    return first, max(min(band[1] + more - top, height) - first, 0)


@part
def shifted_sums(x, at, step, places, w, start, b, t, n, positive):
    """t[m, i, p] = start[m, b, i] + Σₖ w[m, b, k, i] · x[at + step m + placesₖ + p].

    For i < SUMS and p < n, a multiple of LANES; x and t are flat. positive: what is
    below zero becomes zero.
    """
    for m in range(w.shape[0]):
        s0, s1 = broadcast(start[m, b, 0]), broadcast(start[m, b, 1])
        s2, s3 = broadcast(start[m, b, 2]), broadcast(start[m, b, 3])
        first, to, p = at + m * step, m * SUMS * n, 0
        while FITS and p + FULL <= n:
            a0 = a1 = a2 = a3 = s0
            b0 = b1 = b2 = b3 = s1
            c0 = c1 = c2 = c3 = s2
            d0 = d1 = d2 = d3 = s3
            for k in range(places.size):
                q = first + places[k] + p
                u0, u1 = load(x, q), load(x, q + LANES)
                u2, u3 = load(x, q + 2 * LANES), load(x, q + 3 * LANES)
                w0, w1 = broadcast(w[m, b, k, 0]), broadcast(w[m, b, k, 1])
                w2, w3 = broadcast(w[m, b, k, 2]), broadcast(w[m, b, k, 3])
                a0, a1, a2, a3 = a0 + w0 * u0, a1 + w0 * u1, a2 + w0 * u2, a3 + w0 * u3
                b0, b1, b2, b3 = b0 + w1 * u0, b1 + w1 * u1, b2 + w1 * u2, b3 + w1 * u3
                c0, c1, c2, c3 = c0 + w2 * u0, c1 + w2 * u1, c2 + w2 * u2, c3 + w2 * u3
                d0, d1, d2, d3 = d0 + w3 * u0, d1 + w3 * u1, d2 + w3 * u2, d3 + w3 * u3
            store_four(t, to + p, a0, a1, a2, a3, positive)
            store_four(t, to + n + p, b0, b1, b2, b3, positive)
            store_four(t, to + 2 * n + p, c0, c1, c2, c3, positive)
            store_four(t, to + 3 * n + p, d0, d1, d2, d3, positive)
            p += FULL
        while p < n:
            a, e, c, d = s0, s1, s2, s3
            for k in range(places.size):
                u = load(x, first + places[k] + p)
                a, e = (
                    a + broadcast(w[m, b, k, 0]) * u,
                    e + broadcast(w[m, b, k, 1]) * u,
                )
                c, d = (
                    c + broadcast(w[m, b, k, 2]) * u,
                    d + broadcast(w[m, b, k, 3]) * u,
                )
            if positive:
                a, e, c, d = rectify(a), rectify(e), rectify(c), rectify(d)
            store(t, to + p, a)
            store(t, to + n + p, e)
            store(t, to + 2 * n + p, c)
            store(t, to + 3 * n + p, d)
            p += LANES


@part
def store_four(t, at, a, b, c, d, positive):
    """Write four vectors side by side; with `positive`, zero for what is below zero."""
    if positive:
        a, b, c, d = rectify(a), rectify(b), rectify(c), rectify(d)
    store(t, at, a)
    store(t, at + LANES, b)
    store(t, at + 2 * LANES, c)
    store(t, at + 3 * LANES, d)


@part
def copy_blocks(target, to, skips, source, at, strides, shape):
    """Copy blocks of rows of numbers; shape says how many of each.

    skips and strides: how far apart blocks, and rows, begin where they go and are.
    """
    for block in range(shape[0]):
        for r in range(shape[1]):
            a = at + block * strides[0] + r * strides[1]
            b = to + block * skips[0] + r * skips[1]
            if shape[2] < LANES:
                for q in range(shape[2]):
                    target[b + q] = source[a + q]
            else:  # the last vector may begin inside the one before
                last, p = shape[2] - LANES, 0
                while p < last:
                    store(target, b + p, load(source, a + p))
                    p += LANES
                store(target, b + last, load(source, a + last))
