# %% [markdown] tags=["goals"]
# # A residual network
#
# Deep networks learn better when each block only has to learn what to *add* to its input.
# This page builds such a network, trains it on mixed images (mixup), and keeps a moving
# average of its weights (EMA), which is what it is tested with.
#
# About 10 minutes. You should have read [4.4](../04_04_module.ipynb) and
# [4.6](../04_06_learner.ipynb).

# %% tags=["setup"]
import shutil

import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.lr_scheduler import OneCycleLrSchedulerConfig
from burnbook.module import Module
from burnbook.optim import AdamWConfig
from burnbook.tensor import activation
from burnbook.train import (
    AccuracyMetric,
    ClassificationOutput,
    Ema,
    LearnerBuilder,
    LossMetric,
    TrainOutput,
)

burnbook.seed(0)
device = Autodiff(Numpy())
shutil.rmtree("artifacts/residual", ignore_errors=True)

# %% [markdown]
# ## A block
#
# Two convolutions, each followed by BatchNorm, and a way around both. Where the block
# halves the image and adds channels, the way around is a 1 × 1 convolution that does so.


# %% tags=["run-me"]
def conv(channels, size, stride=1):
    config = nn.Conv2dConfig(channels, [size, size]).with_stride(
        [stride, stride]
    )
    padding = nn.PaddingConfig2d.Explicit(size // 2, size // 2)
    return config.with_padding(padding).with_bias(False).init(device)


class Block(Module):
    first: nn.Conv2d
    first_norm: nn.BatchNorm
    second: nn.Conv2d
    second_norm: nn.BatchNorm
    around: nn.Conv2d | None

    def forward(self, x):
        kept = x if self.around is None else self.around.forward(x)
        x = activation.relu(self.first_norm.forward(self.first.forward(x)))
        x = self.second_norm.forward(self.second.forward(x))
        return activation.relu(x + kept)

    @classmethod
    def new(cls, before, after):
        stride = 1 if before == after else 2
        return cls(
            first=conv([before, after], 3, stride),
            first_norm=nn.BatchNormConfig(after).init(device),
            second=conv([after, after], 3),
            second_norm=nn.BatchNormConfig(after).init(device),
            around=None if stride == 1 else conv([before, after], 1, stride),
        )


# %% [markdown]
# ## The network, and mixup
#
# Each training image is mixed with another one, and so are the labels: 70 % of a 3 and
# 30 % of an 8 should be answered with just these shares. The loss takes such
# probabilities as targets. In validation nothing is mixed.


# %% tags=["run-me"]
draw = np.random.default_rng(0)


def mixed(images, answers):
    share = draw.beta(0.4, 0.4)
    order = draw.permutation(images.dims()[0])
    images = images * share + images[order] * (1 - share)
    return images, answers * share + answers[order] * (1 - share)


# %% tags=["run-me"]
class ResidualNetwork(Module):
    stem: nn.Conv2d
    blocks: list[Block]
    head: nn.Linear

    def forward(self, images):
        x = activation.relu(self.stem.forward(images.unsqueeze_dim(1)))
        for block in self.blocks:
            x = block.forward(x)
        return self.head.forward(x.mean_dims([2, 3]).flatten(1, 3))

    def train_step(self, batch):
        images, wanted = mixed(batch.images, batch.targets.one_hot(10).float())
        logits = self.forward(images)
        loss = nn.CrossEntropyLossConfig().init(device).forward(logits, wanted)
        output = ClassificationOutput(loss, logits, batch.targets)
        return TrainOutput(self, loss.backward(), output)

    def valid_step(self, batch):
        logits = self.forward(batch.images)
        loss = nn.CrossEntropyLossConfig().init(logits.device())
        loss = loss.forward(logits, batch.targets)
        return ClassificationOutput(loss, logits, batch.targets)


# %% tags=["run-me"]
model = ResidualNetwork(
    stem=conv([1, 8], 3),
    blocks=[Block.new(8, 8), Block.new(8, 16), Block.new(16, 32)],
    head=nn.LinearConfig(32, 10).init(device),
)
print(
    model.num_params(),
    "numbers,",
    model.num_trainable_params(),
    "of them trained",
)

# %% [markdown]
# ## Train
#
# One cycle: the learning rate goes up first and then far down. After each step `Ema`
# moves its average a little toward the new weights; validation and the result use the
# average.

# %% tags=["run-me"]
loaders = DataLoaderBuilder(MnistBatcher(device)).batch_size(64)
train_loader = loaders.shuffle(42).build(DigitsDataset.train())
test_loader = loaders.build(DigitsDataset.test())
epochs = 6
schedule = OneCycleLrSchedulerConfig(1e-2, epochs * len(train_loader))
learner = (
    LearnerBuilder("artifacts/residual")
    .renderer(None)
    .metrics([AccuracyMetric(), LossMetric()])
    .callback(Ema(0.95))
    .num_epochs(epochs)
    .build(model, AdamWConfig().init(), schedule.init())
)
trained = learner.fit(train_loader, test_loader)
accuracy = learner.result.history.last("valid")["Accuracy"]
print("more than 95 % right", "✔" if accuracy > 95 else "✘")

# %% [markdown]
# How much did the average help? The learner still holds the weights of the last step:


# %% tags=["run-me", "nbval-ignore-output"]
def share_right(network):
    network, right = network.valid(), []
    for batch in test_loader:
        found = network.forward(batch.images.inner()).argmax(1).flatten(0, 1)
        right += (found == batch.targets.inner()).into_data().to_list()
    return 100 * np.mean(right)


print(f"averaged weights {share_right(trained):.1f} %")
print(f"last weights     {share_right(learner.model):.1f} %")

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A block adds to its input; `nn.Conv2d | None` is a way around, where one is needed.
# - Mixup mixes images and labels; `CrossEntropyLoss` takes class probabilities.
# - `Ema` is a callback: it sees the model after each step and gives another at the end.
#
# Next: [Example · Fine-tuning](fine_tuning.ipynb)
