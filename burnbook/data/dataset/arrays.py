"""Columns that stand side by side, and anything with a length and items by number.

Both hold what they are given: nothing is copied, and a row is read when it is asked
for.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from burnbook.core.errors import DataError
from burnbook.data.dataset.base import Dataset, no_item, no_number, size_of
from burnbook.data.formats.arrays import is_array, rows_of_array
from burnbook.data.formats.frames import (
    column_library,
    column_names,
    frame_library,
    frame_of,
    one_column,
)

Item = TypeVar("Item")
Take = Callable[[Sequence[int]], list[Any]]


class ArrayDataset(Dataset[Any]):
    """Row i of every column: of one column the row itself, of several a tuple.

    Columns given by name make dicts. A column is an array or a tensor of any library,
    a list, a column or a table of pandas, Polars or Arrow, or a dataset. Rows of arrays
    are read-only views; tensors come as NumPy's arrays.

    Example:
        >>> import numpy as np
        >>> x, y = np.array([[1.0, 2.0], [3.0, 4.0]]), [0, 1]
        >>> ArrayDataset(x, y).get(1)
        (array([3., 4.]), 1)
        >>> ArrayDataset(image=x, label=y).get(0)
        {'image': array([1., 2.]), 'label': 0}

    Raises:
        DataError: there is no column, one has no rows, or their lengths differ.
    """

    def __init__(self, *columns: Any, **named: Any) -> None:
        if bool(columns) == bool(named):
            what = "columns are given by place or by name"
            cure = "ArrayDataset(x, y), or ArrayDataset(image=x, label=y)"
            raise DataError("ArrayDataset", what, cure=cure)
        self._start(columns or named, None)

    @classmethod
    def of(cls, columns: Mapping[Any, Any] | tuple[Any, ...]) -> ArrayDataset:
        """Make it from a tuple or a dict of columns; rows are of the same form.

        Example:
            >>> ArrayDataset.of(([5, 6], ["a", "b"])).get(0)
            (5, 'a')
        """
        made = cls.__new__(cls)
        form = getattr(columns, "_make", tuple)  # of a NamedTuple, its own
        made._start(columns, None if isinstance(columns, Mapping) else form)
        return made

    def _start(self, columns: Any, form: Any) -> None:
        """Hold the columns; `form` makes a row of several values."""
        is_named = isinstance(columns, Mapping)
        values: list[Any] = list(columns.values() if is_named else columns)
        names: list[Any] = list(columns if is_named else range(len(values)))
        if not values:
            raise DataError("ArrayDataset", "there is no column")
        self.columns: Any = dict(columns) if is_named else columns
        self._form = form
        self._names = names if is_named else None
        counts: list[int] = []
        self._takes: list[Take] = []
        arrays = [_of_numbers(value) for value in values]
        self._arrays = None if any(a is None for a in arrays) else arrays
        for name, value in zip(names, values, strict=True):
            count, take = _reader(name, value)
            counts.append(count)
            self._takes.append(take)
        if len(set(counts)) > 1:
            many = [(str(n), f"{c:,} rows") for n, c in zip(names, counts, strict=True)]
            what = "the columns have different lengths"
            cure = "columns of one length; single items stand in a list: [a, b]"
            raise DataError("ArrayDataset", what, many, cure)
        self._count = counts[0]

    def get(self, index: int) -> Any:
        """Return row `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        return self._rows([index])[0] if 0 <= index < self._count else None

    def get_many(self, indices: Sequence[int]) -> list[Any]:
        """Return several rows, each column asked once."""
        for index in indices:
            if not 0 <= index < self._count:
                raise no_item(self, index)
        rows = self._rows(indices)
        for index, row in zip(indices, rows, strict=True):
            if row is None:
                raise no_item(self, index)
        return rows

    def get_stacked(self, indices: Sequence[int]) -> Any:
        """Return the rows of every column as one array; None unless all are NumPy's.

        Example:
            >>> import numpy as np
            >>> x, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([0, 1])
            >>> ArrayDataset(x, y).get_stacked([1, 0])
            (array([[3., 4.],
                   [1., 2.]]), array([1, 0]))
        """
        if self._arrays is None:
            return None
        at = np.asarray(indices, dtype=np.intp)
        for index in at[(at < 0) | (at >= self._count)]:
            raise no_item(self, int(index))
        parts = [array.take(at, axis=0) for array in self._arrays]
        if self._names is not None:
            return dict(zip(self._names, parts, strict=True))
        if self._form is None and len(parts) == 1:
            return parts[0]
        return (self._form or tuple)(parts)

    def _rows(self, indices: Sequence[int]) -> list[Any]:
        parts = [take(indices) for take in self._takes]
        if self._names is not None:
            names = self._names
            return [
                dict(zip(names, row, strict=True)) for row in zip(*parts, strict=True)
            ]
        if self._form is None and len(parts) == 1:
            return parts[0]
        return list(map(self._form or tuple, zip(*parts, strict=True)))

    def at_epoch(self, epoch: int) -> Dataset[Any]:
        """Return the columns as they are in that epoch, where one draws anew."""
        parts = self.columns.values() if self._names is not None else self.columns
        anew = [p.at_epoch(epoch) if isinstance(p, Dataset) else p for p in parts]
        if all(a is b for a, b in zip(anew, parts, strict=True)):
            return self
        made = type(self).__new__(type(self))
        named = dict(zip(self._names or (), anew, strict=False))
        made._start(named or tuple(anew), self._form)
        return made

    def __len__(self) -> int:
        return self._count

    def __getstate__(self) -> dict[str, Any]:
        return {"columns": self.columns, "form": self._form}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._start(state["columns"], state["form"])


class SequenceDataset(Dataset[Any]):
    """Anything with a length and items by number: a list, a dataset of PyTorch.

    Items are asked of `__getitem__` (of `get` where there is none), several at once of
    `__getitems__` or `get_many` where there is one.

    Example:
        >>> SequenceDataset(range(10, 20)).get(3)
        13
    """

    def __init__(self, items: Any) -> None:
        self.items = items
        self._asks = is_dataset_by_methods(items)

    def get(self, index: int) -> Any:
        """Return item `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self):
            return None
        return self.items.get(index) if self._asks else self.items[index]

    def get_many(self, indices: Sequence[int]) -> list[Any]:
        """Return several items, by one call where the source has one for it."""
        many = getattr(self.items, "get_many" if self._asks else "__getitems__", None)
        if many is None:
            return super().get_many(indices)
        for index in indices:
            if not 0 <= index < len(self):
                raise no_item(self, index)
        return list(many([int(index) for index in indices]))

    def at_epoch(self, epoch: int) -> Dataset[Any]:
        """Return the source as it is in that epoch, if it draws anew."""
        at_epoch = getattr(self.items, "at_epoch", None) if self._asks else None
        source = self.items if at_epoch is None else at_epoch(epoch)
        return self if source is self.items else SequenceDataset(source)

    def __len__(self) -> int:
        return size_of(self.items)

    def __repr__(self) -> str:
        name = type(self.items).__name__
        return f"{type(self).__name__}({name}, {len(self):,} items)"


def is_dataset_by_methods(items: object) -> bool:
    """Whether it has the methods of our datasets, though not their class.

    Why: where there is `__getitem__` too, it decides. `get` of PyTorch Geometric's
    datasets, for one, leaves out their transforms.
    """
    ours = hasattr(items, "get") and hasattr(items, "__len__")
    if not ours or isinstance(items, type | Mapping):
        return False
    return hasattr(items, "at_epoch") or not hasattr(items, "__getitem__")


def is_column(value: object) -> bool:
    """Whether a value has rows: an array, a list, a table or a column, a dataset.

    Texts and tuples are items.
    """
    if is_array(value):
        return len(getattr(value, "shape", ())) > 0
    if is_of_columns(value):
        return True
    if isinstance(value, str | bytes | tuple | Mapping | type):
        return False
    return hasattr(value, "__len__") and hasattr(value, "__getitem__")


def is_of_columns(value: object) -> bool:
    """Whether it is a table, or a column of one, as another library has them."""
    return frame_library(value) is not None or column_library(value) is not None


def _reader(name: object, column: Any) -> tuple[int, Take]:
    """The length of a column, and how its rows are taken."""
    if frame_library(column):
        rows = frame_of(column.collect() if hasattr(column, "collect") else column)
        keys = column_names(column)

        def take(indices: Sequence[int]) -> list[Any]:
            return [dict(zip(keys, row, strict=True)) for row in rows.rows(indices)]

        return len(rows), take
    if column_library(column):
        single = one_column(column)
        return len(single), lambda at: [row[0] for row in single.rows(at)]
    if isinstance(column, Dataset):
        return len(column), column.get_many
    if is_array(column):
        return _array_reader(rows_of_array(column))
    if isinstance(column, str | bytes | Mapping) or not (
        hasattr(column, "__len__") and hasattr(column, "__getitem__")
    ):
        what = f"column {name} is {type(column).__name__}, which has no rows"
        cure = "arrays, lists or tables; single items stand in a list: [a, b]"
        raise DataError("ArrayDataset", what, cure=cure)
    many = getattr(column, "__getitems__", None)
    if many is not None:
        return size_of(column), lambda at: list(many([int(i) for i in at]))
    return size_of(column), lambda at: [column[int(i)] for i in at]


def _of_numbers(column: Any) -> Any:
    """A column as an array of NumPy's numbers; None if it is another thing."""
    if not is_array(column) or frame_library(column) or column_library(column):
        return None
    array = rows_of_array(column)
    plain = isinstance(array, np.ndarray) and array.dtype.kind in "biuf"
    return array if plain else None


def _array_reader(array: Any) -> tuple[int, Take]:
    names = getattr(array.dtype, "names", None)
    if names:  # a structured array is a table

        def fields(indices: Sequence[int]) -> list[Any]:
            return [{name: array[name][i] for name in names} for i in indices]

        return len(array), fields
    if getattr(array.dtype, "kind", "") in "US" and len(array.shape) == 1:
        return len(array), lambda at: [array[int(i)].item() for i in at]
    if isinstance(array, np.ndarray):
        return len(array), lambda at: [array[i] for i in at]
    return len(array), lambda at: [array[int(i)] for i in at]
