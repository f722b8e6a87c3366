"""Networks as ONNX files: beside ONNX Runtime, imported again, quantized, refused."""

import sys

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
runtime = pytest.importorskip("onnxruntime")

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.cli import main
from burnbook.core.errors import ArgumentError, GraphError
from burnbook.examples.guide.model import ModelConfig
from burnbook.exporters.onnx import export, onnx_model, to_onnx, unsupported
from burnbook.importers.onnx import load
from burnbook.module import Module, Quantizer
from burnbook.program import capture
from burnbook.record import CompactRecorder, FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor import Distribution, Tensor, activation
from burnbook.tensor.quantization import (
    MinMaxCalibration,
    QuantizationScheme,
)
from tests.support.onnx_sessions import session
from tests.support.written_models import MODELS, numbers

DEVICE = Numpy()


def outputs(model, *tensors, **asked):
    started = session(model, **asked)
    feeds = {
        one.name: np.asarray(x)
        for one, x in zip(started.get_inputs(), tensors, strict=True)
    }
    return started.run(None, feeds)


@pytest.mark.parametrize("name", MODELS)
def test_a_network_is_the_same_in_onnx_runtime_for_any_batch(name):
    make, example = MODELS[name]
    model = make().valid()
    written = onnx_model(model, example(2))
    onnx.checker.check_model(written, full_check=True)
    for n in (1, 2, 5):
        x = example(n)
        (found,) = outputs(written, x)
        wanted = np.asarray(model.forward(x))
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


@pytest.mark.parametrize("name", MODELS)
def test_imported_again_it_has_the_same_weights(name):
    make, example = MODELS[name]
    model, x = make().valid(), example(2)
    again = load(onnx_model(model, x), DEVICE)
    np.testing.assert_allclose(
        np.asarray(again.forward(x)), np.asarray(model.forward(x)), 1e-5, 1e-5
    )
    if name == "lstm":
        return  # its gates are one array there
    weights = sorted(_arrays(model), key=_order)
    found = sorted(_arrays(again), key=_order)
    assert [a.shape for a in found] == [a.shape for a in weights]
    for one, other in zip(found, weights, strict=True):
        np.testing.assert_array_equal(one, other)


def _arrays(model):
    return [np.asarray(param.val()) for _, param in model.named_params()]


def _order(array):
    return array.shape, array.ravel()[:4].tolist()


def test_a_record_goes_out_and_comes_back(tmp_path):
    model, x = ModelConfig(10, 16).init(DEVICE), numbers(2, 28, 28)
    path = to_onnx(model, tmp_path / "guide.onnx", x)
    again = load(path, DEVICE)
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    again.save_file(tmp_path / "again", recorder)
    back = ModelConfig(10, 16).init(DEVICE).load_file(tmp_path / "again", recorder)
    np.testing.assert_array_equal(
        np.asarray(back.valid().forward(x)), np.asarray(model.valid().forward(x))
    )


def test_names_metadata_and_a_batch_that_may_have_any_size_are_kept():
    model = ModelConfig(10, 16).init(DEVICE)
    written = onnx_model(
        model,
        numbers(2, 28, 28),
        input_names=["picture"],
        output_names=["scores"],
        metadata={"author": "me"},
        opset=17,
    )
    graph = written.graph
    assert [value.name for value in graph.input] == ["picture"]
    assert [value.name for value in graph.output] == ["scores"]
    dims = graph.input[0].type.tensor_type.shape.dim
    assert [dim.dim_param or dim.dim_value for dim in dims] == ["batch", 28, 28]
    assert {prop.key: prop.value for prop in written.metadata_props} == {"author": "me"}
    assert written.opset_import[0].version == 17
    held = {one.name for one in graph.initializer}
    assert {path for path, _ in model.named_params()} <= held
    assert "/conv1/Conv" in [node.name for node in graph.node]


@pytest.mark.parametrize("opset", [17, 18, 20, 21, 23])
def test_older_and_newer_opsets_give_the_same(opset):
    def run(x):
        y = activation.gelu(x).topk(3, 1) + x.sum_dim(1)
        return activation.silu(y).max_dim(1)

    x = numbers(4, 6)
    written = onnx_model(run, x, opset=opset)
    onnx.checker.check_model(written, full_check=True)
    np.testing.assert_allclose(outputs(written, x)[0], np.asarray(run(x)), 1e-5, 1e-6)


@pytest.mark.parametrize("scheme", ["symmetric", "affine"])
def test_quantized_weights_stay_codes(scheme):
    model, x = ModelConfig(10, 32).init(DEVICE).valid(), numbers(3, 28, 28)
    kinds = {
        "symmetric": QuantizationScheme.PerTensorSymmetric(),
        "affine": QuantizationScheme.PerTensorAffine(),
    }
    small = model.quantize_weights(Quantizer(MinMaxCalibration(), kinds[scheme]))
    written = onnx_model(small, x)
    onnx.checker.check_model(written, full_check=True)
    plain = onnx_model(model, x)
    sizes = [len(m.SerializeToString()) for m in (written, plain)]
    assert sizes[0] < sizes[1] / 3
    names = [node.op_type for node in written.graph.node]
    assert names.count("DequantizeLinear") == 8
    # Optimized, ONNX Runtime multiplies with rounded activations as well.
    (found,) = outputs(written, x, plain=True)
    np.testing.assert_allclose(found, np.asarray(small.forward(x)), 1e-5, 1e-6)
    again = load(written, DEVICE)
    np.testing.assert_allclose(
        np.asarray(again.forward(x)), np.asarray(small.forward(x)), 1e-4, 1e-5
    )


def test_outputs_may_be_inputs_constants_and_twice_the_same():
    weight = numbers(1, 3)

    def run(x, y):
        total = x + y
        return total, x, weight, total

    pair = numbers(2, 3), numbers(2, 3, seed=1)
    written = onnx_model(run, *pair)
    onnx.checker.check_model(written, full_check=True)
    wanted = [np.asarray(t) for t in run(*pair)]
    for one, other in zip(outputs(written, *pair), wanted, strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_model_on_autodiff_is_written_as_it_infers(tmp_path):
    model = ModelConfig(10, 16).init(Autodiff(Numpy()))
    x = numbers(2, 28, 28)
    path = to_onnx(model, tmp_path / "m.onnx", x)
    (found,) = outputs(onnx.load(path), x)
    wanted = np.asarray(model.valid().forward(x))
    np.testing.assert_allclose(found, wanted, 1e-5, 1e-5)


def test_all_that_has_no_form_is_said_at_once():
    def run(x):
        return x.cummax(1) + x.cummin(1)

    assert [row[0] for row in unsupported(run, numbers(2, 3))] == ["cummax", "cummin"]
    with pytest.raises(ArgumentError, match="2 operations have no form") as caught:
        onnx_model(run, numbers(2, 3))
    assert "ONNX has no such operator" in str(caught.value)


def test_training_is_refused_by_name(tmp_path):
    def run(x):
        return x + Tensor.random(x.dims(), Distribution.Default, DEVICE)

    with pytest.raises((ArgumentError, GraphError)):
        to_onnx(run, tmp_path / "m.onnx", numbers(2, 3))
    program = capture(run, numbers(2, 3), keys=True)
    with pytest.raises(ArgumentError, match="uniform") as caught:
        to_onnx(program, tmp_path / "m.onnx")
    assert "only training needs" in str(caught.value)
    assert not (tmp_path / "m.onnx").exists()


def test_wrong_numbers_of_names_and_opsets_are_refused():
    model, x = nn.LinearConfig(3, 2).init(DEVICE), numbers(1, 3)
    with pytest.raises(ArgumentError, match="opset 9 is not one of 17 to"):
        onnx_model(model, x, opset=9)
    with pytest.raises(ArgumentError, match="2 names came"):
        onnx_model(model, x, input_names=["a", "b"])
    with pytest.raises(ArgumentError, match="2 names came"):
        onnx_model(model, x, output_names=["a", "b"])
    with pytest.raises(ArgumentError, match="takes no examples"):
        onnx_model(capture(model, x), x)


def test_inputs_may_be_called_as_other_inputs_and_results_are():
    x, y = numbers(2, 3), numbers(2, 3, seed=1)
    written = onnx_model(lambda x, y: x - y, x, y, input_names=["y", "x"])
    assert [value.name for value in written.graph.input] == ["y", "x"]
    onnx.checker.check_model(written, full_check=True)
    found = session(written).run(None, {"y": np.asarray(x), "x": np.asarray(y)})
    np.testing.assert_array_equal(found[0], np.asarray(x - y))

    def run(x):
        return activation.relu(x) + 1.0

    for names in (["relu"], ["add"]):  # of a step inside, and of the output
        written = onnx_model(run, x, input_names=names)
        assert [value.name for value in written.graph.input] == names
        onnx.checker.check_model(written, full_check=True)
        (found,) = session(written).run(None, {names[0]: np.asarray(x)})
        np.testing.assert_array_equal(found, np.asarray(run(x)))


def test_inputs_and_outputs_may_be_called_as_constants_are():
    known = numbers(1, 3)

    def run(x):
        return x + known

    x = numbers(2, 3, seed=1)
    (constant,) = (value.name for value in capture(run, x).constants)
    written = onnx_model(run, x, input_names=[constant], output_names=["x"])
    onnx.checker.check_model(written, full_check=True)
    started = session(written)
    assert [one.name for one in started.get_outputs()] == ["x"]
    (found,) = started.run(["x"], {constant: np.asarray(x)})
    np.testing.assert_array_equal(found, np.asarray(run(x)))


def test_an_output_that_stands_under_the_key_of_a_weight_leaves_it_its_name():
    layer, x = nn.LinearConfig(3, 2).init(DEVICE), numbers(2, 3)

    class Net(Module):
        weight: nn.Linear

        def forward(self, x):
            return {"weight": self.weight.forward(x)}

    written = onnx_model(Net(weight=layer), x)
    held = {one.name for one in written.graph.initializer}
    assert {"weight.weight", "weight.bias"} <= held
    bare = onnx_model(lambda x: {"weight": layer.forward(x)}, x)
    onnx.checker.check_model(bare, full_check=True)


@pytest.mark.parametrize(
    ("asked", "what", "cure"),
    [
        ({"input_names": ["a", "a"]}, "'a' is given to two inputs", "input_names=[…]"),
        ({"output_names": ["a", "a"]}, "'a' is given to two outputs", "output_names"),
        ({"input_names": "image"}, "input_names is a text", "input_names=['image']"),
        ({"output_names": "out"}, "output_names is a text", "output_names=['out']"),
        ({"input_names": ["a", 3]}, "3 is no name of an input", "input_names=[…]"),
        ({"input_names": ["a", ""]}, "'' is no name of an input", "input_names=[…]"),
        (
            {"input_names": ["a", "b"], "output_names": ["a", "c"]},
            "'a', given to an output, is the name of an input",
            "another name",
        ),
        ({"metadata": {"epoch": 3}}, "'epoch': 3 is no text", "{'epoch': '3'}"),
        ({"metadata": [("epoch", "3")]}, "metadata is list", "metadata={"),
        ({"opset": "18"}, "opset '18' is not one of 17 to", "opset=18"),
        ({"opset": 18.0}, "opset 18.0 is not one of 17 to", "opset=18"),
    ],
)
def test_what_cannot_be_a_name_a_text_or_an_opset_is_refused(asked, what, cure):
    pair = numbers(2, 3), numbers(2, 3, seed=1)
    with pytest.raises(ArgumentError, match="to_onnx") as caught:
        onnx_model(lambda x, y: (x + y, x), *pair, **asked)
    assert what in caught.value.what
    assert cure in caught.value.cure


def test_a_name_of_a_weight_is_refused():
    model, x = nn.LinearConfig(3, 2).init(DEVICE), numbers(1, 3)
    for asked in ({"input_names": ["bias"]}, {"output_names": ["bias"]}):
        with pytest.raises(ArgumentError, match=r"'bias'.* is the name of a weight"):
            onnx_model(model, x, **asked)


def test_what_is_unsupported_is_asked_with_the_same_care(monkeypatch):
    x = numbers(1, 3)
    for opset in (9, "18"):
        with pytest.raises(ArgumentError, match=r"unsupported: opset .* is not one of"):
            unsupported(lambda x: x.exp(), x, opset=opset)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ArgumentError, match=r"unsupported: .* needs the package onnx"):
        unsupported(lambda x: x.exp(), x)


def test_what_is_used_is_gathered_once_for_all_constants(monkeypatch):
    gathered = []
    once = export.Export._used
    monkeypatch.setattr(
        export.Export, "_used", lambda *given: gathered.append(1) or once(*given)
    )
    terms = [numbers(1, 3, seed=n) for n in range(20)]
    written = onnx_model(lambda x: sum(terms, x), numbers(2, 3))
    assert len(written.graph.initializer) == 20
    assert len(gathered) == 1


def test_the_command_writes_a_file(tmp_path, capsys, monkeypatch):
    (tmp_path / "net.py").write_text(
        "from burnbook.backend import Numpy\n"
        "from burnbook.examples.guide.model import ModelConfig\n"
        "def make():\n    return ModelConfig(10, 16).init(Numpy())\n"
    )
    monkeypatch.chdir(tmp_path)
    model = ModelConfig(10, 16).init(DEVICE)
    model.save_file("model", CompactRecorder())
    given = ["export-onnx", "model.mpk", "model.onnx", "--module", "net:make"]
    assert main([*given, "--input", "2x28x28"]) == 0
    assert "wrote model.onnx" in capsys.readouterr().out
    x = numbers(3, 28, 28)
    (found,) = outputs(onnx.load("model.onnx"), x)
    wanted = np.asarray(model.valid().forward(x))
    np.testing.assert_allclose(found, wanted, 2e-2, 2e-3)
    with pytest.raises(SystemExit):
        main([*given, "--input", "2 by 28"])
    assert "1x16:int" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["a.pt", "a.PTH", "a.safetensors", "a.mpk"])
def test_a_name_of_another_format_is_refused_before_anything_is_written(name, tmp_path):
    model = nn.LinearConfig(3, 2).init(Numpy())
    with pytest.raises(ArgumentError, match="this writes ONNX") as caught:
        to_onnx(model, tmp_path / name, Tensor.ones([1, 3], Numpy()))
    assert '"a.onnx"' in caught.value.cure
    assert not list(tmp_path.iterdir())


def test_whole_numbers_of_floats_and_one_hot_rows_are_written(tmp_path):
    def function(x):
        return x.round().int(), x.argmax(1).squeeze_dim(1).one_hot(3)

    x = numbers(4, 3)
    to_onnx(function, tmp_path / "m.onnx", x)
    found = runtime.InferenceSession(tmp_path / "m.onnx").run(
        None, {"x": np.asarray(x)}
    )
    for one, other in zip(found, function(x), strict=True):
        np.testing.assert_array_equal(one, np.asarray(other))


@pytest.mark.parametrize("name", ["m.js", "m.mjs", "m.py", "m.pt", "m.mpk"])
def test_a_file_named_like_another_format_is_not_written(name, tmp_path):
    with pytest.raises(ArgumentError, match=r"is named like .*, and this writes ONNX"):
        to_onnx(lambda x: x.exp(), tmp_path / name, numbers(4, 3))
    assert not list(tmp_path.iterdir())


def test_a_compiled_program_is_refused(tmp_path):
    compiled = capture(lambda x: x.exp(), numbers(4, 3)).compile()
    with pytest.raises(ArgumentError, match="a compiled program came") as error:
        to_onnx(compiled, tmp_path / "m.onnx")
    assert "to_onnx(program, …)" in str(error.value)


def test_outputs_are_called_as_the_keys_that_they_stand_under(tmp_path):
    def function(x):
        return {"exp": x.tanh(), "tanh": x.exp(), "logits": [x.abs(), x], "2x": x * 2.0}

    x = numbers(4, 3)
    to_onnx(function, tmp_path / "m.onnx", x)
    ran = runtime.InferenceSession(tmp_path / "m.onnx")
    names = [one.name for one in ran.get_outputs()]
    assert names == ["exp", "tanh", "logits.0", "logits.1", "mul"]
    exp, tanh, size, same, twice = ran.run(None, {"x": np.asarray(x)})
    np.testing.assert_allclose(exp, np.tanh(np.asarray(x)), 1e-5)
    np.testing.assert_allclose(tanh, np.exp(np.asarray(x)), 1e-5)
    np.testing.assert_array_equal(size, np.abs(np.asarray(x)))
    np.testing.assert_array_equal(same, np.asarray(x))
    np.testing.assert_array_equal(twice, 2 * np.asarray(x))
