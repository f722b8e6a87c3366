"""Sums of very many float32 numbers stay right, wherever a sum runs.

A million times 0.1, added one after the other in float32, is 1 % off. Each member is a
call that adds up so many numbers in one place: forward, or in a gradient.
"""

import numpy as np
import pytest

from burnbook import nn, ops
from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Int, Tensor, apply

COUNT = 1_000_000
TENTH = float(np.float32(0.1))


def tenths(device, shape=(COUNT,)):
    return Tensor.full(list(shape), 0.1, device)


def zeros(device, count=COUNT):
    return Tensor.zeros([count], device, Int)


def gradient(call, leaf):
    """∂(0.1 · call) / ∂ leaf."""
    leaf = leaf.require_grad()
    return leaf.grad((call(leaf) * 0.1).sum().backward())


def embedded(device):
    layer = nn.EmbeddingConfig(2, 1).init(device)
    out = layer.forward(zeros(device).reshape([1, COUNT])) * 0.1
    return layer.weight.val().grad(out.sum().backward())


def picked(device, pick):
    return gradient(pick, Tensor.zeros([2], device))


#: What is summed, in one element of the result: the call and where that element is.
SUMS = {
    "sum": (lambda d: tenths(d).sum(), 0),
    "sum_dim": (lambda d: tenths(d).sum_dim(0), 0),
    "sum_dim of columns": (lambda d: tenths(d, (COUNT, 2)).sum_dim(0), 0),
    "mean": (lambda d: tenths(d).mean() * COUNT, 0),
    "mean_dim": (lambda d: tenths(d, (COUNT, 2)).mean_dim(0) * COUNT, 0),
    "sum_to": (lambda d: apply(ops.sum_to, tenths(d), shape=(1,)), 0),
    "dot": (lambda d: tenths(d).dot(Tensor.ones([COUNT], d)), 0),
    "matmul": (
        lambda d: tenths(d, (1, COUNT)).matmul(Tensor.ones([COUNT, 1], d)).flatten(),
        0,
    ),
    "logsumexp": (lambda d: tenths(d).log().logsumexp(0).exp(), 0),
    "cumsum": (lambda d: tenths(d).cumsum(0), -1),
    "cumsum of columns": (lambda d: tenths(d, (COUNT, 2)).cumsum(0).flatten(), -1),
    "cumsum, back": (
        lambda d: gradient(lambda x: x.cumsum(0), Tensor.zeros([COUNT], d)),
        0,
    ),
    "linear_scan": (
        lambda d: apply(ops.linear_scan, tenths(d), Tensor.ones([COUNT], d), dim=0),
        -1,
    ),
    "cumprod, back": (
        lambda d: gradient(lambda x: x.cumprod(0), Tensor.ones([COUNT], d)),
        0,
    ),
    "cummax, back": (
        lambda d: gradient(lambda x: x.cummax(0), Tensor.zeros([COUNT], d)),
        0,
    ),
    "scatter": (
        lambda d: Tensor.zeros([2], d).scatter(0, zeros(d), tenths(d)),
        0,
    ),
    "select_assign": (
        lambda d: Tensor.zeros([2], d).select_assign(0, zeros(d), tenths(d)),
        0,
    ),
    "gather, back": (lambda d: picked(d, lambda x: x.gather(0, zeros(d))), 0),
    "select, back": (lambda d: picked(d, lambda x: x.select(0, zeros(d))), 0),
    "embedding, back": (lambda d: embedded(d).flatten(), 0),
    "expand, back": (
        lambda d: gradient(lambda x: x.expand([COUNT]), Tensor.zeros([1], d)),
        0,
    ),
}


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "compiled"])
@pytest.mark.parametrize("name", SUMS)
def test_a_million_numbers_add_up(name, compiled):
    call, place = SUMS[name]
    found = np.asarray(call(Autodiff(Numpy(compiled=compiled)))).reshape(-1)
    rtol = 5e-4 if name == "matmul" else 3e-5  # BLAS adds in blocks
    assert np.isclose(found[place], COUNT * TENTH, rtol=rtol)


@pytest.mark.parametrize("count", [100, 5000, 20_000])
@pytest.mark.parametrize("width", [1, 3, 100])
def test_places_that_come_often_get_what_the_others_get(width, count):
    """Beyond MANY they are added another way: both give the sums of float64."""
    rng = np.random.default_rng(0)
    places = rng.choice([0, 0, 0, 0, 2, 7, *range(10, 40)], count)
    rows = rng.standard_normal((count, width)).astype(np.float32)
    start = rng.standard_normal((50, width)).astype(np.float32)
    wanted = start.astype(np.float64)
    np.add.at(wanted, places, rows)
    many = np.repeat(places[:, None], width, 1)
    found = {
        "select_assign": ops.select_assign.forward(np, start, places, rows, dim=0),
        "along dim 1": ops.select_assign.forward(
            np, start.T.copy(), places, rows.T.copy(), dim=1
        ).T,
        "scatter": ops.scatter.forward(np, start, many, rows, dim=0),
        "embedding": start
        + ops.embedding_weight.forward(np, rows, places, weight_shape=start.shape),
    }
    for name, sums in found.items():
        assert np.allclose(sums, wanted, rtol=1e-5, atol=1e-3), name
    whole = (rows * 9).astype(np.int64)
    made = ops.select_assign.forward(
        np, np.zeros_like(whole[:50]), places, whole, dim=0
    )
    wanted = np.zeros_like(made)
    np.add.at(wanted, places, whole)
    assert (made == wanted).all()
