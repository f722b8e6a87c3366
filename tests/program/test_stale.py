"""What a captured function takes from elsewhere, changed in all ways of Python."""

import array
import collections
import functools
import itertools
import random
import sys
import types
import warnings

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.config import Config
from burnbook.program import capture, captured
from burnbook.tensor import Tensor

DEVICE = Numpy()
X = Tensor.from_data([1.0, 1.0], DEVICE)


class Plain:
    """An object of a reader's own."""

    weight = 1.0  # of the class, until the object has its own

    def __init__(self, **values):
        vars(self).update(values)


class Slotted:
    __slots__ = ("weight",)

    def __init__(self):
        self.weight = 1.0


class Callable(Plain):
    def __call__(self, x):
        return x * self.weight


class WithProperty(Plain):
    @property
    def scale(self):
        return self.inner * 1.0


class Table(Plain):
    def __getitem__(self, key):
        return self.rows[key]


class Weights(Config):
    weight: float = 1.0


def in_place(x, values):
    """A list, a dict, an array …: (function, what changes it to 5)."""
    return lambda x: x * float(values[0]), functools.partial(set_first, values)


def set_first(values, value=5.0):
    values[0] = value


def array_in_place():
    values = np.ones(1, "f4")
    return lambda x: x * Tensor.from_numpy(values), lambda: values.__setitem__(..., 5)


def array_in_a_dict():
    held = {"w": np.ones(1, "f4")}
    return lambda x: x * Tensor.from_numpy(held["w"]), lambda: held["w"].fill(5)


def array_replaced():
    held = {"w": np.ones(1, "f4")}
    return (
        lambda x: x * Tensor.from_numpy(held["w"]),
        lambda: held.update(w=np.full(1, 5, "f4")),
    )


def dict_in_a_dict():
    held = {"loss": {"w": 1.0}}
    return lambda x: x * held["loss"]["w"], lambda: held["loss"].update(w=5.0)


def deep_dict():
    held = {"a": [{"b": {"w": 1.0}}]}
    return lambda x: x * held["a"][0]["b"]["w"], lambda: held["a"][0]["b"].update(w=5.0)


def tensor_in_nested_lists():
    held = [[Tensor.from_data([1.0, 1.0], DEVICE)]]
    new = Tensor.from_data([5.0, 5.0], DEVICE)
    return lambda x: x * held[0][0], lambda: held[0].__setitem__(0, new)


def object_in_a_list():
    held = [Plain(weight=1.0)]
    return lambda x: x * held[0].weight, lambda: setattr(held[0], "weight", 5.0)


def config_in_a_dict():
    held = {"c": Weights()}
    return (
        lambda x: x * held["c"].weight,
        lambda: held.update(c=held["c"].with_weight(5.0)),
    )


def attribute_of_a_callable():
    made = Callable()
    return made, lambda: setattr(made, "weight", 5.0)


def attribute_of_the_class():
    cls = type("Own", (Plain,), {"__module__": __name__, "weight": 1.0})
    made = cls()
    return lambda x: x * made.weight, lambda: setattr(cls, "weight", 5.0)


def own_attribute_above_the_class():
    made = Plain()
    return lambda x: x * made.weight, lambda: setattr(made, "weight", 5.0)


def slot():
    made = Slotted()
    return lambda x: x * made.weight, lambda: setattr(made, "weight", 5.0)


def behind_a_property():
    made = WithProperty(inner=1.0)
    return lambda x: x * made.scale, lambda: setattr(made, "inner", 5.0)


def by_getattr():
    made = Plain(weight=1.0)
    return lambda x: x * getattr(made, "weight"), lambda: setattr(made, "weight", 5.0)  # noqa: B009 - as readers write it


def by_brackets():
    made = Table(rows={"w": 1.0})
    return lambda x: x * made["w"], lambda: made.rows.update(w=5.0)


def dict_of_a_partial():
    held = {"w": 1.0}
    run = functools.partial(lambda x, held: x * held["w"], held=held)
    return run, lambda: held.update(w=5.0)


def default_of_a_helper():
    held = {"w": 1.0}

    def helper(x, held=held):
        return x * held["w"]

    return lambda x: helper(x), lambda: held.update(w=5.0)


def module_imported_inside():
    module = types.ModuleType("burnbooks_own_settings")
    module.weight = 1.0
    sys.modules[module.__name__] = module

    def run(x):
        import burnbooks_own_settings

        return x * burnbooks_own_settings.weight

    return run, lambda: setattr(module, "weight", 5.0)


def sequence(make):
    def case():
        values = make([1.0, 2.0])
        return lambda x: x * float(values[0]), functools.partial(set_first, values)

    return case


def bytes_in_place():
    values = bytearray([1])
    return lambda x: x * float(values[0]), lambda: set_first(values, 5)


def grown():
    values = [1.0]
    return lambda x: x * sum(values), lambda: values.append(4.0)


CASES = {
    case.__name__: case
    for case in (
        *(array_in_place, array_in_a_dict, array_replaced, dict_in_a_dict, deep_dict),
        *(tensor_in_nested_lists, object_in_a_list, config_in_a_dict, slot),
        *(attribute_of_a_callable, attribute_of_the_class, behind_a_property),
        *(own_attribute_above_the_class, by_getattr, by_brackets, dict_of_a_partial),
        *(default_of_a_helper, module_imported_inside, bytes_in_place, grown),
    )
} | {
    "list": sequence(list),
    "deque": sequence(collections.deque),
    "array": sequence(lambda values: array.array("d", values)),
}


@pytest.mark.parametrize("name", CASES)
def test_a_captured_function_never_goes_stale(name):
    function, change = CASES[name]()
    run = captured(function)
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(run(X)), [1, 1])
    assert not run.refusals
    change()
    for _ in range(3):
        np.testing.assert_array_equal(np.asarray(run(X)), [5, 5])


@pytest.mark.parametrize("name", [n for n in CASES if n != "tensor_in_nested_lists"])
def test_a_program_tells_what_it_has_not_seen(name):
    function, change = CASES[name]()
    program = capture(function, X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program(X)
    change()
    with pytest.warns(UserWarning, match="the program goes on with"):
        np.testing.assert_array_equal(np.asarray(program(X)), [1, 1])


def test_a_large_array_from_elsewhere_runs_step_by_step():
    values = np.ones(1 << 19)
    run = captured(lambda x: x * float(values[0]))
    with pytest.warns(UserWarning, match="values is an array of 4,194,304 bytes"):
        run(X)
    values[0] = 5
    np.testing.assert_array_equal(np.asarray(run(X)), [5, 5])


# What a function takes from elsewhere and uses up.


class Counter:
    count = 0


def of_an_iterator():
    values = iter(range(100))
    return lambda x: x + float(next(values))


def of_a_count():
    values = itertools.count()
    return lambda x: x + float(next(values))


def of_a_generator():
    values = (float(i) for i in range(100))
    return lambda x: x + next(values)


def of_a_class():
    cls = type("Own", (Counter,), {"__module__": __name__, "count": 0})

    def run(x):
        cls.count += 1
        return x + float(cls.count - 1)

    return run


def of_a_default():
    def run(x, seen=[]):  # noqa: B006 - as readers write it
        seen.append(1)
        return x + float(len(seen) - 1)

    return run


def of_an_array():
    values = np.zeros(1)

    def run(x):
        values[0] += 1
        return x + float(values[0] - 1)

    return run


def of_pythons_random():
    random.seed(0)
    return lambda x: x + random.random()


def of_a_random():
    made = random.Random(0)
    return lambda x: x + made.random()


def of_numpys_generator():
    made = np.random.default_rng(0)
    return lambda x: x + float(made.random())


def of_numpys_random():
    np.random.seed(0)
    return lambda x: x + float(np.random.random())


USED_UP = {
    case.__name__: case
    for case in (
        *(of_an_iterator, of_a_count, of_a_generator, of_a_class, of_a_default),
        *(of_an_array, of_pythons_random, of_a_random, of_numpys_generator),
        of_numpys_random,
    )
}


@pytest.mark.parametrize("name", USED_UP)
def test_what_a_failed_capture_has_used_is_put_back(name):
    plain = USED_UP[name]()
    wanted = [np.asarray(plain(X)).tolist() for _ in range(5)]
    run = captured(USED_UP[name]())
    with pytest.warns(UserWarning, match="step by step"):
        found = [np.asarray(run(X)).tolist() for _ in range(5)]
    assert found == wanted
