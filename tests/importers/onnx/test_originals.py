"""Weights go back under the names that the file has for them."""

import io
import warnings

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend.numpy import Numpy
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.exporters import to_pytorch
from burnbook.importers import SafetensorsStore
from burnbook.importers.onnx import load, original_names
from burnbook.importers.onnx.originals import is_made_up
from burnbook.nn import LinearConfig

RNG = np.random.default_rng(0)


def two_layers():
    """An nn.Sequential with a gap, a table of its own, and a mask."""
    held = {
        "pos.weight": RNG.standard_normal((4, 4)).astype(np.float32),
        "net.mlp.0.weight": RNG.standard_normal((5, 4)).astype(np.float32),
        "net.mlp.0.bias": RNG.standard_normal(5).astype(np.float32),
        "onnx::MatMul_7": RNG.standard_normal((5, 3)).astype(np.float32),
        "net.mlp.2.bias": RNG.standard_normal(3).astype(np.float32),
        "mask": np.tril(np.ones((8, 3), bool)),
        "zero": np.float32(0),
    }

    def node(op, given, made, name, **how):
        return helper.make_node(op, given.split(), [made], name, **how)

    nodes = [
        node("Add", "x pos.weight", "a", "/Add"),
        node(
            "Gemm",
            "a net.mlp.0.weight net.mlp.0.bias",
            "b",
            "/net/mlp/mlp.0/Gemm",
            transB=1,
        ),
        node("Relu", "b", "c", "/net/mlp/mlp.1/Relu"),
        node("MatMul", "c onnx::MatMul_7", "d", "/net/mlp/mlp.2/MatMul"),
        node("Add", "d net.mlp.2.bias", "e", "/net/mlp/mlp.2/Add"),
        node("Concat", "e e", "f", "/Concat", axis=0),
        node("Where", "mask f zero", "y", "/Where"),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4, 4])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8, 3])]
    constants = [numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9), held


def written(path):
    store = SafetensorsStore.from_file(path)
    return {n: store.get_snapshot(n).load().to_numpy() for n in tuple(store.keys())}


def test_weights_are_written_under_the_names_of_the_file(tmp_path):
    file, held = two_layers()
    module = load(file, Numpy())
    names = original_names(module)
    found = written(to_pytorch(module, tmp_path / "w.safetensors", names=names))
    weights = [n for n in held if n not in ("mask", "zero", "onnx::MatMul_7")]
    assert set(found) == {*weights, "net.mlp.2.weight"}
    for name in weights:
        np.testing.assert_array_equal(found[name], held[name])
    np.testing.assert_array_equal(found["net.mlp.2.weight"], held["onnx::MatMul_7"].T)


def test_without_names_they_are_those_of_the_module(tmp_path):
    module = load(two_layers()[0], Numpy())
    found = written(to_pytorch(module, tmp_path / "w.safetensors"))
    assert {"pos_weight", "mask"} <= set(found)


def test_a_file_tells_the_names_that_a_module_of_it_tells(tmp_path):
    file, _ = two_layers()
    onnx.save(file, tmp_path / "m.onnx")
    names = original_names(load(file, Numpy()))
    assert original_names(tmp_path / "m.onnx") == names
    assert names["pos_weight"] == "pos.weight"


def test_a_module_of_no_file_is_told_to_name_one():
    with pytest.raises(ArgumentError, match="does not know of which file"):
        original_names(LinearConfig(2, 2).init(Numpy()))


def test_two_parameters_of_one_name_are_refused(tmp_path):
    layer = LinearConfig(2, 2).init(Numpy())
    names = {"weight": "same", "bias": "same"}
    with pytest.raises(RecordError, match="two parameters are called same"):
        to_pytorch(layer, tmp_path / "w.pt", names=names)
    assert not (tmp_path / "w.pt").exists()


@pytest.mark.parametrize("dynamo", [False, True], ids=["torchscript", "dynamo"])
def test_a_tuned_gpt_goes_back_into_the_class_that_it_came_from(dynamo, tmp_path):
    torch = pytest.importorskip("torch")
    if dynamo:
        pytest.importorskip("onnxscript")

    class Block(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.ln = torch.nn.LayerNorm(8)
            self.mix = torch.nn.Linear(8, 8)
            self.mlp = torch.nn.Sequential(
                torch.nn.Linear(8, 16), torch.nn.GELU(), torch.nn.Linear(16, 8)
            )
            mask = torch.tril(torch.ones(5, 5)).bool()
            self.register_buffer("mask", mask, persistent=False)

        def forward(self, x):
            held = self.ln(x)
            scores = held @ self.mix(held).transpose(1, 2)
            scores = scores.masked_fill(~self.mask, float("-inf")).softmax(-1)
            return x + self.mlp(scores @ held)

    class Gpt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = torch.nn.Embedding(11, 8)
            self.wpe = torch.nn.Embedding(5, 8)
            self.h = torch.nn.ModuleList([Block() for _ in range(2)])
            self.lm_head = torch.nn.Linear(8, 11, bias=False)
            self.lm_head.weight = self.wte.weight

        def forward(self, ids):
            x = self.wte(ids) + self.wpe.weight
            for block in self.h:
                x = block(x)
            return self.lm_head(x)

    torch.manual_seed(0)
    theirs, ids = Gpt().eval(), torch.randint(0, 11, (2, 5))
    data = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if dynamo:
            torch.onnx.export(theirs, (ids,), data, dynamo=True, verbose=False)
        else:
            torch.onnx.export(theirs, (ids,), data, dynamo=False, opset_version=17)
    module = load(data.getvalue(), Numpy())
    path = to_pytorch(module, tmp_path / "gpt.pt", names=original_names(module))
    again = Gpt().eval()
    again.load_state_dict(torch.load(path, weights_only=True), strict=True)
    with torch.no_grad():
        torch.testing.assert_close(again(ids), theirs(ids))


def chain(tables, biases=()):
    """x @ a @ b …, with biases after the last, of which the file names each."""
    nodes, last = [], "x"
    for op, names in (("MatMul", tables), ("Add", biases)):
        for name in names:
            nodes.append(helper.make_node(op, [last, name], [f"after {name}"]))
            last = f"after {name}"
    held = {**tables, **dict(biases)}
    wide = next(iter(tables.values())).shape[0]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, wide])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, None)
    constants = [numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], constants)
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def table(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_parameters_that_no_layer_has_there_keep_their_names_and_their_layout(
    tmp_path,
):
    names = ("ps.0", "ps.1", "const_w", "tmp")
    held = {**{n: table(4, 4) for n in names}, "text_projection": table(4, 3)}
    module = load(chain(held), Numpy())
    given = original_names(module)
    found = written(to_pytorch(module, tmp_path / "w.safetensors", names=given))
    assert set(found) == set(held)
    for name, array in held.items():
        np.testing.assert_array_equal(found[name], array)


def test_what_the_file_does_not_name_has_a_name_that_nothing_else_has(tmp_path):
    tables = {"onnx::MatMul_7": table(4, 4), "val_3": table(4, 4)}
    module = load(chain({"linear": table(4, 4), **tables}), Numpy())
    names = original_names(module)
    assert len(set(names.values())) == len(names)
    found = written(to_pytorch(module, tmp_path / "w.safetensors", names=names))
    assert len(found) == 3


def test_a_bias_of_its_own_name_stands_beside_the_weight_of_a_layer(tmp_path):
    turned = table(4, 3)
    module = load(chain({"onnx::MatMul_1": turned}, {"q_bias": table(3)}), Numpy())
    names = original_names(module)
    found = written(to_pytorch(module, tmp_path / "w.safetensors", names=names))
    (layer,) = (name for name in found if name != "q_bias")
    assert layer.endswith(".weight")
    np.testing.assert_array_equal(found[layer], turned.T)


def test_a_parameter_that_lies_otherwise_here_is_not_called_as_in_the_file():
    node = helper.make_node("Gemm", ["x", "w", "b"], ["y"], transB=1)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 4])
    held = {"w": table(4, 4), "b": table(4)}
    constants = [numpy_helper.from_array(v, k) for k, v in held.items()]
    graph = helper.make_graph([node], "g", [x], [y], constants)
    opsets = [helper.make_opsetid("", 17)]
    file = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    names = original_names(load(file, Numpy()))
    assert "w" not in names.values()
    assert "b" in names.values()


@pytest.mark.parametrize(
    ("name", "is_numbered"),
    [
        ("onnx::MatMul_7", True),
        ("val_12", True),
        ("/block/Constant_1_output_0", True),
        ("17", True),
        ("const_w", False),
        ("constellation_2", False),
        ("prompts.0", False),
        ("h.0.scale", False),
        ("const" + "1" * 8000 + "-", False),
    ],
)
def test_names_that_an_exporter_has_numbered_are_told_from_those_of_parameters(
    name, is_numbered
):
    assert is_made_up(name) == is_numbered
