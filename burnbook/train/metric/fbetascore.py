"""F-beta: precision and recall in one number."""

from __future__ import annotations

from typing import Self

import numpy as np

from burnbook.core.errors import ConfigError
from burnbook.train.metric.classification import (
    ClassReduction,
    Rule,
    Threshold,
    TopK,
)
from burnbook.train.metric.confusion_stats import ConfusionMetric, divided
from burnbook.train.numbers import plain_float


class FBetaScoreMetric(ConfusionMetric):
    """A mean of precision and recall: (1 + β²) tp / ((1 + β²) tp + β² fn + fp), in %.

    β says how much more recall counts than precision; β = 1 is the F1 score. A class
    that neither occurs nor is decided for is NaN and is left out of the Macro mean.

    Shapes: predictions [n, classes]; targets [n, classes]
    Example:
        >>> FBetaScoreMetric.binary(2.0, 0.5).name
        'FBetaScore (2) @ Threshold(0.5) [Macro]'

    Why: Burn's default β is 0, which is precision once more; here it is 1.
    """

    name = "FBetaScore (1) @ Threshold(0.5) [Macro]"

    def __init__(
        self,
        beta: float = 1.0,
        decision_rule: Rule | None = None,
        class_reduction: ClassReduction = ClassReduction.Macro,
    ) -> None:
        if not 0.0 <= beta < float("inf"):
            what = f"β = {beta!r} is not a number of at least 0"
            raise ConfigError("FBetaScoreMetric", what, cure="FBetaScoreMetric(1.0)")
        self.beta = float(beta)
        self.title = f"FBetaScore ({plain_float(self.beta)})"
        super().__init__(decision_rule, class_reduction)

    @classmethod
    def binary(cls, beta: float = 1.0, threshold: float = 0.5) -> Self:
        """For one class: yes above the threshold; 0.0 for logits.

        Shapes: predictions [n, 1]; targets [n, 1]
        """
        return cls(beta, Threshold(threshold)).changed(is_binary=True)

    @classmethod
    def multiclass(
        cls,
        beta: float = 1.0,
        top_k: int = 1,
        class_reduction: ClassReduction = ClassReduction.Macro,
    ) -> Self:
        """For one class out of many: yes for the best k."""
        return cls(beta, TopK(top_k), class_reduction)

    @classmethod
    def multilabel(
        cls,
        beta: float = 1.0,
        threshold: float = 0.5,
        class_reduction: ClassReduction = ClassReduction.Macro,
    ) -> Self:
        """For any number of classes at once: yes above the threshold."""
        return cls(beta, Threshold(threshold), class_reduction)

    def ratio(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray) -> np.ndarray:
        """(1 + β²) tp / ((1 + β²) tp + β² fn + fp); NaN where nothing is counted."""
        square = self.beta**2
        above = (1.0 + square) * tp
        below = above + square * fn + fp
        return divided(above, below, tp + fp + fn)

    def __repr__(self) -> str:
        rule, reduction = self.decision_rule, self.class_reduction
        return f"FBetaScoreMetric({plain_float(self.beta)}, {rule}, {reduction})"
