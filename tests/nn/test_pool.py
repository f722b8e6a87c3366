"""Pooling, resizing and unfolding layers: what they compute, refuse, and print."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.nn import InterpolateMode, PaddingConfig1d
from burnbook.tensor import Tensor
from burnbook.tensor.module import max_pool2d, max_pool2d_with_indices

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)


def test_what_these_configs_are_made_of_is_in_their_json():
    config = nn.Interpolate1dConfig().with_scale_factor(2.0)
    assert '"mode": "Nearest"' in config.to_json()
    assert '"output_size": null' in config.to_json()


def image(*shape, device=PLAIN):
    count = int(np.prod(shape))
    return Tensor.from_numpy(np.arange(1.0, count + 1).reshape(shape), device)


def test_max_pooling_takes_the_largest_of_every_window():
    out = nn.MaxPool1dConfig(2).init().forward(image(1, 1, 4))
    assert np.array_equal(out, [[[2.0, 3.0, 4.0]]])
    half = nn.MaxPool2dConfig([2, 2]).with_strides([2, 2]).init()
    assert np.array_equal(
        half.forward(image(1, 1, 4, 4)), [[[[6.0, 8.0], [14.0, 16.0]]]]
    )
    wide = nn.MaxPool1dConfig(2).with_dilation(2).init().forward(image(1, 1, 4))
    assert np.array_equal(wide, [[[3.0, 4.0]]])


def test_average_pooling_counts_the_padding_or_not():
    padded = nn.AvgPool1dConfig(3).with_padding(PaddingConfig1d.Same)
    x = image(1, 1, 3)
    assert np.allclose(padded.init().forward(x), [[[1.0, 2.0, 5 / 3]]])
    inside = padded.with_count_include_pad(False).init()
    assert np.allclose(inside.forward(x), [[[1.5, 2.0, 2.5]]])
    plane = nn.AvgPool2dConfig([2, 2]).with_strides([1, 2]).init()
    assert np.allclose(plane.forward(image(1, 1, 3, 2)), [[[[2.5], [4.5]]]])


def test_pools_step_by_one_unless_told_otherwise():
    assert nn.MaxPool2dConfig([3, 3]).init().stride == (1, 1)
    assert nn.AvgPool1dConfig(3).init().stride == 1


def test_ceil_mode_keeps_the_last_window():
    config = nn.MaxPool1dConfig(2).with_stride(2)
    assert config.init().forward(image(1, 1, 5)).dims() == (1, 1, 2)
    last = config.with_ceil_mode(True).init().forward(image(1, 1, 5))
    assert np.array_equal(last, [[[2.0, 4.0, 5.0]]])


def test_adaptive_pooling_covers_the_input_evenly():
    out = nn.AdaptiveAvgPool1dConfig(2).init().forward(image(1, 1, 5))
    assert np.allclose(out, [[[2.0, 4.0]]])
    volume = nn.AdaptiveAvgPool3dConfig([1, 1, 2]).init().forward(image(1, 1, 2, 2, 2))
    assert np.allclose(volume, [[[[[4.0, 5.0]]]]])


@pytest.mark.parametrize("mode", InterpolateMode.variants)
def test_resizing_to_the_same_size_changes_nothing(mode):
    config = nn.Interpolate2dConfig().with_mode(getattr(InterpolateMode, mode))
    x = image(2, 2, 4, 3)
    same = config.with_scale_factor([1.0, 1.0]).init()
    assert np.allclose(same.forward(x), x, atol=1e-12)
    assert config.with_output_size([7, 2]).init().forward(x).dims() == (2, 2, 7, 2)
    line = nn.Interpolate1dConfig().with_mode(getattr(InterpolateMode, mode))
    assert line.with_scale_factor(2.5).init().forward(image(1, 1, 3)).dims()[2] == 7


def test_linear_corners_meet_or_edges_do():
    linear = nn.Interpolate1dConfig().with_mode(InterpolateMode.Linear)
    corners = linear.with_output_size(5).init().forward(image(1, 1, 3))
    assert np.allclose(corners, [[[1.0, 1.5, 2.0, 2.5, 3.0]]])
    edges = linear.with_output_size(6).with_align_corners(False).init()
    wanted = [[[1.0, 1.25, 1.75, 2.25, 2.75, 3.0]]]
    assert np.allclose(edges.forward(image(1, 1, 3)), wanted)


def test_fold_sums_what_unfold_laid_out():
    columns = nn.Unfold4dConfig([2, 2]).init().forward(image(1, 2, 3, 3))
    assert columns.dims() == (1, 8, 4)
    assert np.array_equal(np.asarray(columns)[0, 0], [1.0, 2.0, 4.0, 5.0])
    folded = np.asarray(nn.Fold4dConfig([3, 3], [2, 2]).init().forward(columns))
    times = np.array([[1, 2, 1], [2, 4, 2], [1, 2, 1]])
    assert np.array_equal(folded, np.asarray(image(1, 2, 3, 3)) * times)


def by_hand(x, kernel, stride, pad, reduce):
    """Pool a line window by window, of the places that lie on it."""
    stops = (len(x) + 2 * pad - kernel) // stride + 1
    starts = [i * stride - pad for i in range(stops)]
    return [reduce(x[max(s, 0) : max(s + kernel, 0)]) for s in starts]


def known(reduce, nothing):
    return lambda part: reduce(part) if len(part) else nothing


@pytest.mark.parametrize("device", [PLAIN, Numpy(compiled=False), Numpy()])
@pytest.mark.parametrize(("kernel", "stride"), [(3, 2), (2, 3), (4, 2)])
def test_same_padding_with_strides_goes_beyond_half_a_window(kernel, stride, device):
    """As in Burn, windows over nothing but padding give −∞, 0, or NaN (not counted)."""
    x = np.array([3.0, -1.0, 4.0, 1.0, -5.0, 9.0, 2.0])
    pad = max(0, -(-(stride * (len(x) - 1) - len(x) + kernel) // 2))
    assert 2 * pad > kernel
    line = Tensor.from_data(x.reshape(1, 1, -1), device)
    same = {"stride": stride, "padding": PaddingConfig1d.Same}
    sizes = (kernel, stride, pad)
    largest = by_hand(x, *sizes, known(np.max, -np.inf))
    found = nn.MaxPool1dConfig(kernel, **same).init().forward(line)
    assert np.array_equal(found, [[largest]])
    for counts, nothing in ((True, 0.0), (False, np.nan)):
        size = kernel if counts else None
        mean = known(lambda part, n=size: part.sum() / (n or len(part)), nothing)
        config = nn.AvgPool1dConfig(kernel, **same, count_include_pad=counts)
        found = config.init().forward(line)
        assert np.allclose(found, [[by_hand(x, *sizes, mean)]], equal_nan=True)


def test_wide_padding_has_gradients_and_indices_on_the_image():
    x = Tensor.from_data([[[[3.0, 1.0], [2.0, 4.0]]]], AD).require_grad()
    out = max_pool2d(x, 2, 2, (2, 1))
    nothing = [-np.inf, -np.inf]
    assert np.array_equal(out.inner(), [[[nothing, [3.0, 4.0], nothing]]])
    grad = x.grad(out.slice([None, None, (1, 2)]).sum().backward())
    assert np.array_equal(grad, [[[[1.0, 0.0], [0.0, 1.0]]]])
    values, places = max_pool2d_with_indices(x.inner(), 2, 2, (2, 1))
    flat = x.inner().flatten(0, -1)
    real = values.greater(-np.inf)
    picked = flat.select(0, places.flatten(0, -1)).reshape(values.dims())
    assert np.array_equal(np.asarray(picked)[real], np.asarray(values)[real])
