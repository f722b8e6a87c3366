"""Building blocks · Tensor. The inverse of a matrix, and its determinant."""

from typing import Any

from burnbook.errors import ShapeError
from burnbook.op import normal, op


def is_square(x: tuple[int, ...]) -> str | None:
    """Why a tensor holds no square matrices, or None if it does."""
    if len(x) < 2:
        return "a matrix has two dims"
    if x[-1] != x[-2]:
        return f"{x[-2]} ≠ {x[-1]}: the matrix is not square"
    return None


SQUARE = [(normal(3, 3),), (normal(2, 4, 4),)]
NOT_SQUARE = [(normal(2, 3),), (normal(3),)]


@op("F>F", check=is_square, samples=SQUARE, rejects=NOT_SQUARE, method=False)
def inverse(xp: Any, x: Any) -> Any:
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


def inverse_x(xp: Any, g: Any, out: Any) -> Any:
    """−outᵀ · g · outᵀ."""
    turned = out.swapaxes(-1, -2)
    return -xp.matmul(xp.matmul(turned, g), turned)


inverse.grad(x=inverse_x)


@op("F>F", check=is_square, samples=SQUARE, rejects=NOT_SQUARE, method=False)
def det(xp: Any, x: Any) -> Any:
    """The determinant: the volume of the box that the rows span.

    Shapes: x [..., n, n] -> [..., 1, 1]
    """
    return xp.linalg.det(wide(xp, x)).astype(x.dtype)[..., None, None]


det.grad(
    x=lambda xp, g, x, out: g * out * inverse(xp, x).swapaxes(-1, -2),
)


def wide(xp: Any, x: Any) -> Any:
    """At least float32, which linear algebra needs."""
    return x.astype(xp.float32) if x.dtype.itemsize < 4 else x
