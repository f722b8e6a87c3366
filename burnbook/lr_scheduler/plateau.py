"""A schedule that follows a metric: a smaller rate once it no longer improves."""

import math
import sys
from typing import Any, Self, SupportsFloat

from burnbook.config import Config
from burnbook.core.dropped import result_matters
from burnbook.core.errors import ConfigError
from burnbook.core.other_names import answers
from burnbook.lr_scheduler.base import (
    Numbers,
    RealPlace,
    WholePlace,
    of_first_group,
    opened,
    read_numbers,
)
from burnbook.lr_scheduler.curves import finite_from_zero, positive
from burnbook.nn.shared import at_least

WORST = sys.float_info.max  # the best so far before the first; finite, for JSON
SPLITS = ("valid", "train")


class ReduceOnPlateauLrSchedulerConfig(Config):
    """How to make a schedule whose rate falls when a metric has stopped improving.

    initial_lr: the learning rate of the first step, above 0.
    factor: what the learning rate is multiplied by then, in (0, 1) (default 0.1).
    patience: after how many observations in a row without improvement one more makes
        the rate smaller, at least 0 (default 10).
    threshold: by how much a metric must be better than the best to count as improved,
        at least 0 (default 1e-4).
    relative: whether the threshold is a share of the best instead of a difference
        (default True).
    cooldown: how many observations after a smaller rate do not count, at least 0
        (default 0).
    min_lr: the least learning rate, at least 0 (default 0.0).
    eps: a change of the rate that is not above this is not made, at least 0
        (default 1e-8).
    highest_is_best: whether the metric is the better the higher, as an accuracy is
        (default False).
    metric: the name of the metric that the Learner hands over after each epoch
        (default "Loss").
    split: of which split, "valid" or "train" (default "valid").

    Example:
        >>> config = ReduceOnPlateauLrSchedulerConfig(0.8).with_factor(0.5)
        >>> schedule = config.with_patience(1).init()
        >>> rates = []
        >>> for loss in (2.0, 1.0, 1.0, 1.0, 1.0):
        ...     rates.append(schedule.step())
        ...     schedule.observe(loss)
        >>> rates
        [0.8, 0.8, 0.8, 0.8, 0.4]
    """

    initial_lr: float
    factor: float = 0.1
    patience: int = 10
    threshold: float = 1e-4
    relative: bool = True
    cooldown: int = 0
    min_lr: float = 0.0
    eps: float = 1e-8
    highest_is_best: bool = False
    metric: str = "Loss"
    split: str = "valid"

    def validate(self) -> None:
        """Refuse rates that are none, a factor that reduces nothing, another split."""
        positive(self, "initial_lr")
        if not 0.0 < self.factor < 1.0:
            what = f"factor is {self.factor}, not between 0 and 1"
            raise ConfigError("ReduceOnPlateauLrSchedulerConfig", what)
        at_least(self, 0, "patience", "cooldown")
        finite_from_zero(self, "threshold", "min_lr", "eps")
        if self.split not in SPLITS:
            what = f"split is {self.split!r}, not 'valid' or 'train'"
            raise ConfigError("ReduceOnPlateauLrSchedulerConfig", what)

    def init(self) -> "ReduceOnPlateauLrScheduler":
        """The schedule, at its start."""
        return ReduceOnPlateauLrScheduler(self)


@answers("LrScheduler")
class ReduceOnPlateauLrScheduler:
    """The same rate until a metric stops improving, then a share of it.

    `step()` gives the rate of a batch; `observe(value)` takes what the metric has
    become. In a loop of one's own both are called; the Learner observes after each
    epoch, before it keeps a checkpoint.
    """

    def __init__(self, config: ReduceOnPlateauLrSchedulerConfig):
        self.config = config
        self.current_lr = config.initial_lr
        self.best = -WORST if config.highest_is_best else WORST
        self.bad_epochs = 0  # observations in a row without improvement
        self.cooldown = 0  # how many more do not count

    @property
    def metric(self) -> str:
        """The metric that it follows, by name."""
        return self.config.metric

    @property
    def split(self) -> str:
        """Of which split: "valid" or "train"."""
        return self.config.split

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        return self.current_lr

    def observe(self, value: SupportsFloat) -> None:
        """Take the newest value of the metric; NaN is no improvement.

        value: a number, or a tensor of one element.
        """
        value = _number(value)
        config = self.config
        if self._improves(value):
            self.best = value
            self.bad_epochs = 0
        else:
            self.bad_epochs += 1
        if self.cooldown > 0:
            self.cooldown -= 1
            self.bad_epochs = 0
        if self.bad_epochs <= config.patience:
            return
        lower = max(self.current_lr * config.factor, config.min_lr)
        if self.current_lr - lower > config.eps:
            self.current_lr = lower
        self.cooldown, self.bad_epochs = config.cooldown, 0

    def _improves(self, value: float) -> bool:
        """Whether a value is better than the best by more than the threshold."""
        config, best = self.config, self.best
        apart = config.threshold if config.highest_is_best else -config.threshold
        bound = best * (1.0 + apart) if config.relative else best + apart
        return value > bound if config.highest_is_best else value < bound

    def length(self) -> None:
        """None: it goes on for any number of steps."""
        return

    def into_record(self) -> Numbers:
        """The rate, the best value so far, and what is counted."""
        return Numbers(
            current_lr=RealPlace(self.current_lr, "current_lr"),
            best=RealPlace(self.best, "best"),
            bad_epochs=WholePlace(self.bad_epochs, "bad_epochs"),
            cooldown=WholePlace(self.cooldown, "cooldown"),
        )

    to_record = into_record

    def load_record(self, record: object) -> Self:
        """Go on from where a record stands; nothing changes if it is not one."""
        return self.load_inner(of_first_group(opened(self, record)))

    def load_inner(self, record: object) -> Self:
        """Load the record that this schedule has inside another one."""
        for name, value in read_numbers(self, record).items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        fields = repr(self.config).partition("(")[2]
        return f"ReduceOnPlateauLrScheduler({fields}"


def _number(value: Any) -> float:
    """A number out of what a loop has, a float or a tensor; the largest for ∞."""
    if hasattr(value, "into_scalar"):
        value = value.into_scalar()
    number = isinstance(value, int | float) or hasattr(value, "__float__")
    if not number or isinstance(value, bool):
        name = type(value).__name__
        what = f"{name} is not the value of a metric"
        cure = "schedule.observe(loss.into_scalar())"
        raise ConfigError("ReduceOnPlateauLrScheduler.observe", what, cure=cure)
    found = float(value)
    return found if math.isnan(found) else max(-WORST, min(found, WORST))
