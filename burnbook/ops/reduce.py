"""Operations that turn many elements into one.

A full reduction gives shape [1]: a tensor always has a dim. A reduction along a dim
keeps that dim, with size 1.
"""

from functools import cache
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.errors import DataError, DimError
from burnbook.core.op import distinct, normal, op, truths

MANY = 128  # rows whose sum is exact enough one by one
ROWS = 64  # rows of a block, where there are more


def dim_inside(x: tuple[int, ...], dim: int) -> Any:
    """Why a dim does not exist in a tensor, or None if it does."""
    rank = len(x)
    if not isinstance(dim, int) or not -rank <= dim < rank:
        return DimError, f"dim {dim!r} does not exist: the tensor has rank {rank}"
    return None


def some_elements(x: tuple[int, ...]) -> str | None:
    """Why no element is the largest or the smallest: there is none."""
    return "there is no element to choose from" if 0 in x else None


def some_along(x: tuple[int, ...], dim: int) -> Any:
    """The same along one dim."""
    return dim_inside(x, dim) or (
        f"dim {dim} has size 0: there is no element to choose from"
        if x[dim] == 0
        else None
    )


DIM = [(normal(2, 3, 4), {"dim": 1}), (normal(2, 3), {"dim": 0})]
NO_DIM = [(normal(2, 3), {"dim": 2})]


@op("F>F I>I")
def sum(xp: ArrayNamespace, x: Array) -> Array:
    """Sum all elements: out = Σ x.

    Shapes: x [...] -> [1]
    """
    return x.sum(dtype=x.dtype).reshape(1)


sum.grad(x=lambda xp, g, x_shape: fill(xp, g, x_shape))

sum.examples(samples=[(normal(2, 3),)])


@op("F>F I>I")
def mean(xp: ArrayNamespace, x: Array) -> Array:
    """The mean of all elements: out = Σ x / n; for Int a whole number, or an error.

    Shapes: x [...] -> [1]
    """
    if x.dtype.kind != "f":
        return whole_mean(x.sum(dtype=x.dtype).reshape(1), x.size, xp)
    if x.size == 0:
        return xp.full(1, xp.nan, dtype=x.dtype)  # NumPy would warn
    return x.mean().reshape(1)


mean.grad(x=lambda xp, g, x_shape: fill(xp, g * share(count(x_shape)), x_shape))

mean.examples(samples=[(normal(2, 3),)])


@op("F>F I>I", reason=dim_inside)
def sum_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """Sum along one dim, which stays with size 1: out = Σ x.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return sum_along(xp, x, dim)


sum_dim.grad(x=lambda xp, g, x_shape: xp.broadcast_to(g, x_shape))

sum_dim.examples(samples=DIM, rejects=NO_DIM)


@op("F>F I>I", reason=dim_inside)
def mean_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The mean along one dim, which stays with size 1; for Int a whole number, or an error.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    if x.dtype.kind != "f":
        total = x.sum(axis=dim, keepdims=True, dtype=x.dtype)
        return whole_mean(total, x.shape[dim], xp)
    if x.shape[dim] == 0:
        line = [1 if i == dim % x.ndim else n for i, n in enumerate(x.shape)]
        return xp.full(line, xp.nan, dtype=x.dtype)
    return (sum_along(xp, x, dim, wide=True) / x.shape[dim]).astype(x.dtype, copy=False)


mean_dim.grad(
    x=lambda xp, g, x_shape, dim: xp.broadcast_to(g * share(x_shape[dim]), x_shape)
)

mean_dim.examples(samples=DIM, rejects=NO_DIM)


@op("F>F I>I", reason=some_elements, takes_half=True)
def max(xp: ArrayNamespace, x: Array) -> Array:
    """The largest element.

    Shapes: x [...] -> [1]
    """
    return x.max().reshape(1)


max.grad(x=lambda xp, g, x: first_of(xp, g, x, xp.argmax(x)))

max.examples(samples=[(distinct(2, 3),)])


@op("F>F I>I", reason=some_elements, takes_half=True)
def min(xp: ArrayNamespace, x: Array) -> Array:
    """The smallest element.

    Shapes: x [...] -> [1]
    """
    return x.min().reshape(1)


min.grad(x=lambda xp, g, x: first_of(xp, g, x, xp.argmin(x)))

min.examples(samples=[(distinct(2, 3),)])

DISTINCT = [(distinct(2, 3, 4), {"dim": 1}), (distinct(2, 3), {"dim": 0})]


@op("F>F I>I", reason=some_along, takes_half=True)
def max_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The largest element along a dim; the gradient goes to the first of them.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return x.max(axis=dim, keepdims=True)


max_dim.grad(
    x=lambda xp, g, x, dim: one_along(xp, g, xp.argmax(x, axis=dim), x.shape, dim)
)

max_dim.examples(samples=DISTINCT, rejects=NO_DIM)


@op("F>F I>I", reason=some_along, takes_half=True)
def min_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The smallest element along a dim; the gradient goes to the first of them.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return x.min(axis=dim, keepdims=True)


min_dim.grad(
    x=lambda xp, g, x, dim: one_along(xp, g, xp.argmin(x, axis=dim), x.shape, dim)
)

min_dim.examples(samples=DISTINCT, rejects=NO_DIM)


@op("F>I I>I", reason=some_along, takes_half=True)
def argmax(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The index of the largest element along a dim; of equals, the first.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return xp.expand_dims(x.argmax(axis=dim), dim)


argmax.examples(samples=DISTINCT, rejects=NO_DIM)


@op("F>I I>I", reason=some_along, takes_half=True)
def argmin(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The index of the smallest element along a dim; of equals, the first.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return xp.expand_dims(x.argmin(axis=dim), dim)


argmin.examples(samples=DISTINCT, rejects=NO_DIM)


@op("F>B I>B B>B", takes_half=True)
def all(xp: ArrayNamespace, x: Array) -> Array:
    """Whether every element is not zero; NaN counts as true.

    Shapes: x [...] -> [1]
    """
    return truth(xp, x).all().reshape(1)


all.examples(samples=[(truths(2, 3),)])


@op("F>B I>B B>B", takes_half=True)
def any(xp: ArrayNamespace, x: Array) -> Array:
    """Whether some element is not zero; NaN counts as true.

    Shapes: x [...] -> [1]
    """
    return truth(xp, x).any().reshape(1)


any.examples(samples=[(truths(2, 3),)])


@op("F>B I>B B>B", reason=dim_inside, takes_half=True)
def all_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """Whether every element along a dim is not zero.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return truth(xp, x).all(axis=dim, keepdims=True)


all_dim.examples(samples=[(truths(2, 3), {"dim": 1})])


@op("F>B I>B B>B", reason=dim_inside, takes_half=True)
def any_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """Whether some element along a dim is not zero.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    """
    return truth(xp, x).any(axis=dim, keepdims=True)


any_dim.examples(samples=[(truths(2, 3), {"dim": 1})])


@op("F>F", reason=dim_inside, method=False)
def length_dim(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The length of the vectors along a dim, which stays: out = √Σ x².

    Shapes: x [..., d, ...] -> [..., 1, ...]
    Why: squares of what is far from 1 overflow or vanish; then the largest element is
    taken out of the root first.
    """
    if xp.__name__ == "numpy":  # elsewhere looking at elements takes longer
        out = xp.sqrt(sum_along(xp, xp.square(x), dim))
        if squares_fit(xp, out):
            return out
    return length_of_any_size(xp, x, dim)


def length_of_any_size(xp: ArrayNamespace, x: Array, dim: int) -> Array:
    """The length along a dim; the largest element is taken out of the root."""
    if not x.shape[dim]:
        return xp.sqrt(sum_along(xp, x, dim))
    most = xp.absolute(x).max(axis=dim, keepdims=True)
    most = xp.where(xp.isfinite(most) & (most > 0), most, xp.ones_like(most))
    return most * xp.sqrt(sum_along(xp, xp.square(x / most), dim))


def squares_fit(xp: ArrayNamespace, lengths: Array) -> bool:
    """Whether no square behind these lengths has overflowed or lost digits."""
    if not lengths.size:
        return True
    flat, (low, high) = lengths.ravel(), length_limits(lengths.dtype)
    least, most = flat[flat.argmin()], flat[flat.argmax()]  # the quickest of its kind
    return bool(low < least and most < high)


@cache
def length_limits(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Between which lengths the squares of vectors are exact."""
    limits = np.finfo(dtype)
    return float(limits.tiny / limits.eps) ** 0.5, float(limits.max) ** 0.5 / 2


def length_dim_x(xp: ArrayNamespace, g: Array, x: Array, out: Array) -> Any:
    """x / ‖x‖, and zero for the vector of zeros, where there is no slope."""
    return x * (g / xp.where(xp.equal(out, 0), xp.ones_like(out), out))


length_dim.grad(x=length_dim_x)

length_dim.examples(samples=DIM, rejects=NO_DIM)


@op("F>F", method=False)
def sum_to(xp: ArrayNamespace, x: Array, *, shape: tuple[int, ...]) -> Array:
    """Sum over the dims that were stretched from 1: the opposite of expand.

    Shapes: x [...] -> shape
    """
    wanted = (1,) * (x.ndim - len(shape)) + tuple(shape)
    for start, stop in stretched(x.shape, wanted):  # neighbours become one dim
        before, behind = x.shape[:start], x.shape[stop:]
        line = xp.reshape(x, (*before, count(x.shape[start:stop]), *behind))
        total = sum_along(xp, line, start)
        x = xp.reshape(total, (*before, *(1,) * (stop - start), *behind))
    return xp.reshape(x, tuple(shape))


sum_to.grad(x=lambda xp, g, x_shape: xp.broadcast_to(g, x_shape))

sum_to.examples(samples=[(normal(2, 3, 4), {"shape": (1, 3, 1)})])


def sum_along(xp: ArrayNamespace, x: Array, dim: int, *, wide: bool = False) -> Array:
    """The sum along a dim, which stays; wide: half precision comes back as single.

    Why: NumPy adds halves of halves only along the dim that lies together in memory.
    Along another it adds row after row, and its error of rounding grows with their
    number; so a block of rows becomes one row, and the blocks are added likewise.
    Half precision is added in single, or 2049 ones would make 2048.
    """
    known = type(dim) is int and -x.ndim <= dim < x.ndim  # NumPy refuses others
    if x.dtype.kind != "f" or xp.__name__ == "burnbook" or not known:
        return x.sum(axis=dim, keepdims=True, dtype=x.dtype)
    dim %= x.ndim
    narrow = x.dtype.itemsize == 2
    dtype = xp.float32 if narrow else x.dtype
    before = (slice(None),) * dim
    in_rows = xp.__name__ == "numpy"  # a GPU adds pairwise by itself
    while in_rows and x.shape[dim] > MANY and x.strides[dim] != x.itemsize:
        many, rest = divmod(x.shape[dim], ROWS)
        body = x[*before, : many * ROWS]
        blocks = body.reshape(*x.shape[:dim], many, ROWS, *x.shape[dim + 1 :])
        total = blocks.sum(axis=dim + 1, dtype=dtype)
        if rest:
            left = x[*before, many * ROWS :].sum(axis=dim, keepdims=True, dtype=dtype)
            total = xp.concatenate((total, left), axis=dim)
        x = total
    out = x.sum(axis=dim, keepdims=True, dtype=dtype)
    return out.astype(xp.float16) if narrow and not wide else out


def stretched(shape: Shape, wanted: Shape) -> list[tuple[int, int]]:
    """The runs of neighbouring dims that were stretched from 1, the last one first."""
    runs: list[tuple[int, int]] = []
    for i in reversed(range(len(shape))):
        if shape[i] == wanted[i]:
            continue
        if runs and runs[-1][0] == i + 1:
            runs[-1] = (i, runs[-1][1])
        else:
            runs.append((i, i + 1))
    return runs


def truth(xp: ArrayNamespace, x: Array) -> Any:
    """Which elements are not zero."""
    return x if x.dtype.kind == "b" else xp.not_equal(x, 0)


def count(shape: tuple[int, ...]) -> int:
    """How many elements a shape has."""
    total = 1
    for size in shape:
        total *= size
    return total


def share(n: int) -> float:
    """What each of n elements counts in their mean; of no element, nothing does."""
    return 1 / n if n else 0.0


def fill(xp: ArrayNamespace, g: Array, shape: tuple[int, ...]) -> Any:
    """Spread a gradient of shape [1] over a whole shape."""
    return xp.broadcast_to(xp.reshape(g, (1,) * len(shape)), shape)


def whole_mean(total: Array, n: int, xp: ArrayNamespace) -> Any:
    """The mean of whole numbers, where it is one.

    Why: Burn cuts the fraction off, so that the share of true answers would be 0.
    """
    if n == 0:
        what = "whole numbers that are not there have no mean"
        raise DataError("mean", what, cure="x.float().mean(), which is NaN")
    if xp.any(xp.fmod(total, n)):
        what = "the mean of these whole numbers is not a whole number"
        raise DataError("mean", what, cure="x.float().mean()")
    return total // n


def first_of(xp: ArrayNamespace, g: Array, x: Array, place: Any) -> Any:
    """A gradient of shape [1] for the one element that was picked."""
    place = xp.reshape(place, (1,) * len(x.shape))
    here = xp.arange(count(x.shape)).reshape(x.shape) == place
    return fill(xp, g, x.shape) * here


def one_along(
    xp: ArrayNamespace, g: Array, place: Any, shape: tuple[int, ...], dim: int
) -> Any:
    """A gradient for the element that was picked along a dim, zero for the others."""
    line = [1] * len(shape)
    line[dim] = shape[dim]
    here = xp.arange(shape[dim]).reshape(line) == xp.expand_dims(place, dim)
    return g * here
