"""Whether the nodes of a graph fit together: who makes each value, and when.

ONNX wants every name to be made once, by a node that stands before those that take it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

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
    return [*found, *_faults(graph, Counter(), {})]


def _faults(
    graph: Graph, seen: Counter[str], later: dict[str, Node]
) -> Iterator[Fault]:
    """The faults of one graph.

    seen: the values that are known where it stands. later: those of the graphs around
    it that are made after it, or by the node that it is in.
    """
    makers = _makers(graph)
    yield from _made_twice(graph)
    own = [*graph.inputs, *graph.constants]
    seen.update(own)
    waiting = {name: nodes[0] for name, nodes in makers.items()}
    after = {**later, **waiting}
    for node in graph.nodes:
        for name in dict.fromkeys(filter(None, node.inputs)):
            if not seen[name]:
                yield node.label, _missing(name, node, after.get(name), makers)
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                yield from _faults(inner, seen, after)
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


def _missing(
    name: str, node: Node, maker: Node | None, makers: dict[str, list[Node]]
) -> str:
    """Why a node cannot have what it takes."""
    taken = f"takes {short(name)!r}"
    if maker is None:
        return f"{taken}, which nothing makes"
    if maker is node:
        return f"{taken}, which it makes itself"
    made = f"{taken}, which {short(maker.label)} makes"
    if any(one is node for one in _before(maker, makers)):
        return f"{made} of what this node makes: a cycle"
    return f"{made} later: the nodes are not in order"


def _before(node: Node, makers: dict[str, list[Node]]) -> Iterator[Node]:
    """The nodes of a graph that a node waits for."""
    met: set[int] = set()
    waiting = [node]
    while waiting:
        for name in names_taken([waiting.pop()]):
            for maker in makers.get(name, ()):
                if id(maker) not in met:
                    met.add(id(maker))
                    yield maker
                    waiting.append(maker)
