"""The nodes of a module tree: layers and their parameters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Any

from burnbook.core.dtypes import Float
from burnbook.module import LayerSummary, Module, Param
from burnbook.module.layers import layers_of
from burnbook.module.summaries import size_text

STATES = {"learns": "●", "partly": "◐", "frozen": "○", "": ""}


@dataclass
class Node:
    """A layer or a parameter of a module, with what is in it.

    params, trainable: numbers to learn from, and those that an optimizer may change.
    size: bytes of all parameters. ran: what a traced forward pass found, if there was
    one. Parameters that stand in several places count once in each layer.
    """

    path: str
    label: str
    type: str
    level: int
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    params: int = 0
    trainable: int = 0
    size: int = 0
    shape: str = ""
    ran: LayerSummary | None = None

    @property
    def is_param(self) -> bool:
        """Whether it is a parameter and not a layer."""
        return bool(self.shape)

    @property
    def state(self) -> str:
        """What its parameters do: "learns", "frozen", "partly", or "" for none."""
        if not self.params:
            return ""
        if self.trainable == self.params:
            return "learns"
        return "partly" if self.trainable else "frozen"

    @property
    def output(self) -> str:
        """The shape of a parameter, or of what a layer returned."""
        if self.is_param:
            return self.shape
        return shapes(self.ran.outputs) if self.ran and self.ran.calls else ""

    @property
    def flops(self) -> str:
        """The operations of a forward pass, as text."""
        if self.ran is None:
            return ""
        return f"{self.ran.flops:,}" if self.ran.calls else "–"

    def facts(self) -> list[tuple[str, str]]:
        """All that is known of it, for the line below the tree."""
        found = [("path", self.path or "the module itself"), ("type", self.type)]
        if self.is_param:
            found.append(("shape", self.shape))
        if self.params:
            frozen = self.params - self.trainable
            kept = {"learns": "", "frozen": ", frozen"}.get(self.state)
            kept = f", {frozen:,} of them frozen" if kept is None else kept
            found.append(("parameters", f"{self.params:,}{kept}"))
        if self.size:
            found.append(("memory", size_text(self.size)))
        return found + self._facts_of_run()

    def _facts_of_run(self) -> list[tuple[str, str]]:
        ran = self.ran
        if ran is None:
            return []
        if ran.fused:
            return [("forward", "the layer around it used its parameters")]
        if not ran.calls:
            return [("forward", "did not run")]
        made = 4 * elements(ran.outputs)
        found = [("input", shapes(ran.inputs)), ("output", shapes(ran.outputs))]
        if made:
            found.append(("output memory", size_text(made)))
        found.append(("FLOPs", f"{ran.flops:,}"))
        if ran.calls > 1:
            found.append(("calls", str(ran.calls)))
        return found

    def __repr__(self) -> str:
        return f"Node({self.path!r}, {self.type})"


def nodes_of(module: Module, ran: Mapping[str, LayerSummary]) -> dict[str, Node]:
    """Every layer and parameter of a module by its path, the module itself as ""."""
    nodes: dict[str, Node] = {}
    for path, layer, _ in layers_of(module):
        _add(nodes, path, type(layer).__name__, ran.get(path))
    inside: dict[str, dict[Param, None]] = {path: {} for path in nodes}
    for path, param in module.named_params():
        if path not in nodes:
            kind = param.kind.__name__
            node = _add(nodes, path, kind)
            node.shape = str(list(param.shape))
            inside[path] = {}
        at: Node | None = nodes[path]
        while at is not None:
            inside[at.path].setdefault(param)
            at = at.parent
    for path, node in nodes.items():
        _count(node, inside[path])
        node.children.sort(key=lambda child: not child.is_param)
    return nodes


def _add(
    nodes: dict[str, Node], path: str, kind: str, ran: LayerSummary | None = None
) -> Node:
    parent, at = None, path
    while path and parent is None:
        at = at.rpartition(".")[0]
        parent = nodes.get(at)
    if parent is None:
        node = Node(path, kind, kind, 1, ran=ran)
    else:
        label = path.removeprefix(parent.path).lstrip(".")
        node = Node(path, label, kind, parent.level + 1, parent, ran=ran)
        parent.children.append(node)
    nodes[path] = node
    return node


def _count(node: Node, params: Iterable[Param]) -> None:
    for param in params:
        size = prod(param.shape)
        node.size += size * param.device.dtype(param.kind).itemsize
        if param.kind is Float:
            node.params += size
            node.trainable += size * param.is_require_grad


def shapes(found: Any) -> str:
    """Shapes as text: "[2, 3]", or several with commas between."""
    if isinstance(found, dict):
        return ", ".join(f"{name} {shapes(shape)}" for name, shape in found.items())
    if found is None:
        return "–"
    if is_shape(found):
        return str(found)
    texts = [text for text in map(shapes, found) if text != "–"]
    return ", ".join(texts) or "–"


def elements(found: Any) -> int:
    """How many numbers there are in tensors of these shapes."""
    if found is None:
        return 0
    if is_shape(found):
        return prod(found)
    parts = found.values() if isinstance(found, dict) else found
    return sum(map(elements, parts))


def is_shape(found: Any) -> bool:
    """Whether this is the shape of one tensor."""
    return isinstance(found, list) and all(type(size) is int for size in found)
