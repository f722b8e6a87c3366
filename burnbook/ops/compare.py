"""Comparisons: they give Bool and carry no gradient."""

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import distinct, normal, op, truths
from burnbook.ops.elementwise import broadcast

PAIRS = [(normal(2, 3), normal(1, 3))]
BAD = [(normal(2, 3), normal(2, 4))]


@op("FF>B II>B BB>B", symbol="==", same_rank=True, reason=broadcast, takes_half=True)
def equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where two elements are equal; NaN equals nothing.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.equal(x, y)


equal.examples(samples=[*PAIRS, (truths(2, 3), truths(2, 3))], rejects=BAD)


@op("FF>B II>B BB>B", symbol="!=", same_rank=True, reason=broadcast, takes_half=True)
def not_equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where two elements differ.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.not_equal(x, y)


not_equal.examples(samples=PAIRS, rejects=BAD)


@op("FF>B II>B", symbol=">", same_rank=True, reason=broadcast, takes_half=True)
def greater(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is above y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.greater(x, y)


greater.examples(samples=PAIRS, rejects=BAD)


@op("FF>B II>B", symbol=">=", same_rank=True, reason=broadcast, takes_half=True)
def greater_equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is not below y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.greater_equal(x, y)


greater_equal.examples(samples=PAIRS, rejects=BAD)


@op("FF>B II>B", symbol="<", same_rank=True, reason=broadcast, takes_half=True)
def lower(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is below y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.less(x, y)


lower.examples(samples=PAIRS, rejects=BAD)


@op("FF>B II>B", symbol="<=", same_rank=True, reason=broadcast, takes_half=True)
def lower_equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is not above y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.less_equal(x, y)


lower_equal.examples(samples=PAIRS, rejects=BAD)


@op("F>B I>B", takes_half=True)
def is_nan(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is not a number.

    Shapes: x [...] -> [...]
    """
    return xp.not_equal(x, x)


is_nan.examples(samples=[(distinct(2, 3),)])


@op("F>B", takes_half=True)
def is_inf(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is +∞ or −∞.

    Shapes: x [...] -> [...]
    """
    return xp.isinf(x)


is_inf.examples(samples=[(distinct(2, 3),)])


@op("F>B", takes_half=True)
def is_finite(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is neither infinite nor NaN.

    Shapes: x [...] -> [...]
    """
    return xp.isfinite(x)


is_finite.examples(samples=[(distinct(2, 3),)])


@op("B>B", symbol="~")
def bool_not(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is False.

    Shapes: x [...] -> [...]
    """
    return xp.logical_not(x)


bool_not.examples(samples=[(truths(2, 3),)])


@op("BB>B", symbol="&", same_rank=True, reason=broadcast)
def bool_and(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where both elements are.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.logical_and(x, y)


bool_and.examples(samples=[(truths(2, 3), truths(1, 3))])


@op("BB>B", symbol="|", same_rank=True, reason=broadcast)
def bool_or(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where at least one element is.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.logical_or(x, y)


bool_or.examples(samples=[(truths(2, 3), truths(1, 3))])


@op("BB>B", symbol="^", same_rank=True, reason=broadcast)
def bool_xor(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where exactly one element is.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.logical_xor(x, y)


bool_xor.examples(samples=[(truths(2, 3), truths(1, 3))])


@op("F>B I>B B>B", method=False, takes_half=True)
def to_bool(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is not zero; NaN is True.

    Shapes: x [...] -> [...]
    """
    return xp.not_equal(x, 0)


to_bool.examples(samples=[(distinct(2, 3),)])
