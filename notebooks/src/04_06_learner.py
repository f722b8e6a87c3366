# %% [markdown] tags=["goals"]
# # 4.6 · Learner
#
# After this chapter you can
#
# - say what a learner does in an epoch, and set every option of its builder;
# - read what a run leaves behind, resume from a checkpoint, and stop a run early;
# - compare runs, find a learning rate, and search through configs.
#
# About 35 minutes. You should have read [chapter 3.3](03_3_training.ipynb).

# %% tags=["setup"]
import shutil
from pathlib import Path

import numpy as np

import burnbook
from burnbook import nn, record
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.config import Config
from burnbook.data import DataLoaderBuilder, DigitsDataset, PartialDataset
from burnbook.examples.guide.data import MnistBatcher
from burnbook.module import Module
from burnbook.optim import AdamConfig, SgdConfig
from burnbook.lr_scheduler import ConstantLr
from burnbook.train import (
    AccuracyMetric,
    Aggregate,
    Callback,
    CheckpointingStrategy,
    ClassificationOutput,
    ComposedCheckpointingStrategy,
    Direction,
    EarlyStoppingStrategy,
    Ema,
    EvaluatorBuilder,
    EventStore,
    FileApplicationLogger,
    InMemoryMetricLogger,
    IterationSpeedMetric,
    KeepLastNCheckpoints,
    Learner,
    LearnerBuilder,
    LearnerSummary,
    LearningRateMetric,
    LogUniform,
    LossMetric,
    MetricCheckpointingStrategy,
    MetricEarlyStoppingStrategy,
    MetricEntry,
    MetricsRenderer,
    RestoreBest,
    RunStore,
    Split,
    StoppingCondition,
    SupervisedTraining,
    TrainOutput,
    find_learning_rate,
    sweep,
)
from burnbook.train.loop import Fit
from burnbook.train.checkpoint_strategy import Save
from burnbook_widgets import RunsBrowser
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# A model that the learner can train has two steps, one with gradients and one without.
# This one is a single layer, so every run below takes only seconds.


# %% tags=["run-me"]
class Reader(Module):
    linear: nn.Linear

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)

    def valid_step(self, batch):
        output = self.linear.forward(batch.images.flatten(1, 2))
        loss_of = nn.CrossEntropyLossConfig().init(output.device())
        loss = loss_of.forward(output, batch.targets)
        return ClassificationOutput(loss, output, batch.targets)


# %% tags=["run-me"]
device = Autodiff(Numpy())
loaders = DataLoaderBuilder(MnistBatcher()).batch_size(64)
train_loader = loaders.shuffle(7).build(DigitsDataset.train())
valid_loader = loaders.build(DigitsDataset.test())

model = Reader(linear=nn.LinearConfig(784, 10).init(device))
adam = AdamConfig().init()
len(list(train_loader)), len(list(valid_loader))

# %% [markdown]
# The builder needs a folder; `build` needs model, optimizer and learning rate (or a
# [scheduler](04_07_lr_scheduler.ipynb)). Everything else has a default.


# %% tags=["run-me", "cell:num-epochs"]
def builder(name):
    folder = Path("artifacts/learner") / name
    shutil.rmtree(folder, ignore_errors=True)  # a folder holds one run
    return LearnerBuilder(folder).renderer(None)


learner = builder("first").metrics([AccuracyMetric(), LossMetric()])
learner = learner.num_epochs(3).build(model, adam, 1e-3)
trained = learner.fit(train_loader, valid_loader)
learner.result

# %% [markdown]
# ## By hand
#
# In an epoch, there is a training step, a learning rate and a step of the optimizer for
# every batch of the training split; then all batches of the validation split go through
# `model.valid()`, which has no gradients and no dropout.


# %% tags=["run-me"]
def fit_by_hand(model, optim, lr, epochs):
    for epoch in range(1, epochs + 1):
        train_loader.set_epoch(epoch)  # another order in every epoch
        for batch in train_loader.to_device(device):
            output = model.train_step(batch)
            model = optim.step(lr, model, output.grads)
        tested = model.valid()
        items = [tested.valid_step(batch) for batch in valid_loader]
    losses = [item.loss.into_scalar() for item in items]
    return model, losses, [item.targets.dims()[0] for item in items]


by_hand, losses, sizes = fit_by_hand(model, AdamConfig().init(), 1e-3, 3)

# %% [markdown]
# A metric gives one value $v_i$ per batch, which stands for $n_i$ examples. Its value for
# the epoch is their weighted mean,
#
# $$\bar v = \sum_i n_i v_i \,\Big/ \sum_i n_i$$
#
# For a loss, which is already a mean, Burn takes $n_i = 1$, so a short last batch counts
# as much as the others; `LossMetric(equal_batches=True)` does so too.
#
# ## In burnbook

# %% tags=["run-me"]
same(by_hand.linear.weight.val(), trained.linear.weight.val())
history = learner.result.history
same(np.average(losses, weights=sizes), history.epochs("Loss", "valid")[-1][1])

# %% [markdown]
# The same numbers. What the learner adds is everything around this loop: metrics, logs,
# checkpoints, stopping and resuming.
#
# ## See it
#
# Without `.renderer(…)` the display depends on where it runs: a notebook gets the
# dashboard, a terminal moving plots, a file or a pipe one line per epoch
# (`PlainRenderer`). Burn's own line per batch is `CliMetricsRenderer`. `await` keeps the
# buttons responsive.

# %% tags=["widget"]
learner = (
    LearnerBuilder("artifacts/learner/first")
    .metrics([AccuracyMetric(), LossMetric()])
    .num_epochs(6)
    .build(model, adam, 1e-3)
)
trained = await learner.fit_async(train_loader, valid_loader)

# %% [markdown] tags=["cell:options"]
# Dashed lines are validation. When the validation loss rises while the training loss
# keeps falling, the model is memorizing its images: it *overfits*.
#
# ## The options
#
# | in the book | here | default |
# |---|---|---|
# | training metric | `.metric_train(metric)` | none |
# | validation metric | `.metric_valid(metric)` | none |
# | … with a plot | `.metric_train_numeric(metric)`, `.metric_valid_numeric(metric)` | none |
# | metric logger | `.metric_loggers(train, valid)` | files |
# | renderer | `.renderer(renderer)`; `None` shows nothing | depends on where it runs |
# | grad accumulation | `.grads_accumulation(n)` | a step per batch |
# | file checkpointer | `.with_file_checkpointer(recorder)` | no checkpoints |
# | num epochs | `.num_epochs(n)` | 1 |
# | devices | `.devices([device, …])` | the model's |
# | checkpoint | `.checkpoint(epoch)` | start from the beginning |
# | application logging | `.with_application_logger(logger)`; `None` for none | `experiment.log` |
#
# The book's table ends here. Burn, newer Burn and `burnbook` have more:
#
# | purpose | here | default |
# |---|---|---|
# | which checkpoints are kept | `.with_checkpointing_strategy(strategy)` | last two, and the best |
# | stopping before the last epoch | `.early_stopping(strategy)` | none |
# | a handle to stop and pause | `.interrupter()`, `.with_interrupter(handle)` | – |
# | a table at the end | `.summary()` | none |
# | metrics for both splits | `.metrics([…])`, `.metrics_text([…])` | – |
# | less memory, more time | `.gradient_checkpointing()` | off |
# | what computes the steps | `.with_training_strategy(strategy)` | one device |
# | where metrics are computed | `.metric_device(device)` | on the model's device |
#
# ## Metrics and loggers
#
# A *numeric* metric is plotted and averaged; any metric can be shown as text. Values are
# logged to files, or wherever you choose: a logger is told about epochs and receives
# every entry.


# %% tags=["run-me", "cell:train-metric"]
kept = InMemoryMetricLogger(), InMemoryMetricLogger()
learner = (
    builder("memory")
    .metric_train(IterationSpeedMetric())  # text
    .metric_train_numeric(LearningRateMetric())
    .metric_valid_numeric(AccuracyMetric())
    .metric_loggers(*kept)
    .with_application_logger(None)
    .build(model, adam, 1e-3)
)
_ = learner.fit(train_loader, valid_loader)
print(kept[0].read_numeric("Learning Rate", 1)[:2])
print("a folder:", Path("artifacts/learner/memory").exists())

# %% [markdown]
# No files were asked for, so none were written. [Chapter 4.8](04_08_metric.ipynb) has all
# metrics, and how to write one.
#
# ## What a run leaves behind
#
# Two epochs, with checkpoints in gzipped MessagePack, give the book's folder:

# %% tags=["run-me", "cell:file-checkpointer"]
gzip = record.NamedMpkGzFileRecorder(record.FullPrecisionSettings)


def keeping(name, recorder=gzip):
    run = builder(name).metrics([AccuracyMetric(), LossMetric()])
    return run.with_file_checkpointer(recorder)


learner = keeping("tree").num_epochs(2).build(model, adam, 1e-3)
trained = learner.fit(train_loader, valid_loader)


# %% tags=["run-me", "cell:artifacts"]
def tree(folder, indent=""):
    for path in sorted(folder.iterdir()):
        print(indent + path.name)
        if path.is_dir():
            tree(path, indent + "    ")


folder = Path("artifacts/learner/tree")
tree(folder)

# %% [markdown]
# A log has one line per batch: the value, a comma, and how many examples it stands for.
# The last batch is smaller.

# %% tags=["run-me"]
log = (folder / "train/epoch-1/Accuracy.log").read_text().splitlines()
print(len(log), "lines; the first:", log[0])
print("weights:", [int(line.split(",")[1]) for line in log][-3:])

# %% [markdown]
# `experiment.log` is the log of the application, in Burn's words: a time, a level, the
# source, and what happened. Without the times:

# %% tags=["run-me"]
lines = (folder / "experiment.log").read_text().splitlines()
for line in lines:
    if "checkpoint" in line:
        print(line.partition("Z")[2])

# %% [markdown]
# `FileApplicationLogger(path)` puts it elsewhere. The folder is plain files: copy it,
# synchronize it, delete it. Rust Burn writes the same, and `burnbook` reads both.

# %% tags=["run-me", "cell:application-logging"]
elsewhere = FileApplicationLogger("artifacts/learner/events.log")
learner = builder("quiet").with_application_logger(elsewhere)
_ = learner.build(model, adam, 1e-3).fit(train_loader, valid_loader)
print(elsewhere.path.name, elsewhere.path.exists())

# %% [markdown]
# ## Resuming
#
# A checkpoint holds model, optimizer and scheduler. Here are four epochs in one run, and
# two and two:

# %% tags=["run-me"]
whole = keeping("whole").num_epochs(4).build(model, adam, 1e-3)
whole = whole.fit(train_loader, valid_loader)

first = keeping("parts").num_epochs(2).build(model, adam, 1e-3)
_ = first.fit(train_loader, valid_loader)

# %% tags=["run-me", "cell:checkpoint"]
again = LearnerBuilder("artifacts/learner/parts").renderer(None)
again.metrics([AccuracyMetric(), LossMetric()]).with_file_checkpointer(gzip)
again = again.checkpoint(2).num_epochs(4).build(model, adam, 1e-3)
parts = again.fit(train_loader, valid_loader)
same(whole.linear.weight.val(), parts.linear.weight.val())
[path.name for path in sorted(Path("artifacts/learner/parts/train").iterdir())]

# %% [markdown]
# They are equal to the last bit, because the recorder keeps all 32 bits.
# `CompactRecorder` keeps 16: the files are half as large, and a resumed run deviates a
# little. `.checkpoint()` without a number takes the newest complete checkpoint, and
# starts from the beginning if there is none; so a script that uses it can be killed and
# restarted until it has finished.
#
# In Burn 0.15 a resumed run overwrites the logs of epoch 1 with those of its first
# epoch, forgets how long early stopping has waited, and loads on the default device.
# Here it appends to the right logs (newer Burn does, too), shows the strategies the
# earlier epochs, and loads on the model's device.
#
# ## Which checkpoints are kept
#
# After each epoch a *strategy* looks at the metrics and returns actions. To see what it
# does, no training is needed: an event store with made-up losses is enough.

# %% tags=["run-me"]
VALID_LOSSES = [0.9, 0.5, 0.4, 0.6, 0.7, 0.8]


def kept_by(strategy):
    log, kept = InMemoryMetricLogger(), set()
    store = EventStore([], [log])
    for epoch, loss in enumerate(VALID_LOSSES, start=1):
        store.start_epoch(epoch, Split.Valid)
        log.log(MetricEntry("Loss", "", f"{loss},1"))
        for action in strategy.checkpointing(epoch, store):
            if action == Save():
                kept.add(epoch)
            else:
                kept.remove(action.epoch)
        print(f"epoch {epoch}, loss {loss}: keeps", sorted(kept))


# %% [markdown]
# This is what the learner does by default: it keeps the last two, and the best.

# %% tags=["run-me"]
lowest_loss = (LossMetric, Aggregate.Mean, Direction.Lowest, Split.Valid)
last, best = KeepLastNCheckpoints(2), MetricCheckpointingStrategy(*lowest_loss)
kept_by(ComposedCheckpointingStrategy(last, best))


# %% [markdown]
# A strategy of your own has one method.


# %% tags=["run-me"]
class EverySecond(CheckpointingStrategy):
    def checkpointing(self, epoch, store):
        return [Save()] if epoch % 2 == 0 else []


kept_by(EverySecond())
learner = keeping("second", record.CompactRecorder()).num_epochs(5)
learner = learner.with_checkpointing_strategy(EverySecond())
_ = learner.build(model, adam, 1e-3).fit(train_loader, valid_loader)
tree(Path("artifacts/learner/second/checkpoint"))

# %% [markdown]
# The book's listing says `.mpk.gz`; `CompactRecorder` has written plain `.mpk` since Burn
# 0.12, and so does ours.
#
# ## Early stopping
#
# With a learning rate of zero nothing can improve. The learner notices, and says why it
# stopped.

# %% tags=["run-me"]
patience = StoppingCondition.NoImprovementSince(n_epochs=2)
stopping = MetricEarlyStoppingStrategy(*lowest_loss, patience)
learner = builder("early").metrics([LossMetric()]).num_epochs(100)
learner = learner.early_stopping(stopping).build(model, adam, ConstantLr(0))
_ = learner.fit(train_loader, valid_loader)
print(learner.result.epochs, "epochs;", learner.result.interrupted)

# %% [markdown]
# ## Callbacks
#
# A callback sees the training after each step or epoch, or at its end, and may return
# another model. `Ema` keeps a moving average of the weights, `RestoreBest` goes back to
# the best epoch, `AveragedWeights` averages the last epochs (SWA); a plain function does
# as well. They run in the order in which they are given, and checkpoints keep their
# state. Newer Burn has hooks that only look.


# %% tags=["run-me"]
def tell(state):
    print(f"epoch {state.epoch}: loss {state.metrics['valid']['Loss']:.3f}")


learner = builder("callbacks").metrics([LossMetric()]).num_epochs(2)
learner = learner.callback(Ema(0.9)).callback(RestoreBest("Loss"))
learner = learner.callback(tell, on="epoch").build(model, adam, 1e-3)
averaged = learner.fit(train_loader, valid_loader)

# %% [markdown]
# What a callback collects is part of a checkpoint if it gives it as `into_record`
# (numbers, texts, lists, dicts, tensors, arrays); `load_record` takes it back when a
# training resumes, arrays and tensors as `TensorData`.


# %% tags=["run-me"]
class Gains(Callback):
    def reset(self):
        self.means = []

    def on_epoch(self, state):
        self.means.append(state.metrics["train"]["Loss"])

    def into_record(self):
        return {"means": np.array(self.means)}

    def load_record(self, record, model):
        self.means = list(np.asarray(record["means"]))


# %% tags=["run-me"]
gains_folder = Path("artifacts/learner/gains")
shutil.rmtree(gains_folder, ignore_errors=True)
for epochs in (1, 2):
    gains = Gains()
    made = LearnerBuilder(gains_folder).renderer(None)
    made = made.metrics([LossMetric()]).callback(gains).num_epochs(epochs)
    made = made.with_file_checkpointer(record.CompactRecorder()).checkpoint()
    _ = made.build(model, adam, 1e-3).fit(train_loader)  # without validation
    print(epochs, len(gains.means))

# %% [markdown]
# `fit(train)` leaves validation out: its metrics are not measured, and early stopping
# or a callback that asks for one is refused before the first batch.
#
# What `fit` returns is the best average; the learner holds what was trained, and `fit`
# again goes on from there. Both can be trained on: they have gradients, and dropout is at
# work. For inference there is `averaged.valid()`. The history of a run is data like any
# other:

# %% tags=["run-me"]
_ = learner.fit(train_loader, valid_loader, num_epochs=1)
history = learner.result.history.to_dict()
print(learner.epochs, list(history))

# %% [markdown]
# ## Several batches per step
#
# `grads_accumulation(n)` *sums* the gradients of n batches before a step, as Burn does; a
# group left incomplete at the end of an epoch takes none. For losses that are means, the
# sum is n times the gradient of one large batch. Plain SGD takes n times as large a step
# then, so two batches of 32 at *half the rate* are one batch of 64:

# %% tags=["run-me", "cell:grad-accumulation"]
images = PartialDataset(DigitsDataset.train(), 0, 640)
sixty_four = loaders.build(images)
thirty_two = loaders.batch_size(32).build(images)
sgd = SgdConfig().init()

one = builder("one").build(model, sgd, 0.1).fit(sixty_four, valid_loader)
two = builder("two").grads_accumulation(2).build(model, sgd, 0.05)
two = two.fit(thirty_two, valid_loader)
same(one.linear.weight.val(), two.linear.weight.val())


# %% [markdown]
# Not so with Adam. It divides a gradient by its typical size
# ([chapter 4.5](04_05_optimizer.ipynb)), so its step does not depend on the scale of the
# gradients: a sum and a mean give the same step. Halving the rate would only halve the
# step. Keep the rate of the large batch:


# %% tags=["run-me"]
def first_step(name, batches, rate):
    first = PartialDataset(DigitsDataset.train(), 0, 64)
    loader = loaders.batch_size(64 // batches).build(first)
    run = builder(name).grads_accumulation(batches).build(model, adam, rate)
    after = run.fit(loader, valid_loader).linear.weight.val()
    return (after - model.linear.weight.val()).abs().mean().into_scalar()


large_batch = first_step("adam", 1, 1e-3)
for rate in (1e-3, 5e-4):
    share = first_step("sums", 2, rate) / large_batch
    print(
        f"rate {rate}: a step {share:.1f} times as long as for a batch of 64"
    )

# %% [markdown]
# The same holds for every optimizer that rescales gradients (RMSProp, AdaGrad, Adam,
# AdamW), as long as they are not clipped or mixed with weight decay.
#
# ## Several devices
#
# Each round processes one batch per device, at the same time; the first device sums the
# gradients and takes the step. So two devices are like two batches per step, and two
# backends on this computer are enough to see it.

# %% tags=["run-me", "cell:devices"]
both = builder("devices").devices([Numpy(), Numpy()]).build(model, sgd, 0.05)
both = both.fit(thirty_two, valid_loader)
same(one.linear.weight.val(), both.linear.weight.val())

# %% [markdown]
# In Burn 0.15 the outputs of a round arrive in the order in which devices finish, so the
# last digits change from run to run. Here they are summed in the order of the batches.
# Newer Burn writes `.with_training_strategy(TrainingStrategy.MultiDevice([…]))`.
#
# ## A renderer of your own, and the interrupter
#
# A renderer is told about every event; it overrides the methods that it needs.
# `run.control` is the interrupter, through which any thread, button or signal can stop
# or pause the run.


# %% tags=["run-me", "cell:renderer"]
class Dots(MetricsRenderer):
    def start(self, run):
        self.run, self.text = run, ""

    def render_train(self, progress):
        self.text += "."
        if self.text.count(".") == 30:
            self.run.control.stop("thirty batches are enough")

    def end_epoch(self, epoch, split, means):
        self.text += f" {split} {epoch} | "


# %% tags=["run-me"]
dots = Dots()
learner = builder("dots").metrics([LossMetric()]).renderer(dots).num_epochs(9)
learner = learner.build(model, adam, 1e-3)
stopped = learner.fit(train_loader, valid_loader)
print(dots.text)
print(learner.result)
print("the model so far:", type(stopped).__name__)

# %% [markdown]
# As in Burn, an interrupted epoch is not validated and leaves no checkpoint. The reason
# is an addition of ours (newer Burn has it, too); it is also in the log.
#
# `run.control.save_checkpoint()` asks for a checkpoint at the end of the epoch, which no
# strategy deletes. The dashboard has buttons for all of these, and one for the norms of
# weights and gradients in each layer. Its button *Export HTML* saves what it shows as
# one page without scripts. `PlotlyRenderer()` draws a plotly figure instead.
#
# A run is named after its folder, unless `.name("baseline")` in the builder gives it a
# name. After a reload of the page its panel comes back by itself; in any cell
# `burnbook_widgets.live("baseline")` shows it again, also after the end, and
# `live("baseline").export("run.html")` saves it. A second training into the same folder
# is refused; `start(train, valid, replace=True)` stops the first one.
#
# ## Three ways to wait
#
# | | meanwhile |
# |---|---|
# | `learner.fit(train, valid)` | the page waits; Ctrl-C (or ■) stops cleanly |
# | `await learner.fit_async(train, valid)` | the page responds: buttons work |
# | `learner.start(train, valid)` | you continue to work; `wait()` returns the model |

# %% tags=["run-me"]
learner = builder("thread").metrics([LossMetric()]).num_epochs(1000)
learner = learner.build(model, adam, 1e-3)
handle = learner.start(train_loader, valid_loader)
handle.pause()
print(handle, "· done:", handle.done)
handle.resume()
handle.stop("seen enough")
_ = handle.wait()
print(handle, "·", learner.result.interrupted)

# %% [markdown]
# ## A summary
#
# `.summary()` shows this table at the end of a run. It is computed from the logs, so it
# can be shown again at any time.

# %% tags=["run-me", "nbval-ignore-output"]
LearnerSummary("artifacts/learner/whole", ["Accuracy", "Loss"])

# %% [markdown]
# Burn 0.15 lists metrics in no fixed order and counts epochs that an older run has left
# in the folder. Here they are sorted, and a run's summary ends with its last epoch.
#
# ## Looking at old runs
#
# `RunStore` reads every run below a folder, from Rust or Python. In a terminal,
# `burnbook runs artifacts/learner` prints the table.


# %% tags=["run-me"]
class RunConfig(Config):
    learning_rate: float = 1e-3


def train(config, folder, epochs):
    learner = LearnerBuilder(folder).renderer(None).num_epochs(epochs)
    learner.metrics([AccuracyMetric(), LossMetric()])
    learner.with_file_checkpointer(gzip).checkpoint()
    learner = learner.build(model, adam, config.learning_rate)
    learner.fit(train_loader, valid_loader)


# %% tags=["run-me"]
compared = Path("artifacts/learner/compared")
shutil.rmtree(compared, ignore_errors=True)
for name, rate in (("slow", 1e-5), ("quick", 1e-3)):
    (compared / name).mkdir(parents=True)
    config = RunConfig().with_learning_rate(rate)
    config.save(compared / name / "config.json")
    train(config, compared / name, 2)

store = RunStore(compared)
print(store["slow"], store["quick"])
print("best:", store.best("Accuracy").name)

# %% [markdown]
# To explore them, select runs in a `RunsBrowser`: it shows what differs between their
# configs, and their curves in one chart. Each control can also be set from code;
# `store.compare("slow", "quick")` gives the table alone.

# %% tags=["widget", "nbval-ignore-output"]
browser = RunsBrowser(store)
browser.choose("slow", "quick")
browser

# %% [markdown]
# The dashboard of a run in progress does the same: its button *Other runs* draws the
# newest runs in the same folder behind the live curves.
#
# A store also filters, sorts, exports and deletes.

# %% tags=["run-me"]
print([run.name for run in store.sort("Loss")])
good = store.filter(metric=("Accuracy", "valid", ">", 80))
print([run.name for run in good], len(store.rows(per="epoch")), "rows")
path = store.export_csv(compared / "runs.csv")
print(path.read_text().partition("\n")[0][:48], "…")
store.delete("slow")
print([run.name for run in RunStore(compared)])

# %% [markdown]
# ## Which learning rate?
#
# Let the rate grow with every batch, from far too small to far too large, and watch the
# loss: it stays, then falls, then explodes. The suggestion stands two thirds down the
# longest fall; `found.steepest` is where it falls fastest, which one lucky batch can
# decide. The model itself is not changed.

# %% tags=["run-me"]
found = find_learning_rate(model, adam, train_loader, lowest=1e-5, highest=1)
print(f"suggested rate: {found.suggestion:.0e}")
falls = {"loss, smoothed": found.smoothed}
Lines(falls, "A rate for each batch", found.rates, "rate", "loss", log=True)

# %% [markdown]
# ## Many configs
#
# A *sweep* trains many configs for an epoch, keeps the better ones, trains these longer,
# and so on: *successive halving*. Most of the time is spent on the best.

# %% tags=["run-me"]
home = Path("artifacts/learner/sweep")
shutil.rmtree(home, ignore_errors=True)
space = {"learning_rate": LogUniform(1e-6, 1e-2)}
tried = sweep(RunConfig(), space, train, folder=home, trials=6, max_epochs=3)
print([trial.epochs for trial in tried.trials], "epochs each")
print(f"best rate: {tried.best_config.learning_rate:.1e}")
print(len(tried.runs), "runs; done:", tried.done)

# %% [markdown]
# Calling it again with the same folder resumes where it stopped.
#
# ## The form of newer Burn
#
# From Burn 0.20 on the data come first, and a `Learner` is only model, optimizer and
# rate. The result holds the model for inference, `valid()` already called, where `fit`
# returns one to train on. An *evaluator* measures it on data of
# your choice (in serious work a third set; here there are only two).

# %% tags=["run-me"]
learner = Learner(model, adam, 1e-3)
shutil.rmtree("artifacts/learner/newer", ignore_errors=True)
training = (
    SupervisedTraining("artifacts/learner/newer", train_loader, valid_loader)
    .metrics([AccuracyMetric(), LossMetric()])
    .renderer(None)
)
result = training.launch(learner)
test = EvaluatorBuilder("artifacts/learner/newer").renderer(None)
test = test.metrics([AccuracyMetric()]).build(result.model)
found = test.eval("digits", valid_loader)
print("accuracy > 80 %", "✔" if found.means["Accuracy"] > 80 else "✘")

# %% [markdown]
# ## Look inside
#
# The core of the learner: one epoch.

# %% tags=["peek"]
peek(Fit._epoch)

# %% [markdown]
# ## Where it breaks
#
# The config of an optimizer is not an optimizer yet.

# %% tags=["raises-exception"]
builder("wrong").build(model, AdamConfig(), 1e-3)

# %% [markdown]
# You can only resume from an epoch whose checkpoint was kept. The error lists them.

# %% tags=["raises-exception"]
again = LearnerBuilder("artifacts/learner/second").renderer(None).num_epochs(9)
again.with_file_checkpointer(record.CompactRecorder()).checkpoint(3)
again.build(model, adam, 1e-3).fit(train_loader, valid_loader)

# %% [markdown]
# If the loss becomes NaN, training stops at once; the error says what broke, when, and
# what to try. Burn continues to the end, with NaN.

# %% tags=["raises-exception"]
wild = builder("wild").metrics([LossMetric()]).build(model, sgd, 1e38)
wild.fit(train_loader, valid_loader)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.6.1: the steps of the optimizer in 10 epochs of 23 batches with
# grads_accumulation(4)
answer = ...
check("4.6.1", answer)

# %% tags=["solution"]
answer = 10 * (23 // 4)
check("4.6.1", answer)

# %% tags=["exercise"]
# exercise 4.6.2: nothing was said about checkpoints, and the validation
# losses are 0.8, 0.6, 0.7, 0.65, 0.9. Which epochs are kept? (a list)
answer = ...
check("4.6.2", answer)

# %% tags=["solution"]
answer = [2, 4, 5]
check("4.6.2", answer)


# %% tags=["exercise"]
# exercise 4.6.3: stop as soon as the validation accuracy is 90 % or more
class Goal(EarlyStoppingStrategy):
    def should_stop(self, epoch, store):
        return ...


answer = ...  # Goal()
check("4.6.3", answer)


# %% tags=["solution"]
class Goal(EarlyStoppingStrategy):
    def should_stop(self, epoch, store):
        found = store.find_metric("Accuracy", epoch, split=Split.Valid)
        return found is not None and found >= 90


answer = Goal()
check("4.6.3", answer)


# %% tags=["exercise"]
# exercise 4.6.4: a renderer whose `best` is the highest validation accuracy
class Best(MetricsRenderer):
    best = 0.0


answer = ...  # Best()
check("4.6.4", answer)


# %% tags=["solution"]
class Best(MetricsRenderer):
    best = 0.0

    def end_epoch(self, epoch, split, means):
        if split == "valid":
            self.best = max(self.best, means["Accuracy"])


answer = Best()
check("4.6.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why is the accuracy of an epoch not the plain mean of its lines?</summary>
#
# The last batch may be smaller. Each line is weighted by the number of its examples.
# </details>
#
# <details><summary>What must a checkpoint hold besides the weights?</summary>
#
# The running averages of the optimizer, and the position in the learning rate schedule.
# Otherwise the resumed run would differ from an uninterrupted one.
# </details>
#
# <details><summary>When would you not use a learner?</summary>
#
# When the loop itself is different: two models against each other, several optimizers,
# data that depend on the model. Then
# [write your own loop](05_custom_training_loop.ipynb).
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: a builder that is changed in place</b></summary>
#
# In Rust every call consumes the builder and returns it, so it is written as one chain,
# and the compiler knows the types of all metrics and data. In Python each option changes
# the builder and returns the same one: write a chain or single lines, as you like. What
# Rust's types check is checked by `build`, before anything is trained.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - An epoch: steps over the training split, validation, checkpoint, early stopping.
# - `LearnerBuilder(folder)` collects what to measure, keep and show; `build(model,
#   optim, lr)` checks it; `fit`, `await fit_async` and `start` train.
# - The folder holds logs and checkpoints, in Burn's layout.
# - `.checkpoint()` resumes; with all 32 bits kept, as if there had been no interruption.
# - `RunStore`, `find_learning_rate` and `sweep` work on many runs.
#
# **Where this lives.** Everything is in `burnbook/train`:
#
# - Building and training: `burnbook/train/builder.py`, then `burnbook/train/learner.py`
#   and `burnbook/train/loop.py`.
# - Checkpoints: `burnbook/train/checkpoint.py`, `burnbook/train/checkpoint_strategy.py`;
#   their bytes in `burnbook/record/bincode_state.py`.
# - Showing: `burnbook/train/renderer` in the terminal,
#   `widgets/burnbook_widgets/training` in a notebook.
# - Old runs: `burnbook/train/runs`, and `burnbook/cli/runs.py` for the command.
# - Many configs: `burnbook/train/sweep`.
# - The exercises: `widgets/burnbook_widgets/chapters/learning.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `LearnerBuilder(dir)` | `LearnerBuilder::new(dir)` | `SupervisedTraining::new(dir, train, valid)` |
# | `.metric_train_numeric(m)` | the same | the same |
# | `.metrics([a, b])` | – | `.metrics((a, b))` |
# | `.metric_loggers(train, valid)` | the same | `.with_metric_logger(logger)` |
# | `.with_file_checkpointer(recorder)` | the same | `.with_default_checkpointers()` |
# | `.devices([a, b])` | `.devices(vec![a, b])` | `.with_training_strategy(…)` |
# | `.early_stopping(strategy)`, `.checkpoint(n)`, `.summary()` | the same | the same |
# | `.build(model, optim, lr).fit(train, valid)` | the same | `.launch(Learner::new(model, optim, lr))` |
# | `await fit_async`, `start().wait()` | – | – |
# | `control.stop("why")` | `interrupter.stop()` | `interrupter.stop(reason)` |
# | `EvaluatorBuilder(dir)` | – | the same |
# | `RunStore`, `find_learning_rate`, `sweep` | – | – |
#
# Next: [4.7 · Learning rate scheduler](04_07_lr_scheduler.ipynb)
