"""CosineEmbeddingLoss: high cosines of similar pairs, low ones of dissimilar pairs."""

from burnbook.config import Config
from burnbook.core.dtypes import Int
from burnbook.core.errors import ShapeError
from burnbook.module import Module
from burnbook.nn.loss.checks import fit, signs
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of
from burnbook.tensor.linalg import cosine_similarity

EPSILON = 1e-8  # the least product of lengths: the slope at a zero vector stays finite


class CosineEmbeddingLossConfig(Config):
    """How to make a CosineEmbeddingLoss.

    margin: the cosine above which dissimilar pairs have a loss (default 0.0).
    reduction: what becomes of the losses of a batch (default Mean).

    Example:
        >>> CosineEmbeddingLossConfig().with_margin(0.5).init()
        CosineEmbeddingLoss {margin: 0.5, reduction: Mean}
    """

    margin: float = 0.0
    reduction: Reduction = Reduction.Mean

    def init(self) -> "CosineEmbeddingLoss":
        """The loss."""
        return CosineEmbeddingLoss(self.margin, self.reduction)


class CosineEmbeddingLoss(Module):
    """Loss of the cosine of pairs: 1 − cos for y = 1, max(0, cos − m) for −1.

    Shapes: input1 [n, d], input2 [n, d], target [n] -> [1]
    Example:
        >>> a = Tensor.from_data([[1.0, 0.0], [1.0, 0.0]])
        >>> b = Tensor.from_data([[0.0, 2.0], [3.0, 0.0]])
        >>> loss = CosineEmbeddingLossConfig().init()
        >>> loss.forward(a, b, Tensor.from_ints([1, -1])).into_scalar()
        1.0
    """

    margin: float = 0.0
    reduction: Reduction = Reduction.Mean
    shown = ("margin", "reduction")

    def forward(
        self,
        input1: Tensor,
        input2: Tensor,
        target: Tensor,
        reduction: Reduction | None = None,
    ) -> Tensor:
        """The loss of all pairs as one number.

        reduction: how they become one; None, the default: as the config says.
        """
        losses = self.forward_no_reduction(input1, input2, target)
        return reduced(losses, self.reduction if reduction is None else reduction)

    def forward_no_reduction(
        self, input1: Tensor, input2: Tensor, target: Tensor
    ) -> Tensor:
        """The loss of each pair.

        Shapes: input1 [n, d], input2 [n, d], target [n] -> [n]
        """
        given = {"input1": input1, "input2": input2, "target": target}
        fit("cosine_embedding", given, target=Int)
        sizes = input1.dims()
        if input1.rank != 2 or input2.dims() != sizes or target.dims() != sizes[:1]:
            what = "input1 and input2 must be [n, d] and target [n]"
            raise ShapeError("cosine_embedding", what, facts_of(**given))
        signs("cosine_embedding", given, "target")
        cosine = cosine_similarity(input1, input2, 1, EPSILON).squeeze(1)
        unlike = (cosine - self.margin).relu()
        return unlike.mask_where(target.equal_elem(1), 1.0 - cosine)
