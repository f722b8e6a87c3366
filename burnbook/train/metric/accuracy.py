"""Accuracy: how many predictions were right, in percent."""

from __future__ import annotations

import numpy as np

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import AccuracyInput, TopKAccuracyInput
from burnbook.train.metric.reading import at_least_one, scores_of


class AccuracyMetric(NumericMetric):
    """How many predictions are right, in percent: 100 · mean(argmax outputs = target).

    With a pad token, targets that equal it are left out; a batch of nothing but padding
    is NaN. A batch weighs as much in the epoch as it has targets, padding included.

    Example:
        >>> AccuracyMetric().with_pad_token(3)
        AccuracyMetric(pad_token=3)
    """

    name = "Accuracy"
    Input = AccuracyInput
    unit = "%"

    def __init__(self, pad_token: int | None = None) -> None:
        super().__init__()
        self.pad_token = pad_token

    def with_pad_token(self, pad_token: int) -> AccuracyMetric:
        """The same metric, ignoring targets that are only padding."""
        return self.changed(pad_token=pad_token)

    def update(self, item: AccuracyInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the predictions of one batch with its targets."""
        outputs, targets = scores_of(self.name, item.outputs, item.targets)
        right = outputs.argmax(axis=1) == targets
        share = kept_share(right, targets, self.pad_token)
        return self.state.update(100.0 * share, len(targets), self.options)

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f"pad_token={self.pad_token}"
        return f"AccuracyMetric({pad})"


class TopKAccuracyMetric(NumericMetric):
    """How often the target is among the k best classes, in percent.

    Shapes: outputs [n, classes]; targets [n]
    Example:
        >>> TopKAccuracyMetric(5).with_pad_token(0)
        TopKAccuracyMetric(5, pad_token=0)
        >>> TopKAccuracyMetric(3).with_name("Top-3 Accuracy").name
        'Top-3 Accuracy'

    Why: among equal scores the class with the lower number comes first, so that k = 1
    is the accuracy; a score that is not a number never makes a hit. In Burn 0.15 the
    output of a classification does not adapt to this metric; here it does.
    """

    name = "Top-K Accuracy"
    Input = TopKAccuracyInput
    unit = "%"

    def __init__(self, k: int, pad_token: int | None = None) -> None:
        super().__init__()
        self.k = at_least_one("TopKAccuracyMetric", "k", k)
        self.pad_token = pad_token

    def with_pad_token(self, pad_token: int) -> TopKAccuracyMetric:
        """The same metric, ignoring targets that are only padding."""
        return self.changed(pad_token=pad_token)

    def update(self, item: TopKAccuracyInput, metadata: MetricMetadata) -> MetricEntry:
        """Look for the targets of one batch among its best classes."""
        where = (self.name, item.outputs, item.targets)
        outputs, targets = scores_of(*where, k=self.k)
        known = (targets >= 0) & (targets < outputs.shape[1])
        place = np.where(known, targets, 0)[:, None]
        own = np.take_along_axis(outputs, place, axis=1)
        number = np.arange(outputs.shape[1])
        ahead = ~(outputs <= own) | ((outputs == own) & (number < place))
        ahead &= number != place
        hit = known & (ahead.sum(axis=1) < self.k) & ~np.isnan(own[:, 0])
        share = kept_share(hit, targets, self.pad_token)
        return self.state.update(100.0 * share, len(targets), self.options)

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f", pad_token={self.pad_token}"
        return f"TopKAccuracyMetric({self.k}{pad})"


def kept_share(right: np.ndarray, targets: np.ndarray, pad_token: int | None) -> float:
    """The share of right ones among the targets that are not padding."""
    kept = np.ones(len(targets), bool) if pad_token is None else targets != pad_token
    count = np.count_nonzero(kept)
    return np.count_nonzero(right & kept) / count if count else float("nan")
