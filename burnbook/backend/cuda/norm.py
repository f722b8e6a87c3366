"""CuPy kernels for norms of rows: layer norm and RMS norm.

A row is normalized by the warp (or block) that found its mean and variance; groups of
channels are rows too, see batch_norm.py. ∂γ and ∂β are sums over rows: threads side by
side take columns side by side, each some of the rows, and one sum joins their shares.
"""

from typing import Any

import numpy as np

from burnbook.backend.cuda.source import (
    C_TYPES,
    ROWS,
    THREADS,
    blocks,
    each_row,
    kernel,
    program,
    served,
    whole,
)
from burnbook.backend.kernels import needed
from burnbook.ops.norm import FLOOR, layer_norm, rms_norm

SHARES = 64  # into how many sums the gradients of gamma and beta are split at most
Rows = tuple[int, int]
Lines = tuple[int, int, int]  # groups, channels of a group, places of a channel

SCALE = r"""
#if INSIDE
#define SCALE(var) (1 / sqrt((var) + epsilon))
#define BENT(var, scale) 1
#else
#define SCALE(var) (1 / (sqrt(var) + epsilon))
#define BENT(var, scale) (1 / ((scale) * larger(sqrt(var), FLOOR)))
#endif
"""

CODE = (
    ROWS
    + SCALE
    + r"""
#define CHANNEL(j) (places == 1 ? j : (unsigned)j / (unsigned)places)

extern "C" __global__ void norm_rows(
    long long rows, long long size, const REAL* x, const REAL* gamma,
    const REAL* beta, long long groups, long long channels, long long places,
    REAL epsilon, REAL* out, REAL* mean, REAL* var
) {
    long long row = ROW;
    if (row >= rows) return;
    x += row * size, out += row * size;
    REAL middle = 0, power = 0;
#if CENTER
    EACH(j) middle += x[j];
    middle = total_of(middle) / size;
#endif
    EACH(j)
        power += (x[j] - middle) * (x[j] - middle);
    power = total_of(power) / size;
    if (threadIdx.x == 0) {
        if (CENTER) mean[row] = middle;
        var[row] = power;
    }
    REAL scale = SCALE(power);
    long long first = row % groups * channels;
    EACH(j) {
        long long c = first + CHANNEL(j);
        REAL hat = (x[j] - middle) * scale;
        out[j] = hat * (gamma ? gamma[c] : 1) + (beta ? beta[c] : 0);
    }
}
extern "C" __global__ void norm_slopes(
    long long rows, long long size, const REAL* g, const REAL* x, const REAL* gamma,
    const REAL* mean, const REAL* var, long long groups, long long channels,
    long long places, REAL epsilon, REAL* out
) {
    long long row = ROW;
    if (row >= rows) return;
    g += row * size, x += row * size, out += row * size;
    REAL middle = CENTER ? mean[row] : 0, scale = SCALE(var[row]);
    long long first = row % groups * channels;
    REAL level = 0, along = 0;
    EACH(j) {
        long long c = first + CHANNEL(j);
        REAL h = g[j] * (gamma ? gamma[c] : 1);
        level += h;
        along += h * (x[j] - middle) * scale;
    }
    level = CENTER ? total_of(level) / size : 0;
    along = total_of(along) / size * BENT(var[row], scale);
    EACH(j) {
        long long c = first + CHANNEL(j);
        REAL h = g[j] * (gamma ? gamma[c] : 1);
        out[j] = (h - level - (x[j] - middle) * scale * along) * scale;
    }
}
extern "C" __global__ void column_sums(
    long long rows, long long size, const REAL* g, const REAL* x, const REAL* mean,
    const REAL* var, REAL epsilon, REAL* to_gamma, REAL* to_beta
) {
    long long j = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= size) return;
    long long first = blockIdx.y * rows / gridDim.y;
    long long last = (blockIdx.y + 1) * rows / gridDim.y;
    REAL along = 0, plain = 0;
    for (long long i = first; i < last; ++i) {
        REAL middle = CENTER ? mean[i] : 0, slope = g[i * size + j];
        along += slope * (x[i * size + j] - middle) * SCALE(var[i]);
        plain += slope;
    }
    to_gamma[blockIdx.y * size + j] = along;
    to_beta[blockIdx.y * size + j] = plain;
}
"""
)


@kernel(layer_norm)
def layer_rows(xp, x, gamma=None, beta=None, *, epsilon):
    """layer_norm, a row at a time.

    Shapes: x [..., d], gamma [d], beta [d] -> [..., d]
    """
    if not (served(x, gamma, beta) and x.size):
        return None
    rows = _rows(x)
    out, mean, var = normalize(
        xp, x, gamma, beta, rows, (1, rows[1], 1), epsilon, CENTER=1, INSIDE=1
    )
    kept = (*x.shape[:-1], 1)
    return out, mean.reshape(kept), var.reshape(kept)


@kernel(layer_norm.backward)
def layer_slopes(xp, g, x, gamma, mean, var, *, needs, epsilon):
    """The gradients of layer_norm for x, gamma and beta."""
    if not (served(g, x, gamma) and x.size):
        return None
    how = {"CENTER": 1, "INSIDE": 1}
    return _slopes(xp, g, x, gamma, (mean, var), needs, epsilon, how)


@kernel(rms_norm)
def rms_rows(xp, x, gamma=None, *, epsilon):
    """rms_norm, a row at a time.

    Shapes: x [..., d], gamma [d] -> [..., d]
    """
    if not (served(x, gamma) and x.size):
        return None
    rows = _rows(x)
    out, _, power = normalize(
        xp, x, gamma, None, rows, (1, rows[1], 1), epsilon, CENTER=0, INSIDE=1
    )
    return out, power.reshape((*x.shape[:-1], 1))


@kernel(rms_norm.backward)
def rms_slopes(xp, g, x, gamma, power, *, needs, epsilon):
    """The gradients of rms_norm for x and gamma."""
    if not (served(g, x, gamma) and x.size):
        return None
    how = {"CENTER": 0, "INSIDE": 1}
    return _slopes(xp, g, x, gamma, (None, power), needs, epsilon, how)


def _rows(x: Any) -> Rows:
    return x.size // x.shape[-1], x.shape[-1]


def _slopes(
    xp: Any,
    g: Any,
    x: Any,
    gamma: Any,
    moments: tuple[Any, Any],
    needs: tuple[bool, ...],
    epsilon: float,
    how: dict[str, int],
) -> Any:
    rows, size = _rows(x)
    dx = None
    if needs[0]:
        lines = (1, size, 1)
        dx = slope_rows(xp, g, x, gamma, *moments, (rows, size), lines, epsilon, **how)
    if not any(needs[1:]):
        return (dx, *[None] * len(needs[1:]))
    sums = xp.empty((2, min(SHARES, rows), size), dtype=x.dtype)
    given = (*whole(xp, g, x, *moments), x.dtype.type(epsilon), sums[0], sums[1])
    grid = (*blocks(size), sums.shape[1])
    run = program(xp, CODE, "column_sums", **_words(x, LANES=32, **how))
    run(grid, (THREADS,), (np.int64(rows), np.int64(size), *given))
    return needed((dx, *sums.sum(axis=1)), needs)


def normalize(
    xp: Any,
    x: Any,
    gamma: Any,
    beta: Any,
    rows: Rows,
    lines: Lines,
    epsilon: float,
    **how: int,
) -> tuple[Any, Any, Any]:
    """x with every row normalized, and the means and variances of the rows."""
    out = xp.empty(x.shape, dtype=x.dtype)
    mean, var = xp.empty((2, rows[0]), dtype=x.dtype)
    args = (*whole(xp, x, gamma, beta), *map(np.int64, lines), x.dtype.type(epsilon))
    each_row(xp, CODE, "norm_rows", rows, (*args, out, mean, var), **_words(x, **how))
    return out, mean, var


def slope_rows(
    xp: Any,
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    rows: Rows,
    lines: Lines,
    epsilon: float,
    **how: int,
) -> Any:
    """∂x = r (h − mean h − x̂ mean(h x̂)) for every row, where h = g γ."""
    out = xp.empty(x.shape, dtype=x.dtype)
    args = whole(xp, g, x, gamma, mean, var)
    numbers = (*map(np.int64, lines), x.dtype.type(epsilon))
    each_row(xp, CODE, "norm_slopes", rows, (*args, *numbers, out), **_words(x, **how))
    return out


def _words(x: Any, **how: int) -> dict[str, Any]:
    return {"REAL": C_TYPES[x.dtype.char], "FLOOR": f"((REAL){FLOOR})", **how}
