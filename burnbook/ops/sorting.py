"""Sorting: one total order of all numbers, NaN included.

Floats are compared through their bits, read as whole numbers: −inf < … < −0.0 < 0.0 <
… < +inf < NaN. Equal elements keep their order, upward and downward.
"""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import distinct, op
from burnbook.ops.index import gather
from burnbook.ops.reduce import dim_inside

SORTED = [
    (distinct(2, 5, 3), {"dim": 1}),
    (distinct(4, 5), {"dim": 1, "descending": True}),
]
NO_DIM = [(distinct(2, 3), {"dim": 2})]


def enough(x: tuple[int, ...], k: int, dim: int) -> Any:
    """Why there are no k elements along a dim, or None if there are."""
    wrong = dim_inside(x, dim)
    if wrong is None and not 0 <= k <= x[dim]:
        return f"{k} elements of dim {dim}, which has {x[dim]}"
    return wrong


@op("F>F I>I", check=dim_inside, takes_half=True)
def sort(xp: ArrayNamespace, x: Array, *, dim: int, descending: bool = False) -> Array:
    """Sort along a dim, NaN last; descending if asked, and then NaN first.

    Shapes: x [...] -> [...]
    """
    keys = xp.sort(order_keys(xp, x, descending), axis=dim)
    keys = ~keys if descending else keys
    if x.dtype.kind != "f":
        return keys
    return xp.where(keys < 0, keys ^ _largest(xp, keys), keys).view(x.dtype)


@op("F>I I>I", check=dim_inside, takes_half=True)
def argsort(
    xp: ArrayNamespace, x: Array, *, dim: int, descending: bool = False
) -> Array:
    """The indices that sort x along a dim; equal elements keep their order.

    Shapes: x [...] -> [...]
    Why: a key and its place packed into one whole number sort faster than an argsort,
    and no two of them are equal.
    """
    keys = xp.swapaxes(place_keys(xp, x, descending), dim, -1)
    pairs = _pairs(xp, keys)
    if pairs is None:
        places = xp.argsort(keys, axis=-1, kind="stable")
    else:
        places = xp.sort(pairs, axis=-1) % keys.shape[-1]
    return xp.swapaxes(places, dim, -1)


argsort.examples(samples=SORTED, rejects=NO_DIM)


@op("F>I I>I", check=enough, takes_half=True)
def argtopk(xp: ArrayNamespace, x: Array, *, k: int, dim: int) -> Array:
    """Where the k largest elements along a dim stand, the largest first.

    Shapes: x [..., d, ...] -> [..., k, ...]
    """
    keys = xp.swapaxes(place_keys(xp, x, True), dim, -1)
    pairs = _pairs(xp, keys)
    if pairs is None:
        places = xp.argsort(keys, axis=-1, kind="stable")[..., :k]
    else:
        first = xp.partition(pairs, k - 1, axis=-1)[..., :k]
        places = xp.sort(first, axis=-1) % keys.shape[-1]
    return xp.swapaxes(places, dim, -1)


argtopk.examples(
    samples=[
        (distinct(2, 5, 3), {"k": 2, "dim": 1}),
        (distinct(2, 5), {"k": 0, "dim": 1}),
    ],
    rejects=[(distinct(2, 3), {"k": 4, "dim": 1})],
)


@op("F>I I>I", check=dim_inside, method=False, takes_half=True)
def argmedian(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """The index of the element in the middle of the sorted order.

    Shapes: x [..., d, ...] -> [..., 1, ...]
    Why: a line that holds NaN has no middle; the place of its first NaN is the answer.
    """
    keys = xp.swapaxes(place_keys(xp, x, False), dim, -1)
    middle = (keys.shape[-1] - 1) // 2
    pairs = _pairs(xp, keys)
    if pairs is None:
        places = xp.argsort(keys, axis=-1, kind="stable")
    else:
        places = xp.partition(pairs, middle, axis=-1) % keys.shape[-1]
    places = xp.swapaxes(places[..., middle : middle + 1], dim, -1)
    return nan_first(xp, x, places, dim)


argmedian.examples(samples=[(distinct(2, 5), {"dim": 1})])


def nan_first(xp: ArrayNamespace, x: Array, places: Any, dim: int) -> Any:
    """The place of the first NaN of each line that has one, in place of another."""
    if x.dtype.kind != "f" or not x.size or not xp.isnan(x.max()):
        return places
    lost = xp.isnan(x)
    first = xp.argmax(lost, axis=dim, keepdims=True)
    return xp.where(lost.any(axis=dim, keepdims=True), first, places)


def sort_x(xp: ArrayNamespace, g: Array, x: Array, dim: int, descending: bool) -> Any:
    """Every gradient goes back to the place that its element came from."""
    places = argsort(xp, x, dim=dim, descending=descending)
    return gather(xp, g, argsort(xp, places, dim=dim), dim=dim)


sort.grad(x=sort_x)

sort.examples(samples=SORTED, rejects=NO_DIM)


def order_keys(xp: ArrayNamespace, x: Array, descending: bool) -> Any:
    """Whole numbers that are ordered as the elements are, or the other way round."""
    if x.dtype.kind != "f":
        return ~x if descending else x
    bits = x.view(f"i{x.dtype.itemsize}")
    keys = xp.where(bits < 0, bits ^ _largest(xp, bits), bits)
    keys[xp.isnan(x)] = _largest(xp, bits)
    return ~keys if descending else keys


def place_keys(xp: ArrayNamespace, x: Array, descending: bool) -> Any:
    """The same where places are asked for: 0 and −0 are equal, so they keep their order."""
    return order_keys(xp, xp.where(x == 0, x.dtype.type(0), x), descending)


def _largest(xp: ArrayNamespace, keys: Array) -> int:
    return int(xp.iinfo(keys.dtype).max)


def _pairs(xp: ArrayNamespace, keys: Array) -> Any:
    """(key, place) pairs as whole numbers of 64 bits, if they have room there."""
    n = keys.shape[-1]
    if keys.size == 0 or keys.dtype.kind == "u":
        return None
    low = 0
    if keys.dtype.itemsize > 4:
        low = int(keys.min())
        if (int(keys.max()) - low + 1) * n >= 2**63:
            return None
    elif n >= 2**31:
        return None
    return (keys.astype(xp.int64) - low) * n + xp.arange(n)
