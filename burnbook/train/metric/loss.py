"""Loss: the number that training minimizes."""

from __future__ import annotations

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import LossInput
from burnbook.train.metric.reading import values


class LossMetric(NumericMetric):
    """The mean of the loss tensor of a batch.

    A batch weighs as much in the epoch as it has targets, where the item knows them, as
    `ClassificationOutput` and its like do: then a short last batch moves the epoch no
    more than it should. Else it weighs the length of the loss tensor.

    equal_batches: whether each batch counts alike, however short, when its loss is one
        number, as in Burn's logs (default False).

    Example:
        >>> LossMetric().name
        'Loss'
        >>> LossMetric(equal_batches=True)
        LossMetric(equal_batches=True)
    """

    name = "Loss"
    Input = LossInput
    higher_is_better = False

    def __init__(self, equal_batches: bool = False) -> None:
        super().__init__()
        self.equal_batches = equal_batches

    def update(self, item: LossInput, metadata: MetricMetadata) -> MetricEntry:
        """Take in the loss of one batch."""
        loss = values(item.tensor)
        value = float(loss) if loss.ndim == 0 else float(loss.mean())
        count = max(loss.size, 1)
        if count == 1 and item.count is not None and not self.equal_batches:
            count = item.count
        return self.state.update(value, count, self.options)

    def __repr__(self) -> str:
        return f"LossMetric({'equal_batches=True' if self.equal_batches else ''})"
