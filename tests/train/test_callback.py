"""Callbacks: what they see, what they make of the model, how they are saved."""

from dataclasses import dataclass

import numpy as np
import pytest

from burnbook import nn, train
from burnbook.core.errors import BurnbookError, ConfigError, TrainingError
from burnbook.module import Module, ModuleMapper
from burnbook.tensor import Tensor
from burnbook.train import (
    AveragedWeights,
    Callback,
    ClassificationOutput,
    Direction,
    Ema,
    RestoreBest,
    Split,
    TrainOutput,
)
from tests.support.tiny_training import (
    DEVICE,
    PLAIN,
    Probe,
    Tiny,
    build,
    builder,
    checkpointed,
    file_names,
    fitted,
    loader,
    same_weights,
    stop_at,
    tiny,
    weights,
)


class Halves(ModuleMapper):
    def map_float(self, number, tensor):
        return tensor * 0.5


class Zero(ModuleMapper):
    def map_float(self, number, tensor):
        return tensor * 0.0


class Notes(Callback):
    """Notes what it is told, and by whom the model was changed before."""

    def __init__(self, name="Notes"):
        self.own, self.events, self.models = name, [], []

    @property
    def name(self):
        return self.own

    def note(self, event, state):
        self.events.append((event, state.epoch, state.iteration, state.step))
        self.models.append(state.model)
        self.state = state

    def on_step(self, state):
        self.note("step", state)
        assert isinstance(state.output, ClassificationOutput)
        assert state.metrics == {}

    def on_valid(self, state):
        self.note("valid", state)

    def on_epoch(self, state):
        self.note("epoch", state)
        assert {split: list(means) for split, means in state.metrics.items()} == {
            "train": ["Accuracy", "Loss"],
            "valid": ["Accuracy", "Loss"],
        }

    def on_end(self, state):
        self.note("end", state)


class Normed(Module):
    """A network with running statistics."""

    first: nn.Linear
    norm: nn.BatchNorm
    last: nn.Linear

    def forward(self, x):
        return self.last.forward(self.norm.forward(self.first.forward(x)).relu())

    valid_step = Tiny.valid_step

    def train_step(self, batch):
        item = self.valid_step(batch)
        return TrainOutput(self, item.loss.backward(), item)


def normed():
    DEVICE.seed(2)
    return Normed(
        nn.LinearConfig(4, 8).init(DEVICE),
        nn.BatchNormConfig(8).init(DEVICE),
        nn.LinearConfig(8, 3).init(DEVICE),
    )


def with_callbacks(made, *callbacks):
    for callback in callbacks:
        made.callback(callback)
    return made


# What they are told


def test_a_callback_is_told_of_steps_epochs_and_the_end(tmp_path):
    notes = Notes()
    trained = fitted(builder(tmp_path, 2).callback(notes))
    assert notes.events == [
        *(("step", 1, n, n) for n in (1, 2, 3)),
        ("valid", 1, 3, 3),
        ("epoch", 1, 3, 3),
        *(("step", 2, n, n + 3) for n in (1, 2, 3)),
        ("valid", 2, 3, 6),
        ("epoch", 2, 3, 6),
        ("end", 2, 3, 6),
    ]
    state = notes.state
    assert (state.num_epochs, state.lr, state.device) == (2, 0.01, DEVICE)
    assert (state.directory, state.interrupted) == (tmp_path, None)
    assert len(list(state.batches())) == 3
    assert notes.models[-1] is trained.model


def test_a_callback_that_changes_nothing_changes_nothing(tmp_path):
    plain = fitted(builder(tmp_path / "a")).model
    seen = fitted(with_callbacks(builder(tmp_path / "b"), Notes(), Callback())).model
    assert same_weights(plain, seen)


@pytest.mark.parametrize(
    ("option", "steps"),
    [
        (lambda made: made.grads_accumulation(2), [2]),
        (lambda made: made.devices([DEVICE, DEVICE]), [2]),
        (lambda made: made.with_training_strategy(Twice()), [1, 2, 3]),
    ],
    ids=["accumulation", "devices", "own strategy"],
)
def test_a_step_is_a_step_of_the_optimizer(tmp_path, option, steps):
    notes, ema = Notes(), Ema(0.5)
    made = with_callbacks(option(builder(tmp_path, 1)), notes, ema)
    model = fitted(made).model
    told = [event for event in notes.events if event[0] == "step"]
    assert [iteration for _, _, iteration, _ in told] == steps
    assert ema.steps == len(steps)
    wanted = None
    for seen in notes.models[: len(steps)]:
        found = weights(seen)
        wanted = wanted or found
        wanted = {path: 0.5 * (wanted[path] + found[path]) for path in found}
    for path, value in weights(model).items():
        np.testing.assert_allclose(value, wanted[path], 1e-5, 1e-7)


class Twice(train.LearningParadigm):
    group = 2

    def steps(self, batches, model):
        for number, batch, progress in batches:
            for _ in range(2):
                yield number, batch, model().train_step(batch), progress


# What they make of the model


def test_a_model_that_is_returned_is_trained_on(tmp_path):
    notes = Notes("after")
    halve = train.FunctionCallback(lambda state: state.model.map(Halves()), "step")
    made = with_callbacks(builder(tmp_path / "a", 1), halve, notes)
    small = fitted(made).model
    assert small is notes.models[-1]

    class Own(Tiny):
        def optimize(self, optim, lr, grads):
            return optim.step(lr, self, grads).map(Halves())

    same = fitted(builder(tmp_path / "b", 1), tiny(kind=Own)).model
    assert same_weights(small, same)


def test_callbacks_work_in_their_order(tmp_path):
    first, between, last = Notes("first"), Notes("between"), Notes("last")
    made = builder(tmp_path, 1)
    for callback in (first, lambda s: s.model.map(Halves()), between):
        made.callback(callback)
    made.callback(lambda s: s.model.map(Zero()), on="end").callback(last)
    model = fitted(made).model
    whole, halved = (
        weights(each.models[[e[0] for e in each.events].index("epoch")])
        for each in (first, between)
    )
    for path, value in whole.items():
        np.testing.assert_allclose(halved[path], 0.5 * value)
        assert not weights(model)[path].any()
    assert last.models[-1] is model


def test_a_function_is_called_when_it_asks_to_be(tmp_path):
    calls = {"step": [], "epoch": [], "end": []}
    made = builder(tmp_path, 2)
    for on, found in calls.items():
        made.callback(lambda state, found=found: found.append(state.step), on=on)
    made.callback(lambda state: calls["epoch"].append(-state.step))
    fitted(made)
    assert calls == {
        "step": [1, 2, 3, 4, 5, 6],
        "epoch": [3, -3, 6, -6],
        "end": [6],
    }


def test_a_model_from_another_place_is_brought_back(tmp_path):
    made = builder(tmp_path, 2).callback(lambda state: state.model.valid())
    model = fitted(made).model
    assert model.devices() == [DEVICE]
    assert all(param.is_require_grad for _, param in model.named_params())
    assert same_weights(model, fitted(builder(tmp_path / "b", 2)).model)


def test_a_callback_can_stop_the_training(tmp_path):
    made = builder(tmp_path, 5).callback(
        lambda state: state.control.stop("good enough") if state.step == 4 else None,
        on="step",
    )
    trained = fitted(made)
    assert (trained.epochs, trained.result.interrupted) == (1, "good enough")


# What is refused


def test_what_is_not_a_callback_is_refused():
    for wrong in (3, "Ema", train.LossMetric(), Tiny):
        with pytest.raises(ConfigError, match="is not a Callback"):
            builder("x").callback(wrong)
    with pytest.raises(ConfigError, match="on='batch' is not one of 'step'"):
        builder("x").callback(print, on="batch")
    with pytest.raises(ConfigError, match="is for plain functions"):
        builder("x").callback(Ema(0.9), on="step")
    assert repr(builder("x").callback(Notes)._plan.callbacks[0]) == "Notes()"


@pytest.mark.parametrize("event", ["on_step", "on_valid", "on_epoch", "on_end"])
def test_an_error_names_the_callback(tmp_path, event):
    class Pruned(Exception):
        pass

    class Broken(Callback):
        pass

    def fail(self, state):
        raise Pruned("why")

    setattr(Broken, event, fail)
    made = build(builder(tmp_path).callback(Broken()))
    with pytest.raises(Pruned) as error:
        made.fit(loader(), loader(1))
    place = f"Broken.{event}, epoch "
    assert any(place in note for note in error.value.__notes__)
    assert f"Broken.{event}" in made.result.interrupted
    assert f"Broken.{event}" in (tmp_path / "experiment.log").read_text()
    assert not same_weights(made.model, tiny())  # the model so far is kept


def test_an_error_of_ours_has_a_line_with_the_callback(tmp_path):
    made = builder(tmp_path).callback(lambda state: state.model.load_record({}))
    trained = build(made)
    with pytest.raises(BurnbookError, match=r"callback .*lambda.on_epoch, epoch 1"):
        trained.fit(loader(), loader(1))
    assert "in the callback lambda.on_epoch" in trained.result.interrupted


@pytest.mark.parametrize("made", [1, "text", {}, nn.LinearConfig(2, 2)])
def test_what_is_returned_must_be_a_model(tmp_path, made):
    what = rf"lambda.on_epoch: it returned {type(made).__name__}, not a Tiny"
    with pytest.raises(TrainingError, match=what):
        fitted(builder(tmp_path).callback(lambda state: made))


def test_the_metric_to_restore_by_must_be_measured():
    with pytest.raises(ConfigError, match="callback: 'F1' is not measured"):
        build(builder("x").callback(RestoreBest("F1")))
    with pytest.raises(ConfigError, match="is no direction"):
        RestoreBest("Loss", "lowest")
    with pytest.raises(ConfigError, match="is not a split"):
        RestoreBest("Loss", split=Split.Test)
    with pytest.raises(ConfigError, match="not in"):
        Ema(1.0)
    with pytest.raises(ConfigError, match="whole number"):
        AveragedWeights(0)


# The ones that are there


def test_the_average_is_the_result_and_what_is_validated_on_wish(tmp_path):
    def losses(name, *callbacks):
        made = with_callbacks(builder(tmp_path / name, 3), *callbacks)
        trained = fitted(made)
        split = trained.result.history.epochs
        return trained, split("Loss", "train"), split("Loss", "valid")

    plain, train_losses, valid_losses = losses("plain")
    both, hidden = Ema(0.9), Ema(0.9, valid=False, result=False)
    averaged, *found = losses("both", both)
    assert found[0] == train_losses
    assert found[1] != valid_losses
    assert same_weights(averaged.model, both.model)
    assert not same_weights(averaged.model, plain.model)
    kept, *found = losses("hidden", hidden)
    assert found == [train_losses, valid_losses]
    assert same_weights(kept.model, plain.model)
    assert same_weights(hidden.model, both.model)


def test_the_average_has_the_statistics_of_the_trained_model(tmp_path):
    plain = fitted(builder(tmp_path / "a"), normed()).model
    averaged = fitted(builder(tmp_path / "b").callback(Ema(0.5)), normed()).model
    both = Ema(0.5, running_states=True)
    other = fitted(builder(tmp_path / "c").callback(both), normed()).model
    means = [np.asarray(m.norm.running_mean.val()) for m in (plain, averaged, other)]
    assert np.array_equal(means[0], means[1])
    assert not np.allclose(means[0], means[2])


@pytest.mark.filterwarnings("ignore:.* is better when")
def test_the_best_epoch_is_restored(tmp_path):
    models, notes = [], Notes()
    best = RestoreBest("Accuracy", Direction.Lowest)  # so that it is not the last one
    made = builder(tmp_path, 5).callback(lambda state: models.append(state.model))
    trained = fitted(with_callbacks(made, notes, best))
    values = trained.result.history.epochs("Accuracy", "valid")
    epoch, value = min(values, key=lambda pair: pair[1])
    assert (best.epoch, best.best) == (epoch, value)
    assert epoch < 5
    assert same_weights(trained.model, models[epoch - 1])
    assert best.status() == f"Accuracy {value:.2f} in epoch {epoch}"


@pytest.mark.filterwarnings("ignore:.* is better when")
def test_the_best_model_is_as_it_was_validated_statistics_included(tmp_path):
    best = RestoreBest("Loss", Direction.Highest)  # the first one
    trained = fitted(builder(tmp_path / "a", 4).callback(best), normed())
    assert best.epoch < 4
    shorter = fitted(builder(tmp_path / "b", best.epoch), normed())
    assert same_weights(trained.model, shorter.model)


@pytest.mark.filterwarnings("ignore:.* is better when")
def test_the_best_average_is_restored_where_averages_are_validated(tmp_path):
    ema, best, kept = Ema(0.8), RestoreBest("Loss", Direction.Highest), []
    made = builder(tmp_path, 3).callback(ema)
    made.callback(lambda state: kept.append(state.validated)).callback(best)
    trained = fitted(made)
    assert same_weights(trained.model, kept[best.epoch - 1])


def test_the_mean_of_epochs_is_the_result(tmp_path):
    ends = []
    made = builder(tmp_path, 4).callback(
        lambda state: ends.append(weights(state.model))
    )
    mean = AveragedWeights(from_epoch=2)
    model = fitted(made.callback(mean)).model
    for path, value in weights(model).items():
        wanted = np.mean([found[path] for found in ends[1:]], axis=0)
        np.testing.assert_allclose(value, wanted, 1e-5, 1e-7)
    assert mean.status() == "3 epochs averaged"


def test_the_mean_of_epochs_gets_statistics_of_its_own(tmp_path):
    mean = AveragedWeights(from_epoch=1)
    model = fitted(builder(tmp_path, 3).callback(mean), normed()).model
    batches = loader()
    batches.set_epoch(3)
    rows = [np.asarray(batch.x) for batch in batches]
    means, variances = [], []
    first = weights(model)
    for x in rows:
        out = x @ first["first.weight"] + first["first.bias"]
        means.append(out.mean(0))
        variances.append(out.var(0))
    np.testing.assert_allclose(model.norm.running_mean.val(), np.mean(means, 0), 1e-4)
    found = np.asarray(model.norm.running_var.val())
    np.testing.assert_allclose(found, np.mean(variances, 0), 1e-4)
    assert model.norm.momentum == 0.1


def test_a_mean_of_no_epochs_and_a_stopped_one_say_so(tmp_path):
    late = AveragedWeights(from_epoch=9)
    model = fitted(builder(tmp_path / "a").callback(late)).model
    assert same_weights(model, fitted(builder(tmp_path / "b")).model)
    assert late.status() == "no epoch was averaged"
    mean = AveragedWeights(from_epoch=1)
    probe = stop_at(5, lambda control: control.stop("enough"))
    trained = fitted(
        builder(tmp_path / "c", 4).renderer(probe).callback(mean), normed()
    )
    assert mean.status() == "stopped: the result is not averaged"
    assert trained.epochs == 1


# Checkpoints, and fits that go on


def every():
    notes = Counted()
    return [Ema(0.8), AveragedWeights(2), notes, RestoreBest("Accuracy")]


class Counted(Callback):
    def __init__(self):
        self.reset()

    def reset(self):
        self.epochs = 0

    def on_epoch(self, state):
        self.epochs += 1
        return state.model.map(Halves()) if self.epochs == 3 else None

    def into_record(self):
        return self.epochs

    def load_record(self, record, model):
        self.epochs = record

    def status(self):
        return f"{self.epochs} epochs"


@pytest.mark.parametrize("model", [tiny, normed])
@pytest.mark.parametrize("count", range(1, 5))
def test_a_resumed_run_gives_what_an_uninterrupted_one_does(tmp_path, model, count):
    """Each with one more of the callbacks: the last of them makes the result."""
    whole = checkpointed(tmp_path / "whole", 4)
    whole = build(with_callbacks(whole, *every()[:count]), model())
    wanted = whole.fit(loader(), loader(1))
    for epochs in (2, 4):
        callbacks = every()[:count]
        made = checkpointed(tmp_path / "parts", epochs).checkpoint()
        made = build(with_callbacks(made, *callbacks), model())
        found = made.fit(loader(), loader(1))
    assert same_weights(found, wanted)
    ours, theirs = (each.result.history.to_dict("step") for each in (made, whole))
    assert ours == theirs
    again = every()[:count]
    done = checkpointed(tmp_path / "parts", 4).checkpoint()
    done = build(with_callbacks(done, *again), model())
    assert same_weights(done.fit(loader(), loader(1)), wanted)
    assert [each.status() for each in again] == [each.status() for each in callbacks]


@pytest.mark.parametrize("model", [tiny, normed])
def test_two_fits_with_callbacks_are_one(tmp_path, model):
    whole = build(with_callbacks(builder(tmp_path / "a", 4), *every()), model())
    parts = build(with_callbacks(builder(tmp_path / "b", 2), *every()), model())
    wanted = whole.fit(loader(), loader(1))
    parts.fit(loader(), loader(1))
    assert same_weights(parts.fit(loader(), loader(1)), wanted)
    ours, theirs = (each.result.history.to_dict("step") for each in (parts, whole))
    assert ours == theirs


def test_checkpoints_of_callbacks_come_and_go_with_the_others(tmp_path):
    made = checkpointed(tmp_path, 4).callback(Ema(0.9)).callback(Ema(0.5))
    made.with_checkpointing_strategy(train.KeepLastNCheckpoints(1))
    fitted(made)
    folder = tmp_path / "checkpoint"
    assert file_names(folder) == [
        "callbacks-4.mpk",
        "model-4.mpk",
        "optim-4.mpk",
        "scheduler-4.mpk",
    ]
    fitted(checkpointed(tmp_path, 4))
    assert file_names(folder / "earlier-1")[0] == "callbacks-4.mpk"
    assert "callbacks-4.mpk" not in file_names(folder)


def test_a_callback_that_a_checkpoint_does_not_know_begins_anew(tmp_path):
    fitted(checkpointed(tmp_path, 1).callback(Ema(0.9)))
    probe = Probe()
    made = checkpointed(tmp_path, 2).checkpoint().renderer(probe)
    mean = AveragedWeights(1)
    fitted(with_callbacks(made, Ema(0.9), mean))
    assert "knows nothing of AveragedWeights" in probe.run.notice
    assert mean.epochs == 1


def test_a_damaged_checkpoint_of_callbacks_is_passed_over(tmp_path):
    fitted(checkpointed(tmp_path, 2).callback(Ema(0.9)))
    (tmp_path / "checkpoint" / "callbacks-2.mpk").write_bytes(b"\xc1")
    probe = Probe()
    made = checkpointed(tmp_path, 3).checkpoint().renderer(probe)
    fitted(made.callback(Ema(0.9)))
    assert "resuming after epoch 1, as a newer one is damaged" in probe.run.notice


def test_a_learner_begins_with_callbacks_that_know_nothing(tmp_path):
    ema = Ema(0.9)
    shared = builder(tmp_path, 1).callback(ema)
    first = fitted(shared).model
    assert ema.steps == 3
    assert same_weights(fitted(shared).model, first)
    assert ema.steps == 3


# Where they are shown


@dataclass
class Telling(Probe):
    def __post_init__(self):
        super().__init__()
        self.told = []

    def update_callbacks(self, callbacks):
        self.told.append(list(callbacks))


def test_renderers_are_told_how_callbacks_stand(tmp_path):
    probe = Telling()
    made = with_callbacks(builder(tmp_path, 2).renderer(probe), Ema(0.9), Ema(0.5))
    fitted(made.callback(print_nothing))
    names = ["Ema", "Ema 2", "print_nothing"]
    assert [name for name, _ in probe.run.callbacks] == names
    assert probe.told[0] == [
        ("Ema", "decay 0.9, 3 steps"),
        ("Ema 2", "decay 0.5, 3 steps"),
        ("print_nothing", ""),
    ]
    assert [told[0][1] for told in probe.told[1:]] == ["decay 0.9, 6 steps"] * 2


def print_nothing(state):
    pass


def test_the_summary_has_a_line_for_callbacks(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("BURNBOOK_DISPLAY", "plain")
    made = builder(tmp_path, 2).renderer(train.PlainRenderer()).summary()
    fitted(made.callback(Ema(0.9)).callback(print_nothing))
    shown = capsys.readouterr().out
    assert "Callbacks: Ema: decay 0.9, 6 steps; print_nothing\n" in shown


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.bool_])
def test_a_callback_keeps_arrays_and_tensors(tmp_path, kind):
    class Frames(Callback):
        def __init__(self):
            self.reset()

        def reset(self):
            self.frames = []

        def on_epoch(self, state):
            self.frames.append(np.full([2, state.epoch], state.epoch).astype(kind))

        def into_record(self):
            tensors = [Tensor.from_data([1.0], PLAIN)] * len(self.frames)
            return {"frames": self.frames, "tensors": tensors}

        def load_record(self, record, model):
            self.frames = [np.asarray(frame) for frame in record["frames"]]
            assert [np.asarray(one).tolist() for one in record["tensors"]] == [
                [1.0]
            ] * len(self.frames)

    build(checkpointed(tmp_path, 2).callback(Frames())).fit(loader(), loader(1))
    again = Frames()
    made = checkpointed(tmp_path, 3).checkpoint().callback(again)
    build(made).fit(loader(), loader(1))
    for epoch, frame in enumerate(again.frames, 1):
        expected = np.full([2, epoch], epoch).astype(kind)
        np.testing.assert_array_equal(frame, expected)
        assert frame.dtype == kind
    assert len(again.frames) == 3
