# %% [markdown] tags=["goals"]
# # A residual network
#
# Deep networks learn better when each block only has to learn what to *add* to its input.
# This page builds such a network, trains it on mixed images (mixup), and keeps a moving
# average of its weights (EMA). What each of them is worth is measured.
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
from burnbook_widgets.pictures import Bars

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
    mix: bool

    def forward(self, images):
        x = activation.relu(self.stem.forward(images.unsqueeze_dim(1)))
        for block in self.blocks:
            x = block.forward(x)
        return self.head.forward(x.mean_dims([2, 3]).flatten(1, 3))

    def train_step(self, batch):
        images, wanted = batch.images, batch.targets.one_hot(10).float()
        if self.mix:
            images, wanted = mixed(images, wanted)
        logits = self.forward(images)
        loss = nn.CrossEntropyLossConfig().init(device).forward(logits, wanted)
        output = ClassificationOutput(loss, logits, batch.targets)
        return TrainOutput(self, loss.backward(), output)

    def valid_step(self, batch):
        logits = self.forward(batch.images)
        loss = nn.CrossEntropyLossConfig().init(logits.device())
        loss = loss.forward(logits, batch.targets)
        return ClassificationOutput(loss, logits, batch.targets)

    @classmethod
    def new(cls, mix=True):
        return cls(
            stem=conv([1, 8], 3),
            blocks=[Block.new(8, 8), Block.new(8, 16), Block.new(16, 32)],
            head=nn.LinearConfig(32, 10).init(device),
            mix=mix,
        )


# %% tags=["run-me"]
model = ResidualNetwork.new()
print(
    model.num_params(),
    "numbers,",
    model.num_trainable_params(),
    "of them trained",
)

# %% [markdown]
# ## Train
#
# After each step `Ema` moves its average a little toward the new weights. It is the
# average that is validated; `result=False` says that `fit` gives the weights of the last
# step all the same, so that both can be compared.


# %% tags=["run-me"]
loaders = DataLoaderBuilder(MnistBatcher(device)).batch_size(64)
test_loader = loaders.build(DigitsDataset.test())


def trained(model, seed=42):
    """The averaged weights and those of the last step."""
    average = Ema(0.95, result=False)
    learner = (
        LearnerBuilder("artifacts/residual")
        .renderer(None)
        .metrics([AccuracyMetric(), LossMetric()])
        .callback(average)
        .num_epochs(4)
        .build(model, AdamWConfig().init(), 1e-2)
    )
    train_loader = loaders.shuffle(seed).build(DigitsDataset.train())
    last = learner.fit(train_loader, test_loader)
    return average.model, last


# %% tags=["run-me"]
def share_right(network):
    network, right = network.valid(), []
    for batch in test_loader:
        found = network.forward(batch.images.inner()).argmax(1).flatten(0, 1)
        right += (found == batch.targets.inner()).into_data().to_list()
    return 100 * np.mean(right)


averaged, last = trained(model)
accuracy = share_right(averaged)
print("9 of 10 are read" if accuracy > 90 else f"{accuracy} % are read")

# %% [markdown]
# ## What helped?
#
# A number alone does not say so. Three trainings with mixup and three without, each
# with random numbers of its own; of each both the average and the last weights:

# %% tags=["run-me"]
reads = {}
for mix in (True, False):
    for seed in range(3):
        burnbook.seed(seed)
        draw = np.random.default_rng(seed)
        averaged, last = trained(ResidualNetwork.new(mix), seed)
        for name, network in {"averaged": averaged, "last step": last}.items():
            way = f"{'mixup' if mix else 'no mixup'}, {name}"
            reads.setdefault(way, []).append(share_right(network))
means = {
    name: np.mean([found for way, found in reads.items() if name in way])
    for name in ("averaged", "last step")
}
print("read by more:", max(means, key=means.get))
each = {
    f"{way}, run {number}": share
    for way, found in reads.items()
    for number, share in enumerate(found, start=1)
}
Bars(each, "test digits read, %")

# %% [markdown]
# At a constant rate the last step is a matter of luck, and the average is not: that is
# what it is for. Mixup gains less than the spread here. With a schedule that ends near 0,
# as in [4.7](../04_07_lr_scheduler.ipynb), the last weights hardly move any more, and
# the average is the same as they are.

# %% [markdown] tags=["summary"]
# ## Summary
#
# - A block adds to its input; `nn.Conv2d | None` is a way around, where one is needed.
# - Mixup mixes images and labels; `CrossEntropyLoss` takes class probabilities.
# - `Ema` is a callback: it sees the model after each step and gives another at the end.
#
# Next: [Example · Fine-tuning](fine_tuning.ipynb)
