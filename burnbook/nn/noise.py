"""GaussianNoise: normal noise added to the input in training, as regularization."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import at_least
from burnbook.tensor import Distribution, Tensor


class GaussianNoiseConfig(Config):
    """How to make a GaussianNoise: the standard deviation of the noise.

    std: standard deviation of the noise, at least 0.

    Example:
        >>> GaussianNoiseConfig(0.1).init()
        GaussianNoise {std: 0.1}
    """

    std: float

    def validate(self) -> None:
        """Refuse a standard deviation below 0."""
        at_least(self, 0, "std")

    def init(self) -> "GaussianNoise":
        """The layer; it has no parameters, so it needs no device."""
        return GaussianNoise(self.std)


class GaussianNoise(Module):
    """Add normally distributed noise: out = x + std · z, z ~ N(0, 1).

    Shapes: x [...] -> [...]
    Why: like Dropout it acts only in training, so under Autodiff and before `eval()`.
    """

    std: float
    shown = ("std",)

    def forward(self, input: Tensor) -> Tensor:
        """Add noise in training, else return the input."""
        if self.std == 0.0 or not self.is_training(input):
            return input
        return input + input.random_like(Distribution.Normal(0.0, self.std))
