"""Whatever makes a module from a module: what comes out trains as before."""

import copy
import pickle

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float
from burnbook.core.errors import KindError
from burnbook.module import (
    Dequantize,
    Lora,
    Module,
    ModuleMapper,
    Param,
    ParamId,
    Quantizer,
    RunningState,
)
from burnbook.optim import GradientsParams, ParamGroup, SgdConfig
from burnbook.tensor import Tensor
from burnbook.tensor.quantization import Calibration, QuantizationScheme
from tests.support import tiny_training

PLAIN = Numpy(compiled=False)
AD = Autodiff(PLAIN)
TWICE = Autodiff(AD)


class Model(Module):
    first: nn.Linear
    norm: nn.BatchNorm
    blocks: list[nn.Linear]
    last: nn.Linear
    scale: Param

    def forward(self, x):
        x = self.norm.forward(self.first.forward(x).tanh())
        for block in self.blocks:
            x = block.forward(x).tanh()
        return self.last.forward(x) * self.scale.val()


def model(device=AD):
    shared = nn.LinearConfig(4, 4).init(device)
    return Model(
        nn.LinearConfig(3, 4).init(device),
        nn.BatchNormConfig(4).init(device),
        [shared, shared],
        nn.LinearConfig(4, 2).init(device),
        Param.from_tensor(Tensor.full([1, 2], 1.5, device)),
    )


class Halve(ModuleMapper):
    """Every weight, and no bias."""

    def map_float(self, key, tensor):
        return tensor * 0.5 if len(tensor.shape) == 2 else tensor


class Anew(ModuleMapper):
    """Values that were never in a graph."""

    def map_float(self, key, tensor):
        return Tensor.random(list(tensor.shape), device=tensor.device())


class Detached(ModuleMapper):
    def map_float(self, key, tensor):
        return tensor.detach() * 0.9


class Doubled:
    """A reparameterizer that hands over computed parameters."""

    def reparameterize(self, path, param):
        value = Param.initialized(param.id, param.val() * 2.0)
        gain = Param.initialized(ParamId.new(), param.val() * 0.1)
        return value, Added(gain)


class Added(Module):
    NAME = "added"
    extra: Param

    def materialize(self, base):
        return base + self.extra.val()


def quantized_and_back(module):
    quantizer = Quantizer(Calibration.MinMax, QuantizationScheme.PerTensorSymmetric())
    return module.valid().quantize_weights(quantizer).map(Dequantize()).train()


def reparameterized_and_merged(module):
    return module.apply_reparameterization(Doubled()).valid().train()


EVERY = ParamGroup.all()
SCALE = ParamGroup.from_path("scale")
WAYS = {
    "map": lambda m: m.map(Halve()),
    "map to new values": lambda m: m.map(Anew()),
    "map of detached values": lambda m: m.map(Detached()),
    "map twice": lambda m: m.map(Halve()).map(Halve()),
    "fork": lambda m: m.fork(m.devices()[0]),
    "map and fork": lambda m: m.map(Halve()).fork(m.devices()[0]),
    "fork to another device": lambda m: m.fork(Autodiff(Numpy(float="f64"))),
    "to_device": lambda m: m.to_device(m.devices()[0]),
    "to another device": lambda m: m.to_device(Autodiff(Numpy(float="f64"))),
    "map and to another device": lambda m: m.map(Halve()).to_device(
        Autodiff(Numpy(float="f64"))
    ),
    "clone": lambda m: m.clone(),
    "deepcopy": copy.deepcopy,
    "pickle": lambda m: pickle.loads(pickle.dumps(m)),
    "valid and train": lambda m: m.valid().train(),
    "map below and train": lambda m: m.valid().map(Halve()).train(),
    "load_record": lambda m: m.load_record(m.into_record()),
    "load_record below": lambda m: m.valid().load_record(m.into_record()).train(),
    "load_partial": lambda m: m.load_partial({"first": m.first.into_record()})[0],
    "quantize and dequantize": quantized_and_back,
    "no_grad and unfreeze": lambda m: m.no_grad().unfreeze_group(EVERY),
    "map while frozen": lambda m: m.no_grad().map(Halve()).unfreeze_group(EVERY),
    "freeze and unfreeze": lambda m: m.freeze_group(SCALE).unfreeze_group(SCALE),
    "reparameterization merged": reparameterized_and_merged,
    "reparameterization": lambda m: m.apply_reparameterization(Doubled()),
}


def learned(module):
    """The parameters by their paths, without running statistics."""
    return {
        path: np.array(param.val())
        for path, param in module.named_params()
        if param.kind is Float and not isinstance(param, RunningState)
    }


def stepped(module, steps=2):
    optim = SgdConfig().init()
    for _ in range(steps):
        device = module.devices()[0]
        x = np.random.default_rng(1).normal(size=(6, 3))
        out = module.forward(Tensor.from_data(x, device, Float))
        grads = ((out - 3.0) * (out - 3.0)).mean().backward()
        module = optim.step(0.1, module, GradientsParams.from_grads(grads, module))
    return module


def still(before, after):
    """The parameters that did not move."""
    return [path for path in before if np.array_equal(before[path], after[path])]


@pytest.mark.parametrize("device", [AD, TWICE], ids=["once", "twice"])
@pytest.mark.parametrize("way", WAYS)
def test_what_was_made_from_a_module_trains(way, device):
    made = WAYS[way](model(device))
    before = learned(made)
    assert still(before, learned(stepped(made))) == []


THAWING = {"no_grad and unfreeze", "map while frozen"}


@pytest.mark.parametrize("way", sorted(WAYS.keys() - THAWING))
def test_what_was_frozen_stays_frozen(way):
    frozen = model().freeze_group(ParamGroup.from_predicate("blocks"))
    made = WAYS[way](frozen)
    before = learned(made)
    after = learned(stepped(made))
    assert still(before, after) == [path for path in before if "blocks" in path]


def test_a_mapped_model_on_a_plain_backend_learns_after_fork_and_train():
    for made in (model(PLAIN).map(Halve()).fork(AD), model(PLAIN).map(Halve()).train()):
        assert still(learned(made), learned(stepped(made))) == []


def test_a_mapped_model_trains_in_the_learner(tmp_path):
    mapped = tiny_training.tiny().map(Halve())
    learner = tiny_training.learner(tmp_path, 1, mapped)
    trained = learner.fit(tiny_training.loader(), tiny_training.loader(1))
    assert still(learned(mapped), learned(trained)) == []


def test_a_mapper_that_only_sets_the_flag_freezes_or_thaws():
    class Frozen(ModuleMapper):
        def map_float(self, key, tensor):
            return tensor.set_require_grad(False)

    class Thawed(ModuleMapper):
        def map_float(self, key, tensor):
            return tensor.require_grad()

    frozen = model().map(Frozen())
    assert not any(param.is_require_grad for _, param in frozen.named_params())
    assert not frozen.valid().train().scale.is_require_grad
    thawed = frozen.map(Thawed())
    assert still(learned(thawed), learned(stepped(thawed))) == []


def test_a_mapped_parameter_is_a_leaf_that_learns():
    param = model().scale
    made = param.map(lambda value: value * 2.0)
    assert made.id == param.id
    assert made.val().is_require_grad()
    assert made.is_require_grad
    assert not param.set_require_grad(False).map(lambda v: v * 2.0).is_require_grad
    made = model().apply_reparameterization(Doubled()).first.weight
    assert made.map(lambda value: value * 2.0).val().is_require_grad()


def test_what_lora_froze_stays_frozen_when_it_is_merged():
    merged = model().apply_lora(Lora(1, 1.0)).valid().train()
    assert not any(param.is_require_grad for _, param in merged.named_params())
    thawed = merged.unfreeze_group(EVERY)
    assert still(learned(thawed), learned(stepped(thawed))) == []


@pytest.mark.parametrize("made", [None, 1.0, np.ones(2)])
def test_a_mapper_must_give_a_tensor(made):
    class Broken(ModuleMapper):
        def map_float(self, key, tensor):
            return made

    with pytest.raises(KindError, match="not a Tensor"):
        model().map(Broken())


def test_a_mapper_must_keep_the_kind():
    class Rounded(ModuleMapper):
        def map_float(self, key, tensor):
            return tensor.int()

    with pytest.raises(KindError, match="Int of a Float parameter"):
        model().map(Rounded())
