"""The event store: what every metric was in every epoch.

Strategies ask it ("which epoch had the lowest validation loss?"), and it answers from
the loggers, so a resumed run knows the epochs it has not seen itself.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Sequence
from enum import Enum
from typing import Any

from burnbook.core.errors import ConfigError, explain, warn_caller
from burnbook.train import metric as metrics
from burnbook.train.logger import MetricLogger, sync_all
from burnbook.train.metric import Metric, MetricEntry, NumericEntry, metric_name


class Aggregate(Enum):
    """How the batches of an epoch become one number."""

    Mean = "mean"


class Direction(Enum):
    """Which of two epochs is the better one."""

    Lowest = "lowest"
    Highest = "highest"


class Split(Enum):
    """Training, validation, or a test of the finished model."""

    Train = "train"
    Valid = "valid"
    Test = "test"


def check_choices(where: str, aggregate: Any, direction: Any, split: Any) -> None:
    """Refuse what is not one of a strategy's choices."""
    for given, choices in (
        (aggregate, Aggregate),
        (direction, Direction),
        (split, Split),
    ):
        if not isinstance(given, choices):
            names = [f"{choices.__name__}.{choice.name}" for choice in choices]
            meant = [name for name in names if str(given).title() in name.split(".")]
            what = f"{given!r} is not {' or '.join(names)}"
            raise ConfigError(where, what, cure=" or ".join(meant or names))


def check_direction(
    where: str, metric: str | Metric | type[Metric], direction: Direction
) -> None:
    """Warn where a metric is to be best at the end where it is worst."""
    best = best_direction(metric)
    if best is not None and best is not direction:
        words = {Direction.Lowest: "lower", Direction.Highest: "higher"}
        what = f"{metric_name(metric)} is better when {words[best]}"
        what += f", but Direction.{direction.name} keeps its worst epoch"
        warn_caller(explain(where, what, cure=f"Direction.{best.name}"))


def best_direction(metric: str | Metric | type[Metric]) -> Direction | None:
    """Where a metric is best, as its class says; None where no class says it.

    Example:
        >>> best_direction("Loss"), best_direction("Accuracy"), best_direction("Mine")
        (<Direction.Lowest: 'lowest'>, <Direction.Highest: 'highest'>, None)
    """
    if isinstance(metric, str):
        found = _library_metric(metric)
        if found is None:
            return None
    else:
        found = metric if isinstance(metric, type) else type(metric)
    if found in (metrics.LearningRateMetric, metrics.IterationSpeedMetric):
        return None  # measured, but nothing is learned from it
    for each in found.__mro__:
        own = "higher_is_better" in vars(each)
        if own or each.__module__.startswith("burnbook."):
            if each in (Metric, metrics.NumericMetric):
                return None  # a class of somebody else that says nothing
            higher = getattr(found, "higher_is_better", True)
            return Direction.Highest if higher else Direction.Lowest
    return None


def _library_metric(name: str) -> type[Metric] | None:
    """The class of the library whose metrics bear a name: "AUROC [Macro]"."""
    for each in vars(metrics).values():
        if isinstance(each, type) and issubclass(each, Metric):
            known = getattr(each, "name", None)
            if isinstance(known, str) and name in (known, known.partition(" @ ")[0]):
                return each
    return None


def mean(entries: Sequence[NumericEntry]) -> float | None:
    """The mean over an epoch: Σ vᵢ nᵢ / Σ nᵢ; None when nothing was logged.

    A last entry that is final is the epoch's value itself.

    Example:
        >>> mean([NumericEntry(50.0, 64), NumericEntry(100.0, 16)])
        60.0
        >>> mean([NumericEntry(50.0, 64), NumericEntry(40.0, final=True)])
        40.0
    """
    if entries and entries[-1].final:
        return entries[-1].value
    counted = [entry for entry in entries if entry.weight and not entry.final]
    weight = sum(entry.weight for entry in counted)
    if not weight:
        return None
    return sum(entry.value * entry.weight for entry in counted) / weight


class EventStore:
    """Answer questions about epochs, from the metric logs of the splits.

    Only epochs up to `last_epoch` count: what an earlier run left in the same folder
    beyond it does not count.
    """

    def __init__(
        self,
        train: Sequence[MetricLogger],
        valid: Sequence[MetricLogger],
        test: Sequence[MetricLogger] = (),
    ) -> None:
        every = (train, valid, test)
        self.loggers = {
            split: list(loggers) for split, loggers in zip(Split, every, strict=True)
        }
        self.last_epoch = 0
        self.known: dict[tuple[str, int, Split], float | None] = {}

    def log(self, split: Split, entry: MetricEntry) -> None:
        """Hand an entry to the loggers of its split, unless it has nothing to log."""
        if not entry.serialize:
            return
        for logger in self.loggers[split]:
            logger.log(entry)

    def start_epoch(self, epoch: int, split: Split) -> None:
        """The entries that follow belong to this epoch."""
        self.last_epoch = epoch
        self.known = {
            key: value for key, value in self.known.items() if key[1:] != (epoch, split)
        }
        for logger in self.loggers[split]:
            logger.start_epoch(epoch)

    def sync(self) -> None:
        """Force the complete epochs to the disk."""
        sync_all(itertools.chain.from_iterable(self.loggers.values()))

    def end_epoch(self, epoch: int, split: Split) -> None:
        """The epoch is complete."""
        for logger in self.loggers[split]:
            logger.end_epoch(epoch)

    def close(self) -> None:
        """Training is over."""
        with contextlib.ExitStack() as stack:  # each of them, whatever another raises
            for loggers in self.loggers.values():
                for logger in loggers:
                    stack.callback(logger.close)

    def entries(self, name: str, epoch: int, split: Split) -> list[NumericEntry]:
        """What was logged for a metric in an epoch, batch by batch."""
        for logger in self.loggers[split]:
            entries = logger.read_numeric(name, epoch)
            if entries:
                return entries
        return []

    def find_metric(
        self,
        metric: str | Metric | type[Metric],
        epoch: int,
        aggregate: Aggregate = Aggregate.Mean,
        split: Split = Split.Valid,
    ) -> float | None:
        """A metric's number for one epoch; None when it was not logged."""
        key = (metric_name(metric), epoch, split)
        if key not in self.known:
            self.known[key] = mean(self.entries(*key))
        return self.known[key]

    def find_epoch(
        self,
        metric: str | Metric | type[Metric],
        aggregate: Aggregate = Aggregate.Mean,
        direction: Direction = Direction.Lowest,
        split: Split = Split.Valid,
    ) -> int | None:
        """The epoch with the best number, the earliest among equals."""
        best: tuple[int, float] | None = None
        for epoch in range(1, self.last_epoch + 1):
            value = self.find_metric(metric, epoch, aggregate, split)
            if value is None:
                break
            if best is None or better(value, best[1], direction):
                best = (epoch, value)
        return best and best[0]


def better(value: float, than: float, direction: Direction) -> bool:
    """Whether a value beats another; equal values do not, and NaN is the worst of all.

    Example:
        >>> nan = float("nan")
        >>> better(0.1, nan, Direction.Lowest), better(nan, 0.1, Direction.Lowest)
        (True, False)
    """
    if than != than:
        return value == value
    return value < than if direction is Direction.Lowest else value > than
