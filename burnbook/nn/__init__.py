"""Building blocks · Module. Layers and losses."""

from burnbook.nn import conv, loss, pool
from burnbook.nn.activation import Relu, Sigmoid, Tanh
from burnbook.nn.conv import Conv2d, Conv2dConfig
from burnbook.nn.dropout import Dropout, DropoutConfig
from burnbook.nn.initializer import Initializer
from burnbook.nn.linear import Linear, LinearConfig
from burnbook.nn.loss import CrossEntropyLoss, CrossEntropyLossConfig
from burnbook.nn.pool import AdaptiveAvgPool2d, AdaptiveAvgPool2dConfig
from burnbook.nn.settings import PaddingConfig2d

__all__ = [
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool2dConfig",
    "Conv2d",
    "Conv2dConfig",
    "CrossEntropyLoss",
    "CrossEntropyLossConfig",
    "Dropout",
    "DropoutConfig",
    "Initializer",
    "Linear",
    "LinearConfig",
    "PaddingConfig2d",
    "Relu",
    "Sigmoid",
    "Tanh",
    "conv",
    "loss",
    "pool",
]
