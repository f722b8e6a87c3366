"""Where nodes stand: in files of any order, and where several become one.

ONNX Runtime is the oracle. A merged layer may have other results than its last one, and
who takes them may stand anywhere after the node that made them.
"""

import random
from itertools import permutations

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx import load, source_of
from burnbook.tensor import Tensor

node = helper.make_node


def values(*shape):
    rng = np.random.default_rng(sum(shape))
    return rng.normal(size=shape).astype(np.float32)


def value(name, shape=None, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, shape)


def model(nodes, x, outputs, constants, opset=17):
    held = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    inputs = [value("x", list(x.shape))]
    graph = helper.make_graph(nodes, "g", inputs, [value(n) for n in outputs], held)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def compared(file, x):
    """The source of a model whose results are those of ONNX Runtime."""
    settings = runtime.SessionOptions()
    settings.log_severity_level = 4
    session = runtime.InferenceSession(file.SerializeToString(), settings)
    wanted = session.run(None, {"x": x})
    module = load(file, Numpy())
    found = module.forward(Tensor.from_data(x, Numpy()))
    found = found if isinstance(found, tuple) else (found,)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    return source_of(module)


def recurrent(op, direction, turned, reshaped):
    """An LSTM or GRU, with the nodes that exporters write around it."""
    gates, ways = {"LSTM": 4, "GRU": 3}[op], 1 + (direction == "bidirectional")
    constants = {
        "w": values(ways, gates * 4, 5) / 3,
        "r": values(ways, gates * 4, 4) / 3,
        "b": values(ways, 2 * gates * 4) / 3,
        "axis": np.int64([1]),
        "flat": np.int64([0, 0, 4 * ways]),
    }
    about = {"hidden_size": 4, "direction": direction}
    if op == "GRU":
        about["linear_before_reset"] = 1
    results = ["rows", "last_h", "last_c"][: 3 if op == "LSTM" else 2]
    first = [node("Transpose", ["x"], ["x_t"], perm=[1, 0, 2])] if turned else []
    begin = "x_t" if turned else "x"
    nodes = [*first, node(op, [begin, "w", "r", "b"], results, **about)]
    if reshaped:
        nodes += [
            node("Transpose", ["rows"], ["rows_t"], perm=[0, 2, 1, 3]),
            node("Reshape", ["rows_t", "flat"], ["all"]),
        ]
    else:
        nodes.append(node("Squeeze", ["rows", "axis"], ["all"]))
    if turned:
        nodes.append(node("Transpose", ["all"], ["y"], perm=[1, 0, 2]))
    return nodes, values(3, 2, 5), constants, f"self.{op.lower()}"


def linear():
    nodes = [node("MatMul", ["x", "w"], ["xw"]), node("Add", ["xw", "b"], ["y"])]
    return nodes, values(3, 4), {"w": values(4, 5), "b": values(5)}, "self.linear"


def layer_norm(squared, divided):
    constants = {
        "two": np.float32(2),
        "one": np.float32(1),
        "eps": np.float32(1e-5),
        "g": values(6),
        "b": values(6),
    }
    square = (
        node("Pow", ["d", "two"], ["q"]) if squared else node("Mul", ["d", "d"], ["q"])
    )
    end = (
        [node("Div", ["d", "s"], ["h"])]
        if divided
        else [node("Reciprocal", ["s"], ["i"]), node("Mul", ["d", "i"], ["h"])]
    )
    nodes = [
        node("ReduceMean", ["x"], ["m"], axes=[-1]),
        node("Sub", ["x", "m"], ["d"]),
        square,
        node("ReduceMean", ["q"], ["v"], axes=[-1]),
        node("Add", ["v", "eps"], ["e"]),
        node("Sqrt", ["e"], ["s"]),
        *end,
        node("Mul", ["h", "g"], ["hg"]),
        node("Add", ["hg", "b"], ["y"]),
    ]
    return nodes, values(3, 6), constants, "self.layer_norm"


def rms_norm():
    constants = {"two": np.float32(2), "eps": np.float32(1e-5), "g": values(6)}
    nodes = [
        node("Pow", ["x", "two"], ["q"]),
        node("ReduceMean", ["q"], ["v"], axes=[-1]),
        node("Add", ["v", "eps"], ["e"]),
        node("Sqrt", ["e"], ["s"]),
        node("Div", ["x", "s"], ["h"]),
        node("Mul", ["h", "g"], ["y"]),
    ]
    return nodes, values(3, 6), constants, "self.rms_norm"


def gelu():
    constants = {"root": np.float32(2**0.5), "one": np.float32(1)}
    constants["half"] = np.float32(0.5)
    nodes = [
        node("Div", ["x", "root"], ["d"]),
        node("Erf", ["d"], ["e"]),
        node("Add", ["e", "one"], ["a"]),
        node("Mul", ["x", "a"], ["xa"]),
        node("Mul", ["xa", "half"], ["y"]),
    ]
    return nodes, values(3, 6), constants, "ops.gelu"


def tanh_gelu():
    constants = {"three": np.float32(3), "k": np.float32(0.044715)}
    constants |= {"c": np.float32((2 / np.pi) ** 0.5), "one": np.float32(1)}
    constants["half"] = np.float32(0.5)
    nodes = [
        node("Pow", ["x", "three"], ["p"]),
        node("Mul", ["p", "k"], ["pk"]),
        node("Add", ["x", "pk"], ["s"]),
        node("Mul", ["s", "c"], ["sc"]),
        node("Tanh", ["sc"], ["t"]),
        node("Add", ["t", "one"], ["a"]),
        node("Mul", ["x", "a"], ["xa"]),
        node("Mul", ["xa", "half"], ["y"]),
    ]
    return nodes, values(3, 6), constants, "ops.gelu"


def swish():
    nodes = [node("Sigmoid", ["x"], ["s"]), node("Mul", ["x", "s"], ["y"])]
    return nodes, values(3, 6), {}, "ops.swish"


def hard_swish():
    constants = {"three": np.float32(3), "six": np.float32(6), "zero": np.float32(0)}
    nodes = [
        node("Add", ["x", "three"], ["a"]),
        node("Clip", ["a", "zero", "six"], ["c"]),
        node("Div", ["c", "six"], ["d"]),
        node("Mul", ["x", "d"], ["y"]),
    ]
    return nodes, values(3, 6), constants, "ops.hard_swish"


def convolution():
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Add", ["c", "b"], ["y"])]
    constants = {"w": values(4, 3, 3, 3), "b": values(1, 4, 1, 1)}
    return nodes, values(2, 3, 6, 6), constants, "self.conv"


PATTERNS = {
    "linear": linear(),
    "rms norm": rms_norm(),
    "gelu": gelu(),
    "gelu by tanh": tanh_gelu(),
    "swish": swish(),
    "hard swish": hard_swish(),
    "convolution with a bias": convolution(),
}
for squared in (True, False):
    for divided in (True, False):
        PATTERNS[f"layer norm, {squared}, {divided}"] = layer_norm(squared, divided)
for op in ("LSTM", "GRU"):
    for direction in ("forward", "reverse", "bidirectional"):
        for turned in (True, False):
            for reshaped in (True, False):
                if (direction == "bidirectional" and not reshaped) or (
                    direction == "reverse" and turned != reshaped
                ):
                    continue  # two directions are not squeezed
                name = f"{op}, {direction}, {turned}, {reshaped}"
                PATTERNS[name] = recurrent(op, direction, turned, reshaped)


@pytest.mark.parametrize("name", PATTERNS)
def test_the_nodes_of_a_pattern_become_one(name):
    nodes, x, constants, word = PATTERNS[name]
    last = nodes[-1].output[0]
    assert word in compared(model(nodes, x, [last], constants), x)


@pytest.mark.parametrize("name", PATTERNS)
def test_what_a_pattern_swallows_may_be_taken_between_its_nodes(name):
    nodes, x, constants, _ = PATTERNS[name]
    last = nodes[-1].output[0]
    for place, one in enumerate(nodes, 1):
        for side in one.output:
            mixed = [*nodes[:place], node("Abs", [side], ["side"]), *nodes[place:]]
            compared(model(mixed, x, [last, "side"], constants), x)


def test_two_results_may_be_joined_between_the_nodes_of_a_layer():
    nodes, x, constants, _ = recurrent("LSTM", "forward", True, False)
    for place in range(2, len(nodes) + 1):
        joined = node("Concat", ["last_h", "last_c"], ["hc"], axis=0)
        mixed = [*nodes[:place], joined, *nodes[place:]]
        source = compared(model(mixed, x, ["y", "hc"], constants), x)
        assert "self.lstm" in source


def test_nodes_in_any_order_are_sorted():
    nodes = [
        node("Relu", ["x"], ["a"]),
        node("Neg", ["a"], ["b"]),
        node("Add", ["a", "b"], ["c"]),
        node("Constant", [], ["one"], value_float=1.0),
        node("Add", ["c", "one"], ["y"]),
    ]
    x = values(2, 3)
    texts = set()
    for order in [*permutations(nodes)][::11]:
        texts.add(compared(model(order, x, ["y"], {}), x))
    assert len(texts) <= 3  # what does not wait for each other may change places


@pytest.mark.parametrize("name", PATTERNS)
def test_patterns_are_found_in_files_that_are_not_in_order(name):
    nodes, x, constants, word = PATTERNS[name]
    mixed = [*nodes]
    random.Random(1).shuffle(mixed)
    assert word in compared(model(mixed, x, [nodes[-1].output[0]], constants), x)


def test_graphs_in_nodes_and_functions_are_sorted_too():
    branch = helper.make_graph(
        [node("Neg", ["t"], ["u"]), node("Relu", ["later"], ["t"])],
        "branch",
        [],
        [value("u")],
    )
    body = [node("Exp", ["t"], ["b"]), node("Abs", ["a"], ["t"])]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    function = helper.make_function("own", "F", ["a"], ["b"], body, opsets[:1])
    nodes = [
        node("F", ["h"], ["y"], domain="own"),
        node("If", ["cond"], ["h"], then_branch=branch, else_branch=branch),
        node("Greater", ["sum", "zero"], ["cond"]),
        node("ReduceSum", ["x"], ["sum"], keepdims=0),
        node("Tanh", ["x"], ["later"]),
    ]
    x = values(2, 3)
    file = model(nodes, x, ["y"], {"zero": np.float32(0)})
    ready = onnx.ModelProto()
    ready.CopyFrom(file)
    ready.functions.append(function)
    del ready.opset_import[:]
    ready.opset_import.extend(opsets)
    module = load(ready, Numpy())
    wanted = np.exp(np.maximum(np.tanh(x), 0))
    found = module.forward(Tensor.from_data(x, Numpy()))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
