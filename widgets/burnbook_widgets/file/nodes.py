"""The nodes of an ONNX file as boxes in groups, with lines between them.

Boxes are the inputs, the nodes in the order of the file, the outputs. Groups are what
names tell: /layer1/conv/Conv stands in layer1.conv, and a node whose weights are
layer1.conv.weight too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from burnbook.importers.onnx.file import OnnxFile, OnnxNode
from burnbook_widgets.autodiff.groups import (
    Group,
    Path,
    at_first,
    grouped,
    nearest,
    shared,
    visible,
)
from burnbook_widgets.autodiff.layout import Layout, lay_out
from burnbook_widgets.file.texts import safe

MOST_BOXES = 400  # in one picture
MOST_ROWS = 60  # of facts of one kind
DEEPEST = 12  # groups in groups


@dataclass(frozen=True)
class Box:
    """An input, a node or an output. kind: leaf, op or data.

    turn: how many nodes before it give a value of that name, as inner graphs may.
    """

    kind: str
    label: str
    value: str  # the value that it gives, by which lines and source know it
    node: OnnxNode | None = None
    turn: int = 0


class NodeGraph:
    """Boxes, groups and lines of one file; `types` say what is known of values."""

    def __init__(self, file: OnnxFile) -> None:
        self.file = file
        self.types: dict[str, str] = dict(file.types)
        self.boxes = [Box("leaf", name, name) for name in file.inputs]
        turns: Counter[str] = Counter()
        for node in file.nodes:
            value = next((out for out in node.outputs if out), "")
            self.boxes.append(Box("op", node.op, value, node, turns[value]))
            turns[value] += 1
        self.boxes += [Box("data", name, name) for name in file.outputs]
        self.edges = self._edges()
        order = list(range(len(self.boxes)))
        ops = {i for i in order if self.boxes[i].kind == "op"}
        self.whole = grouped(order, self._paths(ops), ops)
        self.names = {found.name: found for found in self.whole.groups()}
        self._around: dict[int, tuple[str, ...]] = {}
        self._note_groups(self.whole, ())
        self.opened = at_first(self.whole)
        self.arrange(self.opened)

    def _edges(self) -> list[tuple[int, int]]:
        """From which box to which values go; only forwards, as ONNX has it."""
        makers: dict[str, int] = {}
        found: dict[tuple[int, int], None] = {}
        for number, box in enumerate(self.boxes):
            given: tuple[str, ...] = ()
            made: tuple[str, ...] = (box.value,)
            if box.node is not None:
                given = (*box.node.inputs, *box.node.graphs)
                made = box.node.outputs
            elif box.kind == "data":
                given, made = (box.value,), ()
            for name in given:
                maker = makers.get(name)
                if maker is not None and name:
                    found[maker, number] = None
            makers.update(dict.fromkeys(filter(None, made), number))
        return list(found)

    def _paths(self, ops: set[int]) -> dict[int, Path]:
        """In which groups each node stands."""
        paths: dict[int, Path] = {}
        for number in sorted(ops):
            node = self.boxes[number].node
            assert node is not None  # an op has one
            path = scope_of(node, self.file.weights)
            if path:
                paths[number] = path
        order = sorted(ops)
        before, after = nearest(order, paths), nearest(order[::-1], paths)
        for number in order:  # between two nodes of a part: of that part
            if number not in paths and number in before and number in after:
                paths[number] = shared([before[number], after[number]])
        return paths

    def _note_groups(self, group: Group, around: tuple[str, ...]) -> None:
        waiting = [(group, around)]
        while waiting:
            held, names = waiting.pop()
            for item in held.items:
                if isinstance(item, Group):
                    waiting.append((item, (*names, item.name)))
                else:
                    self._around[item] = names

    def around(self, number: int) -> tuple[str, ...]:
        """The names of the groups that hold a box, the outermost first."""
        return self._around[number]

    def arrange(self, opened: set[str]) -> None:
        """Open these groups and no others."""
        shown = visible(self.whole, opened)
        self.opened, self.shown = opened, shown
        self.held = [b.parts() if isinstance(b, Group) else [b] for b in shown]
        self.place_of = {n: i for i, held in enumerate(self.held) for n in held}
        place = self.place_of
        between = dict.fromkeys((place[a], place[b]) for a, b in self.edges)
        self.lines = [(a, b) for a, b in between if a < b]
        self.layout: Layout = lay_out(len(shown), self.lines)

    def count(self, opened: set[str]) -> int:
        """How many boxes there would be."""
        return len(visible(self.whole, opened))

    def texts(self, place: int) -> tuple[str, str, str, str, str]:
        """Kind of a shown box, and the four lines in it."""
        shown, held = self.shown[place], self.held[place]
        if isinstance(shown, Group):
            count = sum(self.boxes[n].kind == "op" for n in held)
            last = self.boxes[held[-1]]
            nodes = f"{count} node{'' if count == 1 else 's'}"
            return "group", safe(shown.name), nodes, self.size(last.value), ""
        box = self.boxes[held[0]]
        size = self.size(box.value)
        if box.node is None:
            word = {"leaf": "input", "data": "output"}[box.kind]
            return box.kind, safe(box.label), word, size, ""
        name = "/".join(box.node.name.strip("/").split("/")[-2:])
        name = safe(name or box.value)
        return "op", safe(box.label), size, name, self.brief(box.node)

    def size(self, value: str) -> str:
        """The shape of a value, if it is known."""
        text = self.types.get(value, "")
        return safe(text[text.index("[") :] if "[" in text else text, 60)

    def brief(self, node: OnnxNode) -> str:
        """The largest weight of a node, or its attributes."""
        weights = [w for n in node.inputs if (w := self.file.weights.get(n))]
        if weights:
            largest = max(weights, key=lambda weight: weight.num_bytes)
            if largest.shape:
                return f"weight {list(largest.shape)}"
        return safe(", ".join(f"{k}={v}" for k, v in node.attributes[:3]), 60)

    def facts(self, number: int) -> list[tuple[str, str]]:
        """All that is known of a box: names and texts."""
        box = self.boxes[number]
        if box.node is None:
            word = {"leaf": "input of the graph", "data": "output of the graph"}
            known = self.types.get(box.value, "unknown")
            return [("kind", word[box.kind]), ("name", safe(box.value, 200)),
                    ("type", safe(known, 200))]  # fmt: skip
        node = box.node
        domain = node.domain or "ai.onnx"
        rows = [("operator", f"{safe(node.op)} ({safe(domain)})")]
        rows += [("name", safe(node.name, 200))] if node.name else []
        if node.around:
            rows.append(("inside", safe(" › ".join(node.around), 200)))
        rows += [("input", self._told(n)) for n in node.inputs[:MOST_ROWS]]
        rows += [(safe(k), safe(v, 200)) for k, v in node.attributes[:MOST_ROWS]]
        rows += [("output", self._told(n)) for n in node.outputs[:MOST_ROWS] if n]
        return rows

    def _told(self, name: str) -> str:
        if not name:
            return "none"
        weight = self.file.weights.get(name)
        if weight is not None:
            return f"{safe(name, 120)}  {weight.dtype} {list(weight.shape)}, a constant"
        return f"{safe(name, 120)}  {safe(self.types.get(name, ''), 120)}".strip()

    def find(self, text: str) -> int | None:
        """The box of this name: of a node, a value, an input or an output."""
        for number, box in enumerate(self.boxes):
            if box.node is not None and text and text in (box.node.name, box.value):
                return number
        for number, box in enumerate(self.boxes):
            made = box.node.outputs if box.node is not None else (box.value,)
            if text and text in made:
                return number
        return None


def scope_of(node: OnnxNode, weights: Mapping[str, Any]) -> Path:
    """The part of a model that a node belongs to, as its names tell."""
    around = tuple(safe(name) for name in node.around)
    parts = [part for part in node.name.split("/")[:-1] if part]
    kept = [
        part
        for part, after in zip(parts, [*parts[1:], ""], strict=False)
        if not after.startswith(f"{part}.")
    ]
    if not kept:
        held = [n for n in node.inputs if n in weights and "." in n]
        names = [tuple(name.split(".")[:-1]) for name in held]
        kept = list(shared(names)) if names else []
    return (*around, *(safe(part) for part in kept))[:DEEPEST]
