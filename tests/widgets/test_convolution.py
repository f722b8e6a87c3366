"""The convolution view without a browser: windows, sums, controls, still form."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("anywidget", reason="the widgets need anywidget")

from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, DimError, ShapeError
from burnbook.nn import Conv2dConfig, PaddingConfig2d
from burnbook.tensor import Tensor
from burnbook_widgets import ConvolutionView
from burnbook_widgets.module.weighted_sum import products
from tests.support.widget_state import state_size

RANDOM = np.random.default_rng(7)
PICTURE = RANDOM.standard_normal((3, 9, 8)).astype(np.float32)
SOBEL = [[1, 0, -1], [2, 0, -2], [1, 0, -1]]


def by_loops(view, channel):
    """The output from its definition, cell by cell."""
    (s, t), (p, q), (d, e) = view.stride, view.padding, view.dilation
    grown = np.pad(view.picture, ((0, 0), (p, p), (q, q)))
    weight = view.weight[channel]
    group = channel // (len(view.weight) // view.groups) * weight.shape[0]
    out = np.zeros(view.output.shape)
    for i, j in np.ndindex(out.shape):
        for c, k, m in np.ndindex(weight.shape):
            seen = grown[group + c, i * s + k * d, j * t + m * e]
            out[i, j] += seen * weight[c, k, m]
    return out + (0 if view.bias is None else view.bias[channel])


@pytest.mark.parametrize(
    ("stride", "padding", "dilation"), [(1, 0, 1), (2, 1, 1), ((1, 3), (2, 0), (3, 2))]
)
def test_output_is_the_sum_over_each_window(stride, padding, dilation):
    kernel = RANDOM.standard_normal((2, 3, 3, 2))
    view = ConvolutionView(PICTURE, kernel, [0.5, -1.0], stride, padding, dilation)
    view.out_channel = 1
    np.testing.assert_allclose(view.output, by_loops(view, 1), rtol=1e-4, atol=1e-4)
    for place in np.ndindex(view.output.shape):
        view.at = place
        made = (view.window * view.weight[1]).sum() - 1.0
        assert made == pytest.approx(view.output[place], abs=1e-4)


@pytest.mark.parametrize("padding", [PaddingConfig2d.Same, PaddingConfig2d.Valid])
def test_a_layer_brings_its_numbers_and_its_groups(padding):
    config = Conv2dConfig([4, 6], [3, 5]).with_groups(2).with_padding(padding)
    layer = config.with_stride((1, 2)).init(Numpy())
    picture = Tensor.random([1, 4, 9, 8], device=Numpy())
    view = ConvolutionView(picture, layer)
    expected = np.asarray(layer.forward(picture))[0]
    for channel in range(6):
        view.out_channel = channel
        np.testing.assert_allclose(view.output, expected[channel], rtol=1e-5, atol=1e-5)
        slow = by_loops(view, channel)
        np.testing.assert_allclose(view.output, slow, rtol=1e-4, atol=1e-4)


def test_sum_is_written_out_with_all_that_is_added():
    view = ConvolutionView([[1, 2], [3, -4]], [[0.5]], bias=[0.25])
    view.at = (1, 1)
    assert view.sum == "−4·0.5 + 0.25 (bias) = −1.75"
    view = ConvolutionView(np.ones((3, 2, 2)), np.full((1, 3, 1, 1), -2.0))
    assert view.sum == "1·(−2) + (−4) (other channels) = −6"
    view = ConvolutionView(np.ones((2, 2, 2)), np.ones((2, 1, 1)))
    assert view.sum == "1·1 + 1 (other channel) = 2"


def test_long_sums_name_the_largest_products():
    window, weight = np.arange(25.0).reshape(5, 5), np.ones((5, 5))
    text = products(window, weight)
    assert text.count("·") == 12
    assert text.startswith("13·1 + 14·1")
    assert text.endswith("+ 78 (13 other products)")
    zeros = products(np.zeros((5, 5)), weight)
    assert zeros == "0 (25 other products)"


def test_the_window_over_the_padding_sees_zeros():
    view = ConvolutionView(np.ones((3, 3)), np.ones((3, 3)), padding=1)
    assert view.window[0].tolist() == [[0, 0, 0], [0, 1, 1], [0, 1, 1]]
    assert view.output[0, 0] == 4
    view.at = (-1, -1)
    assert view.at == (2, 2)
    assert view.position == 8
    view.position = 4
    assert view.at == (1, 1)
    assert view.output[view.at] == 9


def test_controls_and_twins_stay_together():
    view = ConvolutionView(PICTURE, RANDOM.standard_normal((2, 3, 3, 3)))
    view.sliders["stride"].value = 2
    assert view.stride == (2, 2)
    assert view.output.shape == (4, 3)
    view.sliders["padding"].value = 2
    view.sliders["dilation"].value = 3
    assert (view.padding, view.dilation) == ((2, 2), (3, 3))
    view.choices["out_channel"].value = 1
    view.choices["in_channel"].value = 2
    assert (view.out_channel, view.in_channel) == (1, 2)
    view.stride = 1
    assert view.sliders["stride"].value == 1
    assert view.sliders["position"].max == view.output.size - 1
    view.sliders["position"].value = 5
    assert view.at == divmod(5, view.output.shape[1])
    view.panel.at = [1, 2]
    assert view.at == (1, 2)
    assert view.sliders["position"].value == view.output.shape[1] + 2
    assert view.panel.reading["at"] == [1, 2]
    assert view.panel.fault == ""


def test_what_leaves_no_output_changes_nothing():
    view = ConvolutionView(np.ones((5, 5)), SOBEL)
    view.sliders["dilation"].value = 3
    assert view.panel.fault.startswith("ConvolutionView: a window of 7 rows does not")
    assert view.dilation == (1, 1)
    assert view.sliders["dilation"].value == 1
    view.sliders["padding"].value = 1
    assert view.panel.fault == ""
    with pytest.raises(ShapeError, match="a window of 9 rows does not fit into 7"):
        view.dilation = 4
    view.at = (4, 4)
    view.stride = 4
    assert view.at == (1, 1)  # inside the smaller output
    view.close()


def test_what_cannot_be_shown_is_explained():
    small, large = np.ones((4, 4)), np.ones((2049, 3))
    for kind, told, *given in (
        (ShapeError, "is not one picture of at most 2048 × 2048", large, SOBEL),
        (ShapeError, "is not a kernel", np.ones((20, 20)), np.ones((12, 1))),
        (ShapeError, "for 1 channels, the picture has 3", PICTURE, SOBEL),
        (ShapeError, "2 biases for 1 filters", small, SOBEL, [1, 2]),
        (ConfigError, "stride is 0", small, SOBEL, None, 0),
    ):
        with pytest.raises(kind, match=told):
            ConvolutionView(*given)
    view = ConvolutionView(small, SOBEL)
    with pytest.raises(DimError, match="there is no row 2: there are 2"):
        view.at = (2, 0)


def test_the_largest_state_is_small_and_close_frees_everything(same_widgets):
    before = state_size()
    picture, kernel = RANDOM.random((3, 64, 64)), RANDOM.random((8, 3, 11, 11))
    view = ConvolutionView(picture, kernel, padding=11)
    assert state_size() - before < 100_000
    view.close()
    view.at = (3, 3)  # a closed view still answers
    assert "= " in view.sum


def test_the_still_form_shows_window_and_sum():
    view = ConvolutionView(np.arange(25).reshape(5, 5), SOBEL, padding=1)
    view.at = (2, 3)
    html = view.still()
    assert html.count("<svg") == 3
    assert "output[2, 3]" in html
    assert view.sum in html
    assert "rows: ⌊(5 + 2·1 − 1·(3 − 1) − 1) / 1⌋ + 1 = 5" in html
    assert "<script" not in html
    assert view.still() == html
    view.at = (0, 0)
    assert view.still() != html
    text = "ConvolutionView([5, 5] with [3, 3] makes [5, 5]; at [0, 0])"
    assert repr(view) == text


def test_static_pages_get_no_widget(static):
    view = ConvolutionView(np.ones((5, 5)), SOBEL)
    view.stride = 2
    view.at = (1, 1)
    assert set(view.bundle()) == {"text/html", "text/plain"}


# ── pictures beyond 64 × 64 (N25) ───────────────────────────────────────────


def sent(view):
    """The input and the output that the page has."""
    part, kernel = view.panel.frame["part"], view.panel.frame["kernel"]
    shapes = [part["input"][1], kernel, part["output"][1]]
    ends = np.cumsum([rows * columns for rows, columns in shapes])
    found = np.split(np.frombuffer(view.panel.data, "<f4"), ends[:-1])
    arrays = [array.reshape(s) for array, s in zip(found, shapes, strict=True)]
    return arrays[0], arrays[2]


@pytest.mark.parametrize("options", [{}, {"padding": 3}, {"stride": 2, "dilation": 4}])
def test_a_large_picture_is_seen_in_parts_that_follow_the_window(options):
    picture = RANDOM.random((300, 200)).astype(np.float32)
    view = ConvolutionView(picture, SOBEL, **options)
    rows, columns = view.output.shape
    for at in ((0, 0), (rows - 1, columns - 1), (rows // 2, 3), (rows // 2, 4)):
        view.at = at
        part = view.panel.frame["part"]
        (top, left), (down, across) = part["output"]
        assert top <= at[0] < top + down
        assert left <= at[1] < left + across
        corner, size = part["grown"]
        for dim in (0, 1):
            first = at[dim] * view.stride[dim]
            span = 2 * view.dilation[dim] + 1
            assert corner[dim] <= first
            assert first + span <= corner[dim] + size[dim]
        shown, made = sent(view)
        assert max(*shown.shape, *made.shape) <= 72
        (y, x), _ = part["input"]
        inside = picture[y : y + shown.shape[0], x : x + shown.shape[1]]
        assert np.array_equal(shown, inside)
        there = view.output[top : top + down, left : left + across]
        assert np.allclose(made, there)
        assert "a part" in view.still()
    before = view.panel.frame["part"]["grown"]
    view.at = (rows // 2, 5)  # a step inside of what is seen moves nothing
    assert view.panel.frame["part"]["grown"] == before


def test_a_small_picture_is_shown_whole():
    view = ConvolutionView(RANDOM.random((64, 64)), SOBEL, padding=1)
    part = view.panel.frame["part"]
    assert part["grown"] == [[0, 0], [66, 66]]
    assert part["input"] == part["output"] == [[0, 0], [64, 64]]
    assert "a part" not in view.still()
