"""The live chart as a widget: traits here, pixels in js/."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets
from ipywidgets import __protocol_version__

from burnbook_widgets.page import script, sheet
from burnbook_widgets.training.curves import SPLITS, Curves, thin
from burnbook_widgets.training.other_runs import OtherRun, pack_runs
from burnbook_widgets.training.still import x_range

PARTS = ("chart_page", "chart_series", "chart_axes", "chart_norms", "chart")


class Chart(anywidget.AnyWidget):
    """Curves of train and valid per metric, progress above, read-out under the mouse.

    smoothing, log, detail and axis (places in chart_options' DETAIL and AXES), splits,
    zoom ([from, to] in epochs, or []) and shown (places of other runs) are set by
    either side.

    Why: everything a page needs to draw itself anew is in the traits, so a reloaded
    page shows the run as it stands; the curves are float32 and stay under 50 kB. What
    one sets on the page is drawn there at once, even while a cell keeps the kernel.
    """

    _esm = script(*PARTS, "chart_alone")
    _css = sheet("chart")

    panels = traitlets.List(traitlets.Dict()).tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)
    smoothing = traitlets.Float(0.0).tag(sync=True)
    log = traitlets.Bool(False).tag(sync=True)
    detail = traitlets.Int(0).tag(sync=True)
    axis = traitlets.Int(0).tag(sync=True)
    splits = traitlets.List(traitlets.Unicode(), list(SPLITS)).tag(sync=True)
    zoom = traitlets.List(traitlets.Float()).tag(sync=True)
    runs = traitlets.Dict().tag(sync=True)
    runs_data = traitlets.Bytes().tag(sync=True)
    shown = traitlets.List(traitlets.Int()).tag(sync=True)
    norms = traitlets.Dict().tag(sync=True)
    norms_data = traitlets.Bytes().tag(sync=True)

    def __init__(
        self,
        metrics: Sequence[str] = (),
        units: Mapping[str, str] | None = None,
        **traits: Any,
    ):
        units = units or {}
        panels = [{"name": name, "unit": units.get(name, "")} for name in metrics]
        super().__init__(panels=panels, **traits)

    def show(self, curves: Curves, status: Mapping[str, object]) -> None:
        """Send the curves and the progress as one message."""
        frame, data = pack(curves, 1024 // max(2, len(self.panels)))
        with self.hold_sync():
            self.data = data
            self.frame = {**frame, "turn": int(self.frame.get("turn", 0)) + 1}
            self.status = dict(status)

    def show_runs(self, others: Sequence[OtherRun], shown: Sequence[int]) -> None:
        """Send the curves of other runs, and which of them are to be seen."""
        parts, data = pack_runs(others, [panel["name"] for panel in self.panels])
        with self.hold_sync():
            self.runs_data = data
            self.shown = list(shown)
            self.runs = {"names": [other.name for other in others], "parts": parts}

    def __repr__(self) -> str:
        names = ", ".join(panel["name"] for panel in self.panels)
        return f"Chart({names})"


class Panel(Chart):
    """The chart of one training with its controls, its table and its end.

    about: what does not change: "key" (which panel this is, for pages that find it
    again), "name", "note" (whether buttons are live), "saves", "cell" (of the notebook)
    and its "cell_run", and "view" (the id of this widget). heard: the newest clicks
    that have arrived. report: the line and the table below the curves, as HTML. ending:
    what a saved page holds of a run that has ended. fine: where every batch is known,
    not only buckets.
    """

    _esm = script(*PARTS, "chart_controls", "chart_panel")

    about = traitlets.Dict().tag(sync=True)
    heard = traitlets.List(traitlets.Unicode()).tag(sync=True)
    report = traitlets.Unicode().tag(sync=True)
    ending = traitlets.Dict().tag(sync=True)
    fine: Any = traitlets.Dict().tag(sync=True)
    fine_data = traitlets.Bytes().tag(sync=True)

    def __init__(
        self,
        metrics: Sequence[str],
        units: Mapping[str, str],
        about: Mapping[str, Any],
    ):
        key = secrets.token_hex(8)
        super().__init__(metrics, units, about={**about, "key": key})
        self.about = {**self.about, "view": self.model_id}

    @property
    def key(self) -> str:
        """Which panel this is; outputs on the page carry it."""
        return str(self.about["key"])

    def hear(self, click: str) -> None:
        """Tell the page that a click has arrived."""
        self.heard = [*self.heard[-7:], click]

    def show_fine(
        self, span: tuple[float, float], tables: Mapping[str, np.ndarray]
    ) -> None:
        """Send every batch of a span of epochs; metrics that have none are left out."""
        places = {panel["name"]: place for place, panel in enumerate(self.panels)}
        found = {name: table for name, table in tables.items() if len(table)}
        rows = np.concatenate([*found.values(), np.empty((0, 6))])
        with self.hold_sync():
            self.fine_data = rows.astype("<f4").tobytes()
            self.fine = {
                "span": list(span),
                "parts": [[places[name], len(table)] for name, table in found.items()],
                "turn": int(self.fine.get("turn", 0)) + 1,
            }

    def open_again(self) -> None:
        """Tell pages that came later of this widget, as if it were made now.

        Why: a page asks for the widgets that there are when it is loaded; a kernel that
        is busy with a cell does not answer, but what it publishes reaches the page.
        """
        layout = self.layout
        for widget in (layout, self):
            if widget is not None and widget.comm is not None:
                state = widget.get_state()
                bytes_of = {k: v for k, v in state.items() if isinstance(v, bytes)}
                widget.comm.open(
                    data={
                        "state": {k: v for k, v in state.items() if k not in bytes_of},
                        "buffer_paths": [[name] for name in bytes_of],
                    },
                    buffers=list(bytes_of.values()),
                    metadata={"version": __protocol_version__},
                )

    def __repr__(self) -> str:
        return f"Panel({self.about.get('name', '')})"


def pack(curves: Curves, most: int = 512) -> tuple[dict[str, Any], bytes]:
    """Lay all series end to end as float32 rows; a list says which is which."""
    parts, tables = [], []
    for metric, split, kind, table in curves.series():
        if len(table):
            table = thin(table, most)
            parts.append([curves.metrics.index(metric), split, kind, len(table)])
            tables.append(table)
    rows = np.concatenate(tables) if tables else np.empty((0, 6))
    low, high = x_range(curves)
    frame = {"parts": parts, "span": [float(low), float(high)]}
    return frame, rows.astype("<f4").tobytes()
