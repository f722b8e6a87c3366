"""Where a sweep looks: lists of values, and ranges.

    {"hidden_size": [128, 256], "learning_rate": LogUniform(1e-4, 1e-1)}

Values are drawn from the seed, the number of the trial and the name of the field, and
from nothing else: more trials leave the first ones unchanged.
"""

from __future__ import annotations

import copy
import dataclasses
import itertools
import math
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from burnbook.core.errors import ConfigError

Values = dict[str, Any]


@dataclass(frozen=True)
class Uniform:
    """Any number between two others, each equally likely.

    Example:
        >>> Uniform(0.0, 0.5).at(0.5)
        0.25
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_ends(self, self.low < self.high)

    def at(self, share: float) -> float:
        """The number at a share of the range."""
        return self.low + share * (self.high - self.low)


@dataclass(frozen=True)
class LogUniform:
    """Any number between two others, each power of ten equally likely: learning rates.

    Example:
        >>> round(LogUniform(1e-4, 1e-2).at(0.5), 6)
        0.001
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        _check_ends(self, 0 < self.low < self.high)

    def at(self, share: float) -> float:
        """The number at a share of the range of powers."""
        low, high = math.log(self.low), math.log(self.high)
        return math.exp(low + share * (high - low))


@dataclass(frozen=True)
class Whole:
    """A whole number from `low` to `high`, both included.

    log: every factor equally likely, as for sizes of layers.

    Example:
        >>> [Whole(1, 3).at(share) for share in (0.0, 0.5, 0.99)]
        [1, 2, 3]
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        _check_ends(self, self.low < self.high and (not self.log or self.low > 0))

    def at(self, share: float) -> int:
        """The number at a share of the range."""
        if self.log:
            found = LogUniform(self.low, self.high + 1).at(share)
        else:
            found = Uniform(self.low, self.high + 1).at(share)
        return min(math.floor(found), self.high)


@dataclass(frozen=True)
class Choice:
    """One of some values, each equally likely; in a space, a list means the same."""

    values: tuple[Any, ...]

    def at(self, share: float) -> Any:
        """The value at a share of the list."""
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


Range = Uniform | LogUniform | Whole | Choice


def read_space(space: Mapping[str, Any]) -> dict[str, Range]:
    """The space with every list as a Choice; what is neither is explained."""
    if not space:
        what = "the space has no field, so there is nothing to vary"
        cure = '{"learning_rate": LogUniform(1e-4, 1e-1)}'
        raise ConfigError("sweep", what, cure=cure)
    found: dict[str, Range] = {}
    for name, values in space.items():
        if isinstance(values, Range):
            found[name] = values
            continue
        is_list = isinstance(values, Sequence) and not isinstance(values, str | bytes)
        if not (is_list and len(values)):
            raise ConfigError(
                "sweep",
                f"{name}: {values!r} is neither a list of values nor a range",
                cure="[0.1, 0.5], Uniform(0, 1), LogUniform(1e-4, 1) or Whole(1, 9)",
            )
        found[name] = Choice(tuple(values))
    return found


def grid(space: Mapping[str, Range]) -> list[Values]:
    """Every combination of the lists.

    Example:
        >>> grid({"a": Choice((1, 2)), "b": Choice(("x",))})
        [{'a': 1, 'b': 'x'}, {'a': 2, 'b': 'x'}]
    """
    lists: list[Iterable[Any]] = []
    for name, values in space.items():
        if not isinstance(values, Choice):
            what = f"{name} is a range, so there are infinitely many combinations"
            raise ConfigError("sweep", what, cure="trials=20, or a list of values")
        lists.append(values.values)
    return [dict(zip(space, row, strict=True)) for row in itertools.product(*lists)]


def draw(space: Mapping[str, Range], trials: int, seed: int) -> list[Values]:
    """Random combinations; from lists only, none comes twice while others are left.

    Example:
        >>> draw({"a": Choice((1, 2))}, 2, seed=0) == draw({"a": Choice((1, 2))}, 2, 0)
        True
    """
    if all(isinstance(values, Choice) for values in space.values()):
        every = grid(space)
        random.Random(f"burnbook sweep {seed}").shuffle(every)
        return every[:trials]
    return [
        {
            name: values.at(random.Random(f"{seed} {number} {name}").random())
            for name, values in space.items()
        }
        for number in range(trials)
    ]


def with_values(config: Any, values: Mapping[str, Any]) -> Any:
    """The config (a Config, a dataclass or a dict) with other values; dots lead inside.

    Example:
        >>> with_values({"optimizer": {"beta_1": 0.9}}, {"optimizer.beta_1": 0.8})
        {'optimizer': {'beta_1': 0.8}}
    """
    made = copy.copy(config)
    for name, value in values.items():
        made = _with(made, name.split("."), value, name)
    return made


def _with(config: Any, path: list[str], value: object, name: str) -> Any:
    head, *rest = path
    is_dict = isinstance(config, dict)
    known = config if is_dict else _fields(config)
    if head not in known:
        facts = [("fields", ", ".join(map(str, known)) or "none")]
        raise ConfigError("sweep", f"the config has no field {name!r}", facts)
    held = config[head] if is_dict else getattr(config, head)
    new = _with(held, rest, value, name) if rest else value
    return (
        {**config, head: new} if is_dict else dataclasses.replace(config, **{head: new})
    )


def _fields(config: Any) -> list[str]:
    if dataclasses.is_dataclass(config) and not isinstance(config, type):
        return [field.name for field in dataclasses.fields(config)]
    return []


def _check_ends(space: Any, fits: bool) -> None:
    if not fits:
        what = f"{space.low} and {space.high} are not the ends of a range"
        raise ConfigError(type(space).__name__, what, cure="the lower one first")
