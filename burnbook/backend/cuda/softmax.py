"""CuPy kernels for softmax along the last dim.

A warp (a block, where rows are long) goes over its row three times: for the largest,
for the sum, for the result. The plain code needs six passes over the whole memory.
"""

from typing import Any

from burnbook.backend.cuda.source import C_TYPES, ROWS, each_row, kernel, served
from burnbook.ops.softmax import log_softmax, softmax

#: The largest of a row, and the sum of its exponentials.
SUMS = (
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
"""
)

CODE = (
    SUMS
    + r"""
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
"""
)


@kernel(softmax)
def softmax_rows(xp, x, *, dim):
    """softmax, a row at a time.

    Shapes: x [..., d] -> [..., d]
    """
    return _along_rows(xp, "softmax_rows", dim, x)


@kernel(log_softmax)
def log_softmax_rows(xp, x, *, dim):
    """log_softmax, a row at a time.

    Shapes: x [..., d] -> [..., d]
    """
    return _along_rows(xp, "log_rows", dim, x)


@kernel(softmax.backward)
def softmax_slopes(xp, g, out, *, needs, dim):
    """∂x = y (g − Σ g y)."""
    made = _along_rows(xp, "softmax_slopes", dim, g, out)
    return None if made is None else (made,)


@kernel(log_softmax.backward)
def log_softmax_slopes(xp, g, out, *, needs, dim):
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
    each_row(xp, CODE, name, sizes, (*given, out), REAL=C_TYPES[x.dtype.char])
    return out
