"""The plan of a training: all that the builder collects."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burnbook.backend import Backend
from burnbook.train.callback import Callback
from burnbook.train.checkpoint_strategy import CheckpointingStrategy
from burnbook.train.early_stopping import EarlyStoppingStrategy
from burnbook.train.interrupter import Interrupter
from burnbook.train.logger import (
    FileApplicationLogger,
    FileMetricLogger,
    MetricLogger,
    SilentApplicationLogger,
)
from burnbook.train.metric import Metric
from burnbook.train.renderer import MetricsRenderer
from burnbook.train.training_strategy import LearningParadigm

Measured = tuple[Metric, bool]  # a metric, and whether it is plotted


@dataclass(frozen=True)
class Resume:
    """Resume after an epoch; None means the newest complete checkpoint, if any."""

    epoch: int | None


@dataclass
class TrainingPlan:
    """What to measure, keep and show, and for how long."""

    directory: Path
    strategy: CheckpointingStrategy
    name: str = ""  # of the run; "" is the last part of the folder
    train_metrics: list[Measured] = field(default_factory=list[Measured])
    valid_metrics: list[Measured] = field(default_factory=list[Measured])
    train_loggers: list[MetricLogger] = field(default_factory=list[MetricLogger])
    valid_loggers: list[MetricLogger] = field(default_factory=list[MetricLogger])
    log: FileApplicationLogger = field(default_factory=SilentApplicationLogger)
    renderer: MetricsRenderer | None = None
    accumulation: int = 1
    num_epochs: int = 1
    devices: list[Backend] = field(default_factory=list[Backend])
    paradigm: LearningParadigm | None = None
    checkpointing: bool = False  # of gradients: recompute cheap values
    metric_device: Backend | None = None
    resume: Resume | None = None
    recorder: Any = None
    early_stopping: EarlyStoppingStrategy | None = None
    callbacks: list[Callback] = field(default_factory=list[Callback])
    control: Interrupter = field(default_factory=Interrupter)
    summary: bool = False
    watched: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    captured: bool | str = False  # whether steps run as plans
    validates: bool = True  # whether epochs have a validation phase

    def without_validation(self) -> TrainingPlan:
        """The same training with nothing to measure in validation."""
        return dataclasses.replace(self, valid_metrics=[], validates=False)

    @property
    def writes(self) -> bool:
        """Whether the training writes anything into its artifact directory."""
        places: list[Path] = []
        if not isinstance(self.log, SilentApplicationLogger):
            places.append(self.log.path)
        if self.train_metrics or self.valid_metrics:
            logs = [*self.train_loggers, *self.valid_loggers]
            places += [
                log.directory for log in logs if isinstance(log, FileMetricLogger)
            ]
        inside = (self.directory in (place, *place.parents) for place in places)
        return self.recorder is not None or any(inside)
