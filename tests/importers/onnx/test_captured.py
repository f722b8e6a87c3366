"""Imported graphs become programs: whole numbers that come in are traced."""

import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Autodiff
from burnbook.backend.numpy import Numpy
from burnbook.cli import main
from burnbook.core.dtypes import Bool, Float, Int
from burnbook.core.errors import GraphError
from burnbook.exporters import to_onnx
from burnbook.importers.onnx import ModelGen, load
from burnbook.importers.onnx.traced import TracedArray
from burnbook.module import Module
from burnbook.program import capture
from burnbook.tensor import Tensor

RNG = np.random.default_rng(0)
KINDS = {"i": Int, "u": Int, "b": Bool, "f": Float}
IDS = np.array([[1, 2, -1], [3, 0, 2]])
TABLE = RNG.standard_normal((6, 4)).astype(np.float32)


def node(op, given, made="y", **how):
    return helper.make_node(op, given.split(), made.split(), **how)


def model(nodes, inputs, held=(), outputs=("y",), opset=21):
    given = []
    for name, array in inputs.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        sizes = ["n", *array.shape[1:]]
        given.append(helper.make_tensor_value_info(name, kind, sizes))
    shown = [
        helper.make_tensor_value_info(n, TensorProto.UNDEFINED, None) for n in outputs
    ]
    for value in shown:
        value.ClearField("type")
    constants = [numpy_helper.from_array(v, k) for k, v in dict(held).items()]
    graph = helper.make_graph(nodes, "g", given, shown, constants)
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def tensor(array):
    return Tensor[array.ndim, KINDS[array.dtype.kind]].from_numpy(array, Numpy())


def results(found):
    several = found if isinstance(found, tuple) else (found,)
    return [np.asarray(one.value) for one in several]


def agree(module, arrays, atol=1e-6, quantum=0.0):
    """The program gives for batches of any size what the module does.

    quantum: by how much one of ten may differ, as f32 rounds a half another way.
    """
    program = capture(module, *map(tensor, arrays))
    for rows in (1, 2, 5):
        fed = [np.resize(array, (rows, *array.shape[1:])) for array in arrays]
        wanted = results(module.forward(*map(tensor, fed)))
        found = [np.asarray(array) for array in program.run(*fed)]
        for a, b in zip(found, wanted, strict=True):
            assert a.shape == b.shape
            apart = np.abs(a - b) > atol if quantum else np.zeros(a.shape, bool)
            assert apart.mean() <= 0.1
            np.testing.assert_allclose(a[apart], b[apart], atol=quantum * 1.001)
            np.testing.assert_allclose(a[~apart], b[~apart], atol=atol)
    return program


def captured(nodes, inputs, held=(), **how):
    return agree(load(model(nodes, inputs, held, **how), Numpy()), [*inputs.values()])


def i8(*values):
    return np.array(values, np.int64)


MORE = RNG.integers(-9, 9, (2, 3))
TRUE = RNG.integers(0, 2, (2, 3)).astype(bool)
CASES = {
    "an embedding": ([node("Gather", "t ids")], {"ids": IDS}, {"t": TABLE}),
    "gather of whole numbers": (
        [node("Gather", "t ids")],
        {"ids": IDS},
        {"t": np.arange(24).reshape(6, 4)},
    ),
    "gather along an axis": (
        [node("Gather", "ids at", axis=1)],
        {"ids": IDS},
        {"at": i8(2, 0)},
    ),
    "gather of elements": (
        [node("Cast", "ids", "f", to=1), node("GatherElements", "f at", axis=1)],
        {"ids": MORE, "at": np.array([[1, 2, -1], [2, 0, 0]])},
    ),
    "cast to a float": ([node("Cast", "ids", to=1)], {"ids": IDS}),
    "cast to truths": ([node("Cast", "ids", to=9)], {"ids": IDS}),
    "cast to 8 bits, which wrap": ([node("Cast", "x", to=3)], {"x": IDS * 100}),
    "cast to 8 bits without a sign": ([node("Cast", "x", to=2)], {"x": IDS * 100}),
    "floats cut to whole numbers": (
        [node("Cast", "x", to=7)],
        {"x": (RNG.standard_normal((2, 3)) * 4).astype(np.float32)},
    ),
    "a sum with 32 bits": (
        [node("Add", "x x")],
        {"x": IDS.astype(np.int32)},
    ),
    "a sum": ([node("Add", "x c")], {"x": IDS}, {"c": i8(10, 20, 30)}),
    "a product of two inputs": ([node("Mul", "x z")], {"x": IDS, "z": MORE}),
    "a quotient, cut": ([node("Div", "x c")], {"x": MORE}, {"c": i8(4, -4, 3)}),
    "a rest": ([node("Mod", "x c")], {"x": MORE}, {"c": i8(4, -4, 3)}),
    "a difference to truths": (
        [node("Equal", "x c", "e"), node("Not", "e", "n"), node("And", "e n")],
        {"x": IDS},
        {"c": i8(2)},
    ),
    "comparisons": (
        [
            node("Greater", "x z", "a"),
            node("LessOrEqual", "x z", "b"),
            node("Xor", "a b", "c"),
            node("Or", "c b"),
        ],
        {"x": IDS, "z": MORE},
    ),
    "where, of whole numbers": (
        [node("Equal", "x c", "e"), node("Where", "e x z")],
        {"x": IDS, "z": MORE},
        {"c": i8(2)},
    ),
    "where, of floats": (
        [node("Where", "m a b")],
        {"m": TRUE},
        {"a": np.float32([[-np.inf]]), "b": np.float32([0.0])},
    ),
    "where, with truths that come in": (
        [node("Where", "m x z")],
        {
            "m": TRUE,
            "x": RNG.standard_normal((2, 3)).astype(np.float32),
            "z": MORE.astype(np.float32),
        },
    ),
    "one of many": (
        [
            node("ReduceMax", "x axes", "m", keepdims=0),
            node("ReduceSum", "x axes", "s"),
        ],
        {"x": MORE},
        {"axes": i8(1)},
        {"outputs": ("m", "s")},
    ),
    "places of the largest": ([node("ArgMax", "x", axis=1)], {"x": MORE}),
    "moves": (
        [
            node("Unsqueeze", "x one", "u"),
            node("Transpose", "u", "t", perm=[0, 2, 1]),
            node("Concat", "t t", "c", axis=2),
            node("Slice", "c from to two", "s"),
            node("Reshape", "s shape", "r"),
            node("Expand", "r wide", "e"),
            node("Squeeze", "e last"),
        ],
        {"x": MORE},
        {
            "one": i8(1),
            "from": i8(1),
            "to": i8(3),
            "two": i8(1),
            "shape": i8(0, -1, 1),
            "wide": i8(1, 1, 1),
            "last": i8(2),
        },
    ),
    "pieces": (
        [node("Split", "x sizes", "a b", axis=1)],
        {"x": MORE},
        {"sizes": i8(1, 2)},
        {"outputs": ("a", "b")},
    ),
    "backwards": (
        [node("Slice", "x from to axes by")],
        {"x": MORE},
        {"from": i8(-1), "to": i8(-9), "axes": i8(1), "by": i8(-1)},
    ),
    "running sums": ([node("CumSum", "x c")], {"x": MORE}, {"c": np.array(1)}),
    "bits": ([node("BitwiseAnd", "x c")], {"x": MORE}, {"c": i8(5)}),
    "held in bounds": (
        [node("Clip", "x low high")],
        {"x": MORE},
        {"low": np.array(-2), "high": np.array(3)},
    ),
    "hot rows": (
        [node("OneHot", "x depth values")],
        {"x": IDS},
        {"depth": i8(4), "values": i8(0, 1)},
    ),
    "the largest of several": ([node("Max", "x z")], {"x": MORE, "z": IDS}),
    "a triangle": ([node("Trilu", "x")], {"x": RNG.integers(0, 9, (2, 3, 3))}),
    "edges that mirror": (
        [node("Pad", "x pads", mode="reflect")],
        {"x": MORE},
        {"pads": i8(0, 1, 0, 1)},
    ),
    "edges that go on": (
        [node("Pad", "x pads", mode="edge")],
        {"x": MORE},
        {"pads": i8(0, 2, 0, -1)},
    ),
    "edges that come again": (
        [node("Pad", "x pads", mode="wrap")],
        {"x": MORE},
        {"pads": i8(0, 1, 0, 1)},
    ),
    "the first k": (
        [node("TopK", "x k", "v at", axis=1)],
        {"x": RNG.permutation(24).reshape(2, 12)},
        {"k": i8(3)},
        {"outputs": ("v", "at")},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_graph_of_whole_numbers_is_captured(case):
    nodes, inputs, held, how = (*CASES[case], {}, {})[:4]
    captured(nodes, inputs, held, **how)


def test_host_arithmetic_on_shapes_leaves_no_step():
    nodes = [
        node("Shape", "ids", "s", start=1),
        node("Squeeze", "s", "t"),
        node("Range", "zero t one", "r"),
        node("Gather", "pos r", "p"),
        node("Gather", "t_ ids", "e"),
        node("Add", "e p"),
    ]
    held = {"t_": TABLE, "pos": TABLE, "zero": np.array(0), "one": np.array(1)}
    program = captured(nodes, {"ids": IDS}, held)
    names = {step.op.name for step in program.steps}
    assert "embedding" in names
    assert not names & {"cumsum", "expand", "cast"}


def test_elements_that_decide_python_are_refused_with_the_line():
    nodes = [node("Reshape", "x ids")]
    module = load(
        model(nodes, {"ids": i8(2, 3), "x": np.zeros(6, np.float32)}), Numpy()
    )
    with pytest.raises(GraphError) as caught:
        capture(module, tensor(i8(2, 3)), tensor(np.zeros(6, np.float32)), batch=None)
    assert "elements that depend on the inputs" in str(caught.value)
    assert "<onnx model" in dict(caught.value.facts)["line"]


@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_sequences_of_known_lengths_are_captured_backwards(dtype):
    x = np.arange(12, dtype=dtype).reshape(2, 3, 2)
    nodes = [node("ReverseSequence", "x l", batch_axis=0, time_axis=1)]
    module = load(model(nodes, {"x": x}, {"l": i8(2, 3)}), Numpy())
    program = capture(module, tensor(x), batch=None)
    (wanted,) = results(module.forward(tensor(x)))
    np.testing.assert_array_equal(np.asarray(program.run(x)[0]), wanted)


def test_what_would_be_written_into_a_traced_array_is_refused_with_the_line():
    x, lengths = np.arange(12).reshape(2, 3, 2), i8(2, 3)
    nodes = [node("ReverseSequence", "x l", batch_axis=0, time_axis=1)]
    module = load(model(nodes, {"x": x, "l": lengths}), Numpy())
    with pytest.raises(GraphError, match="elements that depend on the inputs"):
        capture(module, tensor(x), tensor(lengths), batch=None)


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: np.pad(x, [(1, 1)], "reflect"),
        lambda x: np.cumsum(x, 0, out=x),
        lambda x: x.__setitem__(0, 1),
    ],
)
def test_what_numpy_can_do_and_a_capture_cannot_is_refused_as_such(ask):
    class Asking(Module):
        def forward(self, x: Tensor[1, Int]) -> Tensor[1, Int]:
            ask(TracedArray(x, np.int64))
            return x

    with pytest.raises(GraphError, match="elements that depend on the inputs"):
        capture(Asking(), tensor(i8(1, 2, 3)))


def dynamically_quantized():
    weight = RNG.integers(-128, 128, (300, 5)).astype(np.int8)
    nodes = [
        node("DynamicQuantizeLinear", "x", "q scale zero"),
        node("MatMulInteger", "q w zero", "p"),
        node("Cast", "p", "f", to=1),
        node("Mul", "f scale"),
    ]
    return model(nodes, {"x": np.zeros((2, 300), np.float32)}, {"w": weight})


def test_a_dynamically_quantized_model_is_captured():
    module = load(dynamically_quantized(), Numpy())
    x = RNG.standard_normal((2, 300)).astype(np.float32)
    program = capture(module, tensor(x))
    for rows in (2, 3):
        fed = np.resize(x, (rows, 300)) * rows
        wanted = np.asarray(module.forward(tensor(fed)))
        np.testing.assert_allclose(program.run(fed)[0], wanted, rtol=1e-6)


def test_the_range_of_zeros_is_captured_as_it_runs():
    module = load(dynamically_quantized(), Numpy())
    x = np.zeros((2, 300), np.float32)
    np.testing.assert_array_equal(
        capture(module, tensor(x)).run(x)[0], np.zeros((2, 5))
    )


def test_a_quantized_layer_is_captured():
    w = RNG.integers(-128, 128, (3, 2, 3, 3)).astype(np.int8)
    nodes = [
        node("QuantizeLinear", "x s z", "q"),
        node("QLinearConv", "q s z w ws wz s z", "c"),
        node("DequantizeLinear", "c s z"),
    ]
    held = {
        "s": np.float32(0.05),
        "z": np.uint8(120),
        "w": w,
        "ws": np.float32(0.01),
        "wz": np.int8(0),
    }
    x = RNG.standard_normal((2, 2, 5, 5)).astype(np.float32)
    agree(load(model(nodes, {"x": x}, held), Numpy()), [x], quantum=0.05)


# Constants of narrow whole numbers

MASK = np.tril(np.ones((64, 64), bool))


def masked():
    nodes = [
        node("MatMul", "x w", "h"),
        node("Where", "mask h low", "m"),
        node("Softmax", "m"),
    ]
    held = {
        "w": RNG.standard_normal((64, 64)).astype(np.float32),
        "mask": MASK,
        "low": np.float32(-np.inf),
    }
    return model(nodes, {"x": np.zeros((2, 64, 64), np.float32)}, held)


X = RNG.standard_normal((2, 64, 64)).astype(np.float32)


@pytest.mark.parametrize("moved", [False, True], ids=["as loaded", "on one device"])
def test_a_large_mask_beside_weights_is_captured(moved):
    module = load(masked(), Numpy())
    assert Numpy(int="u8") in module.devices()
    agree(module.to_device(Numpy()) if moved else module, [X])


def test_a_model_with_a_mask_that_learns_is_captured_as_it_predicts():
    file = masked()
    module = load(file, Autodiff(Numpy()))
    program = capture(module, Tensor.from_numpy(X, Autodiff(Numpy())))
    wanted = np.asarray(load(file, Numpy()).forward(tensor(X)))
    np.testing.assert_allclose(program.run(X)[0], wanted, rtol=1e-6)


def test_weights_of_two_float_types_are_still_refused():
    from burnbook.core.errors import ArgumentError
    from burnbook.nn import LinearConfig

    one = LinearConfig(2, 2).init(Numpy())
    other = LinearConfig(2, 2).init(Numpy(float="f64"))

    def both(x):
        return one.forward(x), other

    with pytest.raises(ArgumentError, match="one device"):
        capture(both, Tensor.ones([1, 2], Numpy()))


def test_an_exported_gpt_gives_in_onnxruntime_what_it_gave(tmp_path):
    runtime = pytest.importorskip("onnxruntime")
    nodes = [
        node("Gather", "t ids", "e"),
        node("Transpose", "e", "k", perm=[0, 2, 1]),
        node("MatMul", "e k", "a"),
        node("Where", "mask a low", "m"),
        node("Softmax", "m", "s"),
        node("MatMul", "s e"),
    ]
    mask = np.tril(np.ones((8, 8), bool))
    held = {"t": TABLE, "mask": mask, "low": np.float32(-np.inf)}
    ids = RNG.integers(0, 6, (2, 8))
    module = load(model(nodes, {"ids": ids}, held), Numpy())
    to_onnx(module, tmp_path / "m.onnx", tensor(ids))
    session = runtime.InferenceSession(str(tmp_path / "m.onnx"))
    fed = RNG.integers(0, 6, (3, 8))
    found = session.run(None, {session.get_inputs()[0].name: fed})[0]
    np.testing.assert_allclose(
        found, np.asarray(module.forward(tensor(fed))), atol=1e-5
    )


@pytest.mark.parametrize("command", ["export-onnx", "export-rust"])
def test_the_commands_export_an_imported_model_with_a_mask(
    command, tmp_path, monkeypatch
):
    onnx.save(masked(), tmp_path / "masked_one.onnx")
    ModelGen().input(tmp_path / "masked_one.onnx").out_dir(tmp_path).run_from_cli()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.delitem(sys.modules, "masked_one", raising=False)
    how = ["--module", "masked_one:Model.default", "--input", "1x64x64"]
    if command == "export-onnx":
        done = main([command, "masked_one.mpk", "out.onnx", *how])
        made = tmp_path / "out.onnx"
    else:
        done = main([command, "crate", "--record", "masked_one.mpk", *how])
        made = tmp_path / "crate" / "src" / "model.rs"
    assert not done
    assert made.stat().st_size > 0
