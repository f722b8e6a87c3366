"""SoftMarginLoss: logistic loss of scores for targets ±1."""

from typing import Self

from burnbook.module import Module
from burnbook.nn.loss.checks import fit_one_shape, signs
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.tensor import Tensor
from burnbook.tensor.activation import softplus


class SoftMarginLoss(Module):
    """Logistic loss for targets y = ±1: loss = mean log(1 + e^(−y x)).

    Shapes: logits [...], targets [...] -> [1]
    Example:
        >>> x, y = Tensor.from_data([0.0, 0.0]), Tensor.from_data([1.0, -1.0])
        >>> round(SoftMarginLoss.new().forward(x, y).into_scalar(), 4)
        0.6931
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
        given = {"logits": logits, "targets": targets}
        fit_one_shape("soft_margin", given)
        signs("soft_margin", given, "targets")
        return softplus(-(targets * logits), 1.0)
