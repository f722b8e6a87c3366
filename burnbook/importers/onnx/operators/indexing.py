"""Operators that pick and put elements by their places."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import indices_of, reshape
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


@operator("Gather")
def gather(x: Tensor, indices: Any, *, axis: int = 0) -> Tensor:
    """Slices along an axis, one for each index; the indices' dims take its place."""
    shape = tuple(x.value.shape)
    axis %= len(shape)
    places = indices.astype(np.int64).reshape(-1)
    places = np.where(places < 0, places + shape[axis], places)
    found = apply(ops.select, x, indices_of(places, x), dim=axis)
    return reshape(found, (*shape[:axis], *indices.shape, *shape[axis + 1 :]))


@gather.host
def _(x: Any, indices: Any, *, axis: int = 0) -> Any:
    return np.take(x, indices.astype(np.int64), axis)
