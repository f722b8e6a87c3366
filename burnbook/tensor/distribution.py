"""What random elements look like: four distributions.

A distribution is a description and draws nothing by itself: `Tensor.random` reads its
fields, and the backend's random stream gives the numbers.
"""

from dataclasses import dataclass
from math import isfinite
from typing import ClassVar

from burnbook.core.errors import ConfigError


class Distribution:
    """How random elements are spread; one of the four below.

    Example:
        >>> Distribution.Uniform(-1.0, 1.0)
        Distribution.Uniform(-1.0, 1.0)
        >>> Distribution.Default
        Distribution.Default
    """

    __slots__ = ()

    Default: ClassVar["Distribution"]
    Bernoulli: ClassVar[type["Bernoulli"]]
    Uniform: ClassVar[type["Uniform"]]
    Normal: ClassVar[type["Normal"]]


@dataclass(frozen=True, slots=True, repr=False)
class Default(Distribution):
    """Float: uniform in [0, 1). Int: uniform in [0, 255)."""

    def __repr__(self) -> str:
        return "Distribution.Default"


@dataclass(frozen=True, slots=True, repr=False)
class Bernoulli(Distribution):
    """1 with probability `prob`, else 0."""

    prob: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.prob <= 1.0:
            raise ConfigError(
                "Distribution.Bernoulli",
                f"the probability is {self.prob}",
                cure="a number from 0 to 1",
            )

    def __repr__(self) -> str:
        return f"Distribution.Bernoulli({self.prob})"


@dataclass(frozen=True, slots=True, repr=False)
class Uniform(Distribution):
    """Every number of [low, high) alike; for Int, whole numbers of [low, high)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            raise ConfigError(
                "Distribution.Uniform",
                f"low {self.low} is not below high {self.high}",
                cure="two finite numbers, low < high",
            )

    def __repr__(self) -> str:
        return f"Distribution.Uniform({self.low}, {self.high})"


@dataclass(frozen=True, slots=True, repr=False)
class Normal(Distribution):
    """Gauss's bell with center `mean` and width `std`; for Int, cut toward zero."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (isfinite(self.mean) and isfinite(self.std) and self.std >= 0):
            raise ConfigError(
                "Distribution.Normal",
                f"mean {self.mean} and std {self.std} make no bell",
                cure="two finite numbers, std ≥ 0",
            )

    def __repr__(self) -> str:
        return f"Distribution.Normal({self.mean}, {self.std})"


Distribution.Default = Default()
Distribution.Bernoulli = Bernoulli
Distribution.Uniform = Uniform
Distribution.Normal = Normal
