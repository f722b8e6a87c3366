"""Kernels of attention, softmax and embedding: equal to the plain code."""

import tracemalloc

import numpy as np
import pytest

from burnbook.backend import compiled
from burnbook.ops.attention import attention
from burnbook.ops.embedding import embedding_weight
from burnbook.ops.softmax import log_softmax, softmax
from burnbook.tensor import Tensor, apply
from tests.support.kernel_checks import agree, normal, with_and_without


def by_head(n, h, s, d, seed=0):
    """Heads with rows of their own."""
    return normal(n, h, s, d, seed=seed)


def by_position(n, h, s, d, seed=0):
    """Heads side by side, as a linear layer leaves them."""
    return normal(n, s, h, d, seed=seed).transpose(0, 2, 1, 3)


def masks(n, h, s, t):
    rng = np.random.default_rng(0)
    yield None
    yield rng.random((n, 1, 1, t)) < 0.3
    yield np.broadcast_to(rng.random((1, 1, s, t)) < 0.5, (n, 1, s, t))
    yield rng.random((1, h, s, 1)) < 0.3
    yield normal(1, h, s, t)
    yield np.ones((1, 1, 1, t), bool)


OPTIONS = [
    {},
    {"causal": True},
    {"causal": True, "hidden": -1e4},
    {"hidden": -1e4, "quiet": True},
    {"prob": 0.3, "noise": (3, 5)},
    {"prob": 0.5, "noise": (1, 2**63), "drop_weights": True, "causal": True},
]
REST = {
    "hidden": -np.inf,
    "causal": False,
    "quiet": False,
    "softcap": None,
    "prob": 0.0,
    "noise": (0, 0),
    "drop_weights": False,
}


@pytest.mark.parametrize("lay", [by_head, by_position])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "sizes", [(2, 2, 5, 7, 3, 6), (1, 3, 70, 130, 16, 40), (1, 2, 300, 30, 5, 4)]
)
def test_attention_and_its_gradients(kernels, sizes, options, lay):
    n, h, s, t, d, e = sizes
    query, key, value = lay(n, h, s, d), lay(n, h, t, d, 1), lay(n, h, t, e, 2)
    g = lay(n, h, s, e, 3)
    for mask in masks(n, h, s, t):
        given = (query, key, value, mask)
        out, weights = attention.forward(np, *given, scale=0.4, **options)
        made, none = kernels[attention](*given, scale=0.4, **options)
        close(made, out)
        assert none is None
        attrs = {"scale": 0.4, **REST, **options}
        for needs in ((True, True, True, False), (False, True, False, False)):
            back = {"needs": needs, **attrs}
            wanted = attention.backward.forward(np, g, *given, weights, **back)
            found = kernels[attention.backward](g, *given, None, **back)
            for a, b in zip(found, wanted, strict=True):
                close(a, b)


def close(found, wanted):
    assert (found is None) == (wanted is None)
    if wanted is not None:
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        assert np.allclose(found, wanted, rtol=1e-4, atol=2e-5)


def test_what_the_kernel_of_attention_does_not_serve_runs_plain(kernels):
    x = normal(1, 2, 3, 4)
    for other in (x.astype("f8"), x[:, :, :0]):
        assert kernels[attention](other, other, other, scale=1.0) is None
    assert kernels[attention](x, x, x, scale=1.0, softcap=2.0) is None
    attrs = {"scale": 1.0, **REST, "needs": (True,) * 4}
    bias = normal(1, 1, 3, 3)
    assert kernels[attention.backward](x, x, x, x, bias, None, **attrs) is None
    locked = np.broadcast_to(normal(1, 1, 1, 4), x.shape)
    out, _ = attention.forward(np, x, locked, x, scale=1.0)
    found = kernels[attention](x, locked, x, scale=1.0)
    if found is not None:
        close(found[0], out)


def test_nan_spoils_only_the_queries_that_meet_it(kernels):
    query, key, value = (normal(1, 1, 40, 8, seed=i) for i in range(3))
    query[0, 0, 7, 3] = np.nan
    out, _ = kernels[attention](query, key, value, scale=1.0)
    spoilt = np.isnan(out).all(-1)[0, 0]
    assert list(np.flatnonzero(spoilt)) == [7]
    assert np.isfinite(out[0, 0, np.arange(40) != 7]).all()
    key[0, 0, 39] = np.inf
    assert np.isnan(kernels[attention](query, key, value, scale=1.0)[0]).any()


def test_a_bias_has_its_gradient_though_the_kernel_kept_no_weights():
    def slopes(device):
        values = (normal(1, 2, 20, 16), normal(1, 2, 20, 20, seed=1))
        x, bias = (Tensor.from_numpy(a, device).require_grad() for a in values)
        out = apply(attention, x, x, x, bias, scale=0.25, causal=True)
        grads = (out * out).sum().backward()
        return [t.grad(grads) for t in (x, bias)]

    with_and_without(slopes, rtol=1e-4, atol=2e-5)


def test_long_sequences_need_no_matrix_of_weights(kernels):
    """2000 queries and keys: the weights alone would take 32 MB for two heads."""
    x = by_position(1, 2, 2000, 32)
    compiled.load("attention")
    tracemalloc.start()
    made, _ = kernels[attention](x, x, x, scale=0.2, causal=True)
    attrs = {"scale": 0.2, **REST, "causal": True, "needs": (True, True, True, False)}
    kernels[attention.backward](made, x, x, x, None, None, **attrs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8e6


@pytest.mark.parametrize("shape", [(64, 10), (3, 5, 130), (2, 3000), (1, 1), (7, 16)])
def test_softmax_and_its_gradients(kernels, shape):
    x, g = normal(*shape) * 20, normal(*shape, seed=1)
    dim = len(shape) - 1
    for op in (softmax, log_softmax):
        agree(kernels, op, x, dim=dim)
        out = op.forward(np, x, dim=dim)
        agree(kernels, op.backward, g, out, needs=(True,), dim=dim)
        assert kernels[op](x, dim=dim - 1) is None or dim == 0
        assert kernels[op](x.astype("f8"), dim=dim) is None


def test_softmax_of_nan_and_infinity(kernels):
    x = normal(4, 50)
    x[0, 3], x[1, 4], x[2] = np.nan, -np.inf, -np.inf
    for op in (softmax, log_softmax):
        with np.errstate(invalid="ignore"):
            wanted = op.forward(np, x, dim=1)
        found = kernels[op](x, dim=1)
        assert np.allclose(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True)
        assert list(np.isnan(found).any(1)) == [True, False, True, False]


@pytest.mark.parametrize("sizes", [(5, 3), (70, 64), (30, 200)])
def test_the_gradient_of_an_embedding(kernels, sizes):
    rows, size = sizes
    places = np.random.default_rng(0).integers(0, rows, (4, 33))
    g = normal(4, 33, size)
    agree(kernels, embedding_weight, g, places, weight_shape=sizes)
    for wrong in (places - 1, places + 1):
        assert kernels[embedding_weight](g, wrong, weight_shape=sizes) is None
    narrow = places.astype("i4")
    assert kernels[embedding_weight](g, narrow, weight_shape=sizes) is None
