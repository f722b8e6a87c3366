"""Patterns and layers are found in the graphs of If, Loop and Scan as outside them."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Numpy
from burnbook.importers.onnx import Backend, load, source_of

X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)
HELD = {
    "two": np.float32(2),
    "half": np.float32(0.5),
    "one": np.float32(1),
    "root2": np.float32(2**0.5),
    "eps": np.float32(1e-5),
    "axis": np.int64([-1]),
    "gamma": np.float32([1, 2, 3, 4]),
    "beta": np.float32([0.5, 1, -1, 0]),
    "w": np.random.default_rng(1).standard_normal((4, 4)).astype(np.float32),
    "yes": np.array(True),
    "trips": np.int64(2),
}
CENTERED = "ReduceMean x axis>m; Sub x m>c; Pow c two>s; "
SCALED = "ReduceMean s axis>v; Add v eps>e; Sqrt e>r; Div c r>n; Mul n gamma>g; "
PATTERNS = {
    "LayerNorm": f"{CENTERED}{SCALED}Add g beta>y",
    "RmsNorm": f"Pow x two>s; Identity x>c; {SCALED}Identity g>y",
    "gelu": "Div x root2>d; Erf d>f; Add f one>p; Mul x p>q; Mul q half>y",
    "Linear": "MatMul x w>m; Add m beta>y",
}


def nodes_of(text, source):
    """The nodes of a pattern, which takes the value of this name."""
    nodes = []
    for line in text.split("; "):
        call, made = line.split(">")
        op, *given = call.split()
        inputs = [source if name == "x" else name for name in given]
        nodes.append(helper.make_node(op, inputs, [made]))
    return nodes


def info(name, kind=TensorProto.FLOAT, shape=(2, 3, 4)):
    return helper.make_tensor_value_info(name, kind, shape)


def outside(text, held):
    return nodes_of(text, "x")


def in_if(text, held):
    then = helper.make_graph(nodes_of(text, "x"), "then", [], [info("y")], held)
    other = [helper.make_node("Neg", ["x"], ["o"])]
    other = helper.make_graph(other, "else", [], [info("o")])
    return [helper.make_node("If", ["c0"], ["y"], then_branch=then, else_branch=other)]


def in_loop(text, held):
    body = [*nodes_of(text, "carried"), helper.make_node("Identity", ["go"], ["on"])]
    state = [info("turn", TensorProto.INT64, ()), info("go", TensorProto.BOOL, ())]
    ends = [info("on", TensorProto.BOOL, ()), info("y")]
    body = helper.make_graph(body, "body", [*state, info("carried")], ends, held)
    return [helper.make_node("Loop", ["trips", "yes", "x"], ["y"], body=body)]


PLACES = {"outside": outside, "If": in_if, "Loop": in_loop}


def model(pattern, place, are_inside):
    held = [numpy_helper.from_array(v, k) for k, v in HELD.items()]
    makers = [numpy_helper.from_array(HELD[n], n) for n in ("yes", "trips")]
    inner = held[:-2] if are_inside else []
    nodes = PLACES[place](PATTERNS[pattern], inner)
    graph = helper.make_graph(
        nodes,
        "g",
        [info("x"), info("c0", TensorProto.BOOL, ())],
        [info("y")],
        makers if are_inside and place != "outside" else held,
    )
    opset = [helper.make_opsetid("", 18)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


@pytest.mark.parametrize("are_inside", [False, True], ids=["held outside", "inside"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_pattern_is_found_wherever_it_stands(pattern, place, are_inside):
    made = model(pattern, place, are_inside)
    assert pattern in source_of(load(made, Numpy()))
    runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")
    session = runtime.InferenceSession(made.SerializeToString())
    given = {one.name: one for one in session.get_inputs()}
    fed = {"x": X, "c0": np.array(True)}
    (wanted,) = session.run(None, {n: v for n, v in fed.items() if n in given})
    (found,) = Backend.prepare(made).run([X, np.array(True)])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
