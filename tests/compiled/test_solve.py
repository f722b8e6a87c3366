"""Compiled inverses and determinants: as exact as the plain code, or left to it."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ShapeError
from burnbook.ops.solve import cofactor, det, inverse
from burnbook.tensor import Tensor, apply
from tests.support.kernel_checks import normal

ONE = (True,)


def nearly(found, expected, rtol=2e-6):
    """Equal, as far as the largest number of each matrix tells."""
    assert found.shape == expected.shape
    assert found.dtype == expected.dtype
    size = np.abs(expected).max(axis=(-2, -1), keepdims=True)
    assert np.allclose(found / size, expected / size, rtol=0, atol=rtol)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 31, 64])
@pytest.mark.parametrize("lead", [(), (5,), (2, 9)])
def test_small_matrices(kernels, n, lead):
    x, g = normal(*lead, n, n) / np.float32(n**0.5), normal(*lead, 1, 1, seed=1)
    nearly(kernels[det](x), det.forward(np, x))
    nearly(kernels[inverse](x), inverse.forward(np, x))
    nearly(kernels[cofactor](x), cofactor.forward(np, x))
    (slope,) = kernels[det.backward](g, x, needs=ONE)
    nearly(slope, det.backward.forward(np, g, x, needs=ONE)[0])


@pytest.mark.parametrize("n", [160, 177, 255])
def test_large_matrices(kernels, n):
    """Float32 loses as much as PyTorch does; so we take matrices that lose little."""
    x = normal(2, n, n) / np.float32(3 * n**0.5) + np.eye(n, dtype=np.float32)
    x[1] = x[1][::-1]  # all pivots stand elsewhere
    nearly(kernels[det](x), det.forward(np, x), rtol=2e-5)
    assert kernels[inverse](x) is None
    g = normal(2, 1, 1, seed=1)
    (slope,) = kernels[det.backward](g, x, needs=ONE)
    back = np.linalg.inv(x.astype(float)).swapaxes(-1, -2)
    expected = g * np.linalg.det(x.astype(float))[:, None, None] * back
    nearly(slope, expected.astype(np.float32))


def test_a_small_last_pivot_is_left_to_float64(kernels):
    x = normal(1, 200, 200) / np.float32(14)
    x[0, -1] = x[0, :-1].sum(axis=0) + x[0, -1] * np.float32(1e-4)
    nearly(kernels[det](x), det.forward(np, x))


@pytest.mark.parametrize("n", [3, 40, 170])
def test_singular_matrices(kernels, n):
    x = normal(4, n, n) / np.float32(n**0.5)
    x[1, 1] = x[1, 0]  # rank n − 1
    x[2, 1] = x[2, 0] * (1 + np.float32(1e-7))  # nearly so
    x[3] = 0
    expected = det.forward(np, x)
    assert np.allclose(kernels[det](x), expected, rtol=1e-4, atol=1e-6)
    assert not kernels[det](x)[3].any()
    found = kernels[cofactor](x)
    assert np.allclose(found, cofactor.forward(np, x), rtol=1e-4, atol=2e-6)
    with np.errstate(all="ignore"):
        assert np.abs(found[1]).max() > 0  # a singular matrix has a gradient


def test_one_singular_matrix_of_many_is_an_error_as_before(kernels):
    x = normal(6, 5, 5)
    x[3, 2] = 2 * x[3, 4]
    with pytest.raises(ShapeError, match="singular"):
        kernels[inverse](x)
    with pytest.raises(ShapeError, match="singular"):
        inverse.forward(np, x)


@pytest.mark.parametrize("n", [4, 170])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinity_stay_in_their_matrix(kernels, n, value):
    x = normal(3, n, n) / np.float32(3 * n**0.5) + np.eye(n, dtype=np.float32)
    x[1, 2, 3] = value
    with np.errstate(all="ignore"):
        for op in (det, cofactor, inverse):
            found, expected = kernels[op](x), op.forward(np, x)
            if found is None:
                assert (op, n) == (inverse, 170)
                continue
            assert np.array_equal(np.isnan(found), np.isnan(expected))
            nearly(found[[0, 2]], expected[[0, 2]], rtol=2e-5)


def test_products_neither_overflow_nor_vanish_on_their_way(kernels):
    for n in (40, 200):
        sizes = np.repeat(np.array([1e30, 1e-30, 3.0], np.float32), (n // 4, n // 4, 1))
        x = np.diag(np.concatenate([sizes, np.ones(n - len(sizes), np.float32)]))
        assert np.allclose(kernels[det](x), 3)
    x = np.eye(20, dtype=np.float32) * 1e3
    with np.errstate(over="ignore"):
        assert kernels[det](x)[0, 0] == np.inf
        assert np.isinf(np.diag(kernels[cofactor](x))).all()


def test_views_and_what_is_left_to_the_plain_code(kernels):
    x = normal(6, 4, 4)
    turned = x.swapaxes(1, 2)
    nearly(kernels[inverse](turned), inverse.forward(np, turned))
    nearly(kernels[cofactor](turned), cofactor.forward(np, turned))
    g = np.broadcast_to(np.float32(2), (6, 1, 1))
    (slope,) = kernels[det.backward](g, turned, needs=ONE)
    nearly(slope, 2 * cofactor.forward(np, turned))
    for other in (x.astype(np.float64), x[:0], np.zeros((3, 0, 0), np.float32)):
        assert kernels[det](other) is None
        assert kernels[inverse](other) is None
        assert kernels[cofactor](other) is None
    assert kernels[det](normal(100, 100)) is None


def test_second_order_through_these_kernels():
    x = normal(8, 6, 6) / np.float32(2)
    found = []
    for backend in (Numpy(), Numpy(compiled=False)):
        ad = Autodiff(Autodiff(backend))
        t = Tensor.from_numpy(x, ad).require_grad()
        value = (apply(det, t) ** 2).sum() + (apply(inverse, t) * 0.1).sum()
        slope = t.grad(value.backward())
        inner = Tensor.from_numpy(x, ad.inner).require_grad()
        again = apply(det, inner) ** 2
        found.append((np.asarray(slope), np.asarray(inner.grad(again.backward()))))
    for mine, theirs in zip(*found, strict=True):
        assert np.allclose(mine, theirs, rtol=1e-4, atol=1e-5 * np.abs(theirs).max())
