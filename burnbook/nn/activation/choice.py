"""Activation: one of the curves, as a config chooses."""

from typing import Any

from burnbook.backend.base import Backend
from burnbook.config import ConfigEnum, holding, unit
from burnbook.nn.activation.gated import SwiGlu, SwiGluConfig
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
from burnbook.nn.identity import Identity

#: A field that holds any activation; records and prints say which, as Burn's enum.
Activation = (
    Identity
    | Gelu
    | PRelu
    | Relu
    | LeakyRelu
    | SwiGlu
    | Selu
    | Sigmoid
    | Tanh
    | HardSigmoid
    | HardSwish
    | Softplus
    | Softsign
    | Elu
    | Celu
    | ThresholdedRelu
    | HardShrink
    | SoftShrink
    | Shrink
    | Relu6
    | SiLU
    | Mish
    | LogSigmoid
    | Tanhshrink
    | Hardtanh
    | RRelu
    | Threshold
)


class ActivationConfig(ConfigEnum):
    """Which activation to make, and how.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> ActivationConfig.Gelu.init(Numpy())
        Gelu
        >>> ActivationConfig.Elu(EluConfig(alpha=0.2)).init(Numpy())
        Elu {alpha: 0.2}
    """

    Identity = unit()
    Gelu = unit()
    GeluApproximate = unit()
    PRelu = holding(PReluConfig)
    Relu = unit()
    LeakyRelu = holding(LeakyReluConfig)
    SwiGlu = holding(SwiGluConfig)
    Selu = unit()
    Sigmoid = unit()
    Tanh = unit()
    HardSigmoid = holding(HardSigmoidConfig)
    HardSwish = unit()
    Softplus = holding(SoftplusConfig)
    Softsign = unit()
    Elu = holding(EluConfig)
    Celu = holding(CeluConfig)
    ThresholdedRelu = holding(ThresholdedReluConfig)
    HardShrink = holding(HardShrinkConfig)
    SoftShrink = holding(SoftShrinkConfig)
    Shrink = holding(ShrinkConfig)
    Relu6 = unit()
    SiLU = unit()
    Mish = unit()
    LogSigmoid = unit()
    Tanhshrink = unit()
    Hardtanh = holding(HardtanhConfig)
    RRelu = holding(RReluConfig)
    Threshold = holding(ThresholdConfig)

    def init(self, device: Backend) -> Activation:
        """The activation on a device."""
        if not self.values:
            return _PLAIN[self.variant]()
        if self.variant in _LEARNED:
            return self.values[0].init(device)
        return self.values[0].init()


_LEARNED = ("PRelu", "SwiGlu")
_PLAIN: dict[str, Any] = {
    "GeluApproximate": lambda: Gelu(approximate=True),
    **{
        made.__name__: made
        for made in (
            *(Identity, Gelu, Relu, Selu, Sigmoid, Tanh, HardSwish, Softsign),
            *(Relu6, SiLU, Mish, LogSigmoid, Tanhshrink),
        )
    },
}
