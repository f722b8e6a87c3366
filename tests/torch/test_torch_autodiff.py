"""Gradients and second gradients against PyTorch."""

import functools
import operator

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.backend.autodiff import BalancedCheckpointing, NoCheckpointing
from burnbook.module import Param
from burnbook.tensor import Tensor, apply
from tests.torch.shared import close, same, torch

F = torch.nn.functional
ONE = Autodiff(Numpy(float="f64"))
TWO = Autodiff(ONE)


def network(x, w1, b1, w2):
    """A small network in code that both libraries can run."""
    return ((x @ w1 + b1).tanh() @ w2).exp()


def test_gradients_of_a_small_network_equal_pytorch():
    arrays = normal((5, 3), (3, 4), (1, 4), (4, 2), seed=0)
    same(network, network, ONE, *arrays, rtol=1e-12)


def test_double_backward_of_a_small_network_equals_pytorch():
    arrays = normal((5, 3), (3, 4), (1, 4), (4, 2), seed=1)
    low, high = lifted(arrays[0])
    rest = [Tensor.from_numpy(a, TWO) for a in arrays[1:]]
    first = high.grad(network(high, *rest).sum().backward())
    second = low.grad((first * first).sum().backward())

    x = torch.tensor(arrays[0], requires_grad=True)
    weights = [torch.tensor(a) for a in arrays[1:]]
    (g,) = torch.autograd.grad(network(x, *weights).sum(), x, create_graph=True)
    (gg,) = torch.autograd.grad((g * g).sum(), x)
    assert np.allclose(np.asarray(second), gg.numpy(), rtol=1e-10)


def test_elementwise_functions_equal_pytorch_on_special_values():
    special = np.array([-np.inf, -1.5, -0.0, 0.0, 0.5, 2.5, np.inf, np.nan], np.float32)
    ours, theirs = Tensor.from_numpy(special), torch.tensor(special)
    for name in ("exp", "log", "log1p", "sqrt", "tanh", "sigmoid", "relu", "erf",
                 "floor", "ceil", "round", "abs", "cos", "sin"):  # fmt: skip
        a = np.asarray(getattr(ours, name)() if name != "round" else round(ours))
        b = getattr(theirs, name)().numpy()
        assert np.allclose(a, b, rtol=1e-6, atol=1e-7, equal_nan=True), name


# Double backward of the guide's layers: gradients of a gradient, for every input.


def lifted(array):
    """A leaf of the inner graph, and the leaf above it on which a layer works."""
    low = Tensor.from_numpy(array, ONE).require_grad()
    return low, Tensor.from_inner(low, TWO).require_grad()


def with_values(layer, weight, bias):
    """The layer with other parameters: those of the upper graph."""
    weight = Param.initialized(layer.weight.id, weight)
    return layer.replace(weight=weight, bias=Param.initialized(layer.bias.id, bias))


def compare_twice(ours, theirs, arrays, seed=0, rtol=1e-9):
    """First and second gradients of Σ out · weights, for all arrays at once."""
    rng = np.random.default_rng(seed)
    lows, highs = zip(*[lifted(a) for a in arrays], strict=True)
    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    out, wanted = ours(*highs), theirs(*leaves)
    close(out.inner().inner(), wanted, rtol)
    weights = rng.standard_normal(tuple(wanted.shape))
    directions = [rng.standard_normal(a.shape) for a in arrays]

    grads = (out * Tensor.from_numpy(weights, TWO)).sum().backward()
    first = [t.grad(grads) for t in highs]
    firsts = torch.autograd.grad(
        (wanted * torch.tensor(weights)).sum(), leaves, create_graph=True
    )
    for a, b in zip(first, firsts, strict=True):
        close(a.inner(), b, rtol)
    along = [
        (g * Tensor.from_numpy(d, ONE)).sum()
        for g, d in zip(first, directions, strict=True)
    ]
    second = functools.reduce(operator.add, along).backward()
    theirs_total = sum(
        (g * torch.tensor(d)).sum() for g, d in zip(firsts, directions, strict=True)
    )
    seconds = torch.autograd.grad(theirs_total, leaves, allow_unused=True)
    reached = 0
    for low, b in zip(lows, seconds, strict=True):
        a = low.grad(second)
        if b is None:
            assert a is None or not np.any(np.asarray(a))
            continue
        reached += 1
        found = np.zeros(tuple(b.shape)) if a is None else np.asarray(a)
        close(found, b, rtol)
    assert reached


def normal(*shapes, seed=3):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape) for shape in shapes]


@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7)])
def test_linear_twice(shape):
    layer = nn.LinearConfig(7, 4).init(TWO)

    def ours(x, weight, bias):
        return with_values(layer, weight, bias).forward(x).tanh()

    def theirs(x, weight, bias):
        return F.linear(x, weight.T, bias).tanh()

    compare_twice(ours, theirs, normal(shape, (7, 4), (4,)))


@pytest.mark.parametrize(
    ("groups", "stride", "padding", "dilation"),
    [(1, 1, 0, 1), (2, 2, 1, 1), (1, 1, 2, 2)],
)
def test_conv2d_twice(groups, stride, padding, dilation):
    config = nn.Conv2dConfig([2, 4], [3, 3]).with_groups(groups)
    config = config.with_stride((stride, stride)).with_dilation((dilation, dilation))
    config = config.with_padding(nn.PaddingConfig2d.Explicit(padding, padding))
    layer = config.init(TWO)

    def ours(x, weight, bias):
        out = with_values(layer, weight, bias).forward(x)
        return out * out

    def theirs(x, weight, bias):
        out = F.conv2d(x, weight, bias, stride, padding, dilation, groups)
        return out * out

    compare_twice(ours, theirs, normal((2, 2, 7, 6), (4, 2 // groups, 3, 3), (4,)))


@pytest.mark.parametrize("size", [(8, 8), (7, 5)])
def test_adaptive_avg_pool2d_twice(size):
    pool = nn.AdaptiveAvgPool2dConfig([4, 4]).init()
    torch_pool = torch.nn.AdaptiveAvgPool2d(4)
    compare_twice(
        lambda x: pool.forward(x).exp(),
        lambda x: torch_pool(x).exp(),
        normal((2, 3, *size)),
    )


def test_relu_twice():
    relu = nn.Relu()
    compare_twice(
        lambda x: relu.forward(x) * relu.forward(x * x - x),
        lambda x: torch.relu(x) * torch.relu(x * x - x),
        normal((4, 5)),
    )


def test_dropout_twice():
    """The same mask on both sides: what ours lets through, read off ones."""
    from burnbook.ops import dropout

    key = (7, 9)
    ones = Tensor.ones([6, 5], Numpy(float="f64"))
    mask = torch.tensor(np.array(apply(dropout, ones, prob=0.4, key=key)))
    compare_twice(
        lambda x: apply(dropout, x * x, prob=0.4, key=key).sin(),
        lambda x: (x * x * mask).sin(),
        normal((6, 5)),
    )


@pytest.mark.parametrize("smoothing", [None, 0.2])
def test_cross_entropy_twice(smoothing):
    targets = np.array([0, 2, 1, 2])
    loss = nn.CrossEntropyLossConfig().with_smoothing(smoothing).init(TWO)
    compare_twice(
        lambda x: loss.forward(x * 2.0, Tensor.from_numpy(targets, TWO)),
        lambda x: F.cross_entropy(
            x * 2.0, torch.tensor(targets), label_smoothing=smoothing or 0.0
        ).reshape(1),
        normal((4, 3)),
    )


@pytest.mark.parametrize("strategy", [NoCheckpointing(), BalancedCheckpointing()])
def test_a_small_guide_network_twice(strategy):
    """Convolution, relu, pool, linear, loss: ∂/∂ of a gradient penalty, as GANs use."""
    two = Autodiff(ONE, checkpointing=strategy)
    conv = nn.Conv2dConfig([1, 3], [3, 3]).init(two)
    pool = nn.AdaptiveAvgPool2dConfig([2, 2]).init()
    linear = nn.LinearConfig(12, 3).init(two)
    loss = nn.CrossEntropyLossConfig().init(two)
    arrays = normal((4, 1, 8, 8), (3, 1, 3, 3), (3,), (12, 3), (3,))
    targets = np.array([0, 1, 2, 1])

    lows = [Tensor.from_numpy(a, ONE).require_grad() for a in arrays]
    x, cw, cb, lw, lb = [Tensor.from_inner(t, two).require_grad() for t in lows]
    hidden = with_values(conv, cw, cb).forward(x)
    flat = pool.forward(nn.Relu().forward(hidden)).reshape([4, 12])
    scores = with_values(linear, lw, lb).forward(flat)
    out = loss.forward(scores, Tensor.from_numpy(targets, two))
    slope = x.grad(out.backward())
    penalty = (slope * slope).sum().backward()

    leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
    tx, tcw, tcb, tlw, tlb = leaves
    thidden = F.conv2d(tx, tcw, tcb).relu()
    tflat = F.adaptive_avg_pool2d(thidden, 2).reshape(4, 12)
    tloss = F.cross_entropy(F.linear(tflat, tlw.T, tlb), torch.tensor(targets))
    (tslope,) = torch.autograd.grad(tloss, tx, create_graph=True)
    wanted = torch.autograd.grad((tslope * tslope).sum(), leaves, allow_unused=True)
    close(slope.inner(), tslope, 1e-9)
    for low, b in zip(lows, wanted, strict=True):
        a = low.grad(penalty)
        found = np.zeros(tuple(low.shape)) if a is None else np.asarray(a)
        expected = torch.zeros(*low.shape) if b is None else b
        close(found, expected, 1e-8)


# What the tape keeps: never more bytes than PyTorch saves.

CHAINS = {
    "scale and shift": lambda x, y: (x * 0.5 + 0.1) * 2.0 - 1.0,
    "curves": lambda x, y: (x.tanh() * 2.0).sigmoid().exp().sqrt(),
    "two inputs": lambda x, y: (x * y - y * 3.0) * x,
    "quotients": lambda x, y: (x / y).exp() / 3.0,
    "shapes": lambda x, y: (x.reshape(*wanted(x)) * 3.0).exp().sum(),
    "relu and log": lambda x, y: ((x * x + 1.0).log() * (y * 0.1).exp()).relu(),
    "powers": lambda x, y: (x * x + 1.0) ** 1.5 / 7.0,
    "matrices": lambda x, y: ((x @ y) * 0.01).sin() @ y,
}


def wanted(x):
    """The same reshape in the two libraries' words."""
    return ([1024, 4],) if isinstance(x, Tensor) else (1024, 4)


@pytest.mark.parametrize("name", CHAINS)
def test_the_tape_keeps_no_more_than_pytorch(name):
    arrays = [a.astype(np.float32) + 3.0 for a in normal((64, 64), (64, 64))]
    ours = [Tensor.from_numpy(a, Autodiff(Numpy())).require_grad() for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    saved = {}

    def pack(tensor):
        storage = tensor.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        alive.append(tensor)
        return tensor

    alive = []
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        CHAINS[name](*theirs)
    kept = CHAINS[name](*ours).graph().kept_bytes
    assert kept <= sum(saved.values())
