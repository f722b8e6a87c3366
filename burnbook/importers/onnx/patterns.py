"""Operators that exporters write out in their parts, found again: norms and Gelu.

Each rule begins at one node that its pattern cannot do without, and names the last node
of the pattern, which is replaced; the others go if nothing else uses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from burnbook.importers.onnx.folding import drop_unused, graphs_of, uses_of
from burnbook.importers.onnx.graph import Graph, Node
from burnbook.importers.onnx.scopes import common

Found = tuple[Node, Node]  # the last node of a pattern, and what stands for all of it


class View:
    """Who makes and who reads the values of a graph.

    outer: of the graph around it, whose constants and inputs it may take as well.
    """

    def __init__(self, graph: Graph, outer: View | None = None):
        self.graph, self.uses = graph, uses_of(graph)
        self.constants = {**(outer.constants if outer else {}), **graph.constants}
        self.facts = {**(outer.facts if outer else {}), **graph.facts}
        self.makers = {n: node for node in graph.nodes for n in node.outputs if n}
        self.readers: dict[str, list[Node]] = {}
        for node in graph.nodes:
            for name in node.inputs:
                self.readers.setdefault(name, []).append(node)

    def put(self, last: Node, made: Node) -> None:
        """A node in place of another one."""
        for name in last.inputs:
            self.readers[name] = [n for n in self.readers[name] if n is not last]
        for name in made.inputs:
            self.readers.setdefault(name, []).append(made)
            self.uses[name] += 1
        self.makers[made.outputs[0]] = made

    def maker(self, name: str, *ops: str) -> Node | None:
        """The node of one of some operators that makes a value."""
        node = self.makers.get(name)
        return node if node is not None and not node.domain and node.op in ops else None

    def only_reader(self, name: str, *ops: str) -> Node | None:
        """The one node that takes a value, if it is of these operators."""
        readers = self.readers.get(name, [])
        if len(readers) != 1 or self.uses[name] != 1 or readers[0].domain:
            return None
        return readers[0] if readers[0].op in ops else None

    def number(self, name: str) -> float | None:
        """A constant of one element."""
        array = self.constants.get(name)
        if array is None or array.size != 1 or array.dtype.kind not in "fiu":
            return None
        return float(array.reshape(-1)[0])

    def other(self, node: Node, name: str) -> str:
        """The second of two inputs, whichever place the first has."""
        return node.inputs[1] if node.inputs[0] == name else node.inputs[0]

    def factor(self, node: Node) -> tuple[str, float] | None:
        """A value and the number that it is multiplied with or divided by."""
        first, second = node.inputs
        number = self.number(second)
        if node.op == "Div":
            return None if not number else (first, 1 / number)
        if number is not None:
            return first, number
        number = self.number(first)
        return None if number is None else (second, number)


def find_patterns(graph: Graph, outer: View | None = None) -> None:
    """Put one node in place of the parts of a norm or a Gelu, in inner graphs too."""
    around = View(graph, outer)
    for node in graph.nodes:
        for inner in graphs_of(node):
            find_patterns(inner, around)
    view = View(graph, outer)  # again, as the graphs inside have changed
    places = {id(node): k for k, node in enumerate(graph.nodes)}
    for begin in list(graph.nodes):
        rule = RULES.get(begin.op) if not begin.domain else None
        found = rule(begin, view) if rule is not None else None
        if found is not None and id(found[0]) in places:
            last, made = found
            place = places.pop(id(last))
            graph.nodes[place] = made
            view.put(last, made)
    drop_unused(graph)


def _near(number: float | None, wanted: float) -> bool:
    return number is not None and math.isclose(number, wanted, rel_tol=1e-3)


def _made(op: str, last: Node, begin: Node, inputs: list[str], **words: Any) -> Found:
    paths = [p for p in (begin.path, last.path) if p is not None]
    path = common(paths) if paths else None
    version = {"LayerNormalization": 17, "Gelu": 20, "RMSNormalization": 23}[op]
    attributes = dict(words)
    made = replace(last, op=op, version=version, inputs=inputs, attributes=attributes)
    made.outputs, made.path = last.outputs[:1], path
    return last, made


def _gelu(erf: Node, view: View) -> Found | None:
    """x/2 (1 + erf(x/√2)), in any order of the factors."""
    scaled = view.maker(erf.inputs[0], "Div", "Mul")
    pair = view.factor(scaled) if scaled is not None else None
    if pair is None or not _near(pair[1], math.sqrt(0.5)):
        return None
    return _half_of_sum(erf, pair[0], view, "none")


def _tanh_gelu(tanh: Node, view: View) -> Found | None:
    """x/2 (1 + tanh(√(2/π) (x + 0.044715 x³)))."""
    scaled = view.maker(tanh.inputs[0], "Mul")
    pair = view.factor(scaled) if scaled is not None else None
    if pair is None or not _near(pair[1], math.sqrt(2 / math.pi)):
        return None
    total = view.maker(pair[0], "Add")
    if total is None:
        return None
    for x, more in (total.inputs, total.inputs[::-1]):
        third = view.maker(more, "Mul")
        part = view.factor(third) if third is not None else None
        if part is None or not _near(part[1], 0.044715):
            continue
        cube = view.maker(part[0], "Pow", "Mul")
        if cube is None:
            continue
        if cube.op == "Pow":
            is_cube = cube.inputs[0] == x and view.number(cube.inputs[1]) == 3
        else:
            square = view.maker(view.other(cube, x), "Mul")
            is_cube = square is not None and {*square.inputs} == {x}
            is_cube = is_cube and x in cube.inputs
        if is_cube:
            return _half_of_sum(tanh, x, view, "tanh")
    return None


def _half_of_sum(begin: Node, x: str, view: View, approximate: str) -> Found | None:
    add = view.only_reader(begin.outputs[0], "Add")
    if add is None or view.number(view.other(add, begin.outputs[0])) != 1:
        return None
    last, factors = add, set[str]()
    while factors != {"x", "half"}:
        made = last.outputs[0]
        after = view.only_reader(made, "Mul")
        if after is None or after.inputs[0] == after.inputs[1]:
            return None
        other = view.other(after, made)
        half = view.maker(other, "Mul", "Div")
        pair = view.factor(half) if half is not None else None
        if view.number(other) == 0.5 and "half" not in factors:
            factors.add("half")
        elif other == x and "x" not in factors:
            factors.add("x")
        elif pair == (x, 0.5) and not factors:
            factors = {"x", "half"}
        else:
            return None
        last = after
    words = {"approximate": "tanh"} if approximate == "tanh" else {}
    return _made("Gelu", last, begin, [x], **words)


def _norm(mean: Node, view: View) -> Found | None:
    """(x − mean) / √(variance + ε) γ + β, or x / √(mean of squares + ε) γ."""
    if not _is_last_axis(mean, view):
        return None
    square = view.maker(mean.inputs[0], "Pow", "Mul")
    if square is None or not _is_square(square, view):
        return None
    source = square.inputs[0]
    add = view.only_reader(mean.outputs[0], "Add")
    epsilon = view.number(view.other(add, mean.outputs[0])) if add is not None else None
    root = view.only_reader(add.outputs[0], "Sqrt") if add is not None else None
    if root is None or epsilon is None or epsilon <= 0:
        return None
    divided = view.only_reader(root.outputs[0], "Div", "Reciprocal")
    if divided is None:
        return None
    if divided.op == "Reciprocal" or view.number(divided.inputs[0]) == 1:
        inverse = divided.outputs[0]
        divided = view.only_reader(inverse, "Mul")
        if divided is None:
            return None
        above = view.other(divided, inverse)
    elif divided.inputs[1] == root.outputs[0]:
        above = divided.inputs[0]
    else:
        return None
    x = _centered(source, view)
    if x is not None and _centered(above, view) == x:
        return _scaled(divided, mean, x, epsilon, view, "LayerNormalization")
    if above == source:
        return _scaled(divided, mean, source, epsilon, view, "RMSNormalization")
    return None


def _scaled(
    divided: Node, mean: Node, x: str, epsilon: float, view: View, op: str
) -> Found | None:
    gamma = _line(view.only_reader(divided.outputs[0], "Mul"), divided, x, view)
    if gamma is None:
        return None
    times, scale = gamma
    words = {"epsilon": float(np.float32(epsilon)), "axis": -1}
    if op == "RMSNormalization":
        return _made(op, times, mean, [x, scale], **words)
    beta = _line(view.only_reader(times.outputs[0], "Add"), times, x, view)
    if beta is None:
        return _made(op, times, mean, [x, scale], **words)
    return _made(op, beta[0], mean, [x, scale, beta[1]], **words)


def _line(
    node: Node | None, before: Node, x: str, view: View
) -> tuple[Node, str] | None:
    """A node and its constant of one number for each place of the last axis."""
    if node is None:
        return None
    name = view.other(node, before.outputs[0])
    array, fact = view.constants.get(name), view.facts.get(x)
    if array is None or array.ndim != 1 or fact is None or not fact.shape:
        return None
    return (node, name) if fact.shape[-1] == array.size else None


def _centered(name: str, view: View) -> str | None:
    """x, where a value is x less its mean over the last axis."""
    sub = view.maker(name, "Sub")
    mean = view.maker(sub.inputs[1], "ReduceMean") if sub is not None else None
    if sub is None or mean is None or mean.inputs[0] != sub.inputs[0]:
        return None
    return sub.inputs[0] if _is_last_axis(mean, view) else None


def _is_square(node: Node, view: View) -> bool:
    if node.op == "Mul":
        return node.inputs[0] == node.inputs[1]
    return view.number(node.inputs[1]) == 2


def _is_last_axis(node: Node, view: View) -> bool:
    if node.attributes.get("keepdims", 1) != 1 or len(node.inputs) < 2:
        return False
    axes = view.constants.get(node.inputs[1])
    fact = view.facts.get(node.inputs[0])
    if axes is None or axes.size != 1:
        return False
    axis = int(axes.reshape(-1)[0])
    if fact is None or fact.shape is None:
        return axis == -1
    return axis in (-1, len(fact.shape) - 1)


RULES: dict[str, Callable[[Node, View], Found | None]] = {
    "Erf": _gelu,
    "Tanh": _tanh_gelu,
    "ReduceMean": _norm,
}
