"""Picking elements by index, and replacing them by mask."""

from math import prod
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.errors import DimError
from burnbook.core.op import indices, normal, op, truths
from burnbook.ops.reduce import dim_inside, sum_along

LONG = 64  # elements of a row that is added by itself
MANY = 4096  # numbers that may be added to one place one after the other
HOT = {"size": 3, "on": 2, "off": -1}


def inside(where: str, picked: Array, size: int) -> None:
    """Refuse indices outside [0, size): NumPy counts negative ones from the end."""
    if picked.size and (picked.min() < 0 or picked.max() >= size):
        low, high = int(picked.min()), int(picked.max())
        raise DimError(
            where,
            f"indices run from {low} to {high}, the dim has size {size}",
            cure=f"indices in [0, {size})",
        )


def gather_fits(x: Shape, indices: Shape, dim: int) -> Any:
    """Why indices do not fit a tensor, or None if they do."""
    wrong = dim_inside(x, dim)
    if wrong:
        return wrong
    if len(x) != len(indices):
        return f"indices have rank {len(indices)}, and the tensor has rank {len(x)}"
    for d, (a, b) in enumerate(zip(x, indices, strict=True)):
        if a != b and d != dim % len(x):
            return f"{a} ≠ {b} at dim {d}: only dim {dim} may differ from the tensor"
    return None


@op("FI>F II>I BI>B", check=gather_fits, method=False, takes_half=True)
def gather(xp: ArrayNamespace, x: Array, indices: Array, *, dim: int) -> Array:
    """Pick along a dim: out[i][j] = x[i][indices[i][j]] for dim 1.

    Shapes: x [..., d, ...], indices [..., k, ...] -> [..., k, ...]
    """
    inside("gather", indices, x.shape[dim])
    return xp.take_along_axis(x, indices, axis=dim)


def scatter_fits(x: Shape, indices: Shape, values: Shape, dim: int) -> Any:
    """Why indices and values do not fit a tensor, or None if they do."""
    wrong = gather_fits(x, indices, dim)
    if wrong is None and indices != values:
        wrong = "indices and values differ: there is one index for each value"
    return wrong


@op("FIF>F III>I", check=scatter_fits, method=False)
def scatter(
    xp: ArrayNamespace, x: Array, indices: Array, values: Array, *, dim: int
) -> Array:
    """Add values at indices along a dim: out[i][indices[i][j]] += values[i][j].

    Shapes: x [..., d, ...], indices [..., k, ...], values [..., k, ...] -> [..., d, ...]
    """
    inside("scatter", indices, x.shape[dim])
    out = xp.array(x, order="C")
    spots = xp.zeros((1,) * x.ndim, xp.int64)  # the place of each value in flat memory
    stride = 1
    for d in range(x.ndim - 1, -1, -1):
        line = [1] * x.ndim
        line[d] = -1
        own = xp.arange(indices.shape[d]).reshape(line)
        spots = spots + (indices if d == dim % x.ndim else own) * stride
        stride *= x.shape[d]
    most = indices.shape[dim]  # how often one place can come
    flat, spots = out.reshape(-1, 1), spots.reshape(-1)
    add_rows(xp, flat, spots, values.reshape(-1, 1), most)
    return out


def add_rows(
    xp: ArrayNamespace, out: Array, places: Array, rows: Array, most: int
) -> None:
    """out[place] += row, in place; `most`: how often one place can come.

    Why: added one after the other, a million rows of float32 are 1 % off. A place that
    comes more than MANY times gets their sum, which is added pairwise.
    """
    if xp.__name__ == "numpy" and most > MANY:
        places = places.astype(xp.int64, copy=False)
        often = xp.bincount(places, minlength=len(out)) > MANY
        if often.any():
            order = xp.argsort(places, kind="stable")
            order = order[often[places[order]]]
            starts = xp.flatnonzero(xp.diff(places[order], prepend=-1))
            for start, stop in zip(starts, [*starts[1:], len(order)], strict=True):
                block = order[start:stop]
                out[places[block[0]]] += sum_along(xp, rows[block], 0)[0]
            rest = ~often[places]
            places, rows = places[rest], rows[rest]
    if out.shape[1] == 1:
        xp.add.at(out.reshape(-1), places, rows.reshape(-1))
    elif xp.__name__ == "numpy" and out.shape[1] > LONG:
        for place, row in zip(places.tolist(), rows, strict=True):
            out[place] += row
    else:
        xp.add.at(out, places, rows)


def too_often(xp: ArrayNamespace, places: Array, count: int) -> bool:
    """Whether one of so many places comes more than MANY times."""
    return bool(xp.bincount(places.reshape(-1), minlength=count).max(initial=0) > MANY)


def gather_x(
    xp: ArrayNamespace, g: Array, x_shape: Shape, indices: Array, dim: int
) -> Any:
    """Put every gradient back where its value was picked."""
    return scatter(xp, xp.zeros(x_shape, g.dtype), indices, g, dim=dim)


gather.grad(x=gather_x)

gather.examples(
    samples=[(normal(3, 4), indices(4, 3, 2), {"dim": 1})],
    rejects=[(normal(3, 4), indices(4, 2, 2), {"dim": 1})],
)
scatter.grad(
    x=lambda g: g,
    values=lambda xp, g, indices, dim: gather(xp, g, indices, dim=dim),
)

scatter.examples(
    samples=[(normal(3, 4), indices(4, 3, 2), normal(3, 2), {"dim": 1})],
    rejects=[
        (normal(3, 4), indices(4, 3), normal(3), {"dim": 1}),
        (normal(3, 4), indices(4, 3, 2), normal(1, 2), {"dim": 1}),
    ],
)


@op("FI>F II>I BI>B", method=False, takes_half=True)
def select(xp: ArrayNamespace, x: Array, indices: Array, *, dim: int) -> Array:
    """Pick whole slices along a dim; an index may repeat.

    Shapes: x [..., d, ...], indices [k] -> [..., k, ...]
    """
    inside("select", indices, x.shape[dim])
    return xp.take(x, indices, axis=dim)


def slices_fit(x: Shape, indices: Shape, values: Shape, dim: int) -> Any:
    """Why slices do not fit a tensor, one for each index, or None if they do."""
    wrong = dim_inside(x, dim)
    if wrong:
        return wrong
    if len(indices) != 1:
        return f"indices have rank {len(indices)}, not 1"
    line = list(x)
    line[dim] = indices[0]
    if tuple(values) != tuple(line):
        return f"values must be {line}: one slice of x for each index"
    return None


@op("FIF>F III>I", check=slices_fit, method=False)
def select_assign(
    xp: ArrayNamespace, x: Array, indices: Array, values: Array, *, dim: int
) -> Array:
    """Add whole slices at indices along a dim; duplicates add up.

    Shapes: x [..., d, ...], indices [k], values [..., k, ...] -> [..., d, ...]
    """
    inside("select_assign", indices, x.shape[dim])
    out = x.copy()
    rows, new = xp.moveaxis(out, dim, 0), xp.moveaxis(values, dim, 0)
    often = xp.__name__ == "numpy" and len(new) > MANY
    if often or dim % x.ndim == 0:
        across = prod(rows.shape[1:])
        flat = rows.reshape(len(rows), across)  # a copy where other dims come before
        add_rows(xp, flat, indices, new.reshape(len(new), across), len(new))
        return xp.moveaxis(flat.reshape(rows.shape), 0, dim)
    if xp.__name__ == "numpy" and new.size > LONG * len(new):  # long rows: one by one
        for place, row in zip(indices.tolist(), new, strict=True):
            rows[place] += row
    else:
        xp.add.at(rows, indices, new)
    return out


def select_x(
    xp: ArrayNamespace, g: Array, x_shape: Shape, indices: Array, dim: int
) -> Any:
    """Put every slice of the gradient back where it was picked."""
    return select_assign(xp, xp.zeros(x_shape, g.dtype), indices, g, dim=dim)


select.grad(x=select_x)

select.examples(samples=[(normal(3, 4), indices(3, 5), {"dim": 0})])
select_assign.grad(
    x=lambda g: g,
    values=lambda xp, g, indices, dim: select(xp, g, indices, dim=dim),
)

select_assign.examples(
    samples=[(normal(3, 4), indices(3, 5), normal(5, 4), {"dim": 0})],
    rejects=[(normal(3, 4), indices(3, 2), normal(1, 4), {"dim": 0})],
)


def mask_fits(x: Shape, mask: Shape) -> str | None:
    """Why a mask does not fit, or None if it does: it may stretch, x may not."""
    for d, (size, own) in enumerate(zip(x, mask, strict=False)):
        if own not in (1, size):
            return f"{size} ≠ {own} at dim {d}: a mask has the sizes of x, or 1"
    return None


def three_fit(x: Shape, mask: Shape, values: Shape) -> str | None:
    """Why x, mask and values do not stretch to one shape, or None if they do."""
    for d, sizes in enumerate(zip(x, mask, values, strict=False)):
        if len({size for size in sizes if size != 1}) > 1:
            told = ", ".join(map(str, sizes))
            return f"x, mask and values have {told} at dim {d}: equal sizes, or 1"
    return None


@op("FBF>F IBI>I BBB>B", same_rank=True, reason=three_fit, takes_half=True)
def mask_where(xp: ArrayNamespace, x: Array, mask: Array, values: Array) -> Array:
    """Replace elements where the mask is true: out = values there, x elsewhere.

    Shapes: x [...], mask [...], values [...] -> [...]
    """
    return xp.where(mask, values, x)


mask_where.grad(
    x=lambda xp, g, mask: xp.where(mask, 0.0, g),
    values=lambda xp, g, mask: xp.where(mask, g, 0.0),
)

mask_where.examples(
    samples=[(normal(2, 3), truths(2, 3), normal(1, 3))],
    rejects=[(normal(2, 3), truths(2, 2), normal(2, 3))],
)


@op("FB>F IB>I BB>B", same_rank=True, check=mask_fits, method=False, takes_half=True)
def mask_fill(xp: ArrayNamespace, x: Array, mask: Array, *, value: float) -> Array:
    """Fill with one value where the mask is true.

    Shapes: x [...], mask [...] -> [...]
    """
    return xp.where(mask, xp.asarray(value, x.dtype), x)


mask_fill.grad(x=lambda xp, g, mask: xp.where(mask, 0.0, g))

mask_fill.examples(
    samples=[
        (normal(2, 3), truths(2, 3), {"value": 7.0}),
        (normal(2, 3), truths(1, 3), {"value": 7.0}),
    ],
    rejects=[(normal(1, 3), truths(2, 3), {"value": 7.0})],
)


@op("F>F I>I", method=False, takes_half=True)
def hot_rows(
    xp: ArrayNamespace, x: Array, *, size: int, on: float, off: float
) -> Array:
    """A row for each index of [0, size): `on` at the index, `off` elsewhere.

    Shapes: x [...] -> [..., size]
    """
    inside("one_hot", x, size)
    out = xp.full((*x.shape, size), off, x.dtype)
    places = x.reshape(-1).astype(xp.int64, copy=False)
    out.reshape(-1, size)[xp.arange(len(places)), places] = on
    return out


hot_rows.examples(samples=[(indices(3, 2, 4), HOT)])


@op("B>I")
def argwhere(xp: ArrayNamespace, x: Array) -> Array:
    """The coordinates of the true elements, one element in each row of the output.

    Shapes: x [...] -> [n, d]
    """
    return xp.argwhere(x)


argwhere.examples(samples=[(truths(3, 4),)])


@op("FIF>F III>I BIB>B", method=False, takes_half=True)
def select_put(xp: ArrayNamespace, x: Array, indices: Array, values: Array) -> Array:
    """Replace whole slices of the first dim; of equal indices the last one wins.

    Shapes: x [n, ...], indices [k], values [k, ...] -> [n, ...]
    """
    inside("select_put", indices, x.shape[0])
    out = x.copy()
    if xp.__name__ != "numpy":  # which may write equal indices in any order
        values = values[_last_places(xp, indices, x.shape[0])[indices]]
    out[indices] = values
    return out


def _last_places(xp: ArrayNamespace, indices: Array, size: int) -> Array:
    """For each number below `size`, where it stands last among the indices."""
    owner = xp.zeros(size, xp.int64)
    xp.maximum.at(owner, indices, xp.arange(indices.shape[0]))
    return owner


def select_put_x(
    xp: ArrayNamespace, g: Array, values_shape: Shape, indices: Array
) -> Any:
    """The gradient of what was not replaced."""
    return select_put(xp, g, indices, xp.zeros(values_shape, g.dtype))


@op("I>B", method=False)
def last_of_equals(xp: ArrayNamespace, x: Array, *, size: int) -> Array:
    """True where no equal index below `size` stands further back.

    Shapes: x [k] -> [k]
    """
    return _last_places(xp, x, size)[x] == xp.arange(x.shape[0])


last_of_equals.examples(samples=[(indices(3, 5), {"size": 3})])


def select_put_values(
    xp: ArrayNamespace, g: Array, x_shape: Any, indices: Array
) -> Any:
    """The gradient of what replaced it, and was not replaced itself."""
    last = last_of_equals(xp, indices, size=x_shape[0])
    kept = xp.reshape(last, (-1,) + (1,) * (len(x_shape) - 1))
    return xp.where(kept, select(xp, g, indices, dim=0), 0.0)


select_put.grad(x=select_put_x, values=select_put_values)

select_put.examples(samples=[(normal(4, 2), indices(4, 3), normal(3, 2))])
