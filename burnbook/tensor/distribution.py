"""What random elements look like: four distributions.

A distribution is a description and draws nothing by itself: `Tensor.random` reads its
fields, and the backend's random stream gives the numbers.
"""

from dataclasses import astuple, dataclass
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

    def __repr__(self) -> str:
        numbers = ", ".join(map(str, astuple(self)))  # type: ignore[call-overload] # below
        return f"Distribution.{type(self).__name__}({numbers})"

    def _refuse(self, what: str, cure: str) -> None:
        raise ConfigError(f"Distribution.{type(self).__name__}", what, cure=cure)


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
            self._refuse(f"the probability is {self.prob}", "a number from 0 to 1")


@dataclass(frozen=True, slots=True, repr=False)
class Uniform(Distribution):
    """Every number of [low, high) alike; for Int, whole numbers of [low, high)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not (isfinite(self.low) and isfinite(self.high) and self.low < self.high):
            self._refuse(
                f"low {self.low} is not below high {self.high}",
                "two finite numbers, low < high",
            )


@dataclass(frozen=True, slots=True, repr=False)
class Normal(Distribution):
    """The normal distribution with `mean` and `std`; for Int, cut toward zero."""

    mean: float
    std: float

    def __post_init__(self) -> None:
        if not (isfinite(self.mean) and isfinite(self.std) and self.std >= 0):
            self._refuse(
                f"mean {self.mean} and std {self.std} make no normal distribution",
                "two finite numbers, std ≥ 0",
            )


Distribution.Default = Default()
Distribution.Bernoulli = Bernoulli
Distribution.Uniform = Uniform
Distribution.Normal = Normal
