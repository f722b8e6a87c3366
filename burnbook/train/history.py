"""The history of the metrics of a run, to be drawn or computed with.

result = learner.result.history
result.to_dict("step"); result.to_json(); result.to_polars(); result.to_pandas()
"""

from __future__ import annotations

import ast
import json
import math
import re
import sys
from array import array
from typing import Any, Literal

from burnbook.core.call_source import asked_at
from burnbook.core.errors import (
    ArgumentError,
    ConfigError,
    DataError,
    UnknownNameError,
)
from burnbook.core.other_names import closest
from burnbook.train.metric.naming import nearest, unknown_metric
from burnbook.train.numbers import number_text

POINTS_AT_MOST = 1000
SPLITS = ("train", "valid", "test")
Per = Literal["epoch", "step"]
Columns = dict[str, list[Any]]


class MetricHistory:
    """Every numeric metric over the batches and over the epochs.

    `points` are for drawing: thinned out to at most 1000. `to_dict`, `to_json`,
    `to_polars` and `to_pandas` give a table of everything, one row for each epoch or
    batch of a split. Batches are counted on through the epochs, in each split on its
    own.

    Example:
        >>> history = MetricHistory()
        >>> for value in (0.9, 0.7, 0.6):
        ...     history.add("Loss", "train", value)
        >>> history.end_epoch(1, "train", {"Loss": 0.7333})
        >>> history.end_epoch(1, "valid", {"Loss": 0.8})
        >>> history.points("Loss", "train"), history.epochs("Loss", "train")
        ([(1, 0.9), (2, 0.7), (3, 0.6)], [(1, 0.7333)])
        >>> history.to_dict()
        {'epoch': [1, 1], 'split': ['train', 'valid'], 'Loss': [0.7333, 0.8]}
        >>> history
        MetricHistory(Loss; 1 epoch)
    """

    def __init__(self) -> None:
        self._points: dict[tuple[str, str], Thinned] = {}
        self._epochs: dict[tuple[str, str], list[tuple[int, float]]] = {}
        self._steps: dict[tuple[str, str], Steps] = {}
        self._at: dict[str, int] = {}  # the epoch that a split is in

    def __getitem__(self, key: object) -> Any:
        """No columns by name: `epochs` and `points` give those of a metric."""
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage] - documented
        found = asked_at(frame)
        of = "history"
        if found and isinstance(found.node, ast.Subscript):
            of = found.text(found.node.value)
        split = "valid" if str(key).startswith(("val", "valid")) else "train"
        bare = re.sub(r"^(val|valid|train)_", "", str(key))
        name = closest(bare, self.metrics) or next(iter(self.metrics), "Loss")
        what = "the numbers are those of a metric and a split"
        facts = [("metrics", ", ".join(self.metrics) or "none")]
        cure = f"{of}.epochs({name!r}, {split!r})"
        raise ArgumentError("MetricHistory[…]", what, facts, cure)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, in the order of their first value."""
        return tuple(dict.fromkeys(name for name, _ in self._every()))

    def points(self, metric: str, split: str) -> list[tuple[int, float]]:
        """The values of single batches: (batch number, value), at most 1000.

        Raises:
            UnknownNameError: no such metric was measured, or there is no such split.
        """
        self._check("points", metric, split)
        found = self._points.get((metric, split))
        return found.points() if found else []

    def epochs(self, metric: str, split: str) -> list[tuple[int, float]]:
        """The means over whole epochs: (epoch, mean).

        Raises:
            UnknownNameError: no such metric was measured, or there is no such split.
        """
        self._check("epochs", metric, split)
        return list(self._epochs.get((metric, split), []))

    def to_dict(self, per: Per = "epoch") -> Columns:
        """A table by columns, a row for each epoch or batch, and split.

        Columns: epoch; split, "train" or "valid"; then one for each metric, None where
        it has no value. For batches, per="step", also iteration, the number of the
        batch in its epoch, and step, its number in the whole run; both count from 1.

        Example:
            >>> history = MetricHistory()
            >>> for epoch, loss in ((1, 0.9), (2, 0.5)):
            ...     history.add("Loss", "train", loss)
            ...     history.end_epoch(epoch, "train", {"Loss": loss})
            >>> history.to_dict("step")
            {'epoch': [1, 2], 'split': ['train', 'train'], 'iteration': [1, 1],
             'step': [1, 2], 'Loss': [0.9, 0.5]}

        Raises:
            ConfigError: `per` is neither "epoch" nor "step".
        """
        if per not in ("epoch", "step"):
            what = f"{per!r} is not what a row can stand for"
            raise ConfigError("MetricHistory", what, cure='per="epoch" or per="step"')
        rows: dict[tuple[int, str, int], dict[str, float]] = {}
        if per == "epoch":
            for (metric, split), epochs in self._epochs.items():
                for epoch, value in epochs:
                    rows.setdefault((epoch, split, 0), {})[metric] = value
        else:
            for (metric, split), steps in self._steps.items():
                for epoch, iteration, value in steps.rows():
                    rows.setdefault((epoch, split, iteration), {})[metric] = value
        places = sorted(rows)
        table: Columns = {
            "epoch": [epoch for epoch, _, _ in places],
            "split": [split for _, split, _ in places],
        }
        if per == "step":
            table["iteration"] = [iteration for _, _, iteration in places]
            table["step"] = _counted(table["split"])
        for metric in self.metrics:
            table[metric] = [rows[place].get(metric) for place in places]
        return table

    def to_json(self, per: Per = "epoch") -> str:
        """The same table as JSON text; NaN and infinity, which JSON has not, are null.

        Example:
            >>> history = MetricHistory()
            >>> history.end_epoch(1, "valid", {"Loss": 0.5})
            >>> history.to_json()
            '{"epoch": [1], "split": ["valid"], "Loss": [0.5]}'
        """
        table = self.to_dict(per)
        finite = {name: [_finite(v) for v in column] for name, column in table.items()}
        return json.dumps(finite, allow_nan=False)

    def to_polars(self, per: Per = "epoch") -> Any:
        """The same table as a DataFrame of polars.

        Raises:
            DataError: polars is not installed.
        """
        frames = _library("to_polars", "polars")
        table, kinds = self.to_dict(per), {"split": frames.String}
        schema = {name: kinds.get(name, frames.Int64) for name in table}
        schema |= dict.fromkeys(self.metrics, frames.Float64)
        return frames.DataFrame(table, schema)

    def to_pandas(self, per: Per = "epoch") -> Any:
        """The same table as a DataFrame of pandas; what has no value is NaN.

        Raises:
            DataError: pandas is not installed.
        """
        table = self.to_dict(per)
        frame = _library("to_pandas", "pandas").DataFrame(table)
        return frame.astype(dict.fromkeys(self.metrics, "float64"))

    def start_epoch(self, epoch: int, split: str) -> None:
        """The values that follow in this split belong to this epoch."""
        self._at[split] = epoch

    def add(
        self, metric: str, split: str, value: float, iteration: int | None = None
    ) -> None:
        """Take in the value of one batch; by default, of the next one in its epoch."""
        key = (metric, split)
        found = self._points.get(key)
        if found is None:
            found = self._points[key] = Thinned()
            self._steps[key] = Steps()
        found.add(value)
        self._steps[key].add(self._at.get(split, 1), iteration, value)

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """Take in the means of an epoch; what follows belongs to the next one."""
        self._at[split] = epoch + 1
        for metric, value in means.items():
            self._epochs.setdefault((metric, split), []).append((epoch, value))

    def last(self, split: str) -> dict[str, float]:
        """The means of the last epoch.

        Raises:
            UnknownNameError: there is no such split.
        """
        self._check("last", None, split)
        return {
            metric: epochs[-1][1]
            for (metric, of), epochs in self._epochs.items()
            if of == split
        }

    def line(self, split: str) -> str:
        """The last epoch's means in one line, for people."""
        return "  ".join(f"{k} {number_text(v)}" for k, v in self.last(split).items())

    def _check(self, method: str, metric: str | None, split: str) -> None:
        """Refuse names that are not there; before the first value nothing is known."""
        where = f"MetricHistory.{method}"
        metrics = self.metrics
        if metric is not None and metrics and metric not in metrics:
            raise unknown_metric(where, metric, metrics)
        if split not in SPLITS and all(split != of for _, of in self._every()):
            near = nearest(str(getattr(split, "value", split)), SPLITS)
            what = f"there is no split {split!r}"
            facts = [("splits", ", ".join(SPLITS))]
            raise UnknownNameError(where, what, facts, f'"{near}"' if near else None)

    def _every(self) -> list[tuple[str, str]]:
        """Each metric with each split that it has values of."""
        return [*self._points, *self._epochs]

    def __repr__(self) -> str:
        count = max((len(epochs) for epochs in self._epochs.values()), default=0)
        names = ", ".join(self.metrics) or "empty"
        return f"MetricHistory({names}; {count} epoch{'s' * (count != 1)})"


class Steps:
    """The value of every batch, and where it was: 16 bytes each."""

    __slots__ = ("epochs", "iterations", "values")

    def __init__(self) -> None:
        self.epochs, self.iterations = array("i"), array("i")
        self.values = array("d")

    def add(self, epoch: int, iteration: int | None, value: float) -> None:
        """Take in a value; without a number, of the batch after the last one."""
        same = bool(self.epochs) and self.epochs[-1] == epoch
        following = self.iterations[-1] + 1 if same else 1
        self.epochs.append(epoch)
        self.iterations.append(max(iteration or 0, following))
        self.values.append(value)

    def rows(self) -> zip[tuple[int, int, float]]:
        """The epoch, the batch in it, the value."""
        return zip(self.epochs, self.iterations, self.values, strict=True)


class Thinned:
    """A list that keeps every k-th value, so that it never holds more than 1000."""

    __slots__ = ("count", "stride", "values")

    def __init__(self) -> None:
        self.values: list[float] = []
        self.stride = 1
        self.count = 0

    def add(self, value: float) -> None:
        """Take in a value, or skip it."""
        if self.count % self.stride == 0:
            self.values.append(value)
            if len(self.values) > POINTS_AT_MOST:
                self.values = self.values[::2]
                self.stride *= 2
        self.count += 1

    def points(self) -> list[tuple[int, float]]:
        """The values kept, with their numbers counted from 1."""
        return [(1 + i * self.stride, value) for i, value in enumerate(self.values)]


def _counted(splits: list[str]) -> list[int]:
    """The number of each row among those of its split, from 1."""
    count: dict[str, int] = {}
    found: list[int] = []
    for split in splits:
        count[split] = count.get(split, 0) + 1
        found.append(count[split])
    return found


def _finite(value: object) -> object:
    return value if not isinstance(value, float) or math.isfinite(value) else None


def _library(method: str, name: str) -> Any:
    """The library of tables of this name, or how to get it."""
    try:
        if name == "pandas":
            import pandas

            return pandas
        import polars
    except ImportError:
        where, what = f"MetricHistory.{method}", f"{name} is not installed"
        cure = f"pip install {name}; or to_dict(), to_json()"
        raise DataError(where, what, cure=cure) from None
    return polars
