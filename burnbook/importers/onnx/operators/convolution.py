"""Convolution, forwards and backwards, of any number of dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.core.errors import ShapeError
from burnbook.importers.onnx.operators.joining import narrow
from burnbook.importers.onnx.operators.registry import operator
from burnbook.importers.onnx.values import as_tensor, reshape
from burnbook.ops.conv.conv import conv as conv_nd
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply
from burnbook.tensor.module import DeformConvOptions, deform_conv2d

Sizes = Sequence[int]
Widths = list[tuple[int, int]]


def adds_too_much(more: int, stride: int, dilation: int) -> bool:
    """Whether a transposed convolution adds places that no convolution leaves out.

    Why: other programs refuse such files; Burn's own layers compute them.
    """
    return more > 0 and more >= max(stride, dilation)


def widths_of(
    sizes: Sizes, kernel: Sizes, stride: Sizes, dilation: Sizes, pads: Sizes, auto: str
) -> Widths:
    """What is put before and behind each dim, as pads or auto_pad say."""
    dims = len(kernel)
    if auto in ("NOTSET", ""):
        pads = list(pads) or [0] * (2 * dims)
        return [(pads[i], pads[i + dims]) for i in range(dims)]
    if auto == "VALID":
        return [(0, 0)] * dims
    found = []
    for n, k, s, d in zip(sizes, kernel, stride, dilation, strict=True):
        total = max(0, (-(-n // s) - 1) * s + (k - 1) * d + 1 - n)
        small = total // 2
        found.append(
            (small, total - small) if auto == "SAME_UPPER" else (total - small, small)
        )
    return found


def padded(x: Tensor, widths: Widths, value: float = 0.0) -> Tensor:
    """More at the edges of the last dims, less where a number is below 0."""
    lead = len(x.value.shape) - len(widths)
    for i, (before, behind) in enumerate(widths):
        if before < 0 or behind < 0:
            start = max(0, -before)
            n = x.value.shape[lead + i]
            x = narrow(x, lead + i, start, n - start - max(0, -behind))
    more = [(0, 0)] * lead + [(max(0, a), max(0, b)) for a, b in widths]
    if not any(map(any, more)):
        return x
    return apply(ops.pad, x, widths=tuple(more), value=value)


@operator("Conv")
def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes = (),
    group: int = 1,
    kernel_shape: Sizes = (),
    pads: Sizes = (),
    strides: Sizes = (),
) -> Tensor:
    """Slide kernels over lines, images or volumes."""
    kernel = tuple(weight.value.shape)[2:]
    dims = len(kernel)
    stride = tuple(strides) or (1,) * dims
    dilation = tuple(dilations) or (1,) * dims
    widths = widths_of(
        tuple(x.value.shape)[2:], kernel, stride, dilation, pads, auto_pad
    )
    if any(a != b or a < 0 for a, b in widths):
        x, widths = padded(x, widths), [(0, 0)] * dims
    given = [x, weight] if bias is None else [x, weight, bias]
    return apply(
        ops.conv2d if dims == 2 else conv_nd,
        *given,
        stride=stride,
        padding=tuple(a for a, _ in widths),
        dilation=dilation,
        groups=group,
    )


@operator("ConvTranspose")
def conv_transpose(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    auto_pad: str = "NOTSET",
    dilations: Sizes = (),
    group: int = 1,
    kernel_shape: Sizes = (),
    output_padding: Sizes = (),
    output_shape: Sizes = (),
    pads: Sizes = (),
    strides: Sizes = (),
) -> Tensor:
    """Spread kernels over lines, images or volumes: the way back of a convolution."""
    kernel = tuple(weight.value.shape)[2:]
    dims = len(kernel)
    stride = tuple(strides) or (1,) * dims
    dilation = tuple(dilations) or (1,) * dims
    more = tuple(output_padding) or (0,) * dims
    sizes = tuple(x.value.shape)[2:]
    full = [
        s * (n - 1) + (k - 1) * d + 1 + o
        for n, k, s, d, o in zip(sizes, kernel, stride, dilation, more, strict=True)
    ]
    if output_shape or auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        wanted = list(output_shape)[-dims:] or [
            n * s for n, s in zip(sizes, stride, strict=True)
        ]
        widths = []
        for total, out in zip(full, wanted, strict=True):
            cut = total - out
            small = cut // 2
            last = auto_pad == "SAME_UPPER"
            widths.append((small, cut - small) if last else (cut - small, small))
    else:
        widths = widths_of(sizes, kernel, stride, dilation, pads, auto_pad)
    for o, s, d in zip(() if output_shape else more, stride, dilation, strict=False):
        if adds_too_much(o, s, d):
            what = f"an output_padding of {o} is not below the stride {s}"
            what += f" or the dilation {d}"
            raise ShapeError("onnx ConvTranspose", what, [("all", f"{[*more]}")])
    given = [x, weight] if bias is None else [x, weight, bias]
    # Spread without bias first: what is cut off or added at the end gets it as well.
    found = apply(
        ops.conv_transpose,
        *given[:2],
        stride=stride,
        padding=(0,) * dims,
        padding_out=(0,) * dims,
        dilation=dilation,
        groups=group,
    )
    found = padded(found, [(-a, o - b) for (a, b), o in zip(widths, more, strict=True)])
    if bias is None:
        return found
    return apply(ops.add, found, reshape(bias, (1, bias.value.shape[0], *[1] * dims)))


@operator("DeformConv")
def deform_conv(
    x: Tensor,
    weight: Tensor,
    offset: Tensor,
    bias: Tensor | None = None,
    mask: Tensor | None = None,
    *,
    dilations: Sizes = (),
    group: int = 1,
    kernel_shape: Sizes = (),
    offset_group: int = 1,
    pads: Sizes = (),
    strides: Sizes = (),
) -> Tensor:
    """A convolution whose taps wander by offsets."""
    widths = widths_of(
        x.value.shape[2:], weight.value.shape[2:], (), (), pads or (0,) * 4, ""
    )
    x = padded(x, widths)
    options = DeformConvOptions(
        tuple(strides) or 1, 0, tuple(dilations) or 1, group, offset_group
    )
    return deform_conv2d(x, offset, weight, mask, bias, options)


def summed_windows(x: Tensor, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Tensor:
    """The sum of every window of every channel."""
    n, c, *sizes = tuple(x.value.shape)
    ones = np.ones((1, 1, *kernel), np.dtype(x.value.dtype))
    found = apply(
        ops.conv2d if len(kernel) == 2 else conv_nd,
        reshape(x, (n * c, 1, *sizes)),
        as_tensor(ones, x.backend),
        stride=tuple(stride),
        padding=(0,) * len(kernel),
        dilation=tuple(dilation),
        groups=1,
    )
    return reshape(found, (n, c, *tuple(found.value.shape)[2:]))


def window_counts(
    inside: Sequence[tuple[int, int]],
    totals: Sizes,
    kernel: Sizes,
    stride: Sizes,
    dilation: Sizes,
) -> Any:
    """How many places of each window lie inside a range of each dim."""
    found = np.ones((), np.int64)
    for (low, high), total, k, s, d in zip(
        inside, totals, kernel, stride, dilation, strict=True
    ):
        starts = np.arange(0, total - (k - 1) * d, s)
        places = starts[:, None] + np.arange(k) * d
        row = ((places >= low) & (places < high)).sum(1)
        found = found[..., None] * row
    return found
