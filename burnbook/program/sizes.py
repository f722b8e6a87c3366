"""Sizes that follow the batch size: `n`, `n*49`, `n*2 + 1`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import copysign, inf, isclose, isfinite, nan, sqrt
from typing import Any

from burnbook.core.errors import ArgumentError

#: The powers of scale · n + offset that a number may be, as text.
POWERS = {
    1: "{}",
    -1: "1 / {}",
    0.5: "sqrt({})",
    -0.5: "1 / sqrt({})",
    2: "{0} * {0}",
    -2: "1 / ({0} * {0})",
}


@dataclass(frozen=True)
class Dim:
    """A number that follows the batch size n: factor · (scale · n + offset) ** power.

    It stands in shapes, where factor and power are 1, and in attributes. is_float: it
    is used as a Python float, as all with another factor or power. power: of `POWERS`.

    Example:
        >>> Dim(49), Dim(2, 1), Dim(49)(10)
        (n*49, n*2 + 1, 490)
        >>> Dim(1, -1, True, -0.5), Dim(1, -1, True, -0.5)(5)
        (1 / sqrt(n - 1), 0.5)
    """

    scale: int
    offset: int = 0
    is_float: bool = False
    power: float = 1
    factor: float = 1

    def __call__(self, n: int) -> int | float:
        """The number for a batch size."""
        size = self.scale * n + self.offset
        if self.power == self.factor == 1:
            return float(size) if self.is_float else size
        made = _to_the(size, abs(self.power))
        if self.power > 0:
            return self.factor * made
        return self.factor / made if made else copysign(inf, self.factor)

    def batch_of(self, size: int) -> int | None:
        """The batch size that gives this number, or None where none does."""
        n, rest = divmod(size - self.offset, self.scale)
        return None if rest or n < 0 else n

    def __str__(self) -> str:
        text = "n" if self.scale == 1 else f"n*{self.scale}"
        if self.offset:
            text += f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}"
        if self.power == self.factor == 1:
            return text
        is_inside = text == "n" or abs(self.power) == 0.5
        text = POWERS[self.power].format(text if is_inside else f"({text})")
        if self.factor == 1:
            return text
        is_below = text.startswith("1 / ")
        return f"{self.factor:g}{text[1:]}" if is_below else f"{self.factor:g} * {text}"

    __repr__ = __str__


def _to_the(size: int, power: float) -> float:
    """A number to the power of 0.5, 1 or 2."""
    if power == 0.5:
        return nan if size < 0 else sqrt(size)
    made = float(size)
    return made * made if power == 2 else made


class Key(tuple[int, int]):
    """A key of random numbers that was handed out in a capture; number: in its order.

    It stands in attributes, as a whole: its two numbers are other ones in each run.
    """

    number: int

    def __new__(cls, pair: tuple[int, int], number: int) -> "Key":
        """A pair of numbers with its place in the order of keys."""
        made = super().__new__(cls, pair)
        made.number = number
        return made


Size = int | Dim
Shape = tuple[Size, ...]


def fitted(sizes: tuple[int, ...], numbers: tuple[Any, ...]) -> Dim | None:
    """The Dim that gives these numbers at these batch sizes, or None."""
    (n, m), (x, y) = sizes[:2], numbers[:2]
    if n == m:
        return None
    if all(isinstance(number, float) for number in numbers):
        return _fitted_floats(sizes, numbers)
    scale, rest = divmod(y - x, m - n)
    if rest or scale != int(scale):
        return None
    offset = x - scale * n
    if offset != int(offset):
        return None
    is_float = any(isinstance(number, float) for number in numbers)
    dim = Dim(int(scale), int(offset), is_float)
    matches = all(dim(n) == number for n, number in zip(sizes, numbers, strict=True))
    return dim if matches else None


def _fitted_floats(sizes: tuple[int, ...], numbers: tuple[float, ...]) -> Dim | None:
    """The Dim of some floats: of the first power, or of one of the others."""
    for power in POWERS:
        found = _of_power(sizes, numbers, power)
        if found is not None:
            return found
    return None


def _of_power(
    sizes: tuple[int, ...], numbers: tuple[float, ...], power: float
) -> Dim | None:
    """The Dim of a power that gives these numbers, exactly if there is one."""
    pairs = list(zip(sizes, numbers, strict=True))
    for scale, offset in _sums(*pairs[0], *pairs[1], power):
        close: list[Dim] = []
        for dim in _factors(Dim(scale, offset, True, power), pairs):
            made = [dim(n) for n in sizes]
            if made == list(numbers):
                return dim
            if all(map(_are_close, made, numbers)):
                close.append(dim)
        if close:
            return close[0]
    return None


def _are_close(a: float, b: float) -> bool:
    return isclose(a, b, rel_tol=1e-12)


def _sums(n: int, x: float, m: int, y: float, power: float) -> list[tuple[int, int]]:
    """The scale · n + offset in whole numbers whose power may be a multiple of both."""
    try:
        first, second = abs(x) ** (1 / power), abs(y) ** (1 / power)
        if (x < 0) != (y < 0):
            second = -second
        scale = (second - first) / (m - n)
        offset = first - scale * n
        found: list[tuple[int, int]] = []
        sign = -1 if scale < 0 and abs(power) == 0.5 else 1  # of what has a root
        for times in (scale, *[sign * times for times in range(1, MOST_TIMES)]):
            one = scale / times
            sums = round(times), round(offset / one)
            error = abs(offset / one - sums[1])
            if (
                _is_whole(times)
                and error < 1e-9 * max(1.0, abs(first / one), abs(offset / one))
                and abs(sums[1]) < MOST_OFFSET * abs(sums[0])
            ):
                found.append(sums)
    except (ArithmeticError, ValueError):  # there is no such root
        return []
    return found


def _factors(dim: Dim, pairs: list[tuple[int, float]]) -> list[Dim]:
    """The same with factors that fit a number; those of few digits come first."""
    found: dict[float, None] = {}
    for n, number in pairs:
        made = dim(n)
        if made and isfinite(made) and isfinite(number):
            exact = number / made if dim.power > 0 else number * _inverse(dim)(n)
            found |= dict.fromkeys((float(f"{exact:.15g}"), exact))
    return [replace(dim, factor=factor) for factor in found if factor]


def _inverse(dim: Dim) -> Dim:
    return replace(dim, power=-dim.power)


def _is_whole(number: float) -> bool:
    """Whether a number other than zero is whole, up to rounding."""
    error = abs(number - round(number))
    return bool(round(number)) and error < 1e-9 * max(1.0, abs(number))


MOST_OFFSET = 1e6  # times n: what is added to it hides it beyond
MOST_TIMES = 65  # n is multiplied by less in a number that has a factor as well


def mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value of an attribute or input with every leaf changed.

    Lists, tuples, dicts and slices have parts; everything else is a leaf.
    """
    if isinstance(value, tuple) and type(value) is not Key:
        parts = [mapped(part, change) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if type(value) is list:
        return [mapped(part, change) for part in value]
    if type(value) is dict:
        return {name: mapped(part, change) for name, part in value.items()}
    if type(value) is slice:
        return slice(
            *[mapped(v, change) for v in (value.start, value.stop, value.step)]
        )
    return change(value)


def leaves(value: Any) -> list[Any]:
    """The leaves of such a value, in order."""
    found: list[Any] = []
    mapped(value, found.append)
    return found


def resolved(value: Any, n: int | None) -> Any:
    """A shape or attribute with every Dim as the number that it is for a batch of n."""
    return mapped(value, lambda leaf: at(leaf, n) if type(leaf) is Dim else leaf)


def at(dim: Dim, n: int | None) -> int | float:
    """The number that a Dim is for a batch of n, which must be known."""
    if n is None:
        cure = "resolved(…, n) with the batch size n"
        raise ArgumentError("resolved", f"{dim} is no number without n", cure=cure)
    return dim(n)


def size_text(value: Any) -> str:
    """A shape as text: "[n, 784]"."""
    return f"[{', '.join(map(str, value))}]"
