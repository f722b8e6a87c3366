"""Layers: what they compute and refuse, how they print, what they start from."""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import (
    DimError,
    KindError,
    ShapeError,
)
from burnbook.nn import Initializer, PaddingConfig2d
from burnbook.tensor import Tensor
from tests.oracle import images
from tests.support.cases import cases
from tests.support.slopes import slopes

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)


def test_linear_is_a_weighted_sum():
    layer = nn.LinearConfig(2, 3).init(PLAIN)
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    out = layer.forward(Tensor.from_numpy(x, PLAIN))
    weight, bias = np.asarray(layer.weight.val()), np.asarray(layer.bias.val())
    assert np.allclose(out, x @ weight + bias)
    assert layer.forward(Tensor.ones([2], PLAIN)).dims() == (3,)
    assert layer.forward(Tensor.ones([4, 5, 2], PLAIN)).dims() == (4, 5, 3)


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("stride", [(1, 1), (2, 3)])
@cases(
    "padding size",
    (PaddingConfig2d.Valid, (0, 0)),
    (PaddingConfig2d.Explicit(2, 1), (2, 1)),
    ids=str,
)
def test_conv2d_equals_its_loops(groups, stride, padding, size):
    config = nn.Conv2dConfig([4, 6], [3, 2]).with_groups(groups).with_stride(stride)
    layer = config.with_dilation([1, 2]).with_padding(padding).init(PLAIN)
    x = Tensor.random([2, 4, 9, 8], device=PLAIN)
    weight, bias = np.asarray(layer.weight.val()), np.asarray(layer.bias.val())
    options = {"stride": stride, "padding": size, "dilation": (1, 2)}
    wanted = images.conv2d(np.asarray(x), weight, bias, groups=groups, **options)
    assert np.allclose(layer.forward(x), wanted)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_same_padding_keeps_the_size(kernel):
    config = nn.Conv2dConfig([1, 1], [kernel, 3]).with_padding(PaddingConfig2d.Same)
    x = Tensor.ones([1, 1, 10, 7], PLAIN)
    assert config.init(PLAIN).forward(x).dims() == (1, 1, 10, 7)
    wide = config.with_stride([2, 2]).init(PLAIN)
    assert wide.forward(x).dims()[3] == 7


def test_adaptive_pooling_covers_the_image_evenly():
    x = np.arange(30.0).reshape(1, 1, 5, 6)
    pooled = (
        nn.AdaptiveAvgPool2dConfig([2, 3]).init().forward(Tensor.from_numpy(x, PLAIN))
    )
    wanted = [
        [x[0, 0, rows, cols].mean() for cols in (slice(0, 2), slice(2, 4), slice(4, 6))]
        for rows in (slice(0, 3), slice(2, 5))
    ]
    assert np.allclose(np.asarray(pooled)[0, 0], wanted)


def test_dropout_acts_only_under_autodiff():
    layer = nn.DropoutConfig(0.25).init()
    plain = Tensor.ones([100, 100], PLAIN)
    assert layer.forward(plain) is plain
    tracked = Tensor.ones([100, 100], AD)
    out = np.asarray(layer.forward(tracked))
    assert set(np.unique(out)) == {0.0, 1 / 0.75}
    assert abs((out == 0).mean() - 0.25) < 0.03
    assert nn.DropoutConfig(0.0).init().forward(tracked) is tracked
    assert not np.asarray(nn.DropoutConfig(1.0).init().forward(tracked)).any()


def test_dropout_draws_anew_and_repeats_with_the_seed():
    layer, x = nn.DropoutConfig(0.5).init(), Tensor.ones([50], AD)
    AD.seed(7)
    first, second = np.asarray(layer.forward(x)), np.asarray(layer.forward(x))
    assert not np.array_equal(first, second)
    AD.seed(7)
    assert np.array_equal(layer.forward(x), first)


def test_activations():
    x = Tensor.from_data([[-2.0, 0.0, 3.0]], PLAIN)
    assert np.allclose(nn.Relu().forward(x), [[0.0, 0.0, 3.0]])
    assert np.allclose(nn.Tanh().forward(x), np.tanh([[-2.0, 0.0, 3.0]]))
    wanted = 1 / (1 + np.exp([[2.0, 0.0, -3.0]]))
    assert np.allclose(nn.Sigmoid().forward(x), wanted)
    assert [str(layer) for layer in (nn.Relu(), nn.Tanh())] == ["Relu", "Tanh"]


# Cross-entropy, against the formulas of the book written out in NumPy


def slow_cross_entropy(scores, targets, pads=(), weights=None, smoothing=0.0):
    shifted = scores - scores.max(1, keepdims=True)
    logs = shifted - np.log(np.exp(shifted).sum(1, keepdims=True))
    classes = scores.shape[1]
    total, weight = 0.0, 0.0
    for row, target in zip(logs, targets, strict=True):
        shares = np.full(classes, smoothing / classes)
        shares[target] += 1 - smoothing
        if weights is not None:
            shares = shares * weights
            weight += weights[target]
        if target not in pads:
            total -= (row * shares).sum()
    return total / (len(targets) if weights is None else weight)


@pytest.mark.parametrize("pads", [None, [1], [0, 3]])
@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5, 3.0]])
@pytest.mark.parametrize("smoothing", [None, 0.0, 0.1, 1.0])
@pytest.mark.parametrize("logits", [True, False])
def test_cross_entropy_with_every_option(pads, weights, smoothing, logits):
    config = nn.CrossEntropyLossConfig().with_pad_tokens(pads).with_weights(weights)
    loss = config.with_smoothing(smoothing).with_logits(logits).init(PLAIN)
    scores = np.random.default_rng(0).normal(size=(6, 4))
    targets = np.array([0, 1, 2, 3, 1, 0])
    wanted = slow_cross_entropy(scores, targets, pads or (), weights, smoothing or 0.0)
    given = scores
    if not logits:
        given = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    out = loss.forward(
        Tensor.from_numpy(given, PLAIN), Tensor.from_numpy(targets, PLAIN)
    )
    assert out.dims() == (1,)
    assert np.allclose(out, wanted)


def test_cross_entropy_has_a_gradient_with_every_option():
    config = nn.CrossEntropyLossConfig()
    loss = config.with_pad_tokens([0]).with_weights([1.0, 2.0]).with_smoothing(0.2)
    made = loss.init(AD)
    scores = np.random.default_rng(0).normal(size=(3, 2))
    targets = Tensor.from_ints([0, 1, 1], AD)
    x = Tensor.from_numpy(scores, AD).require_grad()
    grad = np.asarray(x.grad(made.forward(x, targets).backward()))
    options = ([0, 1, 1], [0], [1.0, 2.0], 0.2)
    wanted = slopes(lambda values: slow_cross_entropy(values, *options), scores)
    assert np.abs(grad - wanted).max() < 1e-7


def test_a_pad_token_need_not_be_a_class():
    loss = nn.CrossEntropyLoss.new(-100, PLAIN)
    scores = Tensor.zeros([2, 2], PLAIN)
    out = loss.forward(scores, Tensor.from_ints([-100, 1], PLAIN))
    assert np.allclose(out, math.log(2) / 2)


def test_the_old_way_to_make_the_loss_needs_no_device():
    scores, targets = Tensor.zeros([2, 2], AD), Tensor.from_ints([0, 1], AD)
    newest = nn.CrossEntropyLossConfig().init(AD).forward(scores, targets)
    old, older = nn.CrossEntropyLoss.new(None, AD), nn.CrossEntropyLoss.new(None)
    assert old.forward(scores, targets).into_scalar() == newest.into_scalar()
    assert older.forward(scores, targets).into_scalar() == newest.into_scalar()
    assert nn.CrossEntropyLoss.new(0).pad_tokens == [0]


def test_the_loss_follows_the_module_to_the_inner_backend():
    loss = nn.CrossEntropyLossConfig().with_weights([1.0, 2.0]).init(AD).valid()
    assert loss.weights.device() is PLAIN


SCORES = Tensor.zeros([2, 3], PLAIN)
WRONG_TARGETS = [
    (Tensor.from_ints([0, 1, 2], PLAIN), ShapeError),
    (Tensor.from_ints([[0], [1]], PLAIN), ShapeError),
    (Tensor.from_floats([0, 1], PLAIN), KindError),
    (Tensor.from_ints([0, 3], PLAIN), DimError),
]


@pytest.mark.parametrize(("targets", "error"), WRONG_TARGETS, ids=repr)
@pytest.mark.parametrize("smoothing", [None, 0.1])
def test_cross_entropy_refuses_targets_that_do_not_fit(targets, error, smoothing):
    loss = nn.CrossEntropyLossConfig().with_smoothing(smoothing).init(PLAIN)
    with pytest.raises(error):
        loss.forward(SCORES, targets)


# Configs that cannot be


# Initializers


def drawn(rule: Initializer, fan_in=300, fan_out=100) -> np.ndarray:
    PLAIN.seed(0)
    param = rule.init_with([200, 300], fan_in, fan_out, PLAIN)
    return np.asarray(param.val())


@cases(
    "rule edge",
    (Initializer.Uniform(min=-0.3, max=0.3), 0.3),
    (Initializer.KaimingUniform(gain=2, fan_out_only=False), 2 * 3**0.5 / 300**0.5),
    (Initializer.KaimingUniform(gain=1, fan_out_only=True), 3**0.5 / 10),
    (Initializer.XavierUniform(gain=1.5), 1.5 * 3**0.5 * (2 / 400) ** 0.5),
    ids=repr,
)
def test_uniform_rules_fill_their_range(rule, edge):
    values = drawn(rule)
    assert -edge <= values.min() < -0.99 * edge
    assert 0.99 * edge < values.max() <= edge
    assert abs(values.mean()) < 0.02 * edge


@cases(
    "rule mean std",
    (Initializer.Normal(mean=1, std=2), 1.0, 2.0),
    (Initializer.KaimingNormal(gain=3, fan_out_only=False), 0.0, 3 / 300**0.5),
    (Initializer.KaimingNormal(gain=1, fan_out_only=True), 0.0, 1 / 10),
    (Initializer.XavierNormal(gain=2), 0.0, 2 * (2 / 400) ** 0.5),
    ids=repr,
)
def test_normal_rules_have_their_spread(rule, mean, std):
    values = drawn(rule)
    assert abs(values.mean() - mean) < 0.02 * std
    assert abs(values.std() / std - 1) < 0.02


def test_constant_rules():
    rules = (Initializer.Ones, Initializer.Zeros, Initializer.Constant(value=3))
    assert [drawn(rule).max() for rule in rules] == [1.0, 0.0, 3.0]


def test_the_default_of_every_layer_is_one_over_root_fan_in():
    layer = nn.Conv2dConfig([4, 64], [5, 5]).with_groups(2).init(PLAIN)
    edge = 1 / math.sqrt(2 * 25)
    weight, bias = np.asarray(layer.weight.val()), np.asarray(layer.bias.val())
    assert 0.98 * edge < np.abs(weight).max() <= edge
    assert 0.8 * edge < np.abs(bias).max() <= edge
    default = Initializer.KaimingUniform(gain=1 / math.sqrt(3), fan_out_only=False)
    assert nn.LinearConfig(3, 5).initializer == default


def test_the_same_seed_gives_the_same_weights_on_every_backend():
    def weight(device):
        device.seed(5)
        return np.asarray(nn.LinearConfig(7, 3).init(device).weight.val())

    single = Numpy()
    assert np.array_equal(weight(single), weight(Autodiff(single)))
    assert weight(single).dtype == np.float32


def test_layers_are_found_in_the_modules_of_burn():
    assert nn.conv.Conv2d is nn.Conv2d
    assert nn.pool.AdaptiveAvgPool2dConfig is nn.AdaptiveAvgPool2dConfig
    assert nn.loss.CrossEntropyLoss is nn.CrossEntropyLoss
