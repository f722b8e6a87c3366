"""Softmax: from scores to probabilities."""

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.reduce import NO_DIM, some_along, sum_along


@op("F>F", reason=some_along)
def softmax(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """Turn scores into probabilities that add up to 1: outᵢ = exp(xᵢ − m) / Σⱼ exp(xⱼ − m).

    Shapes: x [...] -> [...]
    Why: subtracting m = max x first keeps every exp ≤ 1 and changes nothing else.
    """
    out = x - xp.max(x, axis=dim, keepdims=True)
    xp.exp(out, out=out)
    return xp.divide(out, sum_along(xp, out, dim), out=out)


softmax.grad(
    x=lambda xp, g, out, dim: out * (g - xp.sum(g * out, axis=dim, keepdims=True))
)

softmax.examples(
    samples=[(normal(3, 5), {"dim": 1}), (normal(2, 3, 4), {"dim": 0})], rejects=NO_DIM
)


@op("F>F", reason=some_along)
def log_softmax(xp: ArrayNamespace, x: Array, *, dim: int) -> Array:
    """Log of softmax, without overflow: outᵢ = xᵢ − m − log Σⱼ exp(xⱼ − m), m = max x.

    Shapes: x [...] -> [...]
    Why: exp of a large number is inf; with the largest subtracted, exp ≤ 1.
    """
    out = x - xp.max(x, axis=dim, keepdims=True)
    total = sum_along(xp, xp.exp(out), dim)
    return xp.subtract(out, xp.log(total), out=out)


log_softmax.grad(
    x=lambda xp, g, out, dim: g - xp.exp(out) * xp.sum(g, axis=dim, keepdims=True)
)

log_softmax.examples(
    samples=[(normal(3, 5), {"dim": 1}), (normal(2, 3, 4), {"dim": 0})], rejects=NO_DIM
)
