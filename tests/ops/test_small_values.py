"""What is small keeps its digits: formulas that would cancel, in every type."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.backend.fusion import Fusion
from burnbook.tensor import Tensor, activation

LOWEST = {"f16": -15.0, "f32": -85.0, "f64": -700.0}
EXACT = {"f16": 4e-3, "f32": 2e-6, "f64": 1e-14}
DEVICES = {
    "plain": lambda dtype: Numpy(dtype, compiled=False),
    "default": lambda dtype: Numpy(dtype),
    "fusion": lambda dtype: Fusion(Numpy(dtype)),
}


def soft(x):
    return np.where(x >= 0, 1, np.exp(-np.abs(x))) / (1 + np.exp(-np.abs(x)))


VALUES = {
    "sigmoid": (activation.sigmoid, soft),
    "silu": (activation.silu, lambda x: x * soft(x)),
    "log_sigmoid": (activation.log_sigmoid, lambda x: -np.logaddexp(0, -x)),
    "softplus": (lambda x: activation.softplus(x, 1.0), lambda x: np.logaddexp(0, x)),
}
SLOPES = {
    "sigmoid": lambda x: soft(x) * soft(-x),
    "log_sigmoid": lambda x: soft(-x),
    "softplus": soft,
}


def points(dtype):
    """Both sides of 0, as far as results are normal numbers, and steps below 1."""
    low = LOWEST[dtype]
    found = np.concatenate([np.linspace(low, 0, 301), -np.geomspace(1e-3, -low, 50)])
    return np.concatenate([found, -found]).astype(np.dtype(dtype.replace("f", "float")))


def relative(found, wanted, dtype):
    """The largest error beside the size of the value, of what the type can hold."""
    small = 2 * np.finfo(dtype.replace("f", "float")).tiny
    fits = np.abs(wanted) > small
    found = np.asarray(found).astype(np.float64)
    return np.max(np.abs(found - wanted)[fits] / np.abs(wanted[fits]))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", LOWEST)
@pytest.mark.parametrize("name", VALUES)
def test_values_are_right_beside_their_size(name, dtype, device):
    x = points(dtype)
    act, formula = VALUES[name]
    found = act(Tensor.from_numpy(x, DEVICES[device](dtype)))
    assert relative(found, formula(x.astype(np.float64)), dtype) < EXACT[dtype]


@pytest.mark.parametrize("device", ["plain", "default"])
@pytest.mark.parametrize("dtype", LOWEST)
@pytest.mark.parametrize("name", SLOPES)
def test_slopes_are_right_beside_their_size(name, dtype, device):
    x = points(dtype)
    if name == "sigmoid":  # 1 − σ near 1 is rounded as the value was
        x = x[x < 0]
    leaf = Tensor.from_numpy(x, Autodiff(DEVICES[device](dtype))).require_grad()
    act, _ = VALUES[name]
    found = leaf.grad(act(leaf).sum().backward())
    wanted = SLOPES[name](x.astype(np.float64))
    assert relative(found, wanted, dtype) < EXACT[dtype]


@pytest.mark.parametrize("dtype", LOWEST)
def test_a_wrong_example_still_learns(dtype):
    """Of the loss −ln σ(x) the slope is near −1 where the network is most wrong."""
    leaf = Tensor.from_data([-11.0], Autodiff(Numpy(dtype))).require_grad()
    loss = -activation.sigmoid(leaf).log().sum()
    assert loss.into_scalar() == pytest.approx(np.logaddexp(0, 11), rel=EXACT[dtype])
    slope = leaf.grad(loss.backward()).into_scalar()
    assert slope == pytest.approx(-soft(11.0), rel=2 * EXACT[dtype])
