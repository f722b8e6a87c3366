"""Nodes in an order in which each stands after those whose results it takes.

ONNX wants files to be so; some in the wild are not, and ONNX Runtime sorts them. Nodes
that wait for each other in a ring keep their places: `wiring` says where the ring is.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from typing import Any, TypeVar

from burnbook.importers.onnx.folding import needs
from burnbook.importers.onnx.graph import Graph

Item = TypeVar("Item")
MOST_DEPTH = 60  # graphs in graphs: the reader refuses more


def put_in_order(graph: Graph) -> None:
    """Sort the nodes of a graph, if one stands before what it takes."""
    taken = [needs(node) for node in graph.nodes]
    made = [node.outputs for node in graph.nodes]
    graph.nodes = in_order(graph.nodes, taken, made)


def in_order(
    items: Sequence[Item],
    taken: Sequence[Iterable[str]],
    made: Sequence[Iterable[str]],
) -> list[Item]:
    """Items after the makers of what they take, else as they came.

    Example:
        >>> in_order(["b", "a"], [["x"], []], [["y"], ["x"]])
        ['a', 'b']
    """
    makers: dict[str, int] = {}
    for k, names in enumerate(made):
        for name in names:
            if name:
                makers.setdefault(name, k)
    before = [
        {makers[name] for name in names if name in makers} - {k}
        for k, names in enumerate(taken)
    ]
    if all(max(places, default=-1) < k for k, places in enumerate(before)):
        return [*items]
    after: list[list[int]] = [[] for _ in items]
    waits = [len(places) for places in before]
    for k, places in enumerate(before):
        for place in places:
            after[place].append(k)
    ready = [k for k, count in enumerate(waits) if not count]
    found: list[int] = []
    while ready:
        place = heapq.heappop(ready)
        found.append(place)
        for k in after[place]:
            waits[k] -= 1
            if not waits[k]:
                heapq.heappush(ready, k)
    rest = {*range(len(items))} - {*found}
    return [items[k] for k in [*found, *sorted(rest)]]


def sorted_file(proto: Any) -> Any:
    """An onnx.ModelProto whose nodes are in order: itself, or a sorted copy."""
    if not any(_is_mixed_up(body) for body in (proto.graph, *proto.functions)):
        return proto
    made = type(proto)()
    made.CopyFrom(proto)
    for body in (made.graph, *made.functions):
        _sort(body, 0)
    return made


def _is_mixed_up(body: Any, depth: int = 0) -> bool:
    """Whether a node of a graph, or of one inside, stands before what it takes."""
    later = {name for node in body.node for name in node.output if name}
    for node in body.node:
        if not later.isdisjoint(node.input):
            return True
        for a in node.attribute:
            if not a.HasField("g") or depth > MOST_DEPTH:
                continue
            if _is_mixed_up(a.g, depth + 1) or not later.isdisjoint(_free(a.g, depth)):
                return True
        later.difference_update(node.output)
    return False


def _free(graph: Any, depth: int) -> set[str]:
    """The values that a graph in a node takes from around it."""
    made = {*(v.name for v in graph.input), *(t.name for t in graph.initializer)}
    made |= {t.values.name for t in graph.sparse_initializer}
    made |= {name for node in graph.node for name in node.output}
    found = {v.name for v in graph.output}
    for node in graph.node:
        found |= _taken(node, depth)
    return found - made


def _taken(node: Any, depth: int) -> set[str]:
    found = {name for name in node.input if name}
    if depth <= MOST_DEPTH:
        for a in node.attribute:
            if a.HasField("g"):
                found |= _free(a.g, depth + 1)
    return found


def _sort(body: Any, depth: int) -> None:
    if depth > MOST_DEPTH:
        return
    for node in body.node:
        for a in node.attribute:
            if a.HasField("g"):
                _sort(a.g, depth + 1)
    nodes = [*body.node]
    taken = [_taken(node, depth) for node in nodes]
    nodes = in_order(nodes, taken, [node.output for node in nodes])
    copies = [type(node).FromString(node.SerializePartialToString()) for node in nodes]
    del body.node[:]
    body.node.extend(copies)
