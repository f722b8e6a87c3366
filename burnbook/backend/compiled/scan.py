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
from burnbook.backend.compiled.runtime.jit import exact_code, exact_part, f32
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.scan import cummax, cummin, cumprod, cumsum, linear_scan

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
def scan_row(x, out, kind, first, step):
    a = x[first, 0]
    out[first, 0] = a
    for i in range(1, x.shape[0]):
        a = joined(kind, a, x[first + step * i, 0])
        out[first + step * i, 0] = a


@exact_part
def scan_four_rows(x, out, kind, first, step):
    """Each waits for its own last sum, so four take the time of one."""
    x0, x1, x2, x3 = x[0], x[1], x[2], x[3]
    y0, y1, y2, y3 = out[0], out[1], out[2], out[3]
    a, b, c, d = x0[first, 0], x1[first, 0], x2[first, 0], x3[first, 0]
    y0[first, 0], y1[first, 0], y2[first, 0], y3[first, 0] = a, b, c, d
    for i in range(1, x0.shape[0]):
        k = first + step * i
        a, b = joined(kind, a, x0[k, 0]), joined(kind, b, x1[k, 0])
        c, d = joined(kind, c, x2[k, 0]), joined(kind, d, x3[k, 0])
        y0[k, 0], y1[k, 0], y2[k, 0], y3[k, 0] = a, b, c, d


@exact_code(f"void({LINES * 2}i8, b1, i8, i8, i8)")
def scan_range(x, out, kind, back, width, start, stop):
    """A function of pairs, run along the lines of some blocks, from either end."""
    n, inner = x.shape[1], x.shape[2]
    first, step = (n - 1, -1) if back else (0, 1)
    if inner == 1:
        fours = start + (stop - start) // 4 * 4
        for p in range(start, fours, 4):
            scan_four_rows(x[p : p + 4], out[p : p + 4], kind, first, step)
        for p in range(fours, stop):
            scan_row(x[p], out[p], kind, first, step)
        return
    across = (inner + width - 1) // width
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        line, before = x[o, first, low:high], out[o, first, low:high]
        for j in range(before.size):
            before[j] = line[j]
        for i in range(1, n):
            k = first + step * i
            line, now = x[o, k, low:high], out[o, k, low:high]
            for j in range(now.size):
                now[j] = joined(kind, before[j], line[j])
            before = now


@exact_part
def linear_row(x, a, y, out, y_first, times, back):
    n = x.shape[0]
    h = f32(0)
    for i in range(n):
        k = n - 1 - i if back else i
        v = x[k, 0]
        if i > 0:
            v += a[k + 1 if back else k, 0] * h
        h = v
        if times:
            v *= y[k - 1, 0] if k > 0 else y_first
        out[k, 0] = v


@exact_part
def linear_step(line, scale, h, begin):
    """One more element of neighbouring lines."""
    if begin:
        for j in range(line.size):
            h[j] = line[j]
    else:
        for j in range(line.size):
            h[j] = line[j] + scale[j] * h[j]


@exact_part
def times_before(h, y, y_first, out, k):
    """Write what was reached, times the y that stands before it."""
    if k > 0:
        for j in range(out.size):
            out[j] = h[j] * y[j]
    else:
        for j in range(out.size):
            out[j] = h[j] * y_first


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
    h = np.empty(width, f32)
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
                out[o, k, low:high] = h[: high - low]


@exact_part
def runs_row(g, y, out):
    total = f32(0)
    for k in range(g.shape[0] - 1, 0, -1):
        total += g[k, 0]
        begins = y[k, 0] != y[k - 1, 0]
        out[k, 0] = total if begins else f32(0)
        total = f32(0) if begins else total
    out[0, 0] = total + g[0, 0]


@exact_code(f"void({LINES * 3}i8, i8, i8)")
def runs_range(g, y, out, width, start, stop):
    """Each run of equal elements hands its gradients to its first element."""
    n, inner = g.shape[1], g.shape[2]
    if inner == 1:
        for p in range(start, stop):
            runs_row(g[p], y[p], out[p])
        return
    across = (inner + width - 1) // width
    total = np.empty(width, f32)
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        total[:] = f32(0)
        for k in range(n - 1, 0, -1):
            slope, now = g[o, k, low:high], out[o, k, low:high]
            line, before = y[o, k, low:high], y[o, k - 1, low:high]
            for j in range(slope.size):
                t = total[j] + slope[j]
                begins = line[j] != before[j]
                now[j] = t if begins else f32(0)
                total[j] = f32(0) if begins else t
        slope, now = g[o, 0, low:high], out[o, 0, low:high]
        for j in range(slope.size):
            now[j] = total[j] + slope[j]


def scanned(kind: int, x: Any, *, dim: int, back: bool = False) -> Any:
    x = whole(x)
    if x is None or x.size == 0:
        return None
    out = empty(x.shape)
    lines = as_lines(x, dim)
    width, count, grain = blocks(lines, WIDTH)
    threads.run(
        scan_range, (lines, as_lines(out, dim), kind, back, width), count, grain
    )
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
