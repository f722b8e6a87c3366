"""What stands on the page and in files about a run: lines, tables, pictures."""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol

from ipywidgets import DOMWidget

from burnbook.train import Run, RunInfo, TrainingResult
from burnbook_widgets.drawing import Drawing
from burnbook_widgets.saving import SVG, panel_mark, picture_mark
from burnbook_widgets.training.chart import Panel
from burnbook_widgets.training.curves import Curves
from burnbook_widgets.training.export import config_table, html_page, write_page
from burnbook_widgets.training.norms import LAYERS, Norms
from burnbook_widgets.training.progress import Meter, duration
from burnbook_widgets.training.still import epoch_table, figure
from burnbook_widgets.view import live_form, table


class ReportedDashboard(Protocol):
    """What is read here of a dashboard."""

    run: RunInfo
    name: str
    line: str
    state: str
    units: dict[str, str]
    curves: Curves
    meter: Meter
    norms: Norms | None
    norms_shown: bool
    chart: Panel | None
    callbacks: list[tuple[str, str]]

    def drawing(self) -> Drawing:
        """The curves as they are to be seen."""
        ...

    def answer(self, text: str) -> None:
        """Say what came of a click."""
        ...


def count_text(number: int, noun: str) -> str:
    """A number with its noun.

    Example:
        >>> count_text(1, "epoch"), count_text(0, "epoch")
        ('1 epoch', '0 epochs')
    """
    return f"{number} {noun}{'s' * (number != 1)}"


def sum_up(dashboard: ReportedDashboard, result: TrainingResult | None) -> str:
    """One line about the end: how long, why, and how good."""
    rows = dashboard.curves.rows()
    whole = result.epochs - dashboard.run.start_epoch + 1 if result else len(rows)
    took = duration(dashboard.meter.seconds() if result is None else result.seconds)
    so_far = f"after {count_text(whole, 'epoch')} and {took}"
    if whole <= 0:
        so_far = f"before an epoch had ended, after {took}"
    if result is None:
        return f"Training ended early, {so_far}."
    if result.interrupted:
        return (
            f"Stopped{_why(result.interrupted, ' ({})')} "
            f"in epoch {dashboard.meter.epoch}, {so_far}. The model so far is kept."
            f"{_not_saved(dashboard)}"
        )
    if whole <= 0:
        return nothing_left(result)
    last = [
        f"{name} {figure(value)}{_unit(dashboard, name)}"
        for name, value in (rows[-1].items() if rows else ())
        if name.startswith("valid" if dashboard.run.validates else "train")
    ]
    text = f"Trained {count_text(whole, 'epoch')} in {took}. " + ", ".join(last)
    return text.rstrip()


def end_line(dashboard: ReportedDashboard, result: TrainingResult) -> str:
    """The same without anything that changes from run to run."""
    if result.interrupted:
        why = _why(result.interrupted, ": {}")
        return f"Stopped{why}. The model so far is kept."
    count = len(dashboard.curves.rows())
    if not count:
        return nothing_left(result)
    names = " and ".join(dashboard.run.metrics) or "no metric"
    splits = "train and valid" if dashboard.run.validates else "train"
    return f"Trained {count_text(count, 'epoch')}: {names}, {splits}."


def _why(reason: str, form: str) -> str:
    """The reason of a stop, unless it says no more than that it stopped.

    Example:
        >>> _why("enough", ": {}"), _why("stopped", ": {}")
        (': enough', '')
    """
    return "" if reason.lower() == "stopped" else form.format(reason)


def nothing_left(result: TrainingResult) -> str:
    """A run that was through before it began."""
    done = count_text(result.epochs, "epoch")
    return f"Nothing was left to train: {done} had been trained before."


def _not_saved(dashboard: ReportedDashboard) -> str:
    if not dashboard.run.control.checkpoint_wanted:
        return ""
    return " No checkpoint was written, as the epoch did not end."


def _unit(dashboard: ReportedDashboard, column: str) -> str:
    unit = dashboard.units.get(column.split(" ", 1)[1], "")
    return f" {unit}" if unit else ""


def run_name(run: RunInfo) -> str:
    """What a run is called: as it was named, else as its folder."""
    return run.name or Path(run.directory).name or run.directory or "training"


def live_bundle(dashboard: ReportedDashboard, chart: DOMWidget) -> dict[str, Any]:
    """The live panel, and what a page says that is saved before an epoch has ended."""
    name = escape(dashboard.name)
    text = "This page was saved in the first epoch of training: nothing to see yet."
    still = {
        "text/html": f"<p><b>{name}</b> · {text}</p>",
        "text/plain": repr(dashboard),
    }
    return {**live_form(chart), **still}


def picture_bundle(
    dashboard: ReportedDashboard,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The curves as a mime bundle, and its metadata.

    Why: an SVG follows the theme, but is shown only where the notebook is trusted; a
    PNG is shown everywhere, and half its pixels are for sharp screens.
    """
    drawing = dashboard.drawing()
    bundle: dict[str, Any] = {SVG: wide_svg(dashboard)}
    png = drawing.png()
    if png is not None:
        bundle["image/png"] = png
    size = {"width": drawing.width, "height": drawing.height}
    return {**bundle, "text/plain": repr(dashboard)}, {"image/png": size}


def report_html(dashboard: ReportedDashboard, last: int | None = None) -> str:
    """The table below the curves; last: only so many of the newest epochs."""
    callbacks = callbacks_table(dashboard.callbacks)
    if last and not dashboard.curves.rows():
        return f"<p>The epochs appear here, one row each.</p>{callbacks}"
    rows = epoch_table(dashboard.curves, dashboard.units, last) + callbacks
    return (
        rows if last else rows + norms_table(dashboard.norms_shown and dashboard.norms)
    )


def report_bundle(
    dashboard: ReportedDashboard, last: int | None = None
) -> dict[str, Any]:
    """The line and the table below the panel; unseen while the panel shows them.

    Why: a page without the panel (saved, printed, on GitHub) has only this. The panel
    hides what has its key.
    """
    line = dashboard.line
    if dashboard.state not in ("finished", "closed"):
        meter = dashboard.meter
        epochs = dashboard.run.num_epochs
        line = f"Saved in epoch {meter.epoch} of {epochs}. The last ones:"
    key = dashboard.chart.key if dashboard.chart is not None else ""
    text = f"<p><b>{escape(dashboard.name)}</b> · {escape(line)}</p>"
    html = f"{text}\n{report_html(dashboard, last)}"
    return {
        "text/html": f'<div class="bb-kept-{key}">\n{html}\n</div>',
        "text/plain": f"{dashboard.name}: {line}",
    }


def so_far(dashboard: ReportedDashboard) -> dict[str, Any]:
    """While a run lasts: its newest epochs, and unseen the picture for a saved page."""
    bundle = report_bundle(dashboard, last=6)
    return (
        bundle if dashboard.curves.is_empty() else {**bundle, SVG: wide_svg(dashboard)}
    )


def wide_svg(dashboard: ReportedDashboard) -> str:
    """The curves, as wide as the page has room, like the live panel.

    Why: JupyterLab shows an SVG as an image, which keeps a width that is given in
    pixels: on a narrow page its right half would be cut off. One chart alone fits.
    """
    drawing = dashboard.drawing()
    size = f'width="{drawing.width}" height="{drawing.height}" '
    return drawing.svg().replace(size, 'width="100%" ', drawing.width > 600)


def ending_of(
    dashboard: ReportedDashboard, picture: dict[str, Any], about: dict[str, Any]
) -> dict[str, Any]:
    """What a saved page holds of a run that has ended, as outputs of a notebook.

    picture, about: what `picture_bundle` gave.

    Why: a page that was loaded anew during the run has lost the link by which outputs
    are replaced; its panel puts them in place.
    """
    assert dashboard.chart is not None
    picture = dict(picture)
    png = picture.get("image/png")
    if png is not None:
        picture["image/png"] = base64.b64encode(png).decode("ascii")
    key = dashboard.chart.key
    return {
        "panel": {"data": picture, "metadata": {**about, **panel_mark(key, True)}},
        "report": {
            "data": report_bundle(dashboard),
            "metadata": picture_mark(key, True),
        },
    }


def callbacks_table(callbacks: Sequence[tuple[str, str]]) -> str:
    """The callbacks and how they stand, one row each; none where there are none.

    Example:
        >>> callbacks_table([])
        ''
    """
    rows = [[escape(name), escape(text)] for name, text in callbacks]
    return table(("callback", "state"), rows, "Callbacks") if rows else ""


def norms_table(norms: Norms | bool | None) -> str:
    """The last norms of every layer as a still table; none where they are not shown."""
    if not isinstance(norms, Norms) or not norms.layers:
        return ""
    rows = [
        [
            escape(row["layer"] or "(itself)"),
            figure(row["weights"]),
            figure(row["gradients"]),
        ]
        for row in norms.rows()[:LAYERS]
    ]
    return table(
        ("layer", "‖weights‖", "‖gradients‖"), rows, "Norms when last measured"
    )


def write_dashboard(dashboard: ReportedDashboard, path: str | os.PathLike[str]) -> Path:
    """The dashboard as one HTML file: curves, table, norms, config, model."""
    return write_page(path, _page(dashboard))


def offer_page(dashboard: ReportedDashboard) -> None:
    """Hand the same file to the page in the browser, which downloads it."""
    if dashboard.chart is not None:
        plain = re.sub(r"[^A-Za-z0-9._-]+", "-", dashboard.name).strip("-.")
        name = f"{plain or 'training'}.html"
        page = _page(dashboard).encode("utf-8")
        dashboard.chart.send({"do": "export", "name": name}, [page])
        dashboard.answer(f"{name} goes to your downloads.")


def _page(dashboard: ReportedDashboard) -> str:
    run = dashboard.run
    ended = dashboard.state in ("finished", "closed")
    line = dashboard.line if ended else f"{dashboard.line} So far:"
    model = f"<pre>{escape(run.model_text)}</pre>" if run.model_text else ""
    return html_page(
        f"Training {dashboard.name}",
        [
            ("Curves", f"<p>{escape(line)}</p>\n{dashboard.drawing().svg()}"),
            ("Epochs", epoch_table(dashboard.curves, dashboard.units)),
            ("Callbacks", callbacks_table(dashboard.callbacks)),
            ("Norms", norms_table(dashboard.norms)),
            ("Config", config_table(Run(run.directory).config)),
            ("Model", model),
        ],
    )
