"""Small things that the layers share."""

import functools
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar

from burnbook.config import Config, ConfigEnum, holding, unit
from burnbook.core.errors import ConfigError
from burnbook.module import Module, Param
from burnbook.tensor import Tensor

if TYPE_CHECKING:
    Pair = Sequence[int]  # what a config takes: [3, 3] as well as (3, 3)
    Triple = Sequence[int]
else:
    Pair = tuple[int, int]  # what it holds
    Triple = tuple[int, int, int]

M = TypeVar("M", bound=Module | Config)


class _Padding(ConfigEnum):
    """What the paddings for lines, images and volumes do alike.

    rank: how many dims they surround.
    """

    rank: ClassVar[int]

    def validate(self) -> None:
        """Refuse a padding below zero."""
        if self.values and min(self.values) < 0:
            raise ConfigError(repr(self), f"a padding is {min(self.values)}, below 0")

    def values_in(self, release: tuple[int, ...]) -> tuple[int, ...]:
        """The values as a release has them: since 0.21 one for each side of a dim."""
        sides = self.variants[self.variant].form(2 * self.rank)
        if release >= (0, 21) and len(self.values) < len(sides):
            return self.values * 2
        return self.values

    @property
    def is_asymmetric(self) -> bool:
        """Whether the two ends of a dim have different paddings."""
        values, rank = self.values, self.rank
        return len(values) > rank and values[:rank] != values[rank:]

    def pairs(self) -> list[tuple[int, int]]:
        """The zeros before and behind each dim, of an Explicit padding."""
        first, last = self.values[: self.rank], self.values[-self.rank :]
        return list(zip(first, last, strict=True))

    def sides(
        self,
        size: Sequence[int],
        kernel: Sequence[int],
        stride: Sequence[int],
        dilation: Sequence[int],
    ) -> list[tuple[int, int]]:
        """The zeros before and behind each dim, for inputs of this size."""
        if self.variant == "Explicit":
            return self.pairs()
        if self.variant == "Valid" or len(size) != len(kernel):  # the op explains those
            return [(0, 0)] * len(kernel)
        if self.variant == "SymmetricSame":
            dilation = (1,) * len(kernel)
        rows = zip(size, kernel, stride, dilation, strict=True)
        needed = [max(0, s * (n - 1) - n + d * (k - 1) + 1) for n, k, s, d in rows]
        found = [(pad // 2, pad - pad // 2) for pad in needed]
        if self.variant == "SymmetricSame":
            return [(behind, behind) for _, behind in found]
        return [
            sides if step == 1 else (sides[1], sides[1])  # one more changes no size
            for sides, step in zip(found, stride, strict=True)
        ]

    def calculate(
        self,
        size: Sequence[int],
        kernel: Sequence[int],
        stride: Sequence[int],
        dilation: Sequence[int] | None = None,
    ) -> tuple[int, ...]:
        """The zeros at each end of every dim, for inputs of this size.

        Raises:
            ConfigError: the two ends differ; `sides` has both.
        """
        found = self.sides(size, kernel, stride, dilation or (1,) * len(kernel))
        if any(before != behind for before, behind in found):
            cure = f"x.pad({found}), and padding Valid"
            raise ConfigError(repr(self), "its two sides differ", cure=cure)
        return tuple(before for before, _ in found)


class PaddingConfig1d(_Padding):
    """How many zeros surround a line: Valid none, Explicit(l) at each end, or Same.

    Explicit(left, right) has a number for each end. Same keeps the length of the line,
    for every kernel and dilation: of the zeros that this needs, half are on each side,
    and one that is left over is behind, as in PyTorch and newer Burn.

    SymmetricSame is the Same of Burn 0.15: p = max(0, ⌈(stride · (size − 1) − size +
    kernel) / 2⌉) at both ends, so a line keeps its length for odd kernels without
    dilation only. It is for models that were trained so.
    """

    rank = 1

    Same = unit()
    Valid = unit()
    Explicit = holding(int).also(int, int)
    SymmetricSame = unit()


class PaddingConfig2d(_Padding):
    """How many zeros surround an image: Valid none, Explicit(h, w), or Same.

    Explicit(top, left, bottom, right) has a number for each side. Same keeps the size
    of the image, for every kernel and dilation: of the zeros that this needs, half are
    on each side, and one that is left over is below or right, as in PyTorch and newer
    Burn. SymmetricSame is the Same of Burn 0.15, see PaddingConfig1d.

    Example:
        >>> from burnbook import nn
        >>> from burnbook.tensor import Tensor
        >>> even = nn.Conv2dConfig([1, 1], [2, 4]).with_padding(PaddingConfig2d.Same)
        >>> x = Tensor.zeros([1, 1, 12, 12])
        >>> even.init(x.device()).forward(x).dims()
        (1, 1, 12, 12)
    """

    rank = 2

    Same = unit()
    Valid = unit()
    Explicit = holding(int, int).also(int, int, int, int)
    SymmetricSame = unit()


class PaddingConfig3d(_Padding):
    """How many zeros surround a volume: Valid none, Explicit(d, h, w), or Same.

    Same keeps the size of the volume, for every kernel and dilation; a zero that is
    left over is behind, below or right, as in PyTorch and newer Burn. SymmetricSame is
    the Same of Burn 0.15, see PaddingConfig1d.
    """

    rank = 3

    Same = unit()
    Valid = unit()
    Explicit = holding(int, int, int)
    SymmetricSame = unit()


class Windowed(Protocol):
    """A layer that moves a window over its input; sizes are one number for lines."""

    kernel_size: Any
    stride: Any
    padding: Any


def sizes_of(size: int | Sequence[int]) -> Sequence[int]:
    """The sizes of a window for each dim; a layer for lines has a number."""
    return (size,) if isinstance(size, int) else size


def padded(
    layer: Windowed, x: Tensor, value: float = 0.0
) -> tuple[Tensor, tuple[int, ...]]:
    """The input [n, c, ...] of a layer, and what its op pads, a number for each dim.

    Where the two sides of a padding differ, or are more than half of a window that may
    reach beyond them, the input has it already and the op has none. value: what is
    around it then.
    """
    padding = layer.padding
    if padding.variant == "Valid" or not isinstance(x, Tensor):  # the op explains it
        return x, (0,) * padding.rank
    around, alike = sides_around(layer, x)
    if alike:
        return x, alike
    fits = x.rank == padding.rank + 2  # else the op explains it
    return (x.pad(around, value) if fits else x), (0,) * padding.rank


def sides_around(
    layer: Windowed, x: Tensor
) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    """What a layer pads before and behind each dim of x [n, c, ...].

    Then the same as a number for each dim, where an op can pad so, else nothing.
    """
    kernel, stride = layer.kernel_size, layer.stride
    dilation = getattr(layer, "dilation", None)
    if list in map(type, (kernel, stride, dilation)):
        kernel, stride = tuple(sizes_of(kernel)), tuple(sizes_of(stride))
        dilation = None if dilation is None else tuple(sizes_of(dilation))
    ceil_mode = getattr(layer, "ceil_mode", False)
    return _around(
        layer.padding, x.value.shape[2:], kernel, stride, dilation, ceil_mode
    )


@functools.lru_cache(1024)  # it is the same for every batch
def _around(
    padding: _Padding,
    size: tuple[int, ...],
    kernel: Any,
    stride: Any,
    dilation: Any,
    ceil_mode: bool,
) -> tuple[list[tuple[int, int]], tuple[int, ...]]:
    kernel = sizes_of(kernel)
    dilation = (1,) * len(kernel) if dilation is None else sizes_of(dilation)
    around = padding.sides(size, kernel, sizes_of(stride), dilation)
    first = tuple(before for before, _ in around)
    wide = any(2 * p > k for p, k in zip(first, kernel, strict=False))
    if any(before != behind for before, behind in around) or (ceil_mode and wide):
        return around, ()
    return around, first


def without_end(layer: Windowed, x: Tensor, out: Tensor) -> Tensor:
    """The output without a last window that begins in the padding at the end of x.

    Why: so `ceil_mode` has it, and the op does it for paddings that it knows of.
    """
    kernel = sizes_of(layer.kernel_size)
    dilation = sizes_of(getattr(layer, "dilation", (1,) * len(kernel)))
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    rows = zip(sides_around(layer, x)[0], sizes_of(layer.stride), reach, strict=True)
    for dim, ((before, behind), stride, r) in enumerate(rows, 2):
        inside = x.dims()[dim] + before
        count = -(-(inside + behind - r - 1) // stride) + 1
        count -= count > 1 and (count - 1) * stride >= inside
        if out.dims()[dim] > count:
            out = out.narrow(dim, 0, count)
    return out


def build(made: type[M], config: Config, **parts: object) -> M:
    """A layer, or another config, from `parts` and from the fields of a config.

    Every field of `made` that `parts` leaves out has the value of the config's field of
    the same name.
    """
    names = {field.name for field in fields(config)} - parts.keys()  # type: ignore[arg-type] # a dataclass
    wanted = [field.name for field in fields(made) if field.name in names]  # type: ignore[arg-type] # a dataclass
    return made(**parts, **{name: getattr(config, name) for name in wanted})


def tensor_of(param: Param | None) -> Tensor | None:
    """The tensor of a parameter that may be missing."""
    return None if param is None else param.val()


def at_least(config: Config, low: int, *names: str) -> None:
    """Raise a ConfigError for the first of these fields that is too small.

    A field holds a number, numbers for each dim, or None, which is not checked.
    """
    for name in names:
        value = getattr(config, name)
        if value is None:
            continue
        smallest = min(value) if isinstance(value, tuple) else value
        if not smallest >= low:
            shown = list(value) if isinstance(value, tuple) else value
            what = f"{name} is {shown}, it must be at least {low}"
            raise ConfigError(type(config).__name__, what)


def above_zero(config: Config, name: str, cure: str | None = None) -> None:
    """Raise a ConfigError for a field that is not above 0."""
    if not getattr(config, name) > 0:
        what = f"{name} is {getattr(config, name)}, it must be above 0"
        raise ConfigError(type(config).__name__, what, cure=cure)


def from_zero_to_one(config: Config, name: str) -> None:
    """Raise a ConfigError for a field outside [0, 1]; None is not checked."""
    value = getattr(config, name)
    if value is not None and not 0.0 <= value <= 1.0:
        what = f"{name} is {value}, not between 0 and 1"
        share = f"{name}={value / 100:g}" if 2.0 <= value <= 100.0 else None
        raise ConfigError(type(config).__name__, what, cure=share)


def divide_into(groups: int, config: Config, channels: Sequence[int]) -> None:
    """Raise a ConfigError where the channels cannot be split into this many groups."""
    if any(count % groups for count in channels):
        raise ConfigError(
            type(config).__name__,
            f"{' and '.join(map(str, channels))} channels do not make {groups} groups",
            cure="groups that divide "
            + ("both numbers" if len(channels) > 1 else "the number")
            + " of channels",
        )
