"""Results that do not follow from an input: tensors of the shape that the file says."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the files are made with it")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Autodiff, Numpy
from burnbook.importers.onnx import load
from burnbook.tensor import Tensor

TYPES = ("int64", "int32", "float32", "float64", "bool", "uint8")
SHAPES = ((), (1,), (3,), (0,), (2, 3), (1, 1, 2))
X = np.float32([[-1, 2, 3], [4, -5, 6]])


def info(name, shape, dtype="float32"):
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, weights=(), shape=None, dtype="int64"):
    """A graph of x with the results y, which follows x, and c, which does not."""
    nodes = [helper.make_node("Relu", ["x"], ["y"]), *nodes]
    outputs = [info("y", [2, 3]), info("c", shape, dtype)]
    graph = helper.make_graph(nodes, "g", [info("x", [2, 3])], outputs, list(weights))
    opsets = [helper.make_opsetid("", 16)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def constant(value):
    tensor = numpy_helper.from_array(value, "value")
    return model(
        [helper.make_node("Constant", [], ["c"], value=tensor)],
        shape=value.shape,
        dtype=value.dtype,
    )


def weight(value):
    held = [numpy_helper.from_array(value, "c")]
    return model([], held, value.shape, value.dtype)


def computed(value):
    held = [numpy_helper.from_array(value, "w")]
    nodes = [helper.make_node("Identity", ["w"], ["c"])]
    return model(nodes, held, value.shape, value.dtype)


@pytest.mark.parametrize("device", [Numpy(), Autodiff(Numpy())], ids=repr)
@pytest.mark.parametrize("make", [constant, weight, computed])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TYPES)
def test_a_constant_is_one_tensor(make, dtype, shape, device):
    value = np.arange(1, 1 + int(np.prod(shape))).reshape(shape).astype(dtype)
    _, found = load(make(value), device).forward(Tensor.from_numpy(X, device))
    assert isinstance(found, Tensor)
    assert found.dims() == (shape or (1,))
    assert np.array_equal(np.asarray(found.detach()), value.reshape(shape or (1,)))


def test_the_shape_of_an_input_is_one_tensor():
    nodes = [helper.make_node("Shape", ["x"], ["c"])]
    _, found = load(model(nodes, shape=[2])).forward(Tensor.from_numpy(X))
    assert isinstance(found, Tensor)
    assert np.asarray(found).tolist() == [2, 3]


def test_a_sequence_stays_a_list():
    nodes = [helper.make_node("SplitToSequence", ["x"], ["c"], axis=0)]
    made = model(nodes)
    made.graph.output[1].CopyFrom(
        helper.make_tensor_sequence_value_info("c", TensorProto.FLOAT, None)
    )
    _, found = load(made).forward(Tensor.from_numpy(X))
    assert [part.dims() for part in found] == [(1, 3), (1, 3)]


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2)], ids=str)
def test_a_sequence_of_constants_stays_a_list(shape):
    value = np.ones(shape, np.int64)
    made = constant(value)
    made.graph.node[1].output[0] = "w"
    made.graph.node.append(helper.make_node("SequenceConstruct", ["w", "w"], ["c"]))
    made.graph.output[1].CopyFrom(
        helper.make_tensor_sequence_value_info("c", TensorProto.INT64, None)
    )
    _, found = load(made).forward(Tensor.from_numpy(X))
    assert isinstance(found, list)
    assert [part.dims() for part in found] == [shape or (1,)] * 2
