"""BinaryCrossEntropyLoss: negative log-likelihood of binary labels."""

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.dtypes import Int
from burnbook.core.errors import ConfigError, DataError, ShapeError
from burnbook.module import Module
from burnbook.nn.loss.checks import extremes, fit_one_shape, one_of
from burnbook.nn.shared import from_zero_to_one
from burnbook.tensor import Tensor
from burnbook.tensor.activation import log_sigmoid
from burnbook.tensor.facts import facts_of

LEAST_LOG = -100.0  # the logarithm of zero, for a loss that stays finite


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

    With smoothing a, y becomes y (1 − a) + a/c; c is the number of labels, or 2 for
    inputs of rank 1. With weights each element counts as its label says.

    Shapes: logits [n] or [..., c], targets the same -> [1]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> device = Numpy()
        >>> loss = BinaryCrossEntropyLossConfig().with_logits(True).init(device)
        >>> scores = Tensor.from_floats([0.0, 0.0], device)
        >>> value = loss.forward(scores, Tensor.from_ints([0, 1], device))
        >>> round(value.into_scalar(), 4)
        0.6931

    Why: log 0 counts as −100, so that one wrong certainty does not make the whole batch
    infinite; its gradient counts as 0.
    """

    weights: Tensor | None
    smoothing: float | None
    logits: bool
    shown = ("weights", "smoothing", "logits")

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of logits, or of probabilities if `logits` is False.

        Raises:
            DataError: a probability is outside [0, 1], or a target is neither 0 nor 1.
            ShapeError: the shapes of logits and targets differ, or there is not one
                weight for each label.
        """
        given = {"logits": logits, "targets": targets}
        fit_one_shape("binary_cross_entropy", given, targets=Int)
        one_of("binary_cross_entropy", given, "targets", (0, 1), "0 nor 1")
        weight = self._weight(given)
        y = targets.float()
        if self.smoothing is not None:
            count = logits.dims()[-1] if logits.rank > 1 else 2
            y = y * (1.0 - self.smoothing) + self.smoothing / count
        if not self.logits:
            _probabilities(given)
        if self.logits:
            losses = (1.0 - y) * logits - log_sigmoid(logits)
        else:
            losses = -(y * _log(logits) + (1.0 - y) * _log_rest(logits))
        return (losses if weight is None else losses * weight).mean()

    def _weight(self, given: dict[str, Tensor]) -> Tensor | None:
        """How much each element counts."""
        weights, targets = self.weights, given["targets"]
        if weights is None:
            return None
        count = weights.dims()[0]
        wanted = targets.dims()[-1] if targets.rank > 1 else 2
        if count != wanted:
            each = "label" if targets.rank > 1 else "of 0 and 1"
            what = f"{count} ≠ {wanted}: one weight is needed for each {each}"
            shown = facts_of(**given, weights=weights)
            raise ShapeError("binary_cross_entropy", what, shown)
        if targets.rank == 1:
            return weights.select(0, targets)
        return weights.reshape([1] * (targets.rank - 1) + [count])


def _probabilities(given: dict[str, Tensor]) -> None:
    """Refuse scores where probabilities are wanted: their logarithm would be NaN."""
    low, high = extremes(given["logits"])
    if low < 0 or high > 1:
        wrong = low if low < 0 else high
        what = f"an element of logits is {wrong:.4g}, not a probability from 0 to 1"
        cure = "BinaryCrossEntropyLossConfig().with_logits(True), which takes scores"
        raise DataError("binary_cross_entropy", what, facts_of(**given), cure)


def _log(x: Tensor) -> Tensor:
    """The logarithm of x: −100 at zero, and never below."""
    nothing = x.equal_elem(0.0)
    logs = x.mask_fill(nothing, 1.0).log().mask_fill(nothing, LEAST_LOG)
    return logs.clamp_min(LEAST_LOG)


def _log_rest(x: Tensor) -> Tensor:
    """The logarithm of 1 − x, exact for small x: −100 at one, and never below."""
    certain = x.equal_elem(1.0)
    logs = (-x.mask_fill(certain, 0.0)).log1p().mask_fill(certain, LEAST_LOG)
    return logs.clamp_min(LEAST_LOG)
