"""The rows of a CSV file by number, with flat memory.

Only the place of each row is kept (eight bytes); its text is read when it is asked
for. So a file of millions of rows opens in a second and takes next to no memory.
"""

from __future__ import annotations

import csv
import operator
import os
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import DataError
from burnbook.core.files import (
    PathLike,
    open_regular,
    printable,
    read_whole,
    within_memory,
)
from burnbook.data.dataset.base import Dataset, no_number
from burnbook.data.formats.idx import GZIP, unpacked

CHUNK = 1 << 22
LONGEST_ROW = 1 << 26
MOST_UNPACKED = 1 << 30  # bytes of a .gz, which must be held in memory
QUOTE, NEWLINE = b'"\n'
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class LabeledTexts(Dataset[tuple[int, str, str]]):
    """Rows `"class","title","content"` of a CSV file without a header; classes from 1.

    An item is (label from 0, title, content). The file may be gzipped; then it is held
    in memory.
    """

    def __init__(self, path: PathLike, num_classes: int) -> None:
        self.path = os.fspath(path)
        self.labels = {str(i + 1): i for i in range(num_classes)}
        self._open()
        self.places = self._find_rows()

    def _open(self) -> None:
        self._lock = threading.Lock()
        where = f"texts {printable(self.path)}"
        self._file = open_regular(self.path, DataError, where)
        self._data = b""
        if self._file.read(2) == GZIP:
            with within_memory(where):
                packed = read_whole(self.path, DataError, where)
                self._data = unpacked(packed, MOST_UNPACKED, self.path)

    def get(self, index: int) -> tuple[int, str, str] | None:
        """Return row `index`, or None where there is none."""
        try:
            index = operator.index(index)
        except TypeError as error:
            raise no_number(self, index) from error
        if not 0 <= index < len(self):
            return None
        start, end = self.places[index]
        line = self._bytes(int(start), int(end))
        try:
            return self._parsed(line)
        except (ValueError, csv.Error) as error:
            bad = isinstance(error, UnicodeDecodeError)
            why = "it is not UTF-8 text" if bad else error
            what = f"{self.path}, row {index + 1:,} does not fit: {why}"
            facts = [("expected", '"class","title","content"')]
            raise DataError("texts", what, facts) from None

    def _parsed(self, line: bytes) -> tuple[int, str, str]:
        rows = list(csv.reader([line.decode("utf-8")], strict=True))
        if len(rows) != 1 or len(rows[0]) != 3:
            raise ValueError("it does not have 3 values")
        label, title, content = rows[0]
        if label not in self.labels:
            raise ValueError(f"{label[:20]!r} is not one of 1 … {len(self.labels)}")
        return self.labels[label], title, content

    def __len__(self) -> int:
        return len(self.places)

    def __getstate__(self) -> dict[str, Any]:
        kept = ("path", "labels", "places")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._open()

    def __del__(self) -> None:
        if file := vars(self).get("_file"):
            file.close()

    def _bytes(self, start: int, end: int) -> bytes:
        if self._data:
            return self._data[start:end]
        with self._lock:
            self._file.seek(start)
            return self._file.read(end - start)

    def _find_rows(self) -> NDArray[np.int64]:
        """Find where rows start and end; a newline between quotes ends none.

        Shapes: -> [rows, 2]
        """
        size = len(self._data) or os.fstat(self._file.fileno()).st_size
        ends: list[NDArray[np.int64]] = []
        inside, last = 0, 0  # an odd number of quotes so far; where a row has ended
        for start in range(0, size, CHUNK):
            piece = np.frombuffer(self._bytes(start, min(start + CHUNK, size)), "u1")
            quotes = (np.cumsum(piece == QUOTE, dtype=np.int32) + inside) & 1
            found = np.flatnonzero((piece == NEWLINE) & (quotes == 0)) + start
            ends.append(found)
            inside = int(quotes[-1]) if len(quotes) else inside
            last = int(found[-1]) if len(found) else last
            if start + len(piece) - last > LONGEST_ROW:
                what = f"{self.path} has a row of more than {LONGEST_ROW:,} bytes"
                raise DataError("texts", what, cure="closing a quotation mark")
        ends.append(np.array([size]))
        stops = np.concatenate(ends)
        first = 3 if self._bytes(0, 3) == BYTE_ORDER_MARK else 0
        starts = np.concatenate([[first], stops[:-1] + 1])
        places = np.stack([starts, stops], axis=1)
        filled = stops - starts > 1  # "\r\n" is no row either
        if not filled.any():
            raise DataError("texts", f"{self.path} holds no rows")
        return places[filled]
