"""Weight normalization, beside PyTorch's `parametrizations.weight_norm`."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.module import WeightNorm
from burnbook.optim import SgdConfig
from burnbook.optim.grads import GradientsParams
from burnbook.tensor import Tensor
from tests.torch.shared import RNG, torch

BACKENDS = [Numpy(float="f64", compiled=False), Numpy(float="f64")]


def layers(device):
    """Layers here, what makes them there, and the shape of their inputs."""
    return [
        (nn.LinearConfig(4, 6).init(device), lambda: torch.nn.Linear(4, 6), (5, 4)),
        (nn.LinearConfig(4, 1).init(device), lambda: torch.nn.Linear(4, 1), (5, 4)),
        (
            nn.Conv1dConfig(3, 5, 2).init(device),
            lambda: torch.nn.Conv1d(3, 5, 2),
            (2, 3, 8),
        ),
        (
            nn.Conv2dConfig([3, 4], [3, 3]).with_bias(False).init(device),
            lambda: torch.nn.Conv2d(3, 4, 3, bias=False),
            (2, 3, 6, 6),
        ),
    ]


def turned(array):
    """A weight of ours as PyTorch has it: the matrix of a Linear the other way."""
    return np.asarray(array).T if np.ndim(array) == 2 else np.asarray(array)


@pytest.mark.parametrize("backend", BACKENDS, ids=["plain", "compiled"])
@pytest.mark.parametrize("which", range(4))
def test_values_gradients_and_training_are_those_of_pytorch(backend, which):
    device = Autodiff(backend)
    layer, make, shape = layers(device)[which]
    theirs = make().double()
    with torch.no_grad():
        theirs.weight.copy_(torch.tensor(turned(layer.weight.val()).copy()))
        if layer.bias is not None:
            theirs.bias.copy_(torch.tensor(np.asarray(layer.bias.val()).copy()))
    theirs = torch.nn.utils.parametrizations.weight_norm(theirs)
    layer = layer.apply_reparameterization(WeightNorm())
    optim, other = SgdConfig().init(), torch.optim.SGD(theirs.parameters(), 0.1)
    for _ in range(3):
        x = RNG.normal(size=shape)
        out = layer.forward(Tensor.from_numpy(x, device))
        wanted = theirs(torch.tensor(x))
        assert np.allclose(out, wanted.detach().numpy())
        grads = GradientsParams.from_grads((out * out).sum().backward(), layer)
        other.zero_grad()
        (wanted * wanted).sum().backward()
        found = {path: grads.get(param.id) for path, param in layer.named_params()}
        pairs = theirs.parametrizations.weight
        for path, tensor in (
            ("weight.weight_norm.g", pairs.original0),
            ("weight", pairs.original1),
        ):
            assert np.allclose(turned(found[path]), tensor.grad.numpy()), path
        layer = optim.step(0.01, layer, grads)
        for group in other.param_groups:
            group["lr"] = 0.01
        other.step()
    assert np.allclose(turned(layer.weight.val()), theirs.weight.detach().numpy())
    plain = layer.valid()
    assert plain.weight.reparameterization() is None
    assert np.allclose(turned(plain.weight.val()), theirs.weight.detach().numpy())


def test_second_derivatives_are_those_of_the_formula_in_pytorch():
    """The formula written out: the fused op of PyTorch has others."""
    device = Autodiff(Autodiff(BACKENDS[0]))
    embedding = nn.EmbeddingConfig(5, 3).init(device)
    embedding = embedding.apply_reparameterization(WeightNorm(dim=0))
    assert embedding.weight.reparameterization().g.shape == (5, 1)
    v, weight = embedding.weight.base(), embedding.weight.val()
    first = v.grad((weight**3).sum().backward())
    second = v.inner().grad((first * first).sum().backward())

    other = torch.tensor(np.asarray(v).copy(), requires_grad=True)
    length = other.norm(dim=1, keepdim=True)
    theirs = other * (length.detach() / length)
    (once,) = torch.autograd.grad((theirs**3).sum(), other, create_graph=True)
    (twice,) = torch.autograd.grad((once * once).sum(), other)
    assert np.allclose(first, once.detach().numpy())
    assert np.allclose(second, twice.numpy())
