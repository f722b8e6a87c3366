"""Building blocks · Learner. The runs below a folder: find, choose, compare them.

browser = RunsBrowser("artifacts")
browser.find = "hidden_size=512"; browser.sort = "Loss"
browser.choose("first", "second")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets
import traitlets

from burnbook.errors import TrainingError
from burnbook.train import Run, RunStore
from burnbook.train.runs.show import run_table
from burnbook_widgets.page import script, sheet
from burnbook_widgets.training.chart import Chart
from burnbook_widgets.training.curves import Curves
from burnbook_widgets.training.export import html_page, write_page
from burnbook_widgets.training.look import Look
from burnbook_widgets.training.others import MOST, OtherRun
from burnbook_widgets.training.still import picture
from burnbook_widgets.view import View, row

ROWS = 100  # that a page shows at a time
NEWEST = "date"
USUAL = (NEWEST, "name", "epochs", "state")


class RunsPanel(anywidget.AnyWidget):
    """The page of a runs browser: the table with a box before each run."""

    _esm = script("runs")
    _css = sheet("runs")

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
    `choose`, `leave`, `clear`, `refresh`, `log`; `comparison` says what differs between
    the chosen ones.

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

    def __init__(self, where: RunStore | str | os.PathLike[str]):
        super().__init__()
        self._asked = where
        self._find = ""
        self._sort = NEWEST
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
        self._changed(f"sorted by {by}")

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
        """Choose more runs; at most six can be told apart in a picture."""
        wanted = [*self._chosen]
        for name in names:
            run = self.store[name]  # refuses what is not there
            if run.name not in wanted:
                wanted.append(run.name)
        if len(wanted) > MOST:
            facts = [("chosen", ", ".join(wanted[:MOST]))]
            what = f"{len(wanted)} runs are more than {MOST} that can be told apart"
            raise TrainingError("RunsBrowser", what, facts, 'leave("name") first')
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
        runs = self.store.sort(self._sort, reverse=self._sort == NEWEST)
        return runs.filter(lambda run: all(word in text_of(run) for word in words)).runs

    @property
    def comparison(self) -> Any:
        """What differs between the chosen runs, as `RunStore.compare` has it."""
        return self.store.compare(*self._chosen) if len(self._chosen) > 1 else None

    def _others(self) -> list[OtherRun]:
        return [OtherRun.read(self.store[name]) for name in self._chosen]

    def _table(self) -> Any:
        return run_table(self.visible()[:ROWS], str(self.store.root))

    def still(self) -> str:
        """Table, comparison and curves as HTML without JavaScript."""
        parts = [self._table().html()]
        if self.comparison is not None:
            parts.append(self.comparison.table().html())
        others = self._others()
        if others:
            sheet = picture(
                Curves(metrics_of(others)),
                look=Look(log=self._log),
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
        self.differences = ipywidgets.HTML()
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
            description="Look again",
            icon="refresh",
            tooltip="Read the folder anew",
            layout={"width": "auto"},
        )
        self.clear_control = ipywidgets.Button(
            description="Choose none",
            icon="times",
            tooltip="Compare nothing",
            layout={"width": "auto"},
        )
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
        return ipywidgets.VBox([controls, self.panel, self.differences, self.chart])

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
        """A box in the panel was ticked, or no more."""
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
        with self.panel.hold_sync():
            self.panel.head = list(table.head)
            self.panel.notes = [
                *table.notes,
                *([f"and {more} more: find some"] if more > 0 else []),
            ]
            self.panel.rows = [
                {"run": run.name, "cells": list(cells), "chosen": run.name in chosen}
                for chosen in [set(self._chosen)]
                for run, cells in zip(runs, table.rows, strict=False)
            ]
        self._show_comparison()

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
