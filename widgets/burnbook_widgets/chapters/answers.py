"""Getting started. How the answer of an exercise is looked at: kind, shape, value.

A wrong answer gets a sentence that says in what respect it is wrong, and a hint; never
the right answer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from burnbook.prelude import Tensor

TOLERANCE = 1e-5


def as_array(value: Any) -> np.ndarray:
    """Return tensors, arrays, lists and numbers as one kind of thing."""
    if isinstance(value, Tensor):
        return np.asarray(value.to_data().to_numpy())
    return np.asarray(value)


def count_different(a: np.ndarray, b: np.ndarray) -> int:
    """Count the values that differ by more than rounding."""
    if a.dtype.kind in "fiub" and b.dtype.kind in "fiub":
        near = np.isclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True)
        return int((~near).sum())
    return int((a != b).sum())


@dataclass(frozen=True)
class Value:
    """An exercise whose answer is a value.

    Why: `right` is a function, so that nothing is computed when a chapter is imported.
    """

    right: Callable[[], Any]
    hint: str

    def trouble(self, answer: Any) -> str | None:
        """Say in what respect an answer is wrong; nothing if it is right."""
        right = self.right()
        if isinstance(right, Tensor) != isinstance(answer, Tensor):
            wanted = "a tensor" if isinstance(right, Tensor) else "not a tensor"
            return f"it is {a_or_an(type(answer).__name__)}, and should be {wanted}"
        if isinstance(right, Tensor) and right.kind is not answer.kind:
            return f"its kind is {answer.kind.__name__}, and should be another"
        mine, theirs = as_array(right), as_array(answer)
        if mine.shape != theirs.shape:
            return f"its shape is {list(theirs.shape)}, and should be another"
        if mine.dtype.kind in "fiub" and theirs.dtype.kind not in "fiub":
            return f"it is {a_or_an(type(answer).__name__)}, and should be a number"
        wrong = count_different(mine, theirs)
        if wrong:
            return "not that value" if mine.size == 1 else f"wrong in {wrong} places"
        return None


@dataclass(frozen=True)
class Holds:
    """An exercise whose answer is judged by what it does: `asks` says what is wrong."""

    asks: Callable[[Any], str | None]
    hint: str

    def trouble(self, answer: Any) -> str | None:
        """Say in what respect an answer is wrong; nothing if it is right."""
        try:
            return self.asks(answer)
        except Exception as error:
            first = str(error).partition("\n")[0]
            return f"asking it raised {type(error).__name__}: {first}"


def a_or_an(name: str) -> str:
    """Return a name with its article."""
    return f"an {name}" if name[:1].lower() in "aeiou" else f"a {name}"
