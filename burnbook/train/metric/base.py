"""Building blocks · Metric. What a metric is, and the running mean most of them keep.

A metric looks at one input per batch and answers with an entry: a text for the screen
and a line for the log. A numeric metric also has a value, which is plotted, averaged
over the epoch and compared between epochs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from burnbook.errors import DataError
from burnbook.train.numbers import format_float, plain_float

if TYPE_CHECKING:
    from burnbook.data import Progress


@dataclass(frozen=True, slots=True)
class MetricMetadata:
    """Where training stands when a metric is updated; lr is None in validation."""

    progress: Progress
    epoch: int
    epoch_total: int
    iteration: int
    lr: float | None = None


@dataclass(frozen=True, slots=True)
class MetricEntry:
    """What a metric says about one batch: for the screen, and as one line of the log.

    Example:
        >>> MetricEntry("Loss", "epoch 0.61 - batch 0.50", "0.5,1").serialize
        '0.5,1'
    """

    name: str
    formatted: str
    serialize: str


@dataclass(frozen=True, slots=True)
class NumericEntry:
    """One line of a numeric metric's log: a value, and how many examples it stands for.

    Example:
        >>> NumericEntry(10.9375, 64).serialize()
        '10.9375,64'
        >>> NumericEntry.deserialize("10.9375,64")
        NumericEntry(value=10.9375, count=64)
        >>> NumericEntry(100.0).serialize()
        '100'
    """

    value: float
    count: int | None = None

    def serialize(self) -> str:
        """Write the line."""
        text = plain_float(self.value)
        return text if self.count is None else f"{text},{self.count}"

    @property
    def weight(self) -> int:
        """How much the entry counts in a mean: its examples, or 1."""
        return 1 if self.count is None else self.count

    @classmethod
    def deserialize(cls, line: str) -> NumericEntry:
        """Read the line back; a line that is no entry raises DataError."""
        value, comma, count = line.strip().partition(",")
        try:
            return cls(float(value), int(count) if comma else None)
        except ValueError:
            raise DataError(
                "metric log",
                f"{line.strip()!r} is not an entry",
                ["an entry is a number, or a number and a count: 83.5 or 83.5,64"],
            ) from None


@dataclass(frozen=True, slots=True)
class MetricState:
    """What a renderer receives: the entry, and the batch value of a numeric metric."""

    entry: MetricEntry
    value: float | None = None


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How a numeric metric is written on the screen.

    Example:
        >>> FormatOptions("Accuracy", unit="%", precision=2).write(83.2871)
        '83.29 %'
    """

    name: str
    unit: str | None = None
    precision: int | None = None

    def write(self, value: float) -> str:
        """Write one value with its unit."""
        if self.precision is None:
            text = plain_float(value)
        else:
            text = format_float(value, self.precision)
        return text if self.unit is None else f"{text} {self.unit}"


class NumericMetricState:
    """The running mean of a metric over one epoch: Σ vᵢ nᵢ / Σ nᵢ.

    Example:
        >>> state = NumericMetricState()
        >>> state.update(50.0, 64, FormatOptions("Accuracy", "%", 2)).formatted
        'epoch 50.00 % - batch 50.00 %'
        >>> state.update(75.0, 64, FormatOptions("Accuracy", "%", 2)).formatted
        'epoch 62.50 % - batch 75.00 %'
    """

    __slots__ = ("count", "current", "total")

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Forget everything, for the next epoch."""
        self.total, self.count, self.current = 0.0, 0, float("nan")

    def update(self, value: float, count: int, options: FormatOptions) -> MetricEntry:
        """Take in the value of a batch of `count` examples."""
        self.total += value * count
        self.count += count
        self.current = value
        running = self.total / self.count if self.count else float("nan")
        return MetricEntry(
            options.name,
            f"epoch {options.write(running)} - batch {options.write(value)}",
            NumericEntry(value, count).serialize(),
        )

    def value(self) -> float:
        """The value of the last batch."""
        return self.current


class Metric:
    """Something measured on every batch.

    A metric names itself and the Input it needs; the item a training step returns is
    adapted to that Input (`item.adapt(Input)`); a metric whose Input is None needs
    nothing but the metadata.

    Example:
        >>> class Epoch(Metric):
        ...     name = "Epoch"
        ...     def update(self, item, metadata):
        ...         text = str(metadata.epoch)
        ...         return MetricEntry(self.name, text, text)
        >>> Epoch()
        Epoch()
    """

    name: ClassVar[str]
    Input: ClassVar[type | None] = None
    numeric: ClassVar[bool] = False
    unit: ClassVar[str | None] = None

    def update(self, item: Any, metadata: MetricMetadata) -> MetricEntry:
        """Measure one batch."""
        raise TypeError(f"{type(self).__name__} does not say how to update itself")

    def clear(self) -> None:
        """Forget the epoch that has just ended."""

    def value(self) -> float:
        """The value of the last batch; numeric metrics only."""
        raise TypeError(f"{type(self).__name__} is not numeric")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NumericMetric(Metric):
    """A metric with a value: plotted, averaged over the epoch, compared."""

    numeric = True

    def __init__(self) -> None:
        self.state = NumericMetricState()

    def clear(self) -> None:
        """Forget the epoch that has just ended."""
        self.state.reset()

    def value(self) -> float:
        """The value of the last batch."""
        return self.state.value()


def metric_name(metric: str | Metric | type[Metric]) -> str:
    """The name of a metric given as its class, as an object, or already as a name.

    Example:
        >>> metric_name("Loss")
        'Loss'
    """
    return metric if isinstance(metric, str) else metric.name
