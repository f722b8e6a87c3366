"""CrossEntropyLoss: negative log-likelihood of the right class."""

import numpy as np

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.errors import ConfigError, DimError, KindError, ShapeError
from burnbook.module import Module
from burnbook.nn.loss.checks import all_tensors, refuse_classes
from burnbook.nn.shared import from_zero_to_one
from burnbook.ops.index import mask_fill
from burnbook.ops.loss import cross_entropy
from burnbook.ops.softmax import softmax
from burnbook.tensor import Tensor, apply
from burnbook.tensor.methods import facts


class CrossEntropyLossConfig(Config):
    """How to make a CrossEntropyLoss.

    pad_tokens: targets whose loss counts as 0, whatever the scores, at least one;
        None, the default: there are none.
    weights: the weight of each class, each above 0; None, the default: all count alike.
    smoothing: label smoothing, the share of each target's probability that is spread
        evenly over all classes, in [0, 1]; None, the default: no smoothing.
    logits: whether the input holds logits, to which log softmax is still applied,
        instead of probabilities (default True).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> CrossEntropyLossConfig().with_smoothing(0.1).init(Numpy())
        CrossEntropyLoss {pad_tokens: None, weights: None, smoothing: 0.1, logits: true}
    """

    pad_tokens: list[int] | None = None
    weights: list[float] | None = None
    smoothing: float | None = None
    logits: bool = True

    def validate(self) -> None:
        """Refuse an empty list, a weight that is not positive, a smoothing beyond 1."""
        if self.pad_tokens == []:
            raise ConfigError(
                "CrossEntropyLossConfig", "pad_tokens is empty", cure="None, or a token"
            )
        if self.weights is not None and not all(w > 0 for w in self.weights or [0]):
            what = f"weights are {self.weights}, each must be above 0"
            kept = [w if w > 0 else 1e-6 for w in self.weights]
            cure = f"weights={kept}: a weight as small as 1e-6 hardly counts"
            cure = cure if kept else "one weight for each class, or None"
            raise ConfigError("CrossEntropyLossConfig", what, cure=cure)
        from_zero_to_one(self, "smoothing")

    def init(self, device: Backend) -> "CrossEntropyLoss":
        """The loss on a device."""
        weights = None
        if self.weights is not None:
            weights = Tensor.from_floats(self.weights, device)
        return CrossEntropyLoss(self.pad_tokens, weights, self.smoothing, self.logits)


class CrossEntropyLoss(Module):
    """Mean negative log-likelihood of the right class: loss = −mean log softmax(x)ₜ.

    With weights the mean is −Σ wₜ log softmax(x)ₜ / Σ wₜ. With smoothing a, the right
    class counts 1 − a + a/c and each other one a/c. Rows whose target is a pad token
    add nothing to the sum, but count in the mean, as in Burn; in a weighted mean they
    count with the weight of their class, if they are one.

    Shapes: logits [n, c], targets [n] -> [1]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> device = Numpy()
        >>> loss = CrossEntropyLoss.new(None, device)
        >>> scores = Tensor.from_data([[0.0, 0.0], [0.0, 0.0]], device)
        >>> value = loss.forward(scores, Tensor.from_ints([0, 1], device))
        >>> round(value.into_scalar(), 4)
        0.6931
    """

    pad_tokens: list[int] | None
    weights: Tensor | None
    smoothing: float | None
    logits: bool
    shown = (
        ("pad_tokens", lambda loss: _how_many(loss.pad_tokens)),
        "weights",
        "smoothing",
        "logits",
    )

    @classmethod
    def new(
        cls, pad_index: int | None = None, device: Backend | None = None
    ) -> "CrossEntropyLoss":
        """The loss with one pad token or none, as the older editions make it.

        device: from Burn 0.12 on. Without weights there is nothing to put there.
        """
        pad_tokens = None if pad_index is None else [pad_index]
        return cls(pad_tokens, weights=None, smoothing=None, logits=True)

    def forward(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of a batch of logits, or of probabilities if `logits` is False.

        Raises:
            ConfigError: the logits are the output of a softmax.
            DimError: a target is not one of the classes.
            KindError: the targets are not Int.
            ShapeError: logits are not [n, c], or targets not [n].
        """
        if not isinstance(logits, Tensor):
            all_tensors("cross_entropy", {"logits": logits, "targets": targets})
        if self.logits:
            _refuse_softmax(logits)
        options = (self.pad_tokens, self.weights, self.smoothing)
        if self.logits and options == (None, None, None):
            try:
                return apply(cross_entropy, logits, targets)
            except (KindError, ShapeError) as error:
                failed = error
            if not isinstance(failed, DimError):
                refuse_classes("cross_entropy", {"logits": logits, "targets": targets})
            raise failed
        self._check(logits, targets)
        mask = self._padding(targets)
        row = targets if mask is None else apply(mask_fill, targets, mask, value=0)
        logs = logits.log_softmax(dim=1) if self.logits else _log(logits)
        score, weight = self._scores(logs, row.reshape([-1, 1])), None
        if self.weights is not None:
            weight = self._weight(targets, mask)
        if mask is not None:
            score = score.mask_fill(mask.reshape([-1, 1]), 0.0)
        return -score.mean() if weight is None else -(score.sum() / weight)

    def _scores(self, logs: Tensor, column: Tensor) -> Tensor:
        """What each row adds: its weighted log probability, smoothed. [n, 1]"""
        weights = self.weights
        if weights is not None:
            logs = logs * weights.reshape([1, -1])
        score = logs.gather(1, column)
        if self.smoothing is None:
            return score
        share = self.smoothing / logs.dims()[1]
        return score * (1.0 - self.smoothing) + logs.sum_dim(dim=1) * share

    def _weight(self, targets: Tensor, mask: Tensor | None) -> Tensor:
        """The weights of all targets, pad tokens that are classes included. [1]"""
        assert self.weights is not None
        if mask is None:
            return self.weights.select(0, targets).sum()
        strange = targets.lower_elem(0)
        strange = strange.bool_or(targets.greater_equal_elem(self.weights.dims()[0]))
        strange = strange.bool_and(mask)
        row = targets.mask_fill(strange, 0)
        return self.weights.select(0, row).mask_fill(strange, 0.0).sum()

    def _padding(self, targets: Tensor) -> Tensor | None:
        """Where the targets are pad tokens. [n]"""
        mask = None
        for token in self.pad_tokens or ():
            here = targets.equal_elem(token)
            mask = here if mask is None else mask.bool_or(here)
        return mask

    def _check(self, logits: Tensor, targets: Tensor) -> None:
        refuse_classes("cross_entropy", {"logits": logits, "targets": targets})
        rows = facts(cross_entropy, (logits, targets))
        if self.weights is not None and self.weights.dims() != logits.dims()[1:]:
            count = self.weights.dims()[0]
            what = f"{count} ≠ {logits.dims()[1]}: one weight is needed for each class"
            shown = ("weights", f"Float [{count}]  on {self.weights.device()!r}")
            raise ShapeError("cross_entropy", what, [*rows, shown])


def _refuse_softmax(logits: Tensor) -> None:
    """Refuse logits that are the output of a softmax, as their graph shows."""
    node = getattr(logits.value, "node", None)
    if node is not None and node.op is softmax:
        what = "logits have been through a softmax, which this loss applies itself"
        cure = "the scores before the softmax, or a config .with_logits(False)"
        raise ConfigError("cross_entropy", what, cure=cure)


def _log(x: Tensor) -> Tensor:
    """The logarithm of probabilities, finite where one of them is zero."""
    least = float(np.finfo(x.device().float_dtype).tiny) ** 0.5
    return x.clamp_min(least).log()


def _how_many(tokens: list[int] | None) -> str | None:
    """A list of tokens as the loss shows it: `Vec<0..2>`."""
    return None if tokens is None else f"Vec<0..{len(tokens)}>"
