"""What tests beside PyTorch share: the library itself, inputs, and a comparison."""

import importlib

import numpy as np

from burnbook.tensor import Tensor, apply

RNG = np.random.default_rng(0)
LIMITS = {"float64": 1e-9, "float32": 2e-4}  # the relative errors of types


class Missing:
    """Stands for a library that is not installed: tables may name what is in it."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self


try:
    torch = importlib.import_module("torch")
except ModuleNotFoundError:  # every test skips, one by one: see conftest.py
    torch = Missing()


def leaves(device, *arrays):
    """The same inputs here and there, all with gradients; None stands for no input."""
    mine = [
        None if array is None else Tensor.from_numpy(array, device).require_grad()
        for array in arrays
    ]
    theirs = [
        None if tensor is None else torch.tensor(np.asarray(tensor), requires_grad=True)
        for tensor in mine
    ]
    return mine, theirs


def close(ours, theirs, rtol=None, least=1e-30):
    """Our tensor equals PyTorch's, as far as its type and largest element allow."""
    wanted = theirs.detach().numpy()
    rtol = rtol or LIMITS[wanted.dtype.name]
    scale = np.abs(wanted).max(initial=least)
    np.testing.assert_allclose(np.asarray(ours), wanted, rtol=rtol, atol=rtol * scale)


def agree(out, wanted, pairs, rtol=None, least=1e-30):
    """Outputs, and all gradients for one random direction.

    pairs: a leaf of ours with PyTorch's, or with a function that gives its gradient.
    """
    close(out, wanted, rtol, least)
    g = RNG.normal(size=out.dims()).astype(np.asarray(out).dtype)
    grads = (out * Tensor.from_numpy(g, out.backend)).sum().backward()
    (wanted * torch.from_numpy(g)).sum().backward()
    for mine, theirs in pairs:
        if mine is not None:
            slope = theirs() if callable(theirs) else theirs.grad
            close(mine.grad(grads), slope, rtol, least)


def same(ours, theirs, device, *arrays, rtol=None, least=1e-30):
    """Two functions of the same inputs agree, in values and in all gradients."""
    mine, others = leaves(device, *arrays)
    pairs = zip(mine, others, strict=True)
    agree(ours(*mine), theirs(*others), pairs, rtol, least)


def same_op(op, theirs, device, *arrays, least=1e-30, **attrs):
    """An op gives what a function of PyTorch gives for the same attributes."""
    same(
        lambda *inputs: apply(op, *inputs, **attrs),
        lambda *inputs: theirs(*inputs, **attrs),
        device,
        *arrays,
        least=least,
    )
