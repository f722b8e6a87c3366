"""Rank 0 in a file is rank 0 in the file that its module is written to."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the files are made with it")
runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Numpy
from burnbook.exporters.onnx import onnx_model
from burnbook.importers.onnx import load
from burnbook.program import capture
from burnbook.tensor import Tensor

X = np.float32([[1, -2, 3], [4, 5, -6]])
SCALE = np.array(2.5, np.float32)
TWO = numpy_helper.from_array(np.int64(2), "two")
ZERO = numpy_helper.from_array(np.int64([0]), "zero")


def node(op, *inputs, out="z", **attrs):
    return helper.make_node(op, inputs, [out], **attrs)


def to_one(op, **attrs):
    return [node(op, "x", keepdims=0, **attrs)]


FLAT = node("Reshape", "x", "flat", out="f")
REDUCED = ("Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSumExp")
RESULTS = {
    **{f"Reduce{word}": to_one(f"Reduce{word}") for word in REDUCED},
    "all of both dims": to_one("ReduceMax", axes=[0, 1]),
    "Gather": [FLAT, node("Gather", "f", "two")],
    "Squeeze": [FLAT, node("Slice", "f", "zero", "one", out="g"), node("Squeeze", "g")],
    "ArgMax": [FLAT, node("ArgMax", "f", axis=0, keepdims=0)],
    "Size": [node("Size", "x")],
    "a truth": [
        node("ReduceSum", "x", out="s", keepdims=0),
        node("Greater", "s", "scale"),
    ],
    "an input": [node("Identity", "scale")],
    "of an input": [node("Exp", "scale")],
    "an input's rank": [node("Shape", "scale", out="r"), node("Size", "r")],
    "a sum of an input": [node("Unsqueeze", "scale", "zero")],
    "a square": [node("Mul", "scale", "scale")],
    "a weight": [node("Identity", "two")],
    "a product": [node("ReduceSum", "x", out="s", keepdims=0), node("Mul", "s", "s")],
    "wide": [node("Mul", "x", "scale")],
    "of one": [
        node("ReduceSum", "x", "both", keepdims=0),
    ],
}


def made(nodes):
    """A graph of x and a scale of rank 0, with one result that is inferred."""
    one = numpy_helper.from_array(np.int64([1]), "one")
    flat = numpy_helper.from_array(np.int64([6]), "flat")
    both = numpy_helper.from_array(np.int64([0, 1]), "both")
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3]),
        helper.make_tensor_value_info("scale", TensorProto.FLOAT, []),
    ]
    keep = helper.make_node("Mul", ["x", "scale"], ["y"])
    graph = helper.make_graph(
        [keep, *nodes],
        "g",
        inputs,
        [
            helper.make_empty_tensor_value_info("z"),
            helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3]),
        ],
        [TWO, ZERO, one, flat, both],
    )
    opset = helper.make_opsetid("", 17)
    return onnx.shape_inference.infer_shapes(
        helper.make_model(graph, opset_imports=[opset], ir_version=8)
    )


def run(model, *given):
    options = runtime.SessionOptions()
    options.log_severity_level = 4
    session = runtime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [one.name for one in session.get_inputs()]
    return session.run(None, dict(zip(names, given, strict=True)))


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_of_a_file_keeps_its_rank(name):
    before = made(RESULTS[name])
    device = Numpy()
    given = Tensor.from_numpy(X, device), Tensor.from_numpy(SCALE[None], device)
    module = load(before, device)
    wanted = run(before, X, SCALE)
    found = module.forward(*given)
    for a, b in zip(found, wanted, strict=True):
        assert a.dims() == (b.shape or (1,))
        np.testing.assert_allclose(np.asarray(a).reshape(b.shape), b, rtol=1e-5)
    after = onnx_model(module, *given, batch=None)
    assert [len(one.type.tensor_type.shape.dim) for one in after.graph.input] == [2, 0]
    for a, b in zip(run(after, X, SCALE), wanted, strict=True):
        assert np.shape(a) == np.shape(b)
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_results_of_burnbook_are_written_as_they_are():
    x = Tensor.ones([2, 3], Numpy())
    after = onnx_model(lambda x: (x.sum(), x.sum() * 2.0), x, batch=None)
    assert [np.shape(one) for one in run(after, X)] == [(1,), (1,)]


def test_a_program_and_its_simpler_form_are_written_alike():
    module = load(made(RESULTS["ReduceSum"]), Numpy())
    given = Tensor.from_numpy(X, Numpy()), Tensor.ones([1], Numpy())
    for program in (capture(module, *given), capture(module, *given).simplify()):
        assert np.shape(run(onnx_model(program), X, SCALE)[0]) == ()
