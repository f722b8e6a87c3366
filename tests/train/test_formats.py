"""Checkpoints in every format that holds an optimizer and a schedule."""

import struct
from functools import partial

import cbor2
import numpy as np
import pytest

from burnbook import lr_scheduler, nn
from burnbook.backend import Numpy
from burnbook.core.errors import ConfigError, RecordError
from burnbook.optim import (
    AdaGradConfig,
    AdamConfig,
    AdanConfig,
    GradientsParams,
    MomentumConfig,
    ParamGroup,
    RmsPropConfig,
    SgdConfig,
)
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    SafetensorsRecorder,
)
from burnbook.tensor import Tensor
from tests.support import refusals
from tests.support.cases import cases
from tests.support.dying_training import RECORDERS
from tests.support.tiny_training import builder, file_names, loader, same_weights, tiny

SCHEDULES = {
    "constant": lambda: 0.01,
    "linear": lr_scheduler.LinearLrSchedulerConfig(0.01, 0.001, 10).init,
    "cosine": lr_scheduler.CosineAnnealingLrSchedulerConfig(0.01, 10).init,
    "exponential": lr_scheduler.ExponentialLrSchedulerConfig(0.01, 0.9).init,
    "noam": lr_scheduler.NoamLrSchedulerConfig(0.1).with_warmup_steps(4).init,
    "step": lr_scheduler.StepLrSchedulerConfig(0.01, 2).init,
}
COMPOSED = lr_scheduler.ComposedLrSchedulerConfig().linear(
    lr_scheduler.LinearLrSchedulerConfig(0.25, 1.0, 3)
)
OPTIMIZERS = {
    "adam": AdamConfig(),
    "sgd": SgdConfig(momentum=MomentumConfig()),
    "rmsprop": RmsPropConfig(),
    "adan": AdanConfig(),
    "adagrad": AdaGradConfig(),
}


def train(folder, epochs, recorder, optim="adam", schedule="constant", resume=False):
    """The trained model; `schedule` may be one of one's own."""
    made = builder(folder, epochs).with_file_checkpointer(recorder)
    made = made.checkpoint() if resume else made
    lr = SCHEDULES[schedule]() if isinstance(schedule, str) else schedule
    trained = made.build(tiny(), OPTIMIZERS[optim].init(), lr)
    return trained.fit(loader(), loader(1))


def resumes(folder, kind, optim="adam", schedule="constant"):
    """Whether a run in two parts ends as a whole one, to the bit."""
    recorder = kind(FullPrecisionSettings)
    train(folder, 1, recorder, optim, schedule)
    model = train(folder, 2, recorder, optim, schedule, resume=True)
    parts = ("model", "optim", "scheduler")
    names = [f"{p}-{epoch}.{recorder.extension}" for p in parts for epoch in (1, 2)]
    assert file_names(folder / "checkpoint") == names
    whole = train(folder / "whole", 2, NamedMpkFileRecorder(), optim, schedule)
    return same_weights(model, whole)


@pytest.mark.parametrize("kind", RECORDERS.values())
def test_a_run_resumes_from_every_format(tmp_path, kind):
    assert resumes(tmp_path, kind)


@pytest.mark.parametrize("kind", [BinFileRecorder, BurnpackRecorder])
@pytest.mark.parametrize("schedule", list(SCHEDULES)[1:])
def test_every_schedule_has_its_place_in_bincode_and_burnpack(tmp_path, kind, schedule):
    assert resumes(tmp_path, kind, schedule=schedule)


@pytest.mark.parametrize("kind", [BinFileRecorder, BurnpackRecorder])
@pytest.mark.parametrize("optim", list(OPTIMIZERS)[1:])
def test_every_optimizer_has_its_place_in_bincode_and_burnpack(tmp_path, kind, optim):
    assert resumes(tmp_path, kind, optim=optim)


def head_of(path):
    """What a burnpack file says ahead of its elements."""
    data = path.read_bytes()
    (length,) = struct.unpack_from("<I", data, 6)
    return cbor2.loads(data[10 : 10 + length])


def test_burnpack_gives_every_number_the_name_that_burn_gives_it(tmp_path):
    recorder = BurnpackRecorder()
    exponential = lr_scheduler.ExponentialLrSchedulerConfig(0.1, 0.9)
    config = COMPOSED.exponential(exponential)
    schedule = config.init()
    schedule.step()
    path = recorder.record(schedule.into_record(), tmp_path / "scheduler-1")
    numbers = {
        "0.0.remaining_iters": {"UInt": 3},
        "0.1.previous_lr": {"Float": 0.1},
    }
    assert head_of(path) == {"tensors": {}, "scalars": numbers}
    again = config.init().load_record(recorder.load(path))
    assert again.into_record() == schedule.into_record()

    train(tmp_path, 1, recorder, schedule="cosine")
    path = tmp_path / "checkpoint" / "scheduler-1.bpk"
    numbers = {"0.current_iter": {"UInt": 2}}
    assert head_of(path) == {"tensors": {}, "scalars": numbers}


NESTED = lr_scheduler.ComposedLrSchedulerConfig().composed(COMPOSED).constant(0.5)
SEVERAL = {
    "composed": COMPOSED.init,
    "nested": NESTED.init,
    "constants": lr_scheduler.ComposedLrSchedulerConfig().constant(0.5).init,
    "sequential": lr_scheduler.SequentialLrSchedulerConfig(
        [
            lr_scheduler.LrSchedulerConfig.Composed(COMPOSED),
            lr_scheduler.LrSchedulerConfig.Constant(0.1),
        ],
        [2],
    ).init,
    "module": lambda: lr_scheduler.ModuleLrScheduler(COMPOSED).with_group(
        ParamGroup.from_predicate("bias"), SCHEDULES["noam"]()
    ),
    "module of one": lambda: lr_scheduler.ModuleLrScheduler(SCHEDULES["step"]()),
} | {name: make for name, make in SCHEDULES.items() if name != "constant"}


@pytest.mark.parametrize("name", SEVERAL)
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_every_schedule_goes_on_from_burnpack(tmp_path, name, steps):
    schedule, recorder = SEVERAL[name](), BurnpackRecorder()
    for _ in range(steps):
        schedule.step()
    for record in (schedule, schedule.into_record()):
        path = recorder.record(record, tmp_path / "schedule")
        again = SEVERAL[name]().load_record(recorder.load(path))
        assert again.into_record() == schedule.into_record()
    assert [again.step() for _ in range(4)] == [schedule.step() for _ in range(4)]


def test_what_older_versions_saved_is_still_read(tmp_path):
    """Without the group, as burnbook wrote it before."""
    recorder, cosine = BurnpackRecorder(), SCHEDULES["cosine"]()
    path = recorder.record({"current_iter": 2}, tmp_path / "scheduler")
    assert cosine.load_record(recorder.load(path)).into_record() == 2
    both = {"0": {"remaining_iters": 3}, "1": {"previous_lr": 0.1}}
    exponential = lr_scheduler.ExponentialLrSchedulerConfig(0.1, 0.9)
    composed = COMPOSED.exponential(exponential).init()
    path = recorder.record(both, tmp_path / "scheduler")
    found = composed.load_record(recorder.load(path)).into_record()
    assert found == {"schedulers": [{"Linear": 3}, {"Exponential": 0.1}]}
    optim = adam_after_one_step()
    old = {name: {"V1": held["V1"]} for name, held in optim.into_record().items()}
    flat = {f"{name}.V1": held["V1"] for name, held in old.items()}
    path = recorder.record(flat, tmp_path / "optim")
    again = AdamConfig().init().load_record(recorder.load(path))
    assert again.into_record() == optim.into_record()


def test_a_number_without_a_name_is_refused(tmp_path):
    with pytest.raises(RecordError, match="a number alone has no name"):
        BurnpackRecorder().record(3, tmp_path / "number")


class Halving:
    """A schedule of one's own, whose number has no name."""

    def __init__(self):
        self.steps = 0

    def step(self):
        self.steps += 1
        return 0.01 / self.steps

    def into_record(self):
        return self.steps

    def load_record(self, record):
        assert type(record) is int
        self.steps = record
        return self


@pytest.mark.parametrize("kind", [BinFileRecorder, BurnpackRecorder])
def test_a_schedule_of_ones_own_resumes_too(tmp_path, kind):
    train(tmp_path, 1, kind(), schedule=Halving())
    whole = train(tmp_path / "whole", 2, kind(), schedule=Halving())
    resumed = train(tmp_path, 2, kind(), schedule=Halving(), resume=True)
    assert same_weights(resumed, whole)


# Bincode, byte by byte


def adam_after_one_step(amsgrad=False):
    layer = nn.LinearConfig(2, 3).init(Numpy().autodiff())
    x = Tensor.from_data([[1.0, 2.0]], Numpy().autodiff())
    grads = layer.forward(x).sum().backward()
    optim = AdamConfig(amsgrad=amsgrad).init()
    optim.step(0.1, layer, GradientsParams.from_grads(grads, layer))
    return optim


def test_the_bincode_of_adam_is_the_sheets(tmp_path):
    """Count, then id, version, rank, time and two moments of each parameter."""
    optim = adam_after_one_step()
    recorder = BinFileRecorder(FullPrecisionSettings)
    data = recorder.record(optim, tmp_path / "optim").read_bytes()
    expected = b"\x02"
    for name, held in optim.into_record().items():
        ((rank, state),) = held["V1"].items()
        expected += b"\x0d" + name.encode() + b"\x00" + bytes([int(rank[4:])]) + b"\x01"
        for moment in ("moment_1", "moment_2"):
            found = state["momentum"][moment]
            raw = found.array.astype("<f4").tobytes()
            dims = bytes([len(found.shape), *found.shape])
            expected += bytes([len(raw)]) + raw + dims + b"\x01"  # F32
    assert data[130:] == expected
    again = AdamConfig().init().load_record(recorder.load(tmp_path / "optim"))
    assert recorder.record(again, tmp_path / "again").read_bytes() == data


@cases(
    "schedule steps expected",
    ("linear", 3, b"\x08"),
    ("cosine", 0, b"\xfd" + b"\xff" * 8),
    ("step", 0, b"\x01"),  # signed: -1
    ("step", 3, b"\x04"),
    ("exponential", 1, struct.pack("<d", 0.01)),
)
def test_the_bincode_of_a_schedule_is_its_number(tmp_path, schedule, steps, expected):
    made = SCHEDULES[schedule]()
    for _ in range(steps):
        made.step()
    recorder = BinFileRecorder()
    data = recorder.record(made, tmp_path / "scheduler").read_bytes()
    assert data[130:] == expected
    sealed = recorder.load(tmp_path / "scheduler")
    again = SCHEDULES[schedule]()
    assert again.load_record(sealed.for_module(again)).step() == made.step()


def test_damaged_bincode_of_an_optimizer_is_an_error_and_changes_nothing(tmp_path):
    optim, recorder = adam_after_one_step(), BinFileRecorder()
    path = recorder.record(optim, tmp_path / "optim")
    data = path.read_bytes()
    before = recorder.record(optim, tmp_path / "before").read_bytes()
    rng = np.random.default_rng(0)
    for _ in range(300):
        wrong = bytearray(data)
        wrong[rng.integers(130, len(data))] ^= 1 << rng.integers(8)
        path.write_bytes(wrong[: rng.integers(131, len(data) + 1)])
        try:
            AdamConfig().init().load_record(recorder.load(path))
        except RecordError:
            continue
    path.write_bytes(data[:-1])
    with pytest.raises(RecordError, match="the file ends inside"):
        optim.load_record(recorder.load(path))
    assert recorder.record(optim, tmp_path / "after").read_bytes() == before
    path.write_bytes(data + b"\0")
    with pytest.raises(RecordError, match="1 bytes follow the end of the record"):
        optim.load_record(recorder.load(path))


@cases(
    "at byte text", (14, 1, "has another version"), (15, 9, "has an impossible rank")
)
def test_versions_and_ranks_that_do_not_exist_are_named(tmp_path, at, byte, text):
    recorder = BinFileRecorder()
    path = recorder.record(adam_after_one_step(), tmp_path / "optim")
    data = bytearray(path.read_bytes())
    data[130 + 1 + at] = byte
    path.write_bytes(data)
    with pytest.raises(RecordError, match=text) as error:
        AdamConfig().init().load_record(recorder.load(path))
    assert "  part      OptimizerAdaptor" in str(error.value)


# What cannot be kept is refused before anything is trained


def refused(folder, recorder, optim=None, schedule=0.01):
    made = builder(folder, 1).with_file_checkpointer(recorder)
    trained = made.build(tiny(), optim or AdamConfig().init(), schedule)
    with pytest.raises(RecordError) as error:
        trained.fit(loader(), loader(1))
    assert not (folder / "train").exists()
    return str(error.value)


def test_bincode_refuses_at_once_what_only_names_tell_apart(tmp_path):
    bias = ParamGroup.from_predicate("bias")
    groups = AdamConfig().init().with_group(bias, OPTIMIZERS["sgd"])
    text = refused(tmp_path, BinFileRecorder(), optim=groups)
    told = ("only names can tell apart\n", "try: a recorder for named MessagePack")
    refusals.tells(text, "save OptimizerAdaptor as bincode: ", *told)
    text = refused(
        tmp_path, BinFileRecorder(), schedule=lr_scheduler.ModuleLrScheduler(0.01)
    )
    assert text.startswith("save ModuleLrScheduler as bincode: ")


def test_bincode_refuses_a_state_that_burn_015_does_not_know(tmp_path):
    optim = adam_after_one_step(amsgrad=True)
    with pytest.raises(RecordError, match="max_moment_2 came with a newer Burn"):
        BinFileRecorder().record(optim, tmp_path / "optim")


def test_safetensors_are_refused_as_checkpoints(tmp_path):
    act = partial(builder(tmp_path).with_file_checkpointer, SafetensorsRecorder())
    told = ("safetensors holds only tensors", "try: with_file_checkpointer(CompactRec")
    refusals.refused(ConfigError, act, "LearnerBuilder.with_file_checkpointer: ", *told)
