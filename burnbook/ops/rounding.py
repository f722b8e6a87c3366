"""Cutting fractions off, and what is left of a division."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import distinct, normal, op, positive
from burnbook.ops.elementwise import broadcast


@op("F>F", takes_half=True)
def trunc(xp: ArrayNamespace, x: Array) -> Array:
    """Cut the fraction off, toward zero: −1.7 -> −1.

    Shapes: x [...] -> [...]
    """
    return xp.trunc(x)


trunc.grad(x=lambda g: g * 0)

trunc.examples(samples=[(distinct(2, 3),)])


@op("FF>F II>I", same_rank=True, reason=broadcast, takes_half=True)
def fmod(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The rest of a division, with the sign of x: out = x − y · trunc(x / y).

    Shapes: x [...], y [...] -> [...]
    """
    whole = x.dtype.kind != "f" if hasattr(x, "dtype") else y.dtype.kind != "f"
    if whole and xp.any(xp.equal(y, 0)):
        raise ZeroDivisionError("fmod: an Int tensor is divided by zero")
    return xp.fmod(x, y)


fmod.grad(x=lambda g: g, y=lambda xp, g, x, y, out: -g * xp.rint((x - out) / y))

fmod.examples(
    samples=[(distinct(2, 3), positive(1, 3))], rejects=[(normal(2, 3), normal(2, 4))]
)


@op("F>F I>I", takes_half=True)
def square(xp: ArrayNamespace, x: Array) -> Array:
    """Multiply each element by itself: out = x².

    Shapes: x [...] -> [...]
    """
    return xp.square(x)


square.grad(x=lambda g, x: g * (2 * x))

square.examples(samples=[(normal(2, 3),)])


@op("F>F I>I", method=False)
def power(xp: ArrayNamespace, x: Array, *, exponent: int) -> Array:
    """Raise to a whole power ≥ 1 by multiplying: out = xⁿ.

    Shapes: x [...] -> [...]
    Why: a few products are far quicker than a logarithm and an exponential.
    """
    out: Any = None
    factor = x
    while exponent:
        if exponent % 2:
            out = factor if out is None else out * factor
        exponent //= 2
        factor = factor * factor if exponent else factor
    return out


def power_x(xp: ArrayNamespace, g: Array, x: Array, exponent: int) -> Any:
    """n xⁿ⁻¹."""
    return g * (power(xp, x, exponent=exponent - 1) * exponent) if exponent > 1 else g


power.grad(x=power_x)

power.examples(samples=[(normal(2, 3), {"exponent": 5})])
