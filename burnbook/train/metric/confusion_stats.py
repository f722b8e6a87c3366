"""Confusion: which decisions were right, and which were not.

    decided \\ target     yes               no
    yes                  true positive     false positive
    no                   false negative    true negative

Precision, recall and F-beta are fractions of these four counts. Over an epoch the
counts are summed and the fraction is taken once: the mean of the batches' fractions
would give a batch with one positive the weight of a batch with fifty.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from burnbook.train.metric.base import (
    MetricEntry,
    MetricMetadata,
    NumericMetric,
    batch_entry,
    final_entry,
)
from burnbook.train.metric.classification import ClassReduction, Rule, Threshold, TopK
from burnbook.train.metric.input import ConfusionStatsInput
from burnbook.train.metric.reading import (
    check_best_of,
    check_one_class,
    check_probabilities,
    check_scores,
    check_several,
    check_yes_or_no,
    same_shape,
)

LOGITS = "a threshold of 0.0 for logits, or the probabilities: output.sigmoid()"


class ConfusionStats:
    """The four counts of a batch: one number each (Micro), or one per class (Macro).

    Shapes: predictions [n, classes]; targets [n, classes] -> [1] or [classes]
    Example:
        >>> from burnbook.backend import Numpy
        >>> from burnbook.tensor import Tensor
        >>> scores = Tensor.from_floats([[0.9, 0.1], [0.8, 0.2]], Numpy())
        >>> right = Tensor.from_ints([[1, 0], [0, 1]], Numpy()).bool()
        >>> input = ConfusionStatsInput(scores, right)
        >>> ConfusionStats(input, Threshold(0.5), ClassReduction.Macro)
        ConfusionStats(tp [1, 0], fp [1, 0], tn [0, 1], fn [0, 1])
    """

    def __init__(
        self,
        item: ConfusionStatsInput,
        decision_rule: Rule | None = None,
        class_reduction: ClassReduction = ClassReduction.Macro,
        where: str = "ConfusionStats",
    ) -> None:
        rule = decision_rule or Threshold()
        scores, targets = confusion_arrays(where, item)
        if isinstance(rule, Threshold) and 0.0 < rule.threshold < 1.0:
            check_probabilities(where, scores, LOGITS)
        if isinstance(rule, TopK):
            check_best_of(where, rule.k, item.predictions, item.targets)
            check_several(where, item.predictions, item.targets)
        self.decided, self.targets = rule.decide(scores), targets
        self.class_reduction = class_reduction

    def _count(self, mask: np.ndarray) -> np.ndarray:
        if self.class_reduction is ClassReduction.Micro:
            return np.array([np.count_nonzero(mask)], float)
        return np.count_nonzero(mask, axis=0).astype(float)

    def true_positive(self) -> np.ndarray:
        """Decided for, and rightly."""
        return self._count(self.decided & self.targets)

    def true_negative(self) -> np.ndarray:
        """Decided against, and rightly."""
        return self._count(~self.decided & ~self.targets)

    def false_positive(self) -> np.ndarray:
        """Decided for, but wrongly."""
        return self._count(self.decided & ~self.targets)

    def false_negative(self) -> np.ndarray:
        """Decided against, but wrongly."""
        return self._count(~self.decided & self.targets)

    def positive(self) -> np.ndarray:
        """What should have been decided for: tp + fn."""
        return self._count(self.targets)

    def negative(self) -> np.ndarray:
        """What should have been decided against: tn + fp."""
        return self._count(~self.targets)

    def predicted_positive(self) -> np.ndarray:
        """What was decided for: tp + fp."""
        return self._count(self.decided)

    def support(self) -> np.ndarray:
        """All decisions."""
        return self._count(np.ones_like(self.targets))

    def ratio_of_support(self, counts: np.ndarray) -> np.ndarray:
        """Counts as shares of all decisions."""
        return counts / self.support()

    def __repr__(self) -> str:
        counts = {
            "tp": self.true_positive(),
            "fp": self.false_positive(),
            "tn": self.true_negative(),
            "fn": self.false_negative(),
        }
        shown = (
            f"{name} {[int(one) for one in count]}" for name, count in counts.items()
        )
        return f"ConfusionStats({', '.join(shown)})"


def confusion_arrays(
    where: str, item: ConfusionStatsInput
) -> tuple[np.ndarray, np.ndarray]:
    """Scores, and yes or no for each of them."""
    wanted = "[n, classes]"
    scores, targets = same_shape(where, item.predictions, item.targets, wanted, 2)
    check_scores(where, item.predictions, item.targets)
    check_yes_or_no(where, targets)
    return scores, targets.astype(bool)


class ConfusionMetric(NumericMetric):
    """The base of metrics that are a fraction of confusion counts.

    A subclass defines which fraction: `ratio(tp, fp, fn)`, class by class. A class that
    neither occurs nor is decided for has none: it is NaN, and no part of a Macro mean.
    """

    Input = ConfusionStatsInput
    unit = "%"
    title = ""
    is_binary = False  # whether there must be one class

    def __init__(
        self,
        decision_rule: Rule | None = None,
        class_reduction: ClassReduction = ClassReduction.Macro,
    ) -> None:
        super().__init__()
        self.decision_rule: Rule = decision_rule or Threshold()
        self.class_reduction = class_reduction
        self.name = f"{self.title} @ {self.decision_rule} [{class_reduction}]"
        self.clear()

    def ratio(self, tp: np.ndarray, fp: np.ndarray, fn: np.ndarray) -> np.ndarray:
        """The fraction of each class; NaN where it is undefined."""
        raise TypeError(f"{type(self).__name__} does not say which ratio it is")

    def clear(self) -> None:
        """Forget the epoch that has just ended."""
        self.counts: Any = 0.0  # [3, classes] after the first batch
        self.batches = 0
        self.batch = self.epoch = float("nan")

    def update(
        self, item: ConfusionStatsInput, metadata: MetricMetadata
    ) -> MetricEntry:
        """Count the decisions of one batch."""
        if self.is_binary:
            check_one_class(self.name, item.predictions, item.targets)
        stats = ConfusionStats(
            item, self.decision_rule, self.class_reduction, self.name
        )
        counts = np.stack(
            [stats.true_positive(), stats.false_positive(), stats.false_negative()]
        )
        self.counts = self.counts + counts
        self.batches += 1
        self.batch, self.epoch = self._percent(counts), self._percent(self.counts)
        return batch_entry(self.options, self.epoch, self.batch, len(stats.targets))

    def compute(self) -> MetricEntry | None:
        """The fraction of the counts of the whole epoch."""
        return (
            final_entry(self.options, self.epoch, self.batch) if self.batches else None
        )

    def value(self) -> float | None:
        """The value of the last batch; None where it is undefined."""
        return None if np.isnan(self.batch) else self.batch

    def _percent(self, counts: np.ndarray) -> float:
        ratios = self.ratio(*counts)
        ratios = ratios[~np.isnan(ratios)]
        return 100.0 * float(ratios.mean()) if len(ratios) else float("nan")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.decision_rule}, {self.class_reduction})"


class RatioMetric(ConfusionMetric):
    """The base of precision and recall: what makes them, by the kind of task."""

    @classmethod
    def binary(cls, threshold: float = 0.5) -> Self:
        """For one class: yes above the threshold; 0.0 for logits.

        Shapes: predictions [n, 1]; targets [n, 1]
        """
        return cls(Threshold(threshold)).changed(is_binary=True)

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


def divided(above: np.ndarray, below: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """A fraction that is 0 where the denominator is 0, and NaN where nothing is seen.

    Example:
        >>> seen = np.array([3.0, 1.0, 0.0])
        >>> divided(np.array([1.0, 0.0, 0.0]), np.array([2.0, 0.0, 0.0]), seen)
        array([0.5, 0. , nan])
    """
    return np.where(seen == 0, np.nan, above / np.where(below == 0, 1.0, below))
