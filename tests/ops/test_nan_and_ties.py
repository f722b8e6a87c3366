"""What is equal keeps its order, and what is unknown stays unknown, on every way."""

import math

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.program import capture
from burnbook.tensor import Tensor

NAN, INF = math.nan, math.inf
WAYS = [Numpy(), Numpy(compiled=False), Numpy(float="f64"), Numpy(float="f16")]
LEFT = [1.0, NAN, 3.0, 2.0, NAN, -INF]
RIGHT = [NAN, 1.0, 3.0, 4.0, NAN, INF]
LONG = 4000  # beyond the size from which compiled kernels serve


def tensors(device, *lists, times=1):
    return [Tensor.from_data(values * times, device) for values in lists]


@pytest.mark.parametrize("device", WAYS, ids=repr)
@pytest.mark.parametrize("times", [1, LONG])
def test_the_larger_and_the_smaller_of_a_number_and_nan_is_nan(device, times):
    x, y = tensors(device, LEFT, RIGHT, times=times)
    for found, plain in ((x.max_pair(y), np.maximum), (x.min_pair(y), np.minimum)):
        wanted = plain(np.asarray(LEFT), np.asarray(RIGHT)).tolist() * times
        assert np.array_equal(found.into_data().to_numpy(), wanted, equal_nan=True)


@pytest.mark.parametrize("device", WAYS, ids=repr)
@pytest.mark.parametrize("times", [1, LONG])
@pytest.mark.parametrize("name", ["max_pair", "min_pair"])
def test_a_nan_takes_the_gradient(device, times, name):
    x, y = (
        t.require_grad() for t in tensors(Autodiff(device), LEFT, RIGHT, times=times)
    )
    grads = getattr(x, name)(y).sum().backward()
    to_x, to_y = (t.grad(grads).into_data().to_list() for t in (x, y))
    larger = name == "max_pair"
    assert to_x == [0.0, 1.0, 1.0, float(not larger), 1.0, float(not larger)] * times
    assert to_y == [1.0 - g for g in to_x]


def test_a_program_says_the_same_of_nan():
    x, y = tensors(Numpy(), LEFT, RIGHT)
    found = capture(lambda a, b: (a.max_pair(b) + 0.0).exp(), x, y)(x, y)
    wanted = np.exp(np.maximum(np.asarray(LEFT), np.asarray(RIGHT)))
    assert np.allclose(np.asarray(found), wanted, equal_nan=True)


@pytest.mark.parametrize("device", WAYS, ids=repr)
@pytest.mark.parametrize("times", [1, LONG])
def test_zeros_of_both_signs_keep_their_order(device, times):
    n = 5 * times
    x = Tensor.from_data([0.0, -0.0, 0.0, -0.0, -0.0] * times, device)
    assert x.argsort(0).into_data().to_list() == list(range(n))
    assert x.argsort_descending(0).into_data().to_list() == list(range(n))
    assert x.argtopk(3, 0).into_data().to_list() == [0, 1, 2]
    _, places = x.sort_with_indices(0)
    assert places.into_data().to_list() == list(range(n))
    side_by_side = x.reshape([n, 1]).repeat_dim(1, 20)
    found = side_by_side.argtopk(3, 0).into_data().to_list()
    assert found == [[k] * 20 for k in range(3)]


@pytest.mark.parametrize("device", WAYS[:3], ids=repr)
@pytest.mark.parametrize("times", [1, LONG])
@pytest.mark.parametrize("name", ["remainder", "fmod"])
def test_the_divisor_of_a_rest_has_the_gradient_of_how_often_it_fits(
    device, times, name
):
    above, below = [1.0, 0.7, 6.0, -1.0, 7.5], [0.1, 0.1, 0.2, 0.3, -2.0]
    x, y = tensors(Autodiff(device), above, below, times=times)
    y = y.require_grad()
    found = y.grad(getattr(x, name)(y).sum().backward()).into_data().to_list()
    dtype = np.dtype(device.float_dtype).type
    exact = np.asarray(above, dtype).astype(np.longdouble)
    by = np.asarray(below, dtype).astype(np.longdouble)
    cut = np.floor if name == "remainder" else np.trunc
    assert found == (-cut(exact / by)).astype(float).tolist() * times
