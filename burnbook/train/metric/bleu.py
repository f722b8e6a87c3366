"""BLEU: how many n-grams a translation shares with its reference."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from burnbook.core.errors import ConfigError
from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import BleuInput
from burnbook.train.metric.reading import at_least_one, before_pad, tokens_of


@dataclass(frozen=True, repr=False)
class AddEpsilon:
    """An n-gram length without a match counts as if ε n-grams had matched."""

    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not 0.0 < self.epsilon < float("inf"):
            what = f"ε = {self.epsilon!r} is not a number above 0"
            raise ConfigError("BleuSmoothing.AddEpsilon", what, cure="AddEpsilon(0.1)")

    def share(self, total: int, misses: int) -> float:
        """ε / total."""
        return self.epsilon / total

    def __repr__(self) -> str:
        return f"AddEpsilon({self.epsilon})"


@dataclass(frozen=True)
class Exponential:
    """The first length without a match counts as half a match, the next as a quarter.

    Source: Chen and Cherry, A systematic comparison of smoothing techniques for
    sentence-level BLEU, 2014, method 3.
    """

    def share(self, total: int, misses: int) -> float:
        """1 / (2ᵐ total) at the m-th length without a match."""
        return 1.0 / (2.0**misses * total)


class BleuSmoothing:
    """What an n-gram length without matches counts; without smoothing, BLEU is then 0.

    Example:
        >>> BleuSmoothing.AddEpsilon(0.1), BleuSmoothing.Exponential()
        (AddEpsilon(0.1), Exponential())
    """

    AddEpsilon = AddEpsilon
    Exponential = Exponential


Smoothing = AddEpsilon | Exponential | None


class BleuScore(NumericMetric):
    """The shared n-grams of 1 to n words, in percent: b · exp(mean of log pₖ).

    pₖ is the share of the outputs' k-grams that are in their references, none counted
    more often than it occurs there; b = exp(1 − r / c) punishes outputs (c words in
    all) that are shorter than the references (r words). Counts are summed over a batch;
    the epoch is the mean of its batches, as in Burn, each with the weight of its
    sequences that are not mere padding.

    Shapes: outputs [n, t]; targets [n, r]
    Example:
        >>> BleuScore().with_pad_token(0).with_smoothing(BleuSmoothing.Exponential())
        BleuScore(4, pad_token=0, smoothing=Exponential())
        >>> BleuScore(2).name
        'BLEU-2'

    Source: Papineni et al., BLEU: a method for automatic evaluation of machine
    translation, 2002.
    """

    name = "BLEU-4"
    Input = BleuInput
    unit = "%"

    def __init__(
        self,
        max_n: int = 4,
        pad_token: int | None = None,
        smoothing: Smoothing = None,
    ) -> None:
        super().__init__()
        self.max_n = at_least_one("BleuScore", "max_n", max_n)
        self.name = f"BLEU-{max_n}"
        self.pad_token, self.smoothing = pad_token, smoothing

    @classmethod
    def with_max_n(cls, max_n: int) -> BleuScore:
        """The same metric, with n-grams of up to so many words."""
        return cls(max_n)

    def with_pad_token(self, pad_token: int) -> BleuScore:
        """The same metric; sequences end before the first pad token."""
        return self.changed(pad_token=pad_token)

    def with_smoothing(self, smoothing: Smoothing) -> BleuScore:
        """The same metric, with smoothing for lengths without matches."""
        return self.changed(smoothing=smoothing)

    def update(self, item: BleuInput, metadata: MetricMetadata) -> MetricEntry:
        """Count the shared n-grams of one batch."""
        outputs, targets = tokens_of(self.name, item.outputs, item.targets)
        pad = self.pad_token
        pairs = [
            (before_pad(output, pad), before_pad(target, pad))
            for output, target in zip(outputs, targets, strict=True)
        ]
        score = 100.0 * corpus_bleu(pairs, self.max_n, self.smoothing)
        count = sum(bool(output or target) for output, target in pairs)
        return self.state.update(score, count, self.options)

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f", pad_token={self.pad_token}"
        smoothing = f", smoothing={self.smoothing}" if self.smoothing else ""
        return f"BleuScore({self.max_n}{pad}{smoothing})"


Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


def corpus_bleu(pairs: Pairs, max_n: int, smoothing: Smoothing = None) -> float:
    """BLEU of (output, reference) pairs, between 0 and 1.

    Example:
        >>> corpus_bleu([([1, 2, 3, 4], [1, 2, 3, 4])], 4)
        1.0
        >>> round(corpus_bleu([([1, 2, 3], [1, 2, 4])], 2), 4)  # √(2/3 · 1/2)
        0.5774
    """
    length = sum(len(output) for output, _ in pairs)
    wanted = sum(len(target) for _, target in pairs)
    logs: list[float] = []
    misses = 0
    for n in range(1, max_n + 1):
        matches, total = shared_runs(pairs, n)
        if not total:
            return 0.0
        misses += not matches
        if matches:
            share = matches / total
        elif smoothing is None:
            return 0.0
        else:
            share = smoothing.share(total, misses)
        logs.append(math.log(share))
    brevity = min(0.0, 1.0 - wanted / length)
    return math.exp(brevity + math.fsum(logs) / max_n)


def shared_runs(pairs: Pairs, n: int) -> tuple[int, int]:
    """How many n-grams outputs share with references, and have in all."""
    matches = total = 0
    for output, target in pairs:
        mine, theirs = runs(output, n), runs(target, n)
        matches += (mine & theirs).total()
        total += mine.total()
    return matches, total


def runs(tokens: Sequence[int], n: int) -> Counter[tuple[int, ...]]:
    """Every n-gram of tokens, and how often it occurs.

    Example:
        >>> runs([5, 5, 5], 2)
        Counter({(5, 5): 2})
    """
    return Counter(zip(*(tokens[i:] for i in range(n)), strict=False))
