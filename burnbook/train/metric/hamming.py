"""Hamming score: how many labels of a set were right."""

from __future__ import annotations

import numpy as np

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import HammingScoreInput
from burnbook.train.metric.reading import (
    check_probabilities,
    check_scores,
    check_yes_or_no,
    same_shape,
)


class HammingScore(NumericMetric):
    """How many yes-or-no labels are right, in percent: 100 · mean((out > t) = target).

    With sigmoid, outputs are scores of any size and are mapped to (0, 1) by the
    logistic function first. A score that is not a number is wrong.

    Shapes: outputs [n, labels]; targets [n, labels]
    Example:
        >>> HammingScore().with_threshold(0.3).with_sigmoid(True)
        HammingScore(threshold=0.3, sigmoid=True)
    """

    name = "Hamming Score"
    Input = HammingScoreInput
    unit = "%"

    def __init__(self, threshold: float = 0.5, sigmoid: bool = False) -> None:
        super().__init__()
        self.threshold, self.sigmoid = threshold, sigmoid

    def with_threshold(self, threshold: float) -> HammingScore:
        """The same metric, which says yes above another threshold."""
        return self.changed(threshold=threshold)

    def with_sigmoid(self, sigmoid: bool) -> HammingScore:
        """The same metric, with the logistic function applied first or not."""
        return self.changed(sigmoid=sigmoid)

    def update(self, item: HammingScoreInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the labels of one batch, each by itself."""
        wanted = "[n, labels]"
        outputs, targets = same_shape(
            self.name, item.outputs, item.targets, wanted, rank=2
        )
        check_scores(self.name, item.outputs, item.targets)
        check_yes_or_no(self.name, targets)
        if self.sigmoid:
            outputs = squashed(outputs)
        elif 0.0 < self.threshold < 1.0:
            cure = "HammingScore(sigmoid=True) for logits, or output.sigmoid()"
            check_probabilities(self.name, outputs, cure)
        right = (outputs > float(self.threshold)) == targets.astype(bool)
        right &= ~np.isnan(outputs)
        share = np.count_nonzero(right) / right.size if right.size else float("nan")
        return self.state.update(100.0 * share, len(targets), self.options)

    def __repr__(self) -> str:
        return f"HammingScore(threshold={self.threshold}, sigmoid={self.sigmoid})"


def squashed(x: np.ndarray) -> np.ndarray:
    """The logistic function without overflow: 1 / (1 + e⁻ˣ).

    Example:
        >>> squashed(np.array([0.0, -1000.0, 1000.0]))
        array([0.5, 0. , 1. ])
    """
    small = np.exp(-np.abs(x))  # at most 1
    return np.where(x < 0, small, 1.0).astype(x.dtype) / (1.0 + small)
