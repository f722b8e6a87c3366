"""Advanced · Performance. Convolution, sample by sample, in the first cache.

The plan is that of burnbook/ops/patches.py without laying anything out: a plane of
padded pixels is read at a shift for each tap of the kernel. Four output channels share
what was read, and three neighbouring taps share what was added up.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.buffers import empty
from burnbook.backend.compiled.jit import f32, kernel_code, part
from burnbook.backend.compiled.registry import kernel, plain_f32
from burnbook.backend.compiled.team import team
from burnbook.ops.conv import conv2d
from burnbook.ops.patches import Pair, output_size

STEP = 16  # elements of a vector register
SHARES = 16  # into how many sums the gradient of the weights is split, always


@part
def whole_steps(n: int) -> int:
    """n, rounded up so that a loop over vector registers has no rest."""
    return (n + STEP - 1) // STEP * STEP


@part
def three_taps(t: Any, x: Any, w: Any, n: int) -> None:
    """Add three neighbouring taps of four kernels to four planes."""
    t0, t1, t2, t3 = t[0], t[1], t[2], t[3]
    a0, a1, a2 = w[0, 0], w[0, 1], w[0, 2]
    b0, b1, b2 = w[1, 0], w[1, 1], w[1, 2]
    c0, c1, c2 = w[2, 0], w[2, 1], w[2, 2]
    d0, d1, d2 = w[3, 0], w[3, 1], w[3, 2]
    for p in range(n):
        u0, u1, u2 = x[p], x[p + 1], x[p + 2]
        t0[p] += a0 * u0 + a1 * u1 + a2 * u2
        t1[p] += b0 * u0 + b1 * u1 + b2 * u2
        t2[p] += c0 * u0 + c1 * u1 + c2 * u2
        t3[p] += d0 * u0 + d1 * u1 + d2 * u2


@part
def one_tap(t: Any, x: Any, w: Any, n: int) -> None:
    """Add one tap of four kernels to four planes."""
    t0, t1, t2, t3 = t[0], t[1], t[2], t[3]
    a, b, c, d = w[0, 0], w[1, 0], w[2, 0], w[3, 0]
    for p in range(n):
        u = x[p]
        t0[p] += a * u
        t1[p] += b * u
        t2[p] += c * u
        t3[p] += d * u


@part
def copy(target: Any, source: Any) -> None:
    for q in range(target.size):
        target[q] = source[q]


@part
def add_up(x: Any) -> Any:
    total = f32(0)
    for q in range(x.size):
        total += x[q]
    return total


@part
def pad(planes: Any, x: Any, top: int, left: int, width: int) -> None:
    """Lay the channels of one sample into planes with zeros around them."""
    for c in range(x.shape[0]):
        for r in range(x.shape[1]):
            first = (r + top) * width + left
            copy(planes[c, first : first + x.shape[2]], x[c, r])


@kernel_code(
    "void(f4[:,:,:,::1], f4[:,:,:,::1], f4[::1], f4[:,:,:,::1], i8[::1], i8, i8)"
)
def correlate(
    x: Any, weight: Any, bias: Any, out: Any, how: Any, start: int, stop: int
) -> None:
    """conv2d with stride 1 for some samples; weight has 4 · blocks rows per group.

    how: padding rows, padding cols, dilation rows, dilation cols, groups, rows per
    group that count.
    """
    top, left, down, right, groups, rows = how
    _, c_all, height, width = x.shape
    h, v = out.shape[2], out.shape[3]
    padded_rows, padded_cols = height + 2 * top, width + 2 * left
    n = whole_steps((h - 1) * padded_cols + v)
    c_each, kernel_rows, kernel_cols = weight.shape[1:]
    o_each = weight.shape[0] // groups
    planes = np.zeros((c_all, padded_rows * padded_cols + STEP), f32)
    t = np.empty((4, n), f32)
    for i in range(start, stop):
        pad(planes, x[i], top, left, padded_cols)
        for block in range(0, weight.shape[0], 4):
            group = block // o_each
            w = weight[block : block + 4]
            for k in range(4):
                t[k] = bias[block + k]
            for c in range(c_each):
                x_plane = planes[group * c_each + c]
                for a in range(kernel_rows):
                    b = 0
                    while b < kernel_cols:
                        shifted = x_plane[a * down * padded_cols + b * right :]
                        if right == 1 and b + 3 <= kernel_cols:
                            three_taps(t, shifted, w[:, c, a, b:], n)
                            b += 3
                        else:
                            one_tap(t, shifted, w[:, c, a, b:], n)
                            b += 1
            for k in range(min(4, rows - block % o_each)):
                o = group * rows + block % o_each + k
                for r in range(h):
                    first = r * padded_cols
                    copy(out[i, o, r], t[k, first : first + v])


@part
def dot_three(g: Any, x: Any, n: int, sums: Any) -> None:
    """How four gradient planes meet three neighbouring shifts of a plane."""
    g0, g1, g2, g3 = g[0], g[1], g[2], g[3]
    a0 = a1 = a2 = b0 = b1 = b2 = c0 = c1 = c2 = d0 = d1 = d2 = f32(0)
    for p in range(n):
        u0, u1, u2 = x[p], x[p + 1], x[p + 2]
        a, b, c, d = g0[p], g1[p], g2[p], g3[p]
        a0 += a * u0
        a1 += a * u1
        a2 += a * u2
        b0 += b * u0
        b1 += b * u1
        b2 += b * u2
        c0 += c * u0
        c1 += c * u1
        c2 += c * u2
        d0 += d * u0
        d1 += d * u1
        d2 += d * u2
    sums[0, 0] += a0
    sums[0, 1] += a1
    sums[0, 2] += a2
    sums[1, 0] += b0
    sums[1, 1] += b1
    sums[1, 2] += b2
    sums[2, 0] += c0
    sums[2, 1] += c1
    sums[2, 2] += c2
    sums[3, 0] += d0
    sums[3, 1] += d1
    sums[3, 2] += d2


@part
def dot_one(g: Any, x: Any, n: int, sums: Any) -> None:
    g0, g1, g2, g3 = g[0], g[1], g[2], g[3]
    a = b = c = d = f32(0)
    for p in range(n):
        u = x[p]
        a += g0[p] * u
        b += g1[p] * u
        c += g2[p] * u
        d += g3[p] * u
    sums[0, 0] += a
    sums[1, 0] += b
    sums[2, 0] += c
    sums[3, 0] += d


@kernel_code(
    "void(f4[:,:,:,::1], f4[:,:,:,::1], f4[:,:,:,:,::1], f4[:,::1], i8[::1], i8, i8)"
)
def weight_sums(
    x: Any, g: Any, sums: Any, totals: Any, how: Any, start: int, stop: int
) -> None:
    """The gradients of conv2d for weight and bias, for some shares of the samples."""
    top, left, down, right, groups, rows = how
    samples, c_all, height, width = x.shape
    h, v = g.shape[2], g.shape[3]
    padded_rows, padded_cols = height + 2 * top, width + 2 * left
    n = whole_steps((h - 1) * padded_cols + v)
    shares, o_all, c_each, kernel_rows, kernel_cols = sums.shape
    o_each = o_all // groups
    planes = np.zeros((c_all, padded_rows * padded_cols + STEP), f32)
    wide = np.zeros((4, h * padded_cols + STEP), f32)
    for share in range(start, stop):
        sums[share] = f32(0)
        totals[share] = f32(0)
        for i in range(share * samples // shares, (share + 1) * samples // shares):
            pad(planes, x[i], top, left, padded_cols)
            for block in range(0, o_all, 4):
                group = block // o_each
                for k in range(min(4, rows - block % o_each)):
                    o = group * rows + block % o_each + k
                    for r in range(h):
                        first = r * padded_cols
                        copy(wide[k, first : first + v], g[i, o, r])
                    totals[share, o] += add_up(wide[k])
                for c in range(c_each):
                    x_plane = planes[group * c_each + c]
                    s = sums[share, block : block + 4, c]
                    for a in range(kernel_rows):
                        b = 0
                        while b < kernel_cols:
                            shifted = x_plane[a * down * padded_cols + b * right :]
                            if right == 1 and b + 3 <= kernel_cols:
                                dot_three(wide, shifted, n, s[:, a, b:])
                                b += 3
                            else:
                                dot_one(wide, shifted, n, s[:, a, b:])
                                b += 1


@kernel_code(
    "void(f4[:,:,:,::1], f4[:,:,:,::1], f4[:,:,:,::1], f4[::1], f4[:,:,:,::1], "
    "f4[:,:,:,:,::1], f4[:,::1], i8[::1], i8[::1], i8, i8)"
)
def all_gradients(
    x: Any,
    g: Any,
    turned: Any,
    zeros: Any,
    dx: Any,
    sums: Any,
    totals: Any,
    how_weight: Any,
    how_x: Any,
    start: int,
    stop: int,
) -> None:
    """All three gradients of conv2d, for some shares of the samples."""
    for share in range(start, stop):
        weight_sums(x, g, sums, totals, how_weight, share, share + 1)
        first = share * x.shape[0] // sums.shape[0]
        last = (share + 1) * x.shape[0] // sums.shape[0]
        correlate(g, turned, zeros, dx, how_x, first, last)


@kernel(conv2d)
def conv2d_kernel(
    x: Any,
    weight: Any,
    bias: Any = None,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Any:
    """conv2d, one region of work over the samples."""
    if not served(x, weight, stride):
        return None
    o, _, *taps = weight.shape
    sizes = zip(x.shape[2:], taps, stride, padding, dilation, strict=True)
    out = empty((x.shape[0], o, *[output_size(*size) for size in sizes]))
    kernels, offsets = in_fours(weight, bias, groups)
    how = np.array([*padding, *dilation, groups, o // groups])
    team.run(correlate, (x, kernels, offsets, out, how), x.shape[0])
    return out


@kernel(conv2d.backward)
def conv2d_backward(
    g: Any,
    x: Any,
    weight: Any,
    x_shape: Any,
    weight_shape: Any,
    *,
    needs: tuple[bool, ...],
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Any:
    """The gradients of conv2d, one region of work over shares of the samples."""
    spans = [dilation[d] * (weight.shape[2 + d] - 1) for d in (0, 1)]
    around = (spans[0] - padding[0], spans[1] - padding[1])
    if not (served(x, weight, stride) and plain_f32(g)) or min(around) < 0:
        return None
    o, c = weight.shape[:2]
    rows = o // groups
    each = -(-rows // 4) * 4
    shares = min(SHARES, x.shape[0])
    sums = np.empty((shares, groups * each, *weight.shape[1:]), f32)
    totals = np.empty((shares, o), f32)
    how = np.array([*padding, *dilation, groups, rows])
    dx = empty(x.shape) if needs[0] else None
    if dx is None:
        team.run(weight_sums, (x, g, sums, totals, how), shares)
    else:
        back, zeros = in_fours(turned(weight, groups), None, groups)
        how_x = np.array([*around, *dilation, groups, c])
        args = (x, g, back, zeros, dx, sums, totals, how, how_x)
        team.run(all_gradients, args, shares)
    dw = sums.sum(axis=0).reshape(groups, each, *weight.shape[1:])[:, :rows]
    found = (dx, dw.reshape(weight.shape), totals.sum(axis=0))
    return tuple([v if need else None for v, need in zip(found, needs, strict=True)])


def served(x: Any, weight: Any, stride: Pair) -> bool:
    """Stride 1 and more than one tap; a single tap is a plain matrix product."""
    return (
        tuple(stride) == (1, 1)
        and weight.shape[2] * weight.shape[3] > 1
        and plain_f32(x)
        and plain_f32(weight)
    )


def in_fours(weight: Any, bias: Any, groups: int) -> tuple[Any, Any]:
    """Each group's output channels and biases, with zeros up to a multiple of four."""
    rows = weight.shape[0] // groups
    each = -(-rows // 4) * 4
    offsets = np.zeros((groups, each), f32)
    if bias is not None:
        offsets[:, :rows] = bias.reshape(groups, rows)
    if rows == each:
        return weight, offsets.reshape(-1)
    filled = np.zeros((groups, each, *weight.shape[1:]), f32)
    filled[:, :rows] = weight.reshape(groups, rows, *weight.shape[1:])
    return filled.reshape(groups * each, *weight.shape[1:]), offsets.reshape(-1)


def turned(weight: Any, groups: int) -> Any:
    """The kernels that lead back: output and input channels swapped, taps reversed."""
    o, c, *taps = weight.shape
    swapped = weight.reshape(groups, o // groups, c, *taps).swapaxes(1, 2)
    reversed_taps = swapped[..., ::-1, ::-1]
    return np.ascontiguousarray(reversed_taps).reshape(groups * c, o // groups, *taps)
