"""Groups with rates and weight decay of their own, beside PyTorch."""

from dataclasses import dataclass

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import ConfigError
from burnbook.data import Batcher, DataLoaderBuilder, InMemDataset
from burnbook.module import Module
from burnbook.optim import (
    AdamWConfig,
    GradientsParams,
    ModuleLearningRate,
    ParamGroup,
)
from burnbook.record import FullPrecisionSettings, NamedMpkBytesRecorder
from burnbook.tensor import Tensor
from burnbook.train import LearnerBuilder, MetricsRenderer, TrainOutput
from tests.torch.shared import torch

AD = Autodiff(Numpy(float="f64", compiled=False))
BODY = ParamGroup.from_predicate("body")
BIASES = ParamGroup.from_predicate("bias")
RATES = ModuleLearningRate(1e-2).with_group(BODY, 1e-3)
X = np.random.default_rng(0).normal(size=(6, 3))
Y = np.random.default_rng(1).normal(size=(6, 2))


@dataclass
class Output:
    loss: Tensor


class Net(Module):
    body: nn.Linear
    head: nn.Linear

    def loss(self, x):
        out = self.head(self.body(x).tanh())
        return (out - Tensor.from_numpy(Y, out.device())).square().mean()

    def train_step(self, batch):
        loss = self.loss(batch)
        return TrainOutput(self, loss.backward(), Output(loss))

    def valid_step(self, batch):
        return Output(self.loss(batch))


class Rows(Batcher):
    def batch(self, items, device=None):
        return Tensor.from_numpy(np.array(items), device or AD)


def net():
    return Net(nn.LinearConfig(3, 4).init(AD), nn.LinearConfig(4, 2).init(AD))


def optimizer():
    """AdamW with decay for weights and none for biases, as transformers are tuned."""
    config = AdamWConfig(epsilon=1e-8, weight_decay=0.1)
    return config.init().with_group(BIASES, config.with_weight_decay(0.0))


def stepped(model, optim, rates, steps):
    for _ in range(steps):
        loss = model.loss(Tensor.from_numpy(X, AD))
        grads = GradientsParams.from_grads(loss.backward(), model)
        model = optim.step(rates, model, grads)
    return model


def arrays(model):
    return {path: np.array(param.val()) for path, param in model.named_params()}


def theirs(model, steps):
    """What PyTorch's parameter groups make of the model."""
    params = {
        path: torch.tensor(value, requires_grad=True)
        for path, value in arrays(model).items()
    }
    groups = [
        {
            "params": [param],
            "lr": 1e-3 if path.startswith("body") else 1e-2,
            "weight_decay": 0.0 if path.endswith("bias") else 0.1,
        }
        for path, param in params.items()
    ]
    optim = torch.optim.AdamW(groups, eps=1e-8)
    for _ in range(steps):
        x = torch.tanh(torch.tensor(X) @ params["body.weight"] + params["body.bias"])
        out = x @ params["head.weight"] + params["head.bias"]
        optim.zero_grad()
        (out - torch.tensor(Y)).square().mean().backward()
        optim.step()
    return {path: param.detach().numpy() for path, param in params.items()}


def close(found, wanted):
    for path, value in wanted.items():
        np.testing.assert_allclose(found[path], value, rtol=1e-6, err_msg=path)


def test_a_loop_of_ones_own_is_pytorchs():
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    model = net()
    close(arrays(stepped(model, optimizer(), RATES, 5)), theirs(model, 5))


def test_so_is_the_learner(tmp_path):
    pytest.importorskip("torch", reason="PyTorch is the oracle here")
    model = net()
    loaders = [
        DataLoaderBuilder(Rows()).batch_size(6).build(InMemDataset(list(X)))
        for _ in range(2)
    ]
    builder = LearnerBuilder(tmp_path).num_epochs(5).renderer(MetricsRenderer())
    made = builder.build(model, optimizer(), RATES).fit(*loaders)
    close(arrays(made), theirs(model, 5))


def test_a_record_goes_on_where_the_groups_were():
    model = net()
    optim = optimizer()
    wanted = stepped(stepped(model, optim, RATES, 3), optim, RATES, 3)
    first = optimizer()
    half = stepped(model, first, RATES, 3)
    recorder = NamedMpkBytesRecorder(FullPrecisionSettings)
    data = recorder.record(first.into_record())
    again = optimizer().load_record(recorder.load(data, AD.inner))
    close(arrays(stepped(half, again, RATES, 3)), arrays(wanted))


@pytest.mark.parametrize("where", ["optimizer", "rates"])
def test_a_group_of_nothing_names_near_paths(where):
    nothing = ParamGroup.from_predicate("bodi")
    optim, rates = optimizer(), RATES
    if where == "optimizer":
        optim = optim.with_group(nothing, AdamWConfig())
    else:
        rates = rates.with_group(nothing, 1e-4)
    with pytest.raises(ConfigError) as error:
        stepped(net(), optim, rates, 1)
    assert "'bodi'" in str(error.value)
    assert "near   body" in str(error.value)
