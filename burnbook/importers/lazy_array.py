"""LazyArray: a named array in a file, whose elements are read when they are asked for.

Shape and element type are known at once; turning, cutting and casting wait as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from burnbook.core.dtypes import Bool, Float, Int, Kind
from burnbook.core.files import printable
from burnbook.tensor.data import TensorData

FLOATS = ("f16", "bf16", "f32", "f64")
#: The numbers of these have no element type here: they come as f32, exactly.
FLOAT8 = ("f8_e4m3fn", "f8_e5m2", "f8_e4m3fnuz", "f8_e5m2fnuz", "f8_e8m0fnu")


@dataclass(frozen=True, repr=False)
class LazyArray:
    """A named array of this shape and element type; `load()` reads the elements.

    name: what the file, or the key remap, calls it.
    shape: the sizes.
    dtype: the element type in the file: f16, bf16, f32, f64, i8 to i64, u8 to u64,
        bool, or a float8 kind such as f8_e4m3fn.
    read: gives the elements, as f32 where dtype is a float8 kind.

    Example:
        >>> data = TensorData([[1.0, 2.0], [3.0, 4.0]])
        >>> array = LazyArray.of("fc.weight", data)
        >>> array, array.turned().load().to_list()
        (LazyArray(fc.weight: f32 [2, 2]), [[1.0, 3.0], [2.0, 4.0]])
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], TensorData]

    @classmethod
    def of(cls, name: str, data: TensorData) -> LazyArray:
        """The array of data that exist already."""
        return cls(name, tuple(data.shape), data.dtype, lambda: data)

    @property
    def kind(self) -> Kind:
        """Float, Int or Bool."""
        if self.dtype == "bool":
            return Bool
        return Float if self.dtype in (*FLOATS, *FLOAT8) else Int

    def load(self) -> TensorData:
        """The elements.

        Raises:
            RecordError: the file is damaged there, or has changed since it was opened.
        """
        return self.read()

    def turned(self) -> LazyArray:
        """The matrix the other way round: [n, m] for [m, n]."""

        def read() -> TensorData:
            data = self.read()
            return TensorData.of(np.ascontiguousarray(data.array.T), data.dtype)

        return replace(self, shape=self.shape[::-1], read=read)

    def part(self, place: int, count: int) -> LazyArray:
        """One of `count` equal parts along the first dim, counted from 0."""
        size = self.shape[0] // count

        def read() -> TensorData:
            data = self.read()
            rows = data.array[place * size : (place + 1) * size]
            return TensorData.of(np.ascontiguousarray(rows), data.dtype)

        return replace(self, shape=(size, *self.shape[1:]), read=read)

    def cast(self, dtype: str) -> LazyArray:
        """The same numbers in another float type; other kinds stay as they are."""
        if self.kind is not Float or self.dtype == dtype:
            return self
        return replace(self, dtype=dtype, read=lambda: self.read().convert(dtype))

    def __repr__(self) -> str:
        return f"LazyArray({printable(self.name)}: {self.dtype} {list(self.shape)})"


def joined(name: str, parts: Sequence[LazyArray]) -> LazyArray:
    """Arrays one below the other, along the first dim."""
    first = parts[0]
    if len(parts) == 1:
        return replace(first, name=name)

    def read() -> TensorData:
        loaded = [part.load() for part in parts]
        rows = np.concatenate([data.array for data in loaded])
        return TensorData.of(rows, loaded[0].dtype)

    rows = sum(part.shape[0] for part in parts)
    return LazyArray(name, (rows, *first.shape[1:]), first.dtype, read)


def zeros_like(array: LazyArray) -> LazyArray:
    """Zeros of the same shape and element type."""
    shape, dtype = array.shape, array.dtype
    return replace(array, read=lambda: TensorData.zeros(shape, dtype))
