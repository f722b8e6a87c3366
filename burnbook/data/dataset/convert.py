"""Whatever holds items becomes a dataset: arrays, tables, lists, datasets of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burnbook.core.errors import ConfigError, DataError
from burnbook.data.dataset.arrays import (
    ArrayDataset,
    SequenceDataset,
    is_column,
    is_dataset_by_methods,
    is_of_columns,
)
from burnbook.data.dataset.base import Dataset
from burnbook.data.dataset.dataframe import DataframeDataset
from burnbook.data.formats.arrays import is_array
from burnbook.data.formats.frames import FRAMES, column_library, frame_library

FEW = 8  # arrays in a list that may be meant as columns
CONVERTERS = ("to_arrow_table", "to_arrow", "to_table", "to_pandas", "to_polars")


def as_dataset(data: Any, item: type[Any] | None = None) -> Dataset[Any]:
    """Make a dataset of what holds items; a dataset is returned as it is.

    A table of pandas, Polars or Arrow gives its rows, as objects of the class `item` or
    as dicts. An array or a tensor gives its rows. A tuple holds columns, so `(X, y)`
    gives tuples, and a dict of columns gives dicts; a list holds items. Anything else
    with `__len__` and `__getitem__`, as PyTorch's datasets have them, gives its items.
    Nothing is copied, nothing is read before it is asked for.

    Whatever takes a dataset (loaders, transforms, the dataset browser) does this.

    Example:
        >>> import numpy as np
        >>> as_dataset((np.array([[1.0], [2.0]]), [7, 8])).get(1)
        (array([2.]), 8)
        >>> as_dataset({"text": ["good", "bad"], "label": [1, 0]}).get(0)
        {'text': 'good', 'label': 1}
        >>> list(as_dataset(["a", "b"]))
        ['a', 'b']

    Raises:
        DataError: `data` holds no items, columns differ in length, or it cannot be told
            whether it holds items or columns.
        ConfigError: `item` is given, but `data` is no table.
    """
    if item is not None and frame_library(data) is None:
        what = f"rows of {type(data).__name__} are not matched to fields by name"
        cure = f"MapperDataset(as_dataset(data), lambda row: {item.__name__}(*row))"
        raise ConfigError("as_dataset", what, [("item", item.__name__)], cure)
    if isinstance(data, Dataset):
        return data
    if frame_library(data):
        return DataframeDataset(data, item)
    if isinstance(data, type):
        what = f"{data.__name__} is a class, not a dataset"
        raise DataError("dataset", what, cure=f"{data.__name__}(…)")
    if column_library(data) or is_array(data):
        return ArrayDataset(data)
    if isinstance(data, Mapping):
        return _of_dict(data)
    if isinstance(data, tuple) and holds_columns(data):
        return ArrayDataset.of(data)
    refuse_columns(data)
    if _has_items(data):
        return SequenceDataset(data)
    raise _no_dataset(data)


def holds_columns(data: tuple[Any, ...]) -> bool:
    """Whether a tuple holds columns and not items.

    Raises:
        DataError: it holds arrays or tables, and values that have no rows.
    """
    found = [is_column(value) for value in data]
    if not any(found) or all(found):
        return all(found) and bool(data)
    if any(is_array(value) or is_of_columns(value) for value in data):
        other = data[found.index(False)]
        what = f"a tuple holds columns, but {type(other).__name__} has no rows"
        cure = "a list for items: [a, b]; columns are arrays, lists, tables"
        raise DataError("dataset", what, _listed(data), cure)
    return False


def refuse_columns(data: Any, tables_are_items: bool = False) -> None:
    """Refuse a list that holds columns, which would be taken as its items.

    tables_are_items: it may hold tables, as a list of datasets does.

    Raises:
        DataError: it holds tables, or arrays of one length that differ in rank.
    """
    if not isinstance(data, list) or not 2 <= len(data) <= FEW:
        return
    tables = any(map(is_of_columns, data)) and not tables_are_items
    arrays = all(map(is_array, data)) and all(len(one.shape) for one in data)
    ranks = {len(one.shape) for one in data} if arrays else set()
    lengths = {one.shape[0] for one in data} if arrays else set()
    if tables or (len(ranks) > 1 and len(lengths) == 1):
        what = "a list holds items, and these look like columns"
        cure = "a tuple of columns, (X, y), or ArrayDataset(X, y)"
        raise DataError("dataset", what, _listed(data), cure)


def _listed(values: Any) -> list[tuple[str, str]]:
    return [(str(place), _brief(value)) for place, value in enumerate(values)][:FEW]


def _brief(value: Any) -> str:
    name = type(value).__name__
    if is_array(value):
        return f"{name} {list(value.shape)}"
    return f"{name}, {len(value):,} long" if hasattr(value, "__len__") else name


def _of_dict(data: Mapping[Any, Any]) -> Dataset[Any]:
    columns = dict(data.items())
    wrong = [name for name, value in columns.items() if not is_column(value)]
    if wrong or not columns:
        held = f"{wrong[0]!r} is {type(data[wrong[0]]).__name__}" if wrong else "no key"
        what = f"a dict holds columns by their names, but {held}"
        cure = "{'image': X, 'label': y}; for its values InMemDataset(list(d.values()))"
        raise DataError("dataset", what, cure=cure)
    return ArrayDataset.of(columns)


def _has_items(data: Any) -> bool:
    if isinstance(data, str | bytes | bytearray) or hasattr(data, "iloc"):
        return False
    if type(data).__module__.partition(".")[0] in FRAMES:  # groups, readers, fields
        return False
    if hasattr(data, "dataset") and hasattr(data, "set_epoch"):  # a loader
        return False
    by_number = hasattr(data, "__getitem__") and hasattr(data, "__len__")
    return by_number or is_dataset_by_methods(data)


def _no_dataset(data: Any) -> DataError:
    name = type(data).__name__
    what = f"{name} is not a dataset: it needs a length and items by number"
    cure = "an array, a table, a list, or a Dataset with get(i) and __len__()"
    if isinstance(data, str):
        what = "a text is not a dataset"
        reads = "from_parquet" if data.endswith(".parquet") else "from_csv"
        cure = f"InMemDataset.{reads}(path) reads a file, list(text) gives its letters"
    elif other := next((c for c in CONVERTERS if hasattr(data, c)), None):
        what = f"{name} is a table that is not known here"
        cure = f"its {other}()"
    elif hasattr(data, "dataset") and hasattr(data, "__iter__"):
        what = f"{name} gives batches, and has no items by number"
        cure = "its loader.dataset"
    elif hasattr(data, "__iter__"):
        what = f"{name} has no items by number"
        cure = "InMemDataset(list(…)), which keeps them all"
    return DataError("dataset", what, cure=cure)
