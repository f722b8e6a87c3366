"""Pooling of any number of dims: the largest, the mean or a norm of every window."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from burnbook import ops
from burnbook.importers.onnx.operators.convolution import (
    padded,
    summed_windows,
    widths_of,
    window_counts,
)
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.values import (
    Value,
    as_array,
    as_tensor,
    rearranged,
    reshape,
)
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply

Sizes = Sequence[int]
Widths = list[tuple[int, int]]


def _plan(
    sizes: Sizes,
    kernel: Sizes,
    strides: Sizes,
    dilations: Sizes,
    pads: Sizes,
    auto: str,
    ceil: int,
) -> tuple[tuple[int, ...], tuple[int, ...], Widths, Widths]:
    """stride, dilation, the file's widths, and those that the last windows need."""
    dims = len(kernel)
    stride = tuple(strides) or (1,) * dims
    dilation = tuple(dilations) or (1,) * dims
    widths = widths_of(sizes, kernel, stride, dilation, pads, auto)
    needed = []
    for n, k, s, d, (a, b) in zip(sizes, kernel, stride, dilation, widths, strict=True):
        reach = (k - 1) * d + 1
        free = n + a + b - reach
        count = (-(-free // s) if ceil and auto == "NOTSET" else free // s) + 1
        if ceil and (count - 1) * s >= n + a:  # it would begin behind everything
            count -= 1
        needed.append((a, (count - 1) * s + reach - n - a))
    return stride, dilation, widths, needed


def _windows(x: Value, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Any:
    """[n, c, *out, *kernel], a view."""
    dims = len(kernel)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    view = sliding_window_view(x, reach, tuple(range(2, 2 + dims)))
    steps = [slice(None, None, s) for s in stride]
    taps = [slice(None, None, d) for d in dilation]
    return view[(slice(None), slice(None), *steps, *taps)]


def _resized(x: Value, widths: Widths, value: Value) -> Any:
    cut = tuple(
        slice(max(0, -a), x.shape[i + 2] - max(0, -b))
        for i, (a, b) in enumerate(widths)
    )
    x = x[(slice(None), slice(None), *cut)]
    more = [(0, 0), (0, 0), *[(max(0, a), max(0, b)) for a, b in widths]]
    return np.pad(x, more, constant_values=value)


def _least(dtype: Value) -> Any:
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def _largest(
    x: Value,
    kernel: Sizes,
    stride: Sizes,
    dilation: Sizes,
    needed: Widths,
    storage_order: int,
) -> tuple[Any, Any, Any]:
    """The largest of each window, where it stands in x, and ONNX's index of that."""
    dims = len(kernel)
    sizes = x.shape[2:]
    windows = _windows(_resized(x, needed, _least(x.dtype)), kernel, stride, dilation)
    flat = windows.reshape(*windows.shape[: 2 + dims], -1)
    best = np.argmax(flat, -1)
    values = np.take_along_axis(flat, best[..., None], -1)[..., 0]
    tap = np.unravel_index(best, tuple(kernel))
    index = np.zeros_like(best)
    column = np.zeros_like(best)
    step = 1
    for i in range(dims):
        start = np.arange(best.shape[2 + i]) * stride[i] - needed[i][0]
        start = start.reshape([-1 if j == 2 + i else 1 for j in range(2 + dims)])
        place = np.clip(start + tap[i] * dilation[i], 0, sizes[i] - 1)
        index = index * sizes[i] + place
        column = column + place * step
        step *= sizes[i]
    count = int(np.prod(sizes))
    rows = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * dims)
    told = (column if storage_order else index) + rows * count
    return values, index + rows * count, told.astype(np.int64)


@operator("MaxPool", many=True)
def max_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sizes = (),
    kernel_shape: Sizes,
    pads: Sizes = (),
    storage_order: int = 0,
    strides: Sizes = (),
    outputs: int = 1,
) -> tuple[Any, ...]:
    """The largest of every window, and where it stands."""
    sizes = tuple(x.value.shape)[2:]
    kernel = tuple(kernel_shape)
    stride, dilation, _, needed = _plan(
        sizes, kernel, strides, dilations, pads, auto_pad, ceil_mode
    )
    if outputs == 1 and set(dilation) == {1} and len(kernel) == 2:
        same = all(
            a == b and 0 <= a <= k // 2
            for (a, b), k in zip(needed, kernel, strict=True)
        )
        if not same:
            x, needed = padded(x, needed, -np.inf), [(0, 0)] * 2
        padding = tuple(a for a, _ in needed)
        return (
            apply(
                ops.max_pool2d,
                x,
                kernel_size=kernel,
                stride=stride,
                padding=padding,
                dilation=dilation,
            ),
        )
    if outputs == 1 and len(kernel) in (1, 3):  # the windows of a sequence, a volume
        return (
            apply(
                ops.max_pool,
                padded(x, needed, -np.inf),
                kernel_size=kernel,
                stride=stride,
                padding=(0,) * len(kernel),
                dilation=dilation,
                ceil_mode=False,
            ),
        )
    found: list[Any] = []

    def places(at: Value) -> Any:
        _, where, told = _largest(
            as_array(x), kernel, stride, dilation, needed, storage_order
        )
        found.append(told)
        return at.reshape(-1)[where]

    return rearranged(x, places), *found


@max_pool.host
def _(
    x: Value,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sizes = (),
    kernel_shape: Sizes,
    pads: Sizes = (),
    storage_order: int = 0,
    strides: Sizes = (),
    outputs: int = 1,
) -> tuple[Any, ...]:
    stride, dilation, _, needed = _plan(
        x.shape[2:], kernel_shape, strides, dilations, pads, auto_pad, ceil_mode
    )
    values, _, told = _largest(x, kernel_shape, stride, dilation, needed, storage_order)
    return values, told


@operator("AveragePool")
def average_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    count_include_pad: int = 0,
    dilations: Sizes = (),
    kernel_shape: Sizes,
    pads: Sizes = (),
    strides: Sizes = (),
) -> Tensor:
    """The mean of every window; what is put around may count or not."""
    sizes, kernel = tuple(x.value.shape)[2:], tuple(kernel_shape)
    stride, dilation, widths, needed = _plan(
        sizes, kernel, strides, dilations, pads, auto_pad, ceil_mode
    )
    inside = []
    for n, (a, b) in zip(sizes, widths, strict=True):
        inside.append((0, n + a + b) if count_include_pad else (a, n + a))
    totals = [n + a + b for n, (a, b) in zip(sizes, needed, strict=True)]
    total = summed_windows(padded(x, needed), kernel, stride, dilation)
    counts = window_counts(inside, totals, kernel, stride, dilation)
    if counts.min() == counts.max():
        return total * (1.0 / float(counts.reshape(-1)[0]))
    parts = (1.0 / counts).astype(np.dtype(x.value.dtype)).reshape(1, 1, *counts.shape)
    return apply(ops.mul, total, as_tensor(parts, x.backend))


@operator("LpPool")
def lp_pool(
    x: Tensor,
    *,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
    dilations: Sizes = (),
    kernel_shape: Sizes,
    p: int = 2,
    pads: Sizes = (),
    strides: Sizes = (),
) -> Tensor:
    """The p-norm of every window."""
    sizes, kernel = tuple(x.value.shape)[2:], tuple(kernel_shape)
    stride, dilation, _, needed = _plan(
        sizes, kernel, strides, dilations, pads, auto_pad, ceil_mode
    )
    raised = apply(ops.abs, x).powf_scalar(float(p))
    found = summed_windows(padded(raised, needed), kernel, stride, dilation)
    return found.powf_scalar(1.0 / p)


def _global(x: Tensor) -> tuple[Tensor, list[int]]:
    n, c, *sizes = tuple(x.value.shape)
    return reshape(x, (n, c, int(np.prod(sizes)))), [n, c, *[1] * len(sizes)]


@operator("GlobalAveragePool")
def global_average_pool(x: Tensor) -> Tensor:
    """The mean of every channel."""
    flat, shape = _global(x)
    return reshape(apply(ops.mean_dim, flat, dim=2), shape)


@operator("GlobalMaxPool")
def global_max_pool(x: Tensor) -> Tensor:
    """The largest of every channel."""
    flat, shape = _global(x)
    return reshape(apply(ops.max_dim, flat, dim=2), shape)


@global_max_pool.host
def _(x: Value) -> Any:
    return np.max(x, tuple(range(2, x.ndim)), keepdims=True)


@operator("GlobalLpPool")
def global_lp_pool(x: Tensor, *, p: int = 2) -> Tensor:
    """The p-norm of every channel."""
    flat, shape = _global(x)
    total = apply(ops.sum_dim, apply(ops.abs, flat).powf_scalar(float(p)), dim=2)
    return reshape(total.powf_scalar(1.0 / p), shape)


@host_operator("MaxUnpool")
def max_unpool(
    x: Value,
    indices: Value,
    output_shape: Value = None,
    *,
    kernel_shape: Sizes,
    pads: Sizes = (),
    strides: Sizes = (),
) -> Any:
    """Zeros but for values at the places that MaxPool told."""
    dims = len(kernel_shape)
    stride, around = strides or [1] * dims, pads or [0] * (2 * dims)
    own = [
        (n - 1) * s + k - around[i] - around[i + dims]
        for i, (n, s, k) in enumerate(
            zip(x.shape[2:], stride, kernel_shape, strict=True)
        )
    ]
    shape = [*x.shape[:2], *own]
    found = np.zeros(int(np.prod(shape)), x.dtype)
    found[indices.reshape(-1)] = x.reshape(-1)
    found = found.reshape(shape)
    if output_shape is None:
        return found
    made = np.zeros(tuple(int(n) for n in output_shape), x.dtype)
    made[tuple(slice(0, n) for n in shape)] = found
    return made
