"""Max pooling over lines, images and volumes, sixteen at once.

Every image is read as a volume. For sixteen windows side by side, a vector register
holds the largest number of each so far, and another one where it stands. NaN wins over
every number and the first place wins a tie, as in the plain code, bit for bit.

Measured by the family pool, of tests/bench.
"""

import functools
from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    exact_code,
    exact_counting_part,
    exact_part,
    f32,
    inlined_part,
)
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.simd import LANES, broadcast, load, store
from burnbook.backend.compiled.runtime.strided_loads import (
    load_even,
    load_every,
    store_places,
    where_larger,
)
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.conv.windows import Sizes, Windows
from burnbook.ops.pool.pool import max_pool, max_pool_indices, max_pool_x

GRAIN = 1 << 17  # numbers that the windows of a part read; less is done alone
EXACT = 1 << 24  # places of an image: float32 counts so far without a gap
I32 = np.dtype(np.int32)
LOWEST = f32(-np.inf)
ROWS = "void(f4[::1], f4[::1], i4[::1], i8[:,::1], i8, i8)"


@inlined_part
def load_near(source, at, step):
    return load(source, at)


@inlined_part
def load_second(source, at, step):
    return load_even(source, at)


def _windows(read: Callable[..., Any]) -> Callable[..., Any]:
    """The code for windows side by side, for one way to read sixteen of their places.

    Lines of the image lie where they are said to be or, copied, `pitch` apart.
    """

    @exact_part
    def windows(source, begin, pitch, lines, sizes, ends, first, out, winner):
        (taps, stride, apart, known), (q, stop) = sizes, ends
        while q < stop:
            q = min(q, stop - LANES)
            best, place = broadcast(LOWEST), broadcast(f32(known))
            for t in range(lines.size):
                offset = lines[t]
                at = begin + q * stride + (t * pitch if pitch else offset)
                for k in range(
                    0, taps, 3
                ):  # the last place once more does no harm, NaN or not
                    one, two = min(1, taps - k - 1), min(2, taps - k - 1)
                    one, two = one * apart, two * apart
                    x, y = read(source, at, stride), read(source, at + one, stride)
                    z = read(source, at + two, stride)
                    place = where_larger(best, x, place, broadcast(f32(offset)))
                    best = where_larger(best, x, best, x)
                    place = where_larger(best, y, place, broadcast(f32(offset + one)))
                    best = where_larger(best, y, best, y)
                    place = where_larger(best, z, place, broadcast(f32(offset + two)))
                    best = where_larger(best, z, best, z)
                    at, offset = at + 3 * apart, offset + 3 * apart
            store(out, q, best)
            store_places(winner, q, place, first + q * stride, stride)
            q += LANES

    return windows


@exact_part
def find_lines(how, row, lines):
    """Where the lines of an image are that a row of windows reads, and how many.

    And where the first of all is, or its neighbour on the image.
    """
    d, h, w = how[0]
    high, taps_d, taps_h = how[1, 1], how[2, 0], how[2, 1]
    a, b = row // high * how[3, 0] - how[4, 0], row % high * how[3, 1] - how[4, 1]
    count = 0
    for k in range(taps_d):
        for j in range(taps_h):
            y, z = a + k * how[5, 0], b + j * how[5, 1]
            if 0 <= y < d and 0 <= z < h:
                lines[count] = (y * h + z) * w
                count += 1
    return count, (max(a, 0) * h + max(b, 0)) * w


@exact_part
def fill_around(source, z, w, lines, copies, width):
    """Copy stretches of some lines, from z on, with −∞ where there is no image."""
    low, high = min(max(-z, 0), width), max(min(w - z, width), 0)
    for t in range(lines.size):
        line = copies[t * width : (t + 1) * width]
        for j in range(low):
            line[j] = LOWEST
        for j in range(high, width):
            line[j] = LOWEST
        stretch, part = source[lines[t] + max(z, 0) :], line[low:high]
        for j in range(part.size):
            part[j] = stretch[j]


def _rows(read: Callable[..., Any]) -> Callable[..., Any]:
    """The code for whole rows of windows, for one way to read sixteen places."""
    windows = _windows(read)

    @exact_counting_part
    def rows(x, out, winner, how, start, stop):
        image, w = how[0, 0] * how[0, 1] * how[0, 2], how[0, 2]
        each, cols = how[1, 0] * how[1, 1], how[1, 2]
        taps, stride, pad, apart = how[2, 2], how[3, 2], how[4, 2], how[5, 2]
        low = min((pad + stride - 1) // stride, cols)  # windows from here to there
        top = min((w - 1 + pad - (taps - 1) * apart) // stride + 1, cols)  # lie inside
        width = (LANES - 1) * stride + (taps - 1) * apart + 1
        lines = np.empty(how[2, 0] * how[2, 1], np.int64)
        copies = np.empty(lines.size * width, f32)
        some, few = np.empty(LANES, f32), np.empty(LANES, np.int32)
        for p in range(start, stop):
            count, known = find_lines(how, p % each, lines)
            source, seen = x[p // each * image :], lines[:count]
            line, to = out[p * cols : (p + 1) * cols], winner[p * cols : (p + 1) * cols]
            sizes = taps, stride, apart, known
            q = 0
            while q < cols:
                if low <= q < top and top - low >= LANES:
                    windows(source, -pad, 0, seen, sizes, (q, top), -pad, line, to)
                    q = top
                    continue
                q = min(q, max(cols - LANES, 0))
                z = q * stride - pad
                fill_around(source, z, w, seen, copies, width)
                windows(copies, 0, width, seen, sizes, (0, LANES), z, some, few)
                for j in range(min(LANES, cols - q)):
                    line[q + j], to[q + j] = some[j], few[j]
                q += LANES
            for q in range(low):
                if line[q] == LOWEST:  # nothing was larger: the first place, or near it
                    to[q] = known + max(q * stride - pad, 0)

    return rows


rows_near = _rows(load_near)
rows_second = _rows(load_second)
rows_far = _rows(load_every)


@exact_code(ROWS)
def near_range(x, out, winner, how, start, stop):
    rows_near(x, out, winner, how, start, stop)


@exact_code(ROWS)
def second_range(x, out, winner, how, start, stop):
    rows_second(x, out, winner, how, start, stop)


@exact_code(ROWS)
def far_range(x, out, winner, how, start, stop):
    rows_far(x, out, winner, how, start, stop)


@exact_code("void(f4[:,::1], i4[:,::1], f4[:,::1], b1[::1], i8, i8)")
def give_back_range(g, winner, out, outside, start, stop):
    """Every gradient to the place that won, for some planes."""
    for p in range(start, stop):
        line, slopes, places = out[p], g[p], winner[p]
        for j in range(line.size):
            line[j] = f32(0)
        for j in range(slopes.size):
            at = places[j]
            if 0 <= at < line.size:
                line[at] += slopes[j]
            else:
                outside[0] = True


@kernel(max_pool)
def max_pool_kernel(x, *, kernel_size, stride, padding, dilation, ceil_mode):
    x = whole(x)
    if x is None or x.size == 0:
        return None
    settings = (kernel_size, stride, padding, dilation)
    found = _plan(x.shape[2:], *map(tuple, settings), bool(ceil_mode))
    if found is None:
        return None
    code, how, stops, each, grain = found
    n, c = x.shape[:2]
    out, winner = empty((n, c, *stops)), empty((n, c, *stops), I32)
    views = x.reshape(-1), out.reshape(-1), winner.reshape(-1)
    threads.run(code, (*views, how), n * c * each, grain)
    return out, winner


@kernel(max_pool_indices)
def max_pool_indices_kernel(x, **settings):
    found = max_pool_kernel(x, **settings)
    return None if found is None else found[1]


@kernel(max_pool_x)
def max_pool_x_kernel(dout, winner, *, x_shape):
    dout, winner = whole(dout), whole(winner, I32)
    if dout is None or winner is None or dout.size == 0:
        return None
    out, planes = empty(tuple(x_shape)), x_shape[0] * x_shape[1]
    outside = np.zeros(1, bool)
    views = [a.reshape(planes, -1) for a in (dout, winner, out)]
    grain = max(1, GRAIN // (views[0].shape[1] + views[2].shape[1]))
    threads.run(give_back_range, (*views, outside), planes, grain)
    return None if outside[0] else out


@functools.lru_cache(64)
def _plan(
    size: Sizes,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> tuple[Any, np.ndarray, Sizes, int, int] | None:
    """The code, all sizes as those of a volume, the windows, their rows, and the grain.

    None where an image has too many places to count them in float32.
    """
    if prod(size) >= EXACT:
        return None
    sizes = (kernel_size, stride, padding, dilation)
    stops = Windows(size, *sizes, None, ceil_mode).stops
    more = 3 - len(size)
    rows = [(size, 1), (stops, 1), (kernel_size, 1), (stride, 1)]
    rows += [(padding, 0), (dilation, 1)]
    how = np.array([(*[alone] * more, *sizes) for sizes, alone in rows], np.int64)
    code = {1: near_range, 2: second_range}.get(stride[-1], far_range)
    grain = max(1, GRAIN // (stops[-1] * prod(kernel_size)))
    return code, how, stops, prod(stops[:-1]), grain
