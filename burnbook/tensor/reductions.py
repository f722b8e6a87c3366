"""Reductions along several dims, variances, products, covariances."""

from collections.abc import Callable, Sequence
from math import nan, pi, prod, sqrt
from typing import Any, NamedTuple, Self

from burnbook.core.cures import explains_arguments
from burnbook.core.dtypes import Float
from burnbook.core.errors import ArgumentError, DimError, KindError, ShapeError
from burnbook.ops.reduce import length_dim
from burnbook.tensor.facts import kind_and_shape
from burnbook.tensor.half import in_full_precision
from burnbook.tensor.layout import Layout
from burnbook.tensor.methods import apply

Dims = int | Sequence[int] | None


class Along(NamedTuple):
    """A tensor whose dims to reduce are one, and the shape of what remains."""

    tensor: Any
    dim: int
    size: int
    kept: tuple[int, ...]  # the sizes, with 1 for the reduced dims

    def reduced(self, out: Any) -> Any:
        """The result of a reduction along the one dim, in the shape that remains."""
        same = tuple(out.value.shape) == self.kept
        return out if same else out.reshape_to(self.kept)


def along(where: str, x: Any, dim: Dims) -> Along:
    """Dims as one: a dim as it is, some behind all others, or every element."""
    shape = tuple(x.value.shape)
    if dim is None:
        return Along(x.flatten(), 0, prod(shape), (1,))
    if not isinstance(dim, list | tuple):
        place = x._dim(where, dim)
        kept = (*shape[:place], 1, *shape[place + 1 :])
        return Along(x, place, shape[place], kept)
    dims = [x._dim(where, one) for one in dim]
    if not dims:
        raise ArgumentError(where, "the list of dims is empty", cure="one dim or more")
    if len(set(dims)) < len(dims):
        raise DimError(where, f"{list(dim)} names a dim twice")
    rest = [d for d in range(x.rank) if d not in dims]
    size = prod(shape[d] for d in dims)
    kept = tuple(1 if d in dims else n for d, n in enumerate(shape))
    lines = x.permute([*rest, *dims]).reshape_to((*[shape[d] for d in rest], size))
    return Along(lines, len(rest), size, kept)


class Reductions(Layout):
    """Reductions and products that are made of others; dims stay, with size 1."""

    __slots__ = ()

    def sum_dims(self, dims: Sequence[int] | int) -> Self:
        """Sum along several dims."""
        return self._each(dims, lambda x, dim: x.sum_dim(dim))

    def mean_dims(self, dims: Sequence[int] | int) -> Self:
        """The mean along several dims."""
        return self._each(dims, lambda x, dim: x.mean_dim(dim))

    def prod_dims(self, dims: Sequence[int] | int) -> Self:
        """Multiply along several dims."""
        return self._each(dims, lambda x, dim: x.prod_dim(dim))

    def max_dims(self, dims: Sequence[int] | int) -> Self:
        """The largest element along several dims."""
        return self._each(dims, lambda x, dim: x.max_dim(dim))

    def min_dims(self, dims: Sequence[int] | int) -> Self:
        """The smallest element along several dims."""
        return self._each(dims, lambda x, dim: x.min_dim(dim))

    def sum_dims_squeeze(self, dims: Sequence[int] | int) -> Self:
        """Sum along several dims, which go."""
        return self.sum_dims(dims).squeeze_dims(self._dims(dims))

    @in_full_precision
    @explains_arguments("var")
    def var(self, dim: Dims = None) -> Self:
        """The variance along a dim, divided by n − 1; NaN for one element.

        Along several dims they count as one; without dims all elements do.

        Shapes: x [..., d, ...] -> [..., 1, ...]
        """
        line = self._line("var", dim)
        biased = _var_bias(line)
        # · n / (n − 1), by numbers that a captured program has for any batch size
        return line.reduced(biased + biased / (line.size - 1))

    @in_full_precision
    @explains_arguments("var_bias")
    def var_bias(self, dim: Dims = None) -> Self:
        """The variance along a dim, divided by n: out = Σ (x − μ)² / n.

        Along several dims they count as one; without dims all elements do.

        Shapes: x [..., d, ...] -> [..., 1, ...]
        """
        line = self._line("var_bias", dim)
        return line.reduced(_var_bias(line))

    @in_full_precision
    @explains_arguments("var_mean")
    def var_mean(self, dim: Dims = None) -> tuple[Self, Self]:
        """The variance (divided by n − 1) and the mean along a dim."""
        return self.var(dim), self._mean("var_mean", dim)

    @in_full_precision
    @explains_arguments("var_mean_bias")
    def var_mean_bias(self, dim: Dims = None) -> tuple[Self, Self]:
        """The variance (divided by n) and the mean along a dim."""
        return self.var_bias(dim), self._mean("var_mean_bias", dim)

    @in_full_precision
    @explains_arguments("std")
    def std(self, dim: Dims = None) -> Self:
        """The standard deviation along a dim, the root of `var`; NaN for one element.

        Along several dims they count as one; without dims all elements do. Where all
        elements are equal, the gradient is zero.

        Shapes: x [..., d, ...] -> [..., 1, ...]
        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.from_data([[1.0, 3.0], [5.0, 9.0]]).std(1).into_data().to_list()
            [[1.4142135381698608], [2.8284270763397217]]
        """
        line = self._line("std", dim)
        n = line.size
        return line.reduced(_length(line) * (1 / sqrt(n - 1) if n > 1 else nan))

    @in_full_precision
    @explains_arguments("std_bias")
    def std_bias(self, dim: Dims = None) -> Self:
        """The standard deviation along a dim, the root of `var_bias`, as NumPy's.

        Along several dims they count as one; without dims all elements do. Where all
        elements are equal, the gradient is zero.

        Shapes: x [..., d, ...] -> [..., 1, ...]
        """
        line = self._line("std_bias", dim)
        return line.reduced(_length(line) * (1 / sqrt(line.size) if line.size else nan))

    @in_full_precision
    @explains_arguments("logsumexp")
    def logsumexp(self, dim: Dims = None) -> Self:
        """The log of a sum of exponentials along a dim: out = log Σ exp(xᵢ).

        Along several dims they count as one; without dims all elements do.

        Shapes: x [..., d, ...] -> [..., 1, ...]
        Example:
            >>> from burnbook.tensor import Tensor
            >>> f"{Tensor.from_data([1000.0, 1000.0]).logsumexp(0):.3f}"
            '1000.693'

        Why: exp of a large number is inf; subtracting the largest first keeps every
        exp ≤ 1.
        """
        line = self._line("logsumexp", dim)
        x, place = line.tensor, line.dim
        most = x.set_require_grad(False).max_dim(place)
        most = most.mask_fill(most.is_finite().bool_not(), 0.0)
        return line.reduced((x - most).exp().sum_dim(place).log() + most)

    def max_abs(self) -> Self:
        """The largest absolute value."""
        return self.abs().max()

    def max_abs_dim(self, dim: int) -> Self:
        """The largest absolute value along a dim."""
        return self.abs().max_dim(dim)

    def max_abs_dims(self, dims: Sequence[int] | int) -> Self:
        """The largest absolute value along several dims."""
        return self.abs().max_dims(dims)

    @in_full_precision
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

    @in_full_precision
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

    @in_full_precision
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

    def _line(self, where: str, dim: Dims) -> Along:
        """The dims to reduce as one, of a Float tensor."""
        if self.kind is not Float:
            facts = [("x", kind_and_shape(self))]
            raise KindError(where, "takes Float", facts, f"x.float().{where}(…)")
        return along(where, self, dim)

    def _mean(self, where: str, dim: Dims) -> Any:
        line = self._line(where, dim)
        return line.reduced(line.tensor.mean_dim(line.dim))

    def _each(self, dims: Sequence[int] | int, step: Callable[[Any, int], Any]) -> Self:
        out = self
        for dim in sorted({self._dim("dims", dim) for dim in self._dims(dims)}):
            out = step(out, dim)
        return out


def _var_bias(line: Along) -> Any:
    """The variance along the one dim, divided by n."""
    centered = line.tensor - line.tensor.mean_dim(line.dim)
    return (centered * centered).mean_dim(line.dim)


def _length(line: Along) -> Any:
    """The length of what remains without the mean; its gradient at zero is zero."""
    centered = line.tensor - line.tensor.mean_dim(line.dim)
    return apply(length_dim, centered, dim=line.dim)
