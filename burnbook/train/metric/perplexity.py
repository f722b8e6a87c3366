"""Perplexity: e to the mean negative log-likelihood of a token."""

from __future__ import annotations

import numpy as np

from burnbook.train.metric.base import (
    MetricEntry,
    MetricMetadata,
    NumericMetric,
    batch_entry,
    final_entry,
)
from burnbook.train.metric.input import PerplexityInput
from burnbook.train.metric.reading import (
    check_classes,
    check_not_probabilities,
    scores_of,
)


class PerplexityMetric(NumericMetric):
    """e to the mean negative log-likelihood per word: exp(−Σ log p(target) / words).

    A model that guesses among V words has perplexity V, a perfect one has 1. Outputs
    are scores of any size. With a pad token, targets that equal it are left out; a
    batch of nothing but padding is infinite and weighs nothing.

    Shapes: outputs [tokens, vocabulary]; targets [tokens]
    Example:
        >>> PerplexityMetric().with_pad_token(0)
        PerplexityMetric(pad_token=0)

    Why: the epoch's value comes from the log-likelihood of all its words, not from the
    mean of the batches' perplexities, which is larger; it ends the log as its own line.
    """

    name = "Perplexity"
    Input = PerplexityInput
    higher_is_better = False

    def __init__(self, pad_token: int | None = None) -> None:
        super().__init__()
        self.pad_token = pad_token
        self.clear()

    def with_pad_token(self, pad_token: int) -> PerplexityMetric:
        """The same metric, ignoring targets that are only padding."""
        return self.changed(pad_token=pad_token)

    def clear(self) -> None:
        """Forget the epoch that has just ended."""
        self.surprise, self.words, self.batches = 0.0, 0, 0
        self.batch = float("nan")

    def update(self, item: PerplexityInput, metadata: MetricMetadata) -> MetricEntry:
        """Measure the negative log-likelihood of one batch."""
        outputs, targets = scores_of(self.name, item.outputs, item.targets)
        if self.pad_token is not None:
            kept = targets != self.pad_token
            outputs, targets = outputs[kept], targets[kept]
        check_classes(self.name, targets, outputs.shape[1])
        check_not_probabilities(self.name, outputs)
        surprise = surprise_of(outputs, targets)
        self.surprise += surprise
        self.words += len(targets)
        self.batches += 1
        self.batch = perplexity(surprise, len(targets))
        epoch = perplexity(self.surprise, self.words)
        return batch_entry(self.options, epoch, self.batch, len(targets))

    def compute(self) -> MetricEntry | None:
        """The perplexity of all words of the epoch."""
        if not self.batches:
            return None
        epoch = perplexity(self.surprise, self.words)
        return final_entry(self.options, epoch, self.batch)

    def value(self) -> float | None:
        """The perplexity of the last batch."""
        return self.batch

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f"pad_token={self.pad_token}"
        return f"PerplexityMetric({pad})"


def surprise_of(outputs: np.ndarray, targets: np.ndarray) -> float:
    """−Σ log softmax(outputs)[target], in double precision.

    Shapes: outputs [tokens, vocabulary]; targets [tokens]
    """
    if not len(targets):
        return 0.0
    scores = outputs.astype(np.float64)
    scores -= scores.max(axis=1, keepdims=True)
    own = np.take_along_axis(scores, targets[:, None].astype(np.intp), axis=1)
    return float((np.log(np.exp(scores).sum(axis=1)) - own[:, 0]).sum())


def perplexity(surprise: float, words: int) -> float:
    """exp(surprise / words); infinite without words, and on overflow.

    Example:
        >>> perplexity(0.0, 3), perplexity(0.0, 0), perplexity(1e6, 1)
        (1.0, inf, inf)
    """
    if not words:
        return float("inf")
    with np.errstate(over="ignore"):
        return float(np.exp(np.float64(surprise / words)))
