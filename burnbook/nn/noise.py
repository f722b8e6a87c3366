"""GaussianNoise: details that are blurred do not count."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.shared import at_least
from burnbook.tensor import Distribution, Tensor


class GaussianNoiseConfig(Config):
    """How to make a GaussianNoise: how strong it is.

    std: standard deviation of the noise, at least 0.

    Example:
        >>> GaussianNoiseConfig(0.1).init()
        GaussianNoise {std: 0.1}
    """

    std: float

    def validate(self) -> None:
        """Refuse a spread below zero."""
        at_least(self, 0, "std")

    def init(self) -> "GaussianNoise":
        """The layer; it has no parameters, so it needs no device."""
        return GaussianNoise(self.std)


class GaussianNoise(Module):
    """Add random numbers from the bell curve: out = x + std · z, z normal.

    Shapes: x [...] -> [...]
    Why: like Dropout it acts only under Autodiff, which is where training happens.
    """

    std: float
    shown = ("std",)

    def forward(self, input: Tensor) -> Tensor:
        """Add noise when training, else give the input back."""
        if not input.backend.ad_enabled or self.std == 0.0:
            return input
        return input + input.random_like(Distribution.Normal(0.0, self.std))
