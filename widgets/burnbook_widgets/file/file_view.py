"""A file of weights, to look into before anything is loaded.

    view = FileView("model.onnx")
    view.selected = "conv1.weight"      # only now is that tensor read
    view.node = "/conv1/Conv"           # and the line of source that it becomes

PyTorch's files, safetensors and their shards, ONNX, and Burn's records.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from os import PathLike
from typing import Any

import anywidget
import ipywidgets
import numpy as np
import traitlets

from burnbook.core.errors import BurnbookError, ConfigError
from burnbook.importers.tensor_file import TensorFile
from burnbook.module.summaries import size_text
from burnbook_widgets.autodiff.groups import Group as NodeGroup
from burnbook_widgets.autodiff.layout import HEIGHT, WIDTH
from burnbook_widgets.file.nodes import MOST_BOXES, NodeGraph
from burnbook_widgets.file.rows import DOTS, PATHS, Group, Leaf, NameTree, Row
from burnbook_widgets.file.source import SourceText
from burnbook_widgets.file.statistics import Statistics, statistics_of
from burnbook_widgets.file.still import still_form
from burnbook_widgets.file.texts import ended, safe
from burnbook_widgets.page import script, sheet
from burnbook_widgets.view import View, in_short, row

WINDOW = 120  # rows that the page gets at a time
OPEN = 30  # rows with which a file begins unfolded
SMALL = 8_000_000  # bytes of weights
MOST_AT_ONCE = 2_000  # nodes whose shapes are found out without being asked for
MOST_GROUPS = 50_000  # that can be unfolded at once
FOUND = 2_000  # matches that are shown unfolded
KEPT = 200  # statistics that are remembered
SHOWN = TENSORS, GRAPH = ("tensors", "graph")


class FilePanel(anywidget.AnyWidget):
    """The page of a file view: what Python sends is what it draws."""

    _esm = script("boxes", "file")
    _css = sheet("graph", "file")

    head = traitlets.Dict().tag(sync=True)
    window = traitlets.Dict().tag(sync=True)
    place = traitlets.Int(-1).tag(sync=True)
    tensor = traitlets.Dict().tag(sync=True)
    scene = traitlets.Dict().tag(sync=True)
    chosen = traitlets.Int(-1).tag(sync=True)
    node = traitlets.List().tag(sync=True)
    source = traitlets.Dict().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return f"FilePanel({self.head.get('title', '')})"


class FileView(View):
    """What a file of weights holds: a tree of its tensors, and the graph of ONNX.

    path: `.pt`, `.pth` and other files of PyTorch, `.onnx`, `.safetensors` or a folder
    with shards, `.mpk`, `.json` (both also `.gz`), `.bin`, `.bpk`.

    Opening reads names, shapes and element types. A tensor is read when it is selected,
    for its statistics and its histogram. Of an ONNX file, choosing a node shows the
    line of the Python source that it becomes, which needs the package onnx.

    Every control has a twin: `selected`, `find`, `fold`, `unfold`, `fold_all`,
    `unfold_all`; of ONNX `showing`, `node`, `fold_nodes`, `unfold_nodes`. `statistics`,
    `source` and `line` are what is shown.

    Example:
        >>> import tempfile
        >>> from burnbook.record import CompactRecorder
        >>> from burnbook.tensor import TensorData
        >>> folder = tempfile.TemporaryDirectory()
        >>> tree = {"fc": {"weight": TensorData([[1.0, 3.0]])}, "step": 3}
        >>> view = FileView(CompactRecorder().record(tree, folder.name + "/model"))
        >>> view
        FileView(model.mpk: NamedMpkFileRecorder, 1 tensor, 4 B)
        >>> view.selected = "fc.weight"
        >>> view.statistics().facts.mean
        2.0
        >>> folder.cleanup()

    Raises:
        RecordError: there is no such file, it is damaged or of no known format.
    """

    def __init__(self, path: str | PathLike[str]):
        super().__init__()
        self.file = TensorFile(path)
        self._names = [*self.file.names, *self.file.others]
        self._sizes = np.array(self.file.sizes, np.int64)
        self._between = DOTS if self.file.onnx is None else PATHS
        self._tree = self._all = NameTree(self._names, self._between)
        self._opened: set[str] = set()
        self._found_opened: set[str] = set()
        self._selected = self._find = ""
        self._known: dict[str, Statistics] = {}
        self._trouble = ""
        self.graph = self._node = None
        if self.file.onnx is not None and self.file.onnx.nodes:
            self.graph = NodeGraph(self.file.onnx)
        self._text = None if self.file.onnx is None else SourceText(self.file.onnx)
        self._showing = TENSORS if self.graph is None else GRAPH
        self._version = self._first = 0
        self._opened = self._at_first()
        self._arrange()
        self.open()

    def _at_first(self) -> set[str]:
        """The outermost groups, while there is room to see what is in them."""
        opened: set[str] = set()
        shown = len(self._tree.children(self._tree.root))
        for group in self._tree.groups(OPEN):
            shown += len(self._tree.children(group))
            if shown > OPEN:
                break
            opened.add(group.path)
        return opened

    # ── the tree ────────────────────────────────────────────────────────────

    @property
    def selected(self) -> str:
        """The tensor that is looked at, by its name; "" for none."""
        return self._selected

    @selected.setter
    def selected(self, name: str) -> None:
        if name and name not in self.file and name not in self.file.others:
            what = f"there is no tensor {safe(repr(name))}"
            known = ", ".join(map(safe, self._names[:10]))
            raise ConfigError("FileView", what, [("known", known or "none")])
        self._selected, self._trouble = name, ""
        around = self._tree.around(name) if name else []
        if not self._is_open().issuperset(around):
            self._is_open().update(around)
            self._arrange()
        if name in self.file:
            try:
                self.statistics(name)
            except BurnbookError as error:
                self._trouble = in_short(error)
        self._show()

    @property
    def find(self) -> str:
        """A part of the names that are shown; "" for all of them."""
        return self._find

    @find.setter
    def find(self, text: str) -> None:
        self._find = str(text)
        said = ""
        if self._find:
            part = self._find.lower()
            found = [i for i, n in enumerate(self._names) if part in n.lower()]
            self._tree = NameTree(self._names, self._between, found)
            groups = self._tree.groups(MOST_GROUPS) if len(found) <= FOUND else []
            self._found_opened = {group.path for group in groups} or self._at_first()
            said = f"{len(found):,} found"
        else:
            self._tree = self._all
        self._arrange()
        self._first = 0
        self._changed(said)

    def fold(self, path: str) -> None:
        """Hide what is in a group."""
        self._is_open().discard(self._group(path).path)
        self._arrange()
        self._show()

    def unfold(self, path: str) -> None:
        """Show what is in a group, and the groups around it."""
        group = self._group(path)
        self._is_open().update([*self._tree.around(group.path), group.path])
        self._arrange()
        self._show()

    def fold_all(self) -> None:
        """Show the outermost groups only."""
        self._is_open().clear()
        self._arrange()
        self._changed("folded")

    def unfold_all(self) -> None:
        """Show every tensor.

        Raises:
            ConfigError: there are too many groups to open at once.
        """
        groups = self._tree.groups(MOST_GROUPS + 1)
        if len(groups) > MOST_GROUPS:
            what = f"over {MOST_GROUPS:,} groups are too many to unfold at once"
            raise ConfigError("FileView", what, cure="unfold(path), or find")
        self._is_open().update(group.path for group in groups)
        self._arrange()
        self._changed("unfolded")

    def _is_open(self) -> set[str]:
        return self._found_opened if self._find else self._opened

    def _group(self, path: str) -> Group:
        """The group of this path in the tree that is shown."""
        group = self._tree.root
        for inside in [*self._tree.around(path), path]:
            rows = self._tree.children(group)
            held = [r for r in rows if isinstance(r, Group) and r.path == inside]
            if not held:
                what = f"there is no group {safe(repr(path))}"
                known = [safe(g.path) for g in self._tree.groups(10)]
                facts = [("known", ", ".join(known) or "none")]
                raise ConfigError("FileView", what, facts)
            group = held[0]
        return group

    def _arrange(self) -> None:
        """Which rows there are, from top to bottom."""
        self._rows = self._tree.rows(self._is_open())
        self._version += 1

    def rows(self, first: int = 0, count: int = WINDOW) -> list[dict[str, Any]]:
        """Some of the rows that are unfolded, as the page shows them."""
        return [self._line(one) for one in self._rows[first : first + count]]

    def statistics(self, name: str | None = None) -> Statistics:
        """What there is to know of a tensor, by default the selected one; it is read.

        Raises:
            ConfigError: none is selected.
            RecordError: there is no such tensor, or it cannot be read.
        """
        name = self._selected if name is None else name
        if not name:
            cure = 'view.selected = "conv1.weight"'
            raise ConfigError("FileView", "no tensor is selected", cure=cure)
        if name not in self._known:
            while len(self._known) >= KEPT:
                del self._known[next(iter(self._known))]
            self._known[name] = statistics_of(lambda: self.file.pieces(name))
        return self._known[name]

    def _line(self, one: Row) -> dict[str, Any]:
        line: dict[str, Any] = {
            "label": safe(one.label, 200),
            "level": one.level,
            "place": one.place,
            "of": one.of,
        }
        if isinstance(one, Group):
            members = one.members[one.members < len(self._sizes)]
            count = len(one.members)
            line["open"] = one.path in self._is_open()
            line["shape"] = f"{count:,} tensor{'' if count == 1 else 's'}"
            line["size"] = size_text(int(self._sizes[members].sum()))
            return line
        number = one.number
        if number >= len(self.file):
            what = self.file.others[self._names[number]]
            return {**line, "shape": safe(what, 120), "other": True}
        file = self.file
        line["shape"] = safe(str(list(file.shapes[number])), 120)
        line["dtype"] = safe(file.dtypes[number], 24)
        line["size"] = size_text(file.sizes[number])
        line["chosen"] = self._names[number] == self._selected
        return line

    def tensor_facts(self) -> list[tuple[str, str]]:
        """All that is known of the selected tensor: names and texts."""
        name = self._selected
        if not name:
            return []
        rows = [("name", ended(name, 300))]
        if name not in self.file:
            return [*rows, ("value", safe(self.file.others[name], 300))]
        place = self.file.places[name]
        shape = self.file.shapes[place]
        rows.append(("shape", safe(str(list(shape)), 200)))
        rows.append(("type", safe(self.file.dtypes[place])))
        rows.append(("size", size_text(self.file.sizes[place])))
        known = self._known.get(name)
        if known is not None:
            rows += known.rows() if known.kind in "biuf" else []
        else:
            rows.append(("elements", f"{prod(shape):,}"))
        return rows

    # ── the graph ───────────────────────────────────────────────────────────

    @property
    def showing(self) -> str:
        """What of an ONNX file is in sight: "tensors" or "graph"."""
        return self._showing

    @showing.setter
    def showing(self, what: str) -> None:
        if what not in SHOWN or (what == GRAPH and self.graph is None):
            known = SHOWN if self.graph is not None else SHOWN[:1]
            facts = [("known", " or ".join(map(repr, known)))]
            raise ConfigError("FileView", f"{what!r} cannot be shown", facts)
        self._showing = what
        self._show()

    @property
    def node(self) -> str:
        """The node of the graph that is looked at, by its name; "" for none."""
        if self.graph is None or self._node is None:
            return ""
        box = self.graph.boxes[self._node]
        return box.value if box.node is None else box.node.label

    @node.setter
    def node(self, name: str | int) -> None:
        graph = self._known_graph()
        number = graph.find(name) if isinstance(name, str) else int(name)
        if name == "":
            self._node = None
        elif number is None or not 0 <= number < len(graph.boxes):
            what = f"there is no node {safe(repr(name))}"
            known = ", ".join(safe(b.label) for b in graph.boxes[:12])
            raise ConfigError("FileView", what, [("known", known)])
        else:
            self._node, self._showing = number, GRAPH
            closed = set(graph.around(number)) - graph.opened
            if closed:
                self._open_nodes(graph.opened | closed)
        if self._node is not None:
            self._write_source()
        self._show()

    @property
    def groups(self) -> list[str]:
        """The names of the groups of nodes, each before those that it holds."""
        return [] if self.graph is None else list(self.graph.names)

    def unfold_nodes(self, *names: str) -> None:
        """Open groups of nodes, and those around them; without a name all of them."""
        graph = self._known_graph()
        opened = set(graph.opened)
        for name in names or graph.names:
            first = self._node_group(name).parts()[0]
            around = graph.around(first)
            opened.update(around[: around.index(name) + 1])
        self._open_nodes(opened)
        self._show()

    def fold_nodes(self, *names: str) -> None:
        """Close groups of nodes; without a name all of them."""
        graph = self._known_graph()
        gone = {self._node_group(name).name for name in names or graph.names}
        self._open_nodes(graph.opened - gone)
        self._show()

    def _known_graph(self) -> NodeGraph:
        if self.graph is None:
            what = f"{safe(self.file.path.name)} has no graph"
            raise ConfigError("FileView", what, cure="an .onnx file")
        return self.graph

    def _node_group(self, name: str) -> NodeGroup:
        names = self._known_graph().names
        if name not in names:
            known = ", ".join(safe(n) for n in list(names)[:12])
            what = f"there is no group {safe(repr(name))}"
            raise ConfigError("FileView", what, [("known", known or "none")])
        return names[name]

    def _open_nodes(self, opened: set[str]) -> None:
        graph = self._known_graph()
        count = graph.count(opened)
        if count > MOST_BOXES and count > graph.count(graph.opened):
            what = f"{count:,} boxes cannot be told apart"
            cure = f"fewer open groups, for up to {MOST_BOXES} boxes"
            raise ConfigError("FileView", what, cure=cure)
        graph.arrange(opened)
        self._send_scene()

    # ── the source ──────────────────────────────────────────────────────────

    @property
    def source(self) -> str:
        """The Python source that an ONNX file becomes.

        Raises:
            ConfigError: this is no ONNX file.
            ArgumentError: the package onnx is missing, or operators are not known.
        """
        if self._text is None:
            self._known_graph()
        assert self._text is not None  # it has a graph
        return self._text.text()

    @property
    def line(self) -> tuple[int, int] | None:
        """First and last line of the source that the chosen node becomes."""
        if self.graph is None or self._node is None or self._text is None:
            return None
        return self._text.lines_of(self.graph.boxes[self._node])

    def know_shapes(self) -> None:
        """Find out the shapes that follow from others, unless the graph is very large.

        A file that cannot be imported keeps those that stand in it.
        """
        if self.graph is not None and len(self.graph.boxes) <= MOST_AT_ONCE:
            self._write_source()

    def _write_source(self) -> None:
        """Write the source if that was not done yet; shapes become known with it."""
        text, graph = self._text, self.graph
        if text is None or graph is None or text.is_written or text.trouble:
            return
        try:
            text.text()
        except BurnbookError as error:
            text.trouble = str(error)
            return
        graph.types = {**text.types, **graph.types}
        self._send_scene()

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = FilePanel()
        self.panel.on_msg(self.act(self._told))

        def button(text: str, icon: str, tooltip: str, act: Any) -> ipywidgets.Button:
            made = ipywidgets.Button(
                description=text, icon=icon, tooltip=tooltip, layout={"width": "auto"}
            )
            made.on_click(self.act(lambda _: act()))
            return made

        self.find_control = ipywidgets.Text(
            description="Find",
            placeholder="part of a name",
            tooltip="Show the tensors with this in their names",
            style={"description_width": "auto"},
            layout={"width": "220px"},
        )
        self.find_control.observe(self.act(self._searched), "value")
        self.unfold_control = button(
            "Unfold all", "plus-square-o", "Show every tensor", self.unfold_all
        )
        self.fold_control = button(
            "Fold all", "minus-square-o", "Show the outermost groups", self.fold_all
        )
        controls = [self.find_control, self.unfold_control, self.fold_control]
        self.showing_control = None
        if self.graph is not None:
            self.showing_control = ipywidgets.ToggleButtons(
                options=[("Graph", GRAPH), ("Tensors", TENSORS)],
                value=self._showing,
                tooltips=["The nodes and lines between them", "The constants"],
                style={"button_width": "90px"},
                layout={"width": "auto"},
            )
            self.showing_control.observe(self.act(self._turned), "value")
            controls = [self.showing_control, *controls]
        self._send_scene()
        return ipywidgets.VBox([row(*controls), self.panel])

    def _searched(self, event: Any) -> None:
        if event["new"] != self._find:
            self.find = event["new"]

    def _turned(self, event: Any) -> None:
        if event["new"] != self._showing:
            self.showing = event["new"]

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A click, a key or a scrolled list in the panel."""
        match message.get("do"):
            case "rows":
                self._first = max(0, int(message.get("first", 0)))
                self._send_rows()
            case "choose" | "toggle" | "fold" | "unfold" as what:
                if message.get("version") == self._version:
                    self._pick(what, int(message.get("at", -1)))
            case "shapes":
                self.know_shapes()
            case "node":
                self.node = int(message.get("node", -1))
            case "unfold nodes":
                self._unfold_nodes_from_page(message.get("group"))
            case "fold nodes":
                group = message.get("group")
                self.fold_nodes(*([group] if group else []))
            case _:
                pass

    def _unfold_nodes_from_page(self, group: str | None) -> None:
        if group and self.graph is not None:
            self.unfold_nodes(group)
            return
        self.unfold_nodes()

    def _pick(self, what: str, at: int) -> None:
        """A row was clicked: a tensor is selected, a group opens or closes."""
        if not 0 <= at < len(self._rows):
            return
        one = self._rows[at]
        if isinstance(one, Leaf):
            if what in ("choose", "toggle"):
                self.selected = self._names[one.number]
            return
        is_open = one.path in self._is_open()
        if is_open and what != "unfold":
            self.fold(one.path)
        elif not is_open and what != "fold":
            self.unfold(one.path)

    def _changed(self, said: str = "") -> None:
        self._show()
        if self.panel is not None and said:
            self.panel.said = said

    def _summary(self) -> str:
        count = len(self.file)
        parts = [f"{count:,} tensor{'' if count == 1 else 's'}"]
        elements = self.file.num_elements
        parts.append(f"{elements:,} element{'' if elements == 1 else 's'}")
        parts.append(size_text(int(self._sizes.sum())))
        if self.graph is not None:
            nodes = len(self.graph.file.nodes)
            parts.append(f"{nodes:,} node{'' if nodes == 1 else 's'}")
        return " · ".join(parts)

    def file_facts(self) -> list[tuple[str, str]]:
        """What the file says of itself: names and texts."""
        rows = [("format", self.file.kind), *self.file.facts]
        rows += [("note", self.file.note)] if self.file.note else []
        return [(safe(name), safe(text, 300)) for name, text in rows if text]

    def _show(self) -> None:
        if self.panel is None:
            return
        self.find_control.value = self._find
        if self.showing_control is not None:
            self.showing_control.value = self._showing
        tensors = self._showing == TENSORS
        for control in (self.find_control, self.unfold_control, self.fold_control):
            control.layout.display = None if tensors else "none"
        with self.panel.hold_sync():
            self.panel.head = {
                "title": safe(self.file.path.name, 120),
                "summary": self._summary(),
                "facts": [list(fact) for fact in self.file_facts()],
                "showing": self._showing,
                "empty": not self._names,
            }
            self._send_rows()
            self.panel.place = self._place_of(self._selected)
            self.panel.tensor = self._tensor()
            if self.graph is not None and self._node is not None:
                self.panel.chosen = self.graph.place_of[self._node]
                facts = self.graph.facts(self._node)
                self.panel.node = [list(fact) for fact in facts]
            else:
                self.panel.chosen, self.panel.node = -1, []
            if self._text is not None and self._node is not None:
                self.panel.source = self._text.excerpt(self.line)
            else:
                self.panel.source = {}

    def _place_of(self, name: str) -> int:
        """The row of a tensor; −1 where it is folded away."""
        if not name:
            return -1
        for at, one in enumerate(self._rows):
            if isinstance(one, Leaf) and self._names[one.number] == name:
                return at
        return -1

    def _send_rows(self) -> None:
        if self.panel is None:
            return
        first = max(0, min(self._first, len(self._rows) - WINDOW // 2))
        self.panel.window = {
            "version": self._version,
            "total": len(self._rows),
            "first": first,
            "rows": self._with_parents(first, self.rows(first)),
        }

    def _with_parents(
        self, first: int, lines: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Rows with the places of the groups that they lie in; −1 for the outermost."""
        around: list[tuple[int, int]] = []  # levels and places, the innermost last
        wanted = self._rows[first].level if lines else 1
        for at in range(first - 1, -1, -1):
            if wanted == 1:
                break
            if self._rows[at].level < wanted:
                wanted = self._rows[at].level
                around.insert(0, (wanted, at))
        for at, line in enumerate(lines, first):
            while around and around[-1][0] >= line["level"]:
                around.pop()
            line["parent"] = around[-1][1] if around else -1
            around.append((line["level"], at))
        return lines

    def _tensor(self) -> dict[str, Any]:
        """Facts and histogram of the selected tensor, for the page."""
        known = self._known.get(self._selected)
        found: dict[str, Any] = {
            "facts": [list(fact) for fact in self.tensor_facts()],
            "trouble": self._trouble,
        }
        if known is not None and known.bars:
            found["bars"] = list(known.bars)
            found["ends"] = list(known.ends())
            found["every"] = known.every
        return found

    def _send_scene(self) -> None:
        if self.panel is None or self.graph is None:
            return
        graph, place = self.graph, self.graph.layout
        parts = [
            [*graph.texts(at), round(x), round(y), self._key(at)]
            for at, (x, y) in enumerate(place.middles)
        ]
        lines = [
            [*ends, [round(number) for point in points for number in point]]
            for ends, points in zip(graph.lines, place.lines, strict=True)
        ]
        self.panel.scene = {
            "size": [place.width, place.height],
            "box": [WIDTH, HEIGHT],
            "parts": parts,
            "lines": lines,
            "open": [name for name in graph.names if name in graph.opened][:60],
            "groups": len(graph.names),
        }

    def _key(self, place: int) -> str | int:
        """By what the page names a box: a number, or the name of a group."""
        assert self.graph is not None  # it is drawn
        shown = self.graph.shown[place]
        return shown.name if isinstance(shown, NodeGroup) else shown

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """The tree, the selected tensor and the graph as HTML without JavaScript."""
        if self._sizes.sum() < SMALL:  # of a large file the page asks when it is drawn
            self.know_shapes()
        return still_form(self)

    def shown_rows(self, most: int) -> tuple[Sequence[dict[str, Any]], int]:
        """The first rows, and how many more there are."""
        return self.rows(0, most), max(0, len(self._rows) - most)

    @property
    def trouble(self) -> str:
        """Why the selected tensor cannot be read; "" where it can."""
        return self._trouble

    @property
    def selected_statistics(self) -> Statistics | None:
        """Statistics of the selected tensor, if it could be read."""
        return self._known.get(self._selected)

    @property
    def source_excerpt(self) -> dict[str, Any]:
        """The lines of source around the chosen node, as the page shows them."""
        written = self._text is not None and self._node is not None
        return self._text.excerpt(self.line, 24) if written and self._text else {}

    @property
    def node_number(self) -> int | None:
        """The number of the chosen node among the boxes of the graph."""
        return self._node

    def title(self) -> tuple[str, str]:
        """The name of the file, and how much it holds."""
        return safe(self.file.path.name, 120), self._summary()

    def __repr__(self) -> str:
        count = len(self.file)
        parts = [f"{count:,} tensor{'' if count == 1 else 's'}"]
        parts.append(size_text(int(self._sizes.sum())))
        if self.graph is not None:
            parts.append(f"{len(self.graph.file.nodes):,} nodes")
        name = safe(self.file.path.name)
        return f"FileView({name}: {self.file.kind}, {', '.join(parts)})"
