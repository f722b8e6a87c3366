"""Recall: how many of the things to find were found."""

from __future__ import annotations

import numpy as np

from burnbook.train.metric.confusion_stats import RatioMetric, divided


class RecallMetric(RatioMetric):
    """How much of a class was found, in percent: tp / (tp + fn).

    A class that was decided for and never occurs counts as 0; one that was not decided
    for either is NaN and is left out of the Macro mean. The epoch's value comes from
    the epoch's counts, and ends the log as a line of its own: `83.5,final`.

    Shapes: predictions [n, classes]; targets [n, classes]
    Example:
        >>> from burnbook.train.metric import ClassReduction
        >>> RecallMetric.multilabel(0.3, ClassReduction.Micro)
        RecallMetric(Threshold(0.3), Micro)
    """

    name = "Recall @ Threshold(0.5) [Macro]"
    title = "Recall"

    def ratio(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray) -> np.ndarray:
        """tp / (tp + fn); 0 where there was nothing to find."""
        return divided(tp, tp + fn, tp + fp + fn)
