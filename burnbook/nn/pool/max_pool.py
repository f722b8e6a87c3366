"""MaxPool1d and MaxPool2d: the largest of every window."""

import math

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import (
    PaddingConfig1d,
    PaddingConfig2d,
    Pair,
    at_least,
    build,
    padded,
    without_end,
)
from burnbook.tensor import Tensor
from burnbook.tensor.module import max_pool1d, max_pool2d


class MaxPool1dConfig(Config):
    """How to make a MaxPool1d: kernel_size; the stride is 1 unless told otherwise.

    kernel_size: size of the window, at least 1.
    stride: by how many places the window moves, at least 1 (default 1).
    padding: how many places, which never are the maximum, surround the input:
        Valid (none), Same or Explicit (default Valid).
    dilation: distance between places of a window, at least 1 (default 1).
    ceil_mode: whether a last window may reach beyond the padding (default False).

    Example:
        >>> MaxPool1dConfig(3).with_stride(2).init()
        MaxPool1d {kernel_size: 3, stride: 2, padding: Valid, dilation: 1}
    """

    newer = ("ceil_mode",)

    kernel_size: int
    stride: int = 1
    padding: PaddingConfig1d = PaddingConfig1d.Valid
    dilation: int = 1
    ceil_mode: bool = False

    def validate(self) -> None:
        """Refuse sizes below 1."""
        at_least(self, 1, "kernel_size", "stride", "dilation")

    def init(self) -> "MaxPool1d":
        """The layer; it has no parameters, so it needs no device."""
        return build(MaxPool1d, self)


class MaxPool1d(Module):
    """Take the largest number of every window of a line; NaN wins.

    ceil_mode: a last window may reach beyond the padding.

    Shapes: x [n, c, l] -> [n, c, l'];
        l' = ⌊(l + 2 padding − dilation (kernel − 1) − 1) / stride⌋ + 1
    """

    stride: int
    kernel_size: int
    padding: PaddingConfig1d
    dilation: int
    ceil_mode: bool
    shown = ("kernel_size", "stride", "padding", "dilation")
    shown_unless = (("ceil_mode", False),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of lines."""
        x, padding = padded(self, input, -math.inf)
        options = (padding, self.dilation, self.ceil_mode)
        out = max_pool1d(x, self.kernel_size, self.stride, *options)
        return (
            without_end(self, input, out) if x is not input and self.ceil_mode else out
        )


class MaxPool2dConfig(Config):
    """How to make a MaxPool2d: kernel_size [height, width]; the strides are 1.

    kernel_size: size of the window [height, width], each at least 1.
    strides: by how many places the window moves, each at least 1 (default (1, 1)).
    padding: how many places, which never are the maximum, surround the input:
        Valid (none), Same or Explicit (default Valid).
    dilation: distance between places of a window, each at least 1 (default (1, 1)).
    ceil_mode: whether a last window may reach beyond the padding (default False).

    Example:
        >>> MaxPool2dConfig([2, 2]).with_strides([2, 2]).init().stride
        (2, 2)
    """

    newer = ("ceil_mode",)

    kernel_size: Pair
    strides: Pair = (1, 1)
    padding: PaddingConfig2d = PaddingConfig2d.Valid
    dilation: Pair = (1, 1)
    ceil_mode: bool = False

    def validate(self) -> None:
        """Refuse sizes below 1."""
        at_least(self, 1, "kernel_size", "strides", "dilation")

    def init(self) -> "MaxPool2d":
        """The layer; it has no parameters, so it needs no device."""
        return build(MaxPool2d, self, stride=self.strides)


class MaxPool2d(Module):
    """Take the largest number of every window of an image; NaN wins.

    ceil_mode: a last window may reach beyond the padding.

    Shapes: x [n, c, h, w] -> [n, c, h', w'];
        h' = ⌊(h + 2 padding − dilation (kernel − 1) − 1) / stride⌋ + 1
    """

    stride: Pair
    kernel_size: Pair
    padding: PaddingConfig2d
    dilation: Pair
    ceil_mode: bool
    shown = ("kernel_size", "stride", "padding", "dilation")
    shown_unless = (("ceil_mode", False),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        x, padding = padded(self, input, -math.inf)
        options = (padding, self.dilation, self.ceil_mode)
        out = max_pool2d(x, self.kernel_size, self.stride, *options)
        return (
            without_end(self, input, out) if x is not input and self.ceil_mode else out
        )
