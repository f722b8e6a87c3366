"""A Parquet file as a table of Polars or Arrow: of whichever is installed.

Nothing of theirs is imported before a file is read.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from burnbook.core.errors import DataError
from burnbook.core.files import (
    PathLike,
    at_home,
    open_regular,
    printable,
    within_memory,
)

MARK = b"PAR1"


def read_parquet(path: PathLike) -> Any:
    """Read the table of a file, with Polars if it is there, else with PyArrow.

    Raises:
        DataError: the file cannot be read or is no whole Parquet file, or neither
            package is installed.
    """
    where = f"parquet {printable(path)}"
    with open_regular(path, DataError, where) as file:
        first = file.read(len(MARK))
    if first != MARK:
        what = "this is no Parquet file, which begins with PAR1"
        cure = "InMemDataset.from_csv(path) for a table of text"
        raise DataError(where, what, [("begins with", repr(first))], cure)
    read = _reader(where)
    with within_memory(where):
        try:
            return read(at_home(path))
        except MemoryError:
            raise
        except BaseException as error:
            if not isinstance(error, Exception) and not _is_panic(error):
                raise
            why = str(error).strip().partition("\n")[0]
            what = "the file is damaged, or of a sort that is not read"
            cure = "copying it again"
            raise DataError(where, what, [("its reader says", why)], cure) from None


def _is_panic(error: BaseException) -> bool:
    """Whether Polars met what it did not expect, which it tells by no Exception."""
    return type(error).__name__ == "PanicException"


def _reader(where: str) -> Any:
    try:
        polars: Any = import_module("polars")
    except ImportError:
        pass
    else:
        return lambda path: polars.read_parquet(path, glob=False)
    try:
        arrow: Any = import_module("pyarrow.parquet")
    except ImportError:
        what = "reading it needs the package polars or pyarrow"
        raise DataError(where, what, cure="pip install polars") from None
    return _read_arrow(arrow)


def _read_arrow(arrow: Any) -> Any:
    def read(path: str) -> Any:
        with arrow.ParquetFile(path) as file:
            return file.read()

    return read
