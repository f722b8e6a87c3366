"""Operators that move elements and keep their values, and what tells sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import Operator, OPERATORS, operator
from burnbook.importers.onnx.values import (
    FLOATS,
    Value,
    as_array,
    as_tensor,
    dtype_of,
    float_backend,
    ints,
    reshape as reshape_tensor,
)
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


def _wanted(have: Sequence[int], shape: Value, allowzero: int) -> list[int]:
    sizes = ints(shape)
    if not allowzero:
        sizes = [have[i] if n == 0 else n for i, n in enumerate(sizes)]
    if -1 in sizes:
        rest = int(np.prod([n for n in sizes if n != -1], dtype=np.int64))
        total = int(np.prod(have, dtype=np.int64))
        sizes[sizes.index(-1)] = total // rest if rest else 0
    return sizes


@operator("Reshape")
def reshape(x: Tensor, shape: Value, *, allowzero: int = 0) -> Tensor:
    """The same elements in another shape: 0 keeps a size, −1 is worked out."""
    return reshape_tensor(x, _wanted(tuple(x.value.shape), shape, allowzero))


@reshape.host
def _(x: Any, shape: Value, *, allowzero: int = 0) -> Any:
    return x.reshape(_wanted(x.shape, shape, allowzero))


@operator("Transpose")
def transpose(x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    """The dims in another order; without one, from last to first."""
    rank = len(x.value.shape)
    axes = tuple(perm) if perm is not None else tuple(reversed(range(rank)))
    return x if rank < 2 else apply(ops.permute, x, axes=axes)


@transpose.host
def _(x: Any, *, perm: Sequence[int] | None = None) -> Any:
    return np.transpose(x, perm)


def _with_ones(shape: Sequence[int], axes: Value) -> list[int]:
    wanted = ints(axes)
    rank = len(shape) + len(wanted)
    places = {a % rank for a in wanted}
    rest = iter(shape)
    return [1 if i in places else next(rest) for i in range(rank)]


@operator("Unsqueeze")
def unsqueeze(x: Tensor, axes: Value) -> Tensor:
    """New dims of size 1 at places of the result."""
    return reshape_tensor(x, _with_ones(tuple(x.value.shape), axes))


@unsqueeze.host
def _(x: Any, axes: Value) -> Any:
    return x.reshape(_with_ones(x.shape, axes))


def _without_ones(shape: Sequence[int], axes: Value | None) -> list[int]:
    rank = len(shape)
    if axes is None:
        return [n for n in shape if n != 1]
    gone = {a % rank for a in ints(axes)}
    return [n for i, n in enumerate(shape) if i not in gone]


@operator("Squeeze")
def squeeze(x: Tensor, axes: Value | None = None) -> Tensor:
    """Without dims of size 1: some, or all."""
    return reshape_tensor(x, _without_ones(tuple(x.value.shape), axes))


@squeeze.host
def _(x: Any, axes: Value | None = None) -> Any:
    return x.reshape(_without_ones(x.shape, axes))


@operator("Shape")
def shape(x: Tensor, *, start: int = 0, end: int | None = None) -> Any:
    """The sizes, or a range of them."""
    return np.array(tuple(x.value.shape)[start:end], np.int64)


@shape.host
def _(x: Any, *, start: int = 0, end: int | None = None) -> Any:
    return np.array(x.shape[start:end], np.int64)


@operator("Cast")
def cast(
    x: Tensor, *, to: int, saturate: int = 1, round_mode: str = "up"
) -> Value:
    """The same values in another element type."""
    wanted = dtype_of(to)
    if wanted in FLOATS:
        return x._move(float_backend(x.backend, wanted))
    return _cast(as_array(x), wanted, saturate)


@cast.host
def _(x: Any, *, to: int, saturate: int = 1, round_mode: str = "up") -> Any:
    return _cast(x, dtype_of(to), saturate)


def _cast(x: Any, wanted: np.dtype[Any], saturate: int) -> Any:
    with np.errstate(all="ignore"):
        return x.astype(wanted)
