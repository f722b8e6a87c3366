"""AdaptiveAvgPool2d: average pooling to a given output size."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import Pair, at_least
from burnbook.ops.pool.pool import adaptive_avg_pool2d
from burnbook.tensor import Tensor, apply


class AdaptiveAvgPool2dConfig(Config):
    """How to make an AdaptiveAvgPool2d: output_size [height, width].

    output_size: size [height, width] of the output, each at least 1.

    Example:
        >>> AdaptiveAvgPool2dConfig([8, 8]).init()
        AdaptiveAvgPool2d {output_size: [8, 8]}
    """

    output_size: Pair

    def validate(self) -> None:
        """Refuse an empty output."""
        at_least(self, 1, "output_size")

    def init(self) -> "AdaptiveAvgPool2d":
        """The layer; it has no parameters, so it needs no device."""
        return AdaptiveAvgPool2d(self.output_size)


class AdaptiveAvgPool2d(Module):
    """Average over windows that cover the image evenly, however large it is.

    Window i reaches from ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.

    Shapes: x [n, c, h, w] -> [n, c, output_size...]
    """

    output_size: Pair
    shown = ("output_size",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of images."""
        return apply(adaptive_avg_pool2d, input, output_size=self.output_size)
