"""Building blocks · Learner. What a run's `experiment.log` says about its life.

The file may be long, so it is mapped, not read: its first line has the start, and the
last line that tells how a training began or ended is looked for from the end.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from burnbook.train.life import LIFE, Life, read_life

FITTING = b"Fitting the model"
TROUBLE = (b"Training interrupted.", b"PANIC => ")
LONGEST = 2000  # characters of a line that are looked at


@dataclass(frozen=True)
class Diary:
    """When the first training in the folder began, and how the last one went.

    life: what our own lines say, None in a diary of Rust Burn. trouble: the line after
    which it did not go on.
    """

    started: datetime | None = None
    life: Life | None = None
    trouble: str = ""


def read_diary(path: Path) -> Diary:
    """Read a diary; one that is missing or empty says nothing."""
    try:
        with (
            path.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text,
        ):
            return _read(text)
    except (OSError, ValueError):  # there is none, or nothing in it
        return Diary()


def _read(text: mmap.mmap) -> Diary:
    session = text.rfind(FITTING)
    own = text.rfind(b" " + LIFE.encode() + b": ")
    life = read_life(_line(text, own)) if own > session >= 0 else None
    at = max(text.rfind(mark) for mark in TROUBLE)
    trouble = _line(text, at) if at > session else ""
    return Diary(_moment(text[:40].split(b" ")[0]), life, trouble)


def _line(text: mmap.mmap, at: int) -> str:
    end = text.find(b"\n", at)
    end = len(text) if end < 0 else end
    return text[at : min(end, at + LONGEST)].decode("utf-8", "replace").strip()


def _moment(stamp: bytes) -> datetime | None:
    try:
        found = datetime.fromisoformat(stamp.decode("ascii"))
    except ValueError:
        return None
    if found.year < 1970:  # no clock says so
        return None
    return found if found.tzinfo else found.replace(tzinfo=UTC)
