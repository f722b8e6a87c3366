"""Compiled kernels, for the few ops where they were measured.

`Numpy()` starts with a stub for each op of `families.py`. The first value that is
large enough decides, once for the process: when all kernels were compiled before (by
`burnbook warmup`), the file with the kernel is loaded; when not, the plain code runs
and one notice says so. numba itself is imported by the first kernel that runs.
"""

import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import Any, TextIO

from burnbook.backend.compiled.families import FAMILIES
from burnbook.backend.compiled.runtime import cache
from burnbook.core.op import Op

Kernel = Callable[..., Any]

NOTICE = (
    "burnbook: the fast kernels are not compiled on this machine yet, so plain NumPy "
    "runs. Compile them once, in one to three minutes: burnbook warmup\n"
)


def kernels_for(compiled: bool | None) -> dict[Any, Kernel]:
    """The kernels of a backend: `Numpy(compiled=...)`.

    None: use them where they are ready. True: compile them first. False: never.
    """
    if compiled is False or not cache.has_numba():
        return {}
    if compiled:
        warm_up(sys.stderr)
    kernels: dict[Any, Kernel] = {}
    for family, ops in FAMILIES.items():
        for op in ops:
            kernels[op] = _stub(op, family, kernels, always=compiled is True)
    return kernels


def limits_for(kernels: dict[Any, Kernel]) -> dict[Any, int]:
    """Below which size of the first value there is no need to ask a kernel."""
    sizes = {op: size for ops in FAMILIES.values() for op, size in ops.items()}
    return {
        op: size for op, size in sizes.items() if op in kernels and type(size) is int
    }


def warm_up(stream: TextIO | None = None) -> bool:
    """Compile every kernel, unless that was done before; False without numba."""
    if not cache.has_numba():
        return False
    _say(stream, cache.notice())
    if cache.is_warm():
        return True
    started = time.perf_counter()
    for number, family in enumerate(FAMILIES, 1):
        _say(stream, f"compiling kernels {number}/{len(FAMILIES)}: {family}\n")
        _load(family)
    cache.write_note()
    _say(stream, f"kernels compiled in {time.perf_counter() - started:.0f} s\n")
    return True


def in_use() -> bool | None:
    """Whether this process runs compiled kernels; None before that was decided."""
    return _decided


def _say(stream: TextIO | None, text: str) -> None:
    if stream is not None:
        stream.write(text)
        stream.flush()


def _stub(op: Any, family: str, kernels: dict[Any, Kernel], always: bool) -> Kernel:
    """Stand in for a kernel until it is needed, and ask for the size."""
    from_size = FAMILIES[family][op]
    smallest, place = from_size if isinstance(from_size, tuple) else (from_size, 0)
    bare = place == 0 and isinstance(op, Op) and not op.attrs and not op.many
    kernel: Kernel | None = None

    def run(*values: Any, **attrs: Any) -> Any:
        nonlocal kernel
        try:
            size = values[place].size if values else prod(attrs["shape"])
            if size < smallest:
                return None
        except AttributeError:  # a Python number
            return None
        if kernel is None:
            if not always and not _decide():
                return None
            kernel = _load(family)[op]
            if bare and len(op.inputs) in (1, 2):
                kernels[op] = _of_one_or_two(kernel, smallest, len(op.inputs))
        return kernel(*values, **attrs)

    return run


def _of_one_or_two(kernel: Kernel, smallest: int, inputs: int) -> Kernel:
    """The same once the kernel is there: without stars, which take time."""

    def one(x: Any) -> Any:
        return None if x.size < smallest else kernel(x)

    def two(x: Any, y: Any) -> Any:
        try:
            if x.size < smallest:
                return None
        except AttributeError:  # a Python number
            return None
        return kernel(x, y)

    return one if inputs == 1 else two


def _decide() -> bool:
    """Once for the process, so that results do not change in the middle of a run."""
    global _decided
    with _lock:
        if _decided is None:
            _decided = cache.is_warm()
            if not _is_compared():
                _say(sys.stderr, cache.notice() + ("" if _decided else NOTICE))
    return _decided


def _is_compared() -> bool:
    """Whether a test compares what is printed: then no line may depend on a cache."""
    still = os.environ.get("BURNBOOK_DISPLAY") in ("static", "none")
    return still or "PYTEST_CURRENT_TEST" in os.environ


def _load(family: str) -> dict[Any, Kernel]:
    """Import the file of a family; numba compiles what its cache does not have."""
    with _lock, cache.keeping_code():
        import_module(f"{__name__}.runtime.spin_wait")
        import_module(f"{__name__}.{family}")
        registry = import_module(f"{__name__}.runtime.registry")
    return registry.KERNELS


_decided: bool | None = None
_lock = threading.RLock()
