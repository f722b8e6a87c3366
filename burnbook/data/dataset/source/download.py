"""Fetch a file from the first mirror that has it whole.

A file is wanted by its content: the length and the checksum of what it decompresses to,
since mirrors pack it differently. It takes its place in the cache only when it is
right. A mirror is a folder with the files, or an archive that holds them; a download
that breaks off is resumed (transfer.py). (pooch has one address per file, checks the
packed file and starts over each time, so the standard library does it here.)
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from burnbook.core.errors import ConfigError, DataError
from burnbook.core.files import atomic_write, open_regular, read_whole, remove_leftovers
from burnbook.data.dataset.source.transfer import Part, Report, Unusable, receive
from burnbook.data.formats.archive import (
    ENDINGS,
    Bounds,
    Readable,
    extract_tar,
    read_tar,
)
from burnbook.data.formats.idx import GZIP, Inflate

CHUNK = 1 << 20
USUAL = Bounds()
LARGEST = 1 << 33  # bytes of a file of unknown size
ALGORITHMS = {32: ("md5", "MD5"), 64: ("sha256", "SHA-256")}  # by digits of the sum


@dataclass(frozen=True)
class RemoteFile:
    """A file that mirrors offer: its name there, and what it must decompress to.

    A checksum of 64 digits is SHA-256, one of 32 is MD5.
    """

    name: str
    size: int | None = None
    checksum: str | None = None
    packed: str = ".gz"  # what mirrors append to the name
    packed_checksum: str | None = None  # of the packed file, where only that is known


@dataclass(frozen=True)
class Archive:
    """A mirror that has all files in one tar archive."""

    url: str
    size: int | None = None
    checksum: str | None = None
    bounds: Bounds = USUAL

    @property
    def name(self) -> str:
        """The name of the archive itself."""
        return self.url.rstrip("/").rpartition("/")[2]


Mirror = str | Archive


class Content:
    """Counts and sums up what passes by, to say in the end whether it is right."""

    def __init__(self, size: int | None, checksum: str | None) -> None:
        self.expected, self.checksum = size, checksum
        self.size = 0
        name, self.label = ALGORITHMS[len(checksum or "") or 64]
        self._sum = hashlib.new(name, usedforsecurity=False)

    def add(self, piece: bytes) -> None:
        """See the next bytes."""
        self.size += len(piece)
        self._sum.update(piece)

    @property
    def found(self) -> str:
        """The checksum of what has passed."""
        return self._sum.hexdigest()

    def problem(self) -> str | None:
        """Say what is wrong with what has passed, or None."""
        if self.expected is not None and self.size != self.expected:
            return f"expected {self.expected:,} bytes, found {self.size:,}"
        if self.checksum is not None and self.found != self.checksum:
            return f"expected {self.label} {self.checksum}, found {self.found}"
        return None


def cached(file: RemoteFile, folder: Path) -> Path | None:
    """Return the file's place if the cache has it whole; unpack it if need be.

    Why: it is checked at every reading, since a disk or a person may have changed it.
    """
    path = folder / file.name
    content = Content(file.size, file.checksum or _noted(path))
    with contextlib.suppress(OSError):
        if file.size is None or path.stat().st_size == file.size:
            with _cached(path) as plain:
                for piece in _pieces(plain):
                    content.add(piece)
            if content.problem() is None:
                return path
    with contextlib.suppress(OSError, Unusable):
        with _cached(folder / (file.name + (file.packed or ".gz"))) as packed:
            _keep(packed, file, path)
        return path
    return None


def obtain(
    file: RemoteFile,
    folder: Path,
    mirrors: Sequence[Mirror],
    offline: str,
    report: Report | None = None,
) -> bytes:
    """Return a file's content from the cache, or from the first mirror that has it.

    `offline` says what to do without a network; `report` is told the progress.
    """
    return obtain_path(file, folder, mirrors, offline, report).read_bytes()


def obtain_path(
    file: RemoteFile,
    folder: Path,
    mirrors: Sequence[Mirror],
    offline: str,
    report: Report | None = None,
    others: Sequence[RemoteFile] = (),
) -> Path:
    """Return where a file lies in the cache, after fetching it if need be.

    `others` are kept too when they come along in the same archive.
    """
    path = cached(file, folder)
    if path is not None:
        return path
    remove_leftovers(folder)  # of writers that were killed
    problems: list[tuple[str, str]] = []
    for mirror in [*_by_hand(folder, mirrors), *mirrors]:
        try:
            if isinstance(mirror, Archive):
                _from_archive(mirror, (file, *others), folder, report)
            else:
                _from_folder(mirror, file, folder, report)
        except Unusable as error:
            problems.append((_shown(mirror), str(error)))
            continue
        return folder / file.name
    what = f"{file.name} cannot be loaded from any of {len(problems)} mirrors"
    raise DataError("download", what, problems, offline)


def obtain_folder(
    folder: Path, mirrors: Sequence[Archive], offline: str, report: Report | None = None
) -> Path:
    """Return a folder with everything that an archive holds.

    It appears only when it is whole, so a folder that is there needs no other check.
    """
    if folder.is_dir():
        return folder
    problems: list[tuple[str, str]] = []
    for mirror in [*_by_hand(folder.parent, mirrors), *mirrors]:
        try:
            _whole_archive(mirror, folder, report)
        except Unusable as error:
            problems.append((_shown(mirror), str(error)))
            continue
        return folder
    what = f"{folder.name} cannot be loaded from any of {len(problems)} mirrors"
    raise DataError("download", what, problems, offline)


def mirrors_of(variable: str, known: Sequence[Mirror]) -> list[Mirror]:
    """Return the mirror named in the environment, if any, before the known ones."""
    own = os.environ.get(variable, "").strip()
    if not own:
        return list(known)
    archives = [one for one in known if isinstance(one, Archive)]
    if own.lower().endswith(ENDINGS):
        bounds = archives[0].bounds if archives else USUAL
        return [Archive(_as_address(own), bounds=bounds), *known]
    return [own, *known]


def archives_of(variable: str, known: Sequence[Archive]) -> list[Archive]:
    """Return the archives to try: in the user's own folder, if any, then the known."""
    found = mirrors_of(variable, known)
    first, rest = found[0], [one for one in found if isinstance(one, Archive)]
    if isinstance(first, Archive):
        return rest
    return [*(replace(one, url=as_url(first) + one.name) for one in known), *rest]


def with_checksums(
    files: Sequence[RemoteFile], checksums: Mapping[str, str] | None
) -> list[RemoteFile]:
    """Return the files with the user's own checksums in place of the known ones."""
    own = dict(checksums or {})
    found: list[RemoteFile] = []
    for file in files:
        checksum = own.pop(file.name, None)
        if checksum is None:
            found.append(file)
        else:
            found.append(
                RemoteFile(file.name, None, as_checksum(checksum), file.packed)
            )
    if own:
        what = f"there is no file {next(iter(own))!r}"
        facts = [("files", ", ".join(file.name for file in files))]
        raise ConfigError("checksums", what, facts)
    return found


def as_url(mirror: str) -> str:
    """Return a mirror as an address that ends with a slash; a folder becomes file://."""
    return _as_address(mirror).rstrip("/") + "/"


class TextProgress:
    """Show a download as one line that counts up, on a stream such as stderr."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._shown = 0.0

    def __call__(self, name: str, received: int, total: int | None) -> None:
        """Write the line anew, at most ten times a second."""
        now, done = time.monotonic(), received == total
        if now - self._shown < 0.1 and not done:
            return
        self._shown = now
        size = f"{received / 1e6:.1f}"
        if total:
            size += f" / {total / 1e6:.1f} MB ({100 * received // total} %)"
        self.stream.write(f"\r{name}  {size}" + ("\n" if done else ""))
        self.stream.flush()


def default_report() -> Report | None:
    """Report to the terminal if there is one; a notebook's page stays clean."""
    stream = sys.stderr
    return TextProgress(stream) if stream is not None and stream.isatty() else None


def _from_folder(
    mirror: str, file: RemoteFile, folder: Path, report: Report | None
) -> None:
    """Fetch one file; one that is not packed may be packed there all the same."""
    try:
        _one_file(as_url(mirror) + file.name + file.packed, file, folder, report)
    except Unusable as error:
        if file.packed or not error.absent:
            raise
        _one_file(as_url(mirror) + file.name + ".gz", file, folder, report)


def _one_file(url: str, file: RemoteFile, folder: Path, report: Report | None) -> None:
    with Part(folder / url.rpartition("/")[2]) as part:
        receive(url, part, file.size, file.name, report)
        try:
            _keep(part.reader(), file, folder / file.name)
        except Unusable:
            part.start("", "")  # nothing in it is worth keeping
            raise


def _from_archive(
    mirror: Archive, files: Sequence[RemoteFile], folder: Path, report: Report | None
) -> None:
    """Fetch an archive and keep those of its files that are wanted."""
    wanted = {file.name: file for file in files}
    first = files[0].name
    with _received(mirror, folder, report) as reader:
        found: set[str] = set()
        tar = read_tar(reader, mirror.name, mirror.bounds)
        with contextlib.closing(tar):
            for path, content in tar:
                file = wanted.get(path.rpartition("/")[2])
                if file is None or file.name in found:
                    continue
                try:
                    _keep(content, file, folder / file.name, unpack=False)
                except Unusable:
                    if file.name == first:
                        raise
                found.add(file.name)
        if first not in found:
            raise Unusable(f"has no {first} in it")


def _whole_archive(mirror: Archive, folder: Path, report: Report | None) -> None:
    with _received(mirror, folder.parent, report) as reader:
        told = _Told(reader, f"{mirror.name}, unpacking", report)
        extract_tar(told, mirror.name, folder, mirror.bounds)


@contextlib.contextmanager
def _received(
    mirror: Archive, folder: Path, report: Report | None
) -> Generator[IO[bytes]]:
    """Fetch an archive, check it, and hand it over to be read.

    One that lies on this machine is read where it is.
    """
    with contextlib.ExitStack() as stack:
        part = None
        if mirror.url.startswith("file:///"):
            path = urllib.request.url2pathname(urllib.parse.urlsplit(mirror.url).path)
            try:
                source: IO[bytes] = stack.enter_context(_cached(path))
            except OSError as error:
                raise Unusable(f"cannot be reached: {error}") from None
        else:
            part = stack.enter_context(Part(folder / mirror.name))
            receive(mirror.url, part, mirror.size, mirror.name, report)
            source = part.reader()
        try:
            _check_archive(mirror, source)
            yield source
        except (DataError, Unusable) as error:
            ours = isinstance(error, DataError)
            if ours and error.where not in ("archive", "gzip"):
                raise  # no space or no permission: the archive is fine
            if part:
                part.start("", "")  # nothing in it is worth keeping
            raise Unusable(error.what if ours else str(error)) from None


def _check_archive(mirror: Archive, source: IO[bytes]) -> None:
    content = Content(mirror.size, mirror.checksum)
    source.seek(0)
    for piece in _pieces(source):
        content.add(piece)
    source.seek(0)
    if problem := content.problem():
        raise Unusable(f"sent different content: {problem}")


class _Told:
    """A file that reports how far it has been read."""

    def __init__(self, file: IO[bytes], name: str, report: Report | None) -> None:
        self.file, self.name, self.report = file, name, report
        self.size = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        piece = self.file.read(size)
        if self.report and piece:
            self.report(self.name, self.file.tell(), self.size)
        return piece

    def seek(self, place: int) -> int:
        """Go to a place."""
        return self.file.seek(place)


def _keep(
    source: Readable, file: RemoteFile, target: Path, unpack: bool = True
) -> None:
    """Write what the source decompresses to under `target`, if it is right."""
    content = Content(file.size, file.checksum)
    outside = Content(None, file.packed_checksum)
    with atomic_write(target) as out:
        try:
            for piece in _plain(source, file, outside, unpack):
                content.add(piece)
                out.write(piece)
        except DataError as error:  # damaged, cut off or too long while unpacking
            raise Unusable(error.what) from None
        problem = content.problem()
        if file.checksum is None and unpack:
            problem = problem or outside.problem()
        if problem:
            raise Unusable(f"sent different content: {problem}")
    if file.checksum is None:
        with atomic_write(_note(target)) as note:
            note.write(f"{content.found}  {file.name}\n".encode())


def _plain(
    source: Readable, file: RemoteFile, outside: Content, unpack: bool
) -> Iterator[bytes]:
    """Give what a source holds, decompressed if it is gzipped, piece by piece."""
    inflate = None
    for i, piece in enumerate(_pieces(source)):
        outside.add(piece)
        if i == 0 and unpack and piece[:2] == GZIP:
            limit = LARGEST if file.size is None else file.size
            inflate = Inflate(limit, file.name)
        yield from inflate.pieces(piece) if inflate else (piece,)
    if inflate:
        yield inflate.end()


def _pieces(source: Readable) -> Iterator[bytes]:
    while piece := source.read(CHUNK):
        yield piece


def _cached(path: str | Path) -> IO[bytes]:
    """Open what lies there, if it is a file."""
    try:
        return open_regular(path)
    except DataError as error:
        raise OSError(error.what) from None


def _note(path: Path) -> Path:
    return path.with_name(path.name + ".sha256")


def _noted(path: Path) -> str | None:
    """Return the checksum that was written down when the file was fetched."""
    with contextlib.suppress(DataError, UnicodeDecodeError):
        words = read_whole(_note(path), most=4096).decode("ascii").split()
        if words and len(words[0]) == 64:
            return words[0]
    return None


def _by_hand(folder: Path, mirrors: Sequence[Mirror]) -> list[Archive]:
    """Return the archives that somebody has put into the cache by hand."""
    found: list[Archive] = []
    for mirror in mirrors:
        if isinstance(mirror, Archive) and (folder / mirror.name).is_file():
            found.append(replace(mirror, url=(folder / mirror.name).as_uri()))
    return found[:1]


def _shown(mirror: Mirror) -> str:
    return mirror.url if isinstance(mirror, Archive) else mirror


def _as_address(mirror: str) -> str:
    if "://" in mirror:
        return mirror
    return Path(mirror).expanduser().resolve().as_uri()


def as_checksum(text: str) -> str:
    """Return a checksum in plain form, or say that it is not one."""
    plain = text.strip().lower()
    if len(plain) not in ALGORITHMS or set(plain) - set("0123456789abcdef"):
        what = f"{text!r} is not a checksum"
        cure = "64 hexadecimal digits of SHA-256, or 32 of MD5"
        raise ConfigError("checksums", what, cure=cure)
    return plain
