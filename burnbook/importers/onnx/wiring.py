"""Whether the nodes of a graph fit together: who makes each value, and when.

ONNX wants every name to be made once, by a node that stands before those that take it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from burnbook.importers.onnx.graph import Graph, Node, names_taken
from burnbook.record.tree import short

Fault = tuple[str, str]  # where: the node or value, and what is wrong there


def faults_of(graph: Graph) -> list[Fault]:
    """All places where a graph does not fit together, those of inner graphs as well.

    Example:
        >>> node = Node("Relu", "", 14, ["nope"], ["y"], {}, name="act")
        >>> faults_of(Graph("g", ["x"], ["y"], [node]))
        [('act', "takes 'nope', which nothing makes")]
    """
    found = [] if graph.outputs else [("the graph", "has no outputs")]
    return [*found, *_faults(graph, Counter(), ())]


def _faults(
    graph: Graph, seen: Counter[str], around: tuple[_Around, ...]
) -> Iterator[Fault]:
    """The faults of one graph.

    seen: the values that are known where it stands. around: the graphs that it is in,
    from within, which may make a value later.
    """
    makers = _makers(graph)
    rings = _Rings(graph, makers)
    yield from _made_twice(graph)
    own = [*graph.inputs, *graph.constants]
    seen.update(own)
    for node in graph.nodes:
        for name in dict.fromkeys(filter(None, node.inputs)):
            if not seen[name]:
                inside = (_Around(node, makers, rings), *around)
                yield node.label, _missing(name, node, inside)
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                inside = (_Around(node, makers, rings), *around)
                yield from _faults(inner, seen, inside)
        made = [*filter(None, node.outputs)]
        own += made
        seen.update(made)
    for name in dict.fromkeys(filter(None, graph.outputs)):
        if not seen[name]:
            yield f"the output {short(name)!r}", "is made by no node"
    seen.subtract(own)


def _makers(graph: Graph) -> dict[str, list[Node]]:
    """The nodes that make each value."""
    makers: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in filter(None, node.outputs):
            makers.setdefault(name, []).append(node)
    return makers


def _made_twice(graph: Graph) -> Iterator[Fault]:
    """Values of one name: of several nodes, constants or inputs."""
    places: dict[str, list[str]] = {}
    for name in graph.inputs:
        places.setdefault(name, []).append("an input")
    for name in [*graph.constants, *graph.doubled]:
        places.setdefault(name, []).append("a constant")
    for node in graph.nodes:
        for name in filter(None, node.outputs):
            places.setdefault(name, []).append(f"{node.op} {node.name}".strip())
    for name, where in places.items():
        if len(where) > 1:
            shown = ", ".join(map(short, where[:4])) + (" …" if len(where) > 4 else "")
            yield f"the value {short(name)!r}", f"is made {_times(len(where))}: {shown}"


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{count} times"


@dataclass
class _Around:
    """A graph, and the node that takes a value there, or has a graph that does."""

    user: Node
    makers: dict[str, list[Node]]
    rings: _Rings

    def is_ring(self, maker: Node) -> bool:
        """Whether a maker waits for the user."""
        return maker is self.user or self.rings.is_one(self.user, maker)


def _missing(name: str, node: Node, around: tuple[_Around, ...]) -> str:
    """Why a node cannot have what it takes."""
    taken = f"takes {short(name)!r}"
    where = next((one for one in around if name in one.makers), None)
    if where is None:
        return f"{taken}, which nothing makes"
    maker = where.makers[name][0]
    if maker is node:
        return f"{taken}, which it makes itself"
    made = f"{taken}, which {short(maker.label)} makes"
    if where.is_ring(maker):
        return f"{made} of what this node makes: a cycle"
    return f"{made} later: the nodes are not in order"


class _Rings:
    """Which nodes of a graph wait for each other, worked out where that is asked.

    Why: by strongly connected components, all at once, as every node of a file may
    stand before those that it waits for.
    """

    def __init__(self, graph: Graph, makers: dict[str, list[Node]]) -> None:
        self.graph, self.makers = graph, makers

    def is_one(self, node: Node, maker: Node) -> bool:
        """Whether two nodes wait for each other."""
        return self.rings[id(maker)] == self.rings[id(node)]

    def needed(self, node: Node) -> list[Node]:
        """The nodes that make what a node takes."""
        return [m for name in names_taken([node]) for m in self.makers.get(name, ())]

    @cached_property
    def rings(self) -> dict[int, int]:
        """By the id of each node, the number of its component (Tarjan's algorithm)."""
        found: dict[int, int] = {}
        order: dict[int, int] = {}  # when a node was met
        low: dict[int, int] = {}  # the earliest node of the way that it leads back to
        way: list[int] = []
        for first in self.graph.nodes:
            stack = [] if id(first) in order else [(first, iter(self.needed(first)))]
            while stack:
                node, rest = stack[-1]
                if id(node) not in order:
                    order[id(node)] = low[id(node)] = len(order)
                    way.append(id(node))
                for maker in rest:
                    if id(maker) not in order:
                        stack.append((maker, iter(self.needed(maker))))
                        break
                    if id(maker) not in found:
                        low[id(node)] = min(low[id(node)], order[id(maker)])
                else:
                    stack.pop()
                    if stack:
                        above = id(stack[-1][0])
                        low[above] = min(low[above], low[id(node)])
                    if low[id(node)] == order[id(node)]:
                        while id(node) not in found:
                            found[way.pop()] = order[id(node)]
        return found
