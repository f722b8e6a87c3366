"""What `Numpy()` gives ops in place of NumPy's own functions."""

import numpy as np
import pytest

from burnbook.backend import Numpy

xp = Numpy(compiled=False).xp
SIZES = [0, 1, 100, 1 << 14, (1 << 14) + 1, 100_003]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("number", [0, 0.5, -1.0, np.inf])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_maximum_with_a_number_is_numpys(size, number, dtype):
    x = np.random.default_rng(size).standard_normal(size).astype(dtype)
    x[::7] = np.nan
    x[3::11] = -np.inf
    found = xp.maximum(x, number)
    assert found.dtype == x.dtype
    np.testing.assert_array_equal(found, np.maximum(x, number))


def test_maximum_keeps_every_other_way_to_call_it():
    x = np.arange(-6.0, 6.0).reshape(3, 4)
    np.testing.assert_array_equal(xp.maximum(x.T, 0), np.maximum(x.T, 0))
    np.testing.assert_array_equal(xp.maximum(x, x[::-1]), np.maximum(x, x[::-1]))
    np.testing.assert_array_equal(xp.maximum(x.astype(int), 0), np.maximum(x, 0))
    out = np.empty_like(x)
    assert xp.maximum(x, 0, out=out) is out
    np.testing.assert_array_equal(xp.maximum.accumulate(x, axis=1), x)
    assert xp.maximum(x, 0).shape == (3, 4)
    assert not np.shares_memory(xp.maximum(x, -9), x)
