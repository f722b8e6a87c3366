"""Write a whole file or none; read one without surprises.

Whatever the library saves (records, configs, checkpoints, downloads) goes through
`atomic_write`: the bytes land in a temporary file next to the target, are forced to the
disk, and only then take the target's name. A crash or a power cut leaves the old file
or the new one, never half of either.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import mmap
import operator
import os
import stat
import sys
import time
import uuid
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from burnbook.core.errors import BurnbookError, DataError

PathLike = str | os.PathLike[str]
ErrorClass = type[BurnbookError]
_TAKEN = (
    (errno.EACCES, errno.EDEADLK)
    if os.name == "nt"
    else (errno.EWOULDBLOCK, errno.EAGAIN)
)
MOST_AT_ONCE = 8  # files that are forced to the disk together
TEMPORARY = (".burnbook-", ".tmp")  # how our temporary files start and end


@contextmanager
def atomic_write(
    path: PathLike, error: ErrorClass = DataError
) -> Generator[IO[bytes], None, None]:
    """Open a binary file that appears under `path` only when the block has succeeded.

    Missing folders are made, a link is followed, an existing file keeps its
    permissions. If the block or the disk fails, the target stays as it was and the
    temporary file is removed. What the file system refuses is raised as `error`.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> with atomic_write(Path(folder.name) / "runs" / "note.txt") as file:
        ...     _ = file.write(b"kept")
        >>> (Path(folder.name) / "runs" / "note.txt").read_text()
        'kept'
        >>> folder.cleanup()

    Why: the folder is forced to the disk too, because that is where the name lives.
    """
    draft = Draft(path, error)
    with draft.open() as file:
        yield file
    draft.keep()


class Draft:
    """A file that takes its name only when it is whole: fill `temporary`, then keep it.

    For what opens its files by name, such as a database; everything else is easier
    with `atomic_write`. What was opened must be closed before `keep()`.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> draft = Draft(Path(folder.name) / "items.db")
        >>> _ = draft.temporary.write_bytes(b"whole")
        >>> draft.target.exists(), draft.keep(), draft.target.read_bytes()
        (False, None, b'whole')
        >>> folder.cleanup()
    """

    def __init__(self, path: PathLike, error: ErrorClass = DataError) -> None:
        self.error = error
        try:
            self.target = target = Path(os.path.realpath(at_home(path)))
        except ValueError:
            raise _no_path("write", path, error) from None
        try:
            self.mode = _mode_to_keep(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            self.temporary = target.with_name(uuid.uuid4().hex.join(TEMPORARY))
            os.close(os.open(self.temporary, _CREATE, 0o666))
        except OSError as cause:
            raise _cannot_write(target, cause, error) from None

    @contextmanager
    def open(self) -> Generator[IO[bytes], None, None]:
        """The temporary file, to be written; it is removed if the block fails."""
        try:
            with open(self.temporary, "wb") as file:
                yield file
        except BaseException as cause:
            self.discard()
            if isinstance(cause, OSError) and cause.errno in _DISK:
                raise _cannot_write(self.target, cause, self.error) from None
            raise

    def keep(self) -> None:
        """Force the bytes to the disk and give the file its name."""
        keep_all([self])

    def rename(self) -> None:
        """Give the file its name; `keep_all` has forced its bytes to the disk."""
        try:
            if self.mode is not None:
                os.chmod(self.temporary, self.mode)
            os.replace(self.temporary, self.target)
        except OSError as cause:
            raise _cannot_write(self.target, cause, self.error) from None

    def discard(self) -> None:
        """Remove the temporary file; what stood under the name stays."""
        with contextlib.suppress(OSError):
            os.unlink(self.temporary)


def keep_all(drafts: Sequence[Draft], last: Draft | None = None) -> None:
    """Force the bytes of files to the disk together, and give them their names.

    last: the file that says that the others are there; its name comes after theirs.
    What fails leaves none of the files that have no name yet.
    """
    waiting = [*drafts] if last is None else [*drafts, last]
    try:
        for path, cause in force(draft.temporary for draft in waiting):
            draft = next(draft for draft in waiting if draft.temporary == path)
            raise _cannot_write(draft.target, cause, draft.error) from None
        for named in (drafts, [last] if last else []):
            folders: dict[Path, Draft] = {}
            for draft in named:
                draft.rename()
                waiting.remove(draft)
                folders[draft.target.parent] = draft
            for folder, cause in force(folders):
                draft = folders[folder]
                raise _cannot_write(draft.target, cause, draft.error) from None
    finally:
        for draft in waiting:
            draft.discard()


def force(paths: Iterable[Path]) -> list[tuple[Path, OSError]]:
    """Force files and folders to the disk, all at once; returns those that failed.

    Why: a disk takes hardly longer for ten files than for one, if it may know of all.
    """
    wanted = [*paths]
    tried: list[OSError | None] = []
    if len(wanted) > 1:
        threads = ThreadPoolExecutor(min(len(wanted), MOST_AT_ONCE))
        with contextlib.suppress(RuntimeError), threads:  # none can be started
            tried = [*threads.map(_forced, wanted)]
    tried = tried or [_forced(path) for path in wanted]
    both = zip(wanted, tried, strict=True)
    return [(path, cause) for path, cause in both if cause is not None]


def _forced(path: Path) -> OSError | None:
    """Force a file or a folder to the disk; returns why it cannot be done."""
    try:
        if path.is_dir():
            sync_folder(path)
        else:
            with open(path, "r+b") as file:
                os.fsync(file.fileno())
    except OSError as cause:
        return cause
    return None


def open_regular(
    path: PathLike, error: ErrorClass = DataError, where: str = ""
) -> IO[bytes]:
    """Open a regular file to read its bytes; anything else is explained as `error`.

    where: how the error begins; by default "read" and the path. Links are followed.

    Why: opening a named pipe waits for a writer, and reading a device may go on
    forever. So the file is asked what it is before it is opened, which must not wait,
    and once more afterwards, because it may have been replaced in the meantime.
    """
    where = where or f"read {printable(path)}"
    path = at_home(path)
    try:
        _refuse_others(os.stat(path))
        handle = os.open(path, _READ)
        try:
            _refuse_others(os.fstat(handle))
            return os.fdopen(handle, "rb")
        except BaseException:
            os.close(handle)
            raise
    except FileNotFoundError:
        raise error(where, "there is no such file", look_around(path)) from None
    except IsADirectoryError:
        raise error(where, "this is a folder, not a file") from None
    except NotRegularError as cause:
        raise error(where, str(cause)) from None
    except OSError as cause:
        why = cause.strerror or str(cause)
        raise error(where, f"the file cannot be read: {why}") from None
    except ValueError:
        raise _no_path("read", path, error) from None


def open_text(path: PathLike, mode: str, errors: str = "strict") -> IO[str]:
    """Open a regular text file as `open` does, in UTF-8 and with line ends as they are.

    mode: "r", "w" or "a". Anything else under that name raises `NotRegularError`, an
    OSError, at once. Links are followed, also to another disk.

    Why: as for `open_regular`: opening a named pipe waits until somebody reads it.
    """
    newline = None if mode == "r" else "\n"
    return open(
        at_home(path),
        mode,
        encoding="utf-8",
        errors=errors,
        newline=newline,
        opener=_opened,
    )


def map_file(
    path: PathLike, error: ErrorClass = DataError, where: str = ""
) -> memoryview:
    """The bytes of a file, mapped into memory: nothing is read before it is used.

    where: how the error begins; by default "read" and the path.
    """
    with open_regular(path, error, where) as file:
        if not os.fstat(file.fileno()).st_size:
            return memoryview(b"")
        try:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):  # a file system that cannot
            return memoryview(read_whole(path, error, where))


def release(data: memoryview) -> None:
    """Give the pages of a mapped file back; they are read again when they are used.

    Why: the system maps two megabytes where somebody looks at one byte, and counts them
    as memory of the process.
    """
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if isinstance(data.obj, mmap.mmap):
            data.obj.madvise(mmap.MADV_DONTNEED)


def read_whole(
    path: PathLike,
    error: ErrorClass = DataError,
    where: str = "",
    most: int | None = None,
) -> bytes:
    """The bytes of a regular file; anything else at `path` is explained as `error`.

    most: how long the file may be, in bytes; by default, as long as the free memory.
    """
    where = where or f"read {printable(path)}"
    with open_regular(path, error, where) as file, within_memory(where, error):
        size = os.fstat(file.fileno()).st_size
        _check_size(size, most, where, error)
        data = _read(file, size + 1)
        if len(data) <= size:
            return data
        parts = [data]  # it grows, or the system makes it up while it is read
        while part := _read(file, 1 << 20):
            parts.append(part)
            size = sum(map(len, parts))
            _check_size(size, most, where, error)
        return b"".join(parts)


@contextmanager
def within_memory(
    where: str, error: ErrorClass = DataError
) -> Generator[None, None, None]:
    """Say as an `error` that there is too little memory for what the block makes."""
    try:
        yield
    except MemoryError:
        what = "there is not enough memory for what it holds"
        raise error(where, what) from None


def free_memory() -> int | None:
    """How many bytes this process may still take; None where the system does not say.

    The least of what the computer has, the limit of the process, and that of its
    container.
    """
    found: list[int] = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text().splitlines()
        about = next(line for line in lines if line.startswith("MemAvailable:"))
        found.append(int(about.split()[1]) * 1024)
    with contextlib.suppress(OSError, ValueError):
        group = Path("/sys/fs/cgroup")
        limit = int((group / "memory.max").read_text())
        found.append(limit - int((group / "memory.current").read_text()))
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource

        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            found.append(limit - pages * resource.getpagesize())
    return max(0, min(found)) if found else None


def at_home(path: PathLike) -> str:
    """The path with `~` at its beginning as the home folder, as a shell reads it.

    Why: Python takes it for a name, and would make a folder that is called so.
    """
    return os.path.expanduser(os.fspath(path))


def fixed(path: PathLike) -> Path:
    """The path from the root, which a later change of the working directory leaves.

    Example:
        >>> fixed("runs").is_absolute(), fixed("~") == Path.home()
        (True, True)
    """
    return Path(at_home(path)).absolute()


def shown_path(path: PathLike) -> str:
    """The path as people would type it here: short below the working directory.

    Example:
        >>> shown_path(fixed("runs/a"))
        'runs/a'
    """
    with contextlib.suppress(ValueError, OSError):
        return str(Path(path).relative_to(Path.cwd()))
    return str(path)


def printable(path: PathLike) -> str:
    """A path or another text as an error names it, without control characters.

    Example:
        >>> printable("data/café.csv"), printable("a\\nb.csv")
        ('data/café.csv', 'a\\\\nb.csv')
    """
    text = os.fsdecode(path)
    return text if text.isprintable() else ascii(text)[1:-1]


def look_around(path: PathLike) -> list[str]:
    """Which files stand in that folder, as facts for an error."""
    folder = Path(path).parent
    if not folder.is_dir():
        return [f"there is no folder {folder} either"]
    with contextlib.suppress(OSError):
        names = sorted(printable(p.name) for p in folder.iterdir() if p.is_file())
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        return [f"the folder holds {shown or 'no files'}"]
    return []


def remove_leftovers(folder: PathLike, older_than: float = 60.0) -> int:
    """Remove the temporary files of killed writers from `folder`; says how many.

    Only files untouched for `older_than` seconds go, so a writer at work keeps its own.
    """
    removed = 0
    for path in Path(folder).glob("*".join(TEMPORARY)):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime >= older_than:
                path.unlink()
                removed += 1
    return removed


def sync_folder(folder: Path) -> None:
    """Force the names in a folder to the disk; not every file system can."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as cause:
        if cause.errno not in (errno.EINVAL, errno.ENOTSUP):  # some file systems cannot
            raise
    finally:
        os.close(handle)


_FLAGS = ("O_NONBLOCK", "O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NOINHERIT")
_READ = functools.reduce(operator.or_, (getattr(os, flag, 0) for flag in _FLAGS))
_UNCHECKED = 32 << 20  # a file of so many bytes is read without asking for memory
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# In the caller's block only these are about the file being written.
MOST_SHOWN, MOST_OF_NAME = 60, 255  # letters of a path; of the name of a file
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


class NotRegularError(OSError):
    """A device, a pipe or a socket."""


def _opened(path: str, flags: int) -> int:
    """Open for `open`, without waiting, what is a regular file before and after."""
    with contextlib.suppress(FileNotFoundError):
        _refuse_others(os.stat(path))
    handle = os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o666)
    try:
        _refuse_others(os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def _refuse_others(about: os.stat_result) -> None:
    """Raise for what is no regular file."""
    if stat.S_ISDIR(about.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(about.st_mode):
        raise NotRegularError("this is not a regular file but a device or a pipe")


def _read(file: IO[bytes], count: int) -> bytes:
    return file.read(count) or b""  # None: nothing is there yet


def _check_size(size: int, most: int | None, where: str, error: ErrorClass) -> None:
    if most is not None and size > most:
        what = "the file is longer than what it should hold"
        raise error(where, what, [("file", f"{size:,} bytes"), ("most", f"{most:,}")])
    free = free_memory() if size > _UNCHECKED else None
    if free is not None and size > free:
        what = "the file is larger than the memory that is free"
        facts = [("file", f"{size:,} bytes"), ("free memory", f"{free:,} bytes")]
        raise error(where, what, facts)


def _mode_to_keep(target: Path) -> int | None:
    """The permissions of the file that stands there now; None when there is none."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    _refuse_others(found)
    return stat.S_IMODE(found.st_mode)


def _cannot_write(target: Path, cause: OSError, error: ErrorClass) -> BurnbookError:
    reason, cure = f"{cause.strerror or cause}", None
    if cause.errno == errno.ENAMETOOLONG:  # nothing can be asked about such a path
        shown = f"{str(target)[:MOST_SHOWN]}…"
        reason = f"the name is too long for the file system: {len(target.name)} letters"
        if len(target.name) <= MOST_OF_NAME:
            reason = f"the path is too long: {len(str(target))} letters"
        return error(f"write {shown}", reason, cure="a shorter name")
    blocker = next((p for p in target.parents if p.is_file()), None)
    if blocker is not None:
        reason = f"{blocker} is a file, so it cannot hold {target.name}"
        cure = "another folder, or move that file away"
    elif isinstance(cause, IsADirectoryError) or target.is_dir():
        reason, cure = "a folder has this name", "another file name"
    elif isinstance(cause, NotRegularError):
        cure = "another file name, or move away what has this one"
    elif cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = f"no permission to write in {target.parent}"
        cure = "a folder of your own"
    elif cause.errno in (errno.ENOSPC, errno.EDQUOT):
        reason, cure = "the disk is full", "free some space; what was there is kept"
    return error(f"write {target}", reason, cure=cure)


def _no_path(where: str, path: PathLike, error: ErrorClass) -> BurnbookError:
    return error(where, f"{os.fspath(path)!r} is not a path: it contains a null byte")


def cache_dir() -> Path:
    """Return the folder for downloads: BURNBOOK_CACHE, or the user's cache folder.

    That is `~/.cache/burnbook` on Linux (XDG_CACHE_HOME is honored),
    `~/Library/Caches/burnbook` on macOS and `%LOCALAPPDATA%\\burnbook` on Windows.
    Compiled kernels are kept there too and run as code, so nobody else should be able
    to write to it; where others can, kernels go to a temporary folder of one's own.
    """
    if chosen := os.environ.get("BURNBOOK_CACHE"):
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "burnbook"


def lock_file(file: int) -> bool | None:
    """Lock an open file: True, False when somebody else has, None: there are no locks.

    Why: a lock of the open file, not of the process (as lockf would be), which is
    released as soon as the process closes any copy of the file it has locked.
    """
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(file, 1 << 30, os.SEEK_SET)  # beyond the text, which others read
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined,unused-ignore] # Windows only
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:
        return None
    except OSError as trouble:
        return False if trouble.errno in _TAKEN else None
    return True
