"""Building blocks · Learning rate scheduler. Which learning rate the next step uses.

A scheduler is asked once per batch, before the batch is computed. A plain number is a
scheduler too: the same rate for ever.
"""

from typing import Any, Protocol, Self

from burnbook.errors import ConfigError


class LrScheduler(Protocol):
    """What the Learner needs of a scheduler."""

    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        ...

    def into_record(self) -> Any:
        """Where the schedule stands."""
        ...

    def load_record(self, record: Any) -> Self:
        """Go on from where a record stands."""
        ...


class ConstantLr:
    """The same learning rate at every step.

    Example:
        >>> schedule = ConstantLr(1e-4)
        >>> schedule.step(), schedule.step(), schedule.into_record()
        (0.0001, 0.0001, None)
    """

    def __init__(self, lr: float):
        plain = isinstance(lr, (int, float)) and not isinstance(lr, bool)
        if not plain or not 0.0 <= lr < float("inf"):
            raise ConfigError(
                "ConstantLr",
                f"{lr!r} is not a learning rate",
                cure="a number of at least 0, such as 1e-4, or a scheduler",
            )
        self.lr = float(lr)

    def step(self) -> float:
        """The learning rate."""
        return self.lr

    def into_record(self) -> None:
        """Nothing: a constant has no place to remember."""
        return

    to_record = into_record

    def load_record(self, record: Any) -> Self:
        """The scheduler as it is."""
        return self

    def __repr__(self) -> str:
        return f"ConstantLr({self.lr})"


def as_scheduler(lr: "LrScheduler | float") -> LrScheduler:
    """The scheduler itself, or the constant one of a plain number."""
    return lr if hasattr(lr, "step") else ConstantLr(lr)  # type: ignore[arg-type,return-value] # told apart by step
