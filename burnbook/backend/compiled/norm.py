"""Normalization of rows: layer norm and RMS norm.

Measured by W3 and the family norm, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.row_sums import (
    above_zero,
    grain,
    line,
    scale_of,
    served,
    spread_around,
    squares_around,
    sum_around,
    sum_of,
    whole,
)
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.kernels import needed
from burnbook.ops.norm import layer_norm, rms_norm

SHARES = 16  # into how many sums the gradients of gamma and beta are split, always
ROWS, LINE = "f4[:,::1], ", "f4[::1], "


@kernel_code(f"void({ROWS}{LINE * 2}{ROWS}{LINE * 2}f4, i8, i8)")
def layer_rows(x, gamma, beta, out, mean, var, epsilon, start, stop):
    share = f32(1) / f32(x.shape[1])
    for i in range(start, stop):
        row, target = x[i], out[i]
        m = sum_of(row) * share
        m += sum_around(row, m) * share
        rest, v = spread_around(row, m)
        rest *= share
        v = above_zero(v * share - rest * rest)
        r = scale_of(v, epsilon, True)
        shift = rest * r
        mean[i], var[i] = m, v
        for j in range(row.size):
            target[j] = row[j] - m  # alone, lest m and the shift are put together
        for j in range(row.size):
            target[j] = (target[j] * r - shift) * gamma[j] + beta[j]


@kernel_code(f"void({ROWS * 2}{LINE * 3}{ROWS}{ROWS * 2}f4, i8, i8)")
def layer_slopes(g, x, gamma, mean, var, dx, dgamma, dbeta, epsilon, start, stop):
    """All three gradients of layer_norm, for some shares of the rows."""
    rows, size = x.shape
    each = f32(1) / f32(size)
    for share in range(start, stop):
        to_gamma, to_beta = dgamma[share], dbeta[share]
        to_gamma[:] = f32(0)
        to_beta[:] = f32(0)
        first = share * rows // dgamma.shape[0]
        for i in range(first, (share + 1) * rows // dgamma.shape[0]):
            slope, row, target, m = g[i], x[i], dx[i], mean[i]
            r = scale_of(var[i], epsilon, True)
            plain = along = f32(0)
            for j in range(row.size):
                h = slope[j] * gamma[j]
                plain += h
                along += h * (row[j] - m)
            plain *= each
            along *= each * r * r
            for j in range(row.size):
                hat = (row[j] - m) * r
                target[j] = (slope[j] * gamma[j] - plain) * r - hat * along
                to_gamma[j] += slope[j] * hat
                to_beta[j] += slope[j]


@kernel_code(f"void({ROWS}{LINE}{ROWS}{LINE}f4, i8, i8)")
def rms_rows(x, gamma, out, power, epsilon, start, stop):
    share = f32(1) / f32(x.shape[1])
    for i in range(start, stop):
        row, target = x[i], out[i]
        p = squares_around(row, f32(0)) * share
        r = scale_of(p, epsilon, True)
        power[i] = p
        for j in range(row.size):
            target[j] = row[j] * r * gamma[j]


@kernel_code(f"void({ROWS * 2}{LINE * 2}{ROWS}{ROWS}f4, i8, i8)")
def rms_slopes(g, x, gamma, power, dx, dgamma, epsilon, start, stop):
    """Both gradients of rms_norm, for some shares of the rows."""
    rows, size = x.shape
    each = f32(1) / f32(size)
    for share in range(start, stop):
        to_gamma = dgamma[share]
        to_gamma[:] = f32(0)
        first = share * rows // dgamma.shape[0]
        for i in range(first, (share + 1) * rows // dgamma.shape[0]):
            slope, row, target = g[i], x[i], dx[i]
            r = scale_of(power[i], epsilon, True)
            along = f32(0)
            for j in range(row.size):
                along += slope[j] * gamma[j] * row[j]
            along *= each * r * r
            for j in range(row.size):
                hat = row[j] * r
                target[j] = slope[j] * gamma[j] * r - hat * along
                to_gamma[j] += slope[j] * hat


@kernel(layer_norm)
def layer_norm_kernel(x, gamma=None, beta=None, *, epsilon):
    if not served(x, gamma, beta):
        return None
    rows = x.reshape(-1, x.shape[-1])
    out = empty(x.shape)
    mean, var = np.empty((2, rows.shape[0]), f32)
    lines = (line(gamma, rows.shape[1], 1), line(beta, rows.shape[1], 0))
    args = (rows, *lines, out.reshape(rows.shape), mean, var, f32(epsilon))
    threads.run(layer_rows, args, rows.shape[0], grain(rows.shape[1]))
    kept = (*x.shape[:-1], 1)
    return out, mean.reshape(kept), var.reshape(kept)


@kernel(layer_norm.backward)
def layer_norm_backward(g, x, gamma, mean, var, *, needs, epsilon):
    g = whole(g)
    if not served(x, gamma, g):
        return None
    rows = x.reshape(-1, x.shape[-1])
    dx, shares = empty(x.shape), min(SHARES, rows.shape[0])
    sums = np.empty((2, shares, rows.shape[1]), f32)
    args = (g.reshape(rows.shape), rows, line(gamma, rows.shape[1], 1))
    args += (mean.reshape(-1), var.reshape(-1), dx.reshape(rows.shape), *sums)
    threads.run(layer_slopes, (*args, f32(epsilon)), shares, _shares(x.size, shares))
    return needed((dx, *sums.sum(axis=1)), needs)


@kernel(rms_norm)
def rms_norm_kernel(x, gamma=None, *, epsilon):
    if not served(x, gamma):
        return None
    rows = x.reshape(-1, x.shape[-1])
    out, power = empty(x.shape), np.empty(rows.shape[0], f32)
    args = (rows, line(gamma, rows.shape[1], 1), out.reshape(rows.shape), power)
    args += (f32(epsilon),)
    threads.run(rms_rows, args, rows.shape[0], grain(rows.shape[1]))
    return out, power.reshape((*x.shape[:-1], 1))


@kernel(rms_norm.backward)
def rms_norm_backward(g, x, gamma, power, *, needs, epsilon):
    g = whole(g)
    if not served(x, gamma, g):
        return None
    rows = x.reshape(-1, x.shape[-1])
    dx, shares = empty(x.shape), min(SHARES, rows.shape[0])
    sums = np.empty((shares, rows.shape[1]), f32)
    args = (g.reshape(rows.shape), rows, line(gamma, rows.shape[1], 1))
    args += (power.reshape(-1), dx.reshape(rows.shape), sums, f32(epsilon))
    threads.run(rms_slopes, args, shares, _shares(x.size, shares))
    return needed((dx, sums.sum(axis=0)), needs)


def _shares(size: int, shares: int) -> int:
    """How many shares of this many elements make a part."""
    return grain(max(1, size // shares))
