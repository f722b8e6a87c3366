"""A dataframe as a dataset: one row, one item.

The dataframe is one of Polars, which keeps every column as an array: millions of rows
fit in memory, and what a row becomes is made when it is asked for.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Sequence
from typing import Any, TypeVar

from burnbook.core.errors import DataError
from burnbook.data.dataset.base import Dataset, no_item
from burnbook.data.formats.fields import fields_of, is_item_class, object_builder
from burnbook.data.formats.tables import shown_names

Item = TypeVar("Item")


class DataframeDataset(Dataset[Item]):
    """The rows of a Polars dataframe, as objects of the class `item` or as dicts.

    The fields of the class name the columns; other columns are left out. A field that
    is an `int` receives a date as days since 1970 and a time as nanoseconds since
    midnight, as Burn has them; one that is a `datetime.date` receives the date.

    Example:
        >>> import polars  # doctest: +SKIP
        >>> frame = polars.DataFrame({"name": ["a", "b"], "label": [0, 1]})
        ... # doctest: +SKIP
        >>> DataframeDataset(frame).get(1)  # doctest: +SKIP
        {'name': 'b', 'label': 1}

    Raises:
        DataError: the frame is not one of Polars, or its columns do not fit the class.
    """

    def __init__(self, frame: Any, item: type[Item] | None = None) -> None:
        polars = _polars()
        if isinstance(frame, polars.LazyFrame):
            frame = frame.collect()
        if not isinstance(frame, polars.DataFrame):
            what = f"{type(frame).__name__} is not a Polars dataframe"
            cure = "polars.DataFrame(…), or polars.from_pandas(…)"
            raise DataError("DataframeDataset", what, cure=cure)
        self._item = item
        self._frame = frame if item is None else _wanted(polars, frame, item)
        self._names: list[str] = list(self._frame.columns)
        self._build = None if item is None else object_builder(item)

    def get(self, index: int) -> Item | None:
        """Return the item of row `index`, or None where there is none."""
        index = operator.index(index)
        if not 0 <= index < len(self):
            return None
        return self._item_of(index, self._frame.row(index))

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several rows, taken from the columns at once."""
        size = len(self)
        for index in indices:
            if not 0 <= index < size:
                raise no_item(self, index)
        rows = self._frame[list(indices)].rows() if len(indices) else []
        return [self._item_of(*pair) for pair in zip(indices, rows, strict=True)]

    def __len__(self) -> int:
        return self._frame.height

    def __reduce__(self) -> Any:
        return type(self), (self._frame, self._item)

    def _item_of(self, index: int, row: tuple[Any, ...]) -> Any:
        if self._build is None:
            return dict(zip(self._names, row, strict=True))
        try:
            return self._build(dict(zip(self._names, map(_plain, row), strict=True)))
        except (ValueError, TypeError, OverflowError) as error:
            what = f"row {index} does not fit: {error}"
            facts = [("columns", shown_names(self._names))]
            raise DataError("DataframeDataset", what, facts) from None


def _polars() -> Any:
    try:
        return importlib.import_module("polars")
    except ImportError:
        what = "Polars is not installed"
        cure = "pip install 'burnbook[dataframe]'"
        raise DataError("DataframeDataset", what, cure=cure) from None


def _wanted(polars: Any, frame: Any, item: Any) -> Any:
    """Return the columns that the class asks for; dates become numbers for an int."""
    columns: dict[str, Any] = dict(frame.schema)
    if not is_item_class(item):
        what = f"{getattr(item, '__name__', item)} does not name the columns it needs"
        facts = [("columns", shown_names(columns))]
        raise DataError(
            "DataframeDataset", what, facts, "a dataclass, or None for dicts"
        )
    fields = fields_of(item)
    missing = [n for n, f in fields.items() if n not in columns and not f.optional]
    if missing:
        what = f"the dataframe has no column {missing[0]}"
        facts = [
            ("columns", shown_names(columns)),
            (item.__name__, shown_names(fields)),
        ]
        cure = f"frame.rename(…), or the names of the columns in {item.__name__}"
        raise DataError("DataframeDataset", what, facts, cure)
    names = [name for name in fields if name in columns]
    counted = [
        name
        for name in names
        if [t.kind for t in fields[name].spec.meant] == [int]
        and columns[name].is_temporal()
    ]
    as_numbers = [polars.col(name).to_physical() for name in counted]
    return frame.select(names).with_columns(as_numbers)


def _plain(value: Any) -> Any:
    """A column of lists gives each row a column of its own: make it a list."""
    return value.to_list() if hasattr(value, "to_list") else value
