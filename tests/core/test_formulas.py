"""Numbers that know how they were computed."""

import functools
import math

import pytest

from burnbook.core.formulas import Formula, Unknown, deferred, known, unknown
from tests.support.cases import cases


def rate(value=0.5):
    return unknown(value, Formula("lr"))


def count(value=3):
    return unknown(value, Formula("t"))


@cases(
    "compute text",
    (lambda lr, t: lr * 2.0, "lr * 2.0"),
    (lambda lr, t: 2.0 * lr, "2.0 * lr"),
    (lambda lr, t: 1 - lr, "1 - lr"),
    (lambda lr, t: lr - 1, "lr - 1"),
    (lambda lr, t: lr / (1 + t * 0.1), "lr / (1 + (t * 0.1))"),
    (lambda lr, t: t**2 * lr, "(t ** 2) * lr"),
    (lambda lr, t: -lr + t, "(-lr) + t"),
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_arithmetic_keeps_the_number_and_the_formula(compute, text):
    found = compute(rate(), count())
    assert found == compute(0.5, 3)
    assert str(found.formula) == text
    for lr, t in ((0.1, 7), (2.0, 1)):
        assert found.formula({"lr": lr, "t": t}) == compute(lr, t)


def test_a_count_stays_a_whole_number():
    assert isinstance(count() + 1, int)
    assert isinstance(count() * 0.5, float)
    assert type(known(count() + 1)) is int
    assert type(known(rate())) is float


def test_the_same_computation_is_the_same_formula():
    assert (rate(0.1) * 2.0).formula == (rate(0.7) * 2.0).formula
    assert (rate() * 2.0).formula != (2.0 * rate()).formula
    assert (rate() * count()).formula.names == {"lr", "t"}


def test_a_deferred_function_is_computed_anew():
    shorter = deferred(lambda lr, t: min(lr, 1 / math.sqrt(t)))
    assert shorter(0.5, 9) == 1 / 3
    assert not isinstance(shorter(0.5, 9), Unknown)
    found = shorter(rate(), count(9))
    assert found == 1 / 3
    assert found.formula({"lr": 0.01, "t": 9}) == 0.01


def test_several_results_are_parts():
    both = deferred(lambda t: (t + 1, t * 2.0))
    first, second = both(count())
    assert (first, second) == (4, 6.0)
    assert second.formula({"t": 5}) == 10.0


def test_a_cached_function_never_sees_unknown_numbers():
    seen = []

    @deferred
    @functools.lru_cache
    def twice(x):
        seen.append(type(x))
        return x + x

    assert twice(count()) == 6
    assert seen == [int]


def test_what_is_no_number_is_none_of_its_business():
    with pytest.raises(TypeError):
        _ = rate() + "text"
    assert known("text") == "text"
