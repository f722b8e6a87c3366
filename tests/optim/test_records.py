"""Every optimizer: its state as Burn writes it, through every recorder and back."""

import re
from dataclasses import fields

import numpy as np
import pytest

from burnbook.config import Config
from burnbook.core.errors import RecordError, ShapeError
from burnbook.optim import (
    AdafactorConfig,
    AdaGradConfig,
    AdamConfig,
    AdamWConfig,
    AdanConfig,
    LambConfig,
    LionConfig,
    MomentumConfig,
    MuonConfig,
    RmsPropConfig,
    SgdConfig,
    WeightDecayConfig,
)
from burnbook.record import (
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkBytesRecorder,
)
from burnbook.tensor import TensorData
from tests.support.modules import same_values
from tests.support.optimizers_tried import PLAIN, WIDE, drawn, steps, two
from tests.support.recorders import every_recorder

ADAM = {"momentum": {"time", "moment_1", "moment_2"}}
RMS = {"square_avg": {"square_avg"}, "centered": {"grad_avg", "avg"}}

# Each optimizer, and the names in its record: those of Burn, in Burn's order.
KINDS = {
    "Sgd": (SgdConfig(), {"momentum": None}),
    "Sgd, momentum": (SgdConfig(momentum=MomentumConfig()), {"momentum": {"velocity"}}),
    "Adam": (AdamConfig(weight_decay=WeightDecayConfig(0.1)), ADAM),
    "Adam, amsgrad": (
        AdamConfig(amsgrad=True),
        {"momentum": {"time", "moment_1", "moment_2", "max_moment_2"}},
    ),
    "AdamW": (AdamWConfig(cautious_weight_decay=True), ADAM),
    "AdaGrad": (AdaGradConfig(lr_decay=0.1), {"lr_decay": {"time", "sum"}}),
    "RmsProp": (RmsPropConfig(), {**RMS, "momentum": {"buf"}}),
    "RmsProp, still": (RmsPropConfig(momentum=0.0), {**RMS, "momentum": None}),
    "RmsProp, centered": (RmsPropConfig(centered=True), {**RMS, "momentum": {"buf"}}),
    "RmsProp, centered and still": (
        RmsPropConfig(centered=True, momentum=0.0),
        {**RMS, "momentum": None},
    ),
    "Adan": (
        AdanConfig(),
        {
            "momentum": {
                *("time", "exp_avg", "exp_avg_sq"),
                *("exp_avg_diff", "neg_pre_grad"),
            }
        },
    ),
    "Muon": (MuonConfig(), {"momentum": {"velocity"}}),
    "Lamb": (LambConfig(), {"time": 2, "moment_1": ..., "moment_2": ...}),
    "Lion": (LionConfig(), {"momentum": ...}),
    "Adafactor": (
        AdafactorConfig(),
        {"time": 2, "second_moment": "rows", "column_second_moment": "columns"},
    ),
}


@pytest.mark.parametrize("name", KINDS)
def test_the_record_has_burns_names(name):
    config, wanted = KINDS[name]
    module, optim = two(), config.init()
    steps(optim, module, range(2))
    record = optim.into_record()
    assert list(record) == [p.id.serialize() for p in (module.first, module.second)]
    for param in (module.first, module.second):
        ((version, ranks),) = record[param.id.serialize()].items()
        ((rank, state),) = ranks.items()
        assert (version, rank) == ("V1", "Rank2")
        assert list(state) == list(wanted)
        for field, parts in wanted.items():
            if parts is None or isinstance(parts, int):
                assert state[field] == parts
                continue
            if not isinstance(parts, set):
                rows, columns = param.shape
                factors = {"rows": (rows, 1), "columns": (1, columns)}
                assert state[field].shape == factors.get(parts, param.shape)
                continue
            assert set(state[field]) == parts
            for part, value in state[field].items():
                if part == "time":
                    assert value == 2
                elif value is not None:
                    assert isinstance(value, TensorData)
                    assert value.shape == param.shape
                else:
                    assert part == "grad_avg"


@pytest.mark.parametrize("name", KINDS)
@every_recorder
@pytest.mark.parametrize(
    ("plain", "settings"),
    [(PLAIN, FullPrecisionSettings), (WIDE, DoublePrecisionSettings)],
    ids=["f32", "f64"],
)
def test_resuming_is_equal_bit_for_bit(name, kind, plain, settings, tmp_path):
    config, _ = KINDS[name]
    optim, module = config.init(), two(plain)
    module = steps(optim, module, range(3))
    recorder = kind(settings)
    recorder.record(optim, tmp_path / "optim")
    recorder.record(module, tmp_path / "model")
    loaded = recorder.load(tmp_path / "optim", plain)
    again = config.init().load_record(loaded)
    copied = two(plain, seed=9).load_record(recorder.load(tmp_path / "model", plain))
    assert same_values(
        steps(again, copied, range(3, 6)), steps(optim, module, range(3, 6))
    )
    assert again.into_record() == optim.into_record()


@pytest.mark.parametrize("name", KINDS)
def test_a_record_in_half_precision_is_loaded_wide(name):
    config, _ = KINDS[name]
    optim, module = config.init(), two()
    module = steps(optim, module, range(2))
    recorder = NamedMpkBytesRecorder(HalfPrecisionSettings)
    again = config.init().load_record(recorder.load(recorder.record(optim)))
    moved = steps(again, module, [2])
    straight = steps(optim, module, [2])
    assert np.allclose(moved.first.val(), straight.first.val(), atol=1e-2)
    assert moved.first.val().dtype == "f32"


# Who can read whose record: a state with the same names is the same state.
ALIKE = [
    {"Sgd", "Sgd, momentum", "Muon"},
    {"Adam", "Adam, amsgrad", "AdamW"},
    {name for name in KINDS if name.startswith("RmsProp")},
]


@pytest.mark.parametrize("name", KINDS)
def test_the_record_of_another_optimizer_is_refused(name):
    optim = KINDS[name][0].init()
    steps(optim, two(), range(1))
    record = optim.into_record()
    for other, (config, _) in KINDS.items():
        target = config.init()
        alike = name == other or any({name, other} <= names for names in ALIKE)
        if alike and (name, other) != ("Sgd", "Muon"):
            assert target.load_record(record).into_record().keys() == record.keys()
            continue
        with pytest.raises(RecordError) as error:
            target.load_record(record)
        saved, this = name.partition(",")[0], type(target.optim).__name__
        first = str(error.value).splitlines()[0]
        assert re.search(f"saved by .*{saved}.*, this is {this}", first)
        assert len(str(error.value).splitlines()) == 2
        assert target.into_record() == {}, other


def test_each_field_of_a_config_has_its_builder():
    for config, _ in KINDS.values():
        assert isinstance(config, Config)
        for field in fields(config):
            assert hasattr(config, f"with_{field.name}")


@pytest.mark.parametrize("name", KINDS)
def test_a_config_is_saved_and_loaded(name, tmp_path):
    config, _ = KINDS[name]
    config.save(tmp_path / "optim.json")
    assert type(config).load(tmp_path / "optim.json") == config


@pytest.mark.parametrize("name", KINDS)
def test_a_state_of_another_shape_is_refused_at_its_step(name):
    config, _ = KINDS[name]
    optim, module = config.init(), two()
    steps(optim, module, range(1))
    record = optim.into_record()
    one, other = (p.id.serialize() for p in (module.first, module.second))
    record = {one: record[other], other: record[one]}
    loaded = config.init().load_record(record)
    if name == "Sgd":  # has nothing to remember
        steps(loaded, module, range(1))
        return
    with pytest.raises(ShapeError, match=r"Two.first: the state .* another shape"):
        steps(loaded, module, range(1))


def test_newer_records_of_adam_hold_the_largest_average_or_nothing():
    optim = AdamConfig().init()
    steps(optim, two(), range(1))
    record = optim.into_record()
    for held in record.values():
        held["V1"]["Rank2"]["momentum"]["max_moment_2"] = None
    assert AdamConfig().init().load_record(record).into_record() == optim.into_record()


def test_amsgrad_goes_on_from_a_record_of_plain_adam():
    plain, module = AdamConfig().init(), two()
    module = steps(plain, module, range(2))
    again = AdamConfig(amsgrad=True).init().load_record(plain.into_record())
    assert not np.array_equal(steps(again, module, [2]).first.val(), module.first.val())


@pytest.mark.parametrize("plain", [PLAIN, WIDE], ids=["f32", "f64"])
def test_the_factors_of_adam_have_the_digits_of_the_backend(plain):
    optim, module = AdamConfig().init(), two(plain)
    steps(optim, module, [0])
    beta = 0.999 if plain is WIDE else float(np.float32(0.999))
    grads, record = drawn(module, 0), optim.into_record()
    for _, param in module.named_params():
        state = record[param.id.serialize()]["V1"]["Rank2"]["momentum"]
        wanted = (1 - beta) * np.asarray(grads.get(param.id)).astype(np.float64) ** 2
        np.testing.assert_allclose(state["moment_2"].array, wanted, 1e-6)
