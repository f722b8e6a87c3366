"""The live side of a tensor view: controls around one canvas.

The view holds what is true; the panel mirrors it to the page and tells it what was
clicked. A fault of a callback becomes a line on the page, never a lost one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, Protocol

import anywidget
import ipywidgets
import numpy as np
import traitlets

from burnbook.tensor.display import PrintOptions
from burnbook_widgets.page import script, sheet
from burnbook_widgets.tensor.numbers import (
    COLORS,
    FAR,
    INF,
    MINUS_INF,
    NAN,
    SCALES,
    Curve,
    Facts,
    Plane,
    facts_of,
)
from burnbook_widgets.view import close_all, row

MARKS = (("NaN", NAN), ("inf", INF), ("-inf", MINUS_INF), ("far outside", FAR))
SHORTEST = -1  # a list of choices takes None for no choice at all
MOST_NUMBERS = 400  # cells that may have their number written into them
PRE = "max-height:22em;overflow:auto;margin:4px 0;line-height:1.35"


class ShownTensor(Protocol):
    """What the panel reads of a tensor view, and what it sets."""

    array: np.ndarray
    matrix: np.ndarray  # the plane, rows and columns as they are shown
    shown: np.ndarray  # the part of it that is in sight
    plane: Plane
    facts: Facts
    bars: np.ndarray  # of the histogram: the tensor's and the plane's own
    plane_bars: np.ndarray
    edges: np.ndarray
    every: int

    # Any, as these take more than they give: any sequence, some of the dims.
    dims: Any
    index: Any
    print_options: Any

    @property
    def cell(self) -> tuple[int, int] | None:
        """Row and column of the element that is read."""
        ...

    @property
    def colors(self) -> str:
        """One of COLORS."""
        ...

    @property
    def scale(self) -> str:
        """One of SCALES."""
        ...

    @property
    def rgb(self) -> bool:
        """Whether three planes are shown as one picture in color."""
        ...

    @property
    def own_range(self) -> bool:
        """Whether colors span the range of this plane alone."""
        ...

    @property
    def can_be_rgb(self) -> bool:
        """Whether three planes can be one picture in color."""
        ...

    @property
    def reading(self) -> str:
        """The element at `cell`, in words."""
        ...

    def zoom(self, factor: float, at: Sequence[int] | None = None) -> None:
        """Show a part that is so many times smaller."""
        ...

    def block(self, row: int, column: int) -> tuple[slice, slice]:
        """The rows and columns that share a cell with this element."""
        ...

    def frame(self, plane: Plane) -> dict[str, Any]:
        """What is to be known of a plane besides its cells."""
        ...

    def codes(self, plane: Plane) -> np.ndarray:
        """The colors of a plane's cells."""
        ...

    def marks(self, plane: Plane) -> np.ndarray:
        """What cells are marked with."""
        ...

    def pixels(self) -> np.ndarray:
        """What is shown as red, green and blue."""
        ...

    def curve(self) -> Curve:
        """What is shown of a tensor of rank 1, as a line."""
        ...

    def bar_ends(self) -> list[str]:
        """What stands at both ends of the histogram."""
        ...

    def table(self) -> list[tuple[str, ...]]:
        """Statistics under headings."""
        ...

    def head(self) -> str:
        """Kind, shape, element type and backend, on one line."""
        ...

    def shown_text(self) -> tuple[str, str]:
        """What print writes, as far as a page holds it, and a line about its size."""
        ...

    def use_everywhere(self) -> None:
        """Print every tensor with these options from now on."""
        ...

    def reset_print_options(self) -> None:
        """Go back to the options that burnbook starts with."""
        ...


class TensorPlane(anywidget.AnyWidget):
    """A plane of cells with its histogram, statistics and the reading of one cell."""

    _esm = script("tensor")
    _css = sheet("tensor")

    frame = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)  # int8 colors, then uint8 marks; or RGB
    curve = traitlets.Bytes().tag(sync=True)  # float32: means, least, largest
    cell = traitlets.List(traitlets.Int()).tag(sync=True)
    reading = traitlets.Dict().tag(sync=True)
    trouble = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return "TensorPlane({} × {})".format(*self.frame.get("shape", (0, 0)))


class TensorPanel:
    """Controls, plane and text of one view."""

    def __init__(self, view: ShownTensor):
        self.view = view
        self.turn = 0
        self._mirroring = False
        self.plane = TensorPlane()
        self.plane.observe(self._cell_from_page, "cell")
        self.plane.on_msg(self._told)
        self._make_choices()
        self._make_sliders()
        self._make_knobs()
        knobs = [self.precision, self.threshold, self.edge_items]
        buttons = [self.everywhere, self.reset]
        self.box = ipywidgets.VBox(
            [
                row(*self.choices),
                *self.sliders.values(),
                self.plane,
                row(*knobs, *buttons),
                self.text,
            ]
        )
        self.show()
        self.show_text()

    def _make_choices(self) -> None:
        shape = self.view.array.shape
        names = [(f"dim {dim} (size {size})", dim) for dim, size in enumerate(shape)]
        self.rows = _dropdown("Rows", names, "The dim shown from top to bottom")
        self.columns = _dropdown("Columns", names, "The dim shown from left to right")
        self.columns.value = len(shape) - 1
        self.colors = _dropdown(
            "Colors",
            COLORS,
            "Around 0: blue above, orange below. Low to high: pale to deep.",
        )
        self.own_range = _checkbox(
            "range of this plane only",
            "Deepest color for the largest value of the plane, not the tensor",
        )
        two = [self.rows, self.columns] if len(shape) > 1 else []
        self.spare = [] if two else [self.rows, self.columns]
        part = [self.own_range] if len(shape) > 2 else []
        self.spare += [] if part else [self.own_range]
        self.choices = [*two, self.colors, *part]
        self.rows.observe(lambda _: self._hear(self._rows_chosen), "value")
        self.columns.observe(lambda _: self._hear(self._columns_chosen), "value")
        self.scale = _dropdown(
            "Scale", SCALES, "What the colors and the histogram span", width="180px"
        )
        self.rgb = _checkbox("picture in color", "Three planes as red, green and blue")
        scales = [self.scale] if self.view.array.dtype.kind != "b" else []
        rgb = [self.rgb] if self.view.can_be_rgb else []
        self.spare += [] if scales else [self.scale]
        self.spare += [] if rgb else [self.rgb]
        self.choices = [*self.choices, *scales, *rgb]
        self._link(self.scale, "scale")
        self._link(self.rgb, "rgb")
        self._link(self.colors, "colors")
        self._link(self.own_range, "own_range")

    def _make_sliders(self) -> None:
        self.sliders: dict[int, ipywidgets.IntSlider] = {}
        shape = self.view.array.shape
        for dim, size in enumerate(shape):
            if len(shape) < 3:
                break
            slider = ipywidgets.IntSlider(
                max=max(0, size - 1),
                description=f"dim {dim}",
                disabled=size < 2,
                style={"description_width": "auto"},
                layout=ipywidgets.Layout(width="min(440px, 95%)"),
                tooltip=f"Which of the {size} planes along dim {dim}",
            )
            self.sliders[dim] = slider
            slider.observe(lambda _, d=dim: self._hear(self._slid, d), "value")

    def _make_knobs(self) -> None:
        style = {"description_width": "initial"}
        self.precision = ipywidgets.Dropdown(
            description="Precision",
            options=_precisions(SHORTEST),
            layout=ipywidgets.Layout(width="170px", margin="2px 14px 2px 2px"),
            tooltip="Decimals; shortest: as many as identify the number",
            style=style,
        )
        self.threshold = ipywidgets.BoundedIntText(
            description="Threshold",
            max=10**9,
            layout=ipywidgets.Layout(width="170px", margin="2px 14px 2px 2px"),
            tooltip="More elements than this are summarized",
            style=style,
        )
        self.edge_items = ipywidgets.IntSlider(
            description="Edge items",
            max=10,
            layout=ipywidgets.Layout(width="250px", margin="2px 14px 2px 2px"),
            tooltip="How many stay at both ends of a dim that is summarized",
            style=style,
        )
        self.everywhere = ipywidgets.Button(
            description="Use everywhere",
            tooltip="Print every tensor with these options from now on",
            layout=ipywidgets.Layout(width="auto"),
        )
        self.reset = ipywidgets.Button(
            description="Reset",
            tooltip="Go back to the options burnbook starts with",
            layout=ipywidgets.Layout(width="auto"),
        )
        self.text = ipywidgets.HTML()
        for knob in (self.precision, self.threshold, self.edge_items):
            knob.observe(lambda _: self._hear(self._knob_turned), "value")
        self.everywhere.on_click(lambda _: self._hear(self._everywhere))
        self.reset.on_click(lambda _: self._hear(self.view.reset_print_options))

    # ── from the page ───────────────────────────────────────────────────────

    def _hear(self, act: Callable[..., Any], *args: Any) -> None:
        """Do what was clicked; a fault is told on the page."""
        if self._mirroring:
            return
        try:
            act(*args)
        except Exception as fault:
            first = str(fault).partition("\n")[0]
            self.plane.trouble = f"{type(fault).__name__}: {first}"
        else:
            self.plane.trouble = ""

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A part was asked for: {do: "zoom", by, at} or {do: "part", part}."""
        view = self.view
        match message.get("do"):
            case "zoom":
                self._hear(view.zoom, float(message["by"]), message.get("at"))
            case "part":
                self._hear(setattr, view, "part", message.get("part"))
            case _:
                pass

    def _link(self, control: Any, name: str) -> None:
        """Let a control set the view's attribute of that name."""
        control.observe(
            lambda change: self._hear(setattr, self.view, name, change["new"]), "value"
        )

    def _rows_chosen(self) -> None:
        rows, columns = self.view.dims
        chosen = int(self.rows.value or 0)
        self.view.dims = (chosen, rows if chosen == columns else columns)

    def _columns_chosen(self) -> None:
        rows, columns = self.view.dims
        chosen = int(self.columns.value or 0)
        self.view.dims = (columns if chosen == rows else rows, chosen)

    def _slid(self, dim: int) -> None:
        self.view.index = {dim: self.sliders[dim].value}

    def _cell_from_page(self, change: Any) -> None:
        self._hear(setattr, self.view, "cell", change["new"])

    def _knob_turned(self) -> None:
        precision = self.precision.value
        self.view.print_options = PrintOptions(
            None if precision == SHORTEST else precision,
            self.threshold.value,
            self.edge_items.value,
        )

    def _everywhere(self) -> None:
        self.view.use_everywhere()
        self.show_text("From now on every tensor prints like this.")

    # ── to the page ─────────────────────────────────────────────────────────

    def _mirror(self, act: Callable[[], None]) -> None:
        """Set controls without taking it for a click."""
        self._mirroring = True
        try:
            act()
        finally:
            self._mirroring = False

    def show(self) -> None:
        """Send the plane and put the controls where the view stands."""
        view, plane = self.view, self.view.plane
        marks = view.marks(plane)
        self.turn += 1
        frame = {
            **view.frame(plane),
            "head": view.head(),
            "turn": self.turn,
            "table": [list(row) for row in view.table()],
            "bars": self._bars(),
            "texts": self._texts(),
            "marks": {name: int((marks & bit > 0).sum()) for name, bit in MARKS},
        }
        data = view.codes(plane).tobytes() + marks.tobytes()
        if view.rgb:
            data = view.pixels().tobytes()
        with self.plane.hold_sync():
            self.plane.data = data
            self.plane.curve = self._curve()
            self.plane.frame = frame
            self._mirror(self._mirror_choices)
            self.show_reading()

    def _mirror_choices(self) -> None:
        view = self.view
        if len(view.dims) == 2:
            self.rows.value, self.columns.value = view.dims
        self.colors.value, self.own_range.value = view.colors, view.own_range
        self.scale.value, self.rgb.value = view.scale, view.rgb
        for dim, slider in self.sliders.items():
            hidden = dim in view.dims
            slider.layout.display = "none" if hidden else None
            if not hidden:
                slider.value = view.index[dim]

    def _bars(self) -> dict[str, Any]:
        view, facts = self.view, self.view.facts
        if not facts.known:
            return {}
        own = view.plane_bars.tolist()
        return {
            "all": view.bars.tolist(),
            "own": [] if view.matrix.size == view.array.size else own,
            "ends": view.bar_ends(),
            "every": view.every,
        }

    def _curve(self) -> bytes:
        if len(self.view.dims) != 1 or not self.view.plane.mean.size:
            return b""
        line = self.view.curve()
        with np.errstate(over="ignore"):
            rows = np.stack([line.mean, line.least, line.most]).astype("<f4")
        return rows.tobytes()

    def _texts(self) -> list[str]:
        """Short numbers to write into cells that have room for them."""
        plane = self.view.plane
        if not plane.whole or plane.mean.size > MOST_NUMBERS:
            return []
        if self.view.rgb:
            return []
        values = self.view.shown.ravel().tolist()
        return [_label(value) for value in values]

    def show_reading(self) -> None:
        """Send what the cell reads, and where it lies in the histogram."""
        view, cell = self.view, self.view.cell
        place: float | None = None
        if cell is not None:
            facts = facts_of(view.matrix[view.block(*cell)])
            place = self._share(facts.mean) if facts.known else None
        reading = {"cell": list(cell or ()), "text": view.reading, "at": place}

        def act() -> None:
            with self.plane.hold_sync():
                self.plane.cell = list(cell or ())
                self.plane.reading = reading

        self._mirror(act)

    def _share(self, value: float) -> float:
        """How far along the histogram a value lies, from 0 to 1."""
        edges = np.asarray(self.view.edges, dtype=float)
        place = int(np.clip(np.searchsorted(edges, value) - 1, 0, len(edges) - 2))
        first, last = edges[place] / 2, edges[place + 1] / 2
        part = (value / 2 - first) / ((last - first) or 1.0)
        share = (place + part) / (len(edges) - 1)
        return round(min(max(float(share), 0.0), 1.0), 4)

    def show_text(self, said: str = "") -> None:
        """Send the book's text, and put the knobs where the options stand."""
        self._mirror(self._mirror_knobs)
        text, told = self.view.shown_text()
        told = f"{told}. {said}" if said else told
        self.text.value = (
            f'<div role="status">{escape(told)}</div><pre tabindex="0" role="group" '
            f'aria-label="the tensor as print shows it" style="{PRE}">'
            f"{escape(text)}</pre>"
        )

    def _mirror_knobs(self) -> None:
        options = self.view.print_options
        precision = SHORTEST if options.precision is None else options.precision
        if precision not in dict(self.precision.options).values():
            self.precision.options = _precisions(precision)
        self.edge_items.max = max(10, self.edge_items.max, options.edge_items)
        self.precision.value = precision
        self.threshold.value = options.threshold
        self.edge_items.value = options.edge_items

    def close(self) -> None:
        """Free the controls that this tensor had no use for."""
        for control in self.spare:
            close_all(control)


def _dropdown(
    name: str, options: Sequence[Any], tooltip: str, width: str = "210px"
) -> ipywidgets.Dropdown:
    """A list of choices with its name before it; the first one is chosen."""
    return ipywidgets.Dropdown(
        options=options,
        description=name,
        layout=ipywidgets.Layout(width=width),
        style={"description_width": "auto"},
        tooltip=tooltip,
    )


def _checkbox(name: str, tooltip: str) -> ipywidgets.Checkbox:
    """A box to tick, unticked at first."""
    return ipywidgets.Checkbox(
        description=name,
        indent=False,
        layout=ipywidgets.Layout(width="auto", margin="2px 12px"),
        tooltip=tooltip,
    )


def _label(value: bool | int | float) -> str:
    """A value in at most eight characters."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and abs(value) < 1_000_000:
        return str(value)
    return f"{value + 0:.3g}"


def _precisions(also: int) -> list[tuple[str, int]]:
    """What the precision may be: the shortest, or a number of decimals."""
    decimals = sorted({*range(11), also} - {SHORTEST})
    return [("shortest", SHORTEST), *((str(count), count) for count in decimals)]
