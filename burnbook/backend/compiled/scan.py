"""Running sums, products and extremes, and their gradients.

Each element of a line needs the one before it, so lines are worked on side by side:
neighbouring ones in vector registers, or a few rows at a time.

Measured by the family scan, of tests/bench.
"""

from functools import partial
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.axis_views import GRAIN, I64, as_lines, blocks
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code, exact_part, f32, f64
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.scan import RUN, cummax, cummin, cumprod, cumsum, linear_scan

WIDTH = 256  # neighbouring lines of a block
HEAVY = 1 << 15  # elements of a part where each takes long
SUM, PRODUCT, LARGEST, SMALLEST = range(4)
LINES = "f4[:,:,::1], "


@exact_part
def joined(kind, a, b):
    """What a function of pairs makes of two elements; NaN stays."""
    if kind == SUM:
        return a + b
    if kind == PRODUCT:
        return a * b
    if kind == LARGEST:
        return a if a >= b or a != a else b
    return a if a <= b or a != a else b


@exact_part
def scan_row(x, out, kind, number, first, step, begin, end):
    """A part of a row, as if the row began with it; what is reached is a `number`."""
    k = first + step * begin
    a = number(x[k, 0])
    out[k, 0] = f32(a)
    for i in range(begin + 1, end):
        k = first + step * i
        a = joined(kind, a, number(x[k, 0]))
        out[k, 0] = f32(a)
    return a


@exact_part
def scan_four_rows(x, out, kind, number, first, step, begin, end):
    """Each waits for its own last sum, so four take the time of one."""
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
    y0, y1, y2, y3 = out[0], out[1], out[2], out[3]
    k = first + step * begin
    a, b, c, d = number(x0[k, 0]), number(x1[k, 0]), number(x2[k, 0]), number(x3[k, 0])
    y0[k, 0], y1[k, 0], y2[k, 0], y3[k, 0] = f32(a), f32(b), f32(c), f32(d)
    for i in range(begin + 1, end):
        k = first + step * i
        a, b = joined(kind, a, number(x0[k, 0])), joined(kind, b, number(x1[k, 0]))
        c, d = joined(kind, c, number(x2[k, 0])), joined(kind, d, number(x3[k, 0]))
        y0[k, 0], y1[k, 0], y2[k, 0], y3[k, 0] = f32(a), f32(b), f32(c), f32(d)
    return a, b, c, d


@exact_part
def scan_rows(x, out, kind, number, first, step, start, stop):
    n, fours = x.shape[1], start + (stop - start) // 4 * 4
    for p in range(start, fours, 4):
        four = x[p : p + 4], out[p : p + 4]
        scan_four_rows(*four, kind, number, first, step, 0, n)
    for p in range(fours, stop):
        scan_row(x[p], out[p], kind, number, first, step, 0, n)


@exact_part
def lift(flat, first, size, number):
    part = flat[first : first + size]
    for i in range(size):
        part[i] += number


@exact_part
def sum_rows(x, out, first, step, run, start, stop):
    """Running sums that begin anew every `run` elements, from what was reached.

    Why: float64 for every element takes twice as long, and this is as exact as needed.
    """
    n, flat = x.shape[1], out.reshape(out.size)
    fours = start + (stop - start) // 4 * 4
    for p in range(start, fours, 4):
        r0, r1, r2, r3 = f64(0), f64(0), f64(0), f64(0)
        for begin in range(0, n, run):
            end = min(begin + run, n)
            four = x[p : p + 4], out[p : p + 4]
            a, b, c, d = scan_four_rows(*four, SUM, f32, first, step, begin, end)
            if begin:
                low = p * n + min(first + step * begin, first + step * (end - 1))
                lift(flat, low, end - begin, f32(r0))
                lift(flat, low + n, end - begin, f32(r1))
                lift(flat, low + 2 * n, end - begin, f32(r2))
                lift(flat, low + 3 * n, end - begin, f32(r3))
            r0, r1, r2, r3 = r0 + f64(a), r1 + f64(b), r2 + f64(c), r3 + f64(d)
    for p in range(fours, stop):
        r0 = f64(0)
        for begin in range(0, n, run):
            end = min(begin + run, n)
            a = scan_row(x[p], out[p], SUM, f32, first, step, begin, end)
            if begin:
                low = p * n + min(first + step * begin, first + step * (end - 1))
                lift(flat, low, end - begin, f32(r0))
            r0 += f64(a)


@exact_part
def scan_columns(x, out, kind, first, step, low, high):
    """Neighbouring lines, each from the row before; x and out are [n, lines]."""
    line, before = x[first, low:high], out[first, low:high]
    for j in range(before.size):
        before[j] = line[j]
    for i in range(1, x.shape[0]):
        k = first + step * i
        line, now = x[k, low:high], out[k, low:high]
        for j in range(now.size):
            now[j] = joined(kind, before[j], line[j])
        before = now


@exact_part
def multiply_columns(x, out, reached, first, step, low, high):
    """Running products of neighbouring lines, in float64."""
    for i in range(x.shape[0]):
        k = first + step * i
        line, now = x[k, low:high], out[k, low:high]
        if i == 0:
            for j in range(now.size):
                reached[j] = f64(line[j])
        else:
            for j in range(now.size):
                reached[j] *= f64(line[j])
        for j in range(now.size):
            now[j] = f32(reached[j])


@exact_part
def sum_columns(x, out, reached, start, run, first, step, low, high):
    """Running sums of neighbouring lines; every `run` elements begin anew."""
    n = x.shape[0]
    for begin in range(0, n, run):
        end = min(begin + run, n)
        k = first + step * begin
        line, before = x[k, low:high], out[k, low:high]
        for j in range(before.size):
            before[j] = line[j]
        for i in range(begin + 1, end):
            k = first + step * i
            line, now = x[k, low:high], out[k, low:high]
            for j in range(now.size):
                now[j] = before[j] + line[j]
            before = now
        for j in range(before.size):
            start[j] = f32(reached[j])
            reached[j] = reached[j] + f64(before[j]) if begin else f64(before[j])
        if begin:
            for i in range(begin, end):
                now = out[first + step * i, low:high]
                for j in range(now.size):
                    now[j] += start[j]


@exact_code(f"void({LINES * 2}i8, b1, i8, i8, i8, i8)")
def scan_range(x, out, kind, back, run, width, start, stop):
    """A function of pairs, run along the lines of some blocks, from either end.

    Sums begin anew every `run` elements; products run on in float64.
    """
    n, inner = x.shape[1], x.shape[2]
    first, step = (n - 1, -1) if back else (0, 1)
    if inner == 1:
        if kind == SUM:
            sum_rows(x, out, first, step, run, start, stop)
        elif kind == PRODUCT:
            scan_rows(x, out, kind, f64, first, step, start, stop)
        else:
            scan_rows(x, out, kind, f32, first, step, start, stop)
        return
    across = (inner + width - 1) // width
    wide, single = np.empty(width, f64), np.empty(width, f32)
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        if kind == SUM:
            sum_columns(x[o], out[o], wide, single, run, first, step, low, high)
        elif kind == PRODUCT:
            multiply_columns(x[o], out[o], wide, first, step, low, high)
        else:
            scan_columns(x[o], out[o], kind, first, step, low, high)


@exact_part
def linear_row(x, a, y, out, y_first, times, back):
    n = x.shape[0]
    h = f64(0)
    for i in range(n):
        k = n - 1 - i if back else i
        v = f64(x[k, 0])
        if i > 0:
            v += f64(a[k + 1 if back else k, 0]) * h
        h = v
        reached = f32(v)
        if times:
            reached *= y[k - 1, 0] if k > 0 else y_first
        out[k, 0] = reached


@exact_part
def linear_step(line, scale, h, begin):
    """One more element of neighbouring lines."""
    if begin:
        for j in range(line.size):
            h[j] = f64(line[j])
    else:
        for j in range(line.size):
            h[j] = f64(line[j]) + f64(scale[j]) * h[j]


@exact_part
def times_before(h, y, y_first, out, k):
    """Write what was reached, times the y that stands before it."""
    if k > 0:
        for j in range(out.size):
            out[j] = f32(h[j]) * y[j]
    else:
        for j in range(out.size):
            out[j] = f32(h[j]) * y_first


@exact_code(f"void({LINES * 4}f4, b1, b1, i8, i8, i8)")
def linear_range(x, a, y, out, y_first, times, back, width, start, stop):
    """hᵢ = xᵢ + aᵢ hᵢ₋₁, or from the end: hᵢ = xᵢ + aᵢ₊₁ hᵢ₊₁.

    `times`: out is hᵢ yᵢ₋₁, where y_first stands before the first y; else h itself.
    """
    n, inner = x.shape[1], x.shape[2]
    if inner == 1:
        for p in range(start, stop):
            linear_row(x[p], a[p], y[p], out[p], y_first, times, back)
        return
    across = (inner + width - 1) // width
    h = np.empty(width, f64)
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        for i in range(n):
            k = n - 1 - i if back else i
            scale = a[o, k + 1 if back and i > 0 else k, low:high]
            linear_step(x[o, k, low:high], scale, h, i == 0)
            if times:
                before = y[o, max(k - 1, 0), low:high]
                times_before(h, before, y_first, out[o, k, low:high], k)
            else:
                for j in range(high - low):
                    out[o, k, low + j] = f32(h[j])


@exact_part
def runs_row(g, y, out):
    total = f64(0)
    for k in range(g.shape[0] - 1, 0, -1):
        total += f64(g[k, 0])
        begins = y[k, 0] != y[k - 1, 0]
        out[k, 0] = f32(total) if begins else f32(0)
        total = f64(0) if begins else total
    out[0, 0] = f32(total + f64(g[0, 0]))


@exact_code(f"void({LINES * 3}i8, i8, i8)")
def runs_range(g, y, out, width, start, stop):
    """Each run of equal elements hands its gradients to its first element."""
    n, inner = g.shape[1], g.shape[2]
    if inner == 1:
        for p in range(start, stop):
            runs_row(g[p], y[p], out[p])
        return
    across = (inner + width - 1) // width
    total = np.empty(width, f64)
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        total[:] = f64(0)
        for k in range(n - 1, 0, -1):
            slope, now = g[o, k, low:high], out[o, k, low:high]
            line, before = y[o, k, low:high], y[o, k - 1, low:high]
            for j in range(slope.size):
                t = total[j] + f64(slope[j])
                begins = line[j] != before[j]
                now[j] = f32(t) if begins else f32(0)
                total[j] = f64(0) if begins else t
        slope, now = g[o, 0, low:high], out[o, 0, low:high]
        for j in range(slope.size):
            now[j] = f32(total[j] + f64(slope[j]))


def scanned(kind: int, x: Any, *, dim: int, back: bool = False) -> Any:
    x = whole(x)
    if x is None or x.size == 0:
        return None
    out = empty(x.shape)
    lines = as_lines(x, dim)
    width, count, grain = blocks(lines, WIDTH)
    views = (lines, as_lines(out, dim))
    threads.run(scan_range, (*views, kind, back, RUN, width), count, grain)
    return out


def linear(
    x: Any, a: Any, dim: int, y: Any = None, y_first: float = 0.0, back: bool = False
) -> Any:
    """The linear scan; times y, shifted by one place, if a y is given."""
    times = y is not None
    x, a = whole(x), whole(a)
    y = whole(y) if times else x
    if x is None or a is None or y is None or x.size == 0 or x.shape != a.shape:
        return None
    out = empty(x.shape)
    views = tuple([as_lines(v, dim) for v in (x, a, y, out)])
    width, count, grain = blocks(views[0], WIDTH, HEAVY)
    numbers = (f32(y_first), times, back, width)
    threads.run(linear_range, (*views, *numbers), count, grain)
    return out


def add_up(x: Any, out: Any, start: int, stop: int) -> None:
    """NumPy's own running sums of some rows: quick with whole numbers."""
    np.add.accumulate(x[start:stop], axis=1, out=out[start:stop])


@kernel(cumsum)
def cumsum_kernel(x, *, dim):
    if type(x) is np.ndarray and x.dtype is I64 and x.flags.carray and x.size:
        out = empty(x.shape, I64)
        views = (as_lines(x, dim), as_lines(out, dim))
        rows, n, inner = views[0].shape
        threads.run(add_up, views, rows, max(1, GRAIN // (n * inner)))
        return out
    return scanned(SUM, x, dim=dim)


@kernel(cumsum.backward)
def cumsum_back(g, *, dim, needs):
    dx = scanned(SUM, g, dim=dim, back=True)
    return None if dx is None else (dx,)


@kernel(cumprod.backward)
def cumprod_back(g, x, out, *, dim, needs):
    dx = linear(g, x, dim, out, 1.0, back=True)
    return None if dx is None else (dx,)


for _op, _kind in ((cumprod, PRODUCT), (cummax, LARGEST), (cummin, SMALLEST)):
    kernel(_op)(partial(scanned, _kind))


@kernel(cummax.backward)
@kernel(cummin.backward)
def extreme_back(g, out, *, dim, needs):
    g, out = whole(g), whole(out)
    if g is None or out is None or g.size == 0:
        return None
    dx = empty(g.shape)
    lines = as_lines(g, dim)
    width, count, grain = blocks(lines, WIDTH, HEAVY)
    views = (lines, as_lines(out, dim), as_lines(dx, dim))
    threads.run(runs_range, (*views, width), count, grain)
    return (dx,)


@kernel(linear_scan)
def linear_scan_kernel(x, a, *, dim):
    return linear(x, a, dim)


@kernel(linear_scan.backward)
def linear_scan_back(g, a, out, *, dim, needs):
    dx = linear(g, a, dim, back=True) if needs[0] else None
    da = linear(g, a, dim, out, 0.0, back=True) if needs[1] else None
    if (dx is None and needs[0]) or (da is None and needs[1]):
        return None
    return dx, da
