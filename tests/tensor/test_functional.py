"""Functions of convolution and pooling: sizes, options, what does not fit."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ShapeError
from burnbook.tensor import Tensor, module as f

PLAIN = Numpy(float="f64")
AD = Autodiff(PLAIN)
RNG = np.random.default_rng(0)


def draw(*shape, device=PLAIN):
    return Tensor.from_numpy(RNG.normal(size=shape), device)


@pytest.mark.parametrize("dims", [1, 2, 3])
def test_one_number_stands_for_every_dim(dims):
    x, weight = draw(2, 4, *[7] * dims), draw(4, 2, *[3] * dims)
    conv = getattr(f, f"conv{dims}d")
    short = conv(x, weight, None, f.ConvOptions(2, 1, 1, groups=2))
    every = [2] * dims, [1] * dims, [1] * dims
    assert np.array_equal(short, conv(x, weight, None, f.ConvOptions(*every, groups=2)))
    back = getattr(f, f"conv_transpose{dims}d")
    options = f.ConvTransposeOptions(stride=2, padding=1, padding_out=1, groups=2)
    assert back(short, weight, None, options).dims() == (2, 4, *[8] * dims)


@pytest.mark.parametrize("groups", [1, 2])
def test_deform_conv2d_without_offsets_is_conv2d(groups):
    x, weight, bias = draw(2, 4, 6, 5), draw(6, 4 // groups, 3, 2), draw(6)
    options = f.DeformConvOptions([2, 1], [1, 1], [1, 2], groups, offset_groups=2)
    wanted = f.conv2d(x, weight, bias, f.ConvOptions([2, 1], [1, 1], [1, 2], groups))
    offset = Tensor.zeros([2, 24, *wanted.dims()[2:]], PLAIN)
    assert np.allclose(f.deform_conv2d(x, offset, weight, None, bias, options), wanted)
    half = Tensor.full([2, 12, *wanted.dims()[2:]], 0.5, PLAIN)
    masked = f.deform_conv2d(x, offset, weight, half, None, options)
    unbiased = f.conv2d(x, weight, None, f.ConvOptions([2, 1], [1, 1], [1, 2], groups))
    assert np.allclose(masked, np.asarray(unbiased) / 2)


def test_whole_offsets_move_the_image():
    x, weight = draw(1, 2, 6, 6), draw(3, 2, 2, 2)
    offset = np.zeros((1, 4, 2, 5, 5))
    offset[:, :, 0], offset[:, :, 1] = 1.0, -2.0
    moved = np.zeros((1, 2, 6, 6))
    moved[:, :, :5, 2:] = np.asarray(x)[:, :, 1:, :4]
    found = f.deform_conv2d(
        x, Tensor.from_numpy(offset.reshape(1, 8, 5, 5), PLAIN), weight
    )
    wanted = f.conv2d(Tensor.from_numpy(moved, PLAIN), weight)
    # the last row and the first two columns also read beyond the shifted image
    assert np.allclose(np.asarray(found)[..., :4, 2:], np.asarray(wanted)[..., :4, 2:])


def test_gradients_of_deform_conv2d_reach_every_input():
    shapes = [(1, 2, 5, 5), (1, 8, 4, 4), (3, 2, 2, 2), (1, 4, 4, 4), (3,)]
    inputs = [draw(*shape, device=AD).require_grad() for shape in shapes]
    grads = f.deform_conv2d(*inputs).sum().backward()
    for tensor in inputs:
        assert np.any(np.asarray(tensor.grad(grads)) != 0)


@pytest.mark.parametrize("name", ["max_pool1d", "max_pool2d"])
def test_nan_wins_and_its_place_is_told(name):
    dims = int(name[-2])
    array = RNG.normal(size=(1, 1, *[4] * dims))
    array[(0, 0, *[0] * dims)] = np.nan
    pool = getattr(f, f"{name}_with_indices")
    values, places = pool(Tensor.from_numpy(array, PLAIN), 2, 2)
    assert np.isnan(np.asarray(values)).sum() == 1
    flat = array.reshape(-1)
    assert np.array_equal(flat[np.asarray(places)], values, equal_nan=True)
    nothing = getattr(f, name)(Tensor.full([1, 1, *[2] * dims], np.nan, PLAIN), 2, 1)
    assert np.isnan(np.asarray(nothing)).all()


def test_a_window_of_infinities_points_into_the_image():
    x = Tensor.full([1, 1, 4, 4], -np.inf, AD).require_grad()
    _, places = f.max_pool2d_with_indices(x, 3, 1, 1)
    assert 0 <= np.asarray(places).min() <= np.asarray(places).max() < 16
    grads = f.max_pool2d(x, 3, 1, 1).sum().backward()
    assert np.asarray(x.grad(grads)).sum() == 16


def test_ceil_mode_keeps_the_last_window():
    x = Tensor.from_data([[[1.0, 2.0, 3.0, 4.0, 5.0]]], PLAIN)
    assert np.array_equal(f.max_pool1d(x, 2, 2), [[[2.0, 4.0]]])
    assert np.array_equal(f.max_pool1d(x, 2, 2, ceil_mode=True), [[[2.0, 4.0, 5.0]]])
    assert np.array_equal(f.avg_pool1d(x, 2, 2, ceil_mode=True), [[[1.5, 3.5, 5.0]]])
    assert f.avg_pool2d(draw(1, 1, 5, 5), 2, 2, ceil_mode=True).dims() == (1, 1, 3, 3)


def test_nan_stays_where_it_is():
    array = np.ones((1, 1, 9))
    array[..., 4] = np.nan
    x = Tensor.from_numpy(array, PLAIN)
    assert np.isnan(np.asarray(f.adaptive_avg_pool1d(x, 4))).sum() == 2
    bilinear = f.InterpolateOptions("Bilinear")
    assert np.isnan(np.asarray(f.interpolate(x, 17, bilinear))).sum() == 3


def test_unfold_gives_the_columns_of_a_convolution():
    x, weight = draw(2, 3, 5, 6), draw(4, 3, 2, 2)
    columns = f.unfold4d(x, [2, 2], f.UnfoldOptions(stride=1, padding=1))
    product = weight.reshape([1, 4, 12]).matmul(columns)
    wanted = f.conv2d(x, weight, None, f.ConvOptions(padding=1))
    assert np.allclose(product, wanted.reshape([2, 4, 42]))
    ones = f.fold4d(f.unfold4d(Tensor.ones([1, 1, 3, 3], PLAIN), 2), 3, 2)
    assert np.array_equal(ones, [[[[1, 2, 1], [2, 4, 2], [1, 2, 1]]]])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: f.conv1d(draw(1, 2, 5), draw(3, 1, 2)), "2 ≠ 1 · 1"),
        (lambda: f.conv1d(draw(2, 5), draw(3, 2, 2)), r"x must be \[n, c, l\]"),
        (
            lambda: f.conv3d(draw(1, 2, 5, 5, 1), draw(3, 2, 2, 2, 2)),
            "padded width is 1",
        ),
        (
            lambda: f.conv_transpose1d(draw(1, 2, 5), draw(3, 2, 2)),
            "2 ≠ 3: the channels of x must equal the first of weight",
        ),
        (
            lambda: f.deform_conv2d(
                draw(1, 2, 5, 5), draw(1, 8, 3, 3), draw(3, 2, 2, 2)
            ),
            r"offset must be \[1, 8, 4, 4\]",
        ),
        (
            lambda: f.deform_conv2d(
                draw(1, 2, 5, 5), draw(1, 8, 4, 4), draw(3, 1, 2, 2)
            ),
            "deform_conv2d: 2 ≠ 1 · 1",
        ),
        (
            lambda: f.max_pool1d(draw(1, 2, 5), 2, 1, 2, ceil_mode=True),
            "more than half the window",
        ),
        (lambda: f.avg_pool1d(draw(1, 2, 5, 5), 2, 2), r"x must be \[n, c, l\]"),
        (lambda: f.adaptive_avg_pool3d(draw(1, 2, 5), 2), r"\[n, c, d, h, w\]"),
        (lambda: f.interpolate(draw(1, 2, 5), 0), "must be at least 1"),
        (lambda: f.unfold4d(draw(1, 2, 5, 5), 7), "the window spans 7"),
        (lambda: f.fold4d(draw(1, 8, 7), 3, 2), "7 ≠ 4: the columns"),
    ],
)
def test_what_does_not_fit_is_explained(call, text):
    with pytest.raises(ShapeError, match=text):
        call()


def deformed(x):
    n, device = x.dims()[0], x.device()
    offset = Tensor.full([n, 18, 6, 6], 0.3, device)
    weight = Tensor.ones([4, 2, 3, 3], device)
    return f.deform_conv2d(x, offset, weight, options=f.DeformConvOptions(1, 1))


def spread(x):
    weight = Tensor.ones([2, 3, 3, 2], x.device())
    return f.conv_transpose2d(x, weight, None, f.ConvTransposeOptions(2, 1, 1))


FUNCTIONS = {
    "conv_transpose": spread,
    "max_pool": lambda x: f.max_pool2d(x, 3, 2, 1),
    "avg_pool": lambda x: f.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
    "cubic": lambda x: f.interpolate(x, [9, 4], f.InterpolateOptions("Bicubic")),
    "lanczos": lambda x: f.interpolate(x, 8, f.InterpolateOptions("Lanczos3", False)),
    "unfold": lambda x: f.unfold4d(x, 2),
    "deform": deformed,
}


def with_gradient(function, array, device, turned=False):
    x = Tensor.from_numpy(array, device).require_grad()
    out = function(x.swap_dims(2, 3) if turned else x)
    return np.asarray(out), np.asarray(x.grad(out.sum().backward()))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_order_in_memory_changes_nothing(name):
    array = RNG.normal(size=(3, 2, 6, 6))
    out, grad = with_gradient(FUNCTIONS[name], array, AD)
    turned = np.ascontiguousarray(array.swapaxes(2, 3))
    again, back = with_gradient(FUNCTIONS[name], turned, AD, turned=True)
    assert np.allclose(again, out)
    assert np.allclose(back.swapaxes(2, 3), grad)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_half_precision_stays_half(name):
    array = RNG.normal(size=(1, 2, 6, 6))
    device = Autodiff(Numpy(float="f16"))
    out, grad = with_gradient(FUNCTIONS[name], array.astype(np.float16), device)
    assert out.dtype == grad.dtype == np.float16
    assert np.allclose(out, with_gradient(FUNCTIONS[name], array, AD)[0], atol=0.1)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_no_images_give_no_results(name):
    out, grad = with_gradient(FUNCTIONS[name], np.zeros((0, 2, 6, 6)), AD)
    assert out.shape[0] == 0
    assert grad.shape == (0, 2, 6, 6)
