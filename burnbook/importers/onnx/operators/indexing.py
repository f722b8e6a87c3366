"""Operators that pick and put elements by their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.traced import TracedArray, from_start, take
from burnbook.importers.onnx.values import (
    Value,
    as_array,
    as_tensor,
    indices_of,
    ints,
    mask_of,
    number,
    rearranged,
    rearranged_array,
    reshape,
)
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


@operator("Gather")
def gather(x: Tensor, indices: Value, *, axis: int = 0) -> Tensor:
    """Slices along an axis, one for each index; the indices' dims take its place."""
    shape = tuple(x.value.shape)
    axis %= len(shape)
    places = indices.astype(np.int64).reshape(-1)
    places = from_start(places, shape[axis])
    found = apply(ops.select, x, indices_of(places, x), dim=axis)
    return reshape(found, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


@gather.host
def _(x: Value, indices: Value, *, axis: int = 0) -> Any:
    return take(x, indices.astype(np.int64), axis)


@operator("GatherElements")
def gather_elements(x: Tensor, indices: Value, *, axis: int = 0) -> Tensor:
    """One element for each index, in the same row of all other dims."""
    if isinstance(indices, TracedArray):
        shape = tuple(x.value.shape)
        cut = [slice(0, n, 1) for n in indices.shape]
        cut[axis] = slice(0, shape[axis], 1)
        if tuple(cut) != tuple(slice(0, n, 1) for n in shape):
            x = apply(ops.slice_, x, index=tuple(cut))
        places = indices_of(from_start(indices, shape[axis]), x)
        return apply(ops.gather, x, places, dim=axis % len(shape))
    return rearranged(x, lambda at: _elements(at, indices, axis))


@gather_elements.host
def _(x: Value, indices: Value, *, axis: int = 0) -> Any:
    return _elements(x, indices, axis)


def _elements(x: Value, indices: Value, axis: int) -> Any:
    cut = [slice(0, n) for n in indices.shape]
    cut[axis] = slice(None)
    places = np.where(indices < 0, indices + x.shape[axis], indices)
    return np.take_along_axis(x[tuple(cut)], places, axis)


@operator("GatherND")
def gather_nd(x: Tensor, indices: Value, *, batch_dims: int = 0) -> Tensor:
    """What stands at places of several dims, which the last dim of indices counts."""
    return rearranged(x, lambda at: _nd(at, indices, batch_dims))


@gather_nd.host
def _(x: Value, indices: Value, *, batch_dims: int = 0) -> Any:
    return _nd(x, indices, batch_dims)


def _nd(x: Value, indices: Value, batch_dims: int) -> Any:
    if isinstance(x, TracedArray) or isinstance(indices, TracedArray):
        return _nd_traced(x, indices, batch_dims)
    batch = indices.shape[:batch_dims]
    grid = np.ogrid[tuple(slice(0, n) for n in batch)] if batch else []
    more = indices.ndim - 1 - batch_dims
    grid = [g.reshape(g.shape + (1,) * more) for g in grid]
    return x[(*grid, *np.moveaxis(indices, -1, 0))]


def _nd_traced(x: Value, indices: Value, batch_dims: int) -> Any:
    """The same by places in a line, which a capture follows."""
    if batch_dims:
        return x[indices]  # it is refused with the operator's name
    count = indices.shape[-1]
    sizes, rest = x.shape[:count], x.shape[count:]
    places, stride = None, 1
    for d in reversed(range(count)):
        part = from_start(indices[..., d], sizes[d]) * stride
        places, stride = part if places is None else places + part, stride * sizes[d]
    rows = x.reshape((stride, *rest))
    found = take(rows, places.reshape(-1), 0)  # type: ignore[union-attr] - count > 0
    return found.reshape((*indices.shape[:-1], *rest))


@operator("Slice", lists=True)
def slice_(
    x: Tensor, starts: Value, ends: Value, axes: Value = None, steps: Value = None
) -> Tensor:
    """Stretches along axes; a step below 0 goes backwards."""
    shape = tuple(x.value.shape)
    index = _index(shape, starts, ends, axes, steps)
    if all(part.step > 0 for part in index):
        whole = index == tuple(slice(0, n, 1) for n in shape)
        return x if whole else apply(ops.slice_, x, index=index)
    return rearranged(x, lambda at: at[index])


@slice_.host
def _(
    x: Value, starts: Value, ends: Value, axes: Value = None, steps: Value = None
) -> Any:
    return x[_index(x.shape, starts, ends, axes, steps)]


def _index(
    shape: tuple[int, ...], starts: Value, ends: Value, axes: Value, steps: Value
) -> tuple[slice, ...]:
    begin, end = ints(starts), ints(ends)
    along = list(range(len(begin))) if axes is None else ints(axes)
    step = [1] * len(begin) if steps is None else ints(steps)
    index: list[Any] = [slice(0, n, 1) for n in shape]
    for a, b, e, s in zip(along, begin, end, step, strict=True):
        start, stop, by = slice(b, e, s).indices(shape[a])
        if by > 0:
            index[a] = slice(start, max(start, stop), by)
        else:
            index[a] = slice(start, None if stop < 0 else stop, by)
    return tuple(index)


def _scattered(x: Value, places: Value, values: Value, reduction: str) -> Any:
    """Values put to places of a flat array, one after another."""
    found = x.reshape(-1).copy()
    places, values = places.reshape(-1), values.reshape(-1)
    joined = {
        "add": np.add,
        "mul": np.multiply,
        "max": np.maximum,
        "min": np.minimum,
    }
    if reduction == "none":
        found[places] = values
    else:
        joined[reduction].at(found, places, values)
    return found.reshape(x.shape)


def _scatter(x: Tensor, places: Value, values: Tensor, reduction: str) -> Tensor:
    """The same with gradients, where values are put or added."""
    count = int(np.prod(x.value.shape, dtype=np.int64))
    flat, places = reshape(x, (count,)), places.reshape(-1)
    values = reshape(values, (places.size,))
    if reduction == "none":
        last = np.full(count, -1)
        last[places] = np.arange(places.size)
        taken = last >= 0
        kept = apply(ops.mask_fill, flat, mask_of(taken, x), value=0.0)
        chosen = last[taken]
        values = apply(ops.select, values, indices_of(chosen, x), dim=0)
        order = indices_of(np.flatnonzero(taken), x)
        found = apply(ops.select_assign, kept, order, values, dim=0)
    elif reduction == "add":
        found = apply(ops.select_assign, flat, indices_of(places, x), values, dim=0)
    else:
        made = _scattered(as_array(x), places, as_array(values), reduction)
        return as_tensor(made, x.backend)
    return reshape(found, tuple(x.value.shape))


@operator("ScatterElements")
def scatter_elements(
    x: Tensor,
    indices: Value,
    updates: Tensor,
    *,
    axis: int = 0,
    reduction: str = "none",
) -> Tensor:
    """x with updates put (or added, multiplied …) where indices say, along an axis."""
    at = np.arange(int(np.prod(x.value.shape))).reshape(tuple(x.value.shape))
    return _scatter(x, _elements(at, indices, axis), updates, reduction)


@scatter_elements.host
def _(
    x: Value, indices: Value, updates: Value, *, axis: int = 0, reduction: str = "none"
) -> Any:
    at = np.arange(x.size).reshape(x.shape)
    return _scattered(x, _elements(at, indices, axis), updates, reduction)


@operator("Scatter")
def scatter(x: Tensor, indices: Value, updates: Tensor, *, axis: int = 0) -> Tensor:
    """The old name of ScatterElements."""
    return scatter_elements(x, indices, updates, axis=axis)


@scatter.host
def _(x: Value, indices: Value, updates: Value, *, axis: int = 0) -> Any:
    return scatter_elements(x, indices, updates, axis=axis)


@operator("ScatterND")
def scatter_nd(
    x: Tensor, indices: Value, updates: Tensor, *, reduction: str = "none"
) -> Tensor:
    """x with slices put (or added …) at places of several dims."""
    at = np.arange(int(np.prod(x.value.shape))).reshape(tuple(x.value.shape))
    return _scatter(x, _nd(at, indices, 0), updates, reduction)


@scatter_nd.host
def _(x: Value, indices: Value, updates: Value, *, reduction: str = "none") -> Any:
    at = np.arange(x.size).reshape(x.shape)
    return _scattered(x, _nd(at, indices, 0), updates, reduction)


@host_operator("TensorScatter")
def tensor_scatter(
    past: Value,
    update: Value,
    write_indices: Value = None,
    *,
    axis: int = -2,
    mode: str = "linear",
) -> Any:
    """A cache with new entries at a place of each sequence; circular: round again."""
    found = np.moveaxis(past.copy(), axis, 1)
    new = np.moveaxis(update, axis, 1)
    length = found.shape[1]
    for i in range(len(found)):
        start = 0 if write_indices is None else int(write_indices[i])
        places = start + np.arange(new.shape[1])
        found[i, places % length if mode == "circular" else places] = new[i]
    return np.moveaxis(found, 1, axis)


@operator("Compress")
def compress(x: Tensor, condition: Value, *, axis: int | None = None) -> Tensor:
    """Slices along an axis for which a truth stands; without an axis, elements."""
    return rearranged(x, lambda at: _compressed(at, condition, axis))


@compress.host
def _(x: Value, condition: Value, *, axis: int | None = None) -> Any:
    return _compressed(x, condition, axis)


def _compressed(x: Value, condition: Value, axis: int | None) -> Any:
    return np.compress(condition, x, axis)


@host_operator("NonZero")
def non_zero(x: Value) -> Any:
    """Where elements are not 0: one row for each dim."""
    if not x.ndim:
        return np.zeros((0, int(bool(x))), np.int64)
    return np.array(np.nonzero(x), np.int64)


@host_operator("OneHot")
def one_hot(indices: Value, depth: Value, values: Value, *, axis: int = -1) -> Any:
    """Rows that are `off` but for `on` at each index, which may count from the end."""
    size = number(depth)
    size = int(size)
    places = np.expand_dims(indices.astype(np.int64) % size, axis)
    inside = (indices >= -size) & (indices < size)
    shape = [1] * places.ndim
    shape[axis] = size
    hot = places == np.arange(size).reshape(shape)
    hot &= np.expand_dims(inside, axis)
    return np.where(hot, values[1], values[0]).astype(values.dtype)


@operator("ReverseSequence")
def reverse_sequence(
    x: Tensor, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0
) -> Tensor:
    """Each sequence of a batch backwards, as far as it goes."""
    if _are_whole(lengths, x.value.shape[time_axis]):
        return x.flip([time_axis])
    return rearranged(x, lambda at: _reversed(at, lengths, batch_axis, time_axis))


@reverse_sequence.host
def _(x: Value, lengths: Value, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    if _are_whole(lengths, x.shape[time_axis]):
        return np.flip(x, time_axis)

    def move(at: Value) -> Any:
        return _reversed(at, lengths, batch_axis, time_axis)

    return rearranged_array(x, move)


def _are_whole(lengths: Value, steps: int) -> bool:
    """Whether all sequences are as long as they can be, whatever the batch is."""
    known = isinstance(lengths, np.ndarray) and lengths.size > 0
    return known and bool((lengths == steps).all())


def _reversed(x: Value, lengths: Value, batch_axis: int, time_axis: int) -> Any:
    found = np.moveaxis(x, (batch_axis, time_axis), (0, 1)).copy()
    for row, length in zip(found, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(found, (0, 1), (batch_axis, time_axis))
