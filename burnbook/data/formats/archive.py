"""Read a tar archive without trusting it.

Nothing in an archive is trusted: names stay inside the folder, only regular files come
out (no links, no devices), and their number and size have a limit that holds while the
archive is being decompressed, not after.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import shutil
import tarfile
import uuid
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from burnbook.core.errors import DataError
from burnbook.data.dataset.source.transfer import remove_abandoned
from burnbook.data.formats.idx import AGAIN, GZIP

CHUNK = 1 << 18
LONGEST_HEADER = 1 << 20  # a name, even in an extended header, is far shorter
ENDINGS = (".tar.gz", ".tgz", ".tar")


class Seekable(Protocol):
    """A stream that can also go back to its beginning."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...

    def seek(self, place: int, /) -> int:
        """Go to a place."""
        ...


class Readable(Protocol):
    """A stream that gives its bytes piece by piece."""

    def read(self, size: int, /) -> bytes:
        """Return up to `size` bytes, none at the end."""
        ...


@dataclass(frozen=True)
class Bounds:
    """How much an archive may hold."""

    files: int = 10_000
    size: int = 1 << 30  # bytes, unpacked


def read_tar(
    file: Seekable, name: str, bounds: Bounds
) -> Generator[tuple[str, Readable]]:
    """Walk over the files of a tar archive, gzipped or not: path, content.

    Each content must be read before the next one is asked for.
    """
    raw = _Forward(_unpacking(file), name, bounds.size)
    count = 0
    with _explained(name), tarfile.open(fileobj=raw, mode="r:") as archive:  # type: ignore[arg-type]  # it reads, seeks and tells
        while (member := archive.next()) is not None:
            cast: Any = archive
            cast.members = []  # or it would remember every one
            path = _safe(member.name, name)
            if member.isdir():
                continue
            if not member.isreg() or member.issparse():
                what = f"{name} holds {path!r}, which is not a regular file"
                raise DataError("archive", what)
            count += 1
            if count > bounds.files:
                what = f"{name} holds more than {bounds.files:,} files"
                raise DataError("archive", what)
            content = archive.extractfile(member)
            if content is not None:
                yield path, _Explained(content, name)
        raw.must_be_over()


def extract_tar(file: Seekable, name: str, folder: Path, bounds: Bounds) -> None:
    """Unpack an archive into a folder that appears only when it is whole."""
    remove_abandoned(folder)
    working = folder.with_name(f".{folder.name}.{uuid.uuid4().hex}.part")
    try:
        with contextlib.closing(read_tar(file, name, bounds)) as files:
            for path, content in files:
                _write(working, path, content, name)
        if not working.is_dir():
            raise DataError("archive", f"{name} holds no files")
        if hasattr(os, "sync"):
            os.sync()  # once for all files: the name below must not outlive them
        try:
            working.rename(folder)
        except OSError as error:
            if not folder.is_dir():  # or another process was faster
                raise _cannot(name, str(folder), error) from None
    finally:
        shutil.rmtree(working, ignore_errors=True)


def _write(working: Path, path: str, content: Readable, name: str) -> None:
    """Write one file; what cannot be read has its own error, so OSErrors are ours."""
    target = working / path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with open(target, "xb") as out:
            while piece := content.read(CHUNK):
                out.write(piece)
    except FileExistsError:
        raise DataError("archive", f"{name} holds {path!r} twice") from None
    except OSError as error:
        raise _cannot(name, path, error) from None


def _cannot(name: str, path: str, error: OSError) -> DataError:
    why = error.strerror or error
    return DataError("archive", f"{name} cannot be unpacked to {path}: {why}")


def _safe(path: str, name: str) -> str:
    """Return a path of the archive, relative and plain, or refuse it."""
    parts = PurePosixPath(path).parts
    plain = path.isprintable() and not any(sign in path for sign in "\\:")
    if not plain or path.startswith("/") or ".." in parts or len(path) > 1000:
        what = f"{name} holds a path that leads out of its folder: {path[:80]!a}"
        raise DataError("archive", what)
    return "/".join(parts)


def _unpacking(file: Any) -> Any:
    packed = file.read(2) == GZIP
    file.seek(0)
    return gzip.GzipFile(fileobj=file) if packed else file


class _Forward:
    """A stream for tarfile that only goes forward, in small steps, up to a limit."""

    def __init__(self, raw: Any, name: str, limit: int) -> None:
        self.raw = raw
        self.name = name
        self.limit = limit
        self.place = 0
        self.last = b""

    def read(self, size: int) -> bytes:
        """Return the next bytes; a header that asks for megabytes is not one."""
        if not 0 <= size <= LONGEST_HEADER:
            raise self._damaged()
        self.last = self.raw.read(size)
        self.place += len(self.last)
        if self.place > self.limit:
            what = f"{self.name} unpacks to more than {self.limit:,} bytes"
            raise DataError("archive", what)
        return self.last

    def seek(self, place: int) -> int:
        """Skip to a later place."""
        if place < self.place:
            raise self._damaged()
        while self.place < place and self.read(min(CHUNK, place - self.place)):
            pass
        return self.place

    def tell(self) -> int:
        """Return the current position."""
        return self.place

    def must_be_over(self) -> None:
        """Check that the archive ended with its marker and that nothing follows."""
        whole = len(self.last) == 512 and not any(self.last)
        while whole and (rest := self.read(CHUNK)):
            whole = not any(rest)
        if not whole:
            raise self._damaged()

    def _damaged(self) -> DataError:
        what = f"{self.name} is damaged or cut off after {self.place:,} bytes"
        return DataError("archive", what, cure=AGAIN)


class _Explained:
    """The content of a file in an archive; damage shows while it is read."""

    def __init__(self, content: Readable, name: str) -> None:
        self.content = content
        self.name = name

    def read(self, size: int, /) -> bytes:
        """Return the next bytes."""
        with _explained(self.name):
            return self.content.read(size)


@contextlib.contextmanager
def _explained(name: str) -> Generator[None]:
    """Raise our own error for a damaged archive.

    Why: tarfile meets damage in many ways, with errors of its own, of zlib, of struct.
    """
    try:
        yield
    except DataError:
        raise
    except Exception:
        what = f"{name} is not a complete tar archive"
        raise DataError("archive", what, cure=AGAIN) from None
