"""How large a small ONNX file may become: counted before anything is made of it.

Ten functions that call each other ten times are a few hundred bytes, and 10^10 nodes;
forty Concats of a value with itself, or one Range of constants, are as many sizes where
ONNX's shape inference follows them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite, prod
from typing import Any

import numpy as np

from burnbook.core.errors import RecordError

FREE_NODES, TIMES = 10_000, 20  # nodes of all calls: so many, and for each in the file
MOST_SIZES = 10_000  # of one value, that shape inference may follow
MOST_DEPTH = 60  # functions that call functions
MOST_NUMBERS = 4096  # of an attribute that is no table of values
INTS = (6, 7)  # element types of sizes: int32, int64


def checked(proto: Any) -> bool:
    """Whether shape inference may follow the values of sizes in an onnx.ModelProto.

    Raises:
        RecordError: its functions call themselves, or make too many nodes.
    """
    counts = _Counts(proto)
    graphs = [*_graphs(proto.graph)]
    bodies = [*graphs, *(g for f in proto.functions for g in _graphs(f))]
    own = sum(len(body.node) for body in bodies)
    total = sum(counts.nodes(node) for graph in graphs for node in graph.node)
    most = FREE_NODES + TIMES * own
    if total > most:
        what = "the functions of the file call each other too often"
        facts = [("nodes", f"{own:,} in the file, {total:,} with all calls")]
        raise RecordError("onnx", what, facts)
    for body in bodies:
        for tensor in _tensors(body):
            if any(size < 0 for size in tensor.dims):
                where = f"the constant {str(tensor.name)[:60]!r}"
                shape = list(tensor.dims)[:8]
                raise RecordError("onnx", f"{where} has the shape {shape}")
    known: dict[str, int] = {}
    return all(counts.is_short(graph, known) for graph in graphs)


def _graphs(body: Any) -> Iterator[Any]:
    """A graph or function, and all graphs in its nodes."""
    yield body
    for node in body.node:
        for a in node.attribute:
            if a.HasField("g"):
                yield from _graphs(a.g)
            for graph in a.graphs:
                yield from _graphs(graph)


def _tensors(body: Any) -> Iterator[Any]:
    """The constants of a graph or function, and those in its attributes."""
    yield from getattr(body, "initializer", ())
    for node in body.node:
        for a in node.attribute:
            if a.HasField("t"):
                yield a.t
            yield from a.tensors


class _Counts:
    """What calls of the file's functions come to."""

    def __init__(self, proto: Any) -> None:
        self.functions = {(f.domain, f.name): f for f in proto.functions}
        self.known: dict[tuple[str, str], int] = {}
        self.growth: dict[tuple[str, str], int] = {}
        self.open: list[tuple[str, str]] = []

    def nodes(self, node: Any) -> int:
        """How many nodes a node is, with all that it calls."""
        key = node.domain, node.op_type
        if key not in self.functions:
            return 1
        if key not in self.known:
            if key in self.open:
                raise RecordError("onnx", f"functions call each other: {key[1]}")
            if len(self.open) > MOST_DEPTH:
                what = f"functions call functions {MOST_DEPTH} deep: {key[1]}"
                raise RecordError("onnx", what, [("at most", str(MOST_DEPTH))])
            self.open.append(key)
            bodies = _graphs(self.functions[key])
            self.known[key] = sum(self.nodes(n) for body in bodies for n in body.node)
            self.open.pop()
        return 1 + self.known[key]

    def is_short(self, graph: Any, known: dict[str, int]) -> bool:
        """Whether no value of sizes in a graph becomes long.

        known: upper bounds of how many elements values have; filled in.
        """
        scalars: dict[str, float] = {}
        for tensor in graph.initializer:
            known[tensor.name] = _count(tensor)
            _note(scalars, tensor.name, tensor)
        for node in graph.node:
            if node.op_type == "Constant" and node.output:
                for a in node.attribute:
                    held = max(len(a.ints), len(a.floats), 1)
                    known[node.output[0]] = _count(a.t) if a.HasField("t") else held
                    _note(scalars, node.output[0], a)
            elif node.op_type == "Range" and _steps(node, scalars) > MOST_SIZES:
                return False
            else:
                size = min(self.size_of(node, known), 1 << 60)
                if size > MOST_SIZES:
                    return False
                known.update(dict.fromkeys(node.output, size))
        return True

    def size_of(self, node: Any, known: dict[str, int]) -> int:
        """How many elements what a node gives may have, where these are sizes."""
        sizes = [known.get(name, 1) for name in node.input]
        key = node.domain, node.op_type
        if node.op_type == "Concat":
            return sum(sizes)
        if key in self.functions:
            return max(sizes, default=1) * self.growth_of(key)
        # A long constant is a table; what is gathered from it is as long as the places.
        return max((size for size in sizes if size <= MOST_SIZES), default=1)

    def growth_of(self, key: tuple[str, str]) -> int:
        """How many times as long what a function gives may be as what it is given."""
        if key not in self.growth:
            self.growth[key] = 1  # calls of itself are refused elsewhere
            body, known = self.functions[key], dict[str, int]()
            sizes = [1]
            for node in body.node:
                sizes.append(min(self.size_of(node, known), 1 << 60))
                known.update(dict.fromkeys(node.output, sizes[-1]))
            self.growth[key] = max(sizes)
        return self.growth[key]


def _count(tensor: Any) -> int:
    """How many elements a constant has, if it may be one of sizes: of whole numbers."""
    return prod(max(n, 0) for n in tensor.dims) if tensor.data_type in INTS else 1


def _note(scalars: dict[str, float], name: str, held: Any) -> None:
    """Remember the number that a constant is."""
    from onnx import numpy_helper

    try:
        if hasattr(held, "type"):  # an attribute
            if held.HasField("t"):
                _note(scalars, name, held.t)
            elif held.name in ("value_int", "value_float"):
                scalars[name] = held.i if held.name == "value_int" else held.f
        elif all(n == 1 for n in held.dims) and held.data_location != 1:
            value = np.asarray(numpy_helper.to_array(held))
            if value.dtype.kind in "iuf":
                scalars[name] = float(value.reshape(()))
    except (TypeError, ValueError, LookupError, ArithmeticError, NotImplementedError):
        return  # of an unknown element type, or no number


def _steps(node: Any, scalars: dict[str, float]) -> float:
    """How many numbers a Range of constants gives; 0 if they are not constants."""
    found = [scalars.get(name) for name in node.input]
    if len(found) != 3 or None in found:
        return 0
    start, limit, delta = (float(value or 0) for value in found)
    if not all(map(isfinite, (start, limit, delta))) or not delta:
        return float("inf")
    return (limit - start) / delta


def check_numbers(attribute: Any, op: str, domain: str, names: Iterable[str]) -> None:
    """Raise if an attribute has more numbers than any but a table may have.

    Why: attributes come to stand in the source of a module, number by number.
    """
    count = max(len(attribute.ints), len(attribute.floats), len(attribute.strings))
    if count > MOST_NUMBERS and op != "Constant" and domain != "ai.onnx.ml":
        what = f"attribute {attribute.name!r} of {op} has {count:,} values"
        raise RecordError("onnx", what, [("node", ", ".join(names)[:80])])
