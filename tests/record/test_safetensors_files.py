"""Safetensors opened without being read: one file, or shards with and without index."""

import json
import os
import random
import re
from pathlib import Path

import numpy as np
import pytest

from burnbook.core.errors import RecordError
from burnbook.record import SafetensorsRecorder, describe, safetensors_files
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.tensor import TensorData
from burnbook.tensor.float8 import FLOAT8, widen_float8
from tests.support.cases import cases
from tests.support.mutation import mutate, mutations

COUNT = mutations(4000)


def header(rows, size=0, **texts):
    top = {"__metadata__": texts} if texts else {}
    text = json.dumps(top | rows).encode()
    return len(text).to_bytes(8, "little") + text + bytes(size)


def row(start=0, end=4, dtype="F32", shape=(1,)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [start, end]}


def write(path, tensors):
    SafetensorsRecorder().record(tensors, path)
    return path


def index(folder, weight_map, name="model.safetensors.index.json", **more):
    path = folder / name
    path.write_text(json.dumps({"metadata": {}, "weight_map": weight_map} | more))
    return path


@pytest.fixture
def shards(tmp_path):
    write(tmp_path / "a.safetensors", {"x": TensorData([1.0]), "y": TensorData([2.0])})
    write(tmp_path / "b.safetensors", {"z": {"w": TensorData([3.0, 4.0])}})
    return tmp_path


# Element types


def torch_tensors(torch):
    made = {}
    rng = np.random.default_rng(3)
    for name in dir(torch):
        dtype = getattr(torch, name)
        if not isinstance(dtype, torch.dtype) or dtype in _packed(torch):
            continue
        size = torch.empty((), dtype=dtype).element_size()
        if dtype is torch.bool:
            bits = np.array([0, 1, 1, 0], np.uint8)
        else:
            bits = np.frombuffer(rng.bytes(12 * size), np.uint8)
        made[str(dtype)] = torch.from_numpy(bits.copy()).view(dtype).reshape(2, -1)
    return made


def _packed(torch):
    return [
        getattr(torch, name)
        for name in dir(torch)
        if re.match(r"(float4|u?int[1-7]$|q|complex|float8_e8m0|bits)", name)
        or name in ("chalf", "cfloat", "cdouble")
    ]


def test_every_element_type_of_pytorch_has_its_numbers(tmp_path):
    torch = pytest.importorskip("torch")
    save = pytest.importorskip("safetensors.torch")
    made = torch_tensors(torch)
    assert len(made) >= 16
    made["scalar"] = torch.tensor(2.5)
    made["empty"] = torch.zeros(0, 3, dtype=torch.int16)
    save.save_file(made, tmp_path / "all.safetensors", metadata={"format": "pt"})
    with SafetensorsFile(tmp_path / "all.safetensors") as file:
        assert sorted(file) == sorted(made)
        assert file.texts == {"format": "pt"}
        for name, tensor in made.items():
            found = file[name]
            assert tuple(found.shape) == tuple(tensor.shape)
            if "float8" in name:
                assert found.dtype == "f32"
                tensor = tensor.float()
            if tensor.dtype is torch.bfloat16:
                assert found.dtype == "bf16"
                theirs = tensor.view(torch.uint16).numpy()
            else:
                theirs = tensor.numpy()
            assert found.array.dtype == theirs.dtype
            nan = theirs.dtype.kind == "f"
            assert np.array_equal(found.array, theirs, equal_nan=nan)


@pytest.mark.parametrize("name", FLOAT8)
def test_every_float_of_eight_bits_is_widened_exactly(name):
    torch = pytest.importorskip("torch")
    bits = np.arange(256, dtype=np.uint8)
    dtype = getattr(torch, name.replace("f8", "float8"))
    theirs = torch.from_numpy(bits).view(dtype).float().numpy()
    ours = widen_float8(bits, name)
    assert np.array_equal(ours, theirs, equal_nan=True)
    number = ~np.isnan(theirs)
    assert np.array_equal(np.signbit(ours[number]), np.signbit(theirs[number]))


def test_the_recorder_reads_floats_of_eight_bits_too(tmp_path):
    rows = {"a": row(0, 2, "F8_E4M3", [2])}
    (tmp_path / "m.safetensors").write_bytes(header(rows) + b"\x38\xc4")
    found = SafetensorsRecorder().load(tmp_path / "m")
    assert found == {"a": TensorData([1.0, -3.0])}


def test_what_has_no_counterpart_is_listed_and_refused_alone(tmp_path):
    rows = {"a": row(0, 8, "C64"), "b": row(8, 12)}
    path = tmp_path / "m.safetensors"
    path.write_bytes(header(rows, 12))
    file = SafetensorsFile(path)
    assert file["b"] == TensorData([0.0])
    with pytest.raises(RecordError, match="a is C64: complex numbers"):
        file["a"]
    assert [entry.dtype for entry in describe(path)] == ["c64", "f32"]


# Shards


def test_shards_are_read_as_one(shards):
    file = SafetensorsFile(shards)
    assert file.keys() == ["x", "y", "z.w"]
    assert file["z.w"] == TensorData([3.0, 4.0])
    assert [path.name for path in file.paths] == ["a.safetensors", "b.safetensors"]
    assert repr(file) == "SafetensorsFile(3 tensors in 2 files)"


def test_an_index_says_which_files_belong_together(shards):
    (shards / "other.safetensors").write_bytes(header({"x": row()}, 4))
    with pytest.raises(RecordError, match=r"x is in two files(?s:.*)a\.safe.*, ot"):
        SafetensorsFile(shards)
    names = {"x": "a.safetensors", "y": "a.safetensors", "z.w": "b.safetensors"}
    path = index(shards, names)
    for opened in (SafetensorsFile(shards), SafetensorsFile(path)):
        assert opened.keys() == ["x", "y", "z.w"]
        assert opened["x"] == TensorData([1.0])
    index(shards, names | {"x": "other.safetensors"})
    assert SafetensorsFile(shards)["x"] == TensorData([0.0])


def test_of_several_indexes_the_usual_one_is_taken(shards):
    index(shards, {"x": "a.safetensors"}, "first.safetensors.index.json")
    index(shards, {"z.w": "b.safetensors"}, "second.safetensors.index.json")
    with pytest.raises(RecordError, match="several indexes"):
        SafetensorsFile(shards)
    index(shards, {"z.w": "b.safetensors"})
    assert SafetensorsFile(shards).keys() == ["z.w"]


def test_the_shards_of_the_hub_are_read(tmp_path):
    torch = pytest.importorskip("torch")
    save = pytest.importorskip("safetensors.torch")
    made = {f"layers.{i}.weight": torch.randn(4, 3) for i in range(6)}
    names = {}
    for i in range(3):
        file = f"model-0000{i + 1}-of-00003.safetensors"
        part = dict(list(made.items())[2 * i : 2 * i + 2])
        save.save_file(part, tmp_path / file)
        names |= dict.fromkeys(part, file)
    index(tmp_path, names, metadata={"total_size": 288})
    file = SafetensorsFile(tmp_path)
    assert sorted(file) == sorted(made)
    for name, tensor in made.items():
        assert np.array_equal(file[name].array, tensor.numpy())
    shown = str(describe(tmp_path))
    assert "6 tensors, 72 elements" in shown
    assert "in 3 files: model-00001-of-00003.safetensors, " in shown


@cases(
    "weight_map what",
    ({"x": "gone.safetensors"}, "no such file"),
    ({"q": "a.safetensors"}, "q is not in a.safetensors, as the index says"),
    ({"x": "../a.safetensors"}, "x is in no file beside the index"),
    ({"x": "/etc/passwd"}, "x is in no file beside the index"),
    ({"x": "c:a.safetensors"}, "x is in no file beside the index"),
    ({"x": "a.bin"}, "x is in no file beside the index"),
    ({"x": 3}, "x is in no file beside the index"),
    ({"x": "a\n.safetensors"}, "x is in no file beside the index"),
    ({}, "this is no index of safetensors"),
    ([], "this is no index of safetensors"),
    (None, "this is no index of safetensors"),
)
def test_an_index_that_lies_is_refused(weight_map, what, shards):
    with pytest.raises(RecordError, match=what):
        SafetensorsFile(index(shards, weight_map))


def test_a_folder_without_safetensors_says_what_it_has(tmp_path):
    (tmp_path / "pytorch_model.bin").write_bytes(b"x")
    with pytest.raises(RecordError, match=r"no \.safetensors file(?s:.*)pytorch_model"):
        SafetensorsFile(tmp_path)
    with pytest.raises(RecordError, match="no such file"):
        SafetensorsFile(tmp_path / "gone.safetensors")
    with pytest.raises(RecordError, match="null byte"):
        SafetensorsFile("a\0b")


def test_another_format_is_named(tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(b"PK\x03\x04" + bytes(90))
    with pytest.raises(RecordError, match="this is a zip archive"):
        SafetensorsFile(path)
    path.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    with pytest.raises(RecordError, match="a pointer of Git LFS"):
        SafetensorsFile(path)


# Nothing is read before it is asked for


class Counting:
    """A file that counts what is read from it."""

    read_bytes = 0

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.close()

    def fileno(self):
        return self.file.fileno()

    def read(self, count):
        data = self.file.read(count)
        Counting.read_bytes += len(data)
        return data


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


@pytest.fixture
def large(tmp_path):
    """A file of 400 MB, of which the disk holds the header alone."""
    size = 100 << 20
    rows = {f"w{i}": row(i * size, (i + 1) * size, "I8", [size]) for i in range(4)}
    path = tmp_path / "large.safetensors"
    path.write_bytes(header(rows))
    os.truncate(path, path.stat().st_size + 4 * size)
    return path


def test_opening_reads_the_names_and_nothing_else(large, monkeypatch):
    opened = safetensors_files.open_regular
    monkeypatch.setattr(
        safetensors_files, "open_regular", lambda *args: Counting(opened(*args))
    )
    Counting.read_bytes = 0
    file = SafetensorsFile(large)
    assert len(file) == 4
    start = large.stat().st_size - (400 << 20)
    assert Counting.read_bytes == start
    assert file["w2"].array[5] == 0
    assert Counting.read_bytes == start


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux")
def test_memory_does_not_grow_with_the_file(large):
    before = resident()
    file = SafetensorsFile(large)
    data = [file[name] for name in file]
    assert sum(one.num_elements() for one in data) == 400 << 20
    assert str(describe(large)).endswith("4 tensors, 419430400 elements")
    assert resident() - before < 20 << 20


def test_a_file_that_changes_is_noticed(tmp_path):
    path = write(tmp_path / "m.safetensors", {"a": TensorData([1.0, 2.0])})
    data, file = path.read_bytes(), SafetensorsFile(path)
    path.write_bytes(data[:-4] + b"1234")
    os.utime(path, ns=(1, 1))
    with pytest.raises(RecordError, match="the file has changed since it was opened"):
        file["a"]
    file = SafetensorsFile(path)
    kept = file["a"].array.copy()
    os.truncate(path, 20)
    with pytest.raises(RecordError, match="the file has changed since it was opened"):
        file["a"]
    assert len(kept) == 2


def test_a_tensor_outlives_its_file(tmp_path):
    path = write(tmp_path / "m.safetensors", {"a": TensorData([1.0, 2.0])})
    with SafetensorsFile(path) as file:
        data = file["a"]
    path.unlink()
    assert data == TensorData([1.0, 2.0])


def test_bytes_are_read_as_a_file_is(tmp_path):
    path = write(tmp_path / "m.safetensors", {"a": {"b": TensorData([1.0, 2.0])}})
    file = SafetensorsFile.from_bytes(path.read_bytes())
    assert (file.keys(), file["a.b"]) == (["a.b"], TensorData([1.0, 2.0]))
    with pytest.raises(RecordError, match=r"read bytes: there is no tensor 'a\.c'"):
        file["a.c"]


# Damage


@cases(
    "data what",
    (b"", "an empty file"),
    ((1 << 40).to_bytes(8, "little") + b"{}", "the file ends inside its names"),
    (header({"a": row(0, 4), "b": row(8, 12)}, 12), "4 bytes belong to no tensor"),
    (header({"a": row(0, 4), "b": row(2, 6)}, 6), "b lies over another tensor"),
    (header({"a": row(0, 4)}, 3), "the file ends before a does"),
    (header({"a": row(0, 4)}, 9), "5 bytes belong to no tensor"),
    (header({"a": row(0, 4, shape=[2])}, 4), "a does not fit its shape"),
    (header({"a": row(0, 4, shape=[True])}, 4), "a has an impossible shape"),
    (header({"a": row(0, 4, shape=[1.0])}, 4), "a has an impossible shape"),
    (header({"a": row(0, 4.0)}, 4), "a has an impossible position"),
    (header({"a": {"dtype": "F32", "shape": [1]} | {"more": 1}}, 4), "not described"),
    (header({"a": {"shape": [1], "data_offsets": [0, 4]}}, 4), "a is not described"),
    (header({"a": row(0, 3, "F4", [7])}, 3), "a does not fit its shape"),
    (header({"a": row(0, 0, shape=[2**61, 0])}), "a has an impossible shape"),
    (header({"a": row(0, 0, "F64", [0, 2**60])}), "a has an impossible shape"),
)
def test_a_header_that_lies_is_refused_by_name(data, what, tmp_path):
    path = tmp_path / "m.safetensors"
    path.write_bytes(data)
    with pytest.raises(RecordError, match=what):
        SafetensorsFile(path)
    if data:
        with pytest.raises(RecordError, match=what):
            SafetensorsFile.from_bytes(data)


def test_what_a_description_says_beside_is_left_as_the_official_library_does(tmp_path):
    data = header({"a": row(0, 4) | {"more": {"x": [1]}}}, 4)
    (tmp_path / "m.safetensors").write_bytes(data)
    for file in (
        SafetensorsFile(tmp_path / "m.safetensors"),
        SafetensorsFile.from_bytes(data),
    ):
        assert (file.keys(), file["a"]) == (["a"], TensorData([0.0]))
    official = pytest.importorskip("safetensors.numpy")
    assert official.load(data)["a"].tolist() == [0.0]


def test_a_long_header_is_refused_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "m.safetensors"
    path.write_bytes((200_000_000).to_bytes(8, "little") + b"{")
    os.truncate(path, 300_000_000)
    opened = safetensors_files.open_regular
    monkeypatch.setattr(
        safetensors_files, "open_regular", lambda *args: Counting(opened(*args))
    )
    Counting.read_bytes = 0
    with pytest.raises(RecordError, match="the names are too long"):
        SafetensorsFile(path)
    assert Counting.read_bytes < 100


def _mixed(folder):
    tree = {
        "conv": {"weight": TensorData([[1.0, 2.0], [3.0, 4.0]])},
        "flags": TensorData([True, False]),
        "half": TensorData([1.5], dtype="bf16"),
        "none": TensorData.zeros([0, 3]),
        "count": TensorData(np.int64(7)),
    }
    path = SafetensorsRecorder(metadata={"format": "pt"}).record(tree, folder / "m")
    return path, path.read_bytes()


def tried(data, path, rng):
    """Read a file that may be damaged in every way there is; says whether it could."""
    path.write_bytes(data)
    before = SafetensorsFile if rng.random() < 0.5 else SafetensorsFile.from_bytes
    file = before(path if before is SafetensorsFile else data)
    total = sum(file[name].as_bytes().nbytes for name in file)
    assert total <= len(data)
    assert len(str(describe(path))) < 100 * len(data) + 400


def damaged(count, folder):
    path, data = _mixed(folder)
    rng, well, longest = random.Random(11), 0, 0
    for _ in range(count):
        changed = mutate(data, rng)
        try:
            tried(changed, path, rng)
            well += 1
        except RecordError as error:
            longest = max(longest, len(str(error)))
    assert longest < 800
    assert 0 < well < count * 0.94  # an element may change unseen


def test_damaged_files_give_only_our_errors(tmp_path):
    damaged(COUNT, tmp_path)


@pytest.mark.slow
def test_many_damaged_files_give_only_our_errors(tmp_path):
    damaged(int(os.environ.get("BURNBOOK_MUTATIONS", "20000")), tmp_path)


def test_damaged_indexes_give_only_our_errors(shards):
    names = {"x": "a.safetensors", "y": "a.safetensors", "z.w": "b.safetensors"}
    path = index(shards, names)
    data, rng = path.read_bytes(), random.Random(2)
    well = longest = 0
    for _ in range(COUNT // 4):
        path.write_bytes(mutate(data, rng))
        try:
            well += len(SafetensorsFile(path)) > 0
        except RecordError as error:
            longest = max(longest, len(str(error)))
    assert longest < 800
    assert well < COUNT // 4
