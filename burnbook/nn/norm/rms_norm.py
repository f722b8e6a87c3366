"""RmsNorm: every example divided by its root mean square."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.module import Module, Param
from burnbook.nn.initializer import Initializer
from burnbook.nn.shared import above_zero, at_least
from burnbook.ops.norm import rms_norm
from burnbook.tensor import Tensor, apply


class RmsNormConfig(Config):
    """How to make an RmsNorm: d_model, the size of the last dim.

    d_model: size of the last dim, at least 1.
    epsilon: added to the mean square before dividing, above 0 (default 1e-5).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> RmsNormConfig(6).init(Numpy())
        RmsNorm {d_model: 6, epsilon: 0.00001, params: 6}
    """

    d_model: int
    epsilon: float = 1e-5

    def validate(self) -> None:
        """Refuse an empty last dim, and an epsilon that is not above zero."""
        at_least(self, 1, "d_model")
        above_zero(self, "epsilon")

    def init(self, device: Backend) -> "RmsNorm":
        """The layer on a device, which at first scales by 1."""
        return RmsNorm(Initializer.Ones.init([self.d_model], device), self.epsilon)


class RmsNorm(Module):
    """Divide every example by its root mean square: out = γ x / √(mean x² + ε).

    Shapes: x [..., d] -> [..., d]; gamma [d]
    Why: cheaper than a layer norm, as no mean is subtracted and nothing is added, and
    networks train about as well. For float16 the mean is computed in float32.
    Source: Zhang, Sennrich, "Root mean square layer normalization", 2019
    (arXiv 1910.07467).
    """

    gamma: Param
    epsilon: float
    shown = (("d_model", lambda norm: norm.gamma.shape[0]), "epsilon")

    def forward(self, input: Tensor) -> Tensor:
        """Apply the layer; the input may have any rank."""
        return apply(rms_norm, input, self.gamma.val(), epsilon=self.epsilon)
