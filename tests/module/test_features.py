"""Activations and gradients inside a model, by path."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ArgumentError, ConfigError, GraphError
from burnbook.module import Features, Module
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor, activation
from tests.torch.shared import close, torch

AD = Autodiff(Numpy(float="f64", compiled=False))


class Net(Module):
    first: nn.Linear
    norm: nn.BatchNorm
    blocks: list[nn.Linear]
    row: nn.Sequential
    rnn: nn.Lstm
    unused: nn.Linear

    def forward(self, x):
        x = self.norm(self.first(x))
        for _ in range(2):
            for block in self.blocks:
                x = block(x).tanh()
        out, _ = self.rnn(x.unsqueeze_dim(1))
        return self.row(out.squeeze(1))

    def embed(self, x):
        return self.first(x)


def net(device=AD):
    def linear(n=4, m=4):
        return nn.LinearConfig(n, m).init(device)

    row = nn.Sequential({"0": linear(), "act": activation.relu, "head": linear(4, 2)})
    norm, rnn = (
        nn.BatchNormConfig(4).init(device),
        nn.LstmConfig(4, 4, True).init(device),
    )
    return Net(linear(3), norm, [linear(), linear()], row, rnn, linear())


def inputs(device=AD):
    return Tensor.from_numpy(np.random.default_rng(0).normal(size=(5, 3)), device)


def test_what_layers_returned_and_the_model_stays():
    model = net().eval()
    before = {path: np.array(p.val()) for path, p in model.named_params()}
    found = model.features(inputs(), at=["first", "row.act", "blocks.1"])
    assert isinstance(found, Features)
    assert list(found) == ["first", "row.act", "blocks.1"]
    np.testing.assert_array_equal(found["first"], model.first(inputs()))
    np.testing.assert_array_equal(found.output, model(inputs()))
    np.testing.assert_array_equal(found.output, model.row.head(found["row.act"]))
    assert np.asarray(found["row.act"]).min() == 0
    for path, param in model.named_params():
        assert np.array_equal(np.array(param.val()), before[path])
    assert "forward" not in vars(model.first)
    assert model.row["act"] is activation.relu
    text = "Features(first: [5, 4], row.act: [5, 4], blocks.1: [5, 4] × 2)"
    assert repr(found) == text


def test_running_statistics_stay():
    model = net()
    model.features(inputs(), at="norm")
    assert np.array_equal(np.array(model.norm.running_mean.val()), np.zeros(4))


def test_a_layer_that_runs_several_times():
    model = net().eval()
    found = model.features(inputs(), at="blocks.0")
    calls = found.calls("blocks.0")
    assert len(calls) == 2
    assert found["blocks.0"] is calls[-1]
    again = model.blocks[0](model.blocks[1](calls[0].tanh()).tanh())
    np.testing.assert_array_equal(calls[1], again)
    found.output.sum().backward()
    first, last = found.grad("blocks.0", 0), found.grad("blocks.0")
    assert not np.array_equal(np.asarray(first), np.asarray(last))
    with pytest.raises(ConfigError, match="ran 2 times"):
        found.grad("blocks.0", 2)


def test_gradients_reach_the_parameters_of_the_model_too():
    model = net()
    found = model.features(inputs(), at=["first", "row.0"])
    assert found.grad("first") is None
    grads = found.output.square().sum().backward()
    params = GradientsParams.from_grads(grads, model.first)
    summed = np.asarray(found.grad("first")).sum(0)
    np.testing.assert_allclose(params.get(model.first.bias.id), summed, atol=1e-12)
    assert found.grad("row.0").backend is AD.inner


def test_what_is_no_tensor():
    found = net().eval().features(inputs(), at="rnn")
    found.output.sum().backward()
    out, _ = found["rnn"]
    assert out.dims() == (5, 1, 4)
    grads = found.grad("rnn")
    assert grads[0].dims() == (5, 1, 4)
    assert len(grads) == 3


def test_other_methods_and_arguments():
    model = net()
    found = model.features(inputs(), at="first", method="embed")
    np.testing.assert_array_equal(found.output, found["first"])
    named = model.features(x=inputs(), at="first")
    assert named.output.dims() == (5, 2)


@pytest.mark.parametrize(
    ("at", "texts"),
    [
        ("frist", ["no part at 'frist'", "near   first", 'try: "first"']),
        (["first", "row.1"], ["no part at 'row.1'", "row.0"]),
        ("blocks", ["no part at 'blocks'", "near   blocks.0"]),
        ("first.weight", ["no part at 'first.weight'", "first"]),
        ([3], ["int is not the path"]),
    ],
)
def test_a_wrong_path_lists_near_ones(at, texts):
    with pytest.raises(ConfigError) as error:
        net().features(inputs(), at=at)
    assert all(text in str(error.value) for text in ["Net.features", *texts])


def test_what_cannot_be_answered_is_explained():
    model = net().eval()
    found = model.features(inputs(), at=["unused", "first"])
    with pytest.raises(ConfigError, match="unused did not run"):
        found["unused"]
    with pytest.raises(ConfigError, match=r"no part at 'frist'"):
        found["frist"]
    plain = model.valid().features(inputs(AD.inner), at="first")
    with pytest.raises(GraphError, match="not tracked"):
        plain.grad("first")
    with pytest.raises(ConfigError, match="no method 'embde'"):
        model.features(inputs(), at="first", method="embde")


def test_a_field_may_have_the_name():
    class Vgg(Module):
        features: nn.Sequential
        head: nn.Linear

        def forward(self, x):
            return self.head(self.features(x))

    parts = [nn.LinearConfig(3, 4).init(AD), nn.LinearConfig(4, 2).init(AD)]
    model = Vgg(nn.Sequential(parts[0], nn.Relu()), parts[1])
    found = Module.features(model, inputs(), at="features.0")
    assert found["features.0"].dims() == (5, 4)
    with pytest.raises(ConfigError, match="head is missing"):
        Vgg(model.features)
    with pytest.raises(ArgumentError, match=r"Module\.features\(model, x, at=…\)"):
        model.features(inputs(), at="features.0")
    with pytest.raises(TypeError, match="to is not one of its arguments"):
        model.features(inputs(), to="features.0")


@pytest.mark.parametrize(
    "name", ["map", "train", "eval", "valid", "replace", "load_record", "in_eval"]
)
def test_no_other_method_is_hidden_by_a_field(name):
    with pytest.raises(ConfigError, match=rf"Net\.{name}: .*would hide the method"):
        type("Net", (Module,), {"__annotations__": {name: nn.Linear}})


def test_grad_cam_as_in_pytorch():
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    conv = nn.Conv2dConfig([1, 3], [3, 3]).init(AD)
    head = nn.LinearConfig(3, 2).init(AD)
    model = nn.Sequential(
        conv, activation.relu, lambda x: x.flatten(2, 3).mean_dim(2).squeeze(2), head
    )
    theirs = torch.nn.Conv2d(1, 3, 3).double()
    last = torch.nn.Linear(3, 2).double()
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(np.array(conv.weight.val())))
        theirs.bias.copy_(torch.tensor(np.array(conv.bias.val())))
        last.weight.copy_(torch.tensor(np.array(head.weight.val()).T))
        last.bias.copy_(torch.tensor(np.array(head.bias.val())))
    x = np.random.default_rng(1).normal(size=(2, 1, 6, 6))
    found = model.features(Tensor.from_numpy(x, AD), at="0")
    found.output.narrow(1, 0, 1).sum().backward()
    maps = theirs(torch.tensor(x))
    maps.retain_grad()
    last(torch.relu(maps).mean((2, 3)))[:, 0].sum().backward()
    close(found["0"], maps)
    close(found.grad("0"), maps.grad)
