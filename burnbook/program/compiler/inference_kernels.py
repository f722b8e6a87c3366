"""Steps of networks that only infer, bound so that little is left around their work.

Small networks spend most of their time between kernels: what an op looks at in every
call is decided here once, and what it makes is written where it belongs. A convolution
that no compiled kernel serves becomes one copy into columns and one product; maxima of
windows are maxima of whole planes, each moved by one place of the window.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from burnbook.backend.numpy import Numpy
from burnbook.core.arrays import Array
from burnbook.ops.reduce import MANY
from burnbook.program.compiler.bound import (
    BYTES,
    Bound,
    Call,
    bind,
    binder,
    called,
    product,
)

F32 = np.dtype(np.float32)
RATE = 25.0  # products and sums in a nanosecond
MOST_COLUMNS = 1 << 21  # elements of the columns of an image
FEW_IMAGES = 4  # for which one thread may as well do all of them
FEW_PICKED = 1 << 13  # elements that NumPy picks as quickly as a kernel
NEAR = 1 << 14  # elements of planes that are taken at once
ALONE = 1 << 18  # elements of a product that BLAS computes on one thread
COMPARISONS: dict[str, Any] = {
    "lower": np.less,
    "lower_equal": np.less_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "equal": np.equal,
    "not_equal": np.not_equal,
}
PAIRS: dict[str, Any] = {
    "max_pair": np.maximum,
    "min_pair": np.minimum,
    "bool_and": np.logical_and,
    "bool_or": np.logical_or,
}
EXTREMES: dict[str, Any] = {"max_dim": np.maximum, "min_dim": np.minimum}


def _is_here(call: Call) -> bool:
    """Whether arrays are NumPy's."""
    arrays = (*call.values, *call.outs)
    return isinstance(call.backend, Numpy) and all(
        a is None or type(a) is np.ndarray for a in arrays
    )


def _is_short(call: Call) -> bool:
    """Whether arrays are NumPy's and too small for the kernel that the op may have.

    A kernel shares large arrays out among threads, and adds in an order of its own.
    """
    if not _is_here(call):
        return False
    most = call.backend.limits.get(call.step.op)  # type: ignore[attr-defined]
    size = max(a.size for a in (*call.values, call.out) if a is not None)
    return most is None or size < most


@binder(*COMPARISONS)
def bind_comparison(call: Call) -> Bound | None:
    """Which elements compare so, as a function of NumPy writes them."""
    x, y = call.values
    if call.out.dtype != np.bool_ or not isinstance(call.backend, Numpy):
        return None
    if call.out.size >= call.backend.limits.get(call.step.op, math.inf):
        return None
    run = partial(COMPARISONS[call.step.op.name], x, y, out=call.out)
    return Bound(run, cost=call.out.size * 4 / BYTES, how="in place")


@binder(*PAIRS)
def bind_pair(call: Call) -> Bound | None:
    """The larger or smaller of two, or whether both or one of them are true."""
    x, y = call.values
    if not _is_short(call) or {x.dtype, y.dtype} != {call.out.dtype}:
        return None
    run = partial(PAIRS[call.step.op.name], x, y, out=call.out)
    return Bound(run, cost=call.out.nbytes * 3 / BYTES, how="in place")


@binder("bool_not")
def bind_bool_not(call: Call) -> Bound | None:
    """Where it is not so."""
    (x,), out = call.values, call.out
    if not _is_short(call) or not x.dtype == out.dtype == np.bool_:
        return None
    run = partial(np.logical_not, x, out=out)
    return Bound(run, cost=out.nbytes * 2 / BYTES, how="in place")


@binder("cast")
def bind_cast(call: Call) -> Bound | None:
    """The same numbers as another type."""
    (x,), out = call.values, call.out
    if not _is_short(call):
        return None
    run = partial(np.copyto, out, x, "unsafe")
    return Bound(run, cost=(x.nbytes + out.nbytes) / BYTES, how="in place")


@binder(*EXTREMES)
def bind_extreme(call: Call) -> Bound | None:
    """The largest or smallest along a dim."""
    (x,), out = call.values, call.out
    if not _is_short(call) or not x.size or x.dtype != out.dtype:
        return None
    reduce = EXTREMES[call.step.op.name].reduce
    dim = call.attrs["dim"]
    run = partial(reduce, x, axis=dim, out=out, keepdims=True)
    return Bound(run, cost=x.nbytes * 2 / BYTES, how="in place")


@binder("is_nan")
def bind_is_nan(call: Call) -> Bound | None:
    """Which elements differ from themselves."""
    if not _is_short(call) or call.out.dtype != np.bool_:
        return None
    x = call.values[0]
    run = partial(np.not_equal, x, x, out=call.out)
    return Bound(run, cost=x.nbytes / BYTES, how="in place")


@binder("square")
def bind_square(call: Call) -> Bound | None:
    """Each element times itself."""
    (x,), out = call.values, call.out
    if not _is_short(call) or x.dtype != out.dtype:
        return None
    return Bound(
        partial(np.square, x, out=out), cost=2 * out.nbytes / BYTES, how="in place"
    )


@binder("mask_where")
def bind_mask_where(call: Call) -> Bound | None:
    """One of two where a mask says so.

    `copyto(…, where=mask)` jumps at every element, which a mask without an order makes
    many times slower.
    """
    x, mask, values = call.values
    out = call.out
    if not x.dtype == values.dtype == out.dtype or mask.dtype != np.bool_:
        return None
    is_stretched = not x.shape == mask.shape == values.shape
    if not (_is_short(call) or (_is_here(call) and is_stretched and out.size < NEAR)):
        return None

    def run() -> None:
        np.copyto(out, np.where(mask, values, x))

    return Bound(run, cost=3 * out.nbytes / BYTES, how="in place")


@binder("reshape")
def bind_reshape(call: Call) -> Bound | None:
    """A copy in rows of what does not lie in rows."""
    x, out = call.values[0], call.out
    if not _is_short(call) or x.dtype != out.dtype or not out.flags.c_contiguous:
        return None
    return _copied(out.reshape(x.shape), x)


@binder("cat")
def bind_cat(call: Call) -> Bound | None:
    """Every tensor copied to its stretch."""
    out, dim = call.out, call.attrs["dim"]
    if not _is_short(call) or any(x.dtype != out.dtype for x in call.values):
        return None
    ends = np.cumsum([x.shape[dim] for x in call.values])
    parts = np.split(out, ends[:-1], dim)
    pairs = [(to, x) for to, x in zip(parts, call.values, strict=True) if x.size]

    def run() -> None:
        for to, x in pairs:
            np.copyto(to, x)

    return Bound(run, cost=2 * out.nbytes / BYTES, how="in place")


@binder("select", "embedding")
def bind_picks(call: Call) -> Bound | None:
    """Few slices at places that each run brings; the op tells what is wrong."""
    x, places = call.values
    out, dim = call.out, call.attrs.get("dim", 0)
    if not _is_here(call) or out.size > FEW_PICKED or not out.flags.c_contiguous:
        return None
    if x.dtype != out.dtype:
        return None
    if places.dtype.kind != "i" or not places.size or np.may_share_memory(out, x):
        return None
    size, usual = x.shape[dim], called(call).run

    def run() -> None:
        if places.min() < 0 or places.max() >= size:
            usual()
        else:
            np.take(x, places, dim, out, "clip")

    return Bound(run, cost=4 * out.nbytes / BYTES, how="in place")


@binder("select")
def bind_select(call: Call) -> Bound | None:
    """Slices at places that never change; those in a row are one copy."""
    x, places = call.values
    out, dim = call.out, call.attrs["dim"]
    if not _is_short(call) or not call.fixed[1] or x.dtype != out.dtype:
        return None
    if not places.size or places.min() < 0 or places.max() >= x.shape[dim]:
        return None  # the op says what is wrong
    first, steps = int(places[0]), np.diff(places)
    if (steps == 1).all():
        row = (*[slice(None)] * (dim % x.ndim), slice(first, first + places.size))
        return _copied(out, x[row])
    if not out.flags.c_contiguous or np.may_share_memory(out, x):
        return None
    run = partial(np.take, x, places, dim, out, "clip")
    return Bound(run, cost=4 * out.nbytes / BYTES, how="in place")


def _copied(to: Array, x: Array) -> Bound:
    return Bound(partial(np.copyto, to, x), cost=2 * to.nbytes / BYTES, how="in place")


@binder("pad")
def bind_pad(call: Call) -> Bound | None:
    """What lies inside copied, and one value around it."""
    x, out, widths = call.values[0], call.out, call.attrs["widths"]
    if not _is_short(call) or x.dtype != out.dtype:
        return None
    inside = tuple(slice(a, a + n) for (a, _), n in zip(widths, x.shape, strict=True))
    value, around, to = call.attrs["value"], [], out
    for d, ((before, _), n) in enumerate(zip(widths, x.shape, strict=True)):
        row = (slice(None),) * d
        around += [to[(*row, slice(0, before))], to[(*row, slice(before + n, None))]]
        to = to[(*row, slice(before, before + n))]
    around, to = [part for part in around if part.size], out[inside]

    def run() -> None:
        for part in around:
            part.fill(value)
        np.copyto(to, x)

    return Bound(run, cost=2 * out.nbytes / BYTES, how="in place")


@binder("sum_dim", "mean_dim")
def bind_sum_dim(call: Call) -> Bound | None:
    """A sum that NumPy adds exactly enough; a mean is divided where it stands."""
    (x,), out, dim = call.values, call.out, call.attrs["dim"]
    if not _is_short(call) or x.dtype != out.dtype or x.dtype.kind != "f":
        return None
    count = x.shape[dim]
    in_pairs = count <= MANY or x.strides[dim] == x.itemsize
    if not count or not in_pairs or x.itemsize < 4:
        return None
    add: Any = partial(np.add.reduce, x, axis=dim, out=out, keepdims=True)

    def run() -> None:
        add()
        np.divide(out, count, out)

    if call.step.op.name == "sum_dim":
        return Bound(add, cost=x.nbytes / BYTES, how="in place")
    return Bound(run, cost=x.nbytes / BYTES, how="in place")


@binder("matmul")
def bind_stacked_matmul(call: Call) -> Bound | None:
    """A stack of small products, each where it belongs."""
    (x, y), out = call.values, call.out
    if not _is_here(call) or x.ndim < 3 or not x.dtype == y.dtype == out.dtype:
        return None
    if x.dtype.kind != "f" or x.shape[-2] * x.shape[-1] * y.shape[-1] > ALONE:
        return None
    if not x.size or not y.size or not out.flags.c_contiguous:
        return None
    run = partial(np.matmul, x, y, out)
    return Bound(run, cost=x.size * y.shape[-1] / 10, how="out")


@binder("batch_norm_known")
def bind_batch_norm_known(call: Call) -> Bound | None:
    """A straight line per channel, whose slope and height are computed once."""
    x, gamma, beta, mean, var = call.values
    out = call.out
    if not _is_here(call) or not all(call.fixed[1:]):
        return None
    if not x.dtype == out.dtype == F32 or not out.flags.c_contiguous:
        return None
    shape = (-1, *[1] * (x.ndim - 2))
    root = np.sqrt(var.astype(np.float64) + call.attrs["epsilon"])
    factor = gamma / root
    shift = (beta - mean * factor).astype(F32).reshape(shape)
    factor = factor.astype(F32).reshape(shape)

    def part(start: int, stop: int) -> None:
        rows = out[start:stop]
        np.multiply(x[start:stop], factor, rows)
        np.add(rows, shift, rows)

    run = partial(part, 0, len(out))
    return Bound(run, len(out), part, 4 * out.nbytes / BYTES, "in place", (0,))


@binder("max_pool2d", "max_pool")
def bind_max_pool(call: Call) -> Bound | None:
    """The largest of every window, line by line: first down, then across.

    Which place it stood at is not looked for, as only a gradient needs it.
    """
    (x,), out, attrs = call.values, call.outs[0], call.attrs
    others = [a for a in call.outs[1:] if a is not None]
    if others or out is None or not _is_here(call) or x.dtype.kind != "f":
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
    if not _is_here(call) or not all(call.fixed[1:]) or len(chain) > 2:
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
