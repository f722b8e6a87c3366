"""Building blocks · Learner. The controls of the dashboard: buttons, slider, choices.

Buttons tell the kernel, which acts when it hears them. What only changes the look is
linked on the page itself, so it acts at once, even while a cell keeps the kernel.
"""

from __future__ import annotations

import sys
from typing import Any

import ipywidgets

from burnbook_widgets.training.chart import Chart
from burnbook_widgets.training.look import SMOOTHEST
from burnbook_widgets.view import close_all, row

NOTES = {
    "await": "● live: buttons act at once while this cell waits for the training.",
    "thread": "● live: buttons act at once; a cell that runs <code>.wait()</code> "
    "holds them until it ends.",
    "fit": "◷ queued: clicks arrive when this cell ends. To stop now, interrupt the "
    "kernel (■): training ends cleanly and keeps the model. What changes the look "
    "acts at once.",
}
NO_CHECKPOINTER = "This run has no checkpointer: with_file_checkpointer(…) gives it one"


def buttons_are(mode: str) -> str:
    """Which note fits: an awaiting cell hears clicks from ipykernel 7 on."""
    kernel = sys.modules.get("ipykernel")
    if mode == "await" and kernel is not None and kernel.version_info[0] < 7:
        return "fit"
    return mode if mode in NOTES else "fit"


class Controls:
    """What stands above the curves, with the links to the chart below.

    Why: pausing, norms and other runs are plain buttons. While a cell awaits, the
    kernel reports no idle state for a click, and the page then holds back every later
    change of a widget's value; clicks of a Button are events, which always pass.
    """

    def __init__(self, mode: str, saves: bool, chart: Chart):
        self.stop = _button("Stop", "stop", "End after this batch and keep the model")
        self.pause = _button("Pause", "pause", "Hold after this batch; again: go on")
        self.save = _button(
            "Save checkpoint",
            "floppy-o",
            "Keep a checkpoint when this epoch ends" if saves else NO_CHECKPOINTER,
        )
        self.save.disabled = not saves
        self.norms = _button(
            "Show norms", "bar-chart", "How large weights and gradients are, per layer"
        )
        self.compare = _button(
            "Other runs", "clone", "Lay the newest runs beside this one over its curves"
        )
        self.export = _button(
            "Export HTML",
            "download",
            "Download curves, table and config as one HTML file for people who look",
        )
        self.note = ipywidgets.HTML(NOTES[buttons_are(mode)])
        wide = {"description_width": "auto"}
        self.smoothing = ipywidgets.FloatSlider(
            description="Smoothing",
            max=SMOOTHEST,
            step=0.01,
            tooltip="Average the batches: 0.9 is over about ten points of the curve",
            style=wide,
            layout={"width": "280px"},
        )
        self.log = ipywidgets.Checkbox(
            description="log scale",
            indent=False,
            tooltip="Equal distances are equal factors",
            layout={"width": "100px"},
        )
        self.detail = ipywidgets.ToggleButtons(
            options=["batches and epochs", "batches", "epochs"],
            tooltips=["Both", "Each batch", "The mean of each epoch"],
            style={"button_width": "auto"},
        )
        self.links = [
            ipywidgets.jsdlink((self.smoothing, "value"), (chart, "smoothing")),
            ipywidgets.jsdlink((self.log, "value"), (chart, "log")),
            ipywidgets.jsdlink((self.detail, "index"), (chart, "detail")),
        ]
        run = (self.stop, self.pause, self.save)
        buttons = (*run, self.norms, self.compare, self.export)
        self.box = ipywidgets.VBox(
            [
                row(*buttons, self.note),
                row(self.smoothing, self.log, self.detail),
            ]
        )

    def show_state(self, state: str) -> None:
        """Pause becomes Resume, Stop becomes Stopping."""
        paused = state == "paused"
        self.pause.description = "Resume" if paused else "Pause"
        self.pause.icon = "play" if paused else "pause"
        if state == "stopping":
            self.stop.description = "Stopping"
            for button in (self.stop, self.pause, self.save):
                button.disabled = True

    def show_waiting(self, waiting: bool) -> None:
        """Say whether a checkpoint is still to come."""
        self.save.description = "Saving at epoch end" if waiting else "Save checkpoint"

    def show_norms(self, shown: bool) -> None:
        """The button says what it will do."""
        self.norms.description = "Hide norms" if shown else "Show norms"

    def close(self) -> None:
        """Free the links; the widgets go with the box that holds them."""
        for link in self.links:
            link.close()

    def free(self) -> None:
        """Free everything."""
        self.close()
        close_all(self.box)


def _button(text: str, icon: str, tooltip: str) -> Any:
    return ipywidgets.Button(
        description=text, icon=icon, tooltip=tooltip, layout={"width": "auto"}
    )
