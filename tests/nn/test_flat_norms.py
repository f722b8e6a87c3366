"""Norms where a row is flat, or far from zero beside its spread."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Tensor

NORMS = {
    "layer": (lambda: nn.LayerNormConfig(768), [2, 768], (-1,), True),
    "batch": (lambda: nn.BatchNormConfig(3), [4, 3, 9, 9], (0, 2, 3), True),
    "instance": (lambda: nn.InstanceNormConfig(2), [2, 2, 30, 30], (2, 3), False),
    "group": (lambda: nn.GroupNormConfig(1, 8), [2, 8, 9, 9], (1, 2, 3), False),
}
EACH = pytest.mark.parametrize("name", NORMS)
DEVICES = pytest.mark.parametrize(
    "device", [Autodiff(Numpy()), Autodiff(Numpy(compiled=False))], ids=repr
)


@EACH
@DEVICES
@pytest.mark.parametrize("value", [1.1, -10.1, 100.1, 10000.1, 1e9, 1e-9])
def test_what_is_flat_becomes_zero(name, device, value):
    make, shape, _, _ = NORMS[name]
    norm = make().init(device)
    out = np.asarray(norm.forward(Tensor.full(shape, value, device)))
    np.testing.assert_array_equal(out, np.zeros(shape))


@EACH
@DEVICES
@pytest.mark.parametrize("far", [10.0, 1000.0])
def test_rows_far_from_zero_keep_their_digits(name, device, far):
    """Beside float64 on the same numbers; ε is within the root or outside of it."""
    make, shape, axes, inside = NORMS[name]
    norm, rng = make().init(device), np.random.default_rng(0)
    x = (far + rng.standard_normal(shape)).astype(np.float32)
    g = rng.standard_normal(shape).astype(np.float32)
    tensor = Tensor.from_numpy(x, device).require_grad()
    out = norm.forward(tensor)
    slope = tensor.grad((out * Tensor.from_numpy(g, device)).sum().backward())

    wide = x.astype(np.float64)
    mean, var = wide.mean(axes, keepdims=True), wide.var(axes, keepdims=True)
    below = np.sqrt(var + 1e-5) if inside else np.sqrt(var) + 1e-5
    hat, h = (wide - mean) / below, g.astype(np.float64)
    q = 1 if inside else below / np.sqrt(var)
    along = (h * hat).mean(axes, keepdims=True) * q
    wanted = (h - h.mean(axes, keepdims=True) - hat * along) / below
    np.testing.assert_allclose(np.asarray(out), hat, 0, 5e-6 + far * 2e-8)
    np.testing.assert_allclose(np.asarray(slope), wanted, 0, 5e-6 + far * 2e-8)
