"""Schedules that follow a metric: what they are told, in a loop and by the Learner."""

import math

import pytest

from burnbook.core.errors import ConfigError
from burnbook.lr_scheduler import (
    ComposedLrSchedulerConfig,
    LinearLrSchedulerConfig,
    LrSchedulerConfig,
    ModuleLrScheduler,
    ReduceOnPlateauLrSchedulerConfig as Plateau,
    SequentialLrSchedulerConfig,
    observers,
)
from burnbook.optim import AdamConfig, ParamGroup
from burnbook.record import (
    BinFileRecorder,
    BinGzFileRecorder,
    BurnpackRecorder,
    FullPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
)
from burnbook.tensor import Tensor
from burnbook.train import (
    AccuracyMetric,
    LearnerBuilder,
    LearningRateMetric,
    SupervisedTraining,
)
from burnbook.train.learner import Learner
from tests.support.tiny_training import builder, loader, recorder, same_weights, tiny

EVERY = [
    *(NamedMpkFileRecorder, NamedMpkGzFileRecorder, BinFileRecorder, BinGzFileRecorder),
    *(JsonGzFileRecorder, PrettyJsonFileRecorder, BurnpackRecorder),
]
BIASES = ParamGroup.from_predicate("bias")


def quick():
    return Plateau(0.8, factor=0.5, patience=0)


def composed():
    return ComposedLrSchedulerConfig().constant(0.5).reduce_on_plateau(quick()).init()


def sequence():
    warm = LrSchedulerConfig.Linear(LinearLrSchedulerConfig(0.2, 0.8, 3))
    after = LrSchedulerConfig.ReduceOnPlateau(quick())
    return SequentialLrSchedulerConfig([warm, after], [3]).init()


def groups():
    return ModuleLrScheduler(0.5).with_group(BIASES, quick())


MADE = {
    "alone": lambda: quick().init(),
    "composed": composed,
    "sequence": sequence,
    "groups": groups,
}


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("name", MADE)
def test_every_recorder_keeps_what_a_plateau_has_seen(name, kind, tmp_path):
    if name == "groups" and kind in (BinFileRecorder, BinGzFileRecorder):
        pytest.skip("bincode has no names for groups")
    schedule = MADE[name]()
    for value in (3.0, 2.0, 2.5, 2.0):
        for _ in range(4):
            schedule.step()
        schedule.observe(value)
    file = kind(FullPrecisionSettings)
    file.record(schedule, tmp_path / "scheduler")
    again = MADE[name]().load_record(file.load(tmp_path / "scheduler"))
    assert again.into_record() == schedule.into_record()
    (part,) = observers(again)
    assert (part.best, part.current_lr) == (2.0, 0.2)
    for value in (1.9, 1.9):
        again.observe(value)
        schedule.observe(value)
    assert repr(again.step()) == repr(schedule.step())


def test_burnpack_has_a_plateau_below_the_number_of_its_group(tmp_path):
    file = BurnpackRecorder()
    file.record(quick().init(), tmp_path / "scheduler")
    assert set(file.load(tmp_path / "scheduler")["0"]) == {
        *("current_lr", "best", "bad_epochs", "cooldown"),
    }


def test_in_a_sequence_only_the_schedule_whose_turn_it_is_observes():
    schedule = sequence()
    for _ in range(3):
        schedule.step()
    schedule.observe(1.0)  # during the warm-up
    schedule.observe(1.0)
    assert observers(schedule) == []
    assert len(observers(schedule, now=False)) == 1
    assert schedule.step() == 0.8
    schedule.observe(1.0)
    assert schedule.step() == 0.8, "the first value is the best so far"
    schedule.observe(1.0)
    assert schedule.step() == 0.4


def test_a_metric_may_be_a_tensor():
    schedule = quick().init()
    schedule.observe(Tensor.from_data([1.0]))
    schedule.observe(Tensor.from_data([2.0]))
    assert schedule.step() == 0.4
    with pytest.raises(ConfigError, match=r"into_scalar\(\)"):
        schedule.observe("1.0")


# In the Learner


def learner(folder, schedule, epochs, *, measured=True, resume=False):
    made = builder(folder, epochs) if measured else LearnerBuilder(folder)
    made = made.metric_train_numeric(LearningRateMetric())
    made = made.with_file_checkpointer(recorder())
    made = made.checkpoint() if resume else made
    return made.build(tiny(), AdamConfig().init(), schedule)


def first_rates(folder, epochs):
    """The learning rate with which each epoch began."""
    found = []
    for epoch in range(1, epochs + 1):
        file = folder / "train" / f"epoch-{epoch}" / "Learning_Rate.log"
        found.append(float(file.read_text().split(",")[0]))
    return found


def losses(folder, epochs):
    found = []
    for epoch in range(1, epochs + 1):
        lines = (folder / "valid" / f"epoch-{epoch}" / "Loss.log").read_text().split()
        rows = [[float(part) for part in line.split(",")[:2]] for line in lines]
        found.append(sum(v * n for v, n in rows) / sum(n for _, n in rows))
    return found


HARD = Plateau(0.01, factor=0.5, patience=0, threshold=0.5)  # half as much, or less


def test_the_learner_tells_it_the_loss_of_each_epoch(tmp_path):
    learner(tmp_path, HARD.init(), 4).fit(loader(), loader(1))
    by_hand, wanted = HARD.init(), []
    for loss in losses(tmp_path, 4):
        wanted.append(by_hand.step())
        by_hand.observe(loss)
    assert first_rates(tmp_path, 4) == pytest.approx(wanted)
    assert wanted[-1] < 0.01, "a threshold that no loss meets twice"


def test_a_training_resumes_with_what_the_schedule_has_seen(tmp_path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    straight = learner(whole, HARD.init(), 4).fit(loader(), loader(1))
    learner(part, HARD.init(), 2).fit(loader(), loader(1))
    resumed = learner(part, HARD.init(), 4, resume=True).fit(loader(), loader(1))
    assert same_weights(straight, resumed)
    assert first_rates(part, 4) == first_rates(whole, 4)


def test_a_plateau_inside_other_schedules_is_told_too(tmp_path):
    inside = ComposedLrSchedulerConfig().constant(1.0).reduce_on_plateau(HARD)
    for name, schedule in (
        ("composed", inside.init()),
        ("groups", ModuleLrScheduler(HARD)),
    ):
        learner(tmp_path / name, schedule, 3).fit(loader(), loader(1))
        assert first_rates(tmp_path / name, 3)[-1] < 0.01


def test_a_metric_that_nobody_measures_is_refused_before_training(tmp_path):
    with pytest.raises(ConfigError, match="'Loss' is not measured") as caught:
        learner(tmp_path, HARD.init(), 2, measured=False)
    assert "metric_valid_numeric(LossMetric()) before build" in str(caught.value)
    assert str(caught.value).startswith("LearnerBuilder.build")
    accuracy = HARD.with_metric("Accuracy").with_split("train").init()
    with pytest.raises(ConfigError, match="'Accuracy' is not measured"):
        learner(tmp_path, ModuleLrScheduler(accuracy), 2, measured=False)
    training = SupervisedTraining(tmp_path, loader(), loader(1))
    with pytest.raises(ConfigError, match="'Loss' is not measured"):
        training.launch(Learner(tiny(), AdamConfig().init(), HARD.init()))


def test_another_metric_of_the_other_split(tmp_path):
    config = Plateau(0.01, factor=0.5, patience=0, highest_is_best=True)
    config = config.with_metric("Accuracy").with_split("train").with_threshold(0.9)
    made = builder(tmp_path, 3).metric_train_numeric(AccuracyMetric())
    made = made.metric_train_numeric(LearningRateMetric())
    made.build(tiny(), AdamConfig().init(), config.init()).fit(loader(), loader(1))
    assert first_rates(tmp_path, 3)[-1] < 0.01


def test_a_schedule_of_ones_own_observes_the_validation_loss(tmp_path):
    class Mine:
        seen = ()

        def step(self):
            return 0.01

        def observe(self, value):
            Mine.seen = (*Mine.seen, value)

        def into_record(self):
            return len(Mine.seen)

        def load_record(self, record):
            return self

    learner(tmp_path, Mine(), 2).fit(loader(), loader(1))
    assert Mine.seen == pytest.approx(losses(tmp_path, 2))
    assert all(math.isfinite(value) for value in Mine.seen)
