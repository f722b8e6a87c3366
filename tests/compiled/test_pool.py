"""Compiled pooling and interpolation in any number of dims: equal to the plain code."""

import numpy as np
import pytest

from burnbook.backend import Autodiff
from burnbook.ops.interpolate import TABLES, interpolate, interpolate_x
from burnbook.ops.pool.pool import (
    adaptive_avg_pool,
    adaptive_avg_pool_x,
    avg_pool,
    avg_pool_x,
    max_pool,
    max_pool_indices,
    max_pool_x,
)
from burnbook.tensor import Tensor, apply
from tests.support.kernel_checks import agree, normal, with_and_without


def maxima(kernel, stride, padding=None, dilation=None, ceil=False):
    none, one = (0,) * len(kernel), (1,) * len(kernel)
    sizes = {"kernel_size": kernel, "stride": stride, "padding": padding or none}
    return {**sizes, "dilation": dilation or one, "ceil_mode": ceil}


MAXIMA = [
    # the size of an image, attributes
    ((40,), maxima((3,), (1,))),
    ((70,), maxima((3,), (2,), (1,))),
    ((71,), maxima((7,), (2,), (3,), ceil=True)),
    ((100,), maxima((4,), (5,), (2,), (3,), ceil=True)),
    ((5,), maxima((2,), (3,), (1,))),
    ((1,), maxima((1,), (1,))),
    ((4,), maxima((2,), (1,), (1,), (5,))),  # a window with no place on the image
    ((13, 40), maxima((2, 2), (2, 2))),
    ((9, 37), maxima((3, 5), (1, 1), (1, 2), (2, 1))),
    ((12, 9), maxima((3, 2), (4, 3), (1, 1), ceil=True)),
    ((5, 6, 7), maxima((2, 3, 2), (2, 1, 3), (1, 1, 0))),
    ((4, 3, 50), maxima((2, 2, 3), (1, 2, 2), (1, 0, 1), (2, 1, 2), ceil=True)),
]


def odd(*shape, share, seed=0):
    """Many equal numbers; a share of them −∞, as many NaN, and a few ∞."""
    x = np.round(normal(*shape, seed=seed), 1)
    dice = np.random.default_rng(seed).random(shape)
    x[dice < share], x[dice > 1 - share], x[abs(dice - 0.5) < 0.01] = (
        -np.inf,
        np.nan,
        np.inf,
    )
    return x


@pytest.mark.parametrize(("size", "attrs"), MAXIMA, ids=str)
@pytest.mark.parametrize("share", [0, 0.05, 0.45])
def test_the_largest_of_every_window_and_where(kernels, size, attrs, share):
    x = odd(3, 2, *size, share=share)
    agree(kernels, max_pool, x, exact=True, **attrs)
    agree(kernels, max_pool_indices, x, exact=True, **attrs)
    out, winner = max_pool.forward(np, x, **attrs)
    g = normal(*out.shape, seed=1)
    agree(kernels, max_pool_x, g, winner, x_shape=x.shape, exact=True)


def test_pooling_in_parts_and_from_a_view(kernels):
    attrs = maxima((3, 3), (2, 2), (1, 1))
    x = normal(8, 16, 64, 65)
    agree(kernels, max_pool, x, exact=True, **attrs)
    turned = x.swapaxes(2, 3)
    agree(kernels, max_pool, turned, exact=True, **attrs)
    out, winner = max_pool.forward(np, turned, **attrs)
    g = np.broadcast_to(np.float32(2), out.shape)
    agree(kernels, max_pool_x, g, winner, x_shape=turned.shape, exact=True)


def test_what_pooling_leaves_to_the_plain_code(kernels):
    attrs = maxima((3,), (2,))
    x = normal(2, 3, 40)
    assert kernels[max_pool](x.astype(np.float64), **attrs) is None
    assert kernels[max_pool](x[:0], **attrs) is None
    assert kernels[max_pool_indices](x[:, :0], **attrs) is None
    out, winner = max_pool.forward(np, x, **attrs)
    assert kernels[max_pool_x](out, winner.astype(np.int64), x_shape=x.shape) is None
    for beyond in (-1, 40):  # is an error, which the plain code finds
        assert kernels[max_pool_x](out, winner * 0 + beyond, x_shape=x.shape) is None


def test_second_order_through_the_kernels_of_pooling():
    def slopes(device):
        t = Tensor.from_numpy(normal(2, 3, 30), Autodiff(device)).require_grad()
        y = apply(max_pool, t * t, **maxima((3,), (2,), (1,)))
        return [t.grad((y * y).sum().backward())]

    with_and_without(slopes, rtol=1e-6)


RESIZED = [
    # the size of an image, the size asked for
    ((30,), (7,)),
    ((7,), (31,)),
    ((1,), (6,)),
    ((9,), (1,)),
    ((5, 6), (11, 4)),
    ((12, 5), (3, 9)),
    ((6, 7), (6, 14)),
    ((6, 7), (13, 7)),
    ((3, 4, 5), (6, 3, 9)),
    ((6, 4, 5), (2, 4, 5)),
    ((4, 5, 3), (9, 5, 2)),
]


def holed(*shape, seed=0):
    """Normal values, some of them NaN."""
    x = normal(*shape, seed=seed)
    x[np.random.default_rng(seed).random(shape) < 0.02] = np.nan
    return x


@pytest.mark.parametrize(("size", "other"), RESIZED, ids=str)
@pytest.mark.parametrize("aligned", [True, False])
@pytest.mark.parametrize("mode", TABLES)
@pytest.mark.parametrize("draw", [normal, holed])
def test_images_of_another_size(kernels, size, other, aligned, mode, draw):
    attrs = {"output_size": other, "mode": mode, "align_corners": aligned}
    x, g = draw(3, 2, *size), draw(3, 2, *other, seed=1)
    nearly(kernels, interpolate, x, **attrs)
    nearly(kernels, interpolate_x, g, x_shape=x.shape, **attrs)


@pytest.mark.parametrize(("size", "other"), RESIZED, ids=str)
@pytest.mark.parametrize("draw", [normal, holed])
def test_windows_that_cover_an_image_evenly(kernels, size, other, draw):
    x, g = draw(3, 2, *size), draw(3, 2, *other, seed=1)
    nearly(kernels, adaptive_avg_pool, x, output_size=other)
    nearly(kernels, adaptive_avg_pool_x, g, x_shape=x.shape)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "padding"),
    [
        ((40,), (3,), (2,), (1,)),
        ((41,), (4,), (5,), (2,)),
        ((12, 9), (3, 2), (1, 3), (1, 0)),
        ((12, 9), (2, 1), (2, 1), (0, 0)),
        ((4, 5, 6), (2, 3, 2), (2, 1, 3), (0, 1, 1)),
    ],
)
@pytest.mark.parametrize("counted", [True, False])
@pytest.mark.parametrize("ceil", [True, False])
def test_the_average_of_every_window(
    kernels, size, kernel, stride, padding, counted, ceil
):
    attrs = {"kernel_size": kernel, "stride": stride, "padding": padding}
    attrs |= {"count_include_pad": counted, "ceil_mode": ceil}
    x = holed(3, 2, *size)
    nearly(kernels, avg_pool, x, **attrs)
    g = normal(*avg_pool.forward(np, x, **attrs).shape, seed=1)
    nearly(kernels, avg_pool_x, g, x_shape=x.shape, **attrs)


def nearly(kernels, op, x, **attrs):
    """The kernel equals the plain code, and NaN stands where it stands there."""
    found, expected = kernels[op](x, **attrs), op.forward(np, x, **attrs)
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5, equal_nan=True)


def test_infinity_counts_with_its_weight_alone(kernels):
    x = np.zeros((1, 1, 1, 9), np.float32)
    x[..., 4] = np.inf
    attrs = {"output_size": (2, 17), "mode": "linear", "align_corners": True}
    found = kernels[interpolate](x, **attrs)
    assert np.array_equal(found[0, 0, 1, 7:10], [np.inf] * 3)
    assert np.isfinite(found).sum() == 2 * 14


def test_planes_in_parts_and_from_a_view(kernels):
    x = normal(9, 16, 33, 20).swapaxes(2, 3)
    attrs = {"output_size": (41, 50), "mode": "cubic", "align_corners": False}
    nearly(kernels, interpolate, x, **attrs)
    g = np.broadcast_to(np.float32(0.5), (9, 16, 41, 50))
    nearly(kernels, interpolate_x, g, x_shape=x.shape, **attrs)


def test_what_interpolation_leaves_to_the_plain_code(kernels):
    x = normal(2, 3, 8)
    attrs = {"mode": "linear", "align_corners": True}
    assert kernels[interpolate](x, output_size=(8,), **attrs) is None  # a copy
    assert kernels[interpolate](x[:0], output_size=(9,), **attrs) is None
    wide = x.astype(np.float64)
    assert kernels[interpolate](wide, output_size=(9,), **attrs) is None
    assert kernels[adaptive_avg_pool](wide, output_size=(2,)) is None
