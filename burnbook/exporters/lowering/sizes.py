"""Sums and products of sizes, of which some follow the batch."""

from __future__ import annotations

from collections.abc import Iterable

from burnbook.exporters.forms import NoForm
from burnbook.program import Shape, Size
from burnbook.program.sizes import Dim


def plus(x: Size, y: Size) -> Size:
    """x + y.

    Example:
        >>> plus(Dim(2), 3), plus(Dim(1, 1), Dim(-1))
        (n*2 + 3, 1)
    """
    (a, b), (c, d) = _parts(x), _parts(y)
    return _size(a + c, b + d)


def times(x: Size, y: Size) -> Size:
    """x · y, of which one may follow the batch.

    Example:
        >>> times(Dim(2, 1), 3)
        n*6 + 3
    """
    (a, b), (c, d) = _parts(x), _parts(y)
    if a and c:
        raise NoForm("it grows with the square of the batch")
    return _size(a * d + b * c, b * d)


def product(sizes: Iterable[Size]) -> Size:
    """All sizes multiplied: the elements of a shape."""
    found: Size = 1
    for size in sizes:
        found = times(found, size)
    return found


def strides_of(shape: Shape) -> Shape:
    """The steps of a shape whose elements lie one behind the other.

    Example:
        >>> strides_of((Dim(1), 3, 4))
        (12, 4, 1)
    """
    found: list[Size] = []
    step: Size = 1
    for i, size in enumerate(reversed(shape)):
        found.append(step)
        if i + 1 < len(shape):
            step = times(step, size)
    return tuple(reversed(found))


def fixed(size: Size, what: str) -> int:
    """A size that must not follow the batch."""
    if isinstance(size, Dim):
        raise NoForm(f"{what} follows the batch")
    return int(size)


def size_at(size: Size, n: int) -> int:
    """A size as a number, for a batch of n.

    Example:
        >>> size_at(Dim(2, 1), 3), size_at(5, 3)
        (7, 5)
    """
    scale, offset = _parts(size)
    return scale * n + offset


def float_text(dim: Dim, base: str, factor: str, sqrt: str) -> str:
    """A float that follows the batch, in a language as C, in brackets.

    base, factor: the text of its size, and of its factor. sqrt: the root's name there.

    Example:
        >>> float_text(Dim(1, -1, True, -0.5, 3.0), "n - 1", "3.0", "sqrt")
        '(3.0 / sqrt(n - 1))'
    """
    text = f"({base})" if " " in base else base
    if abs(dim.power) == 0.5:
        text = f"{sqrt}({base})"
    if abs(dim.power) == 2:
        text = f"({text} * {text})"
    if dim.power < 0:
        return f"({factor} / {text})"
    return text if dim.factor == 1 else f"({factor} * {text})"


def largest(sizes: Iterable[Size]) -> list[Size]:
    """Those sizes of which one is the largest, whatever the batch is.

    Example:
        >>> largest([Dim(2), 5, Dim(3), 4])
        [n*3, 5]
    """
    found: list[Size] = []
    for size in sorted(set(map(_parts, sizes)), reverse=True):
        a, b = size
        if not any(c >= a and d + c >= b + a for c, d in map(_parts, found)):
            found.append(_size(a, b))
    return found


def _parts(size: Size) -> tuple[int, int]:
    if isinstance(size, Dim):
        return size.scale, size.offset
    return 0, int(size)


def _size(scale: int, offset: int) -> Size:
    return Dim(scale, offset) if scale else offset
