"""The shortest decimals of floats, as Rust writes them.

Of two decimals that are equally short and equally near, Rust writes the one farther
from zero, Python and NumPy the even one: 217900.125 in single precision is 217900.13 in
Rust and 217900.12 in NumPy.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    Number = np.floating | float


def farther_decimal(number: Number) -> Decimal | None:
    """What Rust writes where two shortest decimals are equally near; else None.

    Example:
        >>> farther_decimal(np.float32(217900.125)), farther_decimal(np.float32(0.1))
        (Decimal('217900.13'), None)
    """
    shortest = np.format_float_scientific(number, unique=True, trim="-")
    sign, digits, power = Decimal(str(shortest)).as_tuple()
    if not isinstance(power, int) or digits[-1] % 2:
        return None  # NumPy took it already, or NaN or an infinity
    whole, parts = abs(float(number)).as_integer_ratio()
    middle = 2 * int("".join(map(str, digits))) + 1  # in halves of the last digit
    scale = 10 ** abs(power)
    number_scaled = 2 * whole * (scale if power < 0 else 1)
    middle_scaled = middle * parts * (1 if power < 0 else scale)
    if number_scaled != middle_scaled:
        return None
    return Decimal((sign, (*digits[:-1], digits[-1] + 1), power))


def positional_text(number: Number) -> str:
    """A finite number without an exponent and without ".0".

    Example:
        >>> positional_text(np.float32(217900.125)), positional_text(1e-7)
        ('217900.13', '0.0000001')
    """
    tied = farther_decimal(number)
    if tied is not None:
        return format(tied, "f")
    return str(np.format_float_positional(number, unique=True, trim="-"))


def scientific_text(number: Number) -> str:
    """A finite number as digits and a power of ten, the exponent without padding.

    Example:
        >>> scientific_text(1e16), scientific_text(2.5e-8)
        ('1e16', '2.5e-8')
    """
    tied = farther_decimal(number)
    if tied is None:
        text = np.format_float_scientific(number, unique=True, trim="-", exp_digits=1)
        return str(text).replace("e+", "e")
    return format(tied.normalize(), "e").replace("e+", "e")
