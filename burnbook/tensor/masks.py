"""Masks, triangles, one-hot rows, and where truth stands."""

from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.errors import DimError, KindError, ShapeError
from burnbook.ops.index import hot_rows
from burnbook.tensor.create import Creation, some_device, some_dims
from burnbook.tensor.layout import Layout
from burnbook.tensor.methods import apply
from burnbook.tensor.numeric import Numeric, is_written_down


class EitherWay:
    """A name that is one function on the class and another on a tensor."""

    def __init__(self, on_class: Callable[..., Any], on_tensor: Callable[..., Any]):
        self.on_class = on_class
        self.on_tensor = on_tensor
        self.__doc__ = on_tensor.__doc__

    def __get__(self, tensor: Any, owner: Any) -> Any:
        if tensor is None:
            return self.on_class.__get__(owner)
        return self.on_tensor.__get__(tensor)


def one_hot_vector(
    cls: Any, index: int, num_classes: int, device: Backend | None = None, rank: int = 1
) -> Any:
    """A Float vector [num_classes] that is 1 at one index and 0 elsewhere.

    rank: how many dims it has, those before the last of size 1; `Tensor[2].one_hot`
    makes one of rank 2.

    Shapes: -> [..., num_classes]
    """
    if not 0 <= index < num_classes:
        raise DimError("one_hot", f"index {index} is outside [0, {num_classes})")
    backend = some_device("one_hot", device)
    if rank < 1:
        raise ShapeError("one_hot", "a tensor has at least one dim", cure="rank=1")
    array = np.zeros((*[1] * (rank - 1), num_classes), backend.float_dtype)
    array[..., index] = 1
    return cls(backend.from_numpy(array), Float, backend, rank)


def one_hot_rows(self: Any, num_classes: int) -> Any:
    """One row for each index: 1 at the index, 0 elsewhere; the kind stays.

    Shapes: x [...] -> [..., num_classes]
    Why: on the class, `Tensor.one_hot(index, num_classes, device)` makes one vector.

    Example:
        >>> from burnbook.tensor import Tensor
        >>> Tensor.from_ints([2, 0]).one_hot(3).into_data().to_list()
        [[0, 0, 1], [1, 0, 0]]
    """
    return self._hot("one_hot", num_classes, 1, 0, -1, wrap=False)


class Masks(Creation, Layout, Numeric):
    """Functions that make or read Bool tensors, and the rows they select."""

    __slots__ = ()

    one_hot = EitherWay(one_hot_vector, one_hot_rows)

    @classmethod
    def triu_mask(
        cls, shape: Iterable[int], offset: int, device: Backend | None = None
    ) -> Self:
        """True below the diagonal: what to blank out to keep the upper triangle."""
        return cls._mask("triu_mask", shape, device, lambda r, c: c < r + offset)

    @classmethod
    def tril_mask(
        cls, shape: Iterable[int], offset: int, device: Backend | None = None
    ) -> Self:
        """True above the diagonal: what to blank out to keep the lower triangle."""
        return cls._mask("tril_mask", shape, device, lambda r, c: c > r + offset)

    @classmethod
    def diag_mask(
        cls, shape: Iterable[int], offset: int, device: Backend | None = None
    ) -> Self:
        """True off the diagonal: what to blank out to keep the diagonal."""
        return cls._mask("diag_mask", shape, device, lambda r, c: c != r + offset)

    @classmethod
    def cartesian_grid(
        cls, shape: Iterable[int], device: Backend | None = None
    ) -> Self:
        """An Int tensor whose last dim holds the coordinates of each place.

        Shapes: shape -> [shape..., rank]
        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.cartesian_grid([1, 2]).into_data().to_list()
            [[[0, 0], [0, 1]]]
        """
        backend = some_device("cartesian_grid", device)
        dims = some_dims("cartesian_grid", shape)
        grid = np.moveaxis(np.indices(dims), 0, -1).astype(backend.int_dtype)
        return cls(backend.from_numpy(grid), Int, backend, len(dims) + 1)

    def triu(self, diagonal: int = 0) -> Self:
        """Keep the upper triangle of the last two dims; zero below it."""
        mask = self.triu_mask(self.dims(), diagonal, self.backend)
        return self.mask_fill(mask, 0)

    def tril(self, diagonal: int = 0) -> Self:
        """Keep the lower triangle of the last two dims; zero above it."""
        mask = self.tril_mask(self.dims(), diagonal, self.backend)
        return self.mask_fill(mask, 0)

    def nonzero(self) -> list[Self]:
        """The coordinates of the true elements, one Int tensor for each dim.

        Where nothing is true the list is empty.
        """
        places = self.argwhere()
        if not places.value.shape[0]:
            return []
        return [column.squeeze(1) for column in places.iter_dim(1)]

    def mask_select(self, mask: Self) -> Self:
        """The elements where a Bool tensor is true, row by row, as rank 1."""
        if mask.kind is not Bool:
            raise KindError("mask_select", f"the mask is {mask.kind.__name__}")
        chosen = mask.expand(self.dims()).flatten(0, -1).argwhere()
        count = chosen.value.shape[0]
        return self.flatten(0, -1).select(0, chosen.reshape_to((count,)))

    def one_hot_fill(
        self, num_classes: int, on_value: float, off_value: float, axis: int = -1
    ) -> Self:
        """As one_hot, with other values, along any axis; −1 is the last class.

        Shapes: x [...] -> [..., num_classes, ...]
        """
        return self._hot(
            "one_hot_fill", num_classes, on_value, off_value, axis, wrap=True
        )

    def _hot(
        self, where: str, size: int, on: float, off: float, axis: int, wrap: bool
    ) -> Self:
        if not -self.rank - 1 <= axis <= self.rank:
            raise DimError(where, f"axis {axis} is beyond rank {self.rank + 1}")
        if not is_written_down(self.value):
            self._refuse_indices(where, -size if wrap else 0, size)
        on, off = self.whole(where, on), self.whole(where, off)
        index = self if self.kind is Int else self.int().float()
        if wrap:
            index = index.mask_where(index.lower_elem(0), index + size)
        out = apply(hot_rows, index, size=size, on=on, off=off)
        at = axis % (self.rank + 1)
        return out if at == self.rank else out.movedim(-1, at)

    def _refuse_indices(self, where: str, low: int, size: int) -> None:
        """Raise for an index that no class has."""
        array = self.backend.to_numpy(self.value)
        if array.size and (array.min() < low or array.max() >= size):
            raise DimError(
                where,
                f"indices run from {array.min()} to {array.max()}",
                cure=f"{where}({array.max() + 1}), a class for each of them"
                if where == "one_hot" and array.min() >= 0
                else f"indices in [{low}, {size})",
            )

    @classmethod
    def _mask(
        cls, where: str, shape: Iterable[int], device: Backend | None, rule: Any
    ) -> Self:
        dims = some_dims(where, shape)
        if len(dims) < 2:
            raise ShapeError(where, "a triangle needs two dims", cure="shape [h, w]")
        backend = some_device(where, device)
        rows, columns = (np.arange(n, dtype=np.int32) for n in dims[-2:])
        mask = rule(rows.reshape(-1, 1), columns.reshape(1, -1))
        mask = mask.reshape((1,) * (len(dims) - 2) + mask.shape)
        return cls(backend.from_numpy(mask), Bool, backend, len(dims))
