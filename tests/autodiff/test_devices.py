"""Graphs that cross from one device to another."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Int, Tensor
from tests.support.far_arrays import Far

DEVICE = Autodiff(Numpy())


def leaf(values, device=DEVICE):
    return Tensor.from_data(values, device).require_grad()


@pytest.mark.parametrize(
    ("here", "there"),
    [
        (Numpy(), Numpy(float="f64")),
        (Numpy(float="f64"), Far()),
        (Far(), Numpy(compiled=False)),
    ],
    ids=repr,
)
def test_gradients_come_back_from_another_device(here, there):
    one, two = Autodiff(here), Autodiff(there)
    x, w = leaf([[1.0, 2.0]], one), leaf([[3.0], [4.0]], two)
    early = x * x
    moved = early.to_device(two)
    assert moved.device() is two
    assert not moved.is_require_grad()
    loss = (moved @ w).exp().log() * 2.0
    grads = loss.sum().backward()
    assert x.grad(grads).backend is here
    assert w.grad(grads).backend is there
    assert np.allclose(x.grad(grads).to_data().array, [[12.0, 32.0]], rtol=1e-5)
    assert np.allclose(w.grad(grads).to_data().array, [[2.0], [8.0]], rtol=1e-5)
    assert x.grad(grads).dtype == here.float


def test_a_graph_may_go_there_and_back_and_beside():
    one, two = Autodiff(Numpy(float="f64")), Autodiff(Far("f64"))
    x = leaf([0.5, -0.25], one)
    y = x.sin()
    there = y.to_device(two).exp()
    seen = []
    y.hook(seen.append)
    loss = (there.to_device(one) * y * x).sum()
    found = np.asarray(x.grad(loss.backward()))
    a = np.array([0.5, -0.25])
    s, c = np.sin(a), np.cos(a)
    assert np.allclose(found, np.exp(s) * (c * s * a + c * a + s))
    assert np.allclose(np.asarray(seen[0]), np.exp(s) * (s * a + a))
    assert len(one.arrived) == 2  # there, and back again
    del there, loss
    assert not one.arrived  # later graphs walk the fast way


def test_a_second_derivative_comes_back_from_another_device():
    one, two = Autodiff(Numpy(float="f64")), Autodiff(Far("f64"))
    low = leaf([0.5], one)
    high = Tensor.from_inner(low, Autodiff(one)).require_grad()
    out = high.to_device(Autodiff(two)).sin()
    first = high.grad(out.backward())
    assert first.backend is one
    second = low.grad(first.backward())
    assert np.isclose(second.into_scalar(), -np.sin(0.5))


def test_moving_to_a_device_without_autodiff_cuts_the_graph():
    moved = (leaf([1.0]) * 2.0).to_device(Numpy(float="f64"))
    assert np.asarray(moved).tolist() == [2.0]
    assert not moved._tracked()


def test_an_integer_moves_as_it_is():
    x = Tensor.from_data([1, 2], DEVICE, Int)
    assert x.to_device(Autodiff(Numpy(float="f64"))).into_data().to_list() == [1, 2]
