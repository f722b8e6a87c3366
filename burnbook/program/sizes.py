"""Sizes that follow the batch size: `n`, `n*49`, `n*2 + 1`."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from burnbook.core.errors import ArgumentError


@dataclass(frozen=True)
class Dim:
    """A whole number that follows the batch size n: scale · n + offset.

    It stands in shapes and in attributes. is_float: it is used as a Python float.

    Example:
        >>> Dim(49), Dim(2, 1), Dim(49)(10)
        (n*49, n*2 + 1, 490)
    """

    scale: int
    offset: int = 0
    is_float: bool = False

    def __call__(self, n: int) -> int | float:
        """The number for a batch size."""
        size = self.scale * n + self.offset
        return float(size) if self.is_float else size

    def batch_of(self, size: int) -> int | None:
        """The batch size that gives this number, or None where none does."""
        n, rest = divmod(size - self.offset, self.scale)
        return None if rest or n < 0 else n

    def __str__(self) -> str:
        text = "n" if self.scale == 1 else f"n*{self.scale}"
        if self.offset:
            text += f" {'+' if self.offset > 0 else '-'} {abs(self.offset)}"
        return text

    __repr__ = __str__


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
