# %% [markdown] tags=["goals"]
# # Fine-tuning
#
# A network that can tell some digits apart learns others from a few examples: the layers
# that see strokes are kept as they are, only the last one is trained anew. The running
# statistics of BatchNorm belong to what is kept.
#
# About 5 minutes. You should have read [4.4](../04_04_module.ipynb).

# %% tags=["setup"]
import shutil

import numpy as np

import burnbook
from burnbook import nn
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, DigitsDataset, SelectionDataset
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


body = nn.Sequential(
    *strokes(1, 16),
    *strokes(16, 32),
    lambda x: x.flatten(1, 3),
)
model = Classifier(body, nn.LinearConfig(32 * 6 * 6, 10).init(device))

# %% [markdown]
# ## First 0 to 4, then 5 to 9
#
# The network first sees the digits below 5, all of them; then 20 of each of the others.


# %% tags=["run-me"]
def digits(dataset, wanted, each=None):
    labels = np.array([item.label for item in dataset])
    found = [np.flatnonzero(labels == digit)[:each] for digit in wanted]
    indices = np.concatenate(found).tolist()
    chosen = SelectionDataset.from_indices_checked(dataset, indices)
    loaders = DataLoaderBuilder(MnistBatcher(device)).batch_size(32)
    return loaders.shuffle(42).build(chosen)


def trained(model, name, wanted, each, epochs):
    learner = (
        LearnerBuilder(f"artifacts/fine_tuning/{name}")
        .renderer(None)
        .metrics([AccuracyMetric(), LossMetric()])
        .num_epochs(epochs)
        .build(model, AdamConfig().init(), 5e-3)
    )
    train = digits(DigitsDataset.train(), wanted, each)
    found = learner.fit(train, digits(DigitsDataset.test(), wanted))
    accuracy = learner.result.history.last("valid")["Accuracy"]
    print(f"{name}: 3 of 4 or more are right", "✔" if accuracy > 75 else "✘")
    return found


low = trained(model, "0 to 4", range(5), None, epochs=3)

# %% [markdown]
# ## The body rests
#
# `freeze_group` keeps its weights, `eval` its statistics: without it BatchNorm would go
# on averaging, over 100 images that look otherwise. Both give a copy.

# %% tags=["run-me"]
frozen = low.freeze_group(ParamGroup.from_predicate("body")).eval("body")
frozen = frozen.replace(head=nn.LinearConfig(32 * 6 * 6, 10).init(device))
print(frozen.num_trainable_params(), "of", frozen.num_params(), "are trained")
high = trained(frozen, "5 to 9", range(5, 10), 20, epochs=4)

# %% tags=["run-me"]
for path, param in low.body.named_params():
    after = dict(high.body.named_params())[path]
    assert np.array_equal(np.asarray(param.val()), np.asarray(after.val())), (
        path
    )
print("the body is the same, its statistics, too")

# %% [markdown]
# Two learning rates are another way: a small one for the body, a large one for the head,
# by a [group of parameters](../04_05_optimizer.ipynb).

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `freeze_group` stops the training of a part, `eval` its statistics and dropout.
# - Modules never change: `low` is still the network for 0 to 4.
#
# Next: [Example · Saliency](saliency.ipynb)
