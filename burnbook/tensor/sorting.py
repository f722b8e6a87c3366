"""Building blocks · Tensor. Sorting, the k largest, and the median."""

from typing import Self

from burnbook.errors import ShapeError
from burnbook.methods import apply
from burnbook.ops.index import gather
from burnbook.ops.order import argsort, sort
from burnbook.tensor.arrange import Arranging


class Sorting(Arranging):
    """What follows from the two ops sort and argsort.

    NaN counts as the largest element: last upward, first downward.
    """

    __slots__ = ()

    def sort_descending(self, dim: int) -> Self:
        """Sort along a dim, the largest first."""
        return apply(sort, self, dim=dim, descending=True)

    def argsort_descending(self, dim: int) -> Self:
        """Where the elements of the downward sorted line stand; ties in their order."""
        return apply(argsort, self, dim=dim, descending=True)

    def sort_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The sorted elements, and where each of them stood."""
        return self._at(apply(argsort, self, dim=dim), dim)

    def sort_descending_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The elements from the largest down, and where each of them stood."""
        return self._at(self.argsort_descending(dim), dim)

    def topk(self, k: int, dim: int) -> Self:
        """The k largest elements along a dim, the largest first.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.from_data([3.0, 1.0, 2.0]).topk(2, 0).into_data().to_list()
            [3.0, 2.0]
        """
        self._at_most(k, dim)
        return self.sort_descending(dim).slice_dim(dim, slice(0, k))

    def topk_with_indices(self, k: int, dim: int) -> tuple[Self, Self]:
        """The k largest elements along a dim, and where they stand."""
        return self._at(self.argtopk(k, dim), dim)

    def argtopk(self, k: int, dim: int) -> Self:
        """Where the k largest elements along a dim stand."""
        self._at_most(k, dim)
        return self.argsort_descending(dim).slice_dim(dim, slice(0, k))

    def median(self, dim: int) -> Self:
        """The element in the middle of the sorted line; of two the lower one."""
        return self.median_with_indices(dim)[0]

    def median_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The median along a dim, and where it stands."""
        place = self._dim("median", dim)
        middle = (self.value.shape[place] - 1) // 2
        return self._at(apply(argsort, self, dim=place).narrow(place, middle, 1), place)

    def _at(self, places: Self, dim: int) -> tuple[Self, Self]:
        """The elements at places along a dim; sizes differ only there."""
        return apply(gather, self, places, dim=dim), places

    def _at_most(self, k: int, dim: int) -> None:
        size = self.value.shape[self._dim("topk", dim)]
        if not 1 <= k <= size:
            raise ShapeError("topk", f"{k} elements of dim {dim}, which has {size}")
