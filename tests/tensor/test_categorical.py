"""Class numbers that are drawn: from what weights, and what is none."""

import math

import numpy as np
import pytest

from burnbook import seed
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import DataError, KindError
from burnbook.tensor import Distribution, Int, Tensor, linalg

DEVICE = Numpy()


@pytest.mark.parametrize(
    ("weights", "what"),
    [
        ([[1.0, 2.0], [0.0, 0.0]], "no class has a weight in row 1"),
        ([math.nan, 2.0], "nan is no weight"),
        ([math.inf, 1.0], "inf is no weight"),
        ([-0.5, 1.0], "-0.5 is no weight"),
    ],
)
def test_what_is_no_weight_is_refused(weights, what):
    with pytest.raises(DataError, match=what):
        Tensor.from_data(weights, DEVICE).categorical(3)


def test_classes_are_drawn_as_often_as_their_weights_say():
    weights = Tensor.from_data([[1.0, 0.0, 3.0], [1e38, 3e38, 3e38]], DEVICE)
    drawn = np.asarray(weights.categorical(20_000))
    shares = [np.bincount(row, minlength=3) / 20_000 for row in drawn]
    assert np.allclose(shares, [[1 / 4, 0, 3 / 4], [1 / 7, 3 / 7, 3 / 7]], atol=0.02)


@pytest.mark.parametrize("bounds", [(-1.5, 1.5), (0.5, 2.0), (0.0, 2.5)])
def test_whole_numbers_are_drawn_between_whole_bounds(bounds):
    with pytest.raises(KindError, match=r"no bounds .*\n.*Uniform\(-?\d, \d\)"):
        Tensor.random([3], Distribution.Uniform(*bounds), DEVICE, Int)


@pytest.mark.parametrize("value", [0.5, 7.9, math.nan, math.inf])
def test_whole_numbers_are_not_filled_with_fractions(value):
    x = Tensor.from_ints([[1, 2]])
    for act in (
        lambda: x.pad((1, 0, 0, 0), value),
        lambda: x.one_hot_fill(3, value, 0.0),
        lambda: x.one_hot_fill(3, 1.0, value),
    ):
        with pytest.raises(KindError, match="cannot hold"):
            act()


def test_an_infinity_is_close_to_itself_alone():
    x = Tensor.from_floats([math.inf, -math.inf, math.nan, 1.0, math.inf])
    y = Tensor.from_floats([math.inf, -math.inf, math.nan, math.inf, -math.inf])
    wanted = [True, True, False, False, False]
    assert x.is_close(y).into_data().to_list() == wanted
    assert x.slice([(0, 2)]).all_close(y.slice([(0, 2)]))


@pytest.mark.parametrize(
    ("float_type", "weight"),
    [("f16", 1e-3), ("f16", 1e-6), ("f16", 6e-8), ("f32", 1e-38), ("f32", 1e-45)],
)
def test_weights_next_to_nothing_are_weights_all_the_same(float_type, weight):
    """Two classes of 1,000 have one, the same."""
    weights = np.zeros(1000)
    weights[[500, 700]] = weight
    drawn = Tensor.from_numpy(weights, Numpy(float=float_type)).categorical(2000)
    classes, counts = np.unique(np.asarray(drawn), return_counts=True)
    assert classes.tolist() == [500, 700]
    assert np.allclose(counts / 2000, 0.5, atol=0.05)


@pytest.mark.parametrize("p", [0.25, 0.5, 0.9, 1.0, 1.5, 2.0, 3.0])
@pytest.mark.parametrize("values", [[0.0, 0.0], [1.0, 0.0], [-2.0, 0.0]])
def test_at_zero_a_norm_has_the_gradient_zero(p, values):
    x = Tensor.from_floats(values, Autodiff(DEVICE)).require_grad()
    slope = x.grad(linalg.vector_norm(x, p).backward())
    np.testing.assert_allclose(np.asarray(slope), np.sign(values), 1e-5)


def test_no_seed_is_another_one_each_time():
    drawn = []
    for _ in range(2):
        seed(None)
        drawn.append(np.asarray(Tensor.random([8], Distribution.Default)).tolist())
    assert drawn[0] != drawn[1]


@pytest.mark.parametrize("rows", [1, 3])
def test_many_classes_are_found_by_halving_as_by_comparing(rows, monkeypatch):
    weights = np.random.default_rng(0).random((rows, 1000)).astype(np.float32)
    weights[:, 400:500] = 0
    weights = Tensor.from_numpy(weights, DEVICE)
    drawn = []
    for most in (1, 1 << 40):
        monkeypatch.setattr("burnbook.tensor.indexing.COMPARED", most)
        seed(3)
        drawn.append(np.asarray(weights.categorical(5000)))
    assert np.array_equal(*drawn)
    assert not np.isin(drawn[0], np.arange(400, 500)).any()


def test_half_numbers_draw_every_one_of_many_classes():
    seed(0)
    weights = Tensor.ones([5000], Numpy(float="f16"))
    drawn = weights.categorical(200_000)
    counts = np.bincount(np.asarray(drawn), minlength=5000)
    assert drawn.device() == weights.device()
    assert counts.min() > 10  # 40 each, by chance from 18 to 66
    assert counts.max() < 90
