"""The finished picture of a run: curves and a table.

This is what stays in the notebook when training has ended and the kernel is gone:
a drawing without JavaScript, the epochs as an HTML table, and one line of text.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from burnbook_widgets.axes import Axes, log_ticks, run_mark, ticks
from burnbook_widgets.drawing import Area, Drawing, Line, Mark, Point, Words
from burnbook_widgets.training.chart_options import ChartOptions, smooth
from burnbook_widgets.training.curves import Curves, thin
from burnbook_widgets.training.other_runs import OtherRun

PANEL_WIDTH, PANEL_HEIGHT = 400, 250
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 44
DASH = {"train": (), "valid": (7.0, 4.0)}
MARK = {"train": "circle", "valid": "square"}
RUN_DASH = ((2, 3), (10, 3, 2, 3), (5, 2), (12, 4), (2, 2, 6, 2), (1, 4))
USUAL = ChartOptions()
COLUMN = {"epoch": 0, "step": 4, "time": 5}  # of a table, for what runs to the right


def picture(
    curves: Curves,
    units: dict[str, str] | None = None,
    options: ChartOptions = USUAL,
    others: Sequence[tuple[int, OtherRun]] = (),
    name: str = "",
) -> Drawing:
    """Draw every metric of a run on its own axes, train solid and valid dashed.

    others: runs to draw too, each with the place that gives it its color and mark; by
    epoch only, as their logs say neither step nor time. name: of the run, above it.
    """
    metrics = curves.metrics
    others = others if options.axis == "epoch" else ()
    columns = min(2, max(1, len(metrics)))
    rows = math.ceil(len(metrics) / columns)
    own = not curves.is_empty() or not others
    above = 22 * bool(name)
    head = above + 26 * own + 20 * len(others)
    about = describe(curves, units, [other for _, other in others])
    about = f"{name}: {about}" if name else about
    sheet = Drawing(columns * PANEL_WIDTH, rows * PANEL_HEIGHT + head, about)
    if name:
        most = (columns * PANEL_WIDTH - LEFT) // 8
        short = name if len(name) <= most else f"{name[: most - 1]}…"
        sheet.add(Words((LEFT, 16), short, "ink", 13, bold=True))
    if own:
        _legend(sheet, above, options.splits)
    for row, (place, other) in enumerate(others):
        _run_legend(sheet, above + 26 * own + 20 * row + 8, place, other.name)
    low, high = x_range(curves, options.axis) if own else (0.0, 1.0)
    ends = [t[-1, 0] for _, other in others for t in other.tables.values()]
    span = low, max([high, *map(math.ceil, ends)])
    for place, metric in enumerate(metrics):
        row, column = divmod(place, columns)
        left, top = column * PANEL_WIDTH, row * PANEL_HEIGHT + head
        box = Axes(
            span,
            _y_range(curves, metric, options, others),
            left + LEFT,
            left + PANEL_WIDTH - RIGHT,
            top + TOP,
            top + PANEL_HEIGHT - BOTTOM,
            options.log,
        )
        unit = (units or {}).get(metric, "")
        _axes(
            sheet, box, f"{metric} ({unit})" if unit else metric, options.axis, span[1]
        )
        for run, other in others:
            _other_lines(sheet, box, run, other, metric)
        _lines(sheet, box, curves, metric, options)
    return sheet


def describe(
    curves: Curves,
    units: dict[str, str] | None = None,
    others: Sequence[OtherRun] = (),
) -> str:
    """Say in a sentence what the curves show, for those who cannot see them."""
    parts = []
    for metric in curves.metrics:
        unit = (units or {}).get(metric, "")
        for split in ("train", "valid"):
            epochs = curves.curve(metric, split).epochs
            if epochs:
                first, last = (figure(e.mean) + unit for e in (epochs[0], epochs[-1]))
                parts.append(f"{split} {metric} from {first} to {last}")
    for other in others:
        parts += [
            f"{other.name} {split} {metric} to {figure(table[-1, 1])}"
            for (metric, split), table in other.tables.items()
            if metric in curves.metrics
        ]
    rows = len(curves.rows())
    about = f"{rows} epoch{'s' * (rows != 1)}"
    if others and not rows:
        about = f"{len(others)} run{'s' * (len(others) != 1)}"
    return f"Curves of {about}. " + "; ".join(parts)


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


def _legend(sheet: Drawing, top: int, splits: Sequence[str]) -> None:
    left, y = LEFT, top + 14
    for split in splits:
        sheet.add(
            Line(((left, y), (left + 30, y)), split, 2.0, 1.0, DASH[split]),
            Mark((left + 15, y), split, MARK[split], 3.5),
            Words((left + 37, y + 4), split),
        )
        left += 90
    low, high = y - 5, y + 5
    sheet.add(
        Area(
            ((left, low), (left + 30, low), (left + 30, high), (left, high)),
            "train",
            0.25,
        ),
        Words((left + 37, y + 4), "range of the batches"),
    )


def _run_legend(sheet: Drawing, y: float, run: int, name: str) -> None:
    ends = ((LEFT, y), (LEFT + 30, y))
    sheet.add(
        Line(ends, f"run{run}", 2.0, 1.0, RUN_DASH[run]),
        run_mark((LEFT + 15, y), run),
        Words((LEFT + 37, y + 4), name),
    )


def _other_lines(
    sheet: Drawing, box: Axes, run: int, other: OtherRun, metric: str
) -> None:
    for split in ("train", "valid"):
        table = other.tables.get((metric, split))
        if table is None:
            continue
        table = thin(table[:, [0, 1, 1, 1]])
        every = math.ceil(len(table) / 12)
        for part in _unbroken(table, box.log):
            line = _line(box, part)
            if split == "train":
                sheet.add(Line(line, f"run{run}", 1.0, 0.75))
            else:
                sheet.add(Line(line, f"run{run}", 2.0, 1.0, RUN_DASH[run]))
                sheet.add(*(run_mark(at, run) for at in line[::every]))


def x_range(curves: Curves, axis: str = "epoch") -> tuple[float, float]:
    """The epochs to show: whole ones, as far as the run has come; or steps, seconds."""
    if axis != "epoch":
        column = COLUMN[axis]
        ends = [t[-1, column] for _, _, _, t in curves.series() if len(t)]
        return 0.0, max([*ends, 1e-9]) if ends else 1.0
    ends = [
        value
        for _, _, kind, table in curves.series()
        if len(table)
        for value in (table[0, 0] - (kind == "epochs") * 0.5, table[-1, 0])
    ]
    if not ends:
        return 0.0, 1.0
    return math.floor(min(ends)), max(math.ceil(max(ends) - 1e-9), min(ends) + 1)


def _y_range(
    curves: Curves,
    metric: str,
    options: ChartOptions = USUAL,
    others: Sequence[tuple[int, OtherRun]] = (),
) -> tuple[float, float]:
    tables = [
        table[:, 1]
        for name, split, kind, table in curves.series()
        if name == metric and kind in _kinds(options) and split in options.splits
    ]
    for _, other in others:
        tables += [t[:, 1] for (name, _), t in other.tables.items() if name == metric]
    values = np.concatenate([*tables, np.empty(0)])
    values = values[np.isfinite(values)]
    if options.log:
        values = values[values > 0]
    if not len(values):
        return (0.1, 1.0) if options.log else (0.0, 1.0)
    low, high = float(values.min()), float(values.max())
    if options.log:
        room = max(1.1, (high / low) ** 0.06)
        return low / room, high * room
    margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    # A range that starts just above zero starts at zero: bars of truth, not of drama.
    base = 0.0 if 0 <= low < (high - low) * 0.25 else low - margin
    return base, high + margin


def _axes(
    sheet: Drawing, box: Axes, title: str, axis: str = "epoch", end: float = 1.0
) -> None:
    unit, scale = time_unit(end) if axis == "time" else ("", 1.0)
    label = f"{axis} ({unit})" if unit else axis
    sheet.add(Words((box.left, box.top - 12), title, "ink", 13, bold=True))
    for value in log_ticks(*box.y) if box.log else ticks(*box.y):
        x, y = box.at(box.x[0], value)
        sheet.add(
            Line(((x, y), (box.right, y)), "quiet", 1.0, 0.3),
            Words((x - 8, y + 4), f"{value:g}", "ink", 11, "end"),
        )
    low, high = (value / scale for value in box.x)
    for value in ticks(low, high, 6, whole=axis != "time"):
        x, y = box.at(value * scale, box.y[0])
        sheet.add(
            Line(((x, y), (x, y + 4)), "quiet", 1.0),
            Words((x, y + 17), f"{value:g}", "ink", 11, "middle"),
        )
    corner = (box.left, box.bottom)
    sheet.add(
        Line(((box.left, box.top), corner, (box.right, box.bottom)), "quiet", 1.0),
        Words(
            ((box.left + box.right) / 2, box.bottom + 34), label, "ink", 11, "middle"
        ),
    )


def time_unit(seconds: float) -> tuple[str, float]:
    """In which unit so long a time is read, and its seconds.

    Example:
        >>> time_unit(90), time_unit(600), time_unit(9000)
        (('s', 1.0), ('min', 60.0), ('h', 3600.0))
    """
    if seconds < 300:
        return "s", 1.0
    return ("min", 60.0) if seconds < 7200 else ("h", 3600.0)


def _by(table: np.ndarray, axis: str) -> np.ndarray:
    """The same rows, with what runs to the right in the first column."""
    if axis == "epoch":
        return table
    moved = table.copy()
    moved[:, 0] = table[:, COLUMN[axis]]
    return moved


def _kinds(options: ChartOptions) -> tuple[str, ...]:
    return ("steps",) * options.steps + ("epochs",) * options.epochs


def _lines(
    sheet: Drawing,
    box: Axes,
    curves: Curves,
    metric: str,
    options: ChartOptions = USUAL,
) -> None:
    series = [
        (*about, _by(table, options.axis))
        for *about, table in curves.series()
        if about[0] == metric
        and about[2] in _kinds(options)
        and about[1] in options.splits
    ]
    for _, split, kind, table in series:
        if kind == "steps":
            _batches(sheet, box, split, thin(table), options)
    for _, split, kind, table in series:
        if kind == "epochs":
            for part in _unbroken(table, box.log):
                if split == "valid":
                    _whiskers(sheet, box, part)
                line = _line(box, part)
                sheet.add(Line(line, split, 2.0, 1.0, DASH[split]))
                size = 3.2 if len(table) <= 20 else 2.2
                if len(table) <= 60:
                    sheet.add(*(Mark(at, split, MARK[split], size) for at in line))


def _batches(
    sheet: Drawing, box: Axes, split: str, table: np.ndarray, options: ChartOptions
) -> None:
    strong = 0.4 if options.epochs or options.smoothing else 1.0
    for part in _unbroken(table, box.log):
        band = [box.at(x, high) for x, _, _, high, *_ in part]
        band += [box.at(x, low) for x, _, low, *_ in part[::-1]]
        line = Line(_line(box, part), split, 1.0, strong)
        sheet.add(Area(tuple(band), split, 0.15), line)
    if options.smoothing:
        for part in _unbroken(smooth(table, options.smoothing), box.log):
            sheet.add(Line(_line(box, part), split, 2.0))


def _line(box: Axes, part: Sequence[Sequence[float]]) -> tuple[Point, ...]:
    return tuple(box.at(x, mean) for x, mean, *_ in part)


def _whiskers(sheet: Drawing, box: Axes, part: Sequence[Sequence[float]]) -> None:
    for x, _, low, high, *_ in part:
        ends = (box.at(x, low), box.at(x, high))
        if ends[0] != ends[1]:
            sheet.add(Line(ends, "valid", 3.0, 0.25))


def _unbroken(table: np.ndarray, log: bool = False) -> list[list[list[float]]]:
    """Split a table where its mean is not a number: such a value leaves a gap."""
    parts: list[list[list[float]]] = [[]]
    for row in table.tolist():
        if math.isfinite(row[1]) and (row[1] > 0 or not log):
            parts[-1].append(row)
        elif parts[-1]:
            parts.append([])
    return [part for part in parts if part]
