"""Numbers that follow the batch size: found again from some of them."""

import math

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from burnbook import ops
from burnbook.program.sizes import POWERS, Dim, fitted
from burnbook.program.unify import by_diagonal
from tests.support.cases import cases

SIZES = (4, 5, 7, 1)
whole = st.integers(1, 40)


@given(whole, st.integers(0, 40), st.booleans())
def test_sizes_are_found_again(scale, offset, is_float):
    dim = Dim(scale, offset, is_float)
    found = fitted(SIZES, tuple(map(dim, SIZES)))
    assert found is not None
    assert [found(n) for n in range(200)] == [dim(n) for n in range(200)]
    assert all(type(found(n)) is type(dim(n)) for n in range(3))


@given(
    st.sampled_from(list(POWERS)),
    st.integers(1, 12),
    st.integers(0, 40),
    st.sampled_from([1.0, -1.0, 2.5, 1e-6, -1e6, math.pi]),
)
def test_floats_of_a_power_are_found_again(power, scale, offset, factor):
    dim = Dim(scale, offset, True, power, factor)
    found = fitted(SIZES, tuple(map(dim, SIZES)))
    assert found is not None
    for n in (1, 2, 3, 64, 1000):
        assert found(n) == pytest.approx(dim(n), rel=1e-9)


@example([-2.225073858507203e-309, -1.0, -1.0, -1.0])
@example([1e308, 1e-308, 5e-324, 1.0])
@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=4, max_size=4))
def test_what_is_found_gives_the_numbers_it_was_found_from(numbers):
    found = fitted(SIZES, tuple(numbers))
    if found is not None:
        made = [found(n) for n in SIZES]
        np.testing.assert_allclose(made, numbers, 1e-11)


@cases(
    "number",
    lambda n: n * 0.1,
    lambda n: 2.5 / n,
    lambda n: -1.5 / math.sqrt(n + 2),
    lambda n: 2 / n**2,
    lambda n: 2.5 / (n + 1000),
    lambda n: 1 / math.sqrt(150528 * n - 1),
    lambda n: 3 / (14 * n + 1),
    lambda n: 0.5 * math.sqrt(12 - n),
    lambda n: (n - 0.25) / 4,
)
@pytest.mark.parametrize("sizes", [(4, 5, 7, 1), (8, 9, 11)])
def test_the_factor_is_the_one_that_was_written(number, sizes):
    found = fitted(sizes, tuple(map(number, sizes)))
    assert found is not None
    for n in range(1, 12):
        assert found(n) == number(n)


@cases(
    "numbers",
    [math.log(n) for n in SIZES],
    [n / (n + 1) for n in SIZES],
    [2.0**n for n in SIZES],
    [n**2 for n in SIZES],
    [1.0, 1.0, 1.0, 2.0],
    [0.0, 0.0, math.inf, math.nan],
    [1.0 / n if n > 1 else 2.0 for n in SIZES],
)
def test_what_is_no_power_is_not_found(numbers):
    assert fitted(SIZES, tuple(numbers)) is None


def test_a_root_of_what_is_below_zero_is_nan_and_one_of_zero_infinite():
    assert math.isnan(Dim(1, -3, True, 0.5)(1))
    assert math.isnan(Dim(1, -3, True, -0.5)(1))
    assert [Dim(1, -3, True, power)(3) for power in (-1, -0.5, -2)] == [math.inf] * 3
    assert Dim(1, -3, True, 2)(1) == 4.0


@cases(
    "dim text",
    (Dim(1), "n"),
    (Dim(2, -1), "n*2 - 1"),
    (Dim(1, 0, True, -1), "1 / n"),
    (Dim(1, 2, True, -1, 3.0), "3 / (n + 2)"),
    (Dim(1, -1, True, -0.5), "1 / sqrt(n - 1)"),
    (Dim(3, 0, True, 0.5, -0.5), "-0.5 * sqrt(n*3)"),
    (Dim(1, 0, True, 2), "n * n"),
    (Dim(1, 1, True, -2), "1 / ((n + 1) * (n + 1))"),
    (Dim(1, 0, True, 1, 0.5), "0.5 * n"),
)
def test_a_number_is_written_as_a_formula(dim, text):
    assert str(dim) == text


@given(
    st.sampled_from(["equal", "not_equal", "greater_equal", "lower_equal"]),
    st.integers(-2, 2),
    st.sampled_from([bool, np.float32]),
    st.integers(0, 3),
)
def test_masks_by_the_diagonal_are_found_again(name, offset, dtype, wide):
    compare = getattr(ops, name).forward

    def mask(n):
        rows, columns = np.arange(n)[:, None], np.arange(n + wide)
        return compare(np, columns, rows + offset).astype(dtype)

    found = by_diagonal([mask(n) for n in (4, 5, 7)])
    assert found is not None
    op, at = found
    for n in (1, 9, 20):
        rows, columns = np.arange(n)[:, None], np.arange(n + wide)
        np.testing.assert_array_equal(op.forward(np, columns, rows + at), mask(n))


@cases(
    "made",
    lambda n: np.eye(n) * 2,
    lambda n: np.eye(n)[::-1],
    lambda n: np.eye(n) + np.eye(n, k=2),
    lambda n: np.eye(n, k=n - 4),
    lambda n: np.zeros((n, n)),
    lambda n: np.triu(np.ones((n, n)), 6),  # a half plane, or a diagonal?
    lambda n: np.tril(np.ones((n, n)), -6),
    lambda n: np.tril(np.ones((n, n)), 5),
    lambda n: np.add.outer(np.arange(n), np.arange(n)) % 2,
)
def test_other_arrays_are_no_masks_by_the_diagonal(made):
    assert by_diagonal([made(n) for n in (4, 5, 7)]) is None
