"""Sums, products and extremes along a dim, and their gradients.

Lines that lie side by side are added in vector registers, in blocks of rows: an error
of rounding then grows with the number of blocks, and not with that of the rows. A whole
array is added in rows of one length, whatever the number of threads, so results stay
the same.

Measured by W1, W3 (sums) and the families reduce and scan (prod), of tests/bench.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.axis_views import GRAIN, I64, as_lines, blocks
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import (
    exact_code,
    exact_part,
    f32,
    kernel_code,
    part,
)
from burnbook.backend.compiled.runtime.registry import F32, kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole, zeros
from burnbook.ops import reduce as ops
from burnbook.ops.reduce import length_of_any_size, squares_fit
from burnbook.ops.scan import prod, prod_dim

SUM, PRODUCT, SQUARES = range(3)
WIDTH = 512  # neighbouring lines of a block
SIDE = 64  # lines side by side that are worth a vector loop
TALL = 1 << 11  # elements of a line from which some of them are laid side by side
HEIGHT = 64  # elements of a line that are added before their total is
ROW = 1 << 12  # elements of a row that a whole array is cut into
LONG = 32  # elements of a row in which NumPy finds the extreme more quickly
TILE = 64  # rows that are turned at a time
LOW = np.int32(2**31 - 1)
INFINITE = np.int32(0x7F800000)  # the bits of infinity
I32 = np.dtype(np.int32)
LINES = "f4[:,:,::1], "


@part
def sum_of(x):
    total = f32(0)
    for j in range(x.size):
        total += x[j]
    return total


@part
def product_of(x):
    total = f32(1)
    for j in range(x.size):
        total *= x[j]
    return total


@part
def squares_of(x):
    total = f32(0)
    for j in range(x.size):
        total += x[j] * x[j]
    return total


@kernel_code("void(f4[:,::1], f4[::1], i8, i8, i8)")
def total_rows(x, out, kind, start, stop):
    """A total of some rows; long ones are summed in pieces, which loses less."""
    for r in range(start, stop):
        row = x[r]
        if kind == PRODUCT:
            out[r] = product_of(row)
        elif kind == SQUARES:
            total = f32(0)
            for a in range(0, row.size, ROW):
                total += squares_of(row[a : a + ROW])
            out[r] = total
        elif row.size <= ROW:
            out[r] = sum_of(row)
        else:
            total = f32(0)
            for a in range(0, row.size, ROW):
                total += sum_of(row[a : a + ROW])
            out[r] = total


@part
def one_more(total, a, kind):
    if kind == PRODUCT:
        for j in range(total.size):
            total[j] *= a[j]
    elif kind == SQUARES:
        for j in range(total.size):
            total[j] += a[j] * a[j]
    else:
        for j in range(total.size):
            total[j] += a[j]


@part
def total_block(x, o, low, first, last, total, kind):
    """The totals of neighbouring lines from one of their elements to another."""
    high = low + total.size
    fours = first if kind == SQUARES else first + (last - first) // 4 * 4
    total[:] = f32(1) if kind == PRODUCT else f32(0)
    for k in range(first, fours, 4):
        a, b = x[o, k, low:high], x[o, k + 1, low:high]
        c, d = x[o, k + 2, low:high], x[o, k + 3, low:high]
        if kind == PRODUCT:
            for j in range(total.size):
                total[j] = total[j] * a[j] * b[j] * c[j] * d[j]
        else:
            for j in range(total.size):
                total[j] += (a[j] + b[j]) + (c[j] + d[j])
    for k in range(fours, last):
        one_more(total, x[o, k, low:high], kind)


@kernel_code("void(f4[:,:,::1], f4[:,::1], i8, i8, i8, i8)")
def total_columns(x, out, kind, width, start, stop):
    """The same for lines that lie side by side, some blocks of them.

    Why: a sum of blocks of blocks, each of HEIGHT, is as exact as one of halves.
    """
    n, inner = x.shape[1], x.shape[2]
    across = (inner + width - 1) // width
    whole_lines = kind == PRODUCT or n <= HEIGHT
    more = np.empty((2, 1 if whole_lines else width), f32)
    for p in range(start, stop):
        o, low = p // across, p % across * width
        total = out[o, low : min(low + width, inner)]
        if whole_lines:
            total_block(x, o, low, 0, n, total, kind)
            continue
        total[:] = f32(0)
        tall, block = more[0, : total.size], more[1, : total.size]
        for a in range(0, n, HEIGHT * HEIGHT):
            end = min(n, a + HEIGHT * HEIGHT)
            tall[:] = f32(0)
            for k in range(a, end, HEIGHT):
                total_block(x, o, low, k, min(end, k + HEIGHT), block, kind)
                for j in range(total.size):
                    tall[j] += block[j]
            for j in range(total.size):
                total[j] += tall[j]


@exact_part
def best_lines(x, o, low, sign, best, at):
    """The largest elements of neighbouring lines, and their places; NaN is largest."""
    high = low + best.size
    line = x[o, 0, low:high]
    for j in range(best.size):
        best[j] = line[j] * sign
        at[j] = 0
    for k in range(1, x.shape[1]):
        line = x[o, k, low:high]
        i = np.int32(k)
        for j in range(best.size):
            v, b = line[j] * sign, best[j]
            better = (not (v <= b)) & (b == b)
            best[j] = v if better else b
            at[j] = i if better else at[j]


@exact_code("void(f4[:,:,::1], f4, f4[:,::1], i8[:,::1], i8, i8, i8)")
def best_range(x, sign, value, place, width, start, stop):
    """The largest element of each line (times sign), and where the first of them is.

    Rows are turned, some at a time, so that they are lines side by side as well.
    """
    n, inner = x.shape[1], x.shape[2]
    most = max(width, TILE)
    values, spots = np.empty(most, f32), np.empty(most, np.int32)
    if inner == 1:
        tile = np.empty((1, n, TILE), f32)
        for p in range(start, stop, TILE):
            rows = min(TILE, stop - p)
            for r in range(rows):
                row = x[p + r]
                for k in range(n):
                    tile[0, k, r] = row[k, 0]
            best_lines(tile, 0, 0, sign, values[:rows], spots[:rows])
            for r in range(rows):
                value[p + r, 0], place[p + r, 0] = values[r] * sign, spots[r]
        return
    across = (inner + width - 1) // width
    for p in range(start, stop):
        o, low = p // across, p % across * width
        lines = min(width, inner - low)
        best_lines(x, o, low, sign, values[:lines], spots[:lines])
        for j in range(lines):
            value[o, low + j], place[o, low + j] = values[j] * sign, spots[j]


@exact_code("void(i4[:,::1], i4[::1], i4, i8, i8)")
def top_rows(x, out, flip, start, stop):
    """The largest element of some rows (flip −1: the smallest), as whole numbers.

    Why: the bits of floats compare in vector registers once those of negative numbers
    are turned round, and NaN is what lies above infinity without its sign.
    """
    for p in range(start, stop):
        row = x[p]
        top, odd = np.int32(-LOW - 1), np.int32(0)
        for k in range(row.size):
            bits = row[k]
            size = bits & LOW
            odd = max(odd, size)
            key = (bits ^ ((bits >> np.int32(31)) & LOW)) ^ flip
            top = max(top, key)
        top ^= flip
        out[p] = odd if odd > INFINITE else top ^ ((top >> np.int32(31)) & LOW)


@kernel_code("void(f4[:,::1], i8[:,::1], f4[:,:,::1], i8, i8, i8)")
def place_range(g, place, out, width, start, stop):
    """One element of each line is g, at its place; the others are zero."""
    n, inner = out.shape[1], out.shape[2]
    if inner == 1:
        flat = out[start:stop].reshape(-1)
        for k in range(flat.size):
            flat[k] = f32(0)
        for p in range(start, stop):
            out[p, place[p, 0], 0] = g[p, 0]
        return
    across = (inner + width - 1) // width
    spots = np.empty(width, np.int32)
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        slope, at = g[o, low:high], spots[: high - low]
        for j in range(at.size):
            at[j] = np.int32(place[o, low + j])
        for k in range(n):
            line, i = out[o, k, low:high], np.int32(k)
            for j in range(line.size):
                line[j] = slope[j] if at[j] == i else f32(0)


def totals(x: Any, dim: int, kind: int = SUM) -> Any:
    """Totals along a dim, which stays with size 1; None if not served."""
    if not plain_f32(x) or x.size == 0:
        return None
    dim %= x.ndim
    lines = as_lines(x, dim)
    outer, n, inner = lines.shape
    out = empty((*x.shape[:dim], 1, *x.shape[dim + 1 :]))
    if inner == 1:
        grain = max(1, GRAIN // n)
        views = (lines.reshape(outer, n), out.reshape(outer))
        threads.run(total_rows, (*views, kind), outer, grain)
        return None if kind == PRODUCT and has_nan(out) else out
    if kind != PRODUCT and outer == 1 and inner < SIDE and n >= TALL:
        return narrow_totals(lines[0], kind).reshape(out.shape)
    width, count, grain = blocks(lines, WIDTH)
    views = (lines, out.reshape(outer, inner))
    threads.run(total_columns, (*views, kind, width), count, grain)
    return out


def narrow_totals(x: Any, kind: int) -> Any:
    """Totals of the columns of a long and narrow array, read as a wider one.

    Several rows of it side by side fill the vector registers.
    """
    n, inner = x.shape
    several = SIDE // inner
    body = n // several * several
    wide = empty((several + n - body, inner))
    views = (x[:body].reshape(1, -1, several * inner), wide[:several].reshape(1, -1))
    total_columns(*views, kind, several * inner, 0, 1)
    if kind == SQUARES:
        np.square(x[body:], out=wide[several:])
    else:
        wide[several:] = x[body:]
    out = empty((1, inner))
    total_columns(wide.reshape(1, *wide.shape), out, SUM, inner, 0, 1)
    return out


def has_nan(x: Any) -> bool:
    """Whether one of some numbers is NaN: then the sum of their squares is as well."""
    numbers = x.reshape(-1)
    return math.isnan(numbers.dot(numbers))


def row_totals(x: Any, kind: int) -> Any:
    """Totals of the rows that an array is cut into, and of what is left."""
    flat = x.reshape(-1)
    rows, rest = divmod(flat.size, ROW)
    out = np.empty(rows + (rest > 0), F32)
    if rows:
        body = flat[: rows * ROW].reshape(rows, ROW)
        threads.run(total_rows, (body, out[:rows], kind), rows, GRAIN // ROW)
    if rest:
        total_rows(flat[rows * ROW :].reshape(1, rest), out[rows:], kind, 0, 1)
    return out


def total(x: Any) -> Any:
    if not plain_f32(x) or x.size == 0:
        return None
    return np.add.reduce(row_totals(x, SUM), keepdims=True)


@kernel(ops.sum)
def sum_kernel(x):
    return total(x)


@kernel(ops.mean)
def mean_kernel(x):
    out = total(x)
    return None if out is None else out / f32(x.size)


@kernel(ops.sum_dim)
def sum_dim_kernel(x, *, dim):
    return totals(x, dim) if -x.ndim <= dim < x.ndim else None


@kernel(ops.mean_dim)
def mean_dim_kernel(x, *, dim):
    out = sum_dim_kernel(x, dim=dim)
    return None if out is None else np.divide(out, f32(x.shape[dim]), out=out)


@kernel(prod_dim)
def prod_dim_kernel(x, *, dim):
    return totals(x, dim, PRODUCT)


@kernel(prod)
def prod_kernel(x):
    if not plain_f32(x) or x.size == 0:
        return None
    out = np.multiply.reduce(row_totals(x, PRODUCT), keepdims=True)
    return None if np.isnan(out[0]) else out


@kernel(ops.length_dim)
def length_dim_kernel(x, *, dim):
    out = totals(x, dim, SQUARES) if -x.ndim <= dim < x.ndim else None
    if out is None:
        return None
    np.sqrt(out, out=out)
    return out if squares_fit(np, out) else length_of_any_size(np, x, dim)


@kernel(ops.sum_to)
def sum_to_kernel(x, *, shape):
    """One sum for each run of dims that were stretched."""
    wanted = (1,) * (x.ndim - len(shape)) + tuple(shape)
    out, stop = x, x.ndim
    while stop:
        while stop and x.shape[stop - 1] == wanted[stop - 1]:
            stop -= 1
        start = stop
        while start and (
            x.shape[start - 1] != wanted[start - 1] or wanted[start - 1] == 1
        ):
            start -= 1
        if start < stop:
            ends = x.shape[:start], out.shape[stop:]
            out = totals(out.reshape(*ends[0], -1, *ends[1]), start)
            if out is None:
                return None
            out = out.reshape(*ends[0], *(1,) * (stop - start), *ends[1])
        stop = start
    return None if out is x else out.reshape(shape)


def best(x: Any, sign: int, dim: int) -> Any:
    """The largest or smallest elements along a dim, and their places."""
    x = whole(x)
    if x is None or x.size == 0:
        return None
    dim %= x.ndim
    lines = as_lines(x, dim)
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    outer, _, inner = lines.shape
    value, place = empty(shape), empty(shape, I64)
    width, count, grain = blocks(lines, WIDTH, GRAIN // 2)
    views = (value.reshape(outer, inner), place.reshape(outer, inner))
    threads.run(best_range, (lines, f32(sign), *views, width), count, grain)
    return value, place


def long_rows(x: Any, dim: int) -> bool:
    """Whether NumPy finds the extremes of contiguous rows more quickly."""
    return not -x.ndim <= dim < x.ndim or (
        x.shape[dim] >= LONG and dim % x.ndim == x.ndim - 1
    )


def place_of(sign: int, x: Any, *, dim: int) -> Any:
    if long_rows(x, dim):
        return None
    found = best(x, sign, dim)
    return None if found is None else found[1]


def value_of(sign: int, x: Any, *, dim: int) -> Any:
    if not long_rows(x, dim):
        found = best(x, sign, dim)
        return None if found is None else found[0]
    if not -x.ndim <= dim < x.ndim or not plain_f32(x) or x.size == 0:
        return None
    n = x.shape[-1]
    out = empty((*x.shape[:-1], 1))
    rows = (x.view(I32).reshape(-1, n), out.view(I32).reshape(-1))
    flip = np.int32(0 if sign > 0 else -1)
    threads.run(top_rows, (*rows, flip), out.size, max(1, GRAIN // n))
    return out


def extreme_gradient(
    sign: int, g: Any, x: Any, *, dim: int, needs: tuple[bool, ...]
) -> Any:
    """The gradient of an extreme: each goes to the first of the largest elements."""
    x, g = whole(x), whole(g)
    if x is None or g is None or x.size == 0:
        return None
    dim %= x.ndim
    if long_rows(x, dim):
        place = (np.argmax if sign > 0 else np.argmin)(x, axis=dim)
    else:
        place = place_of(sign, x, dim=dim)
    out = empty(x.shape)
    lines = as_lines(out, dim)
    outer, _, inner = lines.shape
    width, count, grain = blocks(lines, WIDTH)
    views = (g.reshape(outer, inner), place.reshape(outer, inner), lines)
    threads.run(place_range, (*views, width), count, grain)
    return (out,)


def whole_gradient(
    find: Callable[..., Any], g: Any, x: Any, *, needs: tuple[bool, ...]
) -> Any:
    """The gradient of the extreme of a whole array."""
    if not plain_f32(x) or x.size == 0 or g.dtype is not F32:
        return None
    out = zeros(x.shape)
    out.reshape(-1)[find(x)] = g[0]
    return (out,)


for _op, _function, _how in (
    (ops.max_dim, value_of, 1),
    (ops.min_dim, value_of, -1),
    (ops.argmax, place_of, 1),
    (ops.argmin, place_of, -1),
    (ops.max_dim.backward, extreme_gradient, 1),
    (ops.min_dim.backward, extreme_gradient, -1),
    (ops.max.backward, whole_gradient, np.argmax),
    (ops.min.backward, whole_gradient, np.argmin),
):
    kernel(_op)(partial(_function, _how))
