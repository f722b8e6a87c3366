"""`compare`: every value of an imported graph beside the original's."""

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.cli import main
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.importers.onnx import compare
from tests.golden.shared import SHARED


def graph(weight, op="Relu"):
    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, 3])

    nodes = [
        helper.make_node("MatMul", ["x", "fc.weight"], ["h"]),
        helper.make_node(op, ["h"], ["r"]),
        helper.make_node("Shape", ["r"], ["size"]),
        helper.make_node("Softmax", ["r"], ["y"]),
    ]
    held = [numpy_helper.from_array(weight, "fc.weight")]
    made = helper.make_graph(nodes, "g", [value("x")], [value("y")], held)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])


@pytest.fixture
def model():
    rng = np.random.default_rng(0)
    return graph(rng.normal(size=(3, 3)).astype(np.float32))


@pytest.fixture
def x():
    return np.float32([[1.0, -2.0, 0.5]])


def beside(folder, inputs, outputs):
    samples = folder / "test_data_set_0"
    samples.mkdir()
    for kind, arrays in {"input": inputs, "output": outputs}.items():
        for i, array in enumerate(arrays):
            tensor = numpy_helper.from_array(array)
            path = samples / f"{kind}_{i}.pb"
            path.write_bytes(tensor.SerializeToString())


def test_it_has_a_row_for_each_value_in_the_order_of_the_graph(model, x):
    report = compare(model, [x])
    assert [pair.name for pair in report.pairs] == ["h", "r", "size", "y"]
    assert report.what == "Value"
    assert report.first_difference is None


def test_it_takes_the_samples_beside_the_file(tmp_path, model, x):
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    beside(tmp_path, [x], [np.float32([[1.0, 0.0, 0.0]])])
    report = compare(path)
    assert report.first_difference == "y", "the sample output is another one"
    assert report["h"].within is not None


def test_the_reference_evaluator_stands_in_for_onnx_runtime(model, x, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    report = compare(model, [x])
    assert [pair.name for pair in report.pairs] == ["h", "r", "size", "y"]
    assert report.first_difference is None


def test_a_weight_that_is_read_wrong_is_found_where_it_is_used(model, x, monkeypatch):
    from burnbook.importers.onnx import closeness

    true = closeness._original
    other = graph(np.eye(3, dtype=np.float32))
    monkeypatch.setattr(closeness, "_original", lambda proto, given: true(other, given))
    assert compare(model, [x]).first_difference == "h"


def test_without_inputs_and_samples_it_says_what_to_give(tmp_path, model):
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ArgumentError, match="no sample inputs") as caught:
        compare(path)
    assert "compare(model, [x])" in str(caught.value)
    with pytest.raises(ArgumentError, match="without a file"):
        compare(model)
    with pytest.raises(ArgumentError, match="takes 1 inputs, 2 were given"):
        compare(model, [np.zeros((1, 3), np.float32)] * 2)


def test_a_damaged_sample_is_named(tmp_path, model, x):
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    beside(tmp_path, [x], [])
    (tmp_path / "test_data_set_0" / "input_0.pb").write_bytes(b"\xff" * 40)
    with pytest.raises(RecordError, match=r"input_0\.pb holds no tensor"):
        compare(path)


def test_the_command_compares(tmp_path, model, x, capsys):
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    beside(tmp_path, [x], [])
    assert main(["import-onnx", str(path), "--compare"]) == 0
    assert "All 4 are close." in capsys.readouterr().out


def test_every_layer_of_a_real_network_is_close():
    path = SHARED / "golden" / "onnx" / "mnist.onnx"
    if not path.is_file():
        pytest.skip("the golden files are not beside the project")
    image = np.random.default_rng(0).random((1, 1, 28, 28), np.float32)
    report = compare(path, [image])
    assert len(report.pairs) == 13
    assert report.first_difference is None
