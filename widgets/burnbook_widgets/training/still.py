"""Building blocks · Learner. The finished picture of a run: curves and a table.

This is what stays in the notebook when training has ended and the kernel is gone:
a drawing without JavaScript, the epochs as an HTML table, and one line of text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from burnbook_widgets.drawing import Area, Drawing, Line, Mark, Point, Words
from burnbook_widgets.training.curves import Curves, merged

PANEL_WIDTH, PANEL_HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 44
DASH = {"train": (), "valid": (7.0, 4.0)}
MARK = {"train": "circle", "valid": "square"}


def ticks(low: float, high: float, count: int = 5, whole: bool = False) -> list[float]:
    """Round numbers between low and high: multiples of 1, 2 or 5 times a power of ten.

    Example:
        >>> ticks(0.0, 2.3)
        [0.0, 0.5, 1.0, 1.5, 2.0]
        >>> ticks(0, 3, whole=True)
        [0.0, 1.0, 2.0, 3.0]
    """
    rough = (high - low) / max(count, 1)
    if not math.isfinite(rough) or rough <= 0:
        return [low]
    power = 10.0 ** math.floor(math.log10(rough))
    step = min(
        (m * power for m in (1, 2, 5, 10)), key=lambda s: abs(math.log(s / rough))
    )
    if whole:
        step = max(1.0, round(step))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return [round(k * step, 12) + 0.0 for k in range(first, last + 1)]


@dataclass(frozen=True)
class Axes:
    """A box on the sheet with the ranges of values it shows."""

    x: tuple[float, float]
    y: tuple[float, float]
    left: float
    right: float
    top: float
    bottom: float

    def at(self, x: float, y: float) -> Point:
        """Where a value lies on the sheet, kept inside the box."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        up = (y - self.y[0]) / (self.y[1] - self.y[0])
        across, up = min(max(across, 0.0), 1.0), min(max(up, 0.0), 1.0)
        return (
            self.left + across * (self.right - self.left),
            self.bottom - up * (self.bottom - self.top),
        )


def picture(curves: Curves, units: dict[str, str] | None = None) -> Drawing:
    """Draw every metric of a run on its own axes, train solid and valid dashed."""
    metrics = curves.metrics
    columns = min(2, max(1, len(metrics)))
    rows = math.ceil(len(metrics) / columns)
    sheet = Drawing(
        columns * PANEL_WIDTH, rows * PANEL_HEIGHT + 26, describe(curves, units)
    )
    _legend(sheet)
    span = x_range(curves)
    for place, metric in enumerate(metrics):
        row, column = divmod(place, columns)
        left, top = column * PANEL_WIDTH, row * PANEL_HEIGHT + 26
        box = Axes(
            span,
            _y_range(curves, metric),
            left + LEFT,
            left + PANEL_WIDTH - RIGHT,
            top + TOP,
            top + PANEL_HEIGHT - BOTTOM,
        )
        unit = (units or {}).get(metric, "")
        _axes(sheet, box, f"{metric} ({unit})" if unit else metric)
        _lines(sheet, box, curves, metric)
    return sheet


def describe(curves: Curves, units: dict[str, str] | None = None) -> str:
    """Say in a sentence what the curves show, for those who cannot see them."""
    parts = []
    for metric in curves.metrics:
        unit = (units or {}).get(metric, "")
        for split in ("train", "valid"):
            epochs = curves.curve(metric, split).epochs
            if epochs:
                first, last = (figure(e.mean) + unit for e in (epochs[0], epochs[-1]))
                parts.append(f"{split} {metric} from {first} to {last}")
    rows = len(curves.rows())
    return f"Curves of {rows} epoch{'s' * (rows != 1)}. " + "; ".join(parts)


def epoch_table(
    curves: Curves, units: dict[str, str] | None = None, last: int | None = None
) -> str:
    """The epoch means as an HTML table, folded when it is long; no script, no ids.

    last: only so many of the newest epochs.
    """
    rows = curves.rows()
    rows = rows[-last:] if last else rows
    columns = [
        f"{split} {metric}"
        for metric in curves.metrics
        for split in ("train", "valid")
        if any(f"{split} {metric}" in row for row in rows)
    ]
    if not rows:
        return "<p>No epoch was finished.</p>"
    head = "".join(
        f'<th scope="col">{escape(name)}{_in_unit(name, units)}</th>'
        for name in columns
    )
    body = "".join(
        f'<tr><th scope="row">{row["epoch"]}</th>'
        + "".join(f"<td>{figure(row.get(name))}</td>" for name in columns)
        + "</tr>\n"
        for row in rows
    )
    table = (
        f'<table>\n<thead><tr><th scope="col">epoch</th>{head}</tr></thead>\n'
        f"<tbody>\n{body}</tbody>\n</table>"
    )
    if len(rows) <= 10:
        return table
    return f"<details><summary>All {len(rows)} epochs</summary>\n{table}\n</details>"


def _in_unit(name: str, units: dict[str, str] | None) -> str:
    unit = (units or {}).get(name.split(" ", 1)[1], "")
    return f" ({escape(unit)})" if unit else ""


def figure(value: float | None) -> str:
    """A number with four significant digits; a dash where there is none."""
    if value is None:
        return "–"
    return "NaN" if math.isnan(value) else f"{value:.4g}"


def _legend(sheet: Drawing) -> None:
    left = LEFT
    for split in ("train", "valid"):
        sheet.add(
            Line(((left, 14), (left + 30, 14)), split, 2.0, 1.0, DASH[split]),
            Mark((left + 15, 14), split, MARK[split], 3.5),
            Words((left + 37, 18), split),
        )
        left += 90
    sheet.add(
        Area(((left, 9), (left + 30, 9), (left + 30, 19), (left, 19)), "train", 0.25),
        Words((left + 37, 18), "range of the batches"),
    )


def x_range(curves: Curves) -> tuple[float, float]:
    """The epochs to show: whole ones, as far as the run has come."""
    ends = [
        value
        for _, _, kind, table in curves.series()
        if len(table)
        for value in (table[0, 0] - (kind == "epochs") * 0.5, table[-1, 0])
    ]
    if not ends:
        return 0.0, 1.0
    return math.floor(min(ends)), max(math.ceil(max(ends) - 1e-9), min(ends) + 1)


def _y_range(curves: Curves, metric: str) -> tuple[float, float]:
    tables = [table[:, 1] for name, _, _, table in curves.series() if name == metric]
    values = np.concatenate(tables)
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    # A range that starts just above zero starts at zero: bars of truth, not of drama.
    base = 0.0 if 0 <= low < (high - low) * 0.25 else low - margin
    return base, high + margin


def _axes(sheet: Drawing, box: Axes, title: str) -> None:
    sheet.add(Words((box.left, box.top - 12), title, "ink", 13, bold=True))
    for value in ticks(*box.y):
        x, y = box.at(box.x[0], value)
        sheet.add(
            Line(((x, y), (box.right, y)), "quiet", 1.0, 0.3),
            Words((x - 8, y + 4), f"{value:g}", "ink", 11, "end"),
        )
    for value in ticks(*box.x, 6, whole=True):
        x, y = box.at(value, box.y[0])
        sheet.add(
            Line(((x, y), (x, y + 4)), "quiet", 1.0),
            Words((x, y + 17), f"{value:g}", "ink", 11, "middle"),
        )
    corner = (box.left, box.bottom)
    sheet.add(
        Line(((box.left, box.top), corner, (box.right, box.bottom)), "quiet", 1.0),
        Words(
            ((box.left + box.right) / 2, box.bottom + 34), "epoch", "ink", 11, "middle"
        ),
    )


def _lines(sheet: Drawing, box: Axes, curves: Curves, metric: str) -> None:
    series = [s for s in curves.series() if s[0] == metric]
    for _, split, kind, table in series:
        if kind == "steps":
            for part in _unbroken(thin(table)):
                band = [box.at(x, high) for x, _, _, high in part]
                band += [box.at(x, low) for x, _, low, _ in part[::-1]]
                line = tuple(box.at(x, mean) for x, mean, _, _ in part)
                sheet.add(Area(tuple(band), split, 0.15), Line(line, split, 1.0, 0.4))
    for _, split, kind, table in series:
        if kind == "epochs":
            for part in _unbroken(table):
                if split == "valid":
                    _whiskers(sheet, box, part)
                line = tuple(box.at(x, mean) for x, mean, _, _ in part)
                sheet.add(Line(line, split, 2.0, 1.0, DASH[split]))
                size = 3.2 if len(table) <= 20 else 2.2
                if len(table) <= 60:
                    sheet.add(*(Mark(at, split, MARK[split], size) for at in line))


def _whiskers(sheet: Drawing, box: Axes, part: Sequence[Sequence[float]]) -> None:
    for x, _, low, high in part:
        ends = (box.at(x, low), box.at(x, high))
        if ends[0] != ends[1]:
            sheet.add(Line(ends, "valid", 3.0, 0.25))


def thin(table: np.ndarray, most: int = 240) -> np.ndarray:
    """Merge neighbouring buckets until at most `most` are left."""
    while len(table) > most:
        even = len(table) // 2 * 2
        table = np.vstack([merged(table[:even]), table[even:]])
    return table


def _unbroken(table: np.ndarray) -> list[list[list[float]]]:
    """Split a table where its mean is not a number: such a value leaves a gap."""
    parts: list[list[list[float]]] = [[]]
    for row in table.tolist():
        if math.isfinite(row[1]):
            parts[-1].append(row)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]
