"""What a callback is, and what it sees.

    class Clip(Callback):
        def on_step(self, state):
            return state.model.map(Clamp(-1.0, 1.0))

    LearnerBuilder(folder).callback(Clip()).callback(Ema(0.999))…

A model is a value: a callback that wants another one returns it, and the training goes
on with that. None leaves the model as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from burnbook.backend import Backend
from burnbook.core.errors import ConfigError
from burnbook.train.interrupter import Interrupter

EVENTS = ("step", "epoch", "end")  # those of a function


def _no_batches() -> Iterator[Any]:
    return iter(())


@dataclass(frozen=True)
class TrainingState:
    """Where a training stands, as a callback sees it.

    model: the model now. epoch: from 1, of num_epochs. iteration: the batch of the
    epoch, from 1. step: how many steps the optimizer has taken since epoch 1. lr: the
    rate of the last step. output: in `on_step`, what `train_step` gave for the metrics;
    else None. metrics: in `on_epoch` and `on_end`, the means of the last epoch by split
    ("train", "valid") and metric; else empty. validated: in `on_epoch`, the model that
    was validated: this one, or what `on_valid` put in its place. interrupted: in
    `on_end`, why training ended before its last epoch. device: where the model trains.
    directory: the artifact directory. control: stops or pauses the training. batches:
    gives the batches of an epoch of training data.
    """

    model: Any
    epoch: int
    num_epochs: int
    iteration: int
    step: int
    lr: float
    device: Backend
    directory: Path
    control: Interrupter
    output: Any = None
    metrics: Mapping[str, Mapping[str, float]] = field(
        default_factory=dict[str, dict[str, float]]
    )
    validated: Any = None
    interrupted: str | None = None
    batches: Callable[[], Iterator[Any]] = _no_batches

    def __repr__(self) -> str:
        of = f"epoch {self.epoch} of {self.num_epochs}"
        return f"TrainingState({type(self.model).__name__}, {of}, step {self.step})"


class Callback:
    """The base of all callbacks: it sees everything, and changes nothing.

    A method that returns a model replaces it; None leaves it as it is. Several
    callbacks are asked in the order in which they were added, each with what the one
    before has made of the model.

    What it has to remember beyond a checkpoint it gives as `into_record` (numbers,
    text, lists, dicts, tensors, NumPy arrays, records), and takes back in
    `load_record`, where tensors and arrays are TensorData. An error that it raises ends
    the training, and says which callback raised it.

    Example:
        >>> class Steps(Callback):
        ...     taken = 0
        ...     def on_step(self, state):
        ...         self.taken += 1
        ...     def status(self):
        ...         return f"{self.taken} steps"
        ...     def into_record(self):
        ...         return {"taken": self.taken}
        ...     def load_record(self, record, model):
        ...         self.taken = record["taken"]
        >>> Steps().name, Steps().status()
        ('Steps', '0 steps')
    """

    @property
    def name(self) -> str:
        """What it is called on dashboards, in checkpoints and in errors."""
        return type(self).__name__

    def on_step(self, state: TrainingState) -> Any:
        """The optimizer has taken a step; with accumulation, once for each group."""

    def on_valid(self, state: TrainingState) -> Any:
        """Validation begins: a model returned here is validated in place of the other.

        Training goes on with its own, whatever this returns.
        """

    def on_epoch(self, state: TrainingState) -> Any:
        """An epoch is complete, validation included; its checkpoint comes next."""

    def on_end(self, state: TrainingState) -> Any:
        """Training has ended, complete or stopped: a model returned is the result.

        Not after an error. When the learner trains on, it does so from the model that
        was trained, as if this had not been called.
        """

    def status(self) -> str:
        """What it has done so far, in a few words, for dashboards; "" for nothing."""
        return ""

    def into_record(self) -> Any:
        """What a checkpoint must hold for it; None for nothing."""
        return None

    def load_record(self, record: Any, model: Any) -> None:
        """Go on from a record of a checkpoint, whose model is loaded already."""

    def reset(self) -> None:
        """Forget everything; the first fit of a learner begins with this."""

    def __repr__(self) -> str:
        return f"{self.name}()"


class FunctionCallback(Callback):
    """A plain function of the TrainingState as a callback.

    on: "step", "epoch" or "end", when it is called.

    Example:
        >>> FunctionCallback(print, "epoch")
        FunctionCallback(print, on='epoch')
    """

    def __init__(
        self, function: Callable[[TrainingState], Any], on: str = "epoch"
    ) -> None:
        if on not in EVENTS:
            known = ", ".join(map(repr, EVENTS))
            what = f"on={on!r} is not one of {known}"
            raise ConfigError("callback", what, cure='callback(function, on="epoch")')
        self.function, self.on = function, on

    @property
    def name(self) -> str:
        """The name of the function."""
        name: str = getattr(self.function, "__name__", type(self.function).__name__)
        return name.strip("<>")

    def on_step(self, state: TrainingState) -> Any:
        """Call it, if it is for steps."""
        return self.function(state) if self.on == "step" else None

    def on_epoch(self, state: TrainingState) -> Any:
        """Call it, if it is for epochs."""
        return self.function(state) if self.on == "epoch" else None

    def on_end(self, state: TrainingState) -> Any:
        """Call it, if it is for the end."""
        return self.function(state) if self.on == "end" else None

    def __repr__(self) -> str:
        return f"FunctionCallback({self.name}, on={self.on!r})"
