"""Linear algebra: norms, products, decompositions.

All of it is tensor code, so all of it can be differentiated.
"""

import math
from typing import Any

import numpy as np

from burnbook.core.cures import explains_arguments
from burnbook.core.dtypes import Float, Int
from burnbook.core.errors import ArgumentError, ShapeError
from burnbook.ops.reduce import length_dim
from burnbook.ops.shape import slice_
from burnbook.ops.solve import (
    det as det_op,
    det_sign,
    inverse as inverse_op,
    log_det,
    solve as solve_op,
)
from burnbook.tensor import Tensor
from burnbook.tensor.half import in_full_precision
from burnbook.tensor.methods import apply
from burnbook.tensor.reductions import Dims, along


@in_full_precision
@explains_arguments("vector_norm")
def vector_norm(x: Tensor, norm: float = 2.0, dim: Dims = None) -> Tensor:
    """The length of the vectors along a dim, in any norm: 0, 1, 2, p, ∞ or −∞.

    Along several dims they count as one; without dims all elements are one vector, so
    that of a matrix it is Frobenius' norm. At zero the gradient is zero.

    Example:
        >>> x = Tensor.from_data([[3.0, -4.0], [0.0, 0.0]])
        >>> vector_norm(x).into_data().to_list()
        [5.0]
        >>> vector_norm(x, 1, 1).into_data().to_list()
        [[7.0], [0.0]]
    """
    if not isinstance(norm, (int, float, np.number)) or isinstance(norm, bool):
        what = f"the norm is {norm!r}, not a number"
        raise ArgumentError("vector_norm", what, cure="2.0, or float('inf')")
    line = along("vector_norm", x, dim)
    return line.reduced(lp_norm(line.tensor, float(norm), line.dim))


@in_full_precision
def lp_norm(x: Tensor, p: float, dim: int) -> Tensor:
    """The p-norm along a dim, which stays with size 1: out = (Σ |xᵢ|ᵖ)^(1/p).

    Why: the largest element is taken out of the root, as its power may overflow.
    """
    named = {0.0: l0_norm, 1.0: l1_norm, 2.0: l2_norm}
    named |= {math.inf: max_abs_norm, -math.inf: min_abs_norm}
    if float(p) in named:
        return named[float(p)](x, dim)
    most = _largest(x, dim)
    shares = (x / most).abs()
    if 0 < p < 1:  # the slope of a power is infinite at 0
        zero = shares.equal_elem(0)
        powers = shares.mask_fill(zero, 1.0).powf_scalar(p).mask_fill(zero, 0.0)
    else:
        powers = shares.powf_scalar(p)
    return _root(powers.sum_dim(dim), 1 / p) * most


def l0_norm(x: Tensor, dim: int) -> Tensor:
    """How many elements along a dim are not zero."""
    count = x.not_equal(0).int()
    return (count if x.kind is Int else count.float()).sum_dim(dim)


def l1_norm(x: Tensor, dim: int) -> Tensor:
    """The sum of absolute values along a dim: out = Σ |xᵢ|."""
    return x.abs().sum_dim(dim)


def l2_norm(x: Tensor, dim: int) -> Tensor:
    """The length along a dim: out = √Σ xᵢ²; at zero the gradient is zero."""
    return apply(length_dim, x, dim=dim)


def max_abs_norm(x: Tensor, dim: int) -> Tensor:
    """The largest absolute value along a dim."""
    return x.abs().max_dim(dim)


def min_abs_norm(x: Tensor, dim: int) -> Tensor:
    """The smallest absolute value along a dim."""
    return x.abs().min_dim(dim)


@in_full_precision
def vector_normalize(x: Tensor, norm: float, dim: int, eps: float) -> Tensor:
    """Give the vectors along a dim the length 1: out = x / max(‖x‖, ε)."""
    return x / vector_norm(x, norm, dim).clamp_min(eps)


@in_full_precision
def cosine_similarity(
    x1: Tensor, x2: Tensor, dim: int, eps: float | None = None
) -> Tensor:
    """The cosine of the angle between vectors: out = x₁·x₂ / max(‖x₁‖ ‖x₂‖, ε).

    Without ε it is right for vectors of any length; of a vector of zeros it is 0, with
    the gradient 0.
    """
    if eps is None:
        return (_directed(x1, dim) * _directed(x2, dim)).sum_dim(dim)
    lengths = l2_norm(x1, dim) * l2_norm(x2, dim)
    return (x1 * x2).sum_dim(dim) / lengths.clamp_min(eps)


def _directed(x: Tensor, dim: int) -> Tensor:
    """Vectors of length 1; zeros stay zeros, with the gradient 0."""
    length = l2_norm(x, dim)
    return x / length.mask_fill(length.equal_elem(0), float("inf"))


def outer(x: Tensor, y: Tensor) -> Tensor:
    """All products of two vectors: outᵢⱼ = xᵢ yⱼ.

    Shapes: x [..., m], y [..., n] -> [..., m, n]
    """
    return outer_dim(x, y, -1)


def outer_dim(x: Tensor, y: Tensor, dim: int) -> Tensor:
    """All products of two vectors along a dim, which becomes two.

    Shapes: x [..., m, ...], y [..., n, ...] -> [..., m, n, ...]
    """
    place = dim % x.rank
    return x.unsqueeze_dim(place + 1) * y.unsqueeze_dim(place)


def matvec(matrix: Tensor, vector: Tensor) -> Tensor:
    """A matrix times a vector: outᵢ = Σⱼ aᵢⱼ vⱼ.

    Shapes: matrix [..., m, n], vector [..., n] -> [..., m]
    """
    if matrix.rank != vector.rank + 1:
        raise ShapeError(
            "matvec", f"a matrix of rank {matrix.rank}, a vector of rank {vector.rank}"
        )
    return (matrix @ vector.unsqueeze_dim(vector.rank)).squeeze(vector.rank)


def diag(x: Tensor) -> Tensor:
    """The diagonal of the last two dims.

    Shapes: x [..., m, n] -> [..., d]
    """
    if x.rank < 2:
        raise ShapeError("diag", "a vector has no diagonal")
    *rest, m, n = x.dims()
    flat = x.reshape_to((*rest, m * n))
    places = slice(0, min(m, n) * (n + 1), n + 1)
    return apply(slice_, flat, index=(*[slice(None)] * len(rest), places))


def trace(x: Tensor) -> Tensor:
    """The sum of the diagonal of the last two dims.

    Shapes: x [..., m, n] -> [..., 1]
    """
    diagonal = diag(x)
    return diagonal.sum_dim(diagonal.rank - 1)


def det(x: Tensor) -> Tensor:
    """The determinant: the signed volume of the parallelepiped that the rows span.

    Shapes: x [..., n, n] -> [...]
    Why: a single matrix gives shape [1], as a tensor has at least one dim.
    """
    return apply(det_op, x).reshape_to(x.dims()[:-2] or (1,))


def inv(x: Tensor) -> Tensor:
    """The inverse of matrices: inv(x) @ x are ones on the diagonal, with gradient.

    Shapes: x [..., n, n] -> [..., n, n]
    Example:
        >>> inv(Tensor.from_data([[2.0, 0.0], [0.0, 4.0]])).into_data().to_list()
        [[0.5, 0.0], [0.0, 0.25]]

    Raises:
        ShapeError: the matrices are not square, or one is singular.
    """
    return apply(inverse_op, x)


def solve(a: Tensor, b: Tensor) -> Tensor:
    """The solution of linear equations, with gradients: a @ solve(a, b) is b.

    b may have one dim less, and holds a vector for each matrix then. It is more exact
    than inv(a) @ b, and takes less time.

    Shapes: a [..., n, n], b [..., n, k] -> [..., n, k], or b [..., n] -> [..., n]
    Example:
        >>> a = Tensor.from_data([[2.0, 0.0], [0.0, 4.0]])
        >>> solve(a, Tensor.from_data([2.0, 2.0])).into_data().to_list()
        [1.0, 0.5]

    Raises:
        ShapeError: the shapes do not go together, or a matrix is singular.
    """
    if b.rank == a.rank - 1:
        return apply(solve_op, a, b.unsqueeze_dim(b.rank)).squeeze(b.rank)
    return apply(solve_op, a, b)


def slogdet(x: Tensor) -> tuple[Tensor, Tensor]:
    """The sign of the determinant, and the log of its size: det = sign · exp(log).

    The log has a gradient, the sign has none. Of a singular matrix they are 0 and −∞.

    Shapes: x [..., n, n] -> [...], [...]
    Example:
        >>> sign, log = slogdet(Tensor.from_data([[0.0, 1.0], [1.0, 0.0]]))
        >>> sign.into_data().to_list(), log.into_data().to_list()
        ([-1.0], [0.0])

    Why: the determinant of a large matrix is beyond the largest float, its log is not.
    A single matrix gives shape [1], as a tensor has at least one dim.
    """
    shape = x.dims()[:-2] or (1,)
    sign = apply(det_sign, x.detach()).reshape_to(shape)
    return sign, apply(log_det, x).reshape_to(shape)


@in_full_precision
def lu(x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Permutation, lower and upper triangle: x = P · L · U; the diagonal of L is 1.

    Shapes: x [..., m, n] -> [..., m, m], [..., m, k], [..., k, n]
    """
    _matrix("lu", x)
    *rest, m, n = x.dims()
    order = _pivots(np.asarray(x))  # row i of P⁻¹ x is row order[i] of x
    turn = np.zeros((*rest, m, m))
    np.put_along_axis(turn, order[..., None], 1, axis=-1)
    undo = Tensor.from_data(np.swapaxes(turn, -1, -2), x.backend, Float)
    left = undo.transpose() @ x
    dim, columns, rows = x.rank - 2, [], []
    for k in range(min(m, n)):
        row = left.narrow(dim, k, 1)
        pivot = row.narrow(dim + 1, k, 1)
        column = left.narrow(dim + 1, k, 1) / pivot
        left = left - column * row
        columns.append(column)
        rows.append(row)
    return undo, Tensor.cat(columns, dim + 1).tril(), Tensor.cat(rows, dim).triu()


def lu_decomposition(x: Tensor) -> tuple[Tensor, Tensor]:
    """L and U in one matrix, and the order of the rows: x[order] = L · U.

    Shapes: x [n, n] -> [n, n], [n]
    """
    _matrix("lu_decomposition", x)
    if x.rank != 2 or x.dims()[0] != x.dims()[1]:
        raise ShapeError("lu_decomposition", f"{list(x.dims())} is not a square matrix")
    if not np.asarray(apply(det_sign, x)).any():
        raise ShapeError("lu_decomposition", "the matrix is singular")
    turn, lower, upper = lu(x)
    return lower.tril(-1) + upper, turn.argmax(0).squeeze(0)


@in_full_precision
def qr(x: Tensor, reduced: bool = True) -> tuple[Tensor, Tensor]:
    """Orthonormal columns and an upper triangle, by reflections: x = Q · R.

    Shapes: x [..., m, n] -> [..., m, k], [..., k, n]
    Why: Householder's reflections stay orthogonal where Gram-Schmidt drifts.
    """
    _matrix("qr", x)
    *rest, m, n = x.dims()
    dim = x.rank - 2
    most = _largest(x.flatten(0, -1), 0).reshape_to((1,) * x.rank)
    r = x / most  # whose squares neither overflow nor vanish
    q = Tensor.eye(m, x.backend).expand((*rest, m, m))
    for k in range(min(m, n)):
        column = r.narrow(dim + 1, k, 1)
        if k:
            column = column.slice_fill([None] * dim + [(0, k)], 0.0)
        head = column.narrow(dim, k, 1)
        size = l2_norm(column, dim)
        size = size.mask_where(head.lower(0), -size)  # the sign of the head: no loss
        v = column.slice_assign([None] * dim + [(k, k + 1)], head + size)
        square = v.square().sum_dim(dim)
        v = v / square.mask_fill(square.equal(0), 1.0).sqrt()
        r = r - (v @ (v.transpose() @ r)) * 2
        q = q - ((q @ v) @ v.transpose()) * 2
    r = r.triu() * most
    if reduced and m > n:
        return q.narrow(dim + 1, 0, n), r.narrow(dim, 0, n)
    return q, r


def _largest(x: Tensor, dim: int) -> Tensor:
    """The largest size of an element along a dim, neither 0 nor ∞; no gradient.

    Why: what is made of x / largest has powers that neither overflow nor vanish.
    """
    limits = np.finfo(x.backend.float_dtype)
    most = x.set_require_grad(False).abs().max_dim(dim)
    return most.clamp(float(limits.tiny), float(limits.max))


def _root(total: Tensor, power: float) -> Tensor:
    """A root whose gradient at zero is zero, where the true one is infinite."""
    zero = total.equal(0)
    return total.mask_fill(zero, 1.0).powf_scalar(power).mask_fill(zero, 0.0)


def _matrix(where: str, x: Tensor) -> None:
    if x.rank < 2 or 0 in x.dims():
        raise ShapeError(where, f"{list(x.dims())} is not a matrix")


def _pivots(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The order of the rows that puts the largest element on the diagonal each time."""
    *rest, m, n = array.shape
    orders = np.empty((*rest, m), np.int64)
    for place in np.ndindex(*rest):
        left = array[place].astype(np.float64)
        order = np.arange(m)
        for k in range(min(m, n)):
            best = k + int(np.argmax(np.abs(left[k:, k])))
            left[[k, best]], order[[k, best]] = left[[best, k]], order[[best, k]]
            if left[k, k]:
                left[k + 1 :] -= np.outer(left[k + 1 :, k] / left[k, k], left[k])
        orders[place] = order
    return orders
