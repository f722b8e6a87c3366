"""What of a graph is known before it runs: constants of constants, sizes, what is dead.

Exporters leave arithmetic of shapes in a graph whose result never changes. Here it is
done once, with the functions that would run. What an input decides stays as it is, also
where the file declares a fixed size for the input.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.importers.onnx.graph import Graph, Node, fact_of_array, names_taken
from burnbook.importers.onnx.operators.registry import OPERATORS

MOST = 1 << 16  # elements of a result that is computed in advance
SAME = frozenset(
    [
        "Abs",
        "Clip",
        "Dropout",
        "Elu",
        "Erf",
        "Exp",
        "Gelu",
        "HardSigmoid",
        "HardSwish",
        "LayerNormalization",
        "LeakyRelu",
        "LogSoftmax",
        "Mish",
        "Neg",
        "Relu",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Sqrt",
        "Tanh",
    ]
)
LARGE = 1 << 24  # bytes of a weight that is not held twice
LAYOUT = frozenset({"Transpose", "Reshape", "Squeeze", "Unsqueeze", "Flatten"})
KNOWN = LAYOUT | frozenset(
    [
        "Abs",
        "Add",
        "And",
        "Cast",
        "Ceil",
        "Concat",
        "ConstantOfShape",
        "Div",
        "Equal",
        "Exp",
        "Expand",
        "Floor",
        "Gather",
        "Greater",
        "GreaterOrEqual",
        "Less",
        "LessOrEqual",
        "Log",
        "Max",
        "Min",
        "Mod",
        "Mul",
        "Neg",
        "Not",
        "Or",
        "Pow",
        "Range",
        "Reciprocal",
        "ReduceMax",
        "ReduceMin",
        "ReduceProd",
        "ReduceSum",
        "Round",
        "Shape",
        "Size",
        "Slice",
        "Split",
        "Sqrt",
        "Sub",
        "Tile",
        "Trilu",
        "Where",
        "Xor",
    ]
)


def fold(graph: Graph, outer: Mapping[str, Any] | None = None) -> None:
    """Compute what depends on constants alone, and leave out what nothing uses.

    An Identity of a weight becomes a weight of its own: exporters write equal weights
    once, which were several.
    """
    known = {**(outer or {}), **graph.constants}
    uses = uses_of(graph)
    kept: list[Node] = []
    shapes: dict[str, str] = {}  # what Shape was taken of
    for node in graph.nodes:
        for inner in graphs_of(node):
            fold(inner, known)
        _tidy(node, graph, known)
        if node.op == "Shape" and not node.domain and not node.attributes:
            shapes[node.outputs[0]] = node.inputs[0]
        found = _known(node, graph, known, uses, shapes)
        if found is None or any(n in graph.outputs for n in node.outputs):
            kept.append(node)
            continue
        source = node.inputs[0] if node.inputs else ""
        for name, array in zip(node.outputs, found, strict=False):
            graph.constants[name] = known[name] = array
            graph.facts[name] = fact_of_array(array)
            if source in graph.trainable and node.op in LAYOUT | {"Identity"}:
                graph.trainable.add(name)
    graph.nodes = kept
    drop_unused(graph)
    _complete(graph)


def _tidy(node: Node, graph: Graph, known: Mapping[str, Any]) -> None:
    """Leave out what says nothing, and see what is no weight."""
    if node.op in ("Resize", "Upsample"):
        graph.trainable -= {*node.inputs[1:]}  # sizes, which nothing learns
    if node.op == "Concat" and not node.domain:
        some = [n for n in node.inputs if not _is_empty(n, known)]
        node.inputs = some or node.inputs
    if node.op == "Reshape" and node.attributes.get("allowzero"):
        sizes = known.get(node.inputs[1])
        if sizes is not None and sizes.all():  # there is no 0 that it is about
            del node.attributes["allowzero"]


def _is_empty(name: str, known: Mapping[str, Any]) -> bool:
    """Whether a value is a list without elements."""
    array = known.get(name)
    return array is not None and array.shape == (0,)


def _complete(graph: Graph) -> None:
    """The shapes of values inside functions of the file, where they follow at sight."""
    for node in graph.nodes:
        if node.domain or len(node.outputs) != 1 or node.outputs[0] in graph.facts:
            continue
        facts = [graph.facts.get(n) for n in node.inputs]
        if not facts or any(f is None or not f.shape for f in facts):
            continue
        known = [f for f in facts if f is not None]
        first, shapes = known[0], [f.shape or () for f in known]
        if node.op in SAME:
            graph.facts[node.outputs[0]] = first
        elif node.op == "MatMul" and len(shapes[1]) == 2 and len(shapes[0]) > 1:
            shape = (*shapes[0][:-1], shapes[1][1])
            graph.facts[node.outputs[0]] = replace(first, shape=shape)
        elif node.op in ("Add", "Sub", "Mul", "Div") and len(known) == 2:
            long = max(known, key=lambda f: len(f.shape or ()))
            short = min(shapes, key=len)
            fits = (long.shape or ())[len(long.shape or ()) - len(short) :] == short
            if fits and len({f.dtype for f in known}) == 1:
                graph.facts[node.outputs[0]] = long


def graphs_of(node: Node) -> Iterator[Graph]:
    """The graphs in a node."""
    for inner in node.attributes.values():
        if isinstance(inner, Graph):
            yield inner


def uses_of(graph: Graph) -> Counter[str]:
    """How often each value is used, in inner graphs as well."""
    return Counter(names_taken(graph.nodes) + graph.outputs)


def needs(node: Node) -> list[str]:
    """The values that a node takes, those that its graphs take from outside as well."""
    found = [n for n in node.inputs if n]
    for inner in graphs_of(node):
        found += sorted(_free(inner))
    return list(dict.fromkeys(found))


def _free(graph: Graph) -> set[str]:
    made = {*graph.inputs, *graph.constants}
    free: set[str] = set()
    for node in graph.nodes:
        free |= {n for n in needs(node) if n not in made}
        made |= set(node.outputs)
    return free | {n for n in graph.outputs if n not in made}


def drop_unused(graph: Graph) -> None:
    """Leave out nodes whose results nothing uses."""
    wanted = set(graph.outputs)
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        if any(n in wanted for n in node.outputs):
            wanted |= set(needs(node))
            kept.append(node)
    graph.nodes = kept[::-1]


def _known(
    node: Node,
    graph: Graph,
    known: Mapping[str, Any],
    uses: Mapping[str, int],
    shapes: Mapping[str, str],
) -> list[Any] | None:
    """The results of a node, where they are the same whatever the inputs are."""
    if node.domain:
        return None
    sizes = _sizes(node, graph, known, shapes)
    if sizes is not None:
        return [sizes]
    if any(n and n not in known for n in node.inputs) or not node.inputs:
        return None
    if node.op == "Identity":
        array = graph.constants.get(node.inputs[0])
        return None if array is None or array.nbytes > LARGE else [array]
    if node.op not in KNOWN:
        return None
    arrays = [known[n] if n else None for n in node.inputs]
    learned = [n for n in node.inputs if n in graph.trainable and is_weight(known[n])]
    if learned and (node.op not in LAYOUT or uses[learned[0]] > 1):
        return None
    if not learned and _bound(node, arrays) > MOST:
        return None
    return _computed(node, arrays)


def _computed(node: Node, arrays: list[Any]) -> list[Any] | None:
    """The results of a node, by the function that would run."""
    operator, count = OPERATORS["", node.op], len(node.outputs)
    words: dict[str, Any] = dict(node.attributes)
    if operator.many and count > 1:
        words["outputs"] = count
    try:
        with np.errstate(all="ignore"):
            found = operator(*arrays, **words)
    except Exception:  # what cannot be computed says so when it runs
        return None
    found = list(found) if isinstance(found, tuple) else [found]
    if len(found) != count:
        return None
    if not all(isinstance(x, (np.ndarray, np.generic)) for x in found):
        return None
    return [np.asarray(x) for x in found]


def is_weight(array: NDArray[Any]) -> bool:
    """Whether a constant is numbers that were learned, also those of 8 and 4 bits.

    Why by name: NumPy has one kind for some types of 8 bits, and another for the rest.
    """
    return array.ndim > 0 and array.size > 1 and array.dtype.name.startswith("float")


def _sizes(
    node: Node, graph: Graph, known: Mapping[str, Any], shapes: Mapping[str, str]
) -> Any:
    """A shape, or some sizes of one, that no input can change."""
    if node.op == "Shape":
        fixed = graph.fixed.get(node.inputs[0])
        if fixed is None:
            return None
        start, end = node.attributes.get("start", 0), node.attributes.get("end")
        picked = np.array(fixed, object)[start:end]
    elif node.op in ("Gather", "Slice") and node.inputs[0] in shapes:
        fixed = graph.fixed.get(shapes[node.inputs[0]])
        places = [known[n] for n in node.inputs[1:] if n in known]
        if fixed is None or len(places) < len(node.inputs) - 1:
            return None
        try:
            if node.op == "Gather":
                picked = np.array(fixed, object)[np.asarray(places[0], np.int64)]
            else:
                first, last = int(places[0][0]), int(places[1][0])
                step = int(places[3][0]) if len(places) > 3 else 1
                picked = np.array(fixed, object)[first:last:step]
        except (IndexError, ValueError, TypeError):
            return None
    else:
        return None
    flat = np.asarray(picked, object).reshape(-1).tolist()
    if not all(isinstance(n, int) for n in flat):
        return None
    return np.array(picked, np.int64)


def _bound(node: Node, arrays: list[Any]) -> int:
    """How many elements a result has at most, without computing it."""
    try:
        sizes = [a.size for a in arrays if a is not None]
        match node.op:
            case "ConstantOfShape":
                return math.prod(map(int, arrays[0]))
            case "Expand":
                return math.prod(map(int, arrays[1])) * max(1, arrays[0].size)
            case "Tile":
                return math.prod(map(int, arrays[1])) * arrays[0].size
            case "Range":
                first, last, step = (float(a) for a in arrays)
                return math.ceil(abs((last - first) / step)) if step else MOST + 1
            case "Gather":
                return math.prod(sizes)
            case "Concat":
                return sum(sizes)
            case _ if node.op in LAYOUT | {"Slice", "Split", "Cast", "Trilu"}:
                return sizes[0]
            case _:
                shapes = [a.shape for a in arrays if a is not None]
                if node.op.startswith("Reduce"):
                    return sizes[0]
                return math.prod(np.broadcast_shapes(*shapes))
    except (TypeError, ValueError, OverflowError, ArithmeticError):
        return MOST + 1
