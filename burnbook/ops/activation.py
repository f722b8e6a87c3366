"""The bent functions between layers: gelu, silu …"""

import math
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import distinct, normal, op
from burnbook.ops.blocked import blockwise
from burnbook.ops.elementwise import sigmoid
from burnbook.ops.erf import erf

SMOOTH = [(normal(2, 3),)]


@op("F>F", method=False, through=blockwise)
def gelu(xp: ArrayNamespace, x: Array) -> Array:
    """Multiply x by the normal distribution function at x: out = x (1 + erf(x/√2)) / 2.

    Shapes: x [...] -> [...]
    """
    out = erf(xp, x * math.sqrt(0.5))
    out += 1
    out *= 0.5
    out *= x
    return out


def gelu_x(xp: ArrayNamespace, g: Array, x: Array) -> Any:
    """Φ(x) + x φ(x), the normal distribution and its density."""
    below = 0.5 * (1 + erf(xp, x * math.sqrt(0.5)))
    return g * (below + x * xp.exp(-0.5 * x * x) * (1 / math.sqrt(2 * math.pi)))


gelu.grad(x=blockwise(gelu_x))

gelu.examples(samples=SMOOTH)


@op("F>F", method=False, through=blockwise)
def silu(xp: ArrayNamespace, x: Array) -> Array:
    """x, gated by its own sigmoid: out = x σ(x).

    Shapes: x [...] -> [...]
    """
    out = sigmoid(xp, x)
    out *= x
    return out


def silu_x(xp: ArrayNamespace, g: Array, x: Array) -> Any:
    """σ(x) (1 + x (1 − σ(x)))."""
    gate = sigmoid(xp, x)
    return g * (gate * (1 + x * (1 - gate)))


silu.grad(x=blockwise(silu_x))

silu.examples(samples=SMOOTH)


@op("F>F", method=False)
def softplus(xp: ArrayNamespace, x: Array, *, beta: float) -> Array:
    """A smooth relu: out = ln(1 + e^(βx)) / β, without overflow.

    Shapes: x [...] -> [...]
    """
    scaled = x * beta
    out = rounded_off(xp, scaled)
    out += xp.maximum(scaled, 0)
    out *= 1 / beta
    return out


def rounded_off(xp: ArrayNamespace, x: Array) -> Any:
    """ln(1 + e^−|x|): how far a rounded corner lies above a sharp one."""
    out = xp.absolute(x)
    xp.negative(out, out=out)
    xp.exp(out, out=out)
    return xp.log1p(out, out=out)


softplus.grad(x=lambda xp, g, x, beta: g * sigmoid(xp, x * beta))

softplus.examples(samples=[(normal(2, 3), {"beta": 2.0})])


@op("F>F", method=False)
def log_sigmoid(xp: ArrayNamespace, x: Array) -> Array:
    """The logarithm of the sigmoid: out = min(x, 0) − ln(1 + e^−|x|).

    Shapes: x [...] -> [...]
    """
    return xp.minimum(x, 0) - rounded_off(xp, x)


log_sigmoid.grad(x=lambda xp, g, x: g * sigmoid(xp, -x))

log_sigmoid.examples(samples=SMOOTH)


@op("F>F", method=False, through=blockwise)
def mish(xp: ArrayNamespace, x: Array) -> Array:
    """x, gated by the tanh of its softplus: out = x tanh(ln(1 + eˣ)).

    Shapes: x [...] -> [...]
    """
    out = softplus(xp, x, beta=1.0)
    xp.tanh(out, out=out)
    out *= x
    return out


def mish_x(xp: ArrayNamespace, g: Array, x: Array) -> Any:
    """t + x σ(x) (1 − t²), t = tanh(softplus(x))."""
    gate = xp.tanh(softplus(xp, x, beta=1.0))
    return g * (gate + x * sigmoid(xp, x) * (1 - gate * gate))


mish.grad(x=blockwise(mish_x))

mish.examples(samples=SMOOTH)


@op("F>F", method=False)
def leaky_relu(xp: ArrayNamespace, x: Array, *, negative_slope: float) -> Array:
    """Flatten what is below zero: out = x from zero on, slope · x below.

    Shapes: x [...] -> [...]
    """
    if 0 < x.dtype.type(negative_slope) <= 1:  # one pass less, and the same; 0 · ∞ not
        return xp.maximum(x, x * negative_slope)
    return xp.where(x < 0, x * negative_slope, x)


leaky_relu.grad(
    x=lambda xp, g, x, negative_slope: xp.where(x < 0, g * negative_slope, g)
)

leaky_relu.examples(samples=[(distinct(2, 3), {"negative_slope": 0.1})])


@op("F>F", method=False)
def elu(xp: ArrayNamespace, x: Array, *, alpha: float) -> Array:
    """Bend what is below zero toward −α: out = x above zero, α (eˣ − 1) from it down.

    Shapes: x [...] -> [...]
    """
    low = xp.minimum(x, 0)
    xp.expm1(low, out=low)
    low *= alpha
    return xp.where(x > 0, x, low)


elu.grad(
    x=lambda xp, g, x, alpha: xp.where(x > 0, g, g * (xp.exp(xp.minimum(x, 0)) * alpha))
)

elu.examples(samples=[(distinct(2, 3), {"alpha": 1.5})])
