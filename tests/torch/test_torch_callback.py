"""Averages of weights beside those of torch.optim.swa_utils."""

from pathlib import Path

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.module import Module
from burnbook.tensor import Tensor
from burnbook.train import AveragedWeights, Ema, Interrupter, TrainingState, TrainOutput
from burnbook.train.callback.values import with_values
from tests.torch.shared import torch

PLAIN = Numpy(float="f64")
DEVICE = Autodiff(PLAIN)


class Net(Module):
    linear: nn.Linear
    norm: nn.BatchNorm

    def train_step(self, batch):
        out = self.norm.forward(self.linear.forward(batch))
        return TrainOutput(self, (out * out).mean().backward(), None)


def net():
    DEVICE.seed(1)
    return Net(nn.LinearConfig(3, 4).init(DEVICE), nn.BatchNormConfig(4).init(DEVICE))


def theirs():
    layers = torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)
    return torch.nn.Sequential(*layers).double()


def state(model, epoch=1, batches=lambda: iter(()), interrupted=None):
    return TrainingState(
        *(model, epoch, 9, 1, 1, 0.1, DEVICE, Path("x"), Interrupter()),
        batches=batches,
        interrupted=interrupted,
    )


def drawn(count, seed=0):
    """The same weights for both, several times: ours by id, theirs by name."""
    rng, ours, other = np.random.default_rng(seed), net(), theirs()
    params = (ours.linear.weight, ours.linear.bias, ours.norm.gamma, ours.norm.beta)
    for _ in range(count):
        arrays = [rng.normal(size=tuple(param.shape)) for param in params]
        rows = zip(params, arrays, strict=True)
        values = {param.id: Tensor.from_numpy(row, PLAIN) for param, row in rows}
        arrays[0] = arrays[0].T
        with torch.no_grad():
            for param, row in zip(other.parameters(), arrays, strict=True):
                param.copy_(torch.from_numpy(row))
        yield with_values(ours, values), other


def same(ours, other):
    linear, norm = other
    pairs = [
        (ours.linear.weight.val().transpose(), linear.weight),
        (ours.linear.bias.val(), linear.bias),
        (ours.norm.gamma.val(), norm.weight),
        (ours.norm.beta.val(), norm.bias),
    ]
    for one, two in pairs:
        np.testing.assert_allclose(np.asarray(one), two.detach().numpy(), 1e-12, 1e-12)


@pytest.mark.parametrize("decay", [0.0, 0.5, 0.99])
def test_the_moving_average_is_torchs(decay):
    swa = torch.optim.swa_utils
    ema, averaged = Ema(decay), None
    for ours, other in drawn(6):
        if averaged is None:
            average = swa.get_ema_avg_fn(decay)
            averaged = swa.AveragedModel(other, avg_fn=average)
        averaged.update_parameters(other)
        ema.on_step(state(ours))
    same(ema.model, averaged.module)
    same(ema.on_end(state(ours)), averaged.module)


def test_the_mean_of_epochs_and_its_statistics_are_torchs():
    swa, rng = torch.optim.swa_utils, np.random.default_rng(3)
    mean, averaged = AveragedWeights(from_epoch=2), None
    for epoch, (ours, other) in enumerate(drawn(5), 1):
        mean.on_epoch(state(ours, epoch))
        if epoch >= 2:
            averaged = averaged or swa.AveragedModel(other)
            averaged.update_parameters(other)
    batches = [rng.normal(size=(8, 3)) for _ in range(3)]

    def given():
        return (Tensor.from_numpy(batch, DEVICE) for batch in batches)

    model = mean.on_end(state(ours, 5, given))
    swa.update_bn([torch.from_numpy(batch) for batch in batches], averaged)
    same(model, averaged.module)
    norm = averaged.module[1]
    found = np.asarray(model.norm.running_mean.val())
    np.testing.assert_allclose(found, norm.running_mean.numpy(), 1e-12)
    found = np.asarray(model.norm.running_var.val())  # the biased variance, as in Burn
    np.testing.assert_allclose(found * 8 / 7, norm.running_var.numpy(), 1e-12)
