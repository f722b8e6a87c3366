"""Sorting, the k largest, and the median."""

from typing import Self

from burnbook.core.cures import explains_call
from burnbook.core.errors import ShapeError
from burnbook.ops.index import gather
from burnbook.ops.sorting import argmedian, argsort, argtopk, enough, sort
from burnbook.tensor.methods import Methods, apply


class Sorting(Methods):
    """What follows from the two ops sort and argsort.

    NaN counts as the largest element: last upward, first downward.
    """

    __slots__ = ()

    def sort_descending(self, dim: int) -> Self:
        """Sort along a dim, the largest first."""
        return apply(sort, self, dim=dim, descending=True)

    def argsort_descending(self, dim: int) -> Self:
        """The indices that sort in descending order; equal elements keep theirs."""
        return apply(argsort, self, dim=dim, descending=True)

    def sort_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The sorted elements, and the index of each in x."""
        return self._at(apply(argsort, self, dim=dim), dim)

    def sort_descending_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The elements in descending order, and the index of each in x."""
        return self._at(self.argsort_descending(dim), dim)

    @explains_call("topk", "x.topk(1, 1)")
    def topk(self, k: int, dim: int) -> Self:
        """The k largest elements along a dim, the largest first.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.from_data([3.0, 1.0, 2.0]).topk(2, 0).into_data().to_list()
            [3.0, 2.0]
        """
        return self.topk_with_indices(k, dim)[0]

    @explains_call("topk_with_indices", "x.topk_with_indices(1, 1)")
    def topk_with_indices(self, k: int, dim: int) -> tuple[Self, Self]:
        """The k largest elements along a dim, and their indices."""
        wrong = enough(tuple(self.value.shape), k, dim)
        if isinstance(wrong, str):
            raise ShapeError("topk", wrong)
        return self._at(apply(argtopk, self, k=k, dim=dim), dim)

    @explains_call("median", "x.median(1)")
    def median(self, dim: int) -> Self:
        """The middle element of the sorted order; of two, the lower one."""
        return self.median_with_indices(dim)[0]

    def median_with_indices(self, dim: int) -> tuple[Self, Self]:
        """The median along a dim, and its index."""
        return self._at(apply(argmedian, self, dim=dim), dim)

    def _at(self, places: Self, dim: int) -> tuple[Self, Self]:
        """The elements at places along a dim; sizes differ only there."""
        return apply(gather, self, places, dim=dim), places
