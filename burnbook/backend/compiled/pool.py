"""Average pooling where the windows divide the image evenly.

Measured by W1, inference and the family pool, of tests/bench.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.dropout import slopes_where_positive
from burnbook.backend.compiled.pool_planes import average_plane
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code, f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.conv.windows import Pair, Shape4
from burnbook.ops.pool.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_x,
    avg_pool2d,
    avg_pool2d_x,
)

GRAIN = 16  # planes


@kernel_code("void(f4[:,:,::1], f4[:,:,::1], i8, i8, i8, i8)")
def average_range(x, out, rows, cols, start, stop):
    """Average windows of rows × cols, side by side, for some planes."""
    _, height, width = x.shape
    shape = out.shape[1], out.shape[2]
    count = shape[0] * shape[1]
    line = np.empty(count * cols, f32)
    source, target = x.reshape(x.size), out.reshape(out.size)
    for i in range(start, stop):
        at, to = i * height * width, i * count
        average_plane(source, at, width, (rows, cols), shape, line, target, to)


@kernel_code("void(f4[:,:,::1], f4[:,:,::1], i8, i8, i8, i8)")
def share_range(g, out, rows, cols, start, stop):
    """Every window shares its gradient out evenly, for some planes."""
    share = f32(1 / (rows * cols))
    used = g.shape[2] * cols
    for i in range(start, stop):
        for r in range(g.shape[1]):
            line, source = out[i, r * rows], g[i, r]
            for q in range(source.size):
                u = source[q] * share
                for k in range(cols):
                    line[q * cols + k] = u
            for q in range(used, line.size):
                line[q] = f32(0)
            for k in range(1, rows):
                more = out[i, r * rows + k]
                for q in range(line.size):
                    more[q] = line[q]
        for r in range(g.shape[1] * rows, out.shape[1]):
            out[i, r] = f32(0)


@exact_code("void(f4[:,:,::1], f4[:,:,::1], f4[:,:,::1], i8, i8, f4, i8, i8)")
def share_rectified(g, y, out, rows, cols, scale, start, stop):
    """The same where y = relu(dropout(x)) was pooled: the gradient for x.

    scale: of dropout; see `rectified_slopes` in dropout.py.
    """
    share = f32(1 / (rows * cols))
    height, width = out.shape[1], out.shape[2]
    plane = np.zeros(height * width, f32)
    to_out, from_y = out.reshape(out.size), y.reshape(y.size)
    for i in range(start, stop):
        for r in range(g.shape[1]):
            at = r * rows * width
            line, source = plane[at : at + width], g[i, r]
            for q in range(source.size):
                u = source[q] * share
                for k in range(cols):
                    line[q * cols + k] = u
            for k in range(1, rows):
                more = plane[at + k * width : at + (k + 1) * width]
                for q in range(width):
                    more[q] = line[q]
        first, last = i * plane.size, (i + 1) * plane.size
        slopes_where_positive(plane, from_y[first:last], scale, to_out[first:last])


@kernel(adaptive_avg_pool2d)
def adaptive_kernel(x, *, output_size):
    h, w = x.shape[2:]
    if h % output_size[0] or w % output_size[1]:
        return None
    return _average(x, output_size, h // output_size[0], w // output_size[1])


@kernel(adaptive_avg_pool2d_x)
def adaptive_x_kernel(dout, *, x_shape):
    h, w = dout.shape[2:]
    if x_shape[2] % h or x_shape[3] % w:
        return None
    return _share(dout, x_shape, x_shape[2] // h, x_shape[3] // w)


@kernel(avg_pool2d)
def average_kernel(x, *, kernel_size, stride, padding, count_include_pad):
    if tuple(kernel_size) != tuple(stride) or tuple(padding) != (0, 0):
        return None
    size = (x.shape[2] // kernel_size[0], x.shape[3] // kernel_size[1])
    return _average(x, size, *kernel_size)


@kernel(avg_pool2d_x)
def average_x_kernel(dout, *, x_shape, kernel_size, stride, padding, count_include_pad):
    if tuple(kernel_size) != tuple(stride) or tuple(padding) != (0, 0):
        return None
    return _share(dout, x_shape, *kernel_size)


def _average(x: Any, size: Pair, rows: int, cols: int) -> Any:
    if not plain_f32(x):
        return None
    out = empty((*x.shape[:2], *size))
    planes = x.shape[0] * x.shape[1]
    views = (x.reshape(planes, *x.shape[2:]), out.reshape(planes, *size))
    threads.run(average_range, (*views, rows, cols), planes, GRAIN)
    return out


def _share(dout: Any, x_shape: Shape4, rows: int, cols: int) -> Any:
    if not plain_f32(dout):
        return None
    out = empty(tuple(x_shape))
    planes = x_shape[0] * x_shape[1]
    views = (dout.reshape(planes, *dout.shape[2:]), out.reshape(planes, *x_shape[2:]))
    threads.run(share_range, (*views, rows, cols), planes, GRAIN)
    return out
