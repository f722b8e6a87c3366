"""Kernels of recurrent ops: equal to the plain code for any sizes and directions."""

import numpy as np
import pytest

from burnbook.backend.compiled import FAMILIES
from burnbook.ops.gru import gru
from burnbook.ops.lstm import lstm
from tests.support.kernel_checks import agree, normal

# b, s, i, h
SIZES = [
    (1, 1, 1, 4),
    (4, 3, 5, 8),
    (6, 2, 3, 7),
    (17, 2, 3, 33),
    (9, 11, 7, 20),
    (32, 4, 64, 128),
]


def inputs(sizes, gates):
    b, s, i, h = sizes
    x = normal(b, s, i)
    weight, recurrent = normal(i, gates * h, seed=1), normal(h, gates * h, seed=2)
    scale = np.float32(1 / np.sqrt(h))
    lines = [normal(gates * h, seed=3), normal(gates * h, seed=4)]
    states = [normal(b, h, seed=5), normal(b, h, seed=6)]
    return x, weight * np.float32(0.3), recurrent * scale, lines, states


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_lstm_and_its_gradients(kernels, sizes, reverse):
    x, weight, recurrent, (bias, _), states = inputs(sizes, 4)
    for rest in ([bias, *states], [bias, None, None], [None, states[0], None]):
        given = (x, weight, recurrent, *rest)
        agree(kernels, lstm, *given, reverse=reverse)
        out, gates, cells = lstm.forward(np, *given, reverse=reverse)
        kept = lstm.keep(given, (out, gates, cells))
        g = normal(*out.shape, seed=7)
        for needs in ((True,) * 6, (False, True, True, False, False, True)):
            agree(kernels, lstm.backward, g, *kept, needs=needs, reverse=reverse)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_gru_and_its_gradients(kernels, sizes, after, reverse):
    x, weight, recurrent, lines, states = inputs(sizes, 3)
    attrs = {"reset_after": after, "reverse": reverse}
    for rest in ([*lines, states[0]], [None, lines[1], None], [None, None, None]):
        given = (x, weight, recurrent, *rest)
        agree(kernels, gru, *given, **attrs)
        out, gates, inner = gru.forward(np, *given, **attrs)
        kept = gru.keep(given, (out, gates, inner))
        g = normal(*out.shape, seed=7)
        for needs in ((True,) * 6, (False, False, True, False, True, False)):
            agree(kernels, gru.backward, g, *kept, needs=needs, **attrs)


def test_a_swapped_input_and_a_stretched_gradient_are_served(kernels):
    x, weight, recurrent, (bias, _), _ = inputs((4, 3, 5, 8), 4)
    turned = np.ascontiguousarray(x.swapaxes(0, 1)).swapaxes(0, 1)
    agree(kernels, lstm, turned, weight, recurrent, bias)
    given = (turned, weight, recurrent, bias, None, None)
    results = lstm.forward(np, *given)
    g = np.broadcast_to(np.float32(0.5), results[0].shape)
    kept = lstm.keep(given, results)
    agree(kernels, lstm.backward, g, *kept, needs=(True,) * 6)


@pytest.mark.parametrize("op", [lstm, gru])
def test_other_types_run_plain(kernels, op):
    gates = 4 if op is lstm else 3
    x, weight, recurrent, _, _ = inputs((4, 3, 5, 8), gates)
    wide = [v.astype(np.float64) for v in (x, weight, recurrent)]
    assert kernels[op](*wide) is None
    assert kernels[op](x, weight, recurrent[:, ::-1]) is None


def test_gates_that_overflow_close_or_open_and_nan_is_seen(kernels):
    x = np.zeros((4, 1, 4), np.float32)
    x[:, 0] = [[1e30, 0, 0, 0], [-1e30, 0, 0, 0], [np.nan, 0, 0, 0], [1, 0, 0, 0]]
    weight = np.zeros((4, 16), np.float32)
    weight[0] = 1
    out, gates, _ = kernels[lstm](x, weight, np.zeros((4, 16), np.float32))
    assert np.allclose(gates[0], 1)
    assert np.allclose(gates[1], [0] * 12 + [-1] * 4)
    assert np.isnan(out[2]).all()
    assert np.isfinite(out[[0, 1, 3]]).all()


def test_both_families_are_listed():
    assert {lstm, lstm.backward} == set(FAMILIES["lstm"])
    assert {gru, gru.backward} == set(FAMILIES["gru"])
