"""The history of the metrics of a run, ready to be drawn."""

from __future__ import annotations

from burnbook.train.numbers import number_text

POINTS_AT_MOST = 1000


class MetricHistory:
    """Every numeric metric over the batches (thinned out) and over the epochs.

    Batches are counted on through the epochs, in each split on its own.

    Example:
        >>> history = MetricHistory()
        >>> for value in (0.9, 0.7, 0.6):
        ...     history.add("Loss", "train", value)
        >>> history.end_epoch(1, "train", {"Loss": 0.7333})
        >>> history.points("Loss", "train"), history.epochs("Loss", "train")
        ([(1, 0.9), (2, 0.7), (3, 0.6)], [(1, 0.7333)])
        >>> history
        MetricHistory(Loss; 1 epoch)
    """

    def __init__(self) -> None:
        self._points: dict[tuple[str, str], Thinned] = {}
        self._epochs: dict[tuple[str, str], list[tuple[int, float]]] = {}

    @property
    def metrics(self) -> tuple[str, ...]:
        """The names of the metrics, in the order of their first value."""
        return tuple(dict.fromkeys(name for name, _ in [*self._points, *self._epochs]))

    def points(self, metric: str, split: str) -> list[tuple[int, float]]:
        """The values of single batches: (batch number, value), at most 1000."""
        found = self._points.get((metric, split))
        return found.points() if found else []

    def epochs(self, metric: str, split: str) -> list[tuple[int, float]]:
        """The means over whole epochs: (epoch, mean)."""
        return list(self._epochs.get((metric, split), []))

    def add(self, metric: str, split: str, value: float) -> None:
        """Take in the value of one batch."""
        key = (metric, split)
        found = self._points.get(key)
        if found is None:
            found = self._points[key] = Thinned()
        found.add(value)

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """Take in the means of an epoch."""
        for metric, value in means.items():
            self._epochs.setdefault((metric, split), []).append((epoch, value))

    def last(self, split: str) -> dict[str, float]:
        """The means of the last epoch."""
        return {
            metric: epochs[-1][1]
            for (metric, of), epochs in self._epochs.items()
            if of == split
        }

    def line(self, split: str) -> str:
        """The last epoch's means in one line, for people."""
        return "  ".join(f"{k} {number_text(v)}" for k, v in self.last(split).items())

    def __repr__(self) -> str:
        count = max((len(epochs) for epochs in self._epochs.values()), default=0)
        names = ", ".join(self.metrics) or "empty"
        return f"MetricHistory({names}; {count} epoch{'s' * (count != 1)})"


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
