"""Where compiled kernels are kept, and whether they are ready.

What numba has compiled is kept in files: the machine code of each kernel, or numba's
own cache where that cannot be loaded without it. They go to the user's cache folder,
one folder for each version of numba, of Python and of this folder's code, and each kind
of processor. A note is left there for each family that is done, so that a process can
decide which kernels to use without importing numba.
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

from burnbook.core.files import cache_dir

READY = ".ready"  # how the note about a family ends
_UNKNOWN = 65534  # "nobody": in a container, the owner of what lies outside it
_HERE = Path(__file__).parents[1]


def has_numba() -> bool:
    """Whether numba is installed; it is not imported to find out."""
    return importlib.util.find_spec("numba") is not None


def folder() -> Path:
    """The folder for compiled kernels: below NUMBA_CACHE_DIR, or the user's cache.

    Where somebody else could change what is kept there, a folder of one's own.
    """
    return _found()[0]


def notice() -> str:
    """One line about a folder that was not used as others may change it, or nothing."""
    refused = _found()[1]
    if refused is None:
        return ""
    return (
        f"burnbook: others may change {refused}, and kernels kept there run as code, "
        "so a folder of your own is used. Choose one with BURNBOOK_CACHE\n"
    )


@cache
def _found() -> tuple[Path, Path | None]:
    """The folder, and the one that was refused because of others."""
    parts = [sys.implementation.cache_tag, _numba_version(), _processor(), _code()]
    parts += [f"{k}={v}" for k, v in sorted(os.environ.items()) if k in _MATTERS]
    name = hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()
    made, refused = _base() / f"kernels-{name}", None
    with suppress(OSError):
        _make(made)
        if os.access(made, os.W_OK) or any(made.glob(f"*{READY}")):
            if is_ours_alone(made):
                return made, None
            refused = made
    made = _own_temporary() / f"kernels-{name}"
    made.mkdir(exist_ok=True)
    return made, refused


def ready() -> frozenset[str]:
    """The families that have been compiled for this machine already."""
    if not has_numba():
        return frozenset()
    return frozenset(path.stem for path in folder().glob(f"*{READY}"))


def write_note(family: str) -> None:
    """Remember that a family has been compiled."""
    (folder() / f"{family}{READY}").touch()


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
    return cache_dir()


def _make(made: Path) -> None:
    """Make the folder, closed to others where the umask lets them write to files.

    Why: numba makes what is inside it by the umask.
    """
    made.parent.mkdir(parents=True, exist_ok=True)
    try:
        made.mkdir(mode=0o700)
    except FileExistsError:
        return
    probe = made / "probe"
    probe.mkdir()
    mode = stat.S_IMODE(probe.stat().st_mode)
    probe.rmdir()
    if not mode & 0o022:
        made.chmod(mode)


def is_ours_alone(made: Path) -> bool:
    """Whether nobody can change what is in a folder who cannot change this code, too.

    The folder, what is in it and the folders above belong to this user, to root, or to
    the owner of the library; others cannot write to it, nor to what is in it, unless
    they cannot enter. In a folder above, such as /tmp, others may write if they cannot
    take away what is not theirs. A group may write above, and inside only where it may
    write to the library.

    Why: a cache that an administrator or the one who installed the library has filled
    can be shared; one that anybody else has filled is that person's code.
    """
    if not hasattr(os, "getuid"):
        return True
    library = _HERE.stat()
    owners = {0, os.getuid(), library.st_uid}
    groups = {0, library.st_gid} if library.st_mode & stat.S_IWGRP else {0}
    made = made.resolve()
    about = made.stat()
    if about.st_uid not in owners or _others_write(about, groups):
        return False
    others_enter = about.st_mode & 0o011
    for part in made.rglob("*"):
        with suppress(FileNotFoundError):  # numba has just renamed it
            one = part.lstat()
            if one.st_uid not in owners or (
                others_enter and _others_write(one, groups)
            ):
                return False
    for above in (folder.stat() for folder in made.parents):
        kept = above.st_mode & stat.S_ISVTX or not above.st_mode & stat.S_IWOTH
        if above.st_uid not in (owners | {_UNKNOWN}) or not kept:
            return False
    return True


def _others_write(about: os.stat_result, groups: set[int]) -> bool:
    if stat.S_ISLNK(about.st_mode):
        return True  # what it points to may be anybody's
    by_group = about.st_mode & stat.S_IWGRP and about.st_gid not in groups
    return bool(by_group or about.st_mode & stat.S_IWOTH)


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


def has_avx512() -> bool:
    """Whether kernels are compiled for a processor with AVX-512."""
    chosen = os.environ.get("NUMBA_CPU_FEATURES", "")
    if "-avx512f" in chosen.replace(" ", "").split(","):
        return False
    return "avx512f" in f"{_processor()} {chosen}"


def has_half_instructions() -> bool:
    """Whether the processor casts to float16 and back by itself, many at a time."""
    chosen = os.environ.get("NUMBA_CPU_FEATURES", "")
    if "-f16c" in chosen.replace(" ", "").split(","):
        return False
    known = f" {_processor()} {chosen} ".replace("+", " ").replace(",", " ")
    return " f16c " in known or platform.machine() in ("aarch64", "arm64")


def _code() -> str:
    """Numba compiles again when a file has changed; so do we look at the files."""
    stamps = [(f.name, f.stat().st_mtime, f.stat().st_size) for f in _files()]
    return repr(stamps)


def _files() -> list[Path]:
    return sorted(_HERE.rglob("*.py"))
