"""Random numbers follow from a seed and a count, and from nothing else."""

import pickle
import threading

import numpy as np
import pytest

import burnbook
from burnbook.backend import Numpy
from burnbook.core.rng import Stream, current_stream, use_stream
from burnbook.ops import random as ops

KEYS = [(0, 0), (5, 7), (2**64 - 1, 2**63 + 5)]


class Elsewhere:
    """NumPy under another name, so that the generator is the one written out."""

    __name__ = "elsewhere"

    def __getattr__(self, name):
        return getattr(np, name)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("count", [1, 3, 4, 5, 1001])
def test_the_generator_written_out_is_philox(key, count):
    bits = np.random.Philox(key=np.array(key, np.uint64))
    assert np.array_equal(
        ops.philox(np, count, key), np.atleast_1d(bits.random_raw(count))
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_uniform_and_bernoulli_are_equal_bit_for_bit_elsewhere(dtype):
    for op, extra in ((ops.uniform, {"low": -1.0, "high": 3.0}), (ops.bernoulli, {})):
        attrs = {"shape": (7, 9), "key": (3, 4), "dtype": np.dtype(dtype), **extra}
        here, there = op.forward(np, **attrs), op.forward(Elsewhere(), **attrs)
        assert here.dtype == dtype
        assert np.array_equal(here, there)


def test_normal_is_equal_elsewhere():
    attrs = {"shape": (77,), "key": (3, 4), "dtype": np.float32}
    here = ops.normal.forward(np, **attrs)
    assert np.allclose(here, ops.normal.forward(Elsewhere(), **attrs), atol=1e-6)


def test_uniform_covers_its_range():
    x = ops.uniform.forward(
        np, shape=(300, 300), low=2.0, high=6.0, key=(1, 2), dtype=np.float32
    )
    assert x.min() >= 2.0
    assert x.max() < 6.0
    assert abs(x.mean() - 4.0) < 0.02
    assert abs(x.var() - 16 / 12) < 0.02


def test_normal_has_its_moments():
    x = ops.normal.forward(
        np, shape=(300, 301), mean=1.0, std=2.0, key=(1, 2), dtype=np.float64
    )
    z = (x - 1.0) / 2.0
    for power, moment in ((1, 0.0), (2, 1.0), (3, 0.0), (4, 3.0)):
        assert abs((z**power).mean() - moment) < 0.1


def test_bernoulli_hits_as_often_as_asked():
    for prob in (0.0, 0.3, 1.0):
        x = ops.bernoulli.forward(
            np, shape=(100_000,), prob=prob, key=(9, 9), dtype=np.float32
        )
        assert abs(x.mean() - prob) < 0.005
        assert set(np.unique(x)) <= {0.0, 1.0}


def test_nothing_is_drawn_for_an_empty_shape():
    x = ops.uniform.forward(np, shape=(0, 3), key=(1, 2), dtype=np.float32)
    assert x.shape == (0, 3)


def test_dropout_keeps_the_mean_and_zeroes_its_share():
    x = np.ones((200, 500), np.float32)
    y = ops.dropout.forward(np, x, prob=0.25, key=(1, 2))
    assert abs((y == 0).mean() - 0.25) < 0.01
    assert np.allclose(y[y != 0], 1 / 0.75)


def test_dropout_at_its_ends():
    x = np.ones(100, np.float32)
    assert np.array_equal(ops.dropout.forward(np, x, prob=0.0, key=(1, 2)), x)
    assert not ops.dropout.forward(np, x, prob=1.0, key=(1, 2)).any()


def test_keys_are_all_different_and_follow_from_the_seed():
    stream, same = Stream(3), Stream(3)
    keys = [stream.key() for _ in range(100)]
    assert len(set(keys)) == 100
    assert keys == [same.key() for _ in range(100)]
    assert Stream(4).key() != keys[0]


def test_a_split_does_not_depend_on_what_was_drawn():
    stream = Stream(3)
    before = stream.split("epoch 1").key()
    stream.key()
    assert stream.split("epoch 1").key() == before
    assert stream.split("epoch 2").key() != before


def test_threads_never_get_the_same_key():
    stream, found = Stream(1), []

    def draw():
        found.extend(stream.key() for _ in range(500))

    threads = [threading.Thread(target=draw) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(found)) == 2000


def test_a_stream_goes_on_after_pickling():
    stream = Stream(5)
    stream.key()
    again = pickle.loads(pickle.dumps(stream))
    assert again.key() == stream.key()


def test_use_stream_holds_for_the_block_and_the_thread_alone():
    device, elsewhere = Numpy(), []
    with use_stream(Stream(8)) as stream:
        thread = threading.Thread(target=lambda: elsewhere.append(current_stream()))
        thread.start()
        thread.join()
        assert current_stream() is stream
        assert device.next_key() == Stream(8).key()
    assert current_stream() is None
    assert elsewhere == [None]


def test_seed_starts_every_unseeded_backend_again():
    device = Numpy()
    device.stream = Stream(None)
    burnbook.seed(7)
    first = device.next_key()
    burnbook.seed(7)
    assert device.next_key() == first
    device.seed(1)
    mine = device.next_key()
    device.seed(1)
    assert device.next_key() == mine
    device.stream = Stream(None)
