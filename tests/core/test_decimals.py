"""Shortest decimals: those of NumPy, but of two equally near ones as Rust has it."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from burnbook.core.decimals import farther_decimal, positional_text, scientific_text
from burnbook.module import DisplaySettings
from burnbook.module.display import describe
from burnbook.tensor import TensorData
from burnbook.train.numbers import plain_float

RNG = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("number", "text"),
    [  # what Rust prints
        (np.float32(217900.125), "217900.13"),
        (np.float32(-3559735.25), "-3559735.3"),
        (np.float32(33554436), "33554436"),
        (np.float64(1.48600006103515625), "1.4860000610351563"),
        (np.float64(1.7480000257492065), "1.7480000257492065"),
        (np.float32(0.1), "0.1"),
        (np.float32(-0.0), "-0"),
        (1e-7, "0.0000001"),
    ],
)
def test_a_tie_goes_away_from_zero(number, text):
    assert positional_text(number) == text


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_digits_are_the_shortest_that_read_back(dtype):
    halves = RNG.integers(1 << 20, 1 << 22, 2000) + RNG.choice([0.125, 0.25, 0.5], 2000)
    spread = RNG.standard_normal(2000) * 10.0 ** RNG.integers(-30, 30, 2000)
    ties = 0
    for number in np.concatenate([halves, spread]).astype(dtype):
        for text in (positional_text(number), scientific_text(number)):
            assert dtype(text) == number
            digits = Decimal(text).normalize().as_tuple().digits
            usual = Decimal(np.format_float_scientific(number, trim="-")).as_tuple()
            assert len(digits) <= len(usual.digits)
        if farther_decimal(number) is not None:
            ties += 1
            gap = abs(Fraction(float(number)) - Fraction(positional_text(number)))
            even = np.format_float_positional(number, trim="-")
            assert gap == abs(Fraction(float(number)) - Fraction(even))
            assert abs(Fraction(positional_text(number))) > abs(float(number))
    assert ties > (100 if dtype is np.float32 else -1)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_has_no_tie(number):
    assert farther_decimal(number) is None


def test_tensors_metrics_and_modules_print_ties_as_rust():
    number = np.float32(217900.125)
    assert str(TensorData([217900.125])) == "[217900.13]"
    assert describe(number, DisplaySettings()) == "217900.13"
    assert plain_float(1.48600006103515625) == "1.4860000610351563"
    large = np.float32(2**24 * 1e10)
    assert np.float32(str(TensorData(large.reshape(1)))[1:-1]) == large
