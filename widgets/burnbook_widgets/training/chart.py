"""Building blocks · Learner. The live chart as a widget: traits here, pixels in js/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets

from burnbook_widgets.page import script, sheet
from burnbook_widgets.training.curves import Curves, thin
from burnbook_widgets.training.others import OtherRun, pack_runs
from burnbook_widgets.training.still import x_range

PARTS = ("chart_page", "chart_series", "chart_axes", "chart_norms", "chart")


class Chart(anywidget.AnyWidget):
    """Curves of train and valid per metric, progress above, read-out under the mouse.

    smoothing, log, detail (a place in look.DETAIL), zoom ([from, to] in epochs, or [])
    and shown (places of other runs) are set by either side.

    Why: everything a page needs to draw itself anew is in the traits, so a reloaded
    page shows the run as it stands; the curves are float32 and stay under 50 kB. What
    one sets on the page is drawn there at once, even while a cell keeps the kernel.
    """

    _esm = script(*PARTS)
    _css = sheet("chart")

    panels = traitlets.List(traitlets.Dict()).tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)
    smoothing = traitlets.Float(0.0).tag(sync=True)
    log = traitlets.Bool(False).tag(sync=True)
    detail = traitlets.Int(0).tag(sync=True)
    zoom = traitlets.List(traitlets.Float()).tag(sync=True)
    runs = traitlets.Dict().tag(sync=True)
    runs_data = traitlets.Bytes().tag(sync=True)
    shown = traitlets.List(traitlets.Int()).tag(sync=True)
    norms = traitlets.Dict().tag(sync=True)
    norms_data = traitlets.Bytes().tag(sync=True)

    def __init__(
        self, metrics: Sequence[str] = (), units: Mapping[str, str] | None = None
    ):
        units = units or {}
        super().__init__(
            panels=[{"name": name, "unit": units.get(name, "")} for name in metrics]
        )

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


def pack(curves: Curves, most: int = 512) -> tuple[dict[str, Any], bytes]:
    """Lay all series end to end as float32 rows; a list says which is which."""
    parts, tables = [], []
    for metric, split, kind, table in curves.series():
        if len(table):
            table = thin(table, most)
            parts.append([curves.metrics.index(metric), split, kind, len(table)])
            tables.append(table)
    rows = np.concatenate(tables) if tables else np.empty((0, 4))
    low, high = x_range(curves)
    frame = {"parts": parts, "span": [float(low), float(high)]}
    return frame, rows.astype("<f4").tobytes()
