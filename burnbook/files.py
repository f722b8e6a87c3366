"""Saving and loading. Write a whole file or none; read one without surprises.

Whatever the library saves (records, configs, checkpoints, downloads) goes through
`atomic_write`: the bytes land in a temporary file next to the target, are forced to the
disk, and only then take the target's name. A crash or a power cut leaves the old file
or the new one, never half of either.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from burnbook.errors import BurnbookError, DataError

PathLike = str | os.PathLike[str]
TEMPORARY = (".burnbook-", ".tmp")  # how our temporary files start and end


@contextmanager
def atomic_write(
    path: PathLike, error: type[BurnbookError] = DataError
) -> Generator[IO[bytes], None, None]:
    """Open a binary file that appears under `path` only when the block has succeeded.

    Missing folders are made, a link is followed, an existing file keeps its
    permissions. If the block or the disk fails, the target stays as it was and the
    temporary file goes. What the file system refuses is raised as `error`.

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
    try:
        with open(draft.temporary, "wb") as file:
            yield file
    except BaseException as cause:
        draft.discard()
        if isinstance(cause, OSError) and cause.errno in _DISK:
            raise _cannot_write(draft.target, cause, error) from None
        raise
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

    def __init__(self, path: PathLike, error: type[BurnbookError] = DataError) -> None:
        self.error = error
        try:
            self.target = target = Path(os.path.realpath(path))
        except ValueError:
            raise _no_path("write", path, error) from None
        try:
            self.mode = _mode_to_keep(target)
            target.parent.mkdir(parents=True, exist_ok=True)
            self.temporary = target.with_name(uuid.uuid4().hex.join(TEMPORARY))
            os.close(os.open(self.temporary, _CREATE, 0o666))
        except OSError as cause:
            raise _cannot_write(target, cause, error) from None

    def keep(self) -> None:
        """Force the bytes to the disk and give the file its name."""
        try:
            with open(self.temporary, "r+b") as file:
                os.fsync(file.fileno())
            if self.mode is not None:
                os.chmod(self.temporary, self.mode)
            os.replace(self.temporary, self.target)
            sync_folder(self.target.parent)
        except BaseException as cause:
            self.discard()
            if isinstance(cause, OSError):
                raise _cannot_write(self.target, cause, self.error) from None
            raise

    def discard(self) -> None:
        """Remove the temporary file; what stood under the name stays."""
        with contextlib.suppress(OSError):
            os.unlink(self.temporary)


def read_whole(path: PathLike, error: type[BurnbookError] = DataError) -> bytes:
    """The bytes of a regular file; anything else at `path` is explained as `error`.

    Why: a device or a pipe has no size, so reading one could go on for ever.
    """
    where = f"read {os.fspath(path)}"
    try:
        with open(path, "rb") as file:
            regular = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            if regular:
                return file.read()
    except FileNotFoundError:
        raise error(where, "there is no such file", _look_around(path)) from None
    except IsADirectoryError:
        raise error(where, "this is a folder, not a file") from None
    except OSError as cause:
        raise error(where, f"the file cannot be read: {cause.strerror}") from None
    except ValueError:
        raise _no_path("read", path, error) from None
    raise error(where, "this is not a regular file but a device or a pipe")


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


_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
# In the caller's block only these are about the file being written.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)


def _mode_to_keep(target: Path) -> int | None:
    """The permissions of the file that stands there now; None when there is none."""
    try:
        found = target.stat()
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "it is a folder")
    return stat.S_IMODE(found.st_mode)


def _cannot_write(
    target: Path, cause: OSError, error: type[BurnbookError]
) -> BurnbookError:
    reason, cure = f"{cause.strerror or cause}", None
    blocker = next((p for p in target.parents if p.is_file()), None)
    if blocker is not None:
        reason = f"{blocker} is a file, so it cannot hold {target.name}"
        cure = "another folder, or move that file away"
    elif isinstance(cause, IsADirectoryError) or target.is_dir():
        reason, cure = "a folder has this name", "another file name"
    elif cause.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        reason = f"no permission to write in {target.parent}"
        cure = "a folder of your own"
    elif cause.errno in (errno.ENOSPC, errno.EDQUOT):
        reason, cure = "the disk is full", "free some space; what was there is kept"
    return error(f"write {target}", reason, cure=cure)


def _no_path(where: str, path: PathLike, error: type[BurnbookError]) -> BurnbookError:
    return error(where, f"{os.fspath(path)!r} is not a path: it holds a zero byte")


def _look_around(path: PathLike) -> list[str]:
    """Which files stand in that folder, as facts for an error."""
    folder = Path(path).parent
    if not folder.is_dir():
        return [f"there is no folder {folder} either"]
    with contextlib.suppress(OSError):
        names = sorted(p.name for p in folder.iterdir() if p.is_file())
        shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
        return [f"the folder holds {shown or 'no files'}"]
    return []
