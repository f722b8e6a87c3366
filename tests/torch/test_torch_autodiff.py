"""Building blocks · Autodiff. Gradients and second gradients against PyTorch."""

import numpy as np
import pytest

from burnbook.autodiff import Autodiff
from burnbook.backend import Numpy
from burnbook.tensor import Tensor

torch = pytest.importorskip("torch", reason="PyTorch is the oracle here")
ONE = Autodiff(Numpy(float="f64"))
TWO = Autodiff(ONE)


def network(x, w1, b1, w2):
    """A small network in code that both libraries can run."""
    return ((x @ w1 + b1).tanh() @ w2).exp()


def test_gradients_of_a_small_network_equal_pytorch():
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(s) for s in ((5, 3), (3, 4), (1, 4), (4, 2))]
    ours = [Tensor.from_numpy(a, ONE).require_grad() for a in arrays]
    theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
    grads = network(*ours).sum().backward()
    network(*theirs).sum().backward()
    for a, b in zip(ours, theirs, strict=True):
        assert np.allclose(np.asarray(a.grad(grads)), b.grad.numpy(), rtol=1e-12)


def test_double_backward_of_a_small_network_equals_pytorch():
    rng = np.random.default_rng(1)
    arrays = [rng.standard_normal(s) for s in ((5, 3), (3, 4), (1, 4), (4, 2))]
    low = Tensor.from_numpy(arrays[0], ONE).require_grad()
    high = Tensor.from_inner(low, TWO).require_grad()
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
