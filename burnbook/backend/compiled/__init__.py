"""Compiled kernels, for the few ops where they were measured.

`Numpy()` starts with a stub for each op of `families.py`. The first value that is
large enough decides, once for the process: the files of the families that have been
compiled before are loaded when they are needed; for the others the plain code runs, and
a process in the background compiles them for the next start (`compile_ahead.py`). numba
itself is imported only by a process that compiles (`runtime/machine_code.py`).
"""

import functools
import os
import sys
import threading
from collections.abc import Callable
from math import prod
from typing import Any

from burnbook.backend.compiled.compile_ahead import start_in_background, warm_up
from burnbook.backend.compiled.families import FAMILIES
from burnbook.backend.compiled.loading import load
from burnbook.backend.compiled.runtime import cache
from burnbook.backend.compiled.runtime.locks import held_in_forks
from burnbook.core import casting
from burnbook.core.op import Op

Kernel = Callable[..., Any]

IN_BACKGROUND = (
    "burnbook: plain NumPy runs this time{some}: the fast kernels are being compiled "
    "in the background, which takes one to three minutes once. The next start of "
    "Python uses them\n"
)
BY_HAND = (
    "burnbook: the fast kernels are not compiled on this machine yet{some}, so plain "
    "NumPy runs. Compile them once, in one to three minutes: burnbook warmup\n"
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
            if not always and family not in usable():
                return None
            kernel = load(family)[op]
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


def usable() -> frozenset[str]:
    """The families that this process runs: those that were ready when it first asked.

    Once for the process, so that results do not change in the middle of a run.
    """
    global _usable
    if _usable is not None:
        return _usable
    with _lock:
        if _usable is None:
            ready = cache.ready()
            if not _is_compared():
                sys.stderr.write(cache.notice() + _notice(ready))
                sys.stderr.flush()
            _usable = ready
    return _usable


@functools.cache
def _casts() -> Any:
    """The compiled casts to and from half precision; None where there are none.

    Why: records ask as well as backends, and asking compiles nothing and says nothing.
    It is answered once for the process, since it looks into a folder.
    """
    known = cache.ready() if _usable is None and cache.has_numba() else _usable
    if not known or "shape" not in known:
        return None
    load("shape")
    return sys.modules[f"{__name__}.half"]


casting.offer(_casts)


def _notice(ready: frozenset[str]) -> str:
    """What to tell about kernels that are not compiled yet; has them compiled."""
    if ready.issuperset(FAMILIES):
        return ""
    some = f" ({len(ready)} of {len(FAMILIES)} families are ready)" if ready else ""
    if not start_in_background():
        return BY_HAND.format(some=some)
    return IN_BACKGROUND.format(some=some and f" for what is missing{some}")


def _is_compared() -> bool:
    """Whether a test compares what is printed: then no line may depend on a cache."""
    still = os.environ.get("BURNBOOK_DISPLAY") in ("static", "none")
    return still or "PYTEST_CURRENT_TEST" in os.environ


_usable: frozenset[str] | None = None
_lock = held_in_forks(threading.Lock())
