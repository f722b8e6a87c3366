"""Building blocks · Optimizer. Optimizers, gradients by parameter, learning rates."""

from burnbook.optim.adam import (
    Adam,
    AdamConfig,
    AdamState,
    AdaptiveMomentumState,
    WeightDecayConfig,
)
from burnbook.optim.adaptor import Optimizer, OptimizerAdaptor, SimpleOptimizer
from burnbook.optim.clipping import GradientClipping, GradientClippingConfig
from burnbook.optim.grads import GradientsAccumulator, GradientsParams
from burnbook.optim.lr_scheduler import ConstantLr, LrScheduler, as_scheduler

__all__ = [
    "Adam",
    "AdamConfig",
    "AdamState",
    "AdaptiveMomentumState",
    "ConstantLr",
    "GradientClipping",
    "GradientClippingConfig",
    "GradientsAccumulator",
    "GradientsParams",
    "LrScheduler",
    "Optimizer",
    "OptimizerAdaptor",
    "SimpleOptimizer",
    "WeightDecayConfig",
    "as_scheduler",
]
