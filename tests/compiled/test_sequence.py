"""Kernels of sequence losses: equal to the plain code for every length and layout."""

import numpy as np
import pytest

from burnbook.ops.sequence_loss import ctc_loss, log_softmax_at, rnnt_loss
from tests.support.kernel_checks import agree, normal

# t, n, c, s, input lengths, target lengths
SEQUENCES = [
    (6, 3, 4, 2, (6, 4, 5), (2, 1, 0)),
    (20, 5, 7, 6, (20, 3, 12, 8, 20), (6, 3, 5, 4, 6)),
    (9, 2, 3, 0, (9, 4), (0, 0)),
    (5, 3, 3, 4, (2, 5, 0), (4, 4, 0)),  # too short for some labels
    (40, 1, 30, 15, (40,), (15,)),
]


@pytest.mark.parametrize("sizes", SEQUENCES, ids=str)
@pytest.mark.parametrize("blank", [0, 2])
def test_ctc_and_its_gradient(kernels, sizes, blank):
    t, n, c, s, inputs, labels = sizes
    x = -np.abs(normal(t, n, c))
    targets = np.random.default_rng(1).integers(0, c - 1, (n, s))
    targets += targets >= blank  # any class but the blank
    attrs = {"input_lengths": inputs, "target_lengths": labels, "blank": blank}
    found = kernels[ctc_loss](x, targets, **attrs)
    expected = ctc_loss.forward(np, x, targets, **attrs)
    assert np.allclose(found, expected, rtol=1e-5)
    g = normal(n, seed=2)
    needs = (True, False)
    agree(kernels, ctc_loss.backward, g, x, targets, needs=needs, **attrs)


@pytest.mark.parametrize(
    ("shape", "frames", "labels"),
    [
        ((3, 4, 3, 2), (4, 2, 3), (2, 2, 0)),
        ((2, 1, 1, 2), (1, 1), (0, 0)),
        ((4, 13, 8, 2), (13, 1, 7, 12), (7, 7, 0, 3)),
    ],
    ids=str,
)
def test_the_transducer_and_its_gradient(kernels, shape, frames, labels):
    edges = -np.abs(normal(*shape))
    attrs = {"logit_lengths": frames, "target_lengths": labels}
    agree(kernels, rnnt_loss, edges, **attrs)
    g = normal(shape[0], seed=1)
    agree(kernels, rnnt_loss.backward, g, edges, needs=(True,), **attrs)


@pytest.mark.parametrize("shape", [(2, 3, 4, 50), (7, 1), (40, 333)], ids=str)
def test_a_few_elements_of_log_softmax(kernels, shape):
    x = normal(*shape) * 30 - 5
    high = np.random.default_rng(1).integers(0, shape[-1], (*shape[:-1], 2))
    wide = np.broadcast_to(high[:1], high.shape)  # as the labels of a lattice are
    g = normal(*high.shape, seed=2)
    for picked in (high, wide):
        agree(kernels, log_softmax_at, x, picked)
        needs = (True, False)
        agree(kernels, log_softmax_at.backward, g, x, picked, needs=needs)
    same = np.broadcast_to(np.float32(0.5), g.shape)  # the gradient of a sum
    agree(kernels, log_softmax_at.backward, same, x, wide, needs=needs)
    assert kernels[log_softmax_at](x, high + shape[-1]) is None
    assert kernels[log_softmax_at](x, -1 - high) is None
    assert kernels[log_softmax_at](x.astype(np.float64), high) is None
    x.flat[0] = np.nan
    assert np.isnan(kernels[log_softmax_at](x, high).flat[0])


def test_what_has_no_path_has_no_slope(kernels):
    edges = np.full((1, 2, 2, 2), -np.inf, np.float32)
    attrs = {"logit_lengths": (2,), "target_lengths": (1,)}
    assert np.isposinf(kernels[rnnt_loss](edges, **attrs)).all()
    g = np.ones(1, np.float32)
    (slope,) = kernels[rnnt_loss.backward](g, edges, needs=(True,), **attrs)
    assert not slope.any()


def test_nan_is_seen(kernels):
    attrs = {"input_lengths": (4,), "target_lengths": (1,), "blank": 0}
    x = np.zeros((4, 1, 3), np.float32)
    x[2, 0, 1] = np.nan
    assert np.isnan(kernels[ctc_loss](x, np.array([[1]]), **attrs)).all()
    edges = np.zeros((1, 3, 2, 2), np.float32)
    edges[0, 1, 0, 1] = np.nan
    attrs = {"logit_lengths": (3,), "target_lengths": (1,)}
    assert np.isnan(kernels[rnnt_loss](edges, **attrs)).all()


def test_what_is_not_served_runs_plain(kernels):
    x, targets = normal(4, 2, 3), np.ones((2, 1), np.int64)
    attrs = {"input_lengths": (4, 4), "target_lengths": (1, 1), "blank": 0}
    run = kernels[ctc_loss]
    assert run(x, targets, **attrs) is not None
    assert run(x.astype(np.float64), targets, **attrs) is None
    assert run(np.asfortranarray(x), targets, **attrs) is None
    assert run(x, targets.astype(np.int32), **attrs) is None
    for label in (-1, 0, 3):
        assert run(x, targets * label, **attrs) is None
    g = np.ones(2, np.float32)
    back = kernels[ctc_loss.backward]
    assert back(g, x, targets * 9, needs=(True, False), **attrs) is None
    padded = np.array([[1, 77], [1, -5]])
    attrs["target_lengths"] = (1, 1)
    assert run(x, padded, **attrs) is not None
    edges = normal(2, 3, 2, 2)
    attrs = {"logit_lengths": (3, 3), "target_lengths": (1, 1)}
    assert kernels[rnnt_loss](edges.astype(np.float64), **attrs) is None
