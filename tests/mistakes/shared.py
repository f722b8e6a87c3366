"""What the programs with mistakes have in common."""

# ruff: noqa: F401 - the programs use these names

import numpy as np

import burnbook
from burnbook import nn
from burnbook.data import DataLoaderBuilder, InMemDataset
from burnbook.optim import AdamConfig, GradientsParams, SgdConfig
from burnbook.prelude import (
    Autodiff,
    Bool,
    Config,
    Distribution,
    Float,
    Int,
    Module,
    Numpy,
    Param,
    Tensor,
    TensorData,
)
from burnbook.record import CompactRecorder, PrettyJsonFileRecorder
from burnbook.train import (
    AccuracyMetric,
    ClassificationOutput,
    LearnerBuilder,
    LossMetric,
    RegressionOutput,
    TrainOutput,
)

burnbook.seed(0)
device, outer = Numpy(), Autodiff(Numpy())
x = Tensor.from_floats([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device)
counts = Tensor.from_ints([1, 2, 3], device)
images = Tensor.ones([4, 1, 28, 28], device)
rows = Tensor.random([8, 8], Distribution.Default, outer)
labels = Tensor.from_ints([0, 1, 0, 1, 0, 1, 0, 1], outer)


class NetConfig(Config):
    d_hidden: int = 16
    dropout: float = 0.5

    def init(self, device):
        return Net(
            fc1=nn.LinearConfig(8, self.d_hidden).init(device),
            fc2=nn.LinearConfig(self.d_hidden, 2).init(device),
            dropout=nn.DropoutConfig(self.dropout).init(),
        )


class Net(Module):
    fc1: nn.Linear
    fc2: nn.Linear
    dropout: nn.Dropout

    def forward(self, x):
        return self.fc2.forward(self.dropout.forward(self.fc1.forward(x).relu()))

    def step(self, batch):
        rows, labels = batch
        logits = self.forward(rows)
        loss = nn.CrossEntropyLossConfig().init(rows.device()).forward(logits, labels)
        return ClassificationOutput(loss, logits, labels)

    def train_step(self, batch):
        item = self.step(batch)
        return TrainOutput(self, item.loss.backward(), item)

    def valid_step(self, batch):
        return self.step(batch)


class Pairs:
    """A batcher of (row, label)."""

    def __init__(self, device):
        self.device = device

    def batch(self, items):
        rows = Tensor.from_floats([row for row, _ in items], self.device)
        return rows, Tensor.from_ints([label for _, label in items], self.device)


dataset = InMemDataset([([float(i)] * 8, i % 2) for i in range(8)])
model = NetConfig().init(outer)
optim = AdamConfig().init()
cross_entropy = nn.CrossEntropyLossConfig().init(outer)


def loaders(train=outer, valid=device):
    return [
        DataLoaderBuilder(Pairs(place)).batch_size(4).build(dataset)
        for place in (train, valid)
    ]


def builder():
    return LearnerBuilder("runs").num_epochs(1).renderer(None)


def gradients(model=model):
    loss = cross_entropy.forward(model.forward(rows), labels)
    return GradientsParams.from_grads(loss.backward(), model)
