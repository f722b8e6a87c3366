"""A training as a live plotly figure, for those who like it.

One figure for all metrics: hover, zoom and save as plotly has it. Its script of 5 MB
goes to the page once for each training, which is why the dashboard has a chart of its
own. When training ends, the figure is freed and the finished picture takes its place.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

import ipywidgets

from burnbook.train import (
    MetricsRenderer,
    MetricState,
    RunInfo,
    TrainingProgress,
    TrainingResult,
)
from burnbook_widgets.saving import MARK
from burnbook_widgets.training.controls import NOTES, buttons_are
from burnbook_widgets.training.curves import Curves
from burnbook_widgets.training.dashboard import Dashboard
from burnbook_widgets.training.history import BOTH
from burnbook_widgets.training.progress import facts_of
from burnbook_widgets.training.screen import NotebookScreen, Place, Screen
from burnbook_widgets.view import close_all, live_form, row

INTERVAL = 0.5  # seconds between two updates: plotly draws slower than our own chart
OWN_SHARE = 0.01  # of the training thread's time
LINES = (("train", "steps"), ("train", "epochs"), ("valid", "epochs"))


class PlotlyRenderer(MetricsRenderer):
    """Show a training as a plotly `FigureWidget`; `figure` is it while training lasts.

    Example:
        learner = LearnerBuilder(directory).renderer(PlotlyRenderer())...
        await learner.fit_async(train, valid)

    Why: nothing that goes wrong here stops the training; it is said once instead. With
    BURNBOOK_DISPLAY=static it shows what the dashboard shows then: no figure.
    """

    def __init__(self, screen: Screen | None = None) -> None:
        self._screen = screen
        self._static = os.environ.get("BURNBOOK_DISPLAY") == "static"
        self._broken = False
        self._place: Place | None = None
        self._next = 0.0
        self.dashboard: Dashboard | None = None
        self.box: Any = None
        self.figure: Any = None

    def start(self, run: RunInfo) -> None:
        """Show the empty figure below the running cell."""
        self._broken = False
        self._try(self._start, run)

    def _start(self, run: RunInfo) -> None:
        self.close()
        self.dashboard = dashboard = Dashboard(run, self._screen, live=False)
        if self._static:
            return
        self.figure = live_figure(run.metrics, run.units)
        stop = ipywidgets.Button(description="Stop", icon="stop")
        pause = ipywidgets.Button(description="Pause", icon="pause")
        stop.on_click(lambda _: dashboard.stop("stop button"))
        pause.on_click(lambda _: self._pause(pause))
        note = ipywidgets.HTML(NOTES[buttons_are(run.mode)])
        self.facts = ipywidgets.HTML()
        self.box = ipywidgets.VBox([row(stop, pause, note), self.facts, self.figure])
        screen = self._screen if self._screen is not None else NotebookScreen()
        self._place = screen.put(self._bundle(), MARK)

    def _pause(self, button: Any) -> None:
        assert self.dashboard is not None
        paused = self.dashboard.state == "paused"
        (self.dashboard.resume if paused else self.dashboard.pause)()
        button.description = "Pause" if paused else "Resume"

    def _bundle(self) -> dict[str, Any]:
        still = "This page was saved during training: the curves appear when it ends."
        html = {"text/html": f"<p>{still}</p>", "text/plain": repr(self)}
        return {**live_form(self.box), **html}

    def update_train(self, state: MetricState) -> None:
        """Note a metric of a training batch."""
        self._tell("update", state)

    def update_valid(self, state: MetricState) -> None:
        """Note a metric of a validation batch."""
        self._tell("update", state)

    def render_train(self, progress: TrainingProgress) -> None:
        """A training batch has ended; twice a second the figure follows."""
        self._tell("step", "train", progress)
        if time.monotonic() >= self._next:
            self._try(self._draw)

    def render_valid(self, progress: TrainingProgress) -> None:
        """A validation batch has ended."""
        self._tell("step", "valid", progress)

    def end_epoch(self, epoch: int, split: str, means: dict[str, float]) -> None:
        """An epoch of one split has ended."""
        self._tell("end_epoch", epoch, split, means)

    def tick(self) -> None:
        """Training is paused."""
        self._tell("follow")

    def _draw(self) -> None:
        if self.dashboard is None or self.figure is None:
            return
        began = time.thread_time()
        show(self.figure, self.dashboard.curves)
        meter = self.dashboard.meter
        facts = " · ".join(facts_of(meter))
        self.facts.value = f"<b>Epoch {meter.epoch} of {meter.num_epochs}</b> · {facts}"
        took = time.thread_time() - began
        self._next = time.monotonic() + max(INTERVAL, took / OWN_SHARE)

    def finish(self, result: TrainingResult) -> None:
        """Free the figure and leave the finished picture."""
        self._try(self._finish, result)

    def _finish(self, result: TrainingResult | None) -> None:
        if self.dashboard is None:
            return
        if self._static and result is not None:
            self.dashboard.finish_still(result)
            return
        self.dashboard.finish(result)
        if self._place is not None:
            still = {"text/html": self.dashboard.still(), "text/plain": repr(self)}
            self._place.replace(still)
        self._free()

    def close(self) -> None:
        """Free everything; a run that failed leaves its picture so far."""
        if self._place is not None:
            self._try(self._finish, None)
        self._free()

    def _free(self) -> None:
        box, figure = self.box, self.figure
        self.box = self.figure = self._place = None
        if box is not None:
            box.children = box.children[:-1]
            close_all(box)
            figure.close()  # its `layout` is plotly's, not a widget

    def _tell(self, name: str, *args: Any) -> None:
        if self.dashboard is not None and not self._broken:
            self._try(getattr(self.dashboard, name), *args)

    def _try(self, act: Any, *args: Any) -> None:
        if self._broken:
            return
        try:
            act(*args)
        except Exception as fault:
            self._broken = True
            with contextlib.suppress(Exception):
                self._free()
            print(f"figure: {type(fault).__name__}: {fault}; training continues")

    def __repr__(self) -> str:
        names = (
            ", ".join(self.dashboard.run.metrics) if self.dashboard else "no run yet"
        )
        return f"PlotlyRenderer({names})"


def live_figure(metrics: tuple[str, ...], units: Mapping[str, str]) -> Any:
    """A FigureWidget with three lines for each metric, below one another."""
    import plotly.graph_objects as go
    from plotly.subplots import make_subplots

    titles = [f"{m} ({units[m]})" if m in units else m for m in metrics]
    base: Any = make_subplots(
        rows=max(1, len(metrics)),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=0.09,
        subplot_titles=titles,
    )
    for place, _ in enumerate(metrics):
        for split, kind in LINES:
            steps, train = kind == "steps", split == "train"
            line = {"color": BOTH[split], "dash": "solid" if train else "dash"}
            base.add_trace(
                go.Scatter(
                    x=[],
                    y=[],
                    name=f"{split}, {'batches' if steps else 'epoch means'}",
                    legendgroup=f"{split} {kind}",
                    showlegend=place == 0,
                    mode="lines" if steps else "lines+markers",
                    line={**line, "width": 1 if steps else 2.5},
                    marker={"symbol": "circle" if train else "square"},
                    opacity=0.6 if steps else 1.0,
                    hovertemplate="%{y:.4g}",
                ),
                row=place + 1,
                col=1,
            )
    base.update_layout(
        height=120 + 220 * max(1, len(metrics)),
        margin={"l": 60, "r": 20, "t": 50, "b": 40},
        hovermode="x unified",
        template="plotly_white",
        font={"color": BOTH["ink"]},
        paper_bgcolor=BOTH["paper"],
        plot_bgcolor=BOTH["paper"],
        legend={"orientation": "h", "x": 0, "y": 1.06, "yanchor": "bottom"},
        uirevision="kept",  # a zoom outlives the next update
    )
    base.update_xaxes(gridcolor=BOTH["grid"], zeroline=False)
    base.update_yaxes(gridcolor=BOTH["grid"], zeroline=False)
    base.update_xaxes(title_text="epoch", row=max(1, len(metrics)))
    figure = _figure_class()(base)
    figure.metrics_shown = metrics
    return figure


def show(figure: Any, curves: Curves) -> None:
    """Send the curves: arrays of numbers, which travel as bytes, in one message."""
    tables = {(m, s, k): table for m, s, k, table in curves.series()}
    with figure.batch_update():
        for place, metric in enumerate(curves.metrics):
            for at, (split, kind) in enumerate(LINES):
                table = tables[metric, split, kind].astype("float32")
                trace = figure.data[place * len(LINES) + at]
                trace.x, trace.y = table[:, 0].copy(), table[:, 1].copy()


@cache
def _figure_class() -> Any:
    """plotly's FigureWidget with its script as text, and a text that stays the same.

    Why: plotly gives its script as a path; anywidget then hooks onto that file, and the
    hook keeps every closed figure alive.
    """
    import plotly.graph_objects as go

    bundle = files("plotly") / "package_data" / "widgetbundle.js"

    class LiveFigure(go.FigureWidget):
        _esm = bundle.read_text(encoding="utf-8")
        metrics_shown: tuple[str, ...] = ()

        def __setattr__(self, name: str, value: Any) -> None:
            if name == "metrics_shown":
                object.__setattr__(self, name, value)
            else:
                super().__setattr__(name, value)

        def __repr__(self) -> str:
            return f"LiveFigure({', '.join(self.metrics_shown)})"

    return LiveFigure
