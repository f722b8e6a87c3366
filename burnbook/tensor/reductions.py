"""Reductions along several dims, products, covariances."""

from collections.abc import Callable, Sequence
from math import pi
from typing import Any, Self

from burnbook.core.errors import ShapeError
from burnbook.tensor.layout import Layout


class Reductions(Layout):
    """Reductions and products that are made of others; dims stay, with size 1."""

    __slots__ = ()

    def sum_dims(self, dims: Sequence[int]) -> Self:
        """Sum along several dims."""
        return self._each(dims, lambda x, dim: x.sum_dim(dim))

    def mean_dims(self, dims: Sequence[int]) -> Self:
        """The mean along several dims."""
        return self._each(dims, lambda x, dim: x.mean_dim(dim))

    def prod_dims(self, dims: Sequence[int]) -> Self:
        """Multiply along several dims."""
        return self._each(dims, lambda x, dim: x.prod_dim(dim))

    def max_dims(self, dims: Sequence[int]) -> Self:
        """The largest element along several dims."""
        return self._each(dims, lambda x, dim: x.max_dim(dim))

    def min_dims(self, dims: Sequence[int]) -> Self:
        """The smallest element along several dims."""
        return self._each(dims, lambda x, dim: x.min_dim(dim))

    def sum_dims_squeeze(self, dims: Sequence[int]) -> Self:
        """Sum along several dims, which go."""
        return self.sum_dims(dims).squeeze_dims(list(dims))

    def max_abs(self) -> Self:
        """The largest absolute value."""
        return self.abs().max()

    def max_abs_dim(self, dim: int) -> Self:
        """The largest absolute value along a dim."""
        return self.abs().max_dim(dim)

    def max_abs_dims(self, dims: Sequence[int]) -> Self:
        """The largest absolute value along several dims."""
        return self.abs().max_dims(dims)

    def dot(self, other: Self) -> Self:
        """The inner product of two vectors: out = Σ xᵢ yᵢ.

        Shapes: x [n], y [n] -> [1]
        """
        if self.rank != 1 or self.dims() != other.dims():
            raise ShapeError(
                "dot",
                f"{list(self.dims())} and {list(other.dims())} are not two vectors "
                "of one size",
            )
        return (self * other).sum()

    def cross(self, other: Self, dim: int = -1) -> Self:
        """The cross product of vectors of size 3 that lie along a dim.

        Shapes: x [..., 3, ...], y [..., 3, ...] -> [..., 3, ...]
        """
        place = self._dim("cross", dim)
        if (self.dims()[place], other.dims()[place]) != (3, 3):
            raise ShapeError("cross", f"dim {dim} does not have size 3")
        a, b = list(self.iter_dim(place)), list(other.iter_dim(place))
        parts = [a[i - 2] * b[i - 1] - a[i - 1] * b[i - 2] for i in range(3)]
        tensor: Any = type(self)
        return tensor.cat(parts, place)

    def cov(self, dim: int, correction: int) -> Self:
        """The covariance of samples along a dim: out = (x − μ)ᵀ (x − μ) / (n − c).

        Shapes: x [v, n] -> [v, v] for dim 1
        """
        place = self._dim("cov", dim)
        n = self.dims()[place]
        centered = self - self.mean_dim(place)
        lines = centered.swap_dims(place, 0)
        return (lines.transpose() @ lines) / (n - correction)

    def deg2rad(self) -> Self:
        """Degrees as radians: out = x · π / 180."""
        return self * (pi / 180)

    def rad2deg(self) -> Self:
        """Radians as degrees: out = x · 180 / π."""
        return self * (180 / pi)

    def _each(self, dims: Sequence[int], step: Callable[[Any, int], Any]) -> Self:
        out = self
        for dim in sorted({self._dim("dims", dim) for dim in dims}):
            out = step(out, dim)
        return out
