"""TripletMarginLoss: anchors nearer to positives than to negatives by a margin."""

from burnbook.config import Config
from burnbook.core.errors import ShapeError
from burnbook.module import Module
from burnbook.nn.loss.checks import fit
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.nn.shared import above_zero
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of
from burnbook.tensor.linalg import lp_norm


class TripletMarginLossConfig(Config):
    """How to make a TripletMarginLoss: by how much nearer, in which norm.

    margin: by how much nearer the positive must be than the negative (default 1.0).
    p: which norm measures distances, above 0 (default 2.0).

    Example:
        >>> TripletMarginLossConfig().with_margin(0.5).init()
        TripletMarginLoss {margin: 0.5, p: 2}
    """

    margin: float = 1.0
    p: float = 2.0

    def validate(self) -> None:
        """Refuse a norm that is not above 0."""
        above_zero(self, "p")

    def init(self) -> "TripletMarginLoss":
        """The loss."""
        return TripletMarginLoss(self.margin, self.p)


class TripletMarginLoss(Module):
    """Hinge loss of triplets: mean max(0, ‖a − b‖ₚ − ‖a − c‖ₚ + margin).

    Shapes: anchor [n, d], positive [n, d], negative [n, d] -> [1]
    Example:
        >>> a, b = Tensor.from_data([[0.0, 0.0]]), Tensor.from_data([[3.0, 4.0]])
        >>> loss = TripletMarginLossConfig().init()
        >>> loss.forward(a, a, b).into_scalar(), loss.forward(a, b, a).into_scalar()
        (0.0, 6.0)

    Source: Balntas et al., Learning Local Feature Descriptors with Triplets, 2016.
    """

    margin: float
    p: float
    shown = ("margin", "p")

    def forward(
        self,
        anchor: Tensor,
        positive: Tensor,
        negative: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The loss of all triplets as one number."""
        losses = self.forward_no_reduction(anchor, positive, negative)
        return reduced(losses, reduction)

    def forward_no_reduction(
        self, anchor: Tensor, positive: Tensor, negative: Tensor
    ) -> Tensor:
        """The loss of each triplet.

        Shapes: anchor [n, d], positive [n, d], negative [n, d] -> [n]
        """
        given = {"anchor": anchor, "positive": positive, "negative": negative}
        fit("triplet_margin", given)
        if anchor.rank != 2 or any(t.dims() != anchor.dims() for t in given.values()):
            what = "anchor, positive and negative must be [n, d]"
            raise ShapeError("triplet_margin", what, facts_of(**given))
        near = lp_norm(anchor - positive, self.p, 1)
        far = lp_norm(anchor - negative, self.p, 1)
        return (near - far + self.margin).relu().squeeze(1)
