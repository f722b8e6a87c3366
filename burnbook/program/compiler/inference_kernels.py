"""Steps of networks that only infer, bound so that little is left around their work.

Small networks spend most of their time between kernels: what an op looks at in every
call is decided here once, and what it makes is written where it belongs.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from burnbook.backend.numpy import Numpy
from burnbook.core.arrays import Array
from burnbook.ops.reduce import MANY
from burnbook.program.compiler.bound import (
    BYTES,
    Bound,
    Call,
    binder,
    called,
)

F32 = np.dtype(np.float32)
RATE = 25.0  # products and sums in a nanosecond
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


def is_here(call: Call) -> bool:
    """Whether arrays are NumPy's."""
    arrays = (*call.values, *call.outs)
    return isinstance(call.backend, Numpy) and all(
        a is None or type(a) is np.ndarray for a in arrays
    )


def _is_short(call: Call) -> bool:
    """Whether arrays are NumPy's and too small for the kernel that the op may have.

    A kernel shares large arrays out among threads, and adds in an order of its own.
    """
    if not is_here(call):
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
    if not (_is_short(call) or (is_here(call) and is_stretched and out.size < NEAR)):
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
    if not is_here(call) or out.size > FEW_PICKED or not out.flags.c_contiguous:
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
    if not is_here(call) or x.ndim < 3 or not x.dtype == y.dtype == out.dtype:
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
    if not is_here(call) or not all(call.fixed[1:]):
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
