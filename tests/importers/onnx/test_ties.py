"""Weights that a file has once and several layers use stay one parameter."""

import sys
from importlib import import_module

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="ONNX files are read with it")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Autodiff
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import Int
from burnbook.importers.onnx import ModelGen, check, load, source_of, ties
from burnbook.importers.onnx.load import record_of, source_for
from burnbook.optim import GradientsParams, SgdConfig
from burnbook.tensor import Tensor

RNG = np.random.default_rng(0)
W = RNG.standard_normal((4, 4)).astype(np.float32)
B = RNG.standard_normal(4).astype(np.float32)


def model(nodes, held, sizes=(2, 4), kind=TensorProto.FLOAT):
    inputs = [helper.make_tensor_value_info("x", kind, sizes)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    constants = [numpy_helper.from_array(v, name) for name, v in held.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


def gemm(given, weight, bias, made, name):
    return helper.make_node("Gemm", [given, weight, bias], [made], name=name, transB=1)


def two_layers(second="w", line="b", before=()):
    nodes = [*before, gemm("x", "w", "b", "h", "/one/Gemm")]
    nodes += [helper.make_node("Relu", ["h"], ["r"], name="/Relu")]
    nodes += [gemm("r", second, line, "y", "/two/Gemm")]
    return model(nodes, {"w": W, "b": B})


def of(module, given):
    return np.asarray(module.forward(Tensor.from_numpy(given, module.devices()[0])))


def by_hand(x):
    return np.maximum(x @ W.T + B, 0) @ W.T + B


def test_a_weight_that_two_layers_use_is_one_parameter():
    module = load(two_layers(), Numpy())
    assert (type(module.one).__name__, type(module.two).__name__) == ("Linear",) * 2
    assert module.one.weight is module.two.weight
    assert module.one.bias is module.two.bias
    assert module.num_params() == W.size + B.size
    x = RNG.standard_normal((2, 4)).astype(np.float32)
    np.testing.assert_allclose(of(module, x), by_hand(x), rtol=1e-5)


def test_it_stays_one_while_the_module_learns():
    device = Autodiff(Numpy())
    module = load(two_layers(), device)
    x = Tensor.from_numpy(RNG.standard_normal((2, 4)).astype(np.float32), device)
    loss = module.forward(x).square().sum()
    grads = GradientsParams.from_grads(loss.backward(), module)
    learned = SgdConfig().init().step(0.01, module, grads)
    assert learned.one.weight is learned.two.weight
    before, after = module.one.weight.val(), learned.one.weight.val()
    assert not np.allclose(np.asarray(before.inner()), np.asarray(after.inner()))


def test_a_record_of_it_is_read_back_as_one():
    module = load(two_layers(), Numpy())
    again = type(module).new(Numpy()).load_record(module.into_record())
    assert again.one.weight is again.two.weight
    x = np.ones((2, 4), np.float32)
    assert np.array_equal(of(again, x), of(module, x))


def test_generated_source_ties_it_as_well(tmp_path, monkeypatch):
    path = tmp_path / "tied.onnx"
    onnx.save(two_layers(), path)
    (file,) = ModelGen().input(path).out_dir(tmp_path / "made").run_from_cli()
    monkeypatch.syspath_prepend(str(file.parent))
    made = import_module("tied").Model.default()
    del sys.modules["tied"]
    assert made.one.weight is made.two.weight
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(of(made, x), by_hand(x), rtol=1e-5)


def test_lines_of_nodes_are_right_where_source_ties():
    source = source_for(two_layers())
    assert 'ops.tied(\n            model,\n            ("one.weight"' in source.text
    lines = source.text.splitlines()
    for value, wanted in (("r", "relu"), ("y", "self.two.forward")):
        ((first, last),) = source.lines[value]
        assert first == last
        assert wanted in lines[first - 1]


def test_an_identity_says_that_equal_weights_were_several():
    """So PyTorch's older exporter writes layers that are equal and not tied."""
    before = [
        helper.make_node("Identity", ["w"], ["two.weight"], name="/Identity"),
        helper.make_node("Identity", ["b"], ["two.bias"], name="/Identity_1"),
    ]
    module = load(two_layers("two.weight", "two.bias", before), Numpy())
    assert module.one.weight is not module.two.weight
    assert module.num_params() == 2 * (W.size + B.size)
    x = np.ones((2, 4), np.float32)
    np.testing.assert_allclose(of(module, x), by_hand(x), rtol=1e-5)


def test_equal_biases_alone_are_not_tied():
    """Exporters write equal ones once: layers begin with biases of zero."""
    nodes = [
        gemm("x", "w", "b", "h", "/one/Gemm"),
        gemm("h", "v", "b", "y", "/two/Gemm"),
    ]
    module = load(model(nodes, {"w": W, "v": W + 1, "b": B}), Numpy())
    assert module.one.bias is not module.two.bias
    assert "tied" not in source_of(module)


def test_a_table_that_is_another_transposed_is_named_in_the_source():
    """An embedding and the layer that gives its scores: layouts differ, so do they."""
    table = RNG.standard_normal((7, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["e"], name="/embed/Gather"),
        helper.make_node("MatMul", ["e", "scores"], ["y"], name="/head/MatMul"),
    ]
    held = {"table": table, "scores": np.ascontiguousarray(table.T)}
    module = load(model(nodes, held, (2, 3), TensorProto.INT64), Numpy())
    text = "# head.weight is embed.weight, transposed: trained on, they part."
    assert text in source_of(module)


def embedded(scores="onnx::MatMul_9"):
    """A table, and its transpose under a name that an exporter made up."""
    table = RNG.standard_normal((7, 4)).astype(np.float32)
    nodes = [
        helper.make_node("Gather", ["wte.weight", "x"], ["e"], name="/wte/Gather"),
        helper.make_node("MatMul", ["e", scores], ["y"], name="/lm_head/MatMul"),
    ]
    held = {scores: np.ascontiguousarray(table.T), "wte.weight": table}
    return model(nodes, held, (2, 3), TensorProto.INT64)


def test_a_report_says_that_a_transposed_table_is_trained_apart():
    report = check(embedded())
    assert report.turned == [("wte.weight", "lm_head.weight")]
    told = "lm_head.weight equals wte.weight transposed: they are trained apart"
    assert told in str(report)
    assert "try: in the source, ops.transpose of wte.weight" in str(report)


def test_a_report_keeps_names_that_say_something():
    report = check(embedded("scores.weight"))
    assert report.turned == [("scores.weight", "wte.weight")]


def test_a_report_of_other_weights_says_nothing_of_ties():
    report = check(two_layers())
    assert report.turned == []
    assert "apart" not in str(report)


def test_the_cure_that_the_report_names_keeps_the_weights_tied():
    """The source with the embedding's table, turned, in place of the second weight."""
    file = embedded()
    source = source_for(file)
    text = source.text.replace(
        "self.lm_head.forward(wte)",
        "ops.mat_mul(wte, ops.transpose(self.wte.weight.val()))",
    )
    assert text != source.text
    space = {}
    exec(text, space)  # our own source
    tied = space["Model"].new(Numpy()).load_record(record_of(source))
    x = np.array([[1, 2, 6], [3, 0, 2]])
    ids = Tensor[2, Int].from_numpy(x, Numpy())
    plain = load(file, Numpy())
    found, wanted = np.asarray(tied.forward(ids)), np.asarray(plain.forward(ids))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def test_copies_of_weights_do_not_fill_the_memory():
    import tracemalloc

    large = RNG.standard_normal((1024, 1024)).astype(np.float32)  # 4 MB
    nodes, last = [], "x"
    for k in range(200):
        nodes.append(helper.make_node("Identity", ["w"], [f"w{k}"]))
        nodes.append(helper.make_node("MatMul", [last, f"w{k}"], [f"h{k}"]))
        last = f"h{k}"
    nodes.append(helper.make_node("Relu", [last], ["y"]))
    whole = model(nodes, {"w": large}, (2, 1024))
    tracemalloc.start()
    source_for(whole)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 << 20  # two hundred copies would be 800 MB


@pytest.mark.filterwarnings("ignore")  # of the exporters
def test_layers_that_pytorch_ties_are_tied(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch writes the file")
    from tests.support.torch_ties import Shared

    theirs = Shared().eval()
    x = torch.randn(2, 16, generator=torch.Generator().manual_seed(0))
    for number, words in enumerate(({"dynamo": False}, {"dynamo": True})):
        if words["dynamo"]:
            pytest.importorskip("onnxscript", reason="the newer exporter needs it")
            words["external_data"] = False
        path = tmp_path / f"{number}.onnx"
        torch.onnx.export(theirs, (x,), path, **words)
        module = load(path, Numpy())
        wanted = sum(p.numel() for p in theirs.parameters())
        assert module.num_params() == wanted, source_of(module)
        assert module.one.lin.weight is module.two.lin.weight
        assert module.one.norm.gamma is not module.two.norm.gamma
        found = of(module, x.numpy())
        np.testing.assert_allclose(found, theirs(x).detach().numpy(), atol=1e-5)


def test_tables_that_begin_alike_are_not_compared_with_each_other(monkeypatch):
    """Each is read twice, as it is and turned, however many there are."""
    read = []
    original = ties._print
    monkeypatch.setattr(ties, "_print", lambda a: read.append(1) or original(a))
    layers = []
    for k in range(100):
        table, turned = np.zeros((64, 65), "f4"), np.zeros((65, 64), "f4")
        table[1, 1], turned[1, 2] = k + 1, k + 1
        layers += [(f"a{k}", {"w": table}), (f"b{k}", {"w": turned})]
    assert ties.transposed(layers) == []
    layers += [("c", {"w": layers[6][1]["w"].T.copy()})]
    assert ties.transposed(layers) == [("a3.w", "c.w")]
    assert len(read) == 2 * 200 + 2 * 201
