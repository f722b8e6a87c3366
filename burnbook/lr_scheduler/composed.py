"""Schedules made of schedules.

Composed: all at once, their rates multiplied, added or averaged. Sequential: one after
the other. ModuleLrScheduler: one for each group of parameters.
"""

import copy
import math
from collections.abc import Iterable
from typing import Any, Self, SupportsFloat

from burnbook.config import Config, ConfigEnum, holding, unit
from burnbook.core.dropped import result_matters
from burnbook.core.errors import ConfigError
from burnbook.lr_scheduler.base import (
    NUMBER,
    ConstantLr,
    LrScheduler,
    WholePlace,
    as_scheduler,
    children_of,
    least,
    left_of,
    length_of,
    observers,
    of_first_group,
    opened,
    read_place,
)
from burnbook.lr_scheduler.curves import (
    OneCycleLrSchedulerConfig,
    PolynomialLrSchedulerConfig,
    WarmupCosineLrSchedulerConfig,
)
from burnbook.lr_scheduler.plateau import ReduceOnPlateauLrSchedulerConfig
from burnbook.lr_scheduler.schedules import (
    MOST,
    CosineAnnealingLrSchedulerConfig,
    ExponentialLrSchedulerConfig,
    LinearLrSchedulerConfig,
    NoamLrSchedulerConfig,
    StepLrSchedulerConfig,
)
from burnbook.optim.groups import ModuleLearningRate, ParamGroup


class SchedulerReduction(ConfigEnum):
    """How the rates of several schedules become one."""

    Avg = unit()
    Sum = unit()
    Prod = unit()

    def reduce(self, rates: list[float]) -> float:
        """The one rate."""
        if self.variant == "Prod":
            return math.prod(rates)
        total = math.fsum(rates)
        return total / len(rates) if self.variant == "Avg" else total


class ComposedLrSchedulerConfig(Config):
    """How to make a schedule of several that run side by side.

    schedulers: the schedules that run side by side; `init` needs at least one
        (default []).
    reduction: how their learning rates become one: Prod, Sum or Avg (default Prod).

    Example:
        >>> warm = LinearLrSchedulerConfig(0.25, 1.0, 3)
        >>> halve = ExponentialLrSchedulerConfig(1.0, 0.5)
        >>> both = ComposedLrSchedulerConfig().linear(warm).exponential(halve)
        >>> schedule = both.init()
        >>> [schedule.step() for _ in range(4)]
        [0.25, 0.25, 0.1875, 0.125]
    """

    schedulers: "list[LrSchedulerConfig]" = []  # noqa: RUF012 - Config copies it
    reduction: SchedulerReduction = SchedulerReduction.Prod

    def constant(self, lr: float) -> Self:
        """The config with a constant rate beside the others."""
        return self._with(LrSchedulerConfig.Constant(ConstantLr(lr).lr))

    def linear(self, config: LinearLrSchedulerConfig) -> Self:
        """The config with a linear schedule beside the others."""
        return self._with(LrSchedulerConfig.Linear(config))

    def cosine(self, config: CosineAnnealingLrSchedulerConfig) -> Self:
        """The config with a cosine beside the others."""
        return self._with(LrSchedulerConfig.Cosine(config))

    def exponential(self, config: ExponentialLrSchedulerConfig) -> Self:
        """The config with an exponential schedule beside the others."""
        return self._with(LrSchedulerConfig.Exponential(config))

    def noam(self, config: NoamLrSchedulerConfig) -> Self:
        """The config with Noam's schedule beside the others."""
        return self._with(LrSchedulerConfig.Noam(config))

    def step(self, config: StepLrSchedulerConfig) -> Self:
        """The config with a step decay beside the others."""
        return self._with(LrSchedulerConfig.Step(config))

    def polynomial(self, config: PolynomialLrSchedulerConfig) -> Self:
        """The config with a polynomial decay beside the others."""
        return self._with(LrSchedulerConfig.Polynomial(config))

    def warmup_cosine(self, config: WarmupCosineLrSchedulerConfig) -> Self:
        """The config with a warm-up and a cosine beside the others."""
        return self._with(LrSchedulerConfig.WarmupCosine(config))

    def one_cycle(self, config: OneCycleLrSchedulerConfig) -> Self:
        """The config with one cycle beside the others."""
        return self._with(LrSchedulerConfig.OneCycle(config))

    def reduce_on_plateau(self, config: ReduceOnPlateauLrSchedulerConfig) -> Self:
        """The config with a schedule that follows a metric beside the others."""
        return self._with(LrSchedulerConfig.ReduceOnPlateau(config))

    def composed(self, config: "ComposedLrSchedulerConfig") -> Self:
        """The config with another composed schedule beside the others."""
        return self._with(LrSchedulerConfig.Composed(config))

    def sequential(self, config: "SequentialLrSchedulerConfig") -> Self:
        """The config with a sequence of schedules beside the others."""
        return self._with(LrSchedulerConfig.Sequential(config))

    def _with(self, choice: "LrSchedulerConfig") -> Self:
        fields = {"schedulers": [*self.schedulers, choice]}
        return type(self)(**fields, reduction=self.reduction)

    def init(self) -> "ComposedLrScheduler":
        """The schedule, at its start."""
        if not self.schedulers:
            raise ConfigError(
                "ComposedLrSchedulerConfig",
                "there is no schedule in it",
                cure="ComposedLrSchedulerConfig().linear(...)",
            )
        return ComposedLrScheduler(self)


class SequentialLrSchedulerConfig(Config):
    """How to make a schedule of several that follow each other.

    schedulers: the schedules in their order, at least one.
    milestones: at which step the second begins, the third …; one less than schedules,
        all above 0 and rising. Each schedule begins at its own step 0.

    Example:
        >>> up = LrSchedulerConfig.Linear(LinearLrSchedulerConfig(0.1, 0.3, 2))
        >>> down = LrSchedulerConfig.Cosine(CosineAnnealingLrSchedulerConfig(0.3, 2))
        >>> schedule = SequentialLrSchedulerConfig([up, down], [2]).init()
        >>> [round(schedule.step(), 3) for _ in range(5)]
        [0.1, 0.2, 0.3, 0.15, 0.0]
    """

    schedulers: "list[LrSchedulerConfig]"
    milestones: list[int]

    def validate(self) -> None:
        """Refuse milestones that do not part the schedules in order."""
        count, marks = len(self.schedulers), self.milestones
        rising = all(a < b for a, b in zip([0, *marks], marks, strict=False))
        if count and len(marks) == count - 1 and rising:
            return
        what = f"the milestones {marks} do not separate {count} schedules"
        cure = "one milestone fewer than schedules, all above 0, in increasing order"
        raise ConfigError("SequentialLrSchedulerConfig", what, cure=cure)

    def init(self) -> "SequentialLrScheduler":
        """The schedule, at its start."""
        return SequentialLrScheduler(self)


class LrSchedulerConfig(ConfigEnum):
    """The config of any schedule, as one of the schedules inside another one.

    Burn does not know the last four.
    """

    Constant = holding(float)
    Linear = holding(LinearLrSchedulerConfig)
    Cosine = holding(CosineAnnealingLrSchedulerConfig)
    Exponential = holding(ExponentialLrSchedulerConfig)
    Noam = holding(NoamLrSchedulerConfig)
    Step = holding(StepLrSchedulerConfig)
    Composed = holding(ComposedLrSchedulerConfig)
    Sequential = holding(SequentialLrSchedulerConfig)
    Polynomial = holding(PolynomialLrSchedulerConfig)
    WarmupCosine = holding(WarmupCosineLrSchedulerConfig)
    OneCycle = holding(OneCycleLrSchedulerConfig)
    ReduceOnPlateau = holding(ReduceOnPlateauLrSchedulerConfig)

    def init(self) -> LrScheduler:
        """The schedule, at its start."""
        (held,) = self.values
        return ConstantLr(held) if self.variant == "Constant" else held.init()


class ComposedLrScheduler:
    """All schedules take their step; their rates become one by the reduction."""

    def __init__(self, config: ComposedLrSchedulerConfig):
        self.config = config
        self.schedulers = [choice.init() for choice in config.schedulers]

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        return self.config.reduction.reduce([part.step() for part in self.schedulers])

    def observe(self, value: SupportsFloat) -> None:
        """Hand a metric to those schedules inside that follow one."""
        _observe(self, value)

    def length(self) -> int | None:
        """The least number of steps that one of its schedules is made for."""
        return least(map(length_of, self.schedulers))

    @property
    def steps_left(self) -> int | None:
        """The least number of steps that one of its schedules has left."""
        return least(map(left_of, self.schedulers))

    def into_record(self) -> dict[str, Any]:
        """Where each schedule stands: {"schedulers": [{"Linear": 3}, …]}."""
        return {"schedulers": _records(self.config.schedulers, self.schedulers)}

    to_record = into_record

    def load_record(self, record: object) -> Self:
        """Go on from where a record stands; nothing changes if it is not one."""
        record = opened(self, record)
        inner = of_first_group(record)
        wrapped = isinstance(inner, dict) and all(map(str.isdecimal, inner))
        return self.load_inner(inner if wrapped else record)

    def load_inner(self, record: object) -> Self:
        """Load the record that this schedule has inside another one."""
        rows = children_of(self, record, len(self.schedulers))
        self.schedulers = _loaded(self.config.schedulers, rows)
        return self

    def __repr__(self) -> str:
        return (
            f"ComposedLrScheduler({self.config.reduction.variant}: {self.schedulers})"
        )


class SequentialLrScheduler:
    """The schedule whose turn it is takes a step: as many milestones as are passed."""

    field = "step"

    def __init__(self, config: SequentialLrSchedulerConfig):
        self.config = config
        self.steps = 0
        self.schedulers = [choice.init() for choice in config.schedulers]

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        self.steps += 1
        return self.current().step()

    def current(self) -> LrScheduler:
        """The schedule whose turn it was at the last step; at first the first one."""
        last = max(self.steps - 1, 0)
        return self.schedulers[sum(mark <= last for mark in self.config.milestones)]

    def observe(self, value: SupportsFloat) -> None:
        """Hand a metric to the schedule whose turn it is, if it follows one."""
        _observe(self, value)

    def length(self) -> int | None:
        """The steps up to the last milestone, and those of the schedule behind it."""
        last = length_of(self.schedulers[-1])
        return None if last is None else sum(self.config.milestones[-1:]) + last

    @property
    def steps_left(self) -> int | None:
        """The steps up to its length; None where any number is well."""
        count = self.length()
        return None if count is None else max(count - self.steps, 0)

    def into_record(self) -> dict[str, Any]:
        """How many steps were made, and where each schedule stands."""
        rows = _records(self.config.schedulers, self.schedulers)
        return {"step": WholePlace(self.steps, "step"), "schedulers": rows}

    to_record = into_record

    def load_record(self, record: object) -> Self:
        """Go on from where a record stands; nothing changes if it is not one."""
        return self.load_inner(of_first_group(opened(self, record)))

    def load_inner(self, record: object) -> Self:
        """Load the record that this schedule has inside another one."""
        rest = dict(record) if isinstance(record, dict) else {}
        steps = read_place(self, rest.pop("step", None), 0, MOST)
        rows = children_of(self, rest, len(self.schedulers))
        self.schedulers = _loaded(self.config.schedulers, rows)
        self.steps = steps
        return self

    def __repr__(self) -> str:
        marks = ", ".join(map(str, self.config.milestones))
        return f"SequentialLrScheduler({self.schedulers} at {marks})"


class ModuleLrScheduler:
    """A schedule for each group of parameters, and one for the rest.

    Example:
        >>> biases = ParamGroup.from_predicate("bias")
        >>> schedule = ModuleLrScheduler(1e-4).with_group(biases, 1e-3)
        >>> lr = schedule.step()
        >>> lr
        ModuleLearningRate(0.0001, ParamGroup(path with 'bias'): 0.001)
    """

    def __init__(self, base: LrScheduler | Config | float):
        self.schedulers = [_made(base)]
        self.groups: list[ParamGroup] = []

    def with_group(
        self, group: ParamGroup, scheduler: LrScheduler | Config | float
    ) -> Self:
        """The scheduler with one more group, which goes before those that are there."""
        self.groups.append(group)
        self.schedulers.append(_made(scheduler))
        return self

    def base(self) -> LrScheduler:
        """The schedule of the parameters that are in no group."""
        return self.schedulers[0]

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> ModuleLearningRate:
        """Go on by one batch in every schedule; the learning rates to use now."""
        first, *others = [part.step() for part in self.schedulers]
        return ModuleLearningRate(first, tuple(zip(self.groups, others, strict=True)))

    def observe(self, value: SupportsFloat) -> None:
        """Hand a metric to those schedules inside that follow one."""
        _observe(self, value)

    def length(self) -> int | None:
        """The least number of steps that one of its schedules is made for."""
        return least(map(length_of, self.schedulers))

    @property
    def steps_left(self) -> int | None:
        """The least number of steps that one of its schedules has left."""
        return least(map(left_of, self.schedulers))

    def into_record(self) -> dict[str, Any]:
        """Where each schedule stands, by number: the first is the base."""
        return {str(i): part.into_record() for i, part in enumerate(self.schedulers)}

    to_record = into_record

    def load_record(self, record: object) -> Self:
        """Go on from where a record stands; nothing changes if it is not one."""
        rows = children_of(self, opened(self, record), len(self.schedulers))
        pairs = zip(copy.deepcopy(self.schedulers), rows, strict=True)
        self.schedulers = [_load(part, row) for part, row in pairs]
        return self

    def __repr__(self) -> str:
        pairs = zip(self.groups, self.schedulers[1:], strict=True)
        parts = [repr(self.base()), *[f"{group!r}: {part!r}" for group, part in pairs]]
        return f"ModuleLrScheduler({', '.join(parts)})"


def _made(scheduler: Any) -> LrScheduler:
    """A scheduler from itself, its config or a plain number."""
    return scheduler.init() if hasattr(scheduler, "init") else as_scheduler(scheduler)


def _observe(scheduler: object, value: SupportsFloat) -> None:
    """Hand a metric to the schedules inside that follow one."""
    for part in observers(scheduler):
        part.observe(value)


def _records(
    choices: Iterable[LrSchedulerConfig], schedulers: list[LrScheduler]
) -> list[Any]:
    """Each record under the name of its kind."""
    pairs = zip(choices, schedulers, strict=True)
    return [{choice.variant: part.into_record()} for choice, part in pairs]


def _loaded(choices: Iterable[LrSchedulerConfig], rows: list[Any]) -> list[LrScheduler]:
    """New schedulers that stand where their records say."""
    pairs = zip(choices, rows, strict=True)
    return [_load(choice.init(), row) for choice, row in pairs]


def _load(part: Any, row: Any) -> LrScheduler:
    """A schedule inside another one with its own part of the record."""
    if isinstance(row, dict) and list(row) == [NUMBER]:
        row = row[NUMBER]
    return getattr(part, "load_inner", part.load_record)(row)
