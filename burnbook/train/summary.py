"""The summary of a run: the best and worst of every metric.

It is read from the log files of the artifact directory, so it can be made again at any
time: `print(LearnerSummary("guide", ["Loss", "Accuracy"]))`.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from burnbook.core.errors import TrainingError
from burnbook.core.files import fixed, shown_path
from burnbook.train.events import mean
from burnbook.train.logger import FileMetricLogger
from burnbook.train.numbers import fixed_float, scientific_float
from burnbook.train.runs.experiment_log import read_experiment_log

RULE = "=" * 24


@dataclass(frozen=True)
class SummaryRow:
    """A metric in a split: its lowest and its highest epoch, as (epoch, value)."""

    split: str
    metric: str
    lowest: tuple[int, float]
    highest: tuple[int, float]

    def cells(self) -> tuple[str, ...]:
        """The line as texts."""
        (low_epoch, low), (high_epoch, high) = self.lowest, self.highest
        numbers = (_value(low), str(low_epoch), _value(high), str(high_epoch))
        return (self.split, self.metric, *numbers)


class LearnerSummary:
    """The best and worst epoch of every metric.

    epochs: limits it to the first epochs: what an older run left there does not count.
    name: of the run, where it was given one. callbacks: their names and statuses.
    splits: those that the run had; logs of another are of an older run.
    """

    def __init__(
        self,
        directory: str | Path,
        metrics: Sequence[str],
        *,
        epochs: int | None = None,
        model: str | None = None,
        name: str = "",
        callbacks: Sequence[tuple[str, str]] = (),
        splits: Sequence[str] = ("Train", "Valid"),
    ) -> None:
        folder = fixed(directory)
        if not folder.is_dir():
            raise TrainingError(
                "LearnerSummary",
                f"Artifact directory does not exist at: {shown_path(folder)}",
                cure="the folder that was given to LearnerBuilder",
            )
        loggers = {split: FileMetricLogger(folder / split.lower()) for split in splits}
        if not any(logger.directory.is_dir() for logger in loggers.values()):
            raise TrainingError(
                "LearnerSummary",
                f"No training or validation artifacts found at: {shown_path(folder)}",
                cure="a training with metrics and without metric_loggers of your own",
            )
        self.model, self.name = model, name
        self.callbacks = [
            f"{name}: {text}" if text else name for name, text in callbacks
        ]
        if epochs is None:
            status = read_experiment_log(folder / "experiment.log").status
            logged = loggers["Train"].epochs()
            epochs = logged if status is None else min(logged, status.last_epoch)
        self.epochs = epochs
        found = (
            _row(split, metric, logger, self.epochs)
            for split, logger in loggers.items()
            for metric in metrics
        )
        self.rows = [row for row in found if row is not None]

    def __str__(self) -> str:
        """The text that Burn prints."""
        lines = [f"{RULE} Learner Summary {RULE}"]
        if self.name:
            lines.append(f"Run: {self.name}")
        if self.model is not None:
            lines += ["Model:", self.model]
        lines.append(f"Total Epochs: {self.epochs}")
        if self.callbacks:
            lines.append(f"Callbacks: {'; '.join(self.callbacks)}")
        lines += ["", ""]
        width = max([6, *(len(row.metric) for row in self.rows)])
        cells = [HEADER, *(row.cells() for row in self.rows)]
        table = [_line(each, width) for each in cells]
        return "\n".join([*lines, table[0], _ruler(width), *table[1:]])

    def __repr__(self) -> str:
        return f"LearnerSummary({self.epochs} epochs, {len(self.rows)} rows)"

    def _repr_html_(self) -> str:
        head = _html_row("th", HEADER)
        body = "".join(_html_row("td", row.cells()) for row in self.rows)
        model = f"<pre>{html.escape(self.model)}</pre>" if self.model else ""
        run = f" · {html.escape(self.name)}" if self.name else ""
        title = f"<strong>Learner Summary</strong>{run} · {self.epochs} epochs"
        table = f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"
        told = f"<p>{html.escape('; '.join(self.callbacks))}</p>" * bool(self.callbacks)
        return title + model + told + table


HEADER = ("Split", "Metric", "Min.", "Epoch", "Max.", "Epoch")


def _row(
    split: str, metric: str, logger: FileMetricLogger, epochs: int
) -> SummaryRow | None:
    means = [(e, mean(logger.read_numeric(metric, e))) for e in range(1, epochs + 1)]
    known = [(epoch, value) for epoch, value in means if value is not None]
    if not known:
        return None
    lowest = min(known, key=_order)
    highest = max(reversed(known), key=_order)  # the last one among equals
    return SummaryRow(split, metric, lowest, highest)


def _order(point: tuple[int, float]) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(point[1]) else (False, point[1])


def _value(value: float) -> str:
    return scientific_float(value, 3) if abs(value) < 0.01 else fixed_float(value, 3)


def _html_row(tag: str, cells: Sequence[str]) -> str:
    return "<tr>" + "".join(f"<{tag}>{html.escape(c)}</{tag}>" for c in cells) + "</tr>"


def _line(cells: Sequence[str], width: int) -> str:
    split, metric, *numbers = cells
    columns = "".join(f"{text:<9}| " for text in numbers).rstrip()
    return f"| {split:<5} | {metric:<{width}} | {columns}"


def _ruler(width: int) -> str:
    return "|-------|" + "-" * (width + 2) + "|" + "----------|" * 4
