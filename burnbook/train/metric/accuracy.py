"""Accuracy: how many predictions were right, in percent."""

from __future__ import annotations

from typing import Self

import numpy as np

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import AccuracyInput, TopKAccuracyInput
from burnbook.train.metric.reading import (
    at_least_one,
    check_classes,
    check_probabilities,
    check_yes_or_no,
    one_score_of,
    scores_of,
)


class AccuracyMetric(NumericMetric):
    """How many predictions are right, in percent: 100 · mean(argmax outputs = target).

    With a pad token, targets that equal it are left out; a batch of nothing but padding
    is NaN and weighs nothing. A batch weighs as much in the epoch as it has targets
    that are kept, so the epoch is the share of all its targets. A row with a score that
    is not a number is a miss. One score for each example, a yes or a no, is measured by
    `AccuracyMetric.binary`.

    Shapes: outputs [n, classes], at least 2 classes; targets [n]
    Example:
        >>> AccuracyMetric().with_pad_token(3)
        AccuracyMetric(pad_token=3)

    Why: a target that is no class is an error, as it is mostly padding without a pad
    token; Burn counts it as a miss, and one column of scores always as class 0. Burn
    weighs a batch by its padding too.
    """

    name = "Accuracy"
    Input = AccuracyInput
    unit = "%"

    def __init__(self, pad_token: int | None = None) -> None:
        super().__init__()
        self.pad_token = pad_token
        self.threshold: float | None = None

    @classmethod
    def binary(cls, threshold: float = 0.5) -> Self:
        """For one score for each example: yes, which is the target 1, above it.

        threshold: 0.5, the default, for probabilities; 0.0 for logits, which are above
            0 where their probability is above a half.

        Shapes: outputs [n] or [n, 1]; targets [n] or [n, 1], each 0 or 1
        Example:
            >>> from burnbook.tensor import Tensor
            >>> scores = Tensor.from_floats([[0.2], [0.9], [0.4]])
            >>> item = AccuracyInput(scores, Tensor.from_ints([0, 1, 1]))
            >>> AccuracyMetric.binary().update(item, None).formatted
            'epoch 66.67 % - batch 66.67 %'

        Raises:
            DataError: in `update`: a target is neither 0 nor 1, or a score is below 0
                or above 1 although the threshold is between them.
        """
        made = cls()
        made.threshold = float(threshold)
        return made

    def with_pad_token(self, pad_token: int) -> AccuracyMetric:
        """The same metric, ignoring targets that are only padding."""
        return self.changed(pad_token=pad_token)

    def update(self, item: AccuracyInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the predictions of one batch with its targets."""
        if self.threshold is not None:
            right, targets = self._decided(item, self.threshold)
        else:
            outputs, targets = scores_of(self.name, item.outputs, item.targets)
            kept = without_pads(targets, self.pad_token)
            check_classes(self.name, kept, outputs.shape[1])
            right = outputs.argmax(axis=1) == targets
            right &= ~np.isnan(outputs).any(axis=1)
        share, count = kept_share(right, targets, self.pad_token)
        return self.state.update(100.0 * share, count, self.options)

    def _decided(
        self, item: AccuracyInput, threshold: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which of the yeses and nos are right, and the targets."""
        scores, targets = one_score_of(self.name, item.outputs, item.targets)
        check_yes_or_no(self.name, without_pads(targets, self.pad_token))
        if 0.0 < threshold < 1.0:
            cure = "AccuracyMetric.binary(0.0) for logits, or output.sigmoid()"
            check_probabilities(self.name, scores, cure)
        right = (scores > threshold) == (targets == 1)
        return right & ~np.isnan(scores), targets

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f"pad_token={self.pad_token}"
        if self.threshold is None:
            return f"AccuracyMetric({pad})"
        more = f".with_pad_token({self.pad_token})" if pad else ""
        return f"AccuracyMetric.binary({self.threshold}){more}"


class TopKAccuracyMetric(NumericMetric):
    """How often the target is among the k best classes, in percent.

    Shapes: outputs [n, classes], at least 2 classes; targets [n]
    Example:
        >>> TopKAccuracyMetric(5).with_pad_token(0)
        TopKAccuracyMetric(5, pad_token=0)
        >>> TopKAccuracyMetric(3).with_name("Top-3 Accuracy").name
        'Top-3 Accuracy'

    Why: among equal scores the class with the lower number comes first, so that k = 1
    is the accuracy; a score that is not a number never makes a hit. A target that is no
    class is an error, as for AccuracyMetric. In Burn 0.15 the output of a
    classification does not adapt to this metric; here it does.
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
        kept = without_pads(targets, self.pad_token)
        check_classes(self.name, kept, outputs.shape[1])
        known = (targets >= 0) & (targets < outputs.shape[1])
        place = np.where(known, targets, 0)[:, None]
        own = np.take_along_axis(outputs, place, axis=1)
        number = np.arange(outputs.shape[1])
        ahead = ~(outputs <= own) | ((outputs == own) & (number < place))
        ahead &= number != place
        hit = known & (ahead.sum(axis=1) < self.k) & ~np.isnan(own[:, 0])
        share, count = kept_share(hit, targets, self.pad_token)
        return self.state.update(100.0 * share, count, self.options)

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f", pad_token={self.pad_token}"
        return f"TopKAccuracyMetric({self.k}{pad})"


def without_pads(targets: np.ndarray, pad_token: int | None) -> np.ndarray:
    """The targets that are not padding."""
    return targets if pad_token is None else targets[targets != pad_token]


def kept_share(
    right: np.ndarray, targets: np.ndarray, pad_token: int | None
) -> tuple[float, int]:
    """The share of right ones among the targets that are not padding, and these."""
    kept = np.ones(len(targets), bool) if pad_token is None else targets != pad_token
    count = int(np.count_nonzero(kept))
    share = np.count_nonzero(right & kept) / count if count else float("nan")
    return share, count
