"""Transposed convolutions, which upsample: the adjoints of convolutions.

The output has the size of an input that a convolution of the same options would map to
the size of x.
"""

from collections.abc import Sequence
from typing import Any

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.conv.shared import parameters
from burnbook.nn.initializer import KAIMING, Initializer
from burnbook.nn.shared import (
    Pair,
    Triple,
    at_least,
    build,
    divide_into,
    sizes_of,
    tensor_of,
)
from burnbook.ops.conv.conv_transpose import conv_transpose
from burnbook.tensor import Tensor, apply

FIELDS = (
    "channels",
    "stride",
    "kernel_size",
    "dilation",
    "groups",
    "padding",
    "padding_out",
)


class ConvTranspose1dConfig(Config):
    """How to make a ConvTranspose1d: channels [in, out], kernel_size.

    channels: how many channels go in and come out, [in, out], each at least 1.
    kernel_size: size of the filter, at least 1.
    stride: by how many places the output moves for one of the input, at least 1
        (default 1).
    dilation: distance between places that the filter writes, at least 1 (default 1).
    groups: into how many groups the channels are split, each with filters of its own;
        it divides both numbers of channels (default 1).
    padding: how many places are cut from both ends of the output, at least 0
        (default 0).
    padding_out: how many places are added at the end of the output, at least 0
        (default 0).
    bias: whether a bias is added to every channel of the output (default True).
    initializer: how weight and bias are drawn (default KaimingUniform with gain 1/√3).
        For another bias: `initializer.with_bias(Initializer.Zeros)`.
    """

    channels: Pair
    kernel_size: int
    stride: int = 1
    dilation: int = 1
    groups: int = 1
    padding: int = 0
    padding_out: int = 0
    bias: bool = True
    initializer: Initializer = KAIMING

    def validate(self) -> None:
        """Refuse sizes that cannot be, and groups that do not divide the channels."""
        _check(self, self.channels, self.groups)

    def init(self, device: Backend) -> "ConvTranspose1d":
        """The layer on a device; its numbers are drawn at the first use."""
        return build(ConvTranspose1d, self, **_parameters(self, device))


class ConvTranspose1d(Module):
    """Transposed convolution of lines: every element of x adds a scaled filter.

    Shapes: x [n, c_in, l] -> [n, c_out, l'];
        weight [c_in, c_out / groups, k], bias [c_out];
        l' = (l − 1) stride + dilation (k − 1) + 1 + padding_out − 2 padding
    """

    weight: Param
    bias: Param | None
    stride: int
    kernel_size: int
    dilation: int
    groups: int
    padding: int
    padding_out: int
    channels: Pair
    shown = FIELDS

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of lines."""
        return _convolve(self, input)


class ConvTranspose2dConfig(Config):
    """How to make a ConvTranspose2d: channels [in, out], kernel_size [h, w].

    channels: how many channels go in and come out, [in, out], each at least 1.
    kernel_size: size of the filter [height, width], each at least 1.
    stride: by how many places the output moves for one of the input, each at least 1
        (default (1, 1)).
    dilation: distance between places that the filter writes, each at least 1
        (default (1, 1)).
    groups: into how many groups the channels are split, each with filters of its own;
        it divides both numbers of channels (default 1).
    padding: how many places are cut from both ends of the output, each at least 0
        (default (0, 0)).
    padding_out: how many places are added at the end of the output, each at least 0
        (default (0, 0)).
    bias: whether a bias is added to every channel of the output (default True).
    initializer: how weight and bias are drawn (default KaimingUniform with gain 1/√3).
        For another bias: `initializer.with_bias(Initializer.Zeros)`.
    """

    channels: Pair
    kernel_size: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    groups: int = 1
    padding: Pair = (0, 0)
    padding_out: Pair = (0, 0)
    bias: bool = True
    initializer: Initializer = KAIMING

    def validate(self) -> None:
        """Refuse sizes that cannot be, and groups that do not divide the channels."""
        _check(self, self.channels, self.groups)

    def init(self, device: Backend) -> "ConvTranspose2d":
        """The layer on a device; its numbers are drawn at the first use."""
        return build(ConvTranspose2d, self, **_parameters(self, device))


class ConvTranspose2d(Module):
    """Transposed convolution of images: every element of x adds a scaled filter.

    Shapes: x [n, c_in, h, w] -> [n, c_out, h', w'];
        weight [c_in, c_out / groups, kh, kw], bias [c_out];
        h' = (h − 1) stride + dilation (kh − 1) + 1 + padding_out − 2 padding
    """

    weight: Param
    bias: Param | None
    stride: Pair
    kernel_size: Pair
    dilation: Pair
    groups: int
    padding: Pair
    padding_out: Pair
    channels: Pair
    shown = FIELDS

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        return _convolve(self, input)


class ConvTranspose3dConfig(Config):
    """How to make a ConvTranspose3d: channels [in, out], kernel_size [d, h, w].

    channels: how many channels go in and come out, [in, out], each at least 1.
    kernel_size: size of the filter [depth, height, width], each at least 1.
    stride: by how many places the output moves for one of the input, each at least 1
        (default (1, 1, 1)).
    dilation: distance between places that the filter writes, each at least 1
        (default (1, 1, 1)).
    groups: into how many groups the channels are split, each with filters of its own;
        it divides both numbers of channels (default 1).
    padding: how many places are cut from both ends of the output, each at least 0
        (default (0, 0, 0)).
    padding_out: how many places are added at the end of the output, each at least 0
        (default (0, 0, 0)).
    bias: whether a bias is added to every channel of the output (default True).
    initializer: how weight and bias are drawn (default KaimingUniform with gain 1/√3).
        For another bias: `initializer.with_bias(Initializer.Zeros)`.
    """

    channels: Pair
    kernel_size: Triple
    stride: Triple = (1, 1, 1)
    dilation: Triple = (1, 1, 1)
    groups: int = 1
    padding: Triple = (0, 0, 0)
    padding_out: Triple = (0, 0, 0)
    bias: bool = True
    initializer: Initializer = KAIMING

    def validate(self) -> None:
        """Refuse sizes that cannot be, and groups that do not divide the channels."""
        _check(self, self.channels, self.groups)

    def init(self, device: Backend) -> "ConvTranspose3d":
        """The layer on a device; its numbers are drawn at the first use."""
        return build(ConvTranspose3d, self, **_parameters(self, device))


class ConvTranspose3d(Module):
    """Transposed convolution of volumes: every element of x adds a scaled filter.

    Shapes: x [n, c_in, d, h, w] -> [n, c_out, d', h', w'];
        weight [c_in, c_out / groups, kd, kh, kw], bias [c_out];
        h' = (h − 1) stride + dilation (kh − 1) + 1 + padding_out − 2 padding
    """

    weight: Param
    bias: Param | None
    stride: Triple
    kernel_size: Triple
    dilation: Triple
    groups: int
    padding: Triple
    padding_out: Triple
    channels: Pair
    shown = FIELDS

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of volumes."""
        return _convolve(self, input)


def _check(config: Config, channels: Sequence[int], groups: int) -> None:
    at_least(config, 1, "channels", "kernel_size", "stride", "dilation")
    at_least(config, 0, "padding", "padding_out")
    at_least(config, 1, "groups")
    divide_into(groups, config, channels)


def _parameters(config: Any, device: Backend) -> dict[str, Param | None]:
    c_in, c_out = config.channels
    shape = [c_in, c_out // config.groups, *sizes_of(config.kernel_size)]
    return parameters(config, shape, c_out, device)


def _convolve(
    layer: ConvTranspose1d | ConvTranspose2d | ConvTranspose3d, x: Tensor
) -> Tensor:
    return apply(
        conv_transpose,
        x,
        layer.weight.val(),
        tensor_of(layer.bias),
        stride=sizes_of(layer.stride),
        padding=sizes_of(layer.padding),
        padding_out=sizes_of(layer.padding_out),
        dilation=sizes_of(layer.dilation),
        groups=layer.groups,
    )
