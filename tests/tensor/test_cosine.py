"""The cosine of vectors of any length, with and without ε, and of no length."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Tensor, linalg

A, B = np.float64([1.0, 2.0, -2.0]), np.float64([2.0, 1.0, 2.0])  # both of length 3
LENGTHS = {
    "f16": (1e-2, 1.0, 1e4),
    "f32": (1e-15, 1.0, 1e15),
    "f64": (1e-99, 1.0, 1e99),
}
LONGEST = {"f16": 1e4, "f32": 1e37, "f64": 1e299}
EXACT = {"f16": 2e-3, "f32": 1e-6, "f64": 1e-14}


def cosine(dtype, a, b, eps=None):
    device = Autodiff(Numpy(dtype))
    x, y = (Tensor.from_numpy(v[None], device).require_grad() for v in (a, b))
    out = linalg.cosine_similarity(x, y, 1, eps)
    grads = out.sum().backward()
    return out.into_scalar(), np.asarray(x.grad(grads))[0], np.asarray(y.grad(grads))[0]


@pytest.mark.parametrize("dtype", LENGTHS)
@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("other", range(3))
def test_value_and_gradient_are_right_whatever_the_lengths(dtype, place, other):
    one, two = LENGTHS[dtype][place], LENGTHS[dtype][other]
    value, slope, _ = cosine(dtype, A * one, B * two)
    assert value == pytest.approx(0.0, abs=EXACT[dtype])
    assert np.float64(slope) * one == pytest.approx(B / 9, rel=4 * EXACT[dtype])


@pytest.mark.parametrize("dtype", LENGTHS)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_the_value_of_the_longest_vectors_is_a_number(dtype, sign):
    value, *_ = cosine(dtype, A * LONGEST[dtype], A * LONGEST[dtype] * sign)
    assert value == pytest.approx(sign, rel=EXACT[dtype])


@pytest.mark.parametrize("dtype", LENGTHS)
def test_of_a_vector_of_zeros_value_and_gradient_are_zero(dtype):
    """Not 1 / ε of the type, which is beyond the largest number."""
    value, slope, others = cosine(dtype, A * 0, B)
    assert value == 0
    assert slope.tolist() == others.tolist() == [0, 0, 0]


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_with_an_epsilon_short_vectors_are_divided_by_it(dtype):
    value, *_ = cosine(dtype, A * 1e-6, A * 1e-6, 1e-8)
    assert value == pytest.approx(9e-12 / 1e-8, rel=EXACT[dtype])
