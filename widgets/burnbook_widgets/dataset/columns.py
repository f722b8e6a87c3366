"""The columns of a table: their order and their statistics.

Both need every item, so they are read once, and only for so long; what was not read by
then is said.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.data import Dataset
from burnbook_widgets.dataset.items import brief, parts_of, plain, readable
from burnbook_widgets.dataset.labels import STEP, items_at

MOST = 12  # columns that are counted
NUMBERS = (bool, int, float)


class Columns:
    """The values of the parts of items, by name, as far as items were read."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self.dataset = dataset
        self.values: dict[str, list[Any]] = {}
        self.read_count = 0

    @property
    def complete(self) -> bool:
        """Whether every item was read."""
        return self.read_count >= len(self.dataset)

    def read(self, seconds: float | None = None) -> None:
        """Read items, all of them or for so long."""
        ends = None if seconds is None else time.monotonic() + seconds
        while not self.complete:
            some = range(
                self.read_count, min(self.read_count + STEP, len(self.dataset))
            )
            for index, item in zip(some, items_at(self.dataset, some), strict=True):
                parts = {} if isinstance(item, Exception) else parts_of(item)
                for name, value in parts.items():
                    column = self.values.setdefault(name, [None] * index)
                    column += [None] * (index - len(column))
                    column.append(plain(value))
            self.read_count = some.stop
            if ends is not None and time.monotonic() >= ends:
                break
        for column in self.values.values():
            column += [None] * (self.read_count - len(column))

    def order(self, name: str, descending: bool) -> list[int]:
        """Items by a column: numbers, then texts; what is missing at the end."""
        column = self.values[name]
        known = [i for i, value in enumerate(column) if not is_missing(value)]
        rest = [i for i, value in enumerate(column) if is_missing(value)]
        return sorted(known, key=lambda i: _key(column[i]), reverse=descending) + rest

    def statistics(self, label: str = "") -> dict[str, dict[str, str]]:
        """Of each column its extremes and mean, or how many different values it has.

        label: a column whose numbers are names, so that they have no mean.
        """
        names = list(self.values)[:MOST]
        return {n: _statistics(self.values[n], n != label) for n in names}


def is_missing(value: Any) -> bool:
    """Whether there is no value: None, NaN, an empty text."""
    return value is None or value == "" or (isinstance(value, float) and value != value)


def _key(value: Any) -> tuple[int, Any]:
    if isinstance(value, NUMBERS):
        return 0, value
    return 1, brief(value).casefold()


def _statistics(column: Sequence[Any], measures: bool) -> dict[str, str]:
    known = [value for value in column if not is_missing(value)]
    missing = len(column) - len(known)
    told = {"missing": f"{missing:,}"} if missing else {}
    if not known:
        return told
    if any(isinstance(value, np.ndarray) for value in known):
        return told
    if all(
        isinstance(value, NUMBERS) and not isinstance(value, bool) for value in known
    ):
        finite = [float(value) for value in known if math.isfinite(value)]
        mean = math.fsum(v / len(finite) for v in finite) if finite else math.nan
        return {
            "lowest": readable(min(known)),
            "mean": readable(mean),
            "highest": readable(max(known)),
            **told,
        }
    counts = Counter(brief(value, 40) for value in known)
    (most, times), *_ = counts.most_common(1)
    often = f"{most} ({times:,})" if times > 1 else "each once"
    return {"different": f"{len(counts):,}", "most often": often, **told}
