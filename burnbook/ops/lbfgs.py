"""Directions that need the whole gradient at once.

L-BFGS guesses the curvature of the loss from its last steps; Muon turns the update of a
matrix into the nearest orthogonal matrix; clipping asks how long a gradient is.
"""

import math
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op, positive
from burnbook.ops.reduce import length_dim, squares_fit


def wide(xp: ArrayNamespace, x: Array) -> Any:
    """The array itself, or in single precision where it has only half."""
    return x.astype(xp.float32) if x.dtype.itemsize == 2 else x


@op("F>F", method=False)
def length(xp: ArrayNamespace, x: Array) -> Array:
    """The length of all elements taken as one vector: √Σx².

    Shapes: x [...] -> [1]
    Why: half precision is summed in single: the square of 300 has no place in it. Where
    squares overflow or vanish in single too, the largest element is taken out first.
    """
    flat = wide(xp, x).reshape(-1)
    out = xp.sqrt(xp.dot(flat, flat)).reshape(1)
    if xp.__name__ == "numpy" and not squares_fit(xp, out):
        return length_dim(xp, flat, dim=0)
    return out


length.examples(samples=[(normal(3, 4),), (normal(7),)])


@op("F*>F", method=False)
def clip_scale(
    xp: ArrayNamespace, *lengths: Array, threshold: float, tiny: float = 0.0
) -> Array:
    """What vectors are multiplied by so that together they are no longer than t:
    min(1, t / (n + tiny)), where n = √Σ length² is the length of them all.

    Shapes: lengths [1] -> [1]
    Why: it is computed in double precision, as Python's numbers are.
    """
    total = 0.0
    for part in lengths:
        total = math.hypot(total, float(part[0]))
    scale = threshold / (total + tiny) if total + tiny else 1.0
    return xp.asarray([1.0 if scale >= 1.0 else scale], dtype=lengths[0].dtype)


clip_scale.examples(
    samples=[
        (positive(1), positive(1), {"threshold": 0.5, "tiny": 1e-6}),
        (positive(1), {"threshold": 9.0}),
    ]
)


@op("F>F", method=False)
def newton_schulz(
    xp: ArrayNamespace,
    x: Array,
    *,
    coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
    steps: int = 5,
    epsilon: float = 1e-7,
) -> Array:
    """Bring all singular values of x near 1: x ← x / ‖x‖, then `steps` times
    A = x xᵀ, x ← a x + (b A + c A²) x.

    Shapes: x [m, n] -> [m, n]
    Why: a polynomial of x xᵀ changes only the singular values, so no decomposition is
    needed; the coefficients lift small ones fast and leave them between 0.7 and 1.2.
    """
    a, b, c = coefficients
    tall = x.shape[0] > x.shape[1]
    out = wide(xp, x)
    if tall:
        out = out.swapaxes(0, 1)
    out = out / xp.maximum(length(xp, out), epsilon)
    for _ in range(steps):
        square = xp.matmul(out, out.swapaxes(0, 1))
        mixed = xp.matmul(square, square.swapaxes(0, 1))  # square is its own transpose
        mixed *= c
        square *= b
        mixed += square
        step = xp.matmul(mixed, out)
        out = out * a
        out += step
    if tall:
        out = out.swapaxes(0, 1)
    return xp.ascontiguousarray(out.astype(x.dtype))


newton_schulz.examples(
    samples=[(normal(3, 4), {"steps": 2}), (normal(5, 2), {}), (normal(2, 2), {})]
)


@op("F*>F", method=False)
def lbfgs_direction(
    xp: ArrayNamespace, *vectors: Array, rho: tuple[float, ...], scale: float
) -> Array:
    """Where L-BFGS goes: −H g, with H the inverse curvature that its last steps show.

    vectors: g, then the last steps sᵢ, then the changes yᵢ of the gradient over them;
    rho: 1 / (yᵢ·sᵢ); scale: H without any steps. From the newest pair back
    αᵢ = ρᵢ sᵢ·q, q ← q − αᵢ yᵢ; then r = scale q, and forth r ← r + (αᵢ − ρᵢ yᵢ·r) sᵢ.

    Shapes: vectors [n] -> [n]
    """
    count = len(rho)
    steps, changes = vectors[1 : count + 1], vectors[count + 1 :]
    out = xp.negative(vectors[0])
    work, alphas = xp.empty(out.shape, dtype=out.dtype), []
    for s, y, inverse in reversed(list(zip(steps, changes, rho, strict=True))):
        alpha = xp.dot(s, out) * inverse
        alphas.append(alpha)
        xp.multiply(y, alpha, out=work)
        xp.subtract(out, work, out=out)
    xp.multiply(out, scale, out=out)
    for s, y, inverse in zip(steps, changes, rho, strict=True):
        factor = alphas.pop() - xp.dot(y, out) * inverse
        xp.multiply(s, factor, out=work)
        xp.add(out, work, out=out)
    return out


lbfgs_direction.examples(
    samples=[
        (normal(5), {"rho": (), "scale": 1.0}),
        (
            *(normal(5), normal(5), normal(5), normal(5), normal(5)),
            {"rho": (0.5, 2.0), "scale": 0.7},
        ),
    ]
)
