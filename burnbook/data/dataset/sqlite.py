"""A dataset in an SQLite file, read row by row.

The layout is Burn's. A split is a table whose integer primary key `row_id` counts from
1, so item i is in row i + 1. Next to it is either one blob `item` (compact
MessagePack, see `packed`) or one column per field. Only the rows asked for are read, so
a file of any size takes the same memory.
"""

from __future__ import annotations

import operator
import os
import stat
import weakref
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from burnbook.core.errors import DataError
from burnbook.core.files import PathLike, fixed
from burnbook.data.dataset.base import Dataset, no_item, no_number
from burnbook.data.formats.fields import (
    Converter,
    converter,
    fields_of,
    is_item_class,
    object_builder,
    shown,
)
from burnbook.data.formats.packed import unpack_item
from burnbook.data.formats.tables import shown_names

if TYPE_CHECKING:
    import sqlite3
else:  # loaded when a database is opened
    from burnbook.data.formats import sqlite3 as sqlite3

Item = TypeVar("Item")
AT_ONCE = 256  # rows per query: SQLite takes only so many values
PATIENCE = 0.5  # seconds to wait for a program that locks the file
LEAST_ROW = 4  # no row takes fewer bytes in a file
LARGEST = 1 << 20  # a value may always have this many bytes, and those of the file
CAREFUL = ("trusted_schema = off", "cell_size_check = on", "query_only = on")


class SqliteDataset(Dataset[Item]):
    """The items of one split of an SQLite file, as objects of the class `item`.

    Without a class they come as they are stored: dicts where every field has a column,
    lists of fields where the rows are packed. Threads may share the dataset, and a
    process that receives it reopens the file.

    Example:
        >>> import tempfile
        >>> from burnbook.data import SqliteDatasetStorage
        >>> folder = tempfile.TemporaryDirectory()
        >>> storage = SqliteDatasetStorage.from_file(Path(folder.name) / "words.db")
        >>> with storage.writer() as writer:
        ...     writer.write("train", ["one", 1]), writer.write("train", ["two", 2])
        (0, 1)
        >>> words = SqliteDataset.from_db_file(storage.db_file(), "train")
        >>> len(words), words.get(1), words.get(2)
        (2, ['two', 2], None)
        >>> words.close(), folder.cleanup()
        (None, None)

    Raises:
        DataError: there is no such file, it is not one of SQLite, it has no such split,
            or the columns of the split do not fit the class.
    """

    def __init__(
        self, db_file: PathLike, split: str, item: type[Item] | None = None
    ) -> None:
        self._path = fixed(db_file)
        self._split = split
        self._item = item
        self._connections = Connections(self._path)
        weakref.finalize(self, self._connections.close)
        self._table = _Table.of(self._connections, split, item)
        self._size = _size(self._connections, self._table)

    @classmethod
    def from_db_file(
        cls, db_file: PathLike, split: str, item: type[Item] | None = None
    ) -> SqliteDataset[Item]:
        """Open a split of a database file."""
        return cls(db_file, split, item)

    def db_file(self) -> Path:
        """Return the path of the database."""
        return self._path

    def split(self) -> str:
        """Return the name of the split."""
        return self._split

    def get(self, index: int) -> Item | None:
        """Return item `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < self._size:
            return None
        rows = self._connections.rows(self._table.one, (index + 1,))
        return self._item_of(rows[0]) if rows else None

    def get_many(self, indices: Sequence[int]) -> list[Item]:
        """Return the items of several indices, with one query for all of them."""
        for index in indices:
            if not 0 <= index < self._size:
                raise no_item(self, index)
        first, count = (indices[0], len(indices)) if len(indices) else (0, 0)
        if count > 1 and list(indices) == list(range(first, first + count)):
            rows = self._connections.rows(self._table.range, (first + 1, first + count))
        else:
            rows = self._scattered(indices)
        if len(rows) != count:
            there = {row[0] - 1 for row in rows}
            raise no_item(self, next(i for i in indices if i not in there))
        return [self._item_of(row) for row in rows]

    def close(self) -> None:
        """Close the file; the next query opens it again."""
        self._connections.close()

    def __len__(self) -> int:
        return self._size

    def __repr__(self) -> str:
        return f"SqliteDataset({self._path.name}, {self._split}, {self._size:,} items)"

    def __reduce__(self) -> Any:
        return type(self), (self._path, self._split, self._item)

    def _scattered(self, indices: Sequence[int]) -> list[Any]:
        found: dict[int, Any] = {}
        for start in range(0, len(indices), AT_ONCE):
            wanted = [i + 1 for i in indices[start : start + AT_ONCE]]
            query = f"{self._table.some} ({','.join('?' * len(wanted))})"
            found.update((row[0], row) for row in self._connections.rows(query, wanted))
        return [found[i + 1] for i in indices if i + 1 in found]

    def _item_of(self, row: Any) -> Item:
        try:
            return self._table.build(row[1:])
        except (ValueError, TypeError, OverflowError) as error:
            what = f"row {row[0]} of {self._split} does not fit: {error}"
            facts = [("database", str(self._path))]
            raise DataError("SqliteDataset", what, facts) from None


class Connections:
    """Read-only connections to a file: one for each thread that asks at the same time.

    Why: a connection that was carried into a forked process would damage that of the
    parent, so each process has its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.idle: dict[int, list[sqlite3.Connection]] = {}

    def rows(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        """Run a query, and return all rows of the answer."""
        idle = self.idle.setdefault(os.getpid(), [])
        connection = None
        with suppress(IndexError):
            connection = idle.pop()
        connection = connection or self._opened()
        try:
            return connection.execute(query, values).fetchall()
        except (sqlite3.Error, UnicodeError) as error:
            raise self._unreadable(error) from None
        finally:
            idle.append(connection)

    def close(self) -> None:
        """Close what is open here and not in use."""
        idle = self.idle.get(os.getpid(), [])
        while idle:
            idle.pop().close()

    def _opened(self) -> sqlite3.Connection:
        try:
            found = os.stat(self.path)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            what = f"{self.path} cannot be read: {why}"
            cure = "SqliteDatasetStorage.from_file(path).writer() makes a database"
            raise DataError("SqliteDataset", what, cure=cure) from None
        if not stat.S_ISREG(found.st_mode):
            raise DataError("SqliteDataset", f"{self.path} is not a regular file")
        uri = f"{self.path.as_uri()}?mode=ro"
        try:
            connection = sqlite3.connect(
                uri, timeout=PATIENCE, uri=True, check_same_thread=False
            )
        except sqlite3.Error as error:
            raise self._unreadable(error) from None
        largest = max(LARGEST, found.st_size)
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(largest, 2**31 - 1))
        for setting in CAREFUL:
            connection.execute(f"pragma {setting}")
        return connection

    def _unreadable(self, error: Exception) -> DataError:
        what = f"{self.path} cannot be read: {error}"
        cure = "the file as it was written: create or copy it again"
        return DataError("SqliteDataset", what, cure=cure)


@dataclass(frozen=True)
class _Table:
    """How to query a table, and what makes an item of the answer."""

    name: str
    one: str
    some: str
    range: str
    build: Converter

    @classmethod
    def of(cls, connections: Connections, split: str, item: object) -> _Table:
        columns = _columns(connections, split)
        packed = [(name.lower(), kind.lower()) for name, kind, _ in columns]
        if packed == [("row_id", "integer"), ("item", "blob")]:
            names, build = ["item"], _unpacker(item)
        else:
            names, build = _row_builder(connections.path, split, columns, item)
        listed = ", ".join(map(quoted, ["row_id", *names]))
        table = quoted(split)
        asked = f"select {listed} from {table} where row_id"
        between = f"{asked} between ? and ? order by row_id"
        return cls(table, f"{asked} = ?", f"{asked} in", between, build)


def quoted(name: str) -> str:
    """Quote a name of a table or a column, so that SQL takes any."""
    return '"' + name.replace('"', '""') + '"'


def _columns(connections: Connections, split: str) -> list[tuple[str, str, int]]:
    """Return name, type and key of each column that is stored.

    Why: a view or a computed column of a foreign file could run forever.
    """
    query = "select name, sql from sqlite_master where type = 'table'"
    tables = dict(connections.rows(query))
    plain = {
        name: sql
        for name, sql in tables.items()
        if isinstance(name, str)
        and not name.startswith("sqlite_")
        and not str(sql).lower().startswith(_VIRTUAL)
    }
    if split not in plain:
        what = f"{connections.path} has no split {shown(split)}"
        cure = f"{shown(min(plain))}" if plain else None
        raise DataError("SqliteDataset", what, [("splits", shown_names(plain))], cure)
    query = f"pragma table_info({quoted(split)})"
    columns = [(row[1], row[2], row[5]) for row in connections.rows(query)]
    keys = [(name.lower(), kind.lower()) for name, kind, key in columns if key]
    if keys != [("row_id", "integer")]:
        what = f"the split {shown(split)} of {connections.path} is not numbered"
        facts = [("columns", shown_names(name for name, _, _ in columns))]
        cure = "a column `row_id integer primary key` that counts from 1"
        raise DataError("SqliteDataset", what, facts, cure)
    return columns


_VIRTUAL = "create virtual"


def _size(connections: Connections, table: _Table) -> int:
    """Return the number of the last row; a file cannot hold more rows than bytes."""
    query = f"select coalesce(max(row_id), 0) from {table.name}"
    last = connections.rows(query)[0][0]
    pages, each = (
        connections.rows(f"pragma {name}")[0][0] for name in ("page_count", "page_size")
    )
    if type(last) is not int or not 0 <= last * LEAST_ROW <= pages * each:
        what = f"{connections.path} has gaps: the last row_id is {last}"
        facts = [("file", f"{pages * each:,} bytes")]
        cure = "row_ids that count 1, 2, 3, … without gaps"
        raise DataError("SqliteDataset", what, facts, cure)
    return last


def _unpacker(item: object) -> Converter:
    if item is None:
        return lambda row: unpack_item(row[0])
    build = converter(item)
    return lambda row: build(unpack_item(row[0]))


def _row_builder(
    path: Path, split: str, columns: list[tuple[str, str, int]], item: Any
) -> tuple[list[str], Converter]:
    names = [name for name, _, _ in columns]
    if item is None:
        names = [name for name in names if name.lower() != "row_id"]
        return names, lambda row: dict(zip(names, row, strict=True))
    if not is_item_class(item):
        what = f"{getattr(item, '__name__', item)} does not name the columns it needs"
        facts = [("columns", shown_names(names))]
        raise DataError("SqliteDataset", what, facts, "a dataclass, or None for dicts")
    fields = fields_of(item)
    missing = [
        n for n, field in fields.items() if n not in names and not field.optional
    ]
    if missing:
        what = f"the split {shown(split)} of {path} has no column {missing[0]}"
        facts = [("columns", shown_names(names)), (item.__name__, shown_names(fields))]
        cure = f"the names of the columns as fields of {item.__name__}"
        raise DataError("SqliteDataset", what, facts, cure)
    wanted = [name for name in fields if name in names]
    build = object_builder(item)
    if len(wanted) == len(fields):
        return wanted, lambda row: build([*row])
    return wanted, lambda row: build(dict(zip(wanted, row, strict=True)))
