"""The model of the best epoch as the result."""

from __future__ import annotations

from typing import Any

from burnbook.core.errors import ConfigError
from burnbook.module.tree import params_of
from burnbook.train.callback.base import Callback, TrainingState
from burnbook.train.callback.values import (
    from_record,
    into_record,
    values_of,
    with_values,
)
from burnbook.train.events import Direction, Split, better, check_direction
from burnbook.train.metric import Metric, metric_name
from burnbook.train.numbers import signed_float
from burnbook.train.runs.run import direction_of


class RestoreBest(Callback):
    """Return the model of the epoch in which a metric was best, the earliest of equals.

    Where another callback has put an average in the place of the model at validation,
    it is the average that is returned. Add it after that one: the last callback says
    what the result is.

    metric: its name, class or object (default "Loss"); it must be measured.
    direction: by default a Loss is better when lower, an Accuracy when higher.
    split: Split.Valid by default, or Split.Train.

    Example:
        >>> RestoreBest("Accuracy")
        RestoreBest(Accuracy, Highest, Valid)

    Raises:
        ConfigError: direction is no Direction, or split is neither training nor
            validation.
    """

    def __init__(
        self,
        metric: str | Metric | type[Metric] = "Loss",
        direction: Direction | None = None,
        split: Split = Split.Valid,
    ) -> None:
        self.metric = metric_name(metric)
        self.direction = direction or direction_of(self.metric)
        if not isinstance(self.direction, Direction):
            what, cure = f"{direction!r} is no direction", "Direction.Lowest or Highest"
            raise ConfigError("RestoreBest", what, cure=cure)
        if split not in (Split.Train, Split.Valid):
            what = f"{split!r} is not a split of a training"
            raise ConfigError("RestoreBest", what, cure="Split.Valid or Split.Train")
        if direction is not None:
            check_direction("RestoreBest", metric, direction)
        self.split = split
        self.reset()

    def on_epoch(self, state: TrainingState) -> None:
        """Keep the model if the metric was never better."""
        value = state.metrics.get(self.split.value, {}).get(self.metric)
        if value is None:
            return
        if self.best is None or better(value, self.best, self.direction):
            self.best, self.epoch = value, state.epoch
            self.model = state.validated.clone()  # which training leaves alone

    def on_end(self, state: TrainingState) -> Any:
        """The model of the best epoch."""
        return self.model

    def status(self) -> str:
        """The best value so far, and its epoch."""
        if self.best is None:
            return f"{self.metric} is not known yet"
        return f"{self.metric} {signed_float(self.best, 2)} in epoch {self.epoch}"

    def into_record(self) -> Any:
        """The best value, its epoch and its model."""
        held = {} if self.model is None else values_of(params_of(self.model))
        return {"best": self.best, "epoch": self.epoch, "values": into_record(held)}

    def load_record(self, record: Any, model: Any) -> None:
        """Go on from the best of a checkpoint."""
        values = from_record("RestoreBest", record["values"], model)
        self.best, self.epoch = record["best"], record["epoch"]
        self.model = with_values(model, values) if values else None

    def reset(self) -> None:
        """Forget the best."""
        self.best: float | None = None
        self.epoch = 0
        self.model: Any = None  # of the best epoch

    def __repr__(self) -> str:
        names = f"{self.direction.name}, {self.split.name}"
        return f"RestoreBest({self.metric}, {names})"
