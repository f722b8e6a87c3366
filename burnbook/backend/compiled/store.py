"""Advanced · Performance. Where compiled kernels are kept, and whether they are ready.

Numba keeps compiled code in files. They go to the user's cache folder, one folder for
each version of numba, of Python and of this folder's code, and each kind of processor.
A note is left there when all kernels are done, so that a process can decide whether to
use kernels without importing numba.
"""

import hashlib
import importlib.util
import os
import platform
import stat
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

NOTE = "complete"
_HERE = Path(__file__).parent


def has_numba() -> bool:
    """Whether numba is installed; it is not imported to find out."""
    return importlib.util.find_spec("numba") is not None


@cache
def folder() -> Path:
    """The folder for compiled kernels: below NUMBA_CACHE_DIR, or the user's cache."""
    parts = [sys.implementation.cache_tag, _numba_version(), _processor(), _code()]
    parts += [f"{k}={v}" for k, v in sorted(os.environ.items()) if k in _MATTERS]
    name = hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
    made = _base() / f"kernels-{name}"
    with suppress(OSError):
        made.mkdir(parents=True, exist_ok=True)
        if os.access(made, os.W_OK) or (made / NOTE).exists():
            return made
    made = _own_temporary() / f"kernels-{name}"
    made.mkdir(exist_ok=True)
    return made


def is_warm() -> bool:
    """Whether every kernel has been compiled for this machine already."""
    return has_numba() and (folder() / NOTE).exists()


def write_note() -> None:
    """Remember that every kernel has been compiled."""
    (folder() / NOTE).touch()


@contextmanager
def keeping_code() -> Generator[None]:
    """Let numba keep what it compiles in our folder, and only that."""
    from numba import config

    before = config.CACHE_DIR
    config.CACHE_DIR = str(folder())
    try:
        yield
    finally:
        config.CACHE_DIR = before


def _base() -> Path:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(chosen)
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


def _own_temporary() -> Path:
    """A folder that nobody else can write to: what is kept there is run as code."""
    shared = Path(tempfile.gettempdir()) / f"burnbook-{_user()}"
    with suppress(OSError):
        shared.mkdir(mode=0o700, exist_ok=True)
        about = shared.lstat()
        mine = not hasattr(os, "getuid") or about.st_uid == os.getuid()
        if mine and stat.S_ISDIR(about.st_mode) and not about.st_mode & 0o022:
            return shared
    return Path(tempfile.mkdtemp(prefix="burnbook-"))


_MATTERS = {"NUMBA_CPU_NAME", "NUMBA_CPU_FEATURES", "NUMBA_OPT", "NUMBA_DISABLE_JIT"}


def _user() -> str:
    return str(os.getuid()) if hasattr(os, "getuid") else "user"


def _numba_version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("numba")
    except PackageNotFoundError:
        return "unknown"


def _processor() -> str:
    """What the processor is and can do: as NUMBA_CPU_NAME or as the system tells."""
    if chosen := os.environ.get("NUMBA_CPU_NAME"):
        return chosen  # compiled for that one, wherever it runs
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return f"{platform.machine()} {platform.processor()}"
    told = ("model name", "flags", "Features", "CPU part")
    return " ".join(sorted({line for line in lines if line.startswith(told)}))


def _code() -> str:
    """Numba compiles again when a file has changed; so do we look at the files."""
    stamps = [(f.name, f.stat().st_mtime, f.stat().st_size) for f in _files()]
    return repr(stamps)


def _files() -> list[Path]:
    return sorted(_HERE.glob("*.py"))
