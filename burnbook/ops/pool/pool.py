"""Pooling in any number of dims.

Averages are taken dim by dim, as weighted sums of a few places (see taps.py). So is the
maximum: the largest of each line of a window, then the largest of those.
"""

import functools
import math
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import distinct, normal, op
from burnbook.ops.conv.windows import LETTERS, Shape, Sizes, Windows, fits_inside
from burnbook.ops.pool.pool2d import adaptive_tables
from burnbook.ops.resample import Taps, apply_all


def _fits(
    x: Shape, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> str | None:
    dims = len(kernel_size)
    if dims not in LETTERS or len(x) != dims + 2:
        return f"x must be [n, c, {LETTERS.get(dims, 'l')}], one size for each dim"
    wrong = fits_inside("window", x[2:], kernel_size, stride, padding, dilation)
    if wrong:
        return wrong
    for size, pad in zip(kernel_size, padding, strict=True):
        if 2 * pad > size:
            return f"a padding of {pad} is more than half the window"
    return None


def _fits_undilated(
    x: Shape, kernel_size: Sizes, stride: Sizes, padding: Sizes
) -> str | None:
    return _fits(x, kernel_size, stride, padding, (1,) * len(kernel_size))


def _averages(kernel: Sizes, stride: Sizes, padding: Sizes, **more: bool) -> Any:
    flags = {"count_include_pad": True, "ceil_mode": False}
    sizes = {"kernel_size": kernel, "stride": stride, "padding": padding}
    return sizes | flags | more


@op("F>F", check=_fits_undilated, method=False)
def avg_pool(
    xp: ArrayNamespace,
    x: Array,
    *,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_include_pad: bool,
    ceil_mode: bool,
) -> Array:
    """Average every window: out = Σ window / its size.

    count_include_pad: zeros around the image count as places of a window.
    ceil_mode: a last window may reach beyond the padding; what lies there never counts.

    Shapes: x [n, c, ...] -> [n, c, ...]
    """
    sizes = (kernel_size, stride, padding)
    tables = average_tables(x.shape[2:], *sizes, count_include_pad, ceil_mode)
    return apply_all(xp, x, tables)


@op("F>F", method=False)
def avg_pool_x(
    xp: ArrayNamespace,
    dout: Array,
    *,
    x_shape: Shape,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_include_pad: bool,
    ceil_mode: bool,
) -> Array:
    """The gradient of avg_pool: every window shares its part out evenly.

    Shapes: dout [n, c, ...] -> [n, c, ...]
    """
    sizes = (kernel_size, stride, padding)
    tables = average_tables(x_shape[2:], *sizes, count_include_pad, ceil_mode)
    return apply_all(xp, dout, [table.turned() for table in tables])


def avg_pool_x_dout(
    xp: ArrayNamespace,
    g: Array,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_include_pad: bool,
    ceil_mode: bool,
) -> Any:
    """Average again."""
    return avg_pool(
        xp,
        g,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        count_include_pad=count_include_pad,
        ceil_mode=ceil_mode,
    )


avg_pool.grad(x=avg_pool_x)

avg_pool.examples(
    samples=[
        (normal(2, 3, 9), _averages((3,), (2,), (1,))),
        (normal(2, 3, 8), _averages((3,), (3,), (0,), ceil_mode=True)),
        (normal(2, 2, 7, 6), _averages((3, 2), (2, 3), (1, 1), ceil_mode=True)),
        (
            normal(2, 2, 7, 6),
            _averages((3, 2), (2, 3), (1, 1), ceil_mode=True, count_include_pad=False),
        ),
        (normal(1, 2, 4, 5, 6), _averages((2, 3, 2), (2, 1, 3), (0, 1, 1))),
    ],
    rejects=[
        (normal(2, 3, 2), _averages((3,), (1,), (0,))),
        (normal(2, 3, 9), _averages((3,), (1,), (2,))),
        (normal(2, 3, 9, 9), _averages((3,), (1,), (0,))),
    ],
)
avg_pool_x.grad(dout=avg_pool_x_dout)


def average_tables(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, *flags: bool
) -> list[Taps]:
    """Which places the windows average, dim by dim."""
    sizes = zip(size, kernel, stride, padding, strict=True)
    return [_average_table(*one, *map(bool, flags)) for one in sizes]


@functools.lru_cache(64)
def _average_table(
    size: int,
    kernel: int,
    stride: int,
    padding: int,
    count_include_pad: bool,
    ceil_mode: bool,
) -> Taps:
    """Which places of one dim each window averages."""
    one = Windows((size,), (kernel,), (stride,), (padding,), (1,), None, ceil_mode)
    rows = np.arange(one.stops[0])[:, None]
    places = rows * stride - padding + np.arange(kernel)
    inside = (places >= 0) & (places < size)
    counted = places < size + padding if count_include_pad else inside
    weights = inside / counted.sum(axis=1, keepdims=True)
    rows = np.broadcast_to(rows, places.shape)
    return Taps(one.stops[0], size, rows[inside], places[inside], weights[inside])


def _is_image(x: Shape, output_size: Sizes) -> str | None:
    dims = len(output_size)
    if dims not in LETTERS or len(x) != dims + 2:
        return f"x must be [n, c, {LETTERS.get(dims, 'l')}], one size for each dim"
    if min(output_size) < 1:
        return f"output_size {list(output_size)} must be at least 1 in every dim"
    return None


@op("F>F", check=_is_image, method=False)
def adaptive_avg_pool(xp: ArrayNamespace, x: Array, *, output_size: Sizes) -> Array:
    """Average so many windows per dim that the output has the size asked for.

    Shapes: x [n, c, ...] -> [n, c, ...]
    """
    return apply_all(xp, x, adaptive_tables(x.shape[2:], output_size))


@op("F>F", method=False)
def adaptive_avg_pool_x(xp: ArrayNamespace, dout: Array, *, x_shape: Shape) -> Array:
    """The gradient of adaptive_avg_pool: every window shares its part out evenly.

    Shapes: dout [n, c, ...] -> [n, c, ...]
    """
    tables = adaptive_tables(x_shape[2:], dout.shape[2:])
    return apply_all(xp, dout, [table.turned() for table in tables])


adaptive_avg_pool.grad(x=adaptive_avg_pool_x)

adaptive_avg_pool.examples(
    samples=[
        (normal(2, 3, 9), {"output_size": (3,)}),
        (normal(2, 3, 7), {"output_size": (3,)}),
        (normal(2, 3, 3), {"output_size": (5,)}),
        (normal(1, 2, 6, 5, 4), {"output_size": (3, 2, 4)}),
    ],
    rejects=[
        (normal(2, 3, 4), {"output_size": (2, 2)}),
        (normal(2, 3, 4), {"output_size": (0,)}),
    ],
)
adaptive_avg_pool_x.grad(
    dout=lambda xp, g, dout_shape: adaptive_avg_pool(
        xp, g, output_size=tuple(dout_shape[2:])
    )
)


def _maxima(
    kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil: bool = False
) -> dict[str, Any]:
    names = ("kernel_size", "stride", "padding", "dilation", "ceil_mode")
    return dict(
        zip(names, (kernel, stride, padding, dilation, ceil), strict=True),
    )


_MAX_SAMPLES = [
    (distinct(2, 3, 9), _maxima((3,), (2,), (1,), (1,))),
    (distinct(2, 3, 9), _maxima((2,), (3,), (0,), (2,), ceil=True)),
    (distinct(2, 3, 6, 8), _maxima((2, 2), (2, 2), (0, 0), (1, 1))),
    (distinct(2, 2, 7, 8), _maxima((3, 2), (2, 1), (1, 1), (1, 2))),
    (distinct(1, 2, 4, 5, 6), _maxima((2, 3, 2), (2, 1, 3), (1, 1, 0), (1, 1, 1))),
]
_MAX_REJECTS = [
    (normal(2, 3, 2), _maxima((3,), (1,), (0,), (1,))),
    (normal(2, 3, 9), _maxima((3,), (1,), (2,), (1,))),
    (normal(2, 3, 9), _maxima((3, 3), (1, 1), (0, 0), (1, 1))),
]


@op("F>F", check=_fits, extra="winner", method=False)
def max_pool(
    xp: ArrayNamespace,
    x: Array,
    *,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Any:
    """Take the largest number of every window: out = max window.

    Shapes: x [n, c, ...] -> [n, c, ...]
    Why: which place won is remembered, since only that place gets a gradient; the first
    one wins a tie, and NaN wins over every number, the last NaN over the others.
    """
    sizes = (kernel_size, stride, padding, dilation)
    windows = Windows(x.shape[2:], *sizes, None, ceil_mode)
    best = xp.full((*x.shape[:2], *windows.grown), -np.inf, dtype=x.dtype)
    windows.unpad(best)[...] = x
    picked: list[Any] = []
    for dim in reversed(range(len(kernel_size))):
        best, picked = _largest(xp, best, picked, windows, dim)
    return best, _numbers(xp, picked, windows)


@op("F>I", check=_fits, method=False)
def max_pool_indices(
    xp: ArrayNamespace,
    x: Array,
    *,
    kernel_size: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool,
) -> Array:
    """Where the largest number of every window stands, counted through its image.

    Shapes: x [n, c, ...] -> [n, c, ...]
    """
    options = _maxima(kernel_size, stride, padding, dilation, ceil_mode)
    return max_pool.forward(xp, x, **options)[1]


max_pool_indices.examples(samples=_MAX_SAMPLES, rejects=_MAX_REJECTS)


@op("FI>F", method=False)
def max_pool_x(
    xp: ArrayNamespace, dout: Array, winner: Array, *, x_shape: Shape
) -> Array:
    """The gradient of max_pool: the place that won gets it all.

    Shapes: dout [n, c, ...], winner [n, c, ...] -> [n, c, ...]
    """
    size = math.prod(x_shape[2:])
    dx = xp.zeros(math.prod(x_shape), dtype=dout.dtype)
    planes = xp.arange(x_shape[0] * x_shape[1]) * size
    at = winner + planes.reshape(*x_shape[:2], *[1] * (len(x_shape) - 2))
    xp.add.at(dx, at.ravel(), dout.ravel())
    return dx.reshape(x_shape)


@op("FI>F", method=False)
def max_pool_pick(xp: ArrayNamespace, x: Array, winner: Array) -> Array:
    """Take from every window the place that won before: what max_pool_x undoes.

    Shapes: x [n, c, ...], winner [n, c, ...] -> [n, c, ...]
    """
    n, c, *size = x.shape
    stops = winner.shape[2:]
    flat = winner.reshape(n, c, math.prod(stops))
    picked = xp.take_along_axis(x.reshape(n, c, math.prod(size)), flat, axis=2)
    return picked.reshape(winner.shape)


max_pool.grad(x=max_pool_x)

max_pool.examples(samples=_MAX_SAMPLES, rejects=_MAX_REJECTS)
max_pool_x.grad(dout=max_pool_pick)
max_pool_pick.grad(x=max_pool_x)


def _largest(
    xp: ArrayNamespace, values: Array, picked: list[Any], windows: Windows, dim: int
) -> tuple[Any, list[Any]]:
    """The largest of each window's places along one dim, and which place that was.

    picked: which places were the largest along the later dims; it is carried along.
    Why: arithmetic on small integers is several times faster than copying by mask.
    """
    lines = [
        (*(slice(None),) * (2 + dim), windows.line(dim, place))
        for place in range(windows.kernel[dim])
    ]
    best = xp.array(values[lines[0]])
    others = [xp.array(one[lines[0]]) for one in picked]
    kind = xp.uint8 if windows.kernel[dim] <= 256 else xp.int32
    own = xp.zeros(best.shape, dtype=kind)
    for place, line in enumerate(lines[1:], 1):
        part = values[line]
        better = (part > best) | (part != part)  # the second holds for NaN alone
        xp.maximum(best, part, out=best)
        xp.maximum(own, better * kind(place), out=own)  # later places are larger
        for other, one in zip(others, picked, strict=True):
            other += (one[line] - other) * better
    return best, [own, *others]


def _numbers(xp: ArrayNamespace, picked: list[Any], windows: Windows) -> Any:
    """The number of each winner, counted through its image, from its place per dim."""
    total = 0
    for dim, places in enumerate(picked):
        stops = xp.arange(windows.stops[dim], dtype=xp.int32) * windows.stride[dim]
        starts = stops - windows.padding[dim]
        after = (1,) * (len(picked) - dim - 1)
        at = places * xp.int32(windows.dilation[dim]) + starts.reshape(-1, *after)
        if windows.padding[dim]:  # where all is −inf, the padding may have won
            at = at.clip(0, windows.size[dim] - 1)
        total = total * windows.size[dim] + at
    return total
