"""Schedules: the value of every call, records that go on, and the Learner."""

import copy
import math
import re

import numpy as np
import pytest

from burnbook.config import ConfigEnum
from burnbook.core.errors import RecordError
from burnbook.lr_scheduler import (
    ComposedLrSchedulerConfig as Composed,
    ConstantLr,
    CosineAnnealingLrSchedulerConfig as Cosine,
    ExponentialLrSchedulerConfig as Exponential,
    LambdaLrScheduler,
    LinearLrSchedulerConfig as Linear,
    LrSchedulerConfig,
    ModuleLrScheduler,
    NoamLrSchedulerConfig as Noam,
    OneCycleLrSchedulerConfig as OneCycle,
    PolynomialLrSchedulerConfig as Polynomial,
    ReduceOnPlateauLrSchedulerConfig as Plateau,
    SchedulerReduction,
    SequentialLrSchedulerConfig as Sequential,
    StepLrSchedulerConfig as Step,
    WarmupCosineLrSchedulerConfig as WarmupCosine,
    length_of,
    observers,
)
from burnbook.lr_scheduler.base import left_of
from burnbook.module import ParamId
from burnbook.optim import AdamConfig, ModuleLearningRate, ParamGroup
from burnbook.record import (
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkBytesRecorder,
)
from burnbook.train import LearningRateMetric
from tests.support.recorders import every_recorder
from tests.support.tiny_training import (
    builder,
    loader,
    recorder,
    same_weights,
    tiny,
    weights,
)

BIASES = ParamGroup.from_predicate("bias")


def take(schedule, count):
    return [schedule.step() for _ in range(count)]


# Values


def noam(i, init=1.0, warmup=4000, size=512):
    step = i + 1
    return init * size**-0.5 * min(step**-0.5, step * warmup**-1.5)


def cosine(i, high=1.0, low=0.0, count=4):
    part = (i % (count + 1)) / count
    return low + 0.5 * (high - low) * (1 + math.cos(math.pi * part))


VALUES = {
    "constant": (ConstantLr(0.3), [0.3] * 5),
    # The test vectors of Burn's own repository.
    "linear down": (Linear(0.9, 0.5, 4), [0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.5]),
    "linear up": (Linear(0.01, 0.04, 3), [0.01, 0.02, 0.03, 0.04, 0.04]),
    "cosine": (Cosine(1.0, 4), [1.0, 0.853553, 0.5, 0.146447, 0.0, 1.0, 0.853553]),
    "cosine with a floor": (
        Cosine(0.5, 10, min_lr=0.1),
        [cosine(i, 0.5, 0.1, 10) for i in range(25)],
    ),
    "exponential": (Exponential(0.8, 0.1), [0.8, 0.08, 0.008, 0.0008]),
    "noam": (Noam(0.01), [noam(i, 0.01) for i in range(20)]),
    "noam past its warm-up": (
        Noam(0.5, warmup_steps=3, model_size=16),
        [noam(i, 0.5, 3, 16) for i in range(9)],
    ),
    "step": (Step(0.5, 3, gamma=0.1), [0.5, 0.5, 0.5, 0.05, 0.05, 0.05, 0.005]),
    "step by default": (Step(1.0, 2), [1.0, 1.0, 0.1, 0.1, 0.01]),
    "polynomial": (Polynomial(0.8, 4, power=2.0), [0.8, 0.45, 0.2, 0.05, 0.0, 0.0]),
    "polynomial with a floor": (
        Polynomial(0.5, 2, final_lr=0.1),
        [0.5, 0.3, 0.1, 0.1, 0.1],
    ),
    "warm-up and cosine": (
        WarmupCosine(0.4, 2, 6, start_lr=0.2),
        [0.2, 0.3, *[cosine(i, 0.4) for i in range(5)], 0.0, 0.0],
    ),
    "one cycle": (OneCycle(1.0, 5, pct_start=0.6), [0.04, 0.52, 1.0, 0.500002, 4e-6]),
    "plateau": (Plateau(0.3), [0.3] * 5),
    "product with a plateau": (
        Composed()
        .warmup_cosine(WarmupCosine(1.0, 2, 4))
        .reduce_on_plateau(Plateau(0.5)),
        [0.0, 0.25, 0.5, 0.25, 0.0, 0.0],
    ),
    "sequence to a plateau": (
        Sequential(
            [
                LrSchedulerConfig.Polynomial(Polynomial(0.1, 2, final_lr=0.3)),
                LrSchedulerConfig.ReduceOnPlateau(Plateau(0.3)),
            ],
            [2],
        ),
        [0.1, 0.2, 0.3, 0.3],
    ),
    "product": (
        Composed().constant(0.5).linear(Linear(1.0, 0.2, 4)),
        [0.5, 0.4, 0.3, 0.2, 0.1, 0.1],
    ),
    "average": (
        Composed(reduction=SchedulerReduction.Avg)
        .constant(0.5)
        .step(Step(1.0, 1, gamma=0.5)),
        [0.75, 0.5, 0.375, 0.3125],
    ),
    "sum of sums": (
        Composed()
        .with_reduction(SchedulerReduction.Sum)
        .exponential(Exponential(1.0, 0.5))
        .composed(Composed().constant(0.5).constant(0.5)),
        [1.25, 0.75, 0.5, 0.375],
    ),
    "sequence": (
        Sequential(
            [
                LrSchedulerConfig.Linear(Linear(0.1, 0.4, 3)),
                LrSchedulerConfig.Constant(0.4),
                LrSchedulerConfig.Cosine(Cosine(0.4, 2)),
            ],
            [3, 5],
        ),
        [0.1, 0.2, 0.3, 0.4, 0.4, 0.4, 0.2, 0.0, 0.4],
    ),
    "a sequence in a product": (
        Composed()
        .sequential(Sequential([LrSchedulerConfig.Constant(0.5)], []))
        .noam(Noam(1.0, warmup_steps=1, model_size=1))
        .cosine(Cosine(1.0, 4)),
        [0.5 * noam(i, 1.0, 1, 1) * cosine(i) for i in range(7)],
    ),
}


def made(config):
    return config if isinstance(config, ConstantLr) else config.init()


def told(schedule, seed=0):
    """The schedule after some metrics, if it follows one."""
    if observers(schedule):
        for value in np.random.default_rng(seed).random(3):
            schedule.observe(value)
    return schedule


@pytest.mark.parametrize("name", VALUES)
def test_the_value_of_every_call(name):
    config, wanted = VALUES[name]
    assert take(made(config), len(wanted)) == pytest.approx(wanted, abs=1e-6, rel=1e-9)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("steps", [0, 1, 4])
@every_recorder
def test_a_record_goes_on_with_exactly_the_same_rates(name, steps, kind, tmp_path):
    config, _ = VALUES[name]
    schedule = made(config)
    take(schedule, steps)
    told(schedule)
    file = kind(HalfPrecisionSettings)  # numbers are not rounded with the tensors
    file.record(schedule, tmp_path / "scheduler")
    again = made(config).load_record(file.load(tmp_path / "scheduler"))
    assert again.into_record() == schedule.into_record()
    assert take(again, 8) == take(schedule, 8)


def test_a_record_of_any_function_goes_on(tmp_path):
    def schedule():
        return LambdaLrScheduler(0.5, lambda i: 1 / (1 + i))

    one = schedule()
    take(one, 3)
    file = NamedMpkBytesRecorder(FullPrecisionSettings)
    again = schedule().load_record(file.load(file.record(one)))
    assert take(again, 4) == take(one, 4) == pytest.approx([1 / 8, 0.1, 1 / 12, 1 / 14])


@pytest.mark.parametrize("name", [name for name in VALUES if name != "constant"])
def test_a_config_is_saved_and_loaded(name, tmp_path):
    config, wanted = VALUES[name]
    config.save(tmp_path / "schedule.json")
    loaded = type(config).load(tmp_path / "schedule.json")
    assert loaded == config
    assert take(loaded.init(), len(wanted)) == take(config.init(), len(wanted))


RECORDS = {
    "linear down": (5, 4, 2),
    "cosine": (2**64 - 1, 0, 2),
    "exponential": (8.0, 0.8, 0.008),
    "noam": (0, 1, 3),
    "step": (-1, 0, 2),
    "polynomial": (-1, 0, 2),
    "warm-up and cosine": (-1, 0, 2),
    "one cycle": (-1, 0, 2),
    "product": (
        {"schedulers": [{"Constant": None}, {"Linear": 5}]},
        {"schedulers": [{"Constant": None}, {"Linear": 4}]},
        {"schedulers": [{"Constant": None}, {"Linear": 2}]},
    ),
}


@pytest.mark.parametrize("name", RECORDS)
def test_the_record_is_burns_number(name):
    schedule = VALUES[name][0].init()
    for steps, wanted in zip((0, 1, 2), RECORDS[name], strict=True):
        take(schedule, steps)
        near = pytest.approx(wanted) if name == "exponential" else wanted
        assert schedule.into_record() == schedule.to_record() == near


def test_before_its_first_step_a_cosine_is_eight_bytes_of_ones_on_disk():
    file = NamedMpkBytesRecorder(FullPrecisionSettings)
    record = file.record(Cosine(1.0, 4).init())
    assert b"\xa4item\xcf" + b"\xff" * 8 in record


NAMED = {
    "linear down": "remaining_iters",
    "cosine": "current_iter",
    "exponential": "previous_lr",
    "noam": "step",
    "step": "iter_idx",
    "polynomial": "iter_idx",
    "warm-up and cosine": "iter_idx",
    "one cycle": "iter_idx",
}


@pytest.mark.parametrize("name", NAMED)
def test_newer_burn_names_the_number(name):
    config, _ = VALUES[name]
    schedule = config.init()
    take(schedule, 3)
    named = {NAMED[name]: schedule.into_record()}
    assert take(config.init().load_record(named), 5) == take(schedule, 5)


def test_newer_burn_numbers_the_schedules_inside():
    for name in ("product", "sequence"):
        config, _ = VALUES[name]
        schedule = config.init()
        take(schedule, 4)
        parts = [part.into_record() for part in schedule.schedulers]
        numbered = {str(i): part for i, part in enumerate(parts) if part is not None}
        if name == "sequence":
            numbered["step"] = 4
        assert take(config.init().load_record(numbered), 6) == take(schedule, 6)


BAD_RECORDS = [
    ("constant", 3),
    ("linear down", None),
    ("linear down", 6),
    ("linear down", 2.5),
    ("linear down", {"current_iter": 3}),
    ("cosine", -1),
    ("cosine", 2**64),
    ("exponential", "0.1"),
    ("exponential", math.inf),
    ("noam", True),
    ("step", -2),
    ("step", [1]),
    ("one cycle", -2),
    ("plateau", 3),
    ("plateau", {"current_lr": 0.5}),
    ("plateau", {"current_lr": "x", "best": 1.0, "bad_epochs": 0, "cooldown": 0}),
    ("plateau", {"current_lr": 0.5, "best": 1.0, "bad_epochs": -1, "cooldown": 0}),
    ("plateau", {"current_lr": 0.5, "best": math.inf, "bad_epochs": 0, "cooldown": 0}),
    ("sequence to a plateau", {"step": 1, "schedulers": [{"Polynomial": 0}]}),
    ("product", 3),
    ("product", {"schedulers": [{"Linear": 3}]}),
    ("product", {"schedulers": [{"Constant": None}, {"Linear": "x"}]}),
    ("product", {"7": 3}),
    ("sequence", {"schedulers": []}),
    ("sequence", {"step": 1, "schedulers": [{"Linear": 3}]}),
]


@pytest.mark.parametrize(("name", "record"), BAD_RECORDS, ids=str)
def test_another_record_is_refused_and_nothing_changes(name, record):
    schedule = made(VALUES[name][0])
    take(schedule, 2)
    onward = take(copy.deepcopy(schedule), 4)
    with pytest.raises(RecordError, match="is not the record of this scheduler"):
        schedule.load_record(record)
    assert take(schedule, 4) == onward


# Errors


def test_schedules_say_what_they_are():
    assert [
        repr(made(VALUES[name][0])) for name in ("step", "product", "sequence")
    ] == [
        "StepLrScheduler(initial_lr=0.5, step_size=3, gamma=0.1)",
        "ComposedLrScheduler(Prod: [ConstantLr(0.5), "
        "LinearLrScheduler(initial_lr=1.0, final_lr=0.2, num_iters=4)])",
        "SequentialLrScheduler([LinearLrScheduler(initial_lr=0.1, final_lr=0.4, "
        "num_iters=3), ConstantLr(0.4), CosineAnnealingLrScheduler(initial_lr=0.4, "
        "num_iters=2, min_lr=0.0)] at 3, 5)",
    ]


def test_every_kind_of_schedule_can_stand_inside_another():
    names = {name for name in dir(Composed) if name.islower()}
    for variant in LrSchedulerConfig.variants:
        assert re.sub(r"(?<=[a-z])(?=[A-Z])", "_", variant).lower() in names
    assert issubclass(LrSchedulerConfig, ConfigEnum)


# Groups


def test_each_group_has_its_own_rate():
    halve = Exponential(0.8, 0.5)
    schedule = ModuleLrScheduler(0.1).with_group(BIASES, halve)
    last = ParamGroup.from_path("last.bias")
    schedule.with_group(last, ConstantLr(0.3))
    first, second = schedule.step(), schedule.step()
    assert isinstance(first, ModuleLearningRate)
    assert (first, first.base(), f"{first:.2f}") == (0.1, 0.1, "0.10")
    paths = ("first.weight", "first.bias", "last.bias")
    assert [first.of(ParamId(1), path) for path in paths] == [0.1, 0.8, 0.3]
    assert [second.of(ParamId(1), path) for path in paths] == [0.1, 0.4, 0.3]
    assert repr(schedule.base()) == "ConstantLr(0.1)"


def test_the_record_of_groups_goes_on():
    def schedule():
        base = Linear(0.5, 0.1, 5)
        return ModuleLrScheduler(base).with_group(BIASES, VALUES["cosine"][0])

    one = schedule()
    take(one, 3)
    assert one.into_record() == {"0": 3, "1": 2}
    again = schedule().load_record(one.into_record())
    for _ in range(4):
        a, b = one.step(), again.step()
        assert (a, a.of(ParamId(1), "bias")) == (b, b.of(ParamId(1), "bias"))
    before = one.into_record()
    with pytest.raises(RecordError, match="is not the record of this scheduler"):
        one.load_record({"0": 2, "1": "x"})
    assert one.into_record() == before


def test_rates_of_groups_survive_copies():
    rate = ModuleLearningRate(0.1).with_group(BIASES, 0.2)
    again = copy.deepcopy(rate)
    assert (again, again.of(ParamId(1), "bias")) == (0.1, 0.2)
    assert repr(rate) == "ModuleLearningRate(0.1, ParamGroup(path with 'bias'): 0.2)"


# How long it is made for

UP, DOWN, CURVE = Linear(0.1, 0.5, 3), Linear(0.5, 0.1, 3), Cosine(1.0, 4)
LENGTHS = {
    "constant": (ConstantLr(0.3), None),
    "linear down": (DOWN, 4),
    "a warm-up that stays": (UP, None),
    "cosine": (CURVE, 5),
    "exponential": (Exponential(0.8, 0.1), None),
    "noam": (Noam(0.01), None),
    "step": (Step(0.5, 3), None),
    "polynomial": (Polynomial(0.8, 4), 5),
    "polynomial up": (Polynomial(0.1, 4, final_lr=0.2), None),
    "warm-up and cosine": (WarmupCosine(0.4, 2, 6), 7),
    "one cycle": (OneCycle(1.0, 9), 9),
    "plateau": (Plateau(0.3), None),
    "the shortest of a product": (Composed().linear(UP).cosine(CURVE).linear(DOWN), 4),
    "a product without end": (Composed().linear(UP).constant(0.5), None),
    "a sequence": (
        Sequential(
            [LrSchedulerConfig.Linear(UP), LrSchedulerConfig.Cosine(CURVE)], [3]
        ),
        8,
    ),
    "a sequence without end": (
        Sequential(
            [LrSchedulerConfig.Cosine(CURVE), LrSchedulerConfig.Constant(0.1)], [5]
        ),
        None,
    ),
}


@pytest.mark.parametrize("name", LENGTHS)
def test_a_schedule_knows_for_how_many_steps_it_is_made(name):
    config, wanted = LENGTHS[name]
    schedule = made(config)
    assert schedule.length() == length_of(schedule) == wanted
    assert left_of(schedule) == wanted
    take(schedule, 3)
    assert schedule.length() == wanted, "wherever it stands"
    assert left_of(schedule) == (None if wanted is None else wanted - 3)


ALONE = [n for n, (_, count) in LENGTHS.items() if count and "product" not in n]


@pytest.mark.parametrize("name", ALONE)
def test_past_its_length_a_schedule_stays_or_starts_again(name):
    config, count = LENGTHS[name]
    rates = take(made(config), count + 2)
    if "cosine" in repr(config).lower() and "Warmup" not in repr(config):
        assert rates[count] > rates[count - 1]
    else:
        assert rates[count - 1] == rates[count] == rates[count + 1]


def test_groups_are_as_long_as_the_shortest_of_them():
    groups = ModuleLrScheduler(0.1).with_group(BIASES, CURVE)
    assert groups.length() == 5
    assert ModuleLrScheduler(0.1).length() is None
    assert ModuleLrScheduler(OneCycle(1.0, 3)).with_group(BIASES, CURVE).length() == 3


def test_any_function_says_how_long_it_is_meant_for():
    assert LambdaLrScheduler(0.1, lambda i: 1.0).length() is None
    assert LambdaLrScheduler(0.1, lambda i: 1.0, 7).length() == 7


def test_a_schedule_of_ones_own_may_have_a_length_or_not():
    class Mine:
        def step(self):
            return 0.1

    class Long(Mine):
        def length(self):
            return 3

    assert (length_of(Mine()), length_of(Long())) == (None, 3)
    assert ModuleLrScheduler(Long()).with_group(BIASES, Mine()).length() == 3


# In the Learner


def learner(folder, schedule, epochs=2, resume=False):
    made = (
        builder(folder, epochs)
        .metric_train_numeric(LearningRateMetric())
        .metric_valid_numeric(LearningRateMetric())
        .with_file_checkpointer(recorder())
    )
    if resume:
        made = made.checkpoint()
    return made.build(tiny(), AdamConfig().init(), schedule)


def logged(folder, epoch):
    text = (folder / "train" / f"epoch-{epoch}" / "Learning_Rate.log").read_text()
    return [float(line.split(",")[0]) for line in text.splitlines()]


def test_the_learner_asks_once_per_batch_and_shows_the_rate(tmp_path):
    schedule = Linear(0.06, 0.01, 5).init()
    learner(tmp_path, schedule).fit(loader(), loader(1))
    rates = logged(tmp_path, 1) + logged(tmp_path, 2)
    assert rates == pytest.approx([0.06, 0.05, 0.04, 0.03, 0.02, 0.01])
    assert schedule.into_record() == 6, "the next fit begins anew"


@pytest.mark.filterwarnings("ignore:.*LrScheduler (ends|has ended)")
@pytest.mark.parametrize("name", VALUES)
def test_a_training_resumes_in_the_middle_of_a_schedule(tmp_path, name):
    def schedule():
        return made(VALUES[name][0])

    whole, part = tmp_path / "whole", tmp_path / "part"
    straight = learner(whole, schedule(), 3).fit(loader(), loader(1))
    learner(part, schedule(), 1).fit(loader(), loader(1))
    resumed = learner(part, schedule(), 3, resume=True).fit(loader(), loader(1))
    assert same_weights(straight, resumed)
    assert logged(part, 3) == logged(whole, 3)


def test_groups_of_rates_go_through_the_learner(tmp_path):
    still = ModuleLrScheduler(0.1).with_group(ParamGroup.from_predicate("first"), 0.0)
    before = tiny()
    trained = learner(tmp_path, still).fit(loader(), loader(1))
    old, new = weights(before), weights(trained)
    changed = {path for path in old if not np.array_equal(old[path], new[path])}
    assert changed == {"last.weight", "last.bias"}
    assert logged(tmp_path, 1) == pytest.approx([0.1] * 3)


def test_a_run_longer_than_its_cosine_says_so_once(tmp_path):
    schedule = Cosine(0.06, 3).init()
    with pytest.warns(UserWarning, match="starts again at the full rate") as caught:
        learner(tmp_path, schedule, epochs=3).fit(loader(), loader(1))
    assert len(caught) == 1
    log = (tmp_path / "experiment.log").read_text()
    told = "CosineAnnealingLrScheduler ends after 4 of 9 steps"
    assert log.count(told) == 1
    assert log.index(told) < log.index("Executing training step for epoch 1")
    whole = Cosine(0.06, 9).init()
    learner(tmp_path / "whole", whole, epochs=3).fit(loader(), loader(1))


def test_where_nobody_knows_how_long_a_run_is_it_says_so_when_it_happens(tmp_path):
    class Endless:
        def __iter__(self):
            return iter(loader())

    schedule = Cosine(0.06, 3).init()
    with pytest.warns(UserWarning, match="starts again at the full rate") as caught:
        learner(tmp_path, schedule, epochs=3).fit(Endless(), loader(1))
    assert len(caught) == 1
    log = (tmp_path / "experiment.log").read_text()
    over = "the 4 steps of the schedule are over at epoch 2, iteration 2"
    assert log.count(over) == 1


@pytest.mark.parametrize("name", VALUES)
def test_a_schedule_knows_how_many_steps_it_has_left(name):
    schedule = made(VALUES[name][0])
    left = getattr(schedule, "steps_left", None)
    if left is None:  # it goes on forever, or comes to rest where it should
        return
    rates = take(schedule, left)
    assert schedule.steps_left == 0
    assert min(rates) == rates[-1]


def test_a_warm_up_may_be_shorter_than_its_run(tmp_path):
    assert Linear(0.01, 0.04, 3).init().steps_left is None
    assert Linear(0.04, 0.01, 3).init().steps_left == 4
    assert Cosine(0.04, 3).init().steps_left == 4
    learner(tmp_path, Linear(0.001, 0.01, 3).init(), epochs=3).fit(loader(), loader(1))
