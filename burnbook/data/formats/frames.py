"""Tables of pandas, Polars and Arrow, read row by row as plain Python values.

Nothing of theirs is imported here: a table is recognized by the module of its class, so
whoever has one has its library. Columns stay where they are; what is copied is the rows
that are asked for. Whatever the library, a missing value is None, a row's values are
Python's own (int, float, bool, str, date, list …), and categories are their values.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from burnbook.core.errors import DataError
from burnbook.data.formats.tables import shown_names

Reader = Callable[[Any], list[Any]]  # places -> the values there
FRAMES = {
    "pandas": ("DataFrame",),
    "polars": ("DataFrame", "LazyFrame"),
    "pyarrow": ("Table", "RecordBatch"),
}
COLUMNS = {
    "pandas": ("Series", "Index"),
    "polars": ("Series",),
    "pyarrow": ("Array", "ChunkedArray"),
}
NUMBERS = "biuf"  # kinds of NumPy's types that are Python's numbers, too
SIMPLE = NUMBERS + "SU"  # and texts


class Frame(Protocol):
    """A table: the names of its columns, its length, its rows."""

    names: list[Any]

    def __len__(self) -> int: ...

    def rows(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return some rows."""
        ...


def frame_library(value: object) -> str | None:
    """Which library's table this is: pandas, polars, pyarrow, or none."""
    return _library(value, FRAMES)


def column_library(value: object) -> str | None:
    """Which library's single column this is."""
    return _library(value, COLUMNS)


def _library(value: object, wanted: dict[str, tuple[str, ...]]) -> str | None:
    for cls in type(value).__mro__:
        library = cls.__module__.partition(".")[0]
        if cls.__name__ in wanted.get(library, ()):
            return library
    return None


def frame_of(
    table: Any, wanted: Sequence[str] | None = None, counted: Sequence[str] = ()
) -> Frame:
    """Read a table by its rows: of all its columns, or of those that are wanted.

    counted: columns whose dates and times become numbers, as Burn has them: days since
        1970, nanoseconds since midnight; of a moment, the units of its column since
        1970. With pandas, whole numbers that a missing one made floats are ints again.

    Raises:
        DataError: a column is there twice.
    """
    library = frame_library(table)
    if library == "polars":
        return _Polars(table, wanted, counted)
    make = _Pandas if library == "pandas" else _Arrow
    _once(column_names(table))
    return make(table, wanted, counted)


def column_names(table: Any) -> list[Any]:
    """The names of the columns, as the table has them."""
    if frame_library(table) == "pyarrow":
        return list(table.schema.names)
    return list(table.columns)


def index_names(table: Any) -> list[str]:
    """The names of the levels of a pandas index, which are no columns."""
    names = table.index.names if frame_library(table) == "pandas" else ()
    return [name for name in names if isinstance(name, str)]


def temporal_names(table: Any) -> list[str]:
    """The columns of dates and times, and with pandas of floats that may be ints."""
    library = frame_library(table)
    if library == "polars":
        return [name for name, kind in table.schema.items() if kind.is_temporal()]
    if library == "pyarrow":
        is_temporal = sys.modules["pyarrow"].types.is_temporal
        return [field.name for field in table.schema if is_temporal(field.type)]
    return [*column_names(table), *index_names(table)]


def one_column(column: Any) -> Frame:
    """A single column as a table of one."""
    if column_library(column) == "pyarrow":
        return frame_of(sys.modules["pyarrow"].table({"": column}))
    return frame_of(column.to_frame())


def _once(names: Sequence[Any]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        what = f"the table has the column {twice[0]!r} {names.count(twice[0])} times"
        facts = [("columns", shown_names(map(str, names)))]
        raise DataError("DataframeDataset", what, facts, "other names for the columns")


def _transposed(columns: list[list[Any]], count: int) -> list[tuple[Any, ...]]:
    return list(zip(*columns, strict=True)) if columns else [()] * count


class _Polars:
    def __init__(
        self, frame: Any, wanted: Sequence[str] | None, counted: Sequence[str]
    ) -> None:
        if wanted is not None:
            numbers = [frame.get_column(name).to_physical() for name in counted]
            frame = frame.select(list(wanted)).with_columns(numbers)
        self.frame = frame
        self.names: list[Any] = list(frame.columns)

    def __len__(self) -> int:
        return self.frame.height

    def rows(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return some rows; a column of lists gives each row a list."""
        if len(indices) == 1:
            found = [self.frame.row(int(indices[0]))]
        else:
            found = self.frame[list(indices)].rows() if len(indices) else []
        return [tuple(map(_as_list, row)) for row in found]


def _as_list(value: Any) -> Any:
    return value.to_list() if hasattr(value, "to_list") else value


class _Arrow:
    def __init__(
        self, table: Any, wanted: Sequence[str] | None, counted: Sequence[str]
    ) -> None:
        self.names = column_names(table) if wanted is None else list(wanted)
        columns = [table.column(name) for name in self.names]
        pairs = zip(self.names, columns, strict=True)
        self.reads = [_arrow_reader(one, name in counted) for name, one in pairs]
        self.count: int = table.num_rows

    def __len__(self) -> int:
        return self.count

    def rows(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return some rows."""
        at = np.asarray(indices, np.int64)
        return _transposed([read(at) for read in self.reads], len(at))


def _arrow_reader(column: Any, counted: bool) -> Reader:
    def read(at: Any) -> list[Any]:
        taken = column.take(sys.modules["pyarrow"].array(at))
        return (_counts(taken) if counted else taken).to_pylist()

    return read


def _counts(column: Any) -> Any:
    """Dates as days, times as nanoseconds, moments in their own units."""
    arrow = sys.modules["pyarrow"]
    if arrow.types.is_date(column.type):
        return column.cast(arrow.date32()).cast(arrow.int32())
    if arrow.types.is_time(column.type):
        column = column.cast(arrow.time64("ns"))
    return column.cast(arrow.int64()) if _is_temporal(column) else column


def _is_temporal(column: Any) -> bool:
    return sys.modules["pyarrow"].types.is_temporal(column.type)


class _Pandas:
    def __init__(
        self, frame: Any, wanted: Sequence[str] | None, counted: Sequence[str]
    ) -> None:
        self.names = column_names(frame) if wanted is None else list(wanted)
        self.count = len(frame)
        places = {name: place for place, name in enumerate(frame.columns)}
        self.reads: list[Reader] = []
        for name in self.names:
            if name in places:
                column = frame.iloc[:, places[name]]
            else:
                column = frame.index.get_level_values(name).to_series()
            self.reads.append(_pandas_reader(column, name in counted))

    def __len__(self) -> int:
        return self.count

    def rows(self, indices: Sequence[int]) -> list[tuple[Any, ...]]:
        """Return some rows, by their place, whatever the index says."""
        at = np.asarray(indices, np.intp)
        return _transposed([read(at) for read in self.reads], len(at))


def _pandas_reader(column: Any, counted: bool) -> Reader:
    dtype = column.dtype
    if isinstance(dtype, np.dtype) and dtype.kind in NUMBERS:
        values = column.to_numpy()  # a view
        if counted and dtype.kind == "f":
            return lambda at: [_whole(value) for value in values[at].tolist()]
        return lambda at: values[at].tolist()
    array = column.array
    if type(dtype).__name__ == "ArrowDtype":
        arrow = array.__arrow_array__()
        return _arrow_reader(arrow, counted and _is_temporal(arrow))
    if counted and hasattr(array, "asi8"):  # moments and spans of time
        numbers = array.asi8
        lowest = np.iinfo(np.int64).min  # stands for a missing one
        return lambda at: [None if n == lowest else n for n in numbers[at].tolist()]
    keeps_nan = dtype.kind == "f"
    return lambda at: [_plain(value, keeps_nan) for value in array.take(at)]


def _whole(value: float) -> Any:
    """An int that pandas keeps as a float because another is missing; None for that."""
    if value != value:
        return None
    return int(value) if value.is_integer() else value


def _plain(value: Any, keeps_nan: bool) -> Any:
    """A value of a pandas column that is no array of plain numbers."""
    pandas = sys.modules["pandas"]
    if value is None or value is pandas.NA or value is pandas.NaT:
        return None
    if isinstance(value, np.generic):
        return _plain(value.item(), keeps_nan) if value.dtype.kind in SIMPLE else value
    if isinstance(value, float):
        return None if value != value and not keeps_nan else value
    if isinstance(value, pandas.Timestamp) and not value.nanosecond:
        return value.to_pydatetime()
    if isinstance(value, pandas.Timedelta) and not value.nanoseconds:
        return value.to_pytimedelta()
    return value
