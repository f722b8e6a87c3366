"""Building blocks · Learner. The learner builder: what to measure, keep and show.

learner = (LearnerBuilder("guide")
           .metric_train_numeric(AccuracyMetric())
           .metric_valid_numeric(AccuracyMetric())
           .with_file_checkpointer(CompactRecorder())
           .devices([device]).num_epochs(10).summary()
           .build(model, optim, 1e-4))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from burnbook.backend import Backend
from burnbook.errors import ConfigError
from burnbook.module import Module
from burnbook.train.early_stopping import MetricEarlyStoppingStrategy
from burnbook.train.folder import check_folder
from burnbook.train.interrupter import Interrupter
from burnbook.train.learner import Learner
from burnbook.train.logger import (
    FileApplicationLogger,
    FileMetricLogger,
    MetricLogger,
    SilentApplicationLogger,
)
from burnbook.train.metric import Metric
from burnbook.train.plan import Resume, TrainingPlan
from burnbook.train.renderer import MetricsRenderer
from burnbook.train.strategy import CheckpointingStrategy, default_strategy


class LearnerBuilder:
    """Describe a training step by step; `build` gives the learner.

    Everything that training writes goes into one folder, the artifact directory.

    Example:
        >>> LearnerBuilder("guide").num_epochs(10)
        LearnerBuilder('guide', 10 epochs)
    """

    def __init__(self, directory: str | Path) -> None:
        self._plan = TrainingPlan(Path(directory), strategy=default_strategy())
        self._loggers: tuple[list[MetricLogger], list[MetricLogger]] = ([], [])
        self._diary: FileApplicationLogger | None = FileApplicationLogger(
            Path(directory) / "experiment.log"
        )

    def metric_train(self, metric: Metric) -> LearnerBuilder:
        """Show and log a metric in training."""
        return self._add(self._plan.train_metrics, metric, plotted=False)

    def metric_valid(self, metric: Metric) -> LearnerBuilder:
        """Show and log a metric in validation."""
        return self._add(self._plan.valid_metrics, metric, plotted=False)

    def metric_train_numeric(self, metric: Metric) -> LearnerBuilder:
        """Show, log, plot and average a metric in training."""
        return self._add(self._plan.train_metrics, metric, plotted=True)

    def metric_valid_numeric(self, metric: Metric) -> LearnerBuilder:
        """Show, log, plot and average a metric in validation."""
        return self._add(self._plan.valid_metrics, metric, plotted=True)

    def metric_loggers(
        self, train: MetricLogger, valid: MetricLogger
    ) -> LearnerBuilder:
        """Send metrics here instead of into files; several calls add up."""
        self._loggers[0].append(train)
        self._loggers[1].append(valid)
        return self

    def renderer(self, renderer: MetricsRenderer) -> LearnerBuilder:
        """Show the training in this way; without, the place decides."""
        _needs("renderer", renderer, "render_train", "PlainRenderer()")
        self._plan.renderer = renderer
        return self

    def grads_accumulation(self, accumulation: int) -> LearnerBuilder:
        """Sum the gradients of so many batches before each step of the optimizer."""
        self._plan.accumulation = _count("grads_accumulation", accumulation)
        return self

    def num_epochs(self, num_epochs: int) -> LearnerBuilder:
        """Walk through the data so many times."""
        self._plan.num_epochs = _count("num_epochs", num_epochs)
        return self

    def devices(self, devices: Sequence[Backend]) -> LearnerBuilder:
        """Train on these devices; several share every step, one batch each."""
        if isinstance(devices, Backend):
            devices = [devices]
        devices = list(devices)
        for device in devices:
            _needs("devices", device, "ad_enabled", "devices([Numpy()])")
        if not devices:
            raise ConfigError(
                "LearnerBuilder.devices",
                "the list is empty",
                cure="devices([Numpy()]), or leave it out to train where the model is",
            )
        self._plan.devices = devices
        return self

    def metric_device(self, device: Backend) -> LearnerBuilder:
        """Give metrics their tensors on this device, each moved once and untracked.

        Our own metrics compute with NumPy on the CPU, wherever the model trains; this
        is for metrics that compute with tensors, and spares a GPU a copy per metric.
        """
        _needs("metric_device", device, "ad_enabled", "metric_device(Numpy())")
        self._plan.metric_device = device
        return self

    def checkpoint(self, epoch: int | None = None) -> LearnerBuilder:
        """Go on after this epoch; without a number after the newest that is whole.

        With no number and no checkpoint there yet, training starts at the beginning.
        """
        if epoch is not None:
            epoch = _count("checkpoint", epoch)
        self._plan.resume = Resume(epoch)
        return self

    def with_file_checkpointer(self, recorder: Any) -> LearnerBuilder:
        """Save model, optimizer and scheduler after epochs, with this recorder."""
        recorder = recorder() if isinstance(recorder, type) else recorder
        if not (hasattr(recorder, "record") and hasattr(recorder, "extension")):
            raise ConfigError(
                "LearnerBuilder.with_file_checkpointer",
                f"{type(recorder).__name__} is not a recorder of files",
                cure="with_file_checkpointer(CompactRecorder())",
            )
        self._plan.recorder = recorder
        return self

    def with_checkpointing_strategy(
        self, strategy: CheckpointingStrategy
    ) -> LearnerBuilder:
        """Decide which checkpoints stay; without: the last two and the best one."""
        option, cure = "with_checkpointing_strategy", "KeepLastNCheckpoints(2)"
        _needs(option, strategy, "checkpointing", cure)
        self._plan.strategy = strategy
        return self

    def early_stopping(self, strategy: MetricEarlyStoppingStrategy) -> LearnerBuilder:
        """Stop when a metric no longer improves."""
        cure = "a MetricEarlyStoppingStrategy"
        _needs("early_stopping", strategy, "should_stop", cure)
        self._plan.early_stopping = strategy
        return self

    def with_application_logger(
        self, logger: FileApplicationLogger | None
    ) -> LearnerBuilder:
        """Keep the diary elsewhere than in `experiment.log`; None keeps none."""
        self._diary = logger
        return self

    def interrupter(self) -> Interrupter:
        """The handle that stops or pauses the training from outside."""
        return self._plan.control

    def summary(self) -> LearnerBuilder:
        """Show the best and worst epoch of every metric at the end."""
        self._plan.summary = True
        return self

    def build(self, model: Any, optim: Any, lr_scheduler: Any) -> Learner:
        """The learner; a float is a learning rate that never changes."""
        _check_model(model)
        _check_optimizer(optim)
        plan, folder = self._plan, self._plan.directory
        writes_logs = (
            self._diary is not None or plan.train_metrics or plan.valid_metrics
        )
        if plan.recorder or (writes_logs and not self._loggers[0]):
            check_folder(folder)
        plan.diary = self._diary or SilentApplicationLogger()
        train, valid = self._loggers
        plan.train_loggers = train or [FileMetricLogger(folder / "train")]
        plan.valid_loggers = valid or [FileMetricLogger(folder / "valid")]
        return Learner(model, optim, lr_scheduler, plan)

    def __repr__(self) -> str:
        plan = self._plan
        return f"LearnerBuilder({str(plan.directory)!r}, {plan.num_epochs} epochs)"

    def _add(
        self, metrics: list[tuple[Metric, bool]], metric: Metric, *, plotted: bool
    ) -> LearnerBuilder:
        metric = metric() if isinstance(metric, type) else metric
        name = type(metric).__name__
        if not hasattr(metric, "update"):
            raise ConfigError(
                "LearnerBuilder",
                f"{name} is not a metric",
                cure="AccuracyMetric(), LossMetric(), or a subclass of Metric",
            )
        if plotted and not metric.numeric:
            raise ConfigError(
                "LearnerBuilder",
                f"{name} has no value, so it cannot be plotted",
                cure=f"metric_train({name}()) or metric_valid({name}())",
            )
        others = [pair for pair in metrics if pair[0].name != metric.name]
        metrics[:] = [*others, (metric, plotted)]
        return self


def _check_model(model: Any) -> None:
    name = type(model).__name__
    if not (isinstance(model, Module) and model.named_params()):
        what = "has no parameters" if isinstance(model, Module) else "is not a Module"
        raise ConfigError(
            "LearnerBuilder.build",
            f"{name} {what}, so there is nothing to learn",
            cure="a subclass of Module with layers as annotated fields",
        )
    for step, gives in (
        ("train_step", "TrainOutput(self, loss.backward(), item)"),
        ("valid_step", "the item, such as ClassificationOutput(loss, output, targets)"),
    ):
        if not callable(getattr(model, step, None)):
            raise ConfigError(
                "LearnerBuilder.build",
                f"{name} has no method {step}, so the learner cannot train it",
                cure=f"def {step}(self, batch) in {name}, which returns {gives}",
            )


def _check_optimizer(optim: Any) -> None:
    if not (hasattr(optim, "step") and hasattr(optim, "into_record")):
        name = type(optim).__name__
        has_init = hasattr(optim, "init")
        raise ConfigError(
            "LearnerBuilder.build",
            f"{name} is not an optimizer{', but the config of one' * has_init}",
            cure=f"{name}(...).init()" if has_init else "AdamConfig().init()",
        )


def _needs(option: str, value: Any, name: str, cure: str) -> None:
    """Refuse a value that cannot do what the option asks of it."""
    if isinstance(value, type) or not hasattr(value, name):
        shown = value.__name__ if isinstance(value, type) else repr(value)
        what = f"{shown} does not fit this option"
        raise ConfigError(f"LearnerBuilder.{option}", what, cure=cure)


def _count(option: str, value: int) -> int:
    if type(value) is not int or value < 1:
        raise ConfigError(
            f"LearnerBuilder.{option}",
            f"{value!r} is not a number of at least 1",
            cure=f"{option}(1)",
        )
    return value
