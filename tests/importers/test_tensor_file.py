"""Any file of weights as named tensors; records that stay in their files; describe."""

from __future__ import annotations

import tarfile

import numpy as np
import pytest

from burnbook import cli
from burnbook.backend import Numpy
from burnbook.core.errors import RecordError
from burnbook.examples.guide.model import ModelConfig
from burnbook.importers.tensor_file import TensorFile
from burnbook.record import (
    BinFileRecorder,
    BurnpackRecorder,
    FullPrecisionSettings,
    HalfPrecisionSettings,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    PrettyJsonFileRecorder,
    SafetensorsRecorder,
    describe,
)
from burnbook.record.mapped import decode, read_mapped
from burnbook.record.tree import Trouble, tensors
from burnbook.tensor import TensorData
from tests.conftest import SHARED

NAMED = [NamedMpkFileRecorder, BurnpackRecorder, SafetensorsRecorder]
NAMED += [PrettyJsonFileRecorder, JsonGzFileRecorder]


@pytest.fixture(scope="module")
def model():
    return ModelConfig(10, 16).init(Numpy())


@pytest.mark.parametrize("recorder", NAMED)
def test_names_and_elements_are_those_of_the_module(recorder, model, tmp_path):
    if recorder is BurnpackRecorder:
        pytest.importorskip("cbor2", reason="burnpack needs cbor2")
    file = TensorFile(model.save_file(tmp_path / "m", recorder(FullPrecisionSettings)))
    truth = dict(model.named_params())
    assert set(file.names) == set(truth)
    for name, param in truth.items():
        assert np.array_equal(file.load(name), np.asarray(param.val()))
        assert file.shapes[file.places[name]] == tuple(param.shape)
    assert file.num_elements == sum(
        p.val().shape.num_elements() for p in truth.values()
    )


def test_halves_come_as_halves(model, tmp_path):
    settings = HalfPrecisionSettings
    path = model.save_file(tmp_path / "m", NamedMpkFileRecorder(settings))
    file = TensorFile(path)
    assert set(file.dtypes) == {"f16"}
    assert file.load("conv1.weight").dtype == np.float16


@pytest.mark.parametrize("recorder", [NamedMpkFileRecorder, BinFileRecorder])
def test_a_mapped_record_is_that_which_a_recorder_reads(recorder, model, tmp_path):
    made = recorder(FullPrecisionSettings)
    path = model.save_file(tmp_path / "m", made)
    mapped, whole = read_mapped(made, path), made.read(path)
    if recorder is BinFileRecorder:
        mapped, whole = list(mapped.item.scan()), list(whole.item.scan())
    else:
        assert mapped.metadata == whole.metadata
        mapped, whole = mapped.item, whole.item
    one, other = dict(tensors(mapped)), dict(tensors(whole))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[k].array, other[k].array) for k in one)


def test_every_kind_of_messagepack_is_read():
    import msgpack

    tree = {
        "ints": [
            0,
            127,
            128,
            65_535,
            65_536,
            2**32,
            2**63,
            -1,
            -32,
            -33,
            -200,
            -(2**40),
        ],
        "texts": ["", "é", "x" * 40, "y" * 300, "z" * 70_000],
        "floats": [1.5, float("inf")],
        "plain": [None, True, False],
        "many": list(range(20)),
        "most": {str(k): k for k in range(70_000)},
    }
    assert decode(memoryview(msgpack.packb(tree))) == tree
    found = decode(memoryview(msgpack.packb({"b": b"1" * 70_000})))
    assert bytes(found["b"]) == b"1" * 70_000


@pytest.mark.parametrize(
    "data",
    [
        b"\x81\xa1a",
        b"\xdd\xff\xff\xff\xff",
        b"\xc6\xff\xff\xff\xff1",
        b"\x81\x01\x02",
        b"\x82\xa1a\x01\xa1a\x02",
        b"\xc1",
        b"\x90\x90",
        b"\x91" * 5_000 + b"\x90",
        b"\xa1\xff",
    ],
)
def test_damaged_messagepack_is_trouble(data):
    with pytest.raises(Trouble):
        decode(memoryview(data))


def test_a_file_that_changed_is_not_read(tmp_path):
    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    path = recorder.record({"w": TensorData([1.0])}, tmp_path / "m")
    file = TensorFile(path)
    recorder.record({"w": TensorData([1.0, 2.0])}, tmp_path / "m")
    with pytest.raises(RecordError, match="has changed since it was opened"):
        file.load("w")


# describe and inspect


def test_describe_tells_of_files_of_pytorch(tmp_path, capsys):
    torch = pytest.importorskip("torch")
    state = {"fc.weight": torch.ones(2, 3), "n": torch.ones(2, dtype=torch.int64)}
    torch.save({"model": state, "epoch": 4}, tmp_path / "m.pt")
    found = describe(tmp_path / "m.pt")
    assert [tuple(row) for row in found][:2] == [
        ("model.fc.weight", (2, 3), "f32"), ("model.n", (2,), "i64"),
    ]  # fmt: skip
    assert found.num_elements == 8
    assert "epoch" in str(found)
    assert str(found).startswith("m.pt: PyTorch, zip")
    assert cli.main(["inspect", str(tmp_path / "m.pt")]) == 0
    assert "model.fc.weight" in capsys.readouterr().out


def test_describe_tells_of_onnx_files(tmp_path, capsys):
    onnx = pytest.importorskip("onnx")
    helper = onnx.helper
    weight = onnx.numpy_helper.from_array(np.ones((3, 2), np.float32), "fc.weight")
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "fc.weight"], ["y"])],
        "net", [value("x", 1, ["batch", 3])], [value("y", 1, ["batch", 2])], [weight],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, producer_name="tests"), tmp_path / "m.onnx")
    assert [tuple(row) for row in describe(tmp_path / "m.onnx")] == [
        ("fc.weight", (3, 2), "f32")
    ]
    assert cli.main(["inspect", str(tmp_path / "m.onnx")]) == 0
    told = capsys.readouterr().out
    assert told.startswith("m.onnx: ONNX, ")
    for text in ("producer tests", "input x  f32 [batch, 3]", "1 nodes: MatMul 1"):
        assert text in told


def test_old_tar_files_are_told_by_their_bytes(tmp_path, capsys):
    golden = SHARED / "golden" / "pytorch"
    old = next(golden.rglob("*.tar"), None) if golden.is_dir() else None
    if old is None:
        path = tmp_path / "m.tar"
        with tarfile.open(path, "w") as archive:
            archive.add(__file__, "x.py")
        with pytest.raises(RecordError, match="not of PyTorch"):
            TensorFile(path)
        return
    assert TensorFile(old).names


@pytest.mark.parametrize("name", ["m.pt", "m.onnx", "m.mpk", "m.tar", "m.xyz", "m.bin"])
def test_what_is_not_there_or_no_file_of_weights_is_refused(name, tmp_path):
    with pytest.raises(RecordError):
        TensorFile(tmp_path / name)
    (tmp_path / name).write_bytes(b"no weights at all")
    with pytest.raises(RecordError):
        TensorFile(tmp_path / name)
