# %% [markdown] tags=["goals"]
# # 3.3, once more · The training page in all its versions
#
# After this page you can
#
# - read the training page of the book in any of its versions, old or new;
# - say what changed from each to the next, and why;
# - turn code for one version of Burn into code for another.
#
# About 15 minutes. You should have read [chapter 3.3](03_3_training.ipynb).

# %% tags=["setup", "cell:forward-classification"]
import difflib
import inspect
from itertools import pairwise
from pathlib import Path

import numpy as np

import burnbook
from burnbook.data import Batcher, DataLoaderBuilder, DigitsDataset
from burnbook.examples.guide.data import MnistBatch, MnistBatcher
from burnbook.examples.guide.model import Model, ModelConfig
from burnbook.examples.guide.training import (
    TrainingConfig,
    create_artifact_dir,
)
from burnbook.nn import CrossEntropyLoss, CrossEntropyLossConfig
from burnbook.optim import AdamConfig
from burnbook.prelude import *
from burnbook.record import CompactRecorder, ModuleRecord
from burnbook.train import (
    AccuracyMetric,
    ClassificationOutput,
    Learner,
    LearnerBuilder,
    LossMetric,
    SupervisedTraining,
)
from burnbook_widgets.learn import check, peek
from burnbook_widgets.pictures import Bars

burnbook.seed(0)

# %% [markdown]
# The book's page about training has been rewritten several times, as Burn itself changed.
# A search on the web finds all of its versions side by side. Below they are, from the
# first to today's: each in one cell, each runnable, for one epoch on the small digits.
# Read those that you need; they do not depend on each other.
#
# | version | what is new in it |
# |---|---|
# | [up to 0.11](#Up-to-0.11) | the first one; a model is made without a device |
# | [0.15](#0.15) | models and losses are made *on a device*; the folder is emptied first |
# | [0.17](#0.17) | the batcher gets the device with every batch; the Chinese book shows this one |
# | [0.19](#0.19) | `fit` returns a result, and the model is in it |
# | [0.20](#0.20) | data and metrics first, then `launch` a learner |
# | [0.22](#0.22) | no recorders: the ending of a file says its format |
#
# What is the same in all of them comes first.


# %% tags=["run-me"]
device = Autodiff(Numpy())
train_set, test_set = DigitsDataset.train(), DigitsDataset.test()
config = TrainingConfig(ModelConfig(10, 64), AdamConfig(), num_epochs=1)
config = config.with_num_workers(2).with_learning_rate(1e-3)


def loader(batcher, dataset):
    builder = DataLoaderBuilder(batcher).batch_size(config.batch_size)
    builder = builder.shuffle(config.seed).num_workers(config.num_workers)
    return builder.build(dataset)


len(train_set), len(test_set)

# %% [markdown]
# Each version runs in a folder of its own.

# %% tags=["run-me"]
home = Path("artifacts/versions")
versions, models = {}, {}


def run(version, train):
    versions[version] = train
    models[version] = train(home / version)
    print(version, "gives a model on", *models[version].devices())


# %% [markdown]
# ## Up to 0.11
#
# A loss is made with a pad token, or with none. In Rust, `init::<B>()` names the backend
# as a type, and its default device is used; here a backend is an object and goes in
# parentheses. Names were in capitals then: `MNISTBatcher`. It keeps its device, so
# there are two, one with gradients and one without.


# %% tags=["run-me", "cell:steps"]
class MNISTBatcher(Batcher):
    def __init__(self, device):
        self.device = device

    def batch(self, items):
        pixels = np.stack([item.image for item in items])
        images = Tensor[3].from_numpy(pixels, self.device)
        labels = [item.label for item in items]
        targets = Tensor[1, Int].from_ints(labels, self.device)
        return MnistBatch((images / 255 - 0.1307) / 0.3081, targets)


# %% tags=["run-me", "version", "cell:train"]
def forward_0_11(self, images, targets):
    output = self.forward(images)
    loss = CrossEntropyLoss.new(None).forward(output, targets)
    return ClassificationOutput(loss, output, targets)


def train_0_11(artifact_dir):
    Model.forward_classification = forward_0_11
    artifact_dir.mkdir(parents=True, exist_ok=True)
    config.save(artifact_dir / "config.json")
    device.seed(config.seed)

    batcher_train = MNISTBatcher(device)
    batcher_valid = MNISTBatcher(device.inner)
    train = loader(batcher_train, train_set)
    valid = loader(batcher_valid, test_set)

    model, optim = config.model.init(device), config.optimizer.init()
    learner = (
        LearnerBuilder(artifact_dir)
        .metric_train_numeric(AccuracyMetric())
        .metric_valid_numeric(AccuracyMetric())
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .with_file_checkpointer(CompactRecorder())
        .devices([device])
        .num_epochs(config.num_epochs)
        .renderer(None)
        .build(model, optim, config.learning_rate)
    )
    model = learner.fit(train, valid)
    model.save_file(artifact_dir / "model", CompactRecorder())
    return model


# %% [markdown]
# One line is not the book's: `renderer(None)` saves this page from six dashboards.

# %% tags=["run-me"]
run("0.11", train_0_11)
sorted(path.name for path in (home / "0.11").iterdir())

# %% [markdown]
# ## 0.15
#
# The version that this book follows. Everything that holds numbers is made on a device,
# so a program can use several; a loss, like a model, has a config. Results of an earlier
# run are deleted before they can mix with new ones, and the learner ends with a summary.


# %% tags=["run-me", "version"]
def forward_0_15(self, images, targets):
    output = self.forward(images)
    loss = CrossEntropyLossConfig().init(output.device())
    loss = loss.forward(output, targets)
    return ClassificationOutput(loss, output, targets)


def train_0_15(artifact_dir):
    Model.forward_classification = forward_0_15
    create_artifact_dir(artifact_dir)
    config.save(artifact_dir / "config.json")
    device.seed(config.seed)

    batcher_train = MnistBatcher(device)
    batcher_valid = MnistBatcher(device.inner)
    train = loader(batcher_train, train_set)
    valid = loader(batcher_valid, test_set)

    model, optim = config.model.init(device), config.optimizer.init()
    learner = (
        LearnerBuilder(artifact_dir)
        .metric_train_numeric(AccuracyMetric())
        .metric_valid_numeric(AccuracyMetric())
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .with_file_checkpointer(CompactRecorder())
        .devices([device])
        .num_epochs(config.num_epochs)
        .summary()
        .renderer(None)
        .build(model, optim, config.learning_rate)
    )
    model = learner.fit(train, valid)
    model.save_file(artifact_dir / "model", CompactRecorder())
    return model


# %% tags=["run-me"]
run("0.15", train_0_15)

# %% [markdown] tags=["cell:edition-newer-training-train"]
# ## 0.17
#
# A batcher that keeps a device puts every batch there, even when a learner trains on four
# devices. So the device moved into the call, `batch(items, device)`: whoever asks for
# the batch says where it is needed. One batcher is enough, and the learner itself asks
# for validation batches without gradients.


# %% tags=["run-me", "version"]
def train_0_17(artifact_dir):
    Model.forward_classification = forward_0_15
    create_artifact_dir(artifact_dir)
    config.save(artifact_dir / "config.json")
    device.seed(config.seed)

    batcher = MnistBatcher()
    train = loader(batcher, train_set)
    valid = loader(batcher, test_set)

    model, optim = config.model.init(device), config.optimizer.init()
    learner = (
        LearnerBuilder(artifact_dir)
        .metric_train_numeric(AccuracyMetric())
        .metric_valid_numeric(AccuracyMetric())
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .with_file_checkpointer(CompactRecorder())
        .devices([device])
        .num_epochs(config.num_epochs)
        .summary()
        .renderer(None)
        .build(model, optim, config.learning_rate)
    )
    model = learner.fit(train, valid)
    model.save_file(artifact_dir / "model", CompactRecorder())
    return model


# %% tags=["run-me"]
run("0.17", train_0_17)

# %% [markdown]
# ## 0.19
#
# `fit` no longer returns a model but a result with the model in it, and that model is
# ready for inference: without gradients, `valid()` already called. Here `fit` returns
# the model, as the older versions do, and leaves the result in `learner.result`.


# %% tags=["run-me", "version", "cell:result"]
def train_0_19(artifact_dir):
    Model.forward_classification = forward_0_15
    create_artifact_dir(artifact_dir)
    config.save(artifact_dir / "config.json")
    device.seed(config.seed)

    batcher = MnistBatcher()
    train = loader(batcher, train_set)
    valid = loader(batcher, test_set)

    model, optim = config.model.init(device), config.optimizer.init()
    learner = (
        LearnerBuilder(artifact_dir)
        .metric_train_numeric(AccuracyMetric())
        .metric_valid_numeric(AccuracyMetric())
        .metric_train_numeric(LossMetric())
        .metric_valid_numeric(LossMetric())
        .with_file_checkpointer(CompactRecorder())
        .devices([device])
        .num_epochs(config.num_epochs)
        .summary()
        .renderer(None)
        .build(model, optim, config.learning_rate)
    )
    learner.fit(train, valid)
    result = learner.result
    model = result.model.valid()
    model.save_file(artifact_dir / "model", CompactRecorder())
    return model


# %% tags=["run-me"]
run("0.19", train_0_19)

# %% [markdown]
# ## 0.20
#
# What is trained (model, optimizer, rate: the *learner*) is separate from how it is
# trained (data, metrics, epochs: the *training*), because there are other ways to train
# than on labeled examples. A metric is named once, for both splits.


# %% tags=["run-me", "version"]
def train_0_20(artifact_dir):
    Model.forward_classification = forward_0_15
    create_artifact_dir(artifact_dir)
    config.save(artifact_dir / "config.json")
    device.seed(config.seed)

    batcher = MnistBatcher()
    train = loader(batcher, train_set)
    valid = loader(batcher, test_set)

    training = (
        SupervisedTraining(artifact_dir, train, valid)
        .metrics([AccuracyMetric(), LossMetric()])
        .with_file_checkpointer(CompactRecorder())
        .num_epochs(config.num_epochs)
        .summary()
        .renderer(None)
    )
    model, optim = config.model.init(device), config.optimizer.init()
    result = training.launch(Learner(model, optim, config.learning_rate))
    model = result.model
    model.save_file(artifact_dir / "model", CompactRecorder())
    return model


# %% tags=["run-me"]
run("0.20", train_0_20)

# %% [markdown]
# ## 0.22
#
# Recorders are gone. A record saves itself, and so does a model, in Burn's own format
# *burnpack* (`.bpk`); checkpoints are written in it as well. The folder is no longer
# emptied first: of an earlier run only the log goes. The device says that it records
# gradients: `Device::flex().autodiff()`.


# %% tags=["run-me", "version"]
def train_0_22(artifact_dir):
    Model.forward_classification = forward_0_15
    artifact_dir.mkdir(parents=True, exist_ok=True)
    (artifact_dir / "experiment.log").unlink(missing_ok=True)
    config.save(artifact_dir / "config.json")
    device = Numpy().autodiff()
    device.seed(config.seed)

    batcher = MnistBatcher()
    train = loader(batcher, train_set)
    valid = loader(batcher, test_set)

    training = (
        SupervisedTraining(artifact_dir, train, valid)
        .metrics((AccuracyMetric(), LossMetric()))
        .with_default_checkpointers()
        .num_epochs(config.num_epochs)
        .summary()
        .renderer(None)
    )
    model, optim = config.model.init(device), config.optimizer.init()
    result = training.launch(Learner(model, optim, config.learning_rate))
    result.model.into_record().save(artifact_dir / "model")
    return result.model


# %% tags=["run-me"]
run("0.22", train_0_22)

# %% [markdown]
# What was saved is read back without a recorder, too. `try_load_record` answers with an
# error where the record does not fit, `load_record` in Burn with a panic; here both raise.

# %% tags=["run-me"]
record = ModuleRecord.load(home / "0.22" / "model")
again = config.model.init(Numpy()).try_load_record(record)
print(sorted(path.name for path in (home / "0.22").glob("model*")))
print("the same numbers:", len(again.named_params()), "parameters")

# %% [markdown]
# ## The same numbers
#
# Six programs, one training run: every weight and every number in the logs is the same,
# to the last bit.


# %% tags=["run-me"]
def weights(version):
    params = models[version].named_params()
    return [param.val().to_data().to_numpy().tobytes() for _, param in params]


def logs(version):
    paths = sorted((home / version).glob("*/epoch-1/*.log"))
    return [(path.parts[-3], path.name, path.read_bytes()) for path in paths]


for a, b in pairwise(versions):
    alike = weights(a) == weights(b), logs(a) == logs(b)
    print(f"{a} and {b}: the same weights {alike[0]}, logs {alike[1]}")

# %% [markdown]
# ## See it
#
# Choose any two versions to see the lines that differ: `-` is in the first one only, `+`
# in the second one only. They are read from the cells above, so you can change those.


# %% tags=["run-me"]
def changes(old, new):
    pages = [inspect.getsource(versions[name]) for name in (old, new)]
    lines = difflib.ndiff(*(page.splitlines()[1:] for page in pages))
    return [line for line in lines if line[0] in "+-"]


print("\n".join(changes("0.15", "0.17")))

# %% tags=["widget"]
lengths = {f"{a} to {b}": len(changes(a, b)) for a, b in pairwise(versions)}
Bars(lengths, "Lines that went or came")

# %% [markdown]
# ## Look inside
#
# The newest form adds little: it has the options of the builder, and gives a learner the
# same plan that `build` would.

# %% tags=["peek"]
peek(SupervisedTraining.launch)

# %% [markdown]
# ## Where it breaks
#
# This line mixes two versions: the learner of 0.20 has no folder, no metrics and no
# epochs, and `fit` is the method of 0.15.

# %% tags=["raises-exception"]
learner = Learner(config.model.init(device), AdamConfig().init(), 1e-3)
learner.fit(
    loader(MnistBatcher(), train_set), loader(MnistBatcher(), test_set)
)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 3.3.5: the first version in which a trained model has no gradients
answer = ...
check("3.3.5", answer)

# %% tags=["solution"]
answer = "0.19"
check("3.3.5", answer)


# %% tags=["exercise"]
# exercise 3.3.6: a batcher of numbers for every version. Its device is given
# when it is made, or with the batch; the one given with the batch wins
class AnyBatcher(Batcher):
    def __init__(self, device=None):
        self.device = device

    def batch(self, items, device=None):
        return Tensor[1].from_floats(items, Numpy())


answer = ...  # AnyBatcher, when it is ready
check("3.3.6", answer)


# %% tags=["solution"]
class AnyBatcher(Batcher):
    def __init__(self, device=None):
        self.device = device

    def batch(self, items, device=None):
        return Tensor[1].from_floats(items, device or self.device or Numpy())


answer = AnyBatcher
check("3.3.6", answer)

# %% tags=["exercise"]
# exercise 3.3.7: the model of 0.19, made from that of 0.17: models["0.17"]
answer = ...
check("3.3.7", answer)

# %% tags=["solution"]
answer = models["0.17"].valid()
check("3.3.7", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why did the device move from the batcher into its call?</summary>
#
# With several devices, each needs its own batches. A batcher that keeps one device puts
# all of them on the same.
# </details>
#
# <details><summary>Where did a model get its device before 0.12?</summary>
#
# From the type: every backend had a default device, and the model was made there.
# </details>
#
# <details><summary>Why does the result of a training run hold a model without gradients?</summary>
#
# It will be used, not trained; nothing needs to be kept for a backward pass. To continue
# training, take the model with gradients from `learner.result.model`.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - The training itself never changed; only which object holds what did.
# - The device moved from the type to `init(device)`, and from the batcher to its call.
# - `fit` returned a model first, then a result with the model in it.
# - Since 0.20 the training and what it trains are two objects.
# - Since 0.22 records save themselves, and no recorder is named.
# - All of these forms run here, side by side, and give the same numbers.
#
# **Where this lives.** `burnbook/train/builder.py` and `burnbook/train/supervised.py`,
# which chapter [4.6](04_06_learner.ipynb) explains; the exercises are in
# `widgets/burnbook_widgets/chapters/versions.py`.
#
# **The same in Burn**
#
# | here | up to 0.11 | 0.15 | 0.17 | 0.19 | 0.20 and 0.21 | 0.22 |
# |---|---|---|---|---|---|---|
# | a batcher | `MNISTBatcher::<B>::new(device)` | `MnistBatcher::<B>::new(device)` | `MnistBatcher::default()` | the same | the same | the same |
# | `batch(items)`, `batch(items, device)` | `batch(items)` | the same | `batch(items, &device)` | the same | the same | the same |
# | a loss | `CrossEntropyLoss::new(None)` | `CrossEntropyLossConfig::new().init(&device)` | the same | the same | the same | the same |
# | `config.model.init(device)` | `init::<B>()` | `init::<B>(&device)` | the same | the same | the same | `init(&device)` |
# | `learner.fit(train, valid)` | the model | the model | the model | `result.model` | `training.launch(learner).model` | the same |
# | `model.save_file(path, recorder)` | `model.save_file(path, &CompactRecorder::new())` | the same | the same | the same | the same | `model.into_record().save(path)` |
# | `Autodiff(Numpy())` | `Autodiff<NdArray>` | the same | the same | the same | the same | `Device::flex().autodiff()` |
#
# Back to [3.3 · Training](03_3_training.ipynb); next: [3.4 · Backend](03_4_backend.ipynb)
