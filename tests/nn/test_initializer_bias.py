"""Biases with a rule of their own."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError
from burnbook.nn import Initializer

DEVICE = Numpy(compiled=False)
ONES = Initializer.Constant(value=7.0)
CONFIGS = {
    "linear": nn.LinearConfig(4, 3),
    "conv1d": nn.Conv1dConfig(4, 3, 3),
    "conv2d": nn.Conv2dConfig([4, 3], [3, 3]),
    "conv3d": nn.Conv3dConfig([4, 3], [3, 3, 3]),
    "transposed": nn.ConvTranspose2dConfig([4, 3], [3, 3]),
    "deform": nn.DeformConv2dConfig([4, 3], [3, 3]),
    "swiglu": nn.SwiGluConfig(4, 3, bias=True),
    "lstm": nn.LstmConfig(4, 3, True),
    "gru": nn.GruConfig(4, 3, True),
    "attention": nn.MultiHeadAttentionConfig(4, 2),
    "encoder": nn.TransformerEncoderConfig(4, 8, 2, 1),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_layer_gives_biases_their_own_rule(name):
    config = CONFIGS[name]
    layer = config.with_initializer(ONES.with_bias(Initializer.Zeros)).init(DEVICE)
    rows = [row for row in layer.named_params() if ".norm_" not in f".{row[0]}"]
    biases = [np.array(param.val()) for path, param in rows if path.endswith("bias")]
    weights = [np.array(param.val()) for path, param in rows if path.endswith("weight")]
    assert biases
    assert weights
    assert not any(np.any(bias) for bias in biases)
    assert all(np.all(weight == 7.0) for weight in weights)


def test_biases_left_alone_are_those_of_a_layer_without_an_initializer():
    rule = Initializer.Normal(mean=0.0, std=9.0).with_bias()
    layer = nn.LinearConfig(16, 4000, initializer=rule).init(DEVICE)
    bias = np.array(layer.bias.val())
    assert np.abs(bias).max() <= 0.25
    assert bias.std() == pytest.approx(0.25 / np.sqrt(3), rel=0.05)
    assert np.array(layer.weight.val()).std() == pytest.approx(9.0, rel=0.05)


def test_orthogonal_has_a_bias():
    rule = Initializer.Orthogonal(gain=2.0)
    for chosen in (rule, rule.with_bias(), rule.with_bias(Initializer.Zeros)):
        layer = nn.LinearConfig(3, 5, initializer=chosen).init(DEVICE)
        weight = np.array(layer.weight.val())
        np.testing.assert_allclose(weight @ weight.T, 4 * np.eye(3), atol=1e-5)
        assert np.abs(np.array(layer.bias.val())).max() <= 1 / np.sqrt(3)
    conv = nn.Conv2dConfig([2, 4], [3, 3], initializer=rule).init(DEVICE)
    flat = np.array(conv.weight.val()).reshape(4, -1)
    np.testing.assert_allclose(flat @ flat.T, 4 * np.eye(4), atol=1e-5)


def test_a_config_with_it_goes_to_json_and_back(tmp_path):
    rule = Initializer.XavierUniform(gain=1.0).with_bias(Initializer.Zeros)
    config = nn.LinearConfig(3, 2, initializer=rule)
    config.save(tmp_path / "linear.json")
    again = nn.LinearConfig.load(tmp_path / "linear.json")
    assert again == config
    assert again.initializer.bias == Initializer.Zeros
    assert rule.with_bias(ONES).weight == Initializer.XavierUniform(gain=1.0)


@pytest.mark.parametrize(
    ("weight", "bias"),
    [
        (Initializer.Zeros, Initializer.Orthogonal(gain=1.0)),
        (Initializer.Zeros, Initializer.Zeros.with_bias()),
        (Initializer.Zeros.with_bias(), Initializer.Zeros),
    ],
)
def test_rules_that_do_not_fit_are_refused(weight, bias):
    with pytest.raises(ConfigError, match="is no rule for a"):
        Initializer.Separate(weight=weight, bias=bias)


def test_every_config_says_where_the_rule_of_the_bias_is():
    kinds = [getattr(nn, name) for name in nn.__all__ if name.endswith("Config")]
    found = [kind for kind in kinds if hasattr(kind, "with_initializer")]
    drawn = [kind for kind in found if " bias" in kind.__doc__.partition("drawn")[0]]
    assert len(drawn) > 10
    assert [kind for kind in drawn if "with_bias(" not in kind.__doc__] == []


@pytest.mark.parametrize("name", ["bias_initializer", "bias_init"])
def test_keras_word_for_it_leads_to_it(name):
    with pytest.raises(ConfigError) as caught:
        nn.LinearConfig(4, 3, **{name: Initializer.Zeros})
    cure = caught.value.cure
    assert cure.startswith("initializer=")
    rule = eval(cure.partition("=")[2], {"nn": nn})
    layer = nn.LinearConfig(4, 3, initializer=rule).init(DEVICE)
    assert not np.any(np.array(layer.bias.val()))
