"""Advanced · Performance. Normalization of rows and of channels, two passes each.

The first pass finds mean and variance (or, backward, two sums), the second writes. A
row, or one plane of a channel, stays in the first cache while it is read twice, so the
variance is that of the differences from the mean and loses no digits.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.jit import f32, kernel_code, part
from burnbook.backend.compiled.registry import F32, kernel, plain_f32
from burnbook.backend.compiled.team import team
from burnbook.ops.batch_norm import batch_norm, batch_norm_known
from burnbook.ops.norm import FLOOR, group_norm, layer_norm, rms_norm

SHARES = 16  # into how many sums the gradients of gamma and beta are split, always
ELEMENTS = 1 << 14  # a part has no fewer
SMALLEST_PLANE = 8  # below, one NumPy call over all planes is quicker


@part
def sum_of(x: Any) -> Any:
    total = f32(0)
    for j in range(x.size):
        total += x[j]
    return total


@part
def squares_around(x: Any, mean: Any) -> Any:
    """Σ (x − mean)²."""
    total = f32(0)
    for j in range(x.size):
        total += (x[j] - mean) * (x[j] - mean)
    return total


@part
def dot_around(g: Any, x: Any, mean: Any) -> Any:
    """Σ g (x − mean)."""
    total = f32(0)
    for j in range(x.size):
        total += g[j] * (x[j] - mean)
    return total


@part
def straight(x: Any, a: Any, b: Any, out: Any) -> None:
    """out = a x + b."""
    for j in range(x.size):
        out[j] = a * x[j] + b


@part
def straight_of_two(g: Any, x: Any, a: Any, b: Any, c: Any, out: Any) -> None:
    """out = a g + b x + c."""
    for j in range(x.size):
        out[j] = a * g[j] + b * x[j] + c


@part
def scale_of(var: Any, epsilon: Any, inside: Any) -> Any:
    """What x − μ is multiplied by."""
    below = np.sqrt(var + epsilon) if inside else np.sqrt(var) + epsilon
    return f32(1) / below


@part
def fall_of(var: Any, scale: Any, inside: Any) -> Any:
    """How the scale falls with σ; see `slope` in burnbook/ops/norm.py."""
    if inside:
        return scale * scale * scale
    return scale * scale / max(np.sqrt(var), f32(FLOOR))


ROWS = "f4[:,::1], "
PLANES = "f4[:,:,::1], "
LINE = "f4[::1], "
LINES = "f4[:,::1], "


@kernel_code(f"void({ROWS}{LINE * 2}{ROWS}{LINE * 2}f4, i8, i8)")
def layer_rows(
    x: Any,
    gamma: Any,
    beta: Any,
    out: Any,
    mean: Any,
    var: Any,
    epsilon: Any,
    start: int,
    stop: int,
) -> None:
    share = f32(1) / f32(x.shape[1])
    for i in range(start, stop):
        row, target = x[i], out[i]
        m = sum_of(row) * share
        v = squares_around(row, m) * share
        r = scale_of(v, epsilon, True)
        mean[i], var[i] = m, v
        for j in range(row.size):
            target[j] = (row[j] - m) * r * gamma[j] + beta[j]


@kernel_code(f"void({ROWS * 2}{LINE * 3}{ROWS}{LINES * 2}f4, i8, i8)")
def layer_slopes(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    dx: Any,
    dgamma: Any,
    dbeta: Any,
    epsilon: Any,
    start: int,
    stop: int,
) -> None:
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
            along *= each * r * r * r
            for j in range(row.size):
                target[j] = (slope[j] * gamma[j] - plain) * r - (row[j] - m) * along
            for j in range(row.size):
                to_gamma[j] += slope[j] * (row[j] - m) * r
            for j in range(row.size):
                to_beta[j] += slope[j]


@kernel_code(f"void({ROWS}{LINE}{ROWS}{LINE}f4, i8, i8)")
def rms_rows(
    x: Any, gamma: Any, out: Any, power: Any, epsilon: Any, start: int, stop: int
) -> None:
    share = f32(1) / f32(x.shape[1])
    for i in range(start, stop):
        row, target = x[i], out[i]
        p = squares_around(row, f32(0)) * share
        r = scale_of(p, epsilon, True)
        power[i] = p
        for j in range(row.size):
            target[j] = row[j] * r * gamma[j]


@kernel_code(f"void({ROWS * 2}{LINE * 2}{ROWS}{LINES}f4, i8, i8)")
def rms_slopes(
    g: Any,
    x: Any,
    gamma: Any,
    power: Any,
    dx: Any,
    dgamma: Any,
    epsilon: Any,
    start: int,
    stop: int,
) -> None:
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
            along *= each * r * r * r
            for j in range(row.size):
                target[j] = slope[j] * gamma[j] * r - row[j] * along
            for j in range(row.size):
                to_gamma[j] += slope[j] * row[j] * r


@kernel_code(f"void({PLANES}{LINES * 2}{PLANES}{LINE * 2}f4, b1, i8, i8)")
def group_planes(
    x: Any,
    gamma: Any,
    beta: Any,
    out: Any,
    mean: Any,
    var: Any,
    epsilon: Any,
    inside: bool,
    start: int,
    stop: int,
) -> None:
    """group_norm; x is [examples · groups, channels of a group, size]."""
    groups, channels, size = gamma.shape[0], x.shape[1], x.shape[2]
    share = f32(1) / f32(channels * size)
    for i in range(start, stop):
        m = v = f32(0)
        for c in range(channels):
            m += sum_of(x[i, c])
        m *= share
        for c in range(channels):
            v += squares_around(x[i, c], m)
        v *= share
        mean[i], var[i] = m, v
        r = scale_of(v, epsilon, inside)
        for c in range(channels):
            a = r * gamma[i % groups, c]
            straight(x[i, c], a, beta[i % groups, c] - m * a, out[i, c])


@kernel_code(f"void({PLANES * 2}{LINES}{LINE * 2}{PLANES}{LINES * 2}f4, b1, i8, i8)")
def group_slopes(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    dx: Any,
    dgamma: Any,
    dbeta: Any,
    epsilon: Any,
    inside: bool,
    start: int,
    stop: int,
) -> None:
    """All gradients of group_norm; those of gamma and beta for each example alone."""
    groups, channels, size = gamma.shape[0], x.shape[1], x.shape[2]
    each = f32(1) / f32(channels * size)
    for i in range(start, stop):
        m = mean[i]
        r = scale_of(var[i], epsilon, inside)
        plain = along = f32(0)
        for c in range(channels):
            total, dot = sum_of(g[i, c]), dot_around(g[i, c], x[i, c], m)
            dbeta[i, c], dgamma[i, c] = total, dot * r
            plain += total * gamma[i % groups, c]
            along += dot * gamma[i % groups, c]
        b = -along * each * fall_of(var[i], r, inside)
        rest = -plain * each * r - b * m
        for c in range(channels):
            a = r * gamma[i % groups, c]
            straight_of_two(g[i, c], x[i, c], a, b, rest, dx[i, c])


@kernel_code(f"void({PLANES}{LINE * 2}{PLANES}{LINE * 2}f4, i8, i8)")
def batch_channels(
    x: Any,
    gamma: Any,
    beta: Any,
    out: Any,
    mean: Any,
    var: Any,
    epsilon: Any,
    start: int,
    stop: int,
) -> None:
    """batch_norm for some channels; x is [n, c, size]."""
    n, size = x.shape[0], x.shape[2]
    share = f32(1) / f32(size)
    means = np.empty(n, f32)
    for c in range(start, stop):
        v = f32(0)
        for i in range(n):
            means[i] = sum_of(x[i, c]) * share
            v += squares_around(x[i, c], means[i]) * share
        m = sum_of(means) / f32(n)
        v = (v + squares_around(means, m)) / f32(n)
        mean[c], var[c] = m, v
        a = scale_of(v, epsilon, True) * gamma[c]
        for i in range(n):
            straight(x[i, c], a, beta[c] - m * a, out[i, c])


@kernel_code(f"void({PLANES * 2}{LINE * 3}{PLANES}{LINE * 2}f4, i8, i8)")
def batch_slopes(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    dx: Any,
    dgamma: Any,
    dbeta: Any,
    epsilon: Any,
    start: int,
    stop: int,
) -> None:
    """All three gradients of batch_norm, for some channels."""
    n, size = x.shape[0], x.shape[2]
    each = f32(1) / (f32(n) * f32(size))
    for c in range(start, stop):
        m = mean[c]
        r = scale_of(var[c], epsilon, True)
        plain = along = f32(0)
        for i in range(n):
            plain += sum_of(g[i, c])
            along += dot_around(g[i, c], x[i, c], m)
        dbeta[c], dgamma[c] = plain, along * r
        a = r * gamma[c]
        b = -a * r * r * along * each
        rest = -a * plain * each - b * m
        for i in range(n):
            straight_of_two(g[i, c], x[i, c], a, b, rest, dx[i, c])


@kernel_code(f"void({PLANES}{LINE * 2}{PLANES}i8, i8)")
def straight_planes(
    x: Any, factor: Any, shift: Any, out: Any, start: int, stop: int
) -> None:
    """out = factor x + shift, with a factor and a shift for each channel."""
    channels = x.shape[1]
    for plane in range(start, stop):
        i, c = plane // channels, plane % channels
        straight(x[i, c], factor[c], shift[c], out[i, c])


@kernel(layer_norm)
def layer_norm_kernel(
    x: Any, gamma: Any = None, beta: Any = None, *, epsilon: float = 1e-5
) -> Any:
    if not _served(x, gamma, beta):
        return None
    rows = x.reshape(-1, x.shape[-1])
    out = empty(x.shape)
    mean, var = np.empty((2, rows.shape[0]), f32)
    lines = (_line(gamma, rows.shape[1], 1), _line(beta, rows.shape[1], 0))
    args = (rows, *lines, out.reshape(rows.shape), mean, var, f32(epsilon))
    team.run(layer_rows, args, rows.shape[0], _grain(rows.shape[1]))
    kept = (*x.shape[:-1], 1)
    return out, mean.reshape(kept), var.reshape(kept)


@kernel(layer_norm.backward)
def layer_norm_backward(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    *,
    needs: tuple[bool, ...],
    epsilon: float = 1e-5,
) -> Any:
    g = _whole(g)
    if not _served(x, gamma, g):
        return None
    rows = x.reshape(-1, x.shape[-1])
    dx, shares = empty(x.shape), min(SHARES, rows.shape[0])
    sums = np.empty((2, shares, rows.shape[1]), f32)
    args = (g.reshape(rows.shape), rows, _line(gamma, rows.shape[1], 1))
    args += (mean.reshape(-1), var.reshape(-1), dx.reshape(rows.shape), *sums)
    team.run(layer_slopes, (*args, f32(epsilon)), shares, _shares(x.size, shares))
    return _needed((dx, *sums.sum(axis=1)), needs)


@kernel(rms_norm)
def rms_norm_kernel(x: Any, gamma: Any = None, *, epsilon: float = 1e-5) -> Any:
    if not _served(x, gamma):
        return None
    rows = x.reshape(-1, x.shape[-1])
    out, power = empty(x.shape), np.empty(rows.shape[0], f32)
    line = _line(gamma, rows.shape[1], 1)
    args = (rows, line, out.reshape(rows.shape), power, f32(epsilon))
    team.run(rms_rows, args, rows.shape[0], _grain(rows.shape[1]))
    return out, power.reshape((*x.shape[:-1], 1))


@kernel(rms_norm.backward)
def rms_norm_backward(
    g: Any,
    x: Any,
    gamma: Any,
    power: Any,
    *,
    needs: tuple[bool, ...],
    epsilon: float = 1e-5,
) -> Any:
    g = _whole(g)
    if not _served(x, gamma, g):
        return None
    rows = x.reshape(-1, x.shape[-1])
    dx, shares = empty(x.shape), min(SHARES, rows.shape[0])
    sums = np.empty((shares, rows.shape[1]), f32)
    args = (g.reshape(rows.shape), rows, _line(gamma, rows.shape[1], 1))
    args += (power.reshape(-1), dx.reshape(rows.shape), sums, f32(epsilon))
    team.run(rms_slopes, args, shares, _shares(x.size, shares))
    return _needed((dx, sums.sum(axis=0)), needs)


@kernel(group_norm)
def group_norm_kernel(
    x: Any,
    gamma: Any = None,
    beta: Any = None,
    *,
    groups: int,
    epsilon: float = 1e-5,
    inside: bool = False,
) -> Any:
    if not _served(x, gamma, beta) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes = x.reshape(n * groups, c // groups, -1)
    out = empty(x.shape)
    mean, var = np.empty((2, n * groups), f32)
    lines = [_line(v, c, i).reshape(groups, -1) for v, i in ((gamma, 1), (beta, 0))]
    args = (planes, *lines, out.reshape(planes.shape), mean, var, f32(epsilon), inside)
    team.run(group_planes, args, n * groups, _grain(x.size // (n * groups)))
    return out, mean.reshape(n, groups, 1), var.reshape(n, groups, 1)


@kernel(group_norm.backward)
def group_norm_backward(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    *,
    needs: tuple[bool, ...],
    groups: int,
    epsilon: float = 1e-5,
    inside: bool = False,
) -> Any:
    g = _whole(g)
    if not _served(x, gamma, g) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes = x.reshape(n * groups, c // groups, -1)
    dx = empty(x.shape)
    sums = np.empty((2, n * groups, c // groups), f32)
    args = (g.reshape(planes.shape), planes, _line(gamma, c, 1).reshape(groups, -1))
    args += (mean.reshape(-1), var.reshape(-1), dx.reshape(planes.shape), *sums)
    args += (f32(epsilon), inside)
    team.run(group_slopes, args, n * groups, _grain(x.size // (n * groups)))
    return _needed((dx, *sums.reshape(2, n, c).sum(axis=1)), needs)


@kernel(batch_norm)
def batch_norm_kernel(x: Any, gamma: Any, beta: Any, *, epsilon: float = 1e-5) -> Any:
    if not _served(x, gamma, beta) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes, out = x.reshape(n, c, -1), empty(x.shape)
    mean, var = np.empty((2, c), f32)
    args = (planes, gamma, beta, out.reshape(planes.shape), mean, var, f32(epsilon))
    team.run(batch_channels, args, c, _grain(x.size // c))
    return out, mean, var


@kernel(batch_norm.backward)
def batch_norm_backward(
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    *,
    needs: tuple[bool, ...],
    epsilon: float = 1e-5,
) -> Any:
    g = _whole(g)
    if not _served(x, gamma, g) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes, dx = x.reshape(n, c, -1), empty(x.shape)
    dgamma, dbeta = np.empty((2, c), f32)
    args = (g.reshape(planes.shape), planes, gamma, mean, var)
    args += (dx.reshape(planes.shape), dgamma, dbeta, f32(epsilon))
    team.run(batch_slopes, args, c, _grain(x.size // c))
    return _needed((dx, dgamma, dbeta), needs)


@kernel(batch_norm_known)
def batch_norm_known_kernel(
    x: Any, gamma: Any, beta: Any, mean: Any, var: Any, *, epsilon: float = 1e-5
) -> Any:
    if not _served(x, gamma, beta) or _plane(x) < SMALLEST_PLANE:
        return None
    n, c = x.shape[:2]
    planes, out = x.reshape(n, c, -1), empty(x.shape)
    factor = gamma / np.sqrt(var + f32(epsilon))
    args = (planes, factor, beta - mean * factor, out.reshape(planes.shape))
    team.run(straight_planes, args, n * c, _grain(planes.shape[2]))
    return out


def _served(*arrays: Any) -> bool:
    return all(array is None or plain_f32(array) for array in arrays)


def _whole(g: Any) -> Any:
    """The gradient in one piece; that of a mean is one number, seen many times."""
    return np.ascontiguousarray(g) if g.dtype is F32 and not g.flags.carray else g


def _plane(x: Any) -> int:
    """How many elements a channel of one example has."""
    return x.size // (x.shape[0] * x.shape[1])


def _line(values: Any, size: int, otherwise: float) -> Any:
    return np.full(size, otherwise, f32) if values is None else values


def _grain(elements: int) -> int:
    """How many rows of this size make a part."""
    return max(1, ELEMENTS // elements)


def _shares(size: int, shares: int) -> int:
    """How many shares of this many elements make a part."""
    return _grain(max(1, size // shares))


def _needed(found: tuple[Any, ...], needs: tuple[bool, ...]) -> Any:
    return tuple([v if need else None for v, need in zip(found, needs, strict=False)])
