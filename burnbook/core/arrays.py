"""What formulas are written with: arrays, and the module of functions for them."""

from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
"""An array of NumPy, or one of CuPy, whose methods are the same."""

Shape = tuple[int, ...]


def not_finite(array: Array) -> str:
    """How many elements are NaN or infinite, in words; "" when there are none.

    Example:
        >>> not_finite(np.array([1.0, np.nan, np.inf]))
        '1 NaN and 1 infinity of 3'
    """
    nans = int(np.count_nonzero(np.isnan(array)))
    infinite = int(np.count_nonzero(np.isinf(array)))
    parts = [f"{nans} NaN"] if nans else []
    if infinite:
        parts.append("1 infinity" if infinite == 1 else f"{infinite} infinities")
    return f"{' and '.join(parts)} of {array.size}" if parts else ""


def has_no_elements(value: Any) -> bool:
    """Whether a value stands for those of all runs, as in a program that is captured.

    Checks that only look at elements leave it alone: every run has others.
    """
    while hasattr(value, "node"):
        value = value.value
    return getattr(value, "from_input", False)


class ArrayNamespace(Protocol):
    """The `xp` of a formula: NumPy, CuPy, or the operations that a graph records.

    `xp.exp(x)` is then the exponential of whatever kind of array runs the formula.
    """

    def __getattr__(self, name: str) -> Any: ...
