"""Reparameterization: a value made from a stored one; LoRA, QLoRA, and one's own."""

import copy
import pickle
from typing import ClassVar

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, RecordError
from burnbook.module import (
    Lora,
    LoraAdapter,
    Module,
    ModuleMapper,
    Param,
    ParamId,
    QLora,
    list_param_ids,
)
from burnbook.nn.loss import MseLoss
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor import Tensor
from tests.support.refusals import refused

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)


class Net(Module):
    first: nn.Linear
    second: nn.Linear

    def forward(self, x):
        return self.second.forward(self.first.forward(x).tanh())


def net(device=AD) -> Net:
    return Net(
        nn.LinearConfig(5, 8).init(device),
        nn.LinearConfig(8, 3).with_bias(False).init(device),
    )


def drawn(param: Param) -> Param:
    """The same parameter with other values, to be learned as before."""
    values = np.random.default_rng(int(param.id) % 1000).normal(size=param.shape)
    tensor = Tensor.from_numpy(values, param.device)
    return Param.initialized(param.id, tensor.set_require_grad(param.is_require_grad))


def tuned(device=AD) -> Net:
    """A net with adapters that do something."""
    model = net(device).apply_lora(Lora(2, 4.0))
    for layer in (model.first, model.second):
        adapter = layer.weight.adapter()
        vars(adapter)["b"] = drawn(adapter.b)
    return model


X = np.random.default_rng(0).normal(size=(6, 5))


def run(model, x=X):
    return np.asarray(model.forward(Tensor.from_numpy(x, model.devices()[0])))


def test_an_adapter_adds_a_product_to_the_weight():
    weight = tuned().first.weight
    adapter = weight.adapter()
    base, a, b = (
        np.asarray(t) for t in (weight.base(), adapter.a.val(), adapter.b.val())
    )
    assert (a.shape, b.shape, adapter.scale) == ((5, 2), (2, 8), 2.0)
    assert np.allclose(weight.val(), base + 2.0 * a @ b)
    assert np.allclose(adapter.delta(), 2.0 * a @ b)
    assert weight.shape == (5, 8)
    assert isinstance(weight.reparameterization(LoraAdapter), LoraAdapter)
    assert weight.reparameterization(nn.Linear) is None


def test_at_first_nothing_changes():
    plain = net()
    model = plain.apply_lora(Lora(2, 4.0))
    assert np.array_equal(run(model), run(plain))
    assert plain.first.weight.adapter() is None
    assert plain.first.weight.base() is plain.first.weight.val()


def test_the_first_factor_is_spread_by_the_rank_or_as_told():
    model = Net(nn.LinearConfig(400, 50).init(PLAIN), nn.LinearConfig(2, 2).init(PLAIN))
    for lora, spread in ((Lora(20, 1.0), 1 / 20), (Lora(20, 1.0, 3.0), 3.0)):
        a = np.asarray(model.apply_lora(lora).first.weight.adapter().a.val())
        assert abs(a.std() / spread - 1) < 0.05
        assert abs(a.mean()) < 0.1 * spread


def test_everything_but_the_adapters_is_frozen():
    model = tuned()
    flags = {path: param.is_require_grad for path, param in model.named_params()}
    assert flags == {
        "first.weight": False,
        "first.weight.lora.a": True,
        "first.weight.lora.b": True,
        "first.bias": False,
        "second.weight": False,
        "second.weight.lora.a": True,
        "second.weight.lora.b": True,
    }
    grads = model.forward(Tensor.from_numpy(X, AD)).sum().backward()
    for path, param in model.named_params():
        assert (param.val().grad(grads) is not None) == flags[path]
    assert model.num_params() == net().num_params() + 2 * (5 + 8) + 2 * (8 + 3)


def test_only_the_adapters_learn():
    AD.seed(3)
    model, optim = net().apply_lora(Lora(2, 4.0)), AdamConfig().init()
    x, y = Tensor.from_numpy(X, AD), Tensor.from_numpy(X[:, :3] ** 2, AD)
    before = {path: np.array(p.val()) for path, p in model.named_params()}
    losses = []
    for _ in range(60):
        loss = MseLoss.new().forward(model.forward(x), y)
        losses.append(loss.into_scalar())
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(0.02, model, grads)
    assert losses[-1] < 0.5 * losses[0]
    for path, param in model.named_params():
        same = np.array_equal(param.val(), before[path])
        assert same == (".lora." not in path), path


class First:
    """The parameters of one part, as a ParamGroup tells them."""

    def matches(self, id, path):  # noqa: A002
        return path.startswith("first.")


def test_a_group_says_which_weights_get_an_adapter():
    model = net().apply_lora(Lora(2, 4.0).set_param_group(First()))
    assert model.first.weight.adapter() is not None
    assert model.second.weight.adapter() is None
    flags = [
        p.is_require_grad for path, p in model.named_params() if "lora" not in path
    ]
    assert flags == [False] * 3


def test_freezing_a_group_and_learning_it_again():
    model = net().freeze_group(First())
    flags = [param.is_require_grad for _, param in model.named_params()]
    assert flags == [False, False, True]
    again = model.unfreeze_group(First())
    assert all(param.is_require_grad for _, param in again.named_params())
    assert list_param_ids(again) == list_param_ids(model)


# Records


def test_a_record_brings_the_stored_values_and_the_adapters_back():
    model, other = tuned(), net().apply_lora(Lora(2, 4.0))
    record = model.into_record()
    assert set(record["first"]["weight"]) == {"base", "lora"}
    assert set(record["first"]["weight"]["lora"]) == {"a", "b", "scale"}
    loaded = other.load_record(record)
    assert np.array_equal(run(loaded), run(model))
    assert list_param_ids(loaded) == list_param_ids(model)
    flags = [param.is_require_grad for _, param in loaded.named_params()]
    assert flags == [param.is_require_grad for _, param in other.named_params()]


def test_a_file_brings_them_back_too(tmp_path):
    model = tuned()
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    model.save_file(tmp_path / "model", recorder)
    loaded = net().apply_lora(Lora(2, 4.0)).load_file(tmp_path / "model", recorder, AD)
    assert np.allclose(run(loaded), run(model), atol=1e-6)


def test_a_record_without_adapters_is_only_half_of_one():
    plain, model = net(), tuned()
    load = lambda: model.load_record(plain.into_record())  # noqa: E731
    refused(RecordError, load, "load into Net: 4 of 7", "first.weight.lora.a")
    loaded = model.load_record(plain.into_record(), partial=True)
    assert np.array_equal(loaded.first.weight.base(), plain.first.weight.val())
    delta = loaded.first.weight.adapter().delta()
    assert np.array_equal(delta, model.first.weight.adapter().delta())


def test_a_plain_model_refuses_adapters():
    with pytest.raises(RecordError, match=r"first\.weight +record a part with base"):
        net().load_record(tuned().into_record())


# What modules do


def test_valid_puts_the_change_into_the_weight():
    model = tuned()
    valid = model.valid()
    assert valid.devices() == [PLAIN]
    assert valid.first.weight.adapter() is None
    assert valid.first.weight.id == model.first.weight.id
    assert np.allclose(run(valid), run(model))
    assert valid.num_params() == net().num_params()
    assert np.array_equal(run(tuned(PLAIN).valid()).shape, (6, 3))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.clone(),
        copy.deepcopy,
        lambda m: pickle.loads(pickle.dumps(m)),
        lambda m: m.fork(AD),
        lambda m: m.no_grad(),
        lambda m: m.to_device(Autodiff(Numpy(float="f64", compiled=False))),
    ],
    ids=["clone", "deepcopy", "pickle", "fork", "no_grad", "to_device"],
)
def test_copies_have_adapters_of_their_own(change):
    model = tuned()
    made = change(model)
    assert np.allclose(run(made), run(model))
    assert list_param_ids(made) == list_param_ids(model)
    assert made.first.weight.adapter() is not model.first.weight.adapter()
    assert len(made.devices()) == 1


def test_mappers_see_the_stored_value_and_the_factors():
    class Double(ModuleMapper):
        def map_float(self, key, tensor):
            return tensor * 2.0

    model = tuned(PLAIN)
    made = model.map(Double()).first.weight
    old = model.first.weight
    assert np.allclose(made.base(), np.asarray(old.base()) * 2)
    assert np.allclose(made.adapter().delta(), np.asarray(old.adapter().delta()) * 4)
    doubled = old.map(lambda t: t * 2.0)
    assert doubled.adapter() is None
    assert np.allclose(doubled.val(), np.asarray(old.val()) * 2)


def test_a_parameter_alone_keeps_its_adapter():
    weight = tuned().first.weight
    learned = weight.set_require_grad(True)
    assert learned.is_require_grad
    assert not weight.is_require_grad
    assert learned.adapter() is weight.adapter()
    assert repr(weight).endswith("with lora")
    assert weight.consume()[0] == weight.id


def test_tied_weights_stay_tied():
    layer = nn.LinearConfig(4, 4).with_bias(False).init(AD)
    model = Net(layer, nn.Linear(layer.weight, None)).apply_lora(Lora(1, 1.0))
    for made in (model, model.clone(), model.load_record(model.into_record())):
        assert made.first.weight is made.second.weight
    assert model.num_params() == 16 + 8  # two places, one parameter


def test_a_model_with_adapters_says_so():
    line = "Linear {d_input: 5, d_output: 8, bias: true, weight: lora, params: 74}"
    assert str(tuned().first) == line


# QLoRA


class Rounding(ModuleMapper):
    """Stands for a quantizer: values on a coarse grid."""

    def map_float(self, key, tensor):
        return (tensor * 8.0).round() / 8.0


def test_qlora_quantizes_what_is_frozen():
    plain = net(PLAIN)
    model = plain.apply_qlora(QLora(Lora(2, 4.0), Rounding()))
    for path, param in model.named_params():
        on_grid = np.asarray(param.val()) * 8 % 1 == 0
        assert on_grid.all() == (not path.endswith("lora.a")), path
    grid = np.round(np.asarray(plain.first.weight.val()) * 8) / 8
    assert np.array_equal(model.first.weight.val(), grid)
    assert model.first.weight.id == plain.first.weight.id
    assert repr(Lora(2, 4.0)) == "Lora(rank=2, alpha=4.0)"


# One's own


class WeightNorm(Module):
    """Directions and lengths of the columns, apart."""

    NAME: ClassVar[str] = "weight_norm"

    g: Param

    def materialize(self, base):
        return base * (self.g.val() / base.square().sum_dim(0).sqrt())


class Apart:
    """Weight normalization for every matrix."""

    def reparameterize(self, path, param):
        if len(param.shape) != 2:
            return param, None
        lengths = param.val().detach().square().sum_dim(0).sqrt()
        return param, WeightNorm(Param.from_tensor(lengths))


def test_weight_normalization_in_ten_lines():
    plain = net()
    model = plain.apply_reparameterization(Apart())
    assert np.allclose(run(model), run(plain))
    assert model.num_params() == plain.num_params() + 8 + 3
    grads = model.forward(Tensor.from_numpy(X, AD)).sum().backward()
    for path, param in model.named_params():
        assert param.val().grad(grads) is not None, path
    weight, norm = model.first.weight, model.first.weight.reparameterization(WeightNorm)
    slope = np.asarray(weight.base().grad(grads))
    inward = (slope * np.asarray(weight.base())).sum(0)
    assert np.allclose(inward, 0)  # a direction cannot grow
    assert norm.g.val().grad(grads).dims() == (1, 8)
    assert weight.adapter() is None
    paths = [path for path, _ in model.named_params()]
    assert "first.weight.weight_norm.g" in paths
    record = model.into_record()
    other = net().apply_reparameterization(Apart()).load_record(record)
    assert np.allclose(run(other), run(model))
    assert np.allclose(run(model.valid()), run(model))


def test_only_one_may_be_attached():
    with pytest.raises(
        ConfigError, match="a parameter of the module has lora attached"
    ):
        tuned().apply_reparameterization(Apart())
    again = tuned(PLAIN).valid().apply_lora(Lora(1, 1.0))
    assert again.first.weight.adapter() is not None


def test_ids_differ():
    ids = list_param_ids(tuned())
    assert len(set(ids)) == len(ids) == 7
    assert all(isinstance(number, ParamId) for number in ids)
