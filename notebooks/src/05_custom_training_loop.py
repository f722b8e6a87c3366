# %% [markdown] tags=["goals"]
# # 5 · Custom training loop
#
# After this chapter you can
#
# - write training and validation yourself, step by step;
# - split gradients among learning rates and optimizers, and accumulate them over batches;
# - put model and optimizer into a learner type of your own.
#
# About 25 minutes. You should have read [chapter 3.3](03_3_training.ipynb) and
# [chapter 4.3](04_03_autodiff.ipynb).

# %% tags=["setup", "rust:setup"]
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np

import burnbook
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatch, MnistBatcher
from burnbook.examples.guide.model import Model, ModelConfig
from burnbook.optim import (
    AdamConfig,
    GradientsAccumulator,
    GradientsParams,
    Optimizer,
    ParamGroup,
    SgdConfig,
)
from burnbook.prelude import *
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# The learner of chapter 3.3 trains most models. When yours needs something else (two
# models that compete with each other, several optimizers, gradients from elsewhere),
# write the loop. It is short.
#
# ## Try it
#
# A line through four points: forward, backward, step, repeat.

# %% tags=["run-me", "rust:try-it"]
device = Autodiff(Numpy())
x = Tensor[2].from_data([[0.0], [1.0], [2.0], [3.0]], device)
y = x * 2.0 + 1.0

start = nn.LinearConfig(1, 1).with_initializer(nn.Initializer.Zeros)
model, optim = start.init(device), SgdConfig().init()
mse = nn.MseLoss()
for _ in range(20):
    loss = mse.forward(model.forward(x), y, nn.Reduction.Mean)
    grads = GradientsParams.from_grads(loss.backward(), model)
    model = optim.step(0.1, model, grads)
print(f"loss after 20 steps: {loss.into_scalar():.3f}")

# %% [markdown]
# ## By hand
#
# The same line in NumPy. With the error $e_i = w x_i + b - y_i$, the mean of its squares
# has the slopes
#
# $$\frac{\partial L}{\partial w} = \frac{2}{n} \sum_i e_i\, x_i \qquad
# \frac{\partial L}{\partial b} = \frac{2}{n} \sum_i e_i$$

# %% tags=["run-me"]
xs, ys = np.array([0.0, 1, 2, 3]), np.array([1.0, 3, 5, 7])
w = b = 0.0
for _ in range(20):
    error = w * xs + b - ys
    slopes = 2 * (error * xs).mean(), 2 * error.mean()
    w, b = w - 0.1 * slopes[0], b - 0.1 * slopes[1]

# %% [markdown]
# ## In burnbook

# %% tags=["run-me", "rust:by-hand"]
same([[w]], model.weight.val())
same([b], model.bias.val())

# %% [markdown]
# ## The whole loop
#
# Now the digits of the guide, without the learner. The configuration, the batcher and the
# loaders are those of chapter 3.3: only the loop is new. (With `.captured()` a
# learner runs its steps as plans; a loop of your own does with `captured` above the
# function of its step, see [chapter 10.7](10_7_performance.ipynb).)


# %% tags=["run-me", "rust:config"]
class MnistTrainingConfig(Config):
    model: ModelConfig
    optimizer: AdamConfig
    num_epochs: int = 10
    batch_size: int = 64
    num_workers: int = 4
    seed: int = 42
    lr: float = 1e-4


config = MnistTrainingConfig(ModelConfig(10, 64), AdamConfig())
config = config.with_num_epochs(3).with_num_workers(2).with_lr(2e-3)
print(config.num_epochs, "epochs at", config.lr)

# %% [markdown]
# (The book takes `ModelConfig(10, 1024)`; 64 hidden neurons are quicker.) Model and
# optimizer are now two variables of ours. The batcher for validation is on the inner
# backend, without gradients.


# %% tags=["run-me", "cell:setup"]
def loader(dataset, device):
    builder = DataLoaderBuilder(MnistBatcher(device))
    builder = builder.batch_size(config.batch_size).shuffle(config.seed)
    return builder.num_workers(config.num_workers).build(dataset)


device.seed(config.seed)
model = config.model.init(device)
optim = config.optimizer.init()
dataloader_train = loader(DigitsDataset.train(), device)
dataloader_test = loader(DigitsDataset.test(), device.inner)


# %% [markdown]
# The loss, and the percentage of correct predictions. Both are used in training and
# validation.


# %% tags=["run-me", "rust:evaluate"]
def accuracy(output, targets):
    predictions = output.argmax(1).squeeze(1)
    correct = predictions.equal(targets).int().sum().into_scalar()
    return correct / targets.dims()[0] * 100


def evaluate(model, batch):
    output = model.forward(batch.images)
    cross_entropy = nn.CrossEntropyLossConfig().init(output.device())
    loss = cross_entropy.forward(output, batch.targets)
    return loss, accuracy(output, batch.targets)


# %% [markdown]
# One epoch of training. `backward` gives the gradients of this pass; `from_grads` links
# them to the parameters, by id; the step consumes them. Nothing is registered with the
# optimizer, and nothing has to be set to zero. The lines that the book prints are
# collected here.

# %% tags=["run-me"]
log, losses = [], []


def train_epoch(model, epoch):
    for iteration, batch in enumerate(dataloader_train):
        loss, correct = evaluate(model, batch)
        grads = loss.backward()  # of the current backward pass
        grads = GradientsParams.from_grads(grads, model)  # by parameter
        model = optim.step(config.lr, model, grads)
        losses.append(loss.into_scalar())
        log.append(
            f"[Train - Epoch {epoch} - Iteration {iteration}] "
            f"Loss {losses[-1]:.3f} | Accuracy {correct:.3f} %"
        )
    return model


# %% [markdown]
# One epoch of validation. `valid()` gives the model without autodiff: dropout is off, and
# no tape is kept.

# %% tags=["run-me"]
accuracies = []


def valid_epoch(model_valid, epoch):
    right = 0.0
    for iteration, batch in enumerate(dataloader_test):
        loss, correct = evaluate(model_valid, batch)
        right += correct * batch.targets.dims()[0]
        log.append(
            f"[Valid - Epoch {epoch} - Iteration {iteration}] "
            f"Loss {loss.into_scalar()} | Accuracy {correct}"
        )
    accuracies.append(right / len(DigitsDataset.test()))


# %% tags=["run-me", "cell:loop"]
for epoch in range(1, config.num_epochs + 1):
    model = train_epoch(model, epoch)
    valid_epoch(model.valid(), epoch)

print(len(log), "lines, the first", log[0].partition("] ")[0] + "]")
print("loss < 1", "✔" if losses[-1] < 1 else "✘")
print("accuracy > 80 %", "✔" if accuracies[-1] > 80 else "✘")

# %% [markdown]
# In Rust `optim.step` takes ownership of the old model. Here the old one stays as it was,
# so the result must be assigned: if you forget `model =`, nothing is trained.
#
# ## See it

# %% tags=["widget"]
title = "Three epochs, batch by batch"
Lines({"loss": losses}, title, x_label="batch", y_label="loss")

# %% [markdown]
# ## Gradients of several batches
#
# A batch that does not fit into memory can be processed in parts. An accumulator sums the
# gradients; `grads()` returns the sums and starts again. First the parts, with a model
# without dropout so that we can compare:

# %% tags=["run-me", "cell:accumulate", "rust:accumulate"]
calm = ModelConfig(10, 16).with_dropout(0.0).init(device)
items = [DigitsDataset.train().get(i) for i in range(64)]
batcher = MnistBatcher(device)

accumulator = GradientsAccumulator()
for first in range(0, 64, 16):
    loss, _ = evaluate(calm, batcher.batch(items[first : first + 16]))
    grads = GradientsParams.from_grads(loss.backward(), calm)
    accumulator.accumulate(calm, grads)
sums = accumulator.grads()
print(sums, accumulator)

# %% [markdown]
# It gives sums, not means: four gradients of means over 16 images are together four times
# the gradient of the mean over 64. So divide each loss by the number of parts before
# `backward`. Then the sum is the gradient of the large batch, and every optimizer takes
# the same step. (Dividing the *learning rate* instead is right for plain SGD only. Adam
# rescales gradients, so its step would be four times too short.)

# %% tags=["run-me", "rust:accumulated"]
loss, _ = evaluate(calm, batcher.batch(items))
whole = GradientsParams.from_grads(loss.backward(), calm)
name = calm.conv1.weight.id
same(sums.get(name) / 4.0, whole.get(name))

# %% [markdown]
# ## Several learning rates, several optimizers
#
# A container may hold the gradients of a part of the model only, and a step moves only
# the parameters that it has gradients for. `from_module` and `from_params` take theirs
# out; `from_grads` gets the rest.

# %% tags=["run-me", "cell:several-optimizers", "rust:several-optimizers"]
loss, _ = evaluate(calm, batcher.batch(items))
grads = loss.backward()
grads_conv1 = GradientsParams.from_module(grads, calm.conv1)
grads_conv2 = GradientsParams.from_module(grads, calm.conv2)
bias = calm.linear1.bias
grads_bias = GradientsParams.from_params(grads, calm.linear1, [bias.id])
rest = GradientsParams.from_grads(grads, calm)
for part in (grads_conv1, grads_conv2, grads_bias, rest):
    print(part)

# %% [markdown]
# Each part steps at its own rate, or with another optimizer. A step gives a new model, but
# the ids of the parameters stay, so the gradients of the next part still match.

# %% tags=["run-me", "rust:two-rules"]
plain, adam = SgdConfig().init(), AdamConfig().init()
stepped = plain.step(0.1 * 2.0, calm, grads_conv1)
stepped = plain.step(0.1 * 4.0, stepped, grads_conv2)
stepped = plain.step(0.1 * 0.1, stepped, grads_bias)
stepped = adam.step(1e-3, stepped, rest)

moved = calm.conv1.weight.val().inner() - stepped.conv1.weight.val().inner()
same(moved / 0.2, whole.get(name))

# %% [markdown]
# If the division stays the same throughout training, declare it once: an optimizer may
# have groups, each with its own rule ([chapter 4.5](04_05_optimizer.ipynb)) and its
# own schedule ([chapter 4.7](04_07_lr_scheduler.ipynb)).

# %% tags=["run-me"]
convolutions = ParamGroup.from_predicate("conv")
mixed = AdamConfig().init().with_group(convolutions, SgdConfig())
print(mixed)

# %% [markdown]
# ## Types of your own
#
# A loop with many variables is better turned into a type. The simplest is for one kind of
# model; what can vary is the backend, which the model knows, and the optimizer.


# %% tags=["run-me", "cell:learner-backend"]
@dataclass
class DigitLearner:
    model: Model
    optim: Optimizer

    def step(self, lr, batch: MnistBatch):
        loss, _ = evaluate(self.model, batch)
        grads = GradientsParams.from_grads(loss.backward(), self.model)
        self.model = self.optim.step(lr, self.model, grads)
        return loss


# %% tags=["run-me"]
learner = DigitLearner(ModelConfig(10, 16).init(device), AdamConfig().init())
print(learner.step(1e-3, batcher.batch(items)).shape, learner.optim)

# %% [markdown]
# The next one is for any model and any optimizer. Type variables say which is which; they
# help readers and type checkers, but Python does not need them.

# %% tags=["run-me", "cell:learner-model", "rust:learner-model"]
M = TypeVar("M", bound=Module)
O = TypeVar("O", bound=Optimizer)  # noqa: E741


@dataclass
class Learner(Generic[M, O]):
    model: M
    optim: O

    def step(self, lr, loss_of):
        loss = loss_of(self.model)
        grads = GradientsParams.from_grads(loss.backward(), self.model)
        self.model = self.optim.step(lr, self.model, grads)
        return loss.into_scalar()


# %% tags=["run-me", "rust:learner-use"]
def off_the_line(model):
    return mse.forward(model.forward(x), y, nn.Reduction.Mean)


learner = Learner[nn.Linear, Optimizer](start.init(device), SgdConfig().init())
for _ in range(20):
    learner.step(0.1, off_the_line)
same([[w]], learner.model.weight.val())

# %% [markdown]
# A third one names the backend, too. In Rust that takes a field of size zero, because a
# type may not have a parameter that it does not use. Here the field is useful: it is the
# device on which batches are made. You can add whatever else your training needs. This
# learner accumulates gradients and steps after every few parts.

# %% tags=["run-me", "cell:learner-phantom", "rust:learner-phantom"]
B = TypeVar("B", bound=Backend)


@dataclass
class PatientLearner(Generic[B, M, O]):
    device: B
    model: M
    optim: O
    every: int = 4

    def __post_init__(self):
        self.accumulator, self.waiting = GradientsAccumulator(), 0


# %% tags=["run-me", "rust:add"]
def add(self, lr, items):
    batch = MnistBatcher(self.device).batch(items)
    loss, _ = evaluate(self.model, batch)
    share = loss / float(self.every)  # so that the sum is a mean
    grads = GradientsParams.from_grads(share.backward(), self.model)
    self.accumulator.accumulate(self.model, grads)
    self.waiting = (self.waiting + 1) % self.every
    if not self.waiting:
        sums = self.accumulator.grads()
        self.model = self.optim.step(lr, self.model, sums)


PatientLearner.add = add

# %% [markdown]
# With any optimizer and an unchanged rate it takes the step of the whole batch:

# %% tags=["run-me", "rust:patient"]
for rule, lr in ((SgdConfig(), 0.1), (AdamConfig(), 1e-3)):
    patient = PatientLearner(device, calm, rule.init())
    for first in range(0, 64, 16):
        patient.add(lr, items[first : first + 16])
    loss, _ = evaluate(calm, batcher.batch(items))
    whole = GradientsParams.from_grads(loss.backward(), calm)
    at_once = rule.init().step(lr, calm, whole)
    same(patient.model.conv1.weight.val(), at_once.conv1.weight.val())

# %% [markdown]
# These are suggestions. Models and optimizers are independent of each other, so any
# arrangement will do.
#
# ## Look inside

# %% tags=["peek"]
peek(GradientsAccumulator)

# %% [markdown]
# ## Where it breaks
#
# A validation batch is on the inner backend. Without `valid()` two backends are mixed; in
# Rust the compiler rejects that, here the first operation does.

# %% tags=["raises-exception"]
calm.forward(next(iter(dataloader_test)).images)

# %% [markdown]
# A step makes a new model, with new leaves. A loss computed by the old one has no
# gradients for them:

# %% tags=["raises-exception"]
loss, _ = evaluate(calm, batcher.batch(items[:4]))
GradientsParams.from_grads(loss.backward(), at_once)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 5.1: Sgd at rate 0.1 on one large batch; which rate gives the same
# step for the summed gradients of 8 equal parts of it?
answer = ...
check("5.1", answer)

# %% tags=["solution"]
answer = 0.1 / 8
check("5.1", answer)


# %% tags=["exercise"]
# exercise 5.2: one step for a model, an optimizer, a rate and a function that
# computes the loss of a model; return the new model
def one_step(model, optim, lr, loss_of):
    return ...


answer = ...  # one_step
check("5.2", answer)


# %% tags=["solution"]
def one_step(model, optim, lr, loss_of):
    grads = loss_of(model).backward()
    grads = GradientsParams.from_grads(grads, model)
    return optim.step(lr, model, grads)


answer = one_step
check("5.2", answer)


# %% tags=["exercise"]
# exercise 5.3: take the gradients of all parameters named bias out of what
# backward() returned, and leave the others in
def take_biases(grads, model):
    return ...


answer = ...  # take_biases
check("5.3", answer)


# %% tags=["solution"]
def take_biases(grads, model):
    named = model.named_params()
    biases = [param.id for path, param in named if path.endswith("bias")]
    return GradientsParams.from_params(grads, model, biases)


answer = take_biases
check("5.3", answer)

# %% tags=["exercise"]
# exercise 5.4: steps in an epoch of 23 batches, if a step is taken after every
# 4 of them, and at the end for those that are left
answer = ...
check("5.4", answer)

# %% tags=["solution"]
answer = -(-23 // 4)
check("5.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why must gradients be linked to parameters at all?</summary>
#
# `backward` is about tensors. But a step makes new tensors, another device has copies of
# its own, and a sum belongs to no single graph. What stays is the id of the parameter.
# </details>
#
# <details><summary>Where is <code>zero_grad()</code>?</summary>
#
# It is not needed. Each pass has a container of its own, and a step takes the gradients
# out.
# </details>
#
# <details><summary>What happens to a parameter without a gradient?</summary>
#
# Nothing: neither the parameter nor its state in the optimizer changes. That is why
# steps with parts of the gradients do not disturb each other.
# </details>

# %% [markdown] tags=["cell:learner-error"]
# <details><summary><b>🐍 Python note: generic types</b></summary>
#
# Rust wants bounds where a method uses them: `impl<B, M, O> Learner<M, O>` with `M:
# AutodiffModule<B>` is rejected ("the type parameter `B` is not constrained", E0207),
# until the method itself names `B` or the struct holds a `PhantomData<B>`. In Python
# annotations are not checked when a program runs: `Learner[nn.Linear, Optimizer]` and
# `Learner` make the same object, and a mistake shows up at the first step. From Python
# 3.12 on, `class Learner[M, O]` needs no `TypeVar`.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - The loop: forward, loss, backward, `from_grads`, `model = optim.step(lr, model, grads)`.
# - Validate on `model.valid()`, with batches on the inner backend.
# - `GradientsAccumulator` gives sums, not means: divide each loss by the number of parts.
# - `from_module` and `from_params` split gradients among rates and optimizers.
# - A learner type is a class with a model and an optimizer, and whatever else you need.
#
# **Where this lives.** In the chapters on the building blocks: the loop needs
# nothing new. What `GradientsParams` does is in `burnbook/optim/grads.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `for i, batch in enumerate(loader)` | `for (i, batch) in loader.iter().enumerate()` | the same |
# | `GradientsParams.from_grads(grads, model)` | `GradientsParams::from_grads(grads, &model)` | the same |
# | `model = optim.step(lr, model, grads)` | `model = optim.step(lr, model, grads);` | the same |
# | `from_module(grads, model.conv1)` | `from_module(&mut grads, &model.conv1)` | the same |
# | `accumulator.accumulate(model, grads)` | `accumulator.accumulate(&model, grads)` | the same |
# | `Learner(Generic[M, O])` | `struct Learner<M, O>` | the same |
# | `device: B` in the type | `_b: PhantomData<B>` | not needed: no `B` |
#
# Next: [6 · Saving and loading](06_saving_and_loading.ipynb)
