"""Where downloaded data is kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path


def cache_dir() -> Path:
    """Return the folder for downloads: BURNBOOK_CACHE, or the user's cache folder.

    That is `~/.cache/burnbook` on Linux (XDG_CACHE_HOME is honored),
    `~/Library/Caches/burnbook` on macOS and `%LOCALAPPDATA%\\burnbook` on Windows.
    Compiled kernels are kept there too and run as code, so nobody else should be able
    to write to it; where others can, kernels go to a temporary folder of one's own.
    """
    if chosen := os.environ.get("BURNBOOK_CACHE"):
        return Path(chosen).expanduser()
    home = Path.home()
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = home / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return base / "burnbook"
