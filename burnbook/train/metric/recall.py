"""Recall: how many of the things to find were found."""

from __future__ import annotations

from typing import Self

import numpy as np

from burnbook.train.metric.classification import ClassReduction, Threshold, TopK
from burnbook.train.metric.confusion_stats import ConfusionMetric, divided


class RecallMetric(ConfusionMetric):
    """How much of a class was found, in percent: tp / (tp + fn).

    A class that never occurs counts as 0. The epoch's value comes from the epoch's
    counts, and ends the log as a line of its own: `83.5,final`.

    Shapes: predictions [n, classes]; targets [n, classes]
    Example:
        >>> RecallMetric.multilabel(0.3, ClassReduction.Micro)
        RecallMetric(Threshold(0.3), Micro)
    """

    name = "Recall @ Threshold(0.5) [Macro]"
    title = "Recall"

    @classmethod
    def binary(cls, threshold: float = 0.5) -> Self:
        """For one class: yes above the threshold."""
        return cls(Threshold(threshold))

    @classmethod
    def multiclass(
        cls, top_k: int = 1, class_reduction: ClassReduction = ClassReduction.Macro
    ) -> Self:
        """For one class out of many: yes for the best k."""
        return cls(TopK(top_k), class_reduction)

    @classmethod
    def multilabel(
        cls,
        threshold: float = 0.5,
        class_reduction: ClassReduction = ClassReduction.Macro,
    ) -> Self:
        """For any number of classes at once: yes above the threshold."""
        return cls(Threshold(threshold), class_reduction)

    def ratio(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray) -> np.ndarray:
        """tp / (tp + fn); 0 where there was nothing to find."""
        return divided(tp, tp + fn)
