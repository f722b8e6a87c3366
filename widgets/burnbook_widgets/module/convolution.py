"""A convolution: the window that makes one output cell.

    view = ConvolutionView(picture, [[1, 0, -1], [2, 0, -2], [1, 0, -1]])
    view = ConvolutionView(picture, model.conv1)
    view.at = (3, 5)
    print(view.sum)

The output is what `Conv2d` gives; the window over the input moves with the output cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets

from burnbook.backend import Numpy
from burnbook.core.errors import ShapeError
from burnbook.nn import Conv2d, PaddingConfig2d
from burnbook.tensor import Tensor
from burnbook_widgets.module.convolution_input import (
    PART,
    Pair,
    param_of,
    part_around,
    read_array,
    read_kernel,
    read_pair,
    read_picture,
    read_place,
    size_text,
)
from burnbook_widgets.module.weighted_sum import products, signed, total
from burnbook_widgets.page import script, sheet
from burnbook_widgets.tensor import still as still_form
from burnbook_widgets.tensor.numbers import cells, short
from burnbook_widgets.view import View, row


class ConvolutionPanel(anywidget.AnyWidget):
    """The page of a convolution: input, kernel, output, and the sum of one window."""

    _esm = script("convolution")
    _css = sheet("convolution")

    frame = traitlets.Dict().tag(sync=True)
    data = traitlets.Bytes().tag(sync=True)  # float32: input, kernel, output
    at = traitlets.List(traitlets.Int()).tag(sync=True)
    reading = traitlets.Dict().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return f"ConvolutionPanel({self.frame.get('head', '')})"


class ConvolutionView(View):
    """Slide a kernel over a picture, and see what one cell of the output is made of.

    picture: [h, w], [c, h, w] or [1, c, h, w], a tensor or an array; of sides
    above 64 a part is shown, which follows the window.
    kernel: [kh, kw], [c, kh, kw] or [o, c, kh, kw], or a Conv2d with its own numbers.
    Every control has a twin: `at`, `position`, `stride`, `padding`, `dilation`,
    `out_channel`, `in_channel`; `output` and `sum` are what is shown.

    Example:
        >>> view = ConvolutionView([[1, 2, 0], [0, 1, 3], [2, 1, 0]], [[1, 0], [0, -1]])
        >>> view
        ConvolutionView([3, 3] with [2, 2] makes [2, 2]; at [0, 0])
        >>> view.at = (0, 1)
        >>> print(view.sum)
        2·1 + 0·0 + 1·0 + 3·(−1) = −1
        >>> view.padding = 1
        >>> view.output.shape
        (4, 4)
    """

    def __init__(
        self,
        picture: Any,
        kernel: Any,
        bias: Any = None,
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
    ):
        super().__init__()
        self.picture = read_picture(picture)
        groups = 1
        if isinstance(kernel, Conv2d):
            layer, size = kernel, self.picture.shape[1:]
            stride, dilation, groups = layer.stride, layer.dilation, layer.groups
            around = layer.padding.sides(size, layer.kernel_size, stride, dilation)
            padding = [before for before, _ in around]
            if any(before != behind for before, behind in around):
                self.picture, padding = np.pad(self.picture, [(0, 0), *around]), 0
            kernel = layer.weight.val()
            bias = None if layer.bias is None else layer.bias.val()
        self.weight = read_kernel(kernel)
        self.groups = groups
        count = self.weight.shape[0]
        self.bias = None if bias is None else read_array(bias).reshape(-1)
        if self.bias is not None and self.bias.size != count:
            what = f"{self.bias.size} biases for {count} filters"
            raise ShapeError("ConvolutionView", what, cure="one number for each")
        self._check_channels()
        self._geometry: dict[str, Pair] = {
            "stride": read_pair("stride", stride, 1),
            "padding": read_pair("padding", padding, 0),
            "dilation": read_pair("dilation", dilation, 1),
        }
        self._out = self._in = 0
        self._at = (0, 0)
        self._corners = ((0, 0), (0, 0))  # of the parts of input and output
        self._outputs = self._slide(self._geometry)
        self.open()

    def _check_channels(self) -> None:
        """Refuse a kernel for other channels than the picture's."""
        have, seen = self.picture.shape[0], self.weight.shape[1] * self.groups
        if have != seen:
            facts = [
                ("picture", str(list(self.picture.shape))),
                ("kernel", str(list(self.weight.shape))),
            ]
            what = f"the kernel is for {seen} channels, the picture has {have}"
            raise ShapeError("ConvolutionView", what, facts)

    # ── what one can set ────────────────────────────────────────────────────

    @property
    def stride(self) -> Pair:
        """How far the window moves, down and across."""
        return self._geometry["stride"]

    @stride.setter
    def stride(self, stride: int | Sequence[int]) -> None:
        self._change("stride", read_pair("stride", stride, 1))

    @property
    def padding(self) -> Pair:
        """How many zeros stand above and below, left and right of the picture."""
        return self._geometry["padding"]

    @padding.setter
    def padding(self, padding: int | Sequence[int]) -> None:
        self._change("padding", read_pair("padding", padding, 0))

    @property
    def dilation(self) -> Pair:
        """How far apart the cells of the window lie, down and across."""
        return self._geometry["dilation"]

    @dilation.setter
    def dilation(self, dilation: int | Sequence[int]) -> None:
        self._change("dilation", read_pair("dilation", dilation, 1))

    def _change(self, name: str, pair: Pair) -> None:
        """Slide with another geometry; one that leaves no output changes nothing."""
        wanted = {**self._geometry, name: pair}
        self._outputs = self._slide(wanted)
        self._geometry = wanted
        rows, columns = self.output.shape
        self._at = (min(self._at[0], rows - 1), min(self._at[1], columns - 1))
        self._show()

    @property
    def out_channel(self) -> int:
        """Which channel of the output is looked at: each has a filter of its own."""
        return self._out

    @out_channel.setter
    def out_channel(self, channel: int) -> None:
        self._out = read_place("out_channel", channel, self.weight.shape[0])
        self._show()

    @property
    def in_channel(self) -> int:
        """Which of the channels that this filter sees is looked at."""
        return self._in

    @in_channel.setter
    def in_channel(self, channel: int) -> None:
        self._in = read_place("in_channel", channel, self.weight.shape[1])
        self._show()

    @property
    def at(self) -> Pair:
        """The row and column of the output cell that the window makes."""
        return self._at

    @at.setter
    def at(self, at: Sequence[int]) -> None:
        rows, columns = self.output.shape
        self._at = (
            read_place("row", at[0], rows),
            read_place("column", at[1], columns),
        )
        self._show_window()

    @property
    def position(self) -> int:
        """The same cell, counted along the rows from 0."""
        return self._at[0] * self.output.shape[1] + self._at[1]

    @position.setter
    def position(self, position: int) -> None:
        place = read_place("position", position, self.output.size)
        self.at = divmod(place, self.output.shape[1])

    # ── what is shown ───────────────────────────────────────────────────────

    @property
    def output(self) -> np.ndarray:
        """What the filter that is looked at makes of the picture, [h', w']."""
        return self._outputs[self._out]

    @property
    def window(self) -> np.ndarray:
        """The input cells under the window, of every channel the filter sees."""
        parts = []
        for at, size, taps, dim in zip(
            self._at, self.picture.shape[1:], self.weight.shape[2:], (0, 1), strict=True
        ):
            first = at * self.stride[dim] - self.padding[dim]
            place = first + np.arange(taps) * self.dilation[dim]
            parts.append((place, (place >= 0) & (place < size)))
        (down, known_down), (across, known_across) = parts
        seen = self.picture[self._seen()][:, down.clip(0, self.picture.shape[1] - 1)]
        seen = seen[:, :, across.clip(0, self.picture.shape[2] - 1)]
        return seen * (known_down[:, None] & known_across)

    def _seen(self) -> slice:
        """The channels of the picture that the filter sees."""
        count = self.weight.shape[1]
        group = self._out // (self.weight.shape[0] // self.groups)
        return slice(group * count, (group + 1) * count)

    @property
    def sum(self) -> str:
        """How the output cell comes about, written out."""
        parts = self._parts()
        return " ".join([parts["products"], *parts["rest"], parts["result"]])

    def _parts(self) -> dict[str, Any]:
        """The sum in parts: products of the channel, what else is added, result."""
        window, weight = self.window, self.weight[self._out]
        rest: list[str] = []
        count = weight.shape[0]
        if count > 1:
            others = np.delete(window, self._in, 0)
            kernels = np.delete(weight, self._in, 0)
            name = "other channel" + "s" * (count > 2)
            rest.append(f"+ {signed(total(others, kernels))} ({name})")
        if self.bias is not None:
            rest.append(f"+ {signed(float(self.bias[self._out]))} (bias)")
        value = short(float(self.output[self._at])).replace("-", "−")
        return {
            "products": products(window[self._in], weight[self._in]),
            "rest": rest,
            "result": f"= {value}",
        }

    def _slide(self, geometry: dict[str, Pair]) -> np.ndarray:
        """What Conv2d makes of the picture, [o, h', w']."""
        sizes, kernel = self.picture.shape[1:], self.weight.shape[2:]
        for dim, name in enumerate(("rows", "columns")):
            have = sizes[dim] + 2 * geometry["padding"][dim]
            span = geometry["dilation"][dim] * (kernel[dim] - 1) + 1
            if span > have:
                what = f"a window of {span} {name} does not fit into {have}"
                facts = [(key, str(list(pair))) for key, pair in geometry.items()]
                cure = "more padding, less dilation, or a smaller kernel"
                raise ShapeError("ConvolutionView", what, facts, cure)
        device = Numpy()
        bias = None if self.bias is None else param_of(self.bias, device)
        layer = Conv2d(
            param_of(self.weight, device),
            bias,
            geometry["stride"],
            kernel,
            geometry["dilation"],
            self.groups,
            PaddingConfig2d.Explicit(*geometry["padding"]),
        )
        made = layer.forward(Tensor.from_numpy(self.picture[None], device))
        return np.array(made)[0]

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = ConvolutionPanel()
        self.panel.observe(self._heard("at"), "at")
        self._mirroring = False
        kernel = max(self.weight.shape[2:])
        self.sliders: dict[str, ipywidgets.IntSlider] = {}
        for name, low, high, tooltip in (
            ("position", 0, 1, "Which output cell the window makes, row by row"),
            ("stride", 1, max(4, *self.stride), "How far the window moves"),
            ("padding", 0, max(kernel, *self.padding), "Zeros around the picture"),
            ("dilation", 1, max(4, *self.dilation), "How far apart its cells lie"),
        ):
            slider = ipywidgets.IntSlider(
                value=low,
                min=low,
                max=high,
                description=name.capitalize(),
                tooltip=tooltip,
                style={"description_width": "auto"},
                layout={"width": "340px" if name == "position" else "220px"},
            )
            slider.observe(self._heard(name), "value")
            self.sliders[name] = slider
        choices = {
            name: ipywidgets.Dropdown(
                options=[(str(i), i) for i in range(count)],
                description=name.replace("_", " ").capitalize(),
                tooltip=tooltip,
                style={"description_width": "auto"},
                layout={"width": "150px"},
            )
            for name, count, tooltip in (
                ("out_channel", self.weight.shape[0], "Which channel of the output"),
                ("in_channel", self.weight.shape[1], "Which channel of the input"),
            )
            if count > 1
        }
        for name, choice in choices.items():
            choice.observe(self._heard(name), "value")
        self.choices = choices
        position, *geometry = self.sliders.values()
        return ipywidgets.VBox(
            [row(*geometry), row(position, *choices.values()), self.panel]
        )

    def _heard(self, name: str) -> Any:
        """A callback that sets the twin of a control, or puts the control back."""

        def hear(change: Any) -> None:
            if self._mirroring:
                return
            try:
                setattr(self, name, change["new"])
            finally:
                self._show_controls()

        return self.act(hear)

    def _show_controls(self) -> None:
        """Put the controls where the view stands, without taking it for a click."""
        if self.panel is None:
            return
        self._mirroring = True
        try:
            self.sliders["position"].max = self.output.size - 1
            self.sliders["position"].value = self.position
            for name, pair in self._geometry.items():
                slider = self.sliders[name]
                slider.max = max(slider.max, *pair)
                slider.value = pair[0]
                slider.description = name.capitalize() + " ↓" * (pair[0] != pair[1])
            for name, choice in self.choices.items():
                choice.value = getattr(self, name)
            self.panel.at = list(self._at)
        finally:
            self._mirroring = False

    def _show(self) -> None:
        if self.panel is None:
            return
        weight = self.weight[self._out, self._in]
        seen = self._part()
        self._corners = (seen["grown"][0], seen["output"][0])
        parts = [
            _cut(self._plane(), seen["input"]),
            weight,
            _cut(self.output, seen["output"]),
        ]
        with self.panel.hold_sync():
            self.panel.data = b"".join(p.astype("<f4").tobytes() for p in parts)
            self.panel.frame = self._frame()
            self._show_window()

    def _part(self) -> dict[str, tuple[Pair, Pair]]:
        """Corner and size of what is shown: of the grown input, the input, the output.

        The grown input is the picture with its padding; small ones are shown whole.
        """
        found: dict[str, list[Pair]] = {"grown": [], "input": [], "output": []}
        for dim in (0, 1):
            size, pad = self.picture.shape[1 + dim], self.padding[dim]
            span = self.dilation[dim] * (self.weight.shape[2 + dim] - 1) + 1
            first = self._at[dim] * self.stride[dim]
            most = max(PART, span)
            most = size + 2 * pad if size <= PART else most
            old = self._corners[0][dim]
            grown = part_around(first, span, size + 2 * pad, old, most)
            begin = min(max(grown[0] - pad, 0), size)
            end = min(max(sum(grown) - pad, 0), size)
            count = self.output.shape[dim]
            most = count if count <= PART + 8 else PART
            made = part_around(self._at[dim], 1, count, self._corners[1][dim], most)
            found["grown"].append(grown)
            found["input"].append((begin, end - begin))
            found["output"].append(made)
        return {
            name: ((rows[0], columns[0]), (rows[1], columns[1]))
            for name, (rows, columns) in found.items()
        }

    def _show_window(self) -> None:
        if self.panel is None:
            return
        seen = self._part()
        if self.panel.frame and self._corners != (seen["grown"][0], seen["output"][0]):
            self._show()
            return
        with self.panel.hold_sync():
            self._show_controls()
            self.panel.reading = {"at": list(self._at), **self._parts()}

    def _plane(self) -> np.ndarray:
        """The channel of the picture that is looked at."""
        return self.picture[self._seen()][self._in]

    def _frame(self) -> dict[str, Any]:
        return {
            "shape": list(self.picture.shape[1:]),
            "kernel": list(self.weight.shape[2:]),
            "output": list(self.output.shape),
            "part": {
                name: [list(corner), list(size)]
                for name, (corner, size) in self._part().items()
            },
            **{name: list(pair) for name, pair in self._geometry.items()},
            "signed": [bool((p < 0).any()) for p in (self._plane(), self.output)],
            "head": self._head(),
            "size": self._size(),
            "channel": self._names(),
        }

    def _names(self) -> list[str]:
        """What stands above input, kernel and output."""
        filters, channels = self.weight.shape[:2]
        seen = self._seen().start + self._in
        one = f", channel {seen}" if channels > 1 else ""
        which = f", channel {self._out}" if filters > 1 else ""
        both = f", channel {seen} → {self._out}" if one and which else one or which
        return [f"input{one}", f"kernel{both}", f"output{which}"]

    def _head(self) -> str:
        shapes = self.picture.shape[1:], self.weight.shape[2:], self.output.shape
        texts = map(size_text, shapes)
        return "Convolution: {} with a kernel of {} makes {}".format(*texts)

    def _size(self) -> str:
        """The rule for the number of rows, with the numbers in it."""
        pad, step, apart = (
            self._geometry[name][0] for name in ("padding", "stride", "dilation")
        )
        have, taps = self.picture.shape[1], self.weight.shape[2]
        return (
            f"rows: ⌊({have} + 2·{pad} − {apart}·({taps} − 1) − 1) / {step}⌋ + 1 "
            f"= {self.output.shape[0]}"
        )

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """Input, kernel, output and the sum as HTML and SVG without JavaScript."""
        seen = self._part()
        grown = np.pad(self._plane(), [(pad, pad) for pad in self.padding])
        grown = _cut(grown, seen["grown"])
        (first, start), (row, column) = seen["grown"][0], seen["output"][0]
        top, left = (at * s for at, s in zip(self._at, self.stride, strict=True))
        down, across = self.dilation
        taps = [
            (top + i * down - first, left + j * across - start)
            for i in range(self.weight.shape[2])
            for j in range(self.weight.shape[3])
        ]
        made = _cut(self.output, seen["output"])
        chosen = [(self._at[0] - row, self._at[1] - column)]
        names = self._names()
        weight = self.weight[self._out, self._in]
        zeros = " with its padding" if any(self.padding) else ""
        of = "" if max(self.picture.shape[1:]) <= PART else ", a part"
        parts = [(grown, taps, names[0] + zeros + of), (weight, [], names[1])]
        parts.append((made, chosen, names[2] + of))
        pictures = "".join(
            f'<figure style="margin:0"><figcaption>{escape(name)}</figcaption>'
            f"{_picture(array, places, name)}</figure>"
            for array, places, name in parts
        )
        flow = "display:flex;flex-wrap:wrap;gap:8px 24px;align-items:flex-start"
        where = f"output[{self._at[0]}, {self._at[1]}]"
        return (
            f"<div><b>{escape(self._head())}</b><br>{escape(self._size())}</div>\n"
            f'<div style="{flow}">{pictures}</div>\n'
            f"<div>{where} is the sum of the framed cells times the kernel: "
            f"{escape(self.sum)}</div>"
        )

    def __repr__(self) -> str:
        shapes = [
            list(
                self.picture.shape[1:] if len(self.picture) == 1 else self.picture.shape
            ),
            list(
                self.weight.shape[2:]
                if self.weight.shape[0] == 1
                else self.weight.shape
            ),
            list(self.output.shape),
        ]
        return "ConvolutionView({} with {} makes {}; at {})".format(
            *shapes, list(self._at)
        )


def _cut(plane: np.ndarray, part: tuple[Pair, Pair]) -> np.ndarray:
    """A part of a plane by its corner and size."""
    (top, left), (rows, columns) = part
    return plane[top : top + rows, left : left + columns]


def _picture(array: np.ndarray, places: Sequence[Pair], title: str) -> str:
    """A heat map whose chosen cells are framed."""
    plane = cells(array)
    low, high = plane.ends()
    codes = plane.codes(low, high, low < 0)
    wide, high_cell = still_form.cell_size(*array.shape)
    framed = "".join(
        f"M{c * wide:.5g} {r * high_cell:.5g}h{wide:g}v{high_cell:g}h-{wide:g}z"
        for r, c in places
    )
    over = [still_form.stroke(framed, 2)] if framed else []
    frame = {"names": ("row", "column"), "shape": array.shape, "corner": (0, 0)}
    told = f"{title}, {size_text(array.shape)}, from {short(low)} to {short(high)}"
    return still_form.heat_map(codes, plane.marks, frame, told, over)
