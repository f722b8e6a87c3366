"""The options of a training: what each of them changes, and what it refuses."""

import io
from functools import partial

import numpy as np
import pytest

from burnbook import train
from burnbook.backend import Numpy
from burnbook.core.errors import ArgumentError, ConfigError, TrainingError
from burnbook.module import Module
from burnbook.optim import AdamConfig
from burnbook.record import BurnpackRecorder
from burnbook.tensor import Tensor
from burnbook.train.checkpoint_strategy import Save
from burnbook.train.parallel import on_place
from tests.support.refusals import refused
from tests.support.tiny_training import (
    DEVICE,
    PLAIN,
    Probe,
    Tiny,
    build,
    builder,
    checkpointed,
    counts_of,
    file_names,
    learner,
    loader,
    log_lines,
    recorder,
    same_weights,
    tiny,
    weights,
)


def fit(made, model=None):
    trained = build(made, model)
    return trained.fit(loader(), loader(1)), trained.result


# Metrics and loggers


def test_metrics_are_registered_for_both_splits(tmp_path):
    made = train.LearnerBuilder(tmp_path).renderer(None)
    made.metrics([train.AccuracyMetric, train.LossMetric()])
    _, result = fit(made.metrics_text(train.LearningRateMetric()))
    for split in ("train", "valid"):
        names = file_names(tmp_path / split / "epoch-1")
        assert names == ["Accuracy.log", "Learning_Rate.log", "Loss.log"]
    assert result.history.metrics == ("Accuracy", "Loss")


def test_each_split_has_a_metric_of_its_own(tmp_path):
    metric = train.LossMetric()
    plan = train.LearnerBuilder(tmp_path).metrics((metric,))._plan
    (first, _), (valid, _) = plan.train_metrics[0], plan.valid_metrics[0]
    assert first is metric
    assert valid is not metric


def test_loggers_of_ones_own_add_up_and_replace_files(tmp_path):
    logger = train.InMemoryMetricLogger
    pairs = [(logger(), logger()) for _ in range(2)]
    made = builder(tmp_path)
    for pair in pairs:
        made.metric_loggers(*pair)
    fit(made)
    assert not (tmp_path / "train").exists()
    for first, valid in pairs:
        assert len(first.read_numeric("Loss", 2)) == 3
        assert len(valid.read_numeric("Accuracy", 1)) == 3
        assert first.epochs() == 2


class Margin(train.NumericMetric):
    """How far the best class is ahead: an input and a metric of one's own."""

    name = "Margin"

    class Input:
        def __init__(self, output):
            self.output = np.asarray(output)

    def update(self, item, metadata):
        best = np.sort(item.output, axis=1)
        ahead = float((best[:, -1] - best[:, -2]).mean())
        return self.state.update(ahead, len(best), self.options)


class Answer(Module):
    """A model whose steps return an item of its own."""


class Guess:
    def __init__(self, item):
        self.item, self.loss = item, item.loss

    def adapt(self, into):
        return into(self.item.output) if into is Margin.Input else self.item.adapt(into)


class Guessing(Tiny):
    def valid_step(self, batch):
        return Guess(super().valid_step(batch))

    def train_step(self, batch):
        item = self.valid_step(batch)
        return train.TrainOutput(self, item.loss.backward(), item)


def test_outputs_and_metrics_of_ones_own_work_together(tmp_path):
    class Seen(train.Metric):
        name = "Seen"

        def update(self, item, metadata):
            text = f"{metadata.progress.items_processed} of batch {metadata.iteration}"
            return train.MetricEntry(self.name, text, text)

    made = train.LearnerBuilder(tmp_path).metrics([Margin(), train.LossMetric()])
    fit(made.metric_train(Seen).renderer(None), tiny(kind=Guessing))
    assert counts_of(log_lines(tmp_path, "valid", "Margin")) == ["16", "16", "8"]
    text = (tmp_path / "train" / "epoch-1" / "Seen.log").read_text()
    assert text == "16 of batch 1\n32 of batch 2\n40 of batch 3\n"


def test_the_diary_may_stand_elsewhere_or_nowhere(tmp_path):
    diary = train.FileApplicationLogger(tmp_path / "diary.txt")
    fit(builder(tmp_path / "a").with_application_logger(diary))
    assert "Executing training step for epoch 2" in (tmp_path / "diary.txt").read_text()
    assert not (tmp_path / "a" / "experiment.log").exists()
    fit(builder(tmp_path / "b").with_application_logger(None))
    assert not (tmp_path / "b" / "experiment.log").exists()


# Renderers


def test_no_renderer_shows_nothing(tmp_path, capsys):
    fit(builder(tmp_path).renderer(None))
    assert capsys.readouterr() == ("", "")


def test_burns_own_renderer_prints_the_progress_of_every_batch(tmp_path):
    stream = io.StringIO()
    fit(builder(tmp_path, 1).renderer(train.CliMetricsRenderer(stream)))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 6
    progress = "progress: Progress { items_processed: 32, items_total: 40 }"
    second = (
        f"TrainingProgress {{ {progress}, epoch: 1, epoch_total: 1, iteration: 2 }}"
    )
    assert lines[1] == lines[4] == second


# Devices and strategies


@pytest.mark.parametrize(
    "others", [[PLAIN], [Numpy()], [Numpy(float="f64", compiled=False)], [DEVICE] * 2]
)
def test_several_devices_share_every_step(tmp_path, others):
    """The sum of the gradients of a round, as one device gets it from a group."""
    seen = []

    class Watching(Tiny):
        def optimize(self, optim, lr, grads):
            seen.append({p: np.asarray(grads.get(x.id)) for p, x in named(self)})
            return self

    named = Module.named_params

    def gradients(made):
        model = tiny()
        seen.clear()
        plain = Watching(model.first, type(model.dropout)(0.0), model.last)
        fit(made, plain)
        return list(seen)

    count = 1 + len(others)
    together = gradients(builder(tmp_path, 1).devices([PLAIN, *others]))
    one = gradients(builder(tmp_path, 1).grads_accumulation(count))
    assert len(together) == len(one) == 3 // count
    for path, grad in together[0].items():
        np.testing.assert_allclose(grad, one[0][path], rtol=1e-4, atol=1e-6)
        assert grad.dtype == np.float32


def test_batches_go_to_a_device_whatever_they_are_made_of():
    other = Numpy(float="f64", compiled=False)
    x = Tensor.from_data([1.0, 2.0], PLAIN)

    class Fields:
        def __init__(self):
            self.x, self.names = x, ["a"]

    moved = on_place({"a": [x, (x, 3)], "b": Fields(), "c": None, "d": range(2)}, other)
    tensors = (moved["a"][0], moved["a"][1][0], moved["b"].x)
    assert [tensor.device() for tensor in tensors] == [other] * 3
    assert moved["a"][1][1] == 3
    assert moved["b"].names == ["a"]
    assert (moved["c"], moved["d"]) == (None, range(2))
    assert x.device() is PLAIN


def test_an_error_on_one_of_several_devices_is_raised(tmp_path):
    class Failing(Tiny):
        def train_step(self, batch):
            raise ValueError("on a device")

    with pytest.raises(ValueError, match="on a device"):
        fit(builder(tmp_path, 1).devices([PLAIN, PLAIN]), tiny(kind=Failing))


def test_strategies_say_what_devices_say(tmp_path):
    single = train.TrainingStrategy.SingleDevice(PLAIN)
    several = train.TrainingStrategy.MultiDevice([PLAIN] * 2)
    for count, strategy in ((1, single), (2, several)):
        one, _ = fit(builder(tmp_path / f"a{count}").devices([PLAIN] * count))
        made = builder(tmp_path / f"b{count}").learning_strategy(strategy)
        other, _ = fit(made)
        assert same_weights(one, other)
    assert repr(single) == "TrainingStrategy(SingleDevice, 1 device)"


def test_a_paradigm_of_ones_own_decides_about_steps(tmp_path):
    class Twice(train.LearningParadigm):
        group = 2

        def steps(self, batches, model):
            for number, batch, progress in batches:
                for _ in range(2):
                    yield number, batch, model().train_step(batch), progress

    twice = train.TrainingStrategy.Custom(Twice())
    _, result = fit(builder(tmp_path, 1).with_training_strategy(twice))
    assert len(result.history.points("Loss", "train")) == 6
    assert len(result.history.points("Loss", "valid")) == 3
    assert repr(twice) == "TrainingStrategy(Custom, Twice(group=2))"
    made = builder(tmp_path / "a").with_training_strategy(train.LearningParadigm())
    plain, _ = fit(made)
    assert same_weights(plain, fit(builder(tmp_path / "b"))[0])


def test_strategies_that_make_no_sense_are_refused():
    made, strategy = train.LearnerBuilder("x"), train.TrainingStrategy
    sharded = partial(strategy.MultiDevice, [PLAIN], "sharded")
    where, cure = "TrainingStrategy.MultiDevice: ", "try: MultiDeviceOptim.OptimMain"
    refused(ConfigError, sharded, f"{where}'sharded'", cure)
    cures = ("try: ", "of LearningParadigm")
    where = "TrainingStrategy.Custom: 3 has no steps"
    refused(ConfigError, partial(strategy.Custom, 3), where, *cures)
    for option, given, what, cure in (
        ("with_training_strategy", 3, "3", "TrainingStrategy.Single"),
        ("with_interrupter", train.Interrupter, "Interrupter", "Interrupter()"),
    ):
        act = partial(getattr(made, option), given)
        refused(ConfigError, act, f"LearnerBuilder.{option}: {what}", f"try: {cure}")
    assert strategy.MultiDevice([PLAIN], train.MultiDeviceOptim.OptimMainDevice)


def test_gradient_checkpointing_changes_no_bit(tmp_path):
    one, _ = fit(builder(tmp_path / "a").gradient_checkpointing())
    other, _ = fit(builder(tmp_path / "b"))
    assert same_weights(one, other)
    assert "BalancedCheckpointing" in repr(one.devices()[0].checkpointing)


# Checkpoints, stopping


def test_a_checkpointing_strategy_of_ones_own(tmp_path):
    class EverySecond(train.CheckpointingStrategy):
        def checkpointing(self, epoch, store):
            return [Save()] if epoch % 2 == 0 else []

    fit(checkpointed(tmp_path, 5).with_checkpointing_strategy(EverySecond()))
    names = {path.name for path in (tmp_path / "checkpoint").glob("model-*")}
    assert names == {"model-2.mpk", "model-4.mpk"}
    _, result = fit(checkpointed(tmp_path, 6).checkpoint())
    assert result.epochs == 6
    assert len(result.history.epochs("Loss", "valid")) == 6


def test_the_default_checkpointer_writes_burnpack(tmp_path):
    fit(builder(tmp_path, 1).with_default_checkpointers())
    names = file_names(tmp_path / "checkpoint")
    assert names == ["model-1.bpk", "optim-1.bpk", "scheduler-1.bpk"]
    record = BurnpackRecorder().load(tmp_path / "checkpoint" / "model-1.bpk")
    assert sorted(record) == ["first", "last"]


def test_an_early_stopping_strategy_of_ones_own(tmp_path):
    class Third(train.EarlyStoppingStrategy):
        def should_stop(self, epoch, store):
            stores.append(store)
            seen.append((epoch, store.find_metric("Loss", epoch) is not None))
            return epoch == 3

    seen, stores = [], []
    _, result = fit(builder(tmp_path, 9).early_stopping(Third()))
    assert result.interrupted == "stopped early: Third"
    assert seen == [(1, True), (2, True), (3, True)]
    with pytest.raises(TypeError, match="EarlyStoppingStrategy does not define when"):
        train.EarlyStoppingStrategy().should_stop(1, stores[0])


def test_one_interrupter_may_stop_several_trainings(tmp_path):
    control = train.Interrupter()
    probe = Probe(lambda probe: control.stop("both"))
    for name in "ab":
        made = builder(tmp_path / name, 50).renderer(probe).with_interrupter(control)
        assert made.interrupter() is control
        _, result = fit(made)
        assert (result.interrupted, result.epochs) == ("both", 0)


# The newer way to start


def test_supervised_training_trains_as_the_builder_does(tmp_path):
    training = train.SupervisedTraining(tmp_path / "new", loader(), loader(1))
    training.metrics([train.AccuracyMetric(), train.LossMetric()]).num_epochs(2)
    training.renderer(None).with_file_checkpointer(recorder())
    given = tiny()
    result = training.launch(train.Learner(given, AdamConfig().init(), 0.01))
    trained = learner(tmp_path / "old").fit(loader(), loader(1))
    assert same_weights(result.model, trained)
    assert not same_weights(given, trained)
    assert result.model.devices() == [PLAIN]  # the one for inference
    assert isinstance(result.renderer, train.MetricsRenderer)
    assert repr(result) == (
        "LearningResult(Tiny, TrainingResult(2 epochs, "
        "MetricHistory(Accuracy, Loss; 2 epochs)))"
    )
    assert weights(given).keys() == weights(trained).keys()
    assert file_names(tmp_path / "new") == file_names(tmp_path / "old")


def test_what_cannot_be_launched_is_refused(tmp_path):
    training = train.SupervisedTraining(tmp_path, loader(), loader(1))
    assert repr(training) == f"SupervisedTraining({str(tmp_path)!r}, 1 epoch)"
    adam = AdamConfig()
    empty = train.Learner(Answer(), adam.init(), 0.1)
    refused(
        ArgumentError,
        lambda: train.Learner(tiny(), adam, 0.1),
        "Learner: optim must be an Optimizer, not AdamConfig",
        "try: AdamConfig(…).init()",
    )
    for given, what, cure in (
        (tiny(), "Tiny is not a learner", "launch(Learner(model, optim"),
        (empty, "Answer has no param", "a subclass of Mod"),
    ):
        act = partial(training.launch, given)
        refused(ConfigError, act, f"SupervisedTraining.launch: {what}", f"try: {cure}")
    with pytest.raises(ConfigError, match=r"^SupervisedTraining\.num_epochs: 0 is"):
        training.num_epochs(0)


def test_a_learner_without_a_plan_says_how_to_get_one():
    alone = train.Learner(tiny(), AdamConfig().init(), 0.1)
    assert repr(alone) == "Learner(Tiny)"
    cures = ("try: SupervisedTraining(folder, train, valid).launch", "LearnerBuilder(")
    told = ("how long to train", *cures)
    refused(TrainingError, lambda: alone.fit(loader(), loader(1)), "Learner: ", *told)
