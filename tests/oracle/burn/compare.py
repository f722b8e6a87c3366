"""Whether two results agree: floats nearly, everything else exactly."""

import math
from typing import Any

import numpy as np

from burnbook.core.errors import BurnbookError
from burnbook.tensor import Tensor, TensorData
from tests.oracle.burn.cases import array_of, read

CLOSE = 1e-5  # relative to a number, or to the largest of its tensor if below 1


def disagreement(wanted: Any, found: Any, floor: float = 0.0) -> str | None:
    """What differs; None where everything agrees.

    found: the outputs, or the exception that was raised instead.
    floor: numbers below it, or below the largest of their tensor, are compared as if
        they were as large; with 0, numbers below 1 as if they were as large as the
        largest.
    """
    if isinstance(wanted, dict):
        if isinstance(found, AssertionError) and str(found) != wanted["panic"]:
            return f"says {wanted['panic']!r}\n         here {str(found)!r}"
        if isinstance(found, BurnbookError | AssertionError):
            return None
        return f"Burn refuses ({wanted['panic'][:70]!r}), here {_shown(found)}"
    if isinstance(found, Exception):
        return f"{type(found).__name__}: {found}"
    if len(wanted) != len(found):
        return f"{len(wanted)} outputs, here {len(found)}"
    for place, (theirs, ours) in enumerate(zip(wanted, found, strict=True)):
        told = _one(theirs, ours, floor)
        if told:
            return f"output {place}: {told}"
    return None


def _one(wanted: Any, found: Any, floor: float) -> str | None:
    """What differs in one output."""
    if wanted is None:
        return None if found is None else f"nothing, here {_shown(found)}"
    if "text" in wanted:
        same = wanted["text"] == found
        return None if same else f"text {wanted['text']!r}\n         here {found!r}"
    if "value" in wanted:
        same = _same_value(read(wanted["value"]), found)
        return None if same else f"{wanted['value']!r}, here {found!r}"
    if not isinstance(found, Tensor | TensorData):
        return f"a tensor, here {found!r}"
    data = found.to_data() if isinstance(found, Tensor) else found
    if list(data.shape) != wanted["shape"]:
        return f"shape {wanted['shape']}, here {list(data.shape)}"
    if data.dtype != wanted["dtype"]:
        return f"type {wanted['dtype']}, here {data.dtype}"
    theirs, ours = array_of(wanted), data.to_numpy()
    same = _close(theirs, ours, floor) if theirs.dtype.kind == "f" else theirs == ours
    if np.all(same):
        return None
    places = np.flatnonzero(~same)
    pairs = [(theirs.reshape(-1)[i], ours.reshape(-1)[i]) for i in places[:4]]
    told = ", ".join(f"{a} ≠ {b}" for a, b in pairs)
    return f"{len(places)} of {theirs.size} elements: {told}"


def _close(a: np.ndarray, b: np.ndarray, floor: float) -> np.ndarray:
    """Equal up to rounding; NaN is NaN, and each infinity itself."""
    finite = np.abs(a[np.isfinite(a)])
    largest = float(finite.max()) if finite.size else 0.0
    floor = max(floor, largest) if floor else min(1.0, largest)
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(a - b) <= CLOSE * np.maximum(np.abs(a), floor)
    return near | (a == b) | (np.isnan(a) & np.isnan(b))


def _same_value(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        b = list(b) if isinstance(b, list | tuple) else b
        fits = isinstance(b, list) and len(a) == len(b)
        return fits and all(map(_same_value, a, b))
    if isinstance(a, dict):
        fits = isinstance(b, dict) and a.keys() == b.keys()
        return fits and all(_same_value(read(a[key]), b[key]) for key in a)
    if isinstance(a, float) and isinstance(b, float):
        near = math.isclose(a, b, rel_tol=1e-6) or np.float32(a) == np.float32(b)
        return bool(near) or (a != a and b != b)
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    return type(a) is type(b) and a == b


def _shown(found: Any) -> str:
    shown = [
        f"{one.to_numpy().tolist()}"[:80]
        if isinstance(one, TensorData)
        else repr(one)[:80]
        for one in (o.to_data() if isinstance(o, Tensor) else o for o in found)
    ]
    return ", ".join(shown)
