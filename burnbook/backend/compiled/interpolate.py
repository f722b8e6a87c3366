"""Interpolation and average pooling: a few places, weighted.

Along each of the last dims, every number of the output is a weighted sum of some of the
input's (see ops/resample.py). Rows are mixed from whole rows; within a row every number
has places of its own. A plane passes through both before the next one is read, so what
lies between stays in the cache.

Measured by the families interpolate and pool, of tests/bench.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import f32, kernel_code, part
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.shape import whole
from burnbook.ops.interpolate import interpolate, interpolate_x, tables
from burnbook.ops.pool.pool import (
    adaptive_avg_pool,
    adaptive_avg_pool_x,
    adaptive_tables,
    average_tables,
    avg_pool,
    avg_pool_x,
)
from burnbook.ops.resample import Taps

GRAIN = 1 << 15  # numbers read and written by a part
TABLE = "i8[:,::1], f4[:,::1], f4[::1], i8[:,::1], f4[::1], "


@part
def mix_numbers(x, out, places, weights, shares, more, added):
    """Mix the numbers of every row, two taps at a time."""
    for i in range(out.shape[0]):
        row, line = x[i], out[i]
        for t in range(0, places.shape[0], 2):
            p, u = places[t], weights[t]
            if t + 1 == places.shape[0]:
                for q in range(line.size):
                    line[q] = u[q] * row[p[q]] + (line[q] if t else f32(0))
                continue
            r, v = places[t + 1], weights[t + 1]
            if t:
                for q in range(line.size):
                    line[q] += u[q] * row[p[q]] + v[q] * row[r[q]]
            else:
                for q in range(line.size):
                    line[q] = u[q] * row[p[q]] + v[q] * row[r[q]]
        for q in range(line.size):
            line[q] = line[q] * shares[q] if shares[q] else f32(0)
        for e in range(added.size):
            line[more[0, e]] += added[e] * row[more[1, e]]


@part
def add_rows(x, out, more, added):
    for e in range(added.size):
        line, a, u = out[more[0, e]], x[more[1, e]], added[e]
        for q in range(line.size):
            line[q] += u * a[q]


@part
def mix_rows(x, out, places, weights, shares, more, added):
    """Mix the rows of a plane, two taps at a time."""
    for i in range(out.shape[0]):
        line, share = out[i], shares[i]
        for t in range(0, places.shape[0], 2):
            a, u = x[places[t, i]], weights[t, i]
            if t + 1 == places.shape[0]:
                for q in range(line.size):
                    line[q] = u * a[q] + (line[q] if t else f32(0))
                continue
            b, v = x[places[t + 1, i]], weights[t + 1, i]
            if t:
                for q in range(line.size):
                    line[q] += u * a[q] + v * b[q]
            else:
                for q in range(line.size):
                    line[q] = u * a[q] + v * b[q]
        if share != 1:
            for q in range(line.size):
                line[q] = line[q] * share if share else f32(0)
    add_rows(x, out, more, added)


@kernel_code(f"void(f4[:,:,::1], f4[:,:,::1], {TABLE * 2}i8, i8)")
def mix_range(
    x,
    out,
    rows,
    row_weights,
    row_shares,
    more_rows,
    added_rows,
    places,
    weights,
    shares,
    more,
    added,
    start,
    stop,
):
    """Mix rows, and the numbers of every row, of some planes; no places: leave them.

    Why: numbers are dearer than rows, so there should be few rows when they are mixed.
    """
    down, across = rows.shape[0] > 0, places.shape[0] > 0
    early = x.shape[1] < out.shape[1]  # numbers first
    shape = (x.shape[1], out.shape[2]) if early else (out.shape[1], x.shape[2])
    between = np.empty(shape, f32)
    for i in range(start, stop):
        if across and (early or not down):
            target = between if down else out[i]
            mix_numbers(x[i], target, places, weights, shares, more, added)
        if down:
            source = between if across and early else x[i]
            target = between if across and not early else out[i]
            mix_rows(
                source, target, rows, row_weights, row_shares, more_rows, added_rows
            )
            if across and not early:
                mix_numbers(between, out[i], places, weights, shares, more, added)


def _mixed(x: Any, tables: Sequence[Taps]) -> Any:
    """Mix the last dims of x, one table for each, unless it changes nothing."""
    x = whole(x)
    if x is None or x.size == 0:
        return None
    changes = [None if table.changes_nothing else table for table in tables]
    if not any(changes):
        return None
    lead, sizes = x.shape[:2], [table.size for table in tables]
    *deep, down, across = (None, *changes)[-3:]
    depth = deep[0] if len(tables) == 3 else None
    if depth and depth.size < depth.size_in:  # whatever keeps the later passes small
        x, depth = _deep(x, depth), None
    out = x
    if down or across:
        planes = x.reshape(-1, *(1, *x.shape[2:])[-2:])
        out = _planes(planes, tuple((1, *sizes)[-2:]), down, across)
    if depth:
        out = _deep(out.reshape(*lead, -1, *sizes[1:]), depth)
    return out.reshape(*lead, *sizes)


def _deep(x: Any, depth: Taps) -> Any:
    """Mix whole planes of volumes [n, c, d, h, w]."""
    n, c, d, h, w = x.shape
    out = _planes(x.reshape(n * c, d, h * w), (depth.size, h * w), depth, None)
    return out.reshape(n, c, depth.size, h, w)


def _planes(x: Any, size: tuple[int, ...], down: Taps | None, across: Any) -> Any:
    """Mix the rows and numbers of planes [n, h, w]."""
    out = empty((len(x), *size))
    each = (x.size + out.size) // len(x)
    threads.run(
        mix_range,
        (x, out, *_table(down), *_table(across)),
        len(x),
        max(1, GRAIN // each),
    )
    return out


@lru_cache(128)
def _table(taps: Taps | None) -> tuple[np.ndarray, ...]:
    """A table as the kernel reads it: places, weights, shares, and what is left over.

    Every row has as many taps as an average row. Where there are fewer, the last one is
    cut in halves; where there are more, the others are listed. Without a tap, the share
    is 0. Where nothing changes there are no places.
    """
    if taps is None:
        return _arrays(np.zeros((0, 1)), np.zeros((0, 1)), [], np.zeros((2, 0)), [])
    counts = np.bincount(taps.rows, minlength=taps.size)
    own = np.ones(taps.size) if taps.shares is None else taps.shares
    weights = taps.weights if taps.shares is None else np.ones(len(taps.rows))
    width = -(-len(taps.rows) // max(1, np.count_nonzero(counts)))
    turn = np.arange(len(taps.rows)) - np.searchsorted(taps.rows, taps.rows)
    more = turn >= width
    t = np.arange(width)[:, None]
    entry = np.cumsum(counts) - counts + np.minimum(t, counts - 1)
    entry = entry.clip(0, max(len(taps.rows) - 1, 0))
    halved = np.where(t < counts - 1, 0, np.minimum(t - counts + 2, width - counts))
    added = weights[more] * own[taps.rows[more]]
    return _arrays(
        taps.places[entry],
        weights[entry] * 0.5 ** halved.clip(0),
        np.where(counts > 0, own, 0),
        np.stack([taps.rows[more], taps.places[more]]),
        added,
    )


def _arrays(places: Any, weights: Any, shares: Any, more: Any, added: Any) -> Any:
    """In the types that the kernel is compiled for."""
    numbers = [np.ascontiguousarray(a, np.int64) for a in (places, more)]
    floats = [np.ascontiguousarray(a, np.float32) for a in (weights, shares, added)]
    return numbers[0], floats[0], floats[1], numbers[1], floats[2]


@kernel(interpolate)
def interpolate_kernel(x, *, output_size, mode, align_corners):
    return _mixed(x, tables(x.shape[2:], output_size, mode, align_corners))


@kernel(interpolate_x)
def interpolate_x_kernel(dout, *, x_shape, output_size, mode, align_corners):
    mixed = tables(x_shape[2:], output_size, mode, align_corners)
    return _mixed(dout, [table.turned() for table in mixed])


@kernel(avg_pool)
def avg_pool_kernel(x, *, kernel_size, stride, padding, count_include_pad, ceil_mode):
    sizes = (kernel_size, stride, padding)
    flags = count_include_pad, ceil_mode
    return _mixed(x, average_tables(x.shape[2:], *sizes, *flags))


@kernel(avg_pool_x)
def avg_pool_x_kernel(
    dout, *, x_shape, kernel_size, stride, padding, count_include_pad, ceil_mode
):
    sizes = (kernel_size, stride, padding)
    flags = count_include_pad, ceil_mode
    mixed = average_tables(x_shape[2:], *sizes, *flags)
    return _mixed(dout, [table.turned() for table in mixed])


@kernel(adaptive_avg_pool)
def adaptive_avg_pool_kernel(x, *, output_size):
    return _mixed(x, adaptive_tables(x.shape[2:], output_size))


@kernel(adaptive_avg_pool_x)
def adaptive_avg_pool_x_kernel(dout, *, x_shape):
    mixed = adaptive_tables(x_shape[2:], dout.shape[2:])
    return _mixed(dout, [table.turned() for table in mixed])
