"""Operators that put values together and take them apart."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import Value, ints
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


@operator("Concat")
def concat(*parts: Tensor, axis: int = 1) -> Tensor:
    """Values one after another along an axis."""
    if len(parts) == 1:
        return parts[0]
    return apply(ops.cat, *parts, dim=axis % len(parts[0].value.shape))


@concat.host
def _(*parts: Value, axis: int = 1) -> Any:
    return np.concatenate(parts, axis)


@operator("Split", many=True, lists=True)
def split(
    x: Tensor,
    sizes: Value = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    outputs: int,
) -> tuple[Tensor, ...]:
    """Pieces along an axis: of given sizes, or as many as wanted, nearly equal."""
    axis %= len(x.value.shape)
    found, start = [], 0
    for size in _sizes(x.value.shape[axis], sizes, num_outputs or outputs):
        found.append(narrow(x, axis, start, size))
        start += size
    return tuple(found)


@split.host
def _(
    x: Value,
    sizes: Value = None,
    *,
    axis: int = 0,
    num_outputs: int | None = None,
    outputs: int,
) -> tuple[Any, ...]:
    parts = _sizes(x.shape[axis], sizes, num_outputs or outputs)
    return tuple(np.split(x, np.cumsum(parts)[:-1], axis))


def _sizes(length: int, sizes: Value, count: int) -> list[int]:
    if sizes is not None:
        return ints(sizes)
    each = -(-length // count)
    return [each] * (count - 1) + [length - each * (count - 1)]


def narrow(x: Tensor, axis: int, start: int, size: int) -> Tensor:
    """A stretch of a tensor along an axis."""
    index = [slice(0, n) for n in x.value.shape]
    index[axis] = slice(start, start + size)
    return apply(ops.slice_, x, index=tuple(index))


@operator("Tile", lists=True)
def tile(x: Tensor, repeats: Value) -> Tensor:
    """The values again and again along each axis."""
    for axis, count in enumerate(ints(repeats)):
        if count == 0:
            x = narrow(x, axis, 0, 0)
        elif count > 1:
            x = apply(ops.cat, *[x] * count, dim=axis)
    return x


@tile.host
def _(x: Value, repeats: Value) -> Any:
    return np.tile(x, ints(repeats))
