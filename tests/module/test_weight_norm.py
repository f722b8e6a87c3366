"""Weight normalization: which weights get it, how it prints, is saved and trained."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError, RecordError
from burnbook.module import Module, Param, WeightGain, WeightNorm
from burnbook.optim import ParamGroup, SgdConfig
from burnbook.optim.grads import GradientsParams
from burnbook.tensor import Tensor

PLAIN = Numpy(compiled=False)
AD = Autodiff(PLAIN)


class Net(Module):
    conv: nn.Conv1d
    norm: nn.BatchNorm
    head: nn.Linear

    def forward(self, x):
        return self.head.forward(
            self.norm.forward(self.conv.forward(x)).mean_dim(2)[:, :, 0]
        )


def net(device=AD):
    return Net(
        nn.Conv1dConfig(2, 4, 3).init(device),
        nn.BatchNormConfig(4).init(device),
        nn.LinearConfig(4, 3).init(device),
    )


def run(model):
    x = np.random.default_rng(0).normal(size=(5, 2, 9)).astype(np.float32)
    device = model.devices()[0]
    return model.forward(Tensor.from_numpy(x, device))


def test_nothing_changes_at_first_and_only_weights_get_lengths():
    plain = net()
    model = plain.apply_reparameterization(WeightNorm())
    assert np.allclose(run(model), run(plain), atol=1e-6)
    more = dict(model.named_params()).keys() - dict(plain.named_params()).keys()
    assert more == {"conv.weight.weight_norm.g", "head.weight.weight_norm.g"}
    assert model.num_params() == plain.num_params() + 4 + 3
    assert model.conv.weight.reparameterization(WeightGain).g.shape == (4, 1, 1)


def test_it_is_seen_in_print():
    model = net().apply_reparameterization(WeightNorm())
    line = (
        "Linear {d_input: 4, d_output: 3, bias: true, weight: weight_norm, params: 18}"
    )
    assert str(model.head) == line
    assert "weight: weight_norm, params" in str(model)
    assert "weight_norm" not in str(model.valid())

    class Own(Module):
        scale: Param

    own = Own(Param.from_tensor(Tensor.ones([2, 3], AD)))
    made = own.apply_reparameterization(WeightNorm())
    assert "kind: float, computed by: weight_norm}" in str(made)
    assert "computed by" not in str(own)


def test_a_group_gets_it_and_groups_of_optimizers_tell_the_parts_apart():
    head = ParamGroup.from_path("head.weight")
    model = net().apply_reparameterization(WeightNorm().set_param_group(head))
    assert model.conv.weight.reparameterization() is None
    assert model.head.weight.reparameterization(WeightGain) is not None
    frozen = model.freeze_group(ParamGroup.from_path("head.weight.weight_norm.g"))
    optim = SgdConfig().init()
    grads = GradientsParams.from_grads(run(frozen).square().sum().backward(), frozen)
    after = dict(optim.step(0.1, frozen, grads).named_params())
    before = dict(frozen.named_params())
    moved = {
        path
        for path in after
        if not np.array_equal(after[path].base(), before[path].base())
    }
    assert "head.weight" in moved
    assert "head.weight.weight_norm.g" not in moved


def test_what_is_frozen_stays_frozen():
    frozen = net().freeze_group(ParamGroup.all())
    model = frozen.apply_reparameterization(WeightNorm())
    assert not any(param.is_require_grad() for _, param in model.named_params())
    trained = net(PLAIN).apply_reparameterization(WeightNorm()).train()
    gain = trained.head.weight.reparameterization(WeightGain).g
    assert gain.is_require_grad()


def test_records_hold_both_parts_and_a_plain_model_refuses_them():
    model = net().apply_reparameterization(WeightNorm())
    record = model.into_record()
    again = net().apply_reparameterization(WeightNorm()).load_record(record)
    assert np.array_equal(run(again), run(model))
    with pytest.raises(RecordError):
        net().load_record(record)
    folded = model.valid()
    loaded = net().load_record(folded.into_record())
    assert np.allclose(run(loaded.valid()), run(folded), atol=1e-6)


def test_a_dim_that_is_not_there_is_named():
    with pytest.raises(ConfigError, match=r"dim 2 is not one of the 2 dims of head"):
        net().apply_reparameterization(WeightNorm(dim=2))
    made = nn.LinearConfig(4, 3).init(AD).apply_reparameterization(WeightNorm(dim=-2))
    assert made.weight.reparameterization().g.shape == (4, 1)
    assert (repr(WeightNorm()), repr(WeightNorm(0))) == (
        "WeightNorm()",
        "WeightNorm(dim=0)",
    )
