"""Metrics of whole epochs: scores are kept until the end.

A ranking cannot be assembled from the rankings of its parts, so these metrics say
N/A for a batch, and log one line when the epoch is over.
"""

from __future__ import annotations

from typing import Self

import numpy as np

from burnbook.train.metric.base import (
    MetricEntry,
    MetricMetadata,
    NumericEntry,
    NumericMetric,
)
from burnbook.train.metric.classification import ClassReduction
from burnbook.train.metric.confusion_stats import confusion_arrays
from burnbook.train.metric.input import ConfusionStatsInput
from burnbook.train.metric.reading import check_one_class


class RankingMetric(NumericMetric):
    """The base of metrics that need all scores of an epoch at once.

    A subclass defines what a ranking is worth: `area(scores, targets)`, class by class.
    """

    Input = ConfusionStatsInput
    unit = "%"
    title = ""
    whole_epochs_only = True
    is_binary = False  # whether there must be one class

    def __init__(self, class_reduction: ClassReduction = ClassReduction.Macro) -> None:
        super().__init__()
        self.class_reduction = class_reduction
        self.name = f"{self.title} [{class_reduction}]"
        self.clear()

    def area(self, scores: np.ndarray, targets: np.ndarray) -> float:
        """The area of one class, between 0 and 1; NaN where it is undefined.

        Shapes: scores [n]; targets [n]
        """
        raise TypeError(f"{type(self).__name__} does not say how it ranks")

    def clear(self) -> None:
        """Forget the epoch that has just ended."""
        self.scores: list[np.ndarray] = []
        self.targets: list[np.ndarray] = []

    def update(
        self, item: ConfusionStatsInput, metadata: MetricMetadata
    ) -> MetricEntry:
        """Keep the scores of one batch."""
        if self.is_binary:
            check_one_class(self.name, item.predictions, item.targets)
        scores, targets = confusion_arrays(self.name, item)
        self.scores.append(scores.copy())
        self.targets.append(targets)
        return MetricEntry.not_available(self.options)

    def compute(self) -> MetricEntry | None:
        """The value of the whole epoch."""
        if not self.scores:
            return None
        value = 100.0 * self._share()
        options = self.options
        text = f"epoch {options.write(value)} - batch N/A {options.unit}"
        return MetricEntry(self.name, text, NumericEntry(value).serialize())

    def value(self) -> float | None:
        """Nothing: a batch has no value."""

    def _share(self) -> float:
        scores, targets = np.concatenate(self.scores), np.concatenate(self.targets)
        if self.class_reduction is ClassReduction.Micro:
            scores, targets = scores.reshape(-1, 1), targets.reshape(-1, 1)
        pairs = zip(scores.T, targets.T, strict=True)
        areas = [self.area(score, target) for score, target in pairs]
        known = [area for area in areas if not np.isnan(area)]
        return float(np.mean(known)) if known else 0.5

    @classmethod
    def binary(cls) -> Self:
        """For one class; probabilities and logits rank alike.

        Shapes: predictions [n, 1]; targets [n, 1]
        """
        return cls().changed(is_binary=True)

    @classmethod
    def multiclass(cls, class_reduction: ClassReduction = ClassReduction.Macro) -> Self:
        """For one class out of many, each against all others."""
        return cls(class_reduction)

    @classmethod
    def multilabel(cls, class_reduction: ClassReduction = ClassReduction.Macro) -> Self:
        """For any number of classes at once."""
        return cls(class_reduction)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.class_reduction})"


class AurocMetric(RankingMetric):
    """How often a positive outranks a negative, ties counting half, in percent.

    The area under the receiver operating characteristic. Macro leaves out classes that
    have only positives or only negatives; 50 % if there is no other class.

    Shapes: predictions [n, classes]; targets [n, classes]
    Example:
        >>> AurocMetric.binary().name
        'AUROC [Macro]'

    Why: a score that is not a number outranks nothing and is outranked by nothing.

    Source: Hanley and McNeil, The meaning and use of the area under a ROC curve, 1982.
    """

    name = "AUROC [Macro]"
    title = "AUROC"

    def area(self, scores: np.ndarray, targets: np.ndarray) -> float:
        """(pairs in the right order + ½ pairs with equal scores) / all pairs."""
        yes, no = scores[targets], np.sort(scores[~targets])
        pairs = len(yes) * len(no)
        if not pairs:
            return float("nan")
        no, yes = no[~np.isnan(no)], yes[~np.isnan(yes)]
        below = np.searchsorted(no, yes, "left").sum()
        not_above = np.searchsorted(no, yes, "right").sum()
        return float(below + not_above) / 2.0 / pairs


class AucPrMetric(RankingMetric):
    """The mean precision at the rank of every positive, in percent.

    The average precision: Σ over positives of (positives so far / rank) / positives.
    Macro leaves out classes without positives; 50 % if there is no other class.

    Shapes: predictions [n, classes]; targets [n, classes]
    Example:
        >>> AucPrMetric(ClassReduction.Micro).name
        'AUC-PR [Micro]'

    Why: equal scores keep their order, as in Burn, where others give them one rank.
    """

    name = "AUC-PR [Macro]"
    title = "AUC-PR"

    def area(self, scores: np.ndarray, targets: np.ndarray) -> float:
        """Σ over the ranks of positives (positives so far / rank) / positives."""
        count = np.count_nonzero(targets)
        if not count:
            return float("nan")
        ranked = targets[np.argsort(-scores, kind="stable")]
        ranks = np.flatnonzero(ranked) + 1
        return float((np.arange(1, count + 1) / ranks).mean())
