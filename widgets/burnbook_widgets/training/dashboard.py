"""The training dashboard of a notebook, live and then still.

While a run lasts: curves, progress, Stop, Pause, norms, other runs. When it ends, the
chart stays a chart as long as the kernel lives; what is saved of it is a picture, a
table and a line of text that need no kernel and no script. A page that is saved in
between holds the picture so far (saving.py). A page that is loaded anew finds its panel
again (js/chart_panel.js), and `live()` in a cell shows every training of this kernel.
The training thread pays for at most one message in a quarter of a second.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import ConfigError, TrainingError
from burnbook.train import (
    MetricState,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets.drawing import Drawing
from burnbook_widgets.saving import panel_mark, picture_mark, still_mark
from burnbook_widgets.training import open_dashboards
from burnbook_widgets.training.chart import Panel
from burnbook_widgets.training.chart_options import AXES, DETAIL, ChartOptions
from burnbook_widgets.training.controls import NOTES, buttons_are
from burnbook_widgets.training.curves import Curves, thin
from burnbook_widgets.training.norms import Norms
from burnbook_widgets.training.other_runs import (
    OtherRun,
    Runs,
    read_runs,
    runs_beside,
    runs_of,
)
from burnbook_widgets.training.pages import PAGES
from burnbook_widgets.training.points import MOST_READ, Points
from burnbook_widgets.training.progress import Meter, facts_of
from burnbook_widgets.training.report import (
    count_text,
    end_line,
    ending_of,
    live_bundle,
    offer_page,
    picture_bundle,
    report_bundle,
    report_html,
    run_name,
    so_far,
    sum_up,
    write_dashboard,
)
from burnbook_widgets.training.screen import NotebookScreen, Place, Screen
from burnbook_widgets.training.still import figure, picture
from burnbook_widgets.view import close_all, in_short, live_form

INTERVAL = 0.25  # seconds between two messages to the page
OWN_SHARE = 0.005  # of the training thread's time for curves, as much for the table
ANSWER_STAYS = 3.0  # seconds before anything else may take the place of an answer
SHOWN_AT_FIRST = 2  # of the other runs that a click finds
NEW_PAGE = 2.0  # seconds that a page which was loaded anew has to ask for its widgets
ACTS = ("stop", "pause", "resume", "save", "norms", "runs", "export")  # of the page
_OPENING = threading.Lock()  # the two outputs of a run stand together on the page


class Dashboard:
    """One run of training on the page; every control has a method of the same name.

    Example:
        renderer = NotebookRenderer()
        learner = LearnerBuilder(directory).renderer(renderer)...
        dashboard = renderer.dashboard  # once the training has begun
        dashboard.pause(); dashboard.resume(); dashboard.stop()
        dashboard.smoothing = 0.9; dashboard.log = True
        dashboard.overlay("artifacts"); dashboard.show_norms()
        dashboard.export("run.html")
    """

    def __init__(self, run: RunInfo, screen: Screen | None = None, live: bool = True):
        self.run = run
        self.name, self._live = run_name(run), live
        self.curves = Curves(run.metrics)
        self.meter = Meter(run.num_epochs, run.start_epoch, validates=run.validates)
        self.units = dict(run.units)
        self.callbacks = list(run.callbacks)  # the name and the status of each
        self.state = "training"
        self.line = f"Training {count_text(run.num_epochs, 'epoch')}."
        self.said = self.fault = ""
        self._answered = -ANSWER_STAYS
        self._whole = False  # trained to its last epoch
        self.sent = 0
        self.norms: Norms | None = None
        self.norms_shown = False
        self.others: list[OtherRun] = []
        self.checkpoints: list[int] = []  # epochs that were saved while we looked on
        self._kept = ""  # where the newest of them is
        self._options = ChartOptions(splits=("train", "valid")[: 1 + run.validates])
        self._points = Points(run.directory)
        self._ended: float | None = None  # when, by the system's clock
        self._pages, self._open_again = PAGES.count, 0.0
        self._shown_again: list[Any] = []  # places of other cells
        self._zoom: tuple[float, float] | None = None
        self._shown: list[int] = []
        self._screen: Screen = screen if screen is not None else NotebookScreen()
        self._rows_are_new = False
        self._next_send = 0.0
        self._next_table = 0.0
        self._lock = threading.RLock()
        self._panel: Place | None = None
        self._report: Place | None = None
        self.chart: Panel | None = None
        if live:
            self._open()
            open_dashboards.add(self)

    # ── the live panel ──────────────────────────────────────────────────────

    def _open(self) -> None:
        PAGES.watch()
        about = {
            "name": self.name,
            "note": NOTES[buttons_are(self.run.mode)],
            "saves": self.run.saves,
            "cell": getattr(self._screen, "cell", ""),
            "cell_run": getattr(self._screen, "cell_run", ""),
        }
        self.chart = chart = Panel(self.run.metrics, self.units, about)
        chart.status = self._status()
        chart.report = report_html(self, last=6)
        chart.on_msg(self._page_says)
        with _OPENING:
            self._panel = self._screen.put(
                live_bundle(self, chart), panel_mark(chart.key)
            )
            self._report = self._screen.put(so_far(self), picture_mark(chart.key))

    def _page_says(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        """A click, or how the page wants to see the curves."""
        act = content.get("do")
        if act == "look":
            self._take_options(content)
        elif act == "here":
            self._open_again = 0.0
        elif act == "seen" and self.chart is not None:
            self.chart.about = {**self.chart.about, "seen": True}
        elif act in ACTS:
            self._clicked(act)
            if self.chart is not None:
                self.chart.hear(str(content.get("id", "")))

    def _clicked(self, act: str) -> None:
        """Do it; what goes wrong is said on the panel, in one line."""
        try:
            if act == "stop":
                self.stop("stop button")
            elif act == "save":
                self.save_checkpoint()
            elif act == "norms":
                (self.hide_norms if self.norms_shown else self.show_norms)()
            elif act == "runs":
                self.find_runs()
            elif act == "export":
                offer_page(self)
            else:
                (self.pause if act == "pause" else self.resume)()
            self.fault = ""
        except Exception as fault:
            self.fault = in_short(fault)
        self._show_status()

    def stop(self, reason: str = "stopped from the dashboard") -> None:
        """End the training after the batch that runs now; the model so far is kept."""
        if self.state in ("training", "paused"):
            self.run.control.stop(reason)
            self._change("stopping")

    def pause(self) -> None:
        """Hold the training after the batch that runs now."""
        if self.state == "training":
            self.run.control.pause()
            self.meter.pause()
            self._change("paused")

    def resume(self) -> None:
        """Go on after a pause."""
        if self.state == "paused":
            self.meter.resume()
            self.run.control.resume()
            self._change("training")

    def save_checkpoint(self) -> None:
        """Keep a checkpoint of this epoch when it ends, whatever the strategy says."""
        if not self.run.saves:
            raise TrainingError(
                "Dashboard.save_checkpoint",
                "this run has no checkpointer",
                cure="LearnerBuilder(…).with_file_checkpointer(CompactRecorder())",
            )
        if self.state in ("training", "paused"):
            self.run.control.save_checkpoint()
            self.answer(
                f"A checkpoint of epoch {self.meter.epoch} is saved when it ends."
            )
            self._show_status()

    def answer(self, text: str) -> None:
        """Say what came of a click; all other news waits until it was heard."""
        self.said, self._answered = text, time.monotonic()

    def _mention(self, text: str) -> None:
        """Say what happens by itself, unless an answer is still to be heard."""
        if time.monotonic() >= self._answered + ANSWER_STAYS:
            self.said = text

    def _show_status(self) -> None:
        with self._lock:
            if self.chart is not None:
                self.chart.status = self._status()

    def _change(self, state: str) -> None:
        """Show a new state at once; called by whatever thread handles clicks."""
        self.state = state
        said = {
            "paused": "Training paused.",
            "training": "Training continues.",
            "stopping": "Training stops after this batch.",
        }
        self.answer(said[state])
        self._show_status()

    # ── how it is to be seen ────────────────────────────────────────────────

    @property
    def smoothing(self) -> float:
        """How much the batches are averaged: 0, not at all, to 0.99.

        0.9 averages about ten steps (1 / (1 − 0.9)), however long the run is.
        """
        return self._options.smoothing

    @smoothing.setter
    def smoothing(self, value: float) -> None:
        self._set_options(replace(self._options, smoothing=float(value)))

    @property
    def log(self) -> bool:
        """Whether values stand on a logarithmic scale."""
        return self._options.log

    @log.setter
    def log(self, value: bool) -> None:
        self._set_options(replace(self._options, log=bool(value)))

    @property
    def detail(self) -> str:
        """What is drawn: the batches ("steps"), the means of "epochs", or "both"."""
        return self._options.detail

    @detail.setter
    def detail(self, value: str) -> None:
        self._set_options(replace(self._options, detail=value))

    @property
    def axis(self) -> str:
        """What runs to the right: "epoch", "step" (of training) or "time" (trained)."""
        return self._options.axis

    @axis.setter
    def axis(self, value: str) -> None:
        self._set_options(replace(self._options, axis=value))

    @property
    def splits(self) -> tuple[str, ...]:
        """Which curves are seen: "train", "valid", both or none."""
        return self._options.splits

    @splits.setter
    def splits(self, value: Iterable[str]) -> None:
        splits = value if isinstance(value, str) else tuple(value)
        self._set_options(replace(self._options, splits=splits))

    def _set_options(self, options: ChartOptions) -> None:
        self._options = options
        with self._lock:
            if self.chart is not None:
                self.chart.smoothing, self.chart.log = options.smoothing, options.log
                self.chart.detail = DETAIL.index(options.detail)
                self.chart.axis = AXES.index(options.axis)
                self.chart.splits = list(options.splits)

    def _take_options(self, content: Mapping[str, Any]) -> None:
        """Remember what was set on the page, so that what stays looks the same."""
        self._options = ChartOptions(
            float(content["smoothing"]),
            bool(content["log"]),
            DETAIL[content["detail"]],
            AXES[content["axis"]],
            tuple(content["splits"]),
        )
        self._zoom = tuple(content["zoom"]) if content["zoom"] else None
        self._shown = [at for at in content["shown"] if at < len(self.others)]
        with self._lock:
            if self.chart is not None:
                names = (
                    "smoothing",
                    "log",
                    "detail",
                    "axis",
                    "splits",
                    "zoom",
                    "shown",
                )
                # Only what has not come by itself: an echo could undo newer ones.
                news = {
                    n: content[n] for n in names if getattr(self.chart, n) != content[n]
                }
                if news:
                    self.chart.set_state(news)
                self._look_closely()

    def _look_closely(self) -> None:
        """Send every batch of the epochs in sight, where the logs have them."""
        chart, meter, zoom = self.chart, self.meter, self._zoom
        if chart is None or zoom is None:
            return
        low, high = max(zoom[0], 0.0), min(zoom[1], meter.epoch)
        batches = self.curves.steps / max(1, meter.epoch)
        if high <= low or (high - low) * batches * len(self.run.metrics) > MOST_READ:
            return
        reached = None
        if meter.split == "train" and meter.total:
            reached = (meter.epoch, meter.items / meter.total, meter.iteration)
        tables: dict[str, np.ndarray] = {}
        for name in self.run.metrics:
            coarse = self.curves.curve(name, "train").steps.table()
            tables[name] = thin(
                self._points.table(name, (low, high), coarse, reached, self._ended),
                max(256, 8192 // len(self.run.metrics)),
            )
        ends = [table[-1, 0] for table in tables.values() if len(table)]
        if ends:
            chart.show_fine((low, min(ends)), tables)

    @property
    def zoom(self) -> tuple[float, float] | None:
        """The epochs in sight, from where to where; None for all of them."""
        return self._zoom

    @zoom.setter
    def zoom(self, epochs: tuple[float, float] | None) -> None:
        if epochs is not None and not epochs[0] < epochs[1]:
            what = f"zoom={epochs!r} begins after it ends"
            raise ConfigError("Dashboard", what, cure="zoom = (2, 5), or None for all")
        self._zoom = None if epochs is None else (float(epochs[0]), float(epochs[1]))
        with self._lock:
            if self.chart is not None:
                self.chart.zoom = list(self._zoom or ())
                self._look_closely()

    # ── other runs ──────────────────────────────────────────────────────────

    def find_runs(self) -> None:
        """Lay the newest runs beside this one over its curves; the newest two show."""
        found = read_runs(runs_beside(self.run.directory), self.run.metrics)
        if not found:
            where = Path(self.run.directory).resolve().parent
            raise TrainingError("other runs", f"none in {where} has these metrics")
        self._set_others(found, range(SHOWN_AT_FIRST))

    def overlay(self, *runs: Runs | Iterable[Runs]) -> None:
        """Lay other runs over the curves: runs, stores, folders; without any, none."""
        found = read_runs(
            [run for given in runs for run in runs_of(given)], self.run.metrics
        )
        if runs and not found:
            names = ", ".join(self.run.metrics)
            raise TrainingError("overlay", f"none of the runs has {names}")
        self._set_others(found, range(len(found)))

    def _set_others(self, others: list[OtherRun], shown: Iterable[int]) -> None:
        self.others = others
        self._shown = [place for place in shown if place < len(others)]
        with self._lock:
            if self.chart is not None:
                self.chart.show_runs(others, self._shown)

    @property
    def shown_runs(self) -> list[str]:
        """The names of the other runs that are seen."""
        return [self.others[place].name for place in self._shown]

    def show_runs(self, *names: str) -> None:
        """See these of the other runs, and no others."""
        known = [other.name for other in self.others]
        for name in names:
            if name not in known:
                facts = [("runs", ", ".join(known) or "none; overlay(…) first")]
                raise TrainingError("show_runs", f"there is no run {name!r}", facts)
        self._set_others(self.others, [known.index(name) for name in names])

    # ── norms ───────────────────────────────────────────────────────────────

    def show_norms(self) -> None:
        """Measure and show how large weights and gradients are, layer by layer."""
        self.norms = self.norms or Norms()
        self.norms_shown = True
        self._send_norms()

    def hide_norms(self) -> None:
        """Stop measuring."""
        self.norms_shown = False
        self._send_norms()

    def inspect(self, model: Any, grads: Any) -> None:
        """Measure the norms of this batch, if it is time; they go with the curves."""
        if self.norms is not None and self.norms_shown:
            self.norms.look(model, grads)

    def _send_norms(self) -> None:
        with self._lock:
            if self.chart is None or self.norms is None:
                return
            about, data = self.norms.pack()
            with self.chart.hold_sync():
                self.chart.norms_data = data
                self.chart.norms = {**about, "open": self.norms_shown}

    # ── what the run tells us ───────────────────────────────────────────────

    def update(self, state: MetricState) -> None:
        """Take in a metric's value of the batch that ends now."""
        self.curves.update(state.entry.name, state.value)

    def step(self, split: str, progress: TrainingProgress) -> None:
        """A batch has ended: place its values, and four times a second show them."""
        at = progress.progress
        epoch, items, total = progress.epoch, at.items_processed, at.items_total
        if split == "valid":
            x = float(epoch)
        else:
            x = epoch - 1 + (items / total if total else 1.0)
        self.meter.note(split, epoch, items, total, progress.iteration, progress.lr)
        if split == "train" and not self.curves.steps and items:
            before = self.meter.start_epoch - 1  # epochs of a run that goes on
            self.curves.steps = float(before * math.ceil(total / items))
        self.curves.step(split, x, self.meter.seconds())
        if self.chart is not None:
            now = time.monotonic()
            if now >= self._next_send:
                self.follow()
                self._send(now)

    def follow(self) -> None:
        """Show a pause or a stop that somebody else has asked for."""
        control = self.run.control
        if control.should_stop():
            if self.state in ("training", "paused"):
                self._change("stopping")
        elif control.paused and self.state == "training":
            self.pause()
        elif not control.paused and self.state == "paused":
            self.resume()

    def update_callbacks(self, callbacks: Iterable[tuple[str, str]]) -> None:
        """Take in how the callbacks stand; they are shown with the next epoch."""
        self.callbacks = list(callbacks)
        self._rows_are_new = True

    def saved(self, epoch: int, path: str, trouble: str = "") -> None:
        """A checkpoint was written, or could not be, and why."""
        if trouble:
            self.fault = f"The checkpoint of epoch {epoch} was not saved: {trouble}"
            self.said = self.fault
        else:
            self.checkpoints.append(epoch)
            self._kept = str(path)
            self._mention(f"Checkpoint of epoch {epoch} saved.")
        self._show_status()

    def end_epoch(self, epoch: int, split: str, means: Mapping[str, float]) -> None:
        """Close an epoch of one split; the table gets its row."""
        self.curves.end_epoch(epoch, split, means)
        facts = ", ".join(f"{name} {figure(value)}" for name, value in means.items())
        self._rows_are_new = True
        self._mention(f"Epoch {epoch}, {split}: {facts}")
        now = time.monotonic()
        if self.chart is None or self._report is None:
            return
        last = "valid" if self.run.validates else "train"
        if split == last and now >= self._next_table:
            began = time.thread_time()
            self._report.replace(so_far(self), picture_mark(self.chart.key))
            self._next_table = now + _pause_after(began)

    def _send(self, now: float) -> None:
        assert self.chart is not None
        began = time.thread_time()
        with self._lock:
            self.chart.show(self.curves, self._status())
            if self._rows_are_new:
                self.chart.report = report_html(self, last=6)
                self._rows_are_new = False
            if self.norms_shown:
                self._send_norms()
            self._tell_new_pages(now)
        self.sent += 1
        self._next_send = now + _pause_after(began)

    def _tell_new_pages(self, now: float) -> None:
        """A page has connected and could not ask for its widgets: tell it of ours."""
        if self._pages != PAGES.count:
            self._pages, self._open_again = PAGES.count, now + NEW_PAGE
        elif self._open_again and now >= self._open_again and self.chart is not None:
            self._open_again = 0.0
            self.chart.open_again()

    def _status(self) -> dict[str, object]:
        meter = self.meter
        doing = {"train": "training", "valid": "validating"}[meter.split]
        if self.state != "training":
            doing = {"stopping": "stopping after this batch"}.get(
                self.state, self.state
            )
        facts = [*facts_of(meter), *(f"checkpoint {e}" for e in self.checkpoints[-1:])]
        headline = f"Epoch {meter.epoch} of {self.run.num_epochs} · {doing}"
        ended = self.state in ("finished", "closed")
        return {
            "state": self.state,
            "headline": self.line if ended else headline,
            "detail": "" if ended else " · ".join(facts),
            "done": 1.0 if self._whole else round(meter.done(), 4),
            "said": self.line if ended else self.said,
            "notice": self.fault or self.run.notice,
            "epoch": f"epoch {meter.epoch} of {self.run.num_epochs}",
            "kept": self.checkpoints[-1:],
            "folder": self._kept,
            "waiting": self.run.control.checkpoint_wanted and not ended,
        }

    # ── what stays ──────────────────────────────────────────────────────────

    def finish(self, result: TrainingResult | None) -> None:
        """Say how it ended; what is saved from now on is a picture and a table.

        The chart stays alive as long as the kernel does, or until close().
        """
        if self.state in ("finished", "closed"):
            return
        self.state = "finished"
        self._whole = result is not None and not result.interrupted
        self._ended = time.time()
        self.line = sum_up(self, result)
        with self._lock:
            chart = self.chart
            if chart is None:
                return
            with chart.hold_sync():
                chart.report = report_html(self)
                picture, about = picture_bundle(self)
                chart.ending = ending_of(self, picture, about)
            chart.show(self.curves, self._status())
            self._send_norms()
            self._look_closely()
            self._show_end({**live_form(chart), **picture}, about)

    def _show_end(self, bundle: Mapping[str, Any], about: Mapping[str, Any]) -> None:
        """What stays in the place of the panel, and below it."""
        assert self.chart is not None
        key = self.chart.key
        if self._panel is not None and self._report is not None:
            self._panel.replace(bundle, {**about, **panel_mark(key, True)})
            self._report.replace(report_bundle(self), picture_mark(key, True))
        for place in self._shown_again:
            bundle, mark = self._repr_mimebundle_()
            place.update(bundle, raw=True, metadata=mark)

    def finish_still(self, result: TrainingResult) -> None:
        """Show the same every time: a fixed line, and the curves as PNG only."""
        self.state = "finished"
        self.line = end_line(self, result)
        self._screen.show({"text/plain": self.line})
        bundle, metadata = picture_bundle(self)
        bundle.pop("image/svg+xml")
        if "image/png" in bundle:
            self._screen.show(bundle, metadata)

    def drawing(self) -> Drawing:
        """The curves as they are to be seen, other runs included."""
        others = [(place, self.others[place]) for place in self._shown]
        name = self.name if self._live else ""
        return picture(self.curves, self.units, self._options, others, name)

    def still(self) -> str:
        """The finished picture with its table, as HTML without JavaScript."""
        table = report_bundle(self)["text/html"]
        return f"{self.drawing().svg()}\n{table}"

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write all of it as one HTML file that needs no kernel and no network."""
        return write_dashboard(self, path)

    def close(self) -> None:
        """Free everything; where the panel was shown its picture stays."""
        if self.state not in ("finished", "closed"):
            self.finish(None)
        self.state = "closed"
        with self._lock:
            if self.chart is not None:
                self.chart.status = self._status()
                self._show_end(*picture_bundle(self))
        self.free()

    def free(self) -> None:
        """Close every widget."""
        with self._lock:
            chart, self.chart = self.chart, None
            open_dashboards.remove(self)
            if chart is None:
                return
            close_all(chart)
            self._panel = self._report = None
            self._shown_again.clear()

    def __repr__(self) -> str:
        names = ", ".join(self.run.metrics)
        return f"Dashboard({names}; {count_text(len(self.curves.rows()), 'epoch')})"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        chart = self.chart
        live = {} if chart is None or self.state == "closed" else live_form(chart)
        still = {"text/html": self.still(), "text/plain": repr(self)}
        return {**live, **still}, still_mark(chart.key if chart is not None else "")

    def _ipython_display_(self) -> None:
        from IPython.display import DisplayHandle

        place = DisplayHandle()
        bundle, about = self._repr_mimebundle_()
        place.display(bundle, raw=True, metadata=about)
        if self.chart is not None:
            self._shown_again.append(place)


def _pause_after(began: float) -> float:
    """How long to be silent, so that what began then takes only our share of time.

    Why: measured on this thread's own clock, as waiting for others is not our work.
    """
    return max(INTERVAL, (time.thread_time() - began) / OWN_SHARE)
