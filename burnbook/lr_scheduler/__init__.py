"""Which learning rate each step uses."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.lr_scheduler.base import (
    ConstantLr,
    LrScheduler,
    as_scheduler,
    length_of,
    observers,
)
from burnbook.lr_scheduler.composed import (
    ComposedLrScheduler,
    ComposedLrSchedulerConfig,
    LrSchedulerConfig,
    ModuleLrScheduler,
    SchedulerReduction,
    SequentialLrScheduler,
    SequentialLrSchedulerConfig,
)
from burnbook.lr_scheduler.curves import (
    LambdaLrScheduler,
    OneCycleLrScheduler,
    OneCycleLrSchedulerConfig,
    PolynomialLrScheduler,
    PolynomialLrSchedulerConfig,
    WarmupCosineLrScheduler,
    WarmupCosineLrSchedulerConfig,
)
from burnbook.lr_scheduler.plateau import (
    ReduceOnPlateauLrScheduler,
    ReduceOnPlateauLrSchedulerConfig,
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
    "LambdaLrScheduler",
    "LinearLrScheduler",
    "LinearLrSchedulerConfig",
    "LrScheduler",
    "LrSchedulerConfig",
    "ModuleLrScheduler",
    "NoamLrScheduler",
    "NoamLrSchedulerConfig",
    "OneCycleLrScheduler",
    "OneCycleLrSchedulerConfig",
    "PolynomialLrScheduler",
    "PolynomialLrSchedulerConfig",
    "ReduceOnPlateauLrScheduler",
    "ReduceOnPlateauLrSchedulerConfig",
    "SchedulerReduction",
    "SequentialLrScheduler",
    "SequentialLrSchedulerConfig",
    "StepLrScheduler",
    "StepLrSchedulerConfig",
    "WarmupCosineLrScheduler",
    "WarmupCosineLrSchedulerConfig",
    "as_scheduler",
    "length_of",
    "observers",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
