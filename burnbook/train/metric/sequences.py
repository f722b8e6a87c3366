"""Two sequences compared: edits, and what they share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def edit_distance(reference: Sequence[int], prediction: Sequence[int]) -> int:
    """The fewest insertions, deletions and replacements from one to the other.

    Row i holds the distance of the first i tokens of the reference to every prefix of
    the prediction: dᵢⱼ = min(dᵢ₋₁ⱼ₋₁ + (rᵢ ≠ pⱼ), dᵢ₋₁ⱼ + 1, dᵢⱼ₋₁ + 1).

    Example:
        >>> edit_distance([1, 2, 3], [1, 3, 3, 4])
        2

    Why: the last of the three runs along the row, so a running minimum takes it for the
    whole row at once, after a step of 1 per place has been taken away.

    Source: Wagner and Fischer, The string-to-string correction problem, 1974.
    """
    guess = np.asarray(prediction)
    step = np.arange(len(guess) + 1)
    row = step
    for token in reference:
        new = row + 1
        np.minimum(new[1:], row[:-1] + (guess != token), out=new[1:])
        row = np.minimum.accumulate(new - step) + step
    return int(row[-1])


def common_length(one: Sequence[int], other: Sequence[int]) -> int:
    """The length of the longest sequence of tokens that both have in this order.

    Example:
        >>> common_length([1, 2, 3, 4], [2, 9, 4])
        2
    """
    second = np.asarray(other)
    row = np.zeros(len(second) + 1, int)
    for token in one:
        new = row.copy()
        np.maximum(new[1:], row[:-1] + (second == token), out=new[1:])
        row = np.maximum.accumulate(new)
    return int(row[-1])
