"""The tensor view: any two dims as a picture, numbers beside.

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

from burnbook.core.errors import ConfigError, DimError, KindError
from burnbook.tensor import QuantizedTensor, Tensor
from burnbook.tensor.display import (
    PrintOptions,
    get_print_options,
    number_text,
    set_print_options,
)
from burnbook_widgets.tensor import still as still_form
from burnbook_widgets.tensor.numbers import (
    COLORS,
    LOG,
    MIDDLE,
    MOST_CELLS,
    MOST_SIDE,
    SCALES,
    WHOLE,
    Curve,
    Facts,
    Plane,
    bars_of,
    bend,
    cells,
    edges_of,
    facts_of,
    has_outliers,
    middle_of,
    printed,
    short,
    span,
    unbend,
    unit_of,
)
from burnbook_widgets.view import View

if TYPE_CHECKING:
    import ipywidgets

    from burnbook_widgets.tensor.panel import TensorPanel

STILL_CELLS, STILL_SIDE, STILL_COLORS, STILL_PLACES = 1600, 64, 16_000, 200
MOST_PLACES = 600  # along a curve
SMALLEST = 8  # rows and columns that zooming leaves
MOST_PRINTED = 20_000  # elements that a panel prints
MOST_LETTERS = 16_000


class TensorView(View):
    """Look at a tensor of any rank and kind; every control has a twin of its name.

    Example:
        view = TensorView(Tensor.random([8, 3, 28, 28]))
        view.dims = (1, 3)               # rows show dim 1, columns dim 3
        view.index = {0: 5, 2: 14}       # where the other dims stand
        view.colors = "low to high"      # or "around 0"
        view.own_range = True            # colors by the range of this plane only
        view.scale = "middle 98 %"       # outliers get a mark, not all of the colors
        view.part = (40, 60, 20, 30)     # 20 rows from 40, 30 columns from 60
        view.rgb = True                  # [3, height, width] as a picture in color
        view.cell = (2, 7); view.reading # the element in row 2, column 7
        view.print_options = PrintOptions(precision=2); view.text
        view.use_everywhere()            # every tensor prints like this from now on

    Why: a matrix of millions has fewer cells than elements; a cell then shows the mean
    of its block, and its reading says so. A part of it shows true values again.
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
        self._middle = middle_of(self.array)
        self._unit = unit_of(self.array)
        apart = self._kind == "f" and has_outliers(self.facts, self._middle)
        self._scale = MIDDLE if apart else WHOLE
        self._part: tuple[int, int, int, int] | None = None
        self._rgb = False
        self._count()
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
            self._dims, self._cell, self._part = found, None, None
            self._rgb = False
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
    def scale(self) -> str:
        """What colors and histogram span: one of `SCALES`.

        "whole range"; "middle 98 %", where what lies far outside gets a mark (at first,
        if there are such outliers); "logarithmic", for both signs.
        """
        return self._scale

    @scale.setter
    def scale(self, scale: str) -> None:
        if scale not in SCALES:
            cure = " or ".join(f'"{name}"' for name in SCALES)
            raise ConfigError("TensorView", f"scale is {scale!r}", cure=cure)
        if scale != self._scale:
            self._scale = scale
            self._count()
            self._changed()

    def _count(self) -> None:
        """Count how often which value occurs, on the present scale."""
        low, high = float(self.facts.low), float(self.facts.high)
        if self._scale == MIDDLE:
            low, high = self._middle
        if self._scale == LOG and high > low:
            ends = bend(np.array([low, high]), self._unit)
            even = edges_of(ends[0], ends[1], "f")
            self.edges = unbend(even, self._unit)
        else:
            middle = self._scale == MIDDLE
            first = low if middle else self.facts.low
            last = high if middle else self.facts.high
            self.edges = edges_of(first, last, "f" if middle else self._kind)
        self.bars, self.every = bars_of(self.array, self.edges)

    @property
    def part(self) -> tuple[int, int, int, int] | None:
        """What is shown of the plane: first row, first column, rows, columns."""
        return self._part

    @part.setter
    def part(self, part: Sequence[int] | None) -> None:
        height, width = self.matrix.shape
        if part is not None:
            top, left, rows, columns = (int(number) for number in part)
            fits = 0 <= top < height and 0 <= left < width and rows > 0 and columns > 0
            if not fits:
                what = (
                    f"part {tuple(part)} lies outside the plane of {height} × {width}"
                )
                cure = "(first row, first column, rows, columns), or None for all"
                raise DimError("TensorView", what, cure=cure)
            part = (top, left, min(rows, height - top), min(columns, width - left))
            part = None if part == (0, 0, height, width) else part
        if part != self._part:
            self._part = part
            self._cut()
            if self.panel is not None:
                self.panel.show()

    def zoom(self, factor: float, at: Sequence[int] | None = None) -> None:
        """Show a part that is so many times smaller, around an element of the plane."""
        height, width = self.matrix.shape
        top, left, rows, columns = self._part or (0, 0, height, width)
        row, column = at or self._cell or (top + rows // 2, left + columns // 2)
        few = (min(SMALLEST, height), min(SMALLEST, width))
        down = min(height, max(few[0], round(rows / factor)))
        across = min(width, max(few[1], round(columns / factor)))
        top = min(max(row - down // 2, 0), height - down)
        left = min(max(column - across // 2, 0), width - across)
        self.part = (top, left, down, across)

    @property
    def rgb(self) -> bool:
        """Whether three planes are shown as the red, green and blue of one picture.

        For a tensor [3, height, width] or [n, 3, height, width]: floats from 0 to 1,
        whole numbers from 0 to 255; others are stretched to that.
        """
        return self._rgb

    @rgb.setter
    def rgb(self, rgb: bool) -> None:
        if rgb and not self.can_be_rgb:
            what = f"shape {list(self.array.shape)} has no three planes of color"
            cure = "[3, height, width] or [n, 3, height, width]"
            raise DimError("TensorView", what, cure=cure)
        if bool(rgb) != self._rgb:
            self._rgb = bool(rgb)
            if self._rgb:
                rank = self.array.ndim
                self._dims = (rank - 2, rank - 1)
            self._changed()

    @property
    def can_be_rgb(self) -> bool:
        """Whether the dim before the last two has three planes."""
        return self.array.ndim >= 3 and self.array.shape[-3] == 3

    @property
    def own_range(self) -> bool:
        """Whether colors span the range of this plane, or of the whole tensor.

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
        self.plane_bars = self.bars if all_shown else bars_of(found, self.edges)[0]
        self._cut()

    def _cut(self) -> None:
        """Divide what is shown of the plane into cells."""
        self.shown = self._shown_of(self.matrix)
        side = MOST_PLACES if len(self._dims) == 1 else MOST_SIDE
        self.plane: Plane = cells(self.shown, side=side)

    def _shown_of(self, matrix: np.ndarray) -> np.ndarray:
        if self._part is None:
            return matrix
        top, left, rows, columns = self._part
        return matrix[top : top + rows, left : left + columns]

    @property
    def corner(self) -> tuple[int, int]:
        """The first row and column that is shown."""
        return self._part[:2] if self._part else (0, 0)

    def block(self, row: int, column: int) -> tuple[slice, slice]:
        """The rows and columns of the plane that share a cell with this element."""
        ends: list[slice] = []
        sizes = self.shown.shape
        for at, first, step, size in zip(
            (row, column), self.corner, self.plane.step, sizes, strict=True
        ):
            if not first <= at < first + size:
                ends.append(slice(at, at + 1))  # not in sight: for itself
                continue
            begin = first + (at - first) // step * step
            ends.append(slice(begin, min(begin + step, first + size)))
        return ends[0], ends[1]

    @property
    def reading(self) -> str:
        """The element at `cell`; of a cell that stands for many, what is in it."""
        if self._cell is None:
            return ""
        rows, columns = self.block(*self._cell)
        part = self.matrix[rows, columns]
        height, width = self.matrix.shape
        places = {dim: str(place) for dim, place in self.index.items()}
        ends = [span(columns.start, columns.stop - columns.start, width)]
        if len(self._dims) == 2:
            ends.insert(0, span(rows.start, rows.stop - rows.start, height))
        places |= dict(zip(self._dims, ends, strict=True))
        where = ", ".join(places[dim] for dim in range(self.array.ndim))
        if part.size == 1 and self._rgb:
            planes = [self._plane(color)[self._cell] for color in range(3)]
            numbers = zip(("red", "green", "blue"), planes, strict=True)
            told = ", ".join(f"{name} {self._number(v)}" for name, v in numbers)
            return f"[{where}]: {told}".replace(f"[{where}]", self._where_rgb())
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

    def _where_rgb(self) -> str:
        row, column = self._cell or (0, 0)
        head = [str(place) for place in self._at[:-3]]
        return f"[{', '.join([*head, ':', str(row), str(column)])}]"

    def _plane(self, color: int) -> np.ndarray:
        """One of the three planes of a picture in color."""
        at = (*self._at[:-3], color)
        return self.array[at]

    def pixels(self, most: int = MOST_CELLS, side: int = MOST_SIDE) -> np.ndarray:
        """What is shown as red, green and blue; a cell has the mean of its elements.

        Shapes: -> [rows, columns, 3], bytes
        """
        planes = [self._shown_of(self._plane(color)) for color in range(3)]
        means = [cells(plane, most, side).mean for plane in planes]
        colors = np.nan_to_num(np.stack(means, axis=-1))
        low, high = float(self.facts.low), float(self.facts.high)
        if self._kind == "f" and low >= 0 and high <= 1:
            colors = 255 * colors
        elif low < 0 or high > 255:
            colors = 255 * (colors - low) / ((high - low) or 1.0)
        return np.clip(np.rint(colors), 0, 255).astype(np.uint8)

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
        beyond = self._scale == MIDDLE
        names = [f"dim {dim}" for dim in self._dims]
        if self._kind == "b":
            ends = [str(bool(end)).lower() for end in (low, high)]
        else:
            ends = [short(-largest), short(largest)] if signed else []
            ends = ends or [short(low), short(high)]
            if beyond:
                ends = [f"≤ {ends[0]}", f"≥ {ends[1]}"]
        return {
            "cells": list(plane.mean.shape),
            "shape": list(plane.shape),
            "step": list(plane.step),
            "corner": list(self.corner),
            "whole": list(self.matrix.shape),
            "scale": self._scale,
            "rgb": self._rgb,
            "means": self._told_of_means(plane),
            "names": names if len(names) == 2 else ["", *names],
            "signed": signed,
            "ends": ends,
            "known": self.plane_facts.known > 0,
            "title": self._title(),
        }

    def _told_of_means(self, plane: Plane) -> str:
        """Of cells that stand for blocks: what they show, and what they hide."""
        if plane.whole or not plane.mean.size:
            return ""
        down, across = plane.step
        size = f"{down} × {across}" if len(self._dims) == 2 else f"{across}"
        text = f"overview: a cell is the mean of {size} elements"
        known = ~np.isnan(plane.mean)
        if not known.any():
            return text
        low, high = plane.ends()
        ends = float(np.nanmin(plane.least)), float(np.nanmax(plane.most))
        return (
            f"{text}; means from {short(low)} to {short(high)}, "
            f"elements from {short(ends[0])} to {short(ends[1])}"
        )

    def codes(self, plane: Plane) -> np.ndarray:
        """The colors of a plane's cells."""
        low, high = map(float, self._range(plane))
        signed = self._colors == COLORS[0]
        if self._scale == LOG:
            low, high = bend(np.array([low, high]), self._unit).tolist()
            bent = plane.through(lambda mean: bend(mean, self._unit))
            return bent.codes(low, high, signed)
        return plane.codes(low, high, signed)

    def marks(self, plane: Plane) -> np.ndarray:
        """What cells are marked with: not finite, or far outside of the colors."""
        if self._scale != MIDDLE or not plane.mean.size:
            return plane.marks
        return plane.marks | plane.far(*map(float, self._range(plane)))

    def curve(self, places: int = MOST_PLACES) -> Curve:
        """What is shown of a tensor of rank 1, as a line."""
        plane = cells(self.shown, side=places)
        return Curve(plane.mean[0], plane.least[0], plane.most[0])

    def _range(self, plane: Plane) -> tuple[float, float]:
        """What the colors span. Why: means of blocks lie closer than elements do."""
        if self._scale == MIDDLE:
            return middle_of(self.matrix) if self._own_range else self._middle
        if not plane.whole and self._scale == WHOLE:
            return plane.ends()
        facts = self.plane_facts if self._own_range else self.facts
        return facts.low, facts.high

    def bar_ends(self) -> list[str]:
        """What stands at both ends of the histogram."""
        if self._scale == MIDDLE:
            return [f"≤ {short(self._middle[0])}", f"≥ {short(self._middle[1])}"]
        return [short(self.facts.low), short(self.facts.high)]

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
        plane = cells(self.shown, STILL_CELLS, STILL_SIDE)
        frame, marks = self.frame(plane), self.marks(plane)
        parts: list[str] = []
        if plane.mean.size:
            note = still_form.legend(frame, marks)
            if not plane.whole:
                note = f"{frame['means']} · {note}"
            picture, note = self._picture(plane, frame, note)
            parts.append(f"<div>{picture}<div><small>{note}</small></div></div>")
        bars = ""
        if self.facts.known:
            ends = self.bar_ends()
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

    def _picture(
        self, plane: Plane, frame: dict[str, Any], note: str
    ) -> tuple[str, str]:
        """Cells, a curve or a picture in color, and what to know about it."""
        if self._rgb:
            found = still_form.colored(self.pixels(STILL_COLORS, 160), frame["title"])
            if found:
                return found, "red, green and blue"
        if len(self._dims) == 1:
            curve, low, high = self.curve(STILL_PLACES), *map(float, self._range(plane))
            drawn = still_form.curve(curve, frame, (low, high), frame["title"])
            return drawn, note.partition(" · ")[0] if not plane.whole else ""
        codes, marks = self.codes(plane), self.marks(plane)
        return still_form.heat_map(codes, marks, frame, frame["title"]), note

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
