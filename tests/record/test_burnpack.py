"""Burnpack as Burn 0.22 has it: names, Bools, lists, quantized tensors, numbers."""

import math

import cbor2
import numpy as np
import pytest

from burnbook.backend import Numpy
from burnbook.module import Param
from burnbook.optim import LBFGSConfig, SgdConfig
from burnbook.record import (
    BurnpackRecorder,
    NamedMpkFileRecorder,
    RecordError,
    SafetensorsRecorder,
    cbor,
    convert,
)
from burnbook.tensor import Tensor, TensorData
from tests.record.test_named import bpk, read
from tests.support.optimizers_tried import EVERY, PLAIN, drawn, steps, two
from tests.support.quantizing import SCHEMES, tensor
from tests.support.unusual_models import SCHEDULES_0_22
from tests.train.test_formats import head_of

NUMBERS = [0, 23, 24, 255, 256, 65536, 2**32, 2**64 - 1, -1, -25, -(2**63)]
FLOATS = [0.0, 0.5, -2.0, 65504.0, 1e5, 0.1, 1e300, math.inf, -0.0, 2.0**-24]


@pytest.mark.parametrize("value", [*NUMBERS, *FLOATS, "ä" * 30, None, True, [[]], {}])
def test_cbor_is_as_short_as_it_can_be_and_means_the_same(value):
    written = cbor.encode({"a": value})
    assert cbor2.loads(written) == {"a": value}
    assert len(written) <= len(cbor2.dumps({"a": value}, canonical=True))


def test_not_a_number_is_written():
    assert math.isnan(cbor2.loads(cbor.encode(math.nan)))


@pytest.mark.parametrize("dtype", ["Bool", {"Bool": "Native"}])
def test_a_bool_is_written_back_as_its_release_has_it(dtype, tmp_path):
    about = {"a": {"dtype": dtype, "shape": [2], "data_offsets": [0, 2]}}
    data = bpk({"tensors": about})
    data += bytes(-len(data) % 256) + b"\1\0"
    found = read(BurnpackRecorder(), data, tmp_path)
    assert found.item == {"a": TensorData([True, False])}
    path = BurnpackRecorder().write(found, tmp_path / "again")
    assert head_of(path)["tensors"]["a"]["dtype"] == dtype
    path = BurnpackRecorder().record(found.item, tmp_path / "new")
    assert head_of(path)["tensors"]["a"]["dtype"] == {"Bool": "Native"}


@pytest.mark.parametrize("name", EVERY)
def test_an_optimizer_has_decimal_ids_ranks_and_paths(name, tmp_path):
    optim, module = EVERY[name].init(), two()
    steps(optim, module, range(2))
    path = BurnpackRecorder().record(optim.into_record(), tmp_path / "optim")
    head = head_of(path)
    ids = {str(int(p.id)): at for at, p in module.named_params()}
    assert head["metadata"] == ids
    for number in ids:
        assert head["scalars"][f"{number}.__rank"] == {"UInt": 2}
    for tensor_name, about in head["tensors"].items():
        assert str(about["param_id"]) == tensor_name.partition(".")[0]
    again = EVERY[name].init().load_record(BurnpackRecorder().load(path, PLAIN))
    ours, theirs = optim.into_record(), again.into_record()
    assert ours == theirs


def test_an_optimizer_is_converted_to_older_formats(tmp_path):
    optim, module = EVERY["Adam"].init(), two()
    steps(optim, module, range(2))
    path = BurnpackRecorder().record(optim, tmp_path / "optim")
    other = convert(path, tmp_path / "optim.mpk")
    assert NamedMpkFileRecorder().load(other) == optim.into_record()
    assert other.read_bytes()[-1:] == b"\x90"
    back = convert(other, tmp_path / "again.bpk")
    assert BurnpackRecorder().load(back) == optim.into_record()


def test_a_state_of_nothing_is_kept(tmp_path):
    optim, module = SgdConfig().init(), two()
    steps(optim, module, [0])
    path = BurnpackRecorder().record(optim, tmp_path / "optim")
    assert head_of(path)["tensors"] == {}
    again = SgdConfig().init().load_record(BurnpackRecorder().load(path))
    assert len(again.into_record()) == 2


def test_the_lists_of_lbfgs_have_their_length(tmp_path):
    optim, module = LBFGSConfig(max_iter=3).init(), two()
    for _ in range(2):
        path = BurnpackRecorder().record(optim.into_record(), tmp_path / "optim")
        record = optim.into_record()
        count = len(record["history_s"])
        assert head_of(path)["scalars"]["history_s.len"] == {"UInt": count}
        again = LBFGSConfig(max_iter=3).init()
        again.load_record(BurnpackRecorder().load(path))
        assert again.into_record() == record
        module, _ = optim.step(0.1, module, lambda m: (1.0, drawn(m, 1)))
    assert count == 0


@pytest.mark.parametrize("name", [name for name in SCHEMES if name != "affine"])
def test_quantized_tensors_come_back(name, tmp_path):
    quantized = tensor(4, 8).quantize_dynamic(SCHEMES[name])
    tree = {"weight": quantized.to_data()}
    for record in (tree, {"weight": quantized}):
        path = BurnpackRecorder().record(record, tmp_path / "weights")
        found = BurnpackRecorder().load(path)["weight"]
        back = np.asarray(Tensor.from_data(found, PLAIN))
        assert np.array_equal(back, np.asarray(quantized))
    with pytest.raises(RecordError, match="quantized"):
        SafetensorsRecorder().record(tree, tmp_path / "weights")


def test_an_offset_has_no_place(tmp_path):
    tree = {"weight": tensor(4, 8).quantize_dynamic(SCHEMES["affine"]).to_data()}
    with pytest.raises(RecordError, match=r"records of Burn 0\.22 cannot hold"):
        BurnpackRecorder().record(tree, tmp_path / "weights")


GOOD = {"value": "Q8S", "store": "Native", "mode": "Symmetric"}
GOOD |= {"tensor": "F32", "block": None}


@pytest.mark.parametrize(
    "change",
    [
        {"value": "Q9"},
        {"store": {"PackedU32": -1}},
        {"store": 3},
        {"mode": "Affine"},
        {"tensor": "F8"},
        {"block": {"size": {"storage": [0, 1], "len": 1}, "dtype": "F32"}},
        {"block": {"size": {"storage": ["a"], "len": 1}, "dtype": "F32"}},
        {"block": {"size": {"storage": [3], "len": 1}, "dtype": "F16"}, "tensor": None},
        {"block": 7},
        {"store": {"PackedU32": 9}, "value": "Q4S"},
    ],
)
def test_a_scheme_that_is_none_is_refused(change, tmp_path):
    dtype = {"QFloat": GOOD | change}
    about = {"a": {"dtype": dtype, "shape": [4], "data_offsets": [0, 8]}}
    data = bpk({"tensors": about})
    data += bytes(-len(data) % 256) + bytes(8)
    with pytest.raises(RecordError, match="try: "):
        read(BurnpackRecorder(), data, tmp_path)


def test_a_tensor_of_no_parameter_is_refused(tmp_path):
    about = {"b.c": {"dtype": "F32", "shape": [], "data_offsets": [0, 4]}}
    data = bpk({"tensors": about, "scalars": {"7.__rank": {"UInt": 1}}})
    data += bytes(-len(data) % 256) + bytes(4)
    with pytest.raises(RecordError, match=r"b\.c belongs to no parameter"):
        read(BurnpackRecorder(), data, tmp_path)


def test_a_parameter_named_like_a_schedule_stays_one(tmp_path):
    weight = Param.from_tensor(Tensor.ones([2], Numpy()))
    tree = {"0": {"weight": weight.val().to_data()}, "step": 3}
    path = BurnpackRecorder().record(tree, tmp_path / "model")
    assert BurnpackRecorder().load(path) == tree


def same_again(path, tmp_path):
    found = BurnpackRecorder().load(path)
    again = BurnpackRecorder().record(found, tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()
    return found


@pytest.mark.parametrize("tree", [{"step": -1}, {"a": {"step": -5}, "b": {"0": 2}}])
def test_numbers_below_zero_keep_their_names_and_types(tree, tmp_path):
    path = BurnpackRecorder().record(tree, tmp_path / "numbers")
    assert same_again(path, tmp_path) == tree


@pytest.mark.parametrize("name", SCHEDULES_0_22)
@pytest.mark.parametrize("steps", [0, 5])
def test_the_record_of_a_schedule_is_written_back(name, steps, tmp_path):
    schedule = SCHEDULES_0_22[name].init()
    for _ in range(steps):
        schedule.step()
    path = BurnpackRecorder().record(schedule, tmp_path / "schedule")
    again = SCHEDULES_0_22[name].init().load_record(same_again(path, tmp_path))
    assert [again.step() for _ in range(6)] == [schedule.step() for _ in range(6)]
