"""Softmax and cross-entropy: right, and safe at the ends of the number range."""

import math

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.ops.loss import cross_entropy
from burnbook.ops.softmax import log_softmax, softmax
from burnbook.tensor import Tensor, apply
from tests.oracle import images


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_softmax_equals_the_loop_in_every_dim(dim):
    x = np.random.default_rng(0).standard_normal((2, 3, 4)) * 5
    assert np.allclose(softmax.forward(np, x, dim=dim), images.softmax(x, dim))
    assert np.allclose(log_softmax.forward(np, x, dim=dim), images.log_softmax(x, dim))


def test_large_scores_do_not_overflow():
    x = np.array([[1e4, 0.0, -1e4]], np.float32)
    assert softmax.forward(np, x, dim=1).tolist() == [[1.0, 0.0, 0.0]]
    assert log_softmax.forward(np, x, dim=1).tolist() == [[0.0, -1e4, -2e4]]


@pytest.mark.parametrize("compiled", [False, None])
def test_cross_entropy_of_certain_answers(compiled):
    device = Numpy(compiled=compiled)
    logits = np.full((16, 8), -1e4, np.float32)
    logits[:, 3] = 1e4
    for target, expected in ((3, 0.0), (0, 2e4)):
        targets = Tensor.from_numpy(np.full(16, target), device)
        loss = apply(cross_entropy, Tensor.from_numpy(logits, device), targets)
        assert loss.into_scalar() == expected


@pytest.mark.parametrize("compiled", [False, None])
def test_equal_scores_cost_the_log_of_the_classes(compiled):
    device = Numpy(compiled=compiled)
    logits = Tensor.zeros([10, 7], device)
    loss = apply(cross_entropy, logits, Tensor.from_numpy(np.arange(10) % 7, device))
    assert math.isclose(loss.into_scalar(), math.log(7), rel_tol=1e-6)


def test_gradient_is_chances_minus_truth():
    device = Autodiff(Numpy())
    values = np.random.default_rng(0).standard_normal((5, 3)).astype(np.float32)
    targets = np.array([0, 1, 2, 1, 0])
    logits = Tensor.from_numpy(values, device).require_grad()
    loss = apply(cross_entropy, logits, Tensor.from_numpy(targets, device))
    slope = np.asarray(logits.grad(loss.backward()))
    expected = (images.softmax(values, 1) - np.eye(3)[targets]) / 5
    assert np.allclose(slope, expected, atol=1e-6)


def test_nan_scores_give_a_nan_loss():
    for compiled in (False, None):
        device = Numpy(compiled=compiled)
        logits = np.zeros((64, 10), np.float32)
        logits[5, 5] = np.nan
        targets = Tensor.from_numpy(np.zeros(64, np.int64), device)
        loss = apply(cross_entropy, Tensor.from_numpy(logits, device), targets)
        assert math.isnan(loss.into_scalar())
