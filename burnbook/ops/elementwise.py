"""Operations on each element, and on pairs of elements.

Sizes must be equal or 1 (then they stretch). Gradient rules ignore stretching: the
engine sums a gradient back to the shape of its input.
"""

import math
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.errors import DataError
from burnbook.core.op import distinct, normal, op, positive, unit


def broadcast(x: tuple[int, ...], y: tuple[int, ...]) -> str | None:
    """Why two shapes do not fit element by element, or None if they do."""
    for dim, (a, b) in enumerate(zip(x, y, strict=True)):
        if a != b and 1 not in (a, b):
            return f"{a} ≠ {b} at dim {dim}: sizes must be equal, or one of them 1"
    return None


@op("FF>F II>I", symbol="+", same_rank=True, reason=broadcast, takes_half=True)
def add(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Add element by element: out = x + y. Size-1 dims stretch.

    Shapes: x [...], y [...] -> [...]
    """
    return x + y


add.grad(x=lambda g: g, y=lambda g: g)

add.examples(
    samples=[(normal(2, 3), normal(2, 3)), (normal(2, 3), normal(1, 3))],
    rejects=[(normal(2, 3), normal(2, 4)), (normal(2, 3), normal(3))],
)


@op("FF>F II>I", symbol="-", same_rank=True, reason=broadcast, takes_half=True)
def sub(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Subtract element by element: out = x − y. Size-1 dims stretch.

    Shapes: x [...], y [...] -> [...]
    """
    return x - y


sub.grad(x=lambda g: g, y=lambda g: -g)

sub.examples(
    samples=[(normal(2, 3), normal(2, 1))], rejects=[(normal(2, 3), normal(3, 3))]
)


@op("FF>F II>I", symbol="*", same_rank=True, reason=broadcast, takes_half=True)
def mul(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Multiply element by element: out = x · y. Size-1 dims stretch.

    Shapes: x [...], y [...] -> [...]
    """
    return x * y


mul.grad(x=lambda g, y: g * y, y=lambda g, x: g * x)

mul.examples(
    samples=[(normal(2, 3), normal(2, 1)), (normal(2, 3), normal(2, 3))],
    rejects=[(normal(2, 3), normal(2, 4))],
)


@op("FF>F II>I", symbol="/", same_rank=True, reason=broadcast, takes_half=True)
def div(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Divide element by element: out = x / y; integers truncate toward zero.

    Shapes: x [...], y [...] -> [...]
    """
    if x.dtype.kind == "f" if hasattr(x, "dtype") else y.dtype.kind == "f":
        return xp.divide(x, y)
    if getattr(x, "size", 1) and xp.any(xp.equal(y, 0)):
        raise ZeroDivisionError("div: an Int tensor is divided by zero")
    return (x - xp.fmod(x, y)) // y


div.grad(x=lambda g, y: g / y, y=lambda g, y, out: -g * out / y)

div.examples(
    samples=[(normal(2, 3), positive(1, 3))], rejects=[(normal(2, 3), normal(2, 4))]
)


@op("FF>F II>I", symbol="%", same_rank=True, reason=broadcast, takes_half=True)
def remainder(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The rest of a division, with the sign of the divisor: out = x − y ⌊x / y⌋.

    Shapes: x [...], y [...] -> [...]
    """
    whole = (x if hasattr(x, "dtype") else y).dtype.kind != "f"
    if whole and getattr(x, "size", 1) and xp.any(xp.equal(y, 0)):
        raise ZeroDivisionError("remainder: an Int tensor is divided by zero")
    if whole:
        return xp.remainder(x, y)
    out = xp.fmod(x, y)  # quicker than NumPy's remainder, and the same
    turned = xp.less(out, 0) != xp.less(y, 0)
    return xp.where(turned & (out != 0), out + y, out)


def remainder_y(xp: ArrayNamespace, g: Array, x: Array, y: Array, out: Array) -> Any:
    """−⌊x / y⌋, as whole as it was: 1 / 0.1 is rounded to 10, but 0.1 fits 9 times.

    The rest is infinite where y is, with the other sign than x: there the floor is −1.
    """
    fits = xp.rint((x - out) / y)
    return -g * xp.where(xp.absolute(out) == np.inf, -1.0, fits)


remainder.grad(x=lambda g: g, y=remainder_y)

remainder.examples(samples=[(distinct(2, 3), positive(1, 3))])


@op("FF>F II>I", symbol="**", same_rank=True, reason=broadcast, takes_half=True)
def powf(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Raise to a power, element by element: out = xʸ.

    Shapes: x [...], y [...] -> [...]
    """
    if (x if hasattr(x, "dtype") else y).dtype.kind != "f" and xp.any(xp.less(y, 0)):
        raise DataError("powf", "a whole number has no negative power", cure=".float()")
    return xp.power(x, y)


def powf_x(xp: ArrayNamespace, g: Array, x: Array, y: Array) -> Any:
    """y · xʸ⁻¹; to the power 0 everything is 1, so there it is 0, even at x = 0."""
    if not hasattr(y, "dtype"):
        return g * (y * xp.power(x, y - 1)) if y else g * 0
    flat = (x == 0) * (y == 0)
    return g * (y * xp.power(x, xp.where(flat, 1.0, y) - 1))


def powf_y(xp: ArrayNamespace, g: Array, x: Array, y: Array, out: Array) -> Any:
    """xʸ · ln x; 0 raised to what is not negative stays as it is, so there it is 0."""
    base = xp.asarray(x, dtype=out.dtype)
    return g * (out * xp.log(xp.where((base == 0) * (y >= 0), 1.0, base)))


powf.grad(x=powf_x, y=powf_y)


@op("F>F", method=False, takes_half=True)
def half_power(xp: ArrayNamespace, x: Array) -> Array:
    """Raise to the power ½: out = √x, but ∞ for −∞ and 0 for −0.

    Shapes: x [...] -> [...]
    Why: that is what a power is by IEEE 754. NumPy takes the root, which is NaN and −0.
    """
    out = xp.sqrt(x)
    out += 0.0
    return xp.where(x == -np.inf, np.inf, out)


half_power.grad(x=lambda g, out: g * (0.5 / out))

half_power.examples(samples=[(positive(2, 3),)])

powf.examples(samples=[(positive(2, 3), normal(2, 3)), (positive(2, 3), normal(1, 3))])


@op("FF>F II>I", same_rank=True, reason=broadcast, takes_half=True)
def max_pair(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The larger of two elements, NaN where one of them is: out = x where x ≥ y, else y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.maximum(x, y)


max_pair.grad(
    x=lambda xp, g, x, y: xp.where(x >= y, g, xp.where(x != x, g, 0.0)),
    y=lambda xp, g, x, y: xp.where(x >= y, 0.0, xp.where(x != x, 0.0, g)),
)

max_pair.examples(samples=[(distinct(2, 3), unit(2, 3))])


@op("FF>F II>I", same_rank=True, reason=broadcast, takes_half=True)
def min_pair(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The smaller of two elements, NaN where one of them is: out = x where x ≤ y, else y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.minimum(x, y)


min_pair.grad(
    x=lambda xp, g, x, y: xp.where(x <= y, g, xp.where(x != x, g, 0.0)),
    y=lambda xp, g, x, y: xp.where(x <= y, 0.0, xp.where(x != x, 0.0, g)),
)

min_pair.examples(samples=[(distinct(2, 3), unit(2, 3))])


@op("F>F I>I", symbol="neg", takes_half=True)
def neg(xp: ArrayNamespace, x: Array) -> Array:
    """Change the sign: out = −x.

    Shapes: x [...] -> [...]
    """
    return xp.negative(x)


neg.grad(x=lambda g: -g)

neg.examples(samples=[(normal(2, 3),)])


@op("F>F I>I", symbol="abs", takes_half=True)
def abs(xp: ArrayNamespace, x: Array) -> Array:
    """The absolute value: out = |x|.

    Shapes: x [...] -> [...]
    """
    return xp.absolute(x)


abs.grad(x=lambda xp, g, x: g * xp.sign(x))

abs.examples(samples=[(distinct(2, 3),)])


@op("F>F I>I", takes_half=True)
def sign(xp: ArrayNamespace, x: Array) -> Array:
    """−1, 0 or 1, as x is below, at or above zero; NaN gives 0.

    Shapes: x [...] -> [...]
    """
    return xp.greater(x, 0).astype(x.dtype) - xp.less(x, 0).astype(x.dtype)


sign.grad(x=lambda g: g * 0)

sign.examples(samples=[(distinct(2, 3),)])


@op("F>F", takes_half=True)
def exp(xp: ArrayNamespace, x: Array) -> Array:
    """e to the power of each element: out = eˣ.

    Shapes: x [...] -> [...]
    """
    return xp.exp(x)


exp.grad(x=lambda g, out: g * out)

exp.examples(samples=[(normal(2, 3),)])


@op("F>F", takes_half=True)
def log(xp: ArrayNamespace, x: Array) -> Array:
    """The natural logarithm: out = ln x; log 0 = −inf, below zero NaN.

    Shapes: x [...] -> [...]
    """
    return xp.log(x)


log.grad(x=lambda g, x: g / x)

log.examples(samples=[(positive(2, 3),)])


@op("F>F", takes_half=True)
def log1p(xp: ArrayNamespace, x: Array) -> Array:
    """The logarithm of one plus x, exact near zero: out = ln(1 + x).

    Shapes: x [...] -> [...]
    """
    return xp.log1p(x)


log1p.grad(x=lambda g, x: g / (1 + x))

log1p.examples(samples=[(positive(2, 3),)])


@op("F>F", takes_half=True)
def sqrt(xp: ArrayNamespace, x: Array) -> Array:
    """The square root: out = √x; below zero NaN.

    Shapes: x [...] -> [...]
    """
    return xp.sqrt(x)


sqrt.grad(x=lambda g, out: g / (2 * out))

sqrt.examples(samples=[(positive(2, 3),)])


@op("F>F", takes_half=True)
def recip(xp: ArrayNamespace, x: Array) -> Array:
    """One divided by each element: out = 1 / x.

    Shapes: x [...] -> [...]
    """
    return xp.divide(1, x)


recip.grad(x=lambda g, out: -g * out * out)

recip.examples(samples=[(positive(2, 3),)])


@op("F>F", takes_half=True)
def cos(xp: ArrayNamespace, x: Array) -> Array:
    """The cosine: out = cos x.

    Shapes: x [...] -> [...]
    """
    return xp.cos(x)


cos.grad(x=lambda xp, g, x: -g * xp.sin(x))

cos.examples(samples=[(normal(2, 3),)])


@op("F>F", takes_half=True)
def sin(xp: ArrayNamespace, x: Array) -> Array:
    """The sine: out = sin x.

    Shapes: x [...] -> [...]
    """
    return xp.sin(x)


sin.grad(x=lambda xp, g, x: g * xp.cos(x))

sin.examples(samples=[(normal(2, 3),)])


@op("F>F", takes_half=True)
def tanh(xp: ArrayNamespace, x: Array) -> Array:
    """The hyperbolic tangent: out = (eˣ − e⁻ˣ) / (eˣ + e⁻ˣ).

    Shapes: x [...] -> [...]
    """
    return xp.tanh(x)


tanh.grad(x=lambda g, out: g * (1 - out * out))

tanh.examples(samples=[(normal(2, 3),)])


@op("F>F", takes_half=True)
def floor(xp: ArrayNamespace, x: Array) -> Array:
    """The largest whole number that is not above x: out = ⌊x⌋.

    Shapes: x [...] -> [...]
    """
    return xp.floor(x)


floor.grad(x=lambda g: g * 0)

floor.examples(samples=[(distinct(2, 3),)])


@op("F>F", takes_half=True)
def ceil(xp: ArrayNamespace, x: Array) -> Array:
    """The smallest whole number that is not below x: out = ⌈x⌉.

    Shapes: x [...] -> [...]
    """
    return xp.ceil(x)


ceil.grad(x=lambda g: g * 0)

ceil.examples(samples=[(distinct(2, 3),)])


@op("F>F", symbol="round", takes_half=True)
def round(xp: ArrayNamespace, x: Array) -> Array:
    """The nearest whole number, halves to even: 1.5 -> 2, 2.5 -> 2.

    Shapes: x [...] -> [...]
    """
    return xp.rint(x)


round.grad(x=lambda g: g * 0)

round.examples(samples=[(distinct(2, 3),)])


@op("F>F", takes_half=True)
def relu(xp: ArrayNamespace, x: Array) -> Array:
    """Keep what is above zero: out = max(x, 0).

    Shapes: x [...] -> [...]
    """
    return xp.maximum(x, 0)


relu.grad(x=lambda g, out: g * (out > 0))

relu.examples(samples=[(distinct(2, 3),)])


@op("F>F")
def sigmoid(xp: ArrayNamespace, x: Array) -> Array:
    """Squash to (0, 1): out = 1 / (1 + e⁻ˣ).

    Shapes: x [...] -> [...]
    Why: nothing is subtracted, so small results keep all their digits; of
    (1 + tanh x/2) / 2 none is left from x = −17 on. Where e⁻ˣ is ∞, 0 is right.
    """
    out = xp.negative(x)
    xp.exp(out, out=out)
    out += 1
    return xp.reciprocal(out, out=out)


sigmoid.grad(x=lambda g, out: g * out * (1 - out))

sigmoid.examples(samples=[(normal(2, 3),)])


def clamp_bounds(min: float | None, max: float | None) -> str | None:
    """Clamping needs at least one bound."""
    return "neither min nor max is given" if min is None and max is None else None


@op("F>F I>I", check=clamp_bounds, takes_half=True)
def clamp(
    xp: ArrayNamespace, x: Array, *, min: float | None = None, max: float | None = None
) -> Array:
    """Keep each element between two bounds: out = min(max(x, min), max).

    Shapes: x [...] -> [...]
    """
    return xp.clip(x, min, max)


def clamp_x(
    xp: ArrayNamespace, g: Array, x: Array, min: float | None, max: float | None
) -> Any:
    """The gradient passes where nothing was cut off; the bounds themselves pass.

    Why: 0 · ∞ would be NaN where it is cut off, so an infinite one is chosen, which
    takes longer than a product.
    """
    low = -math.inf if min is None else min
    high = math.inf if max is None else max
    inside = (x >= low) * (x <= high)
    if xp.__name__ == "numpy":
        out = g * inside
        if xp.isfinite(out.sum()):
            return out
    return xp.where(inside, g, 0.0)


clamp.grad(x=clamp_x)

clamp.examples(samples=[(distinct(2, 3), {"min": -1.0, "max": 0.7})])
