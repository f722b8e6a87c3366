"""What an import computes with NumPy: it follows the batch, and comes back small."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.exporters import to_onnx
from burnbook.exporters.rust import to_rust
from burnbook.importers.onnx import load
from burnbook.program import capture
from burnbook.tensor import Tensor

ort = pytest.importorskip("onnxruntime")


def whole(*numbers):
    return np.array(numbers, np.int64)


def node(op, inputs, **attributes):
    return helper.make_node(op, inputs, ["y"], **attributes)


ASYMMETRIC = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
CASES = {
    "nearest by scales": (
        node("Resize", ["x", "", "s"], mode="nearest", **ASYMMETRIC),
        {"s": np.float32([1, 1, 2, 2])},
    ),
    "nearest to another size": (
        node("Resize", ["x", "", "s"], mode="nearest"),
        {"s": np.float32([1, 1, 1.5, 0.5])},
    ),
    "reflect": (
        node("Pad", ["x", "p"], mode="reflect"),
        {"p": whole(0, 0, 2, 1, 0, 0, 1, 2)},
    ),
    "edge": (
        node("Pad", ["x", "p"], mode="edge"),
        {"p": whole(0, 0, 2, 1, 0, 0, 1, 2)},
    ),
    "backwards": (
        node("Slice", ["x", "a", "e", "axes", "steps"]),
        {"a": whole(7), "e": whole(-99), "axes": whole(3), "steps": whole(-2)},
    ),
}


def model_of(nodes, constants):
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["b", 3, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    held = [numpy_helper.from_array(a, name) for name, a in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=8)


def numbers(n):
    drawn = np.random.default_rng(0).standard_normal((n, 3, 8, 8))
    return drawn.astype(np.float32)


def by_runtime(made, x):
    session = ort.InferenceSession(made.SerializeToString())
    return session.run(None, {session.get_inputs()[0].name: x})[0]


@pytest.mark.parametrize("name", CASES)
def test_places_of_a_dim_follow_the_batch_and_are_written_small(name, tmp_path):
    one, constants = CASES[name]
    made = model_of([one], constants)
    program = capture(load(made), Tensor.from_numpy(numbers(2)))
    x = numbers(5)
    wanted = by_runtime(made, x)
    np.testing.assert_array_equal(np.asarray(program(Tensor.from_numpy(x))), wanted)
    to_onnx(program, tmp_path / "back.onnx")
    back = onnx.load(tmp_path / "back.onnx")
    np.testing.assert_array_equal(by_runtime(back, x), wanted)
    assert sum(np.prod(held.dims) for held in back.graph.initializer) < 100


PLACES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("scales", [(2, 2), (1.5, 0.5), (1, 3), (0.75, 1), (0.3, 2.3)])
def test_a_linear_resize_is_written_as_one(scales, places, tmp_path):
    """Where burnbook's own has the same places; else as products, with equal values."""
    one = node(
        *("Resize", ["x", "", "s"]),
        mode="linear",
        coordinate_transformation_mode=places,
    )
    is_exact = all((8 * scale).is_integer() for scale in map(float, scales))
    if places == "align_corners" and not is_exact:
        return  # ONNX's reference, which we follow, and ONNX Runtime differ there
    made = model_of([one], {"s": np.float32([1, 1, *scales])})
    program = capture(load(made), Tensor.from_numpy(numbers(2)))
    x = numbers(5)
    wanted = by_runtime(made, x)
    found = np.asarray(program(Tensor.from_numpy(x)))
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    to_onnx(program, tmp_path / "back.onnx")
    back = onnx.load(tmp_path / "back.onnx")
    np.testing.assert_allclose(by_runtime(back, x), wanted, atol=1e-6)
    if is_exact and places != "asymmetric":
        assert [one.op_type for one in back.graph.node].count("Resize") == 1
        assert sum(np.prod(held.dims) for held in back.graph.initializer) < 100


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_a_resize_is_written_for_burn_too(mode, tmp_path):
    one = node("Resize", ["x", "", "s"], mode=mode)
    made = model_of([one], {"s": np.float32([1, 1, 2, 0.5])})
    to_rust(load(made), tmp_path / "crate", Tensor.from_numpy(numbers(2)))
    text = (tmp_path / "crate" / "src" / "model.rs").read_text()
    assert text.count(".matmul(") == 2


@pytest.mark.parametrize("inputs", [["x", "m"], ["x", "", "m"], ["x", "m", "m2"]])
def test_bounds_that_are_computed_are_captured(inputs):
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["m"], keepdims=0),
        helper.make_node("ReduceMax", ["x"], ["m2"], keepdims=0),
        node("Clip", inputs),
    ]
    made, x = model_of(nodes, {}), numbers(2)
    program = capture(load(made), Tensor.from_numpy(numbers(2)), batch=None)
    x = x * 3 - 1
    found = np.asarray(program(Tensor.from_numpy(x)))
    np.testing.assert_allclose(found, by_runtime(made, x), rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_mask_by_places_of_two_dims_is_captured(axis):
    """As GatherND takes an attention mask: its places count the batch."""
    mask = helper.make_tensor_value_info("x", TensorProto.INT64, ["b", 4])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    held = [numpy_helper.from_array(whole(0), "zero")]
    held += [numpy_helper.from_array(whole(1), "one")]
    held += [numpy_helper.from_array(np.int64(n), f"n{n}") for n in (0, 1)]
    held += [numpy_helper.from_array(np.arange(4).reshape(1, 4, 1), "kv")]
    held += [numpy_helper.from_array(whole(1, 2), "ones")]
    nodes = [
        helper.make_node("Shape", ["x"], ["s"], end=1),
        helper.make_node("Squeeze", ["s"], ["b"]),
        helper.make_node("Range", ["n0", "b", "n1"], ["rows"]),
        helper.make_node("Unsqueeze", ["rows", "ones"], ["at"]),
        helper.make_node("Add", ["kv", "at"], ["sum"]),
        helper.make_node("Sub", ["sum", "kv"], ["first"]),
        helper.make_node("Sub", ["sum", "at"], ["second"]),
        helper.make_node("Concat", ["first", "second"], ["places"], axis=-1),
        node("GatherND", ["x", "places"]),
    ]
    graph = helper.make_graph(nodes, "g", [mask], [y], held)
    opset = [helper.make_opsetid("", 17)]
    made = helper.make_model(graph, opset_imports=opset, ir_version=8)
    batch = 0 if axis == 0 else None
    given = np.arange(8).reshape(2, 4)
    program = capture(load(made), Tensor.from_numpy(given), batch=batch)
    x = np.arange(12 if axis == 0 else 8).reshape(-1, 4) + 5
    found = np.asarray(program(Tensor.from_numpy(x)))
    np.testing.assert_array_equal(found, by_runtime(made, x))
