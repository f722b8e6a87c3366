"""Comparisons: they give Bool and carry no gradient."""

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import distinct, normal, op, truths
from burnbook.ops.elementwise import broadcast

PAIRS = [(normal(2, 3), normal(1, 3))]
BAD = [(normal(2, 3), normal(2, 4))]


@op(
    "FF>B II>B BB>B",
    symbol="==",
    same_rank=True,
    reason=broadcast,
    samples=[*PAIRS, (truths(2, 3), truths(2, 3))],
    rejects=BAD,
)
def equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where two elements are equal; NaN equals nothing.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.equal(x, y)


@op(
    "FF>B II>B BB>B",
    symbol="!=",
    same_rank=True,
    reason=broadcast,
    samples=PAIRS,
    rejects=BAD,
)
def not_equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where two elements differ.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.not_equal(x, y)


@op(
    "FF>B II>B",
    symbol=">",
    same_rank=True,
    reason=broadcast,
    samples=PAIRS,
    rejects=BAD,
)
def greater(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is above y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.greater(x, y)


@op(
    "FF>B II>B",
    symbol=">=",
    same_rank=True,
    reason=broadcast,
    samples=PAIRS,
    rejects=BAD,
)
def greater_equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is not below y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.greater_equal(x, y)


@op(
    "FF>B II>B",
    symbol="<",
    same_rank=True,
    reason=broadcast,
    samples=PAIRS,
    rejects=BAD,
)
def lower(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is below y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.less(x, y)


@op(
    "FF>B II>B",
    symbol="<=",
    same_rank=True,
    reason=broadcast,
    samples=PAIRS,
    rejects=BAD,
)
def lower_equal(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where x is not above y.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.less_equal(x, y)


@op("F>B I>B", samples=[(distinct(2, 3),)])
def is_nan(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is not a number.

    Shapes: x [...] -> [...]
    """
    return xp.not_equal(x, x)


@op("F>B", samples=[(distinct(2, 3),)])
def is_inf(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is +∞ or −∞.

    Shapes: x [...] -> [...]
    """
    return xp.isinf(x)


@op("F>B", samples=[(distinct(2, 3),)])
def is_finite(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is neither infinite nor NaN.

    Shapes: x [...] -> [...]
    """
    return xp.isfinite(x)


@op("B>B", symbol="~", samples=[(truths(2, 3),)])
def bool_not(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is False.

    Shapes: x [...] -> [...]
    """
    return xp.logical_not(x)


@op(
    "BB>B",
    symbol="&",
    same_rank=True,
    reason=broadcast,
    samples=[(truths(2, 3), truths(1, 3))],
)
def bool_and(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where both elements are.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.logical_and(x, y)


@op(
    "BB>B",
    symbol="|",
    same_rank=True,
    reason=broadcast,
    samples=[(truths(2, 3), truths(1, 3))],
)
def bool_or(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where at least one element is.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.logical_or(x, y)


@op(
    "BB>B",
    symbol="^",
    same_rank=True,
    reason=broadcast,
    samples=[(truths(2, 3), truths(1, 3))],
)
def bool_xor(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """True where exactly one element is.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.logical_xor(x, y)


@op("F>B I>B B>B", samples=[(distinct(2, 3),)], method=False)
def to_bool(xp: ArrayNamespace, x: Array) -> Array:
    """True where an element is not zero; NaN is True.

    Shapes: x [...] -> [...]
    """
    return xp.not_equal(x, 0)
