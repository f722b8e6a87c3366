"""Runs as rows, and rows as tables and files."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from burnbook.core.errors import ConfigError, TrainingError
from burnbook.core.files import atomic_write
from burnbook.text.table import TextTable, cut
from burnbook.train.numbers import number_text
from burnbook.train.runs.run import Run

PER = ("run", "epoch", "batch")
SHOWN = ("valid", "test", "train")  # validation first
LONGEST_VALUE = 24  # characters of a config value in a table
FORMULA = ("=", "+", "-", "@", "\t", "\r")
Row = dict[str, Any]


def rows_of(runs: Sequence[Run], per: str) -> list[Row]:
    """One row per run, per epoch or per batch; see `RunStore.rows`."""
    if per not in PER:
        raise ConfigError(
            "RunStore", f"{per!r} is not a kind of row", cure=", ".join(PER)
        )
    if per == "run":
        return [_run_row(run) for run in runs]
    rows: list[Row] = []
    for run in runs:
        for metric, split in run.metrics:
            points = (run.history if per == "epoch" else run.batches)(metric, split)
            for point in points:
                row: Row = {"run": run.name, "split": split, "metric": metric}
                row |= {"epoch": point.epoch, "batch": point.batch}
                if per == "epoch":
                    del row["batch"]
                rows.append({**row, "value": point.value, "weight": point.weight})
    return rows


def _run_row(run: Run) -> Row:
    row: Row = {"run": run.name}
    if run.title != run.name:
        row["title"] = run.title
    row |= {"state": run.state, "reason": run.reason}
    row |= {"date": run.date.isoformat(timespec="seconds"), "epochs": run.epochs}
    row |= {"damage": damage} if (damage := run.damage) else {}
    row |= {f"config.{name}": value for name, value in run.config.items()}
    for metric, split in run.metrics:
        last, best = run.last(metric, split), run.best(metric, split)
        row[f"{split} {metric}"] = last[1] if last else None
        row[f"best {split} {metric}"] = best[1] if best else None
        row[f"best epoch {split} {metric}"] = best[0] if best else None
    return row


def columns_of(rows: Sequence[Row]) -> list[str]:
    """The names of all columns, in the order of their first appearance."""
    return list(dict.fromkeys(name for row in rows for name in row))


def write_csv(rows: Sequence[Row], path: str | Path) -> Path:
    """Write rows as CSV: the whole file, or none of it."""
    text = io.StringIO()
    names = columns_of(rows)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_cell(_plain(name)) for name in names])
    writer.writerows([_cell(_plain(row.get(n, ""))) for n in names] for row in rows)
    with atomic_write(path, TrainingError) as file:
        file.write(text.getvalue().encode())
    return Path(path)


def _cell(value: object) -> Any:
    """A value for a spreadsheet, which takes text that begins with = for a formula.

    Example:
        >>> _cell("=1+1"), _cell("-0.5"), _cell(-0.5)
        ("'=1+1", '-0.5', -0.5)
    """
    if not isinstance(value, str) or not value.startswith(FORMULA):
        return value
    try:
        return value if math.isfinite(float(value)) else f"'{value}"
    except ValueError:
        return f"'{value}"


def frame_of(rows: Sequence[Row]) -> Any:
    """A polars dataframe of the rows; the rows themselves without polars."""
    try:
        import polars
    except ImportError:
        return list(rows)
    names = columns_of(rows)
    columns = {_plain(n): [_plain(row.get(n)) for row in rows] for n in names}
    return polars.DataFrame(columns, strict=False)


def _plain(value: object) -> Any:
    """Lists and maps of a config as text: a cell holds one thing, of Unicode."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode()
    return value if isinstance(value, int | float | None) else value_text(value)


def run_table(runs: Sequence[Run], where: str) -> TextTable:
    """What `print(store)` shows: best numbers of validation, and what differs."""
    metrics = _metrics_to_show(runs)
    configs = [run.config for run in runs]
    fields = [name for name in different_fields(configs) if name != "num_epochs"]
    head = ["run", "state", "epoch", *[_title(m, s) for m, s in metrics]]
    head += [*fields, "began"]
    rows: list[list[str]] = []
    damages = {run.name: run.damage for run in runs}
    for run, config in zip(runs, configs, strict=True):
        asked = run.num_epochs
        row = [
            run.name if run.title == run.name else f"{run.name} · {run.title}",
            f"{run.state}, damaged" if damages[run.name] else run.state,
            f"{run.epochs}/{asked}" if asked else f"{run.epochs}",
        ]
        row += [best_text(run, metric, split) for metric, split in metrics]
        row += [value_text(config[f]) if f in config else "–" for f in fields]
        rows.append([*row, moment(run.date)])
    numbers = range(2, len(head) - 1)
    count = f"{len(runs)} run{'s' * (len(runs) != 1)} in {where}"
    about = "; metrics: the best epoch" if metrics else ""
    notes = [count + about]
    notes += [f"{name} is damaged: {why}" for name, why in damages.items() if why]
    return TextTable(head, rows, set(numbers), 2, notes=notes)


def _metrics_to_show(runs: Sequence[Run]) -> list[tuple[str, str]]:
    """The metrics of validation; those of training only where there are no others."""
    found = dict.fromkeys(pair for run in runs for pair in run.metrics)
    for split in SHOWN:
        chosen = sorted(pair for pair in found if pair[1] == split)
        if chosen:
            return chosen
    return []


def _title(metric: str, split: str) -> str:
    return metric if split == "valid" else f"{metric} ({split})"


def different_fields(configs: Sequence[Row]) -> list[str]:
    """The fields that not all configs have with the same value."""
    names = columns_of(configs)
    return [n for n in names if any(_other(configs[0], c, n) for c in configs[1:])]


def _other(one: Row, two: Row, name: str) -> bool:
    missing = object()
    a, b = one.get(name, missing), two.get(name, missing)
    return a != b or type(a) is not type(b)


def best_text(run: Run, metric: str, split: str) -> str:
    """The best number as people read it; "–" where there is none."""
    known = (metric, split) in run.metrics
    best = run.best(metric, split) if known else None
    return number_text(best[1]) if best else "–"


def value_text(value: object) -> str:
    """A value of a config in a cell."""
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return cut(text, LONGEST_VALUE)


def moment(date: datetime) -> str:
    """A date as people read it, in local time."""
    try:
        return date.astimezone().strftime("%Y-%m-%d %H:%M")
    except (OverflowError, OSError, ValueError):  # beyond this computer's calendar
        return date.strftime("%Y-%m-%d %H:%M")


def split_order(pair: tuple[str, str]) -> tuple[int, str]:
    """Validation first, then test, then training."""
    return SHOWN.index(pair[1]), pair[0]
