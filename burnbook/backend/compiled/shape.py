"""Copies: transposing, joining and cutting arrays, by two threads.

A transposed array is copied in tiles, because rows that lie a power of two apart push
each other out of the cache; one with two dims exchanged is copied row by row. The rest
NumPy copies well; what it lacks is a second thread, and memory that was used before.

Measured by W3 (reshape) and the family shape, of tests/bench.
"""

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from burnbook.backend.compiled.half import half_cast
from burnbook.backend.compiled.runtime.axis_views import as_lines
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code
from burnbook.backend.compiled.runtime.registry import F32, kernel
from burnbook.backend.compiled.runtime.simd import LANES, transpose
from burnbook.backend.compiled.runtime.thread_pool import cores, threads
from burnbook.ops.shape import (
    cast,
    cat,
    expand,
    pad,
    recast,
    reshape,
    roll,
    slice_assign,
    slice_spread,
)

SMALL = 1 << 14  # elements; less, NumPy copies as quickly
SHORT = 8  # numbers of 4 bytes in a row that is copied in one go
GRAIN = 1 << 16  # elements of a part
ALONE = 1 << 17  # the same where NumPy does the work
I32 = np.dtype(np.int32)


@exact_code("void(i4[:,:,::1], i4[:,:,::1], i8, i8)")
def transpose_range(x, out, start, stop):
    """Exchange the last two dims, some rows of tiles at a time."""
    m, n = x.shape[1], x.shape[2]
    down = (m + LANES - 1) // LANES
    for p in range(start, stop):
        a, top = p // down, p % down * LANES
        rows = min(LANES, m - top)
        source, target = x[a].reshape(-1), out[a].reshape(-1)
        for left in range(0, n, LANES):
            columns = min(LANES, n - left)
            if rows == LANES and columns == LANES:
                transpose(source, top * n + left, n, target, left * m + top, m)
                continue
            for i in range(columns):
                for j in range(rows):
                    out[a, left + i, top + j] = x[a, top + j, left + i]


@exact_code("void(i4[:,:,:,::1], i4[:,:,:,::1], i8, i8)")
def swap_range(x, out, start, stop):
    """Exchange the two dims in the middle: out[a, b, c] = x[a, c, b]."""
    many = out.shape[1]
    for p in range(start, stop):
        a, b = p // many, p % many
        for c in range(out.shape[2]):
            row, line = x[a, c, b], out[a, b, c]
            for j in range(row.size):
                line[j] = row[j]


def copy_rows(x: np.ndarray, out: np.ndarray, start: int, stop: int) -> None:
    out[start:stop] = x[start:stop]


def fill_rows(out: np.ndarray, value: float, start: int, stop: int) -> None:
    out[start:stop] = value


def copy_into(out: np.ndarray, x: np.ndarray) -> None:
    """out[...] = x, shared out along the longest of the first two dims."""
    if x.size < ALONE:
        out[...] = x
        return
    if x.ndim > 1 and x.shape[1] > x.shape[0]:
        x, out = x.swapaxes(0, 1), out.swapaxes(0, 1)
    threads.run(copy_rows, (x, out), len(x), max(1, ALONE * len(x) // x.size // 2))


def fill(out: np.ndarray, value: float) -> np.ndarray:
    """One value everywhere in an array in one piece."""
    flat = out.reshape(-1)
    threads.run(fill_rows, (flat, value), flat.size, ALONE)
    return out


def zeros(shape: tuple[int, ...]) -> np.ndarray:
    """Float32 zeros."""
    return fill(empty(shape), 0)


def copied(x: np.ndarray) -> np.ndarray:
    """A copy in one piece, in memory that was used before."""
    out = empty(x.shape, x.dtype)
    if x.size and not any(x.strides):  # one number, seen many times
        return fill(out, x.flat[0])
    sizes = None if x.flags.c_contiguous or x.size < SMALL else swapped(x)
    if sizes is None:
        copy_into(out, x)
        return out
    base, (a, c, b, d) = sizes
    if d == 1:
        planes, target = base.reshape(a, c, b), out.view(I32).reshape(a, b, c)
        grain = max(1, GRAIN // (LANES * b))
        threads.run(transpose_range, (planes, target), a * -(-c // LANES), grain)
    else:
        views = (base.reshape(a, c, b, d), out.view(I32).reshape(a, b, c, d))
        threads.run(swap_range, views, a * b, max(1, GRAIN // (c * d)))
    return out


def swapped(x: np.ndarray) -> tuple[Any, tuple[int, ...]] | None:
    """What x is the swap of: an array in one piece, and its sizes [a, c, b, d].

    None where x is no such array, [a, b, c, d], or NumPy copies it as quickly.
    """
    dims = [d for d in range(x.ndim) if x.shape[d] > 1]
    order = sorted(dims, key=lambda d: -x.strides[d])  # as they lie in memory
    base = x.transpose(order + [d for d in range(x.ndim) if x.shape[d] == 1])
    if not base.flags.carray or x.dtype.itemsize not in (4, 8):
        return None
    start, stop = 0, len(dims)
    while start < stop and order[start] == dims[start]:
        start += 1
    while stop > start and order[stop - 1] == dims[stop - 1]:
        stop -= 1
    place = dims.index(order[start]) if start < stop else start
    if order[start:stop] != dims[place:stop] + dims[start:place]:
        return None
    sizes = [
        prod([x.shape[d] for d in group])
        for group in (dims[:start], dims[place:stop], dims[start:place], dims[stop:])
    ]
    words = x.dtype.itemsize // 4
    sizes[3] *= words
    if (sizes[3] == 1 and min(sizes[1:3]) < LANES) or 1 < sizes[3] < SHORT:
        return None
    return base.reshape(-1).view(I32), tuple(sizes)


def whole(x: Any, dtype: np.dtype = F32) -> Any:
    """The array in one piece: itself or a copy; None if it is of another type."""
    if type(x) is not np.ndarray or x.dtype is not dtype:
        return None
    return x if x.flags.carray else copied(x)


def stretched(x: np.ndarray, shape: tuple[int, ...]) -> Any:
    """The array in one piece, its dims of size 1 repeated to a shape; None if others.

    Example:
        >>> stretched(np.arange(2.0).reshape(1, 2), (2, 2)).tolist()
        [[0.0, 1.0], [0.0, 1.0]]
    """
    if x.shape == shape and x.flags.carray:
        return x
    if any(n not in (1, m) for n, m in zip(x.shape, shape, strict=True)):
        return None
    out = empty(shape, x.dtype)
    copy_into(out, np.broadcast_to(x, shape))
    return out


@kernel(reshape)
def reshape_kernel(x, *, shape):
    if type(x) is not np.ndarray or x.flags.c_contiguous or x.dtype.itemsize < 4:
        return None
    try:
        return np.reshape(x, shape, copy=False)
    except TypeError:  # an older NumPy cannot say whether it would copy
        return None
    except ValueError:
        return copied(x).reshape(shape)


@kernel(cat)
def cat_kernel(*xs, dim):
    first = xs[0]
    dtype, ndim = first.dtype, first.ndim
    if not -ndim <= dim < ndim:
        return None
    dim %= ndim
    ends = first.shape[:dim], first.shape[dim + 1 :]
    for x in xs:
        if type(x) is not np.ndarray or x.dtype is not dtype or x.ndim != ndim:
            return None
        if (x.shape[:dim], x.shape[dim + 1 :]) != ends:
            return None
    out = empty((*ends[0], sum([x.shape[dim] for x in xs]), *ends[1]), dtype)
    start, pieces = 0, []
    for x in xs:
        stop = start + x.shape[dim]
        pieces.append((out[(slice(None),) * dim + (slice(start, stop),)], x))
        start = stop
    if out.size < ALONE or ndim == 0:
        copy_pieces(pieces, 0, len(pieces))
    else:
        many = cores()  # all first halves of two, then all second halves
        pieces = [part for i in range(many) for part in slices(pieces, i, many)]
        threads.run(copy_pieces, (pieces,), len(pieces))
    return out


Pieces = list[tuple[np.ndarray, np.ndarray]]


def copy_pieces(pieces: Pieces, start: int, stop: int) -> None:
    for out, x in pieces[start:stop]:
        out[...] = x


def slices(pieces: Pieces, i: int, many: int) -> Pieces:
    """Part i of so many of every piece, along the longer of its first two dims."""
    cut: Pieces = []
    for out, x in pieces:
        if x.ndim > 1 and x.shape[1] > x.shape[0]:
            out, x = out.swapaxes(0, 1), x.swapaxes(0, 1)
        at = slice(len(x) * i // many, len(x) * (i + 1) // many)
        cut.append((out[at], x[at]))
    return cut


@kernel(expand)
def expand_kernel(x, *, shape):
    """What np.broadcast_to gives, whose many questions take most of its time."""
    if type(x) is not np.ndarray or type(shape) is not tuple or x.size == 0:
        return None
    strides = steps(x.shape, shape, x.itemsize) if x.flags.c_contiguous else None
    if strides is None:
        return None
    out = np.ndarray(shape, x.dtype, x, 0, strides)
    out.flags.writeable = False
    return out


@lru_cache(maxsize=1024)
def steps(
    shape: tuple[int, ...], wanted: tuple[int, ...], size: int
) -> tuple[int, ...] | None:
    """How far apart the elements of a stretched array lie: 0 where they are the same.

    Example:
        >>> steps((3, 1, 2), (4, 3, 5, 2), 8)
        (0, 16, 0, 8)
    """
    lead = len(wanted) - len(shape)
    found: list[int] = []
    for old, new in zip(reversed(shape), reversed(wanted), strict=False):
        if new < 0 or old not in (1, new):
            return None
        found.append(size if old == new else 0)
        size *= old
    return (0,) * lead + tuple(reversed(found)) if lead >= 0 else None


@kernel(roll)
def roll_kernel(x, *, shift, dim):
    if type(x) is not np.ndarray or x.size == 0 or x.dtype.itemsize < 4:
        return None
    x = whole(x, x.dtype)
    dim %= x.ndim
    shift %= x.shape[dim]
    out = empty(x.shape, x.dtype)
    lines, target = as_lines(x, dim), as_lines(out, dim)
    rest = x.shape[dim] - shift
    copy_into(target[:, :shift], lines[:, rest:])
    copy_into(target[:, shift:], lines[:, :rest])
    return out


@kernel(slice_assign)
def slice_assign_kernel(x, values, *, index):
    if type(x) is not np.ndarray or x.dtype.itemsize < 4:
        return None
    out = copied(x)
    copy_into(out[index], values)
    return out


@kernel(slice_spread)
def slice_spread_kernel(x, *, index, shape):
    if type(x) is not np.ndarray or x.dtype is not F32:
        return None
    out = zeros(shape)
    copy_into(out[index], x)
    return out


@kernel(pad)
def pad_kernel(x, *, widths, value):
    if type(x) is not np.ndarray or x.dtype is not F32:
        return None
    sizes = zip(x.shape, widths, strict=True)
    out = fill(empty(tuple([a + n + b for n, (a, b) in sizes])), value)
    places = zip(x.shape, widths, strict=True)
    copy_into(out[tuple([slice(a, a + n) for n, (a, _) in places])], x)
    return out


@kernel(cast)
@kernel(recast)
def cast_kernel(x, *, dtype, **attrs):
    dtype = np.dtype(dtype)
    if type(x) is not np.ndarray:
        return None
    if (halves := half_cast(x, dtype)) is not None:
        return halves
    if dtype.itemsize < 4:
        return None
    out = empty(x.shape, dtype)
    copy_into(out, x)
    return out
