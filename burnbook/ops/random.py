"""Random numbers from a key, the same on every backend.

Philox4x64-10 turns a key and a counter into 256 bits by ten rounds of multiplying and
mixing. NumPy's own generator runs it on the CPU; elsewhere the same ten rounds are
written out below. Uniform and Bernoulli numbers are equal bit for bit everywhere.
"""

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal as sample, op

Key = tuple[int, int]

CHANCES = 1 << 16  # dropout decides by 16 random bits


@op(">F")
def uniform(
    xp: ArrayNamespace,
    *,
    shape: Shape,
    low: float = 0.0,
    high: float = 1.0,
    key: Key,
    dtype: np.dtype[Any],
) -> Array:
    """Draw every value with equal chance: out = low + (high − low) u, u in [0, 1).

    Shapes: -> shape
    """
    dtype = np.dtype(dtype)
    fraction = random_fraction(xp, math.prod(shape), key, dtype)
    if high - low <= float(np.finfo(dtype).max):
        scaled = fraction * dtype.type(high - low) + dtype.type(low)
    else:  # the type has no number for the width, but for half of it
        scaled = fraction * dtype.type(high / 2 - low / 2) + dtype.type(low / 2)
        scaled = scaled * dtype.type(2)
    return scaled.reshape(shape)


uniform.examples(samples=[({"shape": (2, 3), "key": (1, 2), "dtype": np.float32},)])


@op(">F")
def bernoulli(
    xp: ArrayNamespace,
    *,
    shape: Shape,
    prob: float = 0.5,
    key: Key,
    dtype: np.dtype[Any],
) -> Array:
    """Draw 1 with chance prob, else 0.

    Shapes: -> shape
    """
    words = random_bits(xp, math.prod(shape), key, np.uint32)
    limit = round(prob * (1 << 32))
    hit = words < np.uint64(limit) if limit >> 32 else words < np.uint32(limit)
    return hit.astype(dtype).reshape(shape)


bernoulli.examples(samples=[({"shape": (2, 3), "key": (1, 2), "dtype": np.float32},)])


@op(">F")
def normal(
    xp: ArrayNamespace,
    *,
    shape: Shape,
    mean: float = 0.0,
    std: float = 1.0,
    key: Key,
    dtype: np.dtype[Any],
) -> Array:
    """Draw normal numbers: out = mean + std √(−2 ln u) cos 2πv, u, v uniform.

    Shapes: -> shape
    Why: each pair (u, v) gives two values, one with cos and one with sin.
    """
    count = math.prod(shape)
    half = (count + 1) // 2
    u, v = random_fraction(xp, 2 * half, key, np.dtype(np.float64)).reshape(2, half)
    radius = xp.sqrt(-2.0 * xp.log(1.0 - u)) * std
    angle = v * (2.0 * math.pi)
    both = xp.concatenate([radius * xp.cos(angle), radius * xp.sin(angle)])
    return (both[:count] + mean).astype(dtype).reshape(shape)


normal.examples(samples=[({"shape": (2, 3), "key": (1, 2), "dtype": np.float32},)])


@op(">F", method=False)
def orthogonal(
    xp: ArrayNamespace,
    *,
    shape: Shape,
    gain: float,
    key: Key,
    dtype: np.dtype[Any],
) -> Array:
    """Draw rows that stand at right angles and have length gain: out outᵀ = gain² I.

    Shapes: -> shape
    Why: Q of a random matrix Q R, with signs so that every rotation is as likely. All
    dims after the first are one row; with more rows than columns, columns do it.
    """
    rows = shape[0]
    cols = math.prod(shape[1:])
    tall = (max(rows, cols), min(rows, cols))
    wide = np.dtype(np.float64)
    q, r = xp.linalg.qr(normal.forward(xp, shape=tall, key=key, dtype=wide))
    q = q * xp.where(xp.diagonal(r) < 0, -gain, gain)
    return (q.T if rows < cols else q).reshape(shape).astype(dtype)


orthogonal.examples(
    samples=[({"shape": (4, 2, 3), "gain": 2.0, "key": (1, 2), "dtype": np.float32},)]
)


@op("F>F")
def dropout(xp: ArrayNamespace, x: Array, *, prob: float, key: Key) -> Array:
    """Set values to zero with chance prob and scale the rest: out = x m / (1 − prob).

    Shapes: x [...] -> [...]
    Why: the mask m follows from the key, so the gradient draws it again instead of
    storing it, and is the same op.
    """
    threshold, scale = dropout_limits(prob)
    if threshold == CHANCES:
        return xp.zeros_like(x)
    bits = random_bits(xp, math.prod(x.shape), key, np.uint16)
    mask = (bits >= np.uint16(threshold)).reshape(x.shape)
    factor = xp.multiply(mask, x.dtype.type(scale))
    return xp.multiply(x, factor, out=factor)


dropout.grad(x=dropout)

dropout.examples(samples=[(sample(3, 5), {"prob": 0.25, "key": (3, 4)})])


def dropout_limits(prob: float) -> tuple[int, float]:
    """Below which 16-bit number a value is dropped, and the factor for the others."""
    return round(prob * CHANCES), 0.0 if prob == 1.0 else 1.0 / (1.0 - prob)


def random_fraction(xp: ArrayNamespace, count: int, key: Key, dtype: np.dtype) -> Any:
    """Uniform numbers in [0, 1): as many random bits as the type can hold."""
    if dtype == np.float64:
        words = random_bits(xp, count, key, np.uint64) >> np.uint64(11)
        return words * np.float64(2.0**-53)
    words = random_bits(xp, count, key, np.uint32) >> np.uint32(8)
    if dtype == np.float16:
        return (words >> np.uint32(13)).astype(dtype) * dtype.type(2.0**-11)
    return words.astype(np.float32) * np.float32(2.0**-24)


def random_bits(xp: ArrayNamespace, count: int, key: Key, dtype: DTypeLike) -> Any:
    """The first `count` words of a key's sequence, as unsigned integers of a type."""
    size = np.dtype(dtype).itemsize
    words = -(-count * size // 8)
    if xp.__name__ == "numpy":
        raw = np.atleast_1d(_generator(key).random_raw(words))
    elif hasattr(xp, "philox"):  # a backend with a kernel for it
        raw = xp.philox(words, key)
    else:
        raw = philox(xp, words, key)
    return raw.view(dtype)[:count]


def _generator(key: Key) -> np.random.Philox:
    """NumPy's Philox at the start of a key's sequence, one object for each thread.

    Why: making one takes several times as long as drawing a few numbers.
    """
    made = getattr(_own, "philox", None)
    if made is None:
        made = _own.philox = np.random.Philox(key=0)
    start: Any = {"counter": _ZEROS, "key": np.array(key, dtype=np.uint64)}
    made.state = {
        "bit_generator": "Philox",
        "state": start,
        "buffer": _ZEROS,
        "buffer_pos": 4,
        "has_uint32": 0,
        "uinteger": 0,
    }
    return made


def philox(xp: ArrayNamespace, count: int, key: Key) -> Any:
    """The generator itself, as array code: ten rounds over a counter 1, 2, 3, …

    Shapes: -> [count] of 64-bit words, four for each value of the counter
    """
    counter = xp.arange(1, -(-count // 4) + 1, dtype=np.uint64)
    zero = xp.zeros_like(counter)
    a, b, c, d = counter, zero, zero, zero
    for low, high in round_keys(key):
        a_high, a_low = _wide_product(_MULTIPLIERS[0], a)
        c_high, c_low = _wide_product(_MULTIPLIERS[1], c)
        a, b, c, d = c_high ^ b ^ low, c_low, a_high ^ d ^ high, a_low
    return xp.stack([a, b, c, d], axis=1).reshape(-1)[:count]


def round_keys(key: Key) -> tuple[tuple[np.uint64, np.uint64], ...]:
    """The ten keys of the ten rounds: each adds a fixed odd step to the last."""
    steps = (0x9E3779B97F4A7C15, 0xBB67AE8584CAA73B)
    return tuple(
        (
            np.uint64((key[0] + i * steps[0]) & _FULL),
            np.uint64((key[1] + i * steps[1]) & _FULL),
        )
        for i in range(10)
    )


def _wide_product(factor: int, x: Array) -> tuple[Any, Any]:
    """The high and low 64 bits of factor · x, from products of 32-bit halves."""
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    f_high, f_low = np.uint64(factor >> 32), np.uint64(factor & 0xFFFFFFFF)
    x_high, x_low = x >> half, x & mask
    middle = f_high * x_low + (f_low * x_low >> half)
    carry = (middle & mask) + f_low * x_high
    return f_high * x_high + (middle >> half) + (carry >> half), np.uint64(factor) * x


_FULL = (1 << 64) - 1
_ZEROS = np.zeros(4, dtype=np.uint64)
_own = threading.local()  # of each thread: its generator
_MULTIPLIERS = (0xD2E7470EE14C6C93, 0xCA5A826395121157)
