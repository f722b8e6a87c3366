"""Uniform numbers of any width that the type holds."""

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError
from burnbook.tensor import Distribution, Tensor, TensorData

WIDTHS = {
    "f16": [(-1.0, 1.0), (-4e4, 4e4), (-65504.0, 65504.0), (0.0, 65504.0)],
    "f32": [(-1.5e38, 1.5e38), (-2e38, 2e38), (-3.4e38, 3.4e38), (1e38, 3.4e38)],
    "f64": [(-1e308, 1e308), (-1.7e308, 1.7e308), (0.0, 1.7e308)],
}
CASES = [(kind, *pair) for kind, pairs in WIDTHS.items() for pair in pairs]


@pytest.mark.parametrize("compiled", [None, False])
@pytest.mark.parametrize(("kind", "low", "high"), CASES)
def test_numbers_of_any_width_are_spread_evenly(kind, low, high, compiled):
    device = Numpy(float=kind, compiled=compiled)
    device.seed(1)
    drawn = Tensor.random([4000], Distribution.Uniform(low, high), device)
    values = np.asarray(drawn).astype(np.longdouble)
    shares = (values - low) / (np.longdouble(high) - np.longdouble(low))
    assert shares.min() >= 0
    assert shares.max() <= 1 + 1e-3
    assert abs(float(shares.mean()) - 0.5) < 0.03
    assert abs(float((shares < 0.25).mean()) - 0.25) < 0.03


@pytest.mark.parametrize(("kind", "high"), [("f16", 7e4), ("f32", 1e39)])
def test_bounds_that_the_type_does_not_hold_are_refused(kind, high):
    with pytest.raises(ConfigError, match="has no numbers from"):
        Tensor.random([3], Distribution.Uniform(0.0, high), Numpy(float=kind))


def test_data_is_drawn_so_too():
    rng = np.random.default_rng(3)
    data = TensorData.random([1000], Distribution.Uniform(-2e38, 2e38), rng)
    values = np.asarray(data.to_list())
    assert np.isfinite(values).all()
    assert abs((values < 0).mean() - 0.5) < 0.06
