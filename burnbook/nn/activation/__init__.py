"""Activations as layers: the nonlinearity between linear layers."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.activation.choice import Activation, ActivationConfig
from burnbook.nn.activation.gated import Glu, SwiGlu, SwiGluConfig
from burnbook.nn.activation.leaky import (
    Celu,
    CeluConfig,
    Elu,
    EluConfig,
    LeakyRelu,
    LeakyReluConfig,
    PRelu,
    PReluConfig,
    RRelu,
    RReluConfig,
    Threshold,
    ThresholdConfig,
    ThresholdedRelu,
    ThresholdedReluConfig,
)
from burnbook.nn.activation.piecewise import (
    HardShrink,
    HardShrinkConfig,
    HardSigmoid,
    HardSigmoidConfig,
    Hardtanh,
    HardtanhConfig,
    Shrink,
    ShrinkConfig,
    Softplus,
    SoftplusConfig,
    SoftShrink,
    SoftShrinkConfig,
)
from burnbook.nn.activation.pointwise import (
    Gelu,
    HardSwish,
    LogSigmoid,
    Mish,
    Relu,
    Relu6,
    Selu,
    Sigmoid,
    SiLU,
    Softsign,
    Tanh,
    Tanhshrink,
)
from burnbook.nn.activation.softmax import LogSoftmax, QuietSoftmax, Softmax, Softmin

Prelu, PreluConfig = PRelu, PReluConfig  # as the book writes them
Silu = Swish = SiLU
GLU = Glu

__all__ = [
    "GLU",
    "Activation",
    "ActivationConfig",
    "Celu",
    "CeluConfig",
    "Elu",
    "EluConfig",
    "Gelu",
    "Glu",
    "HardShrink",
    "HardShrinkConfig",
    "HardSigmoid",
    "HardSigmoidConfig",
    "HardSwish",
    "Hardtanh",
    "HardtanhConfig",
    "LeakyRelu",
    "LeakyReluConfig",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PRelu",
    "PReluConfig",
    "Prelu",
    "PreluConfig",
    "QuietSoftmax",
    "RRelu",
    "RReluConfig",
    "Relu",
    "Relu6",
    "Selu",
    "Shrink",
    "ShrinkConfig",
    "SiLU",
    "Sigmoid",
    "Silu",
    "SoftShrink",
    "SoftShrinkConfig",
    "Softmax",
    "Softmin",
    "Softplus",
    "SoftplusConfig",
    "Softsign",
    "SwiGlu",
    "SwiGluConfig",
    "Swish",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "ThresholdConfig",
    "ThresholdedRelu",
    "ThresholdedReluConfig",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
