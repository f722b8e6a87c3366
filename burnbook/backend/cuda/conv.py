"""Convolution on the GPU: one product for the whole batch.

The plain code makes one small product for each image; here the patches of all images
are laid out once, and one large product takes them.
"""

from typing import Any

from burnbook.backend.cuda.source import kernel
from burnbook.ops.conv.conv import conv2d, conv2d_weight, conv2d_x
from burnbook.ops.conv.im2col import Plan

MOST_COLUMNS = 1 << 30  # bytes of patches laid out at once


@kernel(conv2d)
def columns_conv2d(xp, x, weight, bias=None, *, stride, padding, dilation, groups):
    """conv2d as one product per group: [o, taps] · [taps, stops of all images].

    Shapes: x [n, c, h, w], weight [o, c', k, l], bias [o] -> [n, o, h', w']
    """
    plan = Plan.of(x.shape, weight.shape, stride, padding, dilation, groups)
    if _too_large(plan, x.dtype):
        return None
    product = xp.matmul(weight.reshape(plan.kernel_shape), _columns(xp, plan, x))
    out = product.reshape(plan.o, plan.n, *plan.stops).swapaxes(0, 1)
    if bias is None:
        return xp.ascontiguousarray(out)
    return xp.ascontiguousarray(out + bias.reshape(plan.bias_shape))


@kernel(conv2d_x)
def columns_conv2d_x(xp, dout, weight, *, x_shape, stride, padding, dilation, groups):
    """The gradient for x: one product gives the columns, then every tap adds its own.

    Shapes: dout [n, o, h', w'], weight [o, c', k, l] -> [n, c, h, w]
    """
    plan = Plan.of(x_shape, weight.shape, stride, padding, dilation, groups)
    if _too_large(plan, dout.dtype):
        return None
    windows, kernel = plan.windows, weight.reshape(plan.kernel_shape).swapaxes(1, 2)
    columns = xp.matmul(kernel, _stops_last(xp, plan, dout)).reshape(
        plan.c, *windows.kernel, plan.n, *plan.stops
    )
    padded = xp.zeros(plan.padded_shape, dtype=dout.dtype)
    for (i, j), place in windows.places:
        padded[place] += columns[:, i, j].swapaxes(0, 1)
    return windows.unpad(padded)


@kernel(conv2d_weight)
def columns_conv2d_weight(
    xp, dout, x, *, weight_shape, stride, padding, dilation, groups
):
    """The gradient for weight: [o, stops of all images] · [stops, taps], per group.

    Shapes: dout [n, o, h', w'], x [n, c, h, w] -> [o, c', k, l]
    """
    plan = Plan.of(x.shape, weight_shape, stride, padding, dilation, groups)
    if _too_large(plan, x.dtype):
        return None
    columns = _columns(xp, plan, x).swapaxes(1, 2)
    return xp.matmul(_stops_last(xp, plan, dout), columns).reshape(weight_shape)


def _too_large(plan: Plan, dtype: Any) -> bool:
    columns = plan.n * plan.count * plan.taps * plan.groups
    return columns * dtype.itemsize > MOST_COLUMNS


def _columns(xp: Any, plan: Plan, x: Any) -> Any:
    """The patches of every image as columns: [groups, taps of a group, n · stops]."""
    patches = plan.windows.view(xp, plan.pad(xp, x))  # [n, c, kernel..., stops...]
    columns = xp.ascontiguousarray(xp.moveaxis(patches, 0, 3))
    return columns.reshape(plan.groups, plan.taps, -1)


def _stops_last(xp: Any, plan: Plan, dout: Any) -> Any:
    """A gradient as [groups, output channels of a group, n · stops]."""
    channels_first = xp.ascontiguousarray(dout.swapaxes(0, 1))
    return channels_first.reshape(*plan.kernel_shape[:2], -1)
