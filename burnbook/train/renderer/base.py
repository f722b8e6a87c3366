"""What a renderer is told while a model trains.

A renderer shows a training to people. The learner calls it in this order: `start`;
then per batch `inspect` (in training), `update_*` once per metric and `render_*` once;
`end_epoch` after each split of each epoch; `update_callbacks` after each epoch and at
the end, if there are any; `saved` after each checkpoint; `finish`,
unless training failed; and always `close`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burnbook.module import Module
from burnbook.optim import GradientsParams
from burnbook.train.history import MetricHistory
from burnbook.train.interrupter import Interrupter
from burnbook.train.metric import MetricState
from burnbook.train.summary import LearnerSummary

if TYPE_CHECKING:
    from burnbook.data import Progress


@dataclass(frozen=True)
class RunInfo:
    """What a renderer knows when training starts.

    mode: "fit" blocks the caller, "await" is awaited, "thread" runs beside the caller.
    units: the unit of each numeric metric that has one. notice: what users should know
    before it starts, such as a damaged checkpoint. saves: whether there is a
    checkpointer, so that a checkpoint can be asked for. name: of the run; no other that
    trains in this process has it. named: whether the name was given, or several runs
    train; otherwise it is the folder. callbacks: the name and the status of each, ""
    where it says nothing. validates: whether epochs have a validation phase; without
    one, no method with "valid" in its name is called. digits: the precision of each
    metric that has its own.
    """

    directory: str
    metrics: tuple[str, ...]
    num_epochs: int
    start_epoch: int
    control: Interrupter
    model_text: str
    mode: str = "fit"
    units: dict[str, str] = field(default_factory=dict[str, str])
    notice: str = ""
    saves: bool = False
    name: str = ""
    named: bool = False
    callbacks: tuple[tuple[str, str], ...] = ()
    validates: bool = True
    digits: dict[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class TrainingProgress:
    """How far training has come; its text is the one Burn prints.

    lr: the learning rate of a training batch.

    Example:
        >>> from burnbook.data import Progress
        >>> print(TrainingProgress(Progress(64, 60000), 1, 10, 1))
        TrainingProgress { progress: Progress { items_processed: 64,
          items_total: 60000 }, epoch: 1, epoch_total: 10, iteration: 1 }
    """

    progress: Progress
    epoch: int
    epoch_total: int
    iteration: int
    lr: float | None = field(default=None, repr=False)

    def __str__(self) -> str:
        done, total = self.progress.items_processed, self.progress.items_total
        return (
            f"TrainingProgress {{ progress: Progress {{ items_processed: {done}, "
            f"items_total: {total} }}, epoch: {self.epoch}, "
            f"epoch_total: {self.epoch_total}, iteration: {self.iteration} }}"
        )


@dataclass(frozen=True, repr=False)
class TrainingResult:
    """How a training ended; interrupted says why it stopped before its last epoch."""

    model: Any
    history: MetricHistory
    interrupted: str | None
    epochs: int
    seconds: float
    directory: str
    name: str = ""

    def __repr__(self) -> str:
        ending = f"; {self.interrupted}" if self.interrupted else ""
        epochs = f"{self.epochs} epoch{'s' * (self.epochs != 1)}"
        known = (
            len(self.history.epochs(metric, split))
            for metric in self.history.metrics
            for split in ("train", "valid")
        )
        if max(known, default=0) > self.epochs:
            epochs += " and a part of the next"
        return f"TrainingResult({epochs}, {self.history!r}{ending})"


class MetricsRenderer:
    """The base of all renderers; it shows nothing.

    Example:
        >>> class Dots(MetricsRenderer):
        ...     def __init__(self):
        ...         self.text = ""
        ...     def render_train(self, progress):
        ...         self.text += "."
    """

    def start(self, run: RunInfo) -> None:
        """Training starts."""

    def update_train(self, state: MetricState) -> None:
        """A metric has looked at a training batch."""

    def update_valid(self, state: MetricState) -> None:
        """A metric has looked at a validation batch."""

    def render_train(self, progress: TrainingProgress) -> None:
        """A training batch is done; this must be cheap."""

    def render_valid(self, progress: TrainingProgress) -> None:
        """A validation batch is done; this must be cheap."""

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """A split ("train" or "valid") of an epoch is complete."""

    @property
    def inspects(self) -> bool:
        """Whether `inspect` looks at anything now; else steps need not show it."""
        return type(self).inspect is not MetricsRenderer.inspect

    def inspect(self, model: Module, grads: GradientsParams) -> None:
        """A batch's gradients, before the step that uses them; this must be cheap."""

    def saved(self, epoch: int, path: str, trouble: str = "") -> None:
        """A checkpoint of this epoch is in the folder; or it is not, and why."""

    def update_callbacks(self, callbacks: Sequence[tuple[str, str]]) -> None:
        """An epoch is complete, or all: the name and the status of each callback."""

    def update_test(self, name: str, state: MetricState) -> None:
        """A metric has looked at a batch of the test of this name."""

    def render_test(self, progress: TrainingProgress) -> None:
        """A batch of a test is done; this must be cheap."""

    def end_test(
        self, name: str, means: dict[str, float], units: dict[str, str]
    ) -> None:
        """A test is complete."""

    def tick(self) -> None:
        """Some time has passed while training is paused."""

    def finish(self, result: TrainingResult) -> None:
        """Training has ended, complete or stopped."""

    def summary(self, summary: LearnerSummary | Any) -> None:
        """Show a summary of the run or test, when it was asked for, at the end."""
        sys.stdout.write(f"{summary}\n")

    def close(self) -> None:
        """Give back what was borrowed (the screen), however training ended."""
