"""Activation: the layer that an ActivationConfig chooses."""

from typing import Any, get_args

from burnbook.backend.base import Backend
from burnbook.config import ConfigEnum, holding, unit
from burnbook.nn.activation import gated, leaky, piecewise, pointwise
from burnbook.nn.identity import Identity

#: A field that holds any activation; records and prints say which, as Burn's enum.
Activation = (
    Identity
    | pointwise.Gelu
    | leaky.PRelu
    | pointwise.Relu
    | leaky.LeakyRelu
    | gated.SwiGlu
    | pointwise.Selu
    | pointwise.Sigmoid
    | pointwise.Tanh
    | piecewise.HardSigmoid
    | pointwise.HardSwish
    | piecewise.Softplus
    | pointwise.Softsign
    | leaky.Elu
    | leaky.Celu
    | leaky.ThresholdedRelu
    | piecewise.HardShrink
    | piecewise.SoftShrink
    | piecewise.Shrink
    | pointwise.Relu6
    | pointwise.SiLU
    | pointwise.Mish
    | pointwise.LogSigmoid
    | pointwise.Tanhshrink
    | piecewise.Hardtanh
    | leaky.RRelu
    | leaky.Threshold
)


class ActivationConfig(ConfigEnum):
    """Which activation to make, and how.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.nn import EluConfig
        >>> ActivationConfig.Gelu.init(Numpy())
        Gelu
        >>> ActivationConfig.Elu(EluConfig(alpha=0.2)).init(Numpy())
        Elu {alpha: 0.2}
    """

    Identity = unit()
    Gelu = unit()
    GeluApproximate = unit()
    PRelu = holding(leaky.PReluConfig)
    Relu = unit()
    LeakyRelu = holding(leaky.LeakyReluConfig)
    SwiGlu = holding(gated.SwiGluConfig)
    Selu = unit()
    Sigmoid = unit()
    Tanh = unit()
    HardSigmoid = holding(piecewise.HardSigmoidConfig)
    HardSwish = unit()
    Softplus = holding(piecewise.SoftplusConfig)
    Softsign = unit()
    Elu = holding(leaky.EluConfig)
    Celu = holding(leaky.CeluConfig)
    ThresholdedRelu = holding(leaky.ThresholdedReluConfig)
    HardShrink = holding(piecewise.HardShrinkConfig)
    SoftShrink = holding(piecewise.SoftShrinkConfig)
    Shrink = holding(piecewise.ShrinkConfig)
    Relu6 = unit()
    SiLU = unit()
    Mish = unit()
    LogSigmoid = unit()
    Tanhshrink = unit()
    Hardtanh = holding(piecewise.HardtanhConfig)
    RRelu = holding(leaky.RReluConfig)
    Threshold = holding(leaky.ThresholdConfig)

    def init(self, device: Backend) -> Activation:
        """The activation on a device."""
        if self.variant == "GeluApproximate":
            return pointwise.Gelu(approximate=True)
        if not self.values:
            return _CLASSES[self.variant]()
        if self.variant in _LEARNED:
            return self.values[0].init(device)
        return self.values[0].init()


_LEARNED = ("PRelu", "SwiGlu")
_CLASSES: dict[str, Any] = {made.__name__: made for made in get_args(Activation)}
