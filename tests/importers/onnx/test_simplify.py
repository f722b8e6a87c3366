"""What is worked out of a graph at import, and weights that stay narrow."""

import importlib.util

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx import Backend, ModelGen, load, source_of
from burnbook.importers.onnx.load import known
from burnbook.tensor import Tensor

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(nodes, inputs, outputs, constants=(), opset=21):
    """A file of nodes; inputs and outputs: name -> type and sizes."""
    values = [
        [helper.make_tensor_value_info(n, kind, shape) for n, (kind, shape) in part]
        for part in (inputs.items(), outputs.items())
    ]
    held = [
        numpy_helper.from_array(array, name) for name, array in dict(constants).items()
    ]
    graph = helper.make_graph(nodes, "graph", *values, held)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10
    )


def operators_of(model):
    """The operators that are left of a file, but for other names of results."""
    plain, _ = known(model)
    return [node.op for _, node in plain.graph.walk() if node.op != "Identity"]


def branch(name, constant, result):
    """A graph with a constant of its own, under a name that the other has as well."""
    nodes = [
        helper.make_node(
            "Constant", [], ["scale"], value=numpy_helper.from_array(constant)
        ),
        helper.make_node("Mul", ["x", "scale"], [result]),
    ]
    out = helper.make_tensor_value_info(result, FLOAT, None)
    return helper.make_graph(nodes, name, [], [out])


def choosing(cond):
    """x times a long constant, another one in each branch."""
    ones = np.arange(40, dtype=np.float32)
    return helper.make_node(
        "If",
        [cond],
        ["y"],
        then_branch=branch("then", ones, "a"),
        else_branch=branch("else", -ones, "b"),
    )


def test_constants_of_one_name_in_two_branches_are_two():
    inputs = {"x": (FLOAT, [2, 40]), "c": (BOOL, [])}
    model = model_of([choosing("c")], inputs, {"y": (FLOAT, [2, 40])})
    ready, x = Backend.prepare(model), np.ones((2, 40), np.float32)
    for truth, sign in ((True, 1), (False, -1)):
        (found,) = ready.run([x, np.array(truth)])
        np.testing.assert_array_equal(found, sign * x * np.arange(40))


def test_a_branch_that_the_rank_decides_stands_in_place_of_its_if():
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"]),
        helper.make_node("Size", ["sizes"], ["rank"]),
        helper.make_node("Equal", ["rank", "two"], ["c"]),
        choosing("c"),
    ]
    inputs, outputs = {"x": (FLOAT, ["n", 40])}, {"y": (FLOAT, ["n", 40])}
    model = model_of(nodes, inputs, outputs, {"two": np.array(2)})
    assert operators_of(model) == ["Mul"]
    x = np.ones((3, 40), np.float32)
    np.testing.assert_array_equal(Backend.prepare(model).run([x])[0], x * np.arange(40))


def test_a_branch_that_the_input_decides_stays():
    nodes = [
        helper.make_node("Shape", ["x"], ["sizes"], end=1),
        helper.make_node("Squeeze", ["sizes"], ["count"]),
        helper.make_node("Equal", ["count", "two"], ["c"]),
        choosing("c"),
    ]
    inputs, outputs = {"x": (FLOAT, ["n", 40])}, {"y": (FLOAT, ["n", 40])}
    model = model_of(nodes, inputs, outputs, {"two": np.array(2)})
    ready = Backend.prepare(model)
    for count, sign in ((2, 1), (3, -1)):
        x = np.ones((count, 40), np.float32)
        np.testing.assert_array_equal(ready.run([x])[0], sign * x * np.arange(40))


def test_equal_nodes_are_one():
    nodes = [
        helper.make_node("Relu", ["x"], ["a"]),
        helper.make_node("Relu", ["x"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["y"]),
    ]
    sizes = {"x": (FLOAT, [2, 3])}
    model = model_of(nodes, sizes, {"y": (FLOAT, [2, 3])})
    assert operators_of(model) == ["Relu", "Sub"]


def test_random_nodes_are_not_one():
    nodes = [
        helper.make_node("RandomNormalLike", ["x"], ["a"]),
        helper.make_node("RandomNormalLike", ["x"], ["b"]),
        helper.make_node("Sub", ["a", "b"], ["y"]),
    ]
    model = model_of(nodes, {"x": (FLOAT, [9])}, {"y": (FLOAT, [9])})
    assert np.abs(Backend.prepare(model).run([np.ones(9, np.float32)])[0]).max() > 0


def test_a_weight_that_two_nodes_take_is_not_copied_by_a_turn():
    nodes = [
        helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("MatMul", ["a", "t"], ["y"]),
    ]
    weight = np.random.default_rng(0).random((5, 7), np.float32)
    sizes = {"x": (FLOAT, [2, 5])}
    module = load(model_of(nodes, sizes, {"y": (FLOAT, [2, 5])}, {"w": weight}))
    assert module.num_params() == 35


def test_a_constant_that_would_be_large_is_not_made_at_import():
    shape = np.array([1 << 20, 1 << 20])
    nodes = [
        helper.make_node("ConstantOfShape", ["shape"], ["zeros"]),
        helper.make_node("Add", ["x", "zeros"], ["y"]),
    ]
    sizes = {"x": (FLOAT, [1])}
    model = model_of(nodes, sizes, {"y": (FLOAT, None)}, {"shape": shape})
    assert operators_of(model) == ["ConstantOfShape", "Add"]


@pytest.mark.parametrize(
    ("nodes", "name"),
    [
        ([("Sigmoid", "x", "s"), ("Mul", "x s", "y")], "Swish"),
        (
            [
                *[("Add", "x three", "a"), ("Clip", "a zero six", "c")],
                *[("Mul", "x c", "m"), ("Div", "m six", "y")],
            ],
            "HardSwish",
        ),
        (
            [
                *[("Add", "x three", "a"), ("Clip", "a zero six", "c")],
                *[("Div", "c six", "d"), ("Mul", "d x", "y")],
            ],
            "HardSwish",
        ),
        (
            [
                ("Add", "x three", "a"),
                ("Clip", "a zero six", "c"),
                ("Div", "c six", "y"),
            ],
            "HardSigmoid",
        ),
    ],
)
def test_a_curve_in_its_parts_is_found_again(nodes, name):
    made = [helper.make_node(op, given.split(), [out]) for op, given, out in nodes]
    sizes, numbers = {"x": (FLOAT, [2, 50])}, {"zero": 0, "three": 3, "six": 6}
    held = {k: np.array(v, np.float32) for k, v in numbers.items()}
    model = model_of(made, sizes, {"y": (FLOAT, [2, 50])}, held)
    assert operators_of(model) == [name]
    x = np.linspace(-5, 5, 100, dtype=np.float32).reshape(2, 50)
    gate = 1 / (1 + np.exp(-x)) if name == "Swish" else np.clip(x + 3, 0, 6) / 6
    wanted = gate if name == "HardSigmoid" else x * gate
    np.testing.assert_allclose(Backend.prepare(model).run([x])[0], wanted, atol=1e-6)


def test_a_product_with_another_value_is_no_swish():
    made = [
        helper.make_node("Sigmoid", ["x"], ["s"]),
        helper.make_node("Mul", ["z", "s"], ["y"]),
    ]
    sizes = {"x": (FLOAT, [3]), "z": (FLOAT, [3])}
    model = model_of(made, sizes, {"y": (FLOAT, [3])})
    assert operators_of(model) == ["Sigmoid", "Mul"]


def test_the_bias_of_a_convolution_is_part_of_its_layer():
    rng = np.random.default_rng(0)
    held = {
        "w": rng.random((4, 3, 3, 3), np.float32),
        "b": rng.random((1, 4, 1, 1), np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"]),
        helper.make_node("Add", ["c", "b"], ["y"]),
    ]
    model = model_of(
        nodes, {"x": (FLOAT, [1, 3, 8, 8])}, {"y": (FLOAT, [1, 4, 6, 6])}, held
    )
    module = load(model, Numpy())
    assert "with_bias(False)" not in source_of(module)
    assert source_of(module).count(".forward(") == 1
    x = rng.random((1, 3, 8, 8)).astype(np.float32)
    bare = model_of(nodes[:1], {"x": (FLOAT, [1, 3, 8, 8])}, {"c": (FLOAT, None)}, held)
    wanted = Backend.prepare(bare).run([x])[0] + held["b"]
    found = module.forward(Tensor.from_numpy(x, Numpy())).value
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


NARROW = [
    *[("int8", 1.0), ("uint8", 1.0), ("int16", 2.0), ("uint16", 2.0), ("bool", 1.0)],
    *[("int4", 0.5), ("uint4", 0.5), ("float8_e4m3fn", 1.0), ("bfloat16", 2.0)],
]


@pytest.mark.parametrize(("name", "size"), NARROW)
def test_a_constant_of_few_bits_takes_few_bytes(name, size, tmp_path):
    dtype = np.dtype(
        name if name == "bool" else getattr(__import__("ml_dtypes"), name, name)
    )
    rng = np.random.default_rng(0)
    numbers = rng.integers(0, 2 if name == "bool" else 7, (50, 41)).astype(dtype)
    tensor = numpy_helper.from_array(numbers, "w")
    node = helper.make_node("Cast", ["picked"], ["y"], to=FLOAT)
    pick = helper.make_node("Gather", ["w", "i"], ["picked"])
    model = model_of([pick, node], {"i": (INT64, [2])}, {"y": (FLOAT, [2, 41])})
    model.graph.initializer.append(tensor)
    module = load(model, Numpy())
    held = [param.val().value for _, param in module.named_params()]
    assert sum(array.nbytes for array in held) == int(np.ceil(numbers.size * size))
    places = np.array([3, 49])
    (found,) = Backend.prepare(model).run([places])
    np.testing.assert_array_equal(found, numbers[places].astype(np.float32))
    onnx.save(model, tmp_path / "narrow.onnx")
    (made,) = (
        ModelGen().input(tmp_path / "narrow.onnx").out_dir(tmp_path).run_from_cli()
    )
    record = tmp_path / "narrow.mpk"
    assert record.stat().st_size < numbers.size * size + 1000
    spec = importlib.util.spec_from_file_location("narrow", made)
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    again = written.Model.default()
    assert sum(p.val().value.nbytes for _, p in again.named_params()) == sum(
        array.nbytes for array in held
    )
    found = again.forward(Tensor.from_numpy(places, Numpy())).value
    np.testing.assert_array_equal(found, numbers[places].astype(np.float32))


def test_a_product_of_many_whole_numbers_is_exact():
    a = np.full((3, 5000), 255, np.uint8)
    b = np.full((5000, 2), 127, np.int8)
    a[:, ::3], b[::7] = 254, -128
    node = helper.make_node("MatMulInteger", ["a", "b", "zero"], ["y"])
    sizes = {"a": (TensorProto.UINT8, [3, 5000])}
    held = {"b": b, "zero": np.array(3, np.uint8)}
    model = model_of([node], sizes, {"y": (TensorProto.INT32, [3, 2])}, held)
    (found,) = Backend.prepare(model).run([a])
    wanted = (a.astype(np.int64) - 3) @ b.astype(np.int64)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("op", ["LSTM", "GRU"])
@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [None, [6, 6], [6, 4]])
def test_recurrent_operators_begin_with_given_states(op, direction, lengths):
    runtime = pytest.importorskip("onnxruntime", reason="it is the oracle here")
    gates, ways = (4 if op == "LSTM" else 3), 1 + (direction == "bidirectional")
    rng = np.random.default_rng(0)

    def normal(*shape):
        return rng.standard_normal(shape).astype(np.float32)

    held = {
        "w": normal(ways, gates * 5, 3),
        "r": normal(ways, gates * 5, 5),
        "b": normal(ways, gates * 10),
    }
    given = {"x": normal(6, 2, 3), "h": normal(ways, 2, 5)}
    names = ["x", "w", "r", "b", "", "h"]
    outputs = ["y", "yh"]
    if op == "LSTM":
        given["c"] = normal(ways, 2, 5)
        names, outputs = [*names, "c"], [*outputs, "yc"]
    if lengths is not None:
        held["lengths"] = np.array(lengths, np.int32)
        names[4] = "lengths"
    node = helper.make_node(op, names, outputs, hidden_size=5, direction=direction)
    sizes = {k: (FLOAT, v.shape) for k, v in given.items()}
    model = model_of([node], sizes, dict.fromkeys(outputs, (FLOAT, None)), held)
    session = runtime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    found = Backend.prepare(model).run(list(given.values()))
    for ours, theirs in zip(found, session.run(None, given), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2])
def test_an_identity_makes_a_weight_of_its_own_of_every_type_of_8_bits(kind):
    nodes = [
        helper.make_node("Identity", ["w"], ["again"]),
        helper.make_node("Cast", ["w"], ["a"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["again"], ["b"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["x", "a"], ["c"]),
        helper.make_node("Mul", ["c", "b"], ["y"]),
    ]
    table = helper.make_tensor("w", kind, [2, 2], [1.0, 2.0, 0.5, 4.0])
    value = helper.make_tensor_value_info
    x, y = (value(n, TensorProto.FLOAT, [2, 2]) for n in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], [table])
    opsets = [helper.make_opsetid("", 21)]
    model, _ = known(helper.make_model(graph, opset_imports=opsets, ir_version=10))
    assert {"w", "again"} <= set(model.graph.constants)
