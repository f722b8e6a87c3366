"""Losses of classes and of style: every option, against formulas written out."""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.module import Module
from burnbook.nn.loss import Vgg19
from burnbook.tensor import Tensor
from tests.support.slopes import slopes

PLAIN = Numpy(float="f64", compiled=False)
AD = Autodiff(PLAIN)
RNG = np.random.default_rng(0)


# Binary cross-entropy


def slow_binary(p, y, smoothing=None, weights=None):
    total = 0.0
    for place in np.ndindex(p.shape):
        count = p.shape[-1] if p.ndim > 1 else 2
        t = y[place]
        if smoothing is not None:
            t = t * (1 - smoothing) + smoothing / count
        loss = -(t * math.log(p[place]) + (1 - t) * math.log(1 - p[place]))
        if weights is not None:
            loss *= weights[place[-1] if p.ndim > 1 else y[place]]
        total += loss / p.size
    return total


@pytest.mark.parametrize("logits", [False, True])
@pytest.mark.parametrize("smoothing", [None, 0.0, 0.1, 1.0])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("shape", [(5,), (4, 3), (2, 3, 2)])
def test_binary_cross_entropy_with_every_option(shape, weights, smoothing, logits):
    rng = np.random.default_rng(3)
    p, y = rng.random(shape) * 0.9 + 0.05, rng.integers(0, 2, shape)
    size = shape[-1] if len(shape) > 1 else 2
    balance = [1.5, 0.5, 3.0][:size] if weights else None
    config = nn.BinaryCrossEntropyLossConfig().with_weights(balance)
    loss = config.with_smoothing(smoothing).with_logits(logits).init(AD)
    given = np.log(p / (1 - p)) if logits else p
    x = Tensor.from_numpy(given, AD).require_grad()
    out = loss.forward(x, Tensor.from_numpy(y, AD))
    assert out.dims() == (1,)
    assert np.allclose(out, slow_binary(p, y, smoothing, balance))

    def slow(x):
        chances = 1 / (1 + np.exp(-x)) if logits else x
        return slow_binary(chances, y, smoothing, balance)

    found = np.asarray(x.grad(out.backward()))
    assert np.abs(found - slopes(slow, given)).max() < 1e-6


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, 0.7491), ({"weights": [3.0, 7.0]}, 3.1531), ({"smoothing": 0.1}, 0.7490)],
    ids=str,
)
def test_the_binary_cross_entropies_of_burn(options, wanted):
    loss = nn.BinaryCrossEntropyLossConfig(**options).with_logits(True).init(PLAIN)
    x = Tensor.from_floats([0.8271, 0.9626, 0.3796, 0.2355], PLAIN)
    out = loss.forward(x, Tensor.from_ints([0, 1, 0, 1], PLAIN))
    assert round(out.into_scalar(), 4) == wanted


def test_certainty_costs_a_hundred_where_it_is_wrong():
    loss = nn.BinaryCrossEntropyLossConfig().init(AD)
    x = Tensor.from_floats([0.0, 1.0, 1.0, 0.0], AD).require_grad()
    out = loss.forward(x, Tensor.from_ints([1, 0, 1, 0], AD))
    assert out.into_scalar() == 50.0
    assert np.isfinite(np.asarray(x.grad(out.backward()))).all()


def test_scores_of_any_size_have_a_finite_loss():
    loss = nn.BinaryCrossEntropyLossConfig().with_logits(True).init(PLAIN)
    x = Tensor.from_floats([1e4, -1e4, 1e4], PLAIN)
    out = loss.forward(x, Tensor.from_ints([1, 0, 0], PLAIN))
    assert np.allclose(out, 1e4 / 3)


# Cross-entropy beyond tests/nn/test_nn.py


def test_a_pad_token_that_is_no_class_has_no_weight():
    config = nn.CrossEntropyLossConfig().with_pad_tokens([-100, 9])
    loss = config.with_weights([1.0, 3.0]).init(PLAIN)
    scores = Tensor.from_data([[0.0, 0.0]] * 4, PLAIN)
    out = loss.forward(scores, Tensor.from_ints([0, 1, -100, 9], PLAIN))
    assert np.allclose(out, math.log(2))


@pytest.mark.parametrize("smoothing", [None, 0.1])
def test_a_probability_of_zero_has_a_finite_loss(smoothing):
    config = nn.CrossEntropyLossConfig().with_logits(False).with_smoothing(smoothing)
    x = Tensor.from_data([[0.0, 1.0], [1.0, 0.0]], AD).require_grad()
    out = config.init(AD).forward(x, Tensor.from_ints([0, 0], AD))
    assert 10 < out.into_scalar() < 400
    assert np.isfinite(np.asarray(x.grad(out.backward()))).all()


# Style


class Tiny(Module):
    """Features that can be counted by hand: the colors themselves, five times."""

    def forward(self, x):
        return [x.flatten(2, 3)] * 5


def test_the_style_is_what_appears_together():
    x, y = RNG.random((2, 3, 4, 5)), RNG.random((2, 3, 4, 5))
    weights = [1.0, 0.0, 2.0, 0.5, 0.25]
    loss = nn.GramMatrixLossConfig(weights).init(PLAIN, Tiny())
    mean = np.array([0.485, 0.456, 0.406]).reshape(3, 1, 1)
    std = np.array([0.229, 0.224, 0.225]).reshape(3, 1, 1)
    wanted = []
    for a, b in zip(x, y, strict=True):
        f, h = (((v - mean) / std).reshape(3, 20) for v in (a, b))
        wanted.append(((f @ f.T - h @ h.T) ** 2).sum() / (4 * 9 * 400) * sum(weights))
    a, b = Tensor.from_numpy(x, PLAIN), Tensor.from_numpy(y, PLAIN)
    assert np.allclose(loss.forward_no_reduction(a, b), wanted)
    assert np.allclose(loss.forward(a, b), np.mean(wanted))
    assert np.allclose(loss.forward(a, b, nn.Reduction.Sum), np.sum(wanted))


def test_vgg19_names_its_layers_as_torchvision_numbers_them():
    sources = Vgg19.sources()
    network = Vgg19.new(False, PLAIN)
    layers = {name.rpartition(".")[0] for name, _ in network.named_params()}
    assert set(sources) == layers
    assert sources["conv1_1"] == "features.0"
    assert sources["conv2_1"] == "features.5"
    assert sources["conv3_1"] == "features.10"
    assert sources["conv4_1"] == "features.19"
    assert sources["conv5_1"] == "features.28"
    assert network.num_params() == 12_944_960
    loss = nn.GramMatrixLossConfig([1.0] * 5).init(AD)
    params = loss.feat_extractor.named_params()
    assert not any(param.is_require_grad for _, param in params)
