"""Small ONNX graphs with what a file may have: weights, control flow, functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def value(name: str, shape: Any = None, kind: int = FLOAT) -> Any:
    """The description of an input or output."""
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: Any, inputs: Any, outputs: Any, held: Any = (), **more: Any) -> Any:
    """A model of these nodes."""
    graph = helper.make_graph(nodes, "g", inputs, outputs, held)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, **more)


def constant(name: str, array: Any) -> Any:
    """A constant of the file."""
    return numpy_helper.from_array(np.asarray(array), name)


def classifier() -> Any:
    """Convolution, norm, pooling, a linear layer."""
    rng = np.random.default_rng(0)
    held = [
        constant("conv.weight", rng.random((2, 1, 3, 3), np.float32)),
        *(constant(f"norm.{n}", np.ones(2, np.float32)) for n in "smvb"),
        constant("fc.weight", rng.random((2, 3), np.float32)),
        constant("fc.bias", np.zeros(3, np.float32)),
    ]
    norm = [f"norm.{n}" for n in "sbmv"]
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", *norm], ["n"], epsilon=1e-5),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"], axis=1),
        helper.make_node("Gemm", ["f", "fc.weight", "fc.bias"], ["y"], alpha=1.0),
    ]
    return model(nodes, [value("x", [1, 1, 6, 6])], [value("y", [1, 3])], held)


def control_flow() -> Any:
    """A loop with a branch in it, a scan over rows."""
    branch = [
        helper.make_graph([helper.make_node(op, ["a"], [op])], op, [], [value(op, [2])])
        for op in ("Relu", "Neg")
    ]
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["on"]),
            helper.make_node(
                "If", ["go"], ["b"], then_branch=branch[0], else_branch=branch[1]
            ),
            helper.make_node("Add", ["b", "step"], ["next"]),
        ],
        "body",
        [
            value("i", [], TensorProto.INT64),
            value("go", [], TensorProto.BOOL),
            value("a", [2]),
        ],
        [value("on", [], TensorProto.BOOL), value("next", [2])],
    )
    nodes = [
        helper.make_node("Loop", ["times", "yes", "x"], ["z"], body=body),
        helper.make_node("SequenceConstruct", ["z", "x"], ["s"]),
        helper.make_node("SequenceAt", ["s", "zero"], ["y"]),
    ]
    held = [
        constant("times", np.int64(3)),
        constant("yes", np.bool_(True)),
        constant("zero", np.int64(0)),
        constant("step", np.ones(2, np.float32)),
    ]
    return model(nodes, [value("x", [2])], [value("y", [2])], held)


def functions() -> Any:
    """A function of the file that calls another one."""
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
    inner = helper.make_function(
        "own",
        "Twice",
        ["a"],
        ["b"],
        [helper.make_node("Add", ["a", "a"], ["b"])],
        opsets,
    )
    nodes = [
        helper.make_node("Twice", ["a"], ["t"], domain="own"),
        helper.make_node("Mul", ["t", "a"], ["b"]),
    ]
    outer = helper.make_function("own", "Square", ["a"], ["b"], nodes, opsets)
    calls = [helper.make_node("Square", ["x"], ["y"], domain="own")]
    made = model(calls, [value("x", [2, 2])], [value("y", [2, 2])])
    made.functions.extend([inner, outer])
    return made


def shapes() -> Any:
    """Values that are sizes: reshape, slice, pad, expand; then an LSTM."""
    rng = np.random.default_rng(1)
    held = [
        constant("to", np.array([3, -1])),
        constant("a", np.array([0])),
        constant("b", np.array([2])),
        constant("pads", np.array([0, 1, 0, 1])),
        constant("wide", np.array([3, 4])),
        constant("w", rng.random((1, 8, 4), np.float32)),
        constant("r", rng.random((1, 8, 2), np.float32)),
    ]
    nodes = [
        helper.make_node("Reshape", ["x", "to"], ["m"]),
        helper.make_node("Slice", ["m", "a", "b"], ["s"]),
        helper.make_node("Pad", ["s", "pads"], ["p"], mode="constant"),
        helper.make_node("Gather", ["p", "a"], ["g"], axis=0),
        helper.make_node("Expand", ["g", "wide"], ["e"]),
        helper.make_node("Shape", ["e"], ["sizes"]),
        helper.make_node("ConstantOfShape", ["sizes"], ["zeros"]),
        helper.make_node("Add", ["e", "zeros"], ["sum"]),
        helper.make_node("Unsqueeze", ["sum", "a"], ["rows"]),
        helper.make_node("LSTM", ["rows", "w", "r"], ["y", "h", "c"], hidden_size=2),
    ]
    return model(nodes, [value("x", [2, 3])], [value("y", [1, 1, 3, 2])], held)


def graphs() -> list[Any]:
    """All of them."""
    return [classifier(), control_flow(), functions(), shapes()]
