"""Compiled depthwise convolution: every stride, padding and dilation, and gradients."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("numba", reason="kernels are compiled by numba")

from burnbook.backend import Numpy
from burnbook.backend.compiled.conv import conv2d_backward, conv2d_kernel
from burnbook.ops.conv.conv import conv2d

DOUBLE = Numpy("f64", compiled=False)
PAIR = st.tuples(st.integers(1, 3), st.integers(1, 3))


@st.composite
def planes(draw):
    """Pictures, a kernel for each channel, and options that go together."""
    stride, dilation = draw(PAIR), draw(PAIR)
    taps = draw(
        st.tuples(st.integers(1, 5), st.integers(1, 5)).filter(lambda k: k != (1, 1))
    )
    padding = draw(st.tuples(st.integers(0, 4), st.integers(0, 4)))
    reach = [d * (k - 1) + 1 for d, k in zip(dilation, taps, strict=True)]
    size = [max(draw(st.integers(1, 45)), r) for r in reach]
    n, channels = draw(st.integers(1, 4)), draw(st.integers(2, 20))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    arrays = [
        rng.standard_normal(shape).astype(np.float32)
        for shape in [(n, channels, *size), (channels, 1, *taps), (channels,)]
    ]
    options = {"stride": stride, "padding": padding, "dilation": dilation}
    return (*arrays, {**options, "groups": channels})


@settings(max_examples=100)
@given(planes())
def test_every_channel_by_itself_is_what_the_plain_code_makes(case):
    x, weight, bias, options = case
    found = conv2d_kernel(x, weight, bias, **options)
    assert found is not None
    double = [a.astype(np.float64) for a in (x, weight, bias)]
    wanted = DOUBLE.run(conv2d, tuple(double), options)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=5e-5)
    g = np.random.default_rng(1).standard_normal(found.shape).astype(np.float32)
    needs = (True, True, True)
    shapes = (x.shape, weight.shape)
    grads = conv2d_backward(g, x, weight, *shapes, needs=needs, **options)
    values = (g.astype(np.float64), *double[:2], *shapes)
    wanted = DOUBLE.run(conv2d.backward, values, {"needs": needs, **options})
    for a, b in zip(grads, wanted, strict=True):
        scale = max(1.0, float(np.abs(b).max()))
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=3e-5 * scale)


@pytest.mark.parametrize("needs", [(True, False, False), (False, True, False)])
def test_only_what_is_needed_is_made(needs):
    rng = np.random.default_rng(0)
    x, weight, g = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in [(3, 9, 8, 8), (9, 1, 3, 3), (3, 9, 4, 4)]
    )
    options = {"stride": (2, 2), "padding": (1, 1), "dilation": (1, 1), "groups": 9}
    call = (g, x, weight, x.shape, weight.shape)
    found = conv2d_backward(*call, needs=needs, **options)
    every = conv2d_backward(*call, needs=(True, True, True), **options)
    for need, one, other in zip(needs, found, every, strict=True):
        assert (one is not None) == need
        assert one is None or np.array_equal(one, other)


@pytest.mark.parametrize("stride", [1, 2, 3])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_number_spoils_its_own_windows_alone(bad, stride):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, 9, 20)).astype(np.float32)
    weight = rng.standard_normal((4, 1, 3, 3)).astype(np.float32)
    x[1, 2, 4, 19] = bad
    options = {"stride": (stride,) * 2, "padding": (1, 1), "dilation": (1, 1)}
    options["groups"] = 4
    found = conv2d_kernel(x, weight, **options)
    plain = conv2d.forward(Numpy(compiled=False).xp, x, weight, **options)
    np.testing.assert_array_equal(np.isfinite(found), np.isfinite(plain))
