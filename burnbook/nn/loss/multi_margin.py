"""MultiMarginLoss: the score of the right class above all others by a margin."""

from burnbook.config import Config
from burnbook.core.errors import ConfigError
from burnbook.module import Module
from burnbook.nn.loss.checks import one_class_each
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor


class MultiMarginLossConfig(Config):
    """How to make a MultiMarginLoss: the margin, and the power of what is missing.

    margin: by how much the score of the right class must lead, at least 0
        (default 1.0).
    p: the power of what is missing from the margin, 1 or 2 (default 1).

    Example:
        >>> MultiMarginLossConfig().with_p(2).init()
        MultiMarginLoss {margin: 1, p: 2}
    """

    margin: float = 1.0
    p: int = 1

    def validate(self) -> None:
        """Refuse a margin below 0 and powers other than 1 and 2."""
        at_least(self, 0, "margin")
        if self.p not in (1, 2):
            raise ConfigError("MultiMarginLossConfig", f"p is {self.p}, not 1 or 2")

    def init(self) -> "MultiMarginLoss":
        """The loss."""
        return MultiMarginLoss(self.margin, self.p)


class MultiMarginLoss(Module):
    """Multi-class hinge loss: mean over rows of Σᵢ max(0, m − xₜ + xᵢ)ᵖ/c.

    The sum leaves the right class t out; c is the number of classes.

    Shapes: input [n, c], target [n] -> [1]
    Example:
        >>> scores = Tensor.from_data([[3.0, 1.0], [3.0, 1.0]])
        >>> loss = MultiMarginLossConfig().init()
        >>> y = Tensor.from_ints([0, 1])
        >>> loss.forward_no_reduction(scores, y).to_data().to_list()
        [0.0, 1.5]
    """

    margin: float
    p: int
    shown = ("margin", "p")

    def forward(
        self, input: Tensor, target: Tensor, reduction: Reduction = Reduction.Auto
    ) -> Tensor:
        """The loss of all rows as one number."""
        return reduced(self.forward_no_reduction(input, target), reduction)

    def forward_no_reduction(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of each row.

        Shapes: input [n, c], target [n] -> [n]
        """
        one_class_each("multi_margin", {"input": input, "target": target})
        n, classes = input.dims()
        column = target.reshape([n, 1])
        lacks = (input - input.gather(1, column) + self.margin).relu()
        if self.p == 2:
            lacks = lacks.square()
        right = Tensor.arange(0, classes, input.device()).reshape([1, classes])
        others = lacks.mask_fill(right.equal(column), 0.0)
        return others.mean_dim(1).squeeze(1)
