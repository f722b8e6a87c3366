"""Shape and Distribution: what they hold, how they print, what they refuse."""

import pickle

import numpy as np

from burnbook.tensor.distribution import Distribution
from burnbook.tensor.shape import Shape


def test_shape_is_a_tuple_with_burns_words():
    shape = Shape([2, 3])
    assert shape == (2, 3)
    assert isinstance(shape, tuple)
    assert (shape.num_elements(), shape.num_dims(), shape.dims) == (6, 2, (2, 3))
    rows, columns = shape
    assert (rows, columns) == (2, 3)


def test_shape_without_dims_has_one_element():
    assert Shape([]).num_elements() == 1
    assert Shape(()).num_dims() == 0


def test_shape_prints_as_in_burn_and_shows_as_a_tuple():
    assert str(Shape([2, 3])) == f"{Shape([2, 3])}" == "Shape { dims: [2, 3] }"
    assert repr(Shape([2, 3])) == "(2, 3)"


def test_shape_takes_numpy_integers_and_pickles():
    shape = Shape(np.array([4, 5]))
    assert type(shape[0]) is int
    copy = pickle.loads(pickle.dumps(shape))
    assert copy == shape
    assert type(copy) is Shape


def test_distributions_hold_their_numbers_and_print_as_written():
    uniform = Distribution.Uniform(-1.0, 1.0)
    assert (uniform.low, uniform.high) == (-1.0, 1.0)
    assert repr(uniform) == "Distribution.Uniform(-1.0, 1.0)"
    assert repr(Distribution.Normal(0.0, 2.0)) == "Distribution.Normal(0.0, 2.0)"
    assert repr(Distribution.Bernoulli(0.5)) == "Distribution.Bernoulli(0.5)"
    assert repr(Distribution.Default) == "Distribution.Default"


def test_distributions_are_equal_by_content_and_pickle():
    for one in (Distribution.Default, Distribution.Normal(0.0, 1.0)):
        assert pickle.loads(pickle.dumps(one)) == one
        assert isinstance(one, Distribution)
    assert Distribution.Bernoulli(0.5) != Distribution.Bernoulli(0.6)
