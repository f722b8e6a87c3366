"""Building blocks · Metric. What metrics take in.

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
class LossInput:
    """What the loss metric needs: the loss itself.

    Shapes: tensor [1] or [n]
    """

    tensor: Tensor
