"""Loss: the number that training minimizes."""

from __future__ import annotations

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import LossInput
from burnbook.train.metric.reading import values


class LossMetric(NumericMetric):
    """The mean of the loss tensor of a batch.

    Why: the weight in the epoch's mean is the length of the loss tensor, as in Burn; a
    loss that is already a mean has length 1, so every batch then counts alike.

    Example:
        >>> LossMetric().name
        'Loss'
    """

    name = "Loss"
    Input = LossInput
    higher_is_better = False

    def update(self, item: LossInput, metadata: MetricMetadata) -> MetricEntry:
        """Take in the loss of one batch."""
        loss = values(item.tensor)
        value = float(loss) if loss.ndim == 0 else float(loss.mean())
        return self.state.update(value, max(loss.size, 1), self.options)
