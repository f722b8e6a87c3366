"""Numbers written as Burn's log files and screens write them.

A metric log is read by Burn and by us, so its text must be the same to the digit:
the shortest decimal that gives the number back, never an exponent, no ".0" at the end.
"""

from __future__ import annotations

import math

from burnbook.core.decimals import positional_text


def plain_float(value: float) -> str:
    """Write a number with the fewest digits that give it back.

    Example:
        >>> plain_float(100.0), plain_float(1e-7), plain_float(95.83333333333334)
        ('100', '0.0000001', '95.83333333333334')
        >>> plain_float(float("nan")), plain_float(float("inf"))
        ('NaN', 'inf')
    """
    if math.isnan(value):
        return "NaN"
    return positional_text(value) if math.isfinite(value) else repr(float(value))


def fixed_float(value: float, precision: int) -> str:
    """Write a number with a fixed number of decimals.

    Example:
        >>> fixed_float(83.2871, 2)
        '83.29'
    """
    return "NaN" if math.isnan(value) else f"{value:.{precision}f}"


def scientific_float(value: float, precision: int) -> str:
    """Write a number as digits and a power of ten, the exponent without padding.

    Example:
        >>> scientific_float(0.05, 2), scientific_float(0.0, 2)
        ('5.00e-2', '0.00e0')
    """
    if not math.isfinite(value):
        return plain_float(value)
    mantissa, exponent = f"{value:.{precision}e}".split("e")
    return f"{mantissa}e{int(exponent)}"


def format_float(value: float, precision: int) -> str:
    """Write a metric for the screen: small numbers as powers of ten, others fixed.

    Example:
        >>> format_float(0.61243, 2), format_float(0.0123, 2)
        ('0.61', '1.23e-2')
    """
    if value <= 0.1 ** (precision - 1):
        return scientific_float(value, precision)
    return fixed_float(value, precision)


def signed_float(value: float, precision: int) -> str:
    """The same with a sign: −1.66 is as large a number as 1.66, and is written so.

    Why: Burn's format asks whether a value is below a tenth, which every negative one
    is; its metrics have none.

    Example:
        >>> signed_float(-1.661, 2), signed_float(-0.0123, 2), signed_float(1.661, 2)
        ('-1.66', '-1.23e-2', '1.66')
    """
    if value < 0:
        return "-" + format_float(-value, precision)
    return format_float(value, precision)


def number_text(value: float, precision: int | None = None) -> str:
    """A mean as people read it: two or three decimals, or a power of ten.

    precision: how many decimals, where a metric says it.

    Example:
        >>> number_text(97.0104), number_text(0.0594), number_text(0.00123)
        ('97.01', '0.059', '1.230e-3')
        >>> number_text(-1.661), number_text(-97.0104)
        ('-1.661', '-97.01')
        >>> number_text(0.61243, 4)
        '0.6124'
    """
    if precision is not None:
        return signed_float(value, precision)
    return signed_float(value, 2 if abs(value) >= 10 else 3)
