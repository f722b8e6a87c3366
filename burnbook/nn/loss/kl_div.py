"""KLDivLoss: the Kullback–Leibler divergence of two distributions."""

import numpy as np

from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn.loss.checks import fit_one_shape, logarithms, probabilities
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.tensor import Tensor


class KLDivLossConfig(Config):
    """How to make a KLDivLoss: whether the targets are logarithms.

    log_target: whether targets are log-probabilities instead of probabilities
        (default False).

    Example:
        >>> KLDivLossConfig().with_log_target(True).init()
        KLDivLoss {log_target: true}
    """

    log_target: bool = False

    def init(self) -> "KLDivLoss":
        """The loss."""
        return KLDivLoss(self.log_target)


class KLDivLoss(Module):
    """Kullback–Leibler divergence: loss = Σ y (log y − x) / n, x = log p.

    The predictions are logarithms of probabilities, as log_softmax gives them.

    Shapes: predictions [n, ...], targets [n, ...] -> [1]
    Example:
        >>> even, y = Tensor.from_data([[0.5, 0.5]]), Tensor.from_data([[0.0, 1.0]])
        >>> loss = KLDivLossConfig().init()
        >>> round(loss.forward(even.log(), y).into_scalar(), 4)
        0.6931

    Why: Auto is BatchMean here; the mean over all elements is not the divergence.
    """

    log_target: bool
    shown = ("log_target",)

    def forward(
        self,
        predictions: Tensor,
        targets: Tensor,
        reduction: Reduction = Reduction.Auto,
    ) -> Tensor:
        """The divergence of the whole batch as one number.

        Raises:
            DataError: an element of predictions is above 0, so it is no logarithm of a
                probability; or one of targets is none, or no probability.
        """
        if reduction == Reduction.Auto:
            reduction = Reduction.BatchMean
        return reduced(self.forward_no_reduction(predictions, targets), reduction)

    def forward_no_reduction(self, predictions: Tensor, targets: Tensor) -> Tensor:
        """The contribution of each element.

        Shapes: predictions [n, ...], targets [n, ...] -> [n, ...]
        """
        given = {"predictions": predictions, "targets": targets}
        fit_one_shape("kl_div", given)
        cure = "predictions.log_softmax(1) of scores, or "
        cure += "predictions.log() of probabilities"
        logarithms("kl_div", given, "predictions", cure)
        if self.log_target:
            cure = "KLDivLossConfig(), whose targets are probabilities"
            logarithms("kl_div", given, "targets", cure)
            return targets.exp() * (targets - predictions)
        cure = "KLDivLossConfig().with_log_target(True) for their logarithms"
        probabilities("kl_div", given, "targets", cure, near=1e-3)
        least = float(np.finfo(targets.device().float_dtype).tiny)
        return targets * (targets.clamp_min(least).log() - predictions)
