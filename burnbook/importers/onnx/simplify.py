"""A graph with less to do: what its constants and sizes say is worked out once.

Exporters write how a shape is computed, again at every place that needs it, and both
branches of a question that the sizes already answer. Here such nodes become constants,
the branch that is taken stands in place of its If, equal nodes become one, and what
nothing uses goes. Weights stay what they are: they are turned and cut, never computed
with, so all of them can still be learned.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil, prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from burnbook.importers.onnx.folding import is_weight
from burnbook.importers.onnx.graph import (
    CONTROL,
    Fact,
    Graph,
    Node,
    fact_of_array,
    names_taken,
)
from burnbook.importers.onnx.operators.registry import OPERATORS
from burnbook.importers.onnx.values import as_array, lowered

MOST = 1024  # elements of a result that is larger than all that it is made of
COPIES = 1 << 26  # bytes of weights that may be held twice, in a small file
LARGEST = 10**9  # an end of a slice that means the end

#: Broadcasting operators, of which constants are computed.
BROADCAST = frozenset(
    (
        *("Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Equal", "Where"),
        *("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor"),
    )
)
#: Operators that move elements: weights as well.
MOVED = frozenset(
    ("Reshape", "Transpose", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Concat")
)
#: Operators whose result may be larger than their inputs.
GROWING = frozenset(("ConstantOfShape", "Expand", "Range", "Tile", "Gather", "Pad"))
OTHERS = frozenset(
    (
        *("Shape", "Size", "Cast", "CastLike", "Split", "Neg", "Abs", "Sqrt", "Exp"),
        *("Reciprocal", "Log", "Floor", "Ceil", "Round", "Not", "Sin", "Cos"),
        *("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceMean"),
    )
)
FOLDED = BROADCAST | MOVED | GROWING | OTHERS
#: Operators that are random, or that differ from call to call while a model learns.
RANDOM = frozenset(
    (
        *("Bernoulli", "Dropout", "Multinomial", "RandomNormal", "RandomNormalLike"),
        *("RandomUniform", "RandomUniformLike"),
    )
)


def simplify(graph: Graph) -> None:
    """Work out what constants and sizes say, in a graph and in the graphs inside."""
    names = {n for _, node in graph.walk() for n in node.outputs}
    names |= {n for owner, _ in graph.walk() for n in (*owner.inputs, *owner.constants)}
    whole = sum(a.nbytes for a in graph.constants.values())
    _Folder(names, max(COPIES, whole)).graph(graph, _Known())
    keep_used(graph)


@dataclass
class _Known:
    """What is known at a place: constants, and whole numbers of which some are known.

    sizes: whether the sizes of values may be taken as the file says them; in a loop
    they change.
    """

    constants: dict[str, Any] = field(default_factory=dict)
    learned: set[str] = field(default_factory=set)
    parts: dict[str, Any] = field(default_factory=dict)
    sizes: bool = True


class _Folder:
    def __init__(self, names: set[str], room: int):
        self.names = names
        self.room = room  # bytes that copies of weights may still take

    def graph(self, graph: Graph, outside: _Known) -> None:
        known = _Known(
            {**outside.constants, **graph.constants},
            outside.learned | graph.trainable,
            dict(outside.parts),
            outside.sizes,
        )
        uses = uses_of_graph(graph)
        waiting, kept = deque(graph.nodes), list[Node]()
        same: dict[Any, Node] = {}
        aliases: dict[str, str] = {}
        while waiting:
            node = waiting.popleft()
            node.inputs = [aliases.get(n, n) for n in node.inputs]
            if self.is_own_weight(node, graph, known):
                continue
            if not node.domain and _is_nothing(node, graph, known):
                aliases[node.outputs[0]] = node.inputs[0]
                self.learn_alias(node, graph, known)
                continue
            if self.is_folded(node, graph, known, uses):
                continue
            branch = self.branch(node, known)
            if branch is not None:
                rename(branch, aliases)
                uses.update(names_taken(branch.nodes))
                waiting.extendleft(reversed(self.inlined(branch, node, graph)))
                known.constants |= branch.constants
                known.learned |= branch.trainable
                continue
            first = same.setdefault(_key(node), node)
            if first is not node and _key(node) is not None:
                pairs = zip(node.outputs, first.outputs, strict=True)
                aliases |= {a: b for a, b in pairs if a}
                continue
            self.inside(node, known, aliases)
            kept.append(node)
        for k, name in enumerate(graph.outputs):
            if name in aliases and len(set(graph.outputs)) == len(graph.outputs):
                kept.append(Node("Identity", "", 1, [aliases[name]], [name], {}))
            graph.outputs[k] = name
        graph.nodes = kept

    def inside(self, node: Node, known: _Known, aliases: dict[str, str]) -> None:
        """The same for the graphs in a node."""
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                rename(inner, aliases)
                self.graph(inner, replace(known, sizes=known.sizes and node.op == "If"))

    def is_own_weight(self, node: Node, graph: Graph, known: _Known) -> bool:
        """Whether an Identity makes a weight of its own, and is left out now.

        Why: exporters write equal weights once, and with Identity say that they were
        several; one that is tied they give to its users by the same name.
        """
        name = node.inputs[0] if node.inputs else ""
        if node.op != "Identity" or node.domain or name not in known.learned:
            return False
        array, made = known.constants[name], node.outputs[0]
        if not is_weight(array) or array.nbytes > self.room or made in graph.outputs:
            return False
        self.room -= array.nbytes
        graph.constants[made] = known.constants[made] = array.copy()
        graph.facts[made] = fact_of_array(array)
        graph.trainable.add(made)
        known.learned.add(made)
        return True

    def learn_alias(self, node: Node, graph: Graph, known: _Known) -> None:
        """What is known of a value holds for its other name."""
        source, target = node.inputs[0], node.outputs[0]
        for table in (known.constants, known.parts):
            if source in table:
                table[target] = table[source]
        if source in known.learned:
            known.learned.add(target)
        if source in graph.facts:
            graph.facts.setdefault(target, graph.facts[source])

    def is_folded(
        self, node: Node, graph: Graph, known: _Known, uses: Counter[str]
    ) -> bool:
        """Whether a node's results are known, and constants from now on."""
        if node.domain or node.op not in FOLDED:
            return False
        results = self.results(node, known, uses)
        if results is None:
            part = _part(node, graph, known)
            if part is None:
                return False
            if any(n is None for n in part.reshape(-1)):
                known.parts[node.outputs[0]] = part
                return False
            dtype = bool if node.op == "Equal" else np.int64
            results = (part.astype(dtype),)
        learned = any(n in known.learned for n in node.inputs[:1])
        for name, array in zip(node.outputs, results, strict=False):
            if name:
                graph.constants[name] = known.constants[name] = array
                graph.facts[name] = fact_of_array(array)
                if learned and array.ndim and array.dtype.kind == "f":
                    graph.trainable.add(name)
                    known.learned.add(name)
        return True

    def results(
        self, node: Node, known: _Known, uses: Counter[str]
    ) -> tuple[Any, ...] | None:
        """What a node of constants gives, if that may be worked out now."""
        given = [n for n in node.inputs if n]
        if not given or not all(n in known.constants for n in given):
            return None
        arrays = {n: known.constants[n] for n in given}
        if any(a.dtype.kind not in "fiub" for a in arrays.values()):
            return None
        weights = [n for n in given if n in known.learned and is_weight(arrays[n])]
        if weights and not _moves_all(node, weights, given, uses):
            return None
        inputs = [arrays[n] if n else None for n in node.inputs]
        with suppress(ArithmeticError, LookupError, MemoryError, TypeError, ValueError):
            most = max(MOST, *(a.size for a in arrays.values()))
            if _size(node, inputs) > most:
                return None
            operator, count = OPERATORS["", node.op], len(node.outputs)
            words = {} if count == 1 else {"outputs": count}
            found = operator(*inputs, **node.attributes, **words)
            found = found if isinstance(found, tuple) else (found,)
            if node.op == "Cast" and np.asarray(found[0]).nbytes > max(
                4 * MOST, arrays[given[0]].nbytes
            ):
                return None  # a weight of few bits stays one
            return tuple(as_array(lowered(value)) for value in found)
        return None

    def branch(self, node: Node, known: _Known) -> Graph | None:
        """The branch of an If that is always taken, if one is."""
        cond = known.constants.get(node.inputs[0]) if node.inputs else None
        if node.op != "If" or node.domain or cond is None or not np.size(cond):
            return None
        taken = "then_branch" if np.reshape(cond, -1)[0] else "else_branch"
        found = node.attributes.get(taken)
        if not isinstance(found, Graph) or len(found.outputs) != len(node.outputs):
            return None
        return found

    def inlined(self, branch: Graph, node: Node, graph: Graph) -> list[Node]:
        """A branch's nodes, with names that nothing around it has."""
        own = [n for inner in branch.nodes for n in inner.outputs if n]
        fresh = {n: self.fresh(n) for n in (*own, *branch.constants) if n in self.names}
        rename(branch, fresh, made=True)
        graph.constants |= branch.constants
        graph.trainable |= branch.trainable
        graph.facts |= branch.facts
        nodes = list(branch.nodes)
        for inner, outer in zip(branch.outputs, node.outputs, strict=True):
            if outer:
                again = replace(node, op="Identity", inputs=[inner], outputs=[outer])
                again.attributes = {}
                nodes.append(again)
                graph.facts[outer] = graph.facts.get(inner, Fact())
        return nodes

    def fresh(self, name: str) -> str:
        """A name that nothing has yet, like one that is taken by what it replaces."""
        k = 1
        while f"{name}_{k}" in self.names:
            k += 1
        self.names.add(f"{name}_{k}")
        return f"{name}_{k}"


def rename(graph: Graph, names: Mapping[str, str], made: bool = False) -> None:
    """Give values other names, in the graphs inside as well.

    made: those that the graph's own nodes and constants make are renamed too.
    """
    if not names:
        return
    if made:
        graph.constants = {names.get(k, k): v for k, v in graph.constants.items()}
        graph.facts |= {names[k]: v for k, v in graph.facts.items() if k in names}
        graph.trainable = {names.get(n, n) for n in graph.trainable}
        for node in graph.nodes:
            node.outputs = [names.get(n, n) for n in node.outputs]
    graph.outputs = [names.get(n, n) for n in graph.outputs]
    for node in graph.nodes:
        node.inputs = [names.get(n, n) for n in node.inputs]
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                rename(inner, names)


def keep_used(graph: Graph) -> None:
    """Without nodes whose results nothing takes."""
    used = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if not used.intersection(n for n in node.outputs if n):
            continue
        for inner in node.attributes.values():
            if isinstance(inner, Graph):
                keep_used(inner)
        used.update(names_taken([node]))
        kept.append(node)
    graph.nodes = kept[::-1]


def uses_of_graph(graph: Graph) -> Counter[str]:
    """How often each value is taken, inside as well."""
    return Counter(names_taken(graph.nodes) + graph.outputs)


def _moves_all(
    node: Node, weights: list[str], given: list[str], uses: Counter[str]
) -> bool:
    """Whether a node moves weights that it alone uses, so none is there twice."""
    if node.op not in MOVED or node.op == "Slice":
        return False
    if node.op == "Concat" and len(weights) < len(given):
        return False
    return all(uses[n] == 1 for n in weights)


def _size(node: Node, inputs: list[Any]) -> int:
    """How many elements a result has at most; said before anything is made."""
    first = inputs[0]
    if node.op in BROADCAST:
        shapes = [a.shape for a in inputs if a is not None]
        return prod(np.broadcast_shapes(*shapes))
    match node.op:
        case "ConstantOfShape":
            return prod(first.reshape(-1).tolist())
        case "Expand":
            wanted = tuple(inputs[1].reshape(-1).tolist())
            return prod(np.broadcast_shapes(first.shape, wanted))
        case "Range":
            start, limit, delta = (a.reshape(-1)[0].item() for a in inputs)
            return max(0, ceil((limit - start) / delta))
        case "Tile":
            return first.size * prod(inputs[1].reshape(-1).tolist())
        case "Gather":
            rest = first.size // max(1, first.shape[node.attributes.get("axis", 0)])
            return inputs[1].size * rest
        case "Pad":
            pads = np.abs(inputs[1].reshape(2, -1)).sum(0).tolist()
            if len(inputs) > 3 and inputs[3] is not None:
                return first.size * prod(1 + n for n in pads)
            return prod(n + p for n, p in zip(first.shape, pads, strict=True))
        case "Concat":
            return sum(a.size for a in inputs)
        case _:
            return max(a.size for a in inputs if a is not None)


def _key(node: Node) -> Any:
    """What two nodes have in common that give the same; None for those that do not."""
    if node.op in RANDOM or node.op in CONTROL:
        return None
    parts = []
    for word, value in sorted(node.attributes.items()):
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            value = (value.dtype.name, value.shape, value.tobytes())
        elif not isinstance(value, (int, float, str, list)):
            return None
        parts.append((word, repr(value)))
    return node.op, node.domain, tuple(node.inputs), len(node.outputs), tuple(parts)


def _is_nothing(node: Node, graph: Graph, known: _Known) -> bool:
    """Whether a node gives back what it takes: a slice of all, a cast to its own."""
    if node.op == "Identity" or (node.op == "Concat" and len(node.inputs) == 1):
        return True
    if node.op == "Sub":
        return _takes_zero(node, graph, known)
    if node.op == "Cast":
        fact = graph.facts.get(node.inputs[0])
        made = graph.facts.get(node.outputs[0])
        if fact is None or made is None or fact.kind != "tensor":
            return False
        return bool(fact.dtype) and fact.dtype == made.dtype
    if node.op != "Slice" or any(n not in known.constants for n in node.inputs[1:]):
        return False
    starts, ends, *rest = (known.constants[n].reshape(-1) for n in node.inputs[1:])
    by_one = len(rest) < 2 or bool((rest[1] == 1).all())
    return by_one and bool((starts == 0).all() and (ends >= LARGEST).all())


def _takes_zero(node: Node, graph: Graph, known: _Known) -> bool:
    """Whether a difference takes one zero away, which is no weight and adds no dim.

    Why not a sum: -0.0 + 0.0 is 0.0.
    """
    taken, name = node.inputs
    zero, fact = known.constants.get(name), graph.facts.get(taken)
    if zero is None or zero.dtype.kind not in "fiu":
        return False
    if name in known.learned and is_weight(zero):
        return False
    if fact is None or fact.shape is None or zero.ndim > len(fact.shape):
        return False
    return zero.size == 1 and not zero.any() and not np.signbit(zero).any()


def _part(node: Node, graph: Graph, known: _Known) -> Any:
    """Whole numbers of which some may be known: sizes, and what is made of them.

    An array of objects, with None for what only the run will tell.
    """
    if node.op == "Shape":
        return _sizes_of(node, graph, known)
    if node.op == "Size":
        sizes = _sizes_of(node, graph, known)
        if sizes is None or any(n is None for n in sizes):
            return None
        return _objects(prod(sizes))
    inputs = [_objects_of(n, known) for n in node.inputs if n]
    if not inputs or any(a is None for a in inputs):
        return None
    picks = node.op in ("Gather", "Slice", "Squeeze", "Unsqueeze")
    if picks and any(n not in known.constants for n in node.inputs[1:]):
        return None
    with suppress(ArithmeticError, LookupError, TypeError, ValueError):
        return _part_of(node, inputs)
    return None


def _part_of(node: Node, inputs: list[Any]) -> Any:
    first, axis = inputs[0], node.attributes.get("axis", 0)
    match node.op:
        case "Gather" if first.ndim == 1 and axis in (0, -1):
            return _objects(first[inputs[1].astype(np.int64)])
        case "Slice" if first.ndim == 1:
            start, end = inputs[1].item(), inputs[2].item()
            step = inputs[4].item() if len(inputs) > 4 else 1
            return first[slice(start, end, step)] if step > 0 else None
        case "Concat" if all(a.ndim == 1 for a in inputs):
            return np.concatenate(inputs)
        case "Unsqueeze" if first.ndim == 0:
            return first.reshape(1)
        case "Squeeze" if first.size == 1 and first.ndim == 1:
            return first.reshape(())
        case "Cast" if node.attributes.get("to") in (6, 7):
            return first
        case "Add" | "Sub" | "Mul" | "Div" | "Equal" if len(inputs) == 2:
            return _computed(node.op, *inputs)
        case _:
            return None


def _sizes_of(node: Node, graph: Graph, known: _Known) -> Any:
    name = node.inputs[0]
    fact = graph.facts.get(name)
    if name in known.constants:
        sizes: Any = known.constants[name].shape
    elif fact is None or fact.kind != "tensor" or fact.shape is None:
        return None
    else:
        sizes = [n if isinstance(n, int) and known.sizes else None for n in fact.shape]
    found = np.empty(len(sizes), object)
    found[:] = sizes
    start, end = node.attributes.get("start", 0), node.attributes.get("end")
    return found[start:end]


def _objects_of(name: str, known: _Known) -> Any:
    if name in known.parts:
        return known.parts[name]
    array = known.constants.get(name)
    if array is None or array.dtype.kind not in "iu" or array.size > MOST:
        return None
    return _objects(array)


def _objects(array: ArrayLike) -> Any:
    found = np.asarray(array)
    return found.astype(object)


def _computed(op: str, x: Any, y: Any) -> Any:
    """Numbers where both are known, None elsewhere."""
    how = {
        "Add": lambda a, b: a + b,
        "Sub": lambda a, b: a - b,
        "Mul": lambda a, b: a * b,
        "Div": lambda a, b: int(a / b) if abs(a) < 1 << 50 else None,
        "Equal": lambda a, b: a == b,
    }[op]
    x, y = np.broadcast_arrays(x, y)
    found = np.empty(x.shape, object)
    for k in np.ndindex(x.shape):
        is_known = x[k] is not None and y[k] is not None
        found[k] = how(x[k], y[k]) if is_known else None
    return found
