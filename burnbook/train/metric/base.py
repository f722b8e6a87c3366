"""What a metric is, and the running mean most of them keep.

A metric looks at one input per batch and answers with an entry: a text for the screen
and a line for the log. A numeric metric also has a value, which is plotted, averaged
over the epoch and compared between epochs.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from burnbook.core.errors import ConfigError, DataError
from burnbook.core.other_forms import answers_forms
from burnbook.train.numbers import plain_float, signed_float

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

    An empty line is not logged: some metrics have no value before the epoch is over.

    Example:
        >>> MetricEntry("Loss", "epoch 0.61 - batch 0.50", "0.5,1").serialize
        '0.5,1'
        >>> MetricEntry.not_available(FormatOptions("AUROC [Macro]", "%", 2))
        MetricEntry(name='AUROC [Macro]', formatted='epoch N/A % - batch N/A %',
                    serialize='')
    """

    name: str
    formatted: str
    serialize: str

    @classmethod
    def not_available(cls, options: FormatOptions) -> MetricEntry:
        """The entry of a metric that has nothing to say yet."""
        unit = "" if options.unit is None else f" {options.unit}"
        return cls(options.name, f"epoch N/A{unit} - batch N/A{unit}", "")


@dataclass(frozen=True, slots=True, repr=False)
class NumericEntry:
    """One line of a numeric metric's log: a value, and how many examples it stands for.

    The last line of an epoch may be final: then it is the value of the whole epoch, for
    metrics whose value is not the mean of their batches.

    Example:
        >>> NumericEntry(10.9375, 64).serialize()
        '10.9375,64'
        >>> NumericEntry.deserialize("10.9375,64")
        NumericEntry(value=10.9375, count=64)
        >>> NumericEntry(100.0).serialize(), NumericEntry(83.5, final=True).serialize()
        ('100', '83.5,final')
    """

    value: float
    count: int | None = None
    final: bool = False

    def serialize(self) -> str:
        """Write the line."""
        text = plain_float(self.value)
        if self.final:
            return f"{text},final"
        return text if self.count is None else f"{text},{self.count}"

    @property
    def weight(self) -> int:
        """How much the entry counts in a mean: its examples, or 1."""
        return 1 if self.count is None else self.count

    @classmethod
    def deserialize(cls, line: str) -> NumericEntry:
        """Read the line back; a line that is not an entry raises DataError."""
        value, comma, count = line.strip().partition(",")
        try:
            if count == "final":
                return cls(float(value), final=True)
            return cls(float(value), int(count) if comma else None)
        except ValueError:
            raise DataError(
                "metric log",
                f"{line.strip()!r} is not an entry",
                ["an entry is a number, or a number and a count: 83.5 or 83.5,64"],
            ) from None

    def __repr__(self) -> str:
        kind = "final" if self.final else f"count={self.count}"
        return f"NumericEntry(value={self.value}, {kind})"


@dataclass(frozen=True, slots=True)
class MetricState:
    """What a renderer receives: the entry, and the batch value of a numeric metric."""

    entry: MetricEntry
    value: float | None = None


@dataclass(frozen=True, slots=True)
class FormatOptions:
    """How a numeric metric is written on the screen.

    name: what the metric is called.
    unit: what follows the number, such as "%"; None, the default: nothing.
    precision: how many digits follow the point; None, the default: as many as the
        number has.

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
            text = signed_float(value, self.precision)
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
        if count:  # what stands for no examples changes nothing, even infinity
            self.total += value * count
        self.count += count
        self.current = value
        running = self.total / self.count if self.count else float("nan")
        return batch_entry(options, running, value, count)

    def value(self) -> float:
        """The value of the last batch."""
        return self.current


@answers_forms("Metric")
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

    name: str
    Input: ClassVar[type | None] = None
    numeric: ClassVar[bool] = False
    unit: ClassVar[str | None] = None
    higher_is_better: ClassVar[bool] = True
    whole_epochs_only: ClassVar[bool] = False

    def with_name(self, name: str) -> Self:
        """The same metric under another name, which is its log file's name too."""
        renamed = self.changed(name=name)
        options = getattr(type(self), "options", None)
        if isinstance(options, FormatOptions):  # said once for the class
            vars(renamed)["options"] = replace(options, name=name)
        return renamed

    def changed(self, **fields: Any) -> Self:
        """A copy with other fields, which has measured nothing yet."""
        made = copy.deepcopy(self)
        made.clear()
        vars(made).update(fields)
        return made

    def update(self, item: Any, metadata: MetricMetadata) -> MetricEntry:
        """Measure one batch."""
        raise TypeError(f"{type(self).__name__} does not define how to update itself")

    def compute(self) -> MetricEntry | None:
        """The value of the epoch, when it is more than the mean of its batches."""
        return None

    def clear(self) -> None:
        """Forget the epoch that has just ended."""

    def value(self) -> float | None:
        """The value of the last batch, if it has one; numeric metrics only."""
        raise TypeError(f"{type(self).__name__} is not numeric")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class NumericMetric(Metric):
    """A metric with a value: plotted, averaged over the epoch, compared."""

    numeric = True
    precision: ClassVar[int] = 2

    @functools.cached_property
    def state(self) -> NumericMetricState:
        """The running mean; also where an __init__ has not called super()."""
        return NumericMetricState()

    @property
    def options(self) -> FormatOptions:
        """How the metric is written on the screen."""
        return FormatOptions(self.name, self.unit, self.precision)

    def clear(self) -> None:
        """Forget the epoch that has just ended."""
        self.state.reset()

    def value(self) -> float | None:
        """The value of the last batch."""
        return self.state.value()


def digits_of(metrics: Iterable[Metric]) -> dict[str, int]:
    """The precision of each metric that has one of its own, by name.

    Why: without one, the line of an epoch has three decimals below 10 and two above.
    """
    found: dict[str, int] = {}
    for metric in metrics:
        places: list[Any] = [metric, *type(metric).__mro__]
        said = (place for place in places if "precision" in vars(place))
        first = next(said, NumericMetric)
        if first is not NumericMetric and vars(first)["precision"] is not None:
            found[metric.name] = vars(first)["precision"]
    return found


def batch_entry(
    options: FormatOptions, epoch: float, batch: float, count: int
) -> MetricEntry:
    """What a numeric metric says about a batch: the epoch so far, and the batch."""
    text = f"epoch {options.write(epoch)} - batch {options.write(batch)}"
    return MetricEntry(options.name, text, NumericEntry(batch, count).serialize())


def final_entry(options: FormatOptions, epoch: float, batch: float) -> MetricEntry:
    """What a numeric metric says about a whole epoch."""
    text = f"epoch {options.write(epoch)} - batch {options.write(batch)}"
    line = NumericEntry(epoch, final=True).serialize()
    return MetricEntry(options.name, text, line)


def metric_name(metric: str | Metric | type[Metric]) -> str:
    """The name of a metric given as its class, as an object, or already as a name.

    Example:
        >>> metric_name("Loss")
        'Loss'
    """
    name = metric if isinstance(metric, str) else getattr(metric, "name", None)
    if isinstance(name, str):
        return name
    shown = metric.__name__ if isinstance(metric, type) else type(metric).__name__
    raise ConfigError(
        "metric",
        f"the class {shown} has no single name"
        if isinstance(metric, type)
        else f"{shown} has no name",
        cure=f"an object, such as {shown}(), or the name of a metric as a text",
    )
