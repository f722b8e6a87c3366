"""Loops that take no turn: what they collect has the declared type and shape."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper

from burnbook.importers.onnx import Backend

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
node, value = helper.make_node, helper.make_tensor_value_info
DECLARED = [
    ([2, 3], (0, 2, 3)),
    (["p", 3], (0, 0, 3)),
    ([None, 3], (0, 0, 3)),
    (None, (0,)),
    ([], (0,)),
]


def model(one, inputs, outputs):
    graph = helper.make_graph([one], "g", inputs, outputs)
    opsets = [helper.make_opsetid("", 16)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def loop(declared, dtype, condition=False):
    kept = node("Shape", ["a2"], ["s"]) if declared == [] else None
    body = helper.make_graph(
        [
            node("Identity", ["c"], ["c2"]),
            node("Add", ["a", "x"], ["a2"]),
            kept or node("Cast", ["a2"], ["s"], to=dtype),
        ],
        "body",
        [
            value("i", INT, []),
            value("c", TensorProto.BOOL, []),
            value("a", FLOAT, None),
        ],
        [
            value("c2", TensorProto.BOOL, []),
            value("a2", FLOAT, None),
            value("s", INT if kept else dtype, declared),
        ],
    )
    given = ["", "go", "x"] if condition else ["n", "", "x"]
    first = value("go", TensorProto.BOOL, []) if condition else value("n", INT, [])
    return model(
        node("Loop", given, ["f", "ys"], body=body),
        [first, value("x", FLOAT, None)],
        [value("f", FLOAT, None), value("ys", dtype, None)],
    )


def results(file, *inputs):
    return Backend.prepare(file).run(inputs)


@pytest.mark.parametrize("dtype", [FLOAT, INT, TensorProto.DOUBLE, TensorProto.BOOL])
@pytest.mark.parametrize(("declared", "wanted"), DECLARED[:4])
def test_a_loop_without_a_turn_gives_what_its_body_declares(declared, wanted, dtype):
    x = np.ones((2, 3), np.float32)
    file = loop(declared, dtype)
    kept, rows = results(file, np.int64(0), x)
    np.testing.assert_array_equal(kept, x)
    assert rows.shape == wanted
    assert rows.dtype == helper.tensor_dtype_to_np_dtype(dtype)
    assert results(file, np.int64(2), x)[1].shape == (2, 2, 3)
    rows = results(loop(declared, dtype, True), np.bool_(False), x)[1]
    assert rows.shape == wanted


def test_a_loop_of_numbers_gives_none():
    rows = results(loop([], INT), np.int64(0), np.ones((2, 3), np.float32))[1]
    assert rows.shape == (0,)
    assert rows.dtype == np.int64


@pytest.mark.parametrize(("declared", "wanted"), DECLARED[:4])
def test_loops_are_as_onnx_runtime_has_them(declared, wanted):
    runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")
    file, x = loop(declared, FLOAT), np.ones((2, 3), np.float32)
    session = runtime.InferenceSession(file.SerializeToString())
    assert session.run(None, {"n": np.array(0), "x": x})[1].shape == wanted


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [FLOAT, INT])
def test_a_scan_of_nothing_gives_what_its_body_declares(dtype, axis):
    body = helper.make_graph(
        [node("Add", ["a", "x"], ["a2"]), node("Cast", ["a2"], ["s"], to=dtype)],
        "body",
        [value("a", FLOAT, [2, 3]), value("x", FLOAT, [2, 3])],
        [value("a2", FLOAT, [2, 3]), value("s", dtype, [2, 3])],
    )
    about = {"num_scan_inputs": 1, "scan_output_axes": [axis]}
    file = model(
        node("Scan", ["a0", "xs"], ["f", "ys"], body=body, **about),
        [value("a0", FLOAT, [2, 3]), value("xs", FLOAT, ["n", 2, 3])],
        [value("f", FLOAT, [2, 3]), value("ys", dtype, None)],
    )
    first = np.ones((2, 3), np.float32)
    for count in (0, 4):
        kept, rows = results(file, first, np.ones((count, 2, 3), np.float32))
        assert kept.shape == (2, 3)
        wanted = [2, 3]
        wanted.insert(axis % 3, count)
        assert rows.shape == tuple(wanted)
        assert rows.dtype == helper.tensor_dtype_to_np_dtype(dtype)
