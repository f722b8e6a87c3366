"""Receive one file, and go on where the last attempt broke off.

What arrives is kept in a file of its own, whose name says that it is not whole. When
the connection breaks, today or yesterday, the server is asked for the rest only
(HTTP Range), on condition that its file is still the same one (If-Range).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from burnbook.core.errors import DataError

try:
    import fcntl
except ImportError:  # not on Windows: there a second download has its own part
    fcntl = None

TIMEOUT = 20.0  # seconds without a byte before a mirror is given up
SLOWEST = 2_000  # bytes a second: what is slower on average, after TIMEOUT, hangs
CHUNK = 1 << 16
TRIES = 3  # how often a connection may break without a single new byte
MOST_TRIES = 50  # and how often in all
PAUSE = 0.5  # seconds before the next try
LARGEST = 1 << 33  # bytes of a file of unknown size
Report = Callable[[str, int, int | None], None]  # file, bytes received, bytes in all


class Unusable(Exception):
    """Why a mirror cannot be used; `absent` when it just has no such file."""

    def __init__(self, why: str, absent: bool = False) -> None:
        super().__init__(why)
        self.absent = absent


class Broken(Unusable):
    """The connection broke: what has arrived is good, the rest may follow."""


class Part:
    """What has arrived of a file, kept beside its place until it is whole.

    A note beside it says from which address it came and which version it is of. Only
    with that it is worth keeping; without it, leaving the block removes it.
    """

    def __init__(self, target: Path) -> None:
        self.path = target.with_name(f".{target.name}.part")
        self.url = self.version = ""
        remove_abandoned(target)
        folders = self.path.parents
        self.made = [folder for folder in folders if not folder.exists()]
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            file = _alone(self.path)
            if file is None:  # another process is at it
                unique = f".{target.name}.{uuid.uuid4().hex}.part"
                self.path = target.with_name(unique)
                file = open(self.path, "x+b")  # noqa: SIM115 (closed in __exit__)
        except OSError as error:
            raise self._trouble(error) from None
        self.file: IO[bytes] = file
        self.size = file.seek(0, os.SEEK_END)
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
            note = json.loads(self.note.read_text("utf-8"))
            self.url, self.version = str(note["url"]), str(note["version"])

    @property
    def note(self) -> Path:
        """The file that says what this is a part of."""
        return self.path.with_suffix(".from")

    def __enter__(self) -> Part:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if fcntl is None:
            self.file.close()
        if not (self.size and self.version and kind):
            for path in (self.note, self.path):
                with contextlib.suppress(OSError):
                    path.unlink()
        self.file.close()
        with contextlib.suppress(OSError):  # a folder that holds something stays
            for folder in self.made:
                folder.rmdir()

    def start(self, url: str, version: str) -> None:
        """Start over with what this address offers now."""
        try:
            self.file.seek(0)
            self.file.truncate()
            self.size, self.url, self.version = 0, url, version
            note = json.dumps({"url": url, "version": version})
            self.note.write_text(note, "utf-8")
        except OSError as error:
            raise self._trouble(error) from None

    def add(self, piece: bytes) -> None:
        """Keep the next bytes."""
        try:
            self.file.seek(self.size)
            self.file.write(piece)
            self.file.flush()
        except OSError as error:
            raise self._trouble(error) from None
        self.size += len(piece)

    def reader(self) -> IO[bytes]:
        """Return the file, to be read from its beginning."""
        self.file.seek(0)
        return self.file

    def _trouble(self, error: OSError) -> DataError:
        what = f"{self.path.parent} cannot be written: {error.strerror or error}"
        return DataError("download", what, cure="BURNBOOK_CACHE=/a/folder/of/yours")


def remove_abandoned(target: Path, older_than: float = 86_400.0) -> None:
    """Remove what killed processes have left of `target` under names of their own.

    Only what nobody has touched for `older_than` seconds goes.
    """
    own = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{32}}\.(part|from)")
    with contextlib.suppress(OSError):
        for path in target.parent.iterdir():
            old = time.time() - path.lstat().st_mtime >= older_than
            if own.fullmatch(path.name) and old:
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink()


def receive(
    url: str, part: Part, expected: int | None, name: str, report: Report | None
) -> None:
    """Fill the part with what the address offers, in several attempts if need be.

    `expected` is what the file may hold at most, packed or not.
    """
    best = part.size if part.url == url else 0
    tries, problem = 0, ""
    for _ in range(MOST_TRIES):
        try:
            return _attempt(url, part, expected, name, report)
        except Broken as error:
            problem = str(error)
        tries = 0 if part.size > best else tries + 1
        best = max(best, part.size)
        if tries == TRIES - 1:
            break
        time.sleep(PAUSE)
    raise Unusable(problem)


def _attempt(
    url: str, part: Part, expected: int | None, name: str, report: Report | None
) -> None:
    headers = {"User-Agent": "burnbook"}
    rest = bool(part.size and part.version and part.url == url)
    if rest:
        headers |= {"Range": f"bytes={part.size}-", "If-Range": part.version}
    try:
        request = urllib.request.Request(url, headers=headers)
        response = _opener().open(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == 416 and rest:  # there is nothing after what we have
            if error.headers.get("Content-Range") == f"bytes */{part.size}":
                return
            part.start(url, "")
            raise Broken("answered 416: its file is shorter than it was") from None
        why = f"answered {error.code} {error.reason}"
        raise Unusable(why, absent=error.code == 404) from None
    except urllib.error.URLError as error:
        absent = "No such file" in str(error.reason)
        raise Unusable(f"cannot be reached: {error.reason}", absent) from None
    except TimeoutError:
        raise Unusable(f"sent nothing for {TIMEOUT:g} seconds") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Unusable(f"{type(error).__name__}: {error}") from None
    with response:
        _begin(response, part, url)
        _body(response, part, expected, name, report)


def _begin(response: Any, part: Part, url: str) -> None:
    """Go on with the part, or start over when the server sends everything again."""
    headers = response.headers
    if getattr(response, "status", None) == 206:
        span = re.fullmatch(r"bytes (\d+)-\d+/[\d*]+", headers["Content-Range"] or "")
        if span is None or int(span[1]) != part.size:
            part.start(url, "")
            raise Broken("sent another range of bytes than was asked for")
        return
    tag = headers["ETag"] or ""
    weak = not tag or tag.startswith("W/")
    part.start(url, headers["Last-Modified"] or "" if weak else tag)


def _body(
    response: Any, part: Part, expected: int | None, name: str, report: Report | None
) -> None:
    """Read what arrives, watching its amount and its speed."""
    length = response.headers.get("Content-Length") or ""
    total = part.size + int(length) if length.isdigit() else None
    most = LARGEST if expected is None else expected
    received, began = 0, time.monotonic()
    while piece := _piece(response):
        part.add(piece)
        received += len(piece)
        if part.size > most + CHUNK:
            part.start(part.url, "")
            raise Unusable(f"sent more than the {most:,} bytes expected")
        passed = time.monotonic() - began
        if passed > TIMEOUT and received < SLOWEST * passed:
            raise Unusable(f"sent only {received:,} bytes in {passed:.0f} seconds")
        if report:
            report(name, part.size, total)
    if total is not None and part.size != total:
        raise Broken(f"broke off after {part.size:,} of {total:,} bytes")


def _piece(response: Any) -> bytes:
    try:
        return response.read1(CHUNK)
    except TimeoutError:
        raise Broken(f"sent nothing for {TIMEOUT:g} seconds") from None
    except http.client.IncompleteRead as error:
        raise Broken(f"broke off: {error}") from None
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise Broken(f"{type(error).__name__}: {error}") from None


def _alone(path: Path) -> IO[bytes] | None:
    """Open the part for us alone; None where another process has it."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
    file = os.fdopen(handle, "r+b")
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The one who had the lock may have removed the file that we opened.
            if os.path.samestat(os.fstat(handle), path.stat()):
                return file
    except OSError:
        pass
    file.close()
    return None


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
