"""Which learning rate each step uses."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.lr_scheduler.base import ConstantLr, LrScheduler, as_scheduler
from burnbook.lr_scheduler.composed import (
    ComposedLrScheduler,
    ComposedLrSchedulerConfig,
    LrSchedulerConfig,
    ModuleLrScheduler,
    SchedulerReduction,
    SequentialLrScheduler,
    SequentialLrSchedulerConfig,
)
from burnbook.lr_scheduler.schedules import (
    CosineAnnealingLrScheduler,
    CosineAnnealingLrSchedulerConfig,
    ExponentialLrScheduler,
    ExponentialLrSchedulerConfig,
    LinearLrScheduler,
    LinearLrSchedulerConfig,
    NoamLrScheduler,
    NoamLrSchedulerConfig,
    StepLrScheduler,
    StepLrSchedulerConfig,
)

__all__ = [
    "ComposedLrScheduler",
    "ComposedLrSchedulerConfig",
    "ConstantLr",
    "CosineAnnealingLrScheduler",
    "CosineAnnealingLrSchedulerConfig",
    "ExponentialLrScheduler",
    "ExponentialLrSchedulerConfig",
    "LinearLrScheduler",
    "LinearLrSchedulerConfig",
    "LrScheduler",
    "LrSchedulerConfig",
    "ModuleLrScheduler",
    "NoamLrScheduler",
    "NoamLrSchedulerConfig",
    "SchedulerReduction",
    "SequentialLrScheduler",
    "SequentialLrSchedulerConfig",
    "StepLrScheduler",
    "StepLrSchedulerConfig",
    "as_scheduler",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
