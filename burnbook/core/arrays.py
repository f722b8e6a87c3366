"""What formulas are written with: arrays, and the module of functions for them."""

from typing import Any, Protocol, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]
"""An array of NumPy, or one of CuPy, whose methods are the same."""


class ArrayNamespace(Protocol):
    """The `xp` of a formula: NumPy, CuPy, or the operations that a graph records.

    `xp.exp(x)` is then the exponential of whatever kind of array runs the formula.
    """

    def __getattr__(self, name: str) -> Any: ...
