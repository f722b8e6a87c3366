"""Older forms of operators, rewritten to the newest, so that one function does for all.

A rule stands for one change of a definition: nodes of versions before it are changed.
What no rule names only gained element types. https://onnx.ai/onnx/operators
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from burnbook.importers.onnx.graph import Graph, Node

Rule = Callable[[Node, Graph], None]
RULES: dict[str, list[tuple[int, Rule]]] = {}


def before(version: int, *ops: str) -> Callable[[Rule], Rule]:
    """A decorator: how nodes older than a version of these operators are changed."""

    def decorate(rule: Rule) -> Rule:
        for op in ops:
            RULES.setdefault(op, []).append((version, rule))
        return rule

    return decorate


def upgrade(graph: Graph) -> None:
    """Bring all nodes to the newest form of their operators."""
    for owner, node in list(graph.walk()):
        if node.domain:
            continue
        for version, rule in sorted(RULES.get(node.op, ()), key=lambda pair: pair[0]):
            if node.version < version:
                rule(node, owner)


def constant(graph: Graph, node: Node, word: str, array: object) -> str:
    """The name of a new constant that a node takes as an input."""
    name = f"{node.outputs[0]}_{word}"
    graph.constants[name] = np.asarray(array)
    return name


def to_input(
    node: Node, graph: Graph, word: str, place: int, dtype: str = "int64"
) -> None:
    """An attribute becomes an input."""
    value = node.attributes.pop(word, None)
    if value is None:
        return
    node.inputs += [""] * (place + 1 - len(node.inputs))
    node.inputs[place] = constant(graph, node, word, np.array(value, dtype))


@before(13, "Squeeze", "Unsqueeze", "ReduceSum")
@before(18, "ReduceMax", "ReduceMin", "ReduceMean", "ReduceProd", "ReduceL1")
@before(18, "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceSumSquare")
def axes_as_input(node: Node, graph: Graph) -> None:
    """axes was an attribute."""
    to_input(node, graph, "axes", 1)


@before(5, "Reshape")
def shape_as_input(node: Node, graph: Graph) -> None:
    """shape was an attribute."""
    to_input(node, graph, "shape", 1)


@before(10, "Slice")
def slice_as_inputs(node: Node, graph: Graph) -> None:
    """starts, ends and axes were attributes."""
    for place, word in enumerate(("starts", "ends", "axes"), 1):
        to_input(node, graph, word, place)


@before(11, "Clip")
def bounds_as_inputs(node: Node, graph: Graph) -> None:
    """min and max were attributes, in 6 the ends of float32 where nothing is said."""
    if node.version == 6:
        ends = np.finfo(np.float32)
        node.attributes.setdefault("min", float(ends.min))
        node.attributes.setdefault("max", float(ends.max))
    known = graph.facts.get(node.inputs[0])
    dtype = known.dtype if known and known.dtype else "float32"
    to_input(node, graph, "min", 1, dtype)
    to_input(node, graph, "max", 2, dtype)


@before(11, "Pad")
def pads_as_inputs(node: Node, graph: Graph) -> None:
    """pads (once: paddings) and value were attributes."""
    if "paddings" in node.attributes:
        node.attributes["pads"] = node.attributes.pop("paddings")
    known = graph.facts.get(node.inputs[0])
    dtype = known.dtype if known and known.dtype else "float32"
    to_input(node, graph, "pads", 1)
    to_input(node, graph, "value", 2, dtype)


@before(10, "TopK")
def k_as_input(node: Node, graph: Graph) -> None:
    """k was an attribute."""
    if "k" in node.attributes:
        node.attributes["k"] = [node.attributes["k"]]
    to_input(node, graph, "k", 1)


@before(13, "Split")
def split_as_input(node: Node, graph: Graph) -> None:
    """split was an attribute."""
    to_input(node, graph, "split", 1)


@before(12, "Dropout")
def ratio_as_input(node: Node, graph: Graph) -> None:
    """ratio was an attribute; before 7, is_test said whether anything is dropped."""
    node.attributes.pop("is_test", None)
    to_input(node, graph, "ratio", 1, "float32")


@before(13, "Softmax", "LogSoftmax", "Hardmax")
def flattened(node: Node, graph: Graph) -> None:
    """All dims from axis on were one; the default was 1."""
    node.attributes.setdefault("axis", 1)
    node.attributes["flattened"] = 1


@before(7, "Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor")
@before(7, "Equal", "Greater", "Less", "PRelu")
def axis_of_second(node: Node, graph: Graph) -> None:
    """The second input could begin at an axis of the first (with broadcast = 1)."""
    node.attributes.pop("consumed_inputs", None)
    node.attributes.pop("broadcast", None)
    axis = node.attributes.pop("axis", None)
    if axis is not None:
        node.attributes["axis_of_second"] = axis


@before(7, "Gemm")
def broadcasts(node: Node, graph: Graph) -> None:
    """broadcast said that c is smaller."""
    node.attributes.pop("broadcast", None)


@before(8, "Sum", "Mean", "Max", "Min")
@before(6, "Relu", "Sigmoid", "Tanh", "Exp", "Log", "Sqrt", "Abs", "Neg", "Floor")
@before(6, "Ceil", "Reciprocal", "LeakyRelu", "Elu", "Selu", "HardSigmoid", "Clip")
@before(6, "InstanceNormalization", "Dropout")
def without_consumed(node: Node, graph: Graph) -> None:
    """consumed_inputs was about memory."""
    node.attributes.pop("consumed_inputs", None)


@before(14, "BatchNormalization")
def without_spatial(node: Node, graph: Graph) -> None:
    """Before 14, more than one output meant training; before 9, spatial existed."""
    node.attributes.pop("consumed_inputs", None)
    node.attributes.pop("is_test", None)
    if node.attributes.pop("spatial", 1) == 0:
        node.attributes["per_element"] = 1
    node.outputs = node.outputs[:1]


@before(11, "Resize")
def resize_of_10(node: Node, graph: Graph) -> None:
    """Scales stood second, and places were counted asymmetrically."""
    node.inputs = [node.inputs[0], "", *node.inputs[1:]]
    node.attributes["coordinate_transformation_mode"] = "asymmetric"
    node.attributes["nearest_mode"] = "floor"


@before(12, "ArgMax", "ArgMin")
def first_of_equals(node: Node, graph: Graph) -> None:
    """There was no choice among equals."""
    node.attributes.setdefault("select_last_index", 0)


@before(21, "GroupNormalization")
def per_group(node: Node, graph: Graph) -> None:
    """scale and bias were one number for each group."""
    node.attributes["per_group"] = 1
