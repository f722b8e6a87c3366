"""Patches whose places wander: deformable convolution.

Every tap of every stop is moved by an offset of its own and reads the image between
four pixels. What it read stands in a row of channels, so the rest of a deformable
convolution is one matrix product.
"""

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op
from burnbook.ops.conv.windows import (
    Pair,
    Shape4,
    Windows,
    fits_inside,
    window_options,
)


def _fits(
    x: Shape,
    offset: Shape,
    mask: Shape | None,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    offset_groups: int,
) -> str | None:
    if len(x) != 4:
        return "x must be an image batch [n, c, h, w]"
    sizes = (kernel_size, stride, padding, dilation)
    wrong = fits_inside("kernel", x[2:], *sizes)
    if wrong:
        return wrong
    if offset_groups < 1 or x[1] % offset_groups:
        return f"{x[1]} channels do not divide into {offset_groups} offset groups"
    stops = Windows(x[2:], *sizes).stops
    taps = offset_groups * kernel_size[0] * kernel_size[1]
    if tuple(offset) != (x[0], 2 * taps, *stops):
        return f"offset must be {[x[0], 2 * taps, *stops]}: (dy, dx) for every tap"
    if mask is not None and tuple(mask) != (x[0], taps, *stops):
        return f"mask must be {[x[0], taps, *stops]}: one factor for every tap"
    return None


@op("FFF>F FF>F", check=_fits, method=False)
def deform_patches(
    xp: ArrayNamespace,
    x: Array,
    offset: Array,
    mask: Array | None = None,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    offset_groups: int,
) -> Array:
    """Read x where each tap of each stop was moved to, between four pixels, times mask.

    Offsets go (dy, dx), tap by tap; beyond the image everything is zero.

    Shapes: x [n, c, h, w], offset [n, p, r, q], mask [n, m, r, q] -> [n, b, t, c]
    """
    windows = Windows(x.shape[2:], kernel_size, stride, padding, dilation)
    index = _corner_index(xp, windows, offset, offset_groups)
    weights = _corner_weights(xp, offset, mask, offset_groups)
    rows = _rows(xp, x, offset_groups)
    out = xp.empty((*index.shape[1:], rows.shape[-1]), dtype=x.dtype)
    for i in range(x.shape[0]):
        total = out[i]
        xp.multiply(rows[i][index[0, i]], weights[0][i], out=total)
        for corner in (1, 2, 3):
            total += rows[i][index[corner, i]] * weights[corner][i]
    return out.reshape(*out.shape[:3], x.shape[1])


@op("FF>F", method=False)
def deform_corners(
    xp: ArrayNamespace,
    x: Array,
    offset: Array,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    offset_groups: int,
) -> Array:
    """The four pixels around every place that deform_patches reads.

    Shapes: x [n, c, h, w], offset [n, p, r, q] -> [4, n, b, t, c]
    """
    windows = Windows(x.shape[2:], kernel_size, stride, padding, dilation)
    index = _corner_index(xp, windows, offset, offset_groups)
    rows = _rows(xp, x, offset_groups)
    found = [rows[i][index[:, i]] for i in range(x.shape[0])]
    shape = (*index.shape[:4], x.shape[1])
    return xp.stack(found, axis=1).reshape(shape)


@op("FF>F", method=False)
def deform_corners_x(
    xp: ArrayNamespace,
    dout: Array,
    offset: Array,
    *,
    x_shape: Shape4,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    offset_groups: int,
) -> Array:
    """The gradient of deform_corners: every pixel gets back what was read from it.

    Shapes: dout [4, n, b, t, c], offset [n, p, r, q] -> [n, d, h, w]
    """
    n, c, h, w = x_shape
    windows = Windows((h, w), kernel_size, stride, padding, dilation)
    index = _corner_index(xp, windows, offset, offset_groups)
    each = c // offset_groups
    channels = xp.arange(each)
    dx = xp.zeros((n, (h * w * offset_groups + 1) * each), dtype=dout.dtype)
    for i in range(n):
        at = index[:, i][..., None] * each + channels
        xp.add.at(dx[i], at.ravel(), dout[:, i].ravel())
    pixels = dx[:, : h * w * c].reshape(n, h * w, c)
    return xp.ascontiguousarray(pixels.swapaxes(1, 2)).reshape(x_shape)


def deform_patches_x(
    xp: ArrayNamespace,
    g: Array,
    offset: Array,
    mask: Array | None,
    x_shape: Shape4,
    offset_groups: int,
    **sizes: Pair,
) -> Array:
    """Every place gives its gradient back to the four pixels around it."""
    weights = _corner_weights(xp, offset, mask, offset_groups)
    n, b, t, c = g.shape
    parts = g.reshape(1, n, b, t, offset_groups, c // offset_groups)
    parts = [(parts * weight).reshape(1, n, b, t, c) for weight in weights]
    stacked = xp.concatenate(parts, axis=0)
    options = {"offset_groups": offset_groups, **sizes}
    return deform_corners_x(xp, stacked, offset, x_shape=x_shape, **options)


def deform_patches_offset(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    offset: Array,
    mask: Array | None,
    offset_groups: int,
    **sizes: Pair,
) -> Array:
    """How much each place would read more one pixel down and one to the right."""
    above, above_right, below, below_right = _shares(
        xp, g, x, offset, offset_groups, sizes
    )
    fy, fx = _fractions(xp, offset, offset_groups)
    down = (below - above) * (1 - fx) + (below_right - above_right) * fx
    right = (above_right - above) * (1 - fy) + (below_right - below) * fy
    slopes = xp.concatenate([down, right], axis=4)
    if mask is not None:
        slopes = slopes * _per_place(xp, mask, offset_groups, 1)
    return xp.transpose(slopes, (0, 3, 2, 4, 1)).reshape(offset.shape)


def deform_patches_mask(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    offset: Array,
    mask: Array,
    offset_groups: int,
    **sizes: Pair,
) -> Array:
    """What each place read before it was masked, times its gradient."""
    shares = _shares(xp, g, x, offset, offset_groups, sizes)
    weights = _corner_weights(xp, offset, None, offset_groups)
    total = shares[0] * weights[0]
    for share, weight in zip(shares[1:], weights[1:], strict=True):
        total = total + share * weight
    return xp.transpose(total, (0, 3, 2, 4, 1)).reshape(mask.shape)


deform_patches.grad(
    x=deform_patches_x, offset=deform_patches_offset, mask=deform_patches_mask
)


def deform_corners_offset(xp: ArrayNamespace, g: Array, offset_shape: Shape4) -> Array:
    """Zero: which four pixels are read jumps, it does not slide."""
    return xp.zeros(tuple(offset_shape), dtype=g.dtype)


deform_corners.grad(x=deform_corners_x, offset=deform_corners_offset)
deform_corners_x.grad(dout=deform_corners, offset=deform_corners_offset)


def _per_place(xp: ArrayNamespace, values: Array, groups: int, count: int) -> Array:
    """[n, groups · taps · count, h', w'] as [n, stops, taps, groups, count]."""
    n, planes, rows, cols = values.shape
    taps = planes // (groups * count)
    split = values.reshape(n, groups, taps, count, rows * cols)
    return xp.transpose(split, (0, 4, 2, 1, 3))


def _fractions(xp: ArrayNamespace, offset: Array, groups: int) -> tuple[Array, Array]:
    """How far below and right of a whole pixel every place lies."""
    moved = _per_place(xp, offset, groups, 2)
    part = moved - xp.floor(moved)
    every = (slice(None),) * 4
    return part[(*every, slice(0, 1))], part[(*every, slice(1, 2))]


def _corner_weights(
    xp: ArrayNamespace, offset: Array, mask: Array | None, groups: int
) -> list[Array]:
    """What the four pixels around a place count for: [n, stops, taps, groups, 1]."""
    fy, fx = _fractions(xp, offset, groups)
    top, bottom = 1 - fy, fy
    if mask is not None:
        factor = _per_place(xp, mask, groups, 1)
        top, bottom = top * factor, bottom * factor
    left = 1 - fx
    return [top * left, top * fx, bottom * left, bottom * fx]


def _shares(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    offset: Array,
    groups: int,
    sizes: dict[str, Pair],
) -> list[Array]:
    """The gradient times each corner, summed over the channels of a group."""
    corners = deform_corners(xp, x, offset, offset_groups=groups, **sizes)
    n, b, t, c = g.shape
    products = (corners * g.reshape(1, n, b, t, c)).reshape(
        4, n, b, t, groups, c // groups
    )
    shares = products.sum(axis=5)
    every = (slice(None),) * 4
    return [
        shares[(slice(k, k + 1), *every)].reshape(n, b, t, groups, 1) for k in range(4)
    ]


def _rows(xp: ArrayNamespace, x: Array, groups: int) -> Array:
    """x as rows of channels, one per pixel and group, and a row of zeros at the end."""
    n, c, h, w = x.shape
    rows = xp.zeros((n, h * w * groups + 1, c // groups), dtype=x.dtype)
    pixels = x.reshape(n, c, h * w).swapaxes(1, 2)
    rows[:, :-1] = pixels.reshape(n, h * w * groups, c // groups)
    return rows


def _corner_index(
    xp: ArrayNamespace, windows: Windows, offset: Array, groups: int
) -> Array:
    """Which row of `_rows` each corner is: [4, n, stops, taps, groups]."""
    size, stops, kernel = windows.size, windows.stops, windows.kernel
    moved = xp.floor(_per_place(xp, offset, groups, 2))
    lines = []
    for dim in (0, 1):
        shape = [1] * 4
        shape[dim], shape[2 + dim] = stops[dim], kernel[dim]
        at = windows.positions(dim).reshape(shape)
        at = np.broadcast_to(at, (*stops, *kernel))
        at = at.reshape(1, moved.shape[1], moved.shape[2], 1)
        first = moved[..., dim] + xp.asarray(at)
        lines.append([first, first + 1])
    last = size[0] * size[1] * groups
    group = xp.arange(groups)
    corners = []
    for y in lines[0]:
        for x in lines[1]:
            inside = (y >= 0) & (y < size[0]) & (x >= 0) & (x < size[1])
            pixel = xp.where(inside, y * size[1] + x, 0).astype(xp.int64)
            corners.append(xp.where(inside, pixel * groups + group, last))
    return xp.stack(corners)


_PLAIN = window_options((2, 3), (1, 1), (0, 0), (1, 1), offset_groups=1)
_RICH = window_options((3, 2), (2, 1), (1, 2), (1, 2), offset_groups=2)

deform_patches.examples(
    samples=[
        (normal(2, 3, 4, 5), normal(2, 12, 3, 3), _PLAIN),
        (normal(2, 4, 5, 4), normal(2, 24, 3, 6), normal(2, 12, 3, 6), _RICH),
    ],
    rejects=[
        (normal(2, 3, 4, 5), normal(2, 6, 3, 3), _PLAIN),
        (normal(2, 3, 5, 4), normal(2, 24, 3, 6), _RICH),
        (normal(2, 4, 5, 4), normal(2, 24, 3, 6), normal(2, 12, 3, 5), _RICH),
    ],
)

deform_corners.examples(samples=[(normal(2, 4, 5, 4), normal(2, 24, 3, 6), _RICH)])

_RICH_X = {"x_shape": (2, 4, 5, 4), **_RICH}
deform_corners_x.examples(
    samples=[(normal(4, 2, 18, 6, 4), normal(2, 24, 3, 6), _RICH_X)]
)
