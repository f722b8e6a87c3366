"""What a run's `experiment.log` says about its status.

The file may be long, so only what is needed is read: its first line has the start, and
the last line that tells how a training began or ended is looked for from the end.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from burnbook.core.errors import DataError
from burnbook.core.files import open_regular
from burnbook.train.live import LONGEST_NAME
from burnbook.train.run_status import NAME, STATUS, RunStatus, read_status

FITTING = b"Fitting the model"
TROUBLE = (b"Training interrupted.", b"PANIC => ")
LONGEST = 2000  # characters of a line that are looked at

TAILS = (1 << 18, 1 << 23, 1 << 28)  # bytes of the end, more where less says nothing


@dataclass(frozen=True)
class ExperimentLog:
    """When the first training in the folder began, and how the last one went.

    status: what our own lines say, None in a log of Rust Burn. trouble: the line at
    which reading stopped. name: what the last training was called, if it had one.
    damage: why the file cannot be read, where it is there.
    """

    started: datetime | None = None
    status: RunStatus | None = None
    trouble: str = ""
    name: str = ""
    damage: str = ""


def read_experiment_log(path: Path) -> ExperimentLog:
    """Read an experiment log; one that is missing or empty says nothing."""
    if not os.path.lexists(path):
        return ExperimentLog()
    text = b""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            started = _moment(file.read(40).split(b" ")[0])
            damage = "" if started or not size else "it does not begin with a time"
            for tail in TAILS:
                file.seek(max(0, size - tail))
                text = file.read(tail)
                if len(text) >= size or FITTING in text:
                    break
    except DataError as error:
        return ExperimentLog(damage=error.what)
    except (OSError, MemoryError) as error:
        return ExperimentLog(damage=str(error))
    return _read(text, started, damage)


def _read(text: bytes, started: datetime | None, damage: str) -> ExperimentLog:
    session = text.rfind(FITTING)
    own = text.rfind(b" " + STATUS.encode() + b": ")
    status = read_status(_line(text, own)) if own > session >= 0 else None
    at = max(text.rfind(mark) for mark in TROUBLE)
    trouble = _line(text, at) if at > session else ""
    mark = b" " + NAME.encode() + b": "
    at = text.rfind(mark)
    name = _line(text, at + len(mark)) if at > session >= 0 else ""
    name = "".join(c for c in name[:LONGEST_NAME] if c.isprintable())
    return ExperimentLog(started, status, trouble, name, damage)


def _line(text: bytes, at: int) -> str:
    end = text.find(b"\n", at)
    end = len(text) if end < 0 else end
    return text[at : min(end, at + LONGEST)].decode("utf-8", "replace").strip()


def _moment(stamp: bytes) -> datetime | None:
    try:
        found = datetime.fromisoformat(stamp.decode("ascii"))
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        found.astimezone(UTC)  # a time zone can lead out of the calendar's range
    except (ValueError, OverflowError):
        return None
    return found if 1970 <= found.year < 9000 else None  # no clock says otherwise
