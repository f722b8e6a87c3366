"""Building blocks · Learner. The training dashboard of a notebook, live and then still.

While a run lasts: curves, progress, Stop, Pause, norms, other runs. When it ends, the
live output is replaced by a picture, a table and a line of text that need no kernel and
no script. The training thread pays for at most one message in a quarter of a second.
A page that is saved in between holds the picture so far (saving.py); `board.dashboard`
in a cell shows the panel there too.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import ipywidgets

from burnbook.errors import ConfigError, TrainingError
from burnbook.train import (
    MetricState,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets.saving import MARK, PANEL, PICTURE
from burnbook_widgets.training.chart import Chart
from burnbook_widgets.training.controls import Controls
from burnbook_widgets.training.curves import Curves
from burnbook_widgets.training.ending import (
    count_text,
    end_line,
    live_bundle,
    offer_page,
    picture_bundle,
    report_bundle,
    so_far,
    sum_up,
    write_dashboard,
)
from burnbook_widgets.training.look import DETAIL, Look
from burnbook_widgets.training.norms import Norms
from burnbook_widgets.training.others import (
    OtherRun,
    Runs,
    read_runs,
    runs_beside,
    runs_of,
)
from burnbook_widgets.training.progress import Meter, facts_of
from burnbook_widgets.training.screen import NotebookScreen, Place, Screen
from burnbook_widgets.training.still import figure, picture
from burnbook_widgets.view import Names, close_all, live_form

INTERVAL = 0.25  # seconds between two messages to the page
OWN_SHARE = 0.005  # of the training thread's time for curves, as much for the table
SHOWN_AT_FIRST = 2  # of the other runs that a click finds


class Dashboard:
    """One run of training on the page; every control has a method of the same name.

    Example:
        board = NotebookRenderer()
        learner = LearnerBuilder(directory).renderer(board)...
        board.dashboard.pause(); board.dashboard.resume(); board.dashboard.stop()
        board.dashboard.smoothing = 0.9; board.dashboard.log = True
        board.dashboard.overlay("artifacts"); board.dashboard.show_norms()
        board.dashboard.export("run.html")
    """

    def __init__(self, run: RunInfo, screen: Screen | None = None, live: bool = True):
        self.run = run
        self.curves = Curves(run.metrics)
        self.meter = Meter(run.num_epochs, run.start_epoch)
        self.units = dict(run.units)
        self.state = "training"
        self.line = f"Training {count_text(run.num_epochs, 'epoch')}."
        self.said = self.fault = ""
        self.sent = 0
        self.norms: Norms | None = None
        self.norms_shown = False
        self.others: list[OtherRun] = []
        self.checkpoints: list[int] = []  # epochs that were saved while we looked on
        self._look = Look()
        self._zoom: tuple[float, float] | None = None
        self._shown: list[int] = []
        self._screen: Screen = screen if screen is not None else NotebookScreen()
        self._next_send = 0.0
        self._next_table = 0.0
        self._lock = threading.RLock()
        self._panel: Place | None = None
        self._report: Place | None = None
        self.chart: Chart | None = None
        if live:
            self._open()

    # ── the live panel ──────────────────────────────────────────────────────

    def _open(self) -> None:
        self.chart = chart = Chart(self.run.metrics, self.units)
        chart.status = self._status()
        chart.on_msg(self._page_says)
        self.controls = controls = Controls(self.run.mode, self.run.saves, chart)
        self.stop_button, self.pause_button = controls.stop, controls.pause
        self.note = controls.note
        self._on_click(controls.stop, lambda: self.stop("stop button"))
        self._on_click(controls.pause, self._pause_clicked)
        self._on_click(controls.save, self.save_checkpoint)
        self._on_click(controls.norms, self._norms_clicked)
        self._on_click(controls.compare, self.find_runs)
        self._on_click(controls.export, lambda: offer_page(self))
        self.box = ipywidgets.VBox([controls.box, chart, Names()])
        self._panel = self._screen.put(live_bundle(self), PANEL)
        self._report = self._screen.put(
            {
                "text/html": "<p>The epochs appear here, one row each.</p>",
                "text/plain": self.line,
            }
        )

    def _on_click(self, button: Any, act: Callable[[], Any]) -> None:
        """What goes wrong in a click is said on the panel, in one line."""

        def clicked(_: Any) -> None:
            try:
                act()
                self.fault = ""
            except Exception as fault:
                self.fault = (str(fault) or type(fault).__name__).splitlines()[0]
            self._show_status()

        button.on_click(clicked)

    def _pause_clicked(self) -> None:
        (self.resume if self.state == "paused" else self.pause)()

    def _norms_clicked(self) -> None:
        (self.hide_norms if self.norms_shown else self.show_norms)()

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
            self.said = f"A checkpoint of epoch {self.meter.epoch} comes when it ends."
            self._show_waiting(True)

    def _show_waiting(self, waiting: bool) -> None:
        if self.chart is not None:
            with self._lock:
                self.controls.show_waiting(waiting)
                self._show_status()

    def _show_status(self) -> None:
        with self._lock:
            if self.chart is not None:
                self.chart.status = self._status()

    def _change(self, state: str) -> None:
        """Show a new state at once; called by whatever thread handles clicks."""
        self.state = state
        self.said = {
            "paused": "Training paused.",
            "training": "Training goes on.",
            "stopping": "Training stops after this batch.",
        }[state]
        with self._lock:
            if self.chart is not None:
                self.controls.show_state(state)
                self._show_status()

    # ── how it is to be seen ────────────────────────────────────────────────

    @property
    def smoothing(self) -> float:
        """How much the batches are averaged: 0, not at all, to 0.99."""
        return self._look.smoothing

    @smoothing.setter
    def smoothing(self, value: float) -> None:
        self._set_look(Look(float(value), self.log, self.detail))

    @property
    def log(self) -> bool:
        """Whether values stand on a logarithmic scale."""
        return self._look.log

    @log.setter
    def log(self, value: bool) -> None:
        self._set_look(Look(self.smoothing, bool(value), self.detail))

    @property
    def detail(self) -> str:
        """What is drawn: the batches ("steps"), the means of "epochs", or "both"."""
        return self._look.detail

    @detail.setter
    def detail(self, value: str) -> None:
        self._set_look(Look(self.smoothing, self.log, value))

    def _set_look(self, look: Look) -> None:
        self._look = look
        with self._lock:
            if self.chart is not None:
                self.chart.smoothing, self.chart.log = look.smoothing, look.log
                self.chart.detail = DETAIL.index(look.detail)
                self.controls.smoothing.value = look.smoothing
                self.controls.log.value = look.log
                self.controls.detail.index = DETAIL.index(look.detail)

    def _page_says(self, _: Any, content: Mapping[str, Any], __: Any) -> None:
        """Remember what was set on the page, so that what stays looks the same."""
        detail = DETAIL[content["detail"]]
        self._look = Look(float(content["smoothing"]), bool(content["log"]), detail)
        self._zoom = tuple(content["zoom"]) if content["zoom"] else None
        self._shown = [at for at in content["shown"] if at < len(self.others)]

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
            self.controls.show_norms(self.norms_shown)
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
        self.curves.step(split, x)
        self.meter.note(split, epoch, items, total, progress.iteration, progress.lr)
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

    def saved(self, epoch: int, path: str, trouble: str = "") -> None:
        """A checkpoint was written, or could not be, and why."""
        if trouble:
            self.fault = f"The checkpoint of epoch {epoch} was not saved: {trouble}"
            self.said = self.fault
        else:
            self.checkpoints.append(epoch)
            self.said = f"Checkpoint of epoch {epoch} saved."
        self._show_waiting(self.run.control.checkpoint_wanted)

    def end_epoch(self, epoch: int, split: str, means: Mapping[str, float]) -> None:
        """Close an epoch of one split; the table gets its row."""
        self.curves.end_epoch(epoch, split, means)
        facts = ", ".join(f"{name} {figure(value)}" for name, value in means.items())
        self.said = f"Epoch {epoch}, {split}: {facts}"
        now = time.monotonic()
        if self._report is not None and split == "valid" and now >= self._next_table:
            began = time.thread_time()
            self._report.replace(so_far(self), PICTURE)
            self._next_table = now + _pause_after(began)

    def _send(self, now: float) -> None:
        assert self.chart is not None
        began = time.thread_time()
        with self._lock:
            self.chart.show(self.curves, self._status())
            if self.norms_shown:
                self._send_norms()
        self.sent += 1
        self._next_send = now + _pause_after(began)

    def _status(self) -> dict[str, object]:
        meter = self.meter
        doing = {"train": "training", "valid": "validating"}[meter.split]
        if self.state != "training":
            doing = {"stopping": "stopping after this batch"}.get(
                self.state, self.state
            )
        facts = [*facts_of(meter), *(f"checkpoint {e}" for e in self.checkpoints[-1:])]
        return {
            "state": self.state,
            "headline": f"Epoch {meter.epoch} of {self.run.num_epochs} · {doing}",
            "detail": " · ".join(facts),
            "done": round(meter.done(), 4),
            "said": self.said,
            "notice": self.fault or self.run.notice,
        }

    # ── what stays ──────────────────────────────────────────────────────────

    def finish(self, result: TrainingResult | None) -> None:
        """Replace the live panel by what stays: picture, table, one line of text."""
        if self.state in ("finished", "closed"):
            return
        self.state = "finished"
        self.line = sum_up(self, result)
        if self._panel is not None and self._report is not None:
            self._panel.replace(*picture_bundle(self))
            self._report.replace(report_bundle(self))
        self.free()

    def finish_still(self, result: TrainingResult) -> None:
        """Show the same every time: a fixed line, and the curves as PNG only."""
        self.state = "finished"
        self.line = end_line(self, result)
        self._screen.show({"text/plain": self.line})
        bundle, metadata = picture_bundle(self)
        bundle.pop("image/svg+xml")
        if "image/png" in bundle:
            self._screen.show(bundle, metadata)

    def drawing(self) -> Any:
        """The curves as they are to be seen, other runs included."""
        others = [(place, self.others[place]) for place in self._shown]
        return picture(self.curves, self.units, self._look, others)

    def still(self) -> str:
        """The finished picture with its table, as HTML without JavaScript."""
        table = report_bundle(self)["text/html"]
        return f"{self.drawing().svg()}\n{table}"

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write all of it as one HTML file that needs no kernel and no network."""
        return write_dashboard(self, path)

    def close(self) -> None:
        """Free everything; a run that has not finished leaves its picture so far."""
        if self.state not in ("finished", "closed"):
            self.finish(None)
        self.free()
        self.state = "closed"

    def free(self) -> None:
        """Close every widget; what the page shows by then stays."""
        with self._lock:
            chart, self.chart = self.chart, None
            if chart is None:
                return
            self.controls.close()
            close_all(self.box)
            self._panel = self._report = None

    def __repr__(self) -> str:
        names = ", ".join(self.run.metrics)
        return f"Dashboard({names}; {count_text(len(self.curves.rows()), 'epoch')})"

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        live = {} if self.chart is None else live_form(self.box)
        still = {"text/html": self.still(), "text/plain": repr(self)}
        return {**live, **still}, dict(MARK)


def _pause_after(began: float) -> float:
    """How long to be silent, so that what began then takes only our share of time.

    Why: measured on this thread's own clock, as waiting for others is not our work.
    """
    return max(INTERVAL, (time.thread_time() - began) / OWN_SHARE)
