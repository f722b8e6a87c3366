"""Networks for writers of programs: a guide that knows digits, and others."""

import functools
from math import sqrt

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Numpy
from burnbook.core.errors import DataError
from burnbook.core.rng import Stream, use_stream
from burnbook.data.dataset.vision.digits import DigitsDataset
from burnbook.examples.guide.model import ModelConfig
from burnbook.module import Module
from burnbook.nn.loss import CrossEntropyLossConfig
from burnbook.nn.transformer import TransformerEncoderConfig, TransformerEncoderInput
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.tensor import Tensor

DEVICE = Numpy()


def numbers(*shape, seed=0):
    values = np.random.default_rng(seed).standard_normal(shape)
    return Tensor.from_numpy(values.astype(np.float32), DEVICE)


def tokens(n, length=7):
    values = np.random.default_rng(n).integers(0, 20, (n, length))
    return Tensor.from_numpy(values, DEVICE)


class Encoder(Module):
    """A small transformer encoder over embedded tokens."""

    embed: nn.Embedding
    encoder: nn.transformer.TransformerEncoder

    def forward(self, tokens):
        x = self.embed.forward(tokens)
        return self.encoder.forward(TransformerEncoderInput.new(x))


class Reader(Module):
    """An LSTM with a linear layer behind it."""

    lstm: nn.Lstm
    head: nn.Linear

    def forward(self, x):
        states, _ = self.lstm.forward(x)
        return self.head.forward(states)


class ByBatch(Module):
    """A layer, and numbers of many kinds that follow the batch size n."""

    layer: nn.Linear

    def forward(self, x):
        n, y = x.dims()[0], self.layer.forward(x)
        y = (y - y.mean_dim(0)) * (n / 2) / sqrt(n + 1) + y * (2.5 / n)
        y = 3.0 / n + y - y.sum_dim(0) / (n * n) + y.mask_fill(y < 0.1, n)
        return (
            (y - (2 * n + 1)) * (1.0 / sqrt(2 * n - 1))
            + (n - 0.25) / 4
            - y.clamp(-1 / n**2, n)
        )


def by_batch():
    with use_stream(Stream(7)):
        return ByBatch(nn.LinearConfig(4, 4).init(DEVICE))


def encoder():
    config = TransformerEncoderConfig(32, 64, 4, 2, norm_first=True, dropout=0.1)
    with use_stream(Stream(5)):
        embed = nn.EmbeddingConfig(20, 32).init(DEVICE)
        return Encoder(embed, config.init(DEVICE))


def reader():
    with use_stream(Stream(6)):
        lstm = nn.LstmConfig(6, 8, True).init(DEVICE)
        return Reader(lstm, nn.LinearConfig(8, 3).init(DEVICE))


def guide(hidden=32):
    with use_stream(Stream(2)):
        return ModelConfig(10, hidden).init(DEVICE).valid()


MODELS = {
    "guide": (guide, lambda n: numbers(n, 28, 28)),
    "encoder": (encoder, tokens),
    "lstm": (reader, lambda n: numbers(n, 5, 6)),
    "by_batch": (by_batch, lambda n: numbers(n, 4)),
}


@functools.cache
def digits(part, count):
    """Images of digits and what they show."""
    try:
        held = getattr(DigitsDataset, part)()
    except DataError as error:
        pytest.skip(str(error).splitlines()[0])
    items = [held.get(i) for i in range(count)]
    images = np.stack([np.asarray(item.image, np.float32) for item in items]) / 255
    return images, np.array([item.label for item in items])


@functools.cache
def taught():
    """A small guide after some steps with digits."""
    device = Autodiff(Numpy())
    images, labels = digits("train", 512)
    with use_stream(Stream(4)):
        model = ModelConfig(10, 16).init(device)
        optim = AdamConfig().init()
        loss = CrossEntropyLossConfig().init(device)
        for step in range(64):
            rows = np.arange(step * 64, step * 64 + 64) % 512
            x = Tensor.from_numpy(images[rows], device)
            targets = Tensor.from_numpy(labels[rows], device)
            found = loss.forward(model.forward(x), targets)
            grads = GradientsParams.from_grads(found.backward(), model)
            model = optim.step(3e-3, model, grads)
    return model.valid()
