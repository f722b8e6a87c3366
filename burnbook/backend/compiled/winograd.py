"""Kernels three rows high, for two rows of output at once.

Two sums of three products, over four rows of input that they share, take six
multiplications; four are enough (Winograd; Lavin & Gray, "Fast Algorithms for
Convolutional Neural Networks", 2015, F(2, 3)):

    m₀ = (d₀ − d₂) g₀            m₁ = (d₁ + d₂) (g₀ + g₁ + g₂) / 2
    m₃ = (d₃ − d₁) g₂            m₂ = (d₂ − d₁) (g₀ − g₁ + g₂) / 2
    y₀ = m₀ + m₁ + m₂            y₁ = m₁ − m₂ + m₃

Every number meets only the outputs whose window it lies in, so NaN spreads no further
than in the plain sum; but where that gives infinity this may give NaN.

Measured by W1, inference and the family conv, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.conv_microkernel import (
    REACH,
    SUMS,
    copy_blocks,
    places_of,
    rows_under,
    shifted_sums,
    stops_of,
    whole_steps,
)
from burnbook.backend.compiled.finish import RELU, finish_planes, lines_at_once
from burnbook.backend.compiled.runtime.jit import (
    counting_part,
    f32,
    part,
)
from burnbook.backend.compiled.runtime.simd import LANES, load, rectify, store


@part
def lay_pairs(weight, w):
    """w[m, o / SUMS, tap, o % SUMS]: what the four products take of a kernel's rows."""
    filters, channels, _, columns = weight.shape
    for block in range(filters // SUMS):
        for i in range(SUMS):
            for c in range(channels):
                for b in range(columns):
                    o, k = block * SUMS + i, c * columns + b
                    g0, g1, g2 = (
                        weight[o, c, 0, b],
                        weight[o, c, 1, b],
                        weight[o, c, 2, b],
                    )
                    w[0, block, k, i], w[3, block, k, i] = g0, g2
                    w[1, block, k, i] = (g0 + g1 + g2) * f32(0.5)
                    w[2, block, k, i] = (g0 - g1 + g2) * f32(0.5)


@part
def mix_inputs(v, mixed, x, at, plane, width, planes, pairs):
    """What the four products take of the input, for some pairs of rows of all planes.

    Planes of x begin `plane` apart, those of v `mixed`.
    """
    apart, last = planes * mixed, width - LANES
    for c in range(planes):
        for r in range(pairs):
            j = 0
            while j < width:
                j = min(j, last)
                q, p = at + c * plane + 2 * r * width + j, c * mixed + r * width + j
                d0, d1 = load(x, q), load(x, q + width)
                d2, d3 = load(x, q + 2 * width), load(x, q + 3 * width)
                store(v, p, d0 - d2)
                store(v, p + apart, d1 + d2)
                store(v, p + 2 * apart, d2 - d1)
                store(v, p + 3 * apart, d3 - d1)
                j += LANES


@part
def mix_sums(out, to, high, n, t, reach, width, rows, count, positive):
    """Two rows of n outputs of every pair, but for the last if `rows` is odd.

    positive: what is below zero becomes zero.
    """
    apart, last = SUMS * reach, n - LANES
    for k in range(count):
        for r in range(rows):
            j = 0
            while j < n:
                j = min(j, last)
                p, q = k * reach + (r // 2) * width + j, to + (k * high + r) * n + j
                m1, m2 = load(t, p + apart), load(t, p + 2 * apart)
                odd = r % 2
                y = m1 - m2 + load(t, p + 3 * apart) if odd else load(t, p) + m1 + m2
                store(out, q, rectify(y) if positive else y)
                j += LANES


@counting_part
def correlate_pairs(x, w, begin, out, how, finish, band, start, stop):
    """What `conv.correlate_laid` does, for kernels of three rows side by side.

    band: the first line and the one after the last, of each plane. Lines must have
    LANES numbers or more.
    """
    top, left, _, right, groups, rows, _, columns = how
    c_all, height, width = x.shape[1:]
    h, n = stops_of(x, how)
    is_relu = finish[0] == RELU
    filters, c_each = w.shape[1] * SUMS, w.shape[2] // columns
    o_each, o_all = filters // groups, groups * rows
    padded = width + 2 * left
    pairs = (band[1] - band[0] + 1) // 2
    some = min(max((REACH - n) // padded + 1, 1), pairs)  # pairs at a time
    some = lines_at_once(2 * some, 2, finish) // 2
    plane, mixed = (2 * pairs + 2) * padded, some * padded
    planes = np.zeros(c_all * plane, f32)
    v = np.zeros(4 * c_all * mixed + 2 * LANES + columns * right, f32)
    t = np.empty(4 * SUMS * whole_steps(mixed), f32)
    held = np.empty((SUMS + 1) * 2 * some * n if finish[1] else 0, f32)
    places = places_of(c_each, 1, columns, mixed, 0, right)
    from_x, to_out = x.reshape(x.size), out.reshape(out.size)
    skips, strides = (plane, padded), (height * width, width)
    first, count = rows_under(band, 2, top, height)
    shape, to_planes = (c_all, count, width), (first + top - band[0]) * padded + left
    for i in range(start, stop):
        at = i * c_all * height * width + first * width
        copy_blocks(planes, to_planes, skips, from_x, at, strides, shape)
        for pair in range(0, pairs, some):
            count, line = min(some, pairs - pair), band[0] + 2 * pair
            lines = min(2 * count, band[1] - line)
            reach = whole_steps((count - 1) * padded + n)
            at = 2 * pair * padded
            mix_inputs(v, mixed, planes, at, plane, padded, c_all, count)
            for block in range(filters // SUMS):
                group, below = divmod(block * SUMS, o_each)
                at = group * c_each * mixed
                shifted_sums(
                    v, at, c_all * mixed, places, w, begin, block, t, reach, False
                )
                o, kept = i * o_all + group * rows + below, min(SUMS, rows - below)
                lines_here, planes_here = (line, lines, n), (kept, h)
                if finish[1]:
                    mix_sums(held, 0, lines, n, t, reach, padded, lines, kept, is_relu)
                    sums, to, apart = held, 0, lines * n
                else:
                    sums, to, apart = to_out, (o * h + line) * n, h * n
                    mix_sums(to_out, to, h, n, t, reach, padded, lines, kept, is_relu)
                finish_planes(
                    sums, to, apart, lines_here, to_out, o, planes_here, finish
                )
