"""CuPy kernels for norms of channels: batch norm, group norm.

A block of threads takes one channel of the whole batch, sums over all its places in a
fixed order, and goes over them again to write.
"""

from typing import Any

import numpy as np

from burnbook.backend.cuda.norm import SCALE, normalize, slope_rows
from burnbook.backend.cuda.source import (
    C_TYPES,
    MOST,
    ROWS,
    THREADS,
    each,
    kernel,
    program,
    served,
    whole,
)
from burnbook.backend.kernels import needed
from burnbook.ops.batch_norm import batch_norm, batch_norm_known
from burnbook.ops.norm import group_norm

CODE = (
    ROWS
    + SCALE
    + r"""
// Where number k of a channel's places lies in x [count, channels, places].
#define PLACE(k) (((k) / places * channels + c) * places + (k) % places)

extern "C" __global__ void batch_rows(
    const REAL* x, const REAL* gamma, const REAL* beta, unsigned count,
    unsigned channels, unsigned places, REAL epsilon, REAL* out, REAL* mean, REAL* var
) {
    unsigned c = blockIdx.x, size = count * places;
    REAL middle = 0, power = 0;
    for (unsigned k = threadIdx.x; k < size; k += LANES) middle += x[PLACE(k)];
    middle = total_of(middle) / size;
    for (unsigned k = threadIdx.x; k < size; k += LANES) {
        REAL far = x[PLACE(k)] - middle;
        power += far * far;
    }
    power = total_of(power) / size;
    if (threadIdx.x == 0) mean[c] = middle, var[c] = power;
    REAL scale = SCALE(power), factor = scale * gamma[c], shift = beta[c];
    for (unsigned k = threadIdx.x; k < size; k += LANES)
        out[PLACE(k)] = (x[PLACE(k)] - middle) * factor + shift;
}
// MOMENT(k) is whose mean and variance place k has. sums: those of g x̂ and of g.
extern "C" __global__ void channel_slopes(
    const REAL* g, const REAL* x, const REAL* gamma, const REAL* mean,
    const REAL* var, unsigned count, unsigned channels, unsigned places,
    unsigned groups, REAL epsilon, REAL* sums, REAL* out
) {
    unsigned c = blockIdx.x, size = count * places;
    REAL along = 0, plain = 0;
    for (unsigned k = threadIdx.x; k < size; k += LANES) {
        REAL slope = g[PLACE(k)];
        along += slope * (x[PLACE(k)] - mean[MOMENT(k)]) * SCALE(var[MOMENT(k)]);
        plain += slope;
    }
    along = total_of(along);
    plain = total_of(plain);
    if (threadIdx.x == 0) sums[c] = along, sums[channels + c] = plain;
    if (!out) return;
    REAL middle = mean[c], scale = SCALE(var[c]), factor = scale * gamma[c];
    REAL level = KNOWN ? 0 : plain / size, tilt = KNOWN ? 0 : along / size * scale;
    for (unsigned k = threadIdx.x; k < size; k += LANES)
        out[PLACE(k)] = (g[PLACE(k)] - level - (x[PLACE(k)] - middle) * tilt) * factor;
}
extern "C" __global__ void known_lines(
    long long count, const REAL* x, const REAL* gamma, const REAL* beta,
    const REAL* mean, const REAL* var, unsigned channels, unsigned places,
    REAL epsilon, REAL* out
) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned c = i / places % channels;
    REAL factor = SCALE(var[c]) * gamma[c];
    out[i] = x[i] * factor + (beta[c] - mean[c] * factor);
}
"""
)
OWN = {"INSIDE": 1, "KNOWN": 0, "MOMENT(k)": "c"}
OF_GROUP = "((k) / places * groups + c / (channels / groups))"


@kernel(batch_norm)
def batch_rows(xp, x, gamma, beta, *, epsilon):
    """batch_norm, a channel at a time.

    Shapes: x [n, c, ...], gamma [c], beta [c] -> [n, c, ...]
    """
    if not _fits(x, gamma, beta):
        return None
    out = xp.empty(x.shape, dtype=x.dtype)
    mean, var = xp.empty((2, x.shape[1]), dtype=x.dtype)
    args = (*whole(xp, x, gamma, beta), *_sizes(x), x.dtype.type(epsilon))
    run = program(xp, CODE, "batch_rows", **_words(x, **OWN))
    run((x.shape[1],), (THREADS,), (*args, out, mean, var))
    return out, mean, var


@kernel(batch_norm.backward)
def batch_slopes(xp, g, x, gamma, mean, var, *, needs, epsilon):
    """The gradients of batch_norm for x, gamma and beta."""
    if not _fits(x, g, gamma):
        return None
    given = (g, x, gamma, mean, var)
    dx, sums = _slopes(xp, *given, x.shape[1], epsilon, needs[0], **OWN)
    return needed((dx, *sums), needs)


@kernel(batch_norm_known)
def known_lines(xp, x, gamma, beta, mean, var, *, epsilon):
    """batch_norm_known, a straight line per channel, in one pass.

    Shapes: x [n, c, ...], gamma [c], beta [c], mean [c], var [c] -> [n, c, ...]
    """
    if not _fits(x, gamma, beta, mean, var):
        return None
    out = xp.empty(x.shape, dtype=x.dtype)
    args = (*whole(xp, x, gamma, beta, mean, var), *_sizes(x)[1:])
    words = _words(x, **OWN)
    each(
        *(xp, CODE, "known_lines", x.size, (*args, x.dtype.type(epsilon), out)),
        **words,
    )
    return out


@kernel(batch_norm_known.backward)
def known_slopes(xp, g, x, gamma, mean, var, *, needs, epsilon):
    """All gradients of batch_norm_known; those of γ, β, μ and σ² come from two sums."""
    if not _fits(x, g, gamma, mean, var):
        return None
    given, how = (g, x, gamma, mean, var), {**OWN, "KNOWN": 1}
    dx, (along, plain) = _slopes(xp, *given, x.shape[1], epsilon, needs[0], **how)
    to_mean = to_var = None
    if needs[3] or needs[4]:
        scale = 1 / xp.sqrt(var + epsilon)
        to_mean = -plain * gamma * scale
        to_var = along * gamma * scale * scale * -0.5
    return needed((dx, along, plain, to_mean, to_var), needs)


@kernel(group_norm)
def group_rows(xp, x, gamma=None, beta=None, *, groups, epsilon, inside):
    """group_norm: the channels of a group in one example are a row.

    Shapes: x [n, c, ...], gamma [c], beta [c] -> [n, c, ...]
    """
    if not _fits(x, gamma, beta):
        return None
    rows, lines = _rows_of_groups(x, groups)
    how = {"CENTER": 1, "INSIDE": int(inside)}
    made = normalize(xp, x, gamma, beta, rows, lines, epsilon, **how)
    kept = (x.shape[0], groups, 1, 1)
    return made[0], made[1].reshape(kept), made[2].reshape(kept)


@kernel(group_norm.backward)
def group_slopes(xp, g, x, gamma, mean, var, *, needs, groups, epsilon, inside):
    """The gradients of group_norm for x, gamma and beta."""
    if not _fits(x, g, gamma):
        return None
    rows, lines = _rows_of_groups(x, groups)
    dx, sums = None, (None, None)
    given = (g, x, gamma, mean, var)
    if needs[0]:
        how = {"CENTER": 1, "INSIDE": int(inside)}
        dx = slope_rows(xp, *given, rows, lines, epsilon, **how)
    if any(needs[1:]):
        how = {"INSIDE": int(inside), "KNOWN": 0, "MOMENT(k)": OF_GROUP}
        _, sums = _slopes(xp, *given, groups, epsilon, False, **how)
    return needed((dx, *sums), needs)


def _slopes(
    xp: Any,
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    groups: int,
    epsilon: float,
    need: bool,
    **how: Any,
) -> tuple[Any, Any]:
    """∂x where it is needed, and the sums of g x̂ and g over each channel. [2, c]"""
    dx = xp.empty(x.shape, dtype=x.dtype) if need else None
    sums = xp.empty((2, x.shape[1]), dtype=x.dtype)
    args = (*whole(xp, g, x, gamma, mean, var), *_sizes(x), np.uint32(groups))
    run = program(xp, CODE, "channel_slopes", **_words(x, **how))
    given = (*args, x.dtype.type(epsilon), sums, *whole(xp, dx))
    run((x.shape[1],), (THREADS,), given)
    return dx, sums


def _fits(x: Any, *others: Any) -> bool:
    return served(x, *others) and 0 < x.size < MOST and x.ndim > 1


def _sizes(x: Any) -> tuple[Any, ...]:
    """x as [count, channels, places]."""
    places = x.size // (x.shape[0] * x.shape[1])
    return tuple(map(np.uint32, (x.shape[0], x.shape[1], places)))


def _rows_of_groups(x: Any, groups: int) -> tuple[Any, Any]:
    rows, channels = x.shape[0] * groups, x.shape[1] // groups
    size = x.size // rows
    return (rows, size), (groups, channels, size // channels)


def _words(x: Any, **how: Any) -> dict[str, Any]:
    real = C_TYPES[x.dtype.char]
    return {"REAL": real, "FLOOR": "((REAL)1e-12)", "LANES": THREADS, **how}
