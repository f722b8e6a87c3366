"""Metrics in a run: what they log, what is read back, what they are computed on."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Autodiff, Cupy, Numpy
from burnbook.core.errors import BackendError, DataError
from burnbook.data import Batcher, DataLoaderBuilder, InMemDataset
from burnbook.module import Module
from burnbook.optim import AdamConfig
from burnbook.tensor import Tensor
from burnbook.train import (
    AccuracyInput,
    AccuracyMetric,
    Aggregate,
    AucPrMetric,
    AurocMetric,
    BleuScore,
    CharErrorRate,
    ClassificationOutput,
    ConfusionStatsInput,
    CpuMemory,
    CpuTemperature,
    CpuUse,
    CudaMetric,
    Direction,
    EventStore,
    FBetaScoreMetric,
    FileMetricLogger,
    FormatOptions,
    GpuTemperature,
    HammingScore,
    HammingScoreInput,
    InMemoryMetricLogger,
    IterationSpeedMetric,
    LearnerBuilder,
    LearnerSummary,
    LossInput,
    LossMetric,
    Metric,
    MetricEntry,
    MetricHistory,
    MultiLabelClassificationOutput,
    NumericEntry,
    NumericMetricState,
    PerplexityMetric,
    PrecisionMetric,
    RecallMetric,
    RougeLScore,
    SequenceOutput,
    Split,
    TopKAccuracyMetric,
    TrainOutput,
    WordErrorRate,
)
from burnbook.train.events import mean
from burnbook.train.runs.logs import parse_log
from tests.support.metric_tools import PLAIN, floats, ints, metadata
from tests.support.tiny_training import (
    DEVICE,
    Probe,
    build,
    builder,
    checkpointed,
    counts_of,
    fitted,
    log_lines,
    tiny,
)

PRECISION = PrecisionMetric.multiclass()
FILES = {
    "AUROC_[Macro]",
    "AUC-PR_[Macro]",
    "Accuracy",
    "CPU_Memory",
    "CPU_Temperature",
    "CPU_Usage",
    "CUDA_Stats",
    "FBetaScore_(1)_@_TopK(1)_[Macro]",
    "GPU_Temperature",
    "Hamming_Score",
    "Iteration_Speed",
    "Loss",
    "Perplexity",
    "Precision_@_TopK(1)_[Macro]",
    "Recall_@_TopK(1)_[Macro]",
    "Top-K_Accuracy",
}


def measured(folder, epochs=2):
    """A tiny training with every metric of classification and of the machine."""
    made = builder(folder, epochs).summary()
    numeric = [
        TopKAccuracyMetric(2),
        PRECISION,
        RecallMetric.multiclass(),
        FBetaScoreMetric.multiclass(),
        AurocMetric.multiclass(),
        AucPrMetric.multiclass(),
        PerplexityMetric(),
        HammingScore(sigmoid=True),
        IterationSpeedMetric(),
        CpuUse(),
        CpuMemory(),
        CpuTemperature(),
        GpuTemperature(),
    ]
    for metric in numeric:
        made.metric_train_numeric(metric).metric_valid_numeric(metric)
    return made.metric_train(CudaMetric()).metric_valid(CudaMetric())


def test_every_metric_logs_its_lines_and_comes_back(tmp_path):
    pytest.importorskip("psutil")
    run = fitted(measured(tmp_path))
    for split in ("train", "valid"):
        found = {path.stem for path in (tmp_path / split / "epoch-2").iterdir()}
        assert found == FILES
    for name, count in (("Accuracy", 3), ("Loss", 3), ("CPU_Usage", 3)):
        assert len(log_lines(tmp_path, "valid", name)) == count
    perplexity = log_lines(tmp_path, "valid", "Perplexity")
    assert counts_of(perplexity) == ["16", "16", "8", "final"]
    *batches, last = log_lines(tmp_path, "train", "Precision_@_TopK(1)_[Macro]", 2)
    assert counts_of(batches) == ["16", "16", "8"]
    assert last.endswith(",final")
    (area,) = log_lines(tmp_path, "valid", "AUROC_[Macro]")  # nothing before the end
    history = run.result.history
    assert history.epochs("AUROC [Macro]", "valid")[0] == (1, float(area))
    final = float(last.removesuffix(",final"))
    assert history.epochs(PRECISION.name, "train")[1] == (2, final)
    assert history.points("AUROC [Macro]", "valid") == []
    assert len(history.points(PRECISION.name, "train")) == 6
    text = str(LearnerSummary(tmp_path, [PRECISION.name, "AUROC [Macro]"]))
    assert "| Valid | AUROC [Macro]            " in text
    assert f"| {final:<9.3f}| " in text


def test_a_run_that_goes_on_remembers_final_values_as_epochs_only(tmp_path):
    names = ("AUROC [Macro]", "Perplexity")

    def run(epochs):
        made = checkpointed(tmp_path, epochs).checkpoint()
        for metric in (AurocMetric(), PerplexityMetric()):
            made.metric_valid_numeric(metric)
        return fitted(made).result.history

    first, later = run(1), run(2)
    for name in names:
        assert later.epochs(name, "valid")[:1] == first.epochs(name, "valid")
        assert len(later.epochs(name, "valid")) == 2
    assert len(later.points("Perplexity", "valid")) == 6
    assert later.points("AUROC [Macro]", "valid") == []


def test_the_renderer_gets_the_epochs_value_when_it_is_known(tmp_path):
    told = []

    class Listening(Probe):
        def update_valid(self, state):
            told.append((state.entry.formatted, state.value))

    made = builder(tmp_path, 1).renderer(Listening())
    made.metric_valid_numeric(AurocMetric())
    fitted(made)
    values = [pair for pair in told if "N/A" in pair[0]]
    assert values[:3] == [("epoch N/A % - batch N/A %", None)] * 3
    (area,) = log_lines(tmp_path, "valid", "AUROC_[Macro]")
    text = f"epoch {float(area):.2f} % - batch N/A %"
    assert values[3:] == [(text, None)]


def test_a_metric_forgets_the_epoch_at_its_end(tmp_path):
    metric = AurocMetric()
    fitted(builder(tmp_path, 1).metric_valid_numeric(metric))
    assert metric.scores == []
    assert metric.compute() is None


# Metrics of one's own


class OwnLoss(Metric):
    """The loss metric as the book writes it: an input, update, clear."""

    name = "Own Loss"
    Input = LossInput

    def __init__(self):
        self.state = NumericMetricState()

    def update(self, item, metadata):
        loss = float(item.tensor.mean().into_scalar())
        return self.state.update(loss, 1, FormatOptions(self.name, precision=2))

    def clear(self):
        self.state.reset()


class PlottedLoss(OwnLoss):
    """What makes it numeric: a value."""

    name = "Plotted Loss"
    numeric = True

    def value(self):
        return self.state.value()


def test_a_metric_of_ones_own_is_logged_and_a_numeric_one_is_plotted(tmp_path):
    made = builder(tmp_path, 2)
    for metric in (OwnLoss(), PlottedLoss()):
        made.metric_train(metric).metric_valid(metric)
    made.metric_train_numeric(PlottedLoss()).metric_valid_numeric(PlottedLoss())
    trained = fitted(made)
    history = trained.result.history
    for split in ("train", "valid"):
        logs = ("Loss", "Own_Loss", "Plotted_Loss")
        loss, *others = (log_lines(tmp_path, split, name) for name in logs)
        values = [line.split(",")[0] for line in loss]
        assert others == [[f"{value},1" for value in values]] * 2
        assert "Own Loss" not in history.last(split)
        ours, plotted = (history.epochs(n, split) for n in ("Loss", "Plotted Loss"))
        assert len(ours) == len(plotted)  # whose own batches count alike


# What is read back


def stored(*texts, name="F"):
    """An event store whose epochs have these lines."""
    logger = InMemoryMetricLogger()
    store = EventStore([], [logger])
    for epoch, text in enumerate(texts, 1):
        store.start_epoch(epoch, Split.Valid)
        for line in text.split():
            store.log(Split.Valid, MetricEntry(name, line, line))
    return store


def test_a_last_line_that_is_final_is_the_epoch():
    store = stored("50,2 100,2 66.5,final", "50,2 100,2")
    assert store.find_metric("F", 1) == 66.5
    assert store.find_metric("F", 2) == 75.0


def test_what_weighs_nothing_counts_nothing_even_if_it_is_infinite():
    assert mean([NumericEntry(math.inf, 0), NumericEntry(2.0, 3)]) == 2.0
    assert mean([NumericEntry(math.inf, 0)]) is None
    assert parse_log("inf,0\n2,3\n").mean == 2.0
    assert parse_log("inf,0\n").mean is None


def test_an_epoch_that_is_not_a_number_is_never_the_best():
    for text, best in (("NaN,4", 4), ("1,4", 1)):
        store = stored(text, "3,4", "NaN,4", "2,final")
        for direction, epoch in ((Direction.Lowest, best), (Direction.Highest, 2)):
            found = store.find_epoch("F", Aggregate.Mean, direction, Split.Valid)
            assert found == epoch
    assert stored("NaN,4", "NaN,1").find_epoch("F") == 1


def test_entries_without_a_line_are_not_logged(tmp_path):
    logger = FileMetricLogger(tmp_path)
    store = EventStore([], [logger])
    store.start_epoch(1, Split.Valid)
    store.log(Split.Valid, MetricEntry("AUROC", "epoch N/A - batch N/A", ""))
    store.close()
    assert not (tmp_path / "epoch-1").exists()


def test_final_entries_come_back_from_their_lines():
    for entry in (NumericEntry(66.5, final=True), NumericEntry(1e-9, final=True)):
        assert NumericEntry.deserialize(entry.serialize()) == entry
    assert NumericEntry.deserialize("NaN,final").final
    assert repr(NumericEntry(66.5, final=True)) == "NumericEntry(value=66.5, final)"


# Where metrics are computed


class OnTensors(Metric):
    """A metric that computes with tensors, and notes where."""

    name = "Mean score"
    Input = AccuracyInput
    numeric = True

    def __init__(self):
        self.places, self.last = set(), math.nan

    def update(self, item, metadata):
        score = item.outputs.mean()
        self.places.add((item.outputs.device(), item.targets.device()))
        self.last = float(score.into_scalar())
        line = NumericEntry(self.last).serialize()
        return MetricEntry(self.name, line, line)

    def value(self):
        return self.last


@pytest.fixture(params=["f64", pytest.param("gpu", marks=pytest.mark.gpu)])
def train(request):
    """A backend to train on that is not the one of the metrics."""
    if request.param == "f64":
        return Autodiff(Numpy(float="f64", compiled=False))
    try:
        return Autodiff(Cupy(0))
    except BackendError as error:
        pytest.skip(error.what)


def test_metrics_run_on_one_backend_while_another_trains(tmp_path, train):
    found = {}
    for where in (None, PLAIN):
        metric = OnTensors()
        folder = tmp_path / str(where)
        made = builder(folder, 2).devices([train])
        made.metric_train_numeric(metric).metric_valid_numeric(metric)
        if where is not None:
            made.metric_device(where)
        trained = fitted(made, tiny(train))
        expected = {(PLAIN, PLAIN)} if where else {(train, train), (train.inner,) * 2}
        assert metric.places == expected
        for name in ("Mean score", "Accuracy", "Loss"):
            history = trained.result.history
            found.setdefault(name, []).append(history.epochs(name, "valid"))
    for own, moved in found.values():
        assert np.allclose(own, moved, rtol=1e-4)
    assert trained.result.model.devices() == [train]


def test_an_item_on_another_device_has_no_gradients_and_keeps_the_rest():
    loss, output = floats([1.0], DEVICE).require_grad(), floats([[1.0]], DEVICE)
    item = ClassificationOutput(loss, output, ints([0], DEVICE))
    item.note = "mine"
    moved = item.to_device(PLAIN)
    tensors = (moved.loss, moved.output, moved.targets)
    assert {tensor.device() for tensor in tensors} == {PLAIN}
    assert moved.note == "mine"
    assert item.loss.device() is DEVICE
    assert not item.to_device(DEVICE).loss.is_require_grad()


# What outputs become


def measure(item, *metrics):
    entries = (one.update(item.adapt(one.Input), metadata()) for one in metrics)
    return [entry.serialize for entry in entries]


def test_classification_becomes_what_every_metric_of_classes_wants():
    scores = floats([[0.9, 0.1, 0.0], [0.2, 0.3, 0.6]])
    item = ClassificationOutput(floats([0.5]), scores, ints([0, 1]))
    wanted = (AccuracyMetric(), TopKAccuracyMetric(2), LossMetric(), HammingScore())
    hamming = f"{100 * (4 / 6)},2"
    assert measure(item, *wanted) == ["50,2", "100,2", "0.5,2", hamming]
    third = f"{100 * (1 / 3)},2"
    assert measure(item, PrecisionMetric(), RecallMetric()) == [third, third]
    assert measure(item, PerplexityMetric())[0].endswith(",2")
    assert measure(item, AurocMetric(), AucPrMetric()) == ["", ""]


def test_one_score_alone_is_a_yes_or_a_no():
    item = ClassificationOutput(floats([0.5]), floats([[0.9], [0.8]]), ints([1, 0]))
    stats = item.adapt(ConfusionStatsInput)
    assert np.asarray(stats.targets).tolist() == [[True], [False]]
    assert measure(item, PrecisionMetric.binary(), HammingScore()) == ["50,2", "50,2"]


@pytest.mark.parametrize(
    ("shape", "right"), [([2, 1], [2, 1]), ([2], [2]), ([2, 1], [2])]
)
@pytest.mark.parametrize("as_targets", [ints, floats])
def test_one_score_has_the_shapes_that_the_loss_takes(shape, right, as_targets):
    scores = floats([0.9, 0.8]).reshape(shape)
    item = ClassificationOutput(
        floats([0.5]), scores, as_targets([1, 0]).reshape(right)
    )
    metrics = (AccuracyMetric.binary(), PrecisionMetric.binary(), HammingScore())
    assert measure(item, *metrics) == ["50,2", "50,2", "50,2"]
    assert measure(item, AurocMetric.binary()) == [""]


@pytest.mark.parametrize("into", [ConfusionStatsInput, HammingScoreInput])
def test_targets_of_one_score_are_0_or_1(into):
    item = ClassificationOutput(floats([0.5]), floats([[0.9], [0.8]]), ints([1, 2]))
    with pytest.raises(DataError, match="target 2 is neither 0 nor 1"):
        item.adapt(into)


class YesOrNo(Module):
    layer: nn.Linear

    def valid_step(self, batch):
        x, targets = batch
        logits, targets = self.layer(x), targets.unsqueeze_dim(1)
        loss = nn.BinaryCrossEntropyLossConfig(logits=True).init(logits.device())
        return ClassificationOutput(loss(logits, targets), logits, targets)

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)


def test_a_model_of_yes_and_no_is_measured_from_end_to_end(tmp_path):
    x = np.random.default_rng(0).normal(size=(60, 2)).astype(np.float32)
    device = Autodiff(PLAIN)
    loaders = DataLoaderBuilder().set_device(device).batch_size(16)
    loader = loaders.build((x, (x[:, 0] > 0.2).astype(int)))
    metrics = [
        AccuracyMetric.binary(0.0),
        PrecisionMetric.binary(0.0),
        AurocMetric.binary(),
        LossMetric(),
    ]
    learner = (
        LearnerBuilder(tmp_path)
        .renderer(None)
        .metrics(metrics)
        .num_epochs(8)
        .build(YesOrNo(nn.LinearConfig(2, 1).init(device)), AdamConfig().init(), 0.1)
    )
    model = learner.fit(loader, loader)
    scores = np.asarray(model.valid().layer(Tensor.from_numpy(x, PLAIN)))[:, 0]
    right = 100 * np.mean((scores > 0) == (x[:, 0] > 0.2))
    last = learner.result.history.last("valid")
    assert last["Accuracy"] == pytest.approx(right)
    assert last["AUROC [Macro]"] > 95
    summary = str(LearnerSummary(tmp_path, [metric.name for metric in metrics]))
    assert all(metric.name in summary for metric in metrics)


def test_many_labels_at_once_become_what_their_metrics_want():
    scores, targets = floats([[0.9, 0.8, 0.1]]), ints([[1, 0, 0]])
    item = MultiLabelClassificationOutput(floats([0.25]), scores, targets)
    shape = "loss [1], output [1, 3], targets [1, 3]"
    assert repr(item) == f"MultiLabelClassificationOutput({shape})"
    metrics = (HammingScore(), LossMetric(), PrecisionMetric.multilabel(0.5))
    percent = f"{100 * (2 / 3)},1"
    assert measure(item, *metrics) == [percent, "0.25,1", "50,1"]


def test_sequences_become_places_or_words():
    logits = floats([[[5.0, 0.0, 0.0], [0.0, 5.0, 0.0]]])
    item = SequenceOutput(floats([1.0]), logits, ints([[0, 2]]))
    places = (AccuracyMetric(), TopKAccuracyMetric(2), LossMetric())
    assert measure(item, *places) == ["50,2", "50,2", "1,2"]
    words = (CharErrorRate(), WordErrorRate(), RougeLScore(), BleuScore(1))
    assert measure(item, *words) == ["50,2", "50,2", "50,1", "50,1"]
    assert measure(item, PerplexityMetric())[0].endswith(",2")
    chosen = SequenceOutput(item.loss, logits, item.targets, ints([[0, 2, 1]]))
    assert measure(chosen, WordErrorRate()) == ["50,2"]
    assert "predictions [1, 3]" in repr(chosen)


@dataclass
class Text:
    tokens: Tensor


class Texts(Batcher):
    def batch(self, items, device=None):
        return Text(ints(items, device or DEVICE))


class NextWord(Module):
    """Guesses every word of a text from the word before."""

    table: nn.Embedding
    out: nn.Linear

    def valid_step(self, batch):
        n, t = batch.tokens.shape
        words = batch.tokens.slice([slice(0, n), slice(0, t - 1)])
        targets = batch.tokens.slice([slice(0, n), slice(1, t)])
        logits = self.out.forward(self.table.forward(words))
        loss = nn.CrossEntropyLossConfig().init(logits.device())
        flat = logits.reshape([n * (t - 1), 4])
        value = loss.forward(flat, targets.reshape([n * (t - 1)]))
        return SequenceOutput(value, logits, targets)

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)


def test_a_model_of_text_is_measured_from_end_to_end(tmp_path):
    DEVICE.seed(0)
    table = nn.EmbeddingConfig(4, 8).init(DEVICE)
    model = NextWord(table, nn.LinearConfig(8, 4).init(DEVICE))
    rounds = [[(start + i) % 4 for i in range(5)] for start in range(4)] * 8
    data = DataLoaderBuilder(Texts()).batch_size(8).build(InMemDataset(rounds))
    made = builder(tmp_path, 12)
    for metric in (PerplexityMetric(), WordErrorRate(), BleuScore(2), RougeLScore()):
        made.metric_valid_numeric(metric)
    trained = build(made, model, lr=0.05)
    trained.fit(data, data)
    history: MetricHistory = trained.result.history
    last = history.last("valid")
    assert last["Perplexity"] < 1.5 < history.epochs("Perplexity", "valid")[0][1]
    assert last["WER"] == 0.0
    assert last["BLEU-2"] == last["ROUGE-L"] == 100.0
    assert last["Perplexity"] == pytest.approx(math.exp(last["Loss"]), rel=1e-4)
