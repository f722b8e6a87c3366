"""The short ways through brackets give what the long one gives, errors included."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Counting, Numpy
from burnbook.core.dtypes import Int
from burnbook.core.errors import BackendError, DimError
from burnbook.tensor import Tensor

VALUES = np.arange(12.0).reshape(4, 3)


def indices(values, device):
    return Tensor.from_data(np.array(values, dtype=np.int64), device, Int)


@pytest.mark.parametrize("device", [Numpy(), Autodiff(Numpy())], ids=repr)
@pytest.mark.parametrize("picked", [[0, 3, 3], [-1, 2], [1]])
def test_an_index_tensor_picks_as_in_numpy(device, picked):
    for values in (VALUES, VALUES[:, 0]):
        x = Tensor.from_data(values.astype(np.float32), device).require_grad()
        found = x[indices(picked, device)]
        np.testing.assert_array_equal(np.asarray(found), values[picked])
        if device.ad_enabled:
            expected = np.zeros_like(values)
            np.add.at(expected, picked, 1.0)
            np.testing.assert_array_equal(
                np.asarray(x.grad(found.backward())), expected
            )


def test_an_index_tensor_takes_one_op():
    device = Counting(Numpy())
    x, picked = Tensor.from_data(VALUES, device), indices([0, 2], device)
    before = sum(device.counts.values())
    x[picked]
    assert sum(device.counts.values()) == before + 1


def test_wrong_indices_are_said_by_the_brackets():
    x = Tensor.from_data(VALUES, Numpy())
    with pytest.raises(DimError, match=r"index: indices run from 0 to 4, dim 0"):
        x[indices([0, 4], Numpy())]
    with pytest.raises(BackendError, match="index: the tensor and its indices"):
        x[indices([0], Numpy(float="f64"))]


@pytest.mark.parametrize("at", [np.s_[:, 0], np.s_[1, :], np.s_[-1, 1:], np.s_[2, 2]])
def test_ints_and_slices_for_every_dim_pick_as_in_numpy(at):
    found = np.asarray(Tensor.from_data(VALUES, Numpy())[at])
    np.testing.assert_array_equal(found, np.atleast_1d(VALUES[at]))


def test_a_truth_value_is_no_index():
    with pytest.raises(DimError):
        Tensor.from_data(VALUES, Numpy())[:, True]
