"""How exact sums are: beside float64, and beside PyTorch's own error."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.nn import LinearConfig
from burnbook.nn.conv import Conv2dConfig
from burnbook.ops import reduce as ops
from burnbook.tensor import Tensor
from tests.torch.shared import torch

SHAPES = [(10000, 4), (30000, 1), (4, 10007), (16, 3001, 8), (3000, 300)]
BACKENDS = {"compiled": Numpy(), "plain": Numpy(compiled=False)}
TIMES = 6  # the error that PyTorch's may be exceeded by


def numbers(shape, offset=0.5):
    return np.random.default_rng(0).normal(offset, size=shape).astype(np.float32)


def error(found, exact):
    found = np.asarray(found, np.float64).reshape(exact.shape)
    return float(np.sqrt(np.mean((found - exact) ** 2)))


def near(found, theirs, exact):
    """The error is about that of PyTorch, or of one rounding of the result."""
    last_digit = float(np.spacing(np.float32(abs(exact).max())))
    least = max(error(theirs, exact), last_digit / 2)
    assert error(found, exact) <= TIMES * least


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_sums_along_every_dim(shape, backend):
    array = numbers(shape)
    exact, x = array.astype(np.float64), Tensor.from_numpy(array, BACKENDS[backend])
    y = torch.from_numpy(array)
    for dim in range(len(shape)):
        total, theirs = exact.sum(dim, keepdims=True), y.sum(dim, keepdim=True)
        near(x.sum_dim(dim), theirs, total)
        near(x.mean_dim(dim), theirs / shape[dim], total / shape[dim])
        near(x.logsumexp(dim), y.logsumexp(dim), np.log(np.exp(exact).sum(dim)))
        near(x.softmax(dim), y.softmax(dim), _softmax(exact, dim))
        if shape[dim] > 1:
            spread = exact.var(dim, ddof=1, keepdims=True)
            near(x.var(dim), y.var(dim), spread)
        length = np.sqrt((exact**2).sum(dim, keepdims=True))
        found = x.backend.run(ops.length_dim, (x.value,), {"dim": dim})
        near(found, y.norm(dim=dim), length)
    near(x.sum(), y.sum(), exact.sum(keepdims=True).reshape(1))


def _softmax(x, dim):
    raised = np.exp(x - x.max(dim, keepdims=True))
    return raised / raised.sum(dim, keepdims=True)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_of_what_was_stretched(dtype, backend):
    array = numbers((40, 3, 50, 60)).astype(dtype)
    exact = array.astype(np.longdouble)
    for to in [(1, 3, 1, 1), (40, 1, 1, 60), (3, 1, 1), (60,), (1,), (1, 1, 50, 60)]:
        full = (1,) * (4 - len(to)) + to
        dims = tuple(i for i in range(4) if full[i] == 1)
        found = BACKENDS[backend].run(ops.sum_to, (array,), {"shape": to})
        assert (found.shape, found.dtype) == (to, dtype)
        total = exact.sum(dims).astype(np.float64)
        if dtype is np.float32:
            near(found, torch.from_numpy(array).sum(dims), total)
        else:
            np.testing.assert_allclose(found.reshape(total.shape), total, rtol=1e-13)


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients_of_biases(backend):
    device = Autodiff(BACKENDS[backend])
    x, g = numbers((20000, 3)), numbers((20000, 2))
    layer = LinearConfig(3, 2).init(device)
    out = layer.forward(Tensor.from_numpy(x, device))
    grads = (out * Tensor.from_numpy(g, device)).sum().backward()
    near(
        layer.bias.val().grad(grads), torch.from_numpy(g).sum(0), g.astype("f8").sum(0)
    )
    image, slope = numbers((500, 1, 4, 4)), numbers((500, 2, 4, 4))
    conv = Conv2dConfig([1, 2], [1, 1]).init(device)
    out = conv.forward(Tensor.from_numpy(image, device))
    grads = (out * Tensor.from_numpy(slope, device)).sum().backward()
    exact, theirs = slope.astype("f8").sum((0, 2, 3)), torch.from_numpy(slope)
    near(conv.bias.val().grad(grads), theirs.sum((0, 2, 3)), exact)


@pytest.mark.parametrize("shape", [(3000, 2), (2, 3000), (20, 300, 2), (0, 3), (3, 0)])
def test_half_precision_is_added_in_single(shape):
    array = np.ones(shape, np.float16)
    for dim in range(len(shape)):
        exact = array.astype("f8").sum(dim, keepdims=True)
        found = ops.sum_dim(np, array, dim=dim)
        assert (found.dtype, found.tolist()) == (np.float16, exact.tolist())
        if shape[dim]:
            assert (ops.mean_dim(np, array, dim=dim) == 1).all()


def test_strided_and_empty_arrays_are_added_as_well():
    array = numbers((3, 700, 6)).astype(np.float64)
    stretched = np.broadcast_to(array[:1], (900, 700, 6))
    for view in (array[::2, ::-1, 1::2], array.T, stretched):
        for dim in (0, 1, -1):
            expected = view.sum(dim, keepdims=True)
            np.testing.assert_allclose(ops.sum_along(np, view, dim), expected)
    for to in [(1, 3), (3,), (1, 1), (1,)]:
        assert not ops.sum_to(np, np.zeros((0, 3)), shape=to).any()
