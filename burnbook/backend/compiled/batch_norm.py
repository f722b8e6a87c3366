"""Normalization of channels: group norm and batch norm.

The first pass finds mean and variance (or, backward, two sums), the second writes.

Measured by the families batch_norm and norm (group_norm), of tests/bench.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import f32, kernel_code
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.row_sums import (
    above_zero,
    fall_of,
    grain,
    line,
    scale_of,
    served,
    spread_around,
    squares_around,
    straight,
    straight_from,
    straight_of_two,
    sum_and_dot,
    sum_around,
    sum_of,
    whole,
)
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.kernels import needed
from burnbook.ops.batch_norm import batch_norm, batch_norm_known
from burnbook.ops.norm import group_norm

SMALLEST_PLANE = 8  # below, one NumPy call over all planes is quicker
PLANES, LINES, LINE = "f4[:,:,::1], ", "f4[:,::1], ", "f4[::1], "


@kernel_code(f"void({PLANES}{LINES * 2}{PLANES}{LINE * 2}f4, b1, i8, i8)")
def group_planes(x, gamma, beta, out, mean, var, epsilon, inside, start, stop):
    """group_norm; x is [examples · groups, channels of a group, size]."""
    groups, channels, size = gamma.shape[0], x.shape[1], x.shape[2]
    share = f32(1) / f32(channels * size)
    for i in range(start, stop):
        m = v = f32(0)
        for c in range(channels):
            m += sum_of(x[i, c])
        m *= share
        rest = f32(0)
        for c in range(channels):
            rest += sum_around(x[i, c], m)
        m += rest * share
        rest = f32(0)
        for c in range(channels):
            far, squares = spread_around(x[i, c], m)
            rest += far
            v += squares
        rest *= share
        v = above_zero(v * share - rest * rest)
        mean[i], var[i] = m, v
        r = scale_of(v, epsilon, inside)
        for c in range(channels):
            a = r * gamma[i % groups, c]
            straight_from(x[i, c], m, a, beta[i % groups, c] - rest * a, out[i, c])


@kernel_code(f"void({PLANES * 2}{LINES}{LINE * 2}{PLANES}{LINES * 2}f4, b1, i8, i8)")
def group_slopes(
    g, x, gamma, mean, var, dx, dgamma, dbeta, epsilon, inside, start, stop
):
    """All gradients of group_norm; those of gamma and beta for each example alone."""
    groups, channels, size = gamma.shape[0], x.shape[1], x.shape[2]
    each = f32(1) / f32(channels * size)
    for i in range(start, stop):
        m = mean[i]
        r = scale_of(var[i], epsilon, inside)
        plain = along = f32(0)
        for c in range(channels):
            total, dot = sum_and_dot(g[i, c], x[i, c], m)
            dbeta[i, c], dgamma[i, c] = total, dot * r
            plain += total * gamma[i % groups, c]
            along += dot * gamma[i % groups, c]
        b = -along * each * fall_of(var[i], r, inside)
        rest = -plain * each * r
        for c in range(channels):
            a = r * gamma[i % groups, c]
            straight_of_two(g[i, c], x[i, c], m, a, b, rest, dx[i, c])


@kernel_code(f"void({PLANES}{LINE * 2}{PLANES}{LINE * 2}f4, i8, i8)")
def batch_channels(x, gamma, beta, out, mean, var, epsilon, start, stop):
    """batch_norm for some channels; x is [n, c, size]."""
    n, size = x.shape[0], x.shape[2]
    share = f32(1) / f32(size)
    means = np.empty(n, f32)
    for c in range(start, stop):
        v = f32(0)
        for i in range(n):
            means[i] = sum_of(x[i, c]) * share
            means[i] += sum_around(x[i, c], means[i]) * share
            v += squares_around(x[i, c], means[i]) * share
        m = sum_of(means) / f32(n)
        m += sum_around(means, m) / f32(n)
        rest, squares = spread_around(means, m)
        rest /= f32(n)
        v = above_zero((v + squares) / f32(n) - rest * rest)
        mean[c], var[c] = m, v
        a = scale_of(v, epsilon, True) * gamma[c]
        for i in range(n):
            straight_from(x[i, c], m, a, beta[c] - rest * a, out[i, c])


@kernel_code(f"void({PLANES * 2}{LINE * 3}{PLANES}{LINE * 2}f4, i8, i8)")
def batch_slopes(g, x, gamma, mean, var, dx, dgamma, dbeta, epsilon, start, stop):
    """All three gradients of batch_norm, for some channels."""
    n, size = x.shape[0], x.shape[2]
    each = f32(1) / (f32(n) * f32(size))
    for c in range(start, stop):
        m = mean[c]
        r = scale_of(var[c], epsilon, True)
        plain = along = f32(0)
        for i in range(n):
            total, dot = sum_and_dot(g[i, c], x[i, c], m)
            plain += total
            along += dot
        dbeta[c], dgamma[c] = plain, along * r
        a = r * gamma[c]
        b = -a * r * r * along * each
        rest = -a * plain * each
        for i in range(n):
            straight_of_two(g[i, c], x[i, c], m, a, b, rest, dx[i, c])


@kernel_code(f"void({PLANES}{LINE * 2}{PLANES}i8, i8)")
def straight_planes(x, factor, shift, out, start, stop):
    """out = factor x + shift, with a factor and a shift for each channel."""
    channels = x.shape[1]
    for plane in range(start, stop):
        i, c = plane // channels, plane % channels
        straight(x[i, c], factor[c], shift[c], out[i, c])


@kernel(group_norm)
def group_norm_kernel(x, gamma=None, beta=None, *, groups, epsilon, inside):
    if not served(x, gamma, beta) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes = x.reshape(n * groups, c // groups, -1)
    out = empty(x.shape)
    mean, var = np.empty((2, n * groups), f32)
    lines = [line(v, c, i).reshape(groups, -1) for v, i in ((gamma, 1), (beta, 0))]
    args = (planes, *lines, out.reshape(planes.shape), mean, var, f32(epsilon), inside)
    threads.run(group_planes, args, n * groups, grain(x.size // (n * groups)))
    kept = (n, groups, 1, 1)
    return out, mean.reshape(kept), var.reshape(kept)


@kernel(group_norm.backward)
def group_norm_backward(g, x, gamma, mean, var, *, needs, groups, epsilon, inside):
    g = whole(g)
    if not served(x, gamma, g) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes = x.reshape(n * groups, c // groups, -1)
    dx = empty(x.shape)
    sums = np.empty((2, n * groups, c // groups), f32)
    args = (g.reshape(planes.shape), planes, line(gamma, c, 1).reshape(groups, -1))
    args += (mean.reshape(-1), var.reshape(-1), dx.reshape(planes.shape), *sums)
    args += (f32(epsilon), inside)
    threads.run(group_slopes, args, n * groups, grain(x.size // (n * groups)))
    return needed((dx, *sums.reshape(2, n, c).sum(axis=1)), needs)


@kernel(batch_norm)
def batch_norm_kernel(x, gamma, beta, *, epsilon):
    if not served(x, gamma, beta) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes, out = x.reshape(n, c, -1), empty(x.shape)
    mean, var = np.empty((2, c), f32)
    args = (planes, gamma, beta, out.reshape(planes.shape), mean, var, f32(epsilon))
    threads.run(batch_channels, args, c, grain(x.size // c))
    return out, mean, var


@kernel(batch_norm.backward)
def batch_norm_backward(g, x, gamma, mean, var, *, needs, epsilon):
    g = whole(g)
    if not served(x, gamma, g) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes, dx = x.reshape(n, c, -1), empty(x.shape)
    dgamma, dbeta = np.empty((2, c), f32)
    args = (g.reshape(planes.shape), planes, gamma, mean, var)
    args += (dx.reshape(planes.shape), dgamma, dbeta, f32(epsilon))
    threads.run(batch_slopes, args, c, grain(x.size // c))
    return needed((dx, dgamma, dbeta), needs)


@kernel(batch_norm_known)
def batch_norm_known_kernel(x, gamma, beta, mean, var, *, epsilon):
    if not served(x, gamma, beta) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes, out = x.reshape(n, c, -1), empty(x.shape)
    factor = gamma / np.sqrt(var + f32(epsilon))
    args = (planes, factor, beta - mean * factor, out.reshape(planes.shape))
    threads.run(straight_planes, args, n * c, grain(planes.shape[2]))
    return out


def _plane(x: Any) -> int:
    """How many elements a channel of one example has."""
    return x.size // (x.shape[0] * x.shape[1])
