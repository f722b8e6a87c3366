"""Normalization kernels: equal to the plain code, in every shape that they serve."""

import numpy as np
import pytest

from burnbook.ops.batch_norm import batch_norm, batch_norm_known
from burnbook.ops.norm import group_norm, layer_norm, rms_norm
from tests.support.kernel_checks import agree, normal

ALL = (True, True, True)
ROWS = [(3, 5), (2, 7, 64), (64, 256), (1, 1000), (300, 48), (16,), (3, 250, 256)]
PLANES = [
    (2, 6, 9),
    (5, 4, 3, 3),
    (1, 6, 40),
    (40, 2, 8),
    (3, 6, 2, 2, 5),
    (4, 6, 90, 90),
]


def given(values, count):
    return [v if i < count else None for i, v in enumerate(values)]


@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("count", [0, 1, 2])
def test_layer_norm(kernels, shape, count):
    x = 3 * normal(*shape) + 1
    line = [normal(shape[-1], seed=i) for i in (1, 2)]
    gamma, beta = given(line, count)
    agree(kernels, layer_norm, x, gamma, beta, epsilon=1e-3)
    _, mean, var = layer_norm.forward(np, x, epsilon=1e-3)
    g = normal(*shape, seed=3)
    needs = (True, count > 0, count > 1)
    kept = (g, x, gamma, mean, var)
    agree(kernels, layer_norm.backward, *kept, needs=needs, epsilon=1e-3)


@pytest.mark.parametrize("shape", ROWS, ids=str)
@pytest.mark.parametrize("count", [0, 1])
def test_rms_norm(kernels, shape, count):
    x, (gamma,) = 3 * normal(*shape) + 1, given([normal(shape[-1], seed=1)], count)
    agree(kernels, rms_norm, x, gamma, epsilon=1e-3)
    _, power = rms_norm.forward(np, x, epsilon=1e-3)
    kept = (normal(*shape, seed=3), x, gamma, power)
    agree(kernels, rms_norm.backward, *kept, needs=(True, count > 0), epsilon=1e-3)


@pytest.mark.parametrize("inside", [True, False])
@pytest.mark.parametrize("groups", [1, 2, "channels"])
@pytest.mark.parametrize("shape", PLANES, ids=str)
def test_group_norm(kernels, shape, groups, inside):
    groups = shape[1] if groups == "channels" else groups
    attrs = {"groups": groups, "epsilon": 1e-3, "inside": inside}
    x = 3 * normal(*shape) + 1
    gamma, beta = normal(shape[1], seed=1), normal(shape[1], seed=2)
    agree(kernels, group_norm, x, gamma, beta, **attrs)
    agree(kernels, group_norm, x, None, None, **attrs)
    _, mean, var = group_norm.forward(np, x, **attrs)
    g = normal(*shape, seed=3)
    kept = (mean, var)
    agree(kernels, group_norm.backward, g, x, gamma, *kept, needs=ALL, **attrs)
    needs = (True, False, False)
    agree(kernels, group_norm.backward, g, x, None, *kept, needs=needs, **attrs)


@pytest.mark.parametrize("shape", PLANES, ids=str)
def test_batch_norm(kernels, shape):
    x = 3 * normal(*shape) + 1
    gamma, beta = normal(shape[1], seed=1), normal(shape[1], seed=2)
    agree(kernels, batch_norm, x, gamma, beta, epsilon=1e-3)
    _, mean, var = batch_norm.forward(np, x, gamma, beta, epsilon=1e-3)
    kept = (normal(*shape, seed=3), x, gamma, mean, var)
    agree(kernels, batch_norm.backward, *kept, needs=ALL, epsilon=1e-3)
    needs = (False, True, True)
    agree(kernels, batch_norm.backward, *kept, needs=needs, epsilon=1e-3)
    agree(kernels, batch_norm_known, x, gamma, beta, mean, var, epsilon=1e-3)


def test_rows_far_from_zero_keep_their_digits(kernels):
    x = normal(8, 512) * np.float32(0.01) + 1000
    wide = layer_norm.forward(np, x.astype(np.float64), epsilon=1e-9)[0]
    found = kernels[layer_norm](x, epsilon=1e-9)[0]
    assert np.abs(found - wide).max() < 0.02


def test_a_constant_group_has_finite_gradients(kernels):
    x, g = np.full((2, 2, 16), 3.0, np.float32), normal(2, 2, 16)
    attrs = {"groups": 1, "epsilon": 1e-5}
    _, mean, var = group_norm.forward(np, x, **attrs)
    kept = (g, x, None, mean, var)
    needs = (True, False, False)
    agree(kernels, group_norm.backward, *kept, needs=needs, **attrs)
    assert np.isfinite(
        group_norm.backward.forward(np, *kept, needs=needs, **attrs)[0]
    ).all()


def test_a_gradient_that_is_one_number_many_times_is_served(kernels):
    x = normal(6, 32)
    _, mean, var = layer_norm.forward(np, x)
    g = np.broadcast_to(np.float32(0.5), x.shape)
    kept = (g, x, normal(32, seed=1), mean, var)
    agree(kernels, layer_norm.backward, *kept, needs=ALL)


@pytest.mark.parametrize("values", [np.nan, np.inf])
def test_nan_and_infinity_are_seen(kernels, values):
    x = normal(4, 32)
    x[2, 5] = values
    with np.errstate(invalid="ignore"):
        out = kernels[layer_norm](x)[0]
    assert np.isnan(out[2]).any()
    assert np.isfinite(out[[0, 1, 3]]).all()
