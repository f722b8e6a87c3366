"""Convolution: all shapes, all settings, and what its gradients undo."""

import itertools

import numpy as np
import pytest

from burnbook.ops.conv import im2col
from burnbook.ops.conv.conv import conv2d, conv2d_weight, conv2d_x
from tests.oracle import images

SETTINGS = [
    {"stride": s, "padding": p, "dilation": d, "groups": g}
    for s, p, d, g in itertools.product(
        [(1, 1), (2, 1), (3, 2)], [(0, 0), (1, 2)], [(1, 1), (2, 1)], [1, 2]
    )
]


def make(seed=0, kernel=(3, 2)):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((2, 4, 8, 9))
    return x, rng.standard_normal((6, 4, *kernel)), rng.standard_normal(6)


@pytest.mark.parametrize("kernel", [(1, 1), (3, 3), (2, 5)])
@pytest.mark.parametrize("attrs", SETTINGS, ids=str)
def test_conv2d_equals_the_loop(attrs, kernel):
    x, weight, bias = make(kernel=kernel)
    weight = weight[:, : 4 // attrs["groups"]]
    expected = images.conv2d(x, weight, bias, **attrs)
    assert np.allclose(conv2d.forward(np, x, weight, bias, **attrs), expected)


@pytest.mark.parametrize("attrs", SETTINGS, ids=str)
def test_gradients_undo_the_convolution(attrs):
    """Linear in both: ⟨conv(x, w), g⟩ = ⟨x, conv_x(g, w)⟩ = ⟨w, conv_w(g, x)⟩."""
    x, weight, _ = make()
    weight = np.ascontiguousarray(weight[:, : 4 // attrs["groups"]])
    out = conv2d.forward(np, x, weight, **attrs)
    g = np.random.default_rng(1).standard_normal(out.shape)
    dx = conv2d_x.forward(np, g, weight, x_shape=x.shape, **attrs)
    dw = conv2d_weight.forward(np, g, x, weight_shape=weight.shape, **attrs)
    assert dx.shape == x.shape
    assert dw.shape == weight.shape
    assert np.isclose((out * g).sum(), (x * dx).sum())
    assert np.isclose((out * g).sum(), (weight * dw).sum())


@pytest.fixture
def small_blocks(monkeypatch):
    """Columns are laid out for a few rows of one image at a time."""
    monkeypatch.setattr(im2col, "BLOCK", 700)
    im2col.Plan.of.cache_clear()  # plans keep their blocks
    yield
    im2col.Plan.of.cache_clear()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("biased", [True, False])
@pytest.mark.parametrize("attrs", SETTINGS, ids=str)
def test_small_blocks_give_the_same(attrs, biased):
    x, weight, bias = make()
    weight = np.ascontiguousarray(weight[:, : 4 // attrs["groups"]])
    bias = bias if biased else None
    sizes = tuple(attrs.values())
    assert len(im2col.Plan.of(x.shape, weight.shape, *sizes).blocks(np, x.dtype)) > 2
    expected = images.conv2d(x, weight, np.zeros(6) if bias is None else bias, **attrs)
    assert np.allclose(conv2d.forward(np, x, weight, bias, **attrs), expected)
    g = np.random.default_rng(1).standard_normal(expected.shape)
    dx = conv2d_x.forward(np, g, weight, x_shape=x.shape, **attrs)
    dw = conv2d_weight.forward(np, g, x, weight_shape=weight.shape, **attrs)
    bare = conv2d.forward(np, x, weight, **attrs)
    assert np.isclose((bare * g).sum(), (x * dx).sum())
    assert np.isclose((bare * g).sum(), (weight * dw).sum())


def test_infinity_and_nan_stay_in_their_windows(small_blocks):
    x, weight, bias = make()
    x[0, 0, 0, 0], x[1, 2, 7, 8] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        found = conv2d.forward(np, x, weight, bias)
    clean = make()[0]
    expected = conv2d.forward(np, clean, weight, bias)
    assert np.isnan(found[0, :, 0, 0]).all()
    assert np.isinf(found[1, :, 5, 7]).all()
    found[0, :, 0, 0], found[1, :, 5, 7] = expected[0, :, 0, 0], expected[1, :, 5, 7]
    assert np.allclose(found, expected)


def test_a_batch_of_none_has_no_output():
    _, weight, bias = make()
    out = conv2d.forward(np, np.zeros((0, 4, 8, 9)), weight, bias)
    assert out.shape == (0, 6, 6, 8)


def test_inputs_in_any_layout():
    x, weight, bias = make()
    turned = np.asfortranarray(x)
    flipped = np.ascontiguousarray(weight[:, :, ::-1])[:, :, ::-1]
    expected = conv2d.forward(np, x, weight, bias)
    assert np.allclose(conv2d.forward(np, turned, flipped, bias), expected)


def test_inputs_are_left_alone():
    x, weight, bias = make()
    copies = [a.copy() for a in (x, weight, bias)]
    conv2d.forward(np, x, weight, bias, padding=(1, 1))
    for array, copy in zip((x, weight, bias), copies, strict=True):
        assert np.array_equal(array, copy)
