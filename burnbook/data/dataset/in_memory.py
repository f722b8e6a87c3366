"""A list of items as a dataset; rows of text files become such lists."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from burnbook.core.errors import DataError
from burnbook.data.dataset.base import Dataset, no_item, no_number
from burnbook.data.dataset.convert import as_dataset, refuse_columns
from burnbook.data.dataset.dataframe import DataframeDataset
from burnbook.data.formats.arrays import is_array
from burnbook.data.formats.frames import frame_library
from burnbook.data.formats.tables import read_csv, read_json_rows

Item = TypeVar("Item")


class InMemDataset(Dataset[Item]):
    """A dataset that holds its items in a list.

    Example:
        >>> dataset = InMemDataset(["a", "b"])
        >>> dataset.get(1), dataset.get(2), len(dataset)
        ('b', None, 2)

    Raises:
        DataError: `items` is a table, a dict or a tuple of arrays: columns, not items.
    """

    def __init__(self, items: Iterable[Item]) -> None:
        _refuse_tables(items)
        held: Any = items
        if not hasattr(held, "__iter__") and hasattr(held, "__len__"):
            held = map(held.__getitem__, range(len(held)))  # it may know no end
        self.items: list[Item] = list(held)

    @classmethod
    def from_dataset(cls, dataset: Dataset[Item] | Any) -> InMemDataset[Item]:
        """Keep every item of another dataset, so that transforms run only once."""
        dataset = as_dataset(dataset)
        return cls(dataset.get_many(range(len(dataset))))

    @classmethod
    def from_json_rows(cls, path: Any, item: type[Any] | None = None) -> Any:
        """Read one JSON object per line, as dicts or as objects of the class `item`.

        Raises:
            DataError: the file cannot be read, or a line is no JSON object or does not
                fit the class.
        """
        return cls(read_json_rows(path, item))

    @classmethod
    def from_csv(
        cls,
        path: Any,
        item: type[Any] | None = None,
        *,
        delimiter: str = ",",
        quote: str | None = '"',
        has_headers: bool = True,
        columns: dict[str, str] | None = None,
    ) -> Any:
        """Read a table, as dicts of text or as objects of the class `item`.

        A dataclass `item` names the columns by its fields and converts each text to the
        field's type; `columns` maps a field to a column of another name; a field with
        a default may have no column. Without headers the columns are taken in the order
        of the fields. An empty text is None where the annotation allows None. The file
        may be compressed by gzip, bzip2 or xz (by Zstandard from Python 3.14 on).

        Raises:
            DataError: the file cannot be read, a column is missing or there twice, or a
                row does not fit the columns or the class; the file unpacks to more than
                64 MB and 100 times its size.
            ConfigError: `delimiter` or `quote` is not one character.
        """
        rows = read_csv(path, item, delimiter, quote, has_headers, columns or {})
        return cls(rows)

    @classmethod
    def from_parquet(cls, path: Any, item: type[Any] | None = None) -> Any:
        """Read the rows of a Parquet file, as dicts or as objects of the class `item`.

        It is read by Polars or PyArrow: `pip install polars`, or `pip install pyarrow`.
        `DataframeDataset.from_parquet` keeps its columns and makes each item when it is
        asked for.

        Raises:
            DataError: the file cannot be read or is no Parquet file, neither package is
                installed, or the rows do not fit the class.
        """
        return cls.from_dataset(DataframeDataset.from_parquet(path, item))

    def get(self, index: int) -> Item | None:
        """Return item `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        return self.items[index] if 0 <= index < len(self.items) else None

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several indices, in their order."""
        items, size = self.items, len(self.items)
        for i in indices:
            if not 0 <= i < size or items[i] is None:
                raise no_item(self, i)
        return [items[i] for i in indices]

    def __len__(self) -> int:
        return len(self.items)


def _refuse_tables(items: Any) -> None:
    """Refuse what would give names of columns, or whole columns, as items."""
    name = type(items).__name__
    refuse_columns(items)
    if frame_library(items):
        what = f"{name} is a table: its items would be its columns, not its rows"
        cure = "DataframeDataset(frame, Row), or without a class for dicts"
        raise DataError("InMemDataset", what, cure=cure)
    if isinstance(items, Mapping):
        what = f"{name} would give its keys as items"
        cure = "as_dataset({'image': X, 'label': y}) for columns, or list(d.values())"
        raise DataError("InMemDataset", what, cure=cure)
    if not isinstance(items, tuple):
        return
    lengths = {one.shape[0] for one in items if is_array(one) and len(one.shape)}
    if len(items) > 1 and len(lengths) == 1 and all(map(_has_rows, items)):
        what = "a tuple of arrays holds columns, not items"
        facts = [("columns", f"{len(items)} of {lengths.pop():,} rows")]
        cure = "ArrayDataset(X, y) for their rows; a list for arrays that are items"
        raise DataError("InMemDataset", what, facts, cure)


def _has_rows(one: object) -> bool:
    return isinstance(one, list) or (
        is_array(one) and len(getattr(one, "shape", ())) > 0
    )
