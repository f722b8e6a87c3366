"""Building blocks · Optimizer. Optimizers, gradients by parameter, learning rates."""

from typing import TYPE_CHECKING

from burnbook.optim.adagrad import AdaGrad, AdaGradConfig, AdaGradState, LrDecayState
from burnbook.optim.adam import Adam, AdamConfig, AdamState, AdaptiveMomentumState
from burnbook.optim.adamw import AdamW, AdamWConfig, AdamWState
from burnbook.optim.adan import (
    Adan,
    AdanConfig,
    AdanState,
    AdaptiveNesterovMomentumState,
)
from burnbook.optim.adaptor import ModuleOptimizer, Optimizer, OptimizerAdaptor
from burnbook.optim.clipping import GradientClipping, GradientClippingConfig
from burnbook.optim.composed import (
    ComposedLrScheduler,
    ComposedLrSchedulerConfig,
    LrSchedulerConfig,
    ModuleLrScheduler,
    SchedulerReduction,
    SequentialLrScheduler,
    SequentialLrSchedulerConfig,
)
from burnbook.optim.grads import (
    GradientsAccumulator,
    GradientsParams,
    MultiGradientsParams,
)
from burnbook.optim.groups import ModuleLearningRate, ParamGroup
from burnbook.optim.lbfgs import LBFGS, LBFGSConfig, LBFGSState, LineSearchFn
from burnbook.optim.lr_scheduler import ConstantLr, LrScheduler, as_scheduler
from burnbook.optim.muon import AdjustLrFn, Muon, MuonConfig, MuonState
from burnbook.optim.rmsprop import (
    CenteredState,
    RmsProp,
    RmsPropConfig,
    RmsPropMomentumState,
    RmsPropState,
    SquareAvgState,
)
from burnbook.optim.rule import MomentumConfig, SimpleOptimizer, WeightDecayConfig
from burnbook.optim.schedules import (
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
from burnbook.optim.sgd import MomentumState, Sgd, SgdConfig, SgdState
from burnbook.other_names import module_answers

__all__ = [
    "LBFGS",
    "AdaGrad",
    "AdaGradConfig",
    "AdaGradState",
    "Adam",
    "AdamConfig",
    "AdamState",
    "AdamW",
    "AdamWConfig",
    "AdamWState",
    "Adan",
    "AdanConfig",
    "AdanState",
    "AdaptiveMomentumState",
    "AdaptiveNesterovMomentumState",
    "AdjustLrFn",
    "CenteredState",
    "ComposedLrScheduler",
    "ComposedLrSchedulerConfig",
    "ConstantLr",
    "CosineAnnealingLrScheduler",
    "CosineAnnealingLrSchedulerConfig",
    "ExponentialLrScheduler",
    "ExponentialLrSchedulerConfig",
    "GradientClipping",
    "GradientClippingConfig",
    "GradientsAccumulator",
    "GradientsParams",
    "LBFGSConfig",
    "LBFGSState",
    "LineSearchFn",
    "LinearLrScheduler",
    "LinearLrSchedulerConfig",
    "LrDecayState",
    "LrScheduler",
    "LrSchedulerConfig",
    "ModuleLearningRate",
    "ModuleLrScheduler",
    "ModuleOptimizer",
    "MomentumConfig",
    "MomentumState",
    "MultiGradientsParams",
    "Muon",
    "MuonConfig",
    "MuonState",
    "NoamLrScheduler",
    "NoamLrSchedulerConfig",
    "Optimizer",
    "OptimizerAdaptor",
    "ParamGroup",
    "RmsProp",
    "RmsPropConfig",
    "RmsPropMomentumState",
    "RmsPropState",
    "SchedulerReduction",
    "SequentialLrScheduler",
    "SequentialLrSchedulerConfig",
    "Sgd",
    "SgdConfig",
    "SgdState",
    "SimpleOptimizer",
    "SquareAvgState",
    "StepLrScheduler",
    "StepLrSchedulerConfig",
    "WeightDecayConfig",
    "as_scheduler",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
