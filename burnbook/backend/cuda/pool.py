"""CuPy kernels for pooling: a thread for each number written.

Forward, a thread looks at its window. Backward, a thread looks at the windows that hold
its place, in the order in which the plain code adds them; nothing is added twice at a
time, so there are no atomics and every run gives the same.
"""

from typing import Any

import numpy as np

from burnbook.backend.cuda.source import C_TYPES, MOST, each, kernel, served
from burnbook.ops.conv.windows import Pair, Shape4, Windows
from burnbook.ops.pool.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_x,
    avg_pool2d,
    avg_pool2d_x,
    max_pool2d,
    max_pool2d_x,
    windows_of,
)

#: The sizes that every kernel is told: h, w of the image, and of the stops, and so on.
SIZES = """long long count, int high, int wide, int rows, int cols, int tall, int broad,
    int down, int right, int top, int left, int far, int aside, int all"""

CODE = (
    r"""
// Thread i writes place (y, x) of a plane with h rows of w places.
#define STAND(h, w) \
    int i = blockIdx.x * blockDim.x + threadIdx.x; \
    if (i >= count) return; \
    int y = i / (w) % (h), x = i % (w), plane = i / (w) / (h);
// How many places of a window lie on the image; with `all`, those on its padding count.
#define INSIDE(stop, step, pad, size, length) \
    (min((stop) * (step) - (pad) + (size), length) - max((stop) * (step) - (pad), 0))
#define SHARE(row, col) ((REAL)1 / (all ? tall * broad \
    : INSIDE(row, down, top, tall, high) * INSIDE(col, right, left, broad, wide)))
// Where window k of n starts and ends; the first and last window that hold a place.
#define FIRST(k, n, length) ((long long)(k) * (length) / (n))
#define LAST(k, n, length) (((long long)((k) + 1) * (length) + (n) - 1) / (n))
#define FROM(place, n, length) ((long long)(place) * (n) / (length))
#define UNTIL(place, n, length) (((long long)((place) + 1) * (n) - 1) / (length))

extern "C" __global__ void max_windows(
    SIZES, const REAL* image, REAL* out, int* winner
) {
    STAND(rows, cols)
    image += (long long)plane * high * wide;
    REAL best = 0;
    int won = 0;
    for (int a = 0; a < tall; ++a)
        for (int b = 0; b < broad; ++b) {
            int row = y * down - top + a * far, col = x * right - left + b * aside;
            bool on = 0 <= row && row < high && 0 <= col && col < wide;
            REAL value = on ? image[row * wide + col] : log((REAL)0);
            if ((a == 0 && b == 0) || value > best || value != value)
                best = value, won = a * broad + b;
        }
    out[i] = best;
    winner[i] = won;
}
extern "C" __global__ void max_slopes(
    SIZES, const REAL* dout, const INDEX* winner, REAL* out
) {
    STAND(high, wide)
    dout += (long long)plane * rows * cols;
    winner += (long long)plane * rows * cols;
    REAL sum = 0;
    for (int a = 0; a < tall; ++a)
        for (int b = 0; b < broad; ++b) {
            int row = y + top - a * far, col = x + left - b * aside;
            if (row < 0 || col < 0 || row % down || col % right) continue;
            row /= down, col /= right;
            if (row >= rows || col >= cols) continue;
            int at = row * cols + col;
            if (winner[at] == a * broad + b) sum += dout[at];
        }
    out[i] = sum;
}
extern "C" __global__ void mean_windows(SIZES, const REAL* image, REAL* out) {
    STAND(rows, cols)
    image += (long long)plane * high * wide;
    REAL sum = 0;
    for (int row = y * down - top; row < y * down - top + tall; ++row)
        for (int col = x * right - left; col < x * right - left + broad; ++col)
            if (0 <= row && row < high && 0 <= col && col < wide)
                sum += image[row * wide + col];
    out[i] = sum * SHARE(y, x);
}
extern "C" __global__ void mean_slopes(SIZES, const REAL* dout, REAL* out) {
    STAND(high, wide)
    dout += (long long)plane * rows * cols;
    REAL sum = 0;
    for (int a = 0; a < tall; ++a)
        for (int b = 0; b < broad; ++b) {
            int row = y + top - a, col = x + left - b;
            if (row < 0 || col < 0 || row % down || col % right) continue;
            row /= down, col /= right;
            if (row < rows && col < cols)
                sum += dout[row * cols + col] * SHARE(row, col);
        }
    out[i] = sum;
}
extern "C" __global__ void even_windows(SIZES, const REAL* image, REAL* out) {
    STAND(rows, cols)
    image += (long long)plane * high * wide;
    int above = FIRST(y, rows, high), below = LAST(y, rows, high);
    int from = FIRST(x, cols, wide), until = LAST(x, cols, wide);
    REAL sum = 0;
    for (int row = above; row < below; ++row)
        for (int col = from; col < until; ++col) sum += image[row * wide + col];
    out[i] = sum / ((below - above) * (until - from));
}
extern "C" __global__ void even_slopes(SIZES, const REAL* dout, REAL* out) {
    STAND(high, wide)
    dout += (long long)plane * rows * cols;
    REAL sum = 0;
    for (int row = FROM(y, rows, high); row <= UNTIL(y, rows, high); ++row)
        for (int col = FROM(x, cols, wide); col <= UNTIL(x, cols, wide); ++col)
            sum += dout[row * cols + col]
                / ((LAST(row, rows, high) - FIRST(row, rows, high))
                    * (LAST(col, cols, wide) - FIRST(col, cols, wide)));
    out[i] = sum;
}
"""
).replace("SIZES", SIZES)
INDEX_TYPES = {4: "int", 8: "long long"}


@kernel(max_pool2d)
def max_windows(xp, x, *, kernel_size, stride, padding, dilation):
    """max_pool2d in one pass, with the number of the place that won.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """
    windows = windows_of(x.shape[2:], kernel_size, stride, padding, dilation)
    shape = (*x.shape[:2], *windows.stops)
    if not _fits(x, shape):
        return None
    out, winner = xp.empty(shape, dtype=x.dtype), xp.empty(shape, dtype=np.int32)
    given = (*_sizes(windows), xp.ascontiguousarray(x), out, winner)
    each(xp, CODE, "max_windows", out.size, given, **_words(x))
    return out, winner


@kernel(max_pool2d_x)
def max_slopes(xp, dout, winner, *, x_shape, kernel_size, stride, padding, dilation):
    """The gradient of max_pool2d: each place asks its windows whether it won.

    Shapes: dout [n, c, h', w'], winner [n, c, h', w'] -> [n, c, h, w]
    """
    whole = winner.dtype.kind == "i" and winner.dtype.itemsize in INDEX_TYPES
    if not (whole and _fits(dout, x_shape)):
        return None
    windows = windows_of(x_shape[2:], kernel_size, stride, padding, dilation)
    out = xp.empty(x_shape, dtype=dout.dtype)
    arrays = (xp.ascontiguousarray(dout), xp.ascontiguousarray(winner), out)
    words = _words(dout, INDEX=INDEX_TYPES[winner.dtype.itemsize])
    each(xp, CODE, "max_slopes", out.size, (*_sizes(windows), *arrays), **words)
    return out


@kernel(avg_pool2d)
def mean_windows(xp, x, *, kernel_size, stride, padding, count_include_pad):
    """avg_pool2d in one pass.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """
    windows = windows_of(x.shape[2:], kernel_size, stride, padding, (1, 1))
    shape = (*x.shape[:2], *windows.stops)
    return _pooled(xp, "mean_windows", windows, x, shape, int(count_include_pad))


@kernel(avg_pool2d_x)
def mean_slopes(xp, dout, *, x_shape, kernel_size, stride, padding, count_include_pad):
    """The gradient of avg_pool2d: each place adds the shares of its windows.

    Shapes: dout [n, c, h', w'] -> [n, c, h, w]
    """
    windows = windows_of(x_shape[2:], kernel_size, stride, padding, (1, 1))
    return _pooled(xp, "mean_slopes", windows, dout, x_shape, int(count_include_pad))


@kernel(adaptive_avg_pool2d)
def even_windows(xp, x, *, output_size):
    """adaptive_avg_pool2d in one pass.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """
    windows = _even(x.shape, output_size)
    shape = (*x.shape[:2], *output_size)
    return _pooled(xp, "even_windows", windows, x, shape)


@kernel(adaptive_avg_pool2d_x)
def even_slopes(xp, dout, *, x_shape):
    """The gradient of adaptive_avg_pool2d: windows may overlap, each gives its share.

    Shapes: dout [n, c, h', w'] -> [n, c, h, w]
    """
    windows = _even(x_shape, dout.shape[2:])
    return _pooled(xp, "even_slopes", windows, dout, x_shape)


def _pooled(
    xp: Any, name: str, windows: Windows, x: Any, shape: Any, everywhere: int = 1
) -> Any:
    if not _fits(x, shape):
        return None
    out = xp.empty(tuple(shape), dtype=x.dtype)
    given = (*_sizes(windows, everywhere), xp.ascontiguousarray(x), out)
    each(xp, CODE, name, out.size, given, **_words(x))
    return out


def _even(x_shape: Shape4, stops: Pair) -> Windows:
    """Windows of which only the number matters."""
    return Windows(x_shape[2:], (1, 1), (1, 1), (0, 0), (1, 1), stops)


def _fits(x: Any, shape: Any) -> bool:
    made = int(np.prod(shape, dtype=np.int64))
    return served(x) and 0 < x.size < MOST and 0 < made < MOST


def _sizes(windows: Windows, everywhere: int = 1) -> tuple[Any, ...]:
    pairs = (windows.size, windows.stops, windows.kernel, windows.stride)
    pairs += (windows.padding, windows.dilation)
    return tuple([np.int32(n) for pair in (*pairs, (everywhere,)) for n in pair])


def _words(x: Any, **how: Any) -> dict[str, Any]:
    return {"REAL": C_TYPES[x.dtype.char], "INDEX": "int", **how}
