"""Burnpack and safetensors: files of named tensors."""

import json
import random
import struct
import sys
import time
import tracemalloc
from unittest.mock import patch

import cbor2
import numpy as np
import pytest

from burnbook import nn
from burnbook.backend.numpy import Numpy
from burnbook.module import Lora, Module, Param
from burnbook.nn import LinearConfig, Relu
from burnbook.nn.norm import BatchNormConfig
from burnbook.record import (
    BurnpackRecorder,
    CompactRecorder,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    NamedMpkBytesRecorder,
    RecordError,
    SafetensorsRecorder,
    convert,
    describe,
)
from burnbook.tensor import Tensor, TensorData
from tests.support.cases import cases
from tests.support.mutation import mutate, mutations

COUNT = mutations(600)
KINDS = [BurnpackRecorder, SafetensorsRecorder]
TREE = {
    "conv": {"weight": TensorData([[1.0, 2.0], [3.0, 4.0]]), "stride": [None, None]},
    "flags": TensorData([True, False]),
    "layers": [{"bias": TensorData([1.5])}, {"bias": TensorData([2.5])}],
    "none": TensorData.zeros([0, 3]),
}


class Net(Module):
    layers: list
    norm: Module
    last: Module | None


def net(bias=True):
    device = Numpy()
    layer = LinearConfig(3, 3, bias=bias).init(device)
    norm = BatchNormConfig(3).init(device)
    other = LinearConfig(3, 3).init(device)
    return Net([Relu(), layer, Relu(), other, Relu()], norm, None)


def flat(model):
    return {path: np.asarray(p.val()) for path, p in model.named_params()}


def ids(model):
    return [param.id for _, param in model.named_params()]


def read(recorder, data, tmp_path):
    path = tmp_path / f"model.{recorder.extension}"
    path.write_bytes(data)
    return recorder.read(path)


def error_of(recorder, data, tmp_path):
    with pytest.raises(RecordError) as error:
        read(recorder, data, tmp_path)
    text = str(error.value)
    assert "\n  try: " in text
    assert len(text) < 800
    return text


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_comes_back_by_name_and_without_constants(kind, tmp_path):
    path = kind().record(TREE, tmp_path / "model")
    assert kind().load(path) == {
        "conv": {"weight": TREE["conv"]["weight"]},
        "flags": TREE["flags"],
        "layers": {"0": TREE["layers"][0], "1": TREE["layers"][1]},
        "none": TREE["none"],
    }
    again = kind().write(kind().read(path), tmp_path / "again")
    assert again.read_bytes() == path.read_bytes()


@pytest.mark.parametrize("kind", KINDS)
def test_a_module_with_lists_constants_and_options_is_loaded(kind, tmp_path):
    first, second = net(), net()
    path = kind().record(first.into_record(), tmp_path / "model")
    loaded = second.load_file(path, kind())
    assert flat(loaded).keys() == flat(first).keys()
    for name, found in flat(loaded).items():
        assert (found == flat(first)[name]).all()
    same = [a == b for a, b in zip(ids(loaded), ids(first), strict=True)]
    assert all(same) if kind is BurnpackRecorder else not any(same)


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_missing_or_too_much_is_listed(kind, tmp_path):
    path = kind().record(net(bias=False).into_record(), tmp_path / "model")
    with pytest.raises(RecordError, match=r"layers\.1\.bias +not in the record"):
        net().load_file(path, kind())
    path = kind().record(net().into_record(), tmp_path / "model")
    short = Net(net().layers[:2], net().norm, None)
    with pytest.raises(RecordError, match=r"layers\.3\.weight +not in the module"):
        short.load_file(path, kind())


@pytest.mark.parametrize("kind", KINDS)
def test_the_base_below_lora_has_the_name_of_the_weight(kind, tmp_path):
    device = Numpy()
    tuned = LinearConfig(4, 6).init(device)
    tuned = Net([tuned], BatchNormConfig(3).init(device), None)
    tuned = tuned.apply_lora(Lora(2, 4.0))
    path = kind().record(tuned.into_record(), tmp_path / "model")
    names = {row.name for row in describe(path)}
    assert {"layers.0.weight", "layers.0.weight.lora.a"} <= names
    assert "layers.0.weight.base" not in names
    other = Net([LinearConfig(4, 6).init(device)], tuned.norm, None)
    other = other.apply_lora(Lora(2, 4.0)).load_file(path, kind())
    assert all(
        (flat(other)[name] == found).all() for name, found in flat(tuned).items()
    )


@pytest.mark.parametrize("kind", KINDS)
def test_precision_and_names_of_paths(kind, tmp_path):
    path = kind(HalfPrecisionSettings).record(TREE, tmp_path / "model.v1")
    assert path == tmp_path / f"model.v1.{kind.extension}"
    path = path.rename(tmp_path / f"model.{kind.extension}")
    assert describe(path).entries[0].dtype == "f16"
    loaded = kind(FullPrecisionSettings).load(path)
    assert loaded["conv"]["weight"] == TREE["conv"]["weight"]
    with pytest.raises(RecordError, match="is too large for f16"):
        kind(HalfPrecisionSettings).record({"a": TensorData([1e6])}, path)
    assert kind().load(path)["flags"] == TREE["flags"]  # the old file stands


def test_every_tensor_of_burnpack_starts_at_a_multiple_of_256(tmp_path):
    path = BurnpackRecorder(metadata={"a": "b"}).record(
        {"z": TensorData([1.0]), "a": TensorData([2.0] * 65), "n": -3, "x": 0.5},
        tmp_path / "model",
    )
    data = path.read_bytes()
    magic, version, length = struct.unpack_from("<IHI", data)
    assert (data[:4], magic, version) == (b"NRUB", 0x4255524E, 1)
    top = cbor2.loads(data[10 : 10 + length])
    assert list(top) == ["tensors", "metadata", "scalars"]
    assert list(top["tensors"]) == ["a", "z"]
    spans = {name: row["data_offsets"] for name, row in top["tensors"].items()}
    assert spans == {"z": [0, 4], "a": [256, 516]}  # in the order of the tree
    assert top["scalars"] == {"n": {"Int": -3}, "x": {"Float": 0.5}}
    assert top["metadata"] == {"a": "b"}
    assert len(data) == -(-(10 + length) // 256) * 256 + 516


def test_burnpack_of_019_has_no_padding(tmp_path):
    about = {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}
    text = cbor2.dumps({"tensors": about, "metadata": {"producer": "burn"}})
    data = struct.pack("<IHI", 0x4255524E, 1, len(text)) + text
    found = read(BurnpackRecorder(), data + struct.pack("<f", 1.5), tmp_path)
    assert found.item == {"a": TensorData([1.5])}


def test_the_safetensors_package_reads_ours_and_we_read_its(tmp_path):
    numpy = pytest.importorskip("safetensors.numpy")
    arrays = {
        "a.weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "a.count": np.array(7, np.int64),
        "b": np.array([1, 2, 3], np.float16),
        "ok": np.array([True, False, True]),
    }
    tree = {
        "a": {
            "weight": TensorData.of(arrays["a.weight"]),
            "count": TensorData.of(arrays["a.count"]),
        },
        "b": TensorData.of(arrays["b"]),
        "ok": TensorData.of(arrays["ok"]),
    }
    recorder = SafetensorsRecorder()
    theirs = tmp_path / "theirs.safetensors"
    numpy.save_file(arrays, theirs, metadata={"format": "np"})
    found = recorder.read(theirs)
    assert found.metadata.texts == {"format": "np"}
    ours = recorder.write(found, tmp_path / "ours")
    assert ours.read_bytes() == theirs.read_bytes()
    assert found.item == tree
    loaded = numpy.load_file(ours)
    assert all((loaded[name] == array).all() for name, array in arrays.items())


# --- damage --------------------------------------------------------------------------


def bpk(top, data=b"", length=None, version=1):
    text = top if isinstance(top, bytes) else cbor2.dumps(top)
    head = struct.pack("<IHI", 0x4255524E, version, length or len(text))
    return head + text + data


def safe(top, data=b""):
    text = top if isinstance(top, bytes) else json.dumps(top).encode()
    return len(text).to_bytes(8, "little") + text + data


def one(**changes):
    return {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]} | changes}


TWO = one() | {"b": one()["a"]}


@cases(
    "data first",
    (b"NRUB\1", "the file ends inside its header"),
    (bytes(300), "this is not burnpack"),
    (bpk({}, version=2), "this is version 2 of burnpack"),
    (bpk({}, length=2**32 - 1), "the file ends inside its names"),
    (bpk({"tensors": 3}), "the tensors of the file have no names"),
    (bpk({"tensors": {"a": {}}}), "a is not described"),
    (bpk({"tensors": one(param_id=-1)}, bytes(4)), "a has an invalid id"),
    (bpk({"tensors": one(shape=[2])}, bytes(4)), "a does not fit its shape"),
    (bpk({"tensors": one(shape=[-1])}, bytes(4)), "a has an impossible shape"),
    (bpk({"tensors": one(dtype="F31")}, bytes(4)), "a has an unknown element type"),
    (bpk({"tensors": one(data_offsets=[4, 0])}), "a has an impossible position"),
    (bpk({"tensors": one(data_offsets=[0, 2**63])}), "a has an impossible position"),
    (bpk({"tensors": one()}, b"12"), "the file ends before a does"),
    (bpk({"tensors": one()}, b"1" * 500), "bytes between the names and the"),
    (bpk({"tensors": one()}, bytes(999)), "bytes belong to no tensor"),
    (bpk({"tensors": TWO}, bytes(4)), "b lies over another tensor"),
    (bpk({"scalars": {"n": {"Int": "x"}}}), "n is not a number"),
    (bpk({"metadata": {"n": 3}}), "the metadata of the file is not text"),
    (bpk([1]), "the names are not a map"),
    (bpk(b"\xa1\x01\x02"), "the names are not burnpack's at byte 1"),
    (bpk(b"\xc1\x01"), "the names are not burnpack's at byte 0"),
    (bpk(b"\xbf\xff"), "the names are not burnpack's at byte 0"),
    (bpk(b"\xa0\xa0"), "1 bytes follow the names"),
    (bpk(b"\xa1\x61"), "the names end too early"),
    (bpk(b"\x9b" + b"\xff" * 8), "the names end too early"),
    (bpk(b"\xa1\x61\xff\x01"), "the names are not CBOR"),
    (bpk(b"\xa2\x61a\x01\x61a\x01"), "the file has a name twice"),
    (bpk(b"\x81" * 5000), "the names are not burnpack's at byte"),
    (bpk(b"\x99\xff\xff" + b"\x80" * 65535), "nested more deeply than in any record"),
)
def test_damaged_burnpack_has_a_line_of_its_own(data, first, tmp_path):
    assert first in error_of(BurnpackRecorder(), data, tmp_path)


@cases(
    "data first",
    (b"\1", "the file ends inside its names"),
    (b"\xff" * 20, "the file ends inside its names"),
    (safe([1]), "the names are not a map"),
    (safe(b"{["), "this is not JSON"),
    (safe(b'{"a":1,"a":2}'), "a map has 'a' twice"),
    (safe({"__metadata__": {"a": 1}}), "__metadata__ holds no texts"),
    (safe({"a": 3}), "a is not described"),
    (safe(one(dtype="F8_E3M4"), b"1234"), "a has an unknown element type"),
    (safe(one(dtype=["F32"]), b"1234"), "a has an unknown element type"),
    (safe(one(dtype="F8_E4M3"), b"1234"), "a does not fit its shape"),
    (safe(one(dtype="C64"), b"1234"), "a does not fit its shape"),
    (safe(one(dtype="F4", shape=[8]), b"1234"), "a is F4: floats of 4 bits"),
    (safe({"__metadata__": []}), "__metadata__ holds no texts"),
    (safe(one(shape=[2**62]), b"1234"), "a has an impossible shape"),
    (safe(one(), b"12345"), "1 bytes belong to no tensor"),
    (safe(one(data_offsets=[1, 5]), b"12345"), "1 bytes belong to no tensor"),
    (safe(TWO, b"1234"), "b lies over another tensor"),
    (safe(one(dtype="BOOL", shape=[4]), b"1234"), "a bool is neither 0 nor 1"),
)
def test_damaged_safetensors_has_a_line_of_its_own(data, first, tmp_path):
    assert first in error_of(SafetensorsRecorder(), data, tmp_path)


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_give_only_our_error(kind, tmp_path):
    recorder, rng = kind(), random.Random(5)
    path = recorder.record(TREE, tmp_path / "m")
    data = path.read_bytes()
    read_well, slowest, longest = 0, 0.0, 0
    for _ in range(COUNT):
        changed = mutate(data, rng)
        start = time.process_time()
        try:
            found = read(recorder, changed, tmp_path)
        except RecordError as error:
            longest = max(longest, len(str(error)))
        else:
            NamedMpkBytesRecorder().write(found)
            read_well += 1
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 30  # it ends, however slow the machine is
    assert longest < 800
    assert (
        read_well < COUNT * 0.94
    )  # an element may change unseen: no checksum guards it


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_anywhere_gives_our_error(kind, tmp_path):
    data = kind().record(TREE, tmp_path / "m").read_bytes()
    for end in (*range(0, len(data), 7), len(data) - 1):
        error_of(kind(), data[:end], tmp_path)


def test_many_names_in_a_small_file_stay_small(tmp_path):
    about = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    names = {".".join([f"{i:x}"] + ["x"] * 95): about for i in range(5000)}
    for recorder, data in [
        (BurnpackRecorder(), bpk({"tensors": names})),
        (SafetensorsRecorder(), safe(names)),
    ]:
        tracemalloc.start()
        text = error_of(recorder, data, tmp_path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert "the file is nested more deeply than any record" in text
        assert peak < 20 * len(data) + 8_000_000


def test_without_cbor2_the_error_says_what_to_install(tmp_path):
    with (
        patch.dict(sys.modules, cbor2=None),
        pytest.raises(RecordError, match="try: pip install cbor2"),
    ):
        BurnpackRecorder().record(TREE, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


def test_the_right_recorder_is_named(tmp_path):
    for kind in KINDS:
        data = kind().record(TREE, tmp_path / "model").read_bytes()
        (tmp_path / "model.mpk").write_bytes(data)
        with pytest.raises(RecordError, match=f"try: {kind.__name__}"):
            CompactRecorder().load(tmp_path / "model")


def test_a_parameter_alone_is_a_whole_record(tmp_path):
    class One(Module):
        weight: Param

    device = Numpy()
    made = One(Param.from_tensor(Tensor.ones([2], device)))
    path = SafetensorsRecorder().record(made.into_record(), tmp_path / "one")
    blank = One(Param.from_tensor(Tensor.zeros([2], device)))
    assert (flat(blank.load_file(path, SafetensorsRecorder()))["weight"] == 1).all()


# Files in PyTorch's layout, made here by hand


class Sides(Module):
    square: nn.Linear
    norm: nn.BatchNorm
    table: nn.Embedding
    layers: list[nn.Linear]


def sides(device):
    return Sides(
        nn.LinearConfig(3, 3).init(device),
        nn.BatchNormConfig(3).init(device),
        nn.EmbeddingConfig(3, 3).init(device),
        [nn.LinearConfig(3, 2).init(device), nn.LinearConfig(2, 2).init(device)],
    )


def torch_file(module, folder, **texts):
    """What PyTorch would write for the same numbers."""
    tree = {}
    for path, param in module.named_params():
        array = np.asarray(param.val())
        linear = path.endswith("weight") and not path.startswith("table")
        name = path.replace("gamma", "weight").replace("beta", "bias")
        tree[name] = TensorData(array.T if linear and array.ndim == 2 else array)
    tree["norm.num_batches_tracked"] = TensorData(np.int64(7))
    recorder = SafetensorsRecorder(metadata=texts)
    return recorder.record(nested(tree), folder / "torch")


def nested(flat_names):
    tree = {}
    for name, held in flat_names.items():
        *way, last = name.split(".")
        node = tree
        for part in way:
            node = node.setdefault(part, {})
        node[last] = held
    return tree


def test_a_file_of_pytorch_is_refused_or_turned(tmp_path):
    device = Numpy()
    made, blank = sides(device), sides(device)
    path = torch_file(made, tmp_path)
    with pytest.raises(RecordError, match=r"PyTorch's layout.*[^$]*layout=\"pytorch\""):
        blank.load_file(path, SafetensorsRecorder())
    loaded = blank.load_file(path, SafetensorsRecorder(layout="pytorch"))
    for (name, ours), (_, theirs) in zip(
        made.named_params(), loaded.named_params(), strict=True
    ):
        assert np.array_equal(np.asarray(ours.val()), np.asarray(theirs.val())), name
    with pytest.raises(RecordError, match=r"layers\.0\.weight +record .*, transposed"):
        blank.load_file(path, SafetensorsRecorder(layout="burn"))
    with pytest.raises(RecordError, match="PyTorch's layout"):
        convert(path, tmp_path / "other.mpk")


@pytest.mark.parametrize(
    ("texts", "found"), [({}, "?"), ({"format": "pt"}, "pytorch")], ids=["none", "pt"]
)
def test_a_square_weight_is_never_loaded_in_silence(tmp_path, texts, found):
    layer = nn.LinearConfig(3, 3).init(Numpy())
    item = {
        name: TensorData(np.asarray(param.val()))
        for name, param in layer.named_params()
    }
    path = SafetensorsRecorder(metadata=texts or {"by": "hand"}).record(
        item, tmp_path / "square"
    )
    data = path.read_bytes().replace(b'"producer":"burnbook"', b'"note":"hand written"')
    path.write_bytes(data)
    if found == "pytorch":
        with pytest.raises(RecordError, match="its metadata says format: pt"):
            layer.load_file(path, SafetensorsRecorder())
    else:
        with pytest.warns(UserWarning, match="nothing says whether PyTorch wrote it"):
            layer.load_file(path, SafetensorsRecorder())
    turned = layer.load_file(path, SafetensorsRecorder(layout="pytorch"))
    assert np.array_equal(
        np.asarray(turned.weight.val()), np.asarray(layer.weight.val()).T
    )


def test_our_own_square_weight_is_marked_and_loads_in_silence(tmp_path):
    layer = nn.LinearConfig(3, 3).init(Numpy())
    path = SafetensorsRecorder().record(layer.into_record(), tmp_path / "own")
    assert SafetensorsRecorder().read(path).metadata.texts == {"producer": "burnbook"}
    again = nn.LinearConfig(3, 3).init(Numpy()).load_file(path, SafetensorsRecorder())
    assert np.array_equal(
        np.asarray(again.weight.val()), np.asarray(layer.weight.val())
    )
