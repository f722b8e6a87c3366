"""HingeEmbeddingLoss: small distances of similar pairs, large ones of others."""

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.loss.checks import fit_one_shape, signs
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.tensor import Tensor


class HingeEmbeddingLossConfig(Config):
    """How to make a HingeEmbeddingLoss: the margin of dissimilar pairs.

    margin: the distance from which on dissimilar pairs have no loss (default 1.0).

    Example:
        >>> HingeEmbeddingLossConfig().init()
        HingeEmbeddingLoss {margin: 1}
    """

    margin: float = 1.0

    def init(self) -> "HingeEmbeddingLoss":
        """The loss."""
        return HingeEmbeddingLoss(self.margin)


class HingeEmbeddingLoss(Module):
    """Loss of distances x: x for y = 1, max(0, margin − x) for y = −1.

    Shapes: input [...], target [...] -> [1]
    Example:
        >>> x, y = Tensor.from_data([0.25, 0.25]), Tensor.from_data([1.0, -1.0])
        >>> loss = HingeEmbeddingLossConfig().init()
        >>> loss.forward_no_reduction(x, y).to_data().to_list()
        [0.25, 0.75]
    """

    margin: float
    shown = ("margin",)

    def forward(
        self, input: Tensor, target: Tensor, reduction: Reduction = Reduction.Auto
    ) -> Tensor:
        """The loss of all elements as one number."""
        return reduced(self.forward_no_reduction(input, target), reduction)

    def forward_no_reduction(self, input: Tensor, target: Tensor) -> Tensor:
        """The loss of each element.

        Shapes: input [...], target [...] -> [...]
        """
        given = {"input": input, "target": target}
        fit_one_shape("hinge_embedding", given)
        signs("hinge_embedding", given, "target")
        unlike = (self.margin - input).relu()
        return unlike.mask_where(target.equal_elem(1.0), input)
