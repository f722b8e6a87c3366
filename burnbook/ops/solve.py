"""The inverse of a matrix, linear equations, and the determinant."""

from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.errors import ShapeError
from burnbook.core.op import normal, op


def is_square(x: tuple[int, ...]) -> str | None:
    """Why a tensor holds no square matrices, or None if it does."""
    if len(x) < 2:
        return "a matrix has two dims"
    if x[-1] != x[-2]:
        return f"{x[-2]} ≠ {x[-1]}: the matrix is not square"
    return None


SQUARE = [(normal(3, 3),), (normal(2, 4, 4),)]
NOT_SQUARE = [(normal(2, 3),), (normal(3),)]


@op("F>F", check=is_square, method=False)
def inverse(xp: ArrayNamespace, x: Array) -> Array:
    """The matrix that undoes x: out · x = 1.

    Shapes: x [..., n, n] -> [..., n, n]
    """
    try:
        return xp.linalg.inv(wide(xp, x)).astype(x.dtype, copy=False)
    except Exception as error:
        if type(error).__name__ != "LinAlgError":
            raise
        raise ShapeError(
            "inverse", "the matrix is singular: its determinant is 0"
        ) from None


def inverse_x(xp: ArrayNamespace, g: Array, out: Array) -> Any:
    """−outᵀ · g · outᵀ."""
    turned = out.swapaxes(-1, -2)
    return -xp.matmul(xp.matmul(turned, g), turned)


inverse.grad(x=inverse_x)

inverse.examples(samples=SQUARE, rejects=NOT_SQUARE)


def solve_fits(a: tuple[int, ...], b: tuple[int, ...]) -> str | None:
    """Why equations cannot be solved, or None if they can."""
    wrong = is_square(a)
    if wrong:
        return wrong
    if len(b) != len(a) or b[-2] != a[-1]:
        return f"{list(a)} and {list(b)}: every row of a needs one of b"
    return None


@op("FF>F", check=solve_fits, method=False)
def solve(xp: ArrayNamespace, a: Array, b: Array) -> Array:
    """Solve linear equations: a · out = b.

    Shapes: a [..., n, n], b [..., n, k] -> [..., n, k]
    Why: more exact than a⁻¹ · b, and less work.
    """
    lead = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])  # CuPy wants it written out
    a = xp.broadcast_to(a, (*lead, *a.shape[-2:]))
    b = xp.broadcast_to(b, (*lead, *b.shape[-2:]))
    try:
        return xp.linalg.solve(wide(xp, a), wide(xp, b)).astype(a.dtype, copy=False)
    except Exception as error:
        if type(error).__name__ != "LinAlgError":
            raise
        raise ShapeError(
            "solve", "the matrix is singular: its determinant is 0"
        ) from None


def solve_a(xp: ArrayNamespace, g: Array, a: Array, out: Array) -> Any:
    """−(a⁻ᵀ · g) · outᵀ."""
    back = solve(xp, a.swapaxes(-1, -2), g)
    return -xp.matmul(back, out.swapaxes(-1, -2))


solve.grad(a=solve_a, b=lambda xp, g, a: solve(xp, a.swapaxes(-1, -2), g))

EQUATIONS = [
    (normal(3, 3), normal(3, 2)),
    (normal(2, 4, 4), normal(2, 4, 1)),
    (normal(2, 1, 3, 3), normal(1, 4, 3, 2)),
]
solve.examples(
    samples=EQUATIONS,
    rejects=[(normal(2, 3), normal(2, 1)), (normal(3, 3), normal(2, 1))],
)


@op("F>F", check=is_square, method=False)
def log_det(xp: ArrayNamespace, x: Array) -> Array:
    """The log of the determinant's size: out = log |det x|, without overflow.

    Shapes: x [..., n, n] -> [..., 1, 1]
    """
    return xp.linalg.slogdet(wide(xp, x))[1].astype(x.dtype)[..., None, None]


log_det.grad(x=lambda xp, g, x: g * inverse(xp, x).swapaxes(-1, -2))

log_det.examples(samples=SQUARE, rejects=NOT_SQUARE)


@op("F>F", check=is_square, method=False)
def det_sign(xp: ArrayNamespace, x: Array) -> Array:
    """The sign of the determinant: 1, −1, or 0 for a singular matrix.

    Shapes: x [..., n, n] -> [..., 1, 1]
    """
    return xp.linalg.slogdet(wide(xp, x))[0].astype(x.dtype)[..., None, None]


det_sign.examples(samples=SQUARE, rejects=NOT_SQUARE)


@op("F>F", check=is_square, method=False)
def det(xp: ArrayNamespace, x: Array) -> Array:
    """The determinant: the signed volume of the parallelepiped that the rows span.

    Shapes: x [..., n, n] -> [..., 1, 1]
    """
    return xp.linalg.det(wide(xp, x)).astype(x.dtype)[..., None, None]


@op("F>F", check=is_square, method=False)
def cofactor(xp: ArrayNamespace, x: Array) -> Array:
    """How the determinant grows with each element: outᵢⱼ = ∂ det x / ∂ xᵢⱼ.

    Shapes: x [..., n, n] -> [..., n, n]
    Why: det x · x⁻ᵀ says the same where x has an inverse. With x = u s vᵀ it is
    ± u t vᵀ, tᵢ the product of all s but sᵢ, which holds for singular matrices too.
    """
    u, s, v, sign = _decomposed(xp, x)
    out = sign * xp.matmul(u * _others(xp, s)[..., None, :], v)
    return out.astype(x.dtype)


@op("FF>F", method=False)
def cofactor_x(xp: ArrayNamespace, dout: Array, x: Array) -> Array:
    """The gradient of cofactor, again by products of singular values: all but two.

    Shapes: dout [..., n, n], x [..., n, n] -> [..., n, n]
    """
    u, s, v, sign = _decomposed(xp, x)
    n = s.shape[-1]
    pairs = _all_but_two(xp, s)
    turned = xp.matmul(xp.matmul(u.swapaxes(-1, -2), dout), v.swapaxes(-1, -2))
    inner = -pairs * turned.swapaxes(-1, -2)
    diagonal = xp.matmul(pairs, xp.diagonal(turned, axis1=-2, axis2=-1)[..., None])
    inner = inner + xp.eye(n, dtype=s.dtype) * diagonal
    return (sign * xp.matmul(xp.matmul(u, inner), v)).astype(x.dtype)


def _decomposed(xp: ArrayNamespace, x: Array) -> tuple[Any, Any, Any, Any]:
    """x = u · s · v, and the sign that u and v give to the determinant.

    Of a matrix with NaN or infinity the sign is NaN, and so is all that follows.
    """
    known = xp.isfinite(x).all(axis=(-2, -1))[..., None, None]
    u, s, v = xp.linalg.svd(wide(xp, xp.where(known, x, 0)))
    sign = xp.sign(xp.linalg.det(u) * xp.linalg.det(v))[..., None, None]
    return u, s, v, xp.where(known, sign, xp.nan)


def _others(xp: ArrayNamespace, s: Any) -> Any:
    """For each element the product of all others, without dividing."""
    ones = xp.ones((*s.shape[:-1], 1), dtype=s.dtype)
    before = xp.cumprod(xp.concatenate([ones, s[..., :-1]], axis=-1), axis=-1)
    turned = xp.concatenate([ones, xp.flip(s, -1)[..., :-1]], axis=-1)
    return before * xp.flip(xp.cumprod(turned, axis=-1), -1)


def _all_but_two(xp: ArrayNamespace, s: Any) -> Any:
    """outᵢⱼ = the product of all elements but i and j; 0 for i = j."""
    n = s.shape[-1]
    one = xp.eye(n, dtype=s.dtype)
    return _others(xp, s[..., None, :] * (1 - one) + one) * (1 - one)


def third(xp: ArrayNamespace, g: Array, dout: Array, x: Array) -> Any:
    """The third derivative of det x along g and dout; it needs the inverse of x."""
    back = inverse(xp, x)
    a, b = xp.matmul(back, g), xp.matmul(back, dout)
    ab, ba = xp.matmul(a, b), xp.matmul(b, a)
    trace_a, trace_b, trace_ab = (_trace(xp, m) for m in (a, b, ab))
    one = xp.eye(x.shape[-1], dtype=x.dtype)
    inner = (trace_a * trace_b - trace_ab) * one - trace_a * b - trace_b * a + ab + ba
    return det(xp, x) * xp.matmul(inner, back).swapaxes(-1, -2)


def _trace(xp: ArrayNamespace, x: Array) -> Any:
    """The sum of the diagonal, as [..., 1, 1]."""
    one = xp.eye(x.shape[-1], dtype=x.dtype)
    return xp.sum(x * one, axis=(-2, -1), keepdims=True)


cofactor.grad(x=cofactor_x)

cofactor.examples(samples=SQUARE, rejects=NOT_SQUARE)
cofactor_x.grad(dout=lambda xp, g, x: cofactor_x(xp, g, x), x=third)
det.grad(x=lambda xp, g, x: g * cofactor(xp, x))

det.examples(samples=SQUARE, rejects=NOT_SQUARE)


def wide(xp: ArrayNamespace, x: Array) -> Any:
    """At least float32, which linear algebra needs."""
    return x.astype(xp.float32) if x.dtype.itemsize < 4 else x
