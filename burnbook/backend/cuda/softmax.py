"""CuPy kernels for softmax along the last dim, and its losses.

A warp (a block, where rows are long) goes over its row three times: for the largest,
for the sum, for the result. The plain code needs six passes over the whole memory.
"""

from typing import Any

import numpy as np

from burnbook.backend.cuda.source import C_TYPES, ROWS, each_row, kernel, served
from burnbook.ops.softmax import (
    cross_entropy,
    cross_entropy_logits,
    log_softmax,
    softmax,
)

CODE = (
    ROWS
    + r"""
__device__ __forceinline__ REAL peak_of(const REAL* line, long long size) {
    REAL peak = LOWEST;
    EACH(j) peak = larger(peak, line[j]);
    return largest_of(peak);
}
__device__ __forceinline__ REAL raised(const REAL* line, long long size, REAL peak) {
    REAL sum = 0;
    EACH(j) sum += exp(line[j] - peak);
    return total_of(sum);
}
extern "C" __global__ void softmax_rows(
    long long rows, long long size, const REAL* x, REAL* out
) {
    long long row = ROW;
    if (row >= rows) return;
    const REAL* line = x + row * size;
    REAL peak = peak_of(line, size), share = 1 / raised(line, size, peak);
    EACH(j)
        out[row * size + j] = exp(line[j] - peak) * share;
}
extern "C" __global__ void log_rows(
    long long rows, long long size, const REAL* x, REAL* out
) {
    long long row = ROW;
    if (row >= rows) return;
    const REAL* line = x + row * size;
    REAL peak = peak_of(line, size), rest = log(raised(line, size, peak));
    EACH(j)
        out[row * size + j] = line[j] - peak - rest;
}
extern "C" __global__ void softmax_slopes(
    long long rows, long long size, const REAL* g, const REAL* y, REAL* out
) {
    long long row = ROW;
    if (row >= rows) return;
    g += row * size, y += row * size, out += row * size;
    REAL along = 0;
    EACH(j) along += g[j] * y[j];
    along = total_of(along);
    EACH(j) out[j] = y[j] * (g[j] - along);
}
extern "C" __global__ void log_slopes(
    long long rows, long long size, const REAL* g, const REAL* y, REAL* out
) {
    long long row = ROW;
    if (row >= rows) return;
    g += row * size, y += row * size, out += row * size;
    REAL along = 0;
    EACH(j) along += g[j];
    along = total_of(along);
    EACH(j) out[j] = g[j] - exp(y[j]) * along;
}
extern "C" __global__ void row_losses(
    long long rows, long long size, const REAL* x, const INDEX* targets,
    REAL* losses, int* wrong
) {
    long long row = ROW;
    if (row >= rows) return;
    const REAL* line = x + row * size;
    REAL peak = peak_of(line, size), rest = log(raised(line, size, peak));
    if (threadIdx.x > 0) return;
    long long target = targets[row];
    bool inside = 0 <= target && target < size;
    losses[row] = inside ? rest + peak - line[target] : 0;
    if (!inside) wrong[0] = 1;
}
extern "C" __global__ void loss_slopes(
    long long rows, long long size, const REAL* x, const INDEX* targets,
    const REAL* dout, REAL* out
) {
    long long row = ROW;
    if (row >= rows) return;
    const REAL* line = x + row * size;
    REAL peak = peak_of(line, size), share = 1 / raised(line, size, peak);
    REAL part = dout[0] / rows;
    EACH(j)
        out[row * size + j]
            = (exp(line[j] - peak) * share - (j == targets[row])) * part;
}
"""
)
INDEX_TYPES = {4: "int", 8: "long long"}


@kernel(softmax)
def softmax_rows(xp: Any, x: Any, *, dim: int) -> Any:
    """softmax, a row at a time.

    Shapes: x [..., d] -> [..., d]
    """
    return _along_rows(xp, "softmax_rows", dim, x)


@kernel(log_softmax)
def log_softmax_rows(xp: Any, x: Any, *, dim: int) -> Any:
    """log_softmax, a row at a time.

    Shapes: x [..., d] -> [..., d]
    """
    return _along_rows(xp, "log_rows", dim, x)


@kernel(softmax.backward)
def softmax_slopes(
    xp: Any, g: Any, out: Any, *, needs: tuple[bool, ...], dim: int
) -> Any:
    """∂x = y (g − Σ g y)."""
    made = _along_rows(xp, "softmax_slopes", dim, g, out)
    return None if made is None else (made,)


@kernel(log_softmax.backward)
def log_softmax_slopes(
    xp: Any, g: Any, out: Any, *, needs: tuple[bool, ...], dim: int
) -> Any:
    """∂x = g − exp(y) Σ g."""
    made = _along_rows(xp, "log_slopes", dim, g, out)
    return None if made is None else (made,)


def _along_rows(xp: Any, name: str, dim: int, *arrays: Any) -> Any:
    x = arrays[-1]
    last = x.ndim > 0 and dim in (-1, x.ndim - 1)
    if not (last and x.size and served(*arrays)):
        return None
    out = xp.empty(x.shape, dtype=x.dtype)
    given = [xp.ascontiguousarray(a) for a in arrays]
    sizes = (x.size // x.shape[-1], x.shape[-1])
    each_row(xp, CODE, name, sizes, (*given, out), **_words(x, 8))
    return out


@kernel(cross_entropy)
def row_losses(xp: Any, logits: Any, targets: Any) -> Any:
    """cross_entropy, a row at a time; a wrong target is left to the plain code.

    Shapes: logits [n, c], targets [n] -> [1]
    """
    if not _row_by_row(logits, targets):
        return None
    losses = xp.empty(logits.shape[0], dtype=logits.dtype)
    wrong = xp.zeros(1, dtype=np.int32)
    _losses(xp, "row_losses", logits, targets, losses, wrong)
    return None if int(wrong[0]) else losses.mean(keepdims=True)


@kernel(cross_entropy_logits)
def loss_slopes(xp: Any, dout: Any, logits: Any, targets: Any) -> Any:
    """The gradient of cross_entropy, a row at a time.

    Shapes: dout [1], logits [n, c], targets [n] -> [n, c]
    Why: the targets were looked at when the loss was computed, so not again.
    """
    if not _row_by_row(logits, targets) or not served(dout, logits):
        return None
    slopes = xp.empty(logits.shape, dtype=logits.dtype)
    _losses(xp, "loss_slopes", logits, targets, dout, slopes)
    return slopes


def _row_by_row(logits: Any, targets: Any) -> bool:
    whole = targets.dtype.kind == "i" and targets.dtype.itemsize in INDEX_TYPES
    return whole and served(logits) and logits.ndim == 2 and logits.size > 0


def _losses(xp: Any, name: str, logits: Any, targets: Any, *arrays: Any) -> None:
    given = [xp.ascontiguousarray(a) for a in (logits, targets)]
    words = _words(logits, targets.dtype.itemsize)
    each_row(xp, CODE, name, logits.shape, (*given, *arrays), **words)


def _words(x: Any, itemsize: int) -> dict[str, str]:
    return {"REAL": C_TYPES[x.dtype.char], "INDEX": INDEX_TYPES[itemsize]}
