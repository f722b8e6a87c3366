"""Building blocks · Backend. The kernels of the GPU: short, and only where they win.

A kernel takes the place of an op's plain code: it is called with the same values and
attributes, and answers None when it does not fit, so that the plain code runs. What is
here saves passes over the memory (dropout, Adam, cross-entropy), draws random bits
where they are needed (Philox), or makes one large product out of many small ones
(convolution).
"""

import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from burnbook.backend.cuda_updates import update_kernels
from burnbook.ops.conv import conv2d, conv2d_weight, conv2d_x
from burnbook.ops.patches import Pair, Plan, Shape4
from burnbook.ops.random import CHANCES, Key, dropout, dropout_limits
from burnbook.ops.softmax import cross_entropy, cross_entropy_logits

MOST_COLUMNS = 1 << 30  # bytes of patches laid out at once
MOST_CLASSES = 256  # above this a thread per row is slower than the plain code
THREADS = 256
_C_TYPES = {"f": "float", "d": "double"}


def kernels(cupy: Any) -> dict[Any, Callable[..., Any]]:
    """All kernels by op, for one array module."""

    def bound(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *values, **attrs: function(cupy, *values, **attrs)

    return {
        conv2d: bound(columns_conv2d),
        conv2d_x: bound(columns_conv2d_x),
        conv2d_weight: bound(columns_conv2d_weight),
        dropout: bound(draw_dropout),
        cross_entropy: bound(fused_cross_entropy),
        cross_entropy_logits: bound(fused_cross_entropy_logits),
        **update_kernels(cupy),
    }


# Convolution: lay the patches of the whole batch out once, then one matrix product.


def columns_conv2d(
    xp: Any,
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Any:
    """conv2d as one product per group: [o, taps] · [taps, stops of all images].

    Shapes: x [n, c, h, w], weight [o, c', k, l], bias [o] -> [n, o, h', w']
    """
    plan = Plan(x.shape, weight.shape, stride, padding, dilation, groups)
    if _too_large(plan, x.dtype):
        return None
    kernel = weight.reshape(groups, plan.o // groups, plan.taps)
    product = xp.matmul(kernel, _columns(xp, plan, x))
    out = product.reshape(plan.o, plan.n, plan.rows, plan.cols).swapaxes(0, 1)
    if bias is None:
        return xp.ascontiguousarray(out)
    return xp.ascontiguousarray(out + bias.reshape(1, -1, 1, 1))


def columns_conv2d_x(
    xp: Any,
    dout: Any,
    weight: Any,
    *,
    x_shape: Shape4,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Any:
    """The gradient for x: one product gives the columns, then every tap adds its own.

    Shapes: dout [n, o, h', w'], weight [o, c', k, l] -> [n, c, h, w]
    """
    plan = Plan(x_shape, weight.shape, stride, padding, dilation, groups)
    if _too_large(plan, dout.dtype):
        return None
    kernel = weight.reshape(groups, plan.o // groups, plan.taps).swapaxes(1, 2)
    columns = xp.matmul(kernel, _stops_last(xp, plan, dout)).reshape(
        plan.c, *plan.kernel, plan.n, plan.rows, plan.cols
    )
    padded = xp.zeros(plan.padded_shape, dtype=dout.dtype)
    down, right = plan.stride
    for i in range(plan.kernel[0]):
        for j in range(plan.kernel[1]):
            top, left = i * plan.dilation[0], j * plan.dilation[1]
            rows = slice(top, top + (plan.rows - 1) * down + 1, down)
            cols = slice(left, left + (plan.cols - 1) * right + 1, right)
            padded[:, :, rows, cols] += columns[:, i, j].swapaxes(0, 1)
    return plan.unpad(padded)


def columns_conv2d_weight(
    xp: Any,
    dout: Any,
    x: Any,
    *,
    weight_shape: Shape4,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Any:
    """The gradient for weight: [o, stops of all images] · [stops, taps], per group.

    Shapes: dout [n, o, h', w'], x [n, c, h, w] -> [o, c', k, l]
    """
    plan = Plan(x.shape, weight_shape, stride, padding, dilation, groups)
    if _too_large(plan, x.dtype):
        return None
    columns = _columns(xp, plan, x).swapaxes(1, 2)
    return xp.matmul(_stops_last(xp, plan, dout), columns).reshape(weight_shape)


def _too_large(plan: Plan, dtype: Any) -> bool:
    stops = plan.n * plan.rows * plan.cols
    return stops * plan.taps * plan.groups * dtype.itemsize > MOST_COLUMNS


def _columns(xp: Any, plan: Plan, x: Any) -> Any:
    """The patches of every image as columns: [groups, taps of a group, n · stops]."""
    padded = plan.pad(xp, x)
    image, channel, row, item = padded.strides
    (down, right), (far, wide) = plan.stride, plan.dilation
    patches = xp.lib.stride_tricks.as_strided(
        padded,
        (plan.c, *plan.kernel, plan.n, plan.rows, plan.cols),
        (channel, row * far, item * wide, image, row * down, item * right),
    )
    return xp.ascontiguousarray(patches).reshape(plan.groups, plan.taps, -1)


def _stops_last(xp: Any, plan: Plan, dout: Any) -> Any:
    """A gradient as [groups, output channels of a group, n · stops]."""
    channels_first = xp.ascontiguousarray(dout.swapaxes(0, 1))
    return channels_first.reshape(plan.groups, plan.o // plan.groups, -1)


# Random bits: ten rounds of Philox4x64 per thread, four words of 64 bits each.

PHILOX = r"""
typedef unsigned long long u64;
__device__ __forceinline__ void philox(u64 block, u64 low, u64 high, u64 word[4]) {
    u64 a = block + 1, b = 0, c = 0, d = 0;  // numpy.random.Philox begins at 1
    for (int round = 0; round < 10; ++round) {
        u64 a_high = __umul64hi(0xD2E7470EE14C6C93ULL, a);
        u64 a_low = 0xD2E7470EE14C6C93ULL * a;
        u64 c_high = __umul64hi(0xCA5A826395121157ULL, c);
        u64 c_low = 0xCA5A826395121157ULL * c;
        a = c_high ^ b ^ low;
        b = c_low;
        c = a_high ^ d ^ high;
        d = a_low;
        low += 0x9E3779B97F4A7C15ULL;
        high += 0xBB67AE8584CAA73BULL;
    }
    word[0] = a; word[1] = b; word[2] = c; word[3] = d;
}
"""

WORDS = (
    PHILOX
    + r"""
extern "C" __global__ void draw_words(u64* out, u64 count, u64 low, u64 high) {
    u64 block = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (4 * block >= count) return;
    u64 word[4];
    philox(block, low, high, word);
    for (int j = 0; j < 4 && 4 * block + j < count; ++j) out[4 * block + j] = word[j];
}
"""
)

DROPOUT = (
    PHILOX
    + r"""
extern "C" __global__ void draw_dropout(
    const REAL* x, REAL* out, u64 count, u64 low, u64 high,
    unsigned int threshold, REAL scale
) {
    u64 block = (u64)blockIdx.x * blockDim.x + threadIdx.x;
    if (16 * block >= count) return;
    u64 word[4];
    philox(block, low, high, word);
    for (int j = 0; j < 16 && 16 * block + j < count; ++j) {
        unsigned int chance = (word[j / 4] >> (16 * (j % 4))) & 0xFFFF;
        out[16 * block + j] = x[16 * block + j] * (chance >= threshold ? scale : 0);
    }
}
"""
)


def draw_words(cupy: Any, count: int, key: Key) -> Any:
    """The first `count` words of a key's sequence, as 64-bit integers.

    Shapes: -> [count]
    """
    out = cupy.empty(count, dtype=np.uint64)
    if count:
        numbers = (np.uint64(count), np.uint64(key[0]), np.uint64(key[1]))
        compiled = raw_kernel(cupy, "draw_words", WORDS)
        compiled(_grid(count, 4), (THREADS,), (out, *numbers))
    return out


def draw_dropout(cupy: Any, x: Any, *, prob: float, key: Key) -> Any:
    """dropout in one pass: each thread draws the bits of sixteen elements.

    Shapes: x [...] -> [...]
    """
    threshold, scale = dropout_limits(prob)
    real = _C_TYPES.get(x.dtype.char)
    if real is None or threshold == CHANCES or x.size == 0:
        return None
    x = cupy.ascontiguousarray(x)
    out = cupy.empty(x.shape, dtype=x.dtype)
    numbers = (np.uint64(x.size), np.uint64(key[0]), np.uint64(key[1]))
    limits = (np.uint32(threshold), x.dtype.type(scale))
    compiled = raw_kernel(cupy, "draw_dropout", DROPOUT.replace("REAL", real))
    compiled(_grid(x.size, 16), (THREADS,), (x, out, *numbers, *limits))
    return out


def _grid(count: int, per_thread: int) -> tuple[int]:
    return (math.ceil(count / (per_thread * THREADS)),)


@cache
def raw_kernel(cupy: Any, name: str, code: str) -> Any:
    """Compile once per process; CuPy keeps the result on disk for the next one."""
    return cupy.RawKernel(code, name)


# Losses: one thread per row.

ROWS = r"""
extern "C" __global__ void row_losses(
    const REAL* logits, const INDEX* targets, long long rows, int classes,
    REAL* losses, int* wrong
) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const REAL* row = logits + i * classes;
    REAL largest = row[0], total = 0;
    for (int j = 1; j < classes; ++j) largest = row[j] > largest ? row[j] : largest;
    for (int j = 0; j < classes; ++j) total += exp(row[j] - largest);
    long long target = targets[i];
    bool inside = 0 <= target && target < classes;
    losses[i] = inside ? log(total) + largest - row[target] : 0;
    if (!inside) wrong[0] = 1;
}
extern "C" __global__ void row_slopes(
    const REAL* logits, const INDEX* targets, long long rows, int classes,
    const REAL* dout, REAL* slopes
) {
    long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows) return;
    const REAL* row = logits + i * classes;
    REAL largest = row[0], total = 0, share = dout[0] / rows;
    for (int j = 1; j < classes; ++j) largest = row[j] > largest ? row[j] : largest;
    for (int j = 0; j < classes; ++j) total += exp(row[j] - largest);
    for (int j = 0; j < classes; ++j) {
        REAL chance = exp(row[j] - largest) / total;
        slopes[i * classes + j] = (chance - (j == targets[i] ? 1 : 0)) * share;
    }
}
"""
_INDEX_TYPES = {4: "int", 8: "long long"}


def fused_cross_entropy(cupy: Any, logits: Any, targets: Any) -> Any:
    """cross_entropy with one thread per row; a wrong target is left to the plain code.

    Shapes: logits [n, c], targets [n] -> [1]
    """
    if not _row_by_row(logits, targets):
        return None
    losses = cupy.empty(logits.shape[0], dtype=logits.dtype)
    wrong = cupy.zeros(1, dtype=np.int32)
    _run_rows(cupy, "row_losses", logits, targets, losses, wrong)
    return None if int(wrong[0]) else losses.mean(keepdims=True)


def fused_cross_entropy_logits(cupy: Any, dout: Any, logits: Any, targets: Any) -> Any:
    """The gradient of cross_entropy, one thread per row.

    Shapes: dout [1], logits [n, c], targets [n] -> [n, c]
    """
    if not _row_by_row(logits, targets):
        return None
    slopes = cupy.empty(logits.shape, dtype=logits.dtype)
    _run_rows(cupy, "row_slopes", logits, targets, dout, slopes)
    return slopes


def _row_by_row(logits: Any, targets: Any) -> bool:
    fits = logits.dtype.char in _C_TYPES and targets.dtype.itemsize in _INDEX_TYPES
    return fits and targets.dtype.kind == "i" and 0 < logits.shape[1] <= MOST_CLASSES


def _run_rows(cupy: Any, name: str, logits: Any, targets: Any, *arrays: Any) -> None:
    code = ROWS.replace("REAL", _C_TYPES[logits.dtype.char])
    code = code.replace("INDEX", _INDEX_TYPES[targets.dtype.itemsize])
    rows, classes = logits.shape
    given = [cupy.ascontiguousarray(a) for a in (logits, targets)]
    sizes = (np.int64(rows), np.int32(classes))
    compiled = raw_kernel(cupy, name, code)
    compiled(_grid(rows, 1), (THREADS,), (*given, *sizes, *arrays))
