"""What all convolution layers do alike."""

from collections.abc import Sequence
from typing import Any

from burnbook.backend.base import Backend
from burnbook.module import Param
from burnbook.nn.initializer import Initializer

#: What a convolution shows.
SHOWN = ("stride", "kernel_size", "dilation", "groups", "padding")


def parameters(
    rule: Initializer,
    shape: Sequence[int],
    channels: int | None,
    fan_in: int,
    fan_out: int | None,
    device: Backend,
) -> tuple[Param, Param | None]:
    """A weight and, for so many output channels, a bias, drawn by the same rule."""
    weight = rule.init_with(shape, fan_in, fan_out, device)
    if channels is None:
        return weight, None
    return weight, rule.init_bias(channels, fan_in, fan_out, device)


def value(param: Param | None) -> Any:
    """The tensor of a parameter that may be missing."""
    return None if param is None else param.val()
