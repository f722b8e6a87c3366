"""Compiled convolution of many channels: strides, options, few samples, threads."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

pytest.importorskip("numba", reason="kernels are compiled by numba")

from burnbook.backend import Numpy
from burnbook.backend.compiled import conv_blocked
from burnbook.backend.compiled.conv import conv2d_backward, conv2d_kernel
from burnbook.backend.compiled.conv_plan import backward_side, forward_side
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.ops.conv.conv import conv2d
from burnbook.ops.conv.windows import output_size

CHANNELS = st.sampled_from((16, 17, 20, 24, 32, 33, 40, 48, 64, 70))


@st.composite
def windows(draw):
    """Size, kernel, stride, padding and dilation of one dim that go together."""
    kernel, dilation = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    padding, stride = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    least = max(1, dilation * (kernel - 1) + 1 - 2 * padding)
    return draw(st.integers(least, least + 12)), kernel, stride, padding, dilation


@st.composite
def images(draw):
    """Images, kernels of several taps, and options that go together."""
    down, right = draw(windows()), draw(windows())
    if down[1] * right[1] == 1:
        down = (down[0] + 2, 3, *down[2:4], 1)
    n, c, o = draw(st.integers(1, 9)), draw(CHANNELS), draw(CHANNELS)
    rng = np.random.default_rng(draw(st.integers(0, 1 << 20)))
    x = rng.standard_normal((n, c, down[0], right[0]), np.float32)
    weight = rng.standard_normal((o, c, down[1], right[1]), np.float32)
    bias = rng.standard_normal(o, np.float32) if draw(st.booleans()) else None
    names = ("stride", "padding", "dilation")
    options = dict(zip(names, zip(down[2:], right[2:], strict=True), strict=True))
    return x, weight, bias, options


def in_double(*arrays):
    return [None if a is None else a.astype(np.float64) for a in arrays]


def close(found, wanted, terms):
    scale = max(1.0, float(np.abs(wanted).max(initial=0)))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6 * scale * terms**0.5)


@settings(max_examples=60)
@given(images())
def test_sums_are_those_of_the_plain_code(case):
    x, weight, bias, options = case
    found = conv2d_kernel(x, weight, bias, groups=1, **options)
    double = Numpy("f64", compiled=False)
    wanted = double.run(conv2d, tuple(in_double(x, weight, bias)), options)
    close(found, wanted, weight[0].size)


@settings(max_examples=60)
@given(images(), st.tuples(st.booleans(), st.booleans(), st.booleans()))
def test_gradients_are_those_of_the_plain_code(case, needs):
    x, weight, bias, options = case
    needs = (*needs[:2], needs[2] and bias is not None)
    out = conv2d.forward(Numpy(compiled=False).xp, x, weight, bias, **options)
    g = np.random.default_rng(1).standard_normal(out.shape, np.float32)
    shapes = x.shape, weight.shape
    found = conv2d_backward(g, x, weight, *shapes, needs=needs, groups=1, **options)
    double = Numpy("f64", compiled=False)
    values = (*in_double(g, x, weight), *shapes)
    wanted = double.run(conv2d.backward, values, {"needs": needs, **options})
    for a, b, is_needed in zip(found, wanted, needs, strict=True):
        assert (a is not None) == is_needed
        if is_needed:
            close(a, b, max(weight[0].size, g[:, 0].size))


@settings(max_examples=200)
@given(windows())
def test_the_way_back_undoes_the_way_there(one):
    size, kernel, stride, padding, dilation = one
    stops = output_size(*one)
    sizes = (size, stops, kernel, stride, padding, dilation)
    pairs = {}
    for side, is_back in ((forward_side(*sizes), False), (backward_side(*sizes), True)):
        for pixels, reads, taps in side.phases:
            for pixel, read in zip(pixels.tolist(), reads.tolist(), strict=True):
                for tap, offset in taps:
                    other = read + offset - side.before
                    assert 0 <= read + offset < side.grown
                    if 0 <= other < side.size:  # not a zero around
                        key = (pixel, other, tap) if is_back else (other, pixel, tap)
                        pairs.setdefault(is_back, set()).add(key)
    assert pairs.get(True, set()) == pairs.get(False, set())


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("row", "col"), [(0, 0), (3, 5), (7, 8)])
@pytest.mark.parametrize("stride", [(1, 1), (2, 2)])
def test_a_bad_number_spoils_its_own_windows_alone(bad, row, col, stride):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 20, 8, 9), np.float32)
    weight = rng.standard_normal((33, 20, 3, 3), np.float32)
    options = {"stride": stride, "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    clean = conv2d_kernel(x, weight, **options)
    x[1, 19, row, col] = bad
    spoiled = conv2d_kernel(x, weight, **options)
    plain = conv2d.forward(Numpy(compiled=False).xp, x, weight, **options)
    np.testing.assert_array_equal(np.isfinite(spoiled), np.isfinite(plain))
    good = np.isfinite(plain)
    np.testing.assert_array_equal(spoiled[good], clean[good])


@pytest.mark.parametrize("samples", [1, 2, 40])
def test_any_number_of_threads_gives_the_same_bits(samples, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((samples, 48, 9, 10), np.float32)
    weight = rng.standard_normal((80, 48, 3, 3), np.float32)
    options = {"stride": (1, 1), "padding": (1, 1), "dilation": (1, 1), "groups": 1}
    monkeypatch.setattr(conv_blocked, "NEAR", 1 << 17)  # several groups of samples

    def run():
        out = conv2d_kernel(x, weight, **options)
        needs = (True, True, True)
        shapes = x.shape, weight.shape
        return out, *conv2d_backward(out, x, weight, *shapes, needs=needs, **options)

    many = run()
    monkeypatch.setattr(threads, "size", 1)
    for a, b in zip(run(), many, strict=True):
        np.testing.assert_array_equal(a, b)
