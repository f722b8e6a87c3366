"""Shapes and places: reshaping, slices, joining, picking by index."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.exporters.onnx.forms.elementwise import first_value
from burnbook.exporters.onnx.forms.registry import NoForm, form
from burnbook.exporters.onnx.writer import Name, Writer
from burnbook.program import Step, Value

LEAST, MOST = -(1 << 62), 1 << 62  # where a slice has no end


@form("reshape")
def reshape(w: Writer, step: Step, x: Name, *, shape: tuple[Any, ...]) -> Name:
    return w.reshape(x, step.out.shape)


@form("swap_dims")
def swap_dims(w: Writer, step: Step, x: Name, *, dim1: int, dim2: int) -> Name:
    order = [*range(len(first_value(step).shape))]
    order[dim1], order[dim2] = order[dim2], order[dim1]
    return w.node("Transpose", x, perm=order)


@form("permute")
def permute(w: Writer, step: Step, x: Name, *, axes: tuple[Any, ...]) -> Name:
    rank = len(axes)
    return w.node("Transpose", x, perm=[axis % rank for axis in axes])


@form("expand")
def expand(w: Writer, step: Step, x: Name, *, shape: tuple[Any, ...]) -> Name:
    return w.node("Expand", x, w.sizes(step.out.shape))


@form("flip")
def flip(w: Writer, step: Step, x: Name, *, axes: tuple[Any, ...]) -> Name:
    count = len(axes)
    if not count:
        return w.node("Identity", x)
    back = [-1] * count
    ends = w.ints(*back), w.ints(*[LEAST] * count)
    return w.node("Slice", x, *ends, w.ints(*axes), w.ints(*back))


@form("roll")
def roll(w: Writer, step: Step, x: Name, *, shift: int, dim: int) -> Name:
    size = first_value(step).shape[dim]
    if not isinstance(size, int):
        raise NoForm("it rolls along the batch")
    cut = size - shift % size if size else 0
    if cut in (0, size):
        return w.node("Identity", x)
    tail, head = w.slice(x, dim, cut, MOST), w.slice(x, dim, 0, cut)
    return w.node("Concat", tail, head, axis=dim)


@form("slide")
def slide(w: Writer, one: Step, x: Name, *, dim: int, size: int, step: int) -> Name:
    rank = len(first_value(one).shape)
    dim %= rank
    windows = one.out.shape[dim]
    if not isinstance(windows, int):
        raise NoForm("its windows slide along the batch")
    places = np.arange(windows)[:, None] * step + np.arange(size)
    found = w.node("Gather", x, w.constant(places.astype(np.int64)), axis=dim)
    order = [i for i in range(rank + 1) if i != dim + 1] + [dim + 1]
    return w.transpose(found, *order)


@form("cat")
def cat(w: Writer, step: Step, *xs: Name, dim: int) -> Name:
    return w.node("Concat", *xs, axis=dim)


@form("slice")
def slice_(w: Writer, step: Step, x: Name, *, index: tuple[Any, ...]) -> Name:
    given = first_value(step)
    part = _part_of_state(w, given, index)
    if part:
        return w.node("Identity", part)
    axes, starts, stops, steps = [], [], [], []
    for axis, one in enumerate(index):
        whole = one.start in (None, 0) and one.stop is None
        if whole and one.step in (None, 1):
            continue
        pace = 1 if one.step is None else one.step
        low, high = (0, MOST) if pace > 0 else (-1, LEAST)
        axes.append(axis)
        starts.append(low if one.start is None else one.start)
        stops.append(high if one.stop is None else one.stop)
        steps.append(pace)
    if not axes:
        return w.node("Identity", x)
    ends = w.sizes(starts), w.sizes(stops)
    return w.node("Slice", x, *ends, w.ints(*axes), w.ints(*steps))


def _part_of_state(w: Writer, given: Value, index: tuple[Any, ...]) -> Name:
    """The rows of an LSTM's states, or of its last memory, where a slice takes them."""
    parts = w.parts.get(given)
    if parts is None or index[1:] not in ((), (slice(None),)):
        rest = index[1] if parts is not None and len(index) == 2 else None
        if rest is None or (rest.start or 0, rest.stop) != (0, given.shape[1]):
            return ""
    rows, (states, memory, between) = index[0], parts or ("", "", None)
    if (rows.start or 0) == 0 and rows.stop == between:
        return states
    if rows.start == between and rows.stop in (None, given.shape[0]):
        return memory
    return ""


def _block(
    shape: tuple[Any, ...], index: tuple[Any, ...]
) -> list[tuple[int, int, int] | None]:
    """For each dim where a block begins, its length, and what follows; None: all of it.

    Raises NoForm where that follows the batch, or has gaps.
    """
    found: list[tuple[int, int, int] | None] = []
    for axis, size in enumerate(shape):
        one = index[axis] if axis < len(index) else slice(None)
        if one.step not in (None, 1):
            raise NoForm("it fills every n-th place")
        if one.start in (None, 0) and one.stop in (None, size):
            found.append(None)
            continue
        if not isinstance(size, int):
            raise NoForm("it fills a part of the batch")
        start, stop, _ = one.indices(size)
        found.append((start, max(stop - start, 0), size - max(stop, start)))
    return found


def _pads(block: list[tuple[int, int, int] | None]) -> list[int]:
    ends = [(0, 0, 0) if part is None else part for part in block]
    return [start for start, _, _ in ends] + [rest for _, _, rest in ends]


@form("slice_assign")
def slice_assign(
    w: Writer, step: Step, x: Name, values: Name, *, index: tuple[Any, ...]
) -> Name:
    """The values between zeros, chosen where a mask says so."""
    given = first_value(step)
    block = _block(given.shape, index)
    chosen = np.ones((), bool)
    for part in block:
        line = np.ones(1, bool)
        if part is not None:
            line = np.repeat([False, True, False], part)
        chosen = chosen[..., None] & line
    pads = w.ints(*_pads(block))
    if given.dtype.kind == "b":
        wide = w.cast(w.node("Pad", w.cast(values, np.int32), pads), bool)
    else:
        wide = w.node("Pad", values, pads)
    return w.node("Where", w.constant(chosen), wide, x)


@form("slice_spread")
def slice_spread(
    w: Writer, step: Step, x: Name, *, index: tuple[Any, ...], shape: tuple[Any, ...]
) -> Name:
    return w.node("Pad", x, w.ints(*_pads(_block(shape, index))))


@form("pad")
def pad(
    w: Writer, step: Step, x: Name, *, widths: tuple[Any, ...], value: float
) -> Name:
    given = first_value(step)
    pads = [low for low, _ in widths] + [high for _, high in widths]
    if given.dtype.kind != "b":
        return w.node("Pad", x, w.sizes(pads), w.number(value, given))
    filled = w.constant(np.array(w.still(value) != 0, np.int32))
    wide = w.node("Pad", w.cast(x, np.int32), w.sizes(pads), filled)
    return w.cast(wide, bool)


@form("gather")
def gather(w: Writer, step: Step, x: Name, indices: Name, *, dim: int) -> Name:
    return w.node("GatherElements", x, indices, axis=dim)


@form("select")
def select(w: Writer, step: Step, x: Name, indices: Name, *, dim: int) -> Name:
    return w.node("Gather", x, indices, axis=dim)


@form("embedding")
def embedding(w: Writer, step: Step, weight: Name, indices: Name) -> Name:
    return w.node("Gather", weight, indices, axis=0)


@form("scatter")
def scatter(
    w: Writer, step: Step, x: Name, indices: Name, values: Name, *, dim: int
) -> Name:
    w.at_least(16, "ScatterElements with sums")
    return w.node("ScatterElements", x, indices, values, axis=dim, reduction="add")


@form("select_assign")
def select_assign(
    w: Writer, step: Step, x: Name, indices: Name, values: Name, *, dim: int
) -> Name:
    w.at_least(16, "ScatterElements with sums")
    shape = step.inputs[2].shape
    line = [1] * len(shape)
    line[dim] = -1
    spread = w.node("Reshape", indices, w.ints(*line))
    spread = w.node("Expand", spread, w.sizes(shape))
    return w.node("ScatterElements", x, spread, values, axis=dim, reduction="add")


@form("select_put")
def select_put(w: Writer, step: Step, x: Name, indices: Name, values: Name) -> Name:
    places = w.node("Unsqueeze", indices, w.ints(-1))
    return w.node("ScatterND", x, places, values)


@form("hot_rows")
def hot_rows(
    w: Writer, step: Step, x: Name, *, size: int, on: float, off: float
) -> Name:
    values = w.constant(np.array([off, on], step.out.dtype))
    depth = w.constant(np.array(size, np.int64))
    return w.node("OneHot", w.cast(x, np.int64), depth, values)


@form("argwhere")
def argwhere(w: Writer, step: Step, x: Name) -> Name:
    return w.node("Transpose", w.node("NonZero", x), perm=[1, 0])
