"""What the layers of a transformer start from is what Burn's start from.

Burn draws weight and bias of every linear layer from KaimingUniform with gain 1/√3, the
fan of the weight's input: uniform in ± 1/√d_input, as PyTorch's Linear does. Gamma is 1
and beta 0. PyTorch's TransformerEncoderLayer is another one: its attention draws from
Xavier and has biases of zero.
"""

import math

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from tests.support.cases import cases

DEVICE = Numpy(compiled=False)
WIDE, INNER = 96, 320
LAYERS = {
    "attention": nn.MultiHeadAttentionConfig(WIDE, 4),
    "feed-forward": nn.PositionWiseFeedForwardConfig(WIDE, INNER),
    "encoder": nn.TransformerEncoderConfig(WIDE, INNER, 4, 2),
    "decoder": nn.TransformerDecoderConfig(WIDE, INNER, 4, 1),
}


def fan_of(path):
    """How many inputs the linear layer at a path has."""
    return INNER if "linear_outer" in path else WIDE


@cases("config", *LAYERS.values(), ids=LAYERS)
def test_linear_layers_are_uniform_by_their_inputs_and_norms_leave_alone(config):
    DEVICE.seed(3)
    params = config.init(DEVICE).named_params()
    for path, param in params:
        values = np.asarray(param.val())
        if path.endswith(("gamma", "beta")):
            assert np.all(values == float(path.endswith("gamma"))), path
            continue
        bound = 1 / math.sqrt(fan_of(path))
        assert np.abs(values).max() <= bound, path
        assert np.abs(values).max() > 0.9 * bound, path
        near = pytest.approx(bound / math.sqrt(3), rel=6 / math.sqrt(values.size))
        assert values.std() == near, path
        assert abs(values.mean()) < 5 * bound / math.sqrt(3 * values.size), path
    drawn = [
        np.asarray(p.val()).ravel()[:4].tolist() for n, p in params if "norm" not in n
    ]
    assert len({tuple(row) for row in drawn}) == len(drawn)  # none like another


@cases("config", *LAYERS.values(), ids=LAYERS)
def test_what_is_in_the_json_is_burns_default(config):
    assert '"KaimingUniform"' in config.to_json()
    assert config.initializer.gain == pytest.approx(1 / math.sqrt(3))
    assert config.initializer.fan_out_only is False


def test_linear_layers_start_like_those_of_pytorch():
    torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
    torch.manual_seed(0)
    layer = nn.PositionWiseFeedForwardConfig(WIDE, INNER).init(DEVICE)
    ours = np.asarray(layer.linear_inner.weight.val()).ravel()
    theirs = torch.nn.Linear(WIDE, INNER).weight.detach().numpy().ravel()
    places = np.linspace(0.0, 1.0, 21)
    found, wanted = np.quantile(ours, places), np.quantile(theirs, places)
    np.testing.assert_allclose(found, wanted, atol=0.006)
