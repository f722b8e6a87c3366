"""Picking elements by index, adding at indices, and filling by masks.

Each kernel checks its indices as it goes and says whether all were inside; if not, the
plain code runs and raises the error. Elements are moved as whole numbers of their size,
so one kernel serves all types of 4 bytes and one all of 8.

Measured by the family index, of tests/bench.
"""

from math import prod
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.axis_views import I64, as_lines, blocks
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code, exact_part
from burnbook.backend.compiled.runtime.registry import F32, kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import copied, fill, stretched, whole, zeros
from burnbook.ops.index import (
    MANY,
    argwhere,
    gather,
    hot_rows,
    mask_fill,
    mask_where,
    scatter,
    select,
    select_assign,
    too_often,
)

WIDTH = 16  # neighbouring lines of a block: one cache line of every row
WIDE = 256  # the same where whole rows are added
GRAIN = 1 << 16  # elements of a part
SLICES = 1 << 17  # elements of a result
WORDS, PLACES = "i4[:,:,::1], ", "i8[:,:,::1], "
REST = "u1[::1], i8, i8, i8)"
PIECE = 1 << 12  # elements of a row that a flat array is cut into
SHORT = 16  # elements of a row, below which NumPy repeats a mask more quickly
BOOL = np.dtype(np.bool_)
FLOATS, TRUTHS = "f4[:,:,::1], ", "u1[:,::1], "
BITS = {4: np.dtype(np.int32), 8: np.dtype(np.int64)}


@exact_part
def outside(indices, size):
    """Whether one of some indices is; a negative one is huge when read without sign."""
    largest = np.uint64(0)
    for k in range(indices.size):
        i = np.uint64(indices[k])
        largest = i if i > largest else largest
    return indices.size > 0 and largest >= np.uint64(size)


def gather_range(x, indices, out, wrong, width, start, stop):
    """out[o, k, j] = x[o, indices[o, k, j], j] for some blocks of lines.

    Where width is 0 the arrays hold rows: out[o, 0, k] = x[o, 0, indices[o, 0, k]].
    """
    if width == 0:
        for p in range(start, stop):
            line, at, now = x[p, 0], indices[p, 0], out[p, 0]
            if outside(at, line.size):
                wrong[0] = 1
                return
            for k in range(now.size):
                now[k] = line[np.uint64(at[k])]
        return
    n, many, inner = x.shape[1], indices.shape[1], x.shape[2]
    across = (inner + width - 1) // width
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        for k in range(many):
            at, now = indices[o, k], out[o, k]
            for j in range(low, high):
                i = np.uint64(at[j])
                if i >= np.uint64(n):
                    wrong[0] = 1
                    return
                now[j] = x[o, i, j]


gather_4 = exact_code(f"void({WORDS}{PLACES}{WORDS}{REST}")(gather_range)
gather_8 = exact_code(f"void({PLACES * 3}{REST}")(gather_range)


@exact_code(f"void(f4[:,:,::1], {PLACES}f4[:,:,::1], {REST}")
def scatter_range(out, indices, values, wrong, width, start, stop):
    """out[o, indices[o, k, j], j] += values[o, k, j] for some blocks of lines."""
    if width == 0:
        for p in range(start, stop):
            line, at, new = out[p, 0], indices[p, 0], values[p, 0]
            if outside(at, line.size):
                wrong[0] = 1
                return
            for k in range(new.size):
                line[np.uint64(at[k])] += new[k]
        return
    n, many, inner = out.shape[1], indices.shape[1], out.shape[2]
    across = (inner + width - 1) // width
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        for k in range(many):
            at, new = indices[o, k], values[o, k]
            for j in range(low, high):
                i = np.uint64(at[j])
                if i >= np.uint64(n):
                    wrong[0] = 1
                    return
                out[o, i, j] += new[j]


def select_range(x, indices, out, wrong, rows, start, stop):
    """out[o, k] = x[o, indices[k]] for some of these; rows as in gather_range."""
    if rows:
        if outside(indices, x.shape[2]):
            wrong[0] = 1
            return
        for p in range(start, stop):
            line, now = x[p, 0], out[p, 0]
            for k in range(now.size):
                now[k] = line[np.uint64(indices[k])]
        return
    n, many = np.uint64(x.shape[1]), indices.size
    for p in range(start, stop):
        o, i = p // many, np.uint64(indices[p % many])
        if i >= n:
            wrong[0] = 1
            return
        line, now = x[o, i], out[o, p % many]
        for j in range(now.size):
            now[j] = line[j]


SELECT = "u1[::1], b1, i8, i8)"
select_4 = exact_code(f"void({WORDS}i8[::1], {WORDS}{SELECT}")(select_range)
select_8 = exact_code(f"void({PLACES}i8[::1], {PLACES}{SELECT}")(select_range)


@exact_code("void(f4[:,:,::1], i8[::1], f4[:,:,::1], u1[::1], i8, i8, i8)")
def add_range(out, indices, values, wrong, width, start, stop):
    """out[o, indices[k]] += values[o, k] for some blocks of lines."""
    if outside(indices, out.shape[1] if width else out.shape[2]):
        wrong[0] = 1
        return
    many, inner = indices.size, out.shape[2]
    if width == 0:
        for p in range(start, stop):
            line, new = out[p, 0], values[p, 0]
            for k in range(many):
                line[np.uint64(indices[k])] += new[k]
        return
    across = (inner + width - 1) // width
    for p in range(start, stop):
        o, low = p // across, p % across * width
        high = min(low + width, inner)
        for k in range(many):
            i = np.uint64(indices[k])
            line, new = out[o, i, low:high], values[o, k, low:high]
            for j in range(line.size):
                line[j] += new[j]


def cut(
    dim: int, most: int, grain: int, *arrays: Any
) -> tuple[list[Any], int, int, int]:
    """Arrays as lines or rows, the width of a block, how many, and how many a part."""
    n, last = arrays[0].shape[dim], arrays[0].ndim - 1
    if dim % (last + 1) == last:
        rows = [x.reshape(-1, 1, x.shape[last]) for x in arrays]
        return rows, 0, len(rows[0]), max(1, grain // n)
    views = [as_lines(x, dim) for x in arrays]
    outer, n, inner = views[0].shape
    if inner > 1:
        return views, *blocks(views[0], most, grain)
    rows = [v.reshape(outer, 1, v.shape[1]) for v in views]
    return rows, 0, outer, max(1, grain // n)


def fits(x_shape: tuple[int, ...], indices: Any, dim: int) -> bool:
    """Whether indices have the tensor's shape, but for one dim."""
    if indices.ndim != len(x_shape) or not -len(x_shape) <= dim < len(x_shape):
        return False
    if indices.shape == x_shape:
        return True
    pairs = zip(x_shape, indices.shape, strict=True)
    return all(a == b or d == dim % indices.ndim for d, (a, b) in enumerate(pairs))


@kernel(gather)
def gather_kernel(x, indices, *, dim):
    bits = BITS.get(x.dtype.itemsize)
    x, indices = whole(x, x.dtype), whole(indices, I64)
    if bits is None or indices is None or not fits(x.shape, indices, dim):
        return None
    if x.size == 0 or indices.size == 0:
        return None
    out = empty(indices.shape, x.dtype)
    wrong = np.zeros(1, np.uint8)
    arrays = (indices, x.view(bits), out.view(bits))
    (at, *views), width, count, grain = cut(dim, WIDTH, GRAIN, *arrays)
    code = gather_4 if bits.itemsize == 4 else gather_8
    threads.run(code, (views[0], at, views[1], wrong, width), count, grain)
    return None if wrong[0] else out


@kernel(gather.backward)
def gather_back(g, indices, x_shape, *, dim, needs):
    out = zeros(x_shape) if g.dtype is F32 else None
    dx = None if out is None else scattered(out, indices, g, dim)
    return None if dx is None else (dx, None)


@kernel(hot_rows)
def hot_kernel(x, *, size, on, off):
    if type(x) is not np.ndarray or x.dtype.itemsize < 4:
        return None
    places = x.reshape(-1).astype(np.int64, copy=False)
    if places.size and (places.min() < 0 or places.max() >= size):
        return None
    out = fill(empty((*x.shape, size), x.dtype), off)
    starts = np.arange(0, x.size * size, size)
    out.reshape(-1)[starts + places] = on
    return out


@kernel(scatter)
def scatter_kernel(x, indices, values, *, dim):
    x = whole(x)
    return None if x is None else scattered(copied(x), indices, values, dim)


def some_too_often(indices: Any, dim: int, size: int) -> bool:
    """Whether a place of a line comes more than MANY times, or does not exist."""
    if indices.min() < 0 or indices.max() >= size:
        return True
    lines = np.moveaxis(indices, dim, -1).reshape(-1, indices.shape[dim])
    first = np.arange(0, len(lines) * size, size).reshape(-1, 1)
    return too_often(np, lines + first, len(lines) * size)


def scattered(out: Any, indices: Any, values: Any, dim: int) -> Any:
    """Add values to an array of our own."""
    indices, values = whole(indices, I64), whole(values)
    if indices is None or values is None or values.shape != indices.shape:
        return None
    if not fits(out.shape, indices, dim) or out.size == 0 or indices.size == 0:
        return None
    if indices.shape[dim] > MANY and some_too_often(indices, dim, out.shape[dim]):
        return None  # the plain code adds pairwise
    wrong = np.zeros(1, np.uint8)
    arrays = (indices, out, values)
    (at, *views), width, count, grain = cut(dim, WIDTH, GRAIN, *arrays)
    views.insert(1, at)
    threads.run(scatter_range, (*views, wrong, width), count, grain)
    return None if wrong[0] else out


@kernel(select)
def select_kernel(x, indices, *, dim):
    bits = BITS.get(x.dtype.itemsize)
    if bits is None or x.size == 0 or not -x.ndim <= dim < x.ndim:
        return None
    dim %= x.ndim
    x, indices = whole(x, x.dtype), whole(indices, I64)
    if indices is None or indices.ndim != 1 or indices.size == 0:
        return None
    many = indices.size
    if dim < x.ndim - 1 and x.size // x.shape[dim] * many < SLICES:
        return None  # NumPy takes whole slices as quickly
    out = empty((*x.shape[:dim], many, *x.shape[dim + 1 :]), x.dtype)
    wrong = np.zeros(1, np.uint8)
    views = cut(dim, 1, GRAIN, out.view(bits), x.view(bits))
    (target, source), width, count, grain = views
    if width:  # whole slices
        count = target.shape[0] * many
        grain = max(1, GRAIN // target.shape[2])
    code = select_4 if bits.itemsize == 4 else select_8
    threads.run(code, (source, indices, target, wrong, width == 0), count, grain)
    return None if wrong[0] else out


@kernel(select.backward)
def select_back(g, indices, x_shape, *, dim, needs):
    out = zeros(x_shape) if g.dtype is F32 else None
    dx = None if out is None else added(out, indices, g, dim)
    return None if dx is None else (dx, None)


@kernel(select_assign)
def select_assign_kernel(x, indices, values, *, dim):
    x = whole(x)
    return None if x is None else added(copied(x), indices, values, dim)


def added(out: Any, indices: Any, values: Any, dim: int) -> Any:
    """Add whole slices to an array of our own."""
    if out.size == 0 or not -out.ndim <= dim < out.ndim:
        return None
    dim %= out.ndim
    values, indices = whole(values), whole(indices, I64)
    if values is None or indices is None or indices.ndim != 1:
        return None
    if values.shape != (*out.shape[:dim], indices.size, *out.shape[dim + 1 :]):
        return None
    if values.size == 0:
        return None
    if len(indices) > MANY and some_too_often(indices, 0, out.shape[dim]):
        return None  # the plain code adds pairwise
    wrong = np.zeros(1, np.uint8)
    (new, sums), width, count, grain = cut(dim, WIDE, GRAIN, values, out)
    threads.run(add_range, (sums, indices, new, wrong, width), count, grain)
    return None if wrong[0] else out


# A mask may repeat over some dims of the tensor, as that of attention does over heads.


@exact_code(f"void({FLOATS}{TRUTHS}{FLOATS}f4, b1, i8, i8)")
def fill_range(x, mask, out, value, inverted, start, stop):
    """x, but one value where the mask is true (turned: where it is false)."""
    times = x.shape[1]
    filled = np.uint8(0) if inverted else np.uint8(1)
    for p in range(start, stop):
        a = p // times
        line, now, truth = x[a, p % times], out[a, p % times], mask[a]
        for j in range(line.size):
            now[j] = value if truth[j] == filled else line[j]


@exact_code(f"void({FLOATS}{TRUTHS}{FLOATS * 2}i8, i8)")
def blend_range(x, mask, values, out, start, stop):
    """values where the mask is true, x elsewhere."""
    times = x.shape[1]
    for p in range(start, stop):
        a, b = p // times, p % times
        line, new, now, truth = x[a, b], values[a, b], out[a, b], mask[a]
        for j in range(line.size):
            u, v = line[j], new[j]
            now[j] = v if truth[j] else u


@exact_code(f"void({TRUTHS}i8[::1], i8, i8)")
def count_range(mask, counts, start, stop):
    for r in range(start, stop):
        row = mask[r]
        total = 0
        for j in range(row.size):
            total += row[j]
        counts[r] = total


@exact_code(f"void({TRUTHS}i8[::1], i8[:,::1], i8, i8)")
def place_range(mask, ends, out, start, stop):
    """Row and column of what is true in some rows; row r ends at ends[r] in out.

    Why: guessing what is true takes longer than to write each place and step on if so.
    """
    found = np.empty(mask.shape[1] + 1, np.int64)
    for r in range(start, stop):
        row = mask[r]
        many = 0
        for j in range(row.size):
            found[many] = j
            many += row[j]
        target = out[ends[r] - many : ends[r]]
        for i in range(many):
            target[i, 0], target[i, 1] = r, found[i]


def rows_of(shape: tuple[int, ...], mask: Any) -> tuple[int, int, int] | None:
    """The array as [a, b, n], the mask being [a, n]; None where it is neither."""
    if mask.shape == shape:
        size = prod(shape)
        n = PIECE if size % PIECE == 0 else shape[-1] if shape else 1
        return size // n, 1, n
    if mask.ndim != len(shape):
        return None
    start, stop = 0, len(shape)
    while start < stop and mask.shape[start] == shape[start]:
        start += 1
    while stop > start and mask.shape[stop - 1] == shape[stop - 1]:
        stop -= 1
    if mask.shape[start:stop] != (1,) * (stop - start):
        return None
    n = prod(shape[stop:])
    return (prod(shape[:start]), prod(shape[start:stop]), n) if n >= SHORT else None


def filled(x: Any, mask: Any, value: float, inverted: bool = False) -> Any:
    x, mask = whole(x), whole(mask, BOOL)
    if x is None or mask is None or x.size == 0:
        return None
    rows = rows_of(x.shape, mask)
    if rows is None:
        return None
    a, b, n = rows
    out = empty(x.shape)
    views = (x.reshape(rows), mask.view(np.uint8).reshape(a, n), out.reshape(rows))
    number = np.asarray(value, np.float32)[()]
    threads.run(fill_range, (*views, number, inverted), a * b, max(1, GRAIN // n))
    return out


@kernel(mask_fill)
def mask_fill_kernel(x, mask, *, value):
    return filled(x, mask, value)


@kernel(mask_fill.backward)
def mask_fill_back(g, mask, *, value, needs):
    dx = filled(g, mask, 0.0)
    return None if dx is None else (dx, None)


@kernel(mask_where)
def mask_where_kernel(x, mask, values):
    mask = whole(mask, BOOL)
    if mask is None or not (plain_f32(x) and plain_f32(values)):
        return None
    rows = rows_of(x.shape, mask)
    if rows is None or x.size == 0:
        return None
    values = stretched(values, x.shape)
    if values is None:
        return None
    a, b, n = rows
    out = empty(x.shape)
    truths = mask.view(np.uint8).reshape(a, n)
    views = (x.reshape(rows), truths, values.reshape(rows), out.reshape(rows))
    threads.run(blend_range, views, a * b, max(1, GRAIN // n))
    return out


@kernel(mask_where.backward)
def mask_where_back(g, mask, *, needs):
    dx = filled(g, mask, 0.0) if needs[0] else None
    dv = filled(g, mask, 0.0, inverted=True) if needs[2] else None
    if (dx is None and needs[0]) or (dv is None and needs[2]):
        return None
    return dx, None, dv


@kernel(argwhere)
def argwhere_kernel(x):
    x = whole(x, BOOL)
    if x is None or x.ndim != 2 or x.size == 0:
        return None
    truths = x.view(np.uint8)
    counts = np.empty(len(x), np.int64)
    grain = max(1, GRAIN // x.shape[1])
    threads.run(count_range, (truths, counts), len(x), grain)
    ends = np.cumsum(counts)
    out = empty((int(ends[-1]), 2), I64)
    threads.run(place_range, (truths, ends, out), len(x), grain)
    return out
