"""Building blocks · Module. Activations as layers: the bend between linear layers."""

from burnbook.module import Module
from burnbook.ops.elementwise import relu, sigmoid, tanh
from burnbook.tensor import Tensor, apply


class Relu(Module):
    """Keep what is positive: out = max(x, 0).

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Apply the function to every element."""
        return apply(relu, input)


class Sigmoid(Module):
    """Squash into (0, 1): out = 1 / (1 + e⁻ˣ).

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Apply the function to every element."""
        return apply(sigmoid, input)


class Tanh(Module):
    """Squash into (−1, 1): out = tanh x.

    Shapes: x [...] -> [...]
    """

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Apply the function to every element."""
        return apply(tanh, input)
