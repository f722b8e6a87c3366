"""Locks that are free in a forked process.

A child has one thread. A lock that another thread held at the fork would never be
released there, so a fork waits until the lock is free.
"""

import os
import threading
from typing import TypeVar

Lock = TypeVar("Lock", threading.Lock, threading.RLock)


def held_in_forks(lock: Lock) -> Lock:
    """The lock, which from now on is held while the process is forked."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire,
            after_in_parent=lock.release,
            after_in_child=lock.release,
        )
    return lock
