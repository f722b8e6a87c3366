"""What a learner holds after a fit, and how another fit goes on from there."""

import asyncio

import numpy as np
import pytest

from burnbook import train
from burnbook.core.errors import ConfigError, RecordError
from burnbook.data import DataLoaderBuilder
from burnbook.lr_scheduler import CosineAnnealingLrSchedulerConfig
from burnbook.optim import AdamConfig, SgdConfig
from burnbook.train import Run, SupervisedTraining
from tests.support.tiny_training import (
    DEVICE,
    LOWEST_LOSS,
    Probe,
    Tiny,
    build,
    builder,
    checkpointed,
    file_names,
    learner,
    loader,
    same_weights,
    stop_at,
    tiny,
    weights,
)


def start_and_wait(made, *loaders, **more):
    return made.start(*loaders, **more).wait()


def awaited(made, *loaders, **more):
    return asyncio.run(made.fit_async(*loaders, **more))


def moments(optim):
    """The second moments of Adam, in the order of the parameters."""
    states = [next(iter(held["V1"].values())) for held in optim.into_record().values()]
    return [state["momentum"]["moment_2"].array for state in states]


WAYS = {"fit": train.Learner.fit, "start": start_and_wait, "fit_async": awaited}


@pytest.fixture(params=WAYS)
def fit(request):
    return WAYS[request.param]


def test_a_learner_holds_what_was_trained(tmp_path, fit):
    given, optim = tiny(), AdamConfig().init()
    before = weights(given)
    made = checkpointed(tmp_path).build(given, optim, 0.01)
    model = fit(made, loader(), loader(1))
    assert made.model is model
    assert made.result.model is model
    assert made.epochs == 2
    assert not same_weights(model, given)
    assert len(made.optim.into_record()) == 4
    assert optim.into_record() == {}
    assert all(np.array_equal(before[path], w) for path, w in weights(given).items())


def test_two_fits_are_one_of_as_many_epochs(tmp_path, fit):
    whole = learner(tmp_path / "whole", 4)
    model = whole.fit(loader(), loader(1))
    parts = learner(tmp_path / "parts", 2)
    fit(parts, loader(), loader(1))
    assert same_weights(fit(parts, loader(), loader(1)), model)
    assert parts.epochs == 4
    assert parts.result.history.to_dict() == whole.result.history.to_dict()
    assert parts.result.history.to_dict("step") == whole.result.history.to_dict("step")
    for one, other in zip(moments(parts.optim), moments(whole.optim), strict=True):
        assert np.array_equal(one, other)
    folders = [tmp_path / name for name in ("whole", "parts")]
    for split in ("train", "valid"):
        logs = [
            {
                path.relative_to(folder): path.read_text()
                for path in (folder / split).rglob("*.log")
            }
            for folder in folders
        ]
        assert len(logs[0]) == 8
        assert logs[0] == logs[1]
    kept = [file_names(folder / "checkpoint") for folder in folders]
    assert kept[0] == kept[1]
    assert Run(folders[1]).epochs == 4


def test_a_schedule_goes_on_in_the_next_fit(tmp_path):
    cosine = CosineAnnealingLrSchedulerConfig(0.02, 11)
    whole = build(builder(tmp_path / "whole", 4), lr=cosine.init())
    parts = build(builder(tmp_path / "parts", 1), lr=cosine.init())
    for _ in range(4):
        model = parts.fit(loader(), loader(1))
    assert same_weights(whole.fit(loader(), loader(1)), model)
    place = parts.lr_scheduler.into_record()
    assert place == whole.lr_scheduler.into_record() == 11


def test_a_stopped_training_goes_on_to_the_end_of_its_epochs(tmp_path, fit):
    probe = stop_at(7, lambda control: control.stop("enough"))  # in epoch 3
    made = build(checkpointed(tmp_path, 4).renderer(probe))
    so_far = fit(made, loader(), loader(1))
    assert made.result.interrupted == "enough"
    assert made.model is so_far
    assert made.epochs == 2
    fit(made, loader(), loader(1))
    assert (made.epochs, made.result.interrupted) == (4, None)
    epochs = made.result.history.to_dict()["epoch"]
    assert epochs == [1, 1, 2, 2, 3, 3, 4, 4]
    assert Run(tmp_path).epochs == 4
    starts = [call for call in probe.calls if call == "start"]
    assert len(starts) == 2
    assert (probe.run.start_epoch, probe.run.num_epochs) == (3, 4)


def test_a_stop_between_epochs_changes_nothing(tmp_path):
    def stop_after(epoch):
        class Stop(Probe):
            def end_epoch(self, number, split, means):
                if number == epoch and split == "valid":
                    made.interrupter.save_checkpoint()

            def saved(self, number, path, trouble=""):
                if number == epoch:
                    self.run.control.stop("between")

        return Stop()

    made = build(checkpointed(tmp_path / "a", 3).renderer(stop_after(1)))
    made.fit(loader(), loader(1))
    assert (made.epochs, made.result.interrupted) == (1, "between")
    whole = learner(tmp_path / "b", 3).fit(loader(), loader(1))
    assert same_weights(made.fit(loader(), loader(1)), whole)


def test_a_training_that_failed_goes_on_after_its_last_epoch(tmp_path):
    class Fails(Tiny):
        def train_step(self, batch):
            steps.append(1)
            if len(steps) == 5:
                raise ValueError("in the second epoch")
            return super().train_step(batch)

    steps = []
    made = learner(tmp_path, 3, tiny(kind=Fails))
    with pytest.raises(ValueError, match="in the second epoch"):
        made.fit(loader(), loader(1))
    assert made.epochs == 1
    assert made.model is made.result.model
    assert not same_weights(made.model, tiny())
    made.fit(loader(), loader(1))
    assert (made.epochs, made.result.interrupted) == (3, None)


def test_a_number_of_epochs_can_be_asked_for(tmp_path, fit):
    made = learner(tmp_path, 2)
    fit(made, loader(), loader(1), num_epochs=1)
    assert made.epochs == 1
    fit(made, loader(), loader(1))
    assert made.epochs == 2
    fit(made, loader(), loader(1), num_epochs=3)
    assert made.epochs == 5
    assert Run(tmp_path).num_epochs == 5
    for wrong in (0, 1.5, True):
        with pytest.raises(ConfigError, match="num_epochs is"):
            fit(made, loader(), loader(1), num_epochs=wrong)


def test_what_is_put_into_a_learner_is_what_trains_next(tmp_path):
    made = build(builder(tmp_path, 1))
    made.fit(loader(), loader(1))
    other = tiny()
    made.model, made.lr_scheduler = other, 0.0
    assert same_weights(made.fit(loader(), loader(1)), other)
    made.lr_scheduler = 0.1
    made.optim = SgdConfig().init()
    assert not same_weights(made.fit(loader(), loader(1)), other)
    assert "Sgd" in repr(made.optim)


def test_a_resumed_learner_goes_on_as_well(tmp_path):
    learner(tmp_path / "a", 1).fit(loader(), loader(1))
    made = build(checkpointed(tmp_path / "a", 2).checkpoint(1))
    made.fit(loader(), loader(1))
    made.fit(loader(), loader(1))
    assert made.epochs == 4
    whole = learner(tmp_path / "b", 4).fit(loader(), loader(1))
    assert same_weights(made.model, whole)
    after = build(checkpointed(tmp_path / "a", 4).checkpoint())
    assert same_weights(after.fit(loader(), loader(1)), whole)


def test_early_stopping_counts_anew_in_the_next_fit(tmp_path):
    condition = train.StoppingCondition.NoImprovementSince(n_epochs=1)
    patient = train.MetricEarlyStoppingStrategy(*LOWEST_LOSS, condition)
    one_batch = DataLoaderBuilder(loader().batcher).batch_size(40)
    valid = one_batch.build(loader().dataset)
    made = build(builder(tmp_path, 9).early_stopping(patient), lr=0.0)
    made.fit(loader(), valid)
    assert made.result.epochs == 2
    made.fit(loader(), valid)
    assert made.result.epochs == 4
    assert made.result.interrupted.startswith("stopped early")


def test_one_builder_makes_learners_of_their_own(tmp_path):
    shared = builder(tmp_path, 1)
    first = build(shared)
    first.fit(loader(), loader(1))
    second = build(shared)
    assert second.epochs == 0
    assert same_weights(first.model, second.fit(loader(), loader(1)))


def test_a_launched_learner_holds_what_was_trained(tmp_path):
    def training(folder, epochs):
        made = SupervisedTraining(tmp_path / folder, loader(), loader(1))
        made = made.metrics(train.LossMetric()).renderer(None)
        return made.num_epochs(epochs)

    made = train.Learner(tiny(), AdamConfig().init(), 0.01)
    two = training("a", 2)
    two.launch(made)
    two.launch(made)
    assert made.epochs == 4
    other = train.Learner(tiny(), AdamConfig().init(), 0.01)
    result = training("b", 4).launch(other)
    assert same_weights(made.model.valid(), result.model)
    training("c", 1).launch(other)  # another plan begins at epoch 1, with that model
    assert other.epochs == 1
    assert Run(tmp_path / "c").epochs == 1


def test_resuming_with_another_optimizer_says_so_in_one_line(tmp_path):
    learner(tmp_path, 1).fit(loader(), loader(1))
    for asked in ((), (1,)):
        made = checkpointed(tmp_path, 2).checkpoint(*asked)
        made = made.build(tiny(), SgdConfig().init(), 0.01)
        with pytest.raises(RecordError, match=r"saved by Adam.*, this is Sgd") as error:
            made.fit(loader(), loader(1))
        assert len(str(error.value).splitlines()) == 2
        assert made.epochs == 0  # nothing was trained, so the learner is as before
        assert made.model.devices() == [DEVICE]


# A schedule that is shorter than its run


def test_a_schedule_that_is_too_short_warns_at_the_start(tmp_path):
    probe = Probe()
    short = CosineAnnealingLrSchedulerConfig(0.01, 4).init()
    made = build(builder(tmp_path, 2).renderer(probe), lr=short)
    with pytest.warns(UserWarning, match="ends after 5 of 6 steps.* full rate") as seen:
        made.fit(loader(), loader(1))
    assert len(seen) == 1
    assert "ends after 5 of 6 steps" in probe.run.notice
    assert "WARN" in (tmp_path / "experiment.log").read_text()
    with pytest.warns(UserWarning, match="ends after"):
        made.fit(loader(), loader(1))


def test_a_schedule_as_long_as_its_run_does_not_warn(tmp_path):
    for steps in (5, 6, 100):
        cosine = CosineAnnealingLrSchedulerConfig(0.01, steps).init()
        build(builder(tmp_path / str(steps), 2), lr=cosine).fit(loader(), loader(1))
