"""Random numbers that depend on a seed and a count only.

A stream hands out keys; a key and a counter give the bits (Philox4x64-10, the generator
of numpy.random.Philox). Nothing else is remembered, so the same seed gives the same
numbers on every backend, and in every order of threads that asks for its keys in order.

    stream = Stream(42)
    stream.key()               # (a, 0), then (a, 1), ...: each key is a whole sequence
    stream.split("dropout")    # another stream, independent of how far this one got
"""

import hashlib
import os
import threading
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from operator import index
from typing import Any

from burnbook.core.errors import ConfigError

Key = tuple[int, int]


class Stream:
    """A sequence of keys drawn from a seed; `None` follows `burnbook.seed`.

    Example:
        >>> Stream(42).key() == Stream(42).key()
        True
        >>> Stream(42).split("a").key() == Stream(42).split("b").key()
        False
    """

    __slots__ = ("_lock", "position", "root")

    def __init__(self, seed: int | None) -> None:
        self.root = None if seed is None else _mix(f"seed {_whole(seed)}")
        self.position = 0
        self._lock = threading.Lock()

    def key(self) -> Key:
        """Reserve the next key: two 64-bit numbers that no other call gets."""
        if self.root is None:
            return _shared.key()
        with self._lock:
            position = self.position
            self.position = position + 1
        return self.root, position

    def split(self, name: object) -> "Stream":
        """A stream of its own for a purpose: the same name gives the same stream."""
        if self.root is None:
            return _shared.split(name)
        return _stream(_mix(f"{self.root} {name}"), 0)

    def __repr__(self) -> str:
        return "Stream(None)" if self.root is None else f"Stream at {self.position}"

    def __reduce__(self) -> Any:
        return _stream, (self.root, self.position)


def _whole(seed: Any) -> int:
    try:
        return index(seed)
    except TypeError:
        what = f"{seed!r} is not a whole number"
        raise ConfigError("seed", what, cure="seed(42)") from None


def seed(seed: int | None) -> None:
    """Start again the numbers of every backend that has no seed of its own.

    None takes a seed that nobody knows, as `random.seed` of Python does.

    Example:
        >>> seed(0)
        >>> first = Stream(None).key()
        >>> seed(0)
        >>> Stream(None).key() == first
        True
    """
    global _shared  # the one hidden state besides the print options
    fresh = int.from_bytes(os.urandom(4), "little")
    _shared = Stream(fresh if seed is None else seed)


def current_stream() -> Stream | None:
    """The stream that `use_stream` put in charge here, or None."""
    return _current.get()


@contextmanager
def use_stream(stream: Stream) -> Generator[Stream]:
    """Draw every random number of this block (and this thread or task) from `stream`.

    Example:
        >>> with use_stream(Stream(1)) as stream:
        ...     current_stream() is stream
        True
    """
    token = _current.set(stream)
    try:
        yield stream
    finally:
        _current.reset(token)


def _mix(text: str) -> int:
    """64 well mixed bits from a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _stream(root: int | None, position: int) -> Stream:
    made = Stream(None)
    made.root = root
    made.position = position
    return made


_current: ContextVar[Stream | None] = ContextVar("burnbook stream", default=None)
_shared = Stream(int.from_bytes(os.urandom(8), "big"))
