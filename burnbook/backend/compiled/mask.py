"""Masks: one value, or other ones, where something is true.

A mask may repeat over some dims of the tensor, as that of attention does over heads.
"""

from math import prod
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.axis_views import I64
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import team
from burnbook.backend.compiled.shape import stretched, whole
from burnbook.ops.index import argwhere, mask_fill, mask_where

GRAIN = 1 << 16
ROW = 1 << 12  # elements of a row that a flat array is cut into
SHORT = 16  # elements of a row, below which NumPy repeats a mask more quickly
BOOL = np.dtype(np.bool_)
TRUTHS = "u1[:,::1], "
ROWS = "f4[:,:,::1], "


@exact_code(f"void({ROWS}{TRUTHS}{ROWS}f4, b1, i8, i8)")
def fill_range(
    x: Any, mask: Any, out: Any, value: Any, turned: bool, start: int, stop: int
) -> None:
    """x, but one value where the mask is true (turned: where it is false)."""
    times = x.shape[1]
    filled = np.uint8(0) if turned else np.uint8(1)
    for p in range(start, stop):
        a = p // times
        line, now, truth = x[a, p % times], out[a, p % times], mask[a]
        for j in range(line.size):
            now[j] = value if truth[j] == filled else line[j]


@exact_code(f"void({ROWS}{TRUTHS}{ROWS * 2}i8, i8)")
def blend_range(
    x: Any, mask: Any, values: Any, out: Any, start: int, stop: int
) -> None:
    """values where the mask is true, x elsewhere."""
    times = x.shape[1]
    for p in range(start, stop):
        a, b = p // times, p % times
        line, new, now, truth = x[a, b], values[a, b], out[a, b], mask[a]
        for j in range(line.size):
            u, v = line[j], new[j]
            now[j] = v if truth[j] else u


@exact_code(f"void({TRUTHS}i8[::1], i8, i8)")
def count_range(mask: Any, counts: Any, start: int, stop: int) -> None:
    for r in range(start, stop):
        row = mask[r]
        total = 0
        for j in range(row.size):
            total += row[j]
        counts[r] = total


@exact_code(f"void({TRUTHS}i8[::1], i8[:,::1], i8, i8)")
def place_range(mask: Any, ends: Any, out: Any, start: int, stop: int) -> None:
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
        n = ROW if size % ROW == 0 else shape[-1] if shape else 1
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


def filled(x: Any, mask: Any, value: float, turned: bool = False) -> Any:
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
    team.run(fill_range, (*views, number, turned), a * b, max(1, GRAIN // n))
    return out


@kernel(mask_fill)
def mask_fill_kernel(x: Any, mask: Any, *, value: float) -> Any:
    return filled(x, mask, value)


@kernel(mask_fill.backward)
def mask_fill_back(g: Any, mask: Any, *, value: float, needs: tuple[bool, ...]) -> Any:
    dx = filled(g, mask, 0.0)
    return None if dx is None else (dx, None)


@kernel(mask_where)
def mask_where_kernel(x: Any, mask: Any, values: Any) -> Any:
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
    team.run(blend_range, views, a * b, max(1, GRAIN // n))
    return out


@kernel(mask_where.backward)
def mask_where_back(g: Any, mask: Any, *, needs: tuple[bool, ...]) -> Any:
    dx = filled(g, mask, 0.0) if needs[0] else None
    dv = filled(g, mask, 0.0, turned=True) if needs[2] else None
    if (dx is None and needs[0]) or (dv is None and needs[2]):
        return None
    return dx, None, dv


@kernel(argwhere)
def argwhere_kernel(x: Any) -> Any:
    x = whole(x, BOOL)
    if x is None or x.ndim != 2 or x.size == 0:
        return None
    truths = x.view(np.uint8)
    counts = np.empty(len(x), np.int64)
    grain = max(1, GRAIN // x.shape[1])
    team.run(count_range, (truths, counts), len(x), grain)
    ends = np.cumsum(counts)
    out = empty((int(ends[-1]), 2), I64)
    team.run(place_range, (truths, ends, out), len(x), grain)
    return out
