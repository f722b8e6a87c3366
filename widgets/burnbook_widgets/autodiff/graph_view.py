"""A small graph to walk through, forward and back.

    view = GraphView(loss)
    view.step = 3
    view.forward(); view.back()

Names are those of the variables around the call, or of `GraphView(loss, w=w, model=m)`.
Nothing is used up: `loss.backward()` is as before.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from html import escape
from types import FrameType
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets

from burnbook.core.errors import ArgumentError, ConfigError
from burnbook.module import Module
from burnbook.program import Program, Training
from burnbook.tensor import Tensor
from burnbook_widgets.autodiff.groups import Group, around, at_first, group, visible
from burnbook_widgets.autodiff.layout import HEIGHT, WIDTH, lay_out
from burnbook_widgets.autodiff.parts import (
    KINDS,
    Part,
    Parts,
    brief,
    read,
    tensors_in,
)
from burnbook_widgets.autodiff.program_parts import read_program
from burnbook_widgets.autodiff.rules import rules_of, sentence
from burnbook_widgets.autodiff.still import ROOM, picture
from burnbook_widgets.autodiff.value_recorder import ValueRecorder
from burnbook_widgets.page import script, sheet
from burnbook_widgets.view import View, row, table

LONGEST = 1200  # letters of a value in the facts
STILL = 60  # rows of the still table
MOST_BOXES = 400  # in one picture


class GraphPanel(anywidget.AnyWidget):
    """The page of a graph: what Python sends is what it draws."""

    _esm = script("boxes", "graph")
    _css = sheet("graph")

    scene = traitlets.Dict().tag(sync=True)
    stage = traitlets.Dict().tag(sync=True)
    chosen = traitlets.Int(-1).tag(sync=True)
    facts = traitlets.List().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return f"GraphPanel({len(self.scene.get('parts', ()))} parts)"


class GraphView(View):
    """What Autodiff remembered of a small computation, step by step.

    Values appear in the order in which the ops ran, then gradients in the order in
    which `backward()` visits the steps. Every control has a twin: `forward`, `back`,
    `start`, `end`, `step`, `chosen`; `steps` says how many there are.

    Steps of one module (`net.blocks.0`) form a group, which a large graph shows closed,
    as one box with the value of its last step: `groups`, `unfold`, `fold`.

    loss: a tensor, or a function that computes it (`GraphView(lambda: (x + 1).sum())`);
    then also values are known that the tape does not keep. A captured program is drawn
    with its shapes; it has no values but constants.
    named: tensors and modules under the names to show; without, the variables where
    the view is made.

    Example:
        >>> from burnbook.backend import Numpy
        >>> w = Tensor.from_floats([3.0], Numpy().autodiff()).require_grad()
        >>> view = GraphView(w * w)
        >>> view
        GraphView(mul [1]; 1 op, 1 leaf, step 3 of 3)
        >>> view.gradient("w").tolist()
        [6.0]
    """

    def __init__(
        self, loss: Tensor | Callable[[], Tensor] | Program | Training, **named: Any
    ):
        super().__init__()
        if isinstance(loss, (Program, Training)):
            found = read_program(loss)
        else:
            found = _read(loss, named or _variables(_caller()))
        self.parts = found.parts
        self._edges = found.edges
        self._forward, self._back = found.forward, found.back
        self._whole = group(self.parts)
        self._names = {found.name: found for found in self._whole.groups()}
        self._opened = at_first(self._whole)
        self._arrange()
        self._step = self.steps
        now = self._now()  # what the caption speaks of
        self._chosen = now if now >= 0 else len(self.parts) - 1
        self.open()

    # ── what one can set ────────────────────────────────────────────────────

    @property
    def steps(self) -> int:
        """How many there are: one per op forward, one per gradient back."""
        return len(self._forward) + len(self._back)

    @property
    def step(self) -> int:
        """How far the walk is: 0 is before the first op, `steps` after the last."""
        return self._step

    @step.setter
    def step(self, number: int) -> None:
        if not 0 <= number <= self.steps:
            what = f"there is no step {number}"
            raise ConfigError("GraphView", what, cure=f"0 to {self.steps}")
        self._step = int(number)
        now = self._now()
        if now >= 0:
            self._chosen = now
        self._show()
        if self.panel is not None:
            self.panel.said = self.caption()

    def forward(self) -> None:
        """Go one step on."""
        self.step = min(self._step + 1, self.steps)

    def back(self) -> None:
        """Go one step back."""
        self.step = max(self._step - 1, 0)

    def start(self) -> None:
        """Go to where nothing has run yet."""
        self.step = 0

    def end(self) -> None:
        """Go to where every gradient is there."""
        self.step = self.steps

    @property
    def chosen(self) -> int:
        """The number of the part that is looked at, as in `parts`."""
        return self._chosen

    @chosen.setter
    def chosen(self, part: int | str) -> None:
        number = self._find(part)
        closed = [n for n in around(self._whole, number) if n not in self._opened]
        self._chosen = number
        if closed:
            self._open(self._opened | set(closed))
        self._show()

    def value(self, part: int | str) -> np.ndarray | None:
        """The value of a part by its number or name; None if it was forgotten."""
        return self.parts[self._find(part)].value

    def gradient(self, part: int | str) -> np.ndarray | None:
        """The gradient of a part; None for one that no gradient flows to."""
        return self.parts[self._find(part)].gradient

    def _find(self, part: int | str) -> int:
        if isinstance(part, str):
            known = [p.called for p in self.parts]
            if part in known:
                return known.index(part)
            what = f"there is no part {part!r}"
            raise ConfigError("GraphView", what, [("known", ", ".join(known[:20]))])
        if not 0 <= part < len(self.parts):
            raise ConfigError("GraphView", f"there is no part {part}")
        return int(part)

    # ── groups ──────────────────────────────────────────────────────────────

    @property
    def groups(self) -> list[str]:
        """The names of all groups, each before those that it holds."""
        return list(self._names)

    @property
    def unfolded(self) -> list[str]:
        """The groups that are open, those inside of a closed one as well."""
        return [name for name in self._names if name in self._opened]

    def unfold(self, *names: str) -> None:
        """Open groups, and those around them; without a name all of them."""
        opened = set(self._opened)
        for name in names or self._names:
            first = self._known_group(name).parts()[0]
            holds = around(self._whole, first)
            opened.update(holds[: holds.index(name) + 1])
        self._open(opened)

    def fold(self, *names: str) -> None:
        """Close groups; without a name all of them."""
        gone = {self._known_group(name).name for name in names or self._names}
        self._open(self._opened - gone)

    def _known_group(self, name: str) -> Group:
        if name not in self._names:
            what, known = f"there is no group {name!r}", ", ".join(self.groups[:20])
            raise ConfigError("GraphView", what, [("known", known or "none")])
        return self._names[name]

    def _open(self, opened: set[str]) -> None:
        count = len(visible(self._whole, opened))
        if count > MOST_BOXES:
            what = f"{count:,} boxes cannot be told apart"
            cure = f"fewer open groups, for up to {MOST_BOXES} boxes"
            raise ConfigError("GraphView", what, cure=cure)
        self._opened = opened
        self._arrange()
        if self.panel is not None:
            self.panel.scene = self._scene()
        self._show()

    def _arrange(self) -> None:
        """Which boxes there are, the parts in each, the lines between them."""
        boxes = visible(self._whole, self._opened)
        if not any(isinstance(box, Group) for box in boxes):
            boxes = [*range(len(self.parts))]
        self._boxes = boxes
        self._held = [b.parts() if isinstance(b, Group) else [b] for b in boxes]
        self._box_of = {n: i for i, held in enumerate(self._held) for n in held}
        box = self._box_of
        between = [(box[a], box[b]) for a, b in self._edges]
        if boxes != [*range(len(self.parts))]:
            between = list(dict.fromkeys(pair for pair in between))
        self._lines = [(a, b) for a, b in between if a != b]
        self._layout = lay_out(len(boxes), self._lines)

    def _seen_boxes(self) -> list[int]:
        """As `_seen`, for boxes: a closed group has what all its steps have."""
        seen = self._seen()
        found: list[int] = []
        for held in self._held:
            ops = [seen[n] for n in held if self.parts[n].kind == "op"]
            flowing = [seen[n] for n in held if self.parts[n].gradient is not None]
            whole = len(held) > 1 and flowing and min(flowing) == 2
            found.append(2 if whole else min(min(ops, default=seen[held[0]]), 2))
            if len(held) > 1 and found[-1] == 2 and not whole:
                found[-1] = 1
        return found

    def _shown(self) -> list[tuple[str, str, str, str, str]]:
        """Of each box its kind, label, shape, value and gradient."""
        found: list[tuple[str, str, str, str, str]] = []
        for box, held in zip(self._boxes, self._held, strict=True):
            ops = [n for n in held if self.parts[n].kind == "op"]
            part = self.parts[(ops or held)[-1]]
            size = part.size
            if isinstance(box, Group):
                size = f"{_count(len(ops), 'op')} → {part.size}"
            label = box.name if isinstance(box, Group) else part.label
            kind = "group" if isinstance(box, Group) else part.kind
            value, gradient = brief(part.value, ROOM), brief(part.gradient, ROOM - 12)
            found.append((kind, label, size, value, gradient))
        return found

    # ── what is known at a step ─────────────────────────────────────────────

    def _now(self) -> int:
        """The part that the present step is about; −1 at the start."""
        order = [*self._forward, *self._back]
        return order[self._step - 1] if self._step else -1

    def _seen(self) -> list[int]:
        """For each part: 0 nothing yet, 1 its value, 2 its gradient as well."""
        ran = set(self._forward[: self._step])
        reached = set(self._back[: max(0, self._step - len(self._forward))])
        return [
            2 if i in reached else int(part.kind != "op" or i in ran)
            for i, part in enumerate(self.parts)
        ]

    def caption(self) -> str:
        """The present step in a sentence."""
        at = f"Step {self._step} of {self.steps}"
        if not self._step:
            return f"{at}: the inputs are there, nothing has run."
        part = self.parts[self._now()]
        if self._step <= len(self._forward):
            made = f"{part.name} {part.size}" if part.name else part.size
            came = [self.parts[number].called for _, number in part.inputs]
            return f"{at}, forward: {part.op} makes {made} from {_listed(came)}."
        if self._step == len(self._forward) + 1:
            text = f"{at}, back: {_where(part)} begins with a gradient of ones"
        else:
            text = f"{at}, back: the gradient of {_where(part)} is complete"
        heirs = [self.parts[number] for _, number in part.inputs]
        to = [heir.called for heir in heirs if heir.gradient is not None]
        return f"{text}; {part.op} passes it on to {_listed(to)}." if to else f"{text}."

    def facts(self) -> list[list[str]]:
        """All that is known of the chosen part at this step: name, text, how shown."""
        part, seen = self.parts[self._chosen], self._seen()[self._chosen]
        found = [["part", part.label, ""], ["kind", part.note or KINDS[part.kind], ""]]
        step = part.step
        if step is not None and part.op:
            found.append(["op", sentence(step.op), ""])
            came = [f"{name} = {self.parts[n].called}" for name, n in part.inputs]
            found.append(["inputs", ", ".join(came), ""])
            if step.attrs:
                given = [f"{name}={value!r}" for name, value in step.attrs.items()]
                found.append(["attributes", ", ".join(given), ""])
            for name, rule in rules_of(step.op):
                found.append([f"rule toward {name}", rule, "code"])
        if part.size:
            found.append(["shape", part.size, ""])
        if seen:
            found.append(["value", full(part.value), "block"])
            found.append(["known from", part.origin, ""])
        if part.gradient is not None:
            text = full(part.gradient) if seen == 2 else "not there yet"
            found.append(["gradient", text, "block" if seen == 2 else ""])
        return [line for line in found if line[1]]

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = GraphPanel(scene=self._scene())
        self.panel.on_msg(self.act(self._told))

        def button(text: str, icon: str, tooltip: str, act: Any) -> ipywidgets.Button:
            made = ipywidgets.Button(
                description=text, icon=icon, tooltip=tooltip, layout={"width": "auto"}
            )
            made.on_click(self.act(lambda _: act()))
            return made

        self.start_control = button(
            "Start", "step-backward", "Before the first op", self.start
        )
        self.back_control = button("Back", "chevron-left", "One step back", self.back)
        self.forward_control = button(
            "Forward", "chevron-right", "One step on", self.forward
        )
        self.end_control = button(
            "End", "step-forward", "Every value, every gradient", self.end
        )
        self.step_control = ipywidgets.IntSlider(
            self._step,
            0,
            self.steps,
            description="Step",
            style={"description_width": "auto"},
            layout={"width": "300px"},
        )
        self.step_control.observe(self.act(self._slid), "value")
        controls = row(
            self.start_control,
            self.back_control,
            self.forward_control,
            self.end_control,
            self.step_control,
        )
        return ipywidgets.VBox([controls, self.panel])

    def _slid(self, event: Any) -> None:
        if event["new"] != self._step:
            self.step = event["new"]

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A click or a key in the panel."""
        acts = {"forward": self.forward, "back": self.back}
        acts |= {"start": self.start, "end": self.end}
        what = message.get("do")
        if what == "choose":
            self.chosen = message.get("part", -1)
        elif what == "unfold":
            self._chosen = self._last_of(message.get("group", ""))
            self.unfold(message["group"])
        elif what == "fold":
            self.fold(*([message["group"]] if message.get("group") else []))
        elif what == "unfold all":
            self.unfold()
        elif what in acts:
            acts[what]()

    def _scene(self) -> dict[str, Any]:
        """Where things are, and the texts on them, until groups open or close."""
        place = self._layout
        shown = [
            [*texts, round(x), round(y), box.name if isinstance(box, Group) else box]
            for texts, (x, y), box in zip(
                self._shown(), place.middles, self._boxes, strict=True
            )
        ]
        lines = [
            [*ends, [round(number) for point in points for number in point]]
            for ends, points in zip(self._lines, place.lines, strict=True)
        ]
        return {
            "size": [place.width, place.height],
            "box": [WIDTH, HEIGHT],
            "parts": shown,
            "lines": lines,
            "open": self.unfolded,
            "groups": len(self._names),
        }

    def _last_of(self, name: str) -> int:
        """The part whose value a closed group shows."""
        held = self._known_group(name).parts()
        ops = [n for n in held if self.parts[n].kind == "op"]
        return (ops or held)[-1]

    def _show(self) -> None:
        if self.panel is None:
            return
        self.step_control.value = self._step
        self.start_control.disabled = self.back_control.disabled = self._step == 0
        last = self._step == self.steps
        self.forward_control.disabled = self.end_control.disabled = last
        with self.panel.hold_sync():
            self.panel.stage = {
                "seen": self._seen_boxes(),
                "now": self._box_of.get(self._now(), -1),
                "back": self._step > len(self._forward),
                "caption": self.caption(),
            }
            self.panel.chosen = self._box_of[self._chosen]
            self.panel.facts = self.facts()

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """The graph at this step as a drawing, and a table of its parts."""
        seen, now = self._seen(), self._box_of.get(self._now(), -1)
        texts, known = self._shown(), self._seen_boxes()
        drawing = picture(texts, known, now, self._lines, self._layout, repr(self))
        columns = ["part", "shape", "value", "gradient"]
        rows = [
            [
                escape(part.label),
                escape(part.size),
                escape(brief(part.value)) if seen[i] else "",
                escape(brief(part.gradient)) if seen[i] == 2 else "",
            ]
            for i, part in enumerate(self.parts[:STILL])
        ]
        more = len(self.parts) - STILL
        tail = f"\n<p>… and {more} more</p>" if more > 0 else ""
        return (
            f'<div style="line-height:1.5;overflow-x:auto">{drawing}\n'
            f"<p>{escape(self.caption())}</p>\n<details><summary>As a table</summary>\n"
            f"{table(columns, rows)}{tail}</details></div>"
        )

    def __repr__(self) -> str:
        last = self.parts[-1]
        leaves = sum(part.kind == "leaf" for part in self.parts)
        return (
            f"GraphView({last.label} {list(last.shape or ())}; "
            f"{_count(len(self._forward), 'op')}, "
            f"{_count(leaves, 'leaf', 'leaves')}, step {self._step} of {self.steps})"
        )


def _read(loss: Tensor | Callable[[], Tensor], around_it: dict[str, Any]) -> Parts:
    """The parts behind a tensor, or behind what a function computes."""
    recorder = ValueRecorder()
    if isinstance(loss, Module):
        what = f"{type(loss).__name__} is a module: a graph is that of what it computes"
        cure = "GraphView(model.forward(x))"
        raise ArgumentError("GraphView", what, cure=cure)
    if callable(loss):
        held = (tensor for _, tensor in tensors_in(around_it))
        loss = recorder.compute(loss, held)
    return read(loss, around_it, recorder)


def _caller() -> FrameType:
    """The innermost function outside of this library, which wants to see a graph."""
    frame: FrameType = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("burnbook") and frame.f_back:
        frame = frame.f_back
    return frame


def _variables(frame: FrameType) -> dict[str, Any]:
    """The tensors and modules among the variables of a caller."""
    found: dict[str, Any] = {}
    for scope in (frame.f_locals, frame.f_globals):
        for name, thing in list(scope.items()):
            ours = isinstance(thing, (Tensor, Module)) and not name.startswith("_")
            if ours and name not in found:
                found[name] = thing
    return found


def full(array: np.ndarray | None) -> str:
    """All of the numbers, or as many as one can read."""
    if array is None:
        return "unknown"
    text = np.array2string(array, precision=4, threshold=120, suppress_small=True)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"


def _where(part: Part) -> str:
    return f"{part.called} {part.size}".strip()


def _listed(names: list[str]) -> str:
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"
