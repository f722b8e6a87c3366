"""What a model said of each item, and where it was wrong."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burnbook.core.errors import ConfigError
from burnbook_widgets.chapters.answers import as_array
from burnbook_widgets.dataset.labels import Labels


class Scores:
    """Predictions for a dataset: the confusion matrix and the worst mistakes.

    predictions: scores or probabilities [n, classes], the scores of two classes' second
    [n], or the predicted labels [n]

    Why: the worst mistakes are those the model was surest of: smallest probability of
    the true class, so −log p, the loss of the item, is largest.
    """

    def __init__(self, predictions: Any, labels: Labels) -> None:
        values = as_array(predictions)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        count = len(labels.dataset)
        if values.ndim not in (1, 2) or len(values) != count:
            raise ConfigError(
                "DatasetBrowser",
                f"the predictions do not fit {count:,} items",
                [("predictions", f"[{', '.join(map(str, values.shape))}]")],
                "scores of shape [items, classes], or one label for each item",
            )
        if values.ndim == 1 and values.dtype.kind == "f":
            values = _two_columns(values)
        self.chances: np.ndarray | None = None
        if values.ndim == 2:
            labels.extra = list(range(values.shape[1])) if _whole(labels) else []
            labels.sort()
            self._check_columns(values, labels)
            self.chances = as_chances(values)
            self.predicted = self.chances.argmax(1)
        else:
            keys = values.tolist()
            labels.extra = sorted(set(keys), key=str)
            labels.sort()
            self.predicted = np.array([labels.code_of(key) for key in keys], dtype=int)
        self.names = labels.names
        self.truth = np.array([_only(codes) for codes in labels.codes], dtype=int)

    def _check_columns(self, values: np.ndarray, labels: Labels) -> None:
        if values.shape[1] != len(labels.names):
            raise ConfigError(
                "DatasetBrowser",
                f"scores of {values.shape[1]} classes, the labels have "
                f"{len(labels.names)}",
                [("classes", ", ".join(labels.names[:12]))],
                "classes=, the names in the order of the scores",
            )

    def confusion(self) -> np.ndarray:
        """How often each class was taken for each: rows are the truth."""
        size = len(self.names)
        judged = self.truth >= 0
        places = self.truth[judged] * size + self.predicted[judged]
        return np.bincount(places, minlength=size * size).reshape(size, size)

    def accuracy(self) -> float:
        """The share of items whose class was found."""
        judged = self.truth >= 0
        right = self.predicted[judged] == self.truth[judged]
        return float(right.mean()) if right.size else 0.0

    def mistakes(self) -> list[int]:
        """The items whose class was not found, the worst first."""
        wrong = np.flatnonzero((self.truth >= 0) & (self.predicted != self.truth))
        if self.chances is None:
            return wrong.tolist()
        given = self.chances[wrong, self.truth[wrong]]
        return wrong[np.argsort(given, kind="stable")].tolist()

    def is_wrong(self, index: int) -> bool:
        """Whether the class of an item was not found."""
        truth = self.truth[index]
        return bool(truth >= 0 and truth != self.predicted[index])

    def top(self, index: int, most: int = 5) -> list[tuple[str, float]]:
        """The likeliest classes of an item with their probabilities."""
        if self.chances is None:
            return []
        row = self.chances[index]
        order = np.argsort(-row, kind="stable")[:most].tolist()
        truth = int(self.truth[index])
        if truth >= 0 and truth not in order:
            order[-1] = truth
        return [(self.names[code], float(row[code])) for code in order]


def as_chances(scores: np.ndarray) -> np.ndarray:
    """Scores as probabilities: as they are if they are some, else their softmax.

    Shapes: scores [n, classes] -> [n, classes]
    """
    scores = scores.astype(np.float64)
    sums = scores.sum(axis=1)
    if scores.size and (scores >= 0).all() and np.allclose(sums, 1, atol=1e-3):
        return scores
    high = scores.max(axis=1, keepdims=True, initial=-np.inf)
    powers = np.exp(scores - np.where(np.isfinite(high), high, 0))
    return np.nan_to_num(powers / powers.sum(axis=1, keepdims=True))


def _two_columns(values: np.ndarray) -> np.ndarray:
    """The score of the second of two classes as the probabilities of both."""
    if ((values < 0) | (values > 1)).any():
        values = 1 / (1 + np.exp(-np.clip(values, -60, 60)))
    return np.stack([1 - values, values], axis=1)


def _whole(labels: Labels) -> bool:
    """Whether labels count the columns of the scores."""
    keys = {key for codes in labels.keys for key in codes}
    return not labels.given and all(isinstance(key, int) for key in keys)


def _only(codes: Sequence[int]) -> int:
    return codes[0] if len(codes) == 1 else -1
