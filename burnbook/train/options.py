"""The options of a training: what to measure, keep and show.

`LearnerBuilder` (the book's way) and `SupervisedTraining` (newer Burn's) share them. An
option returns the object it was asked of, so that calls can be chained.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from burnbook.backend import Backend
from burnbook.core.cures import explains_call
from burnbook.core.errors import ConfigError
from burnbook.core.files import fixed, shown_path
from burnbook.record import BurnpackRecorder, FileRecorder, SafetensorsRecorder
from burnbook.train.callback import Callback, FunctionCallback, TrainingState
from burnbook.train.checkpoint_strategy import CheckpointingStrategy, default_strategy
from burnbook.train.early_stopping import EarlyStoppingStrategy, stopping_after
from burnbook.train.events import Split
from burnbook.train.folder import check_folder
from burnbook.train.interrupter import Interrupter
from burnbook.train.live import checked_name
from burnbook.train.logger import (
    FileApplicationLogger,
    FileMetricLogger,
    MetricLogger,
    SilentApplicationLogger,
)
from burnbook.train.metric import Metric
from burnbook.train.plan import Measured, Resume, TrainingPlan
from burnbook.train.renderer import MetricsRenderer
from burnbook.train.training_strategy import LearningParadigm, TrainingStrategy
from burnbook.train.validation import (
    add_metric,
    check_captured,
    check_watched,
    count,
    needs,
)

OneMetric = Metric | type[Metric]  # a class stands for an object of it
Metrics = Metric | type[Metric] | Iterable[Metric | type[Metric]]


class TrainingOptions:
    """The options of a training; the base of both ways to start one."""

    def __init__(self, directory: str | Path) -> None:
        if directory == "":
            what = "an empty text names no folder"
            raise ConfigError(
                type(self).__name__, what, cure='"run", or "." for this one'
            )
        folder = fixed(directory)
        self._plan = TrainingPlan(folder, strategy=default_strategy())
        self._loggers: tuple[list[MetricLogger], list[MetricLogger]] = ([], [])
        self._watching: list[tuple[str, Any]] = []  # options, and their strategies
        self._watched_by_callbacks: list[tuple[str, Any]] = []
        self._log: FileApplicationLogger | None = FileApplicationLogger(
            folder / "experiment.log"
        )

    def name(self, name: str) -> Self:
        """Name the run: on dashboards, in its experiment log and in a RunStore.

        At most 80 characters in one line. By default it is named after its folder. A
        second run with the name of one that is still training is called `name 2`.
        """
        self._plan.name = checked_name(f"{type(self).__name__}.name", name)
        return self

    def metric_train(self, metric: OneMetric) -> Self:
        """Show and log a metric in training."""
        return self._add(self._plan.train_metrics, metric, False)

    def metric_valid(self, metric: OneMetric) -> Self:
        """Show and log a metric in validation."""
        return self._add(self._plan.valid_metrics, metric, False)

    def metric_train_numeric(self, metric: OneMetric) -> Self:
        """Show, log, plot and average a metric in training."""
        return self._add(self._plan.train_metrics, metric, True)

    def metric_valid_numeric(self, metric: OneMetric) -> Self:
        """Show, log, plot and average a metric in validation."""
        return self._add(self._plan.valid_metrics, metric, True)

    def metrics(self, metrics: Metrics) -> Self:
        """Show, log, plot and average metrics in training and in validation.

        Each split has its own copy, so neither sees the other's batches.
        """
        for metric in several(metrics):
            self.metric_train_numeric(metric)
            self.metric_valid_numeric(copy.deepcopy(metric))
        return self

    def metrics_text(self, metrics: Metrics) -> Self:
        """Show and log metrics in training and in validation."""
        for metric in several(metrics):
            self.metric_train(metric)
            self.metric_valid(copy.deepcopy(metric))
        return self

    def metric_loggers(self, train: MetricLogger, valid: MetricLogger) -> Self:
        """Send metrics here instead of into files; several calls add up."""
        self._loggers[0].append(train)
        self._loggers[1].append(valid)
        return self

    def renderer(self, renderer: MetricsRenderer | None) -> Self:
        """Show the training in this way, or not at all; unsaid, the place decides."""
        if renderer is None:
            renderer = MetricsRenderer()
        needs(self, "renderer", renderer, "render_train", "PlainRenderer()")
        self._plan.renderer = renderer
        return self

    def grads_accumulation(self, accumulation: int) -> Self:
        """Sum the gradients of this many batches before each step of the optimizer."""
        self._plan.accumulation = count(self, "grads_accumulation", accumulation)
        return self

    def num_epochs(self, num_epochs: int) -> Self:
        """Train for this many epochs."""
        self._plan.num_epochs = count(self, "num_epochs", num_epochs)
        return self

    def devices(self, devices: Sequence[Backend]) -> Self:
        """Train on these devices; several share every step, one batch each."""
        if isinstance(devices, Backend):
            devices = [devices]
        devices = list(devices)
        for device in devices:
            needs(self, "devices", device, "ad_enabled", "devices([Numpy()])")
        if not devices:
            raise ConfigError(
                f"{type(self).__name__}.devices",
                "the list is empty",
                cure="devices([Numpy()]), or leave it out to train where the model is",
            )
        self._plan.devices = devices
        return self

    def metric_device(self, device: Backend) -> Self:
        """Give metrics their tensors on this device, each moved once and untracked.

        Our own metrics compute with NumPy on the CPU, wherever the model trains; this
        is for metrics that compute with tensors, and saves a GPU one copy per metric.
        """
        needs(self, "metric_device", device, "ad_enabled", "metric_device(Numpy())")
        self._plan.metric_device = device
        return self

    def with_training_strategy(
        self, strategy: TrainingStrategy | LearningParadigm
    ) -> Self:
        """Say where and how steps are computed: `TrainingStrategy.MultiDevice(…)`."""
        if isinstance(strategy, TrainingStrategy):
            self._plan.paradigm = strategy.paradigm
            return self.devices(strategy.devices) if strategy.devices else self
        cure = "TrainingStrategy.SingleDevice(Numpy())"
        needs(self, "with_training_strategy", strategy, "steps", cure)
        self._plan.paradigm = strategy
        return self

    learning_strategy = with_training_strategy  # as Burn 0.19 called it

    def gradient_checkpointing(self) -> Self:
        """Recompute cheap values in the backward pass instead of keeping them.

        Why: it saves memory for a little time; the results are bit for bit the same.
        """
        self._plan.checkpointing = True
        return self

    def captured(self, mode: bool | str = True) -> Self:
        """Run steps and validation as plans, as `burnbook.program.captured` does.

        True: from the second step on; what cannot be captured goes on step by step,
        with a warning and a line in the log that say why. "auto": after the first 20
        steps, over all epochs, and with the line alone. False, the default: never.

        What is changed while it trains (a frozen layer, another model by a callback, a
        learning rate) is noticed. Results agree with those of False up to rounding,
        random numbers are the same ones, and resuming gives what no break would have.
        """
        check_captured(type(self).__name__, mode)
        self._plan.captured = mode
        return self

    def checkpoint(self, epoch: int | None = None) -> Self:
        """Resume after this epoch; without a number, after the newest complete one.

        With no number and no checkpoint there yet, training starts at the beginning.
        """
        if epoch is not None:
            epoch = count(self, "checkpoint", epoch)
        self._plan.resume = Resume(epoch)
        return self

    @explains_call(
        "with_file_checkpointer", "with_file_checkpointer(CompactRecorder())"
    )
    def with_file_checkpointer(self, recorder: FileRecorder) -> Self:
        """Save model, optimizer and scheduler after epochs, with this recorder.

        Any file recorder that holds numbers will do.
        """
        recorder = recorder() if isinstance(recorder, type) else recorder
        if isinstance(recorder, SafetensorsRecorder):
            raise ConfigError(
                f"{type(self).__name__}.with_file_checkpointer",
                "safetensors holds only tensors, and an optimizer counts its steps",
                cure="with_file_checkpointer(CompactRecorder())",
            )
        if not (hasattr(recorder, "record") and hasattr(recorder, "extension")):
            raise ConfigError(
                f"{type(self).__name__}.with_file_checkpointer",
                f"{type(recorder).__name__} is not a recorder of files",
                cure="with_file_checkpointer(CompactRecorder())",
            )
        self._plan.recorder = recorder
        return self

    def with_default_checkpointers(self) -> Self:
        """Save after epochs as the newest Burn does: as burnpack."""
        return self.with_file_checkpointer(BurnpackRecorder())

    def with_checkpointing_strategy(self, strategy: CheckpointingStrategy) -> Self:
        """Decide which checkpoints stay; by default the last two and the best one."""
        option, cure = "with_checkpointing_strategy", "KeepLastNCheckpoints(2)"
        needs(self, option, strategy, "checkpointing", cure)
        self._plan.strategy = strategy
        return self._watch(option, strategy)

    def early_stopping(self, strategy: EarlyStoppingStrategy) -> Self:
        """Stop when a strategy says so, such as MetricEarlyStoppingStrategy."""
        option, cure = "early_stopping", stopping_after(strategy)
        needs(self, option, strategy, "should_stop", cure)
        self._plan.early_stopping = strategy
        return self._watch(option, strategy)

    def callback(
        self,
        callback: Callback | type[Callback] | Callable[[TrainingState], Any],
        on: str | None = None,
    ) -> Self:
        """Let a callback see the model while it trains, and replace it.

        Several are asked in the order in which they were added. A plain function takes
        the TrainingState, and gives a model or None; `on` says when it is called: at
        every "step" of the optimizer, at the end of every "epoch" (default), or at the
        "end" of the training.

        Example:
            >>> from burnbook.train import Ema, LearnerBuilder
            >>> made = LearnerBuilder("guide").callback(Ema(0.99))
            >>> made.callback(lambda state: print(state.epoch), on="epoch")
            LearnerBuilder('guide', 1 epoch)
        """
        where = f"{type(self).__name__}.callback"
        made: Any = callback
        if isinstance(made, type) and issubclass(made, Callback):
            made = made()
        if isinstance(made, Callback):
            if on is not None:
                what = f"on={on!r} is for plain functions; {made.name} has its methods"
                raise ConfigError(where, what, cure=f"callback({made.name}(…))")
        elif callable(made) and not isinstance(made, type | Metric):
            made = FunctionCallback(made, on or "epoch")
        else:
            name = made.__name__ if isinstance(made, type) else type(made).__name__
            cure = "callback(Ema(0.999)), an object of a subclass of Callback, or a "
            cure += "function of the TrainingState"
            raise ConfigError(where, f"{name} is not a Callback", cure=cure)
        self._plan.callbacks.append(made)
        if hasattr(made, "metric"):
            self._watched_by_callbacks.append(("callback", made))
        return self

    def with_application_logger(self, logger: FileApplicationLogger | None) -> Self:
        """Log somewhere other than to `experiment.log`; None logs nothing."""
        self._log = logger
        return self

    def interrupter(self) -> Interrupter:
        """The handle that stops or pauses the training from outside."""
        return self._plan.control

    def with_interrupter(self, interrupter: Interrupter) -> Self:
        """Let this handle stop or pause the training, several of them if need be."""
        needs(self, "with_interrupter", interrupter, "should_stop", "Interrupter()")
        self._plan.control = interrupter
        return self

    def summary(self) -> Self:
        """Show the best and worst epoch of every metric at the end."""
        self._plan.summary = True
        return self

    def _add(self, metrics: list[Measured], metric: OneMetric, plotted: bool) -> Self:
        given: Any = metric  # a class of which it makes an object
        add_metric(self, metrics, given, plotted)
        return self

    def _watch(self, option: str, strategy: Any) -> Self:
        """Remember to check, once all metrics are known, that it finds what it needs.

        Why: only what was chosen explicitly. The default strategy works without a loss.
        """
        others = [pair for pair in self._watching if pair[0] != option]
        self._watching = [*others, (option, strategy)]
        return self

    def _ready(self) -> TrainingPlan:
        """The plan with its loggers, once it is clear that they can write."""
        measured = {
            Split.Train: [metric for metric, _ in self._plan.train_metrics],
            Split.Valid: [metric for metric, _ in self._plan.valid_metrics],
        }
        loggers = dict(zip(measured, self._loggers, strict=True))
        plan, folder = self._plan, self._plan.directory
        plan.watched = [
            (f"{type(self).__name__}.{option}", strategy)
            for option, strategy in [*self._watching, *self._watched_by_callbacks]
        ]
        for where, strategy in plan.watched:
            check_watched(where, strategy, measured, loggers)
        writes_logs = self._log is not None or plan.train_metrics or plan.valid_metrics
        if plan.recorder or (writes_logs and not self._loggers[0]):
            check_folder(folder)
        plan.log = self._log or SilentApplicationLogger()
        train, valid = self._loggers
        plan.train_loggers = train or [FileMetricLogger(folder / "train")]
        plan.valid_loggers = valid or [FileMetricLogger(folder / "valid")]
        return plan

    def __repr__(self) -> str:
        plan = self._plan
        epochs = f"{plan.num_epochs} epoch{'s' * (plan.num_epochs != 1)}"
        return f"{type(self).__name__}({shown_path(plan.directory)!r}, {epochs})"


def several(metrics: Metrics) -> list[Any]:
    """One metric or many, as a list."""
    one = isinstance(metrics, Metric | type)
    return [metrics] if one else list(metrics)  # type: ignore[arg-type] # not one
