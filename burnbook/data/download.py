"""Building blocks · Dataset. Fetch a file from the first mirror that has it whole.

A file is wanted by its content: the length and the SHA-256 of what it decompresses to,
since mirrors pack it differently. It is checked while it arrives, in memory, and takes
its place in the cache only when it is right; a broken one leaves nothing behind.
(pooch has one address per file and checks the packed file, so the standard library
does it here.)
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from burnbook.data.idx import GZIP, Inflate, unpacked
from burnbook.errors import DataError
from burnbook.files import atomic_write

TIMEOUT = 20.0  # seconds without a byte before a mirror is given up
SLOWEST = 2_000  # bytes a second: what is slower on average, after TIMEOUT, hangs
CHUNK = 1 << 16
Report = Callable[[str, int, int | None], None]  # file, bytes received, bytes in all


@dataclass(frozen=True)
class RemoteFile:
    """A file that mirrors offer: its name there, and what it must decompress to."""

    name: str
    size: int
    sha256: str
    packed: str = ".gz"  # what mirrors append to the name

    def problem(self, content: bytes) -> str | None:
        """Say what is wrong with this content, or None."""
        if len(content) != self.size:
            return f"expected {self.size:,} bytes, found {len(content):,}"
        found = hashlib.sha256(content).hexdigest()
        if found != self.sha256:
            return f"expected SHA-256 {self.sha256}, found {found}"
        return None


def cached(file: RemoteFile, folder: Path) -> bytes | None:
    """Return the file's content if the cache has it whole, packed or not.

    Why: it is checked at every reading, since a disk or a hand may have changed it.
    """
    for path in (folder / file.name, folder / (file.name + file.packed)):
        with contextlib.suppress(OSError, DataError):
            if path.stat().st_size > file.size + CHUNK:
                continue
            content = unpacked(path.read_bytes(), file.size, path.name)
            if file.problem(content) is None:
                return content
    return None


def obtain(
    file: RemoteFile,
    folder: Path,
    mirrors: Sequence[str],
    offline: str,
    report: Report | None = None,
) -> bytes:
    """Return a file from the cache, or from the first mirror that has it whole.

    `offline` says what to do without a network; `report` hears about progress.
    """
    content = cached(file, folder)
    if content is not None:
        return content
    problems: list[tuple[str, str]] = []
    for mirror in mirrors:
        try:
            content = _fetch(mirror, file, report)
        except _Unusable as error:
            problems.append((mirror, str(error)))
            continue
        with atomic_write(folder / file.name) as target:
            target.write(content)
        return content
    what = f"{file.name} cannot be had from any of {len(mirrors)} mirrors"
    raise DataError("download", what, problems, offline)


def as_url(mirror: str) -> str:
    """Return a mirror as an address that ends with a slash; a folder becomes file://."""
    if "://" not in mirror:
        mirror = Path(mirror).expanduser().resolve().as_uri()
    return mirror.rstrip("/") + "/"


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


class _Unusable(Exception):
    """Why a mirror cannot be used."""


def _fetch(mirror: str, file: RemoteFile, report: Report | None) -> bytes:
    url = as_url(mirror) + file.name + file.packed
    try:
        request = urllib.request.Request(url, headers={"User-Agent": "burnbook"})
        with _opener().open(request, timeout=TIMEOUT) as response:
            content = _receive(response, file, report)
    except urllib.error.HTTPError as error:
        raise _Unusable(f"answered {error.code} {error.reason}") from None
    except urllib.error.URLError as error:
        raise _Unusable(f"cannot be reached: {error.reason}") from None
    except TimeoutError:
        raise _Unusable(f"sent nothing for {TIMEOUT:g} seconds") from None
    except http.client.IncompleteRead as error:
        raise _Unusable(f"broke off: {error}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise _Unusable(f"{type(error).__name__}: {error}") from None
    if problem := file.problem(content):
        raise _Unusable(f"sent another content: {problem}")
    return content


def _receive(response: Any, file: RemoteFile, report: Report | None) -> bytes:
    head = response.read(2)
    pieces = _pieces(response, head, file, report)
    if head != GZIP:
        return b"".join(pieces)
    inflate = Inflate(file.size, file.name)
    try:
        content = [inflate.feed(piece) for piece in pieces]
        return b"".join([*content, inflate.end()])
    except DataError as error:  # damaged, cut off or too long while unpacking
        raise _Unusable(error.what) from None


def _pieces(
    response: Any, head: bytes, file: RemoteFile, report: Report | None
) -> Iterator[bytes]:
    """Read what arrives, watching its amount and its pace."""
    length = response.headers.get("Content-Length") or ""
    total = int(length) if length.isdigit() else None
    received, began, piece = 0, time.monotonic(), head
    while piece:
        yield piece
        received += len(piece)
        if received > file.size + CHUNK:
            raise _Unusable(f"sent more than the {file.size:,} bytes expected")
        passed = time.monotonic() - began
        if passed > TIMEOUT and received < SLOWEST * passed:
            raise _Unusable(f"sent only {received:,} bytes in {passed:.0f} seconds")
        if report:
            report(file.name, received, total)
        piece = response.read1(CHUNK)
    if total is not None and received != total:
        raise _Unusable(f"broke off after {received:,} of {total:,} bytes")


def _opener() -> urllib.request.OpenerDirector:
    """Open http, https (through the user's proxy) and file addresses, nothing else."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.UnknownHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPRedirectHandler(),
        urllib.request.HTTPErrorProcessor(),
        _FilesHere(),
    ):
        opener.add_handler(handler)
    return opener


class _FilesHere(urllib.request.FileHandler):
    """Read file:// addresses of this machine only; never turn them into ftp."""

    def file_open(self, req: urllib.request.Request) -> Any:
        if req.host and req.host != "localhost":
            raise urllib.error.URLError("file:// is for files of this machine")
        return self.open_local_file(req)


def mirrors_of(variable: str, known: Sequence[str]) -> list[str]:
    """Return the mirror named in the environment, if any, before the known ones."""
    own = os.environ.get(variable, "").strip()
    return [*([own] if own else []), *known]
