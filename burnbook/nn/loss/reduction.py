"""Reduction: how the losses of a batch become one number."""

import math

from burnbook.config import ConfigEnum, unit
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.module import Module
from burnbook.tensor import Tensor
from burnbook.tensor.facts import facts_of


class Reduction(ConfigEnum):
    """What becomes of many losses.

    Mean: their mean. Sum: their sum. BatchMean: their sum over the size of the first
    dim. Auto: the mean that fits the loss; BatchMean for KLDivLoss, Mean for others.
    Every loss takes one of them; its `forward_no_reduction` keeps each loss apart. Of a
    batch without elements Sum is 0, and a mean is refused.

    Example:
        >>> Reduction.BatchMean
        Reduction.BatchMean
    """

    Mean = unit()
    Sum = unit()
    BatchMean = unit()
    Auto = unit()


def reduced(losses: Tensor, reduction: Reduction) -> Tensor:
    """One number from all losses.

    Shapes: losses [n, ...] -> [1]
    """
    check_reduction(reduction)
    if reduction == Reduction.Sum:
        return losses.sum()
    dims = losses.dims()
    if 0 in dims:
        raise nothing_to_average("loss", losses=losses)
    mean = losses.mean()  # a sum may leave the range of a float16 where no mean does
    if reduction == Reduction.BatchMean and len(dims) > 1:
        return mean * math.prod(dims[1:])
    return mean


def nothing_to_average(where: str, **given: Tensor) -> ShapeError:
    """The error for the mean of a batch without elements."""
    what = "there is nothing to average"
    cure = "a batch with elements, or Reduction.Sum, which is 0 of nothing"
    return ShapeError(where, what, facts_of(**given), cure)


def check_reduction(reduction: object) -> None:
    """Refuse what is no Reduction: a text, as in PyTorch, or None.

    Raises:
        ConfigError: it is no Reduction.
    """
    if isinstance(reduction, Reduction):
        return
    cure = " or ".join(f"Reduction.{name}" for name in Reduction.variants)
    near = [name for name in Reduction.variants if name.lower() == str(reduction)]
    if near:
        cure = f"Reduction.{near[0]}"
    if reduction is None or str(reduction).lower() == "none":
        cure = "loss.forward_no_reduction(…), which keeps the loss of each element"
    what = f"{reduction!r} is not a Reduction"
    raise ConfigError("reduction", what, cure=cure)


class ElementwiseLoss(Module):
    """A loss of each prediction and its target, made one number by a reduction."""

    def forward(
        self,
        predictions: Tensor,
        targets: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The losses of `forward_no_reduction` as one number."""
        return reduced(self.forward_no_reduction(predictions, targets), reduction)

    def forward_no_reduction(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """The loss of each element, or of each item."""
        raise TypeError(f"{type(self).__name__} must define forward_no_reduction")
