"""Schedules that follow a curve from its first step to its last, or any function.

Each knows where it stands by the number of its last step, which is its record; past the
end of a curve its last rate stays.
"""

import math
from collections.abc import Callable
from typing import Any

from burnbook.config import Config
from burnbook.core.dropped import result_matters
from burnbook.core.errors import ConfigError
from burnbook.lr_scheduler.schedules import Schedule
from burnbook.nn.shared import at_least


class Curve(Schedule):
    """A schedule whose rate depends on the number of the step alone."""

    field = "iter_idx"  # the number of the last step; before the first −1
    scalar = "Int"
    low, high = -1, 2**31 - 1

    def __init__(self, config: Any):
        self.config = config
        self.iter_idx = -1

    def rate(self, i: int) -> float:
        """The learning rate of step i, counted from 0."""
        raise TypeError(f"{type(self).__name__} must define rate, for step {i}")

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        self.iter_idx = min(self.iter_idx + 1, self.high)
        return self.rate(self.iter_idx)

    @property
    def steps_left(self) -> int | None:
        """The steps up to its length; None where any number is well."""
        count = self.length()
        return None if count is None else max(count - self.iter_idx - 1, 0)


class PolynomialLrSchedulerConfig(Config):
    """How to make a schedule that falls from one rate to another by a power.

    initial_lr: the learning rate of the first step, above 0.
    num_iters: how many steps the way takes, at least 1.
    power: of the share of the way that is left, above 0; 1 is a line (default 1.0).
    final_lr: the learning rate from step num_iters on, at least 0 (default 0.0).

    Example:
        >>> schedule = PolynomialLrSchedulerConfig(0.8, 4).with_power(2.0).init()
        >>> [round(schedule.step(), 3) for _ in range(6)]
        [0.8, 0.45, 0.2, 0.05, 0.0, 0.0]
    """

    initial_lr: float
    num_iters: int
    power: float = 1.0
    final_lr: float = 0.0

    def validate(self) -> None:
        """Refuse rates below 0, a way of no steps, and a power that is not above 0."""
        positive(self, "initial_lr", "power")
        at_least(self, 1, "num_iters")
        finite_from_zero(self, "final_lr")

    def init(self) -> "PolynomialLrScheduler":
        """The schedule, at its start."""
        return PolynomialLrScheduler(self)


class PolynomialLrScheduler(Curve):
    """final + (initial − final) (1 − min(i, n) / n)ᵖ: n + 1 points, then final."""

    def rate(self, i: int) -> float:
        """The learning rate of step i, counted from 0."""
        config = self.config
        left = 1.0 - min(i, config.num_iters) / config.num_iters
        span = config.initial_lr - config.final_lr
        return config.final_lr + span * left**config.power

    def length(self) -> int | None:
        """num_iters + 1 steps; None where it rises, as a warm-up that stays."""
        if self.config.final_lr > self.config.initial_lr:
            return None
        return self.config.num_iters + 1


class WarmupCosineLrSchedulerConfig(Config):
    """How to make a schedule that rises in a line, then goes down like half a cosine.

    max_lr: the highest learning rate, that of step warmup_steps, above 0.
    warmup_steps: how many steps the learning rate rises, at least 0.
    num_iters: how many steps the whole way takes, the warm-up among them; above
        warmup_steps.
    start_lr: the learning rate of the first step of the warm-up, in [0, max_lr]
        (default 0.0).
    min_lr: the learning rate from step num_iters on, in [0, max_lr] (default 0.0).

    Example:
        >>> schedule = WarmupCosineLrSchedulerConfig(0.8, 2, 6).init()
        >>> [round(schedule.step(), 3) for _ in range(8)]
        [0.0, 0.4, 0.8, 0.683, 0.4, 0.117, 0.0, 0.0]

    Why: unlike a cosine alone it does not start again after its last step.
    """

    max_lr: float
    warmup_steps: int
    num_iters: int
    start_lr: float = 0.0
    min_lr: float = 0.0

    def validate(self) -> None:
        """Refuse rates that are none, and a warm-up as long as the whole way."""
        positive(self, "max_lr")
        at_least(self, 0, "warmup_steps")
        if self.num_iters <= self.warmup_steps:
            what = f"num_iters is {self.num_iters}, not above {self.warmup_steps}"
            cure = "num_iters: the steps of the whole run, epochs x batches"
            where = "WarmupCosineLrSchedulerConfig"
            raise ConfigError(where, f"{what}, the warmup_steps", cure=cure)
        for name in ("start_lr", "min_lr"):
            value = getattr(self, name)
            if not 0.0 <= value <= self.max_lr:
                what = f"{name} is {value}, not in [0, max_lr = {self.max_lr}]"
                raise ConfigError("WarmupCosineLrSchedulerConfig", what)

    def init(self) -> "WarmupCosineLrScheduler":
        """The schedule, at its start."""
        return WarmupCosineLrScheduler(self)


class WarmupCosineLrScheduler(Curve):
    """A line from start to max, then min + (max − min) (1 + cos(π (i − w)/(n − w)))/2.

    Here w is the number of steps of the warm-up and n that of all; from step n on the
    rate is min.
    """

    def rate(self, i: int) -> float:
        """The learning rate of step i, counted from 0."""
        config = self.config
        warmup, high, low = config.warmup_steps, config.max_lr, config.min_lr
        if i < warmup:
            return config.start_lr + (high - config.start_lr) * (i / warmup)
        if i >= config.num_iters:
            return low
        part = (i - warmup) / (config.num_iters - warmup)
        return low + (high - low) * 0.5 * (1.0 + math.cos(math.pi * part))

    def length(self) -> int:
        """num_iters + 1 steps."""
        return self.config.num_iters + 1


class OneCycleLrSchedulerConfig(Config):
    """How to make a schedule that rises to a high rate and falls far below its start.

    max_lr: the highest learning rate, above 0.
    total_steps: how many steps the whole cycle has, at least 1: epochs times batches.
    pct_start: the share of the steps in which the learning rate rises, in [0, 1]
        (default 0.3).
    div_factor: the first learning rate is max_lr / div_factor, above 0 (default 25.0).
    final_div_factor: the last learning rate is the first one divided by this, above 0
        (default 10000.0).
    three_phase: whether it falls to the first rate in as many steps as it rose, and
        only then to the last one (default False).
    linear: whether the rate goes straight instead of like half a cosine
        (default False).

    Example:
        >>> schedule = OneCycleLrSchedulerConfig(1.0, 5).with_pct_start(0.6).init()
        >>> [round(schedule.step(), 3) for _ in range(6)]
        [0.04, 0.52, 1.0, 0.5, 0.0, 0.0]

    Why: the momentum of the optimizer stays as it is; PyTorch's schedule lowers it
    while the rate is high, unless cycle_momentum is False.
    Source: Smith and Topin, Super-Convergence, 2018.
    """

    max_lr: float
    total_steps: int
    pct_start: float = 0.3
    div_factor: float = 25.0
    final_div_factor: float = 1e4
    three_phase: bool = False
    linear: bool = False

    def validate(self) -> None:
        """Refuse rates and divisors that are not above 0, and a cycle of no steps."""
        positive(self, "max_lr", "div_factor", "final_div_factor")
        at_least(self, 1, "total_steps")
        if not 0.0 <= self.pct_start <= 1.0:
            what = f"pct_start is {self.pct_start}, not in [0, 1]"
            raise ConfigError("OneCycleLrSchedulerConfig", what)

    def init(self) -> "OneCycleLrScheduler":
        """The schedule, at its start."""
        return OneCycleLrScheduler(self)


class OneCycleLrScheduler(Curve):
    """Up from max / div to max, then down to max / (div · final_div), where it stays.

    With three phases it comes by its first rate again on its way down.
    """

    def phases(self) -> list[tuple[float, float, float]]:
        """Where each phase ends, and between which rates it leads."""
        config = self.config
        high, steps = config.max_lr, config.total_steps
        first = high / config.div_factor
        last = first / config.final_div_factor
        up = config.pct_start * steps - 1.0
        if not config.three_phase:
            return [(up, first, high), (steps - 1.0, high, last)]
        down = 2.0 * config.pct_start * steps - 2.0
        return [(up, first, high), (down, high, first), (steps - 1.0, first, last)]

    def rate(self, i: int) -> float:
        """The learning rate of step i, counted from 0."""
        i, begin = min(i, self.config.total_steps - 1), 0.0
        *earlier, (end, first, last) = self.phases()
        for until, low, high in earlier:
            if i <= until:
                end, first, last = until, low, high
                break
            begin = until
        part = (i - begin) / (end - begin) if end != begin else 1.0
        return self._between(first, last, part)

    def _between(self, first: float, last: float, part: float) -> float:
        """The rate after a part of the way from one to another."""
        if self.config.linear:
            return first + (last - first) * part
        return last + (first - last) * 0.5 * (1.0 + math.cos(math.pi * part))

    def length(self) -> int:
        """total_steps."""
        return self.config.total_steps


class LambdaLrScheduler(Curve):
    """Any function of the step: initial · f(i), for i = 0, 1, 2, …

    initial_lr: what the function's factors are multiplied by, at least 0.
    function: gives the factor of step i; factors are at least 0.
    num_iters: how many steps the function is meant for; None, the default: any number.

    Example:
        >>> schedule = LambdaLrScheduler(0.8, lambda i: 0.5 ** (i // 2))
        >>> [schedule.step() for _ in range(5)]
        [0.8, 0.8, 0.4, 0.4, 0.2]

    Why: a function cannot be saved as JSON, so there is no config; the record says at
    which step the schedule stands.
    """

    def __init__(
        self,
        initial_lr: float,
        function: Callable[[int], float],
        num_iters: int | None = None,
    ):
        if not callable(function):
            what = f"{function!r} is no function of the step"
            cure = "LambdaLrScheduler(0.1, lambda i: 0.95**i)"
            raise ConfigError("LambdaLrScheduler", what, cure=cure)
        if not _is_rate(initial_lr):
            what = f"initial_lr is {initial_lr!r}, not a number of at least 0"
            raise ConfigError("LambdaLrScheduler", what)
        super().__init__(None)
        self.initial_lr, self.function = float(initial_lr), function
        self.num_iters = num_iters

    def rate(self, i: int) -> float:
        """The learning rate of step i, counted from 0."""
        factor = self.function(i)
        if not _is_rate(factor):
            what = f"the function gives {factor!r} for step {i}, no factor"
            cure = "a function that returns numbers of at least 0"
            raise ConfigError("LambdaLrScheduler", what, cure=cure)
        return self.initial_lr * float(factor)

    def length(self) -> int | None:
        """num_iters, if it was given."""
        return self.num_iters

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"LambdaLrScheduler({self.initial_lr}, {name})"


def _is_rate(value: object) -> bool:
    """Whether a value is a finite number of at least 0."""
    number = hasattr(value, "__float__") and not isinstance(value, bool)
    return number and 0.0 <= float(value) < math.inf  # type: ignore[arg-type]


def positive(config: Config, *names: str) -> None:
    """Raise a ConfigError for the first of these fields that is not above 0."""
    for name in names:
        value = getattr(config, name)
        if not 0.0 < value < math.inf:
            raise ConfigError(type(config).__name__, f"{name} is {value}, not above 0")


def finite_from_zero(config: Config, *names: str) -> None:
    """Raise a ConfigError for the first of these fields that is below 0."""
    for name in names:
        value = getattr(config, name)
        if not 0.0 <= value < math.inf:
            raise ConfigError(type(config).__name__, f"{name} is {value}, below 0")
