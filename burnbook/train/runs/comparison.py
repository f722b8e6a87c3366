"""Runs side by side: how their configs and their metrics differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from burnbook.text.table import ShownAsTable, TextTable
from burnbook.train.events import better
from burnbook.train.metric.naming import unknown_metric
from burnbook.train.numbers import number_text
from burnbook.train.runs.run import Run, direction_of, split_name
from burnbook.train.runs.show import (
    different_fields,
    moment,
    split_order,
    value_text,
)

BEST = "*"


class RunComparison(ShownAsTable):
    """Config fields that differ, and every metric, one column for each run.

    config: {field: [value of each run]}, None where a run lacks it. metrics: {(name,
    split): [(epoch, number) of the best epoch, or None]}.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        configs = [run.config for run in self.runs]
        self.config: dict[str, list[Any]] = {
            name: [config.get(name) for config in configs]
            for name in different_fields(configs)
        }
        self._has = [set(config) for config in configs]
        pairs = {pair for run in self.runs for pair in run.metrics}
        self.metrics: dict[tuple[str, str], list[tuple[int, float] | None]] = {
            (name, split): [
                run.best(name, split) if (name, split) in run.metrics else None
                for run in self.runs
            ]
            for name, split in sorted(pairs, key=split_order)
        }

    def winner(self, metric: str, split: str = "valid") -> Run | None:
        """The run with the best number, the first among equals; None if all are.

        Raises:
            UnknownNameError: the runs have metrics, but none of this name.
        """
        names = [name for name, _ in self.metrics]
        if names and metric not in names:
            raise unknown_metric("RunComparison.winner", metric, names)
        found = self.metrics.get((metric, split_name(split)), [])
        place = self._best_place(metric, found)
        return None if place is None else self.runs[place]

    def table(self) -> TextTable:
        """Both parts in one table."""
        head = ("", *[run.name for run in self.runs])
        rows: list[list[str]] = [
            ["began", *[moment(run.date) for run in self.runs]],
            ["state", *[run.state for run in self.runs]],
            ["epochs", *[str(run.epochs) for run in self.runs]],
        ]
        for name, values in self.config.items():
            has = [name in fields for fields in self._has]
            pairs = zip(values, has, strict=True)
            rows.append(
                [name, *[value_text(v) if there else "–" for v, there in pairs]]
            )
        for (name, split), found in self.metrics.items():
            place = self._best_place(name, found)
            texts = [_cell(best, i == place) for i, best in enumerate(found)]
            rows.append([f"{split} {name}", *texts])
        notes: list[str] = []
        if not self.config:
            notes = ["the configs are the same"]
        if not any(self._has):
            notes = ["no run has a config.json"]
        if self.metrics:
            notes.append(f"metrics: the best epoch (@ which); {BEST} the better run")
        return TextTable(head, rows, set(range(1, len(head))), 2, notes=notes)

    def _best_place(
        self, metric: str, found: Sequence[tuple[int, float] | None]
    ) -> int | None:
        """Which run is the best; None where there is nothing to compare."""
        known = [(i, best[1]) for i, best in enumerate(found) if best is not None]
        if len(known) < 2 or all(value == known[0][1] for _, value in known):
            return None
        towards = direction_of(metric)
        place, top = known[0]
        for i, value in known[1:]:
            if better(value, top, towards) or top != top:
                place, top = i, value
        return place


def _cell(best: tuple[int, float] | None, wins: bool) -> str:
    if best is None:
        return "–"
    return f"{BEST * wins}{number_text(best[1])} @ {best[0]}"
