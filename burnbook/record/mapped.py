"""Records where they lie: the names are read, the elements stay in the mapped file.

A recorder reads a file whole; this is for looking into one, so a tensor that nobody
asks for is never read. Text and compressed files have to be read whole.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import map_file, printable, within_memory
from burnbook.record.binary import BinFileRecorder, BinGzFileRecorder
from burnbook.record.burnpack import BurnpackRecorder
from burnbook.record.foreign import guess
from burnbook.record.layout import lift
from burnbook.record.mpk import container_room
from burnbook.record.recorder import FileRecorder, NamedMpkFileRecorder
from burnbook.record.tree import MAX_DEPTH, BurnRecord, Path as TreePath, Trouble, short

WHOLE = "the file as it was written: copy or download it again"


def can_be_mapped(recorder: FileRecorder) -> bool:
    """Whether a recorder's files hold elements as they are."""
    if isinstance(recorder, BinGzFileRecorder):
        return False
    kinds = (NamedMpkFileRecorder, BurnpackRecorder, BinFileRecorder)
    return isinstance(recorder, kinds)


def read_mapped(recorder: FileRecorder, path: Path) -> BurnRecord:
    """A record as it is, its elements as views of the file.

    Raises:
        RecordError: there is no such file, it is damaged or of another format.
    """
    where = f"read {printable(path)}"
    data = map_file(path, RecordError, where)
    with within_memory(where, RecordError):
        try:
            if isinstance(recorder, NamedMpkFileRecorder):
                return lift(decode(data))
            given: Any = data  # what reads slices of bytes reads slices of a view
            return recorder.lift(recorder.decode(given))
        except Trouble as trouble:
            kind, cure = guess(bytes(data[:64]))
            if kind and kind != recorder.kind:
                what = f"this is {kind}, not {recorder.kind}"
                raise RecordError(where, what, cure=cure) from None
            raise trouble.explain(where, [], WHOLE) from None


def decode(data: memoryview) -> Any:
    """MessagePack as maps, lists, numbers and texts; bytes are views of `data`.

    Example:
        >>> held = decode(memoryview(b"\\x81\\xa1w\\xc4\\x02hi"))
        >>> {name: bytes(content) for name, content in held.items()}
        {'w': b'hi'}
    """
    reader = _Reader(data)
    plain = reader.item(())
    if reader.at != len(data):
        raise Trouble(f"{len(data) - reader.at} bytes follow the end of the record")
    return plain


class _Reader:
    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0
        self.room = container_room(len(data))

    def take(self, count: int) -> memoryview:
        start, self.at = self.at, self.at + count
        if self.at > len(self.data):
            raise Trouble("the file ends inside the record", f"{count} bytes more")
        return self.data[start : self.at]

    def number(self, form: str) -> Any:
        (found,) = struct.unpack(form, self.take(struct.calcsize(form)))
        return found

    def item(self, path: TreePath) -> Any:
        first = self.take(1)[0]
        if first < 0x80 or first >= 0xE0:
            return first - 256 * (first >= 0xE0)
        if first < 0x90:
            return self.map(first & 15, path)
        if first < 0xA0:
            return self.list(first & 15, path)
        if first < 0xC0:
            return self.text(first & 31)
        if first in _PLAIN:
            return _PLAIN[first]
        if first in _NUMBERS:
            return self.number(_NUMBERS[first])
        if first in _SIZED:
            form, what = _SIZED[first]
            count = self.number(form)
            if what == "map":
                return self.map(count, path)
            if what == "list":
                return self.list(count, path)
            return self.text(count) if what == "text" else self.take(count)
        raise Trouble("this is not MessagePack", found=f"byte {self.at - 1}")

    def text(self, count: int) -> str:
        try:
            return bytes(self.take(count)).decode()
        except UnicodeDecodeError:
            raise Trouble("a text is not UTF-8", found=f"byte {self.at}") from None

    def count(self, count: int, path: TreePath) -> None:
        self.room -= 1
        if count > len(self.data) - self.at:
            raise Trouble("the file is shorter than it says", f"{count} items")
        if self.room < 0 or len(path) > MAX_DEPTH:
            raise Trouble("the record nests more deeply than any")

    def list(self, count: int, path: TreePath) -> list[Any]:
        self.count(count, path)
        return [self.item((*path, str(i))) for i in range(count)]

    def map(self, count: int, path: TreePath) -> dict[str, Any]:
        self.count(count, path)
        found: dict[str, Any] = {}
        for _ in range(count):
            key = self.item(path)
            if not isinstance(key, str):
                raise Trouble("the record has a key that is not text")
            if key in found:
                raise Trouble(f"the record has {short(repr(key))} twice")
            found[key] = self.item((*path, key))
        return found


_PLAIN = {0xC0: None, 0xC2: False, 0xC3: True}
_NUMBERS = {0xCA + k: f">{form}" for k, form in enumerate("fdBHIQbhiq")}
_SIZED: dict[int, tuple[str, str]] = {
    **{0xC4 + k: (form, "bytes") for k, form in enumerate((">B", ">H", ">I"))},
    **{0xD9 + k: (form, "text") for k, form in enumerate((">B", ">H", ">I"))},
    **{0xDC + k: (form, "list") for k, form in enumerate((">H", ">I"))},
    **{0xDE + k: (form, "map") for k, form in enumerate((">H", ">I"))},
}
