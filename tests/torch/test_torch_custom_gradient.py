"""custom_gradient beside torch.autograd.Function: the same values and gradients."""

import numpy as np
import pytest

from burnbook.backend import Autodiff, Numpy
from burnbook.tensor import Tensor, custom_gradient
from tests.torch.shared import torch

INNER = Autodiff(Numpy(float="f64"))
OUTER = Autodiff(INNER)
RNG = np.random.default_rng(7)


def function(forward, backward):
    """A torch.autograd.Function made of two functions of (context, …)."""
    body = {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    return type("Own", (torch.autograd.Function,), body).apply


def saved(forward):
    """A forward that saves its inputs."""

    def run(ctx, *inputs):
        ctx.save_for_backward(*inputs)
        return forward(*inputs)

    return run


@custom_gradient
def clipped_log(x):
    """log x, whose gradient is that of log with x ≥ 0.1."""
    return x.log()


@clipped_log.backward
def _(g, x):
    return g / x.clamp_min(0.1)


def torch_clipped_log():
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g / x.clamp(min=0.1)

    return function(saved(lambda x: x.log()), backward)


@custom_gradient
def ratio(x, y):
    return x / y


@ratio.backward
def _(g, x, y):
    return g / y, -g * x / (y * y)


def torch_ratio():
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g / y, -g * x / (y * y)  # PyTorch adds up what was stretched, too

    return function(saved(lambda x, y: x / y), backward)


@custom_gradient
def halves(x):
    return x.sin(), x.cos()


@halves.backward
def _(g, out):
    sine, cosine = out
    return g[0] * cosine * 0.5 - g[1] * sine * 2.0  # wrong on purpose: both use it


def torch_halves():
    def forward(ctx, x):
        out = x.sin(), x.cos()
        ctx.save_for_backward(*out)
        return out

    def backward(ctx, g, h):
        sine, cosine = ctx.saved_tensors
        return g * cosine * 0.5 - h * sine * 2.0

    return function(forward, backward)


CASES = {
    "one input": (clipped_log, torch_clipped_log, [(2, 3)]),
    "two inputs": (ratio, torch_ratio, [(2, 3), (2, 3)]),
    "a stretched input": (ratio, torch_ratio, [(2, 3), (2, 1)]),
    "two results": (halves, torch_halves, [(4,)]),
}


@pytest.mark.parametrize("name", CASES)
def test_values_gradients_and_second_order_are_pytorchs(name):
    """loss = Σ w · out², whose gradients are weighted and differentiated again."""
    ours, make, shapes = CASES[name]
    arrays = [RNG.uniform(0.05, 2.0, shape) for shape in shapes]
    low = [Tensor.from_numpy(array, INNER).require_grad() for array in arrays]
    high = [Tensor.from_inner(x, OUTER).require_grad() for x in low]
    other = [torch.tensor(array, requires_grad=True) for array in arrays]
    outs, wanted = several(ours(*high)), several(make()(*other))
    for out, want in zip(outs, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(out), want.detach().numpy(), rtol=1e-12)
    loss = sum((out * out * (i + 1.0)).sum() for i, out in enumerate(outs))
    other_loss = sum((out * out * (i + 1.0)).sum() for i, out in enumerate(wanted))
    grads = loss.backward()
    first = [x.grad(grads) for x in high]
    slopes = torch.autograd.grad(other_loss, other, create_graph=True)
    for grad, slope in zip(first, slopes, strict=True):
        np.testing.assert_allclose(np.asarray(grad), slope.detach(), rtol=1e-10)
    again = sum((grad * grad).sum() for grad in first).backward()
    curves = torch.autograd.grad(sum((s * s).sum() for s in slopes), other)
    for x, curve in zip(low, curves, strict=True):
        np.testing.assert_allclose(np.asarray(x.grad(again)), curve, rtol=1e-9)


def several(out):
    return out if isinstance(out, tuple) else (out,)
