"""The guide's network: two convolutions, two linear layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from burnbook import nn
from burnbook.backend import Backend
from burnbook.config import Config
from burnbook.module import Module
from burnbook.tensor import Tensor
from burnbook.train import ClassificationOutput, TrainOutput

if TYPE_CHECKING:
    from burnbook.examples.guide.data import MnistBatch


class Model(Module):
    """Read digits: an image in, a score for every class out."""

    conv1: nn.Conv2d
    conv2: nn.Conv2d
    pool: nn.AdaptiveAvgPool2d
    dropout: nn.Dropout
    linear1: nn.Linear
    linear2: nn.Linear
    activation: nn.Relu

    def forward(self, images: Tensor) -> Tensor:
        """Score every class for every image.

        Shapes: images [n, h, w] -> [n, classes]
        """
        n, h, w = images.dims()
        x = images.reshape([n, 1, h, w])  # one channel
        x = self.conv1.forward(x)  # [n, 8, h - 2, w - 2]
        x = self.dropout.forward(x)
        x = self.conv2.forward(x)  # [n, 16, h - 4, w - 4]
        x = self.dropout.forward(x)
        x = self.activation.forward(x)
        x = self.pool.forward(x)  # [n, 16, 8, 8]
        x = x.reshape([n, 16 * 8 * 8])
        x = self.linear1.forward(x)
        x = self.dropout.forward(x)
        x = self.activation.forward(x)
        return self.linear2.forward(x)  # [n, classes]

    def forward_classification(
        self, images: Tensor, targets: Tensor
    ) -> ClassificationOutput:
        """Score the images and compare with the targets.

        Shapes: images [n, h, w]; targets [n]
        """
        output = self.forward(images)
        loss = (
            nn.CrossEntropyLossConfig().init(output.device()).forward(output, targets)
        )
        return ClassificationOutput(loss, output, targets)

    def train_step(self, batch: MnistBatch) -> TrainOutput:
        """What the learner does with a training batch."""
        item = self.forward_classification(batch.images, batch.targets)
        return TrainOutput(self, item.loss.backward(), item)

    def valid_step(self, batch: MnistBatch) -> ClassificationOutput:
        """What the learner does with a validation batch."""
        return self.forward_classification(batch.images, batch.targets)


class ModelConfig(Config):
    """The sizes of the network."""

    num_classes: int
    hidden_size: int
    dropout: float = 0.5

    def init(self, device: Backend) -> Model:
        """Make the network; its weights are drawn when they are first used."""
        return Model(
            conv1=nn.Conv2dConfig([1, 8], [3, 3]).init(device),
            conv2=nn.Conv2dConfig([8, 16], [3, 3]).init(device),
            pool=nn.AdaptiveAvgPool2dConfig([8, 8]).init(),
            dropout=nn.DropoutConfig(self.dropout).init(),
            linear1=nn.LinearConfig(16 * 8 * 8, self.hidden_size).init(device),
            linear2=nn.LinearConfig(self.hidden_size, self.num_classes).init(device),
            activation=nn.Relu(),
        )
