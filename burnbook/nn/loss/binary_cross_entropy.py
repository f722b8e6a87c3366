"""BinaryCrossEntropyLoss: negative log-likelihood of binary labels."""

import numpy as np

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.dtypes import Float, Int
from burnbook.core.errors import ConfigError, ShapeError
from burnbook.module import Module
from burnbook.nn.loss.checks import (
    all_tensors,
    fit_one_shape,
    one_of,
    probabilities,
    refuse_squashed,
    whole_from_zero_to_one,
)
from burnbook.nn.loss.reduction import Reduction, reduced
from burnbook.nn.shared import from_zero_to_one
from burnbook.tensor import Tensor
from burnbook.tensor.activation import log_sigmoid, softplus
from burnbook.tensor.facts import facts_of

LEAST_LOG = -100.0  # the logarithm of zero, for a loss that stays finite
LEAST = 1e-12  # below it the gradient of the logarithm grows no more


class BinaryCrossEntropyLossConfig(Config):
    """How to make a BinaryCrossEntropyLoss.

    weights: the weight of each label, for inputs of rank 1 of the classes 0 and 1, each
        above 0; None, the default: all count alike.
    smoothing: label smoothing, the share of each target's probability that is spread
        evenly over all labels, in [0, 1]; None, the default: no smoothing.
    logits: whether the input holds logits, to which the sigmoid is still applied,
        instead of probabilities (default False).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> BinaryCrossEntropyLossConfig().with_logits(True).init(Numpy())
        BinaryCrossEntropyLoss {weights: None, smoothing: None, logits: true}
    """

    weights: list[float] | None = None
    smoothing: float | None = None
    logits: bool = False

    def validate(self) -> None:
        """Refuse a weight that is not positive, a smoothing beyond 0 … 1."""
        if self.weights is not None and not all(w > 0 for w in self.weights or [0]):
            what = f"weights are {self.weights}, each must be above 0"
            raise ConfigError("BinaryCrossEntropyLossConfig", what)
        from_zero_to_one(self, "smoothing")

    def init(self, device: Backend) -> "BinaryCrossEntropyLoss":
        """The loss on a device."""
        weights = None
        if self.weights is not None:
            weights = Tensor.from_floats(self.weights, device)
        return BinaryCrossEntropyLoss(weights, self.smoothing, self.logits)


class BinaryCrossEntropyLoss(Module):
    """Mean negative log-likelihood: loss = −mean (y log p + (1 − y) log(1 − p)).

    Targets y are the labels 0 and 1 as Int, or Float probabilities from 0 to 1: shares
    of mixed examples, answers of a teacher, gray pixels. With smoothing a, y becomes
    y (1 − a) + a/c; c is the number of labels, or 2 for inputs of rank 1. With weights
    each element counts as its label says; a target between 0 and 1 has y times the loss
    of the label 1 and 1 − y times that of the label 0.

    Shapes: logits [n] or [..., c], targets the same -> [1]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> device = Numpy()
        >>> loss = BinaryCrossEntropyLossConfig().with_logits(True).init(device)
        >>> scores = Tensor.from_floats([0.0, 0.0], device)
        >>> value = loss.forward(scores, Tensor.from_ints([0, 1], device))
        >>> round(value.into_scalar(), 4)
        0.6931
        >>> shares = Tensor.from_floats([0.25, 1.0], device)
        >>> each = loss.forward_no_reduction(scores, shares)
        >>> [round(x, 4) for x in each.to_data().to_list()]
        [0.6931, 0.6931]

    Why: log 0 counts as −100, so that one wrong certainty does not make the whole batch
    infinite; its gradient is at most 10¹² (or what the type holds), and not 0, so that
    it can be unlearned. Probabilities lose near 1 what logits keep: of a sigmoid, give
    the logits.
    """

    weights: Tensor | None
    smoothing: float | None
    logits: bool
    shown = ("weights", "smoothing", "logits")

    def forward(
        self, logits: Tensor, targets: Tensor, reduction: Reduction = Reduction.Auto
    ) -> Tensor:
        """The loss of logits, or of probabilities if `logits` is False, as one number.

        Raises:
            DataError: a probability is outside [0, 1], or an Int target is neither 0
                nor 1.
            ShapeError: the shapes of logits and targets differ, or there is not one
                weight for each label.
        """
        return reduced(self.forward_no_reduction(logits, targets), reduction)

    def forward_no_reduction(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of each element; it raises what `forward` raises.

        Shapes: logits [n] or [..., c], targets the same -> the same
        """
        given = {"logits": logits, "targets": targets}
        all_tensors("binary_cross_entropy", given)
        are_labels = self._check(given)
        if self.logits:
            cure = "the scores before it; of a sigmoid also .with_logits(False)"
            refuse_squashed("binary_cross_entropy", logits, cure)
        else:
            cure = (
                "BinaryCrossEntropyLossConfig().with_logits(True), which takes scores"
            )
            probabilities("binary_cross_entropy", given, "logits", cure)
        y, weights = targets.float(), self.weights
        if weights is None or logits.rank > 1:
            losses = self._of_labels(logits, y) if are_labels else self._of(logits, y)
            if weights is None:
                return losses
            shape = [1] * (targets.rank - 1) + [weights.dims()[0]]
            return losses * weights.reshape(shape)
        of_zero = weights.narrow(0, 0, 1) * (1.0 - y)
        of_one = weights.narrow(0, 1, 1) * y
        if are_labels:
            return self._of_labels(logits, y) * (of_zero + of_one)
        share = (self.smoothing or 0.0) / 2
        yes = of_one * (1.0 - share) + of_zero * share
        no = of_zero * (1.0 - share) + of_one * share
        return self._mixed(logits, yes, no, yes + no)

    def _of_labels(self, logits: Tensor, y: Tensor) -> Tensor:
        """The loss of logits for labels that are 0 or 1: log(1 + e^∓x).

        Why: 0 · ∞ occurs nowhere, so that logits may be infinite.
        """
        return softplus(logits * (1.0 - y * 2.0), 1.0)

    def _of(self, logits: Tensor, y: Tensor) -> Tensor:
        """The loss of logits, or probabilities, for shares of the label 1."""
        y = self._smoothed(y)
        return self._mixed(logits, y, 1.0 - y)

    def _mixed(
        self, logits: Tensor, yes: Tensor, no: Tensor, both: Tensor | None = None
    ) -> Tensor:
        """−yes log p − no log(1 − p); both: yes + no, where that is not 1."""
        if not self.logits:
            log = _bounded(logits, logits.detach().log())
            log_rest = _bounded(1.0 - logits, (-logits.detach()).log1p())
            return -(yes * log + no * log_rest)
        logs = log_sigmoid(logits)
        return no * logits - (logs if both is None else both * logs)

    def _smoothed(self, y: Tensor) -> Tensor:
        """The targets after label smoothing."""
        if self.smoothing is None:
            return y
        count = y.dims()[-1] if y.rank > 1 else 2
        return y * (1.0 - self.smoothing) + self.smoothing / count

    def _check(self, given: dict[str, Tensor]) -> bool:
        """Refuse what does not fit, and targets that are no labels or shares.

        Whether the loss is that of logits for labels without smoothing.
        """
        shares = all(t.kind is Float for t in given.values())
        kind = Float if shares else Int
        fit_one_shape("binary_cross_entropy", given, targets=kind)
        if shares:
            cure = "targets from 0 to 1: gray pixels / 255; MseLoss takes any number"
            probabilities("binary_cross_entropy", given, "targets", cure, near=1e-3)
        else:
            one_of("binary_cross_entropy", given, "targets", (0, 1), "0 nor 1")
        weights, targets = self.weights, given["targets"]
        are_labels = self.logits and not self.smoothing
        are_labels = are_labels and (not shares or whole_from_zero_to_one(targets))
        if weights is None:
            return are_labels
        count = weights.dims()[0]
        wanted = targets.dims()[-1] if targets.rank > 1 else 2
        if count != wanted:
            each = "label" if targets.rank > 1 else "of 0 and 1"
            what = f"{count} ≠ {wanted}: one weight is needed for each {each}"
            shown = facts_of(**given, weights=weights)
            raise ShapeError("binary_cross_entropy", what, shown)
        return are_labels


def _bounded(x: Tensor, exact: Tensor) -> Tensor:
    """log x with the values of `exact`, at least −100, and the gradient 1 / x, bounded.

    Why: both stay finite at 0; and `exact` keeps its digits where x is 1 − p.
    """
    largest = float(np.finfo(x.device().float_dtype).max)
    least = max(LEAST, 1.01 / largest)  # so that its inverse has a place in float16
    logs = (x + (least - x).relu().detach()).log()
    return logs + (exact.clamp_min(LEAST_LOG) - logs).detach()
