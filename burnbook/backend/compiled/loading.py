"""Importing the file of a family of kernels, the first time one of them is needed."""

import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any

from burnbook.backend.compiled.runtime import cache

PACKAGE = __name__.rpartition(".")[0]


def load(family: str) -> dict[Any, Callable[..., Any]]:
    """Import the file of a family; numba compiles what its cache does not have.

    Gives the kernels of all families that have been imported so far, by their op.
    """
    with _lock, cache.keeping_code():
        import_module(f"{PACKAGE}.runtime.spin_wait")
        import_module(f"{PACKAGE}.runtime.shared_product")
        import_module(f"{PACKAGE}.{family}")
        registry = import_module(f"{PACKAGE}.runtime.registry")
    return registry.KERNELS


_lock = threading.RLock()
