"""MarginRankingLoss: a higher score for the one that is to be ranked first."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.loss.checks import fit_one_shape, signs
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.nn.shared import at_least
from burnbook.tensor import Tensor


class MarginRankingLossConfig(Config):
    """How to make a MarginRankingLoss: by how much the better one must lead.

    margin: by how much the better one must lead, at least 0 (default 0.0).

    Example:
        >>> MarginRankingLossConfig().with_margin(0.5).init()
        MarginRankingLoss {margin: 0.5}
    """

    margin: float = 0.0

    def validate(self) -> None:
        """Refuse a margin below 0."""
        at_least(self, 0, "margin")

    def init(self) -> "MarginRankingLoss":
        """The loss."""
        return MarginRankingLoss(self.margin)


class MarginRankingLoss(Module):
    """Hinge loss of pairs of scores: loss = mean max(0, margin − y (a − b)).

    y = 1 where a is to be ranked higher, −1 where b is.

    Shapes: first [...], second [...], target [...] -> [1]
    Example:
        >>> a, b = Tensor.from_data([3.0, 3.0]), Tensor.from_data([1.0, 1.0])
        >>> loss = MarginRankingLossConfig().init()
        >>> y = Tensor.from_data([1.0, -1.0])
        >>> loss.forward_no_reduction(a, b, y).to_data().to_list()
        [0.0, 2.0]
    """

    margin: float
    shown = ("margin",)

    def forward(
        self,
        first: Tensor,
        second: Tensor,
        target: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The loss of all pairs as one number."""
        return reduced(self.forward_no_reduction(first, second, target), reduction)

    def forward_no_reduction(
        self, first: Tensor, second: Tensor, target: Tensor
    ) -> Tensor:
        """The loss of each pair.

        Shapes: first [...], second [...], target [...] -> [...]
        """
        given = {"first": first, "second": second, "target": target}
        fit_one_shape("margin_ranking", given)
        signs("margin_ranking", given, "target")
        return (self.margin - target * (first - second)).relu()
