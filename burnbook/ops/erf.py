"""The error function, the area under the normal density."""

import math
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import op, unit
from burnbook.ops.blocked import blockwise


@op("F>F", through=blockwise)
def erf(xp: ArrayNamespace, x: Array) -> Array:
    """The error function: out = 2/√π ∫₀ˣ e^(−t²) dt.

    Shapes: x [...] -> [...]
    Why: after W. J. Cody, "Rational Chebyshev approximations for the error function",
    Math. Comp. 23 (1969): three ranges, each a quotient of polynomials in float64. For
    float32 one quotient of our own does, with an error below 4e-7.
    """
    if x.dtype.itemsize <= 4:
        cut = xp.clip(x, -4.0, 4.0).astype(xp.float32)
        out = cut * wide_quotient(cut * cut, ERF_SHORT_P, ERF_SHORT_Q)
        return xp.clip(out, -1.0, 1.0).astype(x.dtype, copy=False)
    wide = x.astype(xp.float64)
    size = xp.absolute(wide)
    small = xp.minimum(size, 0.5)
    near = wide_quotient(small * small, ERF_NEAR_P, ERF_NEAR_Q) * xp.clip(
        wide, -0.5, 0.5
    )
    middle = xp.clip(size, 0.46875, 4.0)
    mid = 1 - xp.exp(-middle * middle) * wide_quotient(middle, ERF_MID_P, ERF_MID_Q)
    out = xp.where(size <= 0.46875, near, xp.copysign(mid, wide))
    out = xp.where(size > 4.0, xp.copysign(erf_tail(xp, size), wide), out)
    return out.astype(x.dtype)


erf.grad(x=lambda xp, g, x: g * (2 / math.sqrt(math.pi)) * xp.exp(-x * x))

erf.examples(samples=[(unit(2, 3),)])

ERF_SHORT_P = (
    1.986777287e-6,
    2.845664216e-4,
    3.883370091e-3,
    5.310182928e-2,
    1.935456783e-1,
    1.1283791393,
)
ERF_SHORT_Q = (
    3.742014855e-5,
    1.185577278e-3,
    1.5207304634e-2,
    1.153502561e-1,
    5.048579470e-1,
    1.0,
)
ERF_NEAR_P = (
    1.85777706184603153e-1,
    3.16112374387056560e00,
    1.13864154151050156e02,
    3.77485237685302021e02,
    3.20937758913846947e03,
)
ERF_NEAR_Q = (
    1.0,
    2.36012909523441209e01,
    2.44024637934444173e02,
    1.28261652607737228e03,
    2.84423683343917062e03,
)
ERF_MID_P = (
    2.15311535474403846e-8,
    5.64188496988670089e-1,
    8.88314979438837594e00,
    6.61191906371416295e01,
    2.98635138197400131e02,
    8.81952221241769090e02,
    1.71204761263407058e03,
    2.05107837782607147e03,
    1.23033935479799725e03,
)
ERF_MID_Q = (
    1.0,
    1.57449261107098347e01,
    1.17693950891312499e02,
    5.37181101862009858e02,
    1.62138957456669019e03,
    3.29079923573345963e03,
    4.36261909014324716e03,
    3.43936767414372164e03,
    1.23033935480374942e03,
)


def wide_quotient(x: Array, above: tuple[float, ...], below: tuple[float, ...]) -> Any:
    """The quotient of two polynomials, by Horner's rule."""
    p, q = x * above[0], x * below[0]
    for coefficient in above[1:-1]:
        p += coefficient
        p *= x
    for coefficient in below[1:-1]:
        q += coefficient
        q *= x
    p += above[-1]
    q += below[-1]
    return p / q


ERF_FAR_P = (
    1.63153871373020978e-2,
    3.05326634961232344e-1,
    3.60344899949804439e-1,
    1.25781726111229246e-1,
    1.60837851487422766e-2,
    6.58749161529837803e-4,
)
ERF_FAR_Q = (
    1.0,
    2.56852019228982242e00,
    1.87295284992346725e00,
    5.27905102951428412e-1,
    6.05183413124413191e-2,
    2.33520497626869185e-3,
)


def erf_tail(xp: ArrayNamespace, size: Any) -> Any:
    """Above 4, in powers of 1/x²; from 6 on the function is 1. NaN stays NaN."""
    far = xp.clip(size, 4.0, 6.0)
    inverse = 1 / (far * far)
    rest = inverse * wide_quotient(inverse, ERF_FAR_P, ERF_FAR_Q)
    return 1 - xp.exp(-far * far) * (1 / math.sqrt(math.pi) - rest) / far
