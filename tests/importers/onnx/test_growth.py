"""Small ONNX files that would become large: refused, or not followed."""

import contextlib
import tracemalloc

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from onnx import helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import BurnbookError
from burnbook.importers.onnx import check, load
from burnbook.importers.onnx.growth import MOST_NUMBERS, checked
from burnbook.tensor import Tensor
from tests.support.crafted_files import try_many
from tests.support.onnx_graphs import graphs

OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("own", 1)]
FLOAT = onnx.TensorProto.FLOAT


def model(nodes, functions=(), held=()):
    inputs = [helper.make_tensor_value_info("x", FLOAT, [2, 3])]
    outputs = [helper.make_tensor_value_info("y", FLOAT, [2, 3])]
    constants = [numpy_helper.from_array(np.array(v), name) for name, v in held]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    made = helper.make_model(graph, opset_imports=OPSETS)
    made.functions.extend(functions)
    return made


def function(name, nodes):
    return helper.make_function("own", name, ["a"], ["b"], nodes, OPSETS)


def call(name, given, made):
    return helper.make_node(name, [given], [made], domain="own")


def test_crafted_files_give_our_errors_or_modules():
    found = try_many("onnx", 150)
    assert found.findings == []
    assert found.counts["refused"] > 30
    assert found.counts["read"] > 30


def test_the_graphs_that_are_crafted_are_good():
    from onnx.reference import ReferenceEvaluator

    for made in graphs():
        onnx.checker.check_model(made)
        dims = made.graph.input[0].type.tensor_type.shape.dim
        x = np.random.default_rng(0).random([d.dim_value for d in dims], np.float32)
        wanted = ReferenceEvaluator(made).run(None, {"x": x})[0]
        found = load(made, Numpy()).forward(Tensor[x.ndim].from_numpy(x, Numpy()))
        np.testing.assert_allclose(np.asarray(found), wanted, atol=1e-5)


def test_functions_that_call_each_other_eight_times_eight_times():
    functions = [function("F0", [helper.make_node("Relu", ["a"], ["b"])])]
    for depth in range(1, 30):
        names = ["a", *(f"t{i}" for i in range(7)), "b"]
        calls = [call(f"F{depth - 1}", names[i], names[i + 1]) for i in range(8)]
        functions.append(function(f"F{depth}", calls))
    with pytest.raises(BurnbookError, match="call each other too often"):
        load(model([call("F29", "x", "y")], functions), Numpy())
    few = model([call("F2", "x", "y")], functions[:3])
    assert checked(few)
    assert load(few, Numpy())


def test_functions_that_call_each_other_in_a_circle():
    circle = [
        function("A", [call("B", "a", "b")]),
        function("B", [call("A", "a", "b")]),
    ]
    with pytest.raises(BurnbookError, match="functions call each other"):
        check(model([call("A", "x", "y")], circle))


def doubled(count, node):
    nodes = [node(f"t{i}", f"t{i + 1}") for i in range(count)]
    return [*nodes, helper.make_node("Reshape", ["x", f"t{count}"], ["y"])]


def concat(given, made):
    return helper.make_node("Concat", [given, given], [made], axis=0)


def test_sizes_that_double_forty_times_are_not_followed():
    held = [("t0", [1, 2])]
    assert not checked(model(doubled(40, concat), held=held))
    twice = function("Twice", [concat("a", "b")])
    called = doubled(40, lambda given, made: call("Twice", given, made))
    assert not checked(model(called, [twice], held))
    assert load(model(doubled(40, concat), held=held), Numpy())
    assert checked(model(doubled(5, concat), held=held))


@pytest.mark.parametrize(
    ("numbers", "follows"),
    [((0, 2**40, 1), False), ((0, 100, 1), True), ((0.0, 1.0, 1e-9), False)],
)
def test_a_range_of_constants_is_followed_if_it_is_short(numbers, follows):
    nodes = [
        helper.make_node("Range", ["a", "b", "c"], ["r"]),
        helper.make_node("Cast", ["r"], ["f"], to=FLOAT),
        helper.make_node("Add", ["x", "f"], ["y"]),
    ]
    made = model(nodes, held=zip("abc", numbers, strict=True))
    assert checked(made) is follows
    assert load(made, Numpy())


def test_weights_do_not_count_as_sizes():
    weight = np.zeros(200_000, np.float32)
    nodes = [
        helper.make_node("Concat", ["a", "a"], ["w"], axis=0),
        helper.make_node("ReduceSum", ["w"], ["s"], keepdims=0),
        helper.make_node("Add", ["x", "s"], ["y"]),
    ]
    assert checked(model(nodes, held=[("a", weight)]))


def test_an_attribute_of_a_million_numbers_is_refused():
    node = helper.make_node("Transpose", ["x"], ["y"], perm=[0] * 10**6)
    data = model([node]).SerializeToString()
    tracemalloc.start()
    try:
        with pytest.raises(BurnbookError, match="1,000,000 values"):
            load(data, Numpy())
        assert tracemalloc.get_traced_memory()[1] < 60_000_000
    finally:
        tracemalloc.stop()
    table = helper.make_node(
        "Constant", [], ["c"], value_floats=[1.0] * MOST_NUMBERS * 2
    )
    total = helper.make_node("ReduceSum", ["c"], ["s"], keepdims=0)
    add = helper.make_node("Add", ["x", "s"], ["y"])
    assert load(model([table, total, add]), Numpy())


def test_a_sparse_constant_does_not_become_a_gigabyte():
    values = helper.make_tensor("w", FLOAT, [1], [1.0])
    where = helper.make_tensor("i", onnx.TensorProto.INT64, [1], [0])
    made = model([helper.make_node("Add", ["x", "w"], ["y"])])
    sparse = helper.make_sparse_tensor(values, where, [1 << 14, 1 << 14])
    made.graph.sparse_initializer.append(sparse)
    with pytest.raises(BurnbookError, match="a sparse constant of shape"):
        load(made, Numpy())


def test_thousands_of_unknown_operators_are_all_named():
    nodes = [helper.make_node(f"Relux{i}", ["x"], [f"t{i}"]) for i in range(3000)]
    report = check(model([*nodes, helper.make_node("Relu", ["x"], ["y"])]))
    shown = str(report)
    assert len(report.unsupported) == 3000
    assert "Relux0 at t0 (known: Relu)" in shown
    assert "Relux2999 at t2999\n" in shown + "\n"


def test_what_is_no_regular_file_is_not_read(tmp_path):
    with pytest.raises(BurnbookError, match="not a regular file"):
        load("/dev/zero", Numpy())
    with pytest.raises(BurnbookError, match="there is no such file"):
        load(tmp_path / "none.onnx", Numpy())


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
def test_an_epsilon_that_is_no_number_is_written_as_python_has_it(value):
    made = graphs()[0]
    (norm,) = [node for node in made.graph.node if node.op_type == "BatchNormalization"]
    norm.attribute[0].f = value
    with contextlib.suppress(BurnbookError):  # a config may refuse it
        assert load(made, Numpy())


def test_constants_of_unknown_types_are_refused():
    made = model([helper.make_node("Add", ["x", "w"], ["y"])])
    made.graph.initializer.append(onnx.TensorProto(name="w", data_type=29, dims=[1]))
    with pytest.raises(BurnbookError, match="element type 29"):
        load(made, Numpy())


def test_functions_that_lie_deep_but_do_not_call_themselves_are_said_to_be_deep():
    last = helper.make_node("Relu", ["a"], ["b"])
    functions = [function(f"F{k}", [call(f"F{k + 1}", "a", "b")]) for k in range(70)]
    functions.append(function("F70", [last]))
    with pytest.raises(BurnbookError, match="call functions 60 deep: F61"):
        load(model([call("F0", "x", "y")], functions), Numpy())
    assert load(model([call("F20", "x", "y")], functions), Numpy()) is not None
