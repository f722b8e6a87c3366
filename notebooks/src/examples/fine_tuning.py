# %% [markdown] tags=["goals"]
# # Fine-tuning
#
# A network that reads digits learns to read them in a mirror from a few examples: the
# layers that see strokes are kept as they are, only the last one is trained anew. The
# running statistics of BatchNorm belong to what is kept. Whether this helps is measured.
#
# About 5 minutes. You should have read [4.4](../04_04_module.ipynb).

# %% tags=["setup"]
import dataclasses
import shutil

import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.data import (
    DataLoaderBuilder,
    DigitsDataset,
    MapperDataset,
    SelectionDataset,
)
from burnbook.examples.guide.data import MnistBatcher
from burnbook.module import Module
from burnbook.optim import AdamConfig, ParamGroup
from burnbook.tensor import activation
from burnbook.train import (
    AccuracyMetric,
    ClassificationOutput,
    LearnerBuilder,
    LossMetric,
    TrainOutput,
)
from burnbook_widgets.pictures import Bars

burnbook.seed(0)
device = Autodiff(Numpy())
shutil.rmtree("artifacts/fine_tuning", ignore_errors=True)

# %% [markdown]
# ## A body and a head


# %% tags=["run-me"]
class Classifier(Module):
    body: nn.Sequential
    head: nn.Linear

    def forward(self, images):
        return self.head.forward(self.body.forward(images.unsqueeze_dim(1)))

    def train_step(self, batch):
        output = self.valid_step(batch)
        return TrainOutput(self, output.loss.backward(), output)

    def valid_step(self, batch):
        logits = self.forward(batch.images)
        loss = nn.CrossEntropyLossConfig().init(logits.device())
        loss = loss.forward(logits, batch.targets)
        return ClassificationOutput(loss, logits, batch.targets)


def strokes(before, after):
    """A convolution that halves the image, BatchNorm, and relu."""
    conv = nn.Conv2dConfig([before, after], [3, 3]).with_stride([2, 2])
    norm = nn.BatchNormConfig(after)
    return [conv.init(device), norm.init(device), activation.relu]


def classifier():
    body = nn.Sequential(
        *strokes(1, 16), *strokes(16, 32), lambda x: x.flatten(1, 3)
    )
    return Classifier(body, nn.LinearConfig(32 * 6 * 6, 10).init(device))


# %% [markdown]
# ## First as they are, then in a mirror
#
# The network first sees 1,438 digits; then only five of each digit, in a mirror.


# %% tags=["run-me"]
def mirrored(item):
    return dataclasses.replace(
        item, image=np.asarray(item.image)[:, ::-1].copy()
    )


def digits(dataset, each=None, mirror=False, skip=0):
    if each:
        labels = np.array([item.label for item in dataset])
        found = [
            np.flatnonzero(labels == digit)[skip:][:each]
            for digit in range(10)
        ]
        chosen = np.concatenate(found).tolist()
        dataset = SelectionDataset.from_indices_checked(dataset, chosen)
    if mirror:
        dataset = MapperDataset(dataset, mirrored)
    return (
        DataLoaderBuilder(MnistBatcher(device))
        .batch_size(32)
        .shuffle(42)
        .build(dataset)
    )


# %% tags=["run-me"]
def trained(model, epochs, each=None, mirror=False, skip=0):
    """The model after training, and how many test images it then reads."""
    learner = (
        LearnerBuilder("artifacts/fine_tuning")
        .renderer(None)
        .metrics([AccuracyMetric(), LossMetric()])
        .num_epochs(epochs)
        .build(model, AdamConfig().init(), 5e-3)
    )
    train = digits(DigitsDataset.train(), each, mirror, skip)
    found = learner.fit(train, digits(DigitsDataset.test(), mirror=mirror))
    return found, learner.result.history.last("valid")["Accuracy"]


upright, right = trained(classifier(), epochs=3)
print(
    "upright digits: 19 of 20 are read"
    if right > 95
    else f"only {right} % are read"
)

# %% [markdown]
# ## The body rests
#
# `freeze_group` keeps its weights, `eval` its statistics: without it BatchNorm would go
# on averaging, over 50 images that look otherwise. Both give a copy. The head is new.


# %% tags=["run-me"]
def resting(model):
    model = model.freeze_group(ParamGroup.from_predicate("body")).eval("body")
    return model.replace(head=nn.LinearConfig(32 * 6 * 6, 10).init(device))


print(
    resting(upright).num_trainable_params(),
    "of",
    upright.num_params(),
    "are trained",
)
tuned, _ = trained(resting(upright), epochs=20, each=5, mirror=True)

# %% tags=["run-me"]
for path, param in upright.body.named_params():
    after = dict(tuned.body.named_params())[path]
    assert np.array_equal(np.asarray(param.val()), np.asarray(after.val())), (
        path
    )
print("the body is the same, its statistics, too")

# %% [markdown]
# ## Did it help?
#
# A number alone does not say so. Two controls are trained on the same 50 images: the
# same network from scratch, and a body that was never trained at rest under a new head.
# Three times each, with other random numbers and other images.

# %% tags=["run-me"]
reads = {"fine-tuned": [], "from scratch": [], "random body at rest": []}
for seed in range(3):
    burnbook.seed(seed)
    few = {"epochs": 20, "each": 5, "mirror": True, "skip": 5 * seed}
    before, _ = trained(classifier(), epochs=3)
    reads["fine-tuned"].append(trained(resting(before), **few)[1])
    reads["from scratch"].append(trained(classifier(), **few)[1])
    reads["random body at rest"].append(
        trained(resting(classifier()), **few)[1]
    )
means = {way: np.mean(found) for way, found in reads.items()}
print("most on average:", max(means, key=means.get))
each = {
    f"{way}, run {number}": share
    for way, found in reads.items()
    for number, share in enumerate(found, start=1)
}
Bars(each, "mirrored digits read, %")

# %% [markdown]
# It helps by a few points, and a random body comes close: 28 × 28 pixels say much by
# themselves. The less the new examples tell, and the more the old ones share with them,
# the more a trained body is worth.

# %% [markdown]
# Two learning rates are another way: a small one for the body, a large one for the head,
# by a [group of parameters](../04_05_optimizer.ipynb).

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `freeze_group` stops the training of a part, `eval` its statistics and dropout.
# - Modules never change: `upright` still reads upright digits.
# - What is said to help stands beside what it is without.
#
# Next: [Example · Saliency](saliency.ipynb)
