"""What all convolution layers do alike."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

from burnbook.backend.base import Backend
from burnbook.core.op import Op
from burnbook.module import Param
from burnbook.nn.shared import (
    Windowed,
    at_least,
    divide_into,
    padded,
    sizes_of,
)
from burnbook.tensor import Tensor, apply

#: What a convolution shows.
SHOWN = ("stride", "kernel_size", "dilation", "groups", "padding")


class ConvLayer(Windowed, Protocol):
    """A layer with filters; sizes are one number for lines."""

    weight: Param
    bias: Param | None
    dilation: Any
    groups: int


def check_sizes(config: Any) -> None:
    """Refuse sizes below 1, and groups that the channels cannot be split into."""
    at_least(config, 1, "channels", "kernel_size", "stride", "dilation", "groups")
    divide_into(config.groups, config, config.channels)


def filters(
    config: Any, channels: Sequence[int], groups: int, device: Backend
) -> dict[str, Param | None]:
    """Weight [c_out, c_in / groups, kernel …] and bias [c_out] of a convolution."""
    c_in, c_out = channels
    shape = [c_out, c_in // groups, *config.kernel_size]
    fan_out = c_out // groups * math.prod(config.kernel_size)
    return parameters(config, shape, c_out, device, fan_out)


def parameters(
    config: Any,
    shape: Sequence[int],
    channels: int,
    device: Backend,
    fan_out: int | None = None,
) -> dict[str, Param | None]:
    """A weight and, where the config asks for one, a bias, drawn by the same rule."""
    rule, fan_in = config.initializer, math.prod(shape[1:])
    weight = rule.init_with(shape, fan_in, fan_out, device)
    bias = rule.init_bias(channels, fan_in, fan_out, device) if config.bias else None
    return {"weight": weight, "bias": bias}


def convolve(op: Op, layer: ConvLayer, x: Tensor) -> Tensor:
    """Apply an op to x [n, c, ...] with the parameters and sizes of a layer."""
    stride, dilation = sizes_of(layer.stride), sizes_of(layer.dilation)
    bias = layer.bias
    x, padding = padded(layer, x)
    return apply(
        op,
        x,
        layer.weight.val(),
        None if bias is None else bias.val(),
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=layer.groups,
    )
