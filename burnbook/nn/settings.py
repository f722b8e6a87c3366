"""Building blocks · Module. Small things that the layers share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burnbook.config import ConfigEnum, holding, unit
from burnbook.errors import ConfigError
from burnbook.module import DisplaySettings

if TYPE_CHECKING:
    Pair = Sequence[int]  # what a config takes: [3, 3] as well as (3, 3)
else:
    Pair = tuple[int, int]  # what it holds

#: How layers print: on one line, whatever is around them.
ONE_LINE = DisplaySettings().with_new_line_after_attribute(False)


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
        if self.values and min(self.values) < 0:
            raise ConfigError(repr(self), f"a padding is {min(self.values)}, below 0")

    def calculate(
        self, size: tuple[int, ...], kernel: Pair, stride: Pair
    ) -> tuple[int, int]:
        """The zeros on each side, for images of this size."""
        if self.variant == "Explicit":
            return self.values[0], self.values[1]
        if self.variant == "Valid" or len(size) < 2:  # the op explains other ranks
            return 0, 0
        return (
            _same(size[0], kernel[0], stride[0]),
            _same(size[1], kernel[1], stride[1]),
        )


def at_least(config: Any, low: int, **sizes: Any) -> None:
    """Raise a ConfigError for the first of these numbers or pairs that is too small."""
    for name, value in sizes.items():
        smallest = min(value) if isinstance(value, (tuple, list)) else value
        if smallest < low:
            shown = list(value) if isinstance(value, tuple) else value
            raise ConfigError(
                type(config).__name__, f"{name} is {shown}, it must be at least {low}"
            )


def _same(size: int, kernel: int, stride: int) -> int:
    return max(0, -(-(stride * (size - 1) - size + kernel) // 2))
