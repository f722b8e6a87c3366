"""What the book shows and its tables list, where no other test runs it: as it stands.

Every layer here is compared with its formula, written with NumPy's loops and sums.
"""

import math
import tomllib
from pathlib import Path

import numpy as np
import pytest

from burnbook import nn
from burnbook.module import DisplaySettings, Module
from burnbook.prelude import Autodiff, Distribution, Numpy, Tensor
from burnbook.record import (
    CompactRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder as NamedMpk,
)

ROOT = Path(__file__).resolve().parents[2]
PLAIN = Numpy(compiled=False)
BACKENDS = [Numpy(), PLAIN, Numpy(float="f64"), Autodiff(Numpy())]


def array(*shape):
    """Numbers between -1 and 1, the same every time."""
    return np.random.default_rng(3).uniform(-1, 1, shape).astype(np.float32)


def forward(layer, x):
    tensor = Tensor[x.ndim].from_numpy(x, PLAIN)
    return np.asarray(layer.forward(tensor))


# Getting started and the model


@pytest.mark.parametrize("device", BACKENDS, ids=str)
def test_the_first_program_runs_on_every_backend(device):
    tensor_1 = Tensor[2].from_data([[2.0, 3.0], [4.0, 5.0]], device)
    tensor_2 = Tensor[2].ones_like(tensor_1)
    total = tensor_1 + tensor_2
    assert total.to_data().to_list() == [[3.0, 4.0], [5.0, 6.0]]
    assert total.device() is device
    assert total.to_data().dtype == device.float


def test_the_backends_to_install_are_extras_of_the_project():
    text = (ROOT / "notebooks/src/02_getting_started.py").read_text("utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for extra in ("lab", "cuda12", "cuda13"):
        assert extra in project["optional-dependencies"]
        assert extra in text


# Module


class PositionWiseFeedForward(Module):
    linear_inner: nn.Linear
    linear_outer: nn.Linear
    dropout: nn.Dropout
    gelu: nn.Gelu

    def forward(self, x):
        x = self.gelu.forward(self.linear_inner.forward(x))
        return self.linear_outer.forward(self.dropout.forward(x))


class Shown(PositionWiseFeedForward):
    def custom_settings(self):
        return (
            DisplaySettings()
            .with_show_all_attributes(False)
            .with_new_line_after_attribute(True)
            .with_show_num_parameters(True)
            .with_indentation_size(2)
            .with_show_param_id(False)
        )

    def custom_content(self, content):
        content = content.add("linear_inner", self.linear_inner)
        content = content.add("linear_outer", self.linear_outer)
        return content.add("anything", "anything_else")


def block(kind, device=PLAIN):
    return kind(
        linear_inner=nn.LinearConfig(4, 8).init(device),
        linear_outer=nn.LinearConfig(8, 4).init(device),
        dropout=nn.DropoutConfig(0.1).init(),
        gelu=nn.Gelu(),
    )


def test_the_feed_forward_of_the_book_has_four_fields_and_runs():
    made, x = block(PositionWiseFeedForward), array(2, 3, 4)
    first, second = (
        [np.asarray(part.val()) for part in (layer.weight, layer.bias)]
        for layer in (made.linear_inner, made.linear_outer)
    )
    hidden = x @ first[0] + first[1]
    erf = np.vectorize(math.erf)
    bent = hidden * (1 + erf(hidden / np.sqrt(2))) / 2
    right = bent @ second[0] + second[1]
    assert np.allclose(forward(made, x), right, atol=1e-5)
    assert str(made) == (
        "PositionWiseFeedForward {\n"
        "  linear_inner: Linear {d_input: 4, d_output: 8, bias: true, params: 40}\n"
        "  linear_outer: Linear {d_input: 8, d_output: 4, bias: true, params: 36}\n"
        "  dropout: Dropout {prob: 0.1}\n"
        "  gelu: Gelu\n"
        "  params: 76\n"
        "}"
    )


def test_the_display_of_ones_own_leaves_out_what_it_does_not_add():
    linear = "Linear {\n    d_input: %d\n    d_output: %d\n    bias: true\n"
    assert str(block(Shown)) == (
        "Shown {\n"
        f"  linear_inner: {linear % (4, 8)}    params: 40\n  }}\n"
        f"  linear_outer: {linear % (8, 4)}    params: 36\n  }}\n"
        "  anything: anything_else\n"
        "  params: 76\n"
        "}"
    )


@pytest.mark.parametrize(
    ("recorder", "exact"),
    [(NamedMpk(FullPrecisionSettings), True), (CompactRecorder(), False)],
    ids=["full", "compact"],
)
def test_a_module_is_saved_to_a_file_and_loaded_from_it(tmp_path, recorder, exact):
    one, other = block(PositionWiseFeedForward), block(PositionWiseFeedForward)
    one.save_file(tmp_path / "block", recorder)
    assert (tmp_path / "block.mpk").stat().st_size > 100
    loaded = other.load_file(tmp_path / "block", recorder, PLAIN)
    for layer in ("linear_inner", "linear_outer"):
        saved, found, fresh = (
            np.asarray(getattr(each, layer).weight.val())
            for each in (one, loaded, other)
        )
        assert np.array_equal(saved, found) == exact
        assert np.allclose(saved, found, atol=1e-3)
        assert not np.allclose(saved, fresh, atol=1e-3)


# Built-in modules


def test_group_norm_has_mean_0_and_variance_1_in_every_group():
    x = array(2, 6, 5)
    groups = x.reshape(2, 3, 2 * 5)
    mean, var = groups.mean(-1, keepdims=True), groups.var(-1, keepdims=True)
    layer = nn.GroupNormConfig(3, 6).init(PLAIN)
    found, right = forward(layer, x), (groups - mean) / np.sqrt(var + 1e-5)
    assert np.allclose(found, right.reshape(x.shape), atol=1e-4)


def test_rms_norm_divides_by_the_root_of_the_mean_square():
    x = array(2, 3, 4)
    right = x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-5)
    assert np.allclose(forward(nn.RmsNormConfig(4).init(PLAIN), x), right, atol=1e-4)


def test_prelu_multiplies_what_is_below_zero():
    x = array(4, 3)
    layer = nn.PReluConfig().with_alpha(0.3).init(PLAIN)
    assert np.allclose(forward(layer, x), np.where(x > 0, x, 0.3 * x), atol=1e-6)


def test_swi_glu_lets_one_layer_through_by_the_swish_of_another():
    layer, x = nn.SwiGluConfig(4, 3).init(PLAIN), array(2, 4)
    gate, value = (
        x @ np.asarray(each.weight.val())
        for each in (layer.linear_inner, layer.linear_outer)
    )
    right = gate / (1 + np.exp(-gate)) * value
    assert np.allclose(forward(layer, x), right, atol=1e-5)


def test_interpolate_1d_repeats_the_nearest():
    x = array(2, 3, 4)
    layer = nn.Interpolate1dConfig().with_output_size(8).init()
    assert np.array_equal(forward(layer, x), np.repeat(x, 2, axis=2))


def test_interpolate_2d_goes_straight_from_pixel_to_pixel():
    x = array(1, 2, 3, 4)
    config = nn.Interpolate2dConfig().with_output_size((5, 7))
    layer = config.with_mode(nn.InterpolateMode.Linear).init()
    rows = (x[:, :, :-1] + x[:, :, 1:]) / 2
    tall = np.zeros((1, 2, 5, 4), dtype=np.float32)
    tall[:, :, ::2], tall[:, :, 1::2] = x, rows
    right = np.zeros((1, 2, 5, 7), dtype=np.float32)
    right[..., ::2], right[..., 1::2] = tall, (tall[..., :-1] + tall[..., 1:]) / 2
    assert np.allclose(forward(layer, x), right, atol=1e-5)


def test_adaptive_avg_pool_1d_gives_the_means_of_equal_parts():
    x = array(2, 3, 8)
    layer = nn.AdaptiveAvgPool1dConfig(4).init()
    right = x.reshape(2, 3, 4, 2).mean(-1)
    assert np.allclose(forward(layer, x), right, atol=1e-6)


@pytest.mark.parametrize(
    ("config", "reduce"), [(nn.AvgPool1dConfig, np.mean), (nn.MaxPool1dConfig, np.max)]
)
def test_pools_along_one_dim_reduce_every_window(config, reduce):
    x = array(2, 3, 9)
    layer = config(3).with_stride(2).init()
    right = np.stack([reduce(x[..., i : i + 3], axis=-1) for i in (0, 2, 4, 6)], -1)
    assert np.allclose(forward(layer, x), right, atol=1e-6)


def test_avg_pool_2d_gives_the_mean_of_every_window():
    x = array(2, 3, 4, 6)
    layer = nn.AvgPool2dConfig((2, 3)).with_strides((2, 3)).init()
    right = x.reshape(2, 3, 2, 2, 2, 3).mean((3, 5))
    assert np.allclose(forward(layer, x), right, atol=1e-6)


# Tensor


def test_powi_takes_whole_exponents():
    x = Tensor[1].from_floats([2.0, -3.0], PLAIN)
    assert x.powi_scalar(3).to_data().to_list() == [8.0, -27.0]


# Backend and autodiff, the sections that hold no table


def test_gradients_are_linked_to_parameters_before_an_optimizer_steps():
    from burnbook.optim import GradientsParams, SgdConfig

    device = Autodiff(PLAIN)
    layer = nn.LinearConfig(2, 1).init(device)
    x = Tensor[2].random([3, 2], Distribution.Default, device)
    grads = GradientsParams.from_grads(layer.forward(x).sum().backward(), layer)
    assert {number for number, _ in grads.items()} == {layer.weight.id, layer.bias.id}
    stepped = SgdConfig().init().step(0.5, layer, grads)
    moved = np.asarray(layer.bias.val()) - np.asarray(stepped.bias.val())
    assert np.allclose(moved, 0.5 * 3)
