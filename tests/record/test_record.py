"""Trees, formats, precision: what goes in comes out again."""

import dataclasses
import struct
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from burnbook.backend import Numpy
from burnbook.module.param import ParamId, ParamRecord
from burnbook.nn import LinearConfig
from burnbook.record import (
    BinFileRecorder,
    BurnRecord,
    CompactRecorder,
    DebugRecordSettings,
    DefaultFileRecorder,
    DefaultRecorder,
    DoublePrecisionSettings,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkBytesRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
    RecordError,
    SafetensorsRecorder,
    describe,
)
from burnbook.record.precision import to_settings
from burnbook.record.tree import map_tensors
from burnbook.tensor.data import TensorData
from tests.support.cases import cases
from tests.support.refusals import refused

PRECISIONS = [FullPrecisionSettings, HalfPrecisionSettings, DoublePrecisionSettings]
FILES = [
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    JsonGzFileRecorder,
    PrettyJsonFileRecorder,
]
WEIGHT, BIAS = ParamId(1).serialize(), ParamId(2).serialize()


def linear_tree():
    weight = TensorData(np.arange(6, dtype=np.float32).reshape(2, 3))
    bias = TensorData(np.array([0.5, -1.0, 2.0], np.float32))
    return {"weight": ParamRecord(WEIGHT, weight), "bias": ParamRecord(BIAS, bias)}


def adam_tree():
    def state(data):
        moments = {"time": 1, "moment_1": data, "moment_2": data}
        rank = f"Rank{len(data.shape)}"
        return {"V1": {rank: {"momentum": moments}}}

    return {p.id: state(p.param) for p in linear_tree().values()}


# --- the worked examples of the byte layout ----------------------------------------

HEAD = (
    b"\x83\xa8metadata\x85\xa5float\xa3f32\xa3int\xa3i32\xa6format\xd9\x61"
    b"burn_core::record::file::NamedMpkFileRecorder"
    b"<burn_core::record::settings::FullPrecisionSettings>"
    b"\xa7version\xa60.15.0\xa8settings\xb5FullPrecisionSettings\xa4item"
)
W = struct.pack("<6f", *range(6))
B = struct.pack("<3f", 0.5, -1, 2)


def tensor_bytes(raw, shape):
    size = bytes([len(raw)])
    return (
        b"\x83\xa5bytes\xc4" + size + raw + b"\xa5shape" + shape + b"\xa5dtype\xa3F32"
    )


def test_a_linear_layer_is_342_bytes_exactly(tmp_path):
    path = DefaultRecorder().record(linear_tree(), tmp_path / "linear")
    wanted = HEAD + b"\x82"
    wanted += b"\xa6weight\x82\xa2id\xad0400000000000\xa5param"
    wanted += tensor_bytes(W, b"\x92\x02\x03")
    wanted += b"\xa4bias\x82\xa2id\xad0800000000000\xa5param"
    wanted += tensor_bytes(B, b"\x91\x03") + b"\xa2_b\x90"
    assert len(wanted) == 342
    assert path.read_bytes() == wanted


def test_the_state_of_adam_is_493_bytes_exactly(tmp_path):
    path = DefaultRecorder().record(adam_tree(), tmp_path / "optim")
    wanted = HEAD + b"\x82"
    for name, rank, raw, shape in (
        (b"0400000000000", b"2", W, b"\x92\x02\x03"),
        (b"0800000000000", b"1", B, b"\x91\x03"),
    ):
        wanted += b"\xad" + name + b"\x81\xa2V1\x81\xa5Rank" + rank
        wanted += b"\x81\xa8momentum\x83\xa4time\x01"
        for moment in (b"\xa8moment_1", b"\xa8moment_2"):
            wanted += moment + tensor_bytes(raw, shape)
    wanted += b"\xa2_b\x90"
    assert len(wanted) == 493
    assert path.read_bytes() == wanted


def test_a_constant_schedule_is_nil():
    data = NamedMpkBytesRecorder().record(None)
    assert data.endswith(b"\xa4item\xc0\xa2_b\x90")


# --- round trips -------------------------------------------------------------------

names = st.text(st.characters(codec="ascii", categories=("L", "N")), max_size=8)
dtypes = st.sampled_from(["f16", "f32", "f64", "i8", "i16", "u8", "bool"])
shapes = st.lists(st.integers(0, 3), max_size=4)


@st.composite
def tensors(draw):
    dtype, shape = draw(dtypes), draw(shapes)
    size = int(np.prod(shape, dtype=int))
    values = draw(st.lists(st.integers(-100, 100), min_size=size, max_size=size))
    array = np.array(values, np.float64).reshape(shape)
    array = np.abs(array) if dtype in ("u8", "bool") else array
    return TensorData(array / (7 if dtype[0] == "f" else 1), dtype=dtype)


ids = st.integers(0, 2**64 - 1).map(lambda n: ParamId(n).serialize())
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=6),
)
trees = st.recursive(
    st.one_of(scalars, tensors(), st.builds(ParamRecord, ids, tensors())),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)
    ),
    max_leaves=8,
)


@settings(max_examples=120)
@given(tree=trees, precision=st.sampled_from(PRECISIONS))
def test_bytes_give_back_the_tree_in_the_precision_asked_for(tree, precision):
    recorder = NamedMpkBytesRecorder(precision)
    data = recorder.record(tree)
    wanted = map_tensors(tree, to_settings(precision))
    assert recorder.load(data) == wanted
    assert recorder.write(recorder.read(data)) == data


@pytest.mark.parametrize("kind", FILES)
@settings(max_examples=40)
@given(tree=trees, precision=st.sampled_from(PRECISIONS))
def test_files_give_back_the_tree(kind, tree, precision, tmp_path_factory):
    recorder = kind(precision)
    path = recorder.record(tree, tmp_path_factory.getbasetemp() / "round")
    assert recorder.load(path) == map_tensors(tree, to_settings(precision))
    first = path.read_bytes()
    recorder.write(recorder.read(path), path)
    assert path.read_bytes() == first


@pytest.mark.parametrize("kind", FILES)
@pytest.mark.parametrize("precision", PRECISIONS)
def test_metadata_name_the_recorder_as_burn_does(kind, precision, tmp_path):
    recorder = kind(precision)
    found = recorder.read(recorder.record({"a": 1}, tmp_path / "m")).metadata
    assert found.format == (
        f"burn_core::record::file::{kind.__name__}"
        f"<burn_core::record::settings::{precision.__name__}>"
    )
    assert found.settings == precision.__name__
    assert (found.float, found.int, found.version) == (
        {"f16": "half::binary16::f16"}.get(precision.float, precision.float),
        precision.int,
        "0.15.0",
    )


def test_the_bytes_recorder_lives_in_memory_in_the_metadata():
    recorder = NamedMpkBytesRecorder(HalfPrecisionSettings)
    found = recorder.read(recorder.record(None)).metadata
    assert found.format == (
        "burn_core::record::memory::NamedMpkBytesRecorder"
        "<burn_core::record::settings::HalfPrecisionSettings>"
    )


@cases(
    "recorder text extension",
    (DefaultRecorder(), "NamedMpkFileRecorder(FullPrecisionSettings)", "mpk"),
    (DefaultFileRecorder(), "NamedMpkFileRecorder(FullPrecisionSettings)", "mpk"),
    (CompactRecorder(), "NamedMpkFileRecorder(HalfPrecisionSettings)", "mpk"),
    (DebugRecordSettings(), "PrettyJsonFileRecorder(FullPrecisionSettings)", "json"),
    (JsonGzFileRecorder(), "JsonGzFileRecorder(FullPrecisionSettings)", "json.gz"),
)
def test_aliases_are_the_recorders_they_stand_for(recorder, text, extension):
    assert (repr(recorder), recorder.extension) == (text, extension)


def test_pretty_json_is_laid_out_as_serde_does(tmp_path):
    data = TensorData(np.array([1, 0], np.uint8), dtype="bool")
    tree = {
        "flags": ParamRecord(WEIGHT, data),
        "pool": None,
        "none": [],
        "two": [1, 2.5],
    }
    path = PrettyJsonFileRecorder().record(tree, tmp_path / "pretty")
    body = path.read_text().split('"item": ')[1]
    assert body == (
        '{\n    "flags": {\n      "id": "0400000000000",\n      "param": {\n'
        '        "bytes": [\n          1,\n          0\n        ],\n'
        '        "shape": [\n          2\n        ],\n        "dtype": "Bool"\n'
        '      }\n    },\n    "pool": null,\n    "none": [],\n    "two": [\n'
        '      1,\n      2.5\n    ]\n  },\n  "_b": null\n}'
    )


@cases(
    "given found",
    ("model", "model.mpk"),
    ("model.v1", "model.v1.mpk"),
    ("model_0.15", "model_0.15.mpk"),
    ("model.json", "model.mpk"),
    ("model.bin.gz", "model.mpk"),
    ("model.mpk", "model.mpk"),
    ("v0.mpk/model", "v0.mpk/model.mpk"),
    (".hidden", ".hidden.mpk"),
)
def test_a_path_gets_the_extension_and_a_dot_in_a_name_is_none(given, found, tmp_path):
    path = DefaultRecorder().record(None, tmp_path / given)
    assert path == tmp_path / found
    assert path.is_file()
    assert DefaultRecorder().load(tmp_path / given) is None


def test_a_double_extension_is_kept(tmp_path):
    recorder = NamedMpkGzFileRecorder()
    assert recorder.path("x.foo").name == "x.foo.mpk.gz"
    assert recorder.path("x.mpk").name == "x.mpk.gz"
    assert recorder.path("x.mpk.gz").name == "x.mpk.gz"


def test_versions_behind_a_dot_do_not_overwrite_each_other(tmp_path):
    recorder = CompactRecorder()
    paths = [recorder.record({"a": i}, tmp_path / f"model_0.{i}") for i in (15, 16)]
    assert [path.name for path in paths] == ["model_0.15.mpk", "model_0.16.mpk"]
    loaded = [recorder.load(tmp_path / f"model_0.{i}") for i in (15, 16)]
    assert loaded == [{"a": 15}, {"a": 16}]


KINDS = [CompactRecorder, BinFileRecorder, SafetensorsRecorder]


@pytest.mark.parametrize("kind", KINDS)
def test_save_file_tells_which_file_it_wrote(kind, tmp_path):
    layer = LinearConfig(2, 3).init(Numpy())
    path = layer.save_file(tmp_path / "layer_1.5", kind())
    assert path == tmp_path / f"layer_1.5.{kind.extension}"
    assert [*tmp_path.iterdir()] == [path]
    layer.load_file(tmp_path / "layer_1.5", kind())


def test_a_file_named_as_burn_or_08_did_is_found(tmp_path):
    recorder = DefaultRecorder()
    recorder.record({"a": 1}, tmp_path / "model_0")  # what set_extension makes of 0.15
    assert recorder.load(tmp_path / "model_0.15") == {"a": 1}
    recorder.record({"a": 2}, tmp_path / "model_0.15")
    assert recorder.load(tmp_path / "model_0.15") == {"a": 2}
    (tmp_path / "model_0.mpk").rename(tmp_path / "weights.v1")
    assert recorder.load(tmp_path / "weights.v1") == {"a": 1}
    with pytest.raises(RecordError) as error:
        recorder.load(tmp_path / "model_0.16")
    assert error.value.facts[0] == (
        "looked for",
        "model_0.16.mpk, model_0.mpk, model_0.16",
    )


# --- what can be recorded ----------------------------------------------------------


@dataclasses.dataclass
class State:
    step: int
    mean: TensorData
    rest: tuple


class Recordable:
    def into_record(self):
        return {"inner": State(3, TensorData([1.0]), (None, "x"))}


def test_objects_dataclasses_tuples_and_numpy_numbers_are_recorded():
    recorder = NamedMpkBytesRecorder()
    data = recorder.record([Recordable(), np.float32(0.5), np.int64(7), True])
    inner = {"step": 3, "mean": TensorData([1.0]), "rest": [None, "x"]}
    assert recorder.load(data) == [{"inner": inner}, 0.5, 7, True]


def test_a_tree_deeper_than_can_be_read_is_not_written():
    tree = None
    for _ in range(150):
        tree = [tree]
    with pytest.raises(RecordError, match="nests too deep"):
        NamedMpkBytesRecorder().record(tree)


def test_json_refuses_what_it_cannot_hold(tmp_path):
    with pytest.raises(RecordError, match="rate is nan, which JSON cannot hold"):
        PrettyJsonFileRecorder().record({"rate": float("nan")}, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


# --- precision ---------------------------------------------------------------------


class Device:
    float, int = "f64", "i16"


def test_floats_and_ints_take_the_precision_of_the_settings_and_bools_stay():
    tree = {
        "f": TensorData([1 / 3], dtype="f64"),
        "i": TensorData([7], dtype="i64"),
        "b": TensorData([True]),
    }
    for precision in PRECISIONS:
        recorder = NamedMpkBytesRecorder(precision)
        found = recorder.load(recorder.record(tree))
        assert [found[k].dtype for k in "fib"] == [
            precision.float,
            precision.int,
            "bool",
        ]
        loaded = recorder.load(recorder.record(tree), Device())
        assert [loaded[k].dtype for k in "fib"] == ["f64", "i16", "bool"]
        rounded = np.float64(1 / 3).astype(found["f"].array.dtype)
        assert loaded["f"].to_list() == [float(rounded)]


def test_loading_full_precision_with_a_half_recorder_rounds():
    data = NamedMpkBytesRecorder().record(TensorData([0.1]))
    found = NamedMpkBytesRecorder(HalfPrecisionSettings).load(data, Device())
    assert found.to_list() == [float(np.float16(0.1))]


def test_infinities_and_nans_are_kept():
    recorder = NamedMpkBytesRecorder(HalfPrecisionSettings)
    values = TensorData([float("inf"), float("-inf"), float("nan")])
    found = recorder.load(recorder.record(values)).array
    assert found[0] == np.inf
    assert found[1] == -np.inf
    assert np.isnan(found[2])


def test_a_number_too_large_for_the_precision_is_refused_and_nothing_is_lost(tmp_path):
    path = CompactRecorder().record({"fc": TensorData([1.0])}, tmp_path / "model")
    facts = ("fc is too large for f16", "at most 65504\n", "  found     1e+06\n")
    cure = "try: a recorder with FullPrecisionSettings or DoublePrecisionSettings"
    act = partial(CompactRecorder().record, {"fc": TensorData([1e6])}, path)
    refused(RecordError, act, f"write {path}: ", *facts, cure)
    assert CompactRecorder().load(path)["fc"].to_list() == [1.0]
    assert [p.name for p in tmp_path.iterdir()] == ["model.mpk"]


def test_what_is_no_precision_is_refused():
    for wrong in ("f16", int, None):
        with pytest.raises(RecordError, match="is not a precision"):
            NamedMpkFileRecorder(wrong)
    assert repr(NamedMpkFileRecorder(HalfPrecisionSettings())) == repr(
        CompactRecorder()
    )


# --- looking inside ----------------------------------------------------------------


def test_describe_lists_names_shapes_and_types(tmp_path):
    tree = {
        "layer": linear_tree(),
        "time": 9,
        "dropout": None,
        "norm": [TensorData([1])],
    }
    for kind in FILES:
        path = kind(HalfPrecisionSettings).record(tree, tmp_path / "m")
        found = describe(path)
        assert [tuple(row) for row in found] == [
            ("layer.weight", (2, 3), "f16"),
            ("layer.bias", (3,), "f16"),
            ("time", (), "int"),
            ("norm.0", (1,), "i16"),
        ]
        assert found.num_elements == 10
        assert found.metadata.version == "0.15.0"
        assert found.entries[0].id == WEIGHT
        assert repr(found) == f"RecordSummary({path.name}, 4 entries)"


def test_a_description_prints_as_a_table(tmp_path):
    path = CompactRecorder().record({"fc": linear_tree(), "time": 9}, tmp_path / "m")
    assert str(describe(path)) == (
        "m.mpk: NamedMpkFileRecorder, HalfPrecisionSettings, Burn 0.15.0\n"
        "  fc.weight  [2, 3]  f16\n"
        "  fc.bias    [3]     f16\n"
        "  time       9       int\n"
        "  2 tensors, 9 elements"
    )


def test_the_repr_of_a_record_says_how_much_is_in_it():
    recorder = NamedMpkBytesRecorder()
    found = recorder.read(recorder.record(linear_tree()))
    assert isinstance(found, BurnRecord)
    assert repr(found) == "BurnRecord(FullPrecisionSettings, 2 tensors)"
