"""The text that modules print, as in the book."""

import pytest

from burnbook import nn
from burnbook.core.errors import BurnbookError
from burnbook.module import Content, DisplaySettings, Module
from burnbook.nn import Linear, LinearConfig
from tests.support.modules import PLAIN, block, guide, mixed, net

# The text

BOOK = """\
Model {
  conv1: Conv2d {stride: [1, 1], kernel_size: [3, 3], dilation: [1, 1], groups: 1, padding: Valid, params: 80}
  conv2: Conv2d {stride: [1, 1], kernel_size: [3, 3], dilation: [1, 1], groups: 1, padding: Valid, params: 1168}
  pool: AdaptiveAvgPool2d {output_size: [8, 8]}
  dropout: Dropout {prob: 0.5}
  linear1: Linear {d_input: 1024, d_output: 512, bias: true, params: 524800}
  linear2: Linear {d_input: 512, d_output: 10, bias: true, params: 5130}
  activation: Relu
  params: 531178
}"""  # noqa: E501 - the book's lines


def test_the_guide_model_prints_as_in_the_book():
    model = guide(PLAIN)
    assert str(model) == BOOK
    assert repr(model) == BOOK
    assert model.num_params() == 531178


def test_printing_draws_no_parameter():
    model = guide(PLAIN)
    str(model)
    assert not any(param.is_initialized for _, param in model.named_params())


def test_nested_modules_and_lists_print_as_blocks():
    assert str(net(tied=False)) == (
        "Net {\n"
        "  gate: Gate {\n"
        "    input_transform: Linear {d_input: 2, d_output: 3, bias: true, params: 9}\n"
        "    hidden_transform: "
        "Linear {d_input: 3, d_output: 3, bias: true, params: 12}\n"
        "    params: 21\n"
        "  }\n"
        "  layers: Vec<0..2> {\n"
        "    0: Linear {d_input: 3, d_output: 3, bias: false, params: 9}\n"
        "    1: Linear {d_input: 3, d_output: 3, bias: false, params: 9}\n"
        "  }\n"
        "  params: 39\n"
        "}"
    )


def test_every_kind_of_field_prints_as_in_burn():
    settings = DisplaySettings().with_show_param_id(True).with_indentation_size(1)
    assert mixed().format(settings) == (
        "Mixed {\n"
        " factor: ParamTensor "
        "{rank: 2, shape: [2, 3], kind: float, id: 0400000000000}\n"
        " mask: None\n"
        " constant: Tensor {rank: 1, shape: [3]}\n"
        " ratio: 0.00001\n"
        " name: text\n"
        " flag: true\n"
        " pair: [0..2] {\n"
        "  0: 1\n"
        "  1: 2\n"
        " }\n"
        " odd: (L0, L1) {\n"
        "  0: 1\n"
        "  1: a\n"
        " }\n"
        " empty: Vec<0..0>\n"
        " nothing: None\n"
        " params: 6\n"
        "}"
    )


def test_settings_of_a_parent_win():
    gate = net().gate
    one_line = DisplaySettings().with_new_line_after_attribute(False)
    assert gate.format(one_line.with_show_num_parameters(False)) == (
        "Gate {input_transform: Linear {d_input: 2, d_output: 3, bias: true}, "
        "hidden_transform: Linear {d_input: 3, d_output: 3, bias: true}}"
    )
    many = DisplaySettings().with_new_line_after_attribute(True)
    assert LinearConfig(1, 2).init(PLAIN).format(many) == (
        "Linear {\n  d_input: 1\n  d_output: 2\n  bias: true\n  params: 4\n}"
    )


def test_show_all_attributes_ignores_what_the_module_prefers():
    settings = DisplaySettings().with_show_all_attributes(True)
    linear = LinearConfig(1, 2).with_bias(False).init(PLAIN)
    assert linear.format(settings) == (
        "Linear {weight: ParamTensor {rank: 2, shape: [1, 2], kind: float}, "
        "bias: None, params: 2}"
    )


class PositionWiseFeedForward(Module):
    """The book's example of a custom display."""

    linear_inner: Linear
    linear_outer: Linear

    def custom_settings(self) -> DisplaySettings:
        return (
            DisplaySettings()
            .with_show_all_attributes(False)
            .with_new_line_after_attribute(True)
            .with_show_num_parameters(True)
            .with_indentation_size(2)
            .with_show_param_id(False)
            .optional()
        )

    def custom_content(self, content: Content) -> Content:
        return (
            content.add("linear_inner", self.linear_inner)
            .add("linear_outer", self.linear_outer)
            .add("anything", "anything_else")
            .optional()
        )


def test_the_custom_display_of_the_book():
    block = PositionWiseFeedForward(
        LinearConfig(2, 4).init(PLAIN), LinearConfig(4, 2).init(PLAIN)
    )
    assert str(block) == (
        "PositionWiseFeedForward {\n"
        "  linear_inner: Linear {\n"
        "    d_input: 2\n    d_output: 4\n    bias: true\n    params: 12\n  }\n"
        "  linear_outer: Linear {\n"
        "    d_input: 4\n    d_output: 2\n    bias: true\n    params: 10\n  }\n"
        "  anything: anything_else\n"
        "  params: 22\n"
        "}"
    )


class Window(Module):
    """A layer that names what it shows."""

    size: tuple[int, int]
    lambda_: float
    ceil: bool = False
    shown = (
        "size",
        "lambda_",
        ("area", lambda window: window.size[0] * window.size[1]),
    )
    shown_unless = (("ceil", False),)


def test_a_class_names_the_fields_that_it_shows():
    assert str(Window((2, 3), 0.5)) == "Window {size: [2, 3], lambda: 0.5, area: 6}"
    text = "Window {size: [2, 3], lambda: 0.5, area: 6, ceil: true}"
    assert str(Window((2, 3), 0.5, True)) == text
    every = DisplaySettings().with_show_all_attributes(True)
    assert "ceil: false" in Window((2, 3), 0.5).format(every)


class Picture(Module):
    """A module with a field of that name."""

    shown: bool = True


def test_a_field_may_be_called_shown():
    assert str(Picture()) == "Picture {\n  shown: true\n}"


class Single(Module):
    width: int

    def custom_content(self, content: Content) -> Content:
        return content.add_single(self.width)


class Renamed(Module):
    width: int

    def custom_content(self, content: Content) -> Content:
        return content.set_top_level_type("Other").add("w", self.width)


def test_single_content_and_another_name():
    assert str(Single(3)) == "3"
    assert str(Renamed(3)) == "Other {\n  w: 3\n}"
    content = Content(DisplaySettings()).add("a", 1)
    with pytest.raises(BurnbookError, match="do not mix"):
        content.add_single(2)


def test_a_union_of_modules_prints_as_an_enum():
    line = "Conv2d {stride: [1, 1], kernel_size: [1, 1], dilation: [1, 1], groups: 1, "
    assert str(block(dws=False)) == (
        "Block {\n  conv: Conv2d {\n"
        f"    _0: {line}padding: Valid, params: 4}}\n"
        "    params: 4\n  }\n  norm: None\n  params: 4\n}"
    )


def test_what_is_in_an_option_is_indented_once_more():
    class Outer(Module):
        one: Picture | None
        other: Picture | None

    text = str(Outer(Picture(), None))
    assert text == (
        "Outer {\n  one: Picture {\n      shown: true\n    }\n  other: None\n}"
    )


def test_fields_of_newer_burn_are_shown_where_they_are_set():
    every = DisplaySettings().with_show_all_attributes(True)
    usual = nn.GruConfig(1, 2, False).init(PLAIN).format(every)
    other = nn.GruConfig(1, 2, False).with_reverse(True).init(PLAIN).format(every)
    assert "reverse" not in usual
    assert "reverse: true" in other
    assert str(nn.Gelu().format(every)) == "Gelu"
