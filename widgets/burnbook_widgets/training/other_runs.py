"""Curves of other runs, to lay over those of this one."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import TrainingError
from burnbook.train import RunStore
from burnbook.train.runs import Run
from burnbook_widgets.training.curves import SPLITS, thin

MOST = 6  # runs beside one's own: more cannot be told apart
POINTS = 128  # of each curve, at most
Runs = Run | RunStore | str | os.PathLike[str]


@dataclass(frozen=True)
class OtherRun:
    """A run that has left its logs: its name and its curves, one row per epoch.

    tables: {(metric, split): rows of position in epochs and mean}; a training mean
    stands amid its epoch, a validation mean at its end, as on the dashboard.
    """

    name: str
    path: str
    tables: dict[tuple[str, str], np.ndarray] = field(repr=False)

    @classmethod
    def read(cls, run: Run) -> OtherRun:
        """Read the epochs of a run, ours or Rust Burn's."""
        tables: dict[tuple[str, str], np.ndarray] = {}
        for metric, split in run.metrics:
            if split in SPLITS:
                back = 0.5 if split == "train" else 0.0
                points = [(p.epoch - back, p.value) for p in run.history(metric, split)]
                if points:
                    tables[metric, split] = np.array(points, dtype=float)
        return cls(run.name, str(run.path), tables)


def runs_of(given: Runs | Iterable[Runs]) -> list[Run]:
    """The runs that are meant: by a run, a store, a folder, or several of these."""
    if isinstance(given, Run):
        return [given]
    if isinstance(given, RunStore):
        return given.runs
    if isinstance(given, str | os.PathLike):
        found = RunStore(Path(given)).runs
        if not found:
            cure = "a folder that was given to LearnerBuilder, or one above it"
            raise TrainingError("overlay", f"there is no run in {given}", cure=cure)
        # A folder that is itself a run has no name below itself: its own will do.
        own = Path(given).resolve().name
        return [run if run.name != "." else Run(run.path, own) for run in found]
    return [run for each in given for run in runs_of(each)]


def runs_beside(directory: str) -> list[Run]:
    """The runs in the folder above a run's own, the newest first."""
    own = Path(directory).resolve()
    store = RunStore(own.parent) if own.parent.is_dir() else []
    return [run for run in store if run.path.resolve() != own][::-1]


def read_runs(runs: Iterable[Run], metrics: Sequence[str]) -> list[OtherRun]:
    """The first runs that have one of these metrics; not more than can be drawn."""
    found: list[OtherRun] = []
    for run in runs:
        other = OtherRun.read(run)
        if any(metric in metrics for metric, _ in other.tables):
            found.append(other)
        if len(found) == MOST:
            break
    return found


def pack_runs(
    others: Sequence[OtherRun], metrics: Sequence[str]
) -> tuple[list[list[Any]], bytes]:
    """Lay the curves end to end as float32 rows; a list says which is which."""
    parts: list[list[Any]] = []
    tables: list[np.ndarray] = []
    lines = 2 * len(metrics) * len(others)
    most = max(16, min(POINTS, 2048 // max(1, lines)))  # 16 kB, however many there are
    for place, other in enumerate(others):
        for panel, metric in enumerate(metrics):
            for split in SPLITS:
                table = other.tables.get((metric, split))
                if table is not None:
                    table = few(table, most)
                    parts.append([place, panel, split, len(table)])
                    tables.append(table)
    rows = np.concatenate(tables) if tables else np.empty((0, 2))
    return parts, rows.astype("<f4").tobytes()


def few(table: np.ndarray, most: int = POINTS) -> np.ndarray:
    """At most so many points; neighbors become their mean."""
    return thin(table[:, [0, 1, 1, 1]], most)[:, :2]
