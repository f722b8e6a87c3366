"""Kernels that draw, stretched views, and how the threads wait, by the plain code."""

import time

import numpy as np
import pytest

from burnbook.backend import Numpy, compiled
from burnbook.backend.compiled.runtime.buffers import Buffers
from burnbook.backend.compiled.runtime.thread_pool import SPINS, ThreadPool
from burnbook.ops import compare
from burnbook.ops.index import gather
from burnbook.ops.random import normal
from burnbook.ops.scan import prod_dim
from burnbook.ops.shape import cat, expand
from burnbook.ops.softmax import log_softmax, softmax
from burnbook.ops.sorting import argtopk
from burnbook.tensor import Tensor
from tests.support.kernel_checks import agree, family, normal as drawn, use_threads

F32 = np.dtype(np.float32)
KEYS = [(1, 2), (2**64 - 1, 2**64 - 1), (0, 0)]


@pytest.fixture(scope="module")
def module():
    return family("random")


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "shape", [(1,), (2,), (3,), (5, 1), (1021,), (1022,), (1023,), (64, 16), (9, 4567)]
)
def test_the_normal_distribution_is_that_of_the_plain_code(kernels, shape, key):
    for more in ({}, {"mean": -3.0, "std": 0.5}, {"std": 0.0, "mean": 1.0}):
        attrs = {"shape": shape, "key": key, "dtype": F32, **more}
        found, expected = kernels[normal](**attrs), normal.forward(np, **attrs)
        assert found.shape == expected.shape
        assert found.dtype == expected.dtype
        assert np.allclose(found, expected, rtol=1e-6, atol=1e-6)
        assert np.count_nonzero(found != expected) <= 1 + found.size // 10_000


def test_a_tensor_drawn_on_every_backend_is_the_same(kernels, monkeypatch):
    monkeypatch.setattr(compiled, "_usable", frozenset(compiled.FAMILIES))
    attrs = {"shape": (70, 33), "key": (5, 6), "dtype": F32}
    plain = Numpy(compiled=False).run(normal, (), attrs)
    assert np.allclose(Numpy().run(normal, (), attrs), plain, rtol=1e-6, atol=1e-6)


def test_other_types_and_nothing_at_all_are_drawn_by_the_plain_code(kernels):
    for dtype, shape in (("f8", (9,)), ("f2", (9,)), ("f4", (0, 3))):
        assert kernels[normal](shape=shape, key=(1, 2), dtype=np.dtype(dtype)) is None


@pytest.mark.parametrize("count", [9999, 10_000, 30_001])
def test_the_number_of_threads_does_not_change_what_is_drawn(
    module, monkeypatch, count
):
    answers = []
    for size in (1, 2, 5):
        use_threads(monkeypatch, size, [module])
        attrs = {"shape": (count,), "key": (3, 4), "dtype": F32}
        answers.append(module.normal_kernel(**attrs))
    assert np.array_equal(answers[0], answers[1])
    assert np.array_equal(answers[0], answers[2])


def test_the_ends_of_the_random_numbers(module):
    """The least and the largest fraction, and where a quarter of a turn begins."""
    steps = np.arange(64, dtype=np.uint64) << np.uint64(58)
    words = np.concatenate([steps, steps - np.uint64(1), steps + np.uint64(1 << 11)])
    fraction = (words >> np.uint64(11)) * 2.0**-53
    radius, ones = np.empty(words.size), np.ones(words.size)
    module.radii(words, radius, 2.0)
    assert np.allclose(radius, np.sqrt(-2 * np.log(1 - fraction)) * 2, rtol=1e-14)
    assert np.isfinite(radius).all()
    first, second = np.empty(words.size, F32), np.empty(words.size, F32)
    module.box_muller(words, ones, first, second, 0.0)
    assert np.allclose(first, np.cos(2 * np.pi * fraction), rtol=1e-7, atol=1e-15)
    assert np.allclose(second, np.sin(2 * np.pi * fraction), rtol=1e-7, atol=1e-15)


@pytest.mark.parametrize(
    ("shape", "wanted"),
    [
        *[((1, 300), (5, 300)), ((300, 1), (300, 7)), ((300,), (2, 3, 300))],
        *[((1, 17, 1, 20), (4, 17, 3, 20)), ((400,), (400,)), ((1,), (0, 5))],
        ((7, 1), (7, 0)),
    ],
    ids=str,
)
@pytest.mark.parametrize("dtype", ["f4", "i8", "?"])
def test_a_stretched_view_is_that_of_numpy(kernels, shape, wanted, dtype):
    x = (drawn(*shape) * 9).astype(dtype)
    found, expected = kernels[expand](x, shape=wanted), np.broadcast_to(x, wanted)
    assert np.array_equal(found, expected)
    assert found.dtype == expected.dtype
    assert found.strides == expected.strides or not found.size
    assert not found.flags.writeable
    assert np.shares_memory(found, x) == np.shares_memory(expected, x)


def test_what_cannot_stretch_or_lies_apart_is_left_to_numpy(kernels):
    x = drawn(4, 6)
    for wanted in ((4,), (5, 6), (4, -1), (4, 1, 6, 6)):
        assert kernels[expand](x, shape=wanted) is None
    assert kernels[expand](x.T, shape=(2, 6, 4)) is None
    assert kernels[expand](x[:, :1], shape=(4, 3)) is None


def test_a_view_keeps_its_memory(kernels):
    view = kernels[expand](drawn(1, 300), shape=(2, 300))
    others = [drawn(1, 300, seed=s) for s in range(1, 20)]
    assert np.array_equal(view[1], drawn(1, 300)[0])
    assert len(others) == 19


@pytest.mark.parametrize("op", [softmax, log_softmax], ids=lambda o: o.name)
@pytest.mark.parametrize("shape", [(5, 7), (256, 256), (700, 301)])
def test_rows_of_one_part_and_of_several(kernels, op, shape):
    agree(kernels, op, drawn(*shape), dim=1)


@pytest.mark.parametrize("shape", [(40, 50), (500, 300)])
def test_elements_are_picked_in_one_part_and_in_several(kernels, shape):
    places = np.random.default_rng(0).integers(0, shape[1], shape)
    agree(kernels, gather, drawn(*shape), places, dim=-1, exact=True)
    assert kernels[gather](drawn(*shape), places + 1, dim=-1) is None


@pytest.mark.parametrize("n", [1, 3, 4, 7, 129])
def test_products_of_neighbouring_lines_are_those_of_numpy(kernels, n):
    x = drawn(3, n, 40)
    agree(kernels, prod_dim, x, dim=1, exact=True)
    x[0, 0, 0], x[1, n - 1, 3], x[2, 0, 5] = 0, np.inf, -0.0
    agree(kernels, prod_dim, x, dim=1, exact=True)
    x[0, n - 1, 2] = np.nan
    found = kernels[prod_dim](x, dim=2)
    assert found is None or np.isnan(found[0, n - 1, 0])


@pytest.mark.parametrize("k", [1, 2, 8, 9])
@pytest.mark.parametrize(
    "shape", [(2, 9, 16), (3, 40, 257), (300, 700), (9, 15)], ids=str
)
def test_the_largest_few_of_lines_side_by_side(kernels, k, shape):
    x = np.round(drawn(*shape) * 2) / 2  # many are equal
    flat = x.reshape(-1)
    flat[::31], flat[5::37], flat[7::41], flat[11::43] = np.nan, np.inf, -np.inf, -0.0
    agree(kernels, argtopk, x, k=k, dim=len(shape) - 2, exact=True)


def test_results_begin_where_a_cache_line_does():
    pool = Buffers()
    held = [pool.empty((100, 200 + n)) for n in range(9)]
    assert all(x.ctypes.data % 64 == 0 for x in held)
    assert len({x.ctypes.data for x in held}) == 9


@pytest.mark.usefixtures("module")
def test_spinning_ends_with_the_flag_or_after_a_while():
    assert ThreadPool.spin is not None
    flag = np.zeros(1, np.uint8)
    began = time.perf_counter()
    ThreadPool.spin(flag, SPINS)
    assert time.perf_counter() - began < 30  # it ends, however slow the machine is
    flag[0] = 1
    ThreadPool.spin(flag, 1 << 62)  # or this test would never end


@pytest.mark.usefixtures("module")
def test_one_who_is_late_is_waited_for():
    threads, done = ThreadPool(), []
    threads.start(2)

    def slow(start, stop):
        time.sleep(0.02)
        done.append(start)

    threads.run(slow, (), 2)
    assert sorted(done) == [0, 1]


@pytest.mark.parametrize("late", [0, 10, 33, 49, 50, 1000])
@pytest.mark.parametrize(("total", "grain"), [(100, 1), (100, 8), (99, 30), (3, 1)])
def test_every_part_is_done_once_when_one_begins_late(total, grain, late):
    threads, counts = ThreadPool(), np.zeros(total, int)
    threads.start(3)

    def count(start, stop):
        assert start % grain == 0
        counts[start:stop] += 1  # no two parts have an element in common

    for _ in range(5):
        threads.run(count, (), total, grain, late)
    assert (counts == 5).all()


@pytest.mark.parametrize(
    ("shapes", "dim"),
    [
        ([(300, 300), (1, 300), (400, 300)], 0),
        ([(300, 300), (300, 1), (300, 400)], 1),
        ([(2, 900, 90), (2, 900, 9)], 2),
        ([(200_000,), (0,), (3,)], 0),
    ],
    ids=str,
)
def test_pieces_are_joined_by_several_threads(kernels, shapes, dim):
    xs = [drawn(*shape, seed=s) for s, shape in enumerate(shapes)]
    agree(kernels, cat, *xs, dim=dim, exact=True)
    agree(kernels, cat, *[x.astype(np.int64) for x in xs], dim=dim, exact=True)


def test_truths_by_bytes_that_are_not_one(kernels):
    """A byte of another value than 0 and 1 is true, as NumPy has it."""
    x = np.arange(300, dtype=np.uint8).view(bool).reshape(1, 300)
    y = (np.arange(300, dtype=np.uint8) % 3).view(bool).reshape(1, 300)
    for name in ("and", "or", "xor"):
        found = kernels[getattr(compare, f"bool_{name}")](x, y)
        expected = getattr(np, f"logical_{name}")(x != 0, y != 0)
        assert np.array_equal(found.view(np.uint8), expected.view(np.uint8))
    found = kernels[compare.bool_not](x)
    assert np.array_equal(found.view(np.uint8), (x.view(np.uint8) == 0).view(np.uint8))


def test_big_truths_on_a_device(monkeypatch):
    compiled.load("binary")
    monkeypatch.setattr(compiled, "_usable", frozenset(compiled.FAMILIES))
    values = np.random.default_rng(0).random((1024, 1030)) < 0.5
    x, y = (Tensor.from_numpy(v, Numpy()) for v in (values, values[::-1].copy()))
    expected = (values & ~values[::-1]) ^ (values | values[::-1])
    assert np.array_equal(np.asarray((x & ~y) ^ (x | y)), expected)
