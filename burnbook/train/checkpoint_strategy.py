"""Which checkpoints are worth keeping.

A strategy looks at the epoch that has just ended and answers with actions: save it,
delete older ones. Saving always comes first.
"""

from __future__ import annotations

from dataclasses import dataclass

from burnbook.core.cures import explains_call
from burnbook.core.errors import ConfigError
from burnbook.train.events import (
    Aggregate,
    Direction,
    EventStore,
    Split,
    check_choices,
    check_direction,
)
from burnbook.train.metric import LossMetric, Metric, metric_name


@dataclass(frozen=True)
class Save:
    """Save the epoch that has just ended."""


@dataclass(frozen=True)
class Delete:
    """Delete an epoch."""

    epoch: int


Actions = list[Save | Delete]


class CheckpointingStrategy:
    """The base of all strategies: it keeps nothing unless overridden."""

    def checkpointing(self, epoch: int, store: EventStore) -> Actions:
        """What to do after an epoch."""
        return []

    def reset(self) -> None:
        """Forget all epochs; every fit begins with this."""


class KeepLastNCheckpoints(CheckpointingStrategy):
    """Keep the last epochs.

    Example:
        >>> KeepLastNCheckpoints(2).checkpointing(3, EventStore([], []))
        [Save(), Delete(epoch=1)]
    """

    def __init__(self, count: int) -> None:
        if count < 1:
            raise ConfigError(
                "KeepLastNCheckpoints",
                f"{count} would delete every checkpoint at once",
                cure="KeepLastNCheckpoints(1) or more",
            )
        self.count = count

    def checkpointing(self, epoch: int, store: EventStore) -> Actions:
        """Save, and delete the epoch that is one too many."""
        gone = epoch - self.count
        return [Save(), Delete(gone)] if gone > 0 else [Save()]

    def __repr__(self) -> str:
        return f"KeepLastNCheckpoints({self.count})"


CALL = (
    "MetricCheckpointingStrategy(LossMetric(), Aggregate.Mean, Direction.Lowest, "
    "Split.Valid)"
)


class MetricCheckpointingStrategy(CheckpointingStrategy):
    """Keep the epoch in which a metric was best.

    Example:
        >>> MetricCheckpointingStrategy(
        ...     LossMetric, Aggregate.Mean, Direction.Lowest, Split.Valid)
        MetricCheckpointingStrategy(Loss, Mean, Lowest, Valid)
    """

    @explains_call("MetricCheckpointingStrategy", CALL)
    def __init__(
        self,
        metric: str | Metric | type[Metric],
        aggregate: Aggregate,
        direction: Direction,
        split: Split,
    ) -> None:
        check_choices("MetricCheckpointingStrategy", aggregate, direction, split)
        check_direction("MetricCheckpointingStrategy", metric, direction)
        self.metric = metric_name(metric)
        self.aggregate, self.direction, self.split = aggregate, direction, split
        self.best: int | None = None

    def reset(self) -> None:
        """Forget all epochs."""
        self.best = None

    def checkpointing(self, epoch: int, store: EventStore) -> Actions:
        """Save the epoch if it is the best so far, and delete the best before it.

        Why: a metric that nobody logs makes every epoch the best one, as in Burn.
        """
        choice = (self.metric, self.aggregate, self.direction, self.split)
        best = store.find_epoch(*choice) or epoch
        actions: Actions = []
        if self.best is not None and self.best != best:
            actions.append(Delete(self.best))
        if best == epoch:
            actions.append(Save())
        self.best = best
        return actions

    def __repr__(self) -> str:
        choices = (self.aggregate, self.direction, self.split)
        names = ", ".join([self.metric, *(choice.name for choice in choices)])
        return f"MetricCheckpointingStrategy({names})"


class ComposedCheckpointingStrategy(CheckpointingStrategy):
    """Keep what any of several strategies wants to keep.

    Example:
        >>> ComposedCheckpointingStrategy(
        ...     KeepLastNCheckpoints(1), KeepLastNCheckpoints(2)
        ... ).checkpointing(3, EventStore([], []))
        [Save()]
        >>> ComposedCheckpointingStrategy.builder().add(KeepLastNCheckpoints(2)).build()
        ComposedCheckpointingStrategy(KeepLastNCheckpoints(2))
    """

    def __init__(self, *strategies: CheckpointingStrategy) -> None:
        if not strategies:
            raise ConfigError(
                "ComposedCheckpointingStrategy",
                "there is no strategy in it, so nothing would be saved",
                cure="ComposedCheckpointingStrategy(KeepLastNCheckpoints(2))",
            )
        self.strategies = strategies
        self.reset()

    @staticmethod
    def builder() -> ComposedBuilder:
        """The same, strategy by strategy, as the book writes it."""
        return ComposedBuilder()

    def reset(self) -> None:
        """Forget all epochs."""
        self.unwanted: list[set[int]] = [set() for _ in self.strategies]
        for strategy in self.strategies:
            strategy.reset()

    def checkpointing(self, epoch: int, store: EventStore) -> Actions:
        """Save if any strategy saves; delete what no strategy wants anymore."""
        save = False
        candidates: list[int] = []
        for strategy, unwanted in zip(self.strategies, self.unwanted, strict=True):
            actions = strategy.checkpointing(epoch, store)
            if not actions:
                unwanted.add(epoch)
            for action in actions:
                if isinstance(action, Delete):
                    unwanted.add(action.epoch)
                    candidates.append(action.epoch)
                else:
                    save = True
        gone = [e for e in dict.fromkeys(candidates) if self._nobody_wants(e)]
        for unwanted in self.unwanted:
            unwanted.difference_update(gone)
        first: Actions = [Save()] if save else []
        return first + [Delete(e) for e in gone]

    def _nobody_wants(self, epoch: int) -> bool:
        return all(epoch in unwanted for unwanted in self.unwanted)

    def __repr__(self) -> str:
        return f"ComposedCheckpointingStrategy({', '.join(map(repr, self.strategies))})"


class ComposedBuilder:
    """Collects strategies; `build()` composes them."""

    def __init__(self) -> None:
        self.strategies: list[CheckpointingStrategy] = []

    def add(self, strategy: CheckpointingStrategy) -> ComposedBuilder:
        """One more strategy."""
        self.strategies.append(strategy)
        return self

    def build(self) -> ComposedCheckpointingStrategy:
        """The composed strategy."""
        return ComposedCheckpointingStrategy(*self.strategies)


def default_strategy() -> CheckpointingStrategy:
    """The last two epochs, and the one with the lowest validation loss."""
    return ComposedCheckpointingStrategy(
        KeepLastNCheckpoints(2),
        MetricCheckpointingStrategy(
            LossMetric, Aggregate.Mean, Direction.Lowest, Split.Valid
        ),
    )
