"""Names of a file in the source: none hides what the source uses."""

import builtins
import keyword
from types import SimpleNamespace

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from hypothesis import given, settings, strategies as st
from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.importers.onnx import load, source_of
from burnbook.importers.onnx.load import known
from burnbook.importers.onnx.source import Loading, _Class, write
from burnbook.tensor import Tensor

RNG = np.random.default_rng(0)
X = RNG.standard_normal((2, 4)).astype(np.float32)
LOWER = [name for name in dir(builtins) if name.islower()]
OURS = "self cls np nn ops device values module param tensor model backend path float_2"
HOSTILE = [*LOWER, *keyword.kwlist, *keyword.softkwlist, *OURS.split(), "b85decode"]


def named(names, field="w", part=""):
    """A graph whose values have such names, and what it uses builtins for."""
    a, b, c, d, y = names
    held = {
        field: RNG.standard_normal((4, 4)).astype(np.float32),
        "low": np.float32(-np.inf),
        "zero": np.float32(0),
        "mask": np.tril(np.ones((4, 4), bool)),
        "row": np.array([3, 1]),
        "start": np.array(0),
        "end": np.array(2),
        "one": np.array(1),
    }
    scope = f"/{part}/" if part else ""
    nodes = [
        helper.make_node("MatMul", ["x", field], [a], name=f"{scope}MatMul"),
        helper.make_node("IsNaN", [a], [b]),
        helper.make_node("Where", [b, "zero", a], [c]),
        helper.make_node("Range", ["start", "end", "one"], [d]),
        helper.make_node("Gather", [c, d], ["rows"]),
        helper.make_node("GreaterOrEqual", ["rows", "zero"], ["above"]),
        helper.make_node("Where", ["above", "rows", "low"], ["cut"]),
        helper.make_node("Softmax", ["cut"], [y]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    outputs = [helper.make_tensor_value_info(y, TensorProto.FLOAT, [2, 4])]
    constants = [numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 21)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), held[field]


def by_hand(weight):
    rows = X @ weight
    cut = np.where(rows >= 0, rows, -np.inf)
    with np.errstate(all="ignore"):
        powers = np.exp(cut - cut.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


def forward(module):
    with np.errstate(all="ignore"):
        return np.asarray(module.forward(Tensor.from_numpy(X, Numpy())))


def right(names, **how):
    file, weight = named(names, **how)
    module = load(file, Numpy())
    np.testing.assert_allclose(forward(module), by_hand(weight), atol=1e-6)
    return module


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(HOSTILE), min_size=5, max_size=5, unique=True),
    st.sampled_from(["", "part", "float", "list"]),
)
def test_no_name_of_a_value_hides_what_the_source_uses(names, part):
    right(names, part=part)


@pytest.mark.parametrize("name", ["float", "range", "list", "object", "tuple"])
def test_a_value_that_is_called_as_a_builtin_gets_a_number(name):
    module = right([name, "b", "c", "d", "y"])
    assert f"{name}_2 = " in source_of(module)
    assert 'float("-inf")' in source_of(module)


@pytest.mark.parametrize("name", [*LOWER, "list", "self", "features", "ops"])
def test_no_name_of_a_weight_hides_what_the_source_uses(name):
    right(["a", "b", "c", "d", "y"], field=f"{name}.weight")
    right(["a", "b", "c", "d", "y"], field=name)


def two_parts(first):
    names = [f"{first}.0.weight", f"{first}.1.weight", "fc.weight"]
    held = {n: RNG.standard_normal((4, 4)).astype(np.float32) for n in names}
    at = [f"/{first}/{first}.0/MatMul", f"/{first}/{first}.1/MatMul", "/fc/MatMul"]
    values = ["x", "a", "b", "y"]
    nodes = [
        helper.make_node("Gemm", [values[i], names[i]], [values[i + 1]], at[i])
        for i in range(3)
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])]
    constants = [numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def test_a_part_may_be_called_features_as_in_torchvision():
    module = load(two_parts("features"), Numpy())
    paths = [path for path, _ in module.named_params()]
    assert paths == ["features.0.weight", "features.1.weight", "fc.weight"]
    from burnbook.module import Module

    x = Tensor.from_numpy(X, Numpy())
    found = Module.features(module, x, at="features.0")
    assert np.shape(found["features.0"]) == (2, 4)


def test_a_part_that_would_hide_a_method_gets_a_number():
    module = load(two_parts("train"), Numpy())
    paths = [path for path, _ in module.named_params()]
    assert paths == ["train_2.0.weight", "train_2.1.weight", "fc.weight"]
    assert callable(module.train)


def test_no_class_hides_a_name_that_the_loaders_import():
    part, recorder = "named_mpk_file_recorder", "NamedMpkFileRecorder"
    nodes = [
        helper.make_node("Gemm", ["x", f"{part}.a.weight"], ["h"], f"/{part}/a/Gemm"),
        helper.make_node("Relu", ["h"], ["r"], f"/{part}/Relu"),
        helper.make_node("Gemm", ["r", f"{part}.b.weight"], ["k"], f"/{part}/b/Gemm"),
        helper.make_node("Gemm", ["k", "fc.weight"], ["y"], "/fc/Gemm"),
    ]
    names = [f"{part}.a.weight", f"{part}.b.weight", "fc.weight"]
    constants = [numpy_helper.from_array(np.eye(4, dtype=np.float32), n) for n in names]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    plain, title = known(helper.make_model(graph, opset_imports=opsets, ir_version=9))
    loading = Loading(recorder, "FullPrecisionSettings", "weights.mpk")
    text = write(plain, title, loading).text
    assert f"class {recorder}2(" in text
    assert f"class {recorder}(" not in text


class Counted(dict):
    """Words that count how often they were looked for."""

    asked = 0

    def __contains__(self, word):
        self.asked += 1
        return super().__contains__(word)


def test_names_that_become_the_same_word_are_numbered_in_one_step_each():
    taken = Counted(word=1)
    holder = SimpleNamespace(taken=taken)
    made = [_Class.unused(holder, "word") for _ in range(500)]
    assert made == [f"word_{n}" for n in range(2, 502)]
    assert taken.asked <= 3 * len(made)


def test_a_number_that_a_name_has_already_is_passed_over():
    holder = SimpleNamespace(taken={})
    words = ["a", "a_2", "a", "a", "a_2"]
    made = [_Class.unused(holder, word) for word in words]
    assert made == ["a", "a_2", "a_3", "a_4", "a_2_2"]
