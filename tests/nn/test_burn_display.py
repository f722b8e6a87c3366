"""What layers print, attribute by attribute: the texts are Burn 0.15's."""

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.module import DisplaySettings

ALL = DisplaySettings().with_show_all_attributes(True)
LINES = DisplaySettings().with_new_line_after_attribute(True).with_indentation_size(4)
DEVICE = Numpy()


def test_the_bias_of_a_huber_loss_is_single():
    made = nn.HuberLossConfig(0.05).init()
    assert str(made) == "HuberLoss {delta: 0.05, lin_bias: 0.0012500001}"
    made = nn.HuberLossConfig(0.7).init()
    assert str(made) == "HuberLoss {delta: 0.7, lin_bias: 0.24499999}"


def test_all_attributes_of_a_transposed_convolution_end_with_channels():
    made = nn.ConvTranspose1dConfig([5, 4], 1).init(DEVICE)
    assert made.format(ALL).endswith(
        "stride: 1, kernel_size: 1, dilation: 1, groups: 1, padding: 0, "
        "padding_out: 0, channels: [0..2] {0: 5, 1: 4}, params: 24}"
    )
    assert str(made).startswith("ConvTranspose1d {channels: [5, 4], stride: 1, ")


def test_all_attributes_of_a_pool_begin_with_the_stride():
    told = nn.AvgPool1dConfig(5).init().format(ALL)
    assert told == (
        "AvgPool1d {stride: 1, kernel_size: 5, padding: Valid, count_include_pad: true}"
    )
    told = nn.MaxPool1dConfig(5).init().format(ALL)
    assert told == "MaxPool1d {stride: 1, kernel_size: 5, padding: Valid, dilation: 1}"


def test_a_scale_factor_is_indented_as_an_option():
    made = nn.Interpolate2dConfig().with_scale_factor((0.5, 1.5)).init()
    assert made.format(LINES) == (
        "Interpolate2d {\n    mode: Nearest\n    output_size: None\n"
        "    scale_factor: [0..2] {\n            0: 0.5\n            1: 1.5\n"
        "        }\n}"
    )
