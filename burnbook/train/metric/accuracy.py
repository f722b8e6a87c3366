"""Building blocks · Metric. Accuracy: how many guesses were right, in percent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from burnbook.train.metric.base import (
    FormatOptions,
    MetricEntry,
    MetricMetadata,
    NumericMetric,
)
from burnbook.train.metric.input import AccuracyInput

if TYPE_CHECKING:
    from burnbook.tensor import Tensor


class AccuracyMetric(NumericMetric):
    """How many guesses are right, in percent: 100 · mean(argmax outputs = target).

    With a pad token, targets that equal it are left out.

    Example:
        >>> AccuracyMetric().with_pad_token(3)
        AccuracyMetric(pad_token=3)
    """

    name = "Accuracy"
    Input = AccuracyInput
    unit = "%"
    options = FormatOptions(name, unit="%", precision=2)

    def __init__(self, pad_token: int | None = None) -> None:
        super().__init__()
        self.pad_token = pad_token

    def with_pad_token(self, pad_token: int) -> AccuracyMetric:
        """The same metric, blind to targets that are only padding."""
        return AccuracyMetric(pad_token)

    def update(self, item: AccuracyInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the guesses of one batch with its targets."""
        guesses = values(item.outputs).argmax(axis=1)
        targets = values(item.targets)
        right = guesses == targets
        if self.pad_token is None:
            share = np.count_nonzero(right) / len(targets)
        else:
            kept = targets != self.pad_token
            count = np.count_nonzero(kept)
            share = np.count_nonzero(right & kept) / count if count else float("nan")
        return self.state.update(100.0 * share, len(targets), self.options)

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f"pad_token={self.pad_token}"
        return f"AccuracyMetric({pad})"


def values(tensor: Tensor) -> np.ndarray:
    """The numbers of a tensor as a NumPy array."""
    return tensor.backend.to_numpy(tensor.value)
