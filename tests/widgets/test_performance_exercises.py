"""The exercises of chapter 10.7: near misses are told in what respect."""

import pytest

from tests.support.cases import cases

pytest.importorskip("plotly", reason="chapters are checked with the [lab,test] extras")

from burnbook.program.compiler import RULES, fusion
from burnbook.tensor import Tensor, Transaction
from burnbook_widgets.chapters.exercises import EXERCISES


def one_after_the_other(losses):
    return [loss.into_scalar() for loss in losses]


def as_lists(losses):
    return [data.to_list() for data in Transaction(*losses).execute()]


def backwards(losses):
    read = Transaction(*losses[::-1]).execute()
    return [data.to_list()[0] for data in read]


def view_first(linear, x):
    return linear.forward(x).reshape([-1, 4, 8]).tanh().swap_dims(1, 2)


def not_swapped(linear, x):
    return linear.forward(x).tanh().reshape([-1, 4, 8])


@cases(
    "number near said",
    ("10.7.1", 8_000_000, "that is fused"),
    ("10.7.1", 6_000_000, "those are numbers"),
    ("10.7.1", 16_000_000, "each operation reads and writes"),
    ("10.7.1", 24_000_000, "there are four operations"),
    ("10.7.2", one_after_the_other, "the device is read 5 times for 5 losses"),
    ("10.7.2", as_lists, "it holds a list, and should hold floats"),
    ("10.7.2", backwards, "of [5.0, 4.0, 3.0, 2.0, 1.0]: "),
    ("10.7.2", tuple, "it is the class tuple"),
    ("10.7.2", lambda losses: tuple(losses), "it returns a tuple, and should"),
    ("10.7.3", view_first, "the plan has 2 calls"),
    ("10.7.3", not_swapped, "its shape is [6, 4, 8], and should be [6, 8, 4]"),
    ("10.7.3", lambda linear, x: None, "it returns None, and should return a tensor"),
    ("10.7.4", view_first, "it is a function, and should be a fusion rule"),
)
def test_a_near_miss_is_told_in_what_respect(number, near, said):
    assert (EXERCISES[number].trouble(near) or "").startswith(said)


def a_rule(pattern, forward):
    """A rule, which is not left among those that are declared."""
    fusion(pattern)(forward)
    return RULES.pop()


def apart(xp, x, y):
    return xp.subtract(x, y).reshape(-1)


def the_sum(xp, x, y):
    return xp.square(apart(xp, x, y)).sum().reshape(1)


def a_number(xp, x, y):
    return xp.square(apart(xp, x, y)).mean()


def of_the_first(xp, x, y):
    return xp.square(x).mean().reshape(1)


def in_two(xp, x):
    return xp.square(x).mean().reshape(1)


@pytest.mark.parametrize(
    ("pattern", "forward", "said"),
    [
        ("square mean", in_two, "with it the steps are sub, in_two, and should be one"),
        ("exp log", in_two, "with it the steps are sub, square, mean, and should be"),
        ("sub square mean", the_sum, "for x [4, 5] and y [4, 5]: "),
        ("sub square mean", of_the_first, "for x [4, 5] and y [4, 5]: "),
        ("sub square mean", in_two, "using it raised ArgumentError: fusion: the rule"),
    ],
)
def test_a_wrong_rule_is_told_in_what_respect(pattern, forward, said):
    told = EXERCISES["10.7.4"].trouble(a_rule(pattern, forward))
    assert (told or "").startswith(said)


def test_other_right_answers_pass():
    def by_cat(losses):
        return Tensor.cat(losses, 0).to_data().to_list()

    assert EXERCISES["10.7.2"].trouble(by_cat) is None
    rule = a_rule("sub square mean", lambda xp, x, y: a_number(xp, x, y).reshape(1))
    assert EXERCISES["10.7.4"].trouble(rule) is None
