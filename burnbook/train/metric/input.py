"""What metrics take in.

Every metric has an input type of its own, so that one output can serve many metrics
without two of them wanting the same name for different things.
"""

from __future__ import annotations

from dataclasses import dataclass

from burnbook.tensor import Tensor


@dataclass(frozen=True, slots=True)
class OutputsAndTargets:
    """What a model gave, and what it should have given."""

    outputs: Tensor
    targets: Tensor


class AccuracyInput(OutputsAndTargets):
    """What accuracy needs.

    Shapes: outputs [n, classes]; targets [n]; for `AccuracyMetric.binary` both [n] or
        [n, 1]
    """

    __slots__ = ()


class TopKAccuracyInput(OutputsAndTargets):
    """What top-k accuracy needs.

    Shapes: outputs [n, classes]; targets [n]
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class LossInput:
    """What the loss metric needs: the loss itself, and of how many it is the mean.

    count: how many targets the batch has; None, the default: it is not known.

    Shapes: tensor [1] or [n]
    """

    tensor: Tensor
    count: int | None = None


class HammingScoreInput(OutputsAndTargets):
    """What the Hamming score needs: every label of every example, 0 or 1.

    Shapes: outputs [n, labels]; targets [n, labels]
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ConfusionStatsInput:
    """What precision, recall, F-beta, AUROC and AUC-PR need: targets yes or no.

    Shapes: predictions [n, classes]; targets [n, classes], of kind Bool
    """

    predictions: Tensor
    targets: Tensor


class PerplexityInput(OutputsAndTargets):
    """What perplexity needs: a score for every word, and the word that came.

    Shapes: outputs [tokens, vocabulary]; targets [tokens]
    """

    __slots__ = ()


class CerInput(OutputsAndTargets):
    """What the character error rate needs: characters as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    __slots__ = ()


class WerInput(OutputsAndTargets):
    """What the word error rate needs: words as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    __slots__ = ()


class BleuInput(OutputsAndTargets):
    """What BLEU needs: words as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    __slots__ = ()


class RougeLInput(OutputsAndTargets):
    """What ROUGE-L needs: words as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    __slots__ = ()


class PsnrInput(OutputsAndTargets):
    """What the peak signal-to-noise ratio needs.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    """

    __slots__ = ()


class SsimInput(OutputsAndTargets):
    """What the structural similarity needs.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    """

    __slots__ = ()


class MsSsimInput(OutputsAndTargets):
    """What the structural similarity at several scales needs.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    """

    __slots__ = ()


class DiceInput(OutputsAndTargets):
    """What the Dice coefficient needs: a mask of zeros and ones for every class.

    Shapes: outputs [n, classes, ...]; targets [n, classes, ...]
    """

    __slots__ = ()
