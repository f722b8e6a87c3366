"""What earlier runs have left in a run's folder: how much, and for how long.

Checkpoints of an earlier run are moved to `checkpoint/earlier-1`, those of the next one
to `earlier-2` and so on; the three newest of these folders stay.
"""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterable
from pathlib import Path

KEPT = 3  # folders with the checkpoints of earlier runs
UNITS = ("bytes", "kB", "MB", "GB")


def next_folder(checkpoints: Path) -> Path:
    """The folder for the checkpoints that are there now; its number grows."""
    numbers = [number for number, _ in _numbered(checkpoints, "earlier")]
    return checkpoints / f"earlier-{max(numbers, default=0) + 1}"


def remove_oldest(checkpoints: Path) -> list[Path]:
    """Remove all but the newest folders of earlier runs; says which.

    Why: training again and again into one folder, as a notebook's cell does, would fill
    the disk with models that nobody sees.
    """
    found = [path for _, path in sorted(_numbered(checkpoints, "earlier"))]
    removed: list[Path] = []
    for path in found[:-KEPT]:
        with contextlib.suppress(OSError):
            shutil.rmtree(path)
            removed.append(path)
    return removed


def earlier_runs(folder: Path, num_epochs: int) -> list[str]:
    """What people should know about earlier runs in this folder, if anything."""
    said: list[str] = []
    held = [path for _, path in sorted(_numbered(folder / "checkpoint", "earlier"))]
    if held:
        count = "1 earlier run" if len(held) == 1 else f"{len(held)} earlier runs"
        takes = "takes" if len(held) == 1 else "take"
        names = ", ".join(path.name for path in held)
        said.append(
            f"the checkpoints of {count} {takes} {_size(held)} "
            f"(checkpoint/{names}; the newest {KEPT} are kept)"
        )
    logged = {
        number
        for split in ("train", "valid")
        for number, _ in _numbered(folder / split, "epoch")
    }
    longer = sorted(number for number in logged if number > num_epochs)
    if longer:
        last = f" to epoch-{longer[-1]}" if len(longer) > 1 else ""
        said.append(
            f"the logs epoch-{longer[0]}{last} in this folder are of an earlier run, "
            f"which was longer"
        )
    return said


def _numbered(folder: Path, name: str) -> list[tuple[int, Path]]:
    """The folders `name-1`, `name-2` … inside one."""
    found: list[tuple[int, Path]] = []
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            match = re.fullmatch(rf"{name}-(\d+)", path.name)
            if match and path.is_dir():
                found.append((int(match[1]), path))
    return found


def _size(folders: Iterable[Path]) -> str:
    """How much the files in these folders take."""
    total = 0.0
    for folder in folders:
        for path in folder.rglob("*"):
            with contextlib.suppress(OSError):
                total += path.stat().st_size if path.is_file() else 0
    unit = 0
    while total >= 1000 and unit < len(UNITS) - 1:
        total, unit = total / 1000, unit + 1
    return f"{total:.0f} {UNITS[unit]}" if unit < 2 else f"{total:.1f} {UNITS[unit]}"
