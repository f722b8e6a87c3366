"""Activations along a dim: scores become probabilities."""

from burnbook.module import DisplaySettings, Module
from burnbook.nn.shared import ONE_LINE
from burnbook.tensor import Tensor, activation


class Softmax(Module):
    """Positive numbers with sum 1 along a dim: outᵢ = eˣᵢ / Σⱼ eˣⱼ.

    Shapes: x [...] -> [...]
    Example:
        >>> Softmax(1)
        Softmax {dim: 1}
    """

    dim: int

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Apply the function to every line along the dim."""
        return activation.softmax(input, self.dim)

    def custom_settings(self) -> DisplaySettings:
        """Print on one line."""
        return ONE_LINE


class LogSoftmax(Module):
    """The logarithm of softmax, without overflow: outᵢ = xᵢ − ln Σⱼ eˣⱼ.

    Shapes: x [...] -> [...]
    """

    dim: int

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Apply the function to every line along the dim."""
        return activation.log_softmax(input, self.dim)

    def custom_settings(self) -> DisplaySettings:
        """Print on one line."""
        return ONE_LINE


class Softmin(Module):
    """Softmax the other way round, the smallest score first: outᵢ = e⁻ˣᵢ / Σⱼ e⁻ˣⱼ.

    Shapes: x [...] -> [...]
    """

    dim: int

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Apply the function to every line along the dim."""
        return activation.softmin(input, self.dim)

    def custom_settings(self) -> DisplaySettings:
        """Print on one line."""
        return ONE_LINE


class QuietSoftmax(Module):
    """A softmax that may choose nothing: outᵢ = eˣᵢ / (1 + Σⱼ eˣⱼ).

    Shapes: x [...] -> [...]
    """

    dim: int

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - Burn's word
        """Apply the function to every line along the dim."""
        return activation.quiet_softmax(input, self.dim)

    def custom_settings(self) -> DisplaySettings:
        """Print on one line."""
        return ONE_LINE
