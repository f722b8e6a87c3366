"""Small things that the layers share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burnbook.config import ConfigEnum, holding, unit
from burnbook.core.errors import ConfigError
from burnbook.tensor import Tensor

if TYPE_CHECKING:
    Pair = Sequence[int]  # what a config takes: [3, 3] as well as (3, 3)
    Triple = Sequence[int]
else:
    Pair = tuple[int, int]  # what it holds
    Triple = tuple[int, int, int]


class PaddingConfig1d(ConfigEnum):
    """How many zeros surround a line: Valid none, Explicit(l), or Same.

    Same: p = max(0, ⌈(stride · (size − 1) − size + kernel) / 2⌉) at both ends, so for
    an odd kernel the line keeps its length.
    """

    Same = unit()
    Valid = unit()
    Explicit = holding(int)

    def validate(self) -> None:
        """Refuse a padding below zero."""
        _not_below_zero(self)

    def calculate(
        self, size: tuple[int, ...], kernel: Sequence[int], stride: Sequence[int]
    ) -> tuple[int, ...]:
        """The zeros at each end, for lines of this length."""
        return _zeros(self, size, kernel, stride)


class PaddingConfig2d(ConfigEnum):
    """How many zeros surround an image: Valid none, Explicit(h, w), or Same.

    Same: p = max(0, ⌈(stride · (size − 1) − size + kernel) / 2⌉) on both sides, so for
    an odd kernel the image keeps its size.
    """

    Same = unit()
    Valid = unit()
    Explicit = holding(int, int)

    def validate(self) -> None:
        """Refuse a padding below zero."""
        _not_below_zero(self)

    def calculate(
        self, size: tuple[int, ...], kernel: Pair, stride: Pair
    ) -> tuple[int, ...]:
        """The zeros on each side, for images of this size."""
        return _zeros(self, size, kernel, stride)


class PaddingConfig3d(ConfigEnum):
    """How many zeros surround a volume: Valid none, Explicit(d, h, w), or Same.

    Same: p = max(0, ⌈(stride · (size − 1) − size + kernel) / 2⌉) on both sides, so for
    an odd kernel the volume keeps its size.
    """

    Same = unit()
    Valid = unit()
    Explicit = holding(int, int, int)

    def validate(self) -> None:
        """Refuse a padding below zero."""
        _not_below_zero(self)

    def calculate(
        self, size: tuple[int, ...], kernel: Triple, stride: Triple
    ) -> tuple[int, ...]:
        """The zeros on each side, for volumes of this size."""
        return _zeros(self, size, kernel, stride)


def at_least(config: Any, low: int, **sizes: Any) -> None:
    """Raise a ConfigError for the first of these numbers or pairs that is too small."""
    for name, value in sizes.items():
        smallest = min(value) if isinstance(value, (tuple, list)) else value
        if smallest < low:
            shown = list(value) if isinstance(value, tuple) else value
            raise ConfigError(
                type(config).__name__, f"{name} is {shown}, it must be at least {low}"
            )


def shown(**tensors: Tensor) -> list[tuple[str, str]]:
    """The tensors as errors show them, one line each: kind, shape, backend."""
    return [
        (name, f"{t.kind.__name__} {list(t.dims())}  on {t.backend!r}")
        for name, t in tensors.items()
    ]


def divide_into(groups: int, config: Any, channels: Sequence[int]) -> None:
    """Raise a ConfigError where the channels cannot be split into this many groups."""
    if any(count % groups for count in channels):
        raise ConfigError(
            type(config).__name__,
            f"{list(channels)} channels do not make {groups} groups",
            cure="groups that divide "
            + ("both numbers" if len(channels) > 1 else "the number")
            + " of channels",
        )


def _not_below_zero(padding: ConfigEnum) -> None:
    if padding.values and min(padding.values) < 0:
        raise ConfigError(repr(padding), f"a padding is {min(padding.values)}, below 0")


def _zeros(
    padding: ConfigEnum,
    size: tuple[int, ...],
    kernel: Sequence[int],
    stride: Sequence[int],
) -> tuple[int, ...]:
    if padding.variant == "Explicit":
        return padding.values
    if padding.variant == "Valid" or len(size) != len(kernel):  # the op explains those
        return (0,) * len(kernel)
    rows = zip(size, kernel, stride, strict=True)
    return tuple(max(0, -(-(s * (n - 1) - n + k) // 2)) for n, k, s in rows)
