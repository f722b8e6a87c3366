"""Statistics of a tensor that is read piece by piece, and its histogram."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from math import sqrt

import numpy as np

from burnbook_widgets.tensor.numbers import (
    MOST_COUNTED,
    Facts,
    bars_of,
    edges_of,
    facts_of,
    short,
)

Pieces = Callable[[], Iterable[np.ndarray]]


@dataclass(frozen=True)
class Statistics:
    """What there is to know of all elements, and how often which value comes.

    bars, edges: of the histogram, which looks at one of `every` elements.
    """

    kind: str
    facts: Facts
    bars: tuple[int, ...]
    edges: tuple[float, ...]
    every: int

    def rows(self) -> list[tuple[str, str]]:
        """Names and texts, as in a table."""
        return self.facts.rows(self.kind)

    def ends(self) -> tuple[str, str]:
        """What stands at both ends of the histogram."""
        return short(self.facts.low), short(self.facts.high)


def statistics_of(pieces: Pieces) -> Statistics:
    """Look at all elements once, and once more for the histogram.

    Example:
        >>> found = statistics_of(lambda: [np.array([1.0, 3.0]), np.array([np.nan])])
        >>> found.facts.mean, found.facts.std, found.facts.nan, sum(found.bars)
        (2.0, 1.0, 1, 2)
    """
    facts, kind = Facts(0, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0), "f"
    for piece in pieces():
        kind = piece.dtype.kind
        if kind not in "biuf":
            return Statistics(kind, _counted(facts, piece.size), (), (), 1)
        wide = piece.astype(np.float32) if piece.dtype == np.float16 else piece
        facts = joined(facts, facts_of(wide))
    if not facts.known:
        return Statistics(kind, facts, (), (), 1)
    edges = edges_of(facts.low, facts.high, kind)
    bars, every = np.zeros(len(edges) - 1, np.int64), 1
    share = max(1, -(-facts.size // MOST_COUNTED))
    for piece in pieces():
        counted, _ = bars_of(np.ascontiguousarray(piece[::share]), edges)
        bars += counted
        every = share
    counts = tuple(int(count) for count in bars)
    return Statistics(kind, facts, counts, tuple(float(e) for e in edges), every)


def _counted(facts: Facts, more: int) -> Facts:
    return joined(facts, Facts(more, 0, 0, 0, 0, 0, 0.0, 0.0, 0.0, 0.0))


def joined(a: Facts, b: Facts) -> Facts:
    """The facts of two pieces together.

    Example:
        >>> both = joined(facts_of(np.array([1.0, 2.0])), facts_of(np.array([6.0])))
        >>> both.mean, round(both.std, 4), both.high
        (3.0, 2.1602, 6.0)
    """
    known = a.known + b.known
    zeros, nan = a.zeros + b.zeros, a.nan + b.nan
    counts = zeros, nan, a.inf + b.inf, a.minus_inf + b.minus_inf
    if not known:
        return Facts(a.size + b.size, 0, *counts, 0.0, 0.0, 0.0, 0.0)
    if not a.known or not b.known:
        one = a if a.known else b
        ends = one.mean, one.std, one.low, one.high
        return Facts(a.size + b.size, known, *counts, *ends)
    with np.errstate(all="ignore"):
        share = b.known / known
        mean = a.mean * (1 - share) + b.mean * share
        apart = float(np.float64(b.mean) - a.mean)
        spread = float(
            np.float64(a.std) ** 2 * (1 - share) + np.float64(b.std) ** 2 * share
        )
        spread += float(np.float64(apart) ** 2 * share * (1 - share))
    std = sqrt(spread) if spread == spread and spread >= 0 else float("nan")
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Facts(a.size + b.size, known, *counts, mean, std, low, high)
