"""What a saved file holds, believed only after everything was compared.

The zip file has a list of its own: path, size and SHA-256 of each file. What is in the
zip and not in the list, or the other way round, or under a path that no work has, or is
larger than work may be, makes the whole file refused before anything is written.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import zipfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from burnbook.cli.workspace.places import ARTIFACTS, folded, trouble_with
from burnbook.core.errors import BurnbookError, DataError
from burnbook.core.files import open_regular, printable

LIST = "burnbook-work.json"
MOST_FILES = 5_000
MOST_BYTES = 500_000_000  # unpacked
MOST_LIST = 4 << 20
MOST_DIRECTORY = 4 << 20  # what zipfile reads into memory
AGAIN = "the file as `burnbook save` wrote it: download it once more"
_END = struct.Struct("<4s4H2LH")  # the last record of a zip file
_SHA = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Entry:
    """A file as the list describes it.

    original: the SHA-256 of the page as it came, where it came with the book.
    """

    path: str
    size: int
    sha256: str
    unit: str = ""
    original: str = ""


def is_saved_work(path: Path) -> bool:
    """Whether a file looks like one that `save_work` wrote."""
    with suppress(OSError, BurnbookError), opened(path):
        return True
    return False


@contextmanager
def opened(path: Path) -> Generator[tuple[zipfile.ZipFile, list[Entry]]]:
    """A saved file that was checked: the archive, and what it holds."""
    where = f"restore {printable(path.name)}"
    with open_regular(path, DataError, where) as file:
        with explained(where):
            _check_end(file, where)
            archive = zipfile.ZipFile(file)
            entries = _entries(_read_list(archive, where), where)
            _check_paths(entries, where)
            _check_members(archive, entries, where)
        yield archive, entries


@contextmanager
def explained(where: str, besides: tuple[type[Exception], ...] = ()) -> Generator[None]:
    """Say in our words that a file is damaged; `besides` are errors that tell more.

    Why: zipfile, zlib and json meet damage in many ways, each with errors of its own.
    """
    try:
        yield
    except (BurnbookError, *besides):
        raise
    except Exception:
        what = "this is not saved work, or it is damaged"
        raise DataError(where, what, cure=AGAIN) from None


def _check_end(file: IO[bytes], where: str) -> None:
    """Look at the end of the file before zipfile does, which reads what that tells.

    Why: a small file can tell of millions of entries; ours are never that large, have
    no comment, and are in one piece.
    """
    length = file.seek(0, os.SEEK_END)
    if length < _END.size + 20:
        raise ValueError
    file.seek(-_END.size - 20, os.SEEK_END)
    tail = file.read()
    mark, disk, first, here, count, size, start, comment = _END.unpack(tail[20:])
    if mark != b"PK\5\6" or tail[:4] == b"PK\6\7" or disk or first or comment:
        raise ValueError
    if here != count or start + size + _END.size != length:
        raise ValueError
    if count > MOST_FILES + 1 or size > MOST_DIRECTORY:
        raise DataError(where, f"it holds {count:,} files, more than {MOST_FILES:,}")


def _read_list(archive: zipfile.ZipFile, where: str) -> Any:
    info = archive.getinfo(LIST)
    if info.file_size > MOST_LIST or info.flag_bits & 1:
        raise ValueError
    with archive.open(info) as source:
        return json.loads(source.read(MOST_LIST))


def _entries(content: Any, where: str) -> list[Entry]:
    """The list, as far as its types go."""
    if content["format"] != 1:
        what = f"it is of burnbook {str(content['burnbook'])[:20]!a}, which is newer"
        raise DataError(where, what, cure="pip install -U burnbook")
    found = [Entry(**each) for each in content["files"]]
    for entry in found:
        texts = [entry.path, entry.unit, entry.original, entry.sha256]
        if not all(isinstance(text, str) for text in texts):
            raise ValueError
        if type(entry.size) is not int or entry.size < 0:
            raise ValueError
        if not _SHA.fullmatch(entry.sha256):
            raise ValueError
    return found


def _check_paths(entries: list[Entry], where: str) -> None:
    """Every path is one that work can have, and none is in the way of another."""
    total = sum(entry.size for entry in entries)
    if total > MOST_BYTES:
        what = f"it unpacks to {total / 1e6:,.0f} MB, more than {MOST_BYTES / 1e6:,.0f}"
        raise DataError(where, what)
    for entry in entries:
        reason = trouble_with(entry.path, entry.unit) or _unit_trouble(entry)
        if reason:
            what = f"it holds {entry.path[:60]!a}, which does not belong to saved work"
            raise DataError(where, what, [reason])
    ends: dict[str, str] = {}
    for entry in entries:
        if folded(entry.path) in ends:
            raise DataError(where, f"it holds {entry.path!a} twice")
        ends[folded(entry.path)] = entry.unit
    units = {folded(entry.unit) for entry in entries if entry.unit}
    for entry in entries:
        own = folded(entry.unit)
        for above in _above(folded(entry.path)):
            if above in ends or (above in units and above != own):
                what = f"{entry.path!a} lies inside of another part of it"
                raise DataError(where, what)


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def _unit_trouble(entry: Entry) -> str | None:
    """A unit is an entry of `artifacts`, or a folder elsewhere."""
    parts = entry.unit.split("/")
    inside = parts[0] == ARTIFACTS
    if entry.unit and (len(parts) != 2 if inside else entry.unit == entry.path):
        return "artifacts are not divided like that"
    return None


def _check_members(archive: zipfile.ZipFile, entries: list[Entry], where: str) -> None:
    """The zip file holds what its list says, as ordinary files, and nothing else."""
    listed = {entry.path: entry.size for entry in entries}
    members = [info for info in archive.infolist() if info.filename != LIST]
    if len(members) != len(archive.infolist()) - 1:
        raise ValueError
    for info in members:
        if listed.pop(info.filename, None) != info.file_size:
            what = f"{info.filename[:80]!a} does not match its list"
            raise DataError(where, what, cure=AGAIN)
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG) or info.is_dir():
            what = f"{info.filename!a} is not a regular file but a link or a device"
            raise DataError(where, what)
        if info.flag_bits & 1 or info.compress_type not in (0, zipfile.ZIP_DEFLATED):
            raise ValueError
    if listed:
        raise DataError(where, f"{min(listed)!a} is missing from it", cure=AGAIN)
