"""AdaptiveAvgPool1d: average pooling to a given output size."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor
from burnbook.tensor.module import adaptive_avg_pool1d


class AdaptiveAvgPool1dConfig(Config):
    """How to make an AdaptiveAvgPool1d: output_size.

    output_size: length of the output, at least 1.

    Example:
        >>> AdaptiveAvgPool1dConfig(3).init()
        AdaptiveAvgPool1d {output_size: 3}
    """

    output_size: int

    def validate(self) -> None:
        """Refuse an empty output."""
        at_least(self, 1, "output_size")

    def init(self) -> "AdaptiveAvgPool1d":
        """The layer; it has no parameters, so it needs no device."""
        return AdaptiveAvgPool1d(self.output_size)


class AdaptiveAvgPool1d(Module):
    """Average over windows that cover a line evenly, however long it is.

    Window i reaches from ⌊i · in / out⌋ to ⌈(i + 1) · in / out⌉.

    Shapes: x [n, c, l] -> [n, c, output_size]
    """

    output_size: int
    shown = ("output_size",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer to a batch of lines."""
        return adaptive_avg_pool1d(input, self.output_size)
