"""The runs below a folder: find, choose, compare them.

browser = RunsBrowser("artifacts")
browser.find = "hidden_size=512"; browser.sort = "Loss"
browser.choose("first", "second")
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from burnbook.core.errors import TrainingError
from burnbook.core.files import shown_path
from burnbook.train import Run, RunStore
from burnbook.train.events import Direction
from burnbook.train.runs.run import direction_of
from burnbook.train.runs.show import run_table
from burnbook_widgets.page import script, sheet_alone
from burnbook_widgets.training.chart import Chart
from burnbook_widgets.training.chart_options import ChartOptions
from burnbook_widgets.training.curves import Curves
from burnbook_widgets.training.export import html_page, write_page
from burnbook_widgets.training.other_runs import MOST, OtherRun
from burnbook_widgets.training.scatter import bests, fields_of, scatter, spots
from burnbook_widgets.training.still import picture
from burnbook_widgets.view import View, row

ROWS = 100  # that a page shows at a time
NEWEST = "date"
NOTHING = "–"
HEADS = {"run": "name", "state": "state", "epoch": "epochs", "began": NEWEST}
USUAL = (NEWEST, "name", "epochs", "state")


class RunsPanel(anywidget.AnyWidget):
    """The page of a runs browser: the table with a box before each run."""

    _esm = script("runs")
    _css = sheet_alone("runs")  # the chart below it brings what all views share

    head = traitlets.List().tag(sync=True)
    rows = traitlets.List().tag(sync=True)
    notes = traitlets.List().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return f"RunsPanel({len(self.rows)} rows)"


class RunsBrowser(View):
    """The runs below a folder, ours and Rust Burn's, to find, choose and compare.

    where: the folder, or a `RunStore`. Every control has a twin: `find`, `sort`,
    `descending`, `choose`, `leave`, `clear`, `refresh`, `log`, `plot`; `comparison`
    says what differs between the chosen ones.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> for name, loss in (("one", "0.5"), ("other", "0.25")):
        ...     log = Path(folder.name, name, "valid", "epoch-1", "Loss.log")
        ...     log.parent.mkdir(parents=True)
        ...     _ = log.write_text(f"{loss},1\\n")
        >>> browser = RunsBrowser(folder.name)
        >>> browser.choose("one", "other")
        >>> browser, browser.comparison.winner("Loss").name
        (RunsBrowser(2 runs; one, other chosen), 'other')
        >>> browser.close()
        >>> folder.cleanup()
    """

    _following = False  # controls are set to what is so

    def __init__(self, where: RunStore | str | os.PathLike[str]):
        super().__init__()
        self._asked = where
        self._find = ""
        self._sort = NEWEST
        self._descending = True
        self._plot: tuple[str, str] | None = None
        self._log = False
        self._chosen: list[str] = []
        self.store = self._look()
        self.open()

    def _look(self) -> RunStore:
        where = self._asked
        return where if isinstance(where, RunStore) else RunStore(Path(where))

    # ── what one can set ────────────────────────────────────────────────────

    @property
    def find(self) -> str:
        """Words that the runs shown have in name, state or config ("lr=0.01")."""
        return self._find

    @find.setter
    def find(self, text: str) -> None:
        self._find = str(text)
        count = len(self.visible())
        self._changed(f"{count} of {len(self.store)} runs" if text else "all runs")

    @property
    def sort(self) -> str:
        """By what the runs stand in order: date, name, epochs, state, metric, field."""
        return self._sort

    @sort.setter
    def sort(self, by: str) -> None:
        self.store.sort(by)  # refuses what no run has
        self._sort = by
        self._descending = by == NEWEST or not self._best_is_low(by)
        self._changed(f"sorted by {by}")

    @property
    def descending(self) -> bool:
        """Whether the largest, the newest or the last of the alphabet stands first."""
        return self._descending

    @descending.setter
    def descending(self, value: bool) -> None:
        self._descending = bool(value)
        way = "from high to low" if value else "from low to high"
        self._changed(f"sorted by {self._sort}, {way}")

    def plot(self, metric: str | None, field: str | None = None) -> None:
        """Show the best of a metric over a field of the configs; None: no picture."""
        if metric is None or field is None:
            self._plot = ("", "")
        else:
            self._known(metric, self._metrics(), "metric")
            self._known(field, fields_of(self.store.runs), "field that differs")
            self._plot = (metric, field)
        self._changed(f"{metric} over {field}" if metric else "no picture")

    @property
    def plotted(self) -> tuple[str, str] | None:
        """The metric and the field of the picture of all runs; None for none.

        At first the first ones there are, if three runs have both.
        """
        if self._plot is not None:
            return self._plot if self._plot[0] else None
        runs = self.store.runs
        fields = fields_of(runs)
        for metric in self._metrics() if fields else ():
            known = bests(runs, metric)
            having = [run.config for run in runs if run.name in known]
            for field in fields:
                if sum(field in config for config in having) > 2:
                    return metric, field
        return None

    def _metrics(self) -> list[str]:
        return sorted({name for run in self.store for name, _ in run.metrics})

    def _known(self, name: str, known: list[str], what: str) -> None:
        if name not in known:
            facts = [("known", ", ".join(known) or "none")]
            raise TrainingError("RunsBrowser", f"no {what} {name!r}", facts)

    @property
    def log(self) -> bool:
        """Whether the curves stand on a logarithmic scale."""
        return self._log

    @log.setter
    def log(self, value: bool) -> None:
        self._log = bool(value)
        self._changed()

    @property
    def chosen(self) -> list[str]:
        """The names of the runs to compare, in the order they were chosen."""
        return list(self._chosen)

    def choose(self, *names: str) -> None:
        """Choose more runs; of more than six only the first have curves."""
        wanted = [*self._chosen]
        for name in names:
            run = self.store[name]  # refuses what is not there
            if run.name not in wanted:
                wanted.append(run.name)
        self._chosen = wanted
        self._changed(self._chosen_text())

    def leave(self, *names: str) -> None:
        """Choose these no more."""
        for name in names:
            run = self.store[name]
            if run.name in self._chosen:
                self._chosen.remove(run.name)
        self._changed(self._chosen_text())

    def clear(self) -> None:
        """Choose none."""
        self._chosen.clear()
        self._changed(self._chosen_text())

    def refresh(self) -> None:
        """Look into the folder again: a training may have gone on."""
        self.store = RunStore(self.store.root)
        self._chosen = [name for name in self._chosen if name in self.store]
        self._changed(f"{len(self.store)} runs")

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write what is shown as one HTML file without scripts."""
        return write_page(path, html_page("Runs", [("", self.still())]))

    # ── what is shown ───────────────────────────────────────────────────────

    def visible(self) -> list[Run]:
        """The runs that are shown, from top to bottom."""
        words = self._find.lower().split()
        runs = self.store.sort(self._sort, reverse=self._reverse())
        return runs.filter(lambda run: all(word in text_of(run) for word in words)).runs

    def _best_is_low(self, by: str) -> bool:
        """Whether a store puts the lowest first; of an accuracy it is the highest."""
        metric = any(by.endswith(name) for name in self._metrics())
        return not metric or direction_of(by) is Direction.Lowest

    def _reverse(self) -> bool:
        return self._descending is self._best_is_low(self._sort)

    @property
    def comparison(self) -> Any:
        """What differs between the chosen runs, as `RunStore.compare` has it."""
        return self.store.compare(*self._chosen) if len(self._chosen) > 1 else None

    def _others(self) -> list[OtherRun]:
        """Curves of the first chosen runs; more cannot be told apart."""
        return [OtherRun.read(self.store[name]) for name in self._chosen[:MOST]]

    def _scatter(self) -> str:
        """The picture of all visible runs as SVG; empty for none."""
        if self.plotted is None:
            return ""
        found = spots(self.visible(), *self.plotted, self._chosen)
        return scatter(found, *self.plotted).svg() if found else ""

    def _few_curves(self) -> str:
        more = len(self._chosen) - MOST
        return f"curves of the first {MOST} chosen; {more} more" if more > 0 else ""

    def _table(self) -> Any:
        return run_table(self.visible()[:ROWS], shown_path(self.store.root))

    def still(self) -> str:
        """Table, comparison and curves as HTML without JavaScript."""
        parts = [self._table().html()]
        if self.comparison is not None:
            parts.append(self.comparison.table().html())
        drawn = self._scatter()
        if drawn:
            parts.append(f'<div style="overflow-x:auto">{drawn}</div>')
        others = self._others()
        if self._few_curves():
            parts.append(f"<p>{self._few_curves()}</p>")
        if others:
            sheet = picture(
                Curves(metrics_of(others)),
                options=ChartOptions(log=self._log),
                others=list(enumerate(others)),
            )
            parts.append(sheet.svg())
        return "\n".join(parts)

    def _chosen_text(self) -> str:
        names = ", ".join(self._chosen)
        return f"{names} chosen" if names else "no run is chosen"

    def __repr__(self) -> str:
        count = len(self.store)
        runs = f"{count} run{'s' * (count != 1)}"
        return f"RunsBrowser({runs}; {self._chosen_text()})"

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = RunsPanel()
        self.panel.on_msg(self.act(self._told))
        self.chart = Chart()
        self.differences, self.scatter = ipywidgets.HTML(), ipywidgets.HTML()
        short = {"description_width": "auto"}
        self.find_control = ipywidgets.Text(
            description="Find",
            placeholder="name, state or field=value",
            tooltip="Show the runs that have all these words",
            style=short,
            layout={"width": "280px"},
        )
        self.sort_control = ipywidgets.Dropdown(
            options=[NEWEST],
            description="Sort by",
            style=short,
            layout={"width": "220px"},
        )
        self.log_control = ipywidgets.Checkbox(
            description="log scale", indent=False, layout={"width": "100px"}
        )
        self.refresh_control = ipywidgets.Button(
            description="Refresh",
            icon="refresh",
            tooltip="Read the folder again",
            layout={"width": "auto"},
        )
        self.clear_control = ipywidgets.Button(
            description="Choose none",
            icon="times",
            tooltip="Compare nothing",
            layout={"width": "auto"},
        )
        self.metric_control, self.field_control = (
            ipywidgets.Dropdown(
                options=[NOTHING],
                description=text,
                tooltip=tooltip,
                style=short,
                layout={"width": "220px"},
            )
            for text, tooltip in (
                ("Picture of", "The best of this metric, for each run"),
                ("over", "A field that differs between the configs"),
            )
        )
        for control in (self.metric_control, self.field_control):
            control.observe(self.act(self._plot_changed), "value")
        self.find_control.observe(self.act(self._find_changed), "value")
        self.sort_control.observe(self.act(self._sort_changed), "value")
        self.log_control.observe(self.act(self._log_changed), "value")
        self.refresh_control.on_click(self.act(lambda _: self.refresh()))
        self.clear_control.on_click(self.act(lambda _: self.clear()))
        controls = row(
            self.find_control,
            self.sort_control,
            self.log_control,
            self.refresh_control,
            self.clear_control,
        )
        pictures = row(self.metric_control, self.field_control)
        parts = [self.panel, pictures, self.scatter, self.differences, self.chart]
        return ipywidgets.VBox([controls, *parts])

    def _plot_changed(self, event: Any) -> None:
        if self._following:
            return
        metric, field = self.metric_control.value, self.field_control.value
        if event["owner"] is self.metric_control and metric != NOTHING:
            known = [f for f in self.field_control.options if f != NOTHING]
            field = field if field != NOTHING else next(iter(known), NOTHING)
        if NOTHING in (metric, field):
            self.plot(None)
        else:
            self.plot(metric, field)

    def _find_changed(self, event: Any) -> None:
        if event["new"] != self._find:
            self.find = event["new"]

    def _sort_changed(self, event: Any) -> None:
        if event["new"] not in (None, self._sort):
            self.sort = event["new"]

    def _log_changed(self, event: Any) -> None:
        if event["new"] != self._log:
            self.log = event["new"]

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A box in the panel was ticked, or a head was pressed."""
        if "sort" in message:
            by = str(message["sort"])
            if by == self._sort:
                self.descending = not self._descending
            else:
                self.sort = by
            return
        name = str(message.get("run", ""))
        (self.leave if name in self._chosen else self.choose)(name)

    def _changed(self, said: str = "") -> None:
        self._show()
        if self.panel is not None and said:
            self.panel.said = said

    def _show(self) -> None:
        if self.panel is None:
            return
        runs = self.visible()
        table = self._table()
        fields = {name for run in self.store for name in run.config}
        metrics = {name for run in self.store for name, _ in run.metrics}
        self.sort_control.options = [*USUAL, *sorted(metrics), *sorted(fields)]
        self.sort_control.value = self._sort
        self.find_control.value = self._find
        self.log_control.value = self._log
        self.clear_control.disabled = not self._chosen
        more = len(runs) - ROWS
        keys = self._sort_keys(table.head, metrics, fields)
        order = "descending" if self._descending else "ascending"
        with self.panel.hold_sync():
            self.panel.head = [
                [name, key, order if key == self._sort else "none"]
                for name, key in zip(table.head, keys, strict=True)
            ]
            self.panel.notes = [
                *table.notes,
                *([f"and {more} more: find some"] if more > 0 else []),
                *([self._few_curves()] if self._few_curves() else []),
            ]
            self.panel.rows = [
                {"run": run.name, "cells": list(cells), "chosen": run.name in chosen}
                for chosen in [set(self._chosen)]
                for run, cells in zip(runs, table.rows, strict=False)
            ]
        self._show_picture()
        self._show_comparison()

    def _sort_keys(
        self, head: Sequence[str], metrics: set[str], fields: set[str]
    ) -> list[str]:
        """By what each column of the table sorts; empty for none."""
        found: list[str] = []
        for name in head:
            inside = [m for m in metrics if m in name]
            key = HEADS.get(name) or (name if name in fields else "")
            found.append(key or max(inside, key=len, default=""))
        return found

    def _show_picture(self) -> None:
        metric, field = self.plotted or (NOTHING, NOTHING)
        fields = fields_of(self.store.runs)
        self._following = True
        try:
            self.metric_control.options = [NOTHING, *self._metrics()]
            self.field_control.options = [NOTHING, *fields]
            self.metric_control.value = metric
            self.field_control.value = field if field in fields else NOTHING
        finally:
            self._following = False
        drawn = self._scatter()
        self.scatter.value = drawn and f'<div style="overflow-x:auto">{drawn}</div>'

    def _show_comparison(self) -> None:
        others = self._others()
        comparison = self.comparison
        told = comparison.table().html() if comparison else ""
        look = 'class="bb-view bb-runs-browser"'
        self.differences.value = told and f"<div {look}>{told}</div>"
        names = metrics_of(others)
        panels = [{"name": name, "unit": ""} for name in names]
        if self.chart.panels != panels:
            self.chart.panels = panels
        self.chart.log = self._log
        self.chart.show_runs(others, range(len(others)))


def metrics_of(others: list[OtherRun]) -> list[str]:
    """The metrics that any of the runs has, in the order of their names."""
    return sorted({metric for other in others for metric, _ in other.tables})


def text_of(run: Run) -> str:
    """What a search looks through: name, state, reason and every field of the config.

    Example:
        >>> text_of(Run("nowhere", "First"))
        'first stopped killed'
    """
    fields = [f"{name}={value}" for name, value in run.config.items()]
    return " ".join([run.name, run.state, run.reason, *fields]).lower()
