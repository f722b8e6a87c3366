"""Moving dims, padding, rolling, splitting and windows."""

from collections.abc import Sequence
from operator import index
from typing import Any, Self

from burnbook.core.arguments import explained
from burnbook.core.errors import ArgumentError, DimError, ShapeError
from burnbook.ops import shape as shape_ops
from burnbook.tensor.basic import Basic
from burnbook.tensor.methods import apply

PAD_MODES = ("constant", "reflect", "edge")


class Layout(Basic):
    """Rearrangements made of reshape, permute, select and cat."""

    __slots__ = ()

    def t(self) -> Self:
        """The transpose of a matrix."""
        if self.rank != 2:
            raise ShapeError("t", f"a matrix has rank 2, this tensor {self.rank}")
        return self.transpose()

    def squeeze_dim(self, dim: int) -> Self:
        """Drop a dim of size 1; the newer name of squeeze(dim)."""
        return self.squeeze(self._dim("squeeze_dim", dim))

    def squeeze_dims(self, dims: Sequence[int] | int) -> Self:
        """Drop dims of size 1; an empty list drops all of them.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.zeros([1, 3, 1, 2]).squeeze_dims([0, -2]).shape
            (3, 2)
        """
        shape = self.dims()
        places = self._dims(dims)
        gone = {self._dim("squeeze_dims", dim) for dim in places}
        gone = gone or {d for d, n in enumerate(shape) if n == 1}
        wrong = [f"dim {d} has size {shape[d]}, not 1" for d in gone if shape[d] != 1]
        if not wrong and len(gone) == len(shape):
            wrong = ["the last dim of a tensor cannot be removed"]
        if wrong:
            raise ShapeError("squeeze_dims", wrong[0], [("tensor", str(list(shape)))])
        kept = tuple(n for d, n in enumerate(shape) if d not in gone)
        return apply(shape_ops.reshape, self, shape=kept)

    def unsqueeze_dims(self, axes: Sequence[int] | int) -> Self:
        """Add dims of size 1 at these places of the result; a repeated one adds two.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.zeros([3, 4, 5]).unsqueeze_dims([0, -1, -1]).shape
            (1, 3, 4, 5, 1, 1)
        """
        axes = self._dims(axes)
        rank = self.rank + len(axes)
        for axis in axes:
            if not -rank <= axis < rank:
                raise DimError("unsqueeze_dims", f"axis {axis} is beyond rank {rank}")
        places: set[int] = set()
        for axis in sorted(axis % rank for axis in axes):
            while axis in places:
                axis += 1
            places.add(axis)
        while places and max(places) >= rank:  # repeated at the end: move to the left
            places.remove(max(places))
            places.add(max(set(range(rank)) - places))
        sizes = iter(self.dims())
        shape = tuple(1 if d in places else next(sizes) for d in range(rank))
        return apply(shape_ops.reshape, self, shape=shape)

    def movedim(self, src: int | Sequence[int], dst: int | Sequence[int]) -> Self:
        """Move dims to other places; the others keep their order.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.zeros([2, 3, 4]).movedim(0, 2).shape
            (3, 4, 2)
        """
        ways = [[way] if isinstance(way, int) else list(way) for way in (src, dst)]
        sources, targets = ([self._dim("movedim", d) for d in way] for way in ways)
        if len(sources) != len(targets):
            raise ShapeError(
                "movedim", f"{len(sources)} dims move to {len(targets)} places"
            )
        for way in (sources, targets):
            if len(set(way)) < len(way):
                raise DimError("movedim", f"{way} names a dim twice")
        rest = iter(d for d in range(self.rank) if d not in sources)
        coming = dict(zip(targets, sources, strict=True))
        return self.permute(
            [coming[d] if d in coming else next(rest) for d in range(self.rank)]
        )

    def split(self, split_size: int, dim: int = 0) -> list[Self]:
        """Split into pieces of a size along a dim; the last may be smaller.

        A dim of size 0 is one piece, as in PyTorch.
        """
        try:
            few = index(split_size) < 1
        except (TypeError, ValueError) as error:
            raise explained(error, Layout.split, (self, split_size, dim), {}) from error
        if few:
            raise ShapeError("split", f"pieces of size {split_size}")
        size = self.value.shape[self._dim("split", dim)]
        if size == 0:
            return [self]
        return [
            self.narrow(dim, start, min(split_size, size - start))
            for start in range(0, size, split_size)
        ]

    def split_with_sizes(self, split_sizes: Sequence[int], dim: int) -> list[Self]:
        """Split into pieces of given sizes, which must add up to that of the dim."""
        if isinstance(split_sizes, int):
            what = f"it takes a list of sizes, not {split_sizes}"
            cure = f"x.split({split_sizes}, {dim}) for pieces of that size"
            raise ArgumentError("split_with_sizes", what, cure=cure)
        place = self._dim("split_with_sizes", dim)
        size = self.value.shape[place]
        if sum(split_sizes) != size or min(split_sizes, default=0) < 0:
            raise ShapeError(
                "split_with_sizes",
                f"{list(split_sizes)} does not add up to {size}, the size of dim {dim}",
            )
        out, start = [], 0
        for length in split_sizes:
            where = (slice(None),) * place + (slice(start, start + length),)
            out.append(apply(shape_ops.slice_, self, index=where))
            start += length
        return out

    def roll_dim(self, shift: int, dim: int) -> Self:
        """Shift elements along a dim; what falls off the end comes in at the start."""
        place = self._dim("roll_dim", dim)
        size = self.value.shape[place]
        shift = shift % size if size else 0
        if not shift:
            return self
        return apply(shape_ops.roll, self, shift=shift, dim=place)

    def roll(self, shifts: Sequence[int] | int, dims: Sequence[int] | int) -> Self:
        """Shift elements along several dims, one after the other.

        shifts, dims: two lists of equal length, or two numbers for one dim.
        """
        shifts = [shifts] if isinstance(shifts, int) else shifts
        dims = [dims] if isinstance(dims, int) else dims
        if len(shifts) != len(dims):
            raise ShapeError("roll", f"{len(shifts)} shifts for {len(dims)} dims")
        out = self
        for shift, dim in zip(shifts, dims, strict=True):
            out = out.roll_dim(shift, dim)
        return out

    def pad(self, padding: Sequence[Any], value: float | str = 0.0) -> Self:
        """Add elements around the last dims.

        Four numbers are (left, right, top, bottom) of the last two dims. A list of
        pairs (before, behind) belongs to the last dims, one pair each. `value` is what
        is added, or "reflect" or "edge".

        Example:
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_ints([[1, 2]])
            >>> x.pad((1, 0, 0, 1), 9).into_data().to_list()
            [[9, 1, 2], [9, 9, 9]]
            >>> x.pad([(0, 1)], "reflect").into_data().to_list()
            [[1, 2, 1]]
        """
        try:
            widths = self._widths(padding)
        except (TypeError, ValueError) as error:
            raise explained(error, Layout.pad, (self, padding, value), {}) from error
        if not isinstance(value, str):
            value = self.whole("pad", value)  # type: ignore[attr-defined] # Numeric
            return apply(shape_ops.pad, self, widths=widths, value=value)
        if value not in PAD_MODES:
            raise ShapeError(
                "pad", f"there is no mode {value!r}", cure="a number, reflect or edge"
            )
        if value == "constant":
            return apply(shape_ops.pad, self, widths=widths, value=0.0)
        out = self
        for dim, (before, behind) in enumerate(widths):
            if before or behind:
                out = out._continued(dim, before, behind, value == "reflect")
        return out

    def unfold(self, dim: int, size: int, step: int) -> Self:
        """Sliding windows along a dim; the elements of a window make a new last dim.

        Shapes: x [..., d, ...] -> [..., windows, ..., size]
        """
        place = self._dim("unfold", dim)
        length = self.value.shape[place]
        if size < 1 or step < 1 or size > length:
            raise ShapeError(
                "unfold", f"windows of {size} every {step} do not fit size {length}"
            )
        return apply(shape_ops.slide, self, dim=place, size=size, step=step)

    def slice_dim(self, dim: int, part: Any) -> Self:
        """Cut out a range of one dim."""
        place = self._dim("slice_dim", dim)
        return self.slice([None] * place + [part])

    def slice_fill(self, ranges: Sequence[Any], value: float) -> Self:
        """A copy with one value in a block."""
        block: Any = self.slice(ranges)
        return self.slice_assign(ranges, block.full_like(value))

    def select_dim(self, dim: int, index: int) -> Self:
        """One slice along a dim, which goes; the last dim of a tensor stays."""
        place = self._dim("select_dim", dim)
        return self[(slice(None),) * place + (index,)]

    def reshape_to(self, shape: tuple[int, ...]) -> Self:
        """The same elements in a shape that is taken literally: no −1, no 0."""
        return apply(shape_ops.reshape, self, shape=shape)

    def _widths(self, padding: Sequence[Any]) -> tuple[tuple[int, int], ...]:
        """Pairs for every dim, from either way of saying it."""
        if isinstance(padding, int) or (
            len(padding) == 2 and all(isinstance(n, int) for n in padding)
        ):
            what = f"{padding!r} does not say how much of which dim"
            one = (padding, padding) if isinstance(padding, int) else tuple(padding)
            pairs = [one] * min(2 if isinstance(padding, int) else 1, self.rank)
            raise ShapeError("pad", what, cure=f"x.pad({pairs})")
        if len(padding) == 4 and all(isinstance(n, int) for n in padding):
            left, right, top, bottom = padding
            if self.rank < 2:
                raise ShapeError("pad", "four widths are for two dims, here is one")
            pairs = [(top, bottom), (left, right)]
        else:
            pairs = [tuple(pair) for pair in padding]
        if len(pairs) > self.rank or any(len(pair) != 2 for pair in pairs):
            raise ShapeError(
                "pad", f"{list(padding)} do not fit a tensor of rank {self.rank}"
            )
        return tuple([(0, 0)] * (self.rank - len(pairs)) + pairs)

    def _continued(self, dim: int, before: int, behind: int, mirror: bool) -> Self:
        """More elements along a dim: the mirrored ones, or the edge again and again."""
        size = self.value.shape[dim]
        if size == 0 or before < 0 or behind < 0:
            raise ShapeError("pad", f"dim {dim} of size {size} cannot be padded")
        if mirror and max(before, behind) >= size:
            raise ShapeError("pad", f"reflecting size {size} gives at most {size - 1}")
        left = [i if mirror else 0 for i in range(before, 0, -1)]
        right = [size - 2 - i if mirror else size - 1 for i in range(behind)]
        return self.select(dim, self._indices([*left, *range(size), *right]))

    def _indices(self, numbers: Sequence[int]) -> Self:
        """An Int tensor on the same backend."""
        tensor: Any = type(self)
        return tensor.from_ints(list(numbers), self.backend)
