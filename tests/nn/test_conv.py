"""Convolution layers: what they compute and refuse, how they print, what they start."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.nn import PaddingConfig1d, PaddingConfig2d, PaddingConfig3d
from burnbook.tensor import Tensor
from tests import oracle

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)


def weights(layer):
    bias = None if layer.bias is None else np.asarray(layer.bias.val())
    return np.asarray(layer.weight.val()), bias


def test_conv1d_equals_its_loops():
    config = nn.Conv1dConfig(4, 6, 3).with_groups(2).with_stride(2).with_dilation(2)
    layer = config.with_padding(PaddingConfig1d.Explicit(3)).init(PLAIN)
    x = Tensor.random([2, 4, 9], device=PLAIN)
    options = {"stride": (2,), "padding": (3,), "dilation": (2,), "groups": 2}
    wanted = oracle.find("conv")(np.asarray(x), *weights(layer), **options)
    assert np.allclose(layer.forward(x), wanted)


def test_conv3d_equals_its_loops():
    config = nn.Conv3dConfig([2, 3], [2, 3, 1]).with_stride([1, 2, 1])
    layer = config.with_padding(PaddingConfig3d.Explicit(1, 0, 1)).init(PLAIN)
    x = Tensor.random([1, 2, 4, 5, 3], device=PLAIN)
    options = {"stride": (1, 2, 1), "padding": (1, 0, 1), "dilation": (1, 1, 1)}
    wanted = oracle.find("conv")(np.asarray(x), *weights(layer), groups=1, **options)
    assert np.allclose(layer.forward(x), wanted)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_transposed_layers_equal_their_loops(dims):
    config = getattr(nn, f"ConvTranspose{dims}dConfig")
    one = (lambda n: n) if dims == 1 else (lambda n: [n] * dims)
    made = config([4, 2], one(3)).with_stride(one(2)).with_padding(one(1))
    layer = made.with_padding_out(one(1)).with_groups(2).init(PLAIN)
    x = Tensor.random([2, 4, *[3, 2, 2][:dims]], device=PLAIN)
    sizes = {"stride": (2,) * dims, "padding": (1,) * dims, "padding_out": (1,) * dims}
    wanted = oracle.find("conv_transpose")(
        np.asarray(x), *weights(layer), dilation=(1,) * dims, groups=2, **sizes
    )
    assert np.allclose(layer.forward(x), wanted)
    assert layer.weight.shape == (4, 1, *[3] * dims)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_same_padding_keeps_the_size(kernel):
    line = nn.Conv1dConfig(1, 1, kernel).with_padding(PaddingConfig1d.Same)
    assert line.init(PLAIN).forward(Tensor.ones([1, 1, 10], PLAIN)).dims()[2] == 10
    volume = nn.Conv3dConfig([1, 1], [1, kernel, 3]).with_padding(PaddingConfig3d.Same)
    x = Tensor.ones([1, 1, 2, 10, 4], PLAIN)
    assert volume.init(PLAIN).forward(x).dims() == (1, 1, 2, 10, 4)


def test_deform_conv2d_without_offsets_is_conv2d():
    config = nn.DeformConv2dConfig([4, 2], [3, 3]).with_offset_groups(2)
    layer = config.with_padding(PaddingConfig2d.Same).init(PLAIN)
    plain = nn.Conv2dConfig([4, 2], [3, 3]).with_padding(PaddingConfig2d.Same)
    other = plain.init(PLAIN).load_record(layer.into_record())
    x = Tensor.random([1, 4, 5, 4], device=PLAIN)
    offset = Tensor.zeros([1, 36, 5, 4], PLAIN)
    assert layer.offset_groups == 2
    assert np.allclose(layer.forward(x, offset), other.forward(x))
    mask = Tensor.zeros([1, 18, 5, 4], PLAIN)
    bias = np.asarray(layer.bias.val())
    assert np.allclose(
        np.asarray(layer.forward(x, offset, mask)), bias.reshape(2, 1, 1)
    )


FANS = [  # configs whose weights are drawn from U(−1/√fan_in, 1/√fan_in)
    (nn.Conv1dConfig(16, 64, 4), 64),
    (nn.Conv1dConfig(16, 64, 4).with_groups(4), 16),
    (nn.Conv3dConfig([8, 32], [2, 2, 2]), 64),
    (nn.ConvTranspose1dConfig([64, 16], 4), 64),
    (nn.ConvTranspose2dConfig([32, 16], [2, 2]).with_groups(4), 16),
    (nn.ConvTranspose3dConfig([32, 8], [2, 2, 2]), 64),
    (nn.DeformConv2dConfig([16, 32], [2, 2]).with_weight_groups(2), 32),
]


@pytest.mark.parametrize(("config", "fan"), FANS, ids=str)
def test_weights_start_within_their_fan(config, fan):
    layer = config.init(PLAIN)
    values = np.abs(np.asarray(layer.weight.val()))
    assert 0.95 / fan**0.5 < values.max() <= 1 / fan**0.5
    assert np.abs(np.asarray(layer.bias.val())).max() <= 1 / fan**0.5
