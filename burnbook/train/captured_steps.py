"""The steps of a training as plans: the same results, without the Python around them.

The first steps run one op after the other. Then the step is captured, with the
optimizer where it can be, and every further one runs as a plan. What cannot be
captured goes on step by step, and one line says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from burnbook.data import DataLoader
from burnbook.optim import GradientsParams, Optimizer
from burnbook.optim.adaptor import OptimizerAdaptor
from burnbook.train.nan_report import loss_of
from burnbook.train.output import TrainOutput, TrainStep, ValidStep
from burnbook.train.parallel import Devices
from burnbook.train.plan import TrainingPlan

AUTO = 20  # steps before it pays to capture one
NAME = "Captured"


def whole_step(model: Any, optim: OptimizerAdaptor, lr: float, batch: object) -> Any:
    """The model after a step, and the item for the metrics."""
    output = model.train_step(batch)
    return optim.step(lr, model, output.grads), output.item


def half_step(model: TrainStep, batch: object) -> Any:
    """The gradients of a batch, and the item for the metrics."""
    output = model.train_step(batch)
    return output.grads, output.item


def valid_step(model: ValidStep, batch: object) -> Any:
    """The item of a batch of validation."""
    return model.valid_step(batch)


class CapturedSteps:
    """The steps of one training, as plans where that is possible.

    Why the first steps are counted over all epochs: a training that is resumed computes
    each step in the way in which it would have been computed without the break.
    """

    def __init__(
        self, plan: TrainingPlan, devices: Devices, tell: Callable[[str], None]
    ) -> None:
        self.tell, self.told = tell, ""
        self.first = 1 if plan.captured is True else AUTO
        self.is_on = plan.captured is not False
        if self.is_on and (why := _no_plans(plan, devices)):
            self.is_on = False
            if plan.captured is True:
                self._note(f"the training runs step by step: {why}")
        self._steps: dict[Callable[..., Any], Any] = {}  # captured

    def _captured(self, step: Callable[..., Any]) -> Any:
        """A step that runs as a plan."""
        found = self._steps.get(step)
        if found is None:
            found = self._steps[step] = captured(step, self._note)
        return found

    def _note(self, text: str) -> None:
        """Say in one line what runs step by step."""
        text = text.removeprefix("captured: ")
        for name, words in NAMES.items():
            text = text.replace(f"{name} runs", f"{words} runs", 1)
        self.told = text
        self.tell(text)

    def may(self, epoch: int, iteration: int, count: int) -> bool:
        """Whether a plan does the step of this batch; count: batches of an epoch."""
        return self.is_on and (epoch - 1) * count + iteration > self.first

    def gradients(self, model: TrainStep, batch: object) -> TrainOutput:
        """What `train_step` gives."""
        grads, item = self._captured(half_step)(model, batch)
        return output_of(grads, item)

    def step(
        self, model: Any, optim: Any, lr: float, batch: object
    ) -> tuple[TrainOutput, Any]:
        """The model after a step; None in its place where the loss is not finite.

        The optimizer then remembers what it did before, and the gradients are there.
        """
        before = dict(optim._states)  # pyright: ignore[reportPrivateUsage] - put back below
        made, item = self._captured(whole_step)(model, optim, lr, batch)
        if math.isfinite(loss_of(item)):
            return output_of(GradientsParams(), item), made
        optim._states = before  # pyright: ignore[reportPrivateUsage] - nothing else sets it
        again = model.fork(model.devices()[0]).train_step(batch)
        return output_of(again.grads, item), None

    def validate(self, model: ValidStep, batch: object) -> Any:
        """What `valid_step` gives."""
        return self._captured(valid_step)(model, batch)

    def shown(self) -> list[tuple[str, str]]:
        """What dashboards say beside the callbacks."""
        return [(NAME, self.told)] if self.told else []


NAMES = {
    "whole_step": "the training step",
    "half_step": "the training step",
    "valid_step": "validation",
}


def captured(step: Callable[..., Any], tell: Callable[[str], None]) -> Any:
    """A step that runs as a plan. Why here: an import of plans takes a while."""
    from burnbook.program import Captured

    return Captured(step, warn=tell, begun=True)


def output_of(grads: GradientsParams, item: object) -> TrainOutput:
    """What a training step gives, of gradients that are taken out already."""
    made = TrainOutput.__new__(TrainOutput)
    made.grads, made.item = grads, item
    return made


def takes_whole(model: object, optim: Optimizer, group: int, inspects: bool) -> bool:
    """Whether a step has nothing between its gradients and the optimizer."""
    is_plain = group == 1 and not inspects and not hasattr(model, "optimize")
    return is_plain and isinstance(optim, OptimizerAdaptor)


def _no_plans(plan: TrainingPlan, devices: Devices) -> str:
    """Why no step can be captured, or nothing."""
    if plan.paradigm is not None:
        return "a training strategy of one's own computes the steps"
    if devices.others:
        return f"{devices.group} devices share every step"
    if plan.checkpointing:
        return "gradient checkpointing saves memory, and a plan keeps its own"
    return ""


def batches_in(loader: DataLoader[Any]) -> int:
    """How many batches an epoch has; a great number where nobody knows."""
    try:
        return len(loader)
    except TypeError:
        return AUTO


class CapturedValidation:
    """The validation steps of an evaluator, as plans after the first ones."""

    def __init__(self, mode: bool | str, tell: Callable[[str], None]) -> None:
        self.is_on = mode is not False
        self.first = 1 if mode is True else AUTO
        self._tell = tell
        self._step: Any = None

    def __call__(self, model: ValidStep, batch: object, iteration: int) -> Any:
        """What `valid_step` gives for this batch."""
        if self.is_on and iteration > self.first:
            self._step = self._step or captured(valid_step, self._tell)
            return self._step(model, batch)
        return model.valid_step(batch)
