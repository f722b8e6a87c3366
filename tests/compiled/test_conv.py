"""Compiled convolution over pictures: shapes, options, and where NaN goes."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("numba", reason="kernels are compiled by numba")

from burnbook.backend import Numpy
from burnbook.backend.compiled.conv import conv2d_backward, conv2d_kernel
from burnbook.ops.conv.conv import conv2d

SIZES = st.integers(1, 40)
SMALL = st.integers(1, 3)


@st.composite
def pictures(draw):
    """Pictures, kernels, a gradient and options that go together."""
    groups, left, right = draw(SMALL), draw(st.integers(0, 2)), draw(SMALL)
    down = draw(st.sampled_from((1, 1, 2)))
    taps = (draw(st.sampled_from((1, 2, 3, 3, 5))), draw(SMALL))
    reach = [d * (k - 1) + 1 for d, k in zip((down, right), taps, strict=True)]
    size = [max(draw(SIZES), r) for r in reach]
    n, c, o = draw(SMALL), draw(st.integers(1, 6)), draw(st.integers(1, 6))
    options = {
        "padding": (min(left, reach[0] - 1), min(left, reach[1] - 1)),
        "dilation": (down, right),
        "groups": groups,
    }
    rng = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    x = rng.standard_normal((n, c * groups, *size)).astype(np.float32)
    weight = rng.standard_normal((o * groups, c, *taps)).astype(np.float32)
    bias = rng.standard_normal(o * groups).astype(np.float32)
    return x, weight, bias, options


def in_double(*arrays):
    return [np.asarray(a, dtype=np.float64) for a in arrays]


@settings(max_examples=150)
@given(pictures())
def test_sums_are_those_of_the_plain_code(case):
    x, weight, bias, options = case
    found = conv2d_kernel(x, weight, bias, **options)
    if weight.shape[2] * weight.shape[3] == 1:
        assert found is None  # a plain matrix product
        return
    double = Numpy("f64", compiled=False)
    wanted = double.run(conv2d, tuple(in_double(x, weight, bias)), options)
    terms = weight[0].size
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * terms)


@settings(max_examples=100)
@given(pictures())
def test_gradients_are_those_of_the_plain_code(case):
    x, weight, bias, options = case
    out = conv2d.forward(Numpy(compiled=False).xp, x, weight, bias, **options)
    g = np.random.default_rng(1).standard_normal(out.shape).astype(np.float32)
    needs = (True, True, True)
    found = conv2d_backward(g, x, weight, x.shape, weight.shape, needs=needs, **options)
    if weight.shape[2] * weight.shape[3] == 1:
        assert found is None
        return
    double = Numpy("f64", compiled=False)
    values = (*in_double(g, x, weight), x.shape, weight.shape)
    wanted = double.run(conv2d.backward, values, {"needs": needs, **options})
    for a, b in zip(found, wanted, strict=True):
        scale = max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-5 * scale)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("row", "col"), [(0, 0), (7, 9), (8, 30), (21, 39)])
@pytest.mark.parametrize("channels", [1, 8])
def test_a_bad_number_spoils_its_own_windows_alone(bad, row, col, channels):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, channels, 22, 40)).astype(np.float32)
    weight = rng.standard_normal((5, channels, 3, 3)).astype(np.float32)
    clean = conv2d_kernel(x, weight)
    x[1, channels - 1, row, col] = bad
    spoiled = conv2d_kernel(x, weight)
    plain = conv2d.forward(Numpy(compiled=False).xp, x, weight)
    np.testing.assert_array_equal(np.isfinite(spoiled), np.isfinite(plain))
    good = np.isfinite(plain)
    np.testing.assert_array_equal(spoiled[good], clean[good])
