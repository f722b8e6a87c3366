"""Unfold4d and Fold4d: images as columns of patches."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import Pair, at_least, build
from burnbook.tensor import Tensor
from burnbook.tensor.module import UnfoldOptions, fold4d, unfold4d


class Unfold4dConfig(Config):
    """How to make an Unfold4d: kernel_size [height, width].

    kernel_size: size of a patch [height, width], each at least 1.
    stride: by how many places patches lie apart, each at least 1 (default (1, 1)).
    dilation: distance between places of a patch, each at least 1 (default (1, 1)).
    padding: how many zeros surround the image on both sides, each at least 0
        (default (0, 0)).
    """

    kernel_size: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Pair = (0, 0)

    def validate(self) -> None:
        """Refuse sizes below 1 and a padding below zero."""
        at_least(self, 1, "kernel_size", "stride", "dilation")
        at_least(self, 0, "padding")

    def init(self) -> "Unfold4d":
        """The layer; it has no parameters, so it needs no device."""
        return build(Unfold4d, self)


class Unfold4d(Module):
    """Arrange the patches of images as columns; rows run over channel, kh and kw.

    Shapes: x [n, c, h, w] -> [n, c · kh · kw, blocks]
    """

    kernel_size: Pair
    stride: Pair
    dilation: Pair
    padding: Pair
    shown = ("kernel_size", "stride", "dilation", "padding")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        options = UnfoldOptions(self.stride, self.padding, self.dilation)
        return unfold4d(input, self.kernel_size, options)


class Fold4dConfig(Config):
    """How to make a Fold4d: output_size and kernel_size, each [height, width].

    output_size: size of the image [height, width], each at least 1.
    kernel_size: size of a patch [height, width], each at least 1.
    stride: by how many places patches lie apart, each at least 1 (default (1, 1)).
    dilation: distance between places of a patch, each at least 1 (default (1, 1)).
    padding: how many places are cut from both sides of the image, each at least 0
        (default (0, 0)).
    """

    output_size: Pair
    kernel_size: Pair
    stride: Pair = (1, 1)
    dilation: Pair = (1, 1)
    padding: Pair = (0, 0)

    def validate(self) -> None:
        """Refuse sizes below 1 and a padding below zero."""
        at_least(self, 1, "output_size", "kernel_size", "stride", "dilation")
        at_least(self, 0, "padding")

    def init(self) -> "Fold4d":
        """The layer; it has no parameters, so it needs no device."""
        return build(Fold4d, self)


class Fold4d(Module):
    """Add columns of patches up to images; where patches overlap they are summed.

    Shapes: x [n, c · kh · kw, blocks] -> [n, c, output_size...]
    """

    output_size: Pair
    kernel_size: Pair
    stride: Pair
    dilation: Pair
    padding: Pair
    shown = ("output_size", "kernel_size", "stride", "dilation", "padding")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of columns."""
        options = UnfoldOptions(self.stride, self.padding, self.dilation)
        return fold4d(input, self.output_size, self.kernel_size, options)
