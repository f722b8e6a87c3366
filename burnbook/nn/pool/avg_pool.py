"""AvgPool1d and AvgPool2d: the average of every window."""

from collections.abc import Callable
from typing import Protocol

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import (
    PaddingConfig1d,
    PaddingConfig2d,
    Pair,
    Windowed,
    at_least,
    build,
    padded,
    without_end,
)
from burnbook.tensor import Tensor
from burnbook.tensor.module import avg_pool1d, avg_pool2d


class AvgPool1dConfig(Config):
    """How to make an AvgPool1d: kernel_size; the stride is 1 unless told otherwise.

    kernel_size: size of the window, at least 1.
    stride: by how many places the window moves, at least 1 (default 1).
    padding: how many zeros surround the input: Valid (none), Same or Explicit
        (default Valid).
    count_include_pad: whether the zeros of the padding count as places of a window
        (default True).
    ceil_mode: whether a last window may reach beyond the padding (default False).

    Example:
        >>> AvgPool1dConfig(3).init()
        AvgPool1d {kernel_size: 3, stride: 1, padding: Valid, count_include_pad: true}
    """

    newer = ("ceil_mode",)

    kernel_size: int
    stride: int = 1
    padding: PaddingConfig1d = PaddingConfig1d.Valid
    count_include_pad: bool = True
    ceil_mode: bool = False

    def validate(self) -> None:
        """Refuse sizes below 1."""
        at_least(self, 1, "kernel_size", "stride")

    def init(self) -> "AvgPool1d":
        """The layer; it has no parameters, so it needs no device."""
        return build(AvgPool1d, self)


class AvgPool1d(Module):
    """Average every window of a line: out = Σ window / its size.

    count_include_pad: the zeros of the padding count as places of a window.
    ceil_mode: a last window may reach beyond the padding.

    Shapes: x [n, c, l] -> [n, c, l']; l' = ⌊(l + 2 padding − kernel) / stride⌋ + 1
    """

    stride: int
    kernel_size: int
    padding: PaddingConfig1d
    count_include_pad: bool
    ceil_mode: bool
    shown = ("kernel_size", "stride", "padding", "count_include_pad")
    shown_unless = (("ceil_mode", False),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of lines."""
        return _averages(avg_pool1d, self, input)


class AvgPool2dConfig(Config):
    """How to make an AvgPool2d: kernel_size [height, width]; the strides are 1.

    kernel_size: size of the window [height, width], each at least 1.
    strides: by how many places the window moves, each at least 1 (default (1, 1)).
    padding: how many zeros surround the input: Valid (none), Same or Explicit
        (default Valid).
    count_include_pad: whether the zeros of the padding count as places of a window
        (default True).
    ceil_mode: whether a last window may reach beyond the padding (default False).

    Example:
        >>> AvgPool2dConfig([2, 2]).with_strides([2, 2]).init().kernel_size
        (2, 2)
    """

    newer = ("ceil_mode",)

    kernel_size: Pair
    strides: Pair = (1, 1)
    padding: PaddingConfig2d = PaddingConfig2d.Valid
    count_include_pad: bool = True
    ceil_mode: bool = False

    def validate(self) -> None:
        """Refuse sizes below 1."""
        at_least(self, 1, "kernel_size", "strides")

    def init(self) -> "AvgPool2d":
        """The layer; it has no parameters, so it needs no device."""
        return build(AvgPool2d, self, stride=self.strides)


class AvgPool2d(Module):
    """Average every window of an image: out = Σ window / its size.

    count_include_pad: the zeros of the padding count as places of a window.
    ceil_mode: a last window may reach beyond the padding.

    Shapes: x [n, c, h, w] -> [n, c, h', w'];
        h' = ⌊(h + 2 padding − kernel) / stride⌋ + 1
    """

    stride: Pair
    kernel_size: Pair
    padding: PaddingConfig2d
    count_include_pad: bool
    ceil_mode: bool
    shown = ("kernel_size", "stride", "padding", "count_include_pad")
    shown_unless = (("ceil_mode", False),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        return _averages(avg_pool2d, self, input)


class _Averaging(Windowed, Protocol):
    """A layer that averages windows."""

    count_include_pad: bool
    ceil_mode: bool


def _averages(pool: Callable[..., Tensor], layer: _Averaging, input: Tensor) -> Tensor:
    """The averages of windows, whoever pads them."""

    def pooled(x: Tensor, padding: tuple[int, ...]) -> Tensor:
        options = (padding, layer.count_include_pad, layer.ceil_mode)
        return pool(x, layer.kernel_size, layer.stride, *options)

    x, padding = padded(layer, input)
    out = pooled(x, padding)
    if x is input:
        return out
    if not layer.count_include_pad:  # the share of each window that lies in the input
        ones = Tensor.ones([1, 1, *input.dims()[2:]], input.device())
        share = pooled(padded(layer, ones)[0], padding)
        out = out / share.mask_fill(share.equal(0.0), 1.0)
    return without_end(layer, input, out) if layer.ceil_mode else out
