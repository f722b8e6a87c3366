"""Precision: how many of the yeses were right."""

from __future__ import annotations

from typing import Self

import numpy as np

from burnbook.train.metric.classification import ClassReduction, Threshold, TopK
from burnbook.train.metric.confusion_stats import ConfusionMetric, divided


class PrecisionMetric(ConfusionMetric):
    """How many of the decisions for a class were right, in percent: tp / (tp + fp).

    A class that was never decided for counts as 0. The epoch's value comes from the
    epoch's counts, and ends the log as a line of its own: `83.5,final`.

    Shapes: predictions [n, classes]; targets [n, classes]
    Example:
        >>> PrecisionMetric.multiclass(1, ClassReduction.Macro).name
        'Precision @ TopK(1) [Macro]'

    Why: in Burn `multilabel` keeps the default's name whatever its threshold; here
    every metric is named after its own rule, so two of them do not share a log file.
    """

    name = "Precision @ Threshold(0.5) [Macro]"
    title = "Precision"

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
        """tp / (tp + fp); 0 where nothing was decided for."""
        return divided(tp, tp + fp)
