"""The way back shown without going it: `graph.gradients()`, and who a step's op is."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Counting, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing
from burnbook.core.errors import GraphError
from burnbook.core.op import OPS
from burnbook.tensor import Tensor

DEVICES = [
    Autodiff(Numpy()),
    Autodiff(Numpy(), checkpointing=BalancedCheckpointing()),
    Counting(Autodiff(Numpy())),
    Autodiff(Autodiff(Numpy(float="f64"))),
]


def leaf(values, device):
    return Tensor.from_data(values, device).require_grad()


def small(device):
    x, w = leaf([[1.0, 2.0], [3.0, 4.0]], device), leaf([[0.5], [-0.5]], device)
    y = (x @ w).tanh()
    return x, w, y, (y * y + y * 3.0).mean()


def numbers(tensor):
    return np.asarray(tensor.into_data().array)


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_every_step_shows_its_gradient_in_the_order_of_the_way_back(device):
    x, w, y, loss = small(device)
    graph = loss.graph()
    found = graph.gradients()
    steps = [step for step, _ in found]
    assert steps == list(graph)
    assert steps[0] == graph.root
    assert graph.root.name == "mean"
    by_step = dict(found)
    assert all(tuple(g.shape) == step.shape for step, g in found)
    assert all(g.backend is device.inner for g in by_step.values())
    out = np.tanh([[-0.5], [-0.5]])
    assert np.allclose(numbers(by_step[y.graph().root]), (2 * out + 3) / 2)
    grads = loss.backward()
    for tensor in (x, w):
        seen = numbers(by_step[tensor.graph().root])
        assert np.array_equal(seen, numbers(tensor.grad(grads)))


@pytest.mark.parametrize("device", DEVICES, ids=repr)
def test_looking_uses_nothing_up_and_keeps_nothing_more(device):
    x, _, _, loss = small(device)
    graph = loss.graph()
    kept, hooked = graph.kept_bytes, set(device.hooked)
    first = [numbers(g).tolist() for _, g in graph.gradients()]
    assert graph.kept_bytes == kept
    assert [numbers(g).tolist() for _, g in graph.gradients()] == first
    assert not any(step.used_up for step in graph)
    assert set(device.hooked) <= hooked
    assert x.grad(loss.backward()) is not None
    with pytest.raises(GraphError, match="used up"):
        graph.gradients()


def test_hooks_of_others_stay_and_are_seen():
    device = DEVICES[0]
    x = leaf([1.0, 2.0], device)
    y = x * 3.0
    seen = []
    hook = y.hook(lambda g: seen.append(1) or g * 10.0)
    loss, hooked = y.sum(), set(device.hooked)
    by_step = dict(loss.graph().gradients())
    assert np.asarray(by_step[y.graph().root]).tolist() == [10.0, 10.0]
    assert np.asarray(x.grad(loss.backward())).tolist() == [30.0, 30.0]
    assert len(seen) == 2
    assert set(device.hooked) <= hooked
    assert len(hooked) > 0
    hook.remove()


def test_a_pass_that_fails_leaves_the_graph_as_it_was():
    device = DEVICES[0]
    x = leaf([1.0, 2.0], device)
    loss = (x * 3.0).exp().sum()
    hook = x.hook(lambda g: Tensor.ones([3], device.inner))
    with pytest.raises(GraphError, match="the gradient has shape"):
        loss.graph().gradients()
    hook.remove()
    assert not any(step.used_up for step in loss.graph())
    slope = 3 * np.exp([3.0, 6.0])
    assert np.allclose(np.asarray(x.grad(loss.backward())), slope)


@pytest.mark.parametrize("device", DEVICES[:2], ids=repr)
def test_kernels_leave_what_the_tape_keeps(device):
    model = nn.LinearConfig(6, 4).init(device)
    x = Tensor.from_data(np.linspace(-1, 1, 64 * 6).reshape(64, 6), device)
    y = model.forward(x.require_grad()).relu()
    loss = (y.log_softmax(1).exp() * y).mean()
    first = [numbers(g) for _, g in loss.graph().gradients()]
    again = [numbers(g) for _, g in loss.graph().gradients()]
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    seen = dict(loss.graph().gradients())[model.weight.val().graph().root]
    weight = model.weight.val().grad(loss.backward())
    assert np.array_equal(numbers(seen), numbers(weight))


def test_a_step_knows_its_op():
    _, _, _, loss = small(DEVICES[0])
    assert [step.op and step.op.name for step in loss.graph()] == [
        "mean", "add", "mul", "mul", "tanh", "matmul", None, None,
    ]  # fmt: skip
    assert loss.graph().root.op is OPS["mean"]


def test_a_leaf_alone_has_its_own_sum_as_loss():
    x = leaf([1.0, 2.0], DEVICES[0])
    [(step, g)] = x.graph().gradients()
    assert (step.name, np.asarray(g).tolist()) == ("leaf", [1.0, 1.0])
