"""The metric logs of a run, read as they were left.

A run may be killed in the middle of a line, may still be writing, or may come from
another version of Burn. So a last line without its end does not count, a line that is
not an entry is skipped and counted, and `0.5,final` of newer versions is understood.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burnbook.core.errors import DataError
from burnbook.core.files import open_regular, read_whole

FINAL = "final"
LONGEST = 1 << 28  # bytes of a log


@dataclass(frozen=True)
class MetricLog:
    """One log file: a value per batch, how many examples each stands for, and the end.

    final: the number of the whole epoch, where the run has written it down itself.
    """

    values: np.ndarray
    counts: np.ndarray
    final: float | None = None
    strange: int = 0  # lines that were skipped

    @property
    def weight(self) -> float:
        """How many examples all of it stands for."""
        return float(self.counts.sum())

    @property
    def mean(self) -> float | None:
        """The number of the epoch: the final one, else Σ vᵢ nᵢ / Σ nᵢ."""
        if self.final is not None:
            return self.final
        counted = self.counts > 0  # the others have weight 0, even if they are infinite
        values, counts = self.values[counted], self.counts[counted]
        with np.errstate(all="ignore"):  # a sum that is too large is infinite
            total = float(counts.sum())
            return float((values * counts).sum() / total) if total else None


def read_log(path: Path) -> MetricLog | None:
    """Read a log file; None when it is gone, not a file, or holds no number at all."""
    try:
        text = read_whole(path, most=LONGEST).decode("utf-8", "replace")
        whole, _, _ = text.rpartition("\n")
        return parse_log(whole)
    except (DataError, MemoryError):
        return None


def damage_of(path: Path) -> str:
    """Why a log file cannot be read; "" when it can."""
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
    except DataError as error:
        return error.what
    return "" if size <= LONGEST else f"it is {size:,} bytes long"


def parse_log(text: str) -> MetricLog | None:
    """Read lines such as `83.5,64`, `83.5` and `83.5,final`; None without a number.

    Example:
        >>> log = parse_log("50,64\\n100,16")
        >>> log.mean, parse_log("0.5,1\\n0.25,final").mean
        (60.0, 0.25)
    """
    lines = text.split("\n")
    if text.count(",") == len(lines) and all("," in line for line in lines):
        try:
            flat = np.array(text.replace("\n", ",").split(","), dtype=np.float64)
            if np.isfinite(flat[1::2]).all():
                return MetricLog(flat[::2], flat[1::2])
        except ValueError:
            pass  # not all of them are "value,count"
    return _line_by_line(lines)


def _count(text: str) -> float:
    """How many examples; NaN marks the final number of an epoch."""
    if text == FINAL:
        return math.nan
    if len(text) > 40:
        raise ValueError("no count is that long")
    return float(int(text))


def _line_by_line(lines: list[str]) -> MetricLog | None:
    values: list[float] = []
    counts: list[float] = []
    final: float | None = None
    strange = 0
    for line in filter(None, map(str.strip, lines)):
        head, comma, tail = line.partition(",")
        try:
            value = float(head)
            count = 1.0 if not comma else _count(tail)
        except (ValueError, OverflowError):
            strange += 1
            continue
        if math.isnan(count):
            final = value
        else:
            values.append(value)
            counts.append(count)
    if not values and final is None:
        return None
    return MetricLog(np.array(values), np.array(counts), final, strange)
