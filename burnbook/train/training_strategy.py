"""Training strategies: where and how steps are computed.

    .with_training_strategy(TrainingStrategy.SingleDevice(Numpy()))
    .with_training_strategy(TrainingStrategy.MultiDevice([Cupy(0), Cupy(1)]))
    .with_training_strategy(TrainingStrategy.Custom(MyParadigm()))

The first two are what `devices([…])` says; a paradigm of your own defines everything
between a batch and its gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from burnbook.backend import Backend
from burnbook.core.errors import ConfigError
from burnbook.data import Progress

Numbered = tuple[int, Any, Progress]
Steps = Generator[tuple[int, Any, Any, Progress], None, None]


class MultiDeviceOptim(Enum):
    """Where the optimizer works when several devices train."""

    OptimMainDevice = "main"


class LearningParadigm:
    """How batches become steps; the base of paradigms of your own.

    `group` steps make one step of the optimizer, with the sum of their gradients.

    Example:
        >>> class Twice(LearningParadigm):
        ...     group = 2
        ...     def steps(self, batches, model):
        ...         for number, batch, progress in batches:
        ...             for _ in range(2):  # two masks of dropout for every batch
        ...                 yield number, batch, model().train_step(batch), progress
        >>> Twice()
        Twice(group=2)
    """

    group = 1

    def steps(self, batches: Iterable[Numbered], model: Callable[[], Any]) -> Steps:
        """For every step: the batch's number, the batch, its TrainOutput, progress.

        `model()` is the model as the optimizer has left it; ask for it each time.
        """
        for number, batch, progress in batches:
            yield number, batch, model().train_step(batch), progress

    def __repr__(self) -> str:
        return f"{type(self).__name__}(group={self.group})"


@dataclass(frozen=True)
class TrainingStrategy:
    """Where a training runs: on one device, on several, or in a way of your own.

    Example:
        >>> from burnbook.backend import Numpy
        >>> TrainingStrategy.MultiDevice([Numpy(), Numpy()])
        TrainingStrategy(MultiDevice, 2 devices)
    """

    name: str
    devices: tuple[Backend, ...] = ()
    paradigm: LearningParadigm | None = field(default=None)

    @classmethod
    def SingleDevice(cls, device: Backend) -> TrainingStrategy:  # noqa: N802 - as in Burn
        """Train on one device."""
        return cls("SingleDevice", (device,))

    @classmethod
    def MultiDevice(  # noqa: N802 - as in Burn
        cls,
        devices: Sequence[Backend],
        optim: MultiDeviceOptim = MultiDeviceOptim.OptimMainDevice,
    ) -> TrainingStrategy:
        """Train on several; the optimizer works on the first with summed gradients."""
        if not isinstance(optim, MultiDeviceOptim):
            raise ConfigError(
                "TrainingStrategy.MultiDevice",
                f"{optim!r} does not say where the optimizer works",
                cure="MultiDeviceOptim.OptimMainDevice",
            )
        return cls("MultiDevice", tuple(devices))

    @classmethod
    def Custom(cls, paradigm: LearningParadigm) -> TrainingStrategy:  # noqa: N802
        """Train in a way of your own."""
        if isinstance(paradigm, type) or not hasattr(paradigm, "steps"):
            raise ConfigError(
                "TrainingStrategy.Custom",
                f"{getattr(paradigm, '__name__', paradigm)!r} has no steps",
                cure="an object of a subclass of LearningParadigm",
            )
        return cls("Custom", (), paradigm)

    def __repr__(self) -> str:
        if self.paradigm is not None:
            return f"TrainingStrategy({self.name}, {self.paradigm!r})"
        count = len(self.devices)
        return f"TrainingStrategy({self.name}, {count} device{'s' * (count != 1)})"
