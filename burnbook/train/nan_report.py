"""When the loss is not a number: which parameter broke first.

Nothing is watched while training goes well. Once a loss is NaN, the parameters, their
gradients and the batch are searched, and the error says what was found.
"""

from __future__ import annotations

import math
from typing import Any

from burnbook.core.arrays import not_finite
from burnbook.core.dtypes import Float
from burnbook.core.errors import TrainingError
from burnbook.module import Module
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor
from burnbook.train.metric import LossInput
from burnbook.train.metric.reading import values


def loss_of(item: object) -> float:
    """The loss in an item, as one number; 0 when the item has none to look at."""
    loss = getattr(item, "loss", None)
    if not isinstance(loss, Tensor):
        make = getattr(item, "adapts", {}).get(LossInput)
        if make is None:
            return 0.0
        loss = make(item).tensor
    return float(values(loss).sum())


def check_loss(loss: float, step: StepFacts) -> None:
    """Raise TrainingError if the loss is NaN, or infinite with a broken parameter."""
    first = broken_value(step.model) or broken_gradient(step.model, step.grads)
    if not math.isnan(loss) and first is None:
        return
    raise explain_loss(loss, step, first)


class StepFacts:
    """Where training stood when a loss was computed."""

    __slots__ = (
        "batch",
        "checkpoint",
        "epoch",
        "grads",
        "iteration",
        "lr",
        "model",
        "split",
    )

    def __init__(
        self,
        split: str,
        epoch: int,
        iteration: int,
        model: Module,
        batch: object,
        grads: GradientsParams | None = None,
        lr: float | None = None,
        checkpoint: str = "",
    ) -> None:
        self.split, self.epoch, self.iteration = split, epoch, iteration
        self.model, self.batch, self.grads, self.lr = model, batch, grads, lr
        self.checkpoint = checkpoint


def broken_value(model: Module) -> str | None:
    """The first parameter that holds NaN or infinity; None when all are finite."""
    for path, param in model.named_params():
        if param.kind is Float and param.is_initialized:
            trouble = count_broken(param.val())
            if trouble:
                return f"{path}: {trouble} in its value"
    return None


def broken_gradient(model: Module, grads: GradientsParams | None) -> str | None:
    """The parameter nearest to the loss whose gradient holds NaN or infinity.

    Why: gradients are computed from the loss backwards, so the last one in the order
    of the model was the first to break.
    """
    if grads is None:
        return None
    for path, param in reversed(model.named_params()):
        grad = grads.get(param.id)
        trouble = count_broken(grad) if grad is not None else ""
        if trouble:
            return f"{path}: {trouble} in its gradient"
    return None


def broken_batch(batch: object) -> str | None:
    """The first field of a batch that holds NaN or infinity."""
    fields: dict[str, Any] = (
        batch if isinstance(batch, dict) else getattr(batch, "__dict__", {})
    )
    for name, value in fields.items():
        if isinstance(value, Tensor) and value.kind is Float:
            trouble = count_broken(value)
            if trouble:
                return f"{name}: {trouble}"
    return None


def count_broken(tensor: Tensor) -> str:
    """How many elements are NaN or infinite, in words; "" when there are none.

    Example:
        >>> from burnbook.backend import Numpy
        >>> x = Tensor.from_data([1.0, float("nan"), float("inf")], Numpy())
        >>> count_broken(x)
        '1 NaN and 1 infinity of 3'
    """
    return not_finite(values(tensor))


def explain_loss(loss: float, step: StepFacts, first: str | None) -> TrainingError:
    """The error: when, which parameter first, what the batch holds, what to try."""
    in_value = bool(first) and first.endswith("value")
    if first and in_value and step.split == "train" and step.iteration > 1:
        first += f", since the step of iteration {step.iteration - 1}"
    batch = broken_batch(step.batch)
    facts = [
        ("parameter", first or "all values and gradients are finite"),
        ("batch", batch or "all numbers are finite"),
    ]
    cure = "gradient clipping, or a look for log(0), sqrt(0) and division by 0"
    if step.lr is not None:
        facts.append(("learning rate", f"{step.lr:g}"))
        cure = f"a learning rate below {step.lr:g}, {cure}"
    if step.checkpoint:
        facts.append(("checkpoint", step.checkpoint))
    if batch:
        cure = "a dataset without NaN and infinity; the batch contained them"
    name = "NaN" if math.isnan(loss) else "infinite"
    where = f"{step.split} epoch {step.epoch}, iteration {step.iteration}"
    return TrainingError(where, f"the loss is {name}", facts, cure)
