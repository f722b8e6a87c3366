"""Iteration speed: how many batches per second."""

from __future__ import annotations

import time

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric


class IterationSpeedMetric(NumericMetric):
    """The iterations so far per second since the first of the epoch; 0 at first.

    Example:
        >>> IterationSpeedMetric().name
        'Iteration Speed'

    Why: in Burn the mean of the epoch goes on from the epochs before; here every epoch
    starts from zero.
    """

    name = "Iteration Speed"
    unit = "iter/sec"

    def __init__(self) -> None:
        super().__init__()
        self.began: float | None = None

    def clear(self) -> None:
        """Restart the clock."""
        super().clear()
        self.began = None

    def update(self, item: object, metadata: MetricMetadata) -> MetricEntry:
        """Look at the clock."""
        now = time.perf_counter()
        if self.began is None:
            self.began = now
        seconds = now - self.began
        speed = metadata.iteration / seconds if seconds > 0 else 0.0
        return self.state.update(speed, 1, self.options)
