"""Importing the file of a family of kernels, the first time one of them is needed."""

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from burnbook.backend.compiled.runtime.locks import held_in_forks

PACKAGE = __name__.rpartition(".")[0]


def load(family: str) -> dict[Any, Callable[..., Any]]:
    """Import the file of a family; gives the kernels of all imported so far, by op.

    A kernel that has not been compiled before is compiled at its first call.
    """
    with _lock:
        import_module(f"{PACKAGE}.runtime.spin_wait")
        import_module(f"{PACKAGE}.runtime.shared_product")
        import_module(f"{PACKAGE}.{family}")
        registry = import_module(f"{PACKAGE}.runtime.registry")
    return registry.KERNELS


_lock = held_in_forks(threading.RLock())
