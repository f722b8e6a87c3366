"""Max pooling: every window is read once, where it lies.

The plain code goes over whole images once for each place of a window. Here a window
remembers its winner while it is read; what comes out is equal, bit for bit, NaN too.

Measured by the family pool, of tests/bench.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import exact_code, f32, inlined_part
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.conv.windows import Pair, output_size
from burnbook.ops.pool.pool import max_pool2d, max_pool2d_x

GRAIN = 1 << 14  # elements
I32 = np.dtype(np.int32)
LOWEST = f32(-np.inf)


@inlined_part
def update_best(line, step, number, best, place):
    """Numbers of a line, `step` apart, are one more place of windows in a row."""
    for q in range(best.size):
        value, so_far = line[q * step], best[q]
        better = (value > so_far) | (value != value)
        best[q] = value if better else so_far
        place[q] = number if better else place[q]


@exact_code("void(f4[:,:,::1], f4[:,:,::1], i4[:,:,::1], UniTuple(i8, 8), i8, i8)")
def largest_range(x, out, winner, sizes, start, stop):
    """The largest of every window, and its place, for some planes."""
    rows, cols, down, right, top, left, far_down, far_right = sizes
    _, height, width = x.shape
    for i in range(start, stop):
        out[i], winner[i] = LOWEST, 0
        for r in range(out.shape[1]):
            for k in range(rows):
                y = r * down - top + k * far_down
                if not 0 <= y < height:
                    continue
                for m in range(cols):
                    shift = m * far_right - left
                    # The windows for which this place is inside the line.
                    low = max((right - 1 - shift) // right, 0)
                    high = min((width - 1 - shift) // right + 1, out.shape[2])
                    if low >= high:
                        continue
                    line = x[i, y, low * right + shift :]
                    best, place = out[i, r, low:high], winner[i, r, low:high]
                    number = np.int32(k * cols + m)
                    if right == 1:
                        update_best(line, 1, number, best, place)
                    elif right == 2:
                        update_best(line, 2, number, best, place)
                    else:
                        update_best(line, right, number, best, place)


@exact_code("void(f4[:,:,::1], i4[:,:,::1], f4[:,:,::1], UniTuple(i8, 8), i8, i8)")
def give_back_range(g, winner, out, sizes, start, stop):
    """Every gradient to the place that won, for some planes."""
    _, cols, down, right, top, left, far_down, far_right = sizes
    for i in range(start, stop):
        out[i] = f32(0)
        for r in range(g.shape[1]):
            for q in range(g.shape[2]):
                k, m = divmod(winner[i, r, q], cols)
                y = r * down - top + k * far_down
                z = q * right - left + m * far_right
                if 0 <= y < out.shape[1] and 0 <= z < out.shape[2]:
                    out[i, y, z] += g[i, r, q]


@kernel(max_pool2d)
def max_pool2d_kernel(x, *, kernel_size, stride, padding, dilation):
    if not plain_f32(x):
        return None
    sizes = zip(x.shape[2:], kernel_size, stride, padding, dilation, strict=True)
    shape = (*x.shape[:2], *[output_size(*size) for size in sizes])
    out, winner = empty(shape), empty(shape, I32)
    settings = (*kernel_size, *stride, *padding, *dilation)
    run(largest_range, (x, out, winner), settings, kernel_size)
    return out, winner


@kernel(max_pool2d_x)
def max_pool2d_x_kernel(
    dout, winner, *, x_shape, kernel_size, stride, padding, dilation
):
    same = plain_f32(dout) and type(winner) is np.ndarray and winner.dtype is I32
    if not (same and winner.flags.carray):
        return None
    out = empty(tuple(x_shape))
    settings = (*kernel_size, *stride, *padding, *dilation)
    run(give_back_range, (dout, winner, out), settings, (1, 1))
    return out


def run(code: Any, arrays: tuple[Any, ...], settings: Any, window: Pair) -> None:
    """Share the planes out; each counts for what its windows read."""
    planes = [a.reshape(-1, *a.shape[2:]) for a in arrays]
    each = max(1, planes[1][0].size * window[0] * window[1])
    settings = tuple([int(number) for number in settings])
    threads.run(code, (*planes, settings), len(planes[0]), max(1, GRAIN // each))
