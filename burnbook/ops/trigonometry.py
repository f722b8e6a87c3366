"""Angles and hyperbolas: tan, asin, sinh and their family."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import above, distinct, normal, op, positive, unit
from burnbook.ops.elementwise import broadcast


@op("F>F", takes_half=True)
def tan(xp: ArrayNamespace, x: Array) -> Array:
    """The tangent: out = sin x / cos x.

    Shapes: x [...] -> [...]
    """
    return xp.tan(x)


tan.grad(x=lambda g, out: g * (1 + out * out))

tan.examples(samples=[(unit(2, 3),)])


@op("F>F", takes_half=True)
def asin(xp: ArrayNamespace, x: Array) -> Array:
    """The angle from −π/2 to π/2 whose sine is x; beyond ±1 NaN.

    Shapes: x [...] -> [...]
    """
    return xp.arcsin(x)


asin.grad(x=lambda xp, g, x: g / xp.sqrt((1 - x) * (1 + x)))

asin.examples(samples=[(unit(2, 3),)])


@op("F>F", takes_half=True)
def acos(xp: ArrayNamespace, x: Array) -> Array:
    """The angle from 0 to π whose cosine is x; beyond ±1 NaN.

    Shapes: x [...] -> [...]
    """
    return xp.arccos(x)


acos.grad(x=lambda xp, g, x: -g / xp.sqrt((1 - x) * (1 + x)))

acos.examples(samples=[(unit(2, 3),)])


@op("F>F", takes_half=True)
def atan(xp: ArrayNamespace, x: Array) -> Array:
    """The angle from −π/2 to π/2 whose tangent is x.

    Shapes: x [...] -> [...]
    """
    return xp.arctan(x)


atan.grad(x=lambda g, x: g / (1 + x * x))

atan.examples(samples=[(normal(2, 3),)])


@op("F>F", takes_half=True)
def sinh(xp: ArrayNamespace, x: Array) -> Array:
    """The hyperbolic sine: out = (eˣ − e⁻ˣ) / 2.

    Shapes: x [...] -> [...]
    """
    return xp.sinh(x)


@op("F>F", takes_half=True)
def cosh(xp: ArrayNamespace, x: Array) -> Array:
    """The hyperbolic cosine: out = (eˣ + e⁻ˣ) / 2.

    Shapes: x [...] -> [...]
    """
    return xp.cosh(x)


sinh.grad(x=lambda xp, g, x: g * cosh(xp, x))

sinh.examples(samples=[(normal(2, 3),)])
cosh.grad(x=lambda xp, g, x: g * sinh(xp, x))

cosh.examples(samples=[(normal(2, 3),)])


@op("F>F", takes_half=True)
def asinh(xp: ArrayNamespace, x: Array) -> Array:
    """The number whose hyperbolic sine is x: out = ln(x + √(x² + 1)).

    Shapes: x [...] -> [...]
    """
    return xp.arcsinh(x)


asinh.grad(x=lambda xp, g, x: g / hypot(xp, x, 1.0))

asinh.examples(samples=[(normal(2, 3),)])


@op("F>F", takes_half=True)
def acosh(xp: ArrayNamespace, x: Array) -> Array:
    """The number ≥ 0 whose hyperbolic cosine is x; below 1 NaN.

    Shapes: x [...] -> [...]
    """
    return xp.arccosh(x)


acosh.grad(x=lambda xp, g, x: g / (xp.sqrt(x - 1) * xp.sqrt(x + 1)))

acosh.examples(samples=[(above(1, 2, 3),)])


@op("F>F", takes_half=True)
def atanh(xp: ArrayNamespace, x: Array) -> Array:
    """The number whose hyperbolic tangent is x; beyond ±1 NaN.

    Shapes: x [...] -> [...]
    """
    return xp.arctanh(x)


atanh.grad(x=lambda g, x: g / ((1 - x) * (1 + x)))

atanh.examples(samples=[(unit(2, 3),)])


@op("FF>F", same_rank=True, reason=broadcast, takes_half=True)
def atan2(xp: ArrayNamespace, y: Array, x: Array) -> Array:
    """The angle of the point (x, y), from −π to π.

    Shapes: y [...], x [...] -> [...]
    """
    return xp.arctan2(y, x)


def over_length(xp: ArrayNamespace, g: Array, x: Any, length: Array) -> Any:
    """g x / length, and zero at the origin, where there is no slope."""
    return g * (x / xp.where(xp.equal(length, 0), 1.0, length))


def atan2_y(xp: ArrayNamespace, g: Array, y: Array, x: Array) -> Any:
    """x / (x² + y²), without squares, which overflow or vanish."""
    length = hypot(xp, x, y)
    return over_length(xp, over_length(xp, g, x, length), 1.0, length)


def atan2_x(xp: ArrayNamespace, g: Array, y: Array, x: Array) -> Any:
    """−y / (x² + y²)."""
    return atan2_y(xp, -g, x, y)


atan2.grad(y=atan2_y, x=atan2_x)

atan2.examples(
    samples=[(distinct(2, 3), positive(1, 3))], rejects=[(normal(2, 3), normal(2, 4))]
)


@op("FF>F", same_rank=True, reason=broadcast, takes_half=True)
def hypot(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The length of the hypotenuse, without overflow: out = √(x² + y²).

    Shapes: x [...], y [...] -> [...]
    """
    return xp.hypot(x, y)


hypot.grad(
    x=lambda xp, g, x, out: over_length(xp, g, x, out),
    y=lambda xp, g, y, out: over_length(xp, g, y, out),
)

hypot.examples(
    samples=[(distinct(2, 3), positive(1, 3))], rejects=[(normal(2, 3), normal(2, 4))]
)
