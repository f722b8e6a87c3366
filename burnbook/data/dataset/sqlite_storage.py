"""Items written into an SQLite file, whole or not at all.

A writer fills a temporary file next to the database. Only when it is completed does
that file take the name of the database, so a killed program leaves the old one or none.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import re
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from burnbook.core.errors import ConfigError, DataError
from burnbook.core.files import (
    Draft,
    PathLike,
    cache_dir,
    fixed,
    remove_leftovers,
)
from burnbook.data.dataset.sqlite import SqliteDataset, quoted
from burnbook.data.formats.fields import shown, to_json
from burnbook.data.formats.packed import pack_item

if TYPE_CHECKING:
    import sqlite3
else:  # loaded when a database is opened
    from burnbook.data.formats import sqlite3 as sqlite3

DAY = 86_400.0
FAST = ("synchronous = off", "journal_mode = off")  # the file is kept whole or dropped
SQL_TYPES = {bool: "integer", int: "integer", float: "real", str: "text", bytes: "blob"}
_REFUSED = re.compile(r'[/?<>\\:*|"\x00-\x1f\x80-\x9f]')
_RESERVED = re.compile(r"^(con|prn|aux|nul|com\d|lpt\d)(\..*)?$", re.IGNORECASE)


class SqliteDatasetStorage:
    """Where the database of a dataset is, and what reads and writes it.

    Example:
        >>> storage = SqliteDatasetStorage.from_name("ag_news").with_base_dir("data")
        >>> storage.db_file().parts[-2:], storage.exists()
        (('data', 'ag_news.db'), False)
    """

    def __init__(self, name: str | None, file: Path | None, base: Path | None) -> None:
        self.name = name
        self._file = file
        self._base = base

    @classmethod
    def from_name(cls, name: str) -> SqliteDatasetStorage:
        """Keep the database under a name, in the cache folder or `with_base_dir`."""
        return cls(file_name(name), None, None)

    @classmethod
    def from_file(cls, db_file: PathLike) -> SqliteDatasetStorage:
        """Keep the database in this very file."""
        return cls(None, fixed(db_file), None)

    def with_base_dir(self, base_dir: PathLike) -> SqliteDatasetStorage:
        """Keep it in this folder; Burn's own is `~/.cache/burn-dataset`."""
        return SqliteDatasetStorage(self.name, self._file, fixed(base_dir))

    @staticmethod
    def base_dir(base_dir: PathLike | None = None) -> Path:
        """Return the folder for databases: the given one, or the cache folder."""
        return cache_dir() if base_dir is None else fixed(base_dir)

    def db_file(self) -> Path:
        """Return the path of the database, whether it is there or not."""
        if self._file is not None:
            return self._file
        return self.base_dir(self._base) / f"{self.name}.db"

    def exists(self) -> bool:
        """Say whether the database is there."""
        return self.db_file().is_file()

    def writer(self, overwrite: bool = False) -> SqliteDatasetWriter:
        """Begin a new database; `overwrite` replaces the old one on completion."""
        return SqliteDatasetWriter(self.db_file(), overwrite)

    def reader(self, split: str, item: type[Any] | None = None) -> SqliteDataset[Any]:
        """Open a split of the database, its items as objects of the class `item`."""
        return SqliteDataset(self.db_file(), split, item)

    def __repr__(self) -> str:
        return f"SqliteDatasetStorage({self.db_file().as_posix()})"


class SqliteDatasetWriter:
    """Write items into splits of a new database; `set_completed()` makes it appear.

    As a context manager it is completed where the block succeeds and dropped where it
    fails. Threads may share it.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> writer = SqliteDatasetWriter(Path(folder.name) / "numbers.db")
        >>> writer.write("train", {"x": 0.5}), writer.write("train", {"x": 1.5})
        (0, 1)
        >>> writer.db_file().exists(), writer.set_completed(), writer.db_file().exists()
        (False, None, True)
        >>> folder.cleanup()

    Why: Burn deletes an old database when the writer begins; here it stays until the
    new one is whole.
    """

    def __init__(self, db_file: PathLike, overwrite: bool = False) -> None:
        self._path = fixed(db_file)
        if self._path.exists() and not overwrite:
            what = f"{self._path} already exists, and overwrite is False"
            cure = "writer(overwrite=True), or SqliteDataset to read it"
            raise DataError("SqliteDatasetWriter", what, cure=cure)
        draft = Draft(self._path)
        remove_leftovers(self._path.parent, older_than=DAY)
        self._draft = draft
        self._counts: dict[str, int] = {}
        self._packed: set[str] = set()  # the splits of one blob per item
        self._lock = threading.Lock()
        self._completed = False
        self._connection = sqlite3.connect(
            draft.temporary, check_same_thread=False, isolation_level=None
        )
        self._drop = weakref.finalize(self, _drop, self._connection, draft)
        for setting in FAST:
            self._connection.execute(f"pragma {setting}")
        self._connection.execute("begin")

    def db_file(self) -> Path:
        """Return the path at which the database will appear."""
        return self._path

    def write(self, split: str, item: object) -> int:
        """Write an item at the end of a split; returns its index."""
        if item is None:
            cure = "items other than None: get(i) returns None where there is no item"
            what = "None cannot be written as an item"
            raise DataError("SqliteDatasetWriter", what, cure=cure)
        try:
            data = pack_item(item)
        except (ValueError, TypeError, OverflowError) as error:
            what = f"{type(item).__name__} cannot be written: {error}"
            cure = "numbers, texts, bytes, arrays, lists, dicts and dataclasses of them"
            raise DataError("SqliteDatasetWriter", what, cure=cure) from None
        with self._lock:
            if split not in self._packed:
                self._create(split, {"item": "blob not null"})
                self._packed.add(split)
            self._insert(f"insert into {quoted(split)} (item) values (?)", (data,))
            self._counts[split] += 1
            return self._counts[split] - 1

    def write_columns(
        self, split: str, rows: Iterable[Any], types: Mapping[str, str] | None = None
    ) -> int:
        """Write rows (dicts, dataclasses) with a column per field; returns how many.

        The first row names the columns. Lists and dicts are kept as JSON text. Where
        the first row does not tell the type of a column, `types` does (`"real"`), and
        without any row they name the columns.
        """
        count, insert = 0, ""
        names: list[str] = []
        for row in rows:
            values = _as_dict(row)
            with self._lock:
                if not insert:
                    names = list(values)
                    self._create(split, _column_types(values, types or {}))
                    marks = ", ".join("?" * len(names))
                    listed = ", ".join(map(quoted, names))
                    insert = f"insert into {quoted(split)} ({listed}) values ({marks})"
                if values.keys() != set(names):
                    self._refuse_row(split, count, names, values)
                self._insert(insert, [_stored(split, n, values[n]) for n in names])
                self._counts[split] += 1
            count += 1
        if not count and types:
            with self._lock:
                self._create(split, types)
        return count

    def set_completed(self) -> None:
        """Make the database appear under its name; then nothing more can be written."""
        with self._lock:
            if self._completed:
                return
            self._check_open()
            self._run(lambda: self._connection.execute("commit"))
            self._connection.close()
            self._drop.detach()
            self._draft.keep()
            self._completed = True

    def is_completed(self) -> bool:
        """Say whether the database is whole and under its name."""
        return self._completed

    def close(self) -> None:
        """Drop a database that is not completed; what was there before stays."""
        self._drop()

    def __enter__(self) -> SqliteDatasetWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.set_completed()
        else:
            self.close()

    def __repr__(self) -> str:
        counts = ", ".join(f"{split} {n:,}" for split, n in self._counts.items())
        return f"SqliteDatasetWriter({self._path.name}, {counts or 'no items'})"

    def _create(self, split: str, columns: Mapping[str, str]) -> None:
        self._check_open()
        if split in self._counts:
            what = f"the split {shown(split)} is written already"
            raise DataError(
                "SqliteDatasetWriter", what, cure="another name, or one call"
            )
        head = "row_id integer primary key autoincrement not null"
        listed = ", ".join([head, *(f"{quoted(n)} {t}" for n, t in columns.items())])
        query = f"create table {quoted(split)} ({listed})"
        try:
            self._connection.execute(query)
        except (sqlite3.Error, ValueError, UnicodeError) as error:
            what = f"{shown(split)} cannot be a split: {error}"
            facts = [("columns", ", ".join(map(shown, columns)))]
            cure = "a plain name such as 'train', and a name of its own per column"
            raise DataError("SqliteDatasetWriter", what, facts, cure) from None
        self._counts[split] = 0

    def _insert(self, query: str, values: Sequence[Any]) -> None:
        self._check_open()
        self._run(lambda: self._connection.execute(query, values))

    def _run(self, work: Callable[[], Any]) -> None:
        """Do one step; a database without a journal is lost when a step fails."""
        try:
            work()
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            self.close()
            what = f"{self._path} cannot be written: {error}"
            cure = "free some space, and write again; what was there before is kept"
            raise DataError("SqliteDatasetWriter", what, cure=cure) from None

    def _check_open(self) -> None:
        if self._completed:
            what = f"{self._path.name} is completed, nothing can be added"
            cure = "writer(overwrite=True) to write it anew"
            raise DataError("SqliteDatasetWriter", what, cure=cure)
        if not self._drop.alive:
            what = f"{self._path.name} was dropped, nothing can be added"
            raise DataError("SqliteDatasetWriter", what, cure="a new writer")

    def _refuse_row(
        self, split: str, count: int, names: list[str], values: dict[str, Any]
    ) -> None:
        what = f"row {count} of {split} has different fields from the first"
        facts = [("first", ", ".join(names)), ("now", ", ".join(map(str, values)))]
        raise DataError("SqliteDatasetWriter", what, facts)


def file_name(name: str) -> str:
    """Make a name fit for a file: what some system refuses is left out.

    Example:
        >>> file_name("fancyzhx/ag_news")
        'fancyzhxag_news'
    """
    kept = _REFUSED.sub("", str(name)).rstrip(". ")
    if not kept.strip(".") or _RESERVED.match(kept):
        what = f"{shown(name)} cannot name a file"
        raise ConfigError("SqliteDatasetStorage", what, cure="letters and numbers")
    return kept.encode()[:240].decode(errors="ignore")


def _drop(connection: sqlite3.Connection, draft: Draft) -> None:
    with contextlib.suppress(sqlite3.Error):
        connection.close()
    draft.discard()


def _as_dict(row: Any) -> dict[str, Any]:
    if isinstance(row, Mapping):
        return dict(row)
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {f.name: getattr(row, f.name) for f in dataclasses.fields(row) if f.init}
    what = f"{type(row).__name__} has no columns"
    raise DataError("SqliteDatasetWriter", what, cure="dicts or dataclasses as rows")


def _column_types(values: dict[str, Any], types: Mapping[str, str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in values.items():
        kind = types.get(name)
        if kind not in {*SQL_TYPES.values(), "", None}:
            what = f"{shown(kind)} is not a column type"
            cure = f"one of {', '.join(dict.fromkeys(SQL_TYPES.values()))}"
            raise ConfigError("SqliteDatasetWriter", what, cure=cure)
        plain = value.item() if isinstance(value, np.generic) else value
        inferred = SQL_TYPES.get(type(plain), "" if plain is None else "text")
        found[name] = inferred if kind is None else kind
    # A lone blob of this name would be read as a packed item.
    return {"item": ""} if found == {"item": "blob"} else found


def _stored(split: str, name: str, value: object) -> Any:
    """Return what SQLite keeps of a value."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, str | bytes | float | int):
        if isinstance(value, int) and not -(2**63) <= value < 2**63:
            what = f"{name} of {split}: {shown(value)} needs more than 64 bits"
            raise DataError("SqliteDatasetWriter", what, cure="a float or a text")
        return value
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    try:
        return to_json(value)
    except (TypeError, ValueError, RecursionError) as error:
        what = f"{name} of {split} cannot be written: {error}"
        raise DataError("SqliteDatasetWriter", what) from None
