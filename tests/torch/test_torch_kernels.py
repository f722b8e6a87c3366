"""Convolution, pooling, cross-entropy and Adam against PyTorch, plain and compiled."""

import itertools

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.ops.conv.conv import conv2d
from burnbook.ops.loss import cross_entropy
from burnbook.ops.optimizer_steps import adam_step
from burnbook.ops.pool.pool import adaptive_avg_pool2d, avg_pool2d, max_pool2d
from burnbook.tensor import Tensor, apply
from tests.torch.shared import same, same_op, torch

F = torch.nn.functional
BACKENDS = [Numpy(), Numpy(compiled=False), Numpy("f64")]


def normal(backend, *shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(backend.float_dtype)


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    list(
        itertools.product([(1, 1), (2, 1)], [(0, 0), (1, 2)], [(1, 1), (2, 1)], [1, 2])
    ),
)
def test_conv2d(backend, stride, padding, dilation, groups):
    attrs = {"stride": stride, "padding": padding}
    attrs |= {"dilation": dilation, "groups": groups}
    arrays = [
        normal(backend, 3, 4, 11, 12),
        normal(backend, 6, 4 // groups, 3, 4, seed=1),
        normal(backend, 6, seed=2),
    ]
    same_op(conv2d, F.conv2d, Autodiff(backend), *arrays, least=1.0, **attrs)


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
def test_pools(backend):
    given = Autodiff(backend), normal(backend, 3, 4, 12, 9)
    for size in ((4, 3), (5, 7), (12, 9)):
        theirs = F.adaptive_avg_pool2d
        same_op(adaptive_avg_pool2d, theirs, *given, least=1.0, output_size=size)
    for kernel, stride, padding, inside in (
        ((3, 3), (3, 3), (0, 0), True),
        ((3, 2), (2, 1), (1, 1), False),
    ):
        attrs = {"kernel_size": kernel, "stride": stride, "padding": padding}
        same_op(max_pool2d, F.max_pool2d, *given, least=1.0, **attrs)
        attrs["count_include_pad"] = inside
        same_op(avg_pool2d, F.avg_pool2d, *given, least=1.0, **attrs)


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
def test_cross_entropy(backend):
    targets = np.random.default_rng(1).integers(0, 10, 64)
    labels = Tensor.from_numpy(targets, Autodiff(backend))
    same(
        lambda z: apply(cross_entropy, z, labels),
        lambda z: F.cross_entropy(z, torch.tensor(targets)).reshape(1),
        Autodiff(backend),
        normal(backend, 64, 10) * 5,
        least=1.0,
    )


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
def test_adam(backend):
    values = normal(backend, 50, 40)
    theirs = torch.nn.Parameter(torch.tensor(values))
    optim = torch.optim.Adam([theirs], 1e-2, eps=1e-8)
    m = v = np.zeros_like(values)
    for time in range(1, 8):
        g = normal(backend, 50, 40, seed=time)
        theirs.grad = torch.tensor(g)
        optim.step()
        attrs = {"lr": 1e-2, "epsilon": 1e-8, "time": time}
        values, m, v = backend.run(adam_step, (values, g, m, v), attrs)
    assert np.allclose(values, theirs.detach().numpy(), atol=1e-6)
