"""What stands in brackets: which elements `x[…]` picks, and `x.at[…]` replaces.

Brackets are worked out for one shape. Ints, slices, `None` and `...` cut a block out.
Lists and tensors of indices, and masks, then pick from the dims that are left.
"""

from math import prod
from types import EllipsisType
from typing import Any, NamedTuple

import numpy as np

from burnbook.core.arrays import Array, Shape
from burnbook.core.dropped import result_matters
from burnbook.core.dtypes import Bool, Int, KindType
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    BurnbookError,
    DimError,
    KindError,
    ShapeError,
    UnknownNameError,
)
from burnbook.ops import index as index_ops, shape as shape_ops
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.methods import NUMBERS, Methods, apply

PLAIN = (int, slice)  # the types of brackets that cut without further ado
Range = slice | tuple[int, ...] | range | int | None
PICKS = "ints, slices, a list or an Int tensor of indices, or a Bool tensor"


class Block(NamedTuple):
    """A range of every dim, each forward, and the dims that are then turned round."""

    ranges: tuple[slice, ...]
    turned: tuple[int, ...]

    def cut(self, x: Any) -> Any:
        """The block of a tensor."""
        out = apply(shape_ops.slice_, x, index=self.ranges)
        return apply(shape_ops.flip, out, axes=self.turned) if self.turned else out

    def put(self, x: Any, values: Any) -> Any:
        """A copy of a tensor whose block is `values`."""
        if self.turned:
            values = apply(shape_ops.flip, values, axes=self.turned)
        return apply(shape_ops.slice_assign, x, values, index=self.ranges)


class Picked(NamedTuple):
    """What brackets mean for one shape."""

    block: Block
    shape: Shape  # of the block, without the dims of ints and with new ones
    taken: list[tuple[int, Array]]  # dims of that shape, and the indices into each


class Rows(NamedTuple):
    """A tensor whose dims with indices are merged into its first: rows to pick from."""

    rows: Any
    places: Any  # Int, a row for each index
    shape: Shape  # of the indices
    order: tuple[int, ...]  # the dims of the tensor, those with indices first
    at: int  # where the dims of the indices stand in the result

    def picked(self) -> Any:
        """The rows that the indices name."""
        out = apply(index_ops.select, self.rows, self.places, dim=0)
        rest, many = tuple(out.value.shape[1:]), len(self.shape)
        out = apply(shape_ops.reshape, out, shape=(*self.shape, *rest))
        if self.at == 0:
            return out
        first, behind = many + self.at, many + len(rest)
        axes = (*range(many, first), *range(many), *range(first, behind))
        return apply(shape_ops.permute, out, axes=axes)

    def region(self) -> Shape:
        """The shape of what is picked."""
        rest = tuple(self.rows.value.shape[1:])
        return (*rest[: self.at], *self.shape, *rest[self.at :])

    def changed(self, values: Any, add: bool, shape: Shape) -> Any:
        """The tensor, which had this shape, with other values at the indices."""
        end = self.at + len(self.shape)
        axes = (*range(self.at, end), *range(self.at), *range(end, values.rank))
        if self.at:
            values = apply(shape_ops.permute, values, axes=axes)
        flat = (self.places.value.shape[0], *self.rows.value.shape[1:])
        values = apply(shape_ops.reshape, values, shape=flat)
        if add:
            out = apply(index_ops.select_assign, self.rows, self.places, values, dim=0)
        else:
            out = apply(index_ops.select_put, self.rows, self.places, values)
        whole = tuple(shape[dim] for dim in self.order)
        out = apply(shape_ops.reshape, out, shape=whole)
        back = shape_ops.inverse(self.order)
        same = back == tuple(range(len(back)))
        return out if same else apply(shape_ops.permute, out, axes=back)


def pick(x: Any, brackets: Any) -> Any:
    """The elements of a tensor that stand in brackets."""
    if is_whole_mask(x, brackets):
        return _masked(x, brackets)
    if _is_tensor(brackets, Int) and brackets.rank == 1:
        try:
            return apply(index_ops.select, x, brackets, dim=0)
        except BurnbookError:  # negative indices, or wrong ones, as is said below
            pass
    block, shape, taken = read(x, brackets)
    out = apply(shape_ops.reshape, block.cut(x), shape=shape or (1,))
    if not taken:
        return out
    if len(taken) > 1:
        return _rows(out, taken).picked()
    dim, places = taken[0]
    flat = _places(out, places.reshape(-1))
    out = apply(index_ops.select, out, flat, dim=dim)
    full = shape[:dim] + tuple(places.shape) + shape[dim + 1 :]
    return apply(shape_ops.reshape, out, shape=full)


class At:
    """A tensor that waits for brackets: `x.at[…]` names elements of it."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: Methods):
        self._tensor = tensor

    def __getitem__(self, brackets: Any) -> "Place":
        return Place(self._tensor, brackets)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        what = "brackets come first, and say which elements"
        known = name if name in ("set", "add") else "set"
        raise UnknownNameError(f"at.{name}", what, cure=f"x.at[0].{known}(value)")

    def __repr__(self) -> str:
        return "x.at: x.at[…].set(value) and x.at[…].add(value) give changed copies"


class Place:
    """Elements of a tensor that a copy shall have other values at."""

    __slots__ = ("_brackets", "_tensor")

    def __init__(self, tensor: Methods, brackets: Any):
        self._tensor, self._brackets = tensor, brackets

    @result_matters("x = x.at[…].set(value)")
    def set(self, value: Any) -> Any:
        """A copy with a number there, or with a tensor that stretches to the place.

        Of an index that is named twice the last value stays. Gradients flow to what
        was not replaced, and to the values.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.zeros([2, 3])
            >>> x.at[:, [0, 2]].set(1.0).into_data().to_list()
            [[1.0, 0.0, 1.0], [1.0, 0.0, 1.0]]
        """
        x, number = self._tensor, isinstance(value, NUMBERS)
        if number and is_whole_mask(x, self._brackets):
            fill: Any = _fitting("at[…].set", x, value)
            return apply(index_ops.mask_fill, x, self._brackets, value=fill)
        return self._changed("at[…].set", value, add=False)

    @result_matters("x = x.at[…].add(value)")
    def add(self, value: Any) -> Any:
        """A copy with a number, or a tensor that stretches to the place, added there.

        What is added at an index that is named twice adds up.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.zeros([3]).at[[0, 0, 2]].add(1.0).into_data().to_list()
            [2.0, 0.0, 1.0]
        """
        return self._changed("at[…].add", value, add=True)

    def __repr__(self) -> str:
        return f"x.at[{code_of(self._brackets)}] of {kind_and_shape(self._tensor)}"

    def _changed(self, where: str, value: Any, *, add: bool) -> Any:
        x = self._tensor
        block, shape, taken = read(x, self._brackets)
        old = block.cut(x)
        size = tuple(old.value.shape)
        if taken:
            seen = apply(shape_ops.reshape, old, shape=shape)
            rows = _rows(seen, taken)
            values = _stretched(where, x, value, rows.region())
            new = rows.changed(values, add, shape)
        else:
            new = _stretched(where, x, value, shape or (1,))
        new = apply(shape_ops.reshape, new, shape=size)
        return block.put(x, old + new if add and not taken else new)


def read(x: Methods, brackets: Any) -> Picked:
    """What brackets mean for the shape of a tensor."""
    parts = list(brackets) if isinstance(brackets, tuple) else [brackets]
    index: list[slice] = []
    turned: list[int] = []
    shape: list[int] = []
    taken: list[tuple[int, Array]] = []
    sizes = iter(enumerate(x.value.shape))
    if len(parts) != x.rank or any(type(p) not in PLAIN for p in parts):
        parts = _spread([_indices(x, part) for part in parts], x)
    for part in parts:
        if part is None:
            shape.append(1)
            continue
        if type(part) is int:
            dim, size = next(sizes)
            index.append(_one(part, dim, size))
            continue
        for place, places in enumerate(getattr(part, "columns", [None])):
            dim, size = next(sizes)
            if places is not None:
                if part.mask and part.mask[place] != size:
                    raise _other_mask(x, part.mask, dim - place)
                taken.append((len(shape), _inside(places, dim, size)))
                index.append(slice(0, size))
                shape.append(size)
            elif _is_int(part):
                index.append(_one(int(part), dim, size))
            else:
                cut, is_turned = range_of("index", part, dim, size)
                turned += [dim] if is_turned else []
                index.append(cut)
                shape.append(len(range(*cut.indices(size))))
    return Picked(Block(tuple(index), tuple(turned)), tuple(shape), taken)


def ranges_of(where: str, x: Methods, ranges: Any) -> Block:
    """One range per dim, as `slice` and `slice_assign` take them."""
    shape = x.value.shape
    if not hasattr(ranges, "__len__"):
        what = f"{ranges!r} is not a list of ranges"
        raise ArgumentError(where, what, cure="x.slice([(0, 2)])")
    if len(ranges) > len(shape):
        raise DimError(where, f"{len(ranges)} ranges for a tensor of rank {len(shape)}")
    found = [range_of(where, part, d, shape[d]) for d, part in enumerate(ranges)]
    turned = tuple(d for d, (_, is_turned) in enumerate(found) if is_turned)
    return Block(tuple(cut for cut, _ in found), turned)


def range_of(where: str, part: Any, dim: int, size: int) -> tuple[slice, bool]:
    """One range as a slice with both ends inside the dim, and whether it is turned."""
    if part is None:
        return slice(0, size), False
    if _is_int(part):
        return _one(int(part), dim, size), False
    if not isinstance(part, slice | range | tuple):
        what = f"a {type(part).__name__} does not pick elements of dim {dim}"
        raise DimError(where, what, cure=PICKS)
    pair = isinstance(part, tuple)
    cut = slice(*part) if pair else part
    start, stop, step = cut.start, cut.stop, 1 if cut.step is None else cut.step
    if step == 0:
        raise DimError(where, "the step is 0", cure="1 for every element, −1 backward")
    if step < 0 and not pair:
        return _backward(where, part, dim, size), True
    low = 0 if start is None else start + size if start < 0 else start
    high = size if stop is None else stop + size if stop < 0 else min(stop, size)
    if low < 0 or high < 0 or low >= high:
        shown = f"{'' if start is None else start}..{'' if stop is None else stop}"
        raise DimError(where, f"{shown} holds no element of dim {dim} of size {size}")
    if step < 0:  # Burn's s![a..b;-1]: from the last of the range to its first
        return slice(low + (high - 1 - low) % -step, high, -step), True
    return slice(low, high) if step == 1 else slice(low, high, step), False


def is_whole_mask(x: Methods, brackets: Any) -> bool:
    """Whether brackets hold one Bool tensor, of the tensor's own shape."""
    same = _is_tensor(brackets, Bool) and brackets.backend is x.backend
    return same and tuple(brackets.value.shape) == tuple(x.value.shape)


def array_of(value: Any) -> Any:
    """The array of a value, below every level of tracking."""
    while hasattr(value, "node"):
        value = value.value
    return value


def code_of(brackets: Any) -> str:
    """What stands in brackets, as one writes it."""
    parts = brackets if isinstance(brackets, tuple) else (brackets,)
    return ", ".join(map(_code, parts)) or "()"


def _code(part: Any) -> str:
    if isinstance(part, slice):
        ends = [part.start, part.stop, *([] if part.step is None else [part.step])]
        return ":".join("" if end is None else str(end) for end in ends)
    if isinstance(part, Methods):
        return "mask" if part.kind is Bool else "indices"
    if isinstance(part, EllipsisType):
        return "..."
    shown = repr(part)
    return shown if len(shown) <= 30 and "\n" not in shown else "indices"


def _backward(where: str, part: Any, dim: int, size: int) -> slice:
    """The elements of a range with a negative step, as Python has it, in order."""
    found = part if isinstance(part, range) else range(*part.indices(size))
    if not found or found[-1] < 0 or found[0] >= size:
        shown = _code(slice(part.start, part.stop, part.step))
        raise DimError(where, f"{shown} holds no element of dim {dim} of size {size}")
    return slice(found[-1], found[0] + 1, -found.step)


def _other_mask(x: Methods, mask: Shape, dim: int) -> ShapeError:
    """The error for a mask that has other sizes than what it masks."""
    shape = list(x.value.shape)
    what = f"the mask has shape {list(mask)}, the dims that it masks"
    what += f" {shape[dim : dim + len(mask)]}"
    facts = [("tensor", kind_and_shape(x))]
    cure = f"a mask of shape {shape}, or mask.expand({shape})"
    return ShapeError("index", what, facts, cure)


class _Indices(NamedTuple):
    """An array of indices for each of some dims that follow each other."""

    columns: list[Array]
    mask: Shape | None  # its shape, where they come from one


def _indices(x: Methods, part: Any) -> Any:
    """A list, an array or a tensor as indices; anything else as it is."""
    if isinstance(part, Methods):
        if part.backend is not x.backend:
            facts = [("tensor", kind_and_shape(x)), ("indices", kind_and_shape(part))]
            what = "the tensor and its indices must live on one backend"
            cure = f"indices.to_device({x.backend!r})"
            raise BackendError("index", what, facts, cure)
        if part.kind is Bool:
            return _true_places(x, part.value)
        if part.kind is not Int:
            facts = [("tensor", kind_and_shape(x)), ("indices", kind_and_shape(part))]
            what = f"the indices are {part.kind.__name__}, not Int or Bool"
            raise KindError("index", what, facts, "indices.int()")
        return _Indices([array_of(part.value).astype(np.int64, copy=False)], None)
    if isinstance(part, tuple):
        what = f"{part} could be a range, or indices"
        ends = ":".join(map(str, part[:3]))
        raise DimError("index", what, cure=f"x[{ends}] or x[{list(part)}]")
    if not isinstance(part, list | np.ndarray):
        return part
    array = _array(part)
    if array.dtype.kind == "b" and array.ndim:
        return _true_places(x, x.backend.from_numpy(array))
    if array.dtype.kind not in "iu":
        what = f"{_code(part)} does not hold whole numbers, or truth values"
        raise DimError("index", what, cure=PICKS)
    if array.ndim == 0:
        return int(array)
    return _Indices([x.backend.from_numpy(array.astype(np.int64, copy=False))], None)


def _array(part: Any) -> np.ndarray[Any, Any]:
    """A list as an array; one without elements holds indices."""
    try:
        array = np.asarray(part)
    except ValueError:  # rows of different lengths
        return np.asarray(None)
    return array.astype(np.int64) if array.size == 0 else array


def _true_places(x: Methods, mask: Array) -> _Indices:
    """The coordinates where a mask is true, an array for each of its dims."""
    shape = tuple(mask.shape)
    held = type(x)(mask, Bool, x.backend, len(shape))
    places = array_of(apply(index_ops.argwhere, held).value).astype(np.int64)
    return _Indices([places[:, dim] for dim in range(len(shape))], shape)


def _is_int(part: Any) -> bool:
    return isinstance(part, (int, np.integer)) and not isinstance(part, bool)


def _is_tensor(part: Any, kind: KindType) -> bool:
    return isinstance(part, Methods) and part.kind is kind


def _spread(parts: list[Any], x: Methods) -> list[Any]:
    """Replace `...` by as many full slices as are missing."""
    rank = x.rank
    widths = [len(part.columns) if isinstance(part, _Indices) else 1 for part in parts]
    known = sum(
        width
        for part, width in zip(parts, widths, strict=True)
        if part is not None and part is not Ellipsis
    )
    dots = sum(part is Ellipsis for part in parts)
    if known > rank or dots > 1:
        what = f"{known} places for a tensor of rank {rank}"
        what = "`...` stands there twice" if dots > 1 else what
        raise DimError("index", what, [("tensor", kind_and_shape(x))])
    missing: list[Any] = [slice(None)] * (rank - known)
    if not dots:
        return [*parts, *missing]
    at = next(i for i, part in enumerate(parts) if part is Ellipsis)
    return [*parts[:at], *missing, *parts[at + 1 :]]


def _one(index: int, dim: int, size: int) -> slice:
    if not -size <= index < size:
        raise DimError("index", f"index {index} is outside dim {dim} of size {size}")
    place = index % size
    return slice(place, place + 1)


def _inside(places: Array, dim: int, size: int) -> Array:
    """Indices from 0: negative ones count from the end; the others must exist."""
    if places.size == 0:
        return places
    low, high = int(places.min()), int(places.max())
    if low < -size or high >= size:
        what = f"indices run from {low} to {high}, dim {dim} has size {size}"
        raise DimError("index", what, cure=f"indices in [{-size}, {size})")
    return places + size * (places < 0) if low < 0 else places


def _masked(x: Any, mask: Any) -> Any:
    """The elements where a mask of the same shape is true."""
    size = prod(x.value.shape)
    chosen = apply(shape_ops.reshape, mask, shape=(size,))
    places = apply(index_ops.argwhere, chosen)
    spots = apply(shape_ops.reshape, places, shape=(places.value.shape[0],))
    flat = apply(shape_ops.reshape, x, shape=(size,))
    return apply(index_ops.select, flat, spots, dim=0)


def _rows(x: Any, taken: list[tuple[int, Array]]) -> Rows:
    """A tensor as rows, and the numbers of those that indices name together."""
    dims = [dim for dim, _ in taken]
    try:
        shape = np.broadcast_shapes(*[tuple(places.shape) for _, places in taken])
    except ValueError:
        shapes = " and ".join(str(list(places.shape)) for _, places in taken)
        what = f"indices of shapes {shapes} do not stretch to one shape"
        cure = "equal shapes for pairs; rows.unsqueeze_dim(1) for all combinations"
        raise ShapeError("index", what, cure=cure) from None
    sizes = tuple(x.value.shape)
    flat: Any = 0
    for dim, places in taken:  # in whole numbers of 64 bits, whatever the backend has
        flat = flat * sizes[dim] + places
    rest = [dim for dim in range(x.rank) if dim not in dims]
    order = (*dims, *rest)
    if dims != list(range(len(dims))):
        x = apply(shape_ops.permute, x, axes=order)
    merged = (prod(sizes[dim] for dim in dims), *[sizes[dim] for dim in rest])
    together = dims == list(range(dims[0], dims[0] + len(dims)))
    return Rows(
        apply(shape_ops.reshape, x, shape=merged),
        _places(x, flat.reshape(-1)),
        tuple(shape),
        order,
        dims[0] if together else 0,
    )


def _places(x: Any, flat: Array) -> Any:
    """Indices as an Int tensor beside x."""
    return type(x)(flat, Int, x.backend, 1)


def _stretched(where: str, x: Any, value: Any, shape: Shape) -> Any:
    """A number or a tensor as values for a whole place."""
    if isinstance(value, NUMBERS):
        fill = _fitting(where, x, value)
        value = type(x).full([1] * len(shape), fill, x.backend, x.kind)
    if not isinstance(value, Methods):
        what = f"the value is {type(value).__name__}, not a number or a tensor"
        cure = f"Tensor.from_data(…, {x.backend!r})"
        raise KindError(where, what, [("x", kind_and_shape(x))], cure)
    if value.kind is not x.kind:
        facts = [("x", kind_and_shape(x)), ("value", kind_and_shape(value))]
        what = f"a {x.kind.__name__} tensor takes {x.kind.__name__} values"
        raise KindError(where, what, facts, f"value.{x.kind.__name__.lower()}()")
    have = tuple(value.value.shape)
    while len(have) > len(shape) and have[0] == 1:
        have = have[1:]
    if shape_ops.can_expand(have, shape) is not None:
        facts = [("x", kind_and_shape(x)), ("value", kind_and_shape(value))]
        what = f"the place has shape {list(shape)}, the value {list(have)}"
        cure = f"a number, or a value that stretches to {list(shape)}"
        if have == tuple(x.value.shape):
            cure = "x.mask_where(mask, value), where mask is true at the place"
        raise ShapeError(where, what, facts, cure)
    if have != tuple(value.value.shape):
        value = apply(shape_ops.reshape, value, shape=have)
    if have == shape:
        return value
    return apply(shape_ops.expand, value, shape=shape)


def _fitting(where: str, x: Any, number: Any) -> Any:
    """A number that the tensor can hold, or the error that it cannot."""
    if x.kind is Bool and number not in (0, 1):
        what = f"a Bool tensor cannot hold {number!r}"
        raise KindError(where, what, [("x", kind_and_shape(x))], "True or False")
    return bool(number) if x.kind is Bool else x.whole(where, number)
