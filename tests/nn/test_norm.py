"""Normalization layers: what they compute, remember, print and save."""

import json
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.core.dtypes import Float
from burnbook.core.errors import ShapeError
from burnbook.module import DisplaySettings, Module, RunningState
from burnbook.nn.norm import Normalization, NormalizationConfig
from burnbook.optim import AdamConfig, GradientsParams, LBFGSConfig, ParamGroup
from burnbook.tensor import Tensor, apply
from burnbook.train.parallel import Devices
from tests.oracle import norms

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)
RNG = np.random.default_rng(0)


def test_defaults_are_those_of_burn():
    assert json.loads(str(nn.BatchNormConfig(4))) == {
        "num_features": 4,
        "epsilon": 1e-5,
        "momentum": 0.1,
    }
    assert json.loads(str(nn.LayerNormConfig(4))) == {"d_model": 4, "epsilon": 1e-5}
    assert list(json.loads(str(nn.InstanceNormConfig(4)))) == [
        "num_channels",
        "epsilon",
        "affine",
    ]
    assert nn.GroupNormConfig(2, 4) == nn.GroupNormConfig(
        2, 4, epsilon=1e-5, affine=True, epsilon_inside=False
    )
    assert nn.LocalResponseNormConfig(5) == nn.LocalResponseNormConfig(
        5, alpha=1e-4, beta=0.75, k=1.0
    )


@pytest.mark.parametrize("shape", [(6,), (2, 6), (2, 3, 4, 6)], ids=str)
def test_layer_norm_equals_the_slow_loop(shape):
    x = RNG.normal(2.0, 3.0, shape)
    layer = nn.LayerNormConfig(6).init(PLAIN)
    assert np.allclose(layer.forward(Tensor.from_numpy(x, PLAIN)), norms.layer_norm(x))


def test_a_batch_without_examples_stays_empty():
    for config in (nn.LayerNormConfig(6), nn.RmsNormConfig(6), nn.BatchNormConfig(6)):
        for device in (Numpy(), PLAIN):
            x = Tensor.zeros([0, 6], device)
            assert config.init(device).forward(x).dims() == (0, 6)
    x = Tensor.zeros([0, 6, 4], PLAIN)
    assert nn.GroupNormConfig(2, 6).init(PLAIN).forward(x).dims() == (0, 6, 4)


def test_epsilon_of_a_group_norm_stands_outside_the_root():
    x = RNG.normal(size=(2, 4, 3))
    out = nn.GroupNormConfig(2, 4).with_epsilon(0.5).init(PLAIN)
    found = np.asarray(out.forward(Tensor.from_numpy(x, PLAIN)))
    rows = x.reshape(2, 2, 6)
    centered = rows - rows.mean(-1, keepdims=True)
    wanted = centered / (rows.std(-1, keepdims=True) + 0.5)
    assert np.allclose(found, wanted.reshape(x.shape))


def test_an_instance_norm_is_a_group_norm_of_single_channels():
    x = Tensor.random([2, 4, 5, 3], device=PLAIN)
    alone = nn.InstanceNormConfig(4).init(PLAIN).forward(x)
    assert np.array_equal(alone, nn.GroupNormConfig(4, 4).init(PLAIN).forward(x))


@pytest.mark.parametrize("size", [1, 2, 3, 4, 9])
def test_local_response_norm_equals_a_loop(size):
    x = RNG.normal(size=(2, 5, 3, 2))
    config = nn.LocalResponseNormConfig(size).with_alpha(0.3).with_k(2.0)
    wanted = np.empty_like(x)
    for n, c, i, j in np.ndindex(x.shape):
        low, high = max(c - (size - 1) // 2, 0), min(c + size // 2, 4)
        power = sum(x[n, k, i, j] ** 2 for k in range(low, high + 1))
        wanted[n, c, i, j] = x[n, c, i, j] / (2.0 + 0.3 / size * power) ** 0.75
    found = config.init().forward(Tensor.from_numpy(x, PLAIN))
    assert np.allclose(found, wanted)


# Running averages


def example():
    """The input of Burn's own test of BatchNorm."""
    values = np.array(
        [
            [[0.9601, 0.7277], [0.6272, 0.9034], [0.9378, 0.7230]],
            [[0.6356, 0.1362], [0.0249, 0.9509], [0.6600, 0.5945]],
            [[0.5327, 0.0116], [0.1013, 0.2301], [0.4346, 0.5889]],
        ]
    )
    return Tensor.from_numpy(values, AD)


def test_running_averages_move_by_momentum_toward_the_batch():
    layer, x = nn.BatchNormConfig(3).init(AD), np.asarray(example())
    layer.forward(example())
    mean = 0.1 * x.mean((0, 2))
    var = 0.9 + 0.1 * x.var((0, 2))
    assert np.allclose(layer.running_mean.val(), mean, rtol=1e-12)
    assert np.allclose(layer.running_var.val(), var, rtol=1e-12)
    layer.forward(example())
    assert np.allclose(layer.running_mean.val(), 0.9 * mean + 0.1 * x.mean((0, 2)))
    momentum = nn.BatchNormConfig(3).with_momentum(0.25).init(AD)
    momentum.forward(example())
    assert np.allclose(momentum.running_mean.val(), 0.25 * x.mean((0, 2)))


def test_the_committed_value_lags_behind_until_it_is_asked_for():
    layer = nn.BatchNormConfig(3).init(AD)
    layer.forward(example())
    assert np.array_equal(layer.running_mean.value(), np.zeros(3))
    assert not np.array_equal(layer.running_mean.value_sync(), np.zeros(3))
    assert not np.array_equal(layer.running_mean.value(), np.zeros(3))


def test_training_uses_the_batch_and_inference_the_averages():
    layer = nn.BatchNormConfig(3).init(AD)
    out = np.asarray(layer.forward(example()))
    assert np.allclose(out.mean((0, 2)), 0)
    x = np.asarray(example())
    infer = layer.valid()
    mean, var = (np.asarray(s.val()) for s in (infer.running_mean, infer.running_var))
    found = np.asarray(infer.forward(example().inner()))
    wanted = (x - mean[:, None]) / np.sqrt(var[:, None] + 1e-5)
    assert np.allclose(found, wanted)
    assert np.array_equal(infer.running_mean.val(), mean), "inference changes nothing"
    one = np.asarray(infer.forward(example().inner().narrow(0, 1, 1)))
    assert np.array_equal(one[0], found[1]), "an example's answer is its own"


@pytest.mark.parametrize("shape", [(8, 3), (4, 3, 5), (2, 3, 4, 5), (2, 3, 2, 3, 2)])
def test_batch_norm_takes_any_rank(shape):
    x = RNG.normal(2.0, 3.0, shape)
    layer = nn.BatchNormConfig(3).init(AD)
    out = layer.forward(Tensor.from_numpy(x, AD))
    assert np.allclose(out, norms.batch_norm(x, np.ones(3), np.zeros(3)))


def test_running_states_are_counted_visited_saved_and_never_learned():
    layer = nn.BatchNormConfig(3).init(AD)
    names = ["gamma", "beta", "running_mean", "running_var"]
    assert [name for name, _ in layer.named_params()] == names
    learned = [param.is_require_grad for _, param in layer.named_params()]
    assert learned == [True, True, False, False]
    assert layer.num_params() == 12
    record = layer.into_record()
    assert list(record) == [*names, "momentum", "epsilon"]
    assert record["momentum"] is None
    optim = AdamConfig().init()
    grads = layer.forward(example() * example()).square().sum().backward()
    grads = GradientsParams.from_grads(grads, layer)
    assert len(grads) == 2
    stepped = optim.step(0.1, layer, grads)
    assert stepped.running_mean.id == layer.running_mean.id
    assert np.any(np.asarray(stepped.running_mean.val()) != 0)
    assert not stepped.train().running_mean.is_require_grad
    settings = DisplaySettings().with_show_all_attributes(True)
    assert "running_mean: RunningState" in stepped.format(settings)


def test_a_record_brings_the_averages_back():
    layer = nn.BatchNormConfig(3).init(AD)
    layer.forward(example())
    other = nn.BatchNormConfig(3).init(PLAIN).load_record(layer.into_record())
    assert isinstance(other.running_var, RunningState)
    assert np.array_equal(other.running_var.val(), layer.running_var.val())
    assert other.running_var.id == layer.running_var.id


def test_copies_have_averages_of_their_own():
    layer = nn.BatchNormConfig(3).init(AD)
    copies = [
        layer.fork(AD),
        layer.to_device(AD),
        pickle.loads(pickle.dumps(layer)),
        layer.valid(),
        layer.no_grad(),
        layer.map(_Double()),
    ]
    layer.forward(example())
    for copy in copies:
        assert isinstance(copy.running_mean, RunningState)
        assert np.array_equal(copy.running_mean.val(), np.zeros(3))
    forward = copies[0].forward(example())
    assert np.array_equal(copies[0].running_mean.val(), layer.running_mean.val())
    assert forward.dims() == (3, 3, 2)


class _Twice(Module):
    """One BatchNorm in two places."""

    first: nn.BatchNorm
    again: nn.BatchNorm

    def forward(self, x):
        return self.again.forward(self.first.forward(x) * 2.0)


def trained(model, optim=None):
    """The model after a forward pass, and with an optimizer after its step."""
    loss = model.forward(example() * example()).square().sum()
    grads = GradientsParams.from_grads(loss.backward(), model)
    optim = AdamConfig().init() if optim is None else optim
    return optim.step(0.1, model, grads)


def test_training_on_leaves_the_statistics_of_the_older_model():
    layer = nn.BatchNormConfig(3).init(AD)
    best = trained(layer)
    assert np.array_equal(best.running_var.val(), layer.running_var.val())
    later, optim = best, AdamConfig().init()
    loss = later.forward(example()).square().sum()  # its own forward moves its own
    after = np.asarray(best.running_mean.val())
    later = optim.step(0.1, later, GradientsParams.from_grads(loss.backward(), later))
    answer = np.asarray(best.valid().forward(example().inner()))
    for _ in range(3):
        later = trained(later, optim)
    assert np.array_equal(best.running_mean.val(), after)
    assert np.array_equal(best.valid().forward(example().inner()), answer)
    assert not np.array_equal(later.running_mean.val(), after)


class _Same:
    """A mapper that keeps everything."""

    def map_float(self, _, tensor):
        return tensor


class _Ints:
    """A mapper that sees no Float parameter."""

    def map_int(self, _, tensor):
        return tensor


COPIES = {
    "map of what is kept": lambda m: m.map(_Same()),
    "map of other kinds": lambda m: m.map(_Ints()),
    "clone": lambda m: m.clone(),
    "freeze_group": lambda m: m.freeze_group(ParamGroup.from_predicate("gamma")),
    "reparameterized": lambda m: m.apply_reparameterization(_Plain()),
    "step": lambda m: AdamConfig().init().step(0.1, m, GradientsParams()),
}


class _Plain:
    """A reparameterizer that attaches nothing, to the parameters it is asked for."""

    param_group = None

    def reparameterize(self, path, param):
        return param, None


@pytest.mark.parametrize("name", COPIES)
def test_a_copy_of_a_model_that_trains_leaves_its_statistics(name):
    layer = nn.BatchNormConfig(3).init(AD)
    layer.forward(example())
    mean = np.asarray(layer.running_mean.val())
    copy = COPIES[name](layer)
    assert copy.running_mean.id == layer.running_mean.id
    assert np.array_equal(copy.running_mean.val(), mean)
    copy.forward(example())
    assert np.array_equal(layer.running_mean.val(), mean)
    assert not np.array_equal(copy.running_mean.val(), mean)


def test_a_norm_in_two_places_stays_one_after_a_step():
    layer = nn.BatchNormConfig(3).init(AD)
    made = trained(_Twice(layer, layer))
    assert made.first.running_mean is made.again.running_mean
    assert made.first.running_mean is not layer.running_mean
    assert made.first.gamma is made.again.gamma


def test_lbfgs_moves_the_statistics_of_its_result_alone():
    layer, seen = nn.BatchNormConfig(3).init(AD), []

    def closure(model):
        loss = (model.forward(example()) - 1.0).square().sum()
        seen.append(np.asarray(model.running_mean.val()))
        return loss, GradientsParams.from_grads(loss.backward(), model)

    made, _ = LBFGSConfig().with_max_iter(3).init().step(0.1, layer, closure)
    assert len(seen) == 3
    assert np.array_equal(layer.running_mean.val(), seen[0])
    assert np.array_equal(made.running_mean.val(), seen[-1])
    assert not np.array_equal(seen[0], seen[-1])


class _Double:
    def map_float(self, _, tensor):
        return tensor * 2.0


def test_a_mapper_changes_the_averages_too():
    layer = nn.BatchNormConfig(3).init(AD)
    doubled = layer.map(_Double())
    assert np.array_equal(doubled.running_var.val(), 2 * np.ones(3))
    assert doubled.running_var.id == layer.running_var.id


def test_threads_that_train_one_module_are_averaged():
    layer, both = nn.BatchNormConfig(3).init(AD), threading.Barrier(2)

    def train(x):
        layer.forward(x)
        both.wait(10)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(train, [example(), example() * 3.0]))
    x = np.asarray(example())
    wanted = 0.1 * 2.0 * x.mean((0, 2))  # the mean of 1 and 3 times
    assert np.allclose(layer.running_mean.val(), wanted)


def test_devices_that_share_a_batch_are_averaged():
    class Model(Module):
        norm: nn.BatchNorm

        def train_step(self, batch):
            return self.norm.forward(batch)

    other = Autodiff(Numpy(float="f64", compiled=False))
    model = Model(nn.BatchNormConfig(3).init(AD))
    batches = [(1, example(), None), (2, (example() * 3.0).to_device(other), None)]
    assert len(list(Devices([AD, other]).steps(batches, lambda: model))) == 2
    x = np.asarray(example())
    assert np.allclose(model.norm.running_mean.val(), 0.1 * 2.0 * x.mean((0, 2)))


def test_half_precision_is_averaged_in_full():
    half = Autodiff(Numpy(float="f16"))
    x = (RNG.normal(size=(64, 3, 64)) + 8).astype(np.float16)
    layer = nn.BatchNormConfig(3).init(half)
    out = layer.forward(Tensor.from_numpy(x, half).require_grad())
    wanted = norms.batch_norm(x.astype(float), np.ones(3), np.zeros(3))
    assert out.dtype == "f16"
    assert np.abs(np.asarray(out).astype(float) - wanted).max() < 0.01
    assert layer.running_mean.val().dtype == "f16"
    far = Tensor.from_numpy(np.full((2, 4096), 100, np.float16), half.inner)
    out = nn.RmsNormConfig(4096).init(half.inner).forward(far)
    assert np.allclose(np.asarray(out), 1.0)


# One of several


class Block(Module):
    norm: Normalization

    def forward(self, x):
        return self.norm.forward(x)


NORMS = {
    "Identity": NormalizationConfig.Identity,
    "Batch": NormalizationConfig.Batch(nn.BatchNormConfig(1)),
    "Group": NormalizationConfig.Group(nn.GroupNormConfig(1, 1)),
    "Instance": NormalizationConfig.Instance(nn.InstanceNormConfig(1)),
    "Layer": NormalizationConfig.Layer(nn.LayerNormConfig(1)),
    "Rms": NormalizationConfig.Rms(nn.RmsNormConfig(1)),
}


@pytest.mark.parametrize("name", NORMS)
def test_a_config_chooses_the_norm(name):
    class BlockConfig(Config):
        norm: NormalizationConfig

    config = NORMS[name].with_num_features(4)
    assert config.num_features == (0 if name == "Identity" else 4)
    block = Block(config.init(PLAIN))
    assert block.forward(Tensor.random([2, 4, 4], device=PLAIN)).dims() == (2, 4, 4)
    whole = BlockConfig(config)
    assert BlockConfig.from_json(whole.to_json()) == whole
    assert list(json.loads(whole.to_json())["norm"])[:1] == [name] or name == "Identity"


@pytest.mark.parametrize("name", NORMS)
def test_a_choice_is_recorded_and_printed_as_burns_enum(name):
    block = Block(NORMS[name].with_num_features(4).init(PLAIN))
    record = block.into_record()
    assert list(record["norm"]) == [name]
    assert f"norm: {name} {{\n    _0: " in str(block)
    again = Block(NORMS[name].with_num_features(4).init(PLAIN)).load_record(record)
    ids = [[p.id for _, p in b.named_params()] for b in (block, again)]
    assert ids[0] == ids[1]


def test_a_layer_without_gamma_is_differentiated_as_well():
    x = Tensor.random([2, 4, 3], device=AD).require_grad()
    layer = nn.GroupNormConfig(2, 4).with_affine(False).init(AD)
    assert layer.gamma is None
    grads = layer.forward(x).powf_scalar(3.0).sum().backward()
    assert np.any(np.asarray(x.grad(grads)) != 0)
    frozen = nn.LayerNormConfig(3).init(AD).no_grad()
    grads = frozen.forward(x).powf_scalar(3.0).sum().backward()
    assert frozen.gamma.val().grad(grads) is None
    assert np.any(np.asarray(x.grad(grads)) != 0)


def test_a_constant_input_gives_beta_and_finite_gradients():
    for config in (nn.LayerNormConfig(8), nn.GroupNormConfig(2, 8)):
        for device in (AD, Autodiff(Numpy())):
            x = Tensor.full([2, 8], 3.0, device).require_grad()
            out = config.init(device).forward(x)
            assert np.allclose(out, 0, atol=1e-6)
            grads = (out * Tensor.random([2, 8], device=device)).sum().backward()
            assert np.all(np.isfinite(np.asarray(x.grad(grads))))


@pytest.mark.parametrize("name", ["layer_norm", "rms_norm", "group_norm", "batch_norm"])
def test_the_ops_stay_off_the_tensor(name):
    from burnbook import ops

    assert not hasattr(Tensor, name)
    assert getattr(ops, name).kinds
    out = apply(ops.rms_norm, Tensor.ones([2, 3]))
    assert out.kind is Float


def test_a_batch_of_one_value_per_channel_cannot_be_trained_with():
    layer = nn.BatchNormConfig(3).init(AD)
    with pytest.raises(ShapeError, match="one value per channel"):
        layer.forward(Tensor.ones([1, 3], AD))
    with pytest.raises(ShapeError, match="one value per channel"):
        layer.forward(Tensor.ones([1, 3, 1, 1], AD))
    assert not np.asarray(layer.running_mean.val()).any()
    layer.forward(Tensor.ones([1, 3, 2], AD))
    assert layer.valid().forward(Tensor.ones([1, 3], AD.inner)).dims() == (1, 3)


def test_a_layer_that_was_told_its_rank_refuses_another():
    layer = nn.BatchNormConfig(3).init(PLAIN, dims=2)
    assert layer.forward(Tensor.ones([2, 3, 4, 4], PLAIN)).dims() == (2, 3, 4, 4)
    for same in (layer, layer.no_grad(), pickle.loads(pickle.dumps(layer))):
        with pytest.raises(ShapeError, match="rank 4, not 3"):
            same.forward(Tensor.ones([2, 3, 4], PLAIN))
    record = nn.BatchNormConfig(3).init(PLAIN).into_record()
    assert list(layer.into_record()) == list(record)
