"""Pooling."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.pool.adaptive_avg_pool1d import (
    AdaptiveAvgPool1d,
    AdaptiveAvgPool1dConfig,
)
from burnbook.nn.pool.adaptive_avg_pool2d import (
    AdaptiveAvgPool2d,
    AdaptiveAvgPool2dConfig,
)
from burnbook.nn.pool.adaptive_avg_pool3d import (
    AdaptiveAvgPool3d,
    AdaptiveAvgPool3dConfig,
)
from burnbook.nn.pool.avg_pool import (
    AvgPool1d,
    AvgPool1dConfig,
    AvgPool2d,
    AvgPool2dConfig,
)
from burnbook.nn.pool.max_pool import (
    MaxPool1d,
    MaxPool1dConfig,
    MaxPool2d,
    MaxPool2dConfig,
)

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool1dConfig",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool2dConfig",
    "AdaptiveAvgPool3d",
    "AdaptiveAvgPool3dConfig",
    "AvgPool1d",
    "AvgPool1dConfig",
    "AvgPool2d",
    "AvgPool2dConfig",
    "MaxPool1d",
    "MaxPool1dConfig",
    "MaxPool2d",
    "MaxPool2dConfig",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
