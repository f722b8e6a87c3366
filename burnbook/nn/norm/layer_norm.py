"""LayerNorm: every example normalized over its last dim."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.initializer import Initializer
from burnbook.nn.shared import at_least
from burnbook.ops.norm import layer_norm
from burnbook.tensor import Tensor, apply


class LayerNormConfig(Config):
    """How to make a LayerNorm: d_model, the size of the last dim.

    d_model: size of the last dim, at least 1.
    epsilon: added to the variance before dividing, at least 0 (default 1e-5).
    bias: whether there is a β (default True).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> LayerNormConfig(6).init(Numpy())
        LayerNorm {d_model: 6, epsilon: 0.00001, params: 12}
    """

    newer = ("bias",)
    d_model: int
    epsilon: float = 1e-5
    bias: bool = True

    def validate(self) -> None:
        """Refuse an empty last dim, and an epsilon below zero."""
        at_least(self, 1, "d_model")
        at_least(self, 0, "epsilon")

    def init(self, device: Backend) -> "LayerNorm":
        """The layer on a device, which at first scales by 1 and shifts by 0."""
        size = [self.d_model]
        beta = Initializer.Zeros.init(size, device) if self.bias else None
        return LayerNorm(Initializer.Ones.init(size, device), beta, self.epsilon)


class LayerNorm(Module):
    """Normalize examples to mean 0 and variance 1: out = γ (x − μ) / √(σ² + ε) + β.

    Shapes: x [..., d] -> [..., d]; gamma [d], beta [d]
    Why: σ² is the biased variance (divided by d, not by d − 1), and ε avoids a division
    by zero for a row of equal numbers.
    Source: Ba, Kiros, Hinton, "Layer normalization", 2016 (arXiv 1607.06450).
    """

    gamma: Param
    beta: Param | None
    epsilon: float
    shown = (("d_model", lambda norm: norm.gamma.shape[0]), "epsilon")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer; the input may have any rank."""
        beta = None if self.beta is None else self.beta.val()
        return apply(layer_norm, input, self.gamma.val(), beta, epsilon=self.epsilon)
