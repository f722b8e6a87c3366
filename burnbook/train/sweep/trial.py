"""Building blocks · Learner. One config of a sweep, and the file that remembers all.

`sweep.json` in the sweep's folder holds what was asked and what came of it. It is
written anew, whole, after every training, so a killed sweep goes on where it was.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from burnbook.errors import ConfigError
from burnbook.files import atomic_write, read_whole

STATE = "sweep.json"


@dataclass
class Trial:
    """One combination of values.

    scores: the number of the metric after so many epochs. failure: the first line of
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
    """Give the trials what an earlier call has found, if it asked for the same."""
    path = folder / STATE
    if not path.exists():
        return
    try:
        tree = json.loads(read_whole(path, ConfigError))
        before, found = tree["asked"], tree["trials"]
        known = {row["number"]: row for row in found}
    except (ValueError, KeyError, TypeError):
        what = f"{path} is not what a sweep wrote"
        raise ConfigError("sweep", what, cure="another folder") from None
    now = json.loads(json.dumps(asked, default=str))
    if before != now:
        differ = [name for name in now if before.get(name) != now[name]]
        facts = [(n, f"{before.get(n)!r} there, {now[n]!r} asked") for n in differ]
        what = f"{folder} holds another sweep"
        raise ConfigError("sweep", what, facts, "another folder")
    for trial in trials:
        row = known.get(trial.number)
        if row is not None:
            trial.scores = {int(k): float(v) for k, v in row["scores"].items()}
            trial.failure = str(row["failure"])
