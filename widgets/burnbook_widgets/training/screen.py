"""Places on the page whose content can be exchanged later.

Why: the run of a notebook cell ends long before a background training does, and the
thread that trains is not the thread that runs cells. A place remembers the cell it
belongs to, so what a thread shows lands there and not under the newest cell.
"""

from __future__ import annotations

import contextvars
import sys
from collections.abc import Mapping
from typing import Any, Protocol

Bundle = Mapping[str, Any]


class Place(Protocol):
    """An output on the page."""

    def replace(self, bundle: Bundle, metadata: Bundle | None = None) -> None:
        """Show this instead."""
        ...


class Screen(Protocol):
    """Somewhere to show things."""

    def put(self, bundle: Bundle, metadata: Bundle | None = None) -> Place:
        """Show a bundle of mime types that can be replaced."""
        ...

    def show(self, bundle: Bundle, metadata: Bundle | None = None) -> None:
        """Show a bundle of mime types for good."""
        ...


class NotebookScreen:
    """The output area of the cell that is running now."""

    def __init__(self) -> None:
        self._context = contextvars.copy_context()
        self.cell, self.cell_run = running_cell(), cell_run()

    def put(self, bundle: Bundle, metadata: Bundle | None = None) -> Place:
        """Show a bundle of mime types below the cell."""
        from IPython.display import DisplayHandle

        handle = DisplayHandle()
        self.run(handle.display, bundle, metadata)
        return NotebookPlace(self, handle)

    def show(self, bundle: Bundle, metadata: Bundle | None = None) -> None:
        """Show a bundle for good: without a display id, as static pages like it."""
        from IPython.display import display

        self.run(display, bundle, metadata)

    def run(self, act: Any, bundle: Bundle, metadata: Bundle | None = None) -> None:
        """Show something as if the cell we belong to had done it."""
        extra = {"metadata": dict(metadata)} if metadata else {}
        self._context.copy().run(act, dict(bundle), raw=True, **extra)


def running_cell() -> str:
    """The id of the notebook's cell that runs now; "" where nobody says it."""
    return str(_parent("metadata").get("cellId", ""))


def cell_run() -> str:
    """The id of this run of the cell, another one each time; "" outside a notebook."""
    return str(_parent("header").get("msg_id", ""))


def _parent(part: str) -> dict[str, Any]:
    """A part of the message that asked for what runs now."""
    try:
        return dict(
            sys.modules["IPython"].get_ipython().kernel.get_parent("shell")[part]
        )
    except Exception:  # no notebook, or another kernel
        return {}


class NotebookPlace:
    """One output with a display id."""

    def __init__(self, screen: NotebookScreen, handle: Any):
        self._screen, self._handle = screen, handle

    def replace(self, bundle: Bundle, metadata: Bundle | None = None) -> None:
        """Show this instead of what was there."""
        self._screen.run(self._handle.update, bundle, metadata)
