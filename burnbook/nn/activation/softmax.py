"""Activations along a dim: scores become probabilities."""

from burnbook.module import Module
from burnbook.tensor import Tensor, activation


class Softmax(Module):
    """Positive numbers with sum 1 along a dim: outᵢ = eˣᵢ / Σⱼ eˣⱼ.

    Shapes: x [...] -> [...]
    Example:
        >>> Softmax(1)
        Softmax {dim: 1}
    """

    dim: int
    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every line along the dim."""
        return activation.softmax(input, self.dim)


class LogSoftmax(Module):
    """The logarithm of softmax, without overflow: outᵢ = xᵢ − ln Σⱼ eˣⱼ.

    Shapes: x [...] -> [...]
    """

    dim: int
    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every line along the dim."""
        return activation.log_softmax(input, self.dim)


class Softmin(Module):
    """Softmax of −x, largest at the smallest score: outᵢ = e⁻ˣᵢ / Σⱼ e⁻ˣⱼ.

    Shapes: x [...] -> [...]
    """

    dim: int
    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every line along the dim."""
        return activation.softmin(input, self.dim)


class QuietSoftmax(Module):
    """Softmax whose sum may be less than 1, even near 0: outᵢ = eˣᵢ / (1 + Σⱼ eˣⱼ).

    Shapes: x [...] -> [...]
    """

    dim: int
    shown = ("dim",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every line along the dim."""
        return activation.quiet_softmax(input, self.dim)
