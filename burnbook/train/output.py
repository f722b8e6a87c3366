"""What a training step and a validation step return.

The learner knows three things about a model: `train_step(batch)` gives a TrainOutput
(gradients and an item), `valid_step(batch)` gives an item, and the item adapts to what
metrics want: `item.adapt(AccuracyInput)`.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from burnbook.backend import Backend
from burnbook.backend.autodiff import Gradients
from burnbook.core.errors import TrainingError
from burnbook.core.held_tensors import holds_tensors
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor
from burnbook.train.metric import (
    AccuracyInput,
    BleuInput,
    CerInput,
    ConfusionStatsInput,
    HammingScoreInput,
    LossInput,
    PerplexityInput,
    RougeLInput,
    TopKAccuracyInput,
    WerInput,
)
from burnbook.train.metric.reading import check_scores, check_yes_or_no, values


class TrainOutput:
    """The gradients of the model's parameters, and the item for the metrics.

    `TrainOutput(model, loss.backward(), item)` takes each parameter's gradient out of
    the container that `backward` returned.
    """

    __slots__ = ("grads", "item")

    def __init__(self, module: Any, gradients: object, item: object) -> None:
        if not isinstance(gradients, Gradients):
            raise TrainingError(
                "TrainOutput",
                f"{type(gradients).__name__} is not what backward() returns",
                cure="TrainOutput(self, item.loss.backward(), item)",
            )
        self.grads = GradientsParams.from_grads(gradients, module)
        self.item = item

    def __repr__(self) -> str:
        return f"TrainOutput({len(self.grads)} gradients, {type(self.item).__name__})"


@runtime_checkable
class TrainStep(Protocol):
    """What the learner trains: a model that defines one training step.

    In Rust both traits have a method of one name; here there are two methods, and no
    trait has to be named: `isinstance(model, TrainStep)` asks whether the method is
    there.
    """

    def train_step(self, batch: object) -> TrainOutput:
        """The gradients of a batch, and the item for the metrics."""
        ...


@runtime_checkable
class ValidStep(Protocol):
    """What the learner validates: a model that defines one validation step."""

    def valid_step(self, batch: object) -> Any:
        """The item for the metrics: `ClassificationOutput(loss, output, targets)`."""
        ...


#: What newer Burn calls it.
InferenceStep = ValidStep


class Adaptor:
    """An item that metrics can read: it becomes the input that each of them names.

    A subclass lists in `adapts` what it can become, and how. A metric that computes
    with tensors finds them on the device of `LearnerBuilder.metric_device`, if that is
    set.

    Example:
        >>> class Guess(Adaptor):
        ...     adapts = {str: lambda self: "a guess"}
        >>> Guess().adapt(str)
        'a guess'
    """

    adapts: ClassVar[dict[type, Callable[[Any], Any]]] = {}

    def to_device(self, device: Backend) -> Self:
        """This item with its tensors on another device, and no gradients."""
        moved = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                plain = value.inner() if value.device().ad_enabled else value
                setattr(moved, name, plain.to_device(device))
        return moved

    def adapt(self, into: type | None) -> Any:
        """This item as the input `into`; a metric without input gets None.

        A metric whose input is the item's own class reads the item itself.
        """
        if into is None:
            return None
        for base in type(self).__mro__:
            make = base.__dict__.get("adapts", {}).get(into)
            if make is not None:
                return make(self)
        if isinstance(self, into):
            return self
        bases = [base.__dict__.get("adapts", {}) for base in type(self).__mro__]
        known = [kind.__name__ for table in bases for kind in table]
        name, wanted = type(self).__name__, into.__name__
        how = f"{{{wanted}: lambda item: {wanted}(...)}}"
        cure = f"adapts = {how} in {name}, or another metric"
        if type(self).__module__ == __name__:  # a class of ours, for all to share
            cure = f"a metric with Input = {name}, which reads the item itself; or "
            cure += (
                f"class Mine({name}) with adapts = {how}, given by the model's steps"
            )
        raise TrainingError(
            f"{name}.adapt",
            f"this item cannot become {_article(wanted)}",
            [("it can become", ", ".join(known) or "nothing yet")],
            cure,
        )


@dataclass(repr=False)
class ClassificationOutput(Adaptor):
    """What classification gives: the loss, the scores of all classes, the targets.

    Where the answer is a yes or a no, the output is one score for each example, and the
    targets are 0 or 1, in the shape that the loss takes. `AccuracyMetric.binary`,
    `PrecisionMetric.binary` and the other metrics with `binary` then measure it.

    Shapes: loss [1]; output [n, classes]; targets [n]; for a yes or a no: output and
        targets [n] or [n, 1]
    Example:
        >>> from burnbook import nn
        >>> from burnbook.train import AccuracyMetric
        >>> logits = Tensor.from_floats([[-2.0], [3.0], [0.5]])
        >>> targets = Tensor.from_ints([[0], [1], [0]])
        >>> bce = nn.BinaryCrossEntropyLossConfig(logits=True).init(logits.device())
        >>> item = ClassificationOutput(bce(logits, targets), logits, targets)
        >>> accuracy = AccuracyMetric.binary(0.0)  # logits: yes above 0
        >>> accuracy.update(item.adapt(AccuracyInput), None).formatted
        'epoch 66.67 % - batch 66.67 %'
    """

    loss: Tensor
    output: Tensor
    targets: Tensor

    def __repr__(self) -> str:
        return _shapes(self, "loss", "output", "targets")


def _columns(item: ClassificationOutput) -> tuple[Tensor, Tensor]:
    """Scores, and a yes or no for each; a single score is a yes or a no."""
    output, targets = item.output, item.targets
    check_scores(type(item).__name__, output, targets)
    if output.rank == 1:
        output = output.unsqueeze_dim(1)
    if output.rank == 2 and output.shape[1] == 1:
        targets = targets.unsqueeze_dim(1) if targets.rank == 1 else targets
        return output, _yes_or_no(item, targets)
    return output, targets.one_hot(output.shape[1])


def _yes_or_no(item: Adaptor, targets: Tensor) -> Tensor:
    """The targets, if each of them is 0 or 1."""
    check_yes_or_no(type(item).__name__, values(targets))
    return targets


def _confusion(output: Tensor, targets: Tensor) -> ConfusionStatsInput:
    return ConfusionStatsInput(output, targets.bool())


ClassificationOutput.adapts = {
    AccuracyInput: lambda item: AccuracyInput(item.output, item.targets),
    TopKAccuracyInput: lambda item: TopKAccuracyInput(item.output, item.targets),
    LossInput: lambda item: LossInput(item.loss, _count(item.targets)),
    ConfusionStatsInput: lambda item: _confusion(*_columns(item)),
    HammingScoreInput: lambda item: HammingScoreInput(*_columns(item)),
    PerplexityInput: lambda item: PerplexityInput(item.output, item.targets),
}


@dataclass(repr=False)
class MultiLabelClassificationOutput(Adaptor):
    """What classification into several classes at once gives.

    Shapes: loss [1]; output [n, classes]; targets [n, classes], 0 or 1
    """

    loss: Tensor
    output: Tensor
    targets: Tensor

    def __repr__(self) -> str:
        return _shapes(self, "loss", "output", "targets")


MultiLabelClassificationOutput.adapts = {
    HammingScoreInput: lambda item: HammingScoreInput(item.output, item.targets),
    LossInput: lambda item: LossInput(item.loss, _count(item.targets)),
    ConfusionStatsInput: lambda item: _confusion(
        item.output, _yes_or_no(item, item.targets)
    ),
}


@dataclass(repr=False)
class SequenceOutput(Adaptor):
    """What a model of sequences gives: a score for every word at every position.

    predictions: the words that were chosen, for example by beam search; without them,
    the words with the highest scores.

    Shapes: loss [1]; logits [n, t, vocabulary]; targets [n, t]; predictions [n, u]
    """

    loss: Tensor
    logits: Tensor
    targets: Tensor
    predictions: Tensor | None = None

    def predicted(self) -> Tensor:
        """The words that were chosen.

        Shapes: -> [n, t]
        """
        if self.predictions is not None:
            return self.predictions
        return self.logits.argmax(2).squeeze_dim(2)

    def flat(self) -> tuple[Tensor, Tensor]:
        """All positions of all sequences, one after the other.

        Shapes: -> [n · t, vocabulary] and [n · t]
        """
        n, t, vocabulary = self.logits.shape
        return self.logits.reshape([n * t, vocabulary]), self.targets.reshape([n * t])

    def __repr__(self) -> str:
        names = ["loss", "logits", "targets"]
        return _shapes(self, *names, *["predictions"] * (self.predictions is not None))


SequenceOutput.adapts = {
    LossInput: lambda item: LossInput(item.loss, math.prod(item.targets.shape)),
    AccuracyInput: lambda item: AccuracyInput(*item.flat()),
    TopKAccuracyInput: lambda item: TopKAccuracyInput(*item.flat()),
    PerplexityInput: lambda item: PerplexityInput(*item.flat()),
    CerInput: lambda item: CerInput(item.predicted(), item.targets),
    WerInput: lambda item: WerInput(item.predicted(), item.targets),
    BleuInput: lambda item: BleuInput(item.predicted(), item.targets),
    RougeLInput: lambda item: RougeLInput(item.predicted(), item.targets),
}


@dataclass(repr=False)
class RegressionOutput(Adaptor):
    """What regression gives: the loss, the predicted numbers, the target numbers.

    Shapes: loss [1]; output [n, d]; targets [n, d]
    """

    loss: Tensor
    output: Tensor
    targets: Tensor

    def __repr__(self) -> str:
        return _shapes(self, "loss", "output", "targets")


RegressionOutput.adapts = {
    LossInput: lambda item: LossInput(item.loss, _count(item.targets))
}


def _count(targets: Tensor) -> int:
    """How many examples have these targets."""
    return int(targets.shape[0]) if targets.rank else 1


def _shapes(item: object, *names: str) -> str:
    shapes = (f"{name} {list(getattr(item, name).shape)}" for name in names)
    return f"{type(item).__name__}({', '.join(shapes)})"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"


holds_tensors(
    ClassificationOutput,
    MultiLabelClassificationOutput,
    SequenceOutput,
    RegressionOutput,
)
