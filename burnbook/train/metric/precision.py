"""Precision: how many of the yeses were right."""

from __future__ import annotations

import numpy as np

from burnbook.train.metric.confusion_stats import RatioMetric, divided


class PrecisionMetric(RatioMetric):
    """How many of the decisions for a class were right, in percent: tp / (tp + fp).

    A class that occurs and was never decided for counts as 0; one that does not occur
    either is NaN and is left out of the Macro mean. The epoch's value comes from the
    epoch's counts, and ends the log as a line of its own: `83.5,final`.

    Shapes: predictions [n, classes]; targets [n, classes]
    Example:
        >>> from burnbook.train.metric import ClassReduction
        >>> PrecisionMetric.multiclass(1, ClassReduction.Macro).name
        'Precision @ TopK(1) [Macro]'

    Why: in Burn `multilabel` keeps the default's name whatever its threshold; here
    every metric is named after its own rule, so two of them do not share a log file.
    """

    name = "Precision @ Threshold(0.5) [Macro]"
    title = "Precision"

    def ratio(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray) -> np.ndarray:
        """tp / (tp + fp); 0 where nothing was decided for."""
        return divided(tp, tp + fp, tp + fp + fn)
