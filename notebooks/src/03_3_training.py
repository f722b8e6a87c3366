# %% [markdown] tags=["goals"]
# # 3.3 · Training
#
# After this chapter you can
#
# - compute a loss and its gradients, and take one step of an optimizer;
# - give a model its training step and its validation step;
# - let the learner train, watch it, stop it, and read what it leaves behind.
#
# About 30 minutes. You should have read [chapter 3.2](03_2_data.ipynb).
# This page [in Chinese, 中文版](zh/03_3_training.ipynb), and
# [in four versions](03_3_training_versions.ipynb), for older and newer Burn.

# %% tags=["setup", "rust:setup"]
import shutil
from pathlib import Path

import numpy as np

import burnbook
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.nn import CrossEntropyLossConfig
from burnbook.optim import AdamConfig, GradientsParams
from burnbook.prelude import *
from burnbook.record import CompactRecorder
from burnbook.train import (
    AccuracyMetric,
    ClassificationOutput,
    LearnerBuilder,
    LossMetric,
    TrainOutput,
)
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# Take one batch of digits and show it to the network again and again. Each time, the
# optimizer moves every parameter a little against its gradient. Thirty steps are enough
# to see the loss fall.

# %% tags=["run-me"]
device = Autodiff(Numpy())
train_set, test_set = DigitsDataset.train(), DigitsDataset.test()
batch = MnistBatcher(device).batch([train_set.get(i) for i in range(64)])

model = ModelConfig(10, 64).init(device)
optim = AdamConfig().init()
cross_entropy = CrossEntropyLossConfig().init(device)
losses = []
for _ in range(30):
    loss = cross_entropy.forward(model.forward(batch.images), batch.targets)
    grads = GradientsParams.from_grads(loss.backward(), model)
    model = optim.step(1e-3, model, grads)
    losses.append(loss.into_scalar())
print(f"loss {losses[0]:.1f} → {losses[-1]:.1f}")

# %% [markdown]
# Look again at the three steps inside the loop: *forward* computes the loss, *backward*
# its gradients, the *step* a better model. The old model is not changed; the name
# `model` now refers to the new one.
#
# ## By hand
#
# The last layer gives one number per class, the *logits* $z$. Softmax turns them into
# probabilities, and the loss of an image is large when the probability of its true
# class $t$ is small:
#
# $$L = -\log\frac{e^{z_t}}{\sum_j e^{z_j}} = \log\sum_j e^{z_j} - z_t$$

# %% tags=["run-me"]
logits = np.array([[2.0, 1.0, 0.1], [0.5, 2.5, 0.0]], dtype=np.float32)
classes = np.array([0, 2])

total = np.log(np.exp(logits).sum(axis=1))
by_hand = (total - logits[[0, 1], classes]).mean()
print(f"{by_hand:.4f}")

# %% [markdown]
# ## In burnbook

# %% tags=["run-me", "rust:cross-entropy"]
z = Tensor[2].from_numpy(logits, device).require_grad()
targets = Tensor[1, Int].from_numpy(classes, device)
loss = cross_entropy.forward(z, targets)
same([by_hand], loss)

# %% [markdown]
# `backward()` returns a container of gradients, in which a tensor finds its own. So
# nothing needs to be set to zero between two steps; PyTorch keeps each gradient in the
# tensor itself, where the next one would be added to it. The gradient of this loss has a
# simple form: the probabilities, minus 1 at the true class, divided by the batch size.

# %% tags=["run-me", "cell:gradients", "rust:gradients"]
softmax = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
softmax[[0, 1], classes] -= 1
same(softmax / 2, z.grad(loss.backward()))

# %% [markdown]
# ## See it

# %% tags=["widget"]
title = "The same batch, thirty times"
Lines({"loss": losses}, title, x_label="step", y_label="loss")

# %% [markdown]
# ## What the learner needs
#
# A model that the learner can train has two more methods. They return an *item* from
# which metrics compute what they show; in classification that is the loss, the output
# and the targets (`ClassificationOutput`). In regression, where numbers are predicted
# instead of classes, it is a `RegressionOutput`. In Rust all of this stands in a file of
# its own, `src/training.rs`.
#
# The output goes into the loss and into the item. In Rust that takes an
# `output.clone()`, since a function owns the tensors that it is given; no numbers are
# copied by it, it only says that the tensor is needed again, so that no operation may
# work in its memory. In Python a tensor may be named as often as one likes.


# %% tags=["run-me", "cell:forward-classification"]
def forward_classification(self, images, targets):
    output = self.forward(images)
    loss = (
        CrossEntropyLossConfig().init(output.device()).forward(output, targets)
    )
    return ClassificationOutput(loss, output, targets)


def train_step(self, batch):
    item = self.forward_classification(batch.images, batch.targets)
    return TrainOutput(self, item.loss.backward(), item)


def valid_step(self, batch):
    return self.forward_classification(batch.images, batch.targets)


# %% tags=["run-me"]
from burnbook.examples.guide.model import Model

Model.forward_classification = forward_classification
Model.train_step = train_step
Model.valid_step = valid_step

model.train_step(batch)

# %% [markdown] tags=["cell:torch-no-grad"]
# Only the training step computes gradients, and returns them with the item in a
# `TrainOutput`. The learner validates on `model.valid()`, the same model without
# autodiff: there is no `backward` there, and dropout is off. So gradients cannot be
# left on by accident. Rust says the same by types: `TrainStep` asks for an
# `AutodiffBackend`, `ValidStep` for any `Backend`.
#
# ## The configuration of a run
#
# One config holds every setting of a run, and it is saved beside the results.


# %% tags=["run-me", "cell:training-config", "rust:training-config"]
class TrainingConfig(Config):
    model: ModelConfig
    optimizer: AdamConfig
    num_epochs: int = 10
    batch_size: int = 64
    num_workers: int = 4
    seed: int = 42
    learning_rate: float = 1e-4


config = TrainingConfig(ModelConfig(10, 64), AdamConfig())
config = config.with_num_workers(2).with_learning_rate(1e-3)
print(config.num_epochs, "epochs at", config.learning_rate)

# %% [markdown]
# Results go to a folder, the *artifact directory*. It is emptied first, so that
# everything in it comes from one run.


# %% tags=["run-me", "cell:artifact-dir", "rust:artifact-dir"]
def create_artifact_dir(folder):
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)


artifacts = Path("artifacts/training")
create_artifact_dir(artifacts)
config.save(artifacts / "config.json")
device.seed(config.seed)
print((artifacts / "config.json").read_text()[:60], "…")


# %% [markdown]
# Both loaders shuffle with the seed. The one for validation makes its batches on the
# inner backend, without gradients.


# %% tags=["run-me", "cell:loaders"]
def loader(dataset, device):
    builder = DataLoaderBuilder(MnistBatcher(device))
    builder = builder.batch_size(config.batch_size).shuffle(config.seed)
    return builder.num_workers(config.num_workers).build(dataset)


train_loader = loader(train_set, device)
valid_loader = loader(test_set, device.inner)
len(list(train_loader))

# %% [markdown]
# ## The learner
#
# The builder takes metrics for both splits, a recorder for the checkpoints, the number of
# epochs and a summary at the end; `build` takes the model, the optimizer and the
# learning rate. The rate is not part of the optimizer: it is given to every step, so a
# schedule can take its place.

# %% tags=["run-me", "cell:learner"]
learner = (
    LearnerBuilder(artifacts)
    .metric_train_numeric(AccuracyMetric())
    .metric_valid_numeric(AccuracyMetric())
    .metric_train_numeric(LossMetric())
    .metric_valid_numeric(LossMetric())
    .with_file_checkpointer(CompactRecorder())
    .devices([device])
    .num_epochs(config.num_epochs)
    .build(
        config.model.init(device),
        config.optimizer.init(),
        config.learning_rate,
    )
)

# %% [markdown]
# Now train. `await` keeps the page responsive meanwhile: curves move, and the buttons
# Stop and Pause react at once. `learner.fit(...)` does the same work, but reacts to
# clicks only when it is done.

# %% tags=["run-me", "cell:fit"]
trained = await learner.fit_async(train_loader, valid_loader)

# %% tags=["run-me", "nbval-ignore-output"]
history = learner.result.history
accuracy = [mean for _, mean in history.epochs("Accuracy", "valid")]
print(f"accuracy on unseen digits after epoch 1: {accuracy[0]:.0f} %")
print(f"after epoch {len(accuracy)}: {accuracy[-1]:.0f} %")

# %% [markdown]
# `trained` is the model at the end. Save it in half precision: that is enough for
# weights, and the file is the one that Burn itself would write: MessagePack, with
# fractions as `f16` and whole numbers as `i16`. Other recorders write BinCode or JSON,
# packed or not; every backend reads what any of them wrote, whatever it computes in.

# %% tags=["run-me", "cell:save"]
trained.save_file(artifacts / "model", CompactRecorder())
for path in sorted(artifacts.iterdir()):
    print(path.name)

# %% [markdown]
# The folder holds the config, the log of the run, one folder of metric values per
# split, the last checkpoints, and the model. An interrupted run is resumed with
# `LearnerBuilder(…).checkpoint(epoch)`. With `.summary()` the learner prints a table of
# the best and worst epochs at the end, as in the book.
#
# ## Explore the history
#
# `history` gives the numbers of a run as lists; as a plotly figure they can be zoomed
# and read off.

# %% tags=["run-me"]
from burnbook_widgets import history_figure

history_figure(history)

# %% [markdown]
# ## Look inside

# %% tags=["peek"]
peek(ClassificationOutput)

# %% [markdown]
# ## Where it breaks
#
# Without autodiff nothing records how a loss was computed. The error says what to do.

# %% tags=["raises-exception"]
plain = Numpy()
numbers = Tensor[1].from_floats([1.0, 2.0], plain)
(numbers * numbers).sum().backward()

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 3.3.1: the loss if the model finds all ten classes equally likely
answer = ...
check("3.3.1", answer)

# %% tags=["solution"]
answer = float(np.log(10))
check("3.3.1", answer)

# %% tags=["exercise"]
# exercise 3.3.2: the accuracy in percent of these logits for targets [0, 1, 1]
scores = Tensor[2].from_floats([[3.0, 1.0], [0.2, 0.1], [0.0, 5.0]], Numpy())
answer = ...
check("3.3.2", answer)

# %% tags=["solution"]
answer = 100 * 2 / 3
check("3.3.2", answer)

# %% tags=["exercise"]
# exercise 3.3.3: the gradient of Σ x³ at x = [1, 2, 3], found by backward
cubes = Tensor[1].from_floats([1.0, 2.0, 3.0], device).require_grad()
answer = ...
check("3.3.3", answer)

# %% tags=["solution"]
answer = cubes.grad((cubes * cubes * cubes).sum().backward())
check("3.3.3", answer)

# %% tags=["exercise"]
# exercise 3.3.4: how many optimizer steps does the run above take in all?
answer = ...
check("3.3.4", answer)

# %% tags=["solution"]
answer = config.num_epochs * len(list(train_loader))
check("3.3.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why do we validate on images the model has not been trained on?</summary>
#
# A model can memorize its training images (it *overfits*). Only new ones show whether it
# has learned to read.
# </details>
#
# <details><summary>Where are the gradients after <code>backward()</code>?</summary>
#
# In the container that it returned. Tensors hold none, so none can be left over.
# </details>
#
# <details><summary>The training accuracy is lower than the validation accuracy. Why?</summary>
#
# Dropout is on during training, and the training value is a mean over an epoch in which
# the model was still improving.
# </details>

# %% [markdown] tags=["cell:constraints-note"]
# <details><summary><b>🐍 Python note: methods added later</b></summary>
#
# Rust lets several `impl` blocks add methods to one struct. In Python a function
# assigned to a class becomes its method; the chapter does so to introduce one at a
# time. In a project, write them inside the class, as
# `burnbook/examples/guide/model.py` and `training.py` do.
# </details>
#
# <details><summary><b>🐍 Python note: which types a step takes</b></summary>
#
# In Rust the compiler demands that the output of `train_step` can be turned into the
# input of every metric. Here the metrics ask the item when the learner is built or with
# the first batch, and an error names the metric and the type that it needs.
# </details>
#
# <details><summary><b>🐍 Python note: await</b></summary>
#
# A cell runs to its end before the page can react to a click. At `await` it pauses while
# training continues in another thread, and resumes with the result.
# </details>

# %% [markdown]
# <details><summary><b>📖 All versions of this page</b></summary>
#
# The book has rewritten this page as Burn evolved. Code that you find elsewhere may
# follow any of its versions:
#
# | version | what is new in it |
# |---|---|
# | up to 0.11 | `CrossEntropyLoss::new(None)`, `MNISTBatcher`; a model is made without a device |
# | 0.15 | `init(&device)`; the folder is emptied first; the learner ends with a summary |
# | 0.17 | `batch(items, device)`: one batcher serves every device |
# | 0.19 | `fit` gives a result, and the model is in it |
# | from 0.20 on | `SupervisedTraining::new(dir, train, valid)….launch(learner)` |
#
# [A page of its own](03_3_training_versions.ipynb) has each of them in full, runnable;
# all give the same numbers, to the last bit.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - Forward computes the loss, backward the gradients, a step a better model.
# - `train_step` and `valid_step` tell the learner what to do with a batch.
# - The learner adds curves, logs, checkpoints, resuming and a clean stop.
# - A config saved beside the results says how they were obtained.
# - The test set serves as validation set here, as in the book; serious work keeps a
#   third set for the final test.
#
# **Where this lives.** `burnbook/examples/guide/training.py` and
# `burnbook/train/output.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `train_step(batch)` | `TrainStep::step` | the same, with associated types |
# | `valid_step(batch)` | `ValidStep::step` | `InferenceStep::step` |
# | `TrainOutput(self, loss.backward(), item)` | `TrainOutput::new(self, item.loss.backward(), item)` | the same |
# | `LearnerBuilder(dir)….build(model, optim, lr)` | `LearnerBuilder::new(dir)….build(model, optim, lr)` | `SupervisedTraining::new(dir, train, valid)…` |
# | `learner.fit(train, valid)` | `learner.fit(train, valid)` | `.launch(Learner::new(model, optim, lr))` |
# | `optim.step(lr, model, grads)` | `optim.step(lr, model, grads)` | the same |
#
# Next: [3.4 · Backend](03_4_backend.ipynb)
