"""LpLoss: absolute errors to the power p."""

from collections.abc import Sequence

from burnbook.config import Config
from burnbook.nn.loss.checks import fit_one_shape
from burnbook.nn.loss.reduction import ElementwiseLoss
from burnbook.nn.shared import above_zero
from burnbook.tensor import Tensor


class LpLossConfig(Config):
    """How to make an LpLoss: with which power p of the errors.

    p: the power of the absolute errors, above 0.

    Example:
        >>> LpLossConfig(3.0).init().p, LpLossConfig.l1().p
        (3.0, 1.0)
    """

    p: float

    def validate(self) -> None:
        """Refuse a power that is not above 0."""
        above_zero(self, "p")

    def init(self) -> "LpLoss":
        """The loss."""
        return LpLoss(self.p)

    @classmethod
    def l1(cls) -> "LpLoss":
        """Absolute errors: the mean is what is called MAE."""
        return cls(1.0).init()

    @classmethod
    def l2(cls) -> "LpLoss":
        """Squared errors: the mean is what is called MSE."""
        return cls(2.0).init()


class LpLoss(ElementwiseLoss):
    """Powers of absolute errors: loss = mean |x − y|ᵖ.

    Shapes: predictions [...], targets [...] -> [1]
    Example:
        >>> x, y = Tensor.from_data([1.0, 2.0]), Tensor.from_data([1.0, 5.0])
        >>> LpLossConfig.l1().forward(x, y).into_scalar()
        1.5

    Why: no root is taken, so this is no norm; for p < 1 an error of 0 gets the gradient
    0, as its true one is infinite.
    """

    p: float

    def forward_no_reduction(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """The loss of each element.

        Shapes: predictions [...], targets [...] -> [...]
        """
        fit_one_shape("lp_loss", {"predictions": predictions, "targets": targets})
        error = predictions - targets
        if self.p == 1:
            return error.abs()
        if self.p == 2:
            return error.square()
        size = error.abs()
        if self.p > 1:
            return size.powf_scalar(self.p)
        exact = size.equal_elem(0.0)
        return size.mask_fill(exact, 1.0).powf_scalar(self.p).mask_fill(exact, 0.0)

    def forward_reduce_dims(
        self, predictions: Tensor, targets: Tensor, dims: Sequence[int]
    ) -> Tensor:
        """The mean along some dims, which stay with size 1: one loss for each image.

        Shapes: predictions [...], targets [...] -> [...]
        """
        return self.forward_no_reduction(predictions, targets).mean_dims(dims)
