"""The table of contents: how long each page runs, and what memory it takes.

`notebooks/README.md` is written by hand, but for the last two columns of its tables,
which `python -m burnbook_widgets.build notebooks --measure` fills in. The figures are
rounded up, and stay as they are while a new measurement is near them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONTENTS = "README.md"
SECONDS = (3, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120)
MEGABYTES = tuple(range(50, 4000, 50))
NEAR = 0.6  # of a figure, and up to 1.1 times: it stays as it is
LINK = re.compile(r"\]\(([\w/]+)\.ipynb\)")

# Run in the kernel, behind the last cell: the most memory that it ever had, in bytes.
PEAK = """\
import re as _re, sys as _sys
from pathlib import Path as _Path

try:
    _status = _Path("/proc/self/status").read_text()
    _peak = int(_re.search(r"VmHWM:\\s*(\\d+) kB", _status).group(1)) * 1024
except (OSError, AttributeError):
    import psutil as _psutil

    _peak = _psutil.Process().memory_info()
    _peak = getattr(_peak, "peak_wset", _peak.rss)
print(_peak)
"""


@dataclass(frozen=True)
class Figures:
    """What a page took: seconds from its first cell to its last, and bytes at most."""

    seconds: float
    bytes: int


def fill_in(text: str, measured: Mapping[str, Figures]) -> str:
    """Write figures into the rows of the pages named, and leave all else alone.

    Example:
        >>> row = "| [A](a.ipynb) | an aim | 5 s | 200 MB |"
        >>> fill_in(row, {"a": Figures(4.1, 190_000_000)}) == row
        True
        >>> fill_in(row, {"a": Figures(8.0, 333_000_000)})
        '| [A](a.ipynb) | an aim | 10 s | 350 MB |'
    """
    lines = text.split("\n")
    for i, line in enumerate(lines):
        found = LINK.search(line) if line.startswith("|") else None
        if found is None or found.group(1) not in measured:
            continue
        figures = measured[found.group(1)]
        *before, seconds, megabytes, end = line.split("|")
        seconds = settled(seconds, figures.seconds, SECONDS, "s")
        megabytes = settled(megabytes, figures.bytes / 1e6, MEGABYTES, "MB")
        lines[i] = "|".join([*before, seconds, megabytes, end])
    return "\n".join(lines)


def settled(old: str, value: float, steps: tuple[int, ...], unit: str) -> str:
    """A figure for the table: the old one if it will do, else the next step up."""
    found = re.search(r"\d+", old)
    if found and NEAR * int(found.group()) <= value <= 1.1 * int(found.group()):
        return old
    return f" {next((s for s in steps if s >= value), steps[-1])} {unit} "


def unlisted(folder: Path, names: list[str]) -> list[str]:
    """Which of these pages the table of contents does not list."""
    listed = set(LINK.findall((folder / CONTENTS).read_text(encoding="utf-8")))
    return [name for name in names if name not in listed]


def update(folder: Path, measured: Mapping[str, Figures]) -> None:
    """Write the figures into the table of contents."""
    path = folder / CONTENTS
    text = fill_in(path.read_text(encoding="utf-8"), measured)
    path.write_text(text, encoding="utf-8", newline="\n")
