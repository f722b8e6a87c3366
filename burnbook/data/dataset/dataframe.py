"""A dataframe as a dataset: one row, one item.

The dataframe is one of pandas, Polars or Arrow, which keep every column as an array:
millions of rows fit in memory, and what a row becomes is made when it is asked for.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, TypeVar

from burnbook.core.converters import TypeSpec
from burnbook.core.errors import DataError
from burnbook.core.files import PathLike
from burnbook.data.dataset.base import Dataset, no_item, no_number
from burnbook.data.formats.fields import (
    Field,
    fields_of,
    is_item_class,
    object_builder,
)
from burnbook.data.formats.frames import (
    column_names,
    frame_library,
    frame_of,
    index_names,
    temporal_names,
)
from burnbook.data.formats.parquet import read_parquet
from burnbook.data.formats.tables import shown_names

Item = TypeVar("Item")


class DataframeDataset(Dataset[Item]):
    """The rows of a dataframe, as objects of the class `item` or as dicts.

    The dataframe is one of pandas or Polars (a lazy one is collected), or a table or
    record batch of Arrow. The fields of the class name the columns; other columns are
    left out. A missing value is None, which a field takes whose annotation allows it;
    NaN in a column of floats stays NaN, but is None where pandas means a missing value
    by it and the annotation allows None. A pandas index is no column; a field may bear
    the name of one of its levels. A field that is an `int` receives a date as days
    since 1970 and a time as nanoseconds since midnight, as Burn has them; one that is a
    `datetime.date` receives the date.

    Example:
        >>> import polars  # doctest: +SKIP
        >>> frame = polars.DataFrame({"name": ["a", "b"], "label": [0, 1]})
        ... # doctest: +SKIP
        >>> DataframeDataset(frame).get(1)  # doctest: +SKIP
        {'name': 'b', 'label': 1}

    Raises:
        DataError: the frame is no dataframe, has a column twice, or its columns do not
            fit the class.
    """

    def __init__(self, frame: Any, item: type[Item] | None = None) -> None:
        library = frame_library(frame)
        if library is None:
            what = f"{type(frame).__name__} is not a dataframe"
            facts = [("known", "dataframes of pandas and Polars, tables of Arrow")]
            cure = "pandas.DataFrame(…), polars.DataFrame(…) or pyarrow.table(…)"
            raise DataError("DataframeDataset", what, facts, cure)
        if library == "polars" and hasattr(frame, "collect"):
            frame = frame.collect()
        self._item = item
        self._build = None
        self._absent: list[bool] = []  # of each column, whether NaN may be None
        if item is None:
            self._table, self._rows = frame, frame_of(frame)
        else:
            fields = _wanted(frame, item)
            numbers = [n for n in temporal_names(frame) if n in fields]
            counted = [n for n in numbers if _is_int(fields[n].spec)]
            self._table = frame
            self._rows = frame_of(frame, list(fields), counted)
            self._build = object_builder(item)
            if library == "pandas":
                self._absent = [field.spec.optional for field in fields.values()]

    @classmethod
    def from_parquet(cls, path: PathLike, item: type[Any] | None = None) -> Any:
        """The rows of a Parquet file, as dicts or as objects of the class `item`.

        It is read by Polars or PyArrow: `pip install polars`, or `pip install pyarrow`.
        Its columns stay in memory as arrays; `InMemDataset.from_parquet` makes the
        items at once.

        Raises:
            DataError: the file cannot be read or is no Parquet file, neither package is
                installed, or the columns do not fit the class.

        Example:
            >>> DataframeDataset.from_parquet("cities.parquet").get(0)
            ... # doctest: +SKIP
            {'name': 'Bern', 'people': 134591}
        """
        return cls(read_parquet(path), item)

    def get(self, index: int) -> Item | None:
        """Return the item of row `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        return self.get_many([index])[0] if 0 <= index < len(self) else None

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several rows, taken from the columns at once."""
        size = len(self)
        for index in indices:
            if not 0 <= index < size:
                raise no_item(self, index)
        rows = self._rows.rows(indices)
        return [self._item_of(*pair) for pair in zip(indices, rows, strict=True)]

    def __len__(self) -> int:
        return len(self._rows)

    def __reduce__(self) -> Any:
        return type(self), (self._table, self._item)

    def _item_of(self, index: int, row: tuple[Any, ...]) -> Any:
        names = self._rows.names
        if self._build is None:
            return dict(zip(names, row, strict=True))
        if self._absent:
            pairs = zip(row, self._absent, strict=True)
            row = tuple(None if maybe and _is_nan(v) else v for v, maybe in pairs)
        try:
            return self._build(dict(zip(names, row, strict=True)))
        except (ValueError, TypeError, OverflowError) as error:
            what = f"row {index} does not fit: {error}"
            facts = [("columns", shown_names(map(str, names)))]
            cure = None
            if any(value is None for value in row):
                cure = (
                    "`… | None` for a field that may be missing, or rows without gaps"
                )
            raise DataError("DataframeDataset", what, facts, cure) from None


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and value != value


def _is_int(spec: TypeSpec) -> bool:
    return [part.kind for part in spec.meant] == [int]


def _wanted(frame: Any, item: Any) -> dict[str, Field]:
    """Return the fields for which there is a column, or a level of the index."""
    columns = column_names(frame)
    if not is_item_class(item):
        what = f"{getattr(item, '__name__', item)} does not name the columns it needs"
        facts = [("columns", shown_names(map(str, columns)))]
        raise DataError(
            "DataframeDataset", what, facts, "a dataclass, or None for dicts"
        )
    fields = fields_of(item)
    known = [*columns, *index_names(frame)]
    missing = [n for n, f in fields.items() if n not in known and not f.optional]
    if missing:
        what = f"the dataframe has no column {missing[0]}"
        facts = [
            ("columns", shown_names(map(str, columns))),
            (item.__name__, shown_names(fields)),
        ]
        cure = f"frame.rename(…), or the names of the columns in {item.__name__}"
        raise DataError("DataframeDataset", what, facts, cure)
    return {name: field for name, field in fields.items() if name in known}
