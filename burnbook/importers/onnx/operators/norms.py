"""Normalization, softmax and dropout."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import (
    Value,
    aligned,
    as_array,
    as_tensor,
    float_backend,
    mask_of,
    moved,
    number,
    reshape,
)
from burnbook.tensor import Tensor, activation
from burnbook.tensor.methods import apply


@operator("BatchNormalization", many=True)
def batch_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    mean: Tensor,
    var: Tensor,
    *,
    epsilon: float = 1e-5,
    momentum: float = 0.9,
    training_mode: int = 0,
    per_element: int = 0,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """Each channel with mean 0 and variance 1: known ones, or in training the batch's.

    The second and third result are the new running mean and variance.
    """
    shape = tuple(x.value.shape)
    device = x.backend
    scale, bias, mean, var = (moved(p, device) for p in (scale, bias, mean, var))
    if per_element:  # of opset 8 and before: every element is a channel
        flat = reshape(x, (shape[0], int(np.prod(shape[1:]))))
        parts = [reshape(p, (flat.value.shape[1],)) for p in (scale, bias, mean, var)]
        found = apply(ops.batch_norm_known, flat, *parts, epsilon=epsilon)
        return (reshape(found, shape),)
    if not training_mode:
        if len(shape) == 1:
            x = reshape(x, (shape[0], 1))
        found = apply(ops.batch_norm_known, x, scale, bias, mean, var, epsilon=epsilon)
        return (reshape(found, shape),)
    axes = [i for i in range(len(shape)) if i != 1]
    wide = _full(x)
    now, spread = _moments(wide, axes)
    line = [1, shape[1], *[1] * (len(shape) - 2)]
    centered = apply(ops.sub, *aligned(wide, now))
    hat = apply(ops.div, *aligned(centered, apply(ops.sqrt, spread + epsilon)))
    hat = moved(hat, device)
    found = apply(ops.mul, *aligned(hat, reshape(scale, line)))
    found = apply(ops.add, *aligned(found, reshape(bias, line)))
    running = [
        apply(
            ops.add,
            old * momentum,
            moved(reshape(new, (shape[1],)), device) * (1 - momentum),
        )
        for old, new in ((mean, now), (var, spread))
    ]
    return (found, *running)


def _moments(x: Tensor, axes: list[int]) -> tuple[Tensor, Tensor]:
    """The mean and the variance over axes, which stay with size 1."""
    mean = x
    for axis in axes:
        mean = apply(ops.mean_dim, mean, dim=axis)
    centered = apply(ops.sub, *aligned(x, mean))
    var = apply(ops.mul, centered, centered)
    for axis in axes:
        var = apply(ops.mean_dim, var, dim=axis)
    return mean, var


def _full(x: Tensor) -> Tensor:
    """At least float32: half precision has too few digits for sums."""
    if np.dtype(x.value.dtype).itemsize >= 4:
        return x
    return moved(x, float_backend(x.backend, np.dtype(np.float32)))


@operator("InstanceNormalization")
def instance_normalization(
    x: Tensor, scale: Tensor, bias: Tensor, *, epsilon: float = 1e-5
) -> Tensor:
    """Each channel of each example with mean 0 and variance 1."""
    groups = x.value.shape[1]
    return apply(
        ops.group_norm, x, scale, bias, groups=groups, epsilon=epsilon, inside=True
    )


@operator("GroupNormalization")
def group_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor,
    *,
    num_groups: int,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    per_group: int = 0,
) -> Tensor:
    """Groups of channels of each example with mean 0 and variance 1."""
    channels = x.value.shape[1]
    if per_group and channels != num_groups:
        scale, bias = (
            reshape(
                apply(
                    ops.expand,
                    reshape(p, (num_groups, 1)),
                    shape=(num_groups, channels // num_groups),
                ),
                (channels,),
            )
            for p in (scale, bias)
        )
    scale, bias = (moved(p, x.backend) for p in (scale, bias))
    return apply(
        ops.group_norm, x, scale, bias, groups=num_groups, epsilon=epsilon, inside=True
    )


@operator("LayerNormalization", many=True)
def layer_normalization(
    x: Tensor,
    scale: Tensor,
    bias: Tensor | None = None,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
    outputs: int = 1,
) -> tuple[Tensor, ...]:
    """All dims from axis on with mean 0 and variance 1; then mean and 1/deviation."""
    shape = tuple(x.value.shape)
    axis %= len(shape)
    inner = int(np.prod(shape[axis:]))
    flat_scale = outputs == 1 and int(np.prod(scale.value.shape)) == inner
    if flat_scale and (bias is None or int(np.prod(bias.value.shape)) == inner):
        rows = reshape(x, (int(np.prod(shape[:axis])), inner))
        given = [rows, moved(reshape(scale, (inner,)), x.backend)]
        if bias is not None:
            given.append(moved(reshape(bias, (inner,)), x.backend))
        return (reshape(apply(ops.layer_norm, *given, epsilon=epsilon), shape),)
    axes = list(range(axis, len(shape)))
    wide = _full(x)
    mean, var = _moments(wide, axes)
    inverse = apply(ops.recip, apply(ops.sqrt, var + epsilon))
    hat = apply(ops.sub, *aligned(wide, mean))
    hat = moved(apply(ops.mul, *aligned(hat, inverse)), x.backend)
    found = apply(ops.mul, *aligned(hat, scale))
    found = found if bias is None else apply(ops.add, *aligned(found, bias))
    return found, mean, inverse


@operator("RMSNormalization")
def rms_normalization(
    x: Tensor,
    scale: Tensor,
    *,
    axis: int = -1,
    epsilon: float = 1e-5,
    stash_type: int = 1,
) -> Tensor:
    """All dims from axis on with a mean square of 1."""
    shape = tuple(x.value.shape)
    axis %= len(shape)
    wide = _full(x)
    power = apply(ops.mul, wide, wide)
    for place in range(axis, len(shape)):
        power = apply(ops.mean_dim, power, dim=place)
    inverse = apply(ops.recip, apply(ops.sqrt, power + epsilon))
    hat = moved(apply(ops.mul, *aligned(wide, inverse)), x.backend)
    return apply(ops.mul, *aligned(hat, moved(scale, x.backend)))


@operator("LpNormalization")
def lp_normalization(x: Tensor, *, axis: int = -1, p: int = 2) -> Tensor:
    """Divided by the p-norm along an axis; a row of zeros stays."""
    axis %= len(x.value.shape)
    raised = apply(ops.abs, x) if p == 1 else apply(ops.mul, x, x)
    norm = apply(ops.sum_dim, raised, dim=axis)
    norm = norm if p == 1 else apply(ops.sqrt, norm)
    norm = apply(ops.mask_fill, norm, mask_of(as_array(norm) == 0, x), value=1.0)
    return apply(ops.div, x, norm)


@operator("LRN")
def lrn(
    x: Tensor, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0
) -> Tensor:
    """Divided by what the neighboring channels hold."""
    before = (size - 1) // 2
    squares = apply(ops.mul, x, x)
    near = apply(ops.neighbor_sum, squares, before=before, after=size - 1 - before)
    return apply(ops.div, x, (near * (alpha / size) + bias).powf_scalar(beta))


def _along(x: Tensor, axis: int, flattened: int) -> tuple[Tensor, int]:
    shape = tuple(x.value.shape)
    if not flattened:
        return x, axis % len(shape)
    axis %= len(shape)
    rows = int(np.prod(shape[:axis]))
    return reshape(x, (rows, int(np.prod(shape[axis:])))), 1


@operator("Softmax")
def softmax(x: Tensor, *, axis: int = -1, flattened: int = 0) -> Tensor:
    """e^x over its sum along an axis (before opset 13: from the axis on)."""
    flat, dim = _along(x, axis, flattened)
    return reshape(activation.softmax(flat, dim), tuple(x.value.shape))


@operator("LogSoftmax")
def log_softmax(x: Tensor, *, axis: int = -1, flattened: int = 0) -> Tensor:
    """The logarithm of softmax."""
    flat, dim = _along(x, axis, flattened)
    return reshape(activation.log_softmax(flat, dim), tuple(x.value.shape))


@operator("Hardmax")
def hardmax(x: Tensor, *, axis: int = -1, flattened: int = 0) -> Tensor:
    """1 where the first largest value along an axis stands, 0 elsewhere."""
    flat, dim = _along(x, axis, flattened)
    held = as_array(flat)
    best = np.expand_dims(np.argmax(held, dim), dim)
    made = np.zeros_like(held)
    np.put_along_axis(made, best, 1, dim)
    return as_tensor(made.reshape(tuple(x.value.shape)), x.backend)


@operator("Dropout", many=True)
def dropout(
    x: Tensor,
    ratio: Value = None,
    training_mode: Value = None,
    *,
    seed: int | None = None,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """Zeros instead of some values, in training; and which stay."""
    shape = tuple(x.value.shape)
    chance = 0.5 if ratio is None else float(number(ratio))
    training = training_mode is not None and bool(number(training_mode))
    if not training or chance == 0:
        return x, np.ones(shape, bool)
    if seed is None:
        drawn = Tensor.random_like(reshape(x, shape or (1,)))
        kept = as_array(drawn).reshape(shape) >= chance
    else:
        kept = np.random.RandomState(seed).uniform(0, 1, shape) >= chance
    found = apply(ops.mask_fill, x * (1 / (1 - chance)), mask_of(~kept, x), value=0.0)
    return found, kept


@dropout.host
def _(
    x: Value,
    ratio: Value = None,
    training_mode: Value = None,
    *,
    seed: int | None = None,
    outputs: int = 1,
) -> tuple[Any, ...]:
    return x, np.ones(x.shape, bool)
