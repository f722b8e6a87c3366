"""Convolutions."""

from typing import TYPE_CHECKING

from burnbook.core.other_names import module_answers
from burnbook.nn.conv.conv1d import Conv1d, Conv1dConfig
from burnbook.nn.conv.conv2d import Conv2d, Conv2dConfig
from burnbook.nn.conv.conv3d import Conv3d, Conv3dConfig
from burnbook.nn.conv.conv_transpose import (
    ConvTranspose1d,
    ConvTranspose1dConfig,
    ConvTranspose2d,
    ConvTranspose2dConfig,
    ConvTranspose3d,
    ConvTranspose3dConfig,
)
from burnbook.nn.conv.deform_conv2d import DeformConv2d, DeformConv2dConfig

__all__ = [
    "Conv1d",
    "Conv1dConfig",
    "Conv2d",
    "Conv2dConfig",
    "Conv3d",
    "Conv3dConfig",
    "ConvTranspose1d",
    "ConvTranspose1dConfig",
    "ConvTranspose2d",
    "ConvTranspose2dConfig",
    "ConvTranspose3d",
    "ConvTranspose3dConfig",
    "DeformConv2d",
    "DeformConv2dConfig",
]

if not TYPE_CHECKING:
    __getattr__ = module_answers(__name__)
