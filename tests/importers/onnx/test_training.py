"""An imported model computes what the file says, until one asks for training.

BatchNorm and Dropout do something else in training. A file fixes what they do, so a
device with autodiff does not change it.
"""

import importlib.util

import numpy as np
import pytest

onnx = pytest.importorskip("onnx")

from onnx import TensorProto, helper, numpy_helper

from burnbook.backend import Fusion, Numpy
from burnbook.importers.onnx import ModelGen, load
from burnbook.tensor import Tensor

X = np.random.default_rng(0).standard_normal((2, 3, 4, 4)).astype(np.float32)
node = helper.make_node
PARTS = {"g": [1, 2, 3], "b": [0, 1, 2], "m": [0, 1, 2], "v": [1, 4, 9]}
NORM = node("BatchNormalization", ["x", "g", "b", "m", "v"], ["h"])
GRAPHS = {
    "norm": [NORM, node("Relu", ["h"], ["y"])],
    "dropout": [node("Dropout", ["x", "half"], ["h"]), node("Relu", ["h"], ["y"])],
    "both": [NORM, node("Dropout", ["h", "half"], ["y"])],
    "inside an If": None,
}


def model(nodes):
    if nodes is None:
        value = helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, 3, 4, 4])
        branches = [helper.make_graph([NORM], f"b{k}", [], [value]) for k in (0, 1)]
        about = {"then_branch": branches[0], "else_branch": branches[1]}
        nodes = [
            node("ReduceSum", ["x"], ["sum"], keepdims=0),
            node("Greater", ["sum", "half"], ["cond"]),
            node("If", ["cond"], ["y"], **about),
        ]
    arrays = {n: np.float32(a) for n, a in PARTS.items()} | {"half": np.float32(0.5)}
    used = {name for one in nodes for name in one.input}
    used |= {*PARTS} if any(n.op_type == "If" for n in nodes) else set()
    held = [numpy_helper.from_array(a, n) for n, a in arrays.items() if n in used]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3, 4, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [2, 3, 4, 4])
    opsets = [helper.make_opsetid("", 17)]
    graph = helper.make_graph(nodes, "g", [x], [y], held)
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def values(module, device):
    return np.asarray(module.forward(Tensor.from_data(X, device)))


DEVICES = {
    "autodiff": lambda: Numpy().autodiff(),
    "twice": lambda: Numpy().autodiff().autodiff(),
    "fusion": lambda: Fusion(Numpy()).autodiff(),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("place", DEVICES)
def test_a_model_computes_the_same_on_every_device(name, place):
    file, device = model(GRAPHS[name]), DEVICES[place]()
    wanted = values(load(file), Numpy())
    np.testing.assert_allclose(values(load(file, device), device), wanted, atol=1e-6)
    moved = load(file).to_device(device)
    np.testing.assert_allclose(values(moved, device), wanted, atol=1e-6)


@pytest.mark.parametrize("name", ["norm", "dropout", "both"])
def test_it_trains_as_its_layers_do_when_one_asks(name):
    file, device = model(GRAPHS[name]), Numpy().autodiff()
    plain = values(load(file), Numpy())
    loaded = load(file, device)
    assert loaded.in_eval
    for training in (loaded.train(), load(file, device, training=True)):
        assert not training.in_eval
        assert np.abs(values(training, device) - plain).max() > 0.1
        found = values(training.eval(), device)
        assert ("norm" not in name) or found.shape == plain.shape


def test_weights_learn_without_training_the_statistics():
    device = Numpy().autodiff()
    module = load(model(GRAPHS["norm"]), device)
    before = np.asarray(module.batch_norm1.running_mean.value())
    loss = module.forward(Tensor.from_data(X, device)).sum()
    grads = loss.backward()
    assert np.abs(np.asarray(module.batch_norm1.gamma.val().grad(grads))).max() > 0
    np.testing.assert_array_equal(module.batch_norm1.running_mean.value(), before)


@pytest.mark.parametrize("embedded", [False, True])
def test_written_source_loads_the_model_as_the_file_has_it(tmp_path, embedded):
    path = tmp_path / "norm.onnx"
    path.write_bytes(model(GRAPHS["both"]).SerializeToString())
    how = ModelGen().input(path).out_dir(tmp_path)
    if embedded:
        from burnbook.importers.onnx import RecordType

        how = how.record_type(RecordType.Bincode).embed_states(True)
    (made,) = how.run_from_cli()
    spec = importlib.util.spec_from_file_location("norm", made)
    written = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(written)
    device = Numpy().autodiff()
    if embedded:
        module = written.Model.from_embedded(device)
    else:
        module = written.Model.from_file(tmp_path / "norm.mpk", device)
    wanted = values(load(path), Numpy())
    np.testing.assert_allclose(values(module, device), wanted, atol=1e-6)
    assert np.abs(values(module.train(), device) - wanted).max() > 0.1


def test_a_model_without_such_layers_has_no_mode():
    file = model([node("Relu", ["x"], ["y"])])
    assert not load(file, Numpy().autodiff()).in_eval
