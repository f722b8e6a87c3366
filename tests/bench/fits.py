"""A whole training by the Learner: loading, metrics, validation and checkpoints.

`their_fits` is the same as PyTorch's tutorials write it. Each function gives a callable
that trains once, from a fresh model.
"""

import tempfile
from dataclasses import dataclass

import numpy as np

from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float, Int
from burnbook.data import Batcher, DataLoaderBuilder, InMemDataset
from burnbook.examples.guide.model import Model, ModelConfig
from burnbook.module import Module
from burnbook.nn import (
    CrossEntropyLossConfig,
    Linear,
    LinearConfig,
    Lstm,
    LstmConfig,
)
from burnbook.nn.transformer import (
    TransformerEncoder,
    TransformerEncoderConfig,
    TransformerEncoderInput,
)
from burnbook.optim import AdamConfig
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor import Tensor
from burnbook.train import (
    AccuracyMetric,
    ClassificationOutput,
    LearnerBuilder,
    LossMetric,
    TrainOutput,
)
from tests.bench import ours as works  # burnbook before NumPy
from tests.bench.fit_data import RATE, WORKS


def ours(name, mode):
    """A training by the Learner; mode: whether its steps are captured."""
    make, batch, epochs = WORKS[name]
    x, y, valid_x, valid_y = make()
    device = Autodiff(Numpy())

    train = InMemDataset(list(zip(x, y, strict=True)))
    valid = InMemDataset(list(zip(valid_x, valid_y, strict=True)))
    loader = DataLoaderBuilder(Batches()).batch_size(batch)

    def fit():
        learner = (
            LearnerBuilder(tempfile.mkdtemp())
            .metrics([AccuracyMetric(), LossMetric()])
            .with_file_checkpointer(NamedMpkFileRecorder(FullPrecisionSettings))
            .renderer(None)
            .num_epochs(epochs)
            .captured(mode)
            .build(NETWORKS[name](device), AdamConfig().init(), RATE)
        )
        learner.fit(loader.shuffle(1).build(train), loader.build(valid))

    return fit


class Batches(Batcher):
    def batch(self, items, device=None):
        inputs = np.stack([item[0] for item in items])
        targets = np.array([item[1] for item in items])
        made = Tensor.from_data(inputs, device, Float)
        return Batch(made, Tensor.from_data(targets, device, Int))


@dataclass
class Batch:
    """Inputs and classes."""

    x: Tensor
    targets: Tensor


class Steps(Module):
    """The steps that a learner takes."""

    def valid_step(self, batch):
        output = self.forward(batch.x)
        loss = CrossEntropyLossConfig().init(output.device())
        loss = loss.forward(output, batch.targets)
        return ClassificationOutput(loss, output, batch.targets)

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)


class Guide(Steps):
    body: Model

    def forward(self, x):
        return self.body.forward(x)


class Rows(Steps):
    body: works.Mlp

    def forward(self, x):
        return self.body.forward(x.flatten(1, 2))


class Encoder(Steps):
    body: TransformerEncoder
    head: Linear

    def forward(self, x):
        out = self.body.forward(TransformerEncoderInput.new(x))
        return self.head.forward(out.mean_dim(1).flatten(1, 2))


class Reader(Steps):
    body: Lstm
    head: Linear

    def forward(self, x):
        out, _ = self.body.forward(x)
        n, t, d = out.dims()
        return self.head.forward(out.slice([(0, n), (t - 1, t)]).reshape([n, d]))


class Images(Steps):
    body: works.ResNet

    def forward(self, x):
        return self.body.forward(x)


def encoder(device):
    config = TransformerEncoderConfig(256, 1024, 8, 4, norm_first=True, dropout=0.0)
    return Encoder(config.init(device), LinearConfig(256, 10).init(device))


def reader(device):
    body = LstmConfig(64, 128, True).init(device)
    return Reader(body, LinearConfig(128, 10).init(device))


NETWORKS = {
    "w1": lambda device: Guide(ModelConfig(10, 512).init(device)),
    "w2": lambda device: Rows(works.mlp(device)),
    "w3": encoder,
    "w4": reader,
    "w6": lambda device: Images(works.resnet(device)),
}
