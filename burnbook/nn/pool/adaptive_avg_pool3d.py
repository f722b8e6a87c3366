"""AdaptiveAvgPool3d: average pooling to a given output size."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import Triple, at_least
from burnbook.tensor import Tensor
from burnbook.tensor.module import adaptive_avg_pool3d


class AdaptiveAvgPool3dConfig(Config):
    """How to make an AdaptiveAvgPool3d: output_size [depth, height, width].

    output_size: size [depth, height, width] of the output, each at least 1.

    Example:
        >>> AdaptiveAvgPool3dConfig([2, 4, 4]).init()
        AdaptiveAvgPool3d {output_size: [2, 4, 4]}
    """

    output_size: Triple

    def validate(self) -> None:
        """Refuse an empty output."""
        at_least(self, 1, "output_size")

    def init(self) -> "AdaptiveAvgPool3d":
        """The layer; it has no parameters, so it needs no device."""
        return AdaptiveAvgPool3d(self.output_size)


class AdaptiveAvgPool3d(Module):
    """Average over windows that cover a volume evenly, however large it is.

    Window i reaches from ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.

    Shapes: x [n, c, d, h, w] -> [n, c, output_size...]
    """

    output_size: Triple
    shown = ("output_size",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of volumes."""
        return adaptive_avg_pool3d(input, self.output_size)
