"""Activations as layers, and the small layers without parameters."""

import json
import math

import numpy as np
import pytest

from burnbook import nn, seed
from burnbook.backend import Autodiff, Numpy
from burnbook.config import Config
from burnbook.module import Module
from burnbook.nn import Activation, ActivationConfig
from burnbook.tensor import Tensor

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)
RNG = np.random.default_rng(0)

LINES = {
    "Relu": nn.Relu(),
    "Relu6": nn.Relu6(),
    "Gelu": nn.Gelu(),
    "Gelu {approximate: true}": nn.Gelu(approximate=True),
    "Sigmoid": nn.Sigmoid(),
    "LogSigmoid": nn.LogSigmoid(),
    "Tanh": nn.Tanh(),
    "Tanhshrink": nn.Tanhshrink(),
    "Softsign": nn.Softsign(),
    "SiLU": nn.Swish(),
    "HardSwish": nn.HardSwish(),
    "Mish": nn.Mish(),
    "Selu": nn.Selu(),
    "Identity": nn.Identity(),
    "LeakyRelu {negative_slope: 0.01}": nn.LeakyReluConfig().init(),
    "PRelu {num_parameters: 1, alpha_value: 0.25, params: 1}": (
        nn.PReluConfig().init(PLAIN)
    ),
    "RRelu {lower: 0.1, upper: 0.3}": nn.RReluConfig(lower=0.1, upper=0.3).init(),
    "Elu {alpha: 1}": nn.EluConfig().init(),
    "Celu {alpha: 1}": nn.CeluConfig().init(),
    "Threshold {threshold: 1, value: 20}": nn.ThresholdConfig(1.0, 20.0).init(),
    "ThresholdedRelu {alpha: 1}": nn.ThresholdedReluConfig().init(),
    "HardSigmoid {alpha: 0.2, beta: 0.5}": nn.HardSigmoidConfig().init(),
    "Hardtanh {min_val: -1, max_val: 1}": nn.HardtanhConfig().init(),
    "Softplus {beta: 1}": nn.SoftplusConfig().init(),
    "Shrink {lambda: 0.5, bias: 0.5}": nn.ShrinkConfig().init(),
    "HardShrink {lambda: 0.5}": nn.HardShrinkConfig().init(),
    "SoftShrink {lambda: 0.5}": nn.SoftShrinkConfig().init(),
    "Glu {dim: 1}": nn.GLU(1),
    "SwiGlu {d_input: 3, d_output: 5, bias: false, params: 30}": (
        nn.SwiGluConfig(3, 5).init(PLAIN)
    ),
    "Softmax {dim: 1}": nn.Softmax(1),
    "LogSoftmax {dim: 0}": nn.LogSoftmax(0),
    "Softmin {dim: 1}": nn.Softmin(1),
    "QuietSoftmax {dim: 1}": nn.QuietSoftmax(1),
    "LocalResponseNorm {size: 5, alpha: 0.0001, beta: 0.75, k: 1}": (
        nn.LocalResponseNormConfig(5).init()
    ),
    "PixelShuffle {upscale_factor: 2}": nn.PixelShuffleConfig(2).init(),
    "PixelUnshuffle {downscale_factor: 2}": nn.PixelUnshuffleConfig(2).init(),
    "GaussianNoise {std: 0.1}": nn.GaussianNoiseConfig(0.1).init(),
    "CosineSimilarity {dim: 1, eps: 0.00000001}": nn.CosineSimilarityConfig().init(),
    "PairwiseDistance {p: 2, eps: 0.000001}": nn.PairwiseDistanceConfig().init(),
}


@pytest.mark.parametrize("line", LINES)
def test_a_layer_prints_as_in_burn(line):
    assert str(LINES[line]) == line


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


CURVES = {
    "Shrink {lambda: 0.5, bias: 0.5}": lambda x: (
        0.0 if abs(x) <= 0.5 else x - math.copysign(0.5, x)
    ),
    "HardShrink {lambda: 0.5}": lambda x: 0.0 if abs(x) <= 0.5 else x,
    "SiLU": lambda x: x * sigmoid(x),
    "Gelu": lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2,
    "Mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "Softsign": lambda x: x / (1 + abs(x)),
    "HardSwish": lambda x: x * min(max(x / 6 + 0.5, 0.0), 1.0),
    "HardSigmoid {alpha: 0.2, beta: 0.5}": lambda x: min(max(0.2 * x + 0.5, 0.0), 1.0),
    "Threshold {threshold: 1, value: 20}": lambda x: x if x > 1 else 20.0,
    "ThresholdedRelu {alpha: 1}": lambda x: x if x > 1 else 0.0,
    "Celu {alpha: 1}": lambda x: max(x, 0.0) + min(math.exp(x) - 1, 0.0),
    "Selu": lambda x: (
        1.0507009873554805 * (x if x > 0 else 1.6732632423543772 * (math.exp(x) - 1))
    ),
}


@pytest.mark.parametrize("line", CURVES)
def test_a_curve_is_its_formula(line):
    x = np.linspace(-7.9, 7.9, 159)
    wanted = [CURVES[line](float(a)) for a in x]
    found = LINES[line].forward(Tensor.from_numpy(x, PLAIN))
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_erf_is_exact_to_the_last_digits_everywhere():
    x = np.concatenate([np.linspace(-9, 9, 20001), [4.0, -4.0, math.inf, -math.inf]])
    wanted = np.array([math.erf(a) for a in x])
    found = np.asarray(Tensor.from_numpy(x, PLAIN).erf())
    assert np.abs(found - wanted).max() < 5e-16
    assert np.isnan(np.asarray(Tensor.from_numpy(np.array([np.nan]), PLAIN).erf()))


def test_rrelu_draws_a_slope_for_each_element_in_training_alone():
    layer, x = nn.RReluConfig().init(), -np.ones((50, 50))
    fixed = np.asarray(layer.forward(Tensor.from_numpy(x, PLAIN)))
    assert np.allclose(fixed, -(0.125 + 1 / 3) / 2)
    tensor = Tensor.from_numpy(x, AD).require_grad()
    out = layer.forward(tensor)
    slopes = -np.asarray(out)
    assert 0.125 <= slopes.min() < 0.14
    assert 0.32 < slopes.max() < 1 / 3
    assert len(np.unique(slopes)) > 2000
    assert np.allclose(tensor.grad(out.sum().backward()), slopes)
    up = layer.forward(Tensor.ones([3], AD))
    assert np.array_equal(up, np.ones(3))


def test_noise_acts_in_training_alone_and_follows_the_seed():
    layer, x = nn.GaussianNoiseConfig(0.5).init(), Tensor.ones([200, 200], AD)
    seed(7)
    noisy = np.asarray(layer.forward(x))
    seed(7)
    assert np.array_equal(layer.forward(x), noisy)
    assert abs(noisy.mean() - 1) < 0.02
    assert abs(noisy.std() - 0.5) < 0.02
    plain = Tensor.ones([2, 2], PLAIN)
    assert layer.forward(plain) is plain
    assert nn.GaussianNoiseConfig(0.0).init().forward(x) is x


def test_pixels_go_to_channels_and_back():
    x = RNG.normal(size=(2, 8, 3, 5))
    large = nn.PixelShuffleConfig(2).init().forward(Tensor.from_numpy(x, PLAIN))
    assert large.dims() == (2, 2, 6, 10)
    assert np.asarray(large)[1, 1, 3, 4] == x[1, 1 * 4 + 1 * 2 + 0, 1, 2]
    again = nn.PixelUnshuffleConfig(2).init().forward(large)
    assert np.array_equal(again, x)


def test_a_quiet_softmax_may_choose_nothing():
    x = Tensor.from_numpy(np.array([[-50.0, -60.0], [0.0, 0.0]]), PLAIN)
    out = np.asarray(nn.QuietSoftmax(1).forward(x))
    assert np.allclose(out, [[0, 0], [1 / 3, 1 / 3]])


def test_identity_gives_back_the_very_tensor():
    x = Tensor.ones([2], PLAIN)
    assert nn.Identity().forward(x) is x


# Configs


def test_lambda_is_called_so_in_json():
    config = nn.ShrinkConfig().with_lambda(2.0)
    assert json.loads(config.to_json()) == {"lambda": 2.0, "bias": 0.5}
    assert nn.ShrinkConfig.from_json('{"lambda": 2.0}') == config
    assert config.lambda_ == 2.0


def test_the_books_spelling_of_prelu():
    assert nn.Prelu is nn.PRelu
    assert nn.PreluConfig is nn.PReluConfig
    assert nn.Silu is nn.SiLU is nn.Swish
    assert nn.GLU is nn.Glu


HOLDING = {
    "PRelu": nn.PReluConfig(num_parameters=4),
    "LeakyRelu": nn.LeakyReluConfig(negative_slope=0.2),
    "SwiGlu": nn.SwiGluConfig(6, 6),
    "HardSigmoid": nn.HardSigmoidConfig(alpha=0.3),
    "Softplus": nn.SoftplusConfig(beta=2.0),
    "Elu": nn.EluConfig(alpha=2.0),
    "Celu": nn.CeluConfig(alpha=2.0),
    "ThresholdedRelu": nn.ThresholdedReluConfig(alpha=2.0),
    "HardShrink": nn.HardShrinkConfig(lambda_=1.0),
    "SoftShrink": nn.SoftShrinkConfig(lambda_=1.0),
    "Shrink": nn.ShrinkConfig(bias=0.1),
    "Hardtanh": nn.HardtanhConfig(max_val=3.0),
    "RRelu": nn.RReluConfig(lower=0.1),
    "Threshold": nn.ThresholdConfig(0.0, 1.0),
}


class Block(Module):
    activation: Activation

    def forward(self, x):
        return self.activation.forward(x)


@pytest.mark.parametrize("name", ActivationConfig.variants)
def test_a_config_chooses_the_activation(name):
    class BlockConfig(Config):
        activation: ActivationConfig

    config = getattr(ActivationConfig, name)
    if name in HOLDING:
        config = config(HOLDING[name])
    whole = BlockConfig(config)
    tree = json.loads(whole.to_json())["activation"]
    assert tree == name or list(tree) == [name]
    assert BlockConfig.from_json(whole.to_json()) == whole
    block = Block(config.init(PLAIN))
    kind = "Gelu" if name == "GeluApproximate" else name
    assert type(block.activation).__name__ == kind
    out = block.forward(Tensor.from_numpy(RNG.normal(size=(2, 4, 6)), PLAIN))
    assert out.dims() == (2, 4, 6)
    record = block.into_record()
    assert list(record["activation"]) == [kind]
    again = Block(config.init(PLAIN)).load_record(record)
    assert str(again) == str(block)


def test_gelu_by_tanh_is_near_the_exact_one():
    x = Tensor.from_numpy(np.linspace(-4, 4, 81), PLAIN)
    exact, near = nn.Gelu().forward(x), nn.Gelu(approximate=True).forward(x)
    distance = np.abs(np.asarray(exact) - np.asarray(near)).max()
    assert 1e-5 < distance < 1e-3
    made = ActivationConfig.GeluApproximate.init(PLAIN)
    assert np.array_equal(made.forward(x), near)
