"""Casts to and from half precision, by compiled code where there is some.

NumPy takes 35 ns for a number on its way to float16, which is most of the time in which
a record of a model is written. `burnbook.backend.compiled` offers its own; what it does
not serve, NumPy does, with the same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

FEWEST = 1 << 11  # numbers; below, a call costs as much as it saves
HALF, SINGLE = np.dtype(np.float16), np.dtype(np.float32)
PAIRS = {(SINGLE, HALF), (HALF, SINGLE)}

# What gives the module of compiled casts, or None while it is not compiled.
_source: Callable[[], Any] | None = None


def offer(source: Callable[[], Any]) -> None:
    """Let a module of compiled casts serve from now on: `half_cast`, `upper_halves`."""
    global _source
    _source = source


def cast(array: Any, dtype: np.dtype[Any]) -> Any:
    """The same as `array.astype(dtype)`, faster between float32 and float16."""
    compiled = _compiled(array) if (array.dtype, dtype) in PAIRS else None
    found = compiled.half_cast(array, dtype) if compiled is not None else None
    return array.astype(dtype) if found is None else found


def upper_halves(values: np.ndarray) -> np.ndarray:
    """The upper halves of the bits of float32 numbers, as bf16 rounds; NaN stays NaN.

    Shapes: values [n] -> [n]
    """
    compiled = _compiled(values)
    found = compiled.upper_halves(values) if compiled is not None else None
    if found is not None:
        return found
    bits = values.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    with np.errstate(over="ignore"):
        rounded = (bits + np.uint32(0x7FFF) + odd) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(values), quiet, rounded).astype(np.uint16)


def _compiled(array: Any) -> Any:
    large = type(array) is np.ndarray and array.size >= FEWEST
    return _source() if large and _source is not None else None
