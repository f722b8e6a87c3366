"""A module as a tree to fold, to look into, and to freeze.

    tree = ModuleTree(model, [1, 28, 28])
    tree.freeze("conv1")
    model = tree.module

Modules are not changed: freezing gives a new one, which `tree.module` holds.
"""

from __future__ import annotations

from html import escape
from typing import Any

import anywidget
import ipywidgets
import traitlets

from burnbook.core.dtypes import Float
from burnbook.core.errors import ConfigError
from burnbook.module import Module, summary
from burnbook.module.summaries import size_text
from burnbook.optim import ParamGroup
from burnbook_widgets.module.nodes import STATES, Node, nodes_of
from burnbook_widgets.page import script, sheet
from burnbook_widgets.view import View, row, table

MOST = 200  # rows at a time
STILL = 100  # rows of the still form
OPEN = 60  # a tree with more layers begins folded


class TreePanel(anywidget.AnyWidget):
    """The page of a module tree: what Python sends is what it draws."""

    _esm = script("tree")
    _css = sheet("tree")

    head = traitlets.Dict().tag(sync=True)
    rows = traitlets.List(traitlets.Dict()).tag(sync=True)
    chosen = traitlets.Unicode().tag(sync=True)
    facts = traitlets.List().tag(sync=True)
    said = traitlets.Unicode().tag(sync=True)
    fault = traitlets.Unicode().tag(sync=True)

    def __repr__(self) -> str:
        return f"TreePanel({self.head.get('title', '')})"


class ModuleTree(View):
    """The layers and parameters of a module, with sizes; parts of it can be frozen.

    inputs: as for `summary`: shapes, which become zeros, or tensors; one forward pass
    then tells shapes and FLOPs of each layer. Every control has a twin: `chosen`,
    `find`, `fold`, `unfold`, `fold_all`, `unfold_all`, `freeze`, `unfreeze`; `module`
    is the module as it stands.

    Example:
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> tree = ModuleTree(LinearConfig(3, 2).init(Numpy()), [1, 3])
        >>> tree
        ModuleTree(Linear; 8 parameters, learns)
        >>> tree.freeze("weight").named_params()[0][1].is_require_grad
        False
    """

    def __init__(self, module: Module, *inputs: Any, method: str = "forward"):
        super().__init__()
        self.module = module
        found = summary(module, *inputs, method=method).rows if inputs else []
        self._ran = {line.path: line for line in found}
        self._nodes = nodes_of(module, self._ran)
        self._chosen = self._find = ""
        self._folded: set[str] = set()
        self._fold_at_first()
        self.open()

    def _fold_at_first(self) -> None:
        """Fold what holds parameters only; of a large module all but the outermost."""
        layers = [node for node in self._nodes.values() if not node.is_param]
        for node in layers:
            plain = all(child.is_param for child in node.children)
            deep = len(layers) > OPEN and node.level > 1
            if node.children and node.path and (plain or deep):
                self._folded.add(node.path)

    # ── what one can set ────────────────────────────────────────────────────

    @property
    def chosen(self) -> str:
        """The path of the layer or parameter that is looked at; "" for the module."""
        return self._chosen

    @chosen.setter
    def chosen(self, path: str) -> None:
        node = self._node(path).parent
        while node is not None:  # what is chosen is to be seen
            self._folded.discard(node.path)
            node = node.parent
        self._chosen = path
        self._show()

    @property
    def find(self) -> str:
        """A part of the paths that are shown, whatever is folded; "" for the tree."""
        return self._find

    @find.setter
    def find(self, text: str) -> None:
        self._find = str(text)
        count = sum(self._matches(node) for node in self._nodes.values())
        self._changed(f"{count} found" if text else "")

    def fold(self, path: str) -> None:
        """Hide what is in a layer."""
        if self._node(path).children:
            self._folded.add(path)
        if self._chosen.startswith(f"{path}." if path else ""):
            self._chosen = path
        self._show()

    def unfold(self, path: str) -> None:
        """Show what is in a layer."""
        self._folded.discard(self._node(path).path)
        self._show()

    def fold_all(self) -> None:
        """Show the module and its outermost layers only."""
        nodes = self._nodes.values()
        self._folded = {node.path for node in nodes if node.children and node.path}
        self._chosen = self._chosen.partition(".")[0]
        if self._chosen not in self._nodes:
            self._chosen = ""
        self._changed("folded")

    def unfold_all(self) -> None:
        """Show everything."""
        self._folded.clear()
        self._changed("unfolded")

    def freeze(self, path: str | None = None) -> Module:
        """Leave a part alone by gradients; the changed module, also as `module`.

        path: of a layer, a list of layers, or a parameter; without, the chosen one.
        """
        return self._set_learning(path, False)

    def unfreeze(self, path: str | None = None) -> Module:
        """Let a part learn again; the changed module, also as `module`."""
        return self._set_learning(path, True)

    def _set_learning(self, path: str | None, learning: bool) -> Module:
        path = self._chosen if path is None else path
        inside = f"{path}." if path else ""
        names = [
            name
            for name, param in self.module.named_params()
            if (name == path or name.startswith(inside)) and param.kind is Float
        ]
        where = path or self._nodes[""].label
        if not names:
            what, facts = f"{where} has nothing to learn", self._node(path).type
            raise ConfigError("ModuleTree", what, [("type", facts)])
        change = self.module.unfreeze_group if learning else self.module.freeze_group
        self.module = change(ParamGroup.from_paths(names))
        self._nodes = nodes_of(self.module, self._ran)
        self._changed(f"{where} {'learns' if learning else 'is frozen'}")
        return self.module

    def _node(self, path: str) -> Node:
        if path not in self._nodes:
            known = ", ".join(name for name in [*self._nodes][:20] if name)
            what = f"there is no part {path!r}"
            raise ConfigError("ModuleTree", what, [("known", known)])
        return self._nodes[path]

    # ── what is shown ───────────────────────────────────────────────────────

    def _matches(self, node: Node) -> bool:
        return self._find.lower() in node.path.lower()

    def visible(self) -> list[Node]:
        """The nodes that are shown, from top to bottom."""
        if not self._find:
            return self._unfolded(self._nodes[""])
        kept: set[str] = set()
        for path, node in self._nodes.items():
            if self._matches(node):
                at: Node | None = node
                while at is not None and at.path not in kept:
                    kept.add(at.path)
                    at = at.parent
                kept.add(path)
        return self._unfolded(self._nodes[""], kept)

    def _unfolded(self, node: Node, kept: set[str] | None = None) -> list[Node]:
        if kept is not None and node.path not in kept:
            return []
        found = [node]
        if kept is not None or node.path not in self._folded:
            for child in node.children:
                found += self._unfolded(child, kept)
        return found

    def _summary(self) -> str:
        top = self._nodes[""]
        frozen = top.params - top.trainable
        kept = f" ({frozen:,} frozen)" if frozen else ""
        parts = [f"{top.params:,} parameters{kept}", size_text(top.size)]
        if top.ran is not None:
            parts.append(f"{top.flops} FLOPs of one forward pass")
        return " · ".join(parts)

    def _changed(self, said: str = "") -> None:
        self._show()
        if self.panel is not None and said:
            self.panel.said = said

    # ── live ────────────────────────────────────────────────────────────────

    def _build(self) -> ipywidgets.VBox:
        self.panel = TreePanel()
        self.panel.on_msg(self.act(self._told))

        def button(text: str, icon: str, tooltip: str, act: Any) -> ipywidgets.Button:
            made = ipywidgets.Button(
                description=text, icon=icon, tooltip=tooltip, layout={"width": "auto"}
            )
            made.on_click(self.act(lambda _: act()))
            return made

        self.freeze_control = button(
            "Freeze", "lock", "Exclude the chosen part from training", self.freeze
        )
        self.unfreeze_control = button(
            "Unfreeze", "unlock", "Train the chosen part again", self.unfreeze
        )
        self.unfold_control = button(
            "Unfold all", "plus-square-o", "Show every part", self.unfold_all
        )
        self.fold_control = button(
            "Fold all", "minus-square-o", "Show the outermost layers", self.fold_all
        )
        self.find_control = ipywidgets.Text(
            description="Find",
            placeholder="part of a path",
            tooltip="Show the parts with this in their path",
            style={"description_width": "auto"},
            layout={"width": "200px"},
        )
        self.find_control.observe(self.act(self._found), "value")
        controls = row(
            self.freeze_control,
            self.unfreeze_control,
            self.unfold_control,
            self.fold_control,
            self.find_control,
        )
        return ipywidgets.VBox([controls, self.panel])

    def _found(self, event: Any) -> None:
        if event["new"] != self._find:
            self.find = event["new"]

    def _told(self, _: Any, message: Any, __: Any) -> None:
        """A click or a key in the panel."""
        path = message.get("path", "")
        match message.get("do"):
            case "choose":
                self.chosen = path
            case "fold":
                self.fold(path)
            case "unfold":
                self.unfold(path)
            case "freeze":
                frozen = self._node(path).state == "frozen"
                self.unfreeze(path) if frozen else self.freeze(path)
            case _:
                pass

    def _show(self) -> None:
        if self.panel is None:
            return
        self.find_control.value = self._find
        node = self._nodes[self._chosen]
        self.freeze_control.disabled = node.state in ("frozen", "")
        self.unfreeze_control.disabled = node.state in ("learns", "")
        nodes = self.visible()
        with self.panel.hold_sync():
            self.panel.head = {
                "title": self._nodes[""].type,
                "summary": self._summary(),
                "ran": bool(self._ran),
                "more": max(0, len(nodes) - MOST),
            }
            self.panel.rows = [self._line(node) for node in nodes[:MOST]]
            self.panel.chosen = self._chosen
            self.panel.facts = [list(fact) for fact in node.facts()]

    def _line(self, node: Node) -> dict[str, Any]:
        """A row of the tree."""
        siblings = node.parent.children if node.parent else [node]
        whole = self._nodes[""]
        opened = None
        if node.children:
            opened = bool(self._find) or node.path not in self._folded
        ops = node.ran.flops if node.ran else 0
        most = whole.ran.flops if whole.ran else 0
        return {
            "path": node.path,
            "label": node.label,
            "type": node.type,
            "level": node.level,
            "place": next(i for i, n in enumerate(siblings, 1) if n is node),
            "of": len(siblings),
            "open": opened,
            "param": node.is_param,
            "state": node.state,
            "params": f"{node.params:,}" if node.params else "",
            "share": round(node.params / whole.params, 4) if whole.params else 0,
            "memory": size_text(node.size) if node.size else "",
            "output": node.output,
            "flops": node.flops,
            "work": round(ops / most, 4) if most else 0,
        }

    # ── still ───────────────────────────────────────────────────────────────

    def still(self) -> str:
        """The tree as it is folded now, as an HTML table without JavaScript."""
        head = ["layer", "type", "parameters", "", "memory"]
        head += ["shape", "FLOPs"] if self._ran else ["shape"]
        nodes = self.visible()
        rows = []
        for node in nodes[:STILL]:
            line = self._line(node)
            sign = {None: "·", True: "▾", False: "▸"}[line["open"]]
            indent = f'<span style="padding-left:{16 * (node.level - 1)}px">'
            state = f"{STATES[node.state]} {node.state}".strip()
            cells = [f"{indent}{sign} {escape(node.label)}</span>", escape(node.type)]
            cells += [line["params"], state, line["memory"], escape(line["output"])]
            rows.append([*cells, line["flops"]] if self._ran else cells)
        title = f"<b>{escape(self._nodes[''].type)}</b> {self._summary()}"
        more = len(nodes) - STILL
        tail = f"\n<p>… and {more:,} more</p>" if more > 0 else ""
        return (
            f'<div style="line-height:1.5;overflow-x:auto">{title}\n'
            f"{table(head, rows)}{tail}</div>"
        )

    def __repr__(self) -> str:
        top = self._nodes[""]
        state = f", {top.state}" if top.state else ""
        return f"ModuleTree({top.type}; {top.params:,} parameters{state})"
