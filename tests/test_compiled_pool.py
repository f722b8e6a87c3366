"""Compiled pooling and interpolation in any number of dims: equal to the plain code."""

from importlib import import_module

import numpy as np
import pytest

from burnbook.autodiff import Autodiff
from burnbook.backend import Numpy, compiled
from burnbook.ops.pool_nd import max_pool, max_pool_indices, max_pool_x
from burnbook.tensor import Tensor, apply
from tests.test_compiled import agree, normal

pytest.importorskip("numba", reason="kernels are compiled by numba")


@pytest.fixture(scope="module")
def kernels():
    """The kernels of these families, compiled or from the cache."""
    compiled._load("max_pool_nd")
    return import_module("burnbook.backend.compiled.registry").KERNELS


def maxima(kernel, stride, padding=None, dilation=None, ceil=False):
    none, one = (0,) * len(kernel), (1,) * len(kernel)
    sizes = {"kernel_size": kernel, "stride": stride, "padding": padding or none}
    return {**sizes, "dilation": dilation or one, "ceil_mode": ceil}


MAXIMA = [
    # the size of an image, attributes
    ((40,), maxima((3,), (1,))),
    ((70,), maxima((3,), (2,), (1,))),
    ((71,), maxima((7,), (2,), (3,), ceil=True)),
    ((100,), maxima((4,), (5,), (2,), (3,), ceil=True)),
    ((5,), maxima((2,), (3,), (1,))),
    ((1,), maxima((1,), (1,))),
    ((4,), maxima((2,), (1,), (1,), (5,))),  # a window with no place on the image
    ((13, 40), maxima((2, 2), (2, 2))),
    ((9, 37), maxima((3, 5), (1, 1), (1, 2), (2, 1))),
    ((12, 9), maxima((3, 2), (4, 3), (1, 1), ceil=True)),
    ((5, 6, 7), maxima((2, 3, 2), (2, 1, 3), (1, 1, 0))),
    ((4, 3, 50), maxima((2, 2, 3), (1, 2, 2), (1, 0, 1), (2, 1, 2), ceil=True)),
]


def odd(*shape, share, seed=0):
    """Many equal numbers; a share of them −∞, as many NaN, and a few ∞."""
    x = np.round(normal(*shape, seed=seed), 1)
    dice = np.random.default_rng(seed).random(shape)
    x[dice < share], x[dice > 1 - share], x[abs(dice - 0.5) < 0.01] = (
        -np.inf,
        np.nan,
        np.inf,
    )
    return x


@pytest.mark.parametrize(("size", "attrs"), MAXIMA, ids=str)
@pytest.mark.parametrize("share", [0, 0.05, 0.45])
def test_the_largest_of_every_window_and_where(kernels, size, attrs, share):
    x = odd(3, 2, *size, share=share)
    agree(kernels, max_pool, x, exact=True, **attrs)
    agree(kernels, max_pool_indices, x, exact=True, **attrs)
    out, winner = max_pool.forward(np, x, **attrs)
    g = normal(*out.shape, seed=1)
    agree(kernels, max_pool_x, g, winner, x_shape=x.shape, exact=True)


def test_pooling_in_parts_and_from_a_view(kernels):
    attrs = maxima((3, 3), (2, 2), (1, 1))
    x = normal(8, 16, 64, 65)
    agree(kernels, max_pool, x, exact=True, **attrs)
    turned = x.swapaxes(2, 3)
    agree(kernels, max_pool, turned, exact=True, **attrs)
    out, winner = max_pool.forward(np, turned, **attrs)
    g = np.broadcast_to(np.float32(2), out.shape)
    agree(kernels, max_pool_x, g, winner, x_shape=turned.shape, exact=True)


def test_what_pooling_leaves_to_the_plain_code(kernels):
    attrs = maxima((3,), (2,))
    x = normal(2, 3, 40)
    assert kernels[max_pool](x.astype(np.float64), **attrs) is None
    assert kernels[max_pool](x[:0], **attrs) is None
    assert kernels[max_pool_indices](x[:, :0], **attrs) is None
    out, winner = max_pool.forward(np, x, **attrs)
    assert kernels[max_pool_x](out, winner.astype(np.int64), x_shape=x.shape) is None
    for beyond in (-1, 40):  # is an error, which the plain code finds
        assert kernels[max_pool_x](out, winner * 0 + beyond, x_shape=x.shape) is None


def test_second_order_through_the_kernels_of_pooling(kernels):
    x = normal(2, 3, 30)
    found = []
    for backend in (Numpy(), Numpy(compiled=False)):
        ad = Autodiff(Autodiff(backend))
        t = Tensor.from_numpy(x, ad).require_grad()
        y = apply(max_pool, t * t, **maxima((3,), (2,), (1,)))
        slope = t.grad((y * y).sum().backward())
        found.append(np.asarray(slope))
    assert np.allclose(*found, rtol=1e-6)
