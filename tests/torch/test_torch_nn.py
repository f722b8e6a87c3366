"""Layers equal PyTorch's, forward and backward, with the weights copied."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.examples.guide.model import ModelConfig
from burnbook.nn import PaddingConfig2d
from burnbook.tensor import Tensor
from tests.torch.shared import RNG, agree, close, leaves, same, torch

F64 = Autodiff(Numpy(float="f64"))


def copy_into(theirs, ours, linear=False):
    """Copy the weights of our layer into a PyTorch one; theirs is [out, in]."""
    weight = torch.from_numpy(np.array(ours.weight.val()))
    with torch.no_grad():
        theirs.weight.copy_(weight.T if linear else weight)
        if ours.bias is not None:
            theirs.bias.copy_(torch.from_numpy(np.array(ours.bias.val())))
    return theirs


def compare(ours, theirs, x, linear=False):
    """Outputs, and the gradients of input and parameters for one random direction."""
    (mine,), (other,) = leaves(ours.weight.device, x)
    slope = lambda: theirs.weight.grad.T if linear else theirs.weight.grad  # noqa: E731
    pairs = [(mine, other), (ours.weight.val(), slope)]
    if ours.bias is not None:
        pairs.append((ours.bias.val(), theirs.bias))
    agree(ours.forward(mine), theirs(other), pairs)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(5, 7), (2, 3, 7), (7,)])
def test_linear(bias, shape):
    layer = nn.LinearConfig(7, 4).with_bias(bias).init(F64)
    theirs = copy_into(torch.nn.Linear(7, 4, bias).double(), layer, linear=True)
    compare(layer, theirs, RNG.normal(size=shape), linear=True)


@pytest.mark.parametrize(
    ("groups", "stride", "dilation", "padding", "torch_padding"),
    [
        (1, (1, 1), (1, 1), PaddingConfig2d.Valid, 0),
        (2, (2, 1), (1, 2), PaddingConfig2d.Explicit(1, 2), (1, 2)),
        (4, (1, 1), (1, 1), PaddingConfig2d.Same, "same"),
        (1, (3, 2), (2, 2), PaddingConfig2d.Explicit(2, 2), 2),
    ],
    ids=str,
)
def test_conv2d(groups, stride, dilation, padding, torch_padding):
    config = nn.Conv2dConfig([4, 8], [3, 3]).with_groups(groups).with_stride(stride)
    layer = config.with_dilation(dilation).with_padding(padding).init(F64)
    theirs = torch.nn.Conv2d(
        4, 8, 3, stride, torch_padding, dilation, groups, dtype=torch.float64
    )
    compare(layer, copy_into(theirs, layer), RNG.normal(size=(2, 4, 11, 10)))


@pytest.mark.parametrize("size", [(8, 8), (24, 24), (9, 7), (3, 5)])
def test_adaptive_avg_pool2d(size):
    pool = nn.AdaptiveAvgPool2dConfig([4, 4]).init()
    x = RNG.normal(size=(2, 3, *size))
    same(pool.forward, torch.nn.AdaptiveAvgPool2d(4), F64, x)


@pytest.mark.parametrize("weights", [None, [1.0, 2.0, 0.5]])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy(weights, smoothing):
    """PyTorch shares a weighted smoothing out by the same rule as Burn."""
    scores, targets = RNG.normal(size=(6, 3)), np.array([0, 1, 2, 2, 1, 0])
    config = nn.CrossEntropyLossConfig().with_weights(weights)
    loss = config.with_smoothing(smoothing or None).init(F64)
    balance = None if weights is None else torch.tensor(weights, dtype=torch.float64)
    same(
        lambda x: loss.forward(x, Tensor.from_numpy(targets, F64)),
        lambda x: torch.nn.functional.cross_entropy(
            x, torch.from_numpy(targets), balance, label_smoothing=smoothing
        ).reshape(1),
        F64,
        scores,
        rtol=1e-12,
    )


class TorchGuide:
    """The guide's model, written for PyTorch, without its dropout."""

    def __init__(self):
        self.conv1, self.conv2 = torch.nn.Conv2d(1, 8, 3), torch.nn.Conv2d(8, 16, 3)
        self.pool = torch.nn.AdaptiveAvgPool2d(8)
        self.linear1 = torch.nn.Linear(1024, 64)
        self.linear2 = torch.nn.Linear(64, 10)

    def __call__(self, x):
        x = torch.relu(self.conv2(self.conv1(x[:, None])))
        x = self.pool(x).reshape(len(x), 1024)
        return self.linear2(torch.relu(self.linear1(x)))


@pytest.mark.parametrize("compiled", [False, None], ids=["plain", "as it comes"])
def test_the_guide_model(compiled):
    """All outputs and gradients of the whole network, in float32."""
    device = Autodiff(Numpy(compiled=compiled))
    model = ModelConfig(10, 64).with_dropout(0.0).init(device)
    theirs = TorchGuide()
    for name in ("conv1", "conv2", "linear1", "linear2"):
        linear = name.startswith("linear")
        copy_into(getattr(theirs, name), getattr(model, name), linear)
    x = RNG.random((16, 28, 28), dtype=np.float32)
    targets = RNG.integers(0, 10, 16)
    out = model.forward(Tensor.from_numpy(x, device))
    wanted = theirs(torch.from_numpy(x))
    close(out, wanted, rtol=1e-4)
    loss = nn.CrossEntropyLoss.new(None, device)
    grads = loss.forward(out, Tensor.from_numpy(targets, device)).backward()
    torch.nn.functional.cross_entropy(wanted, torch.from_numpy(targets)).backward()
    for name, param in model.named_params():
        layer, _, part = name.partition(".")
        grad = getattr(getattr(theirs, layer), part).grad
        turn = name.startswith("linear") and part == "weight"
        turned = grad.T if turn else grad
        close(param.val().grad(grads), turned, rtol=1e-3)
