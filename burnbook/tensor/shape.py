"""The sizes of a tensor, one per dim.

A Shape is a tuple, so it unpacks, compares and indexes like one; it only adds Burn's
three words for what one asks a shape.
"""

import math
from collections.abc import Iterable
from math import prod
from operator import index
from typing import Self

from burnbook.core.errors import ArgumentError, ShapeError


class Sizes(tuple[int, ...]):
    """Sizes as a tuple that equals a list of the same numbers, too."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return tuple.__ne__(self, tuple(other) if isinstance(other, list) else other)

    __hash__ = tuple.__hash__


class Shape(Sizes):
    """The sizes of a tensor, one whole number per dim.

    Example:
        >>> shape = Shape([2, 3])
        >>> shape, shape.num_elements(), shape.num_dims()
        ((2, 3), 6, 2)
        >>> print(shape)
        Shape { dims: [2, 3] }
    """

    __slots__ = ()

    def __new__(cls, dims: Iterable[int] = ()) -> Self:
        """Check every size; `Shape.of` takes sizes that are known to be right."""
        return tuple.__new__(cls, check_dims("Shape", dims))

    @classmethod
    def of(cls, dims: tuple[int, ...]) -> Self:
        """Wrap sizes that come from an array, unchecked."""
        return tuple.__new__(cls, dims)

    def __call__(self) -> Self:
        """The shape itself: `tensor.shape()` is how Burn asks for it."""
        return self

    @property
    def dims(self) -> tuple[int, ...]:
        """The sizes as a plain tuple, which equals a list as well."""
        return Sizes(self)

    def num_elements(self) -> int:
        """How many elements: Πᵢ dimsᵢ, and 1 when there is no dim."""
        return prod(self)

    def num_dims(self) -> int:
        """How many dims: the rank."""
        return len(self)

    def __str__(self) -> str:
        return f"Shape {{ dims: {list(self)} }}"


def check_dims(where: str, dims: object) -> tuple[int, ...]:
    """Read sizes as whole numbers ≥ 0, or say which one is not."""
    if isinstance(dims, Shape):
        return tuple(dims)
    try:
        sizes = tuple(index(size) for size in dims)  # type: ignore[attr-defined] # tried
    except TypeError:
        raise ShapeError(
            where,
            f"{dims!r} is not a list of whole numbers",
            cure="one size per dim, as in [2, 3]",
        ) from None
    for position, size in enumerate(sizes):
        if size < 0:
            raise ShapeError(
                where,
                f"the size of dim {position} is {size}, below 0",
                [("shape", str(list(sizes)))],
            )
    return sizes


def per_dim(
    where: str, name: str, given: object, dims: int, low: int = 1
) -> tuple[int, ...]:
    """One whole number for each of some dims, from those or from one for all.

    Example:
        >>> per_dim("max_pool2d", "kernel_size", 3, 2)
        (3, 3)

    low: the smallest number that makes sense, for the cure. What is too small, or does
    not fit an image, is for the op to say.

    Raises:
        ArgumentError: these are no whole numbers.
        ShapeError: they are more or fewer than the dims.
    """
    if type(given) is int:  # hot
        return (given,) * dims
    try:
        sizes = tuple([index(size) for size in given])  # type: ignore[attr-defined] # tried
    except TypeError:
        if _is_whole(given):
            return (index(given),) * dims  # type: ignore[arg-type] # it has an index
        what = (
            f"{name} is {given!r}, not a whole number, or one for each of {dims} dims"
        )
        raise ArgumentError(where, what, cure=_sizes_meant(name, given, low)) from None
    if len(sizes) != dims:
        what = f"{name} {list(sizes)} must have one number for each of {dims} dims"
        cure = f"{name}={sizes[0]}" if len(set(sizes)) == 1 else None
        raise ShapeError(where, what, cure=cure)
    return sizes


def _is_whole(given: object) -> bool:
    """Whether this is one whole number, as NumPy's are too; a truth value is none."""
    try:
        return not isinstance(given, bool) and index(given) is not None  # type: ignore[arg-type] # tried
    except TypeError:
        return False


def _sizes_meant(name: str, given: object, low: int) -> str:
    """Sizes that would do, near to those given."""
    if isinstance(given, (float, bool)) and math.isfinite(given):
        return f"{name}={max(int(given), low)}"
    if name == "output_size" and given is None:
        return "output_size=x.dims()[2:], which keeps the size"
    if name == "output_size" and isinstance(given, (list, tuple)):
        kept = [f"x.dims()[{2 + d}]" if n is None else n for d, n in enumerate(given)]
        return f"output_size=[{', '.join(map(str, kept))}]"
    if isinstance(given, str) and given == "same":
        return "padding=dilation * (kernel - 1) // 2 for an odd kernel"
    return f"{name}={low}"
