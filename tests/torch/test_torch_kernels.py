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
from tests.torch.shared import same, torch

F = torch.nn.functional
BACKENDS = [Numpy(), Numpy(compiled=False), Numpy("f64")]


def normal(backend, *shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return values.astype(backend.float_dtype)


def both(backend, ours, theirs, *arrays):
    """Outputs and all gradients of the two, for the same weights of the output."""
    limit = 1e-9 if backend.float == "f64" else 2e-4
    same(ours, theirs, Autodiff(backend), *arrays, rtol=limit, least=1.0)


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
    both(
        backend,
        lambda x, w, b: apply(conv2d, x, w, b, **attrs),
        lambda x, w, b: F.conv2d(x, w, b, **attrs),
        normal(backend, 3, 4, 11, 12),
        normal(backend, 6, 4 // groups, 3, 4, seed=1),
        normal(backend, 6, seed=2),
    )


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
def test_pools(backend):
    x = normal(backend, 3, 4, 12, 9)
    for size in ((4, 3), (5, 7), (12, 9)):
        both(
            backend,
            lambda t, size=size: apply(adaptive_avg_pool2d, t, output_size=size),
            lambda t, size=size: F.adaptive_avg_pool2d(t, size),
            x,
        )
    for kernel, stride, padding, inside in (
        ((3, 3), (3, 3), (0, 0), True),
        ((3, 2), (2, 1), (1, 1), False),
    ):
        attrs = {"kernel_size": kernel, "stride": stride, "padding": padding}
        both(
            backend,
            lambda t, a=attrs, i=inside: apply(avg_pool2d, t, count_include_pad=i, **a),
            lambda t, a=attrs, i=inside: F.avg_pool2d(t, count_include_pad=i, **a),
            x,
        )
        both(
            backend,
            lambda t, a=attrs: apply(max_pool2d, t, **a),
            lambda t, a=attrs: F.max_pool2d(t, **a),
            x,
        )


@pytest.mark.parametrize("backend", BACKENDS, ids=repr)
def test_cross_entropy(backend):
    targets = np.random.default_rng(1).integers(0, 10, 64)
    labels = Tensor.from_numpy(targets, Autodiff(backend))
    both(
        backend,
        lambda z: apply(cross_entropy, z, labels),
        lambda z: F.cross_entropy(z, torch.tensor(targets)).reshape(1),
        normal(backend, 64, 10) * 5,
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
