"""functional_call equals torch.func.functional_call: outputs, gradients, MAML."""

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.module import Module, functional_call
from burnbook.nn import MhaInput
from burnbook.optim import GradientsParams
from burnbook.tensor import Tensor
from tests.torch.shared import RNG, close, torch

BASE = Numpy(float="f64", compiled=False)
ONCE, TWICE = Autodiff(BASE), Autodiff(Autodiff(BASE))
RATE = 0.1


class Mlp(Module):
    fc1: nn.Linear
    fc2: nn.Linear

    def forward(self, x):
        return self.fc2.forward(self.fc1.forward(x).tanh())


class Normed(Module):
    fc: nn.Linear
    norm: nn.BatchNorm

    def forward(self, x):
        return self.norm.forward(self.fc.forward(x)).tanh()


class Block(Module):
    inner: Mlp
    gain: nn.Linear

    def forward(self, x):
        return self.gain.forward(self.inner.forward(x)) + x


class Deep(Module):
    blocks: list[Block]
    named: dict[str, nn.Linear]

    def forward(self, x):
        for block in self.blocks:
            x = block.forward(x)
        return self.named["out"].forward(x)


class Attending(Module):
    mha: nn.MultiHeadAttention

    def forward(self, x):
        x = x.unsqueeze_dim(0)
        return self.mha.forward(MhaInput.self_attn(x)).context.squeeze_dim(0)


def linear(device, wide, out):
    return nn.LinearConfig(wide, out).init(device)


def mlp(device):
    return Mlp(linear(device, 4, 6), linear(device, 6, 4))


def ours(name, device):
    device.seed(3)
    if name == "mlp":
        return mlp(device)
    if name == "batch norm":
        return Normed(linear(device, 4, 5), nn.BatchNormConfig(5).init(device))
    if name == "attention":
        return Attending(nn.MultiHeadAttentionConfig(4, 2, dropout=0.0).init(device))
    blocks = [Block(mlp(device), linear(device, 4, 4)) for _ in range(2)]
    return Deep(blocks, {"out": linear(device, 4, 2)})


def theirs(name):
    """The same networks with the same names."""
    modules = torch.nn

    class Of(modules.Module):
        def __init__(self, run, **parts):
            super().__init__()
            for key, part in parts.items():
                self.add_module(key, part)
            self.run = run

        def forward(self, x):
            return self.run(self, x)

    def linear(wide, out):
        return modules.Linear(wide, out)

    def mlp():
        return Of(
            lambda self, x: self.fc2(self.fc1(x).tanh()),
            fc1=linear(4, 6),
            fc2=linear(6, 4),
        )

    def attend(self, x):
        query, key, value = (
            part(x).reshape(-1, 2, 2).transpose(0, 1)
            for part in (self.query, self.key, self.value)
        )
        scores = (query @ key.transpose(1, 2) / 2**0.5).softmax(-1)
        return self.output((scores @ value).transpose(0, 1).reshape(-1, 4))

    if name == "mlp":
        made = mlp()
    elif name == "batch norm":
        norm = modules.BatchNorm1d(5, momentum=0.1)
        made = Of(lambda s, x: s.norm(s.fc(x)).tanh(), fc=linear(4, 5), norm=norm)
    elif name == "attention":
        parts = {key: linear(4, 4) for key in ("query", "key", "value", "output")}
        made = Of(lambda s, x: s.mha(x), mha=Of(attend, **parts))
    else:
        blocks = [
            Of(lambda s, x: s.gain(s.inner(x)) + x, inner=mlp(), gain=linear(4, 4))
            for _ in range(2)
        ]
        made = Of(
            lambda s, x: s.named["out"](s.blocks(x)),
            blocks=modules.Sequential(*blocks),
            named=modules.ModuleDict({"out": linear(4, 2)}),
        )
    return made.double()


RENAMED = {"norm.gamma": "norm.weight", "norm.beta": "norm.bias"}


def copied(model, other):
    """PyTorch's parameters with our values, by our names."""
    known = dict(other.named_parameters())
    found = {}
    with torch.no_grad():
        for path, param in model.named_params():
            theirs = RENAMED.get(path, path)
            if theirs in known:
                value = np.asarray(param.val())
                value = value.T if len(value.shape) == 2 else value
                known[theirs].copy_(torch.tensor(value))
                found[path] = (theirs, known[theirs])
    return found


def changed(value):
    return value * 0.5 + value.sin()


NETWORKS = ("mlp", "batch norm", "attention", "nested")


@pytest.mark.parametrize("some", ["all", "every second one"])
@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_flow_through_the_tensors_as_in_pytorch(name, some):
    model, other = ours(name, ONCE), theirs(name)
    pairs = copied(model, other)
    paths = list(pairs)[:: 1 if some == "all" else 2]
    params = dict(model.named_params())
    x = RNG.normal(size=(5, 4))
    given = {path: changed(params[path].val()) for path in paths}
    out = functional_call(model, given, Tensor.from_numpy(x, ONCE))
    wanted = torch.func.functional_call(
        other,
        {pairs[path][0]: changed(pairs[path][1]) for path in paths},
        torch.tensor(x),
    )
    close(out, wanted)
    grads = GradientsParams.from_grads((out * out).sum().backward(), model)
    (wanted * wanted).sum().backward()
    for path, (_, theirs_) in pairs.items():
        slope = theirs_.grad.T if theirs_.ndim == 2 else theirs_.grad
        close(grads.get(params[path].id), slope, least=1e-3)


@pytest.mark.parametrize("name", NETWORKS)
def test_one_step_of_maml_has_the_second_derivatives_of_pytorch(name):
    model, other = ours(name, TWICE), theirs(name)
    pairs = copied(model, other)
    params = dict(model.named_params())
    support, query = RNG.normal(size=(2, 5, 4))
    own = {path: params[path].val() for path in pairs}
    out = functional_call(model, own, Tensor.from_numpy(support, TWICE))
    grads = (out * out).mean().backward()
    adapted = {}
    for path, value in own.items():
        slope = Tensor.from_inner(value.grad(grads), TWICE)
        adapted[path] = value - slope * RATE
    out = functional_call(model, adapted, Tensor.from_numpy(query, TWICE))
    meta = GradientsParams.from_grads((out * out).mean().inner().backward(), model)

    named = dict(pairs.values())
    wanted = torch.func.functional_call(other, named, torch.tensor(support))
    slopes = torch.autograd.grad(
        (wanted * wanted).mean(), list(named.values()), create_graph=True
    )
    moved = {
        path: value - slope * RATE
        for (path, value), slope in zip(named.items(), slopes, strict=True)
    }
    wanted = torch.func.functional_call(other, moved, torch.tensor(query))
    (wanted * wanted).mean().backward()
    for path, (_, theirs_) in pairs.items():
        slope = theirs_.grad.T if theirs_.ndim == 2 else theirs_.grad
        close(meta.get(params[path].id), slope, least=1e-3)


@pytest.mark.parametrize("given", [False, True], ids=["own", "given"])
def test_running_statistics_move_as_in_pytorch(given):
    model, other = ours("batch norm", ONCE), theirs("batch norm")
    copied(model, other)
    x = RNG.normal(size=(6, 4))
    states = {
        path: Tensor.full([5], 0.25, ONCE)
        for path in ("norm.running_mean", "norm.running_var")
    }
    functional_call(model, states if given else {}, Tensor.from_numpy(x, ONCE))
    buffers = {path: torch.full((5,), 0.25).double() for path in states}
    torch.func.functional_call(other, buffers if given else {}, torch.tensor(x))
    close(model.norm.running_mean.val(), other.norm.running_mean)
    unbiased = (model.norm.running_var.val() - 0.9) * (6 / 5) + 0.9
    if given:
        unbiased = model.norm.running_var.val()
    close(unbiased, other.norm.running_var)


def test_statistics_of_eval_mode_are_the_given_ones():
    model, other = ours("batch norm", ONCE).eval(), theirs("batch norm").eval()
    copied(model, other)
    x = RNG.normal(size=(6, 4))
    given = {"norm.running_mean": 0.25, "norm.running_var": 2.0}
    out = functional_call(
        model,
        {path: Tensor.full([5], value, ONCE) for path, value in given.items()},
        Tensor.from_numpy(x, ONCE),
    )
    wanted = torch.func.functional_call(
        other,
        {path: torch.full((5,), value).double() for path, value in given.items()},
        torch.tensor(x),
    )
    close(out, wanted)


def test_tied_weights_are_replaced_together_as_in_pytorch():
    device = ONCE
    shared = nn.LinearConfig(4, 4).with_bias(False).init(device)
    model = nn.Sequential(a=shared, b=shared)
    layer = torch.nn.Linear(4, 4, bias=False).double()
    other = torch.nn.Sequential(layer, layer)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(np.asarray(shared.weight.val())).T)
    x = RNG.normal(size=(2, 4))
    weight = {"a.weight": shared.weight.val() * 2.0}
    out = functional_call(model, weight, Tensor.from_numpy(x, device))
    wanted = torch.func.functional_call(
        other, {"0.weight": layer.weight * 2.0}, torch.tensor(x)
    )
    close(out, wanted)
