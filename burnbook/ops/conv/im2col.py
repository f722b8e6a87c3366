"""Patches as columns, for images of any number of dims.

Columns are laid out for some images, or for some stops along the first dim of one, so
that they stay in the cache. With stride 1 a column need not be cut at the end of a row:
reading on into the next row copies long unbroken runs of memory (`wide`), and the few
sums that mix two rows are left out of the result.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.ops.conv.im2col2d import BLOCK, BLOCK_ELSEWHERE
from burnbook.ops.conv.windows import Shape, Sizes, Windows


class Layout:
    """The sizes of one convolution, and how to cut it into blocks."""

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
        self.wide = set(w.stride) == {1}
        lines = w.grown if self.wide else w.stops
        self.inner = lines[1:]  # how many columns each further dim takes
        self.pitch = math.prod(self.inner)  # columns from one stop to the next
        self.last = 1  # columns of the last stop along the first dim
        for dim, stop in enumerate(w.stops[1:], 2):
            self.last += (stop - 1) * math.prod(lines[dim:])
        single = math.prod(kernel) == 1 and w.grown == w.size == w.stops
        self.is_product = self.wide and single

    def blocks(self, xp: ArrayNamespace, dtype: np.dtype[Any]) -> "Iterator[Block]":
        """Cut the stops into pieces: several images, or some stops of one."""
        budget = BLOCK if xp.__name__ == "numpy" else BLOCK_ELSEWHERE
        per_stop = self.taps * self.groups * self.pitch * dtype.itemsize
        most = max(1, budget // max(per_stop, 1))
        images = max(1, most // max(self.stops[0], 1))
        for first in range(0, self.n, images):
            some = slice(first, min(first + images, self.n))
            for start in range(0, self.stops[0], most):
                stop = min(start + most, self.stops[0])
                yield Block(self, xp, some, slice(start, stop))


class Block:
    """Some images, and some stops along their first dim."""

    def __init__(self, layout: Layout, xp: ArrayNamespace, images: slice, rows: slice):
        self.layout, self.xp, self.images, self.rows = layout, xp, images, rows
        self.n = images.stop - images.start
        self.height = rows.stop - rows.start
        self.size = (self.height - 1) * layout.pitch + layout.last

    def columns(self, padded: Array) -> Any:
        """Lay the patches out: [images, groups, taps of a group, stops]."""
        layout, windows = self.layout, self.layout.windows
        first = self.rows.start * windows.stride[0]
        image, channel, *pitches = padded.strides
        inside = zip(pitches, windows.dilation, strict=True)
        if layout.wide:
            stops, between = (self.size,), (padded.itemsize,)
        else:
            stops = (self.height, *layout.stops[1:])
            steps = zip(pitches, windows.stride, strict=True)
            between = tuple(pitch * step for pitch, step in steps)
        patches = self.xp.lib.stride_tricks.as_strided(
            padded[self.images, :, first:],
            (self.n, layout.c, *windows.kernel, *stops),
            (image, channel, *[pitch * d for pitch, d in inside], *between),
        )
        shape = (self.n, layout.groups, layout.taps, self.size)
        return patches.reshape(shape)  # copies

    def crop(self, product: Array) -> Any:
        """A product over [images, groups, o, columns] as [images, o, stops...]."""
        layout = self.layout
        flat = product.reshape(self.n, layout.o, self.size)
        return self.xp.lib.stride_tricks.as_strided(
            flat,
            (self.n, layout.o, self.height, *layout.stops[1:]),
            (*flat.strides[:2], *self._steps(product.itemsize)),
        )

    def spread(self, dout: Array) -> Any:
        """The gradient as [images, groups, o, columns], zero where rows mix."""
        layout = self.layout
        part = dout[self.images, :, self.rows]
        if layout.inner != layout.stops[1:]:
            shape = (self.n, layout.o, self.height, *layout.inner)
            wide = self.xp.zeros(shape, dtype=dout.dtype)
            wide[(..., *[slice(0, n) for n in layout.stops[1:]])] = part
            part = wide.reshape(self.n, layout.o, -1)[..., : self.size]
        per_group = layout.o // layout.groups
        return part.reshape(self.n, layout.groups, per_group, self.size)

    def add_patches(self, padded: Array, columns: Array) -> None:
        """Add columns back to where they were read from."""
        layout, windows = self.layout, self.layout.windows
        parts = columns.reshape(self.n, layout.c, *windows.kernel, self.size)
        images = padded[self.images]
        flat = images.reshape(self.n, layout.c, -1)
        first = self.rows.start * windows.stride[0]
        for place, (_, _, line, *lines) in windows.places():
            part = parts[(slice(None), slice(None), *place)]
            if layout.wide:
                steps = zip(place, windows.dilation, self._steps(1), strict=True)
                start = first * layout.pitch + sum(p * d * s for p, d, s in steps)
                flat[:, :, start : start + self.size] += part
                continue
            start = line.start + first
            stop = start + (self.height - 1) * line.step + 1
            target = images[(..., slice(start, stop, line.step), *lines)]
            target += part.reshape(target.shape)

    def _steps(self, item: int) -> list[int]:
        """How far apart neighbouring stops lie in the columns, along each dim."""
        inner = self.layout.inner
        return [math.prod(inner[dim:]) * item for dim in range(len(inner) + 1)]
