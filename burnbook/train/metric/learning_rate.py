"""Learning rate: how large the steps are at the moment."""

from __future__ import annotations

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric


class LearningRateMetric(NumericMetric):
    """The learning rate of the optimizer's step; 0 in validation, which takes none.

    Example:
        >>> LearningRateMetric().name
        'Learning Rate'
    """

    name = "Learning Rate"

    def update(self, item: object, metadata: MetricMetadata) -> MetricEntry:
        """Note the learning rate of one batch."""
        lr = 0.0 if metadata.lr is None else metadata.lr
        return self.state.update(lr, 1, self.options)
