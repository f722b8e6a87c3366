"""Operators that a reader adds: a function of tensors, for load, check, import-onnx."""

import importlib.util
import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Numpy
from burnbook.cli import main
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.importers.onnx import add_operator, check, load, source_of
from burnbook.importers.onnx.operators import OPERATORS
from burnbook.program import capture
from burnbook.tensor import Tensor

node = helper.make_node
X = np.float32([[-1, 0.5, 2], [3, -4, 0]])


@pytest.fixture(autouse=True)
def only_here():
    """What a test adds is forgotten after it."""
    before = dict(OPERATORS)
    yield
    OPERATORS.clear()
    OPERATORS.update(before)


def model(*nodes, outputs=("y",), held=None):
    def value(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    made = [onnx.ValueInfoProto(name=name) for name in outputs]
    held = [numpy_helper.from_array(a, n) for n, a in (held or {}).items()]
    graph = helper.make_graph(nodes, "g", [value("x", ["n", 3])], made, held)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 3)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def swoosh(x, *, slope=1.0):
    return x * (x * slope).sigmoid()


ONE = node("Swoosh", ["x"], ["y"], domain="com.example", slope=2.0)
WANTED = X / (1 + np.exp(-2 * X))


def test_what_is_not_added_is_refused_and_what_is_runs():
    file = model(ONE)
    assert not check(file).is_supported()
    with pytest.raises(ArgumentError, match="1 operator is not known"):
        load(file)
    assert add_operator("com.example", "Swoosh")(swoosh) is swoosh
    assert check(file).is_supported()
    module = load(file)
    assert "ops.added('com.example', 'Swoosh')(x, slope=2.0)" in source_of(module)
    found = module.forward(Tensor.from_data(X, Numpy()))
    np.testing.assert_allclose(found, WANTED, rtol=1e-5)


def test_gradients_flow_and_captures_see_through_it():
    add_operator("com.example", "Swoosh")(swoosh)
    device = Numpy().autodiff()
    module = load(model(ONE), device)
    x = Tensor.from_data(X, device).require_grad()
    grads = module.forward(x).sum().backward()
    gate = 1 / (1 + np.exp(-2 * X))
    wanted = gate + 2 * X * gate * (1 - gate)
    np.testing.assert_allclose(x.grad(grads), wanted, rtol=1e-4, atol=1e-5)
    plain = Tensor.from_data(X, Numpy())
    program = capture(load(model(ONE)), plain)
    np.testing.assert_allclose(program(plain), WANTED, rtol=1e-5)


def test_inputs_come_as_tensors_and_results_of_all_kinds_go_on():
    seen = []

    @add_operator("com.example", "Parts")
    def parts(x, places, weight, missing=None):
        seen.append((x, places, weight, missing))
        chosen = x.select(1, places)
        return chosen * weight, chosen.argmax(1), chosen.greater_elem(0.0)

    nodes = [
        node("Parts", ["x", "places", "w"], ["a", "b", "c"], domain="com.example"),
        node("Where", ["c", "a", "zero"], ["y"]),
    ]
    held = {"places": np.int64([2, 0]), "w": np.float32([[2, 3]])}
    held["zero"] = np.float32(0)
    module = load(model(*nodes, outputs=["y", "b"], held=held))
    y, best = module.forward(Tensor.from_data(X, Numpy()))
    chosen = X[:, [2, 0]]
    np.testing.assert_array_equal(y, np.where(chosen > 0, chosen * [2, 3], 0))
    np.testing.assert_array_equal(best, chosen.argmax(1)[:, None])
    assert all(type(value) is Tensor for value in seen[-1][:3])
    assert seen[-1][3] is None


def test_an_attribute_that_the_function_does_not_take_is_refused():
    add_operator("com.example", "Swoosh")(lambda x: x)
    with pytest.raises(RecordError, match="has the attribute 'slope'"):
        load(model(ONE))


def test_too_few_results_are_named():
    add_operator("com.example", "Two")(lambda x: x)
    file = model(node("Two", ["x"], ["y", "z"], domain="com.example"), outputs=["z"])
    with pytest.raises(ArgumentError, match="gives 1 of 2 results"):
        load(file).forward(Tensor.from_data(X, Numpy()))


@pytest.mark.parametrize(("domain", "name"), [("", "Relu"), ("ai.onnx", "Relu")])
def test_operators_of_onnx_stay_as_they_are(domain, name):
    with pytest.raises(ArgumentError, match="domain of one's own"):
        add_operator(domain, name)
    with pytest.raises(ArgumentError, match="str is no function"):
        add_operator("com.example", name)("swoosh")


def test_the_command_imports_a_module_that_adds_operators(tmp_path, monkeypatch):
    text = """
from burnbook.importers.onnx import add_operator

@add_operator("com.example", "Swoosh")
def swoosh(x, *, slope=1.0):
    return x * (x * slope).sigmoid()
"""
    (tmp_path / "own_operators.py").write_text(text)
    path = tmp_path / "own.onnx"
    path.write_bytes(model(ONE).SerializeToString())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    assert main(["import-onnx", str(path), "--check"]) == 1
    words = ["import-onnx", str(path), "--operators", "own_operators"]
    assert main([*words, "-o", str(tmp_path / "made")]) == 0
    written = tmp_path / "made" / "own.py"
    assert "import own_operators  # adds operators" in written.read_text()
    del OPERATORS["com.example", "Swoosh"]
    sys.modules.pop("own_operators")
    spec = importlib.util.spec_from_file_location("own", written)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    found = made.Model.default().forward(Tensor.from_data(X, Numpy()))
    np.testing.assert_allclose(found, WANTED, rtol=1e-5)
    sys.modules.pop("own_operators")
