"""From numbers to codes of a few bits, and back.

A code is a whole number of 8, 4 or 2 bits that stands for a multiple of a scale, or the
bits of a float of 8 or 4 bits. Codes are held as i8, one each, or packed into words.
"""

from typing import Any, NamedTuple

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import indices, normal, op, positive


class CodeType(NamedTuple):
    """What codes of one type can be: how many bits, between which numbers.

    exponent: how many bits a float's exponent has; 0 for whole numbers.
    """

    bits: int
    low: float
    high: float
    exponent: int = 0


CODE_TYPES = {
    "Q8F": CodeType(8, -128, 127),
    "Q4F": CodeType(4, -8, 7),
    "Q2F": CodeType(2, -2, 1),
    "Q8S": CodeType(8, -127, 127),
    "Q4S": CodeType(4, -7, 7),
    "Q2S": CodeType(2, -1, 1),
    "E4M3": CodeType(8, -448, 448, 4),
    "E5M2": CodeType(8, -57344, 57344, 5),
    "E2M1": CodeType(4, -6, 6, 2),
}


def _floats(name: str) -> np.ndarray:
    """The numbers ≥ 0 of a small float type, in the order of their bits."""
    bits, _, high, exponent = CODE_TYPES[name]
    mantissa = bits - 1 - exponent
    code = np.arange(2 ** (bits - 1))
    power, part = code >> mantissa, code & (2**mantissa - 1)
    one = np.where(power > 0, 1.0, 0.0)  # below the first power there is no leading 1
    shift = np.maximum(power, 1) - (2 ** (exponent - 1) - 1)
    values = (one + part / 2**mantissa) * 2.0**shift
    return values[values <= high]


FLOATS = {name: _floats(name) for name, kind in CODE_TYPES.items() if kind.exponent}

HALF = {"value": "E2M1"}


@op("FF>I FFI>I", method=False)
def to_codes(
    xp: ArrayNamespace,
    x: Array,
    scale: Array,
    offset: Array | None = None,
    *,
    value: str,
) -> Array:
    """The code of each element: out = round(x / scale + offset), kept inside its range.

    Shapes: x [...], scale [...], offset [...] -> [...]
    Why: halves go away from zero, as Rust's `round` does; NumPy's would go to even.
    What is added is just below a half, or 0.49999997 + 0.5 would round up to 1.
    """
    kind = CODE_TYPES[value]
    ratio = x / scale
    if kind.exponent:
        return _to_bits(xp, ratio, value)
    if offset is not None:
        ratio += offset.astype(ratio.dtype)
    below_half = np.nextafter(ratio.dtype.type(0.5), ratio.dtype.type(0))
    ratio += xp.copysign(below_half, ratio)  # then cutting off is rounding
    return xp.clip(ratio, kind.low, kind.high).astype(xp.int8)


to_codes.examples(
    samples=[
        (normal(2, 3), positive(2, 1), {"value": "Q4S"}),
        (normal(2, 3), positive(1, 1), indices(9, 1, 1), {"value": "Q8F"}),
        (normal(3, 5), positive(3, 1), HALF),
    ]
)


def _to_bits(xp: ArrayNamespace, x: Array, value: str) -> Any:
    """The bits of the nearest small float; of two equally near ones, the even."""
    known = FLOATS[value]
    middles = xp.asarray((known[:-1] + known[1:]) / 2, dtype=x.dtype)
    size = xp.absolute(x)
    low = xp.searchsorted(middles, size, side="left")
    tie = xp.searchsorted(middles, size, side="right") != low
    code = low + (tie & (low % 2 == 1))
    sign = xp.signbit(x) * (1 << (CODE_TYPES[value].bits - 1))
    return (code + sign).astype(xp.uint8).view(xp.int8)


@op("IF>F IFI>F", method=False)
def from_codes(
    xp: ArrayNamespace,
    codes: Array,
    scale: Array,
    offset: Array | None = None,
    *,
    value: str,
) -> Array:
    """What each code stands for: out = scale · (code − offset).

    Shapes: codes [...], scale [...], offset [...] -> [...]
    """
    kind = CODE_TYPES[value]
    if kind.exponent:
        known = FLOATS[value]
        above = np.full(2 ** (kind.bits - 1) - len(known), np.nan)  # no number's bits
        half = np.concatenate([known, above])
        table = xp.asarray(np.concatenate([half, -half]), dtype=scale.dtype)
        return scale * table[codes.astype(xp.uint8)]
    numbers = codes.astype(scale.dtype)
    if offset is not None:
        numbers -= offset.astype(scale.dtype)  # whole numbers, so exact
    numbers *= scale
    return numbers


from_codes.examples(
    samples=[
        (indices(7, 2, 3), positive(2, 1), {"value": "Q4S"}),
        (indices(120, 2, 3), positive(1, 1), indices(9, 1, 1), {"value": "Q8F"}),
        (indices(16, 3, 5), positive(3, 1), HALF),
    ]
)


WORDS = {8: "uint8", 32: "uint32"}


@op("I>I", method=False)
def pack(xp: ArrayNamespace, codes: Array, *, bits: int, word: int) -> Array:
    """Put several codes of a row into one word, the first into its lowest bits.

    Shapes: codes [..., n] -> [..., m]
    """
    dtype = getattr(xp, WORDS[word])
    size, each = codes.shape[-1], word // bits
    count = -(-size // each)
    rest = xp.zeros((*codes.shape[:-1], count * each - size), dtype=codes.dtype)
    full = xp.concatenate([codes, rest], axis=-1) if rest.size else codes
    fields = full.reshape((*codes.shape[:-1], count, each))
    words = xp.zeros((*codes.shape[:-1], count), dtype=dtype)
    for place in range(each):
        part = fields[..., place].astype(dtype) & (2**bits - 1)
        words |= part << dtype(bits * place)
    return words


pack.examples(
    samples=[
        (indices(4, 2, 19), {"bits": 2, "word": 32}),
        (indices(16, 3), {"bits": 4, "word": 8}),
    ]
)


@op("I>I", method=False)
def unpack(
    xp: ArrayNamespace, words: Any, *, bits: int, word: int, size: int, signed: bool
) -> Array:
    """The codes inside words, which `pack` put there; `size` of them in each row.

    Shapes: words [..., m] -> [..., n]
    """
    dtype = getattr(xp, WORDS[word])
    words, each = words.astype(dtype), word // bits
    fields = xp.empty((*words.shape, each), dtype=xp.int8)
    half = 1 << (bits - 1) if signed else 0
    for place in range(each):
        part = (words >> dtype(bits * place)) & (2**bits - 1)
        fields[..., place] = (part.astype(xp.int16) ^ half) - half
    return fields.reshape((*words.shape[:-1], -1))[..., :size]


unpack.examples(
    samples=[
        (indices(2**31, 2, 2), {"bits": 2, "word": 32, "size": 19, "signed": True}),
        (indices(256, 2), {"bits": 4, "word": 8, "size": 3, "signed": False}),
    ]
)
