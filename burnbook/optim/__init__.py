"""Optimizers, and gradients by parameter."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.optim.adafactor import Adafactor, AdafactorConfig, AdafactorState
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
from burnbook.optim.grads import (
    GradientsAccumulator,
    GradientsParams,
    MultiGradientsParams,
)
from burnbook.optim.groups import ModuleLearningRate, ParamGroup
from burnbook.optim.lamb import Lamb, LambConfig, LambState
from burnbook.optim.lbfgs import LBFGS, LBFGSConfig, LBFGSState, LineSearchFn
from burnbook.optim.lion import Lion, LionConfig, LionState
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
from burnbook.optim.sgd import MomentumState, Sgd, SgdConfig, SgdState

__all__ = [
    "LBFGS",
    "AdaGrad",
    "AdaGradConfig",
    "AdaGradState",
    "Adafactor",
    "AdafactorConfig",
    "AdafactorState",
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
    "GradientsAccumulator",
    "GradientsParams",
    "LBFGSConfig",
    "LBFGSState",
    "Lamb",
    "LambConfig",
    "LambState",
    "LineSearchFn",
    "Lion",
    "LionConfig",
    "LionState",
    "LrDecayState",
    "ModuleLearningRate",
    "ModuleOptimizer",
    "MomentumConfig",
    "MomentumState",
    "MultiGradientsParams",
    "Muon",
    "MuonConfig",
    "MuonState",
    "Optimizer",
    "OptimizerAdaptor",
    "ParamGroup",
    "RmsProp",
    "RmsPropConfig",
    "RmsPropMomentumState",
    "RmsPropState",
    "Sgd",
    "SgdConfig",
    "SgdState",
    "SimpleOptimizer",
    "SquareAvgState",
    "WeightDecayConfig",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
