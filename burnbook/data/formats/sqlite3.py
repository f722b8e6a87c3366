"""Python's own sqlite3, loaded when a database is opened.

Why: a Python in a browser comes without it, and most chapters never open one.
"""

from importlib import import_module
from typing import Any

from burnbook.core.errors import DataError


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return getattr(import_module("sqlite3"), name)
    except ImportError:
        what = "this Python came without its module sqlite3"
        cure = "in a browser, `import sqlite3` in a cell of its own loads it"
        raise DataError("SQLite", what, cure=cure) from None
