"""Generated source: names that speak of what made a value, and no idle statements."""

import re

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Numpy
from burnbook.importers.onnx import Backend, load, source_of

X = np.float32([[1, -0.0, 3], [4, 5, -6]])
CONSTANTS = {
    "zero": np.float32(0),
    "zeros": np.float32([[[0]]]),
    "minus": np.float32(-0.0),
    "row": np.float32([0, 0, 0]),
    "two": np.float32(2),
}
USERS = ("MatMul", "ReduceMax", "Conv", "Cast", "Concat", "Where", "Gather", "Shape")
MAKERS = {
    "Add": ["x", "two"],
    "Mul": ["x", "two"],
    "Sub": ["x", "two"],
    "Exp": ["x"],
    "Relu": ["x"],
    "Softmax": ["x"],
}


def model(nodes, outputs=("y",)):
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(v, k) for k, v in CONSTANTS.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    return onnx.shape_inference.infer_shapes(made)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_value_is_not_named_after_who_takes_it(maker, user):
    name = f"onnx::{user}_18"
    nodes = [
        helper.make_node(maker, MAKERS[maker], [name]),
        helper.make_node("Tanh", [name], ["t"]),
        helper.make_node("Add", [name, "t"], ["y"]),
    ]
    text = source_of(load(model(nodes), Numpy()))
    words = re.findall(r"^        (\w+) = ", text, re.MULTILINE)
    assert maker.lower() in [re.sub(r"_\d+$", "", word) for word in words]
    word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", user).lower()
    assert not [one for one in words if one.startswith(word)]


IDLE = {
    "a zero taken away": (["x", "zero"], "Sub", True),
    "a zero that adds a dim": (["x", "zeros"], "Sub", False),
    "a zero of another sign": (["x", "minus"], "Sub", False),
    "zeros that are a row": (["x", "row"], "Sub", False),
    "two": (["x", "two"], "Sub", False),
    "one value joined": (["x"], "Concat", True),
    "two values joined": (["x", "x"], "Concat", False),
}


@pytest.mark.parametrize("name", IDLE)
def test_what_changes_nothing_is_left_out(name):
    inputs, op, is_idle = IDLE[name]
    words = {"axis": 0} if op == "Concat" else {}
    nodes = [
        helper.make_node("Abs", ["x"], ["a"]),
        helper.make_node(op, ["a" if n == "x" else n for n in inputs], ["b"], **words),
        helper.make_node("Neg", ["b"], ["y"]),
    ]
    made = model(nodes)
    text = source_of(load(made, Numpy()))
    left = re.findall(r"ops\.(?:sub|concat)\(| - ", text)
    assert bool(left) != is_idle
    (found,) = Backend.prepare(made).run([X])
    taken = np.abs(X)
    if op == "Sub":
        wanted = taken - CONSTANTS[inputs[1]]
    else:
        wanted = np.concatenate([taken] * len(inputs))
    np.testing.assert_array_equal(found, -wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(-wanted))
