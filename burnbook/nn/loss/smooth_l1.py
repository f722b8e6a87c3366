"""SmoothL1Loss: absolute errors, quadratic near zero."""

from collections.abc import Sequence

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.loss.checks import fit_one_shape
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.nn.shared import above_zero
from burnbook.tensor import Tensor


class SmoothL1LossConfig(Config):
    """How to make a SmoothL1Loss: up to which error it is quadratic.

    beta: up to which error the loss is quadratic; beyond it is linear, above 0
        (default 1.0).

    Example:
        >>> SmoothL1LossConfig().with_beta(0.5).init().beta
        0.5
    """

    beta: float = 1.0

    def validate(self) -> None:
        """Refuse a bound that is not above 0."""
        above_zero(self, "beta", "LpLossConfig.l1() for no quadratic part at all")

    def init(self) -> "SmoothL1Loss":
        """The loss."""
        return SmoothL1Loss(self.beta)


class SmoothL1Loss(Module):
    """Quadratic, then absolute errors: r²/(2β) below |r| = β, |r| − β/2 from there.

    Shapes: predictions [...], targets [...] -> [...]
    Example:
        >>> x, y = Tensor.from_data([1.0, 2.0]), Tensor.from_data([1.5, 5.0])
        >>> SmoothL1LossConfig().init().forward(x, y).to_data().to_list()
        [0.125, 2.5]

    Why: it is HuberLoss divided by β, so for small β it tends to absolute errors, not
    to zero. As in Burn, `forward` gives the loss of each element.
    Source: Girshick, Fast R-CNN, 2015.
    """

    beta: float

    def forward(
        self,
        predictions: Tensor,
        targets: Tensor,
        reduction: Reduction | None = None,
    ) -> Tensor:
        """The loss of each element; with a reduction, that of all as one number."""
        losses = self.forward_no_reduction(predictions, targets)
        return losses if reduction is None else reduced(losses, reduction)

    def forward_no_reduction(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """The loss of each element.

        Shapes: predictions [...], targets [...] -> [...]
        """
        fit_one_shape("smooth_l1", {"predictions": predictions, "targets": targets})
        error = predictions - targets
        part = error.clamp(-self.beta, self.beta)  # no square of a large error
        return (part / self.beta) * (error - part * 0.5)

    def forward_with_reduction(
        self,
        predictions: Tensor,
        targets: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The loss of all elements as one number.

        Shapes: predictions [...], targets [...] -> [1]
        """
        losses = self.forward_no_reduction(predictions, targets)
        return reduced(losses, reduction)

    def forward_reduce_dims(
        self, predictions: Tensor, targets: Tensor, dims: Sequence[int]
    ) -> Tensor:
        """The mean along some dims, which stay with size 1: one loss for each image.

        Shapes: predictions [...], targets [...] -> [...]
        """
        return self.forward_no_reduction(predictions, targets).mean_dims(dims)
