"""How curves are seen: smoothed, logarithmic, in part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from burnbook.core.errors import ConfigError

DETAIL = ("both", "steps", "epochs")
AXES = ("epoch", "step", "time")
SPLITS = ("train", "valid")
ROUGHEST, SMOOTHEST = 0.0, 0.99


@dataclass(frozen=True)
class ChartOptions:
    """smoothing: 0 to 0.99. detail: "both", "steps" (batches) or "epochs" (means).

    axis: what runs to the right, "epoch", "step" or "time". splits: which are seen.
    """

    smoothing: float = 0.0
    log: bool = False
    detail: str = "both"
    axis: str = "epoch"
    splits: tuple[str, ...] = SPLITS

    def __post_init__(self) -> None:
        if not ROUGHEST <= self.smoothing <= SMOOTHEST:
            what = f"smoothing={self.smoothing!r} is not from 0 to {SMOOTHEST}"
            raise ConfigError("Dashboard", what, cure="0.9 averages about ten steps")
        if self.detail not in DETAIL:
            what = f"detail={self.detail!r} is none that can be shown"
            raise ConfigError("Dashboard", what, cure=", ".join(DETAIL))
        if self.axis not in AXES:
            what = f"axis={self.axis!r} is none that can be shown"
            raise ConfigError("Dashboard", what, cure=", ".join(AXES))
        if isinstance(self.splits, str) or not set(self.splits) <= set(SPLITS):
            what = f"splits={self.splits!r} are not splits of a training"
            raise ConfigError("Dashboard", what, cure='("train", "valid"), or one')

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

    i counts steps. A row that is k steps after the last one counts like k equal ones:
    s = βᵏ s + (1 − βᵏ) y. So β means the same however many batches a row stands for.
    The fifth column, where there is one, has the step of each row.

    Example:
        >>> rows = np.array([[0.0, 4.0], [1, 4], [2, np.nan], [3, 1]])
        >>> smooth(rows, 0.5)[:, 1].round(3).tolist()
        [4.0, 4.0, nan, 2.286]

    Why: s begins at 0; dividing by the weights so far takes away the pull toward it.
    """
    smoothed = table.copy()
    total, rest = 0.0, 1.0
    steps = table[:, 4] if table.shape[1] > 4 else np.arange(1.0, len(table) + 1)
    before = steps[0] - 1 if len(steps) else 0.0
    for row, step in zip(smoothed, steps, strict=True):
        if np.isfinite(row[1]):
            keep = beta ** max(1.0, step - before)
            before = step
            total = keep * total + (1 - keep) * row[1]
            rest *= keep
            row[1] = total / (1 - rest)
    return smoothed
