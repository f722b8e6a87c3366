"""The patches that a convolution sees, as columns.

Columns are laid out for some images or some rows at a time, so that they stay in the
cache. With stride 1 they need not even be cut at the end of a row: reading on into the
next row copies long unbroken runs of memory (`wide`), and the few sums that mix two
rows are left out of the result.
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.ops.blocked import spread

Result = TypeVar("Result")
Pair = tuple[int, int]
Shape4 = tuple[int, int, int, int]

BLOCK = 1 << 21  # bytes of columns to lay out at a time, for a CPU's second cache
BLOCK_ELSEWHERE = 1 << 27


def output_size(
    size: int, kernel: int, stride: int, padding: int, dilation: int
) -> int:
    """How many stops a kernel makes along one dim.

    Example:
        >>> output_size(28, kernel=3, stride=1, padding=0, dilation=1)
        26
    """
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def view_of(
    xp: ArrayNamespace,
    x: Array,
    first: int,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
) -> Any:
    """A view into x, an array in one piece, from a byte on, with strides of its own.

    Why: NumPy's as_strided takes as long as the convolution of a small image, and does
    not see whether the view stays inside.
    """
    if xp.__name__ == "numpy":
        return xp.ndarray(shape, x.dtype, x, first, strides)
    rest = x.reshape(-1)[first // x.itemsize :]
    return xp.lib.stride_tricks.as_strided(rest, shape, strides)


class Plan:
    """The sizes of one convolution, and how to cut it into blocks."""

    def __init__(
        self,
        x_shape: Shape4,
        weight_shape: Shape4,
        stride: Pair,
        padding: Pair,
        dilation: Pair,
        groups: int,
    ):
        self.n, self.c, self.height, self.width = x_shape
        self.o, _, *self.kernel = weight_shape
        self.stride, self.padding, self.dilation = stride, padding, dilation
        self.groups = groups
        sizes = zip(x_shape[2:], self.kernel, stride, padding, dilation, strict=True)
        self.rows, self.cols = (output_size(*size) for size in sizes)
        self.taps = self.c // groups * self.kernel[0] * self.kernel[1]
        grown = (self.height + 2 * padding[0], self.width + 2 * padding[1])
        self.padded_shape = (self.n, self.c, *grown)
        self.wide = stride == (1, 1)
        self.row_size = grown[1] if self.wide else self.cols
        self.is_product = self.wide and self.kernel == [1, 1] and padding == (0, 0)
        self._blocks: dict[tuple[bool, int], list[Block]] = {}

    @classmethod
    @lru_cache(maxsize=256)
    def of(cls, *sizes: Any) -> "Plan":
        """The plan of a convolution, made once for all that are alike."""
        return cls(*sizes)

    def pad(self, xp: ArrayNamespace, x: Array) -> Any:
        """x with zeros around it, in one piece."""
        if self.padding == (0, 0):
            return xp.ascontiguousarray(x)
        padded = xp.zeros(self.padded_shape, dtype=x.dtype)
        self.unpad(padded)[...] = x
        return padded

    def unpad(self, padded: Array) -> Any:
        """The part of a padded array that belongs to x."""
        if self.padding == (0, 0):
            return padded
        top, left = self.padding
        return padded[:, :, top : top + self.height, left : left + self.width]

    def blocks(self, xp: ArrayNamespace, dtype: np.dtype[Any]) -> "list[Block]":
        """The pieces of the output: several images each, or some rows of one."""
        key = (xp.__name__ == "numpy", dtype.itemsize)
        found = self._blocks.get(key)
        if found is None:
            found = self._blocks[key] = list(self._cut(*key))
        return found

    def _cut(self, in_memory: bool, itemsize: int) -> "Iterator[Block]":
        budget = BLOCK if in_memory else BLOCK_ELSEWHERE
        per_row = self.taps * self.groups * self.row_size * itemsize
        most_rows = max(1, budget // max(per_row, 1))
        images = max(1, most_rows // max(self.rows, 1))
        for first in range(0, self.n, images):
            some = slice(first, min(first + images, self.n))
            for top in range(0, self.rows, most_rows):
                rows = slice(top, min(top + most_rows, self.rows))
                yield Block(self, itemsize, some, rows)

    def each_block(
        self, xp: ArrayNamespace, dtype: np.dtype[Any], act: Callable[["Block"], Result]
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
            spread(xp, work, len(firsts), len(firsts) > 1)
        return answers


class Block:
    """Some images and some output rows of a convolution, of items of some bytes."""

    def __init__(self, plan: Plan, itemsize: int, images: slice, rows: slice):
        self.plan, self.images, self.rows = plan, images, rows
        self.n = images.stop - images.start
        self.height = rows.stop - rows.start
        self.size = (self.height - 1) * plan.row_size + plan.cols
        self.shape = (self.n, plan.groups, plan.taps, self.size)
        high, wide = plan.padded_shape[2:]
        row, channel = wide * itemsize, high * wide * itemsize
        image = plan.c * channel
        some = plan.c // plan.groups
        taps = (row * plan.dilation[0], itemsize * plan.dilation[1])
        steps = (image, channel * some, channel, *taps)
        if plan.wide:
            stops, strides = (self.size,), (itemsize,)
        else:
            stops = (self.height, plan.cols)
            strides = (row * plan.stride[0], itemsize * plan.stride[1])
        first = images.start * image + rows.start * plan.stride[0] * row
        shape = (self.n, plan.groups, some, *plan.kernel, *stops)
        self._patches = (first, shape, (*steps, *strides))
        channel = itemsize * self.size
        shape = (self.n, plan.o, self.height, plan.cols)
        strides = (channel * plan.o, channel, itemsize * plan.row_size, itemsize)
        self._crop = (0, shape, strides)

    def columns(self, xp: ArrayNamespace, padded: Array) -> Any:
        """Lay the patches out: [images, groups, taps of a group, stops]."""
        return view_of(xp, padded, *self._patches).reshape(self.shape)  # copies

    def columns_and_ones(self, xp: ArrayNamespace, padded: Array) -> Any:
        """The same with one more row, of ones: a bias is one more tap that sees them."""
        n, groups, taps, size = self.shape
        columns = xp.empty((n, groups, taps + 1, size), dtype=padded.dtype)
        columns[:, :, taps] = 1
        patches = view_of(xp, padded, *self._patches)
        columns[:, :, :taps].reshape(patches.shape)[...] = patches  # no copy, a view
        return columns

    def product(self, xp: ArrayNamespace, kernel: Any, padded: Array) -> Any:
        """kernel · columns, as a view of [images, o, rows, cols].

        A kernel with one tap too many has the bias as its last.
        """
        if kernel.shape[2] > self.plan.taps:
            columns = self.columns_and_ones(xp, padded)
        else:
            columns = self.columns(xp, padded)
        if self.shape[:2] == (1, 1):  # quicker for a small image than a stack of one
            matrix, columns = kernel.reshape(kernel.shape[1:]), columns[0, 0]
            found = matrix.dot(columns)
        else:
            found = xp.matmul(kernel, columns)
        return view_of(xp, found, *self._crop)

    def spread(self, xp: ArrayNamespace, dout: Array) -> Any:
        """The gradient as [images, groups, o, stops], with zeros where rows mix."""
        plan = self.plan
        part = dout[self.images, :, self.rows]
        if plan.row_size > plan.cols:
            shape = (self.n, plan.o, self.height, plan.row_size)
            wide = xp.zeros(shape, dtype=dout.dtype)
            wide[..., : plan.cols] = part
            part = wide.reshape(self.n, plan.o, -1)[..., : self.size]
        return part.reshape(self.n, plan.groups, plan.o // plan.groups, self.size)

    def add_patches(self, padded: Array, columns: Array) -> None:
        """Add columns back to where they were read from."""
        plan = self.plan
        parts = columns.reshape(self.n, plan.c, *plan.kernel, self.size)
        images = padded[self.images]
        for i in range(plan.kernel[0]):
            top = self.rows.start * plan.stride[0] + i * plan.dilation[0]
            for j in range(plan.kernel[1]):
                left = j * plan.dilation[1]
                part = parts[:, :, i, j]
                if plan.wide:
                    first = top * plan.row_size + left
                    flat = images.reshape(self.n, plan.c, -1)
                    target = flat[:, :, first : first + self.size]
                else:
                    down, right = plan.stride
                    rows = slice(top, top + (self.height - 1) * down + 1, down)
                    cols = slice(left, left + (plan.cols - 1) * right + 1, right)
                    target = images[:, :, rows, cols]
                    part = part.reshape(target.shape)
                target += part
