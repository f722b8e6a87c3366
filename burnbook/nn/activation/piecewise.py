"""Piecewise linear activations, and softplus."""

from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.module import Module
from burnbook.tensor import Tensor, activation

SOFTPLUS_THRESHOLD = 20.0  # e^−20 is nothing beside it in float32


class HardSigmoidConfig(Config):
    """How to make a HardSigmoid.

    alpha: the slope of the line, any number (default 0.2).
    beta: its value at 0, any number (default 0.5).

    Example:
        >>> HardSigmoidConfig().init()
        HardSigmoid {alpha: 0.2, beta: 0.5}
    """

    alpha: float = 0.2
    beta: float = 0.5

    def init(self) -> "HardSigmoid":
        """The layer; it has no parameters, so it needs no device."""
        return HardSigmoid(self.alpha, self.beta)


class HardSigmoid(Module):
    """A piecewise linear sigmoid: out = clamp(α x + β, 0, 1).

    Shapes: x [...] -> [...]
    """

    alpha: float
    beta: float
    shown = ("alpha", "beta")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.hard_sigmoid(input, self.alpha, self.beta)


class HardtanhConfig(Config):
    """How to make a Hardtanh: its two ends.

    min_val: the least output, at most max_val (default -1.0).
    max_val: the largest output, at least min_val (default 1.0).

    Example:
        >>> HardtanhConfig().init()
        Hardtanh {min_val: -1, max_val: 1}
    """

    min_val: float = -1.0
    max_val: float = 1.0

    def validate(self) -> None:
        """Refuse an empty range."""
        if not self.min_val <= self.max_val:
            what = f"min_val {self.min_val} lies above max_val {self.max_val}"
            raise ConfigError("HardtanhConfig", what)

    def init(self) -> "Hardtanh":
        """The layer; it has no parameters, so it needs no device."""
        return Hardtanh(self.min_val, self.max_val)


class Hardtanh(Module):
    """A piecewise linear tanh: out = clamp(x, min, max).

    Shapes: x [...] -> [...]
    """

    min_val: float
    max_val: float
    shown = ("min_val", "max_val")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.hardtanh(input, self.min_val, self.max_val)


class SoftplusConfig(Config):
    """How to make a Softplus: how sharp its edge is, and where it ends.

    beta: how sharp the bend at 0 is; larger is closer to Relu, not 0 (default 1.0).
    threshold: where β · x is above it, the result is x itself (default 20.0).

    Example:
        >>> SoftplusConfig().init()
        Softplus {beta: 1}
    """

    newer = ("threshold",)

    beta: float = 1.0
    threshold: float = SOFTPLUS_THRESHOLD

    def validate(self) -> None:
        """Refuse a beta that the result cannot be divided by."""
        if self.beta == 0:
            what = "beta is 0, and the result is divided by it"
            raise ConfigError("SoftplusConfig", what)

    def init(self) -> "Softplus":
        """The layer; it has no parameters, so it needs no device."""
        return Softplus(self.beta, self.threshold)


class Softplus(Module):
    """A smooth relu: out = ln(1 + e^(βx)) / β, and x where βx is above a threshold.

    Shapes: x [...] -> [...]
    """

    beta: float
    threshold: float = SOFTPLUS_THRESHOLD
    shown = ("beta",)
    shown_unless = (("threshold", SOFTPLUS_THRESHOLD),)
    newer_fields = shown_unless

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        if self.threshold == SOFTPLUS_THRESHOLD:  # in float32 it changes nothing
            return activation.softplus(input, self.beta)
        return activation.softplus_with_threshold(input, self.beta, self.threshold)


class ShrinkConfig(Config):
    """How to make a Shrink; in JSON its first field is `lambda`.

    lambda_: inputs in [−lambda, lambda] become 0; `lambda` in JSON (default 0.5).
    bias: by how much the others move toward 0 (default 0.5).

    Example:
        >>> ShrinkConfig().with_lambda(1.0).init()
        Shrink {lambda: 1, bias: 0.5}
    """

    lambda_: float = 0.5
    bias: float = 0.5

    def init(self) -> "Shrink":
        """The layer; it has no parameters, so it needs no device."""
        return Shrink(self.lambda_, self.bias)


class Shrink(Module):
    """Shrinkage with a bias: out = x ∓ bias beyond ±λ, 0 between.

    Shapes: x [...] -> [...]
    """

    lambda_: float
    bias: float
    shown = ("lambda_", "bias")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.shrink(input, self.lambda_, self.bias)


class HardShrinkConfig(Config):
    """How to make a HardShrink; in JSON its field is `lambda`.

    lambda_: inputs in [−lambda, lambda] become 0, the others are kept; `lambda` in JSON
        (default 0.5).

    Example:
        >>> HardShrinkConfig().init()
        HardShrink {lambda: 0.5}
    """

    lambda_: float = 0.5

    def init(self) -> "HardShrink":
        """The layer; it has no parameters, so it needs no device."""
        return HardShrink(self.lambda_)


class HardShrink(Module):
    """Hard shrinkage: out = x beyond ±λ, 0 between.

    Shapes: x [...] -> [...]
    """

    lambda_: float
    shown = ("lambda_",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.hard_shrink(input, self.lambda_)


class SoftShrinkConfig(Config):
    """How to make a SoftShrink; in JSON its field is `lambda`.

    lambda_: inputs in [−lambda, lambda] become 0, the others move by it toward 0;
        `lambda` in JSON (default 0.5).

    Example:
        >>> SoftShrinkConfig().init()
        SoftShrink {lambda: 0.5}
    """

    lambda_: float = 0.5

    def init(self) -> "SoftShrink":
        """The layer; it has no parameters, so it needs no device."""
        return SoftShrink(self.lambda_)


class SoftShrink(Module):
    """Soft shrinkage: out = x ∓ λ beyond ±λ, 0 between.

    Shapes: x [...] -> [...]
    """

    lambda_: float
    shown = ("lambda_",)

    def forward(self, input: Tensor) -> Tensor:
        """Apply the function to every element."""
        return activation.soft_shrink(input, self.lambda_)
