"""Initializer.Orthogonal: rows at right angles, whatever the shape."""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.config import Config
from burnbook.tensor import Tensor
from tests.support.cases import cases

PLAIN = Numpy(float="f64")


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (6, 2, 5), (2, 3, 2, 2)])
@pytest.mark.parametrize("gain", [1.0, 0.5])
def test_the_shorter_side_stands_at_right_angles(shape, gain):
    rule = nn.Initializer.Orthogonal(gain=gain)
    values = np.asarray(rule.init(shape, PLAIN).val()).reshape(shape[0], -1)
    rows, cols = values.shape
    square = values @ values.T if rows <= cols else values.T @ values
    assert np.allclose(square, gain**2 * np.eye(min(rows, cols)))


def test_every_key_draws_another_rotation_and_the_seed_repeats_it():
    rule, device = nn.Initializer.Orthogonal(gain=1.0), Numpy(float="f64")
    device.seed(3)
    first, second = (np.asarray(rule.init([5, 5], device).val()) for _ in range(2))
    assert not np.allclose(first, second)
    device.seed(3)
    assert np.array_equal(rule.init([5, 5], device).val(), first)


def test_turned_and_mirrored_are_as_likely():
    """Without the signs of R, every matrix would have the same sign of a diagonal."""
    device = Numpy(float="f64")
    device.seed(0)
    rule = nn.Initializer.Orthogonal(gain=1.0)
    drawn = [np.asarray(rule.init([3, 3], device).val()) for _ in range(200)]
    assert 60 < sum(np.linalg.det(m) > 0 for m in drawn) < 140
    assert abs(np.mean([m[0, 0] for m in drawn])) < 0.15


def test_a_layer_starts_from_it():
    class BlockConfig(Config):
        initializer: nn.Initializer

    rule = nn.Initializer.Orthogonal(gain=2.0)
    config = BlockConfig(rule)
    assert BlockConfig.from_json(config.to_json()) == config
    linear = nn.LinearConfig(4, 4).with_bias(False).with_initializer(rule)
    out = linear.init(PLAIN).forward(Tensor.from_numpy(np.eye(4), PLAIN))
    assert np.allclose(np.linalg.norm(np.asarray(out), axis=1), 2.0)


@cases(
    "config",
    nn.LinearConfig(6, 4),
    nn.Conv2dConfig([2, 4], [3, 3]),
    nn.Conv1dConfig(2, 4, 3),
    nn.ConvTranspose2dConfig([2, 4], [3, 3]),
    ids=lambda config: type(config).__name__,
)
def test_an_orthogonal_layer_has_a_bias_of_the_usual_spread(config):
    rule = nn.Initializer.Orthogonal(gain=1.0)
    layer = config.with_initializer(rule).init(Numpy(float="f64"))
    bias = np.asarray(layer.bias.val())
    assert bias.shape == (4,)
    assert 0 < abs(bias).max() <= 1 / math.sqrt(6)  # no layer here has fewer inputs
    rows = np.asarray(layer.weight.val())
    rows = rows.reshape(len(rows), -1)
    small = rows if rows.shape[0] < rows.shape[1] else rows.T
    assert np.allclose(small @ small.T, np.eye(len(small)))
