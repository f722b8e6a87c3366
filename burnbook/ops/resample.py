"""Weighted sums of a few places along a dim.

Average pooling and interpolation are the same thing: along each dim, every place of the
output is a weighted sum of some places of the input. A table of (output place, input
place, weight) says which; read the other way round, the table is the gradient.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace


class Taps:
    """A linear map along one dim: out[rows] += weights · x[places], entry by entry.

    Example:
        >>> halves = Taps(2, 4, [0, 0, 1, 1], [0, 1, 2, 3], [0.5, 0.5, 0.5, 0.5])
        >>> halves.apply(np, np.array([[1.0, 3.0, 5.0, 7.0]]), 1)
        array([[2., 6.]])
    """

    def __init__(
        self, size: int, size_in: int, rows: Array, places: Any, weights: Array
    ):
        self.size, self.size_in = size, size_in
        rows, places, weights = map(np.asarray, (rows, places, weights))
        counted = weights != 0  # an unused place must not spread its NaN
        order = np.lexsort((places[counted], rows[counted]))
        self.rows = rows[counted][order]
        self.places = places[counted][order]
        self.weights = weights[counted][order]
        self.shares = self._shares()
        self.steps = self._steps()

    def turned(self) -> "Taps":
        """The table read the other way round: the gradient of this map."""
        return self._turned

    @cached_property
    def _turned(self) -> "Taps":
        return Taps(self.size_in, self.size, self.places, self.rows, self.weights)

    @cached_property
    def changes_nothing(self) -> bool:
        """Whether every place is taken once, as it is, and stays where it is."""
        every = np.arange(self.size)
        stays = np.array_equal(self.rows, every) and np.array_equal(self.places, every)
        return self.size == self.size_in and stays and bool((self.weights == 1).all())

    def apply(self, xp: ArrayNamespace, x: Array, axis: int) -> Any:
        """Map x along an axis."""
        before = (slice(None),) * axis
        fitted = (-1, *[1] * (x.ndim - axis - 1))
        shape = (*x.shape[:axis], self.size, *x.shape[axis + 1 :])
        out = None
        for rows, places, weights in self.steps:
            is_view = isinstance(places, slice) and self.shares is not None
            part = _pick(xp, x, places, axis)
            if self.shares is None:
                part = part * xp.asarray(weights.astype(x.dtype)).reshape(fitted)
            if out is None and len(weights) == self.size:
                out = xp.array(part) if is_view else part
                continue
            if out is None:
                out = xp.zeros(shape, dtype=x.dtype)
            here = rows if isinstance(rows, slice) else xp.asarray(rows)
            out[(*before, here)] += part
        if out is None:
            return xp.zeros(shape, dtype=x.dtype)
        if self.shares is not None:
            out *= xp.asarray(self.shares.astype(x.dtype)).reshape(fitted)
        return out

    def _shares(self) -> np.ndarray | None:
        """One weight per row, where all its entries have the same: an average."""
        shares = np.ones(self.size)
        shares[self.rows] = self.weights
        return shares if np.array_equal(shares[self.rows], self.weights) else None

    def _steps(self) -> list[tuple[Any, Any, np.ndarray]]:
        """The entries in rounds: the first of every row, the second of every row, …"""
        first = np.searchsorted(self.rows, self.rows)
        turn = np.arange(len(self.rows)) - first
        steps = []
        for k in range(int(turn.max()) + 1 if len(turn) else 0):
            these = turn == k
            rows, places = self.rows[these], self.places[these]
            entries = rows, places, self.weights[these]
            if self.shares is None:
                entries = self._without_gaps(*entries)
            steps.append((_even(entries[0]), _even(entries[1]), entries[2]))
        return steps

    def _without_gaps(self, rows: Array, places: Any, weights: Array) -> Any:
        """Give rows that end earlier a weight of 0 for a place that they read anyway.

        Why: adding to a slice is several times faster than adding to some rows of it.
        """
        every = np.arange(rows[0], rows[-1] + 1)
        known = np.isin(every, self.rows)
        if len(rows) * 2 < len(every) or not known.all():
            return rows, places, weights
        filled = self.places[np.searchsorted(self.rows, every)]
        filled[rows - rows[0]] = places
        shares = np.zeros(len(every))
        shares[rows - rows[0]] = weights
        return every, filled, shares


def apply_all(xp: ArrayNamespace, x: Array, tables: Sequence[Taps]) -> Any:
    """Map the last dims of x, one table for each."""
    axes = list(range(x.ndim - len(tables), x.ndim))
    dims = list(zip(axes, tables, strict=True))
    if sum(table.size - table.size_in for table in tables) > 0:
        dims.reverse()  # whatever keeps the later passes small
    out = x
    for axis, table in dims:
        out = table.apply(xp, out, axis)
    return out


def _pick(xp: ArrayNamespace, x: Array, places: Any, axis: int) -> Any:
    if isinstance(places, slice):
        return x[(*(slice(None),) * axis, places)]
    return xp.take(x, xp.asarray(places), axis=axis)


def _even(places: np.ndarray) -> Any:
    """Evenly spaced places as a slice, which needs no copy."""
    if len(places) == 1:
        return slice(int(places[0]), int(places[0]) + 1, 1)
    gaps = np.diff(places)
    if gaps.min() == gaps.max() > 0:
        return slice(int(places[0]), int(places[-1]) + 1, int(gaps[0]))
    return places
