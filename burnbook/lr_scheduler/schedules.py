"""Schedules: rates that follow a curve.

Each knows where it stands by one number, which is its record. Below, i counts the calls
of `step()` from 0.
"""

import math
from dataclasses import replace
from typing import Any, ClassVar, Self

from burnbook.config import Config
from burnbook.core.dropped import result_matters
from burnbook.core.errors import ConfigError, RecordError
from burnbook.core.other_names import answers
from burnbook.lr_scheduler.base import (
    RealPlace,
    WholePlace,
    old_numbers,
    opened,
    read_number,
    read_place,
)
from burnbook.nn.shared import at_least

MOST = 2**63 - 1
BEFORE_FIRST = 2**64 - 1  # Burn counts from here, so that the first call gives 0


@answers("LrScheduler")
class Schedule:
    """What all schedules do alike: one number says where each of them stands.

    field: the name of the number in a record. held: the attribute that holds it, if it
    has another name. scalar: its type in newer Burn. low and high: its bounds.
    before_0_15: what the numbers of older records are, which hold the config, too.
    """

    config: Any
    field: str
    held = ""
    scalar = "UInt"
    low, high = 0, MOST
    before_0_15: tuple[type, ...] = ()

    @property
    def steps_left(self) -> int | None:
        """How many more steps it describes before it repeats itself or comes to rest.

        None where it goes on forever, or where coming to rest is the aim.
        """
        return None

    def into_record(self) -> WholePlace | RealPlace:
        """The number that says where the schedule stands."""
        value = getattr(self, self.held or self.field)
        if isinstance(value, float):
            return RealPlace(value, self.field)
        return WholePlace(value, self.field, self.scalar)

    to_record = into_record

    def length(self) -> int | None:
        """For how many steps it is made; None where any number is well."""
        return None

    def load_record(self, record: object) -> Self:
        """Go on from where a record stands.

        A record of Burn 0.13 or 0.14 brings its config with it, as it does there.
        """
        record = opened(self, record)
        if isinstance(record, list | tuple) and self.before_0_15:
            self.read_old(old_numbers(self, record, self.before_0_15))
        else:
            setattr(self, self.held or self.field, self.read(record))
        return self

    def read_old(self, numbers: list[Any]) -> None:
        """Take the numbers of a record of Burn 0.13 or 0.14."""
        raise TypeError(f"{type(self).__name__} must say what {numbers} are")

    def adopt(self, **fields: float) -> None:
        """Go on with these fields of the config, but for differences by rounding."""
        own = {name: getattr(self.config, name) for name in fields}
        if not all(math.isclose(own[n], fields[n], rel_tol=1e-9) for n in fields):
            try:
                self.config = replace(self.config, **fields)
            except ConfigError as cause:
                raise RecordError(
                    f"load into {type(self).__name__}", cause.what
                ) from None

    def read(self, record: object) -> float:
        """The number that a record holds."""
        return read_place(self, record, self.low, self.high)

    def __repr__(self) -> str:
        fields = repr(self.config).partition("(")[2]
        return f"{type(self).__name__}({fields}"


class LinearLrSchedulerConfig(Config):
    """How to make a schedule that goes straight from one rate to another.

    initial_lr: the learning rate of the first step, in (0, 1].
    final_lr: the learning rate from step num_iters on, in [0, 1].
    num_iters: how many steps the way takes, at least 1.

    Example:
        >>> schedule = LinearLrSchedulerConfig(0.9, 0.5, 4).init()
        >>> [round(schedule.step(), 3) for _ in range(6)]
        [0.9, 0.8, 0.7, 0.6, 0.5, 0.5]
    """

    initial_lr: float
    final_lr: float
    num_iters: int

    def validate(self) -> None:
        """Refuse rates above 1 and a way of no steps."""
        _rate(self, initial_lr=self.initial_lr)
        if not 0.0 <= self.final_lr <= 1.0:
            raise ConfigError(
                "LinearLrSchedulerConfig", f"final_lr is {self.final_lr}, not in [0, 1]"
            )
        at_least(self, 1, "num_iters")

    def init(self) -> "LinearLrScheduler":
        """The schedule, at its start."""
        return LinearLrScheduler(self)


class LinearLrScheduler(Schedule):
    """initial + (final − initial) min(i, n) / n: n + 1 points, then final forever."""

    field = "remaining_iters"
    before_0_15 = (float, float, int)

    def __init__(self, config: LinearLrSchedulerConfig):
        self.config = config
        self.remaining_iters = config.num_iters + 1

    def read_old(self, numbers: list[Any]) -> None:
        """The last rate, how far it goes at each step, and how many steps remain."""
        previous_lr, step, remaining = numbers
        last = previous_lr + step * remaining
        self.adopt(initial_lr=last - step * self.config.num_iters, final_lr=last)
        self.remaining_iters = remaining

    @property
    def steps_left(self) -> int | None:
        """The steps down to the last rate; None on a way up, as of a warm-up."""
        falls = self.config.final_lr < self.config.initial_lr
        return self.remaining_iters if falls else None

    def read(self, record: object) -> int:
        """How many steps remain."""
        return read_place(self, record, 0, self.config.num_iters + 1)

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        self.remaining_iters = max(self.remaining_iters - 1, 0)
        first, last = self.config.initial_lr, self.config.final_lr
        step = (last - first) / self.config.num_iters
        return last - step * self.remaining_iters

    def length(self) -> int | None:
        """num_iters + 1 steps; None where it rises, as a warm-up that stays."""
        falls = self.config.final_lr < self.config.initial_lr
        return self.config.num_iters + 1 if falls else None


class CosineAnnealingLrSchedulerConfig(Config):
    """How to make a schedule that goes down like half a cosine, again and again.

    initial_lr: the highest learning rate, with which every cycle begins, in (0, 1].
    num_iters: how many steps half a cosine takes, at least 1.
    min_lr: the lowest learning rate, in [0, initial_lr] (default 0.0).

    Source: Loshchilov & Hutter, 2017.

    Example:
        >>> schedule = CosineAnnealingLrSchedulerConfig(1.0, 2).init()
        >>> [round(schedule.step(), 3) for _ in range(6)]
        [1.0, 0.5, 0.0, 1.0, 0.5, 0.0]
    """

    initial_lr: float
    num_iters: int
    min_lr: float = 0.0

    def validate(self) -> None:
        """Refuse rates above 1, a curve that would go up, and one of no steps."""
        _rate(self, initial_lr=self.initial_lr)
        if not 0.0 <= self.min_lr <= self.initial_lr:
            what = (
                f"min_lr is {self.min_lr}, not in [0, initial_lr = {self.initial_lr}]"
            )
            raise ConfigError("CosineAnnealingLrSchedulerConfig", what)
        at_least(self, 1, "num_iters")

    def init(self) -> "CosineAnnealingLrScheduler":
        """The schedule, at its start."""
        return CosineAnnealingLrScheduler(self)


class CosineAnnealingLrScheduler(Schedule):
    """min + (initial − min) (1 + cos(π k / n)) / 2, with k = i mod (n + 1)."""

    field = "current_iter"  # the place on the curve; before the first step 2⁶⁴ − 1
    high = BEFORE_FIRST
    before_0_15 = (float, float, float, int, int)

    def __init__(self, config: CosineAnnealingLrSchedulerConfig):
        self.config = config
        self.current_iter = BEFORE_FIRST
        self.restarts = 0  # how often it jumped back to the initial rate

    def read_old(self, numbers: list[Any]) -> None:
        """The last rate, the lowest and the highest, the length, and the place."""
        _, low, high, num_iters, current_iter = numbers
        self.adopt(initial_lr=high, num_iters=num_iters, min_lr=low)
        self.current_iter = current_iter

    @property
    def steps_left(self) -> int:
        """The steps down to the lowest rate."""
        before_first = self.current_iter == BEFORE_FIRST
        return self.config.num_iters - (-1 if before_first else self.current_iter)

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now.

        After num_iters + 1 calls it starts again at the initial rate.
        """
        count, low = self.config.num_iters, self.config.min_lr
        following = (self.current_iter + 1) % 2**64
        self.restarts += following > count
        self.current_iter = following % (count + 1)
        half = 0.5 * (self.config.initial_lr - low)
        return low + half * (1 + math.cos(math.pi * self.current_iter / count))

    def length(self) -> int:
        """num_iters + 1 steps; then it starts again at the initial rate."""
        return self.config.num_iters + 1


class ExponentialLrSchedulerConfig(Config):
    """How to make a schedule that keeps a share of the rate at every step.

    initial_lr: the learning rate of the first step, in (0, 1].
    gamma: what the learning rate is multiplied by at every step, in (0, 1].

    Example:
        >>> schedule = ExponentialLrSchedulerConfig(0.8, 0.5).init()
        >>> [schedule.step() for _ in range(4)]
        [0.8, 0.4, 0.2, 0.1]
    """

    initial_lr: float
    gamma: float

    def validate(self) -> None:
        """Refuse rates above 1 and a rate that would grow."""
        _rate(self, initial_lr=self.initial_lr, gamma=self.gamma)

    def init(self) -> "ExponentialLrScheduler":
        """The schedule, at its start."""
        return ExponentialLrScheduler(self)


class ExponentialLrScheduler(Schedule):
    """initial · γⁱ, each rate made from the one before."""

    field = "previous_lr"
    before_0_15 = (float, float)

    def __init__(self, config: ExponentialLrSchedulerConfig):
        self.config = config
        self.previous_lr = config.initial_lr / config.gamma

    def read_old(self, numbers: list[Any]) -> None:
        """The last rate, and what each is multiplied by."""
        previous_lr, gamma = numbers
        self.adopt(gamma=gamma)
        self.previous_lr = previous_lr

    def read(self, record: object) -> float:
        """The last rate."""
        return float(read_number(self, record))

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        self.previous_lr *= self.config.gamma
        return self.previous_lr


class NoamLrSchedulerConfig(Config):
    """How to make the schedule of the first Transformer: up in a line, down as 1/√s.

    init_lr: the factor of the whole schedule, above 0; `factor` in newer Burn.
    warmup_steps: for how many steps the learning rate rises, at least 1 (default 4000).
    model_size: the width of the model; learning rates are divided by its root, at least
        1 (default 512).

    Source: Vaswani et al., 2017.

    Example:
        >>> config = NoamLrSchedulerConfig(1.0).with_warmup_steps(2).with_model_size(4)
        >>> schedule = config.init()
        >>> [round(schedule.step(), 3) for _ in range(4)]
        [0.177, 0.354, 0.289, 0.25]
    """

    renamed: ClassVar = {"init_lr": "factor"}

    init_lr: float
    warmup_steps: int = 4000
    model_size: int = 512

    def validate(self) -> None:
        """Refuse a rate that is none, no warm-up and a model of no size."""
        if not 0.0 < self.init_lr < math.inf:
            what = f"init_lr is {self.init_lr}, not above 0"
            raise ConfigError("NoamLrSchedulerConfig", what)
        at_least(self, 1, "warmup_steps", "model_size")

    def init(self) -> "NoamLrScheduler":
        """The schedule, at its start."""
        return NoamLrScheduler(self)


class NoamLrScheduler(Schedule):
    """init · model_size^−½ · min(s^−½, s · warmup^−³ᐟ²), with s = i + 1."""

    field, held, scalar = "step", "steps", "Float"

    def __init__(self, config: NoamLrSchedulerConfig):
        self.config = config
        self.steps = 0

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        self.steps += 1
        down, up = self.steps**-0.5, self.steps * self.config.warmup_steps**-1.5
        return self.config.init_lr * self.config.model_size**-0.5 * min(down, up)


class StepLrSchedulerConfig(Config):
    """How to make a schedule whose rate decays every `step_size` steps.

    initial_lr: the learning rate of the first step, above 0.
    step_size: how many steps share one learning rate, at least 1.
    gamma: what the learning rate is multiplied by after step_size steps, above 0
        (default 0.1).

    Example:
        >>> schedule = StepLrSchedulerConfig(1.0, 2).with_gamma(0.5).init()
        >>> [schedule.step() for _ in range(5)]
        [1.0, 1.0, 0.5, 0.5, 0.25]
    """

    initial_lr: float
    step_size: int
    gamma: float = 0.1

    def validate(self) -> None:
        """Refuse a step size below 1, and numbers that make no rates."""
        at_least(self, 1, "step_size")
        for name in ("initial_lr", "gamma"):
            value = getattr(self, name)
            if not 0.0 < value < math.inf:
                what = f"{name} is {value}, not above 0"
                raise ConfigError("StepLrSchedulerConfig", what)

    def init(self) -> "StepLrScheduler":
        """The schedule, at its start."""
        return StepLrScheduler(self)


class StepLrScheduler(Schedule):
    """initial · γ^⌊i / step_size⌋: the same rate for step_size batches, then less."""

    field = "iter_idx"  # the number of the last step; before the first −1
    scalar = "Int"
    low, high = -1, 2**31 - 1

    def __init__(self, config: StepLrSchedulerConfig):
        self.config = config
        self.iter_idx = -1

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        self.iter_idx += 1
        decays = self.iter_idx // self.config.step_size
        return self.config.initial_lr * self.config.gamma**decays


def _rate(config: Config, **values: float) -> None:
    """Raise a ConfigError for the first of these that is not in (0, 1]."""
    for name, value in values.items():
        if not 0.0 < value <= 1.0:
            what = f"{name} is {value}, not in (0, 1]"
            raise ConfigError(type(config).__name__, what)
