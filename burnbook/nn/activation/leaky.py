"""Activations with one formula above a limit and another below."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.module import Module, Param
from burnbook.nn.initializer import Initializer
from burnbook.nn.shared import at_least
from burnbook.tensor import Distribution, Tensor, activation


class LeakyReluConfig(Config):
    """How to make a LeakyRelu.

    negative_slope: the slope below 0, any number (default 0.01).

    Example:
        >>> LeakyReluConfig().init()
        LeakyRelu {negative_slope: 0.01}
    """

    negative_slope: float = 0.01

    def init(self) -> "LeakyRelu":
        """The layer; it has no parameters, so it needs no device."""
        return LeakyRelu(self.negative_slope)


class LeakyRelu(Module):
    """A relu with a slope below zero: out = slope · x there, x elsewhere.

    Shapes: x [...] -> [...]
    """

    negative_slope: float
    shown = ("negative_slope",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.leaky_relu(input, self.negative_slope)


class PReluConfig(Config):
    """How to make a PRelu: one slope for all, or as many as there are channels.

    num_parameters: how many slopes are learned: 1 for all channels, or one for each
        (default 1).
    alpha: the slope below 0 to start from, any number (default 0.25).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> PReluConfig().init(Numpy())
        PRelu {num_parameters: 1, alpha_value: 0.25, params: 1}
    """

    num_parameters: int = 1
    alpha: float = 0.25

    def validate(self) -> None:
        """Refuse no slope at all."""
        at_least(self, 1, "num_parameters")

    def init(self, device: Backend) -> "PRelu":
        """The layer on a device, with equal slopes."""
        start = Initializer.Constant(value=self.alpha)
        return PRelu(start.init([self.num_parameters], device), self.alpha)


class PRelu(Module):
    """A leaky relu whose slopes are learned: out = α x below zero, x elsewhere.

    Shapes: x [n, c, ...] -> [n, c, ...]; alpha [1] or [c]
    Source: He, Zhang, Ren, Sun, "Delving deep into rectifiers", 2015
    (arXiv 1502.01852).
    """

    alpha: Param
    alpha_value: float
    shown = (("num_parameters", lambda layer: layer.alpha.shape[0]), "alpha_value")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.prelu(input, self.alpha.val())


class RReluConfig(Config):
    """How to make an RRelu: the range of its slopes.

    lower: the smallest slope below 0, at most upper (default 0.125).
    upper: the largest slope below 0, at least lower (default 1/3).

    Example:
        >>> RReluConfig().with_lower(0.1).with_upper(0.3).init()
        RRelu {lower: 0.1, upper: 0.3}
    """

    lower: float = 0.125
    upper: float = 1.0 / 3.0

    def validate(self) -> None:
        """Refuse an empty range."""
        if not self.lower <= self.upper:
            what = f"lower {self.lower} lies above upper {self.upper}"
            raise ConfigError("RReluConfig", what)

    def init(self) -> "RRelu":
        """The layer; it has no parameters, so it needs no device."""
        return RRelu(self.lower, self.upper)


class RRelu(Module):
    """A leaky relu with random slopes: out = a x below zero, a from [lower, upper).

    In training (under Autodiff) a slope is drawn for every element; on any other
    backend, and after `model.eval()`, it is the mean of both bounds.

    Shapes: x [...] -> [...]
    Source: Xu, Wang, Chen, Li, "Empirical evaluation of rectified activations in
    convolutional network", 2015 (arXiv 1505.00853).
    """

    lower: float
    upper: float
    shown = ("lower", "upper")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        if self.lower == self.upper or not self.is_training(input):
            return activation.leaky_relu(input, (self.lower + self.upper) / 2)
        slopes = input.random_like(Distribution.Uniform(self.lower, self.upper))
        return input.mask_where(input.lower(0), input * slopes)


class EluConfig(Config):
    """How to make an Elu.

    alpha: what negative inputs go to: out → −alpha for x → −∞; any number
        (default 1.0).

    Example:
        >>> EluConfig().init()
        Elu {alpha: 1}
    """

    alpha: float = 1.0

    def init(self) -> "Elu":
        """The layer; it has no parameters, so it needs no device."""
        return Elu(self.alpha)


class Elu(Module):
    """Exponential linear unit: out = α (eˣ − 1) below zero, x above.

    Shapes: x [...] -> [...]
    Source: Clevert, Unterthiner, Hochreiter, "Fast and accurate deep network learning
    by exponential linear units", 2015 (arXiv 1511.07289).
    """

    alpha: float
    shown = ("alpha",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.elu(input, self.alpha)


class CeluConfig(Config):
    """How to make a Celu.

    alpha: what negative inputs go to: out → −alpha for x → −∞; not 0 (default 1.0).

    Example:
        >>> CeluConfig().init()
        Celu {alpha: 1}
    """

    alpha: float = 1.0

    def validate(self) -> None:
        """Refuse an alpha that the input cannot be divided by."""
        if self.alpha == 0:
            raise ConfigError("CeluConfig", "alpha is 0, and x is divided by it")

    def init(self) -> "Celu":
        """The layer; it has no parameters, so it needs no device."""
        return Celu(self.alpha)


class Celu(Module):
    """An elu with a continuous slope: out = α (e^(x/α) − 1) below zero, x above.

    Shapes: x [...] -> [...]
    Source: Barron, "Continuously differentiable exponential linear units", 2017
    (arXiv 1704.07483).
    """

    alpha: float
    shown = ("alpha",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.celu(input, self.alpha)


class ThresholdConfig(Config):
    """How to make a Threshold: the limit, and what replaces values up to it.

    threshold: the limit; inputs above it are kept, any number.
    value: what replaces the others, any number.

    Example:
        >>> ThresholdConfig(1.0, 20.0).init()
        Threshold {threshold: 1, value: 20}
    """

    threshold: float
    value: float

    def init(self) -> "Threshold":
        """The layer; it has no parameters, so it needs no device."""
        return Threshold(self.threshold, self.value)


class Threshold(Module):
    """Keep what is above a threshold: out = x there, a value elsewhere.

    Shapes: x [...] -> [...]
    """

    threshold: float
    value: float
    shown = ("threshold", "value")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.threshold(input, self.threshold, self.value)


class ThresholdedReluConfig(Config):
    """How to make a ThresholdedRelu.

    alpha: the limit; inputs above it are kept, the others become 0, any number
        (default 1.0).

    Example:
        >>> ThresholdedReluConfig().init()
        ThresholdedRelu {alpha: 1}
    """

    alpha: float = 1.0

    def init(self) -> "ThresholdedRelu":
        """The layer; it has no parameters, so it needs no device."""
        return ThresholdedRelu(self.alpha)


class ThresholdedRelu(Module):
    """Keep what is above α: out = x there, 0 elsewhere.

    Shapes: x [...] -> [...]
    """

    alpha: float
    shown = ("alpha",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.thresholded_relu(input, self.alpha)
