"""MseLoss: the mean of squared errors."""

from typing import Self

from burnbook.module import Module
from burnbook.nn.loss.checks import fit_one_shape
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.tensor import Tensor


class MseLoss(Module):
    """Squared errors: loss = mean (x − y)².

    Shapes: logits [...], targets [...] -> [1]
    Example:
        >>> x, y = Tensor.from_data([1.0, 2.0]), Tensor.from_data([1.0, 5.0])
        >>> MseLoss.new().forward(x, y).into_scalar()
        4.5
    """

    @classmethod
    def new(cls) -> Self:
        """The loss; it has no options."""
        return cls()

    def forward(
        self, logits: Tensor, targets: Tensor, reduction: Reduction = Reduction.Auto
    ) -> Tensor:
        """The loss of all elements as one number."""
        return reduced(self.forward_no_reduction(logits, targets), reduction)

    def forward_no_reduction(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of each element.

        Shapes: logits [...], targets [...] -> [...]
        """
        fit_one_shape("mse", {"predictions": logits, "targets": targets})
        return (logits - targets).square()
