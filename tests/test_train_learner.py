"""The learner: what it writes, how it resumes, stops and fails."""

import asyncio
import os
import signal
import threading
import time
import weakref

import numpy as np
import pytest

from burnbook.errors import ConfigError, DataError, RecordError, TrainingError
from burnbook.module import Module
from burnbook.optim import AdamConfig
from burnbook.tensor import Tensor
from burnbook.train import (
    AccuracyMetric,
    Aggregate,
    Direction,
    InMemoryMetricLogger,
    KeepLastNCheckpoints,
    LearnerBuilder,
    LearningRateMetric,
    LossMetric,
    Metric,
    MetricEarlyStoppingStrategy,
    MetricEntry,
    MetricsRenderer,
    RegressionOutput,
    Split,
    StoppingCondition,
    TrainOutput,
)
from tests.tiny_training import (
    DEVICE,
    PLAIN,
    Batches,
    Tiny,
    builder,
    items,
    learner,
    loader,
    recorder,
    same_weights,
    tiny,
    weights,
)


class Probe(MetricsRenderer):
    """Calls a function after every training batch, and notes what it is told."""

    def __init__(self, act=None):
        self.act = act
        self.calls = []
        self.batches = 0

    def start(self, run):
        self.run = run
        self.calls.append("start")

    def update_train(self, state):
        self.calls.append(f"update {state.entry.name}")

    def render_train(self, progress):
        self.batches += 1
        self.calls.append("render")
        if self.act:
            self.act(self)

    def end_epoch(self, epoch, split, means):
        self.calls.append(f"end {epoch} {split} {sorted(means)}")

    def finish(self, result):
        self.calls.append("finish")

    def close(self):
        self.calls.append("close")


def build(made, model=None, lr=0.01):
    return made.build(model or tiny(), AdamConfig().init(), lr)


def stop_at(batch, how):
    def act(probe):
        if probe.batches == batch:
            how(probe.run.control)

    return Probe(act)


# What a training leaves


def test_training_improves_the_model_and_leaves_its_artifacts(tmp_path):
    trained = learner(tmp_path, epochs=15)
    trained.fit(loader(), loader(1))
    means = [value for _, value in trained.result.history.epochs("Loss", "valid")]
    assert means[-1] < 0.8 * means[0]
    assert trained.result.epochs == 15
    assert trained.result.interrupted is None
    folders = {path.name for path in tmp_path.iterdir()}
    assert folders == {"experiment.log", "train", "valid", "checkpoint"}
    assert len(list((tmp_path / "train").iterdir())) == 15


def test_log_lines_are_the_batches_of_the_epoch(tmp_path):
    learner(tmp_path, epochs=1).fit(loader(), loader(1))
    for split in ("train", "valid"):
        accuracy = (tmp_path / split / "epoch-1" / "Accuracy.log").read_text()
        assert [line.split(",")[1] for line in accuracy.splitlines()] == [
            "16",
            "16",
            "8",
        ]
        loss = (tmp_path / split / "epoch-1" / "Loss.log").read_text()
        assert [line.split(",")[1] for line in loss.splitlines()] == ["1", "1", "1"]
        assert loss.endswith("\n")


def test_the_diary_tells_the_story_in_burns_words(tmp_path):
    learner(tmp_path, epochs=1).fit(loader(), loader(1))
    text = (tmp_path / "experiment.log").read_text()
    head = "burn_train::learner::train_val: Fitting the model:\n Tiny {\n"
    assert head in text
    told = [line.partition("burn_train::")[2] for line in text.splitlines()]
    story = [line for line in told if line.startswith("learner::epoch")]
    assert story == [
        "learner::epoch: Executing training step for epoch 1",
        "learner::epoch: Iteration 1",
        "learner::epoch: Iteration 2",
        "learner::epoch: Iteration 3",
        "learner::epoch: Executing validation step for epoch 1",
    ]


def test_the_same_training_twice_gives_the_same_weights(tmp_path):
    made = learner(tmp_path / "a")
    first = made.fit(loader(), loader(1))
    assert same_weights(first, made.fit(loader(), loader(1)))
    assert same_weights(first, learner(tmp_path / "b").fit(loader(), loader(1)))
    assert same_weights(
        first, learner(tmp_path / "c").fit(loader(workers=2), loader(1))
    )


def test_the_model_given_stays_as_it_was(tmp_path):
    model = tiny()
    before = {path: value.copy() for path, value in weights(model).items()}
    learner(tmp_path, model=model).fit(loader(), loader(1))
    assert all(np.array_equal(before[p], v) for p, v in weights(model).items())


def test_a_plain_model_is_trained_under_autodiff(tmp_path):
    plain = tiny(PLAIN)
    trained = builder(tmp_path).devices([PLAIN])
    model = build(trained, plain).fit(loader(), loader(1))
    assert model.devices() == [DEVICE]
    assert same_weights(model, learner(tmp_path).fit(loader(), loader(1)))


def test_any_iterable_of_batches_is_a_loader(tmp_path):
    batches = [Batches().batch(items(4, seed)) for seed in range(3)]
    valid = [Batches().batch(items(4, 9), PLAIN)]
    trained = build(builder(tmp_path, 1))
    trained.fit(batches, valid)
    assert trained.result.epochs == 1


def test_metrics_without_a_file_leave_no_folder(tmp_path):
    folder = tmp_path / "nothing"
    loggers = (InMemoryMetricLogger(), InMemoryMetricLogger())
    made = builder(folder).metric_loggers(*loggers).with_application_logger(None)
    build(made).fit(loader(), loader(1))
    assert not folder.exists()
    assert len(loggers[0].read_numeric("Loss", 2)) == 3


def test_a_model_may_take_its_own_step(tmp_path):
    class Clipped(Tiny):
        def optimize(self, optim, lr, grads):
            steps.append(lr)
            return optim.step(lr, self, grads)

    steps = []
    model = tiny()
    model = Clipped(model.first, model.dropout, model.last)
    trained = learner(tmp_path, epochs=1, model=model)
    assert same_weights(
        trained.fit(loader(), loader(1)), learner(tmp_path, 1).fit(loader(), loader(1))
    )
    assert steps == [0.01] * 3


def test_accumulation_steps_once_per_group_with_the_sum(tmp_path):
    steps = []

    class Counted(Tiny):
        def optimize(self, optim, lr, grads):
            steps.append({path: np.asarray(grads.get(p.id)) for path, p in named(self)})
            return self

    def named(model):
        return model.named_params()

    model = tiny()
    model = Counted(model.first, model.dropout, model.last)
    build(builder(tmp_path, 1), model).fit(loader(), loader(1))
    singles, steps = steps, []
    build(builder(tmp_path, 1).grads_accumulation(2), model).fit(loader(), loader(1))
    assert len(singles) == 3
    assert len(steps) == 1
    for path, grad in steps[0].items():
        np.testing.assert_allclose(
            grad, singles[0][path] + singles[1][path], rtol=1e-5, atol=1e-7
        )


def test_two_devices_share_a_step(tmp_path):
    trained = build(builder(tmp_path, 8).devices([DEVICE, DEVICE]))
    model = trained.fit(loader(), loader(1))
    means = [value for _, value in trained.result.history.epochs("Loss", "train")]
    assert means[-1] < means[0]
    again = build(builder(tmp_path, 8).devices([DEVICE, DEVICE]))
    assert same_weights(model, again.fit(loader(), loader(1)))


# What renderers and strategies are told


def test_a_renderer_is_told_everything_in_order(tmp_path):
    probe = Probe()
    made = builder(tmp_path, 1).metric_train(LearningRateMetric()).renderer(probe)
    build(made).fit(loader(count=8), loader(1))
    assert probe.calls == [
        "start",
        "update Learning Rate",
        "update Accuracy",
        "update Loss",
        "render",
        "end 1 train ['Accuracy', 'Loss']",
        "end 1 valid ['Accuracy', 'Loss']",
        "finish",
        "close",
    ]
    assert probe.run.metrics == ("Accuracy", "Loss")
    assert probe.run.units == {"Accuracy": "%"}
    assert (probe.run.start_epoch, probe.run.num_epochs, probe.run.mode) == (
        1,
        1,
        "fit",
    )


def test_the_summary_is_shown_at_the_end(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "plain")
    build(builder(tmp_path, 2).summary()).fit(loader(), loader(1))
    shown = capsys.readouterr().out
    assert shown.startswith("=" * 24 + " Learner Summary ")
    assert "Total Epochs: 2\n" in shown
    assert "| Valid | Loss     | " in shown


def test_early_stopping_ends_the_training_and_says_why(tmp_path):
    strategy = MetricEarlyStoppingStrategy(
        LossMetric,
        Aggregate.Mean,
        Direction.Lowest,
        Split.Valid,
        StoppingCondition.NoImprovementSince(n_epochs=1),
    )
    trained = build(builder(tmp_path, 50).early_stopping(strategy), lr=0.0)
    trained.fit(loader(), [Batches().batch(items(16, 1), PLAIN)])
    assert trained.result.epochs == 2
    assert trained.result.interrupted == (
        "stopped early: Loss has not improved since epoch 1"
    )


def test_checkpoints_follow_the_strategy(tmp_path):
    made = builder(tmp_path, 4).with_file_checkpointer(recorder())
    build(made.with_checkpointing_strategy(KeepLastNCheckpoints(1))).fit(
        loader(), loader(1)
    )
    names = sorted(path.name for path in (tmp_path / "checkpoint").iterdir())
    assert names == ["model-4.mpk", "optim-4.mpk", "scheduler-4.mpk"]


def test_a_training_that_ends_early_leaves_no_worker_behind(tmp_path):
    probe = stop_at(2, lambda control: control.stop())
    trained = build(builder(tmp_path, 100).renderer(probe))
    before = set(threading.enumerate())
    trained.fit(loader(workers=2), loader(1, workers=2))
    assert set(threading.enumerate()) <= before


def test_a_step_may_use_the_memory_of_the_step_before(tmp_path):
    """Nothing of a batch is held while the next one is computed."""

    class Watching(Tiny):
        def train_step(self, batch):
            assert [ref() for ref in seen] == [None] * len(seen)
            output = super().train_step(batch)
            seen.append(weakref.ref(output.item))
            return output

    seen = []
    model = tiny()
    model = Watching(model.first, model.dropout, model.last)
    build(builder(tmp_path), model).fit(loader(), loader(1))
    assert len(seen) == 6


# Resuming


@pytest.mark.parametrize("number", [2, None])
def test_a_resumed_training_equals_an_uninterrupted_one(tmp_path, number):
    whole = learner(tmp_path / "whole", epochs=4)
    expected = whole.fit(loader(), loader(1))

    learner(tmp_path / "parts", epochs=2).fit(loader(), loader(1))
    made = builder(tmp_path / "parts", 4).with_file_checkpointer(recorder())
    resumed = build(made.checkpoint(number))
    assert same_weights(expected, resumed.fit(loader(), loader(1)))
    assert resumed.result.history.epochs("Loss", "valid") == (
        whole.result.history.epochs("Loss", "valid")
    )
    assert resumed.result.history.points("Loss", "train") == (
        whole.result.history.points("Loss", "train")
    )
    for split in ("train", "valid"):
        for epoch in range(1, 5):
            name = f"{split}/epoch-{epoch}/Loss.log"
            parts = (tmp_path / "parts" / name).read_bytes()
            assert parts == (tmp_path / "whole" / name).read_bytes()


def test_resuming_without_a_number_starts_where_nothing_was_saved(tmp_path):
    made = builder(tmp_path, 1).with_file_checkpointer(recorder()).checkpoint()
    trained = build(made)
    trained.fit(loader(), loader(1))
    assert trained.result.epochs == 1


def test_resuming_remembers_the_best_epoch(tmp_path):
    """The best epoch of the first part is deleted once a better one is saved."""
    learner(tmp_path, epochs=3).fit(loader(), loader(1))
    made = builder(tmp_path, 6).with_file_checkpointer(recorder()).checkpoint()
    build(made).fit(loader(), loader(1))
    names = {path.name for path in (tmp_path / "checkpoint").glob("model-*")}
    whole = tmp_path / "whole"
    learner(whole, epochs=6).fit(loader(), loader(1))
    assert names == {path.name for path in (whole / "checkpoint").glob("model-*")}


def test_resuming_where_nothing_is_left_says_so(tmp_path):
    learner(tmp_path, epochs=2).fit(loader(), loader(1))
    made = builder(tmp_path, 2).with_file_checkpointer(recorder()).checkpoint(2)
    with pytest.raises(TrainingError) as error:
        build(made).fit(loader(), loader(1))
    assert str(error.value) == (
        "checkpoint(2): epoch 2 is the last of 2: nothing is left\n"
        "  try: num_epochs(3) or more"
    )


def test_resuming_without_a_checkpointer_says_so(tmp_path):
    with pytest.raises(TrainingError) as error:
        build(builder(tmp_path).checkpoint(1)).fit(loader(), loader(1))
    assert str(error.value) == (
        "checkpoint: there is no checkpointer to load it with\n"
        "  try: with_file_checkpointer(...) with the recorder that saved it"
    )


def test_a_damaged_checkpoint_changes_nothing_and_is_named(tmp_path):
    learner(tmp_path, epochs=2).fit(loader(), loader(1))
    path = tmp_path / "checkpoint" / "optim-2.mpk"
    path.write_bytes(path.read_bytes()[:50])
    made = builder(tmp_path, 3).with_file_checkpointer(recorder()).checkpoint()
    with pytest.raises(RecordError, match=r"optim-2\.mpk"):
        build(made).fit(loader(), loader(1))


# Stopping and pausing


def test_stop_ends_after_the_batch_and_gives_the_model_so_far(tmp_path):
    probe = stop_at(5, lambda control: control.stop("enough"))
    trained = build(builder(tmp_path, 100).renderer(probe))
    model = trained.fit(loader(), loader(1))
    assert probe.batches == 5
    assert trained.result.interrupted == "enough"
    assert trained.result.epochs == 1
    assert not same_weights(model, tiny())


def test_a_stop_asked_for_in_one_training_does_not_meet_the_next(tmp_path):
    trained = build(builder(tmp_path, 1))
    trained.interrupter.stop("before")
    trained.fit(loader(), loader(1))
    assert trained.result.interrupted is None


def test_an_interrupt_stops_cleanly_and_gives_the_handler_back(tmp_path):
    before = signal.getsignal(signal.SIGINT)
    probe = stop_at(2, lambda control: os.kill(os.getpid(), signal.SIGINT))
    trained = build(builder(tmp_path, 100).renderer(probe))
    model = trained.fit(loader(), loader(1))
    assert isinstance(model, Tiny)
    assert trained.result.interrupted == "interrupted"
    assert probe.calls[-2:] == ["finish", "close"]
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_raises(tmp_path):
    def twice(control):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.01)

    probe = stop_at(2, twice)
    trained = build(builder(tmp_path, 100).renderer(probe))
    with pytest.raises(KeyboardInterrupt):
        trained.fit(loader(), loader(1))
    assert probe.calls[-1] == "close"
    assert trained.result.interrupted.startswith("KeyboardInterrupt")


def test_a_paused_training_waits_and_goes_on_with_equal_results(tmp_path):
    probe = stop_at(2, lambda control: control.pause())
    trained = build(builder(tmp_path, 1).renderer(probe))
    handle = trained.start(loader(), loader(1))
    deadline = time.monotonic() + 20
    while probe.batches < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    assert probe.batches == 2
    assert repr(handle) == "TrainingHandle(paused)"
    handle.resume()
    model = handle.wait()
    assert same_weights(model, learner(tmp_path, 1).fit(loader(), loader(1)))


def test_a_paused_training_can_be_stopped(tmp_path):
    probe = stop_at(1, lambda control: control.pause())
    handle = build(builder(tmp_path, 100).renderer(probe)).start(loader(), loader(1))
    handle.stop("tired")
    handle.wait()
    assert handle.done
    assert handle.result.interrupted == "tired"
    assert repr(handle) == "TrainingHandle(done)"


def test_one_learner_trains_one_model_at_a_time(tmp_path):
    probe = stop_at(1, lambda control: control.pause())
    trained = build(builder(tmp_path, 100).renderer(probe))
    handle = trained.start(loader(), loader(1))
    with pytest.raises(TrainingError) as error:
        trained.fit(loader(), loader(1))
    handle.stop()
    handle.wait()
    assert str(error.value) == (
        "Learner.fit: this learner is already training\n"
        "  try: wait for it, stop it with learner.interrupter.stop(), "
        "or build another learner"
    )


def test_a_thread_hands_its_error_to_whoever_waits(tmp_path):
    handle = build(builder(tmp_path)).start([], loader(1))
    with pytest.raises(DataError, match="the loader gave no batch"):
        handle.wait()


def test_an_awaited_training_leaves_the_event_loop_free(tmp_path):
    async def both():
        ticks = 0
        task = asyncio.create_task(made.fit_async(loader(), loader(1)))
        while not task.done():
            ticks += 1
            await asyncio.sleep(0.001)
        return await task, ticks

    made = learner(tmp_path, epochs=3)
    model, ticks = asyncio.run(both())
    assert ticks > 3
    assert same_weights(model, learner(tmp_path, 3).fit(loader(), loader(1)))


def test_a_cancelled_training_stops_and_gives_the_model_so_far(tmp_path):
    async def cancelled():
        task = asyncio.create_task(trained.fit_async(loader(), loader(1)))
        while probe.batches < 2:
            await asyncio.sleep(0.001)
        task.cancel()
        return await task

    probe = Probe(lambda probe: time.sleep(0.005))
    trained = build(builder(tmp_path, 10_000).renderer(probe))
    model = asyncio.run(cancelled())
    assert isinstance(model, Tiny)
    assert trained.result.interrupted == "cancelled"
    assert probe.run.mode == "await"
    names = [thread.name for thread in threading.enumerate()]
    assert "burnbook training" not in names


def test_an_interrupt_of_an_awaited_training_gives_the_model_too(tmp_path):
    probe = stop_at(2, lambda control: os.kill(os.getpid(), signal.SIGINT))
    trained = build(builder(tmp_path, 10_000).renderer(probe))
    model = asyncio.run(trained.fit_async(loader(), loader(1)))
    assert isinstance(model, Tiny)
    assert trained.result.interrupted == "cancelled"


# Failing


def fails(made, train=None, valid=None, model=None, lr=0.01):
    """The text of the error that a training ends with."""
    with pytest.raises((TrainingError, DataError)) as error:
        build(made, model, lr).fit(train or loader(), valid or loader(1))
    return str(error.value)


def poisoned(path, *values, model=None):
    """The tiny model with the first elements of a parameter replaced."""
    model = model or tiny()
    wanted = dict(model.named_params())[path].id

    class Poison:
        def map_float(self, number, tensor):
            if number != wanted:
                return tensor
            array = np.array(tensor)
            array.flat[: len(values)] = values
            return Tensor.from_numpy(array, tensor.backend).require_grad()

    return model.map(Poison())


def test_a_parameter_that_is_not_a_number_is_named(tmp_path):
    text = fails(builder(tmp_path), model=poisoned("last.bias", float("nan")))
    assert text == (
        "train epoch 1, iteration 1: the loss is NaN\n"
        "  parameter      last.bias: 1 NaN of 3 in its value\n"
        "  batch          all numbers are finite\n"
        "  learning rate  0.01\n"
        "  try: a learning rate below 0.01, gradient clipping, "
        "or a look for log(0), sqrt(0) and division by 0"
    )


def test_a_step_that_broke_a_parameter_is_named(tmp_path):
    class Breaking(Tiny):
        def optimize(self, optim, lr, grads):
            if len(steps) == 4:
                return poisoned("first.weight", np.nan, np.inf, model=self)
            steps.append(lr)
            return optim.step(lr, self, grads)

    steps = []
    model = tiny()
    model = Breaking(model.first, model.dropout, model.last)
    made = builder(tmp_path, 9).with_file_checkpointer(recorder())
    assert fails(made, model=model) == (
        "train epoch 2, iteration 3: the loss is NaN\n"
        "  parameter      first.weight: 1 NaN and 1 infinity of 32 in its value, "
        "since the step of iteration 2\n"
        "  batch          all numbers are finite\n"
        "  learning rate  0.01\n"
        f"  checkpoint     epoch 1 is kept in {tmp_path}/checkpoint\n"
        "  try: a learning rate below 0.01, gradient clipping, "
        "or a look for log(0), sqrt(0) and division by 0"
    )


def test_a_batch_that_is_not_a_number_is_named(tmp_path):
    batch = Batches().batch(items(4))
    x = np.array(batch.x)
    x[0, 0] = np.nan
    batch.x = Tensor.from_numpy(x, DEVICE)
    text = fails(builder(tmp_path), train=[batch])
    assert "  batch          x: 1 NaN of 16\n" in text
    assert "  parameter      last.bias: 3 NaN of 3 in its gradient\n" in text
    assert text.endswith(
        "  try: a dataset without NaN and infinity; the batch came with them"
    )


def test_a_loss_that_breaks_in_validation_is_named(tmp_path):
    batch = Batches().batch(items(4), PLAIN)
    batch.x = Tensor.from_numpy(np.full((4, 4), np.inf, np.float32), PLAIN)
    text = fails(builder(tmp_path), valid=[batch])
    assert text == (
        "valid epoch 1, iteration 1: the loss is NaN\n"
        "  parameter  all values and gradients are finite\n"
        "  batch      x: 16 infinities of 16\n"
        "  try: a dataset without NaN and infinity; the batch came with them"
    )


def test_a_failed_training_keeps_its_logs_and_says_so_in_the_diary(tmp_path):
    fails(builder(tmp_path), model=poisoned("last.bias", float("nan")))
    diary = (tmp_path / "experiment.log").read_text()
    where = "train epoch 1, iteration 1: the loss is NaN"
    assert f"ERROR burn_train::learner: PANIC => TrainingError: {where}\n" in diary


@pytest.mark.parametrize("step", ["train_step", "valid_step"])
def test_a_model_without_steps_is_refused_when_building(tmp_path, step):
    class Half(Tiny):
        pass

    setattr(Half, step, None)
    model = tiny()
    model = Half(model.first, model.dropout, model.last)
    with pytest.raises(ConfigError) as error:
        build(builder(tmp_path), model)
    returned = {
        "train_step": "TrainOutput(self, loss.backward(), item)",
        "valid_step": "the item, such as ClassificationOutput(loss, output, targets)",
    }
    assert str(error.value) == (
        f"LearnerBuilder.build: Half has no method {step}, "
        "so the learner cannot train it\n"
        f"  try: def {step}(self, batch) in Half, which returns {returned[step]}"
    )


def test_what_cannot_be_trained_is_refused_when_building(tmp_path):
    class Empty(Module):
        train_step = valid_step = None

    made = builder(tmp_path)
    for model, optim, text in (
        (
            3,
            AdamConfig().init(),
            "int is not a Module, so there is nothing to learn\n"
            "  try: a subclass of Module with layers as annotated fields",
        ),
        (
            Empty(),
            AdamConfig().init(),
            "Empty has no parameters, so there is nothing to learn\n"
            "  try: a subclass of Module with layers as annotated fields",
        ),
        (
            tiny(),
            AdamConfig(),
            "AdamConfig is not an optimizer, but the config of one\n"
            "  try: AdamConfig(...).init()",
        ),
        (tiny(), None, "NoneType is not an optimizer\n  try: AdamConfig().init()"),
    ):
        with pytest.raises(ConfigError) as error:
            made.build(model, optim, 0.01)
        assert str(error.value) == f"LearnerBuilder.build: {text}"


def test_a_loss_in_place_of_its_gradients_is_explained():
    item = tiny().valid_step(Batches().batch(items(4)))
    with pytest.raises(TrainingError) as error:
        TrainOutput(tiny(), item.loss, item)
    assert str(error.value) == (
        "TrainOutput: the gradients are a Tensor, not what backward() returns\n"
        "  try: TrainOutput(self, item.loss.backward(), item)"
    )


def test_a_step_that_returns_something_else_is_shown_what_to_return(tmp_path):
    class Wrong(Tiny):
        def train_step(self, batch):
            return self.valid_step(batch)

    model = tiny()
    model = Wrong(model.first, model.dropout, model.last)
    assert fails(builder(tmp_path), model=model) == (
        "Wrong.train_step: it returned ClassificationOutput, not TrainOutput\n"
        "  try: return TrainOutput(self, item.loss.backward(), item)"
    )


def test_a_metric_that_wants_another_item_is_told_what_there_is(tmp_path):
    class Regression(Tiny):
        def valid_step(self, batch):
            item = super().valid_step(batch)
            return RegressionOutput(item.loss, item.output, item.output)

    model = tiny()
    model = Regression(model.first, model.dropout, model.last)
    assert fails(builder(tmp_path), model=model).startswith(
        "RegressionOutput.adapt: this item cannot become an AccuracyInput\n"
        "  it can become  LossInput\n"
    )


def test_an_item_that_adapts_to_nothing_is_explained(tmp_path):
    class Bare(Tiny):
        def valid_step(self, batch):
            return super().valid_step(batch).loss

        def train_step(self, batch):
            output = super().valid_step(batch)
            return TrainOutput(self, output.loss.backward(), 3)

    model = tiny()
    model = Bare(model.first, model.dropout, model.last)
    assert fails(builder(tmp_path), model=model) == (
        "AccuracyMetric: int cannot be adapted to AccuracyInput\n"
        "  try: an item such as ClassificationOutput(loss, output, targets), "
        "or a subclass of Adaptor of your own"
    )


def test_an_empty_loader_is_an_error(tmp_path):
    assert fails(builder(tmp_path), train=iter([])) == (
        "training data: the loader gave no batch in epoch 1\n"
        "  loader  list_iterator\n"
        "  try: a dataset that is not empty, and a loader that can be walked many times"
    )


def test_an_artifact_directory_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "run").write_text("mine")
    with pytest.raises(TrainingError) as error:
        build(builder(tmp_path / "run"))
    assert str(error.value) == (
        f"artifact directory {tmp_path}/run: this is a file, not a folder\n"
        "  try: another folder, or move the file away"
    )
    with pytest.raises(TrainingError) as error:
        build(builder(tmp_path / "run" / "deeper"))
    assert str(error.value) == (
        f"artifact directory {tmp_path}/run/deeper: {tmp_path}/run is a file, "
        "not a folder\n  try: another folder, or move the file away"
    )
    assert (tmp_path / "run").read_text() == "mine"


def test_an_artifact_directory_without_permission_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("burnbook.train.folder.os.access", lambda *asked: False)
    with pytest.raises(TrainingError) as error:
        build(builder(tmp_path))
    assert str(error.value) == (
        f"artifact directory {tmp_path}: no permission to write in it\n"
        "  try: a folder of your own"
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [("num_epochs", 0), ("grads_accumulation", -1), ("checkpoint", True)],
)
def test_counts_must_be_counts(option, value):
    with pytest.raises(ConfigError) as error:
        getattr(LearnerBuilder("x"), option)(value)
    assert str(error.value) == (
        f"LearnerBuilder.{option}: {value!r} is not a number of at least 1\n"
        f"  try: {option}(1)"
    )


def test_options_that_make_no_sense_are_refused():
    class Text(Metric):
        name = "Text"

        def update(self, item, metadata):
            return MetricEntry(self.name, "", "")

    for act, text in (
        (
            lambda b: b.devices([]),
            "LearnerBuilder.devices: the list is empty\n"
            "  try: devices([Numpy()]), or leave it out to train where the model is",
        ),
        (
            lambda b: b.metric_train_numeric(Text()),
            "LearnerBuilder: Text has no value, so it cannot be plotted\n"
            "  try: metric_train(Text()) or metric_valid(Text())",
        ),
        (
            lambda b: b.metric_valid(3),
            "LearnerBuilder: int is not a metric\n  try: a subclass of Metric",
        ),
        (
            lambda b: b.with_file_checkpointer("model.mpk"),
            "LearnerBuilder.with_file_checkpointer: str is not a recorder of files\n"
            "  try: with_file_checkpointer(CompactRecorder())",
        ),
    ):
        with pytest.raises(ConfigError) as error:
            act(LearnerBuilder("x"))
        assert str(error.value) == text


def test_a_metric_registered_twice_is_logged_once(tmp_path):
    made = LearnerBuilder(tmp_path).renderer(MetricsRenderer())
    for _ in range(2):
        made.metric_train_numeric(AccuracyMetric())
    build(made).fit(loader(), loader(1))
    log = (tmp_path / "train" / "epoch-1" / "Accuracy.log").read_text()
    assert len(log.splitlines()) == 3
