"""Memory for results that is used again when nobody holds it.

A fresh result above some 100 kB costs more to map into the process than to fill. So a
kernel's results are views of buffers that stay here. Whoever holds a result, a view of
it, a memoryview or an array of another library made from it, holds a reference to the
buffer; a buffer with no reference but ours is free for the next result.
"""

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from sys import getrefcount
from threading import get_ident
from typing import Any

import numpy as np
from numpy import ndarray

from burnbook.backend.compiled.runtime.gil import is_gil_enabled
from burnbook.backend.compiled.runtime.locks import held_in_forks

SMALLEST = 1 << 16  # bytes; below, a plain allocation is as fast
LINE = 64  # bytes of a cache line, where results begin: registers are as long
CHECK_EVERY = 512  # results between two looks for buffers that went out of use
MUCH = 1 << 24  # bytes that are worth a word to the system when they are let go
F32 = np.dtype(np.float32)


class Buffers:
    """Buffers by size; free ones that two checks in a row find unused are let go.

    Why: without the GIL no buffer is used twice. A reference count that one thread
    reads there says nothing of the other threads, which count apart and may add to it
    at any time; so every result is a plain allocation. This is decided once.
    """

    def __init__(self) -> None:
        # size -> [[memory, age, where results start in it], ...]
        self.by_size: dict[int, list[list[Any]]] = {}
        self.lock = threading.Lock()
        self.given = 0
        self.smallest = SMALLEST if is_gil_enabled() else sys.maxsize
        self.offered: dict[int, list[ndarray]] = {}  # to each thread
        probe = [np.empty(1, np.uint8), 0]
        self.unshared = getrefcount(probe[0])

    def empty(self, shape: tuple[int, ...], dtype: Any = F32) -> np.ndarray:
        """An array with any content, like np.empty; of float32 if nothing is said.

        Example:
            >>> pool = Buffers()
            >>> first = pool.empty((100, 1000))
            >>> place = first.ctypes.data
            >>> second = pool.empty((100, 1000))
            >>> second.ctypes.data == place  # first is still held
            False
            >>> del first
            >>> pool.empty((100, 1000)).ctypes.data == place
            True
        """
        if self.offered:
            places = self.offered.get(get_ident(), ())
            for i, place in enumerate(places):
                if place.shape == shape and place.dtype == dtype:
                    return places.pop(i)
        size = prod(shape) * dtype.itemsize
        if size < self.smallest:
            return np.empty(shape, dtype)
        with self.lock:
            self.given += 1
            if self.given % CHECK_EVERY == 0 and self._let_go() >= MUCH:
                _give_back()
            for entry in self.by_size.get(size, ()):
                if getrefcount(entry[0]) == self.unshared:
                    entry[1] = 0
                    return ndarray(shape, dtype, entry[0], entry[2])
            memory = np.empty(size + LINE, np.uint8)
            start = -memory.ctypes.data % LINE
            self.by_size.setdefault(size, []).append([memory, 0, start])
            return ndarray(shape, dtype, memory, start)

    def offering(self, places: Sequence[ndarray], run: Callable[[], Any]) -> Any:
        """Call a function; results that are made in this thread go to these places.

        Each is given once, to the first result of its shape and type: what a place
        holds must not be needed any more, and a result may still come to lie elsewhere.

        Example:
            >>> place = np.zeros((2, 3), np.float32)
            >>> buffers.offering([place], lambda: buffers.empty((2, 3))) is place
            True
        """
        me = get_ident()
        before = self.offered.get(me)
        self.offered[me] = list(places)
        try:
            return run()
        finally:
            if before is None:
                del self.offered[me]
            else:
                self.offered[me] = before

    def trim(self) -> None:
        """Let go of what nobody holds: after a piece of work that is not done again."""
        with self.lock:
            self._let_go()
            if self._let_go() >= MUCH:
                _give_back()

    def _let_go(self) -> int:
        """Drop what is out of use; how many bytes that were."""
        gone = 0
        for size, entries in list(self.by_size.items()):
            for entry in entries:
                entry[1] += 1
            held = [e for e in entries if e[1] < 2 or getrefcount(e[0]) > self.unshared]
            gone += size * (len(entries) - len(held))
            if held:
                self.by_size[size] = held
            else:
                del self.by_size[size]
        return gone


def _give_back() -> None:
    """Let glibc give the system what is free; other C libraries decide by themselves.

    Why: it keeps even large stretches, once one of that size has been freed.
    """
    with suppress(OSError, AttributeError, TypeError):  # of what has no malloc_trim
        ctypes.CDLL(None).malloc_trim(0)


buffers = Buffers()
held_in_forks(buffers.lock)
empty = buffers.empty
