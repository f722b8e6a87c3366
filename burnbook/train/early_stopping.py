"""Early stopping: end a training that no longer improves."""

from __future__ import annotations

from dataclasses import dataclass

from burnbook.core.cures import explains_call
from burnbook.core.errors import ConfigError
from burnbook.train.events import (
    Aggregate,
    Direction,
    EventStore,
    Split,
    best_direction,
    better,
    check_choices,
    check_direction,
)
from burnbook.train.metric import Metric, metric_name


@dataclass(frozen=True)
class NoImprovementSince:
    """Stop when the last improvement is `n_epochs` epochs ago."""

    n_epochs: int

    def __post_init__(self) -> None:
        if self.n_epochs < 1:
            raise ConfigError(
                "StoppingCondition.NoImprovementSince",
                f"n_epochs = {self.n_epochs} would stop before anything can improve",
                cure="n_epochs=1 or more",
            )


CALL = (
    "MetricEarlyStoppingStrategy(LossMetric(), Aggregate.Mean, Direction.Lowest, "
    "Split.Valid, StoppingCondition.NoImprovementSince(n_epochs=2))"
)


def stopping_after(given: object) -> str:
    """The strategy that was meant by a number of epochs, or by a metric."""
    code = CALL
    if type(given) is int and given > 0:
        code = code.replace("n_epochs=2", f"n_epochs={given}")
    if isinstance(given, Metric) and best_direction(given) is Direction.Highest:
        code = code.replace("LossMetric()", f"{type(given).__name__}()")
        code = code.replace("Direction.Lowest", "Direction.Highest")
    return code


class StoppingCondition:
    """The conditions under which training stops early.

    Example:
        >>> StoppingCondition.NoImprovementSince(n_epochs=2)
        NoImprovementSince(n_epochs=2)
    """

    NoImprovementSince = NoImprovementSince


class EarlyStoppingStrategy:
    """When to end a training before its last epoch; the base of all such strategies.

    Example:
        >>> class WhenGoodEnough(EarlyStoppingStrategy):
        ...     def should_stop(self, epoch, store):
        ...         loss = store.find_metric("Loss", epoch)
        ...         return loss is not None and loss < 0.1
        >>> WhenGoodEnough().reason()
        'stopped early: WhenGoodEnough'

    Why: a resumed run shows every earlier epoch to the strategy before it goes on, so a
    strategy remembers the same as if the run had never been interrupted.
    """

    def should_stop(self, epoch: int, store: EventStore) -> bool:
        """Look at the epoch that has just ended; asked once for each, in order."""
        raise TypeError(f"{type(self).__name__} does not define when to stop")

    def reset(self) -> None:
        """Forget all epochs; every fit begins with this."""

    def reason(self) -> str:
        """Why the training ends, for people."""
        return f"stopped early: {type(self).__name__}"


class MetricEarlyStoppingStrategy(EarlyStoppingStrategy):
    """Stop when a metric has not improved for a while.

    Example:
        >>> MetricEarlyStoppingStrategy(
        ...     "Loss", Aggregate.Mean, Direction.Lowest, Split.Valid,
        ...     StoppingCondition.NoImprovementSince(n_epochs=2))
        MetricEarlyStoppingStrategy(Loss, Mean, Lowest, Valid,
                                    NoImprovementSince(n_epochs=2))
    """

    @explains_call("MetricEarlyStoppingStrategy", CALL)
    def __init__(
        self,
        metric: str | Metric | type[Metric],
        aggregate: Aggregate,
        direction: Direction,
        split: Split,
        condition: NoImprovementSince,
    ) -> None:
        where = "MetricEarlyStoppingStrategy"
        check_choices(where, aggregate, direction, split)
        if not hasattr(condition, "n_epochs"):
            what = f"{condition!r} is not a condition to stop"
            cure = "StoppingCondition.NoImprovementSince(n_epochs=2)"
            raise ConfigError(where, what, cure=cure)
        check_direction(where, metric, direction)
        self.metric = metric_name(metric)
        self.aggregate, self.direction, self.split = aggregate, direction, split
        self.condition = condition
        self.reset()

    def reset(self) -> None:
        """Forget all epochs; every fit begins with this."""
        self.best_epoch = 1
        worst = float("inf")
        self.best = worst if self.direction is Direction.Lowest else -worst

    def should_stop(self, epoch: int, store: EventStore) -> bool:
        """Look at the epoch that has just ended."""
        value = store.find_metric(self.metric, epoch, self.aggregate, self.split)
        if value is None:
            return False
        if better(value, self.best, self.direction):
            self.best, self.best_epoch = value, epoch
            return False
        return epoch - self.best_epoch >= self.condition.n_epochs

    def reason(self) -> str:
        """Which metric no longer improves, and since when."""
        return (
            f"stopped early: {self.metric} has not improved since "
            f"epoch {self.best_epoch}"
        )

    def __repr__(self) -> str:
        choices = (self.aggregate, self.direction, self.split)
        names = ", ".join([self.metric, *(choice.name for choice in choices)])
        return f"MetricEarlyStoppingStrategy({names}, {self.condition})"
