"""Operations that move elements and keep their values."""

from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.errors import DimError
from burnbook.core.op import normal, op
from burnbook.ops.reduce import count, dim_inside, sum_to


def same_count(x: Shape, shape: Shape) -> str | None:
    """Why a tensor cannot be reshaped so, or None if it can."""
    if count(x) != count(shape):
        return (
            f"{count(x)} elements do not fill shape {list(shape)}, "
            f"which has {count(shape)}"
        )
    return None


@op("F>F I>I B>B", reason=same_count, method=False, takes_half=True)
def reshape(xp: ArrayNamespace, x: Array, *, shape: Shape) -> Array:
    """The same elements, row by row, in another shape.

    Shapes: x [...] -> shape
    """
    return xp.reshape(x, shape)


reshape.grad(x=lambda xp, g, x_shape: xp.reshape(g, x_shape))

reshape.examples(
    samples=[(normal(2, 3), {"shape": (3, 2)}), (normal(2, 3), {"shape": (6,)})],
    rejects=[(normal(2, 3), {"shape": (4, 2)})],
)


def two_dims(x: Shape, dim1: int, dim2: int) -> Any:
    """Why two dims cannot be swapped, or None if they can."""
    return dim_inside(x, dim1) or dim_inside(x, dim2)


@op("F>F I>I B>B", reason=two_dims, takes_half=True)
def swap_dims(xp: ArrayNamespace, x: Array, *, dim1: int, dim2: int) -> Array:
    """Exchange two dims.

    Shapes: x [..., a, ..., b, ...] -> [..., b, ..., a, ...]
    """
    return xp.swapaxes(x, dim1, dim2)


swap_dims.grad(x=lambda xp, g, dim1, dim2: xp.swapaxes(g, dim1, dim2))

swap_dims.examples(
    samples=[(normal(2, 3, 4), {"dim1": 0, "dim2": 2})],
    rejects=[(normal(2, 3), {"dim1": 0, "dim2": 2})],
)


def is_order(x: Shape, axes: Shape) -> Any:
    """Why a list of dims is not an order of all dims, or None if it is."""
    for axis in axes:
        wrong = dim_inside(x, axis)
        if wrong:
            return wrong
    if sorted(axis % len(x) for axis in axes) != list(range(len(x))):
        return f"{list(axes)} does not name each of the {len(x)} dims once"
    return None


@op("F>F I>I B>B", check=is_order, method=False, takes_half=True)
def permute(xp: ArrayNamespace, x: Array, *, axes: Shape) -> Array:
    """Reorder the dims: dim i of the output is dim axes[i] of x.

    Shapes: x [...] -> [...]
    """
    return xp.transpose(x, axes)


def inverse(axes: Shape) -> Shape:
    """The order that undoes an order of dims."""
    places = [axis % len(axes) for axis in axes]
    return tuple(places.index(i) for i in range(len(axes)))


permute.grad(x=lambda xp, g, axes: xp.transpose(g, inverse(axes)))

permute.examples(
    samples=[(normal(2, 3, 4), {"axes": (2, 0, 1)})],
    rejects=[(normal(2, 3), {"axes": (0, 0)})],
)


def can_expand(x: Shape, shape: Shape) -> str | None:
    """Why a tensor cannot be stretched to a shape, or None if it can."""
    if len(shape) < len(x):
        return f"shape {list(shape)} has fewer dims than the tensor, which has {len(x)}"
    for i in range(1, len(x) + 1):
        if x[-i] not in (1, shape[-i]):
            return f"size {x[-i]} at dim {len(x) - i} cannot stretch to {shape[-i]}"
    return None


@op("F>F I>I B>B", check=can_expand, method=False, takes_half=True)
def expand(xp: ArrayNamespace, x: Array, *, shape: Shape) -> Array:
    """Stretch dims of size 1 (and new leading dims) to a shape.

    Shapes: x [...] -> shape
    """
    return xp.broadcast_to(x, shape)


def sum_back(xp: ArrayNamespace, g: Array, x_shape: Shape) -> Any:
    """The gradient of a stretched input: the sum over what was stretched."""
    return sum_to(xp, g, shape=tuple(x_shape))


expand.grad(x=sum_back)

expand.examples(
    samples=[(normal(2, 1, 3), {"shape": (4, 2, 5, 3)})],
    rejects=[(normal(2, 3), {"shape": (2, 4)})],
)


@op("F>F I>I B>B", method=False, takes_half=True)
def flip(xp: ArrayNamespace, x: Array, *, axes: Shape) -> Array:
    """Reverse the order of the elements along some dims.

    Shapes: x [...] -> [...]
    """
    return xp.flip(x, axes)


flip.grad(x=lambda xp, g, axes: xp.flip(g, axes))

flip.examples(samples=[(normal(2, 3, 4), {"axes": (0, 2)})])


@op("F>F I>I B>B", check=dim_inside, method=False, takes_half=True)
def roll(xp: ArrayNamespace, x: Array, *, shift: int, dim: int) -> Array:
    """Shift elements along a dim; what falls off the end comes in at the start.

    Shapes: x [...] -> [...]
    """
    return xp.roll(x, shift, axis=dim)


roll.grad(x=lambda xp, g, shift, dim: roll(xp, g, shift=-shift, dim=dim))

roll.examples(
    samples=[(normal(2, 5, 3), {"shift": 2, "dim": 1})],
    rejects=[(normal(2, 3), {"shift": 1, "dim": 2})],
)


def slides(x: Shape, dim: int, size: int, step: int) -> Any:
    """Why no window slides along a dim, or None if one does."""
    wrong = dim_inside(x, dim)
    if wrong is None and not (step >= 1 <= size <= x[dim]):
        return f"windows of {size} every {step} do not fit size {x[dim]}"
    return wrong


SLIDE = {"dim": 1, "size": 3, "step": 2}


@op("F>F I>I B>B", check=slides, method=False, takes_half=True)
def slide(xp: ArrayNamespace, x: Array, *, dim: int, size: int, step: int) -> Array:
    """Windows that slide along a dim; the elements of a window make a new last dim.

    Shapes: x [..., d, ...] -> [..., windows, ..., size]
    """
    places = [slice(None)] * x.ndim
    places[dim] = slice(None, None, step)
    windows = xp.lib.stride_tricks.sliding_window_view(x, size, axis=dim)
    return windows[tuple(places)]


@op("F>F", method=False, takes_half=True)
def slide_back(
    xp: ArrayNamespace,
    x: Array,
    *,
    shape: Shape,
    dim: int,
    size: int,
    step: int,
) -> Array:
    """Add windows up where they came from; the transpose of slide.

    Shapes: x [..., windows, ..., size] -> shape
    """
    out = xp.zeros(shape, x.dtype)
    reach = (x.shape[dim] - 1) * step + 1
    place = [slice(None)] * len(shape)
    for i in range(size):
        place[dim] = slice(i, i + reach, step)
        out[tuple(place)] += x[..., i]
    return out


slide.grad(
    x=lambda xp, g, x_shape, **windows: slide_back(
        xp, g, shape=tuple(x_shape), **windows
    )
)

slide.examples(
    samples=[(normal(2, 7, 3), SLIDE), (normal(5), {"dim": 0, "size": 5, "step": 1})],
    rejects=[(normal(2, 3), {"dim": 1, "size": 4, "step": 1})],
)
slide_back.grad(x=lambda xp, g, shape, **windows: slide(xp, g, **windows))

slide_back.examples(samples=[(normal(2, 3, 3, 3), {**SLIDE, "shape": (2, 7, 3)})])


def cat_fits(xs: list[Shape], dim: int) -> Any:
    """Why tensors cannot be joined along a dim, or None if they can."""
    wrong = dim_inside(xs[0], dim)
    if wrong:
        return wrong
    for i, shape in enumerate(xs[1:], 1):
        for d, (a, b) in enumerate(zip(xs[0], shape, strict=True)):
            if a != b and d != dim % len(shape):
                return f"tensor 0 has size {a} at dim {d}, tensor {i} has {b}"
    return None


@op("F*>F I*>I B*>B", same_rank=True, reason=cat_fits, method=False, takes_half=True)
def cat(xp: ArrayNamespace, *xs: Array, dim: int) -> Array:
    """Join tensors along an existing dim.

    Shapes: xs [..., dᵢ, ...] -> [..., Σ dᵢ, ...]
    """
    return xp.concatenate(xs, axis=dim)


def cat_xs(xp: ArrayNamespace, g: Array, xs_shape: Any, dim: int, position: int) -> Any:
    """The stretch of the gradient that belongs to one of the joined tensors."""
    start = 0
    for shape in xs_shape[:position]:
        start += shape[dim]
    where: list[slice] = [slice(None)] * len(xs_shape[position])
    where[dim] = slice(start, start + xs_shape[position][dim])
    return g[tuple(where)]


cat.grad(xs=cat_xs)

cat.examples(
    samples=[(normal(2, 3), normal(1, 3), normal(4, 3), {"dim": 0})],
    rejects=[(normal(2, 3), normal(2, 4), {"dim": 0})],
)


def slice_fits(x: Shape, index: tuple[slice, ...]) -> Any:
    """Why a slice lies outside a tensor, or None if it does not."""
    if len(index) > len(x):
        return DimError, f"{len(index)} ranges for a tensor of rank {len(x)}"
    return None


@op("F>F I>I B>B", check=slice_fits, method=False, takes_half=True)
def slice_(xp: ArrayNamespace, x: Array, *, index: tuple[slice, ...]) -> Array:
    """Cut out a block: one range per dim, missing ones take the whole dim.

    Shapes: x [...] -> [...]
    """
    return x[index]


@op("F>F", method=False, takes_half=True)
def slice_spread(
    xp: ArrayNamespace, x: Array, *, index: tuple[slice, ...], shape: Shape
) -> Array:
    """Put a block into zeros: the opposite of cutting it out.

    Shapes: x [...] -> shape
    """
    out = xp.zeros(shape, x.dtype)
    out[index] = x
    return out


def slice_x(
    xp: ArrayNamespace, g: Array, x_shape: Shape, index: tuple[slice, ...]
) -> Any:
    """The gradient of a slice: zero outside it."""
    return slice_spread(xp, g, index=index, shape=tuple(x_shape))


slice_.grad(x=slice_x)

slice_.examples(samples=[(normal(4, 5), {"index": (slice(1, 3), slice(0, 4, 2))})])
slice_spread.grad(x=lambda xp, g, index: g[index])

slice_spread.examples(
    samples=[
        (normal(2, 4), {"index": (slice(1, 3), slice(None)), "shape": (4, 4)}),
    ]
)


def assign_fits(x: Shape, values: Shape, index: tuple[slice, ...]) -> Any:
    """Why values do not fit the region they shall replace, or None if they do."""
    wrong = slice_fits(x, index)
    if wrong:
        return wrong
    full = (*index, *[slice(None)] * (len(x) - len(index)))
    region = tuple(len(range(*s.indices(n))) for s, n in zip(full, x, strict=True))
    if region != tuple(values):
        return f"the region has shape {list(region)}, the values {list(values)}"
    return None


@op("FF>F II>I BB>B", check=assign_fits, method=False, takes_half=True)
def slice_assign(
    xp: ArrayNamespace, x: Array, values: Array, *, index: tuple[slice, ...]
) -> Array:
    """A copy of x with a block replaced by values.

    Shapes: x [...], values [...] -> [...]
    """
    out = x.copy()
    out[index] = values
    return out


def slice_assign_x(
    xp: ArrayNamespace,
    g: Array,
    values_shape: Shape,
    index: tuple[slice, ...],
) -> Any:
    """The gradient of what was not replaced."""
    return slice_assign(xp, g, xp.zeros(values_shape, g.dtype), index=index)


slice_assign.grad(x=slice_assign_x, values=lambda xp, g, index: g[index])

slice_assign.examples(
    samples=[(normal(4, 5), normal(2, 5), {"index": (slice(1, 3),)})],
    rejects=[(normal(4, 5), normal(2, 4), {"index": (slice(1, 3),)})],
)


@op("F>F I>F B>F", method=False, takes_half=True)
def cast(xp: ArrayNamespace, x: Array, *, dtype: np.dtype[Any]) -> Array:
    """The same values as another element type.

    Shapes: x [...] -> [...]
    """
    return x.astype(dtype)


cast.grad(x=lambda g: g)

cast.examples(samples=[(normal(2, 3), {"dtype": np.float64})])


def pads_fit(x: Shape, widths: Array) -> str | None:
    """Why a tensor cannot be padded so, or None if it can."""
    if len(widths) != len(x):
        return f"{len(widths)} pairs of widths for a tensor of rank {len(x)}"
    if any(n < 0 for pair in widths for n in pair):
        return f"widths below 0: {list(widths)}"
    return None


@op("F>F I>I B>B", check=pads_fit, method=False, takes_half=True)
def pad(
    xp: ArrayNamespace, x: Array, *, widths: tuple[tuple[int, int], ...], value: float
) -> Array:
    """Put elements of one value before and behind each dim.

    Shapes: x [...] -> [...]
    """
    return xp.pad(x, widths, constant_values=value)


def pad_x(xp: ArrayNamespace, g: Array, x_shape: Shape, widths: Array) -> Any:
    """The gradient of what lies inside."""
    where = [slice(a, a + n) for (a, _), n in zip(widths, x_shape, strict=True)]
    return g[tuple(where)]


pad.grad(x=pad_x)

pad.examples(
    samples=[(normal(2, 3), {"widths": ((1, 0), (0, 2)), "value": 7.0})],
    rejects=[(normal(2, 3), {"widths": ((1, 0),), "value": 0.0})],
)


@op("F>F", method=False, takes_half=True, rules_take_half=True)
def recast(xp: ArrayNamespace, x: Array, *, dtype: np.dtype[Any], back: Any) -> Array:
    """The same values as another element type; gradients return as type `back`.

    Shapes: x [...] -> [...]
    """
    return x.astype(dtype)


recast.grad(x=lambda xp, g, dtype, back: recast(xp, g, dtype=back, back=dtype))

recast.examples(samples=[(normal(2, 3), {"dtype": np.float64, "back": np.float64})])
