"""ROUGE-L: how many words of a text come in the same order."""

from __future__ import annotations

from collections.abc import Sequence

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import RougeLInput
from burnbook.train.metric.reading import before_pad, tokens_of
from burnbook.train.metric.sequences import common_length


class RougeLScore(NumericMetric):
    """F1 of the longest common subsequence, in percent.

    The mean over sequences of F1 = 2 L / (words of the output + of the reference),
    where L is the length of the longest common subsequence. Where both are empty there
    is nothing to compare, and they do not count.

    Shapes: outputs [n, t]; targets [n, r]
    Example:
        >>> RougeLScore().with_pad_token(0)
        RougeLScore(pad_token=0)

    Source: Lin, ROUGE: a package for automatic evaluation of summaries, 2004.
    """

    name = "ROUGE-L"
    Input = RougeLInput
    unit = "%"

    def __init__(self, pad_token: int | None = None) -> None:
        super().__init__()
        self.pad_token = pad_token

    def with_pad_token(self, pad_token: int) -> RougeLScore:
        """The same metric; sequences end before the first pad token."""
        return self.changed(pad_token=pad_token)

    def update(self, item: RougeLInput, metadata: MetricMetadata) -> MetricEntry:
        """Compare the texts of one batch."""
        outputs, targets = tokens_of(self.name, item.outputs, item.targets)
        pad = self.pad_token
        pairs = [
            (before_pad(output, pad), before_pad(target, pad))
            for output, target in zip(outputs, targets, strict=True)
        ]
        shares = [rouge_l(*pair) for pair in pairs if pair != ([], [])]
        mean = sum(shares) / len(shares) if shares else float("nan")
        return self.state.update(100.0 * mean, len(shares), self.options)

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f"pad_token={self.pad_token}"
        return f"RougeLScore({pad})"


def rouge_l(output: Sequence[int], target: Sequence[int]) -> float:
    """F1 of the longest common subsequence, between 0 and 1.

    Example:
        >>> rouge_l([1, 2, 3], [1, 3]), rouge_l([], []), rouge_l([1], [])
        (0.8, 1.0, 0.0)
    """
    length = len(output) + len(target)
    return 2.0 * common_length(target, output) / length if length else 1.0
