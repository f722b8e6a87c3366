"""Normalization layers."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.norm.batch_norm import BatchNorm, BatchNormConfig
from burnbook.nn.norm.group_norm import (
    GroupNorm,
    GroupNormConfig,
    InstanceNorm,
    InstanceNormConfig,
)
from burnbook.nn.norm.layer_norm import LayerNorm, LayerNormConfig
from burnbook.nn.norm.local_response_norm import (
    LocalResponseNorm,
    LocalResponseNormConfig,
)
from burnbook.nn.norm.normalization import Normalization, NormalizationConfig
from burnbook.nn.norm.rms_norm import RmsNorm, RmsNormConfig

__all__ = [
    "BatchNorm",
    "BatchNormConfig",
    "GroupNorm",
    "GroupNormConfig",
    "InstanceNorm",
    "InstanceNormConfig",
    "LayerNorm",
    "LayerNormConfig",
    "LocalResponseNorm",
    "LocalResponseNormConfig",
    "Normalization",
    "NormalizationConfig",
    "RmsNorm",
    "RmsNormConfig",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
