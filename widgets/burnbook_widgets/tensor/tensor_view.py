"""Building blocks · Tensor. The tensor view: any two dims as a picture, numbers beside.

Two dims are shown and the others are slid; a cell is read under the pointer or by arrow
keys; the knobs of PrintOptions change the book's text below. Whatever can be clicked on
the page can be set from Python.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from burnbook.display import (
    PrintOptions,
    get_print_options,
    number_text,
    set_print_options,
)
from burnbook.errors import ConfigError, DimError, KindError
from burnbook.tensor import QuantizedTensor, Tensor
from burnbook_widgets.tensor import still as still_form
from burnbook_widgets.tensor.numbers import (
    COLORS,
    Facts,
    Plane,
    bars_of,
    cells,
    edges_of,
    facts_of,
    printed,
    short,
    span,
)
from burnbook_widgets.view import View

if TYPE_CHECKING:
    import ipywidgets

    from burnbook_widgets.tensor.panel import TensorPanel

STILL_CELLS, STILL_SIDE = 1600, 64
MOST_PRINTED = 20_000  # elements that a panel prints
MOST_LETTERS = 16_000


class TensorView(View):
    """Look at a tensor of any rank and kind; every control has a twin of its name.

    Example:
        view = TensorView(Tensor.random([8, 3, 28, 28]))
        view.dims = (1, 3)               # rows show dim 1, columns dim 3
        view.index = {0: 5, 2: 14}       # where the other dims stand
        view.colors = "low to high"      # or "around 0"
        view.own_range = True            # colours by the range of this plane only
        view.cell = (2, 7); view.reading # the element in row 2, column 7
        view.print_options = PrintOptions(precision=2); view.text
        view.use_everywhere()            # every tensor prints so from now on

    Why: a matrix of millions has fewer cells than elements; a cell then shows the mean
    of its block, and its reading says so.
    """

    def __init__(
        self,
        tensor: Tensor,
        dims: Sequence[int] | None = None,
        index: Mapping[int, int] | None = None,
        print_options: PrintOptions | None = None,
    ):
        super().__init__()
        if not isinstance(tensor, Tensor):
            name = type(tensor).__name__
            cure = "Tensor.from_data(...) makes one of an array or a list"
            raise KindError("TensorView", f"{name} is not a tensor", cure=cure)
        self.tensor = tensor
        plain = tensor.dequantize() if isinstance(tensor, QuantizedTensor) else tensor
        self.array: np.ndarray = plain.to_data().to_numpy()
        self.dtype = plain.dtype
        self.facts: Facts = facts_of(self.array)
        self._kind = self.array.dtype.kind
        self.edges = edges_of(self.facts.low, self.facts.high, self._kind)
        self.bars, self.every = bars_of(self.array, self.edges)
        self._at = [0] * self.array.ndim
        self._dims = tuple(range(self.array.ndim))[-2:]
        signed = self.facts.low < 0 and self._kind != "b"
        self._colors = COLORS[0] if signed else COLORS[1]
        self._own_range = False
        self._cell: tuple[int, int] | None = None
        self._options = print_options or get_print_options()
        if dims is not None:
            self.dims = dims
        if index is not None:
            self.index = index
        self._look()
        self.open()

    panel: TensorPanel | None = None

    # ── what is shown ───────────────────────────────────────────────────────

    @property
    def dims(self) -> tuple[int, ...]:
        """The dims in the rows and in the columns; only columns at rank 1."""
        return self._dims

    @dims.setter
    def dims(self, dims: Sequence[int]) -> None:
        rank, wanted = self.array.ndim, tuple(dims)
        count = min(rank, 2)
        if len(wanted) != count or not all(isinstance(d, int) for d in wanted):
            cure = f"{count} of 0 … {rank - 1}, as in dims = {self._dims}"
            raise DimError("TensorView", f"{wanted} are not {count} dims", cure=cure)
        for dim in wanted:
            if not -rank <= dim < rank:
                what = f"there is no dim {dim} in a tensor of rank {rank}"
                raise DimError("TensorView", what, cure=f"0 … {rank - 1}")
        found = tuple(dim % rank for dim in wanted)
        if len(set(found)) < count:
            what = f"dim {found[0]} cannot be both rows and columns"
            raise DimError("TensorView", what, cure="two different dims")
        if found != self._dims:
            self._dims, self._cell = found, None
            self._changed()

    @property
    def index(self) -> Mapping[int, int]:
        """Where the dims that are not shown stand; setting some keeps the others."""
        rest = (dim for dim in range(self.array.ndim) if dim not in self._dims)
        return MappingProxyType({dim: self._at[dim] for dim in rest})

    @index.setter
    def index(self, index: Mapping[int, int]) -> None:
        at = list(self._at)
        for dim, place in index.items():
            if dim not in self.index:
                what = f"dim {dim} has no index: shown are dims {self._dims}"
                cure = f"one of {list(self.index)}" if self.index else None
                raise DimError("TensorView", what, cure=cure)
            size = self.array.shape[dim]
            if not -size <= place < size:
                what = f"index {place} is outside dim {dim}, which has size {size}"
                raise DimError("TensorView", what, cure=f"0 … {size - 1}")
            at[dim] = place % size
        if at != self._at:
            self._at = at
            self._changed()

    @property
    def colors(self) -> str:
        """ "around 0": blue above, orange below; "low to high": pale to deep blue."""
        return self._colors

    @colors.setter
    def colors(self, colors: str) -> None:
        if colors not in COLORS:
            cure = " or ".join(f'"{name}"' for name in COLORS)
            raise ConfigError("TensorView", f"colors is {colors!r}", cure=cure)
        if colors != self._colors:
            self._colors = colors
            self._changed()

    @property
    def own_range(self) -> bool:
        """Whether colours span the range of this plane, or of the whole tensor.

        A plane whose cells stand for blocks spans their means either way.
        """
        return self._own_range

    @own_range.setter
    def own_range(self, own: bool) -> None:
        if bool(own) != self._own_range:
            self._own_range = bool(own)
            self._changed()

    @property
    def cell(self) -> tuple[int, int] | None:
        """Row and column of the element that is read, in the plane; None for none."""
        return self._cell

    @cell.setter
    def cell(self, cell: Sequence[int] | None) -> None:
        height, width = self.matrix.shape
        place = None if cell is None or not len(cell) else (int(cell[0]), int(cell[1]))
        if place and not (0 <= place[0] < height and 0 <= place[1] < width):
            what = f"cell {place} lies outside the plane of {height} × {width}"
            cure = f"rows 0 … {height - 1}, columns 0 … {width - 1}"
            raise DimError("TensorView", what, cure=cure if height * width else None)
        if place != self._cell:
            self._cell = place
            if self.panel is not None:
                self.panel.show_reading()

    # ── what is to be read ──────────────────────────────────────────────────

    def _changed(self) -> None:
        self._look()
        if self.panel is not None:
            self.panel.show()

    def _look(self) -> None:
        """Cut out the plane and count in it."""
        at: tuple[Any, ...] = tuple(
            slice(None) if dim in self._dims else place
            for dim, place in enumerate(self._at)
        )
        empty = any(self.array.shape[dim] == 0 for dim in self.index)
        if empty:
            sizes = tuple(self.array.shape[dim] for dim in sorted(self._dims))
            found = np.zeros(sizes, self.array.dtype)[:0]
        else:
            found = self.array[at]
        if len(self._dims) == 1:
            found = found[None]
        elif self._dims[0] > self._dims[1]:
            found = found.T
        self.matrix: np.ndarray = found
        all_shown = found.size == self.array.size
        self.plane_facts = self.facts if all_shown else facts_of(found)
        self.plane: Plane = cells(found)
        self.plane_bars = self.bars if all_shown else bars_of(found, self.edges)[0]

    def block(self, row: int, column: int) -> tuple[slice, slice]:
        """The rows and columns of the plane that share a cell with this element."""
        down, across = self.plane.step
        top, left = row // down * down, column // across * across
        return slice(top, top + down), slice(left, left + across)

    @property
    def reading(self) -> str:
        """The element at `cell`; of a cell that stands for many, what is in it."""
        if self._cell is None:
            return ""
        rows, columns = self.block(*self._cell)
        part = self.matrix[rows, columns]
        height, width = self.matrix.shape
        places = {dim: str(place) for dim, place in self.index.items()}
        ends = [span(columns.start, self.plane.step[1], width)]
        if len(self._dims) == 2:
            ends.insert(0, span(rows.start, self.plane.step[0], height))
        places |= dict(zip(self._dims, ends, strict=True))
        where = ", ".join(places[dim] for dim in range(self.array.ndim))
        if part.size == 1:
            return f"[{where}] = {self._number(part.flat[0])}"
        facts = facts_of(part)
        told = [f"{facts.size:,} elements"]
        if self._kind == "b":
            told.append(f"{facts.known - facts.zeros:,} true")
        elif facts.known:
            told.append(f"mean {short(facts.mean)}")
            told.append(f"from {short(facts.low)} to {short(facts.high)}")
        odd = {"NaN": facts.nan, "inf": facts.inf, "-inf": facts.minus_inf}
        told += [f"{count:,} {name}" for name, count in odd.items() if count]
        return f"[{where}]: " + ", ".join(told)

    def _number(self, value: Any) -> str:
        return number_text(value, self.dtype, self._options.precision)

    # ── the book's text ─────────────────────────────────────────────────────

    @property
    def print_options(self) -> PrintOptions:
        """With which the text below is made; other tensors keep theirs."""
        return self._options

    @print_options.setter
    def print_options(self, options: PrintOptions) -> None:
        if not isinstance(options, PrintOptions):
            cure = "PrintOptions(precision=2)"
            what = f"print_options is {options!r}"
            raise ConfigError("TensorView", what, cure=cure)
        if options != self._options:
            self._options = options
            if self.panel is not None:
                self.panel.show_text()
                self.panel.show_reading()

    @property
    def text(self) -> str:
        """What print(tensor) writes with these options."""
        before = get_print_options()
        set_print_options(self._options)
        try:
            return str(self.tensor)
        finally:
            set_print_options(before)

    def shown_text(self) -> tuple[str, str]:
        """The text as far as a page can hold it, and a line about its size."""
        shape, options = self.array.shape, self._options
        count = printed(shape, options.threshold, options.edge_items)
        told = f"{count:,} of {self.array.size:,} elements printed"
        if count > MOST_PRINTED:
            return "", f"{told}: too many to show here. Lower the threshold."
        text = self.text
        lines = text.count("\n") + 1
        told += f" · {lines:,} lines · {len(text):,} characters"
        if len(text) > MOST_LETTERS:
            return text[:MOST_LETTERS] + "\n…", f"{told}, the first of them here"
        return text, told

    def use_everywhere(self) -> None:
        """Print every tensor with these options from now on."""
        set_print_options(self._options)

    def reset_print_options(self) -> None:
        """Go back to the options that burnbook starts with."""
        self.print_options = PrintOptions()

    # ── what pictures are made of ───────────────────────────────────────────

    def frame(self, plane: Plane) -> dict[str, Any]:
        """What is to be known of a plane besides its cells, as plain values."""
        low, high = self._range(plane)
        signed = self._colors == COLORS[0]
        largest = max(abs(low), abs(high))
        names = [f"dim {dim}" for dim in self._dims]
        if self._kind == "b":
            ends = [str(bool(end)).lower() for end in (low, high)]
        else:
            ends = [short(-largest), short(largest)] if signed else []
            ends = ends or [short(low), short(high)]
        return {
            "cells": list(plane.mean.shape),
            "shape": list(plane.shape),
            "step": list(plane.step),
            "names": names if len(names) == 2 else ["", *names],
            "signed": signed,
            "ends": ends,
            "known": self.plane_facts.known > 0,
            "title": self._title(),
        }

    def codes(self, plane: Plane) -> np.ndarray:
        """The colours of a plane's cells."""
        low, high = self._range(plane)
        return plane.codes(float(low), float(high), self._colors == COLORS[0])

    def _range(self, plane: Plane) -> tuple[float, float]:
        """What the colours span. Why: means of blocks lie closer than elements do."""
        if not plane.whole:
            return plane.ends()
        facts = self.plane_facts if self._own_range else self.facts
        return facts.low, facts.high

    def table(self) -> list[tuple[str, ...]]:
        """Statistics under headings: of the tensor, and of a plane that is a part."""
        rows: list[tuple[str, ...]] = [("", "tensor"), *self.facts.rows(self._kind)]
        if len(self.array.shape) < 3:
            return rows
        part = {"": "this plane", **dict(self.plane_facts.rows(self._kind))}
        return [(*row, part.get(row[0], "–")) for row in rows]

    def head(self) -> str:
        """Kind, shape, element type and backend, on one line."""
        kind, shape = self.tensor.kind.__name__, list(self.array.shape)
        facts = [
            f"Tensor {kind} {shape}",
            self.tensor.dtype,
            repr(self.tensor.device()),
        ]
        if self.tensor.is_require_grad():
            facts.append("requires grad")
        return " · ".join(facts)

    def _title(self) -> str:
        """The plane in a sentence, for those who cannot see it."""
        height, width = self.matrix.shape
        rest = "".join(f", dim {dim} at {at}" for dim, at in self.index.items())
        facts = self.plane_facts
        told = f"{_count(height, 'row')} and {_count(width, 'column')}{rest}"
        if facts.known:
            told += f"; from {short(facts.low)} to {short(facts.high)}"
        odd = {"NaN": facts.nan, "inf": facts.inf, "-inf": facts.minus_inf}
        return told + "".join(f", {n:,} {name}" for name, n in odd.items() if n)

    # ── what stays ──────────────────────────────────────────────────────────

    def still(self) -> str:
        """Plane, histogram, statistics and text as HTML without JavaScript."""
        plane = cells(self.matrix, STILL_CELLS, STILL_SIDE)
        frame, codes = self.frame(plane), self.codes(plane)
        parts: list[str] = []
        if plane.mean.size:
            note = still_form.legend(frame, plane.marks)
            if not plane.whole:
                down, across = plane.step
                note = f"a cell is the mean of {down} × {across} elements · {note}"
            picture = still_form.heat_map(codes, plane.marks, frame, frame["title"])
            parts.append(f"<div>{picture}<div><small>{note}</small></div></div>")
        bars = ""
        if self.facts.known:
            ends = [short(edge) for edge in (self.facts.low, self.facts.high)]
            own = self.plane_bars.tolist()
            bars = still_form.histogram(self.bars.tolist(), own, *ends)
        parts.append(f"<div>{still_form.facts_table(self.table())}{bars}</div>")
        text, told = self.shown_text()
        row = "display:flex;flex-wrap:wrap;gap:20px;align-items:flex-start"
        shown = ", ".join(f"dim {dim} at {at}" for dim, at in self.index.items())
        return (
            f"<div><b>{escape(self.head())}</b> {shown}</div>\n"
            f'<div style="{row}">{"".join(parts)}</div>\n'
            f"<details><summary>as print shows it: {told}</summary>"
            f"<pre>{escape(text)}</pre></details>"
        )

    def _build(self) -> ipywidgets.VBox:
        from burnbook_widgets.tensor.panel import TensorPanel

        self.panel = TensorPanel(self)
        return self.panel.box

    def close(self) -> None:
        """Free every widget; the still form stays, and the twins go on working."""
        panel = self.panel
        super().close()
        if panel is not None:
            panel.close()

    def __repr__(self) -> str:
        kind, shape = self.tensor.kind.__name__, list(self.array.shape)
        names = ["rows", "columns"][-len(self._dims) :]
        shown = [
            f"{name} dim {dim}" for name, dim in zip(names, self._dims, strict=True)
        ]
        rest = [f"dim {dim} at {place}" for dim, place in self.index.items()]
        return f"TensorView({kind} {shape}; {', '.join(shown + rest)})"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'s' * (number != 1)}"
