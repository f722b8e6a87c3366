"""Building blocks · Learner. The dashboards of this kernel, found again by name.

A chart stays alive when its run has ended. So that a long session does not fill up,
only the newest few do.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from burnbook.errors import TrainingError
from burnbook.train import live_runs
from burnbook_widgets.training.ending import count_text

if TYPE_CHECKING:
    from burnbook_widgets.training.board import Dashboard

ENDED = 8  # charts of runs that have ended and stay alive
PATIENCE = 3.0  # seconds for a training that has just been started to show itself
_boards: list[Dashboard] = []
_changing = threading.RLock()


def note(board: Dashboard) -> None:
    """There is one more; the oldest of those that have ended become pictures."""
    with _changing:
        ended = [each for each in _boards if each.state == "finished"]
        _boards.append(board)
    for each in ended[: max(0, len(ended) - ENDED + 1)]:
        each.close()


def forget(board: Dashboard) -> None:
    """One is closed."""
    with _changing:
        if board in _boards:
            _boards.remove(board)


class Boards(list["Dashboard"]):
    """Dashboards; the last line of a cell shows them all."""

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not self:
            print("No training has been shown in this kernel yet.")
        for board in self:
            display(board)

    def __repr__(self) -> str:
        names = ", ".join(f"{board.name} ({board.state})" for board in self)
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
        found = Boards(_boards)
    if name is None:
        return found
    named = [board for board in found if board.name == name]
    if not named:
        known = ", ".join(board.name for board in found) or "none"
        number = count_text(len(found), "dashboard")
        facts = [(number, known)]
        raise TrainingError("live", f"no run here has the name {name!r}", facts)
    return named[-1]
