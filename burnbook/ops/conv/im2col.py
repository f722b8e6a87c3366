"""The patches that a convolution sees, as columns, for images of any number of dims.

Columns are laid out for some images, or for some stops along the first dim of one, so
that they stay in the cache. With stride 1 a column need not be cut at the end of a row:
reading on into the next row copies long unbroken runs of memory (`wide`), and the few
sums that mix two rows are left out of the result.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.ops.blocked import on_threads
from burnbook.ops.conv.windows import Sizes, Windows

Result = TypeVar("Result")

BLOCK = 1 << 21  # bytes of columns to lay out at a time, for a CPU's second cache
BLOCK_ELSEWHERE = 1 << 27


def view_of(
    xp: ArrayNamespace, x: Array, first: int, shape: Shape, strides: Sizes
) -> Array:
    """A view into x, an array in one piece, from a byte on, with strides of its own.

    Why: NumPy's as_strided takes as long as the convolution of a small image, and does
    not see whether the view stays inside.
    """
    if xp.__name__ == "numpy":
        return xp.ndarray(shape, x.dtype, x, first, strides)
    rest = x.reshape(-1)[first // x.itemsize :]
    return xp.lib.stride_tricks.as_strided(rest, shape, strides)


class Plan:
    """The sizes of one convolution, and how to cut it into blocks.

    stops: how often the kernel stops, where that is known already.
    """

    def __init__(
        self,
        x_shape: Shape,
        weight_shape: Shape,
        stride: Sizes,
        padding: Sizes,
        dilation: Sizes,
        groups: int,
        stops: Sizes | None = None,
    ):
        self.n, self.c, *size = x_shape
        self.o, _, *kernel = weight_shape
        self.groups = groups
        self.windows = w = Windows(
            tuple(size), tuple(kernel), stride, padding, dilation, stops
        )
        self.stops, self.count = w.stops, math.prod(w.stops)
        self.taps = self.c // groups * math.prod(kernel)
        self.kernel_shape = (groups, self.o // groups, self.taps)
        self.padded_shape = (self.n, self.c, *w.grown)
        self.out_shape = (self.n, self.o, *w.stops)
        self.bias_shape = (self.o, *[1] * len(w.stops))
        self.wide = set(w.stride) == {1}
        lines = w.grown if self.wide else w.stops
        self.inner = lines[1:]  # how many columns each further dim takes
        self.mixes_rows = self.inner != w.stops[1:]
        self.inside = (..., *map(slice, w.stops[1:]))  # the columns that mix no rows
        self.steps = strides_of(lines)  # columns from one stop to the next, dim by dim
        ends = zip(w.stops[1:], self.steps[1:], strict=True)
        self.last = 1 + sum((stop - 1) * step for stop, step in ends)
        self.is_padded = w.grown != w.size
        single = math.prod(kernel) == 1 and w.size == w.stops
        self.is_product = self.wide and single and not self.is_padded
        self._blocks: dict[tuple[bool, int], list[Block]] = {}

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, *sizes: Any) -> "Plan":
        """The plan of a convolution, made once for all that are alike."""
        return cls(*sizes)

    def pad(self, xp: ArrayNamespace, x: Array) -> Array:
        """x with zeros around it, in one piece."""
        if self.is_padded:
            return self.windows.pad(xp, x)
        return xp.ascontiguousarray(x)

    def blocks(self, xp: ArrayNamespace, dtype: np.dtype[Any]) -> "list[Block]":
        """The pieces of the output: several images each, or some stops of one."""
        key = (xp.__name__ == "numpy", dtype.itemsize)
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = list(self._cut(*key))
        return found

    def _cut(self, in_memory: bool, itemsize: int) -> "Iterator[Block]":
        budget = BLOCK if in_memory else BLOCK_ELSEWHERE
        per_stop = self.taps * self.groups * self.steps[0] * itemsize
        most = max(1, budget // max(per_stop, 1))
        images = max(1, most // max(self.stops[0], 1))
        for first in range(0, self.n, images):
            some = slice(first, min(first + images, self.n))
            for top in range(0, self.stops[0], most):
                rows = slice(top, min(top + most, self.stops[0]))
                yield Block(self, itemsize, some, rows)

    def each_block(
        self,
        xp: ArrayNamespace,
        dtype: np.dtype[Any],
        act: Callable[["Block"], Result],
    ) -> list[Result]:
        """Call `act` with every block, and give its answers in the order of blocks.

        Blocks of different images may run at once; those of one image never do, so
        `act` may add to what they share.
        """
        blocks = self.blocks(xp, dtype)
        if len(blocks) == 1:  # hot: a small image is no more work than this
            return [act(blocks[0])]
        answers: list[Any] = [None] * len(blocks)
        firsts = [i for i, b in enumerate(blocks) if b.rows.start == 0]
        ends = [*firsts[1:], len(blocks)]

        def work(start: int, stop: int) -> None:
            for i in range(firsts[start], ends[stop - 1]):
                answers[i] = act(blocks[i])

        if firsts:
            on_threads(xp, work, len(firsts), len(firsts) > 1)
        return answers


class Block:
    """Some images, and some stops along their first dim, of items of some bytes."""

    def __init__(self, plan: Plan, itemsize: int, images: slice, rows: slice):
        self.plan, self.images, self.rows = plan, images, rows
        w = plan.windows
        self.n = images.stop - images.start
        stops = (rows.stop - rows.start, *plan.stops[1:])
        self.size = (stops[0] - 1) * plan.steps[0] + plan.last
        self.shape = (self.n, plan.groups, plan.taps, self.size)
        self.lines = (self.n, plan.o, stops[0], *plan.inner)
        image, channel, *pitches = strides_of(plan.padded_shape, itemsize)
        columns, between = stops, _times(pitches, w.stride)
        if plan.wide:
            columns, between = (self.size,), (itemsize,)
        per_group = plan.c // plan.groups
        inside = (image, channel * per_group, channel, *_times(pitches, w.dilation))
        self._patches = (
            images.start * image + rows.start * pitches[0] * w.stride[0],
            (self.n, plan.groups, per_group, *w.kernel, *columns),
            (*inside, *between),
        )
        strides = strides_of((self.n, plan.o, self.size), itemsize)
        steps = [step * itemsize for step in plan.steps]
        self._crop = (0, (self.n, plan.o, *stops), (*strides[:2], *steps))
        self._parts = (self.n, plan.c, *w.kernel, *columns)

    def columns(self, xp: ArrayNamespace, padded: Array) -> Array:
        """Lay the patches out: [images, groups, taps of a group, stops]."""
        return view_of(xp, padded, *self._patches).reshape(self.shape)  # copies

    def columns_and_ones(self, xp: ArrayNamespace, padded: Array) -> Array:
        """The same with one more row, of ones: a bias is one more tap that sees them."""
        n, groups, taps, size = self.shape
        columns = xp.empty((n, groups, taps + 1, size), dtype=padded.dtype)
        columns[:, :, taps] = 1
        patches = view_of(xp, padded, *self._patches)
        columns[:, :, :taps].reshape(patches.shape)[...] = patches  # no copy, a view
        return columns

    def product(self, xp: ArrayNamespace, kernel: Array, padded: Array) -> Array:
        """kernel · columns, as a view of [images, o, stops...].

        A kernel with one tap too many has the bias as its last.
        """
        if kernel.shape[2] > self.plan.taps:
            columns = self.columns_and_ones(xp, padded)
        else:
            columns = self.columns(xp, padded)
        if self.shape[:2] == (1, 1):  # quicker for a small image than a stack of one
            matrix, columns = kernel.reshape(kernel.shape[1:]), columns[0, 0]
            found = xp.dot(matrix, columns)
        else:
            found = xp.matmul(kernel, columns)
        return view_of(xp, found, *self._crop)

    def spread(self, xp: ArrayNamespace, dout: Array) -> Array:
        """The gradient as [images, groups, o, columns], with zeros where rows mix."""
        plan = self.plan
        part = dout[self.images, :, self.rows]
        if plan.mixes_rows:
            wide = xp.zeros(self.lines, dtype=dout.dtype)
            wide[plan.inside] = part
            part = wide.reshape(self.n, plan.o, -1)[..., : self.size]
        return part.reshape(self.n, *plan.kernel_shape[:2], self.size)

    def add_patches(self, padded: Array, columns: Array) -> None:
        """Add columns back to where they were read from."""
        parts, images = columns.reshape(self._parts), padded[self.images]
        if self.plan.wide:
            images = images.reshape(self.n, self.plan.c, -1)
        for place, target in self._targets:
            part = images[target]
            part += parts[place]

    @cached_property
    def _targets(self) -> list[tuple[Any, Any]]:
        """Every place inside a window, and where columns read it: two indices."""
        w, pitches = self.plan.windows, self.plan.steps
        every = slice(None)
        first = self.rows.start * w.stride[0]
        found = []
        for place, (_, _, line, *lines) in w.places:
            if self.plan.wide:
                start = first * pitches[0] + sum(
                    _times(_times(place, w.dilation), pitches)
                )
                target = [slice(start, start + self.size)]
            else:
                start = line.start + first
                stop = start + (self.lines[2] - 1) * line.step + 1
                target = [slice(start, stop, line.step), *lines]
            found.append(((every, every, *place), (every, every, *target)))
        return found


def strides_of(shape: Shape, itemsize: int = 1) -> Sizes:
    """How far apart neighbors lie along each dim of an array in one piece.

    Example:
        >>> strides_of((2, 3, 4), itemsize=8)
        (96, 32, 8)
    """
    return tuple([itemsize * math.prod(shape[k:]) for k in range(1, len(shape) + 1)])


def _times(left: Sequence[int], right: Sequence[int]) -> Sizes:
    return tuple([a * b for a, b in zip(left, right, strict=True)])
