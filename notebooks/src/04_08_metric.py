# %% [markdown] tags=["goals"]
# # 4.8 · Metric
#
# After this chapter you can
#
# - choose metrics for classification, text, images and the machine;
# - read what they show and log, and say how the value of an epoch is computed;
# - write a metric, and an output that metrics can read.
#
# About 30 minutes. You should have read [chapter 3.3](03_3_training.ipynb).

# %% tags=["setup"]
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn import metrics as sk

import burnbook
from burnbook import nn, optim, train
from burnbook.tensor.activation import softmax
from burnbook.backend import Autodiff
from burnbook.backend import Numpy
from burnbook.data import (
    DataLoaderBuilder,
    DigitsDataset,
    PartialDataset,
    Progress,
)
from burnbook.examples.guide.data import MnistBatcher
from burnbook.examples.guide.model import ModelConfig
from burnbook.tensor import Tensor
from burnbook.train import (
    AccuracyInput,
    AccuracyMetric,
    Adaptor,
    ClassReduction,
    ConfusionStatsInput,
    LearnerBuilder,
    LossInput,
    LossMetric,
    Metric,
    MetricEntry,
    MetricMetadata,
    NumericEntry,
    NumericMetric,
)
from burnbook_widgets.learn import check, peek, same
from burnbook_widgets.pictures import Lines

burnbook.seed(0)

# %% [markdown]
# ## Try it
#
# A metric looks at one batch at a time. Here it gets the scores of two classes for four
# examples, and the correct classes.

# %% tags=["run-me", "cell:accuracy"]
device = Numpy()
where = MetricMetadata(Progress(4, 8), epoch=1, epoch_total=2, iteration=1)
rows = [[0.1, 0.9], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
scores = Tensor.from_floats(rows, device)
targets = Tensor.from_ints([1, 0, 0, 1], device)
accuracy = AccuracyMetric()
entry = accuracy.update(AccuracyInput(scores, targets), where)
print(entry.name, "|", entry.formatted, "|", entry.serialize)

# %% [markdown]
# Three of four are right. The entry has three parts: the metric's name, a text for the
# screen, and a line for the log. The line says 75 percent, of 4 examples. `where` tells
# the metric how far training is; accuracy does not need it.
#
# ## By hand
#
# The last batch of an epoch is often smaller. So batches are weighted by their number of
# examples:
#
# $$\text{epoch} = \frac{\sum_i v_i\, n_i}{\sum_i n_i}$$

# %% tags=["run-me"]
v, n = np.array([75.0, 0.0]), np.array([4, 1])
by_hand = (v * n).sum() / n.sum()
print(f"{by_hand:.2f}, and not {v.mean():.2f}")

# %% [markdown]
# ## In burnbook
#
# The second batch has one example, which is wrong. The screen shows both numbers: the
# epoch so far, and this batch.

# %% tags=["run-me"]
one_score, one_target = scores[:1], Tensor.from_ints([0], device)
entry = accuracy.update(AccuracyInput(one_score, one_target), where)
print(entry.formatted, "|", entry.serialize)
same([by_hand], [accuracy.state.total / accuracy.state.count])

# %% [markdown]
# `0.00e0` is zero: as in Burn, numbers of 0.1 and below are in scientific notation. The
# log has all digits. `value()` is the number that is plotted, that of the *last
# batch*; `clear()` is called between epochs.

# %% tags=["run-me"]
print(accuracy.value())
accuracy.clear()
print(accuracy.value(), accuracy.state.count)

# %% [markdown]
# ## See it
#
# Single batches vary a lot, their running mean settles. A curve of means alone hides how
# much they vary.

# %% tags=["widget"]
state = train.NumericMetricState()
options = train.FormatOptions("Noise", unit="%", precision=2)
values, means = 60 + 40 * np.random.default_rng(0).random(60), []
for value in values:
    state.update(value, 64, options)
    means.append(state.total / state.count)
lines = {"batch": values, "epoch so far": means}
Lines(lines, "60 batches of one epoch", x_label="batch", y_label="percent")

# %% [markdown]
# ## The metrics of the book
#
# | the book's metric | here | input | measures |
# |---|---|---|---|
# | Accuracy | `AccuracyMetric()` | `AccuracyInput` | correct predictions in percent |
# | TopKAccuracy | `TopKAccuracyMetric(k)` | `TopKAccuracyInput` | targets among the k highest scores, in percent |
# | Loss | `LossMetric()` | `LossInput` | the loss that training minimizes |
# | Learning Rate | `LearningRateMetric()` | – | the rate of this step |
# | CPU Temperature | `CpuTemperature()` | – | °C |
# | CPU Usage | `CpuUse()` | – | percent of all processors |
# | CPU Memory Usage | `CpuMemory()` | – | used and total GB |
# | GPU Temperature | `GpuTemperature(index)` | – | °C; the book lists it, Burn 0.15 has none |
# | CUDA | `CudaMetric()` | – | memory and use of each GPU, as a text |

# %% tags=["run-me", "cell:top-k-accuracy"]
loss = Tensor.from_floats([0.5], device)
best_two = train.TopKAccuracyMetric(2)
print(best_two.update(train.TopKAccuracyInput(scores, targets), where))
print(LossMetric().update(LossInput(loss), where))
step = MetricMetadata(Progress(4, 8), 1, 2, 1, lr=0.0001)
print(train.LearningRateMetric().update(None, step))

# %% [markdown]
# The loss of a batch is a mean already. `ClassificationOutput` and its like say of how many
# targets, so batches are weighted here too; `LossMetric(equal_batches=True)` gives each
# batch the weight 1, as Burn's logs do, and so does an item that does not say it.
#
# The other five read the machine's sensors, at most five times a second. Without a
# sensor they report `NaN` or `Unavailable`, and training continues.

# %% tags=["run-me", "nbval-ignore-output", "cell:cpu-temperature"]
gauges = [train.CpuTemperature(), train.CpuUse(), train.CpuMemory()]
gauges += [train.GpuTemperature(), train.CudaMetric()]
for gauge in gauges:
    print(f"{gauge!r:<17}", gauge.update(None, where).formatted)

# %% [markdown]
# Newer versions of Burn have more, and so has `burnbook.train`:
#
# | family | metrics |
# |---|---|
# | classification | `PrecisionMetric`, `RecallMetric`, `FBetaScoreMetric`, `AurocMetric`, `AucPrMetric` |
# | several labels per example | `HammingScore`, and the five above with `.multilabel(…)` |
# | text | `PerplexityMetric`, `CharErrorRate`, `WordErrorRate`, `BleuScore`, `RougeLScore` |
# | images, masks | `PsnrMetric`, `SsimMetric`, `MsSsimMetric`, `DiceMetric` |
# | speed | `IterationSpeedMetric` |

# %% [markdown]
# ## Adapting an output to a metric
#
# A model returns one item, and each metric needs its own kind of input. So the item
# declares what it can be converted to: it is an `Adaptor`. This is the book's
# `ClassificationOutput`; the one in `burnbook.train` supports more metrics.


# %% tags=["run-me", "cell:adaptor"]
@dataclass
class ClassificationOutput(Adaptor):
    loss: Tensor
    output: Tensor
    targets: Tensor


ClassificationOutput.adapts = {
    AccuracyInput: lambda it: AccuracyInput(it.output, it.targets),
    LossInput: lambda it: LossInput(it.loss),
}


# %% [markdown]
# The learner asks every metric for its `Input`, adapts, and updates:


# %% tags=["run-me"]
def lines(item, *metrics):
    return [m.update(item.adapt(m.Input), where).serialize for m in metrics]


item = ClassificationOutput(loss, scores, targets)
lines(item, AccuracyMetric(), LossMetric(), train.IterationSpeedMetric())

# %% [markdown]
# There are also `MultiLabelClassificationOutput`, `SequenceOutput` (text) and
# `RegressionOutput`. A subclass can add inputs. Here is one for regression: how far
# each prediction is from its target.


# %% tags=["run-me"]
@dataclass
class DistanceInput:
    far: Tensor


class Measured(train.RegressionOutput):
    pass


Measured.adapts = {
    DistanceInput: lambda it: DistanceInput((it.output - it.targets).abs())
}

# %% tags=["run-me"]
guesses = Tensor.from_floats([[1.0], [4.0]], device)
wanted = Tensor.from_floats([[2.0], [4.5]], device)
measured = Measured(loss, guesses, wanted)
measured.adapt(DistanceInput).far.into_data().to_list()

# %% [markdown]
# ## Your own metric
#
# This is the book's trait `Metric`, as a class:
#
# | a metric has | which is |
# |---|---|
# | `name` | its name on the screen, and that of its log file |
# | `Input` | the class that items are adapted to, or `None` if it needs nothing |
# | `update(item, metadata)` | measures one batch, returns a `MetricEntry` |
# | `clear()` | resets it: an epoch has ended |


# %% tags=["run-me", "cell:trait"]
class TimeLeft(Metric):
    name = "Epochs left"

    def update(self, item, metadata):
        left = str(metadata.epoch_total - metadata.epoch)
        return MetricEntry(self.name, f"{left} to go", left)


TimeLeft().update(None, where)

# %% [markdown]
# The book's example is the loss metric. `NumericMetricState` keeps the running mean and
# creates the entry:


# %% tags=["run-me", "cell:loss-metric"]
class OwnLoss(Metric):
    name = "Own Loss"
    Input = LossInput

    def __init__(self):
        self.state = train.NumericMetricState()

    def update(self, loss, metadata):
        value = loss.tensor.mean().into_scalar()
        options = train.FormatOptions(self.name, precision=2)
        return self.state.update(value, 1, options)

    def clear(self):
        self.state.reset()


# %% [markdown]
# So far it is shown as text only. With a `value` it is numeric, and can be plotted:


# %% tags=["run-me", "cell:numeric"]
class PlottedLoss(OwnLoss):
    name = "Plotted Loss"
    numeric = True

    def value(self):
        return self.state.value()


plotted = PlottedLoss()
print(lines(item, LossMetric(), OwnLoss(), plotted), plotted.value())

# %% [markdown]
# `NumericMetric` brings all of this; you write only `update`. This one is for regression,
# and a smaller value is better:


# %% tags=["run-me"]
class DistanceMetric(NumericMetric):
    name = "Distance"
    Input = DistanceInput
    unit = "cm"
    higher_is_better = False

    def update(self, item, metadata):
        far, count = item.far, item.far.dims()[0]
        return self.state.update(far.mean().into_scalar(), count, self.options)


DistanceMetric().update(measured.adapt(DistanceInput), where)

# %% [markdown]
# ## The confusion matrix
#
# Accuracy is one number for all classes. How well does a model do on each of them? Count
# four things per class: predictions *of* the class that are right (true positives, tp)
# or wrong (false positives, fp), and predictions of *another* class that are right (true
# negatives, tn) or wrong (false negatives, fn). Here are six examples of three classes.

# %% tags=["run-me"]
rows = [[70, 21, 9], [60, 32, 8], [20, 48, 32]]
rows += [[50, 40, 10], [31, 41, 28], [12, 23, 65]]
scores = np.array(rows) / 100
labels = np.array([0, 0, 1, 1, 2, 2])
one = np.eye(3, dtype=int)
decided, right = one[scores.argmax(1)], one[labels]
tp = (decided * right).sum(0)
fp = (decided * (1 - right)).sum(0)
fn = ((1 - decided) * right).sum(0)
print(tp, fp, fn)

# %% tags=["run-me"]
predictions = Tensor.from_floats(scores, device)
answers = Tensor.from_ints(right, device).bool()
best_one = train.DecisionRule.TopK(1)
pair = ConfusionStatsInput(predictions, answers)
stats = train.ConfusionStats(pair, best_one)
print(stats)
counted = [stats.true_positive(), stats.false_positive()]
same([tp, fp, fn], [*counted, stats.false_negative()])

# %% [markdown]
# From these counts: *precision* tp / (tp + fp), the share of predictions of a class that
# were right, and *recall* tp / (tp + fn), the share of its examples that were found.
# *F-beta* combines both, with recall β times as important:
#
# $$F_\beta = \frac{(1 + \beta^2)\, tp}{(1 + \beta^2)\, tp + \beta^2 fn + fp}$$
#
# `Macro` is the mean over classes; `Micro` counts the predictions of all classes together,
# which is the accuracy where each example has one class, whatever β. Each line is
# compared with scikit-learn.


# %% tags=["run-me"]
def epoch(metric, *tensors):
    entry = metric.update(metric.Input(*tensors), where)
    line = (metric.compute() or entry).serialize
    return NumericEntry.deserialize(line).value


guesses = scores.argmax(1)
for kind, theirs in (
    (train.PrecisionMetric.multiclass(), sk.precision_score),
    (train.RecallMetric.multiclass(), sk.recall_score),
):
    ours = epoch(kind, predictions, answers)
    print(f"{kind.name}: {ours:.2f} %")
    same([ours], [100 * theirs(labels, guesses, average="macro")])

# %% tags=["run-me"]
for beta in (0.5, 1, 2):
    for how in (ClassReduction.Macro, ClassReduction.Micro):
        metric = train.FBetaScoreMetric.multiclass(beta, 1, how)
        ours, average = epoch(metric, predictions, answers), how.value
        theirs = sk.fbeta_score(labels, guesses, beta=beta, average=average)
        mark = "✔" if np.isclose(ours, 100 * theirs) else "✘"
        print(f"{metric.name}: {ours:.2f} %", mark)

# %% [markdown]
# `multiclass` counts the k highest scores as predicted, `binary` and `multilabel` all
# scores above a threshold. Two metrics need no threshold, because they measure the
# *ranking*: AUROC is how often a positive example is ranked above a negative one, AUC-PR
# the mean precision at the ranks of the positive ones. Both collect the scores of an
# epoch and report at its end. (Among equal scores AUC-PR keeps their order, as Burn
# does; scikit-learn gives them one rank.)

# %% tags=["run-me"]
for metric, theirs in (
    (train.AurocMetric(), sk.roc_auc_score),
    (train.AucPrMetric(), sk.average_precision_score),
):
    ours = epoch(metric, predictions, answers)
    print(f"{metric.name}: {ours:.2f} %")
    same([ours], [100 * theirs(right, scores, average="macro")])

# %% [markdown]
# A ratio over an epoch is not the mean of the batches' ratios. Three right predictions,
# then a wrong one: 3 of 4, although the mean of 100 % and 0 %, weighted by 3 and 2
# examples, is 60 %. So the log ends with a line for the epoch, `final`.

# %% tags=["run-me"]
metric = train.PrecisionMetric.binary()
for row, yes in (([0.9, 0.8, 0.7], [1, 1, 1]), ([0.9, 0.1], [0, 0])):
    column = Tensor.from_floats(row, device).unsqueeze_dim(1)
    answer = Tensor.from_ints(yes, device).unsqueeze_dim(1).bool()
    print(metric.update(ConfusionStatsInput(column, answer), where).serialize)
print(metric.compute().serialize)

# %% [markdown]
# With several labels per example, the Hamming score is the share of labels that are
# right, each counted separately.

# %% tags=["run-me"]
half = scores > 0.35
ours = epoch(train.HammingScore(0.35), predictions, answers.int())
same([ours], [100 * (1 - sk.hamming_loss(right, half))])


# %% [markdown]
# ## Text
#
# Metrics of text read token ids: a number for each character, or for each word. The
# sequences of a batch are padded to one length, and `with_pad_token` makes a metric
# ignore the padding.
# Error rates count edits: *kitten* becomes *sitting* with two substitutions and an
# insertion.


# %% tags=["run-me"]
def batch_of(*texts):
    width = max(map(len, texts))
    rows = [[ord(c) for c in t] + [0] * (width - len(t)) for t in texts]
    return Tensor.from_ints(rows, device)


said, meant = batch_of("kitten", "law"), batch_of("sitting", "flaw")
rate = epoch(train.CharErrorRate().with_pad_token(0), said, meant)
same([100 * (3 + 1) / (7 + 4)], [rate])

# %% [markdown]
# WER is the same for words. BLEU counts how many n-grams of the prediction (runs of 1 to
# n words) occur in the reference; ROUGE-L takes the longest common subsequence: the words
# that both have in the same order.

# %% tags=["run-me"]
words = ["a", "cat", "sat", "on", "the", "mat"]
number = {word: i for i, word in enumerate(words, start=1)}


def sentence(text):
    return Tensor.from_ints([[number[w] for w in text.split()]], device)


pair = sentence("the cat sat on a mat"), sentence("a cat sat on the mat")
for metric in (train.WordErrorRate(), train.BleuScore(2), train.RougeLScore()):
    print(f"{metric.name:<8} {epoch(metric, *pair):.2f} %")

# %% [markdown]
# Perplexity is e to the mean loss per token: the number of equally likely tokens that the
# model's uncertainty corresponds to.

# %% tags=["run-me"]
logits = Tensor.from_floats([[2.0, 0.0, 1.0], [0.0, 0.0, 0.0]], device)
next_words = Tensor.from_ints([0, 2], device)
cross_entropy = nn.CrossEntropyLossConfig().init(device)
loss = cross_entropy.forward(logits, next_words).into_scalar()
print(f"{epoch(train.PerplexityMetric(), logits, next_words):.4g}")
same([np.exp(loss)], [epoch(train.PerplexityMetric(), logits, next_words)])

# %% [markdown]
# ## Images and masks
#
# PSNR relates the largest possible value to the error, in decibels (higher is better).
# SSIM compares the structure around each pixel (1 means equal). Dice is twice the overlap
# of two masks, divided by the sum of their sizes.

# %% tags=["run-me"]
picture = DigitsDataset.test().get(0).image[None, None] / 255
noise = np.random.default_rng(0).random((1, 1, 28, 28))
clean = Tensor.from_numpy(picture, device)
noisy = Tensor.from_numpy(0.9 * picture + 0.1 * noise, device)
for config in (train.PsnrMetricConfig(1.0), train.SsimMetricConfig(1.0)):
    metric = config.init()
    print(f"{metric.name}: {epoch(metric, noisy, clean):.2f}")
masks = (clean > 0.5).int(), (clean > 0.4).int()
print(f"Dice: {epoch(train.DiceMetric(), *masks):.2f}")

# %% [markdown]
# ## During training
#
# `metric_train_numeric` and `metric_valid_numeric` measure, log and plot; without
# `_numeric` a metric is shown and logged, but not plotted. `metrics` and `metrics_text`
# do so for several metrics in both splits, `metrics` as in newer Burn.
#
# First a metric of our own: how *confident* is the model, on average?


# %% tags=["run-me"]
class Confidence(NumericMetric):
    name = "Confidence"
    Input = AccuracyInput
    unit = "%"

    def update(self, item, metadata):
        sure = softmax(item.outputs, 1).max_dim(1).mean()
        count = item.targets.dims()[0]
        return self.state.update(100 * sure.into_scalar(), count, self.options)


# %% tags=["run-me"]
def loader(dataset, device):
    builder = DataLoaderBuilder(MnistBatcher(device)).batch_size(64).shuffle(1)
    return builder.build(dataset)


tracked = Autodiff(device)
artifacts = Path("artifacts/metric")
shutil.rmtree(artifacts, ignore_errors=True)
model = ModelConfig(10, 32).init(tracked)
f_score = train.FBetaScoreMetric.multiclass(1.0)

# %% tags=["run-me"]
learner = (
    LearnerBuilder(artifacts)
    .metric_train_numeric(AccuracyMetric())
    .metric_valid_numeric(AccuracyMetric())
    .metrics([LossMetric(), Confidence()])
    .metrics_text([f_score, train.AurocMetric(), TimeLeft()])
    .devices([tracked])
    .num_epochs(4)
    .build(model, optim.AdamConfig().init(), 0.002)
)
train_loader = loader(DigitsDataset.train(), tracked)
valid_loader = loader(DigitsDataset.test(), device)
trained = await learner.fit_async(train_loader, valid_loader)

# %% [markdown]
# Every numeric metric has a curve, including ours. `history_figure(history)` lets you
# explore them, as in chapter 3.3. Here are two of them in one chart. Where confidence
# and accuracy agree, not only on average but at every level of confidence, a model is
# *calibrated*, and its probabilities can be taken at their word.

# %% tags=["run-me"]
history = learner.result.history
names = ("Accuracy", "Confidence")
curves = {n: [mean for _, mean in history.epochs(n, "valid")] for n in names}
epochs = [epoch for epoch, _ in history.epochs("Accuracy", "valid")]
Lines(curves, "Validation", epochs, x_label="epoch", y_label="percent")

# %% [markdown]
# ## The log
#
# One file per epoch and metric, named after the metric, one line per batch.

# %% tags=["run-me"]
for path in sorted((artifacts / "valid/epoch-4").iterdir()):
    texts = path.read_text().splitlines()
    counts = [text.partition(",")[2] or "–" for text in texts]
    print(f"{path.stem:<34}", *counts)

# %% [markdown]
# These are the counts behind the values: 359 images are 5 batches of 64 and one of 39.
# The log of the F score ends with its final line, AUROC has a single value, our text
# metric has no counts. Loggers can read the lines back, and the history is computed from
# them:

# %% tags=["run-me"]
log = train.FileMetricLogger(artifacts / "valid")
entries = log.read_numeric("Accuracy", 4)
mean = sum(e.value * e.count for e in entries) / sum(e.count for e in entries)
epochs = dict(history.epochs("Accuracy", "valid"))
same([epochs[4]], [mean])
best_epoch, percent = train.Run(artifacts).best("Accuracy", "valid")
print("best accuracy > 75 %", "✔" if percent > 75 else "✘")

# %% [markdown]
# `metric_loggers` sends lines elsewhere; `InMemoryMetricLogger` writes no files.
#
# ## NaN
#
# The mean over no examples is NaN, for example in a batch that is all padding. It is
# logged as it is, and from there on the value of the epoch is NaN, too, because it is
# unknown. An epoch whose value is NaN is never the best one.

# %% tags=["run-me"]
blind = AccuracyMetric().with_pad_token(9)
padding = Tensor.from_ints([9], device)
print(blind.update(AccuracyInput(one_score, padding), where).serialize)
logger = train.InMemoryMetricLogger()
store = train.EventStore([], [logger])
for number, line in enumerate(["NaN,4", "3,4", "2,4"], start=1):
    store.start_epoch(number, train.Split.Valid)
    store.log(train.Split.Valid, MetricEntry("Loss", line, line))
print("lowest loss in epoch", store.find_epoch("Loss"))

# %% [markdown]
# A *loss* that is NaN stops the training: the learner searches parameters, gradients and
# the batch, and its error says where NaN appeared first.
#
# ## Another device
#
# Metrics can be computed on another device than the model's: with `metric_device` each
# item is moved once, and has no gradients there. Here training uses 64 bits, and the
# metrics 32.


# %% tags=["run-me"]
class Place(Metric):
    name, Input = "Place", AccuracyInput

    def update(self, item, metadata):
        place = str(item.outputs.device())
        return MetricEntry(self.name, place, place)


# %% tags=["run-me"]
few = PartialDataset(DigitsDataset.train(), 0, 64)
double = Autodiff(Numpy(float="f64"))
for there in (double, device):
    learner = (
        LearnerBuilder(artifacts / "place")
        .metrics_text(Place())
        .metric_device(there)
        .renderer(None)
        .num_epochs(1)
        .build(ModelConfig(10, 8).init(double), optim.SgdConfig().init(), 0.1)
    )
    await learner.fit_async(loader(few, double), loader(few, double.inner))
    print((artifacts / "place/train/epoch-1/Place.log").read_text().strip())

# %% [markdown]
# ## Look inside
#
# The library's loss metric is the book's, except for how it weights a loss that is not a
# mean yet.

# %% tags=["peek"]
peek(LossMetric)

# %% [markdown]
# ## Where it breaks
#
# A regression has no classes, and so no accuracy. The error says what it has.

# %% tags=["raises-exception"]
lines(measured, AccuracyMetric())

# %% [markdown]
# Six rows of scores and four targets do not fit together:

# %% tags=["raises-exception"]
AccuracyMetric().update(AccuracyInput(predictions, targets), where)

# %% [markdown]
# And three classes have no top five:

# %% tags=["raises-exception"]
best_five = train.TopKAccuracyMetric(5)
six = Tensor.from_ints(labels, device)
best_five.update(train.TopKAccuracyInput(predictions, six), where)

# %% [markdown]
# ## Exercises
#
# The [solutions](#Solutions) are at the end of the page; try first.

# %% tags=["exercise"]
# exercise 4.8.1: the line that accuracy logs for a batch of 64 examples, of
# which 48 are right (a text)
answer = ...
check("4.8.1", answer)

# %% tags=["solution"]
answer = NumericEntry(100 * 48 / 64, 64).serialize()
check("4.8.1", answer)

# %% tags=["exercise"]
# exercise 4.8.2: the F score with β = 2, in percent, of a class with 6 true
# positives, 2 false positives and 4 false negatives
answer = ...
check("4.8.2", answer)

# %% tags=["solution"]
answer = 100 * 5 * 6 / (5 * 6 + 4 * 4 + 2)
check("4.8.2", answer)


# %% tags=["exercise"]
# exercise 4.8.3: a metric whose value is the largest element of the loss
class WorstLoss(NumericMetric):
    name = "Worst loss"
    Input = LossInput

    def update(self, item, metadata):
        return ...


answer = ...  # WorstLoss, the class
check("4.8.3", answer)


# %% tags=["solution"]
class WorstLoss(NumericMetric):
    name = "Worst loss"
    Input = LossInput

    def update(self, item, metadata):
        worst = item.tensor.max().into_scalar()
        return self.state.update(worst, 1, self.options)


answer = WorstLoss
check("4.8.3", answer)


# %% tags=["exercise"]
# exercise 4.8.4: this output has one score per example, above 0 for class 1,
# and the classes. Let AccuracyMetric read it; outputs are [n, 2] then
@dataclass
class SignOutput(Adaptor):
    score: Tensor
    positive: Tensor


answer = ...  # SignOutput, the class, once it adapts
check("4.8.4", answer)

# %% tags=["solution"]
SignOutput.adapts = {
    AccuracyInput: lambda it: AccuracyInput(
        Tensor.stack([-it.score, it.score], 1), it.positive
    )
}
answer = SignOutput
check("4.8.4", answer)

# %% [markdown] tags=["recall"]
# ## Recall
#
# <details><summary>Why does every metric have its own input class?</summary>
#
# One item serves many metrics. Its outputs are scores for one of them and words for
# another; the item declares how each of them should read it.
# </details>
#
# <details><summary>Why is the precision of an epoch not the mean of its batches?</summary>
#
# It is a ratio, and batches have different denominators. A batch with one prediction
# would count as much as one with fifty. So the counts are summed, and divided once.
# </details>
#
# <details><summary>Does <code>value()</code> give the batch or the epoch?</summary>
#
# The last batch; that is what is plotted. The value of the epoch is computed from the
# log.
# </details>

# %% [markdown]
# <details><summary><b>🐍 Python note: traits and tables</b></summary>
#
# In Rust a metric is a type with the trait `Metric` and an associated type `Input`, and
# an output has one `impl Adaptor<…>` per input; a missing one does not compile. Here
# `Input` is a class attribute and `adapts` a dict, looked up through base classes as
# methods are. Rust's `impl Numeric` is `numeric = True` and `value()`.
# </details>

# %% [markdown] tags=["summary"]
# ## Summary
#
# - `update` measures a batch and returns an entry: name, text, line; `value` is the last
#   batch's value, `clear` ends an epoch.
# - The value of an epoch is Σ v n / Σ n over the log; ratios and rankings have their own
#   final value.
# - An output is an `Adaptor`: it can be converted to the input of each metric.
# - A metric of your own is a name, an input and `update`; a `NumericMetric` is plotted.
# - Metrics are computed on the CPU with NumPy, or on `metric_device`.
#
# **Where this lives.** Each metric is a file in `burnbook/train/metric`, those for images
# in `burnbook/train/metric/vision`. Read `burnbook/train/metric/base.py` first, then
# `burnbook/train/metric/accuracy.py`. How numbers print: `burnbook/train/numbers.py`.
# The curves are drawn by `widgets/burnbook_widgets/training/curves.py` and
# `widgets/burnbook_widgets/training/history.py`; the exercises are in
# `widgets/burnbook_widgets/chapters/measuring.py`.
#
# **The same in Burn**
#
# | here | Burn 0.15 | Burn 0.22 |
# |---|---|---|
# | `AccuracyMetric()` | `AccuracyMetric::new()` | the same |
# | `adapts = {LossInput: …}` | `impl<B: Backend> Adaptor<LossInput<B>> for …` | `impl Adaptor<LossInput> for …` |
# | `Input = LossInput` | `type Input = LossInput<B>;` | `type Input = LossInput;` |
# | `numeric = True`, `value()` | `impl Numeric for …` | the same |
# | `MetricEntry(name, text, line)` | `MetricEntry::new(name, text, line)` | `SerializedEntry::new(text, line)` |
# | `metric.compute()` | – | the same: the number of an epoch |
# | `metrics([…])` | – | `.metrics((…, …))` |
# | `PrecisionMetric.multiclass()` | – | `PrecisionMetric::multiclass(1, Macro)` |
#
# Next: [4.9 · Config](04_09_config.ipynb)
