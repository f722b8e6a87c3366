"""Building blocks · Learner. How curves are seen: smoothed, logarithmic, in part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from burnbook.errors import ConfigError

DETAIL = ("both", "steps", "epochs")
ROUGHEST, SMOOTHEST = 0.0, 0.99


@dataclass(frozen=True)
class Look:
    """smoothing: 0 to 0.99. detail: "both", "steps" (batches) or "epochs" (means)."""

    smoothing: float = 0.0
    log: bool = False
    detail: str = "both"

    def __post_init__(self) -> None:
        if not ROUGHEST <= self.smoothing <= SMOOTHEST:
            what = f"smoothing={self.smoothing!r} is not from 0 to {SMOOTHEST}"
            raise ConfigError("Dashboard", what, cure="0.9 averages about ten points")
        if self.detail not in DETAIL:
            what = f"detail={self.detail!r} is none that can be shown"
            raise ConfigError("Dashboard", what, cure=", ".join(DETAIL))

    @property
    def steps(self) -> bool:
        """Whether the batches are shown."""
        return self.detail != "epochs"

    @property
    def epochs(self) -> bool:
        """Whether the means of epochs are shown."""
        return self.detail != "steps"


def smooth(table: np.ndarray, beta: float) -> np.ndarray:
    """Exponential means of the second column: sᵢ / (1 − βⁱ), sᵢ = β sᵢ₋₁ + (1−β) yᵢ.

    Example:
        >>> rows = np.array([[0.0, 4.0], [1, 4], [2, np.nan], [3, 1]])
        >>> smooth(rows, 0.5)[:, 1].round(3).tolist()
        [4.0, 4.0, nan, 2.286]

    Why: s begins at 0; dividing by the weights so far takes away the pull towards it.
    """
    smoothed = table.copy()
    total, rest = 0.0, 1.0
    for row in smoothed:
        if np.isfinite(row[1]):
            total = beta * total + (1 - beta) * row[1]
            rest *= beta
            row[1] = total / (1 - rest)
    return smoothed
