"""The parts of a graph as groups in groups, each of which can run at once.

Nodes of one scope become one group where nothing outside has to run between them; where
something has, or where a part is called again, there are several groups of one key. A
group that is no more than a layer, or than a step or two without weights, is not kept:
its nodes stand in the group around it.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace

from burnbook.importers.onnx.folding import drop_unused, needs
from burnbook.importers.onnx.graph import Graph, Node
from burnbook.importers.onnx.scopes import Path, common

STEPS = 2_000_000  # that are taken at most to see whether a group can run at once
FEW = 3  # nodes without weights that are no part of their own
SIZES = frozenset(
    [
        "Add",
        "Cast",
        "Concat",
        "Div",
        "Gather",
        "Mul",
        "Slice",
        "Squeeze",
        "Sub",
        "Unsqueeze",
    ]
)
LARGE = 1 << 20  # bytes of a constant that parts do not hold several times
AROUND = 6  # nodes around one layer that are no part of their own


@dataclass
class Group:
    """A part of a model: what it does in order, what goes in, and what comes out."""

    path: Path
    items: list[Node | Group] = field(default_factory=list)
    inputs: list[str] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    @property
    def key(self) -> str:
        """Its name in the part around it."""
        return self.path[-1] if self.path else ""

    def nodes(self) -> Iterator[Node]:
        """All nodes, those of parts as well."""
        for item in self.items:
            if isinstance(item, Group):
                yield from item.nodes()
            else:
                yield item


def structure_of(graph: Graph) -> Group:
    """A graph as groups; one group without others where its nodes tell no parts."""
    paths = _paths(graph)
    whole = Group((), inputs=list(graph.inputs), outputs=list(graph.outputs))
    if not any(paths.values()):
        whole.items = list(graph.nodes)
        return whole
    for node in graph.nodes:
        node.path = paths[id(node)]
    _repeat_sizes(graph)
    whole.items = _arranged(graph.nodes, (), [STEPS])
    _dissolve(whole, graph.trainable)
    _connect(whole, graph, graph.constants.keys() - _shared(whole, graph))
    return whole


def _repeat_sizes(graph: Graph) -> None:
    """Compute sizes in each part that uses them: exporters do it once, in the first."""
    users: dict[str, list[Node]] = {}
    for node in graph.nodes:
        for name in needs(node):
            users.setdefault(name, []).append(node)
    order = {id(node): k for k, node in enumerate(graph.nodes)}
    before: dict[int, list[Node]] = {}  # copies, by the node that they stand before
    most = 4 * len(graph.nodes)
    for node in reversed(graph.nodes):
        if node.outputs[0] in graph.outputs or not _is_size(node, graph):
            continue
        for copy, inside in _copies(node, users):
            most -= 1
            if most < 0:
                return
            graph.facts[copy.outputs[0]] = graph.facts[node.outputs[0]]
            first = min(inside, key=lambda n: order[id(n)])
            order[id(copy)] = order[id(first)]
            before.setdefault(id(first), []).append(copy)
            for source in node.inputs:
                users.setdefault(source, []).append(copy)
    nodes: list[Node] = []
    todo = graph.nodes[::-1]
    while todo:
        copies = before.pop(id(todo[-1]), None)
        if copies is None:
            nodes.append(todo.pop())
        else:
            todo += copies[::-1]
    graph.nodes = nodes
    drop_unused(graph)


def _copies(
    node: Node, users: dict[str, list[Node]]
) -> Iterator[tuple[Node, list[Node]]]:
    """A node again for each other part that uses its result, and who takes the copy."""
    made = node.outputs[0]
    used = users.get(made, [])
    if any(made not in user.inputs for user in used):  # a graph inside takes it
        return
    parts: dict[Path | None, list[Node]] = {}
    for user in used:
        parts.setdefault(user.path, []).append(user)
    parts.pop(node.path, None)
    for k, (part, inside) in enumerate(parts.items()):
        name = f"{made}@{k}"
        copy = replace(node, inputs=list(node.inputs), outputs=[name], path=part)
        for user in inside:
            user.inputs = [name if n == made else n for n in user.inputs]
        yield copy, inside


def _is_size(node: Node, graph: Graph) -> bool:
    """Whether a node computes with whole numbers along no dim or one."""
    fact = graph.facts.get(node.outputs[0])
    if node.op not in SIZES or node.domain or len(node.outputs) > 1 or fact is None:
        return False
    return fact.dtype == "int64" and fact.shape is not None and len(fact.shape) < 2


def _paths(graph: Graph) -> dict[int, Path]:
    """Where each node stands; what is not told follows from who uses its results."""
    told = {id(node): node.path for node in graph.nodes}
    known = [path for path in told.values() if path is not None]
    if not known:
        return {}
    shared = common(known) if not any("." in key for key in common(known)) else ()
    cut = len(shared) if _is_wrapper(graph, shared) else 0
    found: dict[int, Path] = {}
    readers: dict[str, list[Path]] = {}
    for node in reversed(graph.nodes):
        path = told[id(node)]
        if path is None:
            users = [p for name in node.outputs for p in readers.get(name, ())]
            path = common(users) if users else ()
        else:
            path = path[cut:]
        found[id(node)] = path
        for name in needs(node):
            readers.setdefault(name, []).append(path)
    for node in graph.nodes:
        if (
            any(name in graph.outputs for name in node.outputs)
            and told[id(node)] is None
        ):
            found[id(node)] = ()
    return found


def _is_wrapper(graph: Graph, shared: Path) -> bool:
    """Whether a scope around all nodes is TensorFlow's, which names no part."""
    if not shared:
        return False
    names = [node.name for node in graph.nodes if node.path is not None]
    return all("/" in name and not name.startswith("/") for name in names)


class _Level:
    """The nodes of one part, gathered to those of the parts inside."""

    def __init__(self, path: Path, steps: list[int]):
        self.path, self.steps = path, steps
        self.members: list[list[Node]] = []
        self.keys: list[str | None] = []
        self.after: list[set[int]] = []  # which items take something of an item
        self.maker: dict[str, int] = {}
        self.open: dict[str, int] = {}
        self.first: list[dict[bool, tuple[str, ...]]] = []  # layer and step of an item
        self.last = -1

    def add(self, node: Node) -> None:
        """Put a node to others of its part, where all of them can run at once."""
        where, depth = node.path or (), len(self.path)
        key = where[depth] if len(where) > depth else None
        before = {self.maker[n] for n in needs(node) if n in self.maker}
        weights = _weights(node, where)
        place = weights or (*where, node.op)
        item = self.open.get(key) if key is not None else None
        if item is not None:
            again = self.first[item].get(weights is not None) == place
            if weights is None:
                again = again and item != self.last and item not in before
            if again or not _joins(item, before, self.after, self.steps):
                item = None
        if item is None:
            item = self.begin(key)
        self.members[item].append(node)
        self.last = item
        if weights is not None or where == (*self.path, key):
            self.first[item].setdefault(weights is not None, place)
        for k in before - {item}:
            self.after[k].add(item)
        self.maker |= {name: item for name in node.outputs if name}

    def begin(self, key: str | None) -> int:
        """A new item: a node of the part itself, or the first of a part inside."""
        item = len(self.members)
        self.members.append([])
        self.keys.append(key)
        self.after.append(set())
        self.first.append({})
        if key is not None:
            self.open[key] = item
        return item

    def items(self) -> list[Node | Group]:
        """Nodes and parts in order."""
        found: list[Node | Group] = []
        for item in _in_order(self.after):
            key, members = self.keys[item], self.members[item]
            if key is None:
                found += members
            else:
                path = (*self.path, key)
                found.append(Group(path, _arranged(members, path, self.steps)))
        return found


def _arranged(
    nodes: Iterable[Node], path: Path, steps: list[int]
) -> list[Node | Group]:
    """The nodes of a part in order, those of parts inside as groups."""
    level = _Level(path, steps)
    for node in nodes:
        level.add(node)
    return level.items()


def _weights(node: Node, where: Path) -> tuple[str, ...] | None:
    """The place and weights of a layer, by which a second call of it is known."""
    if node.domain != "nn" or not node.attributes["layer"].parts:
        return None
    return (*where, node.op, node.attributes["layer"].source)


def _joins(
    item: int, before: set[int], after: list[set[int]], steps: list[int]
) -> bool:
    """Whether a node may join an item: nothing that it waits for waits for the item."""
    seen, todo = {item}, [item]
    wanted = before - {item}
    while todo and wanted and steps[0] > 0:
        for k in after[todo.pop()]:
            steps[0] -= 1
            if k in wanted:
                return False
            if k not in seen:
                seen.add(k)
                todo.append(k)
    return steps[0] > 0


def _in_order(after: list[set[int]]) -> list[int]:
    """Items so that each runs after what it takes, else as they came."""
    waits = [0] * len(after)
    for targets in after:
        for k in targets:
            waits[k] += 1
    ready = [k for k, count in enumerate(waits) if not count]
    heapq.heapify(ready)
    found: list[int] = []
    while ready:
        item = heapq.heappop(ready)
        found.append(item)
        for k in after[item]:
            waits[k] -= 1
            if not waits[k]:
                heapq.heappush(ready, k)
    return found


def _dissolve(group: Group, trainable: set[str]) -> None:
    items: list[Node | Group] = []
    for item in group.items:
        if isinstance(item, Group):
            _dissolve(item, trainable)
            if not _is_part(item, trainable):
                items += item.items
                continue
        items.append(item)
    group.items = items


def _is_part(group: Group, trainable: set[str]) -> bool:
    """Whether a group is more than a layer with its surroundings, or a few steps."""
    inner = [item for item in group.items if isinstance(item, Group)]
    nodes = [item for item in group.items if isinstance(item, Node)]
    layers = [n for n in nodes if n.domain == "nn" and n.attributes["layer"].parts]
    plain = [n for n in nodes if n.domain != "nn"]
    weights = {n for node in plain for n in needs(node) if n in trainable}
    if len(inner) == 1 and not nodes:
        return True
    if inner or len(layers) > 1:
        return True
    if len(layers) == 1:
        return bool(weights) or len(plain) > AROUND
    return len(nodes) > FEW


def _shared(whole: Group, graph: Graph) -> set[str]:
    """Large constants of several parts: the model holds them and gives them away."""
    users: dict[str, set[int]] = {}
    todo = [whole]
    while todo:
        group = todo.pop()
        for item in group.items:
            if isinstance(item, Group):
                todo.append(item)
                continue
            for name in needs(item):
                array = graph.constants.get(name)
                if array is not None and array.nbytes > LARGE:
                    users.setdefault(name, set()).add(id(group))
    return {name for name, groups in users.items() if len(groups) > 1}


def _connect(group: Group, graph: Graph, own: set[str]) -> None:
    """What each part takes from outside, in order of use, and what others take of it.

    Sizes come after the other inputs. own: constants that a part holds itself.
    """
    wanted: set[str] = set(group.outputs)

    def is_size(name: str) -> bool:
        fact = graph.facts.get(name)
        if fact is None or fact.shape is None:
            return False
        return fact.dtype == "int64" and len(fact.shape) < 2

    for item in reversed(group.items):
        if isinstance(item, Node):
            wanted |= set(needs(item))
            continue
        made = {n for node in item.nodes() for n in node.outputs if n}
        took = dict.fromkeys(n for node in item.nodes() for n in needs(node))
        inputs = [n for n in took if n not in made and n not in own]
        item.inputs = sorted(inputs, key=is_size)
        item.outputs = [n for n in dict.fromkeys(_made(item)) if n in wanted]
        wanted |= set(item.inputs)
    for item in group.items:
        if isinstance(item, Group):
            _connect(item, graph, own)


def _made(group: Group) -> Iterator[str]:
    for node in group.nodes():
        yield from (n for n in node.outputs if n)
