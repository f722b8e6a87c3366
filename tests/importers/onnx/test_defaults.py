"""What older versions of operators mean where a file says nothing."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ShapeError
from burnbook.importers.onnx import Backend, load
from burnbook.tensor import Tensor

LARGEST = np.finfo(np.float32).max
MANY = np.float32([-np.inf, -1, 0, 2, np.inf])


def clip(opset, **bounds):
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [5]) for n in ("x", "y")
    ]
    node = helper.make_node("Clip", ["x"], ["y"], **bounds)
    graph = helper.make_graph([node], "g", values[:1], values[1:])
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


@pytest.mark.parametrize("opset", [6, 7, 10])
@pytest.mark.parametrize("bounds", [{}, {"min": 0.0}, {"max": 1.0}, {"min": -2.0}])
def test_clip_has_ends_in_opset_6(opset, bounds):
    wanted = np.clip(MANY, bounds.get("min", -LARGEST), bounds.get("max", LARGEST))
    found = Backend.prepare(clip(opset, **bounds)).run([MANY])[0]
    np.testing.assert_array_equal(found, wanted)
    runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")
    session = runtime.InferenceSession(clip(opset, **bounds).SerializeToString())
    np.testing.assert_array_equal(session.run(None, {"x": MANY})[0], wanted)


def test_clip_has_no_ends_since_opset_11():
    found = Backend.prepare(clip(11)).run([MANY])[0]
    np.testing.assert_array_equal(found, MANY)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize(("added", "fits"), [(1, True), (2, False), (3, False)])
def test_no_more_is_added_to_a_transposed_convolution_than_a_stride(added, fits, held):
    weight = np.ones((2, 3, 3), np.float32)
    node = helper.make_node(
        "ConvTranspose", ["x", "w"], ["y"], strides=[2], output_padding=[added]
    )
    values = [
        helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 3)
        for n in ("x", "w", "y")
    ]
    constants = [numpy_helper.from_array(weight, "w")] if held else []
    inputs = values[:1] if held else values[:2]
    graph = helper.make_graph([node], "g", inputs, values[2:], constants)
    opsets = [helper.make_opsetid("", 17)]
    model = load(helper.make_model(graph, opset_imports=opsets, ir_version=8))
    x = Tensor.ones([1, 2, 4], Numpy())
    given = (x,) if held else (x, Tensor.from_data(weight, Numpy()))
    if fits:
        assert model.forward(*given).shape == (1, 3, 10)
        return
    with pytest.raises(ShapeError, match=f"an output_padding of {added} is not below"):
        model.forward(*given)
