"""Which learning rate the next step uses.

A scheduler is asked once per batch, before the batch is computed. A plain number is a
scheduler too: the same rate forever. One that follows a metric is told its value by
`observe`. `length()` of a scheduler is for how many steps it is made.
"""

from collections.abc import Iterable
from typing import Any, Protocol, Self

from burnbook.config import Config
from burnbook.core.dropped import result_matters
from burnbook.core.errors import ArgumentError, ConfigError, RecordError
from burnbook.core.roles import RATE, rate_of, wrong_form
from burnbook.optim.groups import ModuleLearningRate

NUMBER = "value"  # the name of a number that has none: of a schedule of one's own


class LrScheduler(Protocol):
    """What the Learner needs of a scheduler.

    One may have more: `length()` gives for how many steps it is made, or None for any
    number; `observe(value)` takes a metric, of the name `metric` ("Loss" where it has
    no such attribute) and the split `split` ("valid").
    """

    def step(self) -> float:
        """Go on by one batch; the learning rate to use now."""
        ...

    def into_record(self) -> Any:
        """Where the schedule stands."""
        ...

    def load_record(self, record: object) -> Self:
        """Go on from where a record stands."""
        ...


class WholePlace(int):
    """A whole number of a record of newer Burn, such as where a schedule stands.

    name: of the number in the record. scalar: its type: UInt, Int, which may be below
    0, or Float.

    Example:
        >>> place = WholePlace(3, "current_iter")
        >>> place + 1, place.name
        (4, 'current_iter')
    """

    name: str
    scalar: str

    def __new__(cls, value: int, name: str, scalar: str = "UInt") -> Self:
        """The number with its name and type."""
        made = super().__new__(cls, value)
        made.name, made.scalar = name, scalar
        return made

    def __reduce__(self) -> Any:
        return type(self), (int(self), self.name, self.scalar)


class RealPlace(float):
    """Where a schedule stands, a number with a point; otherwise as `WholePlace`."""

    name: str
    scalar = "Float"

    def __new__(cls, value: float, name: str) -> Self:
        """The number with its name."""
        made = super().__new__(cls, value)
        made.name = name
        return made

    def __reduce__(self) -> Any:
        return type(self), (float(self), self.name)


class Numbers(dict[str, WholePlace | RealPlace]):
    """The record of a schedule that needs several numbers, each with its name.

    Example:
        >>> Numbers(bad_epochs=WholePlace(2, "bad_epochs"))
        {'bad_epochs': 2}
    """


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
            what = f"{lr!r} is not a learning rate"
            cure = "a number of at least 0, such as 1e-4, or a scheduler"
            found = wrong_form("ConstantLr", -1, lr, RATE)
            what, cure = found or (what, rate_of(lr) or cure)
            raise ConfigError("ConstantLr", what, cure=cure)
        self.lr = lr if isinstance(lr, ModuleLearningRate) else float(lr)

    @result_matters("lr = scheduler.step()", kept_in="lr")
    def step(self) -> float:
        """The learning rate."""
        return self.lr

    def length(self) -> None:
        """None: it goes on for any number of steps."""
        return

    def into_record(self) -> None:
        """Nothing: a constant has no place to remember."""
        return

    to_record = into_record

    def load_record(self, record: object) -> Self:
        """The scheduler as it is."""
        record = opened(self, record)
        if record is not None and record != {}:
            raise _of_another(type(self).__name__, record)
        return self

    def __repr__(self) -> str:
        return f"ConstantLr({self.lr})"


def as_scheduler(lr: "LrScheduler | float") -> LrScheduler:
    """The scheduler itself, or the constant one of a plain number."""
    given: Any = lr
    check_schedule("lr_scheduler", lr)
    is_config = isinstance(lr, Config)
    return given if hasattr(lr, "step") and not is_config else ConstantLr(given)


def check_schedule(where: str, lr: object) -> None:
    """Refuse an optimizer where a schedule belongs: both have a step."""
    if hasattr(lr, "with_grad_clipping"):
        what = f"{type(lr).__name__} is an optimizer, not a schedule"
        cure = "a number such as 1e-3, or CosineAnnealingLrSchedulerConfig(1e-3, 100)"
        raise ArgumentError(where, what, cure=f"{cure}.init()")


def length_of(scheduler: object) -> int | None:
    """For how many steps a scheduler is made; None where any number is well.

    Past them it starts again, or stays where it has come to. A scheduler of one's own
    says so by a method `length`, or has none.

    Example:
        >>> length_of(ConstantLr(0.1)) is None
        True
    """
    ask = getattr(scheduler, "length", None)
    found = ask() if callable(ask) else None
    return found if isinstance(found, int) else None


def left_of(scheduler: object) -> int | None:
    """How many steps of its length a scheduler has left; None where it has no end."""
    found = getattr(scheduler, "steps_left", None)
    return found if isinstance(found, int) else None


def least(counts: Iterable[int | None]) -> int | None:
    """The least of some numbers of steps, if there is any."""
    return min((count for count in counts if count is not None), default=None)


def observers(scheduler: object, *, now: bool = True) -> list[Any]:
    """The schedules that follow a metric: this one, or those inside of it.

    now: only those whose turn it is, as in a sequence; else all of them.

    Example:
        >>> observers(ConstantLr(0.1))
        []
    """
    parts: Any = getattr(scheduler, "schedulers", None)
    if isinstance(parts, list):
        turn: Any = getattr(scheduler, "current", None)
        parts = [turn()] if now and turn else parts
        return [one for part in parts for one in observers(part, now=now)]
    return [scheduler] if hasattr(scheduler, "observe") else []


def opened(scheduler: Any, record: object) -> Any:
    """The record itself, or what is in one of a format without names."""
    opens: Any = record
    return opens.for_module(scheduler) if hasattr(record, "for_module") else record


def read_place(scheduler: Any, record: object, low: int, high: int) -> int:
    """The whole number that a scheduler's record is, between these two.

    Newer Burn names it: {"current_iter": 3}; and may write it as 3.0.
    """
    found = read_number(scheduler, record)
    if found != int(found) or not low <= found <= high:
        raise _of_another(type(scheduler).__name__, record)
    return int(found)


def read_number(scheduler: Any, record: object) -> float:
    """The number that a scheduler's record is, plain or under its name."""
    inner: Any = of_first_group(record)
    named = isinstance(inner, dict) and list(inner) == [scheduler.field]
    found: Any = inner[scheduler.field] if named else inner
    wrong = isinstance(found, bool) or not isinstance(found, int | float)
    if wrong or not abs(found) < float("inf"):
        raise _of_another(type(scheduler).__name__, record)
    return found


def read_numbers(scheduler: Any, record: object) -> dict[str, int | float]:
    """The numbers of a record that has several, as the scheduler has them now."""
    wanted: Numbers = scheduler.into_record()
    found: Any = record
    if not isinstance(found, dict) or found.keys() != wanted.keys():
        raise _of_another(type(scheduler).__name__, record)
    read: dict[str, int | float] = {}
    for name, place in wanted.items():
        kind = float if isinstance(place, float) else int
        (read[name],) = old_numbers(scheduler, [found[name]], (kind,))
    return read


def old_numbers(
    scheduler: Any, record: list[Any] | tuple[Any, ...], kinds: tuple[type, ...]
) -> list[Any]:
    """The numbers of a record of Burn 0.13 or 0.14, if they are of these kinds."""
    if len(record) != len(kinds):
        raise _of_another(type(scheduler).__name__, record)
    for kind, number in zip(kinds, record, strict=True):
        fits = isinstance(number, int | float) and not isinstance(number, bool)
        if not fits or not abs(number) < float("inf"):
            raise _of_another(type(scheduler).__name__, record)
        if kind is int and (number != int(number) or number < 0):
            raise _of_another(type(scheduler).__name__, record)
    return [kind(number) for kind, number in zip(kinds, record, strict=True)]


def of_first_group(record: object) -> Any:
    """The record inside {"0": …}: newer Burn has one for each group of parameters."""
    if isinstance(record, dict) and list(record) == ["0"]:
        return record["0"]
    return record


def children_of(scheduler: Any, record: object, count: int) -> list[Any]:
    """The records of the schedulers inside one, in their order.

    Either a list of {"Linear": 3}, as in Burn 0.19, or {"0": {...}, "1": {...}}.
    """
    if isinstance(record, dict) and list(record) == ["schedulers"]:
        rows = record["schedulers"]
        if isinstance(rows, list) and len(rows) == count:
            return [_inside(row) for row in rows]
    elif isinstance(record, dict) and set(record) <= set(map(str, range(count))):
        return [record.get(str(number)) for number in range(count)]
    raise _of_another(type(scheduler).__name__, record)


def _inside(row: object) -> Any:
    """What {"Linear": 3} holds."""
    if isinstance(row, dict) and len(row) == 1:
        ((_, held),) = row.items()
        return held
    return None


def _of_another(name: str, record: object) -> RecordError:
    shown = repr(record) if isinstance(record, (int, float)) else type(record).__name__
    return RecordError(
        f"load into {name}",
        f"{shown} is not the record of this scheduler",
        cure="the record of a scheduler made from the same config",
    )
