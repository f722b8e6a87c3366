"""Basic workflow · Training. What a training step and a validation step return.

The learner knows three things about a model: `train_step(batch)` gives a TrainOutput
(gradients and an item), `valid_step(batch)` gives an item, and the item adapts to what
metrics want: `item.adapt(AccuracyInput)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from burnbook.autodiff import Gradients
from burnbook.errors import TrainingError
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor
from burnbook.train.metric import AccuracyInput, LossInput


class TrainOutput:
    """The gradients of the model's parameters, and the item for the metrics.

    `TrainOutput(model, loss.backward(), item)` takes each parameter's gradient out of
    the container that `backward` returned.
    """

    __slots__ = ("grads", "item")

    def __init__(self, module: Any, gradients: Any, item: Any) -> None:
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


class Adaptor:
    """An item that metrics can read: it becomes the input that each of them names.

    A subclass lists in `adapts` what it can become, and how.

    Example:
        >>> class Guess(Adaptor):
        ...     adapts = {str: lambda self: "a guess"}
        >>> Guess().adapt(str)
        'a guess'
    """

    adapts: ClassVar[dict[type, Callable[[Any], Any]]] = {}

    def adapt(self, into: type | None) -> Any:
        """This item as the input `into`; a metric without input gets None."""
        if into is None:
            return None
        for base in type(self).__mro__:
            make = base.__dict__.get("adapts", {}).get(into)
            if make is not None:
                return make(self)
        bases = [base.__dict__.get("adapts", {}) for base in type(self).__mro__]
        known = [kind.__name__ for table in bases for kind in table]
        raise TrainingError(
            f"{type(self).__name__}.adapt",
            f"this item cannot become {_article(into.__name__)}",
            [("it can become", ", ".join(known) or "nothing yet")],
            f"{type(self).__name__}.adapts[{into.__name__}] = lambda item: "
            f"{into.__name__}(...), or another metric",
        )


@dataclass(repr=False)
class ClassificationOutput(Adaptor):
    """What classification gives: the loss, the scores of all classes, the targets.

    Shapes: loss [1]; output [n, classes]; targets [n]
    """

    loss: Tensor
    output: Tensor
    targets: Tensor

    def __repr__(self) -> str:
        return _shapes(self, "loss", "output", "targets")


ClassificationOutput.adapts = {
    AccuracyInput: lambda item: AccuracyInput(item.output, item.targets),
    LossInput: lambda item: LossInput(item.loss),
}


@dataclass(repr=False)
class RegressionOutput(Adaptor):
    """What regression gives: the loss, the numbers guessed, the numbers wanted.

    Shapes: loss [1]; output [n, d]; targets [n, d]
    """

    loss: Tensor
    output: Tensor
    targets: Tensor

    def __repr__(self) -> str:
        return _shapes(self, "loss", "output", "targets")


RegressionOutput.adapts = {LossInput: lambda item: LossInput(item.loss)}


def _shapes(item: Any, *names: str) -> str:
    shapes = (f"{name} {list(getattr(item, name).shape)}" for name in names)
    return f"{type(item).__name__}({', '.join(shapes)})"


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIO' else 'a'} {name}"
