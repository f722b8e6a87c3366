"""One training at a time in an artifact directory.

    <dir>/training-lock.json    {"process": 4711, "host": "lab-3", "since": …}

While it trains, a process holds a lock of the operating system on this file, which is
released however the process ends: `kill -9` leaves nothing in the way of a resume.
Where a file system has no locks, what is written in the file decides instead. Where no
such file can be written, training goes on without.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import stat
import time
import weakref
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from burnbook.core.errors import TrainingError
from burnbook.core.files import lock_file, shown_path

FILE = "training-lock.json"
SILENT_SECONDS = 120.0  # a run on another host that wrote nothing for so long is over
_LARGEST = 4096  # bytes that are read of a lock
_held: weakref.WeakSet[FolderLock] = weakref.WeakSet()  # by this process


@dataclass(frozen=True)
class Holder:
    """The training that holds a folder, as its lock says.

    birth: when its process began, as text that no later process with the same number
    shares; "" where that cannot be known.
    """

    name: str
    process: int
    host: str
    since: str
    birth: str = ""

    @classmethod
    def here(cls, name: str, since: datetime | None = None) -> Holder:
        """A training of this process that began now or at a given moment."""
        moment = (since or datetime.now(UTC)).isoformat(timespec="seconds")
        process = os.getpid()
        return cls(name, process, platform.node(), moment, _birth(process))

    @classmethod
    def read(cls, text: bytes) -> Holder | None:
        """What a lock says; None when it is empty or damaged."""
        try:
            tree: Any = json.loads(text)
            texts = [_plain(tree[key]) for key in ("name", "host", "since")]
            name, host, since = texts
            return cls(name, int(tree["process"]), host, since, str(tree["birth"]))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            return None

    def write(self) -> bytes:
        """The text of the lock."""
        return (json.dumps(vars(self), ensure_ascii=True) + "\n").encode()

    def refuse(self, directory: Path, sure: bool = True) -> TrainingError:
        """The error for whoever wants to train there too.

        sure: whether it is known that the training still runs.
        """
        where = f"artifact directory {shown_path(directory)}"
        facts = [
            ("run", self.name),
            ("process", f"{self.process} on {self.host}"),
            ("since", self.moment()),
        ]
        if self.process == os.getpid() and self.host == platform.node():
            what = "a training of this process already writes there"
            cure = (
                "handle.stop() or handle.wait() first, another folder, or "
                "start(train, valid, replace=True), which stops that training"
            )
        elif not self.process:
            what, facts = "another process already trains there", []
            cure = "end it first, or another folder"
        else:
            place = f"process {self.process} on {self.host}"
            what = f"{place} already trains there"
            cure = f"end {place} first, or another folder"
        if not sure:
            what = what.replace("already trains", "seems to train")
            cure += "; if it is gone: fit(train, valid, replace=True)"
        return TrainingError(where, what, facts, cure)

    def moment(self) -> str:
        """When it began, in local time."""
        try:
            moment = datetime.fromisoformat(self.since).astimezone()
        except (ValueError, OverflowError, OSError):
            return self.since
        return moment.strftime("%Y-%m-%d %H:%M:%S")


class FolderLock:
    """Holds a folder for the training of one process."""

    def __init__(self, directory: Path, name: str) -> None:
        self.directory = directory
        self.path = directory / FILE
        self.holder = Holder.here(name)
        self._file: int | None = None

    def acquire(self, replace: bool = False) -> None:
        """Take the folder; TrainingError where another training holds it.

        replace: take it also where it is unknown whether the other training still runs.
        """
        for _ in range(50):  # as often as somebody removes the file in between
            file = self._open()
            if file is None:
                return  # no file can be written there: training goes on without
            try:
                if self._take(file, replace):
                    self._file = file
                    _held.add(self)
                    return
            except BaseException:
                os.close(file)
                raise
            os.close(file)

    def release(self) -> None:
        """Give the folder back; nothing is left in it."""
        file, self._file = self._file, None
        _held.discard(self)
        if file is None:
            return
        with contextlib.suppress(OSError):
            if _is_at(file, self.path):
                self.path.unlink()  # while it is held, so that no other lock is removed
        with contextlib.suppress(OSError):
            os.close(file)
        with contextlib.suppress(OSError):  # an open file cannot be removed everywhere
            if os.name == "nt":
                self.path.unlink()

    def abandon(self) -> None:
        """Forget the lock without giving it back: it is the parent process's."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                os.close(file)

    def _open(self) -> int | None:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)
        flags |= getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            file = os.open(self.path, flags, 0o666)
        except PermissionError:  # somebody else's: it can be locked all the same
            with contextlib.suppress(OSError):
                return os.open(self.path, flags & ~(os.O_RDWR | os.O_CREAT))
            return None
        except (OSError, ValueError):
            return None
        if stat.S_ISREG(os.fstat(file).st_mode):
            return file
        os.close(file)
        return None

    def _take(self, file: int, replace: bool) -> bool:
        """Lock the open file and sign it; False when it has been removed meanwhile."""
        held = lock_file(file)
        before = Holder.read(_content(file))
        if held is False:
            raise (before or Holder("", 0, "", "")).refuse(self.directory)
        unknown = before is not None and held is None and not replace
        if before is not None and unknown and self._seems_alive(before):
            raise before.refuse(self.directory, sure=False)
        if held and not _is_at(file, self.path):
            return False
        with contextlib.suppress(OSError):  # a full disk holds a lock, if not its text
            os.ftruncate(file, 0)
            os.lseek(file, 0, os.SEEK_SET)
            os.write(file, self.holder.write())
        return True

    def _seems_alive(self, other: Holder) -> bool:
        """Whether the one who signed still trains, where no lock can say it."""
        if other.host != self.holder.host:
            return self._silence() < SILENT_SECONDS
        if other.process == os.getpid():
            return False  # what this process trains is registered
        birth = _birth(other.process)
        if other.birth and birth:
            return birth == other.birth
        return _runs(other.process)

    def _silence(self) -> float:
        """Seconds since the folder's experiment log, or the lock, was written to."""
        times = [0.0]
        for path in (self.path, self.directory / "experiment.log"):
            with contextlib.suppress(OSError):
                times.append(path.lstat().st_mtime)
        return time.time() - max(times)


def _content(file: int) -> bytes:
    try:
        os.lseek(file, 0, os.SEEK_SET)
        return os.read(file, _LARGEST)
    except OSError:
        return b""


def _is_at(file: int, path: Path) -> bool:
    """Whether an open file still has its name."""
    try:
        return os.path.samestat(os.fstat(file), os.lstat(path))
    except OSError:
        return False


def _birth(process: int) -> str:
    """When a process began: the boot of the machine, and the ticks since then."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        line = Path(f"/proc/{process}/stat").read_text("utf-8", "replace")
    except (OSError, ValueError):
        return ""
    fields = line.rpartition(")")[2].split()
    if len(fields) < 20 or fields[0] in ("Z", "X"):  # dead, and not yet buried
        return "dead"
    return f"{boot} {fields[19]}"


def _runs(process: int) -> bool:
    if os.name != "posix" or process <= 0:
        return False
    try:
        os.kill(process, 0)  # only asks: signal 0 is not sent
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):  # it runs, and belongs to somebody else
        return True
    return True


def _plain(value: object) -> str:
    """A text of a file as one line that is fit for a screen."""
    return "".join(c if c.isprintable() else "?" for c in str(value))[:200]


def _abandon_all() -> None:
    """In a forked child: the locks stay with the parent, and end with it."""
    for lock in list(_held):
        lock.abandon()
    _held.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_abandon_all)
