"""HuberLoss: quadratic for small errors, linear for large ones."""

import numpy as np

from burnbook.config import Config
from burnbook.nn.loss.checks import fit_one_shape
from burnbook.nn.loss.reduction import ElementwiseLoss
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor


class HuberLossConfig(Config):
    """How to make a HuberLoss: up to which error it is quadratic.

    delta: up to which error the loss is quadratic; beyond it is linear, at least 0.

    Example:
        >>> HuberLossConfig(0.5).init()
        HuberLoss {delta: 0.5, lin_bias: 0.125}
    """

    delta: float

    def validate(self) -> None:
        """Refuse a bound below 0."""
        at_least(self, 0, "delta")

    def init(self) -> "HuberLoss":
        """The loss."""
        delta = np.float32(self.delta)
        lin_bias = delta * delta * np.float32(0.5)  # Burn's, for display
        return HuberLoss(self.delta, float(str(lin_bias)))


class HuberLoss(ElementwiseLoss):
    """Quadratic, then linear in the error: r²/2 up to |r| = δ, δ |r| − δ²/2 beyond.

    Shapes: predictions [...], targets [...] -> [1]
    Example:
        >>> x, y = Tensor.from_data([1.0, 2.0]), Tensor.from_data([1.5, 5.0])
        >>> HuberLossConfig(1.0).init().forward_no_reduction(x, y).to_data().to_list()
        [0.125, 2.5]

    Source: Huber, Robust Estimation of a Location Parameter, 1964.
    """

    delta: float
    lin_bias: float
    shown = ("delta", "lin_bias")

    def forward_no_reduction(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """The loss of each element.

        Shapes: predictions [...], targets [...] -> [...]
        """
        fit_one_shape("huber", {"predictions": predictions, "targets": targets})
        return self.forward_residuals(targets - predictions)

    def forward_residuals(self, residuals: Tensor) -> Tensor:
        """The loss of each error.

        Shapes: residuals [...] -> [...]
        """
        part = residuals.clamp(-self.delta, self.delta)  # no square of a large error
        return part * (residuals - part * 0.5)
