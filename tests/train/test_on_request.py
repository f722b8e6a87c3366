"""What people ask of a running training: a checkpoint now, and a look at gradients."""

import numpy as np
import pytest

from burnbook import train
from burnbook.core.errors import DataError
from burnbook.data import Progress
from burnbook.train.checkpoint_strategy import Delete
from tests.support.tiny_training import (
    build,
    builder,
    checkpointed,
    fitted,
    loader,
    tiny,
)


class Asking(train.MetricsRenderer):
    """Asks for a checkpoint in the first batch of some epochs, and hears of all."""

    def __init__(self, *epochs):
        self.epochs, self.told, self.rates, self.norms = epochs, [], [], []

    def start(self, run):
        self.run = run

    def render_train(self, progress):
        self.rates.append(progress.lr)
        if progress.epoch in self.epochs and progress.iteration == 1:
            self.run.control.save_checkpoint()

    def render_valid(self, progress):
        assert progress.lr is None

    def inspect(self, model, grads):
        weight = dict(model.named_params())["last.weight"]
        pair = (weight.val(), grads.get(weight.id))
        self.norms.append([np.linalg.norm(np.asarray(tensor)) for tensor in pair])

    def saved(self, epoch, path, trouble=""):
        self.told.append((epoch, path, trouble))


class Never(train.CheckpointingStrategy):
    """Saves nothing, and wants to delete every epoch."""

    def checkpointing(self, epoch, store):
        return [Delete(epoch)]


def run_training(folder, asking, strategy, epochs=4):
    made = checkpointed(folder, epochs).with_checkpointing_strategy(strategy)
    return fitted(made.renderer(asking))


def kept(folder):
    found = (folder / "checkpoint").glob("*.mpk")
    return sorted(path.name for path in found if path.name.startswith("model"))


def test_a_checkpoint_is_written_when_the_epoch_ends_and_no_strategy_deletes_it(
    tmp_path,
):
    asking = Asking(2)
    run_training(tmp_path, asking, Never())
    assert kept(tmp_path) == ["model-2.mpk"]
    assert asking.told == [(2, str(tmp_path / "checkpoint"), "")]
    assert asking.run.saves


def test_an_epoch_asked_for_outlives_those_that_the_strategy_keeps(tmp_path):
    asking = Asking(1)
    run_training(tmp_path, asking, train.KeepLastNCheckpoints(1))
    assert kept(tmp_path) == ["model-1.mpk", "model-4.mpk"]
    assert [epoch for epoch, _, _ in asking.told] == [1, 2, 3, 4]


def test_a_training_goes_on_from_the_checkpoint_that_was_asked_for(tmp_path):
    run_training(tmp_path, Asking(2), Never(), epochs=3)
    probe = Asking()
    fitted(checkpointed(tmp_path, 4).renderer(probe).checkpoint())
    assert probe.run.start_epoch == 3


@pytest.fixture
def full_disk(monkeypatch):
    def full(self, epoch, records):
        raise DataError("write", "the disk is full")

    monkeypatch.setattr("burnbook.train.checkpoint.FileCheckpointer.save", full)


def test_a_disk_that_refuses_is_told_and_ends_no_training(tmp_path, full_disk):
    asking = Asking(1)
    learner = run_training(tmp_path, asking, Never(), epochs=2)
    assert learner.result.epochs == 2
    assert asking.told == [(1, str(tmp_path / "checkpoint"), "write: the disk is full")]
    assert "Checkpoint 1 was not saved" in (tmp_path / "experiment.log").read_text()


def test_a_disk_that_refuses_what_the_strategy_needs_does_end_it(tmp_path, full_disk):
    with pytest.raises(DataError, match="the disk is full"):
        run_training(tmp_path, Asking(1), train.KeepLastNCheckpoints(1))


def test_without_a_checkpointer_a_run_says_that_it_cannot_save(tmp_path):
    asking = Asking(1)
    fitted(builder(tmp_path, 1).renderer(asking))
    assert not asking.run.saves
    assert asking.told == []


def test_a_training_in_a_thread_takes_the_wish_too(tmp_path):
    made = checkpointed(tmp_path, 40).with_checkpointing_strategy(Never())
    handle = build(made).start(loader(), loader(1))
    handle.save_checkpoint()
    handle.wait()
    assert len(kept(tmp_path)) == 1


def test_every_fit_forgets_what_was_asked_of_the_one_before():
    control = train.Interrupter()
    control.save_checkpoint()
    assert control.checkpoint_wanted
    control.reset()
    assert not control.checkpoint_wanted


def test_a_renderer_sees_gradients_before_the_step_and_the_rate(tmp_path):
    asking = Asking()
    run_training(tmp_path, asking, Never(), epochs=1)
    assert asking.rates == [0.01] * 3
    weights, grads = zip(*asking.norms, strict=True)
    assert len(set(weights)) == 3  # each batch sees the step of the one before
    first = dict(tiny().named_params())["last.weight"]
    assert weights[0] == pytest.approx(np.linalg.norm(np.asarray(first.val())))
    assert all(grad > 0 for grad in grads)


def test_the_rate_is_no_part_of_the_text_of_progress():
    with_rate = train.TrainingProgress(Progress(1, 2), 1, 1, 1, 0.1)
    without = train.TrainingProgress(Progress(1, 2), 1, 1, 1)
    assert (str(with_rate), repr(with_rate)) == (str(without), repr(without))


@pytest.mark.parametrize(
    ("epochs", "text"), [(0, "0 epochs"), (1, "1 epoch"), (2, "2 epochs")]
)
def test_a_result_counts_its_epochs_in_words_that_fit(epochs, text):
    result = train.TrainingResult(None, train.MetricHistory(), None, epochs, 1.0, "run")
    assert repr(result).startswith(f"TrainingResult({text}, ")
