"""Bincode: no names, so the module says what stands where."""

import pickle
import random
import struct
import time

import numpy as np
import pytest

from burnbook.backend.numpy import Numpy
from burnbook.lr_scheduler import ConstantLr
from burnbook.module import Module, Param
from burnbook.module.param import ParamId
from burnbook.nn import Linear, LinearConfig, Relu
from burnbook.nn.conv import Conv2dConfig
from burnbook.nn.norm import BatchNorm, BatchNormConfig
from burnbook.record import (
    BinBytesRecorder,
    BinFileRecorder,
    BinGzFileRecorder,
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NoStdInferenceRecorder,
    NoStdTrainingRecorder,
    RecordError,
    SensitiveCompactRecorder,
    describe,
)
from burnbook.record.bincode import Reader, whole_number
from burnbook.record.tree import Metadata
from burnbook.tensor import Tensor, TensorData
from tests.support.cases import cases
from tests.support.mutation import mutate, mutations

COUNT = mutations(400)


class Net(Module):
    choice: Linear | BatchNorm
    layers: list[Linear | None]
    pair: tuple[Linear, Relu]
    named: dict[str, Linear]
    extra: Linear | None
    rate: float | None
    sizes: list[int]


def linear(d_input=2, d_output=3, bias=True):
    return LinearConfig(d_input, d_output, bias=bias).init(Numpy())


def net():
    layers = [linear(), None, linear(bias=False)]
    norm = BatchNormConfig(3).init(Numpy())
    return Net(norm, layers, (linear(), Relu()), {"a": linear()}, None, 0.5, [1, 2])


def one_linear():
    model = linear()
    weight = Tensor.from_data([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], Numpy())
    bias = Tensor.from_data([7.0, 8.0, 9.0], Numpy())
    made = object.__new__(type(model))
    made.__dict__.update(model.__dict__)
    made.__dict__["weight"] = Param.initialized(ParamId(1), weight)
    made.__dict__["bias"] = Param.initialized(ParamId(2), bias)
    return made


FORMAT = (
    "burn_core::record::file::BinFileRecorder"
    "<burn_core::record::settings::FullPrecisionSettings>"
)


def test_a_linear_layer_has_the_bytes_of_burn(tmp_path):
    """The worked example of Burn 0.15: 204 bytes."""
    data = BinFileRecorder().record(one_linear().into_record(), tmp_path / "m")
    head = b"\x03f32\x03i32\x5c" + FORMAT.encode() + b"\x060.15.0"
    head += b"\x15FullPrecisionSettings"
    item = b"\x0d0400000000000\x18" + struct.pack("<6f", 1, 2, 3, 4, 5, 6)
    item += b"\2\2\3\1\1\x0d0800000000000\x0c" + struct.pack("<3f", 7, 8, 9)
    assert data.read_bytes() == head + item + b"\1\3\1"
    assert (len(head), data.stat().st_size) == (130, 204)


def test_a_convolution_ends_in_a_zero_for_each_constant():
    model = Conv2dConfig([1, 2], [3, 3], bias=False).init(Numpy())
    data = BinBytesRecorder().record(model.into_record())
    # the type of the weight, no bias, then stride 2, kernel 2, dilation 2, groups,
    # padding: one byte each
    assert data.endswith(b"\4\2\1\3\3\1" + b"\0" + b"\0" * 8)
    assert model.load_record(BinBytesRecorder().load(data)).into_record() == (
        model.into_record()
    )


@pytest.mark.parametrize("value", [0, 250, 251, 65535, 65536, 2**32 - 1, 2**32])
def test_whole_numbers_come_back(value):
    assert Reader(whole_number(value)).number(()) == value


def test_every_kind_of_part_comes_back():
    first, second = net(), net()
    data = BinBytesRecorder().record(first)
    loaded = second.load_record(BinBytesRecorder().load(data, Numpy()))
    assert loaded.into_record() == first.into_record()
    assert loaded.into_record() != second.into_record()
    assert BinBytesRecorder().record(loaded) == data
    record = BinBytesRecorder().read(data)
    assert BinBytesRecorder().write(record) == data
    assert list(first.into_record()["choice"]) == ["BatchNorm"]


def test_a_lazy_module_is_filled_without_drawing_its_numbers():
    data = BinBytesRecorder().record(linear())
    blank = linear()
    blank.load_record(BinBytesRecorder().load(data))
    assert not blank.weight.is_initialized


@pytest.mark.parametrize(
    ("version", "number"), [("0.15.0", 2), ("0.16.1", 2), ("0.17.0", 3), ("0.20.0", 3)]
)
def test_the_number_of_f16_follows_the_release(version, number, tmp_path):
    recorder = BinFileRecorder(HalfPrecisionSettings, version=version)
    path = recorder.record(one_linear().into_record(), tmp_path / "m")
    assert path.read_bytes()[-1] == number
    loaded = linear().load_file(path, BinFileRecorder())
    assert np.asarray(loaded.bias.val()).tolist() == [7, 8, 9]
    assert {row.dtype for row in describe(path)} == {"f16"}


def test_burn_021_has_one_nothing_for_a_list_of_numbers():
    metadata = Metadata("f32", "i32", "x", "0.21.0", "FullPrecisionSettings")
    texts = [metadata.float, metadata.int, "x", "0.21.0", metadata.settings]
    head = b"".join(whole_number(len(t)) + t.encode() for t in texts)
    model = Conv2dConfig([1, 1], [1, 1], bias=False).init(Numpy())
    tensor = b"\x0d0400000000000\4" + struct.pack("<f", 2.5) + b"\4\1\1\1\1\1"
    recorder = BinBytesRecorder()
    loaded = model.load_record(recorder.load(head + tensor + b"\0" * 6))
    assert np.asarray(loaded.weight.val()).item() == 2.5
    with pytest.raises(RecordError, match="3 bytes follow the end"):
        model.load_record(recorder.load(head + tensor + b"\0" * 9))


def test_the_other_names_of_the_recorders(tmp_path):
    model = one_linear()
    for recorder, name, dtype in [
        (SensitiveCompactRecorder(), "m.bin.gz", "f16"),
        (NoStdTrainingRecorder(), "m.bin", "f32"),
        (BinGzFileRecorder(DoublePrecisionSettings), "m.bin.gz", "f64"),
    ]:
        path = recorder.record(model.into_record(), tmp_path / "m")
        assert path.name == name
        assert {row.dtype for row in describe(path)} == {dtype}
        loaded = linear().load_file(path, recorder)
        assert loaded.into_record() == model.into_record()
    data = NoStdInferenceRecorder().record(model.into_record())
    assert b"memory::BinBytesRecorder<" in data
    found = linear().load_record(NoStdInferenceRecorder().load(data))
    assert found.into_record() == model.into_record()


def test_a_constant_rate_is_nothing_and_its_bare_record_one_byte():
    schedule = ConstantLr(0.5)
    nothing = BinBytesRecorder().record(schedule)
    byte = BinBytesRecorder().record(schedule.into_record())
    assert byte == nothing + b"\0"
    for data in (nothing, byte):
        again = ConstantLr(0.5).load_record(BinBytesRecorder().load(data))
        assert again.step() == 0.5


def test_a_copy_of_a_record_is_a_plain_dict():
    record = one_linear().into_record()
    copy = pickle.loads(pickle.dumps(record))
    assert type(copy) is dict
    assert copy == record
    with pytest.raises(RecordError, match="does not say what stands where"):
        BinBytesRecorder().record(copy)


# --- damage --------------------------------------------------------------------------


def load(data, model=None):
    return (model or linear()).load_record(BinBytesRecorder().load(data))


def head(version="0.15.0"):
    texts = ["f32", "i32", "x", version, "FullPrecisionSettings"]
    return b"".join(whole_number(len(t)) + t.encode() for t in texts)


ID = b"\x0d0400000000000"


@cases(
    "data first",
    (b"", "this is an empty file"),
    (b"\xff", "metadata.float is not a valid number"),
    (b"\xfd" + b"\xff" * 8, "metadata.float has no text where one belongs"),
    (b"\x02\xff\xfe", "a text in metadata.float is not UTF-8"),
    (b"\x10f32", "the file ends inside metadata.float"),
    (head("0.13.0") + ID + b"\x07", "the file ends inside weight"),
    (head("new"), "'new' is not a version of Burn, so its layout is not known"),
    (head() + ID, "the file ends inside weight"),
    (head() + ID + b"\xfd" + b"\xff" * 8, "the file ends inside weight"),
    (head() + ID + b"\0\xfc\xff\xff\xff\xff", "weight has an impossible shape"),
    (head() + ID + b"\0\1\0\x63", "weight has an unknown element type"),
    (head() + ID + b"\0\1\5\1\0", "weight does not fit its shape"),
    (head() + ID + b"\0\1\0\1\7", "bias is not there"),
    (head() + b"\3a!b\0\1\0\1\0", "weight has an invalid id"),
    (head() + ID + b"\0\1\0\1\0\0", "1 bytes follow the end of the record"),
)
def test_damage_has_a_line_of_its_own(data, first):
    with pytest.raises(RecordError) as error:
        load(data)
    text = str(error.value)
    assert first in text
    assert "\n  try: " in text


def test_another_module_is_refused():
    data = BinBytesRecorder().record(net())
    other = net()
    shorter = Net(other.choice, [], *rest(other))
    with pytest.raises(RecordError, match="layers differs in length from"):
        load(data, shorter)
    wrong = Net(linear(), other.layers, *rest(other))
    with pytest.raises(RecordError, match="choice is a different variant"):
        load(data, wrong)


def rest(model):
    return [getattr(model, n) for n in ("pair", "named", "extra", "rate", "sizes")]


def test_mutated_bytes_give_only_our_error():
    model = net()
    data, rng = BinBytesRecorder().record(model), random.Random(11)
    read_well, slowest, longest = 0, 0.0, 0
    for _ in range(COUNT):
        changed = mutate(data, rng)
        start = time.process_time()
        try:
            load(changed, model)
            read_well += 1
        except RecordError as error:
            longest = max(longest, len(str(error)))
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 30  # it ends, however slow the machine is
    assert longest < 1500
    assert read_well < COUNT * 0.98


def test_bytes_cut_anywhere_give_our_error():
    data = BinBytesRecorder().record(one_linear())
    for end in range(len(data)):
        with pytest.raises(RecordError):
            load(data[:end])


def test_full_precision_is_the_default():
    assert BinFileRecorder().settings is FullPrecisionSettings
    tensor = TensorData([1.0])
    with pytest.raises(RecordError, match="does not say what stands where"):
        BinBytesRecorder().record({"a": tensor})
