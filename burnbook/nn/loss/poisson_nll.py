"""PoissonNllLoss: negative log-likelihood of a count for a rate."""

import math

from burnbook.config import Config
from burnbook.nn.loss.checks import fit_one_shape, not_below_zero
from burnbook.nn.loss.reduction import ElementwiseLoss
from burnbook.nn.shared import above_zero
from burnbook.tensor import Tensor


class PoissonNllLossConfig(Config):
    """How to make a PoissonNllLoss.

    log_input: whether predictions are logarithms of the rates (default True).
    full: whether to add Stirling's approximation of log y!, which depends on the
        targets only (default False).
    eps: added to rates before their logarithm is taken, above 0 (default 1e-8).

    Example:
        >>> PoissonNllLossConfig().init()
        PoissonNllLoss {log_input: true, full: false, eps: 0.00000001}
    """

    log_input: bool = True
    full: bool = False
    eps: float = 1e-8

    def validate(self) -> None:
        """Refuse an eps that is not above 0."""
        above_zero(self, "eps")

    def init(self) -> "PoissonNllLoss":
        """The loss."""
        return PoissonNllLoss(self.log_input, self.full, self.eps)


class PoissonNllLoss(ElementwiseLoss):
    """Negative log-likelihood of counts y at rate λ: mean (λ − y log λ + log y!).

    Shapes: predictions [...], targets [...] -> [1]
    Example:
        >>> rates, counts = Tensor.from_data([1.0, 2.0]), Tensor.from_data([0.0, 2.0])
        >>> loss = PoissonNllLossConfig().with_log_input(False).init()
        >>> round(loss.forward(rates, counts).into_scalar(), 4)
        0.8069

    Why: log y! is left out unless `full`, and then Stirling's y log y − y + log(2πy)/2
    stands for it where y > 1.
    """

    log_input: bool
    full: bool
    eps: float
    shown = ("log_input", "full", "eps")

    def forward_no_reduction(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """The loss of each element.

        Shapes: predictions [...], targets [...] -> [...]
        """
        given = {"predictions": predictions, "targets": targets}
        fit_one_shape("poisson_nll", given)
        not_below_zero("poisson_nll", given, "targets")
        if self.log_input:
            losses = predictions.exp() - targets * predictions
        else:
            not_below_zero("poisson_nll", given, "predictions")
            losses = predictions - targets * (predictions + self.eps).log()
        return losses + _log_factorial(targets) if self.full else losses


def _log_factorial(y: Tensor) -> Tensor:
    """Stirling's formula where y > 1, else 0."""
    small = y.lower_equal_elem(1.0)
    n = y.mask_fill(small, 1.0)  # the formula may be NaN where it does not count
    formula = n * n.log() - n + (n * (2 * math.pi)).log() * 0.5
    return formula.mask_fill(small, 0.0)
