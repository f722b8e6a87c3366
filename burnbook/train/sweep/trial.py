"""One config of a sweep, and the file that remembers all.

`sweep.json` in the sweep's folder holds what was asked and the results. It is
rewritten, atomically, after every training, so a killed sweep resumes where it was.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from burnbook.core.errors import ConfigError
from burnbook.core.files import atomic_write, printable, read_whole, within_memory

STATE = "sweep.json"
LONGEST = 64 << 20  # bytes of that file


@dataclass
class Trial:
    """One combination of values.

    scores: the value of the metric after so many epochs. failure: the first line of
    the error that ended it, "" while all is well.
    """

    number: int
    values: dict[str, Any]
    scores: dict[int, float] = field(default_factory=dict[int, float])
    failure: str = ""

    @property
    def name(self) -> str:
        """Its folder, and its run in the store."""
        return f"trial-{self.number:03}"

    @property
    def epochs(self) -> int:
        """How many epochs it was trained and measured."""
        return max(self.scores, default=0)

    @property
    def score(self) -> float | None:
        """The newest number of the metric; None before the first."""
        return self.scores[self.epochs] if self.scores else None


def save_state(folder: Path, asked: dict[str, Any], trials: list[Trial]) -> None:
    """Write the file: all of it, or the old one stays."""
    tree = {"asked": asked, "trials": [asdict(trial) for trial in trials]}
    text = json.dumps(tree, indent=2, default=str)
    with atomic_write(folder / STATE, ConfigError) as file:
        file.write(text.encode())


def load_state(folder: Path, asked: dict[str, Any], trials: list[Trial]) -> None:
    """Give the trials the results of an earlier call, if it asked for the same."""
    path = folder / STATE
    if not os.path.lexists(path):
        return
    where = f"read {printable(path)}"
    with within_memory(where, ConfigError):
        try:
            tree = json.loads(read_whole(path, ConfigError, most=LONGEST))
            before, known = _asked(tree), _rows(tree)
        except ConfigError:
            raise
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
            what = f"{printable(path)} is not what a sweep wrote"
            raise ConfigError("sweep", what, cure="another folder") from None
    now = json.loads(json.dumps(asked, default=str))
    if before != now:
        differ = [name for name in now if before.get(name) != now[name]]
        facts = [
            (n, f"{_short(before.get(n))} there, {_short(now[n])} asked")
            for n in differ
        ]
        what = f"{folder} holds another sweep"
        raise ConfigError("sweep", what, facts, "another folder")
    for trial in trials:
        if trial.number in known:
            trial.scores, trial.failure = known[trial.number]


def _asked(tree: Mapping[str, Any]) -> dict[str, Any]:
    if not isinstance(tree["asked"], dict):
        raise TypeError
    return tree["asked"]


def _rows(tree: Mapping[str, Any]) -> dict[int, tuple[dict[int, float], str]]:
    """The scores and the failure of each trial, whatever the file holds besides."""
    found: dict[int, tuple[dict[int, float], str]] = {}
    for row in tree["trials"]:
        number, failure = row["number"], row["failure"]
        if type(number) is not int or not isinstance(failure, str):
            raise TypeError
        scores = {int(k): float(v) for k, v in dict(row["scores"]).items()}
        if any(epoch < 1 for epoch in scores):
            raise ValueError
        found[number] = (scores, failure)
    return found


def _short(value: object) -> str:
    text = ascii(value)
    return text if len(text) <= 200 else text[:199] + "…"
