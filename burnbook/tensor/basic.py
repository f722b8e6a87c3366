"""Rearranging, cutting out and picking elements."""

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any, Self

import numpy as np

from burnbook.core.arguments import explained
from burnbook.core.dtypes import Int
from burnbook.core.errors import ArgumentError, DimError, KindError, ShapeError
from burnbook.ops import index as index_ops, shape as shape_ops
from burnbook.ops.reduce import count
from burnbook.tensor.brackets import At, Range, code_of, pick, ranges_of
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.methods import NUMBERS, Methods, apply
from burnbook.tensor.shape import Shape, Sizes, check_dims

UPDATES = ("add", "assign")


class Basic(Methods):
    """Operations of every kind of tensor that move elements and keep their values."""

    __slots__ = ()

    def dims(self, *dim: int) -> tuple[int, ...]:
        """The sizes, one per dim, as a plain tuple, which equals a list as well."""
        if dim:
            what = "it gives the sizes of all dims and takes no dim"
            raise ArgumentError("dims", what, cure=f"x.dims()[{dim[0]!r}]")
        return Sizes(self.value.shape)

    def reshape(self, shape: Sequence[int] | int, *more: int) -> Self:
        """The same elements in another shape; one −1 is inferred, 0 copies a size.

        The sizes may also stand one by one: reshape(3, 2). A Shape is taken literally:
        a size of 0 is 0.

        Example:
            >>> from burnbook.tensor import Shape, Tensor
            >>> Tensor.zeros([2, 3]).reshape([-1, 2]).shape
            (3, 2)
            >>> Tensor.zeros([0, 3]).reshape(Shape([3, 0, 2])).shape
            (3, 0, 2)
        """
        if isinstance(shape, Shape) and not more:
            return apply(shape_ops.reshape, self, shape=tuple(shape))
        if more or isinstance(shape, int):
            shape = (shape, *more)  # type: ignore[assignment] # ints
        try:
            wanted = tuple([index(size) for size in shape])  # type: ignore[union-attr]
        except TypeError:
            wanted = _whole_numbers("reshape", shape)  # says what is wrong
        if not wanted or min(wanted) < 1:
            wanted = self._worked_out(list(wanted))
        return apply(shape_ops.reshape, self, shape=wanted)

    def _worked_out(self, wanted: list[int]) -> tuple[int, ...]:
        """Sizes with numbers in place of −1 and 0."""
        have = self.value.shape
        for i, size in enumerate(wanted):
            if size == 0 and i < len(have):
                wanted[i] = have[i]
        if wanted.count(-1) > 1:
            what = f"{wanted} has more than one −1"
            raise ShapeError("reshape", what, cure="one −1, which is inferred")
        if wanted.count(-1) == 1:
            rest = count(tuple(size for size in wanted if size != -1))
            if rest > 0 and count(have) % rest == 0:
                wanted[wanted.index(-1)] = count(have) // rest
            elif rest > 0:
                raise self._undivided(wanted, rest)
        return check_dims("reshape", wanted)

    def _undivided(self, wanted: list[int], rest: int) -> ShapeError:
        have = count(self.value.shape)
        what = f"{have} elements do not divide by {rest}, so no size fits −1"
        shown = [("tensor", kind_and_shape(self))]
        fits = [str(n) for n in range(1, have + 1) if have % n == 0]
        cure = f"sizes whose product divides {have}: {', '.join(fits[:8])}"
        cure += " …" if len(fits) > 8 else ""
        return ShapeError("reshape", what, [*shown, ("shape", str(wanted))], cure)

    def flatten(self, start_dim: int = 0, end_dim: int = -1) -> Self:
        """Merge the dims from start to end (both included) into one; at first all."""
        shape = tuple(self.value.shape)
        start, end = self._dim("flatten", start_dim), self._dim("flatten", end_dim)
        if start > end:
            raise DimError("flatten", f"start {start_dim} lies behind end {end_dim}")
        merged = count(shape[start : end + 1])
        return apply(
            shape_ops.reshape, self, shape=(*shape[:start], merged, *shape[end + 1 :])
        )

    def squeeze(self, dim: int | None = None) -> Self:
        """Drop a dim of size 1; all of them, if no dim is given."""
        shape = tuple(self.value.shape)
        if dim is None:
            kept = tuple(n for n in shape if n != 1)
            return apply(shape_ops.reshape, self, shape=kept or (1,))
        place = self._dim("squeeze", dim)
        if shape[place] != 1 or len(shape) == 1:
            what = (
                "the last dim of a tensor cannot be removed"
                if shape[place] == 1
                else f"dim {dim} has size {shape[place]}, not 1"
            )
            raise ShapeError("squeeze", what, [("tensor", str(list(shape)))])
        return apply(shape_ops.reshape, self, shape=shape[:place] + shape[place + 1 :])

    def unsqueeze(self, rank: int | None = None) -> Self:
        """Add leading dims of size 1 up to a rank (one dim, if no rank is given)."""
        shape = tuple(self.value.shape)
        wanted = len(shape) + 1 if rank is None else rank
        try:
            below = index(wanted) < 0
        except (TypeError, ValueError) as error:
            raise explained(error, Basic.unsqueeze, (self, rank), {}) from error
        if below:
            what = f"it takes a rank, and {wanted} is not one"
            raise ShapeError("unsqueeze", what, cure=f"unsqueeze_dim({wanted})")
        if wanted < len(shape):
            what = f"it adds dims up to rank {wanted}, and this has rank {len(shape)}"
            facts = [("tensor", kind_and_shape(self))]
            cure = f"unsqueeze_dim({rank}) for a new dim {rank}"
            raise ShapeError("unsqueeze", what, facts, cure)
        return apply(
            shape_ops.reshape, self, shape=(1,) * (wanted - len(shape)) + shape
        )

    def unsqueeze_dim(self, dim: int) -> Self:
        """Add a dim of size 1 at a place from 0 to the rank."""
        shape = tuple(self.value.shape)
        try:
            place = index(dim) + len(shape) + 1 if dim < 0 else dim
        except (TypeError, ValueError) as error:
            raise explained(error, Basic.unsqueeze_dim, (self, dim), {}) from error
        if not 0 <= place <= len(shape):
            raise DimError("unsqueeze_dim", f"dim {dim} is beyond rank {len(shape)}")
        return apply(shape_ops.reshape, self, shape=(*shape[:place], 1, *shape[place:]))

    def transpose(self, *dims: int) -> Self:
        """Exchange the last two dims."""
        if dims:
            what = "it exchanges the last two dims and takes no dims"
            cure = f"x.swap_dims({', '.join(map(repr, dims[:2]))})"
            raise ArgumentError("transpose", what, cure=cure)
        if self.rank < 2:
            raise ShapeError("transpose", "a vector has one dim, transposing needs two")
        return apply(shape_ops.swap_dims, self, dim1=-2, dim2=-1)

    @property
    def T(self) -> Self:
        """The tensor with its last two dims exchanged."""
        return self.transpose()

    def permute(self, axes: Sequence[int] | int, *more: int) -> Self:
        """Reorder the dims: dim i of the result is dim axes[i] of this tensor.

        They may also stand one by one: permute(1, 0).
        """
        if more or isinstance(axes, int):
            axes = (axes, *more)  # type: ignore[assignment] # ints
        return apply(shape_ops.permute, self, axes=_whole_numbers("permute", axes))

    def flip(self, axes: Sequence[int] | int, *more: int) -> Self:
        """Reverse the order of the elements along some dims."""
        if more or isinstance(axes, int):
            axes = (axes, *more)  # type: ignore[assignment] # ints
        axes = _whole_numbers("flip", axes)
        places = tuple(self._dim("flip", axis) for axis in axes)
        if len(set(places)) < len(places):
            raise DimError("flip", f"{list(axes)} names a dim twice")
        return apply(shape_ops.flip, self, axes=places)

    def expand(self, shape: Sequence[int] | int, *more: int) -> Self:
        """Stretch dims of size 1, and new leading dims, to a shape; −1 keeps a size."""
        if more or isinstance(shape, int):
            shape = (shape, *more)  # type: ignore[assignment] # ints
        wanted = list(_whole_numbers("expand", shape))
        extra = len(wanted) - self.rank
        for i, size in enumerate(wanted):
            if size == -1 and i >= extra:
                wanted[i] = self.value.shape[i - extra]
        return apply(shape_ops.expand, self, shape=check_dims("expand", wanted))

    def repeat_dim(self, dim: int, times: int) -> Self:
        """Put copies of the tensor one after the other along a dim; 0 copies are none.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_ints([[1, 2]])
            >>> x.repeat_dim(1, 2).shape, x.repeat_dim(1, 0).shape
            ((1, 4), (1, 0))
        """
        place = self._dim("repeat_dim", dim)
        if times < 0:
            what = f"{times} copies: there cannot be fewer than none"
            raise ShapeError("repeat_dim", what, cure="0 or more")
        if times == 0:
            nothing = (slice(None),) * place + (slice(0, 0),)
            return apply(shape_ops.slice_, self, index=nothing)
        return apply(shape_ops.cat, *[self] * times, dim=place)

    def repeat(self, sizes: Sequence[int] | int, *more: int) -> Self:
        """Repeat along every dim; 0 and 1 leave a dim as it is."""
        if more or isinstance(sizes, int):
            sizes = (sizes, *more)  # type: ignore[assignment] # ints
        sizes = _whole_numbers("repeat", sizes)
        out = self
        for dim, times in enumerate(sizes):
            if times > 1:
                out = out.repeat_dim(dim, times)
        return out

    def narrow(self, dim: int, start: int, length: int) -> Self:
        """Keep `length` elements of a dim, from `start`."""
        place = self._dim("narrow", dim)
        size = self.value.shape[place]
        try:
            outside = index(length) < 1 or index(start) < 0 or start + length > size
        except (TypeError, ValueError) as error:
            raise explained(
                error, Basic.narrow, (self, dim, start, length), {}
            ) from error
        if outside:
            raise DimError(
                "narrow",
                f"{start}..{start + length} lies outside dim {dim} of size {size}",
            )
        where = (slice(None),) * place + (slice(start, start + length),)
        return apply(shape_ops.slice_, self, index=where)

    def chunk(self, chunks: int, dim: int = 0) -> list[Self]:
        """Split into `chunks` pieces along a dim; the last may be smaller."""
        try:
            few = index(chunks) < 1
        except (TypeError, ValueError) as error:
            raise explained(error, Basic.chunk, (self, chunks, dim), {}) from error
        if few:
            raise ShapeError("chunk", f"{chunks} pieces", cure="one piece or more")
        size = self.value.shape[self._dim("chunk", dim)]
        if size == 0:
            return [self]
        step = -(-size // chunks)
        return [
            self.narrow(dim, start, min(step, size - start))
            for start in range(0, size, step)
        ]

    def slice(self, ranges: Sequence[Range], *more: Any) -> Self:
        """Cut out a block: one range per dim, missing ones take the whole dim.

        Ends are clamped to the size; negative numbers count from the end. An empty
        range is an error, as is one that starts before the first element. A range may
        have a step, and below 0 it goes backward: (0, 3, -1) are the first three from
        the last to the first, as Burn's s![0..3;-1].

        Example:
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_ints([[0, 1, 2], [3, 4, 5]])
            >>> x.slice([(0, -1), (0, -2)]).into_data().to_list()
            [[0]]
        """
        if more or isinstance(ranges, int):
            what = "it takes one list, with a range for each dim"
            ends = ", ".join(map(repr, (ranges, *more)))
            pair = f"({ends})" if len(more) == 1 else "(0, 1)"
            raise ArgumentError("slice", what, cure=f"x.slice([{pair}])")
        return ranges_of("slice", self, ranges).cut(self)

    def slice_assign(self, ranges: Sequence[Range], values: Self) -> Self:
        """A copy with a block replaced by `values`."""
        return ranges_of("slice_assign", self, ranges).put(self, values)

    def gather(self, dim: int, indices: Self) -> Self:
        """Pick along a dim: out[i][j] = self[i][indices[i][j]] for dim 1."""
        return apply(index_ops.gather, self, indices, dim=dim)

    def scatter(
        self, dim: int, indices: Self, values: Self, update: str = "add"
    ) -> Self:
        """Add values at indices along a dim, or "assign" them."""
        if known_update("scatter", update) == "add":
            return apply(index_ops.scatter, self, indices, values, dim=dim)
        apply(index_ops.gather, self, indices, dim=dim)  # the same checks
        shape, place = self.value.shape, self._dim("scatter", dim)
        array = self.backend.to_numpy(indices.value)
        grid: list[Any] = list(np.indices(array.shape))
        grid[place] = array
        flat = np.ravel_multi_index(tuple(grid), shape).reshape(-1)
        spots = type(self)(self.backend.from_numpy(flat), Int, self.backend, 1)
        rows, new = (
            apply(shape_ops.reshape, t, shape=(count(t.value.shape),))
            for t in (self, values)
        )
        out = apply(index_ops.select_put, rows, spots, new)
        return apply(shape_ops.reshape, out, shape=tuple(shape))

    def select(self, dim: int, indices: Self) -> Self:
        """Pick whole slices along a dim by an Int tensor of rank 1."""
        rank = getattr(indices, "rank", None)
        if rank is None:
            what = f"indices is {type(indices).__name__}, not an Int tensor"
            cure = f"x.select({dim}, Tensor.from_ints([1], device))"
            if isinstance(indices, (int, np.integer)):
                cure = f"x.narrow({dim}, {indices}, 1).squeeze_dim({dim})"
            raise KindError("select", what, cure=cure)
        if rank != 1:
            raise ShapeError("select", f"indices have rank {indices.rank}, not 1")
        return apply(index_ops.select, self, indices, dim=self._dim("select", dim))

    def select_assign(
        self, dim: int, indices: Self, values: Self, update: str = "add"
    ) -> Self:
        """Add whole slices at indices along a dim, or "assign" them.

        Duplicates add up; of assigned ones the last wins.
        """
        place = self._dim("select_assign", dim)
        if known_update("select_assign", update) == "assign":
            rows, new = self.swap_dims(0, place), values.swap_dims(0, place)
            return apply(index_ops.select_put, rows, indices, new).swap_dims(0, place)
        return apply(index_ops.select_assign, self, indices, values, dim=place)

    def mask_fill(self, mask: Self, value: float) -> Self:
        """Fill with one value where a Bool tensor is true.

        Why no −∞ before a softmax: a row of nothing else becomes NaN; −1e4 hides too.
        """
        if self.kind is Int:
            value = self.whole("mask_fill", value)  # type: ignore[attr-defined] # above
        if value is None:
            what = "the value is None, not a number"
            raise ArgumentError("mask_fill", what, cure="x.mask_fill(mask, 0.0)")
        return apply(index_ops.mask_fill, self, mask, value=value)

    def iter_dim(self, dim: int) -> Iterator[Self]:
        """The slices along a dim, each with that dim at size 1."""
        for i in range(self.value.shape[self._dim("iter_dim", dim)]):
            yield self.narrow(dim, i, 1)

    def __getitem__(self, picked: Any) -> Self:
        """Pick by ints, slices, `None` and `...`, by indices and by masks, as in NumPy.

        An int drops its dim, but the last dim of a tensor stays, with size 1. A step
        below 0 goes backward. A list or an Int tensor of indices picks slices of its
        dim; several of them, which stretch to one shape, pick the elements that they
        name together. A Bool tensor picks where it is true. Negative indices count
        from the end. Gradients of what is picked twice add up.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_ints([[0, 1, 2], [3, 4, 5]])
            >>> x[:, ::-1].into_data().to_list()
            [[2, 1, 0], [5, 4, 3]]
            >>> x[[0, 1], [2, 0]].into_data().to_list()
            [2, 3]
            >>> x[x > 3].into_data().to_list()
            [4, 5]
        """
        return pick(self, picked)

    @property
    def at(self) -> At:
        """Elements to replace: `x.at[…].set(value)` and `.add(value)` give copies.

        In the brackets stands what picks them; the value is a number, or a tensor that
        stretches to the place. A tensor itself never changes.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> x = Tensor.from_ints([[0, 1, 2], [3, 4, 5]])
            >>> x.at[0, 1:].set(9).into_data().to_list()
            [[0, 9, 9], [3, 4, 5]]
        """
        return At(self)

    def __setitem__(self, picked: Any, value: Any) -> None:
        """Tensors never change: the error says what makes a changed copy."""
        shown = repr(value) if isinstance(value, NUMBERS) else "value"
        cure = f"x = x.at[{code_of(picked)}].set({shown})"
        raise ArgumentError("x[…] = …", "a tensor never changes", cure=cure)

    def _dims(self, dims: Sequence[int] | int) -> list[int]:
        """Dims in a list, where one may stand for itself."""
        try:
            return [dims] if isinstance(dims, (int, np.integer)) else list(dims)
        except TypeError:
            what = f"{dims!r} is not a list of whole numbers"
            raise ArgumentError("dims", what, cure="[0], or several: [0, 1]") from None

    def _dim(self, where: str, dim: int) -> int:
        """A dim as a number from 0, or the error that it does not exist."""
        if not isinstance(dim, (int, np.integer)) or isinstance(dim, bool):
            facts = [("tensor", str(list(self.value.shape)))]
            what = f"dim is {dim!r}, not a whole number"
            raise ArgumentError(where, what, facts, "one dim, such as 0")
        if not -self.rank <= dim < self.rank:
            raise DimError(
                where,
                f"dim {dim} does not exist: the tensor has rank {self.rank}",
                [("tensor", str(list(self.value.shape)))],
            )
        return dim % self.rank


def _whole_numbers(where: str, given: Any) -> tuple[int, ...]:
    """Sizes or dims as ints, whichever list they come in."""
    try:
        return tuple([index(number) for number in given])
    except TypeError:
        what = f"{given!r} is not a list of whole numbers"
        raise ShapeError(where, what, cure=f"{where}([2, 3])") from None


def known_update(where: str, update: str) -> str:
    """ "add" or "assign", or the error that there is no such update."""
    if update not in UPDATES:
        raise ShapeError(
            where, f"there is no update {update!r}", cure=" or ".join(UPDATES)
        )
    return update
