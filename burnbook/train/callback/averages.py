"""Averages of the weights over the steps (Ema) or over epochs (AveragedWeights)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from burnbook.core.errors import ConfigError, explain, warn_caller
from burnbook.module import Module, RunningState
from burnbook.module.tree import PARTS, params_of
from burnbook.train.callback.base import Callback, TrainingState
from burnbook.train.callback.values import (
    Values,
    averaged_params,
    from_record,
    into_record,
    values_of,
    with_values,
)
from burnbook.train.run_status import EARLY


class Ema(Callback):
    """The exponential moving average of the weights: a ← decay · a + (1 − decay) · w.

    It begins with the weights after the first step, and takes in those after every
    further step of the optimizer.

    decay: how much of the average stays at each step, in [0, 1) (default 0.999).
    valid: whether the averaged model is the one that is validated (default True).
    result: whether it is the one that `fit` returns (default True); else see `model`.
    running_states: whether the running statistics of BatchNorm are averaged too; by
        default they are those of the trained model, as in PyTorch's AveragedModel.

    Example:
        >>> Ema(0.99)
        Ema(decay=0.99, valid=True, result=True)

    Raises:
        ConfigError: decay is not in [0, 1).

    Source: Polyak, Juditsky, "Acceleration of stochastic approximation by averaging",
        1992.
    """

    def __init__(
        self,
        decay: float = 0.999,
        *,
        valid: bool = True,
        result: bool = True,
        running_states: bool = False,
    ) -> None:
        if not 0.0 <= decay < 1.0:
            what = f"decay is {decay}, not in [0, 1)"
            raise ConfigError("Ema", what, cure="Ema(0.999)")
        if 0.0 < decay < 0.5:
            what = f"decay {decay} is the share of the past, so the last step is all"
            cure = f"Ema({round(1.0 - decay, 9)})"
            warn_caller(explain("Ema", what, cure=cure))
        self.decay, self.valid, self.result = decay, valid, result
        self.running_states = running_states
        self.reset()

    @property
    def model(self) -> Any:
        """The averaged model, as of the last step; None before the first."""
        return None if self._last is None else with_values(self._last, self._values)

    def on_step(self, state: TrainingState) -> None:
        """Take in the weights of a step."""
        found = values_of(averaged_params(state.model, self.running_states))
        keep = self.decay
        self._values = {
            number: value
            if (old := self._values.get(number)) is None
            else old * keep + value * (1.0 - keep)
            for number, value in found.items()
        }
        self._last = state.model
        self.steps += 1

    def on_valid(self, state: TrainingState) -> Any:
        """The averaged model, if it is to be validated."""
        return self._averaged(state.model) if self.valid else None

    def on_end(self, state: TrainingState) -> Any:
        """The averaged model, if it is to be the result."""
        return self._averaged(state.model) if self.result else None

    def _averaged(self, model: Any) -> Any:
        self._last = model
        return self.model if self.steps else None

    def status(self) -> str:
        """How many steps are in the average."""
        return f"decay {self.decay}, {_count(self.steps, 'step')}"

    def into_record(self) -> Any:
        """The average, and how many steps are in it."""
        return {"steps": self.steps, "values": into_record(self._values)}

    def load_record(self, record: Any, model: Any) -> None:
        """Go on from the average of a checkpoint."""
        self._values = from_record("Ema", record["values"], model)
        self.steps, self._last = record["steps"], model

    def reset(self) -> None:
        """Forget the average."""
        self._values: Values = {}
        self._last: Any = None  # a model, for its structure
        self.steps = 0

    def __repr__(self) -> str:
        more = ", running_states=True" if self.running_states else ""
        where = f"valid={self.valid}, result={self.result}"
        return f"Ema(decay={self.decay}, {where}{more})"


class AveragedWeights(Callback):
    """The mean of the weights at the ends of epochs, from one epoch on (SWA).

    The averaged model is the result of the training. Before that its running statistics
    (BatchNorm) are computed anew, in one more pass over the training data, as those of
    the last weights do not fit the mean; the pass calls `train_step`, and drops the
    gradients. A training that is stopped by hand does not take that time: a model with
    running statistics is then returned as it was trained.

    from_epoch: the first epoch whose weights count, at least 1. A constant, rather high
        learning rate suits it from there on.

    Example:
        >>> AveragedWeights(from_epoch=8)
        AveragedWeights(from_epoch=8)

    Raises:
        ConfigError: from_epoch is not a whole number of at least 1.

    Source: Izmailov et al., "Averaging weights leads to wider optima and better
        generalization", 2018 (arXiv 1803.05407).
    """

    def __init__(self, from_epoch: int) -> None:
        if type(from_epoch) is not int or from_epoch < 1:
            what = f"from_epoch is {from_epoch!r}, not a whole number of at least 1"
            raise ConfigError("AveragedWeights", what, cure="AveragedWeights(8)")
        self.from_epoch = from_epoch
        self.reset()

    def on_epoch(self, state: TrainingState) -> None:
        """Take in the weights of an epoch: mean ← mean + (w − mean) / n."""
        if state.epoch < self.from_epoch:
            return
        self.epochs += 1
        found = values_of(averaged_params(state.model, running_states=False))
        self._values = {
            number: value
            if (old := self._values.get(number)) is None
            else old + (value - old) / float(self.epochs)
            for number, value in found.items()
        }

    def on_end(self, state: TrainingState) -> Any:
        """The averaged model with running statistics of its own."""
        if not self.epochs:
            self.note = "no epoch was averaged"
            return None
        model = with_values(state.model, self._values)
        if not has_running_states(model):
            return model
        why = state.interrupted
        if why is not None and not why.startswith(EARLY):
            self.note = "stopped: the result is not averaged"
            return None
        return with_running_states_of(model, state.batches())

    def status(self) -> str:
        """How many epochs are in the mean."""
        if self.note:
            return self.note
        if not self.epochs:
            return f"from epoch {self.from_epoch} on"
        return f"{_count(self.epochs, 'epoch')} averaged"

    def into_record(self) -> Any:
        """The mean, and how many epochs are in it."""
        return {"epochs": self.epochs, "values": into_record(self._values)}

    def load_record(self, record: Any, model: Any) -> None:
        """Go on from the mean of a checkpoint."""
        self._values = from_record("AveragedWeights", record["values"], model)
        self.epochs = record["epochs"]

    def reset(self) -> None:
        """Forget the mean."""
        self._values: Values = {}
        self.epochs, self.note = 0, ""

    def __repr__(self) -> str:
        return f"AveragedWeights(from_epoch={self.from_epoch})"


def has_running_states(model: Module) -> bool:
    """Whether forward passes keep anything of the model up to date, as BatchNorm's."""
    return any(isinstance(param, RunningState) for param in params_of(model))


def with_running_states_of(model: Any, batches: Iterable[Any]) -> Any:
    """The model with running statistics that are the means over batches.

    PyTorch's `update_bn`: each batch counts alike, and what was known before does not.
    A layer of one's own without `momentum` goes on from its statistics by its own rule.
    """
    model = model.clone()
    layers = [
        part
        for _, part in PARTS.nodes(model)
        if hasattr(part, "momentum")
        and any(isinstance(held, RunningState) for held in vars(part).values())
    ]
    states = [held for layer in layers for held in vars(layer).values()]
    states = [held for held in states if isinstance(held, RunningState)]
    momenta = [layer.momentum for layer in layers]
    means: Values = {}
    for layer in layers:
        vars(layer)["momentum"] = 1.0  # the statistics are then those of the last batch
    for count, batch in enumerate(batches, 1):
        model.train_step(batch)
        for number, value in values_of(states).items():
            old = means.get(number)
            means[number] = value if old is None else old + (value - old) / float(count)
    for layer, momentum in zip(layers, momenta, strict=True):
        vars(layer)["momentum"] = momentum
    return with_values(model, means)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
