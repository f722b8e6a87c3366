"""Convolution over lines: images of one row.

A line is an image one pixel high, so the kernels of images serve it. And a transposed
convolution computes what a convolution's gradient does.

Measured by the families conv and conv_transpose, of tests/bench.
"""

from typing import Any

from burnbook.backend.compiled import conv as images
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.conv.conv import conv
from burnbook.ops.conv.conv_transpose import conv_transpose
from burnbook.ops.conv.windows import Sizes


def _high(x: Any) -> Any:
    """A line as an image; what is no line stays."""
    return x[:, :, None] if x.ndim == 3 else x


def _low(x: Any) -> Any:
    """An image of one row as a line."""
    return None if x is None else x[:, :, 0]


def _sizes(stride: Sizes, padding: Sizes, dilation: Sizes) -> dict[str, Any]:
    return {
        "stride": (1, *stride),
        "padding": (0, *padding),
        "dilation": (1, *dilation),
    }


@kernel(conv)
def conv_kernel(x, weight, bias=None, *, stride, padding, dilation, groups):
    if x.ndim != 3:
        return None
    sizes = _sizes(stride, padding, dilation)
    out = images.conv2d_kernel(_high(x), _high(weight), bias, groups=groups, **sizes)
    return _low(out)


@kernel(conv.backward)
def conv_backward(
    g, x, weight, x_shape, weight_shape, *, needs, stride, padding, dilation, groups
):
    if g.ndim != 3 or x is None or weight is None:
        return None
    found = images.conv2d_backward(
        *(_high(g), _high(x), _high(weight)),
        (*x_shape[:2], 1, x_shape[2]),
        (*weight_shape[:2], 1, weight_shape[2]),
        needs=needs,
        groups=groups,
        **_sizes(stride, padding, dilation),
    )
    if found is None:
        return None
    dx, dw, db = found
    return _low(dx), _low(dw), db


@kernel(conv_transpose)
def conv_transpose_kernel(
    x, weight, bias=None, *, stride, padding, padding_out, dilation, groups
):
    if x.ndim != 3 or tuple(padding_out) != (0,):
        return None
    x, weight = _high(x), _high(weight)
    taps = weight.shape[3]
    around = dilation[0] * (taps - 1) - padding[0]
    if around < 0 or not images.served(x, weight, (1, *stride)):
        return None
    rows = weight.shape[1]
    length = x.shape[3] + around - padding[0]
    out = empty((x.shape[0], rows * groups, 1, length))
    how = (0, around, 1, dilation[0], groups, rows, 1, taps)
    laid = images.laid_weights(images.flipped(weight, groups), bias, length, how)
    args = (x, *laid, out, how, images.PLAIN)
    threads.run(images.correlate_laid, args, x.shape[0])
    return out[:, :, 0]


@kernel(conv_transpose.backward)
def conv_transpose_backward(
    g,
    x,
    weight,
    x_shape,
    weight_shape,
    *,
    needs,
    stride,
    padding,
    padding_out,
    dilation,
    groups,
):
    if g.ndim != 3 or tuple(padding_out) != (0,) or x is None or weight is None:
        return None
    if not (plain_f32(g) and images.served(_high(x), _high(weight), (1, *stride))):
        return None
    sizes = _sizes(stride, padding, dilation)
    need_x, need_weight, need_bias = needs
    dx = dw = None
    if need_x:
        made = images.conv2d_kernel(_high(g), _high(weight), groups=groups, **sizes)
        dx = _low(made)
    if need_weight:
        found = images.conv2d_backward(
            *(_high(x), _high(g), _high(weight), None, None),
            needs=(False, True, False),
            groups=groups,
            **sizes,
        )
        if found is None:
            return None
        dw = _low(found[1])
    db = g.sum(axis=(0, 2)) if need_bias else None
    return dx, dw, db
