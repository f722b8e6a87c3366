"""A graph that is kept for another backward."""

import gc
import weakref

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Counting, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.core.errors import GraphError
from burnbook.tensor import Distribution, Tensor

NUMPY = Numpy(float="f64")
DEVICES = [
    Autodiff(NUMPY),
    Autodiff(Numpy(float="f64", compiled=False)),
    Autodiff(NUMPY, checkpointing=BalancedCheckpointing()),
    Counting(Autodiff(NUMPY)),
    Autodiff(Autodiff(NUMPY)),
]


def leaf(values, device):
    return Tensor.from_data(values, device).require_grad()


def network(device):
    device.seed(1)
    conv = nn.Conv2dConfig([2, 3], [3, 3]).init(device)
    norm = nn.LayerNormConfig(4).init(device)
    images = Tensor.random([2, 2, 6, 6], Distribution.Default, device)
    return [conv, norm], norm.forward(conv.forward(images).tanh()).exp()


def gradients(parts, grads):
    held = [param for part in parts for _, param in part.named_params()]
    return [np.asarray(param.val().grad(grads)) for param in held]


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_each_backward_over_a_kept_graph_gives_the_same(device):
    parts, y = network(device)
    passes = [y.backward(keep_graph=True), y.backward(keep_graph=True), y.backward()]
    first, *others = [gradients(parts, each) for each in passes]
    assert len(first) == 4
    for other in others:
        for one, another in zip(first, other, strict=True):
            np.testing.assert_array_equal(one, another)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_two_tensors_share_a_kept_graph(device):
    x = leaf([0.5, 1.5], device)
    y = x.sin()
    first = (y * 2.0).backward(keep_graph=True)
    second = (y * y).backward()
    values = np.array([0.5, 1.5])
    np.testing.assert_allclose(np.asarray(x.grad(first)), 2.0 * np.cos(values))
    expected = 2.0 * np.sin(values) * np.cos(values)
    np.testing.assert_allclose(np.asarray(x.grad(second)), expected)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_the_last_backward_uses_the_graph_up(device):
    y = leaf([0.5], device).sin()
    y.backward(keep_graph=True)
    y.backward()
    with pytest.raises(GraphError, match=r"sin: .* used up") as caught:
        y.backward()
    assert "backward(keep_graph=True)" in str(caught.value)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_hooks_run_in_each_backward(device):
    x = leaf([1.0, 2.0], device)
    y = x * 3.0
    seen = []
    y.hook(seen.append)
    (y * y).backward(keep_graph=True)
    (y * y * y).backward()
    assert [np.asarray(g).tolist() for g in seen] == [[6.0, 12.0], [27.0, 108.0]]


def test_a_kept_graph_frees_its_memory_with_the_last_backward():
    device = Autodiff(NUMPY)
    y = leaf(np.ones(1000), device).exp()
    held = weakref.ref(y.value.node.kept[0])
    z = (y * 1.0).sum()
    del y
    z.backward(keep_graph=True)
    gc.collect()
    assert held() is not None
    assert z.graph().kept_bytes > 0
    z.backward()
    gc.collect()
    assert held() is None
    assert z.graph().kept_bytes == 0


def test_a_kept_graph_keeps_no_recomputed_values():
    device = Autodiff(NUMPY, checkpointing=BalancedCheckpointing())
    y = leaf(np.ones([50, 50]), device).exp().tanh().sin()
    before = y.graph().kept_bytes
    y.backward(keep_graph=True)
    assert y.graph().kept_bytes == before


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_a_laplacian_is_the_one_of_pytorch(checkpointing, compiled):
    torch = pytest.importorskip("torch")
    inner = Numpy(float="f64", compiled=compiled)
    options = {"checkpointing": BalancedCheckpointing()} if checkpointing else {}
    device = Autodiff(Autodiff(inner, **options), **options)
    points = np.random.default_rng(0).uniform(-1, 1, [5, 3])
    weights = np.random.default_rng(1).uniform(-1, 1, [3, 3])

    x = leaf(points, device)
    y = x.matmul(Tensor.from_data(weights, device)).sin().exp()
    slopes = x.grad(y.sum().backward())
    laplacian = 0.0
    for i in range(3):
        found = slopes[:, i : i + 1].sum().backward(keep_graph=i < 2)
        laplacian = x.grad(found)[:, i : i + 1] + laplacian

    tx = torch.tensor(points, requires_grad=True)
    ty = (tx @ torch.tensor(weights)).sin().exp()
    (tslopes,) = torch.autograd.grad(ty.sum(), tx, create_graph=True)
    expected = 0.0
    for i in range(3):
        part = tslopes[:, i : i + 1].sum()
        (found,) = torch.autograd.grad(part, tx, retain_graph=True)
        expected = found[:, i : i + 1] + expected
    np.testing.assert_allclose(np.asarray(laplacian), expected.numpy(), rtol=1e-12)


def test_a_loss_of_a_laplacian_has_the_gradients_of_pytorch():
    torch = pytest.importorskip("torch")
    device = Autodiff(Autodiff(Autodiff(NUMPY)))
    points = np.random.default_rng(0).uniform(-1, 1, [5, 2])
    weights = np.random.default_rng(1).uniform(-1, 1, [2, 1])

    w, x = leaf(weights, device), leaf(points, device)
    slopes = x.grad(x.matmul(w).sin().sum().backward())
    parts = [
        x.grad(slopes[:, i].sum().backward(keep_graph=i == 0))[:, i] for i in range(2)
    ]
    loss = (parts[0] + parts[1]).square().mean()
    found = w.grad(loss.backward())

    tw = torch.tensor(weights, requires_grad=True)
    tx = torch.tensor(points, requires_grad=True)
    (ts,) = torch.autograd.grad((tx @ tw).sin().sum(), tx, create_graph=True)
    tparts = [
        torch.autograd.grad(ts[:, i].sum(), tx, create_graph=True)[0][:, i]
        for i in range(2)
    ]
    (tparts[0] + tparts[1]).square().mean().backward()
    np.testing.assert_allclose(np.asarray(found), tw.grad.numpy(), rtol=1e-12)
