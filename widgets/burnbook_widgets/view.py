"""What the views to explore with have in common.

A view is ipywidgets around one panel of ours. It shows itself live, leaves its still
form when it is closed, and tells a fault in its own panel instead of losing it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

import anywidget
import ipywidgets

from burnbook_widgets import cells
from burnbook_widgets.page import script_alone
from burnbook_widgets.picture_file import page, write
from burnbook_widgets.saving import MARK


class Names(anywidget.AnyWidget):
    """Put beside sliders, it gives them the names that screen readers tell.

    Why: a slider of ipywidgets has a label that is nothing but text beside it.
    """

    _esm = script_alone("names")

    def __init__(self) -> None:
        super().__init__(layout={"display": "none"})

    def __repr__(self) -> str:
        return "Names()"


class View:
    """A box of widgets with a still form; subclasses give `still()` and `_build()`.

    Why: with BURNBOOK_DISPLAY=static nothing live is made, so that pages are equal
    each time they are built.
    """

    box: ipywidgets.VBox | None = None
    panel: Any = None

    def __init__(self) -> None:
        self._places: list[Any] = []
        self.cells: dict[str, str] = {}  # those that made or show it, and in which run
        self._static = os.environ.get("BURNBOOK_DISPLAY") == "static"

    def open(self) -> None:
        """Make the widgets, unless pages are to be static."""
        if not self._static and self.box is None:
            self.box = box = self._build()
            box.children = (*box.children, Names())
            cells.remember(self)
            self._show()

    def still(self) -> str:
        """The view as HTML without JavaScript."""
        raise TypeError(f"{type(self).__name__} has no still form")

    def save(self, path: str | PathLike[str]) -> Any:
        """Write the still form as a page of its own, .html, and return its path.

        Raises:
            ConfigError: the path ends otherwise, or the file cannot be written.
        """
        return write(self, path, {".html": lambda: page(repr(self), self.still())})

    def _build(self) -> ipywidgets.VBox:
        raise TypeError(f"{type(self).__name__} has no widgets")

    def _show(self) -> None:
        """Bring the widgets to the state of the view."""

    def act(self, do: Callable[..., Any]) -> Callable[..., None]:
        """A callback that shows what goes wrong in the panel, in one line."""

        def run(*args: Any) -> None:
            try:
                do(*args)
                self.say_fault("")
            except Exception as fault:
                self.say_fault(in_short(fault))

        return run

    def say_fault(self, text: str) -> None:
        """Show a line about what went wrong; an empty one takes it away."""
        if self.panel is not None and self.panel.fault != text:
            self.panel.fault = text

    def bundle(self) -> dict[str, Any]:
        """What a page gets: the widget while there is one, the still form beside it."""
        live = {} if self.box is None else live_form(self.box)
        return {**live, "text/html": self.still(), "text/plain": repr(self)}

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return self.bundle()

    def _ipython_display_(self) -> None:
        from IPython.display import DisplayHandle, display

        if self.box is None:
            display(self.bundle(), raw=True)
            return
        cells.remember(self)
        place = DisplayHandle()
        place.display(self.bundle(), raw=True, metadata=dict(MARK))
        self._places.append(place)

    def close(self) -> None:
        """Free the widgets; where the view was shown its still form stays.

        The view of a cell that runs again is closed by itself, once no other cell
        shows it.
        """
        cells.forget(self)
        box, self.box = self.box, None
        if box is None:
            return
        for place in self._places:
            place.update(self.bundle(), raw=True)
        self._places.clear()
        self.panel = None
        close_all(box)


def in_short(fault: BaseException) -> str:
    """What is wrong and what to try, in one line; the facts are left out."""
    first, *rest = (str(fault) or type(fault).__name__).splitlines()
    cures = [line.strip() for line in rest if line.lstrip().startswith("try: ")]
    return " · ".join([first, *cures])


def live_form(box: ipywidgets.DOMWidget) -> dict[str, Any]:
    """What a page needs to show a widget."""
    found: Any = box._repr_mimebundle_()
    return dict(found[0] if isinstance(found, tuple) else found)


def close_all(widget: Any) -> None:
    """Close a widget with what it brought: children, layout, style."""
    brought: list[Any] = [getattr(widget, "style", None), widget.layout]
    for child in getattr(widget, "children", ()):
        close_all(child)
    if isinstance(widget, ipywidgets.Button):
        widget._click_handlers.callbacks.clear()
    widget.unobserve_all()
    for part in brought:
        if part is not None:
            part.close()
    widget.close()


def row(*widgets: Any) -> ipywidgets.HBox:
    """Controls side by side, in as many lines as the page needs."""
    layout = ipywidgets.Layout(
        flex_flow="row wrap", align_items="center", grid_gap="0 8px"
    )
    return ipywidgets.HBox(widgets, layout=layout)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str = "") -> str:
    """A still table of cells that are HTML already; its first column names rows."""
    cell = 'style="text-align:left;padding:2px 12px 2px 0"'
    top = "".join(f'<th scope="col" {cell}>{name}</th>' for name in head)
    body = "".join(
        f'<tr><th scope="row" {cell}>{first}</th>'
        + "".join(f"<td {cell}>{part}</td>" for part in rest)
        + "</tr>\n"
        for first, *rest in rows
    )
    title = (
        f'<caption style="text-align:left;font-weight:600;padding:6px 0 2px">{caption}'
        "</caption>\n"
        if caption
        else ""
    )
    return (
        f'<table style="border-collapse:collapse">\n{title}<thead><tr>{top}</tr>'
        f"</thead>\n<tbody>\n{body}</tbody>\n</table>"
    )


def figure(value: float) -> str:
    """A number with four significant digits."""
    return "NaN" if value != value else f"{value:.4g}"
