"""What metrics take in.

Every metric has an input type of its own, so that one output can serve many metrics
without two of them wanting the same name for different things.
"""

from __future__ import annotations

from dataclasses import dataclass

from burnbook.tensor import Tensor


@dataclass(frozen=True, slots=True)
class AccuracyInput:
    """What accuracy needs.

    Shapes: outputs [n, classes]; targets [n]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class TopKAccuracyInput:
    """What top-k accuracy needs.

    Shapes: outputs [n, classes]; targets [n]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class LossInput:
    """What the loss metric needs: the loss itself.

    Shapes: tensor [1] or [n]
    """

    tensor: Tensor


@dataclass(frozen=True, slots=True)
class HammingScoreInput:
    """What the Hamming score needs: every label of every example, 0 or 1.

    Shapes: outputs [n, labels]; targets [n, labels]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class ConfusionStatsInput:
    """What precision, recall, F-beta, AUROC and AUC-PR need: targets yes or no.

    Shapes: predictions [n, classes]; targets [n, classes], of kind Bool
    """

    predictions: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class PerplexityInput:
    """What perplexity needs: a score for every word, and the word that came.

    Shapes: outputs [tokens, vocabulary]; targets [tokens]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class CerInput:
    """What the character error rate needs: characters as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class WerInput:
    """What the word error rate needs: words as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class BleuInput:
    """What BLEU needs: words as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class RougeLInput:
    """What ROUGE-L needs: words as numbers.

    Shapes: outputs [n, t]; targets [n, r]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class PsnrInput:
    """What the peak signal-to-noise ratio needs.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class SsimInput:
    """What the structural similarity needs.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class MsSsimInput:
    """What the structural similarity at several scales needs.

    Shapes: outputs [n, c, h, w]; targets [n, c, h, w]
    """

    outputs: Tensor
    targets: Tensor


@dataclass(frozen=True, slots=True)
class DiceInput:
    """What the Dice coefficient needs: a mask of zeros and ones for every class.

    Shapes: outputs [n, classes, ...]; targets [n, classes, ...]
    """

    outputs: Tensor
    targets: Tensor
