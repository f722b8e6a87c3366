"""NumPy's BLAS on one thread, for as long as a product of ours runs.

OpenBLAS has threads of its own. They take a core that the kernels need, and on a
machine that is slow to wake threads they come late, while everybody waits for them. So
a product of ours takes one thread of BLAS, and the pool of the kernels shares a large
one out; see `products.py`. Before and after, BLAS has the threads that you gave it:
your own NumPy code keeps them, whichever of NumPy and burnbook was imported first.

This holds for OpenBLAS with threads of its own, which NumPy's wheels bring for Linux,
Windows and older macOS. Any other library (MKL, BLIS, Accelerate on a newer macOS, an
OpenBLAS that was built for OpenMP) is left alone and shares products out by itself.
"""

import ctypes
import os
import threading
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

OWN_THREADS = 1  # what openblas_get_parallel says of a build that starts its own
NAMES = [(p, s) for p in ("scipy_openblas", "openblas") for s in ("64_", "", "_64")]


class ThreadControl(NamedTuple):
    """How to ask an OpenBLAS for its number of threads, and how to set it.

    sgemm: where cblas_sgemm with sizes of 64 bits lies in memory; 0 where it is absent.
    """

    get: Callable[[], int]
    set: Callable[[int], None]
    sgemm: int = 0


def find() -> ThreadControl | None:
    """NumPy's OpenBLAS; None where NumPy multiplies with something else.

    Example:
        >>> control = find()
        >>> control is None or control.get() >= 1
        True
    """
    for path in _places():
        try:
            library = ctypes.PyDLL(str(path))
        except OSError:
            continue
        for prefix, suffix in NAMES:
            try:
                parallel = getattr(library, f"{prefix}_get_parallel{suffix}")
                get = getattr(library, f"{prefix}_get_num_threads{suffix}")
                set_ = getattr(library, f"{prefix}_set_num_threads{suffix}")
            except AttributeError:
                continue
            set_.argtypes, set_.restype = [ctypes.c_int], None
            if parallel() != OWN_THREADS:
                return None
            return ThreadControl(get, set_, _address_of_sgemm(library, prefix, suffix))
    return None


def _address_of_sgemm(library: ctypes.PyDLL, prefix: str, suffix: str) -> int:
    if suffix != "64_":
        return 0
    try:
        found = getattr(library, f"{prefix.removesuffix('openblas')}cblas_sgemm64_")
    except AttributeError:
        return 0
    return ctypes.cast(found, ctypes.c_void_p).value or 0


def _places() -> Generator[Path]:
    """Files that NumPy's BLAS can be found by.

    A search in NumPy's own module goes on in the libraries that it was linked with,
    except on Windows; there they lie beside NumPy and are open already.
    """
    core: Any = getattr(np, "_core", None) or getattr(np, "core", None)
    if module := getattr(core._multiarray_umath, "__file__", None):
        yield Path(module)
    package = Path(np.__file__).parent
    for folder in (package.parent / "numpy.libs", package / ".dylibs"):
        yield from sorted(folder.glob("*openblas*"))


class OneThread:
    """The block in which BLAS has one thread; any number of threads may be inside.

    The number of threads of BLAS belongs to the whole process. The first who comes sets
    it, the last who leaves puts back what was there. Each step may be interrupted
    (Ctrl-C): then the next `leave`, or the next product of the same thread, mends it.
    """

    def __init__(self, control: ThreadControl | None):
        self.control = control
        self.sgemm = control.sgemm if control else 0
        self.lock = threading.Lock()
        self.inside: set[int] = set()  # the threads that are
        self.before = 1

    def enter(self) -> None:
        if self.control is not None:
            with self.lock:
                if not self.inside:
                    self.before = self.control.get()
                self.inside.add(threading.get_ident())
                if self.before != 1:
                    self.control.set(1)

    def leave(self) -> None:
        if self.control is not None:
            with self.lock:
                me = threading.get_ident()
                if self.before != 1 and self.inside == {me}:
                    self.control.set(self.before)
                self.inside.discard(me)

    def after_fork(self) -> None:
        """In the child only one thread goes on, and it is outside."""
        self.lock = threading.Lock()
        if self.inside and self.control is not None:
            self.control.set(self.before)
        self.inside = set()


one_thread = OneThread(find())
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=one_thread.after_fork)
