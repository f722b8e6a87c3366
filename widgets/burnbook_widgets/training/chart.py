"""Building blocks · Learner. The live chart as a widget: traits here, pixels in js/."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anywidget
import numpy as np
import traitlets

from burnbook_widgets.page import script, sheet
from burnbook_widgets.training.curves import Curves
from burnbook_widgets.training.still import thin, x_range


class Chart(anywidget.AnyWidget):
    """Curves of train and valid per metric, progress above, read-out under the mouse.

    Why: everything a page needs to draw itself anew is in the traits, so a reloaded
    page shows the run as it stands; the curves are float32 and stay under 50 kB.
    """

    _esm = script("chart")
    _css = sheet("chart")

    panels = traitlets.List(traitlets.Dict()).tag(sync=True)
    frame = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)
    status = traitlets.Dict().tag(sync=True)

    def __init__(
        self, metrics: Sequence[str] = (), units: Mapping[str, str] | None = None
    ):
        units = units or {}
        super().__init__(
            panels=[{"name": name, "unit": units.get(name, "")} for name in metrics]
        )

    def show(self, curves: Curves, status: Mapping[str, object]) -> None:
        """Send the curves and the progress as one message."""
        frame, data = pack(curves)
        with self.hold_sync():
            self.data = data
            self.frame = {**frame, "turn": int(self.frame.get("turn", 0)) + 1}
            self.status = dict(status)

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
