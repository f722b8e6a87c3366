"""Pooling: windows of every kind, and where the gradient goes."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.ops.pool import pool
from burnbook.ops.pool.pool import (
    adaptive_avg_pool2d,
    adaptive_avg_pool2d_x,
    adaptive_windows,
    avg_pool2d,
    avg_pool2d_x,
    max_pool,
    max_pool2d,
    max_pool_indices,
)
from burnbook.tensor import Tensor, apply
from tests.oracle import images

SIZES = [
    ((24, 24), (8, 8)),
    ((7, 5), (3, 4)),
    ((2, 3), (4, 7)),
    ((6, 6), (6, 6)),
    ((9, 4), (1, 3)),
]
WINDOWS = [
    {"kernel_size": (2, 2), "stride": (2, 2), "padding": (0, 0)},
    {"kernel_size": (3, 2), "stride": (1, 2), "padding": (1, 1)},
    {"kernel_size": (3, 3), "stride": (4, 4), "padding": (1, 1)},
]


def image(h, w, seed=0):
    return np.random.default_rng(seed).standard_normal((2, 3, h, w))


@pytest.mark.parametrize(("size", "output"), SIZES)
def test_adaptive_pool_equals_the_loop(size, output):
    x = image(*size)
    found = adaptive_avg_pool2d.forward(np, x, output_size=output)
    assert np.allclose(found, images.adaptive_avg_pool2d(x, output_size=output))


@pytest.mark.parametrize(
    ("size", "output"),
    [*SIZES, ((8, 6), (4, 3)), ((8, 6), (8, 1)), ((10, 4), (2, 4)), ((4, 70), (2, 7))],
)
@pytest.mark.parametrize("threads", [False, True])
def test_adaptive_pool_block_by_block(size, output, threads, monkeypatch):
    """In rows of windows, the last block smaller; NaN stays in its window."""
    monkeypatch.setattr(pool, "BLOCK", 200)
    monkeypatch.setattr(pool, "SHARED", 1 if threads else 1 << 30)
    x = image(*size)
    x[0, 1, 0, 0], x[1, 2, -1, -1] = np.nan, np.inf
    xp = Numpy("f64", compiled=False).xp
    found = adaptive_avg_pool2d.forward(xp, x, output_size=output)
    expected = images.adaptive_avg_pool2d(x, output_size=output)
    assert np.allclose(found, expected, equal_nan=True)


@pytest.mark.parametrize(("size", "output"), SIZES)
def test_adaptive_gradient_undoes_the_average(size, output):
    x, g = image(*size), image(*output, seed=1)
    found = adaptive_avg_pool2d.forward(np, x, output_size=output)
    dx = adaptive_avg_pool2d_x.forward(np, g, x_shape=x.shape)
    assert np.isclose((found * g).sum(), (x * dx).sum())


def test_the_result_is_never_the_input():
    x = image(4, 4)
    assert adaptive_avg_pool2d.forward(np, x, output_size=(4, 4)) is not x
    assert adaptive_avg_pool2d_x.forward(np, x, x_shape=x.shape) is not x


def test_windows_cover_every_place():
    for size in range(1, 12):
        for count in range(1, 15):
            starts, ends = adaptive_windows(size, count)
            covered = {
                p for a, b in zip(starts, ends, strict=True) for p in range(a, b)
            }
            assert covered == set(range(size))


@pytest.mark.parametrize("count_include_pad", [True, False])
@pytest.mark.parametrize("attrs", WINDOWS, ids=str)
def test_avg_pool_equals_the_loop(attrs, count_include_pad):
    x = image(9, 8)
    attrs = {**attrs, "count_include_pad": count_include_pad}
    found = avg_pool2d.forward(np, x, **attrs)
    assert np.allclose(found, images.avg_pool2d(x, **attrs))
    g = np.random.default_rng(1).standard_normal(found.shape)
    dx = avg_pool2d_x.forward(np, g, x_shape=x.shape, **attrs)
    assert np.isclose((found * g).sum(), (x * dx).sum())


@pytest.mark.parametrize("dilation", [(1, 1), (2, 1)])
@pytest.mark.parametrize("attrs", WINDOWS, ids=str)
def test_max_pool_equals_the_loop(attrs, dilation):
    x = image(9, 8)
    found, _ = max_pool2d.forward(np, x, **attrs, dilation=dilation)
    assert np.allclose(found, images.max_pool2d(x, **attrs, dilation=dilation))


def test_only_the_largest_gets_a_gradient_and_the_first_of_equals():
    device = Autodiff(Numpy())
    x = Tensor.from_data([[[[1.0, 5.0], [5.0, 2.0]]]], device).require_grad()
    out = apply(max_pool2d, x, kernel_size=(2, 2), stride=(2, 2))
    slope = x.grad(out.sum().backward())
    assert np.asarray(slope).tolist() == [[[[0.0, 1.0], [0.0, 0.0]]]]


def test_nan_is_not_lost_in_a_maximum():
    x = np.array([[[[1.0, np.nan], [5.0, 2.0]]]], np.float32)
    out, winner = max_pool2d.forward(np, x, kernel_size=(2, 2), stride=(2, 2))
    assert np.isnan(out).all()
    assert winner.item() == 1


@pytest.mark.parametrize("device", [Numpy(compiled=False), Numpy()])
@pytest.mark.parametrize("size", [(1, 1, 9), (2, 3, 40), (1, 2, 8, 9), (1, 1, 5, 6, 7)])
def test_nan_wins_in_every_max_pooling(device, size):
    """As in PyTorch: a window that holds NaN is NaN, and NaN's last place is its."""
    x = np.random.default_rng(0).standard_normal(size).astype(np.float32)
    x.reshape(-1)[::7] = np.nan
    rank = len(size) - 2
    settings = {"kernel_size": (3,) * rank, "stride": (2,) * rank}
    settings |= {"padding": (1,) * rank, "dilation": (1,) * rank, "ceil_mode": False}
    out = np.asarray(apply(max_pool, Tensor.from_numpy(x, device), **settings))
    grown = np.pad(x, [(0, 0), (0, 0), *[(1, 1)] * rank], constant_values=-np.inf)
    windows = np.lib.stride_tricks.sliding_window_view(
        grown, (3,) * rank, axis=tuple(range(2, 2 + rank))
    )
    every = (slice(None),) * 2 + (slice(None, None, 2),) * rank
    assert np.array_equal(
        out, windows[every].max(axis=tuple(range(-rank, 0))), equal_nan=True
    )
    assert np.isnan(out).any()
    assert not np.isnan(out).all()
    placed = apply(max_pool_indices, Tensor.from_numpy(x, device), **settings)
    won = np.asarray(placed).reshape(*size[:2], -1)
    picked = np.take_along_axis(x.reshape(*size[:2], -1), won, axis=2)
    assert np.array_equal(picked.reshape(out.shape), out, equal_nan=True)
