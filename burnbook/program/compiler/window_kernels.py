"""Steps that go over images in windows, in networks that only infer.

A convolution that no compiled kernel serves becomes one copy into columns and one
product; maxima of windows are maxima of whole planes, each moved by one place of the
window.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from burnbook.core.arrays import Array
from burnbook.program.compiler.bound import (
    BYTES,
    Bound,
    Call,
    bind,
    binder,
    product,
)
from burnbook.program.compiler.inference_kernels import F32, NEAR, RATE, is_here

MOST_COLUMNS = 1 << 21  # elements of the columns of an image
FEW_IMAGES = 4  # for which one thread may as well do all of them


@binder("max_pool2d", "max_pool")
def bind_max_pool(call: Call) -> Bound | None:
    """The largest of every window, line by line: first down, then across.

    Which place it stood at is not looked for, as only a gradient needs it.
    """
    (x,), out, attrs = call.values, call.outs[0], call.attrs
    others = [a for a in call.outs[1:] if a is not None]
    if others or out is None or not is_here(call) or x.dtype.kind != "f":
        return None
    if not out.flags.c_contiguous or not out.size or x.dtype != out.dtype:
        return None
    dims = x.ndim - 2
    kernel, stride = tuple(attrs["kernel_size"]), tuple(attrs["stride"])
    padding, dilation = tuple(attrs["padding"]), tuple(attrs["dilation"])
    sizes = zip(kernel, stride, dilation, out.shape[2:], strict=True)
    reach = [(m - 1) * s + (k - 1) * d + 1 for k, s, d, m in sizes]
    ends = [
        max(r - p - n, 0) for r, p, n in zip(reach, padding, x.shape[2:], strict=True)
    ]
    if not x.flags.c_contiguous:
        return in_one_piece(call)
    if dims == 2 and not any(padding) and set(dilation) == {1} and not any(ends):
        return Bound(_Maxima(x, out, kernel, stride).run, cost=x.nbytes, how="in place")
    planes, to = x.reshape(-1, *x.shape[2:]), out.reshape(-1, *out.shape[2:])
    sides = list(zip(padding, planes.shape[1:], ends, strict=True))
    wide = [p + n + e for p, n, e in sides]
    is_padded = any(p or e for p, _, e in sides)
    inside = tuple(slice(p, p + n) for p, n, _ in sides)
    between = [(*out.shape[2 : 3 + d], *wide[d + 1 :]) for d in range(dims - 1)]
    at_once = max(1, NEAR // math.prod(wide))

    def part(start: int, stop: int) -> None:
        for first in range(start, stop, at_once):
            last = min(first + at_once, stop)
            held = planes[first:last]
            if is_padded:
                around = np.full((last - first, *wide), -np.inf, x.dtype)
                around[:, *inside] = held
                held = around
            for d in range(dims):
                found = (
                    to[first:last]
                    if d == dims - 1
                    else np.empty((last - first, *between[d]), x.dtype)
                )
                _largest_along(held, found, d + 1, kernel[d], stride[d], dilation[d])
                held = found

    run = partial(part, 0, len(to))
    cost = x.nbytes * 4 / BYTES
    return Bound(run, len(to), part, cost, "in place", (0,))


class _Maxima:
    """The largest of every window of small images without padding.

    Maxima of neighbours are taken of all images in a row, as if they were one line: of
    places side by side, then of lines. Those that reach into the next line or image
    are not looked at.
    """

    def __init__(self, x: Array, out: Array, kernel: Any, stride: Any):
        width, count = x.shape[3], x.size
        line, held, other = x.reshape(-1), np.empty(count, x.dtype), None
        self.pairs: list[tuple[Array, Array, Array]] = []
        for taps, apart in ((kernel[1], 1), (kernel[0], width)):
            if taps == 1:
                continue
            so_far = line
            for k in range(1, taps):
                size = count - k * apart
                to = held[:size]
                self.pairs.append((so_far[:size], line[k * apart :][:size], to))
                so_far = held
            other = np.empty(count, x.dtype) if other is None else other
            line, held = held, other
        self.out = out
        step, rows = x.itemsize, x.strides[2]
        strides = (*x.strides[:2], rows * stride[0], step * stride[1])
        places = line.reshape(x.shape)
        self.picked = as_strided(places, out.shape, strides, writeable=False)

    def run(self) -> None:
        """All images."""
        for x, y, to in self.pairs:
            np.maximum(x, y, out=to)
        np.copyto(self.out, self.picked)


def _largest_along(
    x: Array, out: Array, dim: int, taps: int, step: int, apart: int
) -> None:
    """The largest of the taps of every window of one dim."""
    count, before = out.shape[dim], (slice(None),) * dim

    def moved(k: int) -> Any:
        first = k * apart
        return x[(*before, slice(first, first + (count - 1) * step + 1, step))]

    if taps == 1:
        np.copyto(out, moved(0))
        return
    np.maximum(moved(0), moved(1), out=out)
    for k in range(2, taps):
        np.maximum(out, moved(k), out=out)


def bind_columns(call: Call, then: Callable[[Any, str], Any]) -> Bound | None:
    """A convolution by fixed weights as one product with the patches as columns.

    then: makes a function that activates numbers where they stand.
    """
    x, weight, *rest = call.values
    bias, out, attrs = (rest[0] if rest else None), call.out, call.attrs
    chain = attrs.get("chain", ())
    if not is_here(call) or not all(call.fixed[1:]) or len(chain) > 2:
        return None
    if not x.dtype == weight.dtype == out.dtype == F32 or not out.flags.c_contiguous:
        return None
    if int(attrs["groups"]) != 1 or len(x) > FEW_IMAGES or not out.size or not x.size:
        return None
    act = then(out, chain[1]) if len(chain) > 1 else None
    if len(chain) > 1 and act is None:
        return None
    taps, stops = weight[0].size, out.shape[2:]
    if tuple(x.shape[:2]) != (len(out), weight.shape[1]):
        return None
    if taps * math.prod(stops) > MOST_COLUMNS:
        return None
    sizes = [attrs[name] for name in ("stride", "padding", "dilation")]
    columns = _Columns(x, weight, bias, out, sizes)
    run = columns.run
    if act is not None:

        def run() -> None:
            columns.run()
            act()

    cost = len(x) * weight.size * math.prod(stops) / RATE + 2000
    return Bound(run, cost=cost, how="columns")


class _Columns:
    """The arrays of a convolution that is one product for each image."""

    def __init__(
        self,
        x: Array,
        weight: Array,
        bias: Any,
        out: Array,
        sizes: Sequence[Sequence[int]],
    ):
        stride, padding, dilation = (tuple(map(int, size)) for size in sizes)
        stops, window = out.shape[2:], weight.shape[2:]
        filters, taps = len(weight), weight[0].size
        places = math.prod(stops)
        kernel = weight.reshape(filters, taps)
        self.bias = None if bias is None else bias.reshape(filters, 1)
        self.images = x
        is_product = not any(padding) and set(window) == set(stride) == {1}
        if is_product and x.flags.c_contiguous:
            self.copies: list[tuple[Any, Any] | None] = []
            rows = [image.reshape(taps, places) for image in x]
        else:
            self.copies, rows = self._columns(
                x, weight, stops, stride, padding, dilation
            )
            if self.bias is not None:  # one more tap, which is 1
                kernel = np.concatenate([kernel, self.bias], axis=1)
                self.bias = None
            else:
                rows = [row[:taps] for row in rows]
        kernel = np.ascontiguousarray(kernel)
        outs = [image.reshape(filters, places) for image in out]
        self.outs = outs
        pairs = zip(rows, outs, strict=True)
        self.products = [product(kernel, row, to) for row, to in pairs]

    def _columns(
        self, x: Any, weight: Any, stops: Any, stride: Any, padding: Any, dilation: Any
    ) -> tuple[list[tuple[Any, Any] | None], list[Any]]:
        """What is copied where before each product; the columns, with a row of ones."""
        channels, window = weight.shape[1], weight.shape[2:]
        taps, places = weight[0].size, math.prod(stops)
        held = np.ones((taps + 1, places), F32)
        first: list[tuple[Any, Any] | None] = [None] * len(x)
        if any(padding):
            wide = [n + 2 * p for n, p in zip(x.shape[2:], padding, strict=True)]
            around = np.zeros((channels, *wide), F32)
            inside = [
                slice(p, p + n) for p, n in zip(padding, x.shape[2:], strict=True)
            ]
            first = [(around[(slice(None), *inside)], image) for image in x]
            sources = [around] * len(x)
        else:
            sources = list(x)
        columns = held[:taps].reshape(channels, *window, *stops)
        self.patches: list[tuple[Any, Any]] = []
        for source in sources:
            steps = source.strides[1:]
            strides = (
                source.strides[0],
                *[s * d for s, d in zip(steps, dilation, strict=True)],
                *[s * d for s, d in zip(steps, stride, strict=True)],
            )
            shape = (channels, *window, *stops)
            view = as_strided(source, shape, strides, writeable=False)
            self.patches.append((columns, view))
        return first, [held] * len(x)

    def run(self) -> None:
        """All images."""
        for i, multiply in enumerate(self.products):
            if self.copies:
                copy = self.copies[i]
                if copy is not None:
                    np.copyto(*copy)
                np.copyto(*self.patches[i])
            multiply()
            if self.bias is not None:
                np.add(self.outs[i], self.bias, self.outs[i])


@binder("conv")
def bind_conv_of_any_dims(call: Call) -> Bound | None:
    """A convolution of sequences or of volumes."""
    return bind_columns(call, lambda out, name: None)


def in_one_piece(call: Call, place: int = 0) -> Bound | None:
    """A step whose input lies apart in memory, bound to a copy in one piece."""
    x = call.values[place]
    held = np.empty(x.shape, x.dtype)
    values = (*call.values[:place], held, *call.values[place + 1 :])
    inner = bind(replace(call, values=values))
    if inner.how == "op":
        return None

    def run() -> None:
        np.copyto(held, x)
        inner.run()

    return Bound(run, cost=inner.cost + 2 * x.nbytes / BYTES, how=inner.how)
