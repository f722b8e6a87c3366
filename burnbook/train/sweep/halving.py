"""Successive halving: which trials train on, and how far.

Jamieson & Talwalkar, "Non-stochastic Best Arm Identification and Hyperparameter
Optimization" (2016); the inner loop of Hyperband (Li et al., 2018). All trials train
for a few epochs; the best of them, one in `eta`, train `eta` times as long; and so on.

The whole rule is a function of the scores that are known, so nothing else has to be
remembered.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from burnbook.train.events import Direction
from burnbook.train.sweep.trial import Trial


def rungs(min_epochs: int, max_epochs: int, eta: int | None) -> list[int]:
    """After how many epochs trials are compared; without `eta` only at the end.

    Example:
        >>> rungs(1, 20, 3), rungs(2, 2, 3), rungs(1, 20, None)
        ([1, 3, 9, 20], [2], [20])
    """
    if eta is None:
        return [max_epochs]
    found: list[int] = []
    epochs = min_epochs
    while epochs < max_epochs:
        found.append(epochs)
        epochs *= eta
    return [*found, max_epochs]


def next_task(
    trials: Sequence[Trial], steps: Sequence[int], eta: int | None, towards: Direction
) -> tuple[Trial, int] | None:
    """Which trial trains next, and up to which epoch; None when all is done.

    Example:
        >>> trials = [Trial(0, {}, {1: 0.5}), Trial(1, {}, {1: 0.4}), Trial(2, {})]
        >>> next_task(trials, [1, 3], 2, Direction.Lowest)[0].number
        2
        >>> trials[2].failure = "out of memory"
        >>> task = next_task(trials, [1, 3], 2, Direction.Lowest)
        >>> task[0].number, task[1]
        (1, 3)
    """
    group = list(trials)
    for step in steps:
        for trial in group:
            if step not in trial.scores and not trial.failure:
                return trial, step
        group = promoted(group, step, eta, towards)
    return None


def promoted(
    group: Sequence[Trial], step: int, eta: int | None, towards: Direction
) -> list[Trial]:
    """The best of a group after `step` epochs: one in `eta`, at least one."""
    sign = 1.0 if towards is Direction.Lowest else -1.0
    ranked = [trial for trial in group if step in trial.scores and not trial.failure]
    ranked.sort(key=lambda trial: _rank(sign * trial.scores[step]))
    keep = max(1, len(group) // eta) if eta else len(group)
    return ranked[:keep]


def _rank(score: float) -> float:
    return math.inf if math.isnan(score) else score
