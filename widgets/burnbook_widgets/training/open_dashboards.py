"""The dashboards of this kernel, found again by name.

A chart stays alive when its run has ended. So that a long session does not fill up,
only the newest few do.
"""

from __future__ import annotations

import threading
import time
from typing import Any, Protocol

from burnbook.core.errors import TrainingError
from burnbook.train import live_runs
from burnbook_widgets.training.report import count_text

ENDED = 8  # charts of runs that have ended and stay alive
PATIENCE = 3.0  # seconds for a training that has just been started to show itself
_changing = threading.RLock()


class OpenDashboard(Protocol):
    """What is asked here of a dashboard."""

    name: str
    state: str

    def close(self) -> None:
        """Free its widgets; its picture stays."""
        ...


_dashboards: list[OpenDashboard] = []


def add(dashboard: OpenDashboard) -> None:
    """There is one more; the oldest of those that have ended become pictures."""
    with _changing:
        ended = [each for each in _dashboards if each.state == "finished"]
        _dashboards.append(dashboard)
    for each in ended[: max(0, len(ended) - ENDED + 1)]:
        each.close()


def remove(dashboard: OpenDashboard) -> None:
    """One is closed."""
    with _changing:
        if dashboard in _dashboards:
            _dashboards.remove(dashboard)


class OpenDashboards(list[OpenDashboard]):
    """Dashboards; the last line of a cell shows them all."""

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not self:
            print("No training has been shown in this kernel yet.")
        for dashboard in self:
            display(dashboard)

    def __repr__(self) -> str:
        names = ", ".join(f"{dashboard.name} ({dashboard.state})" for dashboard in self)
        return f"[{names}]"


def _opens(run: Any) -> bool:
    """Whether a training that runs is about to open its dashboard."""
    renderer = run.renderer
    return not run.done and (
        renderer is None or getattr(renderer, "dashboard", renderer) is None
    )


def live(name: str | None = None) -> Any:
    """The dashboards of this kernel: those that train and the newest that have ended.

    In the last line of a cell they are shown there, which brings back what a page has
    lost that was loaded anew. With the name of a run: its newest dashboard, to stop,
    look at or export it. A name that no run has raises TrainingError.

    Example:
        >>> live()
        []
    """
    ends = time.monotonic() + PATIENCE
    while any(map(_opens, live_runs().values())) and time.monotonic() < ends:
        time.sleep(0.05)
    with _changing:
        found = OpenDashboards(_dashboards)
    if name is None:
        return found
    named = [dashboard for dashboard in found if dashboard.name == name]
    if not named:
        known = ", ".join(dashboard.name for dashboard in found) or "none"
        number = count_text(len(found), "dashboard")
        facts = [(number, known)]
        raise TrainingError("live", f"no run here has the name {name!r}", facts)
    return named[-1]
