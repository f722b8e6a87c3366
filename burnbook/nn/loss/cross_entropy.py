"""CrossEntropyLoss: negative log-likelihood of the right class."""

from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.config import Config
from burnbook.core.arrays import has_no_elements
from burnbook.core.dtypes import Float, Int
from burnbook.core.errors import (
    ConfigError,
    DataError,
    DimError,
    KindError,
    ShapeError,
)
from burnbook.module import Module
from burnbook.nn.loss.checks import (
    MOST_OFF,
    all_tensors,
    fit_one_shape,
    made_by,
    nothing_to_choose,
    probabilities,
    refuse_chosen,
    refuse_classes,
    refuse_swapped,
    some_rows,
    warn_of_sums,
)
from burnbook.nn.loss.reduction import (
    Reduction,
    check_reduction,
    nothing_to_average,
    reduced,
)
from burnbook.nn.shared import from_zero_to_one
from burnbook.ops.activation import log_sigmoid
from burnbook.ops.elementwise import sigmoid
from burnbook.ops.index import mask_fill
from burnbook.ops.loss import cross_entropy, refuse_strange_targets
from burnbook.ops.softmax import softmax
from burnbook.tensor import Tensor, apply
from burnbook.tensor.facts import facts_of
from burnbook.tensor.methods import facts

FEW = 64
MEANS = (Reduction.Auto, Reduction.Mean)


class CrossEntropyLossConfig(Config):
    """How to make a CrossEntropyLoss.

    pad_tokens: targets whose loss counts as 0, whatever the scores, at least one;
        None, the default: there are none.
    weights: the weight of each class, each above 0; None, the default: all count alike.
    smoothing: label smoothing, the share of each target's probability that is spread
        evenly over all classes, in [0, 1]; None, the default: no smoothing.
    logits: whether the input holds logits, to which log softmax is still applied,
        instead of probabilities (default True).
    pads_count: whether rows whose target is a pad token count in the mean, as in Burn;
        False leaves them out, as PyTorch's ignore_index does (default True).

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> CrossEntropyLossConfig().with_smoothing(0.1).init(Numpy())
        CrossEntropyLoss {pad_tokens: None, weights: None, smoothing: 0.1, logits: true}
    """

    pad_tokens: list[int] | None = None
    weights: list[float] | None = None
    smoothing: float | None = None
    logits: bool = True
    pads_count: bool = True
    ours = ("pads_count",)

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
        loss = CrossEntropyLoss(self.pad_tokens, weights, self.smoothing, self.logits)
        object.__setattr__(loss, "pads_count", self.pads_count)
        return loss


class CrossEntropyLoss(Module):
    """Mean negative log-likelihood of the right class: loss = −mean log softmax(x)ₜ.

    With weights the mean is −Σ wₜ log softmax(x)ₜ / Σ wₜ. With smoothing a, the right
    class counts 1 − a + a/c and each other one a/c. Rows whose target is a pad token
    add nothing to the sum, but count in the mean, as in Burn; in a weighted mean they
    count with the weight of their class, if they are one. With `pads_count` False the
    mean is that of the other rows; of pads alone it is NaN, as in PyTorch.

    Targets are a class for each row, Int [n], or Float [n, c], the probability y of
    each class: mixed examples (mixup), answers of a teacher (distillation). Then
    loss = −mean Σ y w log softmax(x); weights w are not divided by, as in PyTorch.

    Shapes: logits [n, c], targets [n] or [n, c] -> [1]
    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> device = Numpy()
        >>> loss = CrossEntropyLoss.new(None, device)
        >>> scores = Tensor.from_data([[0.0, 0.0], [0.0, 0.0]], device)
        >>> value = loss.forward(scores, Tensor.from_ints([0, 1], device))
        >>> round(value.into_scalar(), 4)
        0.6931
        >>> mixed = Tensor.from_data([[0.3, 0.7], [0.0, 1.0]], device)
        >>> each = loss.forward_no_reduction(scores, mixed)
        >>> [round(x, 4) for x in each.to_data().to_list()]
        [0.6931, 0.6931]
    """

    pad_tokens: list[int] | None
    weights: Tensor | None
    smoothing: float | None
    logits: bool
    pads_count = True  # no field: Burn's records have no place for it
    shown = (
        ("pad_tokens", lambda loss: _how_many(loss.pad_tokens)),
        "weights",
        "smoothing",
        "logits",
    )
    shown_unless = (("pads_count", True),)
    newer_fields = shown_unless

    @classmethod
    def new(
        cls, pad_index: int | None = None, device: Backend | None = None
    ) -> "CrossEntropyLoss":
        """The loss with one pad token or none, as the older editions make it.

        device: from Burn 0.12 on. Without weights there is nothing to put there.
        """
        pad_tokens = None if pad_index is None else [pad_index]
        return cls(pad_tokens, weights=None, smoothing=None, logits=True)

    def forward(
        self, logits: Tensor, targets: Tensor, reduction: Reduction = Reduction.Auto
    ) -> Tensor:
        """The loss of a batch of logits, or of probabilities if `logits` is False.

        reduction: how the losses become one number; Sum adds them, with their weights,
            and BatchMean divides the sum by n.

        Raises:
            ConfigError: the logits are the output of a softmax, or there are pad tokens
                and the targets are probabilities.
            DataError: an element of targets is no probability, or one of logits is
                none though `logits` is False.
            DimError: a target is not one of the classes.
            KindError: the targets are neither classes nor probabilities.
            ShapeError: logits are not [n, c], or targets neither [n] nor [n, c].
        """
        self._check_scores(logits, targets)
        if _are_shares(logits, targets):
            check_reduction(reduction)
            losses = self._of_shares(logits, targets)
            return _averaged(losses, reduction, logits, targets)
        options = (self.pad_tokens, self.weights, self.smoothing)
        if self.logits and options == (None, None, None) and reduction in MEANS:
            try:
                return apply(cross_entropy, logits, targets)
            except (KindError, ShapeError) as error:
                failed = error
            if not isinstance(failed, DimError):
                _refuse(logits, targets)
            raise failed
        check_reduction(reduction)
        losses, mask = self._of_classes(logits, targets)
        mean = _averaged(losses, reduction, logits, targets)
        share = self._share(targets, mask) if reduction in MEANS else None
        return mean if share is None else mean / share

    def forward_no_reduction(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of each row, with its weight; 0 where the target is a pad token.

        It raises what `forward` raises.

        Shapes: logits [n, c], targets [n] or [n, c] -> [n]
        """
        self._check_scores(logits, targets)
        if _are_shares(logits, targets):
            return self._of_shares(logits, targets)
        return self._of_classes(logits, targets)[0]

    def _check_scores(self, logits: Tensor, targets: Tensor) -> None:
        """Refuse a single class, and the output of a softmax for scores."""
        if not isinstance(logits, Tensor):
            all_tensors("cross_entropy", {"logits": logits})
        if logits.rank == 2 and logits.value.shape[1] == 1:
            given = {"logits": logits, "targets": targets}
            all_tensors("cross_entropy", given)
            refuse_swapped("cross_entropy", given, {"targets": Int})
            refuse_chosen("cross_entropy", given)
            raise nothing_to_choose("cross_entropy", given)
        if self.logits:
            _refuse_softmax(logits)
        else:
            _refuse_scores(logits)

    def _of_classes(
        self, logits: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor | None]:
        """The loss of each row whose target is a class, and where the pads are. [n]"""
        _refuse(logits, targets)
        self._check_weights(logits, facts(cross_entropy, (logits, targets)))
        mask = self._padding(targets)
        row = targets
        if mask is not None:  # what is left out has no gradient either, not even NaN
            row = apply(mask_fill, targets, mask, value=0)
            logits = logits.mask_fill(mask.unsqueeze_dim(1), 0.0)
        logs = logits.log_softmax(dim=1) if self.logits else _log(logits)
        try:
            score = self._scores(logs, row.reshape([-1, 1])).squeeze(1)
        except DimError:
            refuse_strange_targets(np, np.asarray(logits), np.asarray(row))
            raise
        return -(score if mask is None else score.mask_fill(mask, 0.0)), mask

    def _of_shares(self, logits: Tensor, targets: Tensor) -> Tensor:
        """The loss of each row whose target is the probability of each class. [n]"""
        given = {"logits": logits, "targets": targets}
        fit_one_shape("cross_entropy", given)
        if self.pad_tokens is not None:
            what = "pad_tokens are classes, and the targets are probabilities"
            cure = "a config without pad_tokens; a row of zeros adds nothing"
            raise ConfigError("cross_entropy", what, facts_of(**given), cure)
        self._check_weights(logits, facts_of(**given))
        _refuse_no_shares(given)
        _warn_of_shares(targets)
        y = targets
        if self.smoothing is not None:
            y = y * (1.0 - self.smoothing) + self.smoothing / logits.dims()[1]
        if self.weights is not None:
            y = y * self.weights.reshape([1, -1])
        logs = logits.log_softmax(dim=1) if self.logits else _log(logits)
        return -(logs * y).sum_dim(dim=1).squeeze(1)

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

    def _share(self, targets: Tensor, mask: Tensor | None) -> Tensor | None:
        """The mean weight of the rows, [1]; None: 1.

        Why: means stay in the range of a float16, where sums over many rows leave it.
        """
        if self.weights is None:
            if mask is None or self.pads_count:
                return None
            return mask.bool_not().float().mean()
        if mask is None:
            return self.weights.select(0, targets).mean()
        left_out = mask
        if self.pads_count:  # those pad tokens that are classes
            strange = targets.lower_elem(0)
            count = self.weights.dims()[0]
            strange = strange.bool_or(targets.greater_equal_elem(count))
            left_out = strange.bool_and(mask)
        row = targets.mask_fill(left_out, 0)
        return self.weights.select(0, row).mask_fill(left_out, 0.0).mean()

    def _padding(self, targets: Tensor) -> Tensor | None:
        """Where the targets are pad tokens. [n]"""
        mask = None
        for token in self.pad_tokens or ():
            here = targets.equal_elem(token)
            mask = here if mask is None else mask.bool_or(here)
        return mask

    def _check_weights(self, logits: Tensor, rows: list[tuple[str, str]]) -> None:
        if self.weights is not None and self.weights.dims() != logits.dims()[1:]:
            count = self.weights.dims()[0]
            what = f"{count} ≠ {logits.dims()[1]}: one weight is needed for each class"
            shown = ("weights", f"Float [{count}]  on {self.weights.device()!r}")
            raise ShapeError("cross_entropy", what, [*rows, shown])


def _are_shares(logits: Tensor, targets: Tensor) -> bool:
    """Whether targets are the probability of each class, as kind and shape show."""
    found = isinstance(targets, Tensor) and isinstance(logits, Tensor)
    if not found or targets.kind is not Float or logits.kind is not Float:
        return False
    return logits.rank == 2 and targets.dims() == logits.dims()


def _refuse(logits: Tensor, targets: Tensor) -> None:
    """Raise what is wrong with targets that are no probabilities, if it is known."""
    given = {"logits": logits, "targets": targets}
    all_tensors("cross_entropy", given)
    floats = targets.kind is Float and logits.kind is Float
    if floats and targets.rank == logits.rank:
        wide = logits.rank > 2 and targets.dims() == logits.dims()
        what = "logits and targets that are probabilities must be [n, c]"
        cure = None
        if wide:
            c = logits.dims()[-1]
            cure = f"logits.reshape([-1, {c}]) and targets.reshape([-1, {c}])"
            cure += ", if classes come last"
        raise ShapeError("cross_entropy", what, facts_of(**given), cure)
    refuse_classes("cross_entropy", given)


def _averaged(
    losses: Tensor, reduction: Reduction, logits: Tensor, targets: Tensor
) -> Tensor:
    """The losses as one number; of no rows, or no classes, there is no mean."""
    if reduction != Reduction.Sum and 0 in logits.dims():
        raise nothing_to_average("cross_entropy", logits=logits, targets=targets)
    return reduced(losses, reduction)


def _refuse_no_shares(given: dict[str, Tensor]) -> None:
    """Refuse scores, and yes or no for each class, where shares of 1 are wanted."""
    if has_no_elements(given["targets"].value):
        return
    cure = "targets.softmax(1), if they are scores"
    probabilities("cross_entropy", given, "targets", cure, near=1e-3)
    values = np.asarray(given["targets"])
    yes = values == 1
    if (yes.sum(1) > 1).any() and (yes | (values == 0)).all():
        what = "targets are yes or no for each class, not shares of one probability"
        cure = "BinaryCrossEntropyLossConfig().with_logits(True), or shares: "
        cure += "targets / targets.sum_dim(1).clamp_min(1.0)"
        raise KindError("cross_entropy", what, facts_of(**given), cure)


def _warn_of_shares(targets: Tensor) -> None:
    """Warn of targets whose shares of the classes are not 1 in all, nor all 0."""
    if has_no_elements(targets.value):
        return
    rows = np.asarray(targets)
    cure = "targets / targets.sum_dim(1)"
    warn_of_sums("cross_entropy", "targets", rows[rows.any(1)], cure)


def _refuse_softmax(logits: Tensor) -> None:
    """Refuse logits that are the output of a softmax, as graph or numbers show."""
    cure = "the scores before the softmax, or a config .with_logits(False)"
    op = made_by(logits)
    if op is softmax or _are_probabilities(logits.value):
        what = "logits have been through a softmax, which this loss applies itself"
        raise ConfigError("cross_entropy", what, cure=cure)
    if op is sigmoid or op is log_sigmoid:
        what = f"logits have been through a {op.name}, and this loss applies a softmax"
        cure = f"the scores before the {op.name}"
        raise ConfigError("cross_entropy", what, cure=cure)


def _refuse_scores(logits: Tensor) -> None:
    """Refuse scores where probabilities are wanted; warn of rows whose sum is not 1."""
    node = getattr(logits.value, "node", None)
    if node is not None and node.op is softmax and node.attrs["dim"] in (1, -1):
        return  # which the graph knows without a look at the numbers
    if has_no_elements(logits.value):
        return
    rows = some_rows(logits)
    if rows is None:
        return
    if rows.size <= FEW:  # where the calls of NumPy cost more than the numbers
        numbers = rows.tolist()
        if all(min(row) >= 0 and abs(sum(row) - 1.0) < MOST_OFF for row in numbers):
            return  # so none is above 1
    low, high = rows.min(), rows.max()
    if low < -1e-3 or high > 1 + 1e-3:
        wrong = low if low < -1e-3 else high
        what = f"an element of logits is {wrong:.4g}, not a probability from 0 to 1"
        cure = "logits.softmax(1); or CrossEntropyLossConfig(), which takes scores"
        raise DataError("cross_entropy", what, facts_of(logits=logits), cure)
    cure = "logits / logits.sum_dim(1); of scores, softmax(1) over the classes"
    warn_of_sums("cross_entropy", "logits", rows, cure)


def _are_probabilities(value: Any) -> bool:
    """Whether rows of an array of NumPy are from 0 to 1, not all whole, with sum 1.

    Why: two numbers tell nearly always, or the first row, so the rest is seldom looked
    at. A single row may be so by chance.
    """
    while hasattr(value, "node"):
        value = value.value
    if not isinstance(value, np.ndarray) or value.ndim != 2 or len(value) < 2:
        return False
    if value.size and not (0 <= value.item(0) <= 1 and 0 <= value.item(-1) <= 1):
        return False
    if not _sums_to_one(value[0]) or not _sums_to_one(value).all():
        return False
    return bool(((value >= 0) & (value <= 1)).all() and (value % 1 != 0).any())


def _sums_to_one(rows: Any) -> Any:
    near = 0.01 if rows.dtype == np.float16 else 1e-4
    return np.abs(rows.sum(-1) - 1.0) < near


def _log(x: Tensor) -> Tensor:
    """The logarithm of probabilities, finite where one of them is zero."""
    least = float(np.finfo(x.device().float_dtype).tiny) ** 0.5
    return x.clamp_min(least).log()


def _how_many(tokens: list[int] | None) -> str | None:
    """A list of tokens as the loss shows it: `Vec<0..2>`."""
    return None if tokens is None else f"Vec<0..{len(tokens)}>"
