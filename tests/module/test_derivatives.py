"""Derivatives of any order of a model that learns: Autodiff around Autodiff."""

from dataclasses import dataclass

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.data import Batcher, DataLoaderBuilder, InMemDataset
from burnbook.module import Module, ModuleMapper, Param
from burnbook.optim import (
    AdamConfig,
    GradientsAccumulator,
    GradientsParams,
    LBFGSConfig,
    SgdConfig,
)
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor import Tensor
from burnbook.train import LearnerBuilder, MetricsRenderer, TrainOutput
from tests.torch.shared import torch

PLAIN = Numpy(float="f64", compiled=False)
COMPILED = Numpy(float="f64")
POINTS = np.linspace(-1, 1, 12)[:, None]


def levels(count, device=PLAIN):
    for _ in range(count):
        device = Autodiff(device)
    return device


@dataclass
class Points:
    x: Tensor


class PointsOf(Batcher):
    def batch(self, items, device=None):
        return Points(Tensor.from_numpy(np.array(items), device or levels(3)))


@dataclass
class Output:
    loss: Tensor


class Solution(Module):
    """A network u(x) that shall solve u'' + u u' = 1."""

    first: nn.Linear
    norm: nn.LayerNorm
    last: nn.Linear

    def forward(self, x):
        return self.last(self.norm(self.first(x).tanh()))

    def residual(self, x):
        x = x.require_grad()
        u = self.forward(x)
        slope = x.grad(u.sum().backward())
        bend = x.grad(slope.sum().backward())
        rest = bend + slope.inner() * u.inner().inner() - 1.0
        return rest.square().mean()

    def train_step(self, batch):
        loss = self.residual(batch.x)
        return TrainOutput(self, loss.backward(), Output(loss))

    def valid_step(self, batch):
        return Output(self.residual(batch.x))


def solution(device):
    return Solution(
        nn.LinearConfig(1, 6).init(device),
        nn.LayerNormConfig(6).init(device),
        nn.LinearConfig(6, 1).init(device),
    )


def points(device):
    return Tensor.from_numpy(POINTS, device)


def arrays(model):
    return {path: np.array(param.val()) for path, param in model.named_params()}


def close(found, wanted):
    for path in wanted:
        np.testing.assert_allclose(found[path], wanted[path], rtol=1e-7, atol=1e-9)


def theirs(model):
    """The same network in PyTorch: its parameters by path, and its loss."""
    first = torch.nn.Linear(1, 6, dtype=torch.float64)
    norm = torch.nn.LayerNorm(6, dtype=torch.float64)
    last = torch.nn.Linear(6, 1, dtype=torch.float64)
    params = {
        "first.weight": first.weight,
        "first.bias": first.bias,
        "norm.gamma": norm.weight,
        "norm.beta": norm.bias,
        "last.weight": last.weight,
        "last.bias": last.bias,
    }
    with torch.no_grad():
        for path, value in arrays(model).items():
            turned = value.T if path.endswith(".weight") else value
            params[path].copy_(torch.tensor(turned))

    def residual():
        x = torch.tensor(POINTS, requires_grad=True)
        h = torch.tanh(first(x))
        # Not torch's own layer_norm: its third derivative is wrong (2.13).
        h = h - h.mean(1, keepdim=True)
        h = h / (h.square().mean(1, keepdim=True) + norm.eps).sqrt()
        u = last(h * norm.weight + norm.bias)
        (slope,) = torch.autograd.grad(u.sum(), x, create_graph=True)
        (bend,) = torch.autograd.grad(slope.sum(), x, create_graph=True)
        return (bend + slope * u - 1.0).square().mean()

    return params, residual


def trained_there(model, steps, lr):
    """What PyTorch makes of the model with Adam."""
    params, residual = theirs(model)
    optim = torch.optim.Adam(params.values(), lr=lr, eps=1e-8)
    for _ in range(steps):
        optim.zero_grad()
        residual().backward()
        optim.step()
    return {
        path: held.detach().numpy().T
        if path.endswith(".weight")
        else held.detach().numpy()
        for path, held in params.items()
    }


WAYS = {
    "init": lambda: solution(levels(3)),
    "compiled": lambda: solution(levels(3, COMPILED)),
    "to_device": lambda: solution(levels(1)).to_device(levels(3)),
    "to_device from below": lambda: solution(PLAIN).to_device(levels(3)).train(),
    "fork": lambda: solution(levels(1)).fork(levels(3)),
    "map": lambda: solution(levels(3)).map(ModuleMapper()),
    "train": lambda: solution(levels(3)).valid().fork(levels(3)).train(),
    "record": lambda: solution(levels(3)).load_record(solution(PLAIN).into_record()),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_loss_of_second_derivatives_trains_as_in_pytorch(way):
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    model = WAYS[way]()
    wanted = trained_there(model, 5, 1e-2)
    optim = AdamConfig(epsilon=1e-8).init()
    device = model.devices()[0]
    for _ in range(5):
        loss = model.residual(points(device))
        grads = GradientsParams.from_grads(loss.backward(), model)
        assert len(grads) == 6
        model = optim.step(1e-2, model, grads)
        assert all(param.is_require_grad for _, param in model.named_params())
    close(arrays(model), wanted)


def test_the_learner_trains_it_as_pytorch_does(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    model = solution(levels(3))
    wanted = trained_there(model, 4, 1e-2)
    loaders = [
        DataLoaderBuilder(PointsOf()).batch_size(12).build(InMemDataset(list(POINTS)))
        for _ in range(2)
    ]
    learner = (
        LearnerBuilder(tmp_path)
        .num_epochs(4)
        .renderer(MetricsRenderer())
        .build(model, AdamConfig(epsilon=1e-8).init(), 1e-2)
    )
    made = learner.fit(*loaders)
    close(arrays(made), wanted)


def test_its_records_are_those_of_any_model(tmp_path):
    model = solution(levels(3))
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    path = model.save_file(tmp_path / "model", recorder)
    close(arrays(solution(PLAIN).load_file(path, recorder)), arrays(model))
    again = solution(levels(3)).load_file(path, recorder)
    loss = again.residual(points(levels(3)))
    assert len(GradientsParams.from_grads(loss.backward(), again)) == 6


def test_every_level_reaches_the_parameters():
    device = levels(3)
    model = solution(device)
    outer = model.forward(points(device)).sum()
    assert len(GradientsParams.from_grads(outer.backward(), model)) == 6
    x = points(device).require_grad()
    slope = x.grad(model.forward(x).sum().backward())
    grads = slope.square().sum().backward()
    assert x in grads
    found = GradientsParams.from_grads(grads, model)
    rest = {path for path, p in model.named_params() if found.get(p.id) is None}
    assert rest == {"norm.beta", "last.bias"}  # the slope does not depend on these
    grads = model.residual(points(device)).backward()
    assert model.first.weight.val() in grads
    first = model.first.weight.val()
    assert first.grad(grads).backend is PLAIN
    first.grad_replace(grads, first.grad(grads) * 2.0)
    doubled = np.array(first.grad(grads))
    found = np.array(first.grad_remove(grads))
    assert np.array_equal(found, doubled)
    assert first.grad(grads) is None


def test_an_optimizer_with_the_gradients_of_the_outer_level_makes_leaves():
    device = levels(2)
    model = nn.LinearConfig(1, 1).init(device)
    for _ in range(2):
        loss = model.forward(points(device)).square().mean()
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = SgdConfig().init().step(0.1, model, grads)
        raw = model.weight.val().value
        assert raw.node.op is None
        assert raw.value.node.op is None
        assert not hasattr(raw.value.value, "node")


def test_sums_and_lbfgs_take_such_gradients():
    device = levels(3)
    model = solution(device)
    sums = GradientsAccumulator()
    for _ in range(2):
        grads = model.residual(points(device)).backward()
        sums.accumulate(model, GradientsParams.from_grads(grads, model))
    assert len(sums.grads()) == 6

    def closure(model):
        loss = model.residual(points(device))
        return loss.into_scalar(), GradientsParams.from_grads(loss.backward(), model)

    before = model.residual(points(device)).into_scalar()
    made, _ = LBFGSConfig(max_iter=5).init().step(0.1, model, closure)
    assert made.residual(points(device)).into_scalar() < before
    assert all(param.is_require_grad for _, param in made.named_params())


def test_valid_is_one_level_below_and_not_in_training():
    device = levels(3)
    model = solution(device)
    asked = model.valid()
    assert asked.devices() == [levels(2)]
    assert asked.in_eval
    assert not any(param.is_require_grad for _, param in asked.named_params())
    found = asked.residual(points(levels(2))).into_scalar()
    assert found == pytest.approx(
        model.residual(points(device)).into_scalar(), rel=1e-12
    )
    dropout = nn.DropoutConfig(0.5).init()

    class Dropping(Module):
        weight: Param
        dropout: nn.Dropout

    model = Dropping(Param.from_tensor(Tensor.ones([2], device)), dropout)
    x = Tensor.ones([20], levels(2))
    assert np.array_equal(np.asarray(model.valid().dropout(x)), np.ones(20))
    assert not model.valid().train().in_eval


def test_frozen_parameters_stay_so_at_every_level():
    device = levels(3)
    model = solution(device)
    model = model.replace(first=model.first.no_grad())
    grads = model.residual(points(device)).backward()
    found = GradientsParams.from_grads(grads, model)
    reached = [path for path, p in model.named_params() if found.get(p.id) is not None]
    assert reached == ["norm.gamma", "norm.beta", "last.weight", "last.bias"]
