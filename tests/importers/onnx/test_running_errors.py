"""What an imported model cannot compute: the operator, what it was given, the line."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import (
    ArgumentError,
    KindError,
    RecordError,
    ShapeError,
)
from burnbook.importers.onnx import closeness, compare, load
from burnbook.importers.onnx.operators import control
from burnbook.tensor import Tensor

HUGE = 1 << 40


def model(op, *constants, **attributes):
    """A node that takes x and constants, some of which only running tells."""
    held = [numpy_helper.from_array(c, f"c{k}") for k, c in enumerate(constants)]
    names = [tensor.name for tensor in held]
    node = helper.make_node(op, ["x", *names], ["y"], op, **attributes)
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [node],
        "g",
        [value("x", TensorProto.FLOAT, [1, 1, 3, 3])],
        [value("y", TensorProto.FLOAT, None)],
        held,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def running(made):
    return load(made, Numpy()).forward(Tensor.ones([1, 1, 3, 3], Numpy()))


def sizes(*numbers):
    return np.array(numbers, np.int64)


@pytest.mark.parametrize(
    ("op", "constants", "attributes"),
    [
        ("Expand", [sizes(HUGE, HUGE, 3, 3)], {}),
        ("Tile", [sizes(HUGE, 1, 1, 1)], {}),
        ("Resize", [np.zeros(0, "f4"), np.float32([1, 1, 1e6, 1e6])], {}),
    ],
)
def test_a_result_that_is_too_large_is_said_with_its_operator(
    op, constants, attributes
):
    made = model(op, *constants, **attributes)
    with pytest.raises(ShapeError, match="memory") as caught:
        running(made)
    assert op.lower() in str(caught.value).lower()


def of_constants(op, *inputs, **attributes):
    """A node that takes scalars or lists of the graph."""
    value = helper.make_tensor_value_info
    given = [
        value(f"i{k}", helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for k, x in enumerate(inputs)
    ]
    node = helper.make_node(op, [v.name for v in given], ["y"], op, **attributes)
    graph = helper.make_graph([node], "g", given, [value("y", TensorProto.FLOAT, None)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    device = Numpy()
    tensors = [
        Tensor.from_numpy(x, device) if x.ndim else Tensor.from_numpy(x[None], device)
        for x in inputs
    ]
    return load(made, device).forward(*tensors)


@pytest.mark.parametrize(
    ("op", "inputs"),
    [
        ("ConstantOfShape", [sizes(1 << 30, 1 << 30)]),
        ("Range", [sizes(0).sum(), sizes(1 << 60).sum(), sizes(1).sum()]),
        ("OneHot", [sizes(1, 2), sizes(1 << 50).sum(), np.float32([0, 1])]),
    ],
)
def test_sizes_that_come_from_outside_are_said_too(op, inputs):
    with pytest.raises(ShapeError, match="not enough memory") as caught:
        of_constants(op, *map(np.asarray, inputs))
    text = str(caught.value)
    assert f"onnx {op}" in text
    assert "line" in text
    assert "ops." in text  # the line of the source


def test_a_range_without_a_step_is_said_with_its_numbers():
    inputs = [np.asarray(np.float32(n)) for n in (0, 5, 0)]
    with pytest.raises(ArgumentError, match=r"onnx Range: the step .* is 0") as caught:
        of_constants("Range", *inputs)
    assert caught.value.facts == [("start", "0.0"), ("limit", "5.0")]


@pytest.mark.parametrize(
    ("pads", "attributes"), [((1, 1), {}), ((0,) * 8, {"mode": "upside_down"})]
)
def test_an_impossible_pad_is_said(pads, attributes):
    with pytest.raises(ShapeError, match=r"(?i)pad"):
        running(model("Pad", sizes(*pads), **attributes))


@pytest.mark.parametrize("trips", [1 << 62, None])
def test_a_loop_without_an_end_is_ended_with_an_error(trips, monkeypatch):
    monkeypatch.setattr(control, "MOST_STEPS", 50)
    value, kinds = helper.make_tensor_value_info, TensorProto
    body = helper.make_graph(
        [helper.make_node(op, [f"{op}_i"], [f"{op}_o"]) for op in ("Not", "Neg")]
        + [helper.make_node("Not", ["Not_o"], ["on"])],
        "body",
        [
            value("i", kinds.INT64, []),
            value("Not_i", kinds.BOOL, []),
            value("Neg_i", kinds.FLOAT, [1, 1, 3, 3]),
        ],
        [value("on", kinds.BOOL, []), value("Neg_o", kinds.FLOAT, [1, 1, 3, 3])],
    )
    made = model("Neg", np.asarray(trips or 0), np.asarray(True))
    names = ["c0" if trips else "", "c1", "x"]
    made.graph.node[0].CopyFrom(helper.make_node("Loop", names, ["y"], body=body))
    with pytest.raises(ArgumentError, match="still goes on after 50 steps") as caught:
        running(made)
    assert "MOST_STEPS" in str(caught.value)


def test_arrays_are_no_tensors():
    weight = np.ones((1, 1, 2, 2), np.float32)
    made = load(model("Conv", weight, pads=[0, 0, 0, 0]), Numpy())
    with pytest.raises(KindError, match="x is ndarray, not a tensor"):
        made.forward(np.zeros((1, 1, 3, 3), np.float32))


def test_links_in_circles_are_no_file(tmp_path):
    made = model("Add", np.ones((3, 3), np.float32))
    tensor = made.graph.initializer[0]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="loop")
    (tmp_path / "loop").symlink_to(tmp_path / "back")
    (tmp_path / "back").symlink_to(tmp_path / "loop")
    (tmp_path / "m.onnx").write_bytes(made.SerializeToString())
    with pytest.raises(RecordError, match=r"circles|not there"):
        load(tmp_path / "m.onnx", Numpy())


def test_a_wrong_rank_is_not_blamed_on_the_original(monkeypatch):
    monkeypatch.setattr(closeness.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ShapeError, match="1 input has another rank") as caught:
        compare(model("Neg"), [np.zeros((3, 3), np.float32)])
    assert caught.value.facts == [("x", "given [3, 3], the graph has [1, 1, 3, 3]")]
