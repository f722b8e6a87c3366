"""Operators that move elements and keep their values, and what tells sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.traced import take
from burnbook.importers.onnx.values import (
    Value,
    as_array,
    dtype_of,
    indices_of,
    ints,
    mask_of,
    number,
    rearranged,
    reshape as reshape_tensor,
)
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply


def _wanted(have: Sequence[int], shape: Value, allowzero: int) -> list[int]:
    sizes = [*ints(shape)]
    if not allowzero:
        sizes = [have[i] if n == 0 else n for i, n in enumerate(sizes)]
    if -1 in sizes:
        rest, total = prod(n for n in sizes if n != -1), prod(have)
        sizes[sizes.index(-1)] = total // rest if rest else 0
    return sizes


@operator("Reshape", lists=True)
def reshape(x: Tensor, shape: Value, *, allowzero: int = 0) -> Tensor:
    """The same elements in another shape: 0 keeps a size, −1 is worked out."""
    return reshape_tensor(x, _wanted(tuple(x.value.shape), shape, allowzero))


@reshape.host
def _(x: Value, shape: Value, *, allowzero: int = 0) -> Any:
    return x.reshape(_wanted(x.shape, shape, allowzero))


@operator("Transpose")
def transpose(x: Tensor, *, perm: Sequence[int] | None = None) -> Tensor:
    """The dims in another order; without one, from last to first."""
    rank = len(x.value.shape)
    axes = tuple(perm) if perm is not None else tuple(reversed(range(rank)))
    return x if rank < 2 else apply(ops.permute, x, axes=axes)


@transpose.host
def _(x: Value, *, perm: Sequence[int] | None = None) -> Any:
    return np.transpose(x, perm)


def _with_ones(shape: Sequence[int], axes: Value) -> list[int]:
    wanted = ints(axes)
    rank = len(shape) + len(wanted)
    places = {a % rank for a in wanted}
    rest = iter(shape)
    return [1 if i in places else next(rest) for i in range(rank)]


@operator("Unsqueeze", lists=True)
def unsqueeze(x: Tensor, axes: Value) -> Tensor:
    """New dims of size 1 at places of the result."""
    return reshape_tensor(x, _with_ones(tuple(x.value.shape), axes))


@unsqueeze.host
def _(x: Value, axes: Value) -> Any:
    return x.reshape(_with_ones(x.shape, axes))


def _without_ones(shape: Sequence[int], axes: Value | None) -> list[int]:
    rank = len(shape)
    if axes is None:
        return [n for n in shape if n != 1]
    gone = {a % rank for a in ints(axes)}
    return [n for i, n in enumerate(shape) if i not in gone]


@operator("Squeeze", lists=True)
def squeeze(x: Tensor, axes: Value | None = None) -> Tensor:
    """Without dims of size 1: some, or all."""
    return reshape_tensor(x, _without_ones(tuple(x.value.shape), axes))


@squeeze.host
def _(x: Value, axes: Value | None = None) -> Any:
    return x.reshape(_without_ones(x.shape, axes))


@operator("Shape")
def shape(x: Tensor, *, start: int = 0, end: int | None = None) -> Any:
    """The sizes, or a range of them."""
    return np.array(tuple(x.value.shape)[start:end], np.int64)


@shape.host
def _(x: Value, *, start: int = 0, end: int | None = None) -> Any:
    return np.array(x.shape[start:end], np.int64)


@operator("Size")
def size(x: Tensor) -> Any:
    """How many elements there are."""
    return np.array(np.prod(tuple(x.value.shape), dtype=np.int64))


@size.host
def _(x: Value) -> Any:
    return np.array(x.size, np.int64)


@operator("Flatten")
def flatten(x: Tensor, *, axis: int = 1) -> Tensor:
    """A matrix: the dims before an axis, and the rest."""
    return reshape_tensor(x, _two_dims(tuple(x.value.shape), axis))


@flatten.host
def _(x: Value, *, axis: int = 1) -> Any:
    return x.reshape(_two_dims(x.shape, axis))


def _two_dims(shape: Sequence[int], axis: int) -> list[int]:
    return [prod(shape[:axis]), prod(shape[axis:] if axis else shape)]


@operator("Expand", lists=True)
def expand(x: Tensor, shape: Value) -> Tensor:
    """Sizes of 1 stretched, as broadcasting does."""
    own = tuple(x.value.shape)
    wanted = np.broadcast_shapes(own, tuple(ints(shape)))
    x = reshape_tensor(x, (1,) * (len(wanted) - len(own)) + own)
    return x if tuple(x.value.shape) == wanted else apply(ops.expand, x, shape=wanted)


@expand.host
def _(x: Value, shape: Value) -> Any:
    return np.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(ints(shape)))).copy()


@operator("DepthToSpace")
def depth_to_space(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Channels as blocks of pixels."""
    parts, order, made = _as_pixels(tuple(x.value.shape), blocksize, mode)
    x = apply(ops.permute, reshape_tensor(x, parts), axes=order)
    return reshape_tensor(x, made)


@depth_to_space.host
def _(x: Value, *, blocksize: int, mode: str = "DCR") -> Any:
    parts, order, made = _as_pixels(x.shape, blocksize, mode)
    return x.reshape(parts).transpose(order).reshape(made)


def _as_pixels(shape: tuple[int, ...], b: int, mode: str) -> tuple[Any, Any, Any]:
    """The parts of the dims, their order, and the sizes that they make together."""
    n, c, h, w = shape
    if mode == "DCR":
        parts, order = (n, b, b, c // b**2, h, w), (0, 3, 4, 1, 5, 2)
    else:
        parts, order = (n, c // b**2, b, b, h, w), (0, 1, 4, 2, 5, 3)
    return parts, order, (n, c // b**2, h * b, w * b)


@operator("SpaceToDepth")
def space_to_depth(x: Tensor, *, blocksize: int, mode: str = "DCR") -> Tensor:
    """Blocks of pixels as channels."""
    parts, order, made = _as_channels(tuple(x.value.shape), blocksize, mode)
    x = apply(ops.permute, reshape_tensor(x, parts), axes=order)
    return reshape_tensor(x, made)


@space_to_depth.host
def _(x: Value, *, blocksize: int, mode: str = "DCR") -> Any:
    parts, order, made = _as_channels(x.shape, blocksize, mode)
    return x.reshape(parts).transpose(order).reshape(made)


def _as_channels(shape: tuple[int, ...], b: int, mode: str) -> tuple[Any, Any, Any]:
    """The same for the way back."""
    n, c, h, w = shape
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return (n, c, h // b, b, w // b, b), order, (n, c * b**2, h // b, w // b)


@operator("Pad", lists=True)
def pad(
    x: Tensor,
    pads: Value,
    value: Value = None,
    axes: Value = None,
    *,
    mode: str = "constant",
) -> Tensor:
    """More at the edges (less, where a number is below 0): a value, or what is near."""
    widths = _widths(len(x.value.shape), pads, axes)
    cut = [
        slice(max(0, -a), n - max(0, -b))
        for (a, b), n in zip(widths, x.value.shape, strict=True)
    ]
    widths = [(max(0, a), max(0, b)) for a, b in widths]
    if not widths:
        return x
    if mode != "constant":
        for axis, places in _near(cut, widths, x.value.shape, mode):
            x = apply(ops.select, x, indices_of(places, x), dim=axis)
        return x
    filled = 0.0 if value is None else number(value)
    x = apply(ops.slice_, x, index=tuple(cut))
    return apply(ops.pad, x, widths=tuple(widths), value=filled)


@pad.host
def _(
    x: Value,
    pads: Value,
    value: Value = None,
    axes: Value = None,
    *,
    mode: str = "constant",
) -> Any:
    widths = _widths(x.ndim, pads, axes)
    cut = tuple(
        slice(max(0, -a), n - max(0, -b))
        for (a, b), n in zip(widths, x.shape, strict=True)
    )
    widths = [(max(0, a), max(0, b)) for a, b in widths]
    if mode != "constant":
        for axis, places in _near(cut, widths, x.shape, mode):
            x = take(x, places, axis)
        return x
    filled = x.dtype.type(0) if value is None else as_array(value).reshape(-1)[0]
    return np.pad(x[cut], widths, constant_values=filled)


def _near(
    cut: Sequence[slice],
    widths: Sequence[tuple[int, int]],
    shape: Sequence[int],
    mode: Any,
) -> Iterator[tuple[int, Any]]:
    """The axes that change, and which places along each one come after the other."""
    for axis, (part, more) in enumerate(zip(cut, widths, strict=True)):
        own = np.arange(shape[axis])
        places = np.pad(own[part], more, mode)
        if not np.array_equal(places, own):
            yield axis, places


def _widths(rank: int, pads: Value, axes: Value) -> list[tuple[int, int]]:
    sizes = ints(pads)
    along = list(range(rank)) if axes is None else [a % rank for a in ints(axes)]
    found = [(0, 0)] * rank
    for i, axis in enumerate(along):
        found[axis] = sizes[i], sizes[i + len(along)]
    return found


@host_operator("ConstantOfShape", lists=True)
def constant_of_shape(shape: Value, *, value: Value = None) -> Any:
    """One value everywhere; float32 zeros where none is given."""
    filled = np.zeros(1, np.float32) if value is None else as_array(value).reshape(-1)
    return np.full(tuple(ints(shape)), filled[0], filled.dtype)


@host_operator("Range")
def range_(start: Value, limit: Value, delta: Value) -> Any:
    """Numbers from start, by delta, before limit."""
    start, limit, delta = (part.reshape(()) for part in (start, limit, delta))
    if not delta:
        what = "the step between the numbers is 0"
        facts = [("start", f"{start}"), ("limit", f"{limit}")]
        raise ArgumentError("onnx Range", what, facts, "another delta")
    count = max(0, int(np.ceil((limit - start) / delta)))
    return (start + np.arange(count) * delta).astype(start.dtype)


@host_operator("EyeLike")
def eye_like(x: Value, *, dtype: int | None = None, k: int = 0) -> Any:
    """Ones on a diagonal, zeros elsewhere, in the shape of a matrix."""
    return np.eye(*x.shape, k=k, dtype=x.dtype if dtype is None else dtype_of(dtype))


@operator("Trilu")
def trilu(x: Tensor, k: Value = None, *, upper: int = 1) -> Tensor:
    """The upper or lower triangle of matrices, with zeros elsewhere."""
    gone = ~_triangle(tuple(x.value.shape), k, upper)
    return apply(ops.mask_fill, x, mask_of(gone, x), value=0.0)


@trilu.host
def _(x: Value, k: Value = None, *, upper: int = 1) -> Any:
    return np.where(_triangle(x.shape, k, upper), x, np.zeros((), x.dtype))


def _triangle(shape: tuple[int, ...], k: Value, upper: int) -> Any:
    shift = 0 if k is None else int(number(k))
    rows, columns = np.arange(shape[-2])[:, None], np.arange(shape[-1])
    inside = columns - rows >= shift if upper else columns - rows <= shift
    return np.broadcast_to(inside, shape)


@operator("CenterCropPad", lists=True)
def center_crop_pad(x: Tensor, shape: Value, *, axes: Sequence[int] = ()) -> Tensor:
    """The middle of a value in other sizes, with zeros where there is nothing."""
    own = tuple(x.value.shape)
    places = rearranged_or_zero(x, lambda at: _centered(at, shape, axes))
    return places if own else x


@center_crop_pad.host
def _(x: Value, shape: Value, *, axes: Sequence[int] = ()) -> Any:
    at = _centered(np.arange(x.size).reshape(x.shape), shape, axes)
    return np.where(at < 0, np.zeros((), x.dtype), x.reshape(-1)[at])


def _centered(at: Value, shape: Value, axes: Sequence[int]) -> Any:
    along = list(axes) or list(range(at.ndim))
    for axis, wanted in zip(along, ints(shape), strict=True):
        have = at.shape[axis]
        at = np.moveaxis(at, axis, 0)
        if wanted <= have:
            start = (have - wanted) // 2
            at = at[start : start + wanted]
        else:
            before = (wanted - have) // 2
            widths = [(before, wanted - have - before)] + [(0, 0)] * (at.ndim - 1)
            at = np.pad(at, widths, constant_values=-1)
        at = np.moveaxis(at, 0, axis)
    return at


def rearranged_or_zero(x: Tensor, move: Value) -> Tensor:
    """As `rearranged`, with zeros where the function gives −1."""
    gone: list[Any] = []

    def clean(at: Value) -> Any:
        places = move(at)
        gone.append(places < 0)
        return np.maximum(places, 0)

    found = rearranged(x, clean)
    return apply(ops.mask_fill, found, mask_of(gone[0], x), value=0.0)


@operator("Identity")
def identity(x: Tensor) -> Tensor:
    """The value itself."""
    return x


@identity.host
def _(x: Value) -> Any:
    return x
