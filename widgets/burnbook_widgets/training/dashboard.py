"""Building blocks · Learner. The training dashboard of a notebook, live and then still.

While a run lasts: curves, progress, Stop and Pause. When it ends, the live output is
replaced by a picture, a table and a line of text that need no kernel and no script.
The training thread pays for at most one message in a quarter of a second.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import ipywidgets

from burnbook.train import (
    MetricsRenderer,
    MetricState,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets.training.chart import Chart
from burnbook_widgets.training.curves import Curves
from burnbook_widgets.training.progress import Meter, duration
from burnbook_widgets.training.screen import NotebookScreen, Place, Screen
from burnbook_widgets.training.still import epoch_table, figure, picture

INTERVAL = 0.25  # seconds between two messages to the page
OWN_SHARE = 0.005  # of the training thread's time for curves, as much for the table

NOTES = {
    "await": "● live: buttons act at once while this cell waits for the training.",
    "thread": "● live: buttons act at once; a cell that runs <code>.wait()</code> "
    "holds them until it ends.",
    "fit": "◷ queued: clicks arrive when this cell ends. To stop now, interrupt the "
    "kernel (■): training ends cleanly and keeps the model.",
}


def buttons_are(mode: str) -> str:
    """Which note fits: an awaiting cell hears clicks from ipykernel 7 on."""
    kernel = sys.modules.get("ipykernel")
    if mode == "await" and kernel is not None and kernel.version_info[0] < 7:
        return "fit"
    return mode if mode in NOTES else "fit"


class Dashboard:
    """One run of training on the page; every control has a method of the same name.

    Example:
        board = NotebookRenderer()
        learner = LearnerBuilder(directory).renderer(board)...
        board.dashboard.pause(); board.dashboard.resume(); board.dashboard.stop()
    """

    def __init__(self, run: RunInfo, screen: Screen | None = None, live: bool = True):
        self.run = run
        self.curves = Curves(run.metrics)
        self.meter = Meter(run.num_epochs, run.start_epoch)
        self.units = dict(run.units)
        self.state = "training"
        self.line = f"Training {run.num_epochs} epochs."
        self.said = ""
        self.sent = 0
        self._screen: Screen = screen if screen is not None else NotebookScreen()
        self._next_send = 0.0
        self._next_table = 0.0
        self._lock = threading.Lock()
        self._panel: Place | None = None
        self._report: Place | None = None
        self.chart: Chart | None = None
        if live:
            self._open()

    # ── the live panel ──────────────────────────────────────────────────────

    def _open(self) -> None:
        self.chart = Chart(self.run.metrics, self.units)
        self.chart.status = self._status()
        self.stop_button = ipywidgets.Button(
            description="Stop",
            icon="stop",
            tooltip="End the training after this batch and keep the model",
        )
        # A plain button: while a cell awaits, the kernel reports no idle state for a
        # click, and the page then holds back every later change of a widget's value;
        # clicks of a Button are events, which always pass.
        self.pause_button = ipywidgets.Button(
            description="Pause",
            icon="pause",
            tooltip="Hold the training after this batch; press again to go on",
        )
        self.note = ipywidgets.HTML(NOTES[buttons_are(self.run.mode)])
        self.stop_button.on_click(lambda _: self.stop("stop button"))
        self.pause_button.on_click(self._pause_clicked)
        row = ipywidgets.Layout(flex_flow="row wrap", align_items="center")
        controls = ipywidgets.HBox(
            [self.stop_button, self.pause_button, self.note], layout=row
        )
        self.box = ipywidgets.VBox([controls, self.chart])
        self._panel = self._screen.put(self.box)
        self._report = self._screen.put(
            {
                "text/html": "<p>The epochs appear here, one row each.</p>",
                "text/plain": self.line,
            }
        )

    def _pause_clicked(self, _: Any) -> None:
        if self.state == "paused":
            self.resume()
        else:
            self.pause()

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

    def _change(self, state: str) -> None:
        """Show a new state at once; called by whatever thread handles clicks."""
        self.state = state
        self.said = {
            "paused": "Training paused.",
            "training": "Training goes on.",
            "stopping": "Training stops after this batch.",
        }[state]
        if self.chart is None:
            return
        with self._lock:
            paused = state == "paused"
            self.pause_button.description = "Resume" if paused else "Pause"
            self.pause_button.icon = "play" if paused else "pause"
            if state == "stopping":
                self.stop_button.description = "Stopping"
                self.stop_button.disabled = self.pause_button.disabled = True
            self.chart.status = self._status()

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
        self.meter.note(split, epoch, items, total, progress.iteration)
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

    def end_epoch(self, epoch: int, split: str, means: Mapping[str, float]) -> None:
        """Close an epoch of one split; the table gets its row."""
        self.curves.end_epoch(epoch, split, means)
        facts = ", ".join(f"{name} {figure(value)}" for name, value in means.items())
        self.said = f"Epoch {epoch}, {split}: {facts}"
        now = time.monotonic()
        if self._report is not None and split == "valid" and now >= self._next_table:
            began = time.thread_time()
            self._report.replace(self._report_bundle(last=6))
            self._next_table = now + _pause_after(began)

    def _send(self, now: float) -> None:
        assert self.chart is not None
        began = time.thread_time()
        with self._lock:
            self.chart.show(self.curves, self._status())
        self.sent += 1
        self._next_send = now + _pause_after(began)

    def _status(self) -> dict[str, object]:
        meter = self.meter
        doing = {"train": "training", "valid": "validating"}[meter.split]
        if self.state != "training":
            doing = {"stopping": "stopping after this batch"}.get(
                self.state, self.state
            )
        facts = [f"{meter.items:,} of {meter.total:,} items"] if meter.total else []
        if meter.speed() > 0:
            facts.append(f"{meter.speed():,.0f} items/s")
        left = meter.seconds_left()
        if left is not None:
            facts.append(f"about {duration(left)} left")
        if meter.iteration:
            facts.append(f"iteration {meter.iteration:,}")
        return {
            "state": self.state,
            "headline": f"Epoch {meter.epoch} of {self.run.num_epochs} · {doing}",
            "detail": " · ".join(facts),
            "done": round(meter.done(), 4),
            "said": self.said,
        }

    # ── what stays ──────────────────────────────────────────────────────────

    def finish(self, result: TrainingResult | None) -> None:
        """Replace the live panel by what stays: picture, table, one line of text."""
        if self.state in ("finished", "closed"):
            return
        self.state = "finished"
        self.line = self._sum_up(result)
        if self._panel is not None and self._report is not None:
            self._panel.replace(*self._picture())
            self._report.replace(self._report_bundle())
        self.free()

    def finish_still(self, result: TrainingResult) -> None:
        """Show the same every time: a fixed line, and the curves as PNG only."""
        self.state = "finished"
        names = " and ".join(self.run.metrics) or "no metric"
        epochs = _count(len(self.curves.rows()), "epoch")
        self.line = f"Trained {epochs}: {names}, train and valid."
        if result.interrupted:
            self.line = f"Stopped: {result.interrupted}. The model so far is kept."
        self._screen.show({"text/plain": self.line})
        bundle, metadata = self._picture()
        bundle.pop("image/svg+xml")
        if "image/png" in bundle:
            self._screen.show(bundle, metadata)

    def _sum_up(self, result: TrainingResult | None) -> str:
        rows = self.curves.rows()
        whole = result.epochs - self.run.start_epoch + 1 if result else len(rows)
        epochs = _count(max(0, whole), "epoch")
        took = duration(self.meter.seconds() if result is None else result.seconds)
        if result is None:
            return f"Training ended early, after {epochs} and {took}."
        if result.interrupted:
            return (
                f"Stopped ({result.interrupted}) in epoch {self.meter.epoch}, after "
                f"{epochs} and {took}. The model so far is kept."
            )
        last = [
            f"{name} {figure(value)}{self._unit(name)}"
            for name, value in (rows[-1].items() if rows else ())
            if name.startswith("valid")
        ]
        return f"Trained {epochs} in {took}. " + ", ".join(last)

    def _unit(self, column: str) -> str:
        unit = self.units.get(column.split(" ", 1)[1], "")
        return f" {unit}" if unit else ""

    def _picture(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The curves as a mime bundle, and its metadata.

        Why: an SVG follows the theme, but is shown only where the notebook is trusted;
        a PNG is shown everywhere, and half its pixels are for sharp screens.
        """
        sheet = picture(self.curves, self.units)
        bundle: dict[str, Any] = {"image/svg+xml": sheet.svg()}
        png = sheet.png()
        if png is not None:
            bundle["image/png"] = png
        size = {"width": sheet.width, "height": sheet.height}
        return {**bundle, "text/plain": repr(self)}, {"image/png": size}

    def _report_bundle(self, last: int | None = None) -> dict[str, Any]:
        table = epoch_table(self.curves, self.units, last)
        text = self.line if self.state == "finished" else f"{self.line} The last ones:"
        return {"text/html": f"<p>{text}</p>\n{table}", "text/plain": text}

    def still(self) -> str:
        """The finished picture with its table, as HTML without JavaScript."""
        table = self._report_bundle()["text/html"]
        return f"{picture(self.curves, self.units).svg()}\n{table}"

    def close(self) -> None:
        """Free everything; a run that has not finished leaves its picture so far."""
        if self.state not in ("finished", "closed"):
            self.finish(None)
        self.free()
        self.state = "closed"

    def free(self) -> None:
        """Close every widget; what the page shows by then stays."""
        chart = self.chart
        if chart is None:
            return
        with self._lock:
            self.chart = None
            for button in (self.stop_button, self.pause_button):
                button._click_handlers.callbacks.clear()
            controls = self.box.children[0]
            for widget in (*controls.children, controls, chart, self.box):
                _close(widget)
            self._panel = self._report = None

    def __repr__(self) -> str:
        names = ", ".join(self.run.metrics)
        return f"Dashboard({names}; {_count(len(self.curves.rows()), 'epoch')})"

    def _repr_html_(self) -> str:
        return self.still()


class NotebookRenderer(MetricsRenderer):
    """Show a training in a notebook; nothing that goes wrong here stops the training.

    Why: a picture is not worth a model. The first fault of the view is shown once, the
    view ends, and the run goes on.
    """

    def __init__(self, screen: Screen | None = None) -> None:
        self._screen = screen
        self._static = os.environ.get("BURNBOOK_DISPLAY") == "static"
        self._broken = False
        self.dashboard: Dashboard | None = None

    def start(self, run: RunInfo) -> None:
        """Open the dashboard below the running cell."""
        self._broken = False
        self._try(self._start, run)

    def _start(self, run: RunInfo) -> None:
        if self.dashboard is not None:
            self.dashboard.close()
        self.dashboard = Dashboard(run, self._screen, live=not self._static)

    def update_train(self, state: MetricState) -> None:
        """Note a metric of a training batch."""
        self._call("update", state)

    def update_valid(self, state: MetricState) -> None:
        """Note a metric of a validation batch."""
        self._call("update", state)

    def render_train(self, progress: TrainingProgress) -> None:
        """A training batch has ended."""
        self._call("step", "train", progress)

    def render_valid(self, progress: TrainingProgress) -> None:
        """A validation batch has ended."""
        self._call("step", "valid", progress)

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """An epoch of one split has ended."""
        self._call("end_epoch", epoch, split, means)

    def tick(self) -> None:
        """Training is paused."""
        self._call("follow")

    def finish(self, result: TrainingResult) -> None:
        """Leave the finished picture."""
        self._call("finish_still" if self._static else "finish", result)

    def close(self) -> None:
        """Free everything."""
        self._call("close")

    def _call(self, name: str, *args: Any) -> None:
        if self.dashboard is not None and not self._broken:
            self._try(getattr(self.dashboard, name), *args)

    def _try(self, act: Any, *args: Any) -> None:
        try:
            act(*args)
        except Exception as fault:
            self._broken = True
            if self.dashboard is not None:
                with contextlib.suppress(Exception):
                    self.dashboard.free()
            print(f"dashboard: {type(fault).__name__}: {fault}; training goes on")

    def __repr__(self) -> str:
        return f"NotebookRenderer({self.dashboard or 'no run yet'})"


def _close(widget: Any) -> None:
    """Close a widget with the layout and the style that it brought."""
    for part in (getattr(widget, "style", None), widget.layout, widget):
        if part is not None:
            part.close()


def _pause_after(began: float) -> float:
    """How long to be silent, so that what began then takes only our share of time.

    Why: measured on this thread's own clock, as waiting for others is not our work.
    """
    return max(INTERVAL, (time.thread_time() - began) / OWN_SHARE)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'s' * (number != 1)}"
