"""Which cells made and showed a view: one whose cells have all run again is closed.

Why: ipywidgets keeps every widget, and what it holds, until it is closed. A cell that
runs again takes its output from the page, but nothing tells the kernel; a tensor of
4 MB in a view cost 9 MB a run.
"""

from __future__ import annotations

from typing import Any, Protocol


class Shown(Protocol):
    """What a cell may make or show: a view."""

    cells: dict[str, str]

    def close(self) -> None:
        """Free what it holds."""


_views: list[Shown] = []  # what some cell made or shows, and nobody has closed
_shells: list[Any] = []  # those that tell when a cell has run


def remember(view: Shown) -> None:
    """Note that the cell that runs now made or shows the view."""
    cell = _running()
    if cell is None:
        return
    name, run = cell
    view.cells[name] = run
    if view not in _views:
        _views.append(view)


def forget(view: Shown) -> None:
    """The view was closed."""
    view.cells.clear()
    if view in _views:
        _views.remove(view)


def _running() -> tuple[str, str] | None:
    """The cell that runs and this run of it, each by a name; None where there is none.

    A front end that does not name its cells is one whose cells are their text.
    """
    shell = _shell()
    parent: Any = getattr(shell, "get_parent", dict)() or {}
    code = parent.get("content", {}).get("code")
    if code is None:  # a click, or no kernel
        return None
    if shell not in _shells:
        _shells.append(shell)
        shell.events.register("post_run_cell", _ended)
    name = parent.get("metadata", {}).get("cellId") or code
    return name, parent.get("header", {}).get("msg_id", "")


def _ended(_: Any) -> None:
    """A cell has run: what only its earlier runs made or showed is closed."""
    cell = _running()
    if cell is None:
        return
    name, run = cell
    for view in list(_views):
        if view.cells.get(name, run) != run:
            del view.cells[name]
            if not view.cells:
                view.close()


def _shell() -> Any:
    import sys

    if "IPython" not in sys.modules:
        return None
    from IPython.core.getipython import get_ipython

    return get_ipython()
