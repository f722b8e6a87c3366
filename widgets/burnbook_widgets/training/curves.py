"""What a dashboard remembers of a run, in bounded size.

A run may last a million batches; a picture has a thousand columns. A `Trace` keeps one
line as a table of at most 512 buckets (position in epochs, mean, lowest, highest, step,
seconds). When the table is full, neighbors merge and every bucket stands for twice as
many batches.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

SPLITS = ("train", "valid")


class Trace:
    """One value per batch, kept in a bounded number of buckets.

    Example:
        >>> trace = Trace(buckets=4)
        >>> for step in range(8):
        ...     trace.add(step, 10.0 * step)
        >>> trace.table().tolist()[0]  # position, mean, lowest, highest, step, seconds
        [0.5, 5.0, 0.0, 10.0, 1.5, 0.0]

    Why: NaN and infinity have no place in a picture. They leave a gap where they stand
    alone, and are left out of a bucket that has anything else.
    """

    __slots__ = (
        "_count",
        "_finite",
        "_high",
        "_low",
        "_seconds",
        "_step",
        "_steps",
        "_sum",
        "_table",
        "_x",
        "rows",
        "stride",
    )

    def __init__(self, buckets: int = 512):
        self._table = np.empty((buckets, 6))
        self._steps = 0.0
        self.rows = 0
        self.stride = 1
        self._open()

    def _open(self) -> None:
        self._count = self._finite = 0
        self._x = self._step = self._seconds = 0.0
        self._sum = 0.0
        self._low = math.inf
        self._high = -math.inf

    def add(
        self, x: float, value: float, step: float | None = None, seconds: float = 0.0
    ) -> None:
        """Add the value of one batch at position x: the how manieth step, and when.

        step: counted from 1 where none is given.
        """
        self._steps = self._steps + 1.0 if step is None else step
        self._count += 1
        self._x += x
        self._step += self._steps
        self._seconds += seconds
        if math.isfinite(value):
            self._finite += 1
            self._sum += value
            if value < self._low:
                self._low = value
            if value > self._high:
                self._high = value
        if self._count == self.stride:
            if self.rows == len(self._table):
                self._halve()
                return
            self._table[self.rows] = self._bucket()
            self.rows += 1
            self._open()

    def _bucket(self) -> tuple[float, ...]:
        x, step, seconds = (
            total / self._count for total in (self._x, self._step, self._seconds)
        )
        if not self._finite:
            return x, math.nan, math.nan, math.nan, step, seconds
        return x, self._sum / self._finite, self._low, self._high, step, seconds

    def _halve(self) -> None:
        """Merge neighbors; the open bucket stays open at twice the stride."""
        half = len(self._table) // 2
        self._table[:half] = merged(self._table[: 2 * half])
        self.rows = half
        self.stride *= 2

    def table(self) -> np.ndarray:
        """The line so far, one row per bucket.

        Columns: position in epochs, mean, lowest, highest, step, seconds.
        """
        rows = self._table[: self.rows]
        if self._count:
            return np.vstack([rows, self._bucket()])
        return rows.copy()


def merged(table: np.ndarray) -> np.ndarray:
    """Make one bucket of every two; one that is a gap leaves the other as it is.

    Example:
        >>> merged(np.array([[0.0, 1, 1, 1], [1, 3, 2, 4]])).tolist()
        [[0.5, 2.0, 1.0, 4.0]]
        >>> merged(np.array([[0.0, 1, 1, 1], [1, np.nan, 0, 0]])).tolist()
        [[0.5, 1.0, 1.0, 1.0]]
    """
    even, odd = table[0::2], table[1::2]
    even_gap = ~np.isfinite(even[:, 1:2])
    odd_gap = ~np.isfinite(odd[:, 1:2])
    one = np.where(even_gap, odd, even)[:, 1:4]
    two = np.where(odd_gap, even, odd)[:, 1:4]
    with np.errstate(invalid="ignore"):  # both are gaps, +∞ and −∞
        mean = (one[:, 0] + two[:, 0]) / 2
    return np.column_stack(
        [
            (even[:, 0] + odd[:, 0]) / 2,
            mean,
            np.minimum(one[:, 1], two[:, 1]),
            np.maximum(one[:, 2], two[:, 2]),
            (even[:, 4:] + odd[:, 4:]) / 2,
        ]
    )


def thin(table: np.ndarray, most: int = 240) -> np.ndarray:
    """Merge neighboring buckets until at most `most` are left."""
    while len(table) > most:
        even = len(table) // 2 * 2
        table = np.vstack([merged(table[:even]), table[even:]])
    return table


@dataclass(frozen=True)
class EpochMean:
    """Mean of one metric over one epoch, and the range of its batches.

    x: where it stands. A training mean stands amid the batches it sums up, a validation
    mean at the end of its epoch, where the model it measured stood. step and seconds
    say the same place otherwise.
    """

    epoch: int
    x: float
    mean: float
    low: float
    high: float
    step: float = 0.0
    seconds: float = 0.0


class Curve:
    """One metric on one split: its batches and its epoch means."""

    def __init__(self) -> None:
        self.steps = Trace()
        self.epochs: list[EpochMean] = []
        self._last = 0.0
        self._low = math.inf
        self._high = -math.inf

    def add(
        self, x: float, value: float, step: float | None = None, seconds: float = 0.0
    ) -> None:
        """Add the value of one batch at position x (in epochs)."""
        self.steps.add(x, value, step, seconds)
        self._last = x
        if not math.isfinite(value):
            return
        if value < self._low:
            self._low = value
        if value > self._high:
            self._high = value

    def end_epoch(
        self,
        epoch: int,
        mean: float,
        split: str,
        step: float = 0.0,
        seconds: float = 0.0,
    ) -> None:
        """Close an epoch, whole or stopped, with its mean."""
        x = float(epoch)
        if split == "train":
            reached = self._last if self._last > epoch - 1 else x
            x = (epoch - 1 + reached) / 2
        low, high = min(self._low, mean), max(self._high, mean)
        self.epochs.append(EpochMean(epoch, x, mean, low, high, step, seconds))
        self._low, self._high = math.inf, -math.inf

    def epoch_table(self) -> np.ndarray:
        """The epoch means, one row per epoch, with the columns of a `Trace`."""
        rows = [(e.x, e.mean, e.low, e.high, e.step, e.seconds) for e in self.epochs]
        return np.array(rows, dtype=float).reshape(len(rows), 6)


class Curves:
    """Every numeric metric of a run on both splits, positioned in epochs.

    Why: positions are epochs (2.5 = half of the third) because train and valid have
    different numbers of batches and epochs are what they share. Steps (of training,
    over all epochs) and seconds (pauses left out) are noted beside them.
    """

    def __init__(self, metrics: Sequence[str]):
        self.metrics = tuple(metrics)
        self._curves = {
            split: {name: Curve() for name in self.metrics} for split in SPLITS
        }
        self._waiting: dict[str, float] = {}
        self.steps = 0.0  # of training, so far
        self._seconds = 0.0
        self._began = (0.0, 0.0)  # step and seconds where this epoch began

    def curve(self, metric: str, split: str) -> Curve:
        """The curve of one metric on one split."""
        return self._curves[split][metric]

    def update(self, name: str, value: float | None) -> None:
        """Note a metric's value of the batch that `step` will position."""
        if value is not None:
            self._waiting[name] = value

    def step(self, split: str, x: float, seconds: float = 0.0) -> None:
        """Place the noted values of one batch at position x, seconds after start."""
        self._seconds = seconds
        if split == "train":
            self.steps += 1
        curves = self._curves[split]
        for name, value in self._waiting.items():
            curve = curves.get(name)
            if curve is not None:
                curve.add(x, value, self.steps, seconds)
        self._waiting.clear()

    def end_epoch(self, epoch: int, split: str, means: Mapping[str, float]) -> None:
        """Close an epoch of one split with the means of its metrics."""
        now = (self.steps, self._seconds)
        at = now
        if split == "train":
            at = ((self._began[0] + now[0]) / 2, (self._began[1] + now[1]) / 2)
        self._began = now
        for name, mean in means.items():
            curve = self._curves[split].get(name)
            if curve is not None:
                curve.end_epoch(epoch, mean, split, *at)

    def series(self) -> Iterator[tuple[str, str, str, np.ndarray]]:
        """What there is to draw: (metric, split, "steps" | "epochs", table)."""
        for metric in self.metrics:
            for split in SPLITS:
                curve = self._curves[split][metric]
                if split == "train":
                    yield metric, split, "steps", curve.steps.table()
                yield metric, split, "epochs", curve.epoch_table()

    def rows(self) -> list[dict[str, float]]:
        """The epoch table: one dict per epoch, keys "epoch" and "train Loss" etc."""
        rows: dict[int, dict[str, float]] = {}
        for split in SPLITS:
            for metric in self.metrics:
                for entry in self._curves[split][metric].epochs:
                    row = rows.setdefault(entry.epoch, {"epoch": entry.epoch})
                    row[f"{split} {metric}"] = entry.mean
        return [rows[epoch] for epoch in sorted(rows)]

    def is_empty(self) -> bool:
        """Whether no value has come yet."""
        return all(not len(table) for _, _, _, table in self.series())
