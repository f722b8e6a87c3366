"""A network and data so small that a training takes milliseconds.

As a program it trains slowly, for tests that kill it: `tiny_training.py DIR EPOCHS`.
"""

import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.dtypes import Float, Int
from burnbook.data import Batcher, DataLoaderBuilder, InMemDataset
from burnbook.module import Module
from burnbook.optim import AdamConfig
from burnbook.record import FullPrecisionSettings, NamedMpkFileRecorder
from burnbook.tensor import Tensor
from burnbook.train import (
    AccuracyMetric,
    Aggregate,
    ClassificationOutput,
    Direction,
    LearnerBuilder,
    LossMetric,
    MetricsRenderer,
    Split,
    TrainOutput,
)

PLAIN = Numpy(compiled=False)  # kernels would only be imported, not faster
DEVICE = Autodiff(PLAIN)
ITEMS, BATCH = 40, 16  # three batches: 16, 16, 8
LOWEST_LOSS = (LossMetric, Aggregate.Mean, Direction.Lowest, Split.Valid)


@dataclass
class Batch:
    x: Tensor
    targets: Tensor


class Batches(Batcher):
    def batch(self, items, device=None):
        device = device or DEVICE
        x = np.array([item[0] for item in items], dtype=np.float32)
        targets = [item[1] for item in items]
        return Batch(
            Tensor.from_data(x, device, Float), Tensor.from_data(targets, device, Int)
        )


class Tiny(Module):
    first: nn.Linear
    dropout: nn.Dropout
    last: nn.Linear

    def forward(self, x):
        return self.last.forward(self.dropout.forward(self.first.forward(x).relu()))

    def valid_step(self, batch):
        output = self.forward(batch.x)
        loss = nn.CrossEntropyLossConfig().init(output.device())
        return ClassificationOutput(
            loss.forward(output, batch.targets), output, batch.targets
        )

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)


def tiny(device=DEVICE, seed=1, kind=Tiny):
    device.seed(seed)
    return kind(
        nn.LinearConfig(4, 8).init(device),
        nn.DropoutConfig(0.2).init(),
        nn.LinearConfig(8, 3).init(device),
    )


def items(count=ITEMS, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, count)
    return [
        (rng.uniform(-0.5, 0.5, 4) + np.eye(3, 4)[label], int(label))
        for label in labels
    ]


def loader(seed=0, count=ITEMS, workers=0):
    dataset = InMemDataset(items(count, seed))
    builder = DataLoaderBuilder(Batches()).batch_size(BATCH).num_workers(workers)
    return builder.shuffle(5).build(dataset)


def recorder():
    return NamedMpkFileRecorder(FullPrecisionSettings)


def builder(folder, epochs=2):
    return (
        LearnerBuilder(folder)
        .metric_train_numeric(AccuracyMetric())
        .metric_valid_numeric(AccuracyMetric())
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .renderer(MetricsRenderer())
        .num_epochs(epochs)
    )


def checkpointed(folder, epochs=2):
    return builder(folder, epochs).with_file_checkpointer(recorder())


def learner(folder, epochs=2, model=None, lr=0.01):
    return build(checkpointed(folder, epochs), model, lr)


def log_lines(folder, split, name, epoch=1):
    """The lines of a metric's log."""
    return (folder / split / f"epoch-{epoch}" / f"{name}.log").read_text().splitlines()


def counts_of(lines):
    """What stands behind the comma: what each value counts for."""
    return [line.split(",")[1] for line in lines]


def file_names(folder):
    return sorted(path.name for path in folder.iterdir())


def weights(model):
    return {path: np.asarray(param.val()) for path, param in model.named_params()}


def same_weights(one, other):
    one, other = weights(one), weights(other)
    return one.keys() == other.keys() and all(
        np.array_equal(one[path], other[path]) for path in one
    )


class Probe(MetricsRenderer):
    """Calls a function after every training batch, and notes what it is told."""

    def __init__(self, act=None):
        self.act = act
        self.calls = []
        self.batches = 0

    def start(self, run):
        self.run = run
        self.calls.append("start")

    def update_train(self, state):
        self.calls.append(f"update {state.entry.name}")

    def render_train(self, progress):
        self.batches += 1
        self.calls.append("render")
        if self.act:
            self.act(self)

    def end_epoch(self, epoch, split, means):
        self.calls.append(f"end {epoch} {split} {sorted(means)}")

    def finish(self, result):
        self.calls.append("finish")

    def close(self):
        self.calls.append("close")


def build(made, model=None, lr=0.01):
    return made.build(model or tiny(), AdamConfig().init(), lr)


def fitted(made, model=None, lr=0.01):
    """A learner that has trained."""
    trained = build(made, model, lr)
    trained.fit(loader(), loader(1))
    return trained


def stop_at(batch, how):
    def act(probe):
        if probe.batches == batch:
            how(probe.run.control)

    return Probe(act)


class Slow(MetricsRenderer):
    """Shows nothing, but takes its time, so that a kill meets every moment."""

    def render_train(self, progress):
        time.sleep(0.001)


def main(folder, epochs):
    model = build(checkpointed(folder, epochs).checkpoint().renderer(Slow()))
    print("ready", flush=True)
    model.fit(loader(), loader(1))
    print("done", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
