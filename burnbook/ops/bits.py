"""Whole numbers as rows of bits."""

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import indices, op
from burnbook.ops.elementwise import broadcast

BITS = [(indices(64, 2, 3), indices(8, 1, 3))]
BAD = [(indices(8, 2, 3), indices(8, 2, 4))]


@op("II>I", same_rank=True, reason=broadcast)
def bitwise_and(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The bits that both numbers have: 6 and 3 give 2.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.bitwise_and(x, y)


bitwise_and.examples(samples=BITS, rejects=BAD)


@op("II>I", same_rank=True, reason=broadcast)
def bitwise_or(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The bits that at least one number has: 6 or 3 give 7.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.bitwise_or(x, y)


bitwise_or.examples(samples=BITS, rejects=BAD)


@op("II>I", same_rank=True, reason=broadcast)
def bitwise_xor(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """The bits that exactly one number has: 6 and 3 give 5.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.bitwise_xor(x, y)


bitwise_xor.examples(samples=BITS, rejects=BAD)


@op("I>I")
def bitwise_not(xp: ArrayNamespace, x: Array) -> Array:
    """Invert every bit: out = −x − 1.

    Shapes: x [...] -> [...]
    """
    return xp.invert(x)


bitwise_not.examples(samples=[(indices(64, 2, 3),)])


@op("II>I", same_rank=True, reason=broadcast)
def bitwise_left_shift(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Move the bits up by y places: out = x · 2ʸ.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.left_shift(x, y)


bitwise_left_shift.examples(samples=BITS, rejects=BAD)


@op("II>I", same_rank=True, reason=broadcast)
def bitwise_right_shift(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Move the bits down by y places: out = ⌊x / 2ʸ⌋.

    Shapes: x [...], y [...] -> [...]
    """
    return xp.right_shift(x, y)


bitwise_right_shift.examples(samples=BITS, rejects=BAD)
