"""Compressed text, unpacked piece by piece and within bounds.

What a file is follows from its first bytes, never from its name. gzip, bzip2 and xz are
read (Zstandard too, from Python 3.14 on), also where several streams stand one after
the other; anything else that is known by its first bytes is refused by its name.
"""

from __future__ import annotations

import importlib
import io
import zlib
from collections.abc import Callable, Iterator
from typing import IO, Any, Protocol

from burnbook.core.errors import DataError
from burnbook.data.formats.idx import AGAIN, GZIP

CHUNK = 1 << 16  # bytes that are read at once, and
PIECE = 1 << 20  # that are unpacked at once
XZ_MEMORY = 256 << 20  # what xz -9 needs to unpack is 65 MB
LONGEST_MARK = 16

UNPACK = "unpacking it first"
OTHERS = {
    b"\x28\xb5\x2f\xfd": ("Zstandard", "Python 3.14, or `zstd -d` first"),
    b"\x04\x22\x4d\x18": ("LZ4", "`lz4 -d` first"),
    b"\xff\x06\x00\x00sNaPpY": ("Snappy", UNPACK),
    b"LZIP": ("lzip", "`lzip -d` first"),
    b"\x1f\x9d": ("Unix compress", "`gzip -d` first, which reads it"),
    b"PK\x03\x04": ("ZIP (so are .xlsx files)", "`unzip` first; a sheet saved as CSV"),
    b"7z\xbc\xaf\x27\x1c": ("7-Zip", "`7z x` first"),
    b"Rar!\x1a\x07": ("RAR", UNPACK),
}
TABLES = {
    b"PAR1": ("Parquet", "InMemDataset.from_parquet(path)"),
    b"ARROW1": ("Arrow", "as_dataset(polars.read_ipc(path))"),
    b"SQLite format 3\0": ("SQLite", "SqliteDataset(path, table)"),
}


class Decompressor(Protocol):
    """One stream: bytes in, at most so many bytes out."""

    def feed(self, data: bytes) -> bytes:
        """Return the next bytes, `PIECE` at most; b"" asks for what is still inside."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether there is nothing more without more data."""
        ...

    @property
    def eof(self) -> bool:
        """Whether the stream has ended."""
        ...

    @property
    def unused(self) -> bytes:
        """What follows the end of the stream."""
        ...


class _Zlib:
    def __init__(self) -> None:
        self.inner = zlib.decompressobj(wbits=31)
        self.full = False  # then there may be more, even of input that is all taken

    def feed(self, data: bytes) -> bytes:
        made = self.inner.decompress(self.inner.unconsumed_tail + data, PIECE)
        self.full = len(made) == PIECE
        return made

    @property
    def needs_input(self) -> bool:
        return not self.full and not self.inner.unconsumed_tail

    @property
    def eof(self) -> bool:
        return self.inner.eof

    @property
    def unused(self) -> bytes:
        return self.inner.unused_data


class _Standard:
    """bzip2, xz and Zstandard: the standard library gives them one face."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def feed(self, data: bytes) -> bytes:
        return self.inner.decompress(data, PIECE)

    @property
    def needs_input(self) -> bool:
        return self.inner.needs_input

    @property
    def eof(self) -> bool:
        return self.inner.eof

    @property
    def unused(self) -> bytes:
        return self.inner.unused_data


def _module(name: str) -> Any:
    """A module of the standard library that some Pythons are built without."""
    try:
        return importlib.import_module(name)
    except ImportError:
        what = f"this Python has no module {name}"
        raise DataError("csv", what, cure=UNPACK) from None


def _bzip2() -> Decompressor:
    return _Standard(_module("bz2").BZ2Decompressor())


def _xz() -> Decompressor:
    return _Standard(_module("lzma").LZMADecompressor(memlimit=XZ_MEMORY))


FORMATS: dict[bytes, tuple[str, Callable[[], Decompressor]]] = {
    GZIP: ("gzip", _Zlib),
    b"BZh": ("bzip2", _bzip2),
    b"\xfd7zXZ\x00": ("xz", _xz),
}


def _format_of(begin: bytes) -> tuple[str, Callable[[], Decompressor]] | None:
    for mark, found in FORMATS.items():
        if begin.startswith(mark):
            return found
    if begin.startswith(b"\x28\xb5\x2f\xfd"):
        try:
            zstd: Any = importlib.import_module("compression.zstd")
        except ImportError:  # before Python 3.14
            return None
        return "Zstandard", lambda: _Standard(zstd.ZstdDecompressor())
    return None


def opened_text(file: IO[bytes], most: int, name: str, where: str) -> IO[bytes]:
    """The bytes of a file as they are when unpacked, `most` bytes at most.

    A file that is not compressed is returned as it is.

    Raises:
        DataError: it is compressed, or a table, in a way that is not read here. While
            it is read: it is damaged, cut off, or unpacks to more than `most`.
    """
    begin = file.read(LONGEST_MARK)
    file.seek(0)
    found = _format_of(begin)
    if found is not None:
        return io.BufferedReader(_Unpacked(file, most, name, *found))
    for kinds, verb in ((OTHERS, "is compressed as"), (TABLES, "is a file of")):
        for mark, (kind, cure) in kinds.items():
            if begin.startswith(mark):
                what = f"{name} {verb} {kind}, not text"
                facts = [("read here", "text; gzip, bzip2 and xz of it")]
                raise DataError(where, what, facts, cure)
    return file


class _Unpacked(io.RawIOBase):
    """What a compressed file unpacks to, up to a limit."""

    def __init__(
        self,
        file: IO[bytes],
        most: int,
        name: str,
        kind: str,
        make: Callable[[], Decompressor],
    ) -> None:
        super().__init__()
        self.file, self.most, self.name = file, most, name
        self.kind, self.make = kind, make
        self.size = 0
        self.pieces = self._unpack()
        self.rest = memoryview(b"")

    def _unpack(self) -> Iterator[bytes]:
        stream, streams = self.make(), 1
        data = self.file.read(CHUNK)
        while data or not stream.needs_input:
            try:
                piece = stream.feed(data)
            except Exception as error:  # each module has one of its own
                raise self._damaged(error) from None
            self.size += len(piece)
            if self.size > self.most:
                what = f"{self.name} unpacks to more than {self.most:,} bytes"
                raise DataError(self.kind, what, cure=f"{UNPACK}, if it is your own")
            yield piece
            data = b""
            if stream.eof:  # others may follow, or zeros up to a whole block
                data = self._more(stream.unused)
                if not data:
                    return
                stream, streams = self.make(), streams + 1
            elif stream.needs_input:
                data = self.file.read(CHUNK)
        what = f"{self.name} is cut off after {self.size:,} decompressed bytes"
        raise DataError(self.kind, what, cure=AGAIN)

    def _more(self, data: bytes) -> bytes:
        """What follows a stream, without zeros that only fill it up."""
        while not (data := data.lstrip(b"\0")):
            data = self.file.read(CHUNK)
            if not data:
                return b""
        return data

    def _damaged(self, error: Exception) -> DataError:
        why = f"it is not {self.kind} data"
        if "check" in str(error).lower():
            why = "its checksum differs"
        what = f"{self.name} is damaged after {self.size:,} decompressed bytes: {why}"
        return DataError(self.kind, what, cure=AGAIN)

    def readable(self) -> bool:
        return True

    def readinto(self, room: Any) -> int:
        while not self.rest:
            piece = next(self.pieces, None)
            if piece is None:
                return 0
            self.rest = memoryview(piece)
        count = min(len(room), len(self.rest))
        room[:count] = self.rest[:count]
        self.rest = self.rest[count:]
        return count
