"""Every layer that a config makes: printed, saved, differentiated, and what fits."""

import inspect

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ShapeError
from burnbook.nn import (
    ActivationConfig,
    InterpolateMode,
    PaddingConfig1d,
    PaddingConfig2d,
    PaddingConfig3d,
)
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor import Tensor
from tests.support.cases import cases
from tests.support.modules import ids, same_values, values

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)

RECURRENT = {
    "Lstm {d_input: 2, d_hidden: 3, bias: true, params: 84}": nn.LstmConfig(2, 3, True),
    "Lstm {d_input: 2, d_hidden: 3, bias: false, params: 45}": nn.LstmConfig(
        2, 3, False, reverse=True, clip=0.5, input_forget=True
    ),
    "BiLstm {d_input: 2, d_hidden: 3, bias: true, params: 168}": nn.BiLstmConfig(
        2, 3, True
    ),
    "Gru {d_input: 2, d_hidden: 8, bias: true, params: 288}": nn.GruConfig(2, 8, True),
    "BiGru {d_input: 2, d_hidden: 8, bias: true, params: 576}": nn.BiGruConfig(
        2, 8, True
    ).with_reset_after(False),
    "Rnn {d_input: 2, d_hidden: 3, bias: true, params: 21}": nn.RnnConfig(
        2, 3, True
    ).with_hidden_activation(ActivationConfig.Relu),
    "BiRnn {d_input: 2, d_hidden: 3, bias: true, params: 42}": nn.BiRnnConfig(
        2, 3, True
    ),
}
CONFIGS = {
    **RECURRENT,
    # general
    "Linear {d_input: 3, d_output: 5, bias: true, params: 20}": nn.LinearConfig(3, 5),
    "Conv2d {stride: [1, 1], kernel_size: [5, 5], dilation: [1, 1], groups: 1, "
    "padding: Valid, params: 126}": nn.Conv2dConfig([5, 1], [5, 5]),
    "Conv2d {stride: [2, 1], kernel_size: [3, 3], dilation: [1, 2], groups: 2, "
    "padding: Explicit(1, 2), params: 36}": nn.Conv2dConfig(
        [4, 2],
        [3, 3],
        groups=2,
        bias=False,
        stride=[2, 1],
        dilation=[1, 2],
        padding=PaddingConfig2d.Explicit(1, 2),
    ),
    "AdaptiveAvgPool2d {output_size: [3, 3]}": nn.AdaptiveAvgPool2dConfig([3, 3]),
    "Dropout {prob: 0.5}": nn.DropoutConfig(0.5),
    "CrossEntropyLoss {pad_tokens: None, weights: Tensor {rank: 1, shape: [3]}, "
    "smoothing: 0.5, logits: true}": nn.CrossEntropyLossConfig(
        weights=[1.0, 2.0, 3.0], smoothing=0.5
    ),
    "CrossEntropyLoss {pad_tokens: Vec<0..2>, weights: None, "
    "smoothing: None, logits: false}": nn.CrossEntropyLossConfig(
        pad_tokens=[1, 4], logits=False
    ),
    # normalization
    "LayerNorm {d_model: 6, epsilon: 0.00001, params: 12}": nn.LayerNormConfig(6),
    "LayerNorm {d_model: 6, epsilon: 0.1, params: 6}": nn.LayerNormConfig(
        6, epsilon=0.1, bias=False
    ),
    "BatchNorm {num_features: 3, momentum: 0.1, epsilon: 0.00001, params: 12}": (
        nn.BatchNormConfig(3)
    ),
    "GroupNorm {num_groups: 3, num_channels: 6, epsilon: 0.00001, affine: true, "
    "params: 12}": nn.GroupNormConfig(3, 6),
    "GroupNorm {num_groups: 3, num_channels: 6, epsilon: 0.00001, affine: false, "
    "epsilon_inside: true}": nn.GroupNormConfig(
        3, 6, affine=False, epsilon_inside=True
    ),
    "InstanceNorm {num_channels: 6, epsilon: 0.00001, affine: true, params: 12}": (
        nn.InstanceNormConfig(6)
    ),
    "RmsNorm {d_model: 6, epsilon: 0.00001, params: 6}": nn.RmsNormConfig(6),
    # convolutions
    "Conv1d {stride: 1, kernel_size: 5, dilation: 1, groups: 1, padding: Valid, "
    "params: 130}": nn.Conv1dConfig(5, 5, 5),
    "Conv1d {stride: 2, kernel_size: 3, dilation: 2, groups: 2, "
    "padding: Explicit(1), params: 12}": nn.Conv1dConfig(
        4,
        2,
        3,
        groups=2,
        bias=False,
        stride=2,
        dilation=2,
        padding=PaddingConfig1d.Explicit(1),
    ),
    "Conv3d {stride: [1, 1, 1], kernel_size: [5, 5, 5], dilation: [1, 1, 1], "
    "groups: 1, padding: Valid, params: 626}": nn.Conv3dConfig([5, 1], [5, 5, 5]),
    "Conv3d {stride: [2, 1, 1], kernel_size: [1, 2, 3], dilation: [1, 1, 2], "
    "groups: 2, padding: Explicit(0, 1, 2), params: 26}": nn.Conv3dConfig(
        [4, 2],
        [1, 2, 3],
        groups=2,
        stride=[2, 1, 1],
        dilation=[1, 1, 2],
        padding=PaddingConfig3d.Explicit(0, 1, 2),
    ),
    "ConvTranspose1d {channels: [5, 2], stride: 1, kernel_size: 5, dilation: 1, "
    "groups: 1, padding: 0, padding_out: 0, params: 52}": nn.ConvTranspose1dConfig(
        [5, 2], 5
    ),
    "ConvTranspose2d {channels: [5, 2], stride: [1, 1], kernel_size: [5, 5], "
    "dilation: [1, 1], groups: 1, padding: [0, 0], padding_out: [0, 0], "
    "params: 252}": nn.ConvTranspose2dConfig([5, 2], [5, 5]),
    "ConvTranspose3d {channels: [5, 2], stride: [1, 1, 1], kernel_size: [5, 5, 5], "
    "dilation: [1, 1, 1], groups: 1, padding: [0, 0, 0], padding_out: [0, 0, 0], "
    "params: 1252}": nn.ConvTranspose3dConfig([5, 2], [5, 5, 5]),
    "DeformConv2d {stride: [1, 1], kernel_size: [5, 5], dilation: [1, 1], "
    "weight_groups: 1, offset_groups: 1, padding: Valid, params: 126}": (
        nn.DeformConv2dConfig([5, 1], [5, 5])
    ),
    # pooling, resizing and unfolding
    "AvgPool1d {kernel_size: 3, stride: 1, padding: Valid, count_include_pad: true}": (
        nn.AvgPool1dConfig(3)
    ),
    "AvgPool1d {kernel_size: 3, stride: 2, padding: Explicit(1), "
    "count_include_pad: false, ceil_mode: true}": nn.AvgPool1dConfig(
        3,
        stride=2,
        padding=PaddingConfig1d.Explicit(1),
        count_include_pad=False,
        ceil_mode=True,
    ),
    "AvgPool2d {kernel_size: [3, 3], stride: [1, 1], padding: Valid, "
    "count_include_pad: true}": nn.AvgPool2dConfig([3, 3]),
    "MaxPool1d {kernel_size: 3, stride: 1, padding: Valid, dilation: 1}": (
        nn.MaxPool1dConfig(3)
    ),
    "MaxPool2d {kernel_size: [3, 3], stride: [1, 1], padding: Valid, "
    "dilation: [1, 1]}": nn.MaxPool2dConfig([3, 3]),
    "MaxPool2d {kernel_size: [3, 2], stride: [2, 1], padding: Same, "
    "dilation: [1, 1], ceil_mode: true}": nn.MaxPool2dConfig(
        [3, 2], strides=[2, 1], padding=PaddingConfig2d.Same, ceil_mode=True
    ),
    "AdaptiveAvgPool1d {output_size: 3}": nn.AdaptiveAvgPool1dConfig(3),
    "AdaptiveAvgPool3d {output_size: [3, 2, 1]}": nn.AdaptiveAvgPool3dConfig([3, 2, 1]),
    "Interpolate1d {mode: Nearest, output_size: Some(20), scale_factor: None}": (
        nn.Interpolate1dConfig().with_output_size(20)
    ),
    "Interpolate2d {mode: Nearest, output_size: Some([20, 20]), scale_factor: None}": (
        nn.Interpolate2dConfig().with_output_size([20, 20])
    ),
    "Interpolate2d {mode: Cubic, output_size: None, "
    "scale_factor: [0..2] {0: 2, 1: 2}}": nn.Interpolate2dConfig(
        scale_factor=[2.0, 2.0], mode=InterpolateMode.Cubic
    ),
    "Interpolate1d {mode: Linear, output_size: None, scale_factor: 2.5, "
    "align_corners: false}": nn.Interpolate1dConfig(
        scale_factor=2.5, mode=InterpolateMode.Linear, align_corners=False
    ),
    "Unfold4d {kernel_size: [3, 3], stride: [1, 1], dilation: [1, 1], "
    "padding: [0, 0]}": nn.Unfold4dConfig([3, 3]),
    "Fold4d {output_size: [4, 5], kernel_size: [3, 3], stride: [1, 1], "
    "dilation: [1, 1], padding: [0, 0]}": nn.Fold4dConfig([4, 5], [3, 3]),
    # attention and transformers
    "Embedding {n_embedding: 100, d_model: 10, params: 1000}": nn.EmbeddingConfig(
        100, 10
    ),
    "PositionalEncoding {d_model: 4, max_sequence_size: 5000, max_timescale: 10000}": (
        nn.PositionalEncodingConfig(4)
    ),
    "RotaryEncoding {d_model: 4, max_sequence_length: 10, theta: 10000}": (
        nn.RotaryEncodingConfig(10, 4)
    ),
    "MultiHeadAttention {d_model: 2, n_heads: 4, d_k: 0, dropout: 0.1, "
    "min_float: -10000, quiet_softmax: false, params: 24}": (
        nn.MultiHeadAttentionConfig(2, 4)
    ),
    "PositionWiseFeedForward {d_model: 2, d_ff: 4, prob: 0.1, params: 22}": (
        nn.PositionWiseFeedForwardConfig(2, 4)
    ),
    "TransformerEncoder {d_model: 2, d_ff: 4, n_heads: 2, n_layers: 3, dropout: 0.1, "
    "norm_first: false, quiet_softmax: false, params: 162}": (
        nn.TransformerEncoderConfig(2, 4, 2, 3)
    ),
    "TransformerDecoder {d_model: 2, d_ff: 4, n_heads: 2, n_layers: 3, dropout: 0.1, "
    "norm_first: false, quiet_softmax: false, params: 246}": (
        nn.TransformerDecoderConfig(2, 4, 2, 3)
    ),
}


@pytest.fixture(params=CONFIGS)
def line(request):
    return request.param


@pytest.fixture
def config(line):
    return CONFIGS[line]


def test_a_layer_prints_as_in_burn(line, config):
    assert str(made(config)) == line


def test_the_config_of_a_layer_comes_back_from_json(config):
    assert type(config).from_json(config.to_json()) == config


def test_the_record_of_a_layer_restores_it(config, tmp_path):
    layer, other, third = (made(config) for _ in range(3))
    restored = other.load_record(layer.into_record())
    assert ids(restored) == ids(layer)
    assert same_values(restored, layer)
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    layer.save_file(tmp_path / "layer", recorder)
    restored = third.load_file(tmp_path / "layer", recorder, PLAIN)
    assert ids(restored) == ids(layer)
    for new, old in zip(values(restored), values(layer), strict=True):
        assert np.allclose(new, old, rtol=1e-6)


def made(config, device=PLAIN):
    """Layers without tensors need no device."""
    takes_device = inspect.signature(config.init).parameters
    return config.init(device) if takes_device else config.init()


INPUTS = {
    nn.LinearConfig(3, 5): [(2, 4, 3)],
    nn.LinearConfig(3, 2).with_bias(False): [(3,)],
    nn.Conv2dConfig([2, 4], [3, 2]).with_groups(2): [(2, 2, 6, 5)],
    nn.Conv1dConfig(2, 4, 3).with_groups(2): [(2, 2, 6)],
    nn.Conv3dConfig([2, 4], [3, 2, 1]).with_bias(False): [(2, 2, 4, 3, 2)],
    nn.ConvTranspose1dConfig([4, 2], 3).with_groups(2): [(2, 4, 5)],
    nn.ConvTranspose2dConfig([4, 2], [3, 2]).with_stride([2, 1]): [(2, 4, 3, 4)],
    nn.ConvTranspose3dConfig([2, 2], [1, 2, 2]): [(2, 2, 2, 3, 2)],
    nn.DeformConv2dConfig([4, 2], [2, 2]).with_offset_groups(2).with_weight_groups(2): [
        *((2, 4, 4, 4), (2, 16, 3, 3), (2, 8, 3, 3))
    ],
    nn.AvgPool1dConfig(2): [(1, 2, 5)],
    nn.AvgPool2dConfig([2, 3]): [(1, 2, 5, 4)],
    nn.MaxPool1dConfig(2): [(1, 2, 5)],
    nn.MaxPool2dConfig([2, 2]): [(1, 2, 5, 4)],
    nn.AdaptiveAvgPool1dConfig(2): [(1, 2, 5)],
    nn.Interpolate1dConfig().with_output_size(8): [(1, 2, 5)],
    nn.Unfold4dConfig([2, 2]): [(1, 2, 5, 4)],
}


@pytest.mark.parametrize("config", INPUTS, ids=str)
def test_gradients_reach_every_parameter_and_input(config):
    layer = made(config, AD)
    inputs = [Tensor.random(x, device=AD).require_grad() for x in INPUTS[config]]
    out = layer.forward(*inputs)
    grads = (out * out).sum().backward()
    for name, param in layer.named_params():
        grad = param.val().grad(grads)
        assert grad.dims() == param.shape, name
        assert np.any(np.asarray(grad) != 0), name
    for tensor in inputs:
        assert np.any(np.asarray(tensor.grad(grads)) != 0)


# What does not fit


@cases(
    "config shapes",
    (nn.LinearConfig(3, 2), [(2, 4)]),
    (nn.Conv2dConfig([1, 1], [3, 3]), [(1, 5, 5)]),
    (nn.Conv2dConfig([1, 1], [3, 3]).with_padding(PaddingConfig2d.Same), [(5,)]),
    (nn.Conv2dConfig([2, 1], [3, 3]), [(1, 1, 5, 5)]),
    (nn.Conv2dConfig([1, 1], [7, 7]), [(1, 1, 5, 5)]),
    (nn.AdaptiveAvgPool2dConfig([2, 2]), [(5, 5)]),
    (nn.Conv1dConfig(1, 1, 3), [(1, 5, 5, 1)]),
    (nn.Conv1dConfig(1, 1, 3).with_padding(PaddingConfig1d.Same), [(5,)]),
    (nn.Conv1dConfig(2, 1, 3), [(1, 1, 5)]),
    (nn.Conv3dConfig([1, 1], [7, 1, 1]), [(1, 1, 5, 5, 5)]),
    (nn.ConvTranspose1dConfig([2, 1], 3), [(1, 1, 5)]),
    (nn.DeformConv2dConfig([1, 1], [3, 3]), [(1, 1, 5, 5), (1, 9, 3, 3)]),
    (nn.AvgPool1dConfig(2), [(2, 3)]),
    (nn.AvgPool2dConfig([2, 3]), [(2, 3)]),
    (nn.MaxPool1dConfig(2), [(2, 3)]),
    (nn.MaxPool2dConfig([2, 2]), [(2, 3)]),
    (nn.AdaptiveAvgPool1dConfig(2), [(2, 3)]),
    (nn.Interpolate1dConfig().with_output_size(8), [(2, 3)]),
    (nn.Unfold4dConfig([2, 2]), [(2, 3)]),
    ids=repr,
)
def test_an_input_that_does_not_fit_is_explained_with_the_layer(config, shapes):
    layer = made(config)
    with pytest.raises(ShapeError) as caught:
        layer.forward(*[Tensor.ones(shape, PLAIN) for shape in shapes])
    assert str(caught.value).startswith(f"{type(layer).__name__}: ")
    assert f"{list(shapes[0])}" in str(caught.value)
