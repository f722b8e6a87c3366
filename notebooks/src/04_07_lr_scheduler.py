# %% [markdown] tags=["goals"]
# # 4.7 · Learning rate scheduler
#
# After this chapter you can
#
# - train with a learning rate that follows a curve;
# - tell the curves apart, multiply them, and put one after the other;
# - save and resume a schedule, and write your own.
#
# About 20 minutes. You should have read [chapter 4.5](04_05_optimizer.ipynb).

# %% tags=["setup", "rust:setup"]
import shutil
import warnings
from pathlib import Path

import numpy as np

import burnbook
from burnbook import lr_scheduler, nn, optim
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.data import DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.optim import GradientsParams, ParamGroup
from burnbook.lr_scheduler import LrSchedulerConfig
from burnbook.tensor import Tensor
from burnbook.train import LearnerBuilder, LearningRateMetric
from burnbook_widgets import SchedulePlot
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# A scheduler has one method. Each `step()` advances it by one batch and returns the
# learning rate to use now.

# %% tags=["run-me", "rust:linear"]
schedule = lr_scheduler.LinearLrSchedulerConfig(0.9, 0.5, 4).init()
[round(schedule.step(), 4) for _ in range(6)]

# %% [markdown]
# From 0.9 to 0.5 in 4 steps: five rates; the last one stays from then on.
#
# ## By hand
#
# Large steps at first, small ones at the end: half a cosine is a popular curve for that.
#
# $$\eta_k = \eta_{min} + \tfrac{1}{2}(\eta_0 - \eta_{min})(1 + \cos(\pi k / n)) \qquad
# k = 0 \dots n$$

# %% tags=["run-me"]
k = np.arange(51)
by_hand = 0.1 + 0.5 * (0.8 - 0.1) * (1 + np.cos(np.pi * k / 50))

# %% [markdown]
# ## In burnbook


# %% tags=["run-me", "rust:rates"]
def rates(scheduler, count):
    return np.array([scheduler.step() for _ in range(count)])


config = lr_scheduler.CosineAnnealingLrSchedulerConfig(0.8, 50).with_min_lr(
    0.1
)
same(by_hand, rates(config.init(), 51))

# %% [markdown]
# ## See it
#
# After its `n + 1` rates the cosine starts again at the full rate, as in Burn 0.15.

# %% tags=["widget"]
linear = lr_scheduler.LinearLrSchedulerConfig(0.8, 0.1, 50)
exponential = lr_scheduler.ExponentialLrSchedulerConfig(0.8, 0.96)
down = {"linear": linear, "cosine": config, "exponential": exponential}
falling = {name: rates(c.init(), 100) for name, c in down.items()}
Lines(falling, "Decay", x_label="step", y_label="rate")

# %% [markdown]
# | config | the rate of call $i = 0, 1, 2 \dots$ |
# |---|---|
# | `ConstantLr(lr)`, or a number | lr |
# | `LinearLrSchedulerConfig(initial, final, n)` | a straight line from initial to final |
# | `CosineAnnealingLrSchedulerConfig(initial, n)` | half a cosine down to `min_lr`, repeated |
# | `ExponentialLrSchedulerConfig(initial, γ)` | initial · γ^i |
# | `StepLrSchedulerConfig(initial, size)` | initial · γ^⌊i / size⌋: step decay, a staircase |
# | `NoamLrSchedulerConfig(init)` | up in a straight line, then down with 1/√i |
# | `PolynomialLrSchedulerConfig(initial, n)` | down to `final_lr` with a power of what is left |
# | `OneCycleLrSchedulerConfig(highest, n)` | up to the highest rate, then far down |
# | `WarmupCosineLrSchedulerConfig(highest, w, n)` | w steps up in a straight line, then half a cosine down |
# | `ReduceOnPlateauLrSchedulerConfig(initial)` | lower whenever a metric has stopped improving |
# | `LambdaLrScheduler(initial, f)` | initial · f(i), for a function of your own |
#
# The last five are not in Burn.

# %% tags=["run-me", "rust:exponential"]
halving = lr_scheduler.ExponentialLrSchedulerConfig(0.8, 0.5)
stairs = lr_scheduler.StepLrSchedulerConfig(0.8, 2).with_gamma(0.5)
for config in (halving, stairs):
    print(rates(config.init(), 6).round(4))

# %% [markdown]
# Noam's schedule is that of the first transformer. It *warms up*: in the first steps the
# running averages of an optimizer are still unreliable, so these steps are kept small.
# Its rate is scaled by the size of the model, and highest at the end of the warm-up.

# %% tags=["run-me", "rust:noam"]
config = lr_scheduler.NoamLrSchedulerConfig(1.0).with_model_size(64)
noam = rates(config.with_warmup_steps(20).init(), 100)
print(int(noam.argmax()) + 1, f"{noam.max():.4f}")
same([64**-0.5 * 20**-0.5], [noam.max()])

# %% tags=["run-me"]
cycle = lr_scheduler.OneCycleLrSchedulerConfig(0.8, 100)
warm = lr_scheduler.WarmupCosineLrSchedulerConfig(0.8, 10, 100)
power = lr_scheduler.PolynomialLrSchedulerConfig(0.8, 100, power=2.0)
waves = lr_scheduler.LambdaLrScheduler(
    0.8, lambda i: 0.6 + 0.4 * np.cos(i / 5)
)
more = {"one cycle": cycle.init(), "warm-up, cosine": warm.init()}
more |= {"polynomial": power.init(), "function": waves}
shapes = {name: rates(each, 100) for name, each in more.items()}
Lines(shapes, "More curves", x_label="step", y_label="rate")

# %% [markdown]
# A plateau is noticed by the validation loss. The learner tells it after each epoch; in a
# loop of your own you do:

# %% tags=["run-me"]
plateau = lr_scheduler.ReduceOnPlateauLrSchedulerConfig(0.8, patience=1).init()
for loss in (1.0, 0.5, 0.5, 0.5, 0.4):
    plateau.observe(loss)
    print(f"loss {loss}: rate {plateau.step():.2f}")

# %% tags=["run-me"]
stairs = lr_scheduler.StepLrSchedulerConfig(0.03, 25).with_gamma(0.5)
both = {"noam": noam, "stairs": rates(stairs.init(), 100)}
Lines(both, "Noam, and stairs", x_label="step", y_label="rate")

# %% [markdown]
# ## In a loop
#
# Call `step` once per batch, before the step of the optimizer, which takes the rate as an
# argument. `as_scheduler` turns a number into a constant schedule, so this function
# trains with either.

# %% tags=["run-me"]
device = Autodiff(Numpy())
batcher = MnistBatcher(device)
items = [DigitsDataset.train().get(i) for i in range(64)]
batch = batcher.batch(items)


def train(model, lr, steps):
    schedule, adam = lr_scheduler.as_scheduler(lr), optim.AdamConfig().init()
    for _ in range(steps):
        item = model.forward_classification(batch.images, batch.targets)
        grads = GradientsParams.from_grads(item.loss.backward(), model)
        model = adam.step(schedule.step(), model, grads)
    return item.loss.into_scalar()


# %% tags=["run-me"]
model = ModelConfig(10, 32).with_dropout(0.0).init(device)
down = lr_scheduler.CosineAnnealingLrSchedulerConfig(0.01, 30)
print("a number:   loss < 0.5", train(model, 0.01, 30) < 0.5)
print("a schedule: loss < 0.5", train(model, down.init(), 30) < 0.5)

# %% [markdown] tags=["cell:build"]
# ## In the learner
#
# The third argument of `build` is a scheduler; a number there is a constant one. The
# learner calls it once per batch (also for batches whose gradients are only
# accumulated), and never in validation. `LearningRateMetric` shows the rate.

# %% tags=["run-me"]
artifacts = Path("artifacts/schedule")
shutil.rmtree(artifacts, ignore_errors=True)


def loader(dataset, device):
    builder = DataLoaderBuilder(MnistBatcher(device)).batch_size(64)
    return builder.build(dataset)


train_loader = loader(DigitsDataset.train(), device)
valid_loader = loader(DigitsDataset.test(), device.inner)
batches = len(list(train_loader))

# %% tags=["run-me"]
one_epoch = lr_scheduler.LinearLrSchedulerConfig(0.01, 0.001, batches - 1)
learner = (
    LearnerBuilder(artifacts)
    .metric_train_numeric(LearningRateMetric())
    .devices([device])
    .num_epochs(2)
    .build(model, optim.AdamConfig().init(), one_epoch.init())
)
with warnings.catch_warnings(record=True) as told:
    trained = await learner.fit_async(train_loader, valid_loader)
print(told[0].message)

# %% tags=["run-me"]
for epoch, mean in learner.result.history.epochs("Learning Rate", "train"):
    print(f"epoch {epoch}: mean rate {mean:.4f}")

# %% [markdown]
# In the first epoch it decreased from 0.01 to 0.001, in the second it stayed there, as the
# warning said at the start: it is printed here, otherwise it stands above the dashboard.
#
# ## Schedules combined
#
# `Composed` runs several schedules at once and multiplies their rates (or adds or
# averages them): here a warm-up times a step decay.

# %% tags=["run-me"]
warm = lr_scheduler.LinearLrSchedulerConfig(0.25, 1.0, 3)
stairs = lr_scheduler.StepLrSchedulerConfig(0.8, 3).with_gamma(0.5)
both = lr_scheduler.ComposedLrSchedulerConfig().linear(warm).step(stairs)
print(rates(both.init(), 7).round(4))
added = both.with_reduction(lr_scheduler.SchedulerReduction.Sum)
print(rates(added.init(), 7).round(4))

# %% [markdown]
# ## One after the other
#
# `Sequential` switches at *milestones*, and each schedule starts at its own beginning.
# Most large models are trained with a warm-up, then a cosine.

# %% tags=["run-me"]
up = LrSchedulerConfig.Linear(
    lr_scheduler.LinearLrSchedulerConfig(0.02, 0.5, 20)
)
cosine = lr_scheduler.CosineAnnealingLrSchedulerConfig(0.5, 79)
parts = [up, LrSchedulerConfig.Cosine(cosine)]
usual = lr_scheduler.SequentialLrSchedulerConfig(parts, [20])
sequence = {"warm-up, cosine": rates(usual.init(), 100)}
Lines(sequence, "In sequence", x_label="step", y_label="rate")

# %% [markdown]
# The numbers must fit together. Two things go wrong easily: a milestone before the end
# of the warm-up cuts it short, and the rate jumps; and a cosine that is shorter than the
# rest of the run starts again, at the full rate. Both happen with a milestone of 10:

# %% tags=["run-me"]
early = rates(
    lr_scheduler.SequentialLrSchedulerConfig(parts, [10]).init(), 100
)
print("at the milestone:", early[9:11].round(2))
print("when the cosine has ended:", early[89:91].round(2))

# %% [markdown]
# So let the milestone be the number of warm-up steps, and the cosine's `n` the number of
# steps that remain, minus 1.
#
# `SchedulePlot` draws several schedules in one chart. When it runs live, each number of
# each config has a slider, the mouse or the arrow keys read rates, and `plot["usual"]` is
# the config that you ended with; `plot.figure()` is the same for plotly. Move milestone
# 0 of `usual` to see both mistakes.

# %% tags=["widget"]
plot = SchedulePlot({"usual": usual, "linear": linear}, steps=100)
plot.set("linear", "final_lr", 0.0)
plot

# %% [markdown]
# ## A schedule for each group
#
# `ModuleLrScheduler` has one schedule per group of parameters. Its `step` returns a
# `ModuleLearningRate`: the default rate and those of the groups.

# %% tags=["run-me"]
biases = ParamGroup.from_predicate("bias")
each = lr_scheduler.ModuleLrScheduler(0.1).with_group(biases, halving.init())
layer = nn.LinearConfig(1, 1).with_initializer(nn.Initializer.Zeros)
layer, sgd = layer.init(device), optim.SgdConfig().init()
for _ in range(3):
    loss = layer.forward(Tensor[2].ones([1, 1], device))
    grads = GradientsParams.from_grads(loss.backward(), layer)
    layer = sgd.step(each.step(), layer, grads)
same([[-0.3]], layer.weight.val())  # 0.1 + 0.1 + 0.1
same([-1.4], layer.bias.val())  # 0.8 + 0.4 + 0.2

# %% [markdown]
# ## Saving and resuming
#
# The position of a schedule is a number or two, and that is its record. The learner's
# checkpoints keep it beside model and optimizer.

# %% tags=["run-me", "rust:record"]
schedule = usual.init()
rates(schedule, 30)
record = schedule.into_record()
print(record)
resumed = usual.init().load_record(record)
same(rates(schedule, 70), rates(resumed, 70))

# %% [markdown]
# ## Your own
#
# A scheduler has three methods: `step`, `into_record` and `load_record`. If its state is
# just the number of steps, the last two are these:


# %% tags=["run-me"]
class Counted:
    steps = 0

    def into_record(self):
        return self.steps

    def load_record(self, record):
        self.steps = record
        return self


# %% [markdown]
# This one goes up and down in straight lines, a triangle wave:


# %% tags=["run-me", "rust:triangle"]
class Triangle(Counted):
    def __init__(self, low, high, flank):
        self.low, self.high, self.flank = low, high, flank

    def step(self):
        place = abs(self.steps % (2 * self.flank) - self.flank) / self.flank
        self.steps += 1
        return self.high - (self.high - self.low) * place


print(rates(Triangle(0.1, 0.5, 4), 10).round(2))
print("loss < 0.5", train(model, Triangle(0.001, 0.01, 5), 30) < 0.5)

# %% [markdown]
# ## Look inside

# %% tags=["peek"]
peek(lr_scheduler.NoamLrScheduler)

# %% [markdown]
# ## Where it breaks
#
# This one would grow without bound. The config refuses it as soon as it is made.

# %% tags=["raises-exception"]
lr_scheduler.ExponentialLrSchedulerConfig(0.1, 1.5)

# %% [markdown]
# A config is not a scheduler yet:

# %% tags=["raises-exception"]
train(model, linear, 30)

# %% [markdown]
# And a scheduler is not a rate: pass what its `step()` returns.

# %% tags=["raises-exception"]
sgd.step(linear.init(), layer, grads)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.7.1: the rate of call 3 (the fourth), in your head, of
# ExponentialLrSchedulerConfig(0.8, 0.5)
answer = ...
check("4.7.1", answer)

# %% tags=["solution"]
answer = 0.8 * 0.5**3
check("4.7.1", answer)

# %% tags=["exercise"]
# exercise 4.7.2: which call of StepLrSchedulerConfig(1.0, 30), whose gamma is
# 0.1, is the first that gives less than 0.005? (the first of all is 1)
answer = ...
check("4.7.2", answer)

# %% tags=["solution"]
answer = 30 * 3 + 1
check("4.7.2", answer)

# %% tags=["exercise"]
# exercise 4.7.3: a config whose rates are 0.1, 0.2, 0.3, then always 0.4
answer = ...
check("4.7.3", answer)

# %% tags=["solution"]
answer = lr_scheduler.LinearLrSchedulerConfig(0.1, 0.4, 3)
check("4.7.3", answer)


# %% tags=["exercise"]
# exercise 4.7.4: a scheduler that gives 1, 1/2, 1/3, 1/4 and so on
class Harmonic(Counted):
    def step(self):
        return ...


answer = ...  # Harmonic, the class
check("4.7.4", answer)


# %% tags=["solution"]
class Harmonic(Counted):
    def step(self):
        self.steps += 1
        return 1 / self.steps


answer = Harmonic
check("4.7.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Does a schedule step per epoch or per batch?</summary>
#
# Per batch. For a schedule over epochs, multiply its steps by the number of batches in an
# epoch.
# </details>
#
# <details><summary>Why do many schedules begin with a warm-up?</summary>
#
# At first gradients are large, and the running averages of the optimizer are based on few
# of them. One long step in a wrong direction costs more than a few short ones.
# </details>
#
# <details><summary>Why does a checkpoint hold the scheduler?</summary>
#
# Otherwise a resumed run would start the curve again, with the large rate of its
# beginning.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: a number that is a scheduler</b></summary>
#
# In Rust `f64` implements the trait `LrScheduler`, so `build(model, optim, 1e-4)` type
# checks. A Python float has no method `step`; `as_scheduler` wraps it in `ConstantLr`.
# The checks that Burn makes in `init()` happen here when the config is made.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `schedule.step()` gives the rate of this batch; `optimizer.step` takes it.
# - Linear, cosine, exponential, step, Noam, one cycle, plateau and more; a plain number is
#   a constant schedule. A learner warns at the start if a run is longer than its schedule.
# - `Composed` multiplies schedules, `Sequential` runs one after the other,
#   `ModuleLrScheduler` has one per group. Milestones and lengths must fit together.
# - The record is the position on the curve; checkpoints keep it.
#
# **Where this lives.** Everything is in `burnbook/lr_scheduler`. Read
# `burnbook/lr_scheduler/base.py` first, then the curves in
# `burnbook/lr_scheduler/schedules.py`. The learning rate finder is
# `burnbook/train/lr_finder.py`; [chapter 4.6](04_06_learner.ipynb) uses it. The plot is
# `widgets/burnbook_widgets/schedule`, its sliders
# `widgets/burnbook_widgets/number_controls.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `LinearLrSchedulerConfig(a, b, n).init()` | `LinearLrSchedulerConfig::new(a, b, n).init()` | `….init().unwrap()` |
# | `CosineAnnealingLrSchedulerConfig(a, n)` | the same | the same; goes up again after n |
# | `NoamLrSchedulerConfig(init_lr)` | `NoamLrSchedulerConfig::new(init_lr)` | the field is called `factor` |
# | `StepLrSchedulerConfig(a, size)` | – | the same |
# | `ComposedLrSchedulerConfig()`, `Sequential…`, `ModuleLrScheduler` | – | the same |
# | `schedule.into_record()` | `schedule.to_record::<B>()` | `schedule.to_record()` |
#
# Next: [4.8 · Metric](04_08_metric.ipynb)
