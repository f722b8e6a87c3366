"""Whether Python's lock (the GIL) is on; free-threaded builds run without it."""

import sys


def is_gil_enabled() -> bool:
    """Whether one thread at a time runs Python code.

    Example:
        >>> isinstance(is_gil_enabled(), bool)
        True
    """
    return getattr(sys, "_is_gil_enabled", lambda: True)()
