"""Pooling: every window of an image becomes one number.

A window is never cut out: for each place inside the window, all windows together are
one strided view of the image, and the views are added up (or their maximum is taken).
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import distinct, normal, op
from burnbook.ops.blocked import BLOCK, SHARED, spread
from burnbook.ops.conv.im2col2d import Pair, Shape4, output_size
from burnbook.ops.resample import Taps, apply_all

SHORT = 64  # elements of a row that is added more quickly together with others


def _is_image(x: Shape4, output_size: Pair) -> str | None:
    if len(x) != 4:
        return "x must be an image batch [n, c, h, w]"
    if min(output_size) < 1:
        return f"output_size {list(output_size)} must be at least 1 in both dims"
    return None


@op("F>F", check=_is_image)
def adaptive_avg_pool2d(xp: ArrayNamespace, x: Array, *, output_size: Pair) -> Array:
    """Average so many windows per dim that the output has the size asked for.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """
    if x.shape[2] % output_size[0] == 0 and x.shape[3] % output_size[1] == 0:
        return _average_evenly(xp, x, output_size)
    return apply_all(xp, x, adaptive_tables(x.shape[2:], output_size))


@op("F>F", method=False)
def adaptive_avg_pool2d_x(xp: ArrayNamespace, dout: Array, *, x_shape: Shape4) -> Array:
    """The gradient of adaptive_avg_pool2d: every window shares its part out evenly.

    Shapes: dout [n, c, h', w'] -> [n, c, h, w]
    """
    if x_shape[2] % dout.shape[2] or x_shape[3] % dout.shape[3]:
        tables = adaptive_tables(x_shape[2:], dout.shape[2:])
        return apply_all(xp, dout, [table.turned() for table in tables])
    dx = dout
    for axis in (3, 2):
        if x_shape[axis] > dout.shape[axis]:
            dx = _share_evenly(xp, dx, axis, x_shape[axis] // dout.shape[axis])
    return xp.array(dout) if dx is dout else dx


adaptive_avg_pool2d.grad(x=adaptive_avg_pool2d_x)

adaptive_avg_pool2d.examples(
    samples=[
        (normal(2, 3, 6, 9), {"output_size": (2, 3)}),
        (normal(2, 3, 7, 5), {"output_size": (3, 4)}),
        (normal(1, 2, 2, 3), {"output_size": (4, 3)}),
    ],
    rejects=[(normal(3, 4), {"output_size": (2, 2)})],
)
adaptive_avg_pool2d_x.grad(
    dout=lambda xp, g, dout_shape: adaptive_avg_pool2d(
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


def _average_evenly(xp: ArrayNamespace, x: Array, output_size: Pair) -> Any:
    """All windows of one size: some at a time, so that they stay in the cache."""
    n, c, h, w = x.shape
    high, wide = output_size
    rows, cols = h // high, w // wide
    lines = x.reshape(n * c * high, rows, w)  # each makes one line of the output
    shares = xp.full(cols, 1 / (rows * cols), dtype=x.dtype)
    some = max(1, BLOCK // max(rows * w, 1)) if xp.__name__ == "numpy" else len(lines)
    if len(lines) <= some:
        cells = _sum_of_rows(xp, lines).reshape(-1, cols)
        return cells.dot(shares).reshape(n, c, high, wide)
    out = xp.empty((n, c, high, wide), dtype=x.dtype)
    averages = out.reshape(len(lines), wide)
    add_up = _sum_of_neighbours if 2 <= rows <= 4 and w <= SHORT else _sum_of_rows

    def work(start: int, stop: int) -> None:
        for first in range(start, stop, some):
            part = slice(first, min(first + some, stop))
            cells = add_up(xp, lines[part]).reshape(-1, cols)
            xp.dot(cells, shares, out=averages[part].reshape(-1))

    spread(xp, work, len(lines), x.size >= SHARED)
    return out


def _sum_of_rows(xp: ArrayNamespace, lines: Array) -> Any:
    """Σ over the rows of each line: [lines, rows, w] -> [lines, w]."""
    total = lines[:, 0] if lines.shape[1] == 1 else lines[:, 0] + lines[:, 1]
    for k in range(2, lines.shape[1]):
        xp.add(total, lines[:, k], out=total)
    return total


def _sum_of_neighbours(xp: ArrayNamespace, lines: Array) -> Any:
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


def _share_evenly(xp: ArrayNamespace, dout: Array, axis: int, length: int) -> Any:
    part = xp.expand_dims(dout * dout.dtype.type(1 / length), axis + 1)
    repeated = (*part.shape[: axis + 1], length, *part.shape[axis + 2 :])
    shape = (*dout.shape[:axis], dout.shape[axis] * length, *dout.shape[axis + 1 :])
    return xp.ascontiguousarray(xp.broadcast_to(part, repeated)).reshape(shape)


def _fits(
    x: Shape4, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> str | None:
    if len(x) != 4:
        return "x must be an image batch [n, c, h, w]"
    for dim in (0, 1):
        span = dilation[dim] * (kernel_size[dim] - 1) + 1
        room = x[2 + dim] + 2 * padding[dim]
        if span > room:
            name = ("height", "width")[dim]
            return f"the window spans {span} but the padded {name} is {room}"
        if 2 * padding[dim] > kernel_size[dim] * dilation[dim]:
            return f"a padding of {padding[dim]} is more than half the window"
    return None


def _fits_undilated(
    x: Shape4, kernel_size: Pair, stride: Pair, padding: Pair
) -> str | None:
    return _fits(x, kernel_size, stride, padding, (1, 1))


@op("F>F", check=_fits_undilated)
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
    windows = Windows(x.shape, kernel_size, stride, padding)
    grown = windows.pad(xp, x, 0)
    total = None
    for place in windows.places():
        part = grown[place]
        total = xp.array(part) if total is None else xp.add(total, part, out=total)
    share = windows.share(xp, count_include_pad, x.dtype)
    return xp.multiply(total, share, out=total)


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
    windows = Windows(x_shape, kernel_size, stride, padding)
    part = dout * windows.share(xp, count_include_pad, dout.dtype)
    grown = xp.zeros(windows.padded_shape, dtype=dout.dtype)
    for place in windows.places():
        grown[place] += part
    return windows.unpad(grown)


avg_pool2d.grad(x=avg_pool2d_x)

avg_pool2d.examples(
    samples=[
        (normal(2, 3, 6, 8), {"kernel_size": (2, 4), "stride": (2, 4)}),
        (
            normal(2, 3, 7, 6),
            {"kernel_size": (3, 3), "stride": (2, 1), "padding": (1, 1)},
        ),
        (
            normal(2, 3, 7, 6),
            {
                "kernel_size": (3, 2),
                "stride": (2, 2),
                "padding": (1, 1),
                "count_include_pad": False,
            },
        ),
    ],
    rejects=[(normal(2, 3, 2, 2), {"kernel_size": (3, 3), "stride": (1, 1)})],
)
avg_pool2d_x.grad(
    dout=lambda xp, g, kernel_size, stride, padding, count_include_pad: avg_pool2d(
        xp,
        g,
        kernel_size=kernel_size,
        stride=stride,
        padding=padding,
        count_include_pad=count_include_pad,
    )
)


@op("F>F", check=_fits, extra="winner")
def max_pool2d(
    xp: ArrayNamespace,
    x: Array,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
) -> Any:
    """Take the largest number of every window: out = max window.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    Why: which place of the window won is remembered, since only that place gets a
    gradient; the first one wins a tie.
    """
    windows = Windows(x.shape, kernel_size, stride, padding, dilation)
    grown = windows.pad(xp, x, -np.inf)
    best: Any = None
    winner: Any = None
    for number, place in enumerate(windows.places()):
        part = grown[place]
        if best is None:
            best, winner = xp.array(part), xp.zeros(part.shape, dtype=np.int32)
            continue
        better = (part > best) | (part != part)  # the second holds for NaN alone
        xp.copyto(best, part, where=better)
        winner[better] = number
    return best, winner


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
    windows = Windows(x_shape, kernel_size, stride, padding, dilation)
    grown = xp.zeros(windows.padded_shape, dtype=dout.dtype)
    for number, place in enumerate(windows.places()):
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
    windows = Windows(x.shape, kernel_size, stride, padding, dilation)
    grown = windows.pad(xp, x, 0)
    picked = xp.zeros(winner.shape, dtype=x.dtype)
    for number, place in enumerate(windows.places()):
        picked += grown[place] * (winner == number)
    return picked


max_pool2d.grad(x=max_pool2d_x)

max_pool2d.examples(
    samples=[
        (distinct(2, 3, 6, 8), {"kernel_size": (2, 2), "stride": (2, 2)}),
        (
            distinct(2, 3, 7, 8),
            {
                "kernel_size": (3, 2),
                "stride": (2, 1),
                "padding": (1, 1),
                "dilation": (1, 2),
            },
        ),
    ],
    rejects=[(normal(2, 3, 2, 2), {"kernel_size": (3, 3), "stride": (1, 1)})],
)
max_pool2d_x.grad(dout=max_pool2d_pick)
max_pool2d_pick.grad(x=max_pool2d_x)


class Windows:
    """The windows of one pooling: each place inside them as a view of the image."""

    def __init__(
        self,
        x_shape: Shape4,
        kernel_size: Pair,
        stride: Pair,
        padding: Pair,
        dilation: Pair = (1, 1),
    ):
        self.n, self.c, *self.size = x_shape
        self.kernel, self.stride = kernel_size, stride
        self.padding, self.dilation = padding, dilation
        sizes = zip(self.size, kernel_size, stride, padding, dilation, strict=True)
        self.stops = [output_size(*size) for size in sizes]
        grown = [self.size[i] + 2 * padding[i] for i in (0, 1)]
        self.padded_shape = (self.n, self.c, *grown)

    def places(self) -> Iterator[tuple[Any, ...]]:
        """For each place inside a window, the index of that place in all windows."""
        for i in range(self.kernel[0]):
            for j in range(self.kernel[1]):
                yield (slice(None), slice(None), self._line(0, i), self._line(1, j))

    def _line(self, dim: int, place: int) -> slice:
        first, step = place * self.dilation[dim], self.stride[dim]
        return slice(first, first + (self.stops[dim] - 1) * step + 1, step)

    def pad(self, xp: ArrayNamespace, x: Array, filler: float) -> Any:
        """x with filler around it."""
        if self.padding == (0, 0):
            return x
        grown = xp.full(self.padded_shape, filler, dtype=x.dtype)
        self.unpad(grown)[...] = x
        return grown

    def unpad(self, grown: Array) -> Any:
        """The part of a padded array that belongs to x."""
        top, left = self.padding
        return grown[:, :, top : top + self.size[0], left : left + self.size[1]]

    def share(
        self, xp: ArrayNamespace, count_include_pad: bool, dtype: np.dtype[Any]
    ) -> Any:
        """What one place of a window counts for in its average."""
        if count_include_pad or self.padding == (0, 0):
            return dtype.type(1 / (self.kernel[0] * self.kernel[1]))
        inside = [self._inside(dim) for dim in (0, 1)]
        return xp.asarray((1 / np.outer(*inside)).astype(dtype))

    def _inside(self, dim: int) -> np.ndarray:
        """How many places of each window lie on the image, along one dim."""
        first = np.arange(self.stops[dim]) * self.stride[dim] - self.padding[dim]
        places = first[:, None] + np.arange(self.kernel[dim]) * self.dilation[dim]
        return ((places >= 0) & (places < self.size[dim])).sum(axis=1)
