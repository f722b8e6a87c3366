"""Pooling: every window of an image becomes one number.

A window is never cut out: for each place inside the window, all windows together are
one strided view of the image, and the views are added up (or their maximum is taken).
Large windows are taken dim by dim, averages as weighted sums of a few places (see
resample.py): first the lines of a window, then what they came to.

The ops of two dims have compiled kernels of their own; those of any number of dims know
`ceil_mode` too, and tell where in the image a maximum stands.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from operator import mod
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import distinct, normal, op
from burnbook.ops.blocked import BLOCK, SHARED, on_threads
from burnbook.ops.conv.windows import (
    LETTERS,
    Pair,
    Shape4,
    Sizes,
    Windows,
    fits_inside,
    window_options,
)
from burnbook.ops.resample import Taps, apply_all

SHORT = 64  # elements of a row that is added more quickly together with others
FEW = 9  # places of a window that are added up more quickly than dim by dim


def _one_size_per_dim(x: Shape, sizes: Sizes) -> str | None:
    dims = len(sizes)
    if dims not in LETTERS or len(x) != dims + 2:
        return f"x must be [n, c, {LETTERS.get(dims, 'l')}], one size for each dim"
    return None


def _is_image(x: Shape) -> str | None:
    return None if len(x) == 4 else "x must be an image batch [n, c, h, w]"


def _is_output(output_size: Sizes, dims: str = "every dim") -> str | None:
    if min(output_size) < 1:
        return f"output_size {list(output_size)} must be at least 1 in {dims}"
    return None


@op(
    "F>F",
    check=lambda x, output_size: _is_image(x) or _is_output(output_size, "both dims"),
)
def adaptive_avg_pool2d(xp: ArrayNamespace, x: Array, *, output_size: Pair) -> Array:
    """Average so many windows per dim that the output has the size asked for.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """
    _, _, h, w = x.shape
    high, wide = output_size
    if h % high == 0 == w % wide:  # hot: most networks pool like this
        return _average_evenly(xp, x, output_size)
    return _average_to(xp, x, output_size)


@op("F>F", method=False)
def adaptive_avg_pool2d_x(xp: ArrayNamespace, dout: Array, *, x_shape: Shape4) -> Array:
    """The gradient of adaptive_avg_pool2d: every window shares its part out evenly.

    Shapes: dout [n, c, h', w'] -> [n, c, h, w]
    """
    return _share_to(xp, dout, x_shape)


@op(
    "F>F",
    check=lambda x, output_size: (
        _one_size_per_dim(x, output_size) or _is_output(output_size)
    ),
    method=False,
)
def adaptive_avg_pool(xp: ArrayNamespace, x: Array, *, output_size: Sizes) -> Array:
    """Average so many windows per dim that the output has the size asked for.

    Shapes: x [n, c, ...] -> [n, c, ...]
    """
    return _average_to(xp, x, output_size)


@op("F>F", method=False)
def adaptive_avg_pool_x(xp: ArrayNamespace, dout: Array, *, x_shape: Shape) -> Array:
    """The gradient of adaptive_avg_pool: every window shares its part out evenly.

    Shapes: dout [n, c, ...] -> [n, c, ...]
    """
    return _share_to(xp, dout, x_shape)


adaptive_avg_pool2d.grad(x=adaptive_avg_pool2d_x)
adaptive_avg_pool2d_x.grad(
    dout=lambda xp, g, dout_shape: adaptive_avg_pool2d(
        xp, g, output_size=tuple(dout_shape[2:])
    )
)
adaptive_avg_pool.grad(x=adaptive_avg_pool_x)
adaptive_avg_pool_x.grad(
    dout=lambda xp, g, dout_shape: adaptive_avg_pool(
        xp, g, output_size=tuple(dout_shape[2:])
    )
)


def adaptive_windows(size: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each of `count` windows over `size` places starts and ends.

    Example:
        >>> adaptive_windows(5, 2)
        (array([0, 2]), array([3, 5]))
    """
    i = np.arange(count)
    return i * size // count, -(-(i + 1) * size // count)


def adaptive_tables(size: Sequence[int], output_size: Sequence[int]) -> list[Taps]:
    """Which places of each dim every window averages."""
    pairs = zip(size, output_size, strict=True)
    return [_adaptive_table(*pair) for pair in pairs]


@lru_cache(64)
def _adaptive_table(size: int, count: int) -> Taps:
    """The same of one dim."""
    starts, ends = adaptive_windows(size, count)
    place = np.arange(size)
    rows, places = np.nonzero((place >= starts[:, None]) & (place < ends[:, None]))
    return Taps(count, size, rows, places, 1 / (ends - starts)[rows])


def _divides(size: Sizes, output_size: Sizes) -> bool:
    """Whether all windows are of one size, and none overlaps another."""
    return not any(map(mod, size, output_size))


def _average_to(xp: ArrayNamespace, x: Array, output_size: Sizes) -> Array:
    """Average windows as many as the output has places."""
    if len(output_size) == 2 and _divides(x.shape[2:], output_size):
        return _average_evenly(xp, x, output_size)
    return apply_all(xp, x, adaptive_tables(x.shape[2:], output_size))


def _share_to(xp: ArrayNamespace, dout: Array, x_shape: Shape) -> Array:
    """Share the gradient of each window out among its places."""
    size, stops = x_shape[2:], dout.shape[2:]
    if not _divides(size, stops):
        tables = adaptive_tables(size, stops)
        return apply_all(xp, dout, [table.turned() for table in tables])
    dx = dout
    for axis in reversed(range(2, len(x_shape))):
        if x_shape[axis] > dout.shape[axis]:
            dx = _share_evenly(xp, dx, axis, x_shape[axis] // dout.shape[axis])
    return xp.array(dout) if dx is dout else dx


def _average_evenly(xp: ArrayNamespace, x: Array, output_size: Sizes) -> Array:
    """All windows of one size: some at a time, so that they stay in the cache."""
    n, c, h, w = x.shape
    high, wide = output_size
    rows, cols = h // high, w // wide
    lines = x.reshape(n * c * high, rows, w)  # each makes one line of the output
    shares = xp.full(cols, 1 / (rows * cols), dtype=x.dtype)
    some = max(1, BLOCK // max(rows * w, 1)) if xp.__name__ == "numpy" else len(lines)
    if len(lines) <= some:
        cells = _sum_of_rows(xp, lines).reshape(-1, cols)
        return xp.dot(cells, shares).reshape(n, c, high, wide)
    out = xp.empty((n, c, high, wide), dtype=x.dtype)
    averages = out.reshape(len(lines), wide)
    add_up = _sum_of_neighbors if 2 <= rows <= 4 and w <= SHORT else _sum_of_rows

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, some):
            part = slice(first, min(first + some, stop))
            cells = add_up(xp, lines[part]).reshape(-1, cols)
            xp.dot(cells, shares, out=averages[part].reshape(-1))

    on_threads(xp, work, len(lines), x.size >= SHARED)
    return out


def _sum_of_rows(xp: ArrayNamespace, lines: Array) -> Array:
    """Σ over the rows of each line: [lines, rows, w] -> [lines, w]."""
    total = lines[:, 0] if lines.shape[1] == 1 else lines[:, 0] + lines[:, 1]
    for k in range(2, lines.shape[1]):
        xp.add(total, lines[:, k], out=total)
    return total


def _sum_of_neighbors(xp: ArrayNamespace, lines: Array) -> Array:
    """The same for short rows, by sums of every row and those that follow it.

    Why: NumPy adds one long run far quicker than many short ones, so that sums which
    nobody needs cost less than leaving them out.
    """
    count, rows, w = lines.shape
    flat, size = lines.reshape(-1), (count * rows - rows + 1) * w
    sums = xp.empty(lines.shape, dtype=lines.dtype)
    total = sums.reshape(-1)[:size]
    xp.add(flat[:size], flat[w : w + size], out=total)
    for k in range(2, rows):
        xp.add(total, flat[k * w :][:size], out=total)
    return sums[:, 0]


def _share_evenly(xp: ArrayNamespace, dout: Array, axis: int, length: int) -> Array:
    part = xp.expand_dims(dout * dout.dtype.type(1 / length), axis + 1)
    repeated = (*part.shape[: axis + 1], length, *part.shape[axis + 2 :])
    shape = (*dout.shape[:axis], dout.shape[axis] * length, *dout.shape[axis + 1 :])
    return xp.ascontiguousarray(xp.broadcast_to(part, repeated)).reshape(shape)


def _fits(
    x: Shape, kernel_size: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes
) -> str | None:
    sizes = map(tuple, (kernel_size, stride, padding, dilation))
    return _one_size_per_dim(x, kernel_size) or _misfit(False, x[2:], *sizes)


def _fits_images(
    x: Shape4, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> str | None:
    sizes = map(tuple, (kernel_size, stride, padding, dilation))
    return _is_image(x) or _misfit(True, x[2:], *sizes)


@lru_cache(maxsize=256)
def _misfit(gaps_count: bool, *sizes: Sizes) -> str | None:
    """Why windows do not fit, or would see nothing but padding.

    gaps_count: the gaps inside a window are a part of it.
    """
    _, kernel, _, padding, dilation = sizes
    wrong = fits_inside("window", *sizes)
    if wrong:
        return wrong
    for size, pad, gap in zip(kernel, padding, dilation, strict=True):
        if 2 * pad > (size * gap if gaps_count else size):
            return f"a padding of {pad} is more than half the window"
    return None


@op(
    "F>F",
    check=lambda x, kernel_size, stride, padding: _fits_images(
        x, kernel_size, stride, padding, (1, 1)
    ),
)
def avg_pool2d(
    xp: ArrayNamespace,
    x: Array,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    count_include_pad: bool = True,
) -> Array:
    """Average every window: out = Σ window / its size.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """
    return _average(xp, x, kernel_size, stride, padding, count_include_pad, False)


@op("F>F", method=False)
def avg_pool2d_x(
    xp: ArrayNamespace,
    dout: Array,
    *,
    x_shape: Shape4,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    count_include_pad: bool = True,
) -> Array:
    """The gradient of avg_pool2d: every window shares its part out evenly.

    Shapes: dout [n, c, h', w'] -> [n, c, h, w]
    """
    sizes = (x_shape[2:], kernel_size, stride, padding)
    return _share(xp, dout, average_tables(*sizes, count_include_pad, False))


@op(
    "F>F",
    check=lambda x, kernel_size, stride, padding: _fits(
        x, kernel_size, stride, padding, (1,) * len(kernel_size)
    ),
    method=False,
)
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
    return _average(xp, x, kernel_size, stride, padding, count_include_pad, ceil_mode)


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
    sizes = (x_shape[2:], kernel_size, stride, padding)
    return _share(xp, dout, average_tables(*sizes, count_include_pad, ceil_mode))


avg_pool2d.grad(x=avg_pool2d_x)
avg_pool2d_x.grad(dout=lambda xp, g, x_shape, **sizes: avg_pool2d(xp, g, **sizes))
avg_pool.grad(x=avg_pool_x)
avg_pool_x.grad(dout=lambda xp, g, x_shape, **sizes: avg_pool(xp, g, **sizes))


def average_tables(
    size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, *flags: bool
) -> list[Taps]:
    """Which places the windows average, dim by dim."""
    sizes = zip(size, kernel, stride, padding, strict=True)
    return [_average_table(*one, *map(bool, flags)) for one in sizes]


@lru_cache(64)
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
    places = one.positions(0)
    inside = (places >= 0) & (places < size)
    counted = places < size + padding if count_include_pad else inside
    weights = inside / counted.sum(axis=1, keepdims=True)
    rows = np.broadcast_to(np.arange(one.stops[0])[:, None], places.shape)
    return Taps(one.stops[0], size, rows[inside], places[inside], weights[inside])


def _average(
    xp: ArrayNamespace,
    x: Array,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    count_include_pad: bool,
    ceil_mode: bool,
) -> Array:
    """The average of every window; small ones of images place by place."""
    sizes = (x.shape[2:], kernel, stride, padding)
    flags = (count_include_pad, ceil_mode)
    if len(kernel) != 2 or math.prod(kernel) > FEW:
        return apply_all(xp, x, average_tables(*sizes, *flags))
    windows = windows_of(*sizes, (1, 1), ceil_mode)
    grown = windows.pad(xp, x)
    (_, first), *others = windows.places
    total = xp.array(grown[first], order="C")
    for _, place in others:
        xp.add(total, grown[place], out=total)
    share = _share_of_place(*map(tuple, sizes), *flags)
    return xp.multiply(total, xp.asarray(share, dtype=x.dtype), out=total)


@lru_cache(64)
def _share_of_place(*sizes: Any) -> np.ndarray:
    """What one place of a window counts for in its average: one number if all agree."""
    high, wide = [np.asarray(table.shares) for table in average_tables(*sizes)]
    shares = np.outer(high, wide)
    return shares[0, 0] if (shares == shares[0, 0]).all() else shares


def _share(xp: ArrayNamespace, dout: Array, tables: Sequence[Taps]) -> Array:
    """Every window shares its gradient out among the places that it averaged."""
    return apply_all(xp, dout, [table.turned() for table in tables])


@op("F>F", check=_fits_images, extra="winner")
def max_pool2d(
    xp: ArrayNamespace,
    x: Array,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> tuple[Array, Array]:
    """Take the largest number of every window: out = max window.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    Why: which place of the window won is remembered, since only that place gets a
    gradient; the first one wins a tie.
    """
    windows = windows_of(x.shape[2:], kernel_size, stride, padding, dilation)
    best, numbers = _largest(xp, x, windows)
    return best, numbers.astype(np.int32)


@op("FI>F", method=False)
def max_pool2d_x(
    xp: ArrayNamespace,
    dout: Array,
    winner: Array,
    *,
    x_shape: Shape4,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> Array:
    """The gradient of max_pool2d: the place that won gets it all.

    Shapes: dout [n, c, h', w'], winner [n, c, h', w'] -> [n, c, h, w]
    """
    windows = windows_of(x_shape[2:], kernel_size, stride, padding, dilation)
    grown = xp.zeros((*x_shape[:2], *windows.grown), dtype=dout.dtype)
    for number, (_, place) in enumerate(windows.places):
        grown[place] += dout * (winner == number)
    return windows.unpad(grown)


@op("FI>F", method=False)
def max_pool2d_pick(
    xp: ArrayNamespace,
    x: Array,
    winner: Array,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> Array:
    """Take from every window the place that won before: what max_pool2d_x undoes.

    Shapes: x [n, c, h, w], winner [n, c, h', w'] -> [n, c, h', w']
    """
    windows = windows_of(x.shape[2:], kernel_size, stride, padding, dilation)
    grown = windows.pad(xp, x)
    picked = xp.zeros(winner.shape, dtype=x.dtype)
    for number, (_, place) in enumerate(windows.places):
        picked += grown[place] * (winner == number)
    return picked


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
) -> tuple[Array, Array]:
    """Take the largest number of every window: out = max window.

    Shapes: x [n, c, ...] -> [n, c, ...]
    Why: which place won is remembered, since only that place gets a gradient; the first
    one wins a tie, and NaN wins over every number, the last NaN over the others.
    """
    sizes = (kernel_size, stride, padding, dilation)
    windows = windows_of(x.shape[2:], *sizes, ceil_mode)
    best, numbers = _largest(xp, x, windows)
    return best, _indices(xp, numbers, windows)


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
    sizes = (kernel_size, stride, padding, dilation)
    windows = windows_of(x.shape[2:], *sizes, ceil_mode)
    return _indices(xp, _largest(xp, x, windows)[1], windows)


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


max_pool2d.grad(x=max_pool2d_x)
max_pool2d_x.grad(dout=max_pool2d_pick)
max_pool2d_pick.grad(x=max_pool2d_x)
max_pool.grad(x=max_pool_x)
max_pool_x.grad(dout=max_pool_pick)
max_pool_pick.grad(x=max_pool_x)


def windows_of(
    size: Sizes,
    kernel: Sizes,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    ceil_mode: bool = False,
) -> Windows:
    """The windows of one pooling."""
    sizes = map(tuple, (size, kernel, stride, padding, dilation))
    return Windows.of(*sizes, None, ceil_mode)


def _largest(xp: ArrayNamespace, x: Array, windows: Windows) -> tuple[Array, Array]:
    """The largest of each window, and the number of its place in the window.

    Dim by dim: the largest of each line of a window, then the largest of those.
    Why: arithmetic on small integers is several times faster than copying by mask.
    """
    kind = xp.uint8 if math.prod(windows.kernel) < 256 else xp.int32
    best = windows.pad(xp, x, -np.inf)
    numbers: Any = None
    unit = 1  # how many places of the window a step along this dim passes
    for lines in reversed(windows.lines):
        values, inner = best, numbers
        for k, line in enumerate(lines):
            part = values[line]
            before = kind(0) if inner is None else inner[line]
            if k == 0:
                best = xp.array(part, order="C")
                numbers = before + xp.zeros(best.shape, dtype=kind)
                continue
            better = (part > best) | (part != part)  # the second holds for NaN alone
            xp.maximum(best, part, out=best)
            numbers += (before + kind(k * unit) - numbers) * better
        unit *= len(lines)
    return best, numbers


def _indices(xp: ArrayNamespace, numbers: Array, windows: Windows) -> Array:
    """Where places of windows stand, counted through the image, from their numbers."""
    total: Any = 0
    dims, kind = len(windows.kernel), numbers.dtype.type
    for dim in range(dims):
        places = numbers
        if dim < dims - 1:
            unit = kind(math.prod(windows.kernel[dim + 1 :]))
            places = numbers // unit
            numbers = numbers - places * unit
        starts = windows.positions(dim)[:, 0].astype(np.int32)
        starts = xp.asarray(starts).reshape(-1, *[1] * (dims - dim - 1))
        at = places * xp.int32(windows.dilation[dim]) + starts
        if windows.padding[dim]:  # where all is −inf, the padding may have won
            at = at.clip(0, windows.size[dim] - 1)
        total = total * windows.size[dim] + at
    return total


adaptive_avg_pool2d.examples(
    samples=[
        (normal(2, 3, 6, 9), {"output_size": (2, 3)}),
        (normal(2, 3, 7, 5), {"output_size": (3, 4)}),
        (normal(1, 2, 2, 3), {"output_size": (4, 3)}),
    ],
    rejects=[(normal(3, 4), {"output_size": (2, 2)})],
)

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

_PADDED = {"kernel_size": (3, 3), "stride": (2, 2), "padding": (1, 1)}

avg_pool2d.examples(
    samples=[
        (normal(2, 3, 6, 8), {"kernel_size": (2, 4), "stride": (2, 4)}),
        (normal(2, 3, 7, 6), {**_PADDED, "stride": (2, 1)}),
        (
            normal(2, 3, 7, 6),
            {**_PADDED, "kernel_size": (3, 2), "count_include_pad": False},
        ),
    ],
    rejects=[(normal(2, 3, 2, 2), {"kernel_size": (3, 3), "stride": (1, 1)})],
)


def _averages(kernel: Sizes, stride: Sizes, padding: Sizes, **more: bool) -> Any:
    flags = {"count_include_pad": True, "ceil_mode": False}
    sizes = {"kernel_size": kernel, "stride": stride, "padding": padding}
    return sizes | flags | more


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

max_pool2d.examples(
    samples=[
        (distinct(2, 3, 6, 8), {"kernel_size": (2, 2), "stride": (2, 2)}),
        (distinct(2, 3, 7, 8), window_options((3, 2), (2, 1), (1, 1), (1, 2))),
    ],
    rejects=[(normal(2, 3, 2, 2), {"kernel_size": (3, 3), "stride": (1, 1)})],
)


def _maxima(*sizes: Sizes, ceil_mode: bool = False) -> dict[str, Any]:
    return window_options(*sizes, ceil_mode=ceil_mode)


_MAX_SAMPLES = [
    (distinct(2, 3, 9), _maxima((3,), (2,), (1,), (1,))),
    (distinct(2, 3, 9), _maxima((2,), (3,), (0,), (2,), ceil_mode=True)),
    (distinct(2, 3, 6, 8), _maxima((2, 2), (2, 2), (0, 0), (1, 1))),
    (distinct(2, 2, 7, 8), _maxima((3, 2), (2, 1), (1, 1), (1, 2))),
    (distinct(1, 2, 4, 5, 6), _maxima((2, 3, 2), (2, 1, 3), (1, 1, 0), (1, 1, 1))),
]
_MAX_REJECTS = [
    (normal(2, 3, 2), _maxima((3,), (1,), (0,), (1,))),
    (normal(2, 3, 9), _maxima((3,), (1,), (2,), (1,))),
    (normal(2, 3, 9), _maxima((3, 3), (1, 1), (0, 0), (1, 1))),
]

max_pool.examples(samples=_MAX_SAMPLES, rejects=_MAX_REJECTS)

max_pool_indices.examples(samples=_MAX_SAMPLES, rejects=_MAX_REJECTS)
