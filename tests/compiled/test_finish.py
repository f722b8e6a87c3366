"""What kernels do with their sums: activations and pools, equal to the plain code."""

import threading

import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.backend.compiled import conv, conv_blocked, finish, linear
from burnbook.backend.compiled.runtime.thread_pool import LOCK, ThreadPool
from burnbook.ops import (
    adaptive_avg_pool2d,
    conv2d,
    gelu,
    max_pool2d,
    relu,
    sigmoid,
    silu,
)
from tests.support.kernel_checks import normal

PLAIN = Numpy("f64", compiled=False)
OPS = {"relu": relu, "gelu": gelu, "silu": silu, "sigmoid": sigmoid}


def wanted(x, weight, bias, activation, pool, padding):
    """The same by the plain code in double precision."""
    x, weight, bias = (np.asarray(a, np.float64) for a in (x, weight, bias))
    out = PLAIN.run(conv2d, (x, weight, bias), {"padding": padding})
    if activation is not None:
        out = PLAIN.run(OPS[activation], (out,), {})
    kind, (rows, columns) = pool
    if kind == "largest":
        sizes = {"kernel_size": (rows, columns), "stride": (rows, columns)}
        more = {"padding": (0, 0), "dilation": (1, 1)}
        return PLAIN.run(max_pool2d, (out,), {**sizes, **more})[0]
    if kind == "average":
        high, wide = out.shape[2] // rows, out.shape[3] // columns
        cut = out[:, :, : high * rows, : wide * columns]
        return PLAIN.run(adaptive_avg_pool2d, (cut,), {"output_size": (high, wide)})
    return out


def run_block(x, weight, bias, activation, pool, padding=(0, 0)):
    """A convolution with what follows it, by the kernel for few channels."""
    kind, (rows, columns) = pool
    taps = weight.shape[2:]
    stops = [
        n + 2 * p - t + 1 for n, p, t in zip(x.shape[2:], padding, taps, strict=True)
    ]
    how = (*padding, 1, 1, 1, len(weight), *taps)
    laid = conv.laid_weights(weight, bias, stops[1], how)
    shape = (len(x), len(weight), stops[0] // rows, stops[1] // columns)
    out = np.full(shape, np.nan, np.float32)
    end = (finish.ACTIVATIONS[activation], finish.POOLS[kind], rows, columns)
    conv.correlate_laid(x, *laid, out, how, end, 0, len(x))
    return out


POOLS = [
    (None, (1, 1)),
    ("average", (2, 2)),
    ("average", (3, 3)),
    ("average", (5, 1)),
    ("largest", (2, 2)),
    ("largest", (3, 2)),
    ("largest", (7, 4)),
]


@pytest.mark.parametrize("pool", POOLS, ids=str)
@pytest.mark.parametrize("activation", [None, *OPS])
@pytest.mark.parametrize(
    ("channels", "size"), [(1, (29, 30)), (5, (24, 45)), (4, (90, 20)), (3, (8, 9))]
)
def test_a_block_is_a_convolution_an_activation_and_a_pool(
    pool, activation, channels, size
):
    x, weight = normal(3, channels, *size), normal(6, channels, 3, 3, seed=1)
    bias = normal(6, seed=2)
    found = run_block(x, weight, bias, activation, pool, (1, 0))
    right = wanted(x, weight, bias, activation, pool, (1, 0))
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("kind", ["average", "largest"])
def test_nan_stays_in_its_window(kind):
    x, weight, bias = (
        normal(1, 1, 12, 40),
        normal(4, 1, 1, 2, seed=1),
        normal(4, seed=2),
    )
    x[0, 0, 5, 7] = np.nan
    found = run_block(x, weight, bias, "relu", (kind, (3, 3)))
    places = np.isnan(found).any(axis=(0, 1))
    assert places[1, 2]
    assert places.sum() == 1


@pytest.mark.parametrize("activation", [None, *OPS])
def test_convolutions_with_many_channels_activate_too(activation):
    x, weight = normal(3, 20, 9, 11), normal(40, 20, 3, 3, seed=1)
    bias = normal(40, seed=2)
    sizes = conv.with_stops([(9, 3, 1, 1, 1), (11, 3, 1, 1, 1)], (9, 11))
    offsets = np.zeros(48, np.float32)
    offsets[:40] = bias
    plan = conv_blocked.plan_of(conv_blocked.forward_side, sizes, (9, 11), 20, 2)
    out = np.empty((3, 40, 9, 11), np.float32)
    laid = conv_blocked.laid_weights(weight)
    which = finish.ACTIVATIONS[activation]
    conv_blocked.correlate_images(x, laid, offsets, out, *plan, which, 0, 3)
    right = wanted(x, weight, bias, activation, (None, (1, 1)), (1, 1))
    np.testing.assert_allclose(out, right, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("activation", [None, *OPS])
@pytest.mark.parametrize("sizes", [(1, 5, 3), (2, 33, 64), (1, 1024, 130), (2, 7, 200)])
def test_few_rows_are_multiplied_panel_by_panel(activation, sizes):
    rows, depth, columns = sizes
    x, weight, bias = normal(rows, depth), normal(depth, columns), normal(columns)
    panels, line = linear.laid_panels(weight, bias)
    out = np.empty((rows, line.size), np.float32)
    which = finish.ACTIVATIONS[activation]
    linear.FewRows(x, panels, line, out, which)()
    right = x.astype(np.float64) @ weight + bias
    if activation is not None:
        right = PLAIN.run(OPS[activation], (right,), {})
    np.testing.assert_allclose(out[:, :columns], right, rtol=1e-4, atol=1e-4)


def few_rows_are_wrong(rng):
    """A product of few rows with a weight of random size: whether it is wrong."""
    rows, depth, columns = rng.integers(1, 3), *rng.integers(1, 400, 2)
    x, weight = normal(rows, depth), normal(depth, columns)
    panels, line = linear.laid_panels(weight, None)
    out = np.full((rows, line.size), np.nan, np.float32)
    linear.FewRows(x, panels, line, out, 0)()
    return not np.allclose(out[:, :columns], x @ weight, 1e-4, 1e-4)


@pytest.fixture(params=[1, 2, 4])
def pool(request, monkeypatch):
    """Some threads, and parts so small that each product has several."""
    made = ThreadPool()
    made.start(request.param)
    monkeypatch.setattr(linear, "threads", made)
    monkeypatch.setattr(linear, "PART_WEIGHTS", 1)
    return made


def test_threads_that_look_take_panels(pool):
    rng = np.random.default_rng(0)
    assert not any(few_rows_are_wrong(rng) for _ in range(300))
    assert not pool.board[LOCK]
    assert bool(pool.asked) == (pool.size > 1)


def test_callers_at_once_do_not_take_each_others_panels(pool):
    wrong = []

    def work(seed):
        rng = np.random.default_rng(seed)
        wrong.extend(seed for _ in range(150) if few_rows_are_wrong(rng))

    others = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for other in others:
        other.start()
    for other in others:
        other.join()
    assert wrong == []
    assert not pool.board[LOCK]


@pytest.mark.parametrize("activation", [None, *OPS])
def test_few_rows_keep_nan_and_infinity(activation):
    x, weight = np.ones((1, 2), np.float32), np.zeros((2, 3), np.float32)
    weight[0] = np.nan, np.inf, -np.inf
    panels, line = linear.laid_panels(weight, None)
    out = np.empty((1, line.size), np.float32)
    linear.FewRows(x, panels, line, out, finish.ACTIVATIONS[activation])()
    right = weight[:1]
    if activation is not None:
        with np.errstate(all="ignore"):
            right = PLAIN.run(OPS[activation], (right.astype(np.float64),), {})
    np.testing.assert_array_equal(out[:, :3], right)
