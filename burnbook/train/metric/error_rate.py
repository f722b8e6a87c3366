"""Error rates of text: edits per character, or per word."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from burnbook.train.metric.base import MetricEntry, MetricMetadata, NumericMetric
from burnbook.train.metric.input import CerInput, WerInput
from burnbook.train.metric.reading import before_pad, tokens_of
from burnbook.train.metric.sequences import edit_distance


class ErrorRate(NumericMetric):
    """The base of both: 100 · Σ edit distances / Σ lengths of the references.

    A batch weighs as much in the epoch as its references are long, so the epoch's mean
    is the rate of all its text; references without length weigh nothing.
    """

    unit = "%"
    higher_is_better = False

    def __init__(self, pad_token: int | None = None) -> None:
        super().__init__()
        self.pad_token = pad_token

    def with_pad_token(self, pad_token: int) -> Self:
        """The same metric, ignoring padding."""
        return self.changed(pad_token=pad_token)

    def update(self, item: Any, metadata: MetricMetadata) -> MetricEntry:
        """Count the edits of one batch."""
        outputs, targets = tokens_of(self.name, item.outputs, item.targets)
        edits = length = 0
        for output, target in zip(outputs, targets, strict=True):
            reference = self.cut(target)
            edits += edit_distance(reference, self.cut(output))
            length += len(reference)
        # Without a token in any reference there is no rate, but there are edits: they
        # count as those of one token, so that an epoch does not lose them.
        rate = 100.0 * edits / max(length, 1)
        return self.state.update(rate, length or min(edits, 1), self.options)

    def cut(self, tokens: np.ndarray) -> list[int]:
        """A sequence without its padding."""
        return before_pad(tokens, self.pad_token)

    def __repr__(self) -> str:
        pad = "" if self.pad_token is None else f"pad_token={self.pad_token}"
        return f"{type(self).__name__}({pad})"


class CharErrorRate(ErrorRate):
    """Edits per character of the references, in percent; tokens are characters.

    Shapes: outputs [n, t]; targets [n, r]
    Example:
        >>> CharErrorRate().with_pad_token(0)
        CharErrorRate(pad_token=0)

    Why: as in Burn, a sequence is cut to as many tokens as it has besides padding,
    which is the same as cutting at the first pad token when padding comes last.
    """

    name = "CER"
    Input = CerInput

    def cut(self, tokens: np.ndarray) -> list[int]:
        """As many tokens as are not padding, from the front."""
        if self.pad_token is None:
            return tokens.tolist()
        return tokens[: np.count_nonzero(tokens != self.pad_token)].tolist()


class WordErrorRate(ErrorRate):
    """Edits per word of the references, in percent; tokens are words.

    Shapes: outputs [n, t]; targets [n, r]
    Example:
        >>> WordErrorRate().with_pad_token(0).name
        'WER'

    Why: as in Burn, a sequence ends before its first pad token.
    """

    name = "WER"
    Input = WerInput
