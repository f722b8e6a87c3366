"""The generator behind random ops: one object a thread, set to the key of each draw."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from burnbook.ops.random import random_bits

KEYS = [(0, 0), (1, 2), (2**64 - 1, 2**63 + 5), (7, 0)]


def fresh(count, key):
    raw = np.random.Philox(key=key[1] << 64 | key[0]).random_raw(count)
    return np.atleast_1d(raw)


@pytest.mark.parametrize("count", [1, 3, 64])
def test_draws_are_those_of_a_fresh_generator_in_any_order(count):
    for key in [*KEYS, *reversed(KEYS)]:
        found = random_bits(np, count, key, np.uint64)
        np.testing.assert_array_equal(found, fresh(count, key))


def test_threads_do_not_disturb_each_other():
    def draw(number):
        return random_bits(np, 5000, (number, 3), np.uint64)

    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(draw, range(200))):
            np.testing.assert_array_equal(found, fresh(5000, (number, 3)))


def test_a_draw_makes_no_new_generator(monkeypatch):
    random_bits(np, 4, (1, 2), np.uint64)
    monkeypatch.delattr(np.random, "Philox")
    np.testing.assert_array_equal(random_bits(np, 4, (1, 2), np.uint64).shape, [4])
