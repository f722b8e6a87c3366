"""Damaged, foreign, hostile files: one clear error each."""

import gzip
import json
import os
import random
import struct
import time
import tracemalloc
from functools import partial

import msgpack
import pytest

from burnbook.module.param import ParamId, ParamRecord
from burnbook.record import (
    CompactRecorder,
    DefaultRecorder,
    JsonGzFileRecorder,
    NamedMpkBytesRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
    RecordError,
)
from burnbook.tensor.data import TensorData
from tests.support.cases import cases
from tests.support.mutation import mutate, mutations
from tests.support.refusals import refused

COUNT = mutations(3000)
ID = ParamId(1).serialize()
TREE = {
    "conv": {"weight": ParamRecord(ID, TensorData([[1.0, 2.0], [3.0, 4.0]]))},
    "stride": [None, None],
    "flags": TensorData([True, False]),
    "momentum": {"time": 9400, "lr": 1e-4, "name": "adam"},
}
KINDS = [
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    JsonGzFileRecorder,
    PrettyJsonFileRecorder,
]


def whole(item, **metadata):
    head = {"float": "f32", "int": "i32", "format": "x", "version": "0.15.0"}
    head |= {"settings": "FullPrecisionSettings"} | metadata
    return {"metadata": head, "item": item, "_b": []}


def read(data):
    return NamedMpkBytesRecorder().read(data)


def error_of(plain):
    with pytest.raises(RecordError) as error:
        read(plain if isinstance(plain, bytes) else msgpack.packb(plain))
    return str(error.value)


def param(**changes):
    raw = struct.pack("<4f", 1, 2, 3, 4)
    inner = {"bytes": raw, "shape": [2, 2], "dtype": "F32"} | changes
    return whole({"fc": {"weight": {"id": ID, "param": inner}}})


AGAIN = "  try: the file as it was written: copy or download it again"
WRITER = "written by  Burn 0.15.0 with FullPrecisionSettings"


def test_a_tensor_that_does_not_fit_its_shape_says_both():
    assert error_of(param(bytes=b"1234567")) == (
        "read bytes: fc.weight does not fit its shape\n"
        "  expected    16 bytes for f32 [2, 2]\n"
        "  found       7 bytes\n"
        f"  {WRITER}\n{AGAIN}"
    )


@cases(
    "plain first",
    (param(shape=[2**40, 2**40]), "fc.weight has an impossible shape"),
    (param(shape=[-1, 4]), "fc.weight has an impossible shape"),
    (param(shape=[2.0, 2]), "fc.weight has an impossible shape"),
    (param(shape="2x2"), "fc.weight has an impossible shape"),
    (param(shape=[1] * 40), "fc.weight has an impossible shape"),
    (param(shape=[0, 2**62]), "fc.weight has an impossible shape"),
    (param(shape=[2**50]), "fc.weight does not fit its shape"),
    (param(dtype="F31"), "fc.weight has an unknown element type"),
    (param(dtype={"QFloat": {}}), "fc.weight is quantized"),
    (param(bytes=[1, 256]), "fc.weight has something else where bytes belong"),
    (param(bytes="text"), "fc.weight has something else where bytes belong"),
    (param(dtype="Bool", shape=[16]), "a bool is neither 0 nor 1"),
    (whole({"a": b"xx"}), "a holds bytes outside a tensor"),
    (whole({"a": {"bytes": b"", "shape": []}}), "a is a tensor without dtype"),
    (whole({"a": {"id": "!!", "param": {}}}), "a has an invalid id"),
    (whole({"a": {"id": "", "param": {}}}), "a has an invalid id"),
    (
        whole({"a": {"id": float("nan"), "param": {}}}),
        "a has an invalid id\n  expected    13 characters",
    ),
    (
        whole({"a": {"id": ID, "param": None}}),
        "a is a parameter without a tensor",
    ),
    (whole({"a": {1: 2}}), "a has a key that is not text"),
    ({"item": None}, "this is not a record of Burn"),
    ([1, 2], "this is not a record of Burn"),
    ({"metadata": 3, "item": None}, "the metadata is not Burn's"),
    (whole(None, version=15), "the metadata is not Burn's"),
    (whole(None, settings=None), "the metadata is not Burn's"),
    ("text", "this is not a record in MessagePack"),
    (b"", "this is an empty file, not named MessagePack"),
    (b"\xc1", "this is not a record in MessagePack"),
    (msgpack.packb(whole(1)) + b"\0", "1 bytes follow the end of the record"),
    (msgpack.packb(whole(1))[:-3], "the file ends inside the record"),
    (b"\x82" + b"\xa1a\xc0" * 2, "the record has 'a' twice"),
    (b"\x81\xa1\xff\xc0", "a text in the record is not UTF-8"),
    (b"\x81\xa1a\xc1", "this is not MessagePack"),
    (b"\x81\xa1a\xc7\x01\x05x", "this is not MessagePack"),
    (
        whole({"a": {"value": [1.0, "x"], "shape": [2]}}, version="0.13.0"),
        "a does not fit its shape",
    ),
    (
        whole({"a": {"value": [1.0], "shape": [2]}}, version="0.13.0"),
        "a does not fit its shape\n  expected    2 numbers for [2]",
    ),
    (
        whole({"a": {"value": [1.0, 3], "shape": [2]}}, version="0.13.0"),
        "a mixes kinds of numbers",
    ),
)
def test_each_kind_of_damage_has_its_own_first_line(plain, first):
    text = error_of(plain)
    assert first in text
    assert "\n  try: " in text
    assert len(text) < 600


@cases(
    "start kind",
    (gzip.compress(b"x", mtime=0), "gzip"),
    (b'{"a": 1}', "JSON"),
    (b"NRUB", "burnpack"),
    (b"\x08\x09\x12\x01p:\x00", "an ONNX model"),
    (bytes([200, 0, 0, 0, 0, 0, 0, 0]) + b'{"a"', "safetensors"),
    (b"PK\x03\x04", "a zip archive, perhaps of PyTorch"),
    (b"\x80\x02}q", "a pickle, perhaps of PyTorch"),
    (b"\x03f32\x03i32", "bincode"),
    (b"version https://git-lfs.github.com/spec/v1", "a pointer of Git LFS"),
    (b"<!DOCTYPE html>", "a web page or XML"),
    (b"", "an empty file"),
)
def test_foreign_files_are_recognized(start, kind, tmp_path):
    path = tmp_path / "model.mpk"
    path.write_bytes(start)
    with pytest.raises(RecordError) as error:
        DefaultRecorder().load(tmp_path / "model")
    first, cure = str(error.value).split("\n")
    assert first == f"read {path}: this is {kind}, not named MessagePack"
    assert cure.startswith("  try: ")


def test_the_wrong_recorder_is_named_together_with_the_right_one(tmp_path):
    path = DefaultRecorder().record(TREE, tmp_path / "model")
    path.rename(tmp_path / "model.json")
    told = (f"read {tmp_path / 'model.json'}: ", "named MessagePack, not JSON\n")
    act = partial(PrettyJsonFileRecorder().load, tmp_path / "model")
    refused(RecordError, act, *told, "try: NamedMpkFileRecorder")


def test_a_missing_file_says_what_is_there(tmp_path):
    CompactRecorder().record(None, tmp_path / "model-1")
    told = (f"read {tmp_path / 'model-2.mpk'}: ", "no such file", "holds model-1.mpk")
    refused(RecordError, partial(CompactRecorder().load, tmp_path / "model-2"), *told)
    with pytest.raises(RecordError, match="there is no folder"):
        CompactRecorder().load(tmp_path / "away" / "model")


def test_folders_pipes_and_impossible_names_are_refused(tmp_path):
    (tmp_path / "folder.mpk").mkdir()
    for name, text in [
        ("folder", "this is a folder, not a file"),
        ("nul\0", "not a path"),
        ("x" * 300, "the file cannot be read: File name too long"),
    ]:
        with pytest.raises(RecordError, match=text):
            CompactRecorder().load(tmp_path / name)
    with pytest.raises(RecordError, match="names no file"):
        CompactRecorder().load("")
    with pytest.raises(RecordError, match="this is not a regular file"):
        CompactRecorder().load(link_to(tmp_path, "/dev/null"))


def link_to(folder, target):
    os.symlink(target, folder / "link.mpk")
    return folder / "link.mpk"


# --- mutations ---------------------------------------------------------------------


class Again(NamedMpkBytesRecorder):
    """Reads with another recorder's decoder and writes MessagePack."""

    def __init__(self, other):
        super().__init__()
        self.decode = other.decode


def attempt(recorder, data):
    """Whether `data` could be read, and then also written; only our error may come."""
    try:
        found = Again(recorder).read(data)
    except RecordError as error:
        text = str(error)
    else:
        NamedMpkBytesRecorder().write(found)
        return True
    assert text.startswith("read bytes: ")
    assert len(text) < 800
    return False


@pytest.mark.parametrize("kind", KINDS)
def test_mutated_files_give_only_our_error(kind, tmp_path):
    data = kind().record(TREE, tmp_path / "m").read_bytes()
    rng, recorder, slowest = random.Random(7), kind(), 0.0
    read_well = 0
    for _ in range(COUNT):
        changed = mutate(data, rng)
        start = time.process_time()
        read_well += attempt(recorder, changed)
        slowest = max(slowest, time.process_time() - start)
    assert slowest < 30  # it ends, however slow the machine is
    assert read_well < COUNT * 2 / 3


@pytest.mark.parametrize("inside", [gzip.compress, lambda data: data])
def test_mutations_inside_a_whole_gzip_give_only_our_error(inside, tmp_path):
    data = JsonGzFileRecorder().record(TREE, tmp_path / "m").read_bytes()
    text, rng = gzip.decompress(data), random.Random(3)
    kind = JsonGzFileRecorder if inside is gzip.compress else PrettyJsonFileRecorder
    for _ in range(COUNT // 2):
        attempt(kind(), inside(mutate(text, rng)))


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_cut_anywhere_gives_our_error(kind, tmp_path):
    path = kind().record(TREE, tmp_path / "m")
    data = path.read_bytes()
    for end in range(len(data)):
        path.write_bytes(data[:end])
        with pytest.raises(RecordError) as error:
            kind().load(path)
        assert str(error.value).startswith(f"read {path}: ")


# --- memory ------------------------------------------------------------------------


def peak_of(recorder, data):
    tracemalloc.start()
    try:
        with pytest.raises(RecordError):
            recorder.read(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


HEAD = msgpack.packb(whole(None)["metadata"])


@cases(
    "bomb",
    b"\xdd\xff\xff\xff\xff" * 90,  # arrays that promise four billion items each
    b"\xdf\xff\xff\xff\xff",
    b"\xc6\xff\xff\xff\xff",  # bytes that are not there
    b"\xdb\xff\xff\xff\xff",
    b"\xdd\x00\x00\xff\xff" * 90 + b"\xc0" * 65535,  # as many as there are bytes
    b"\x91" * 100_000,  # deep
    b"\x81\xa1a" * 50_000,
    b"\xdd\x00\x10\x00\x00" + b"\x90" * 0x100000,  # many empty lists
    b"\xdd\x00\x10\x00\x00" + b"\x80" * 0x100000,
)
def test_no_header_is_believed_before_its_bytes_are_counted(bomb):
    data = b"\x83\xa8metadata" + HEAD + b"\xa4item" + bomb
    start = time.process_time()
    assert peak_of(NamedMpkBytesRecorder(), data) < 20 * len(data) + 4_000_000
    assert time.process_time() - start < 30  # it ends, however slow the machine is


def test_a_gzip_bomb_stops_at_the_limit(tmp_path):
    path = tmp_path / "bomb.mpk.gz"
    path.write_bytes(gzip.compress(bytes(200_000_000), 9))
    recorder = NamedMpkGzFileRecorder()
    with pytest.raises(RecordError, match="the file unpacks to more than it may"):
        recorder.read(path)
    tracemalloc.start()
    with pytest.raises(RecordError):
        recorder.read(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50_000_000


def test_a_file_that_packs_well_can_be_read_when_trusted(tmp_path):
    big = TensorData.zeros([5_000_000])
    path = NamedMpkGzFileRecorder().record({"w": big}, tmp_path / "zeros")
    assert path.stat().st_size < 60_000
    with pytest.raises(RecordError, match="max_bytes"):
        NamedMpkGzFileRecorder().load(path)
    found = NamedMpkGzFileRecorder(max_bytes=2**25).load(path)
    assert found["w"] == big


@cases(
    "text",
    "[" * 100_000,
    '{"a":' * 100_000,
    "[" + "[]," * 300_000 + "[]]",
    "9" * 100_000,
    '{"metadata": NaN}',
    '{"a": 1, "a": 2}',
    '{"a": 1e999, "metadata": Infinity}',
    json.dumps(
        whole({"id": ID, "param": {"bytes": [1.5], "shape": [], "dtype": "U8"}})
    ),
    json.dumps(whole({"id": ID, "param": {"bytes": [-1], "shape": [], "dtype": "U8"}})),
)
def test_hostile_json_gives_our_error(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_text(text)
    start = time.process_time()
    with pytest.raises(RecordError) as error:
        PrettyJsonFileRecorder().load(path)
    assert len(str(error.value)) < 800
    assert time.process_time() - start < 30  # it ends, however slow the machine is


def test_nothing_in_a_file_is_executed(tmp_path):
    """A record can hold plain data only: an extension type or an object is refused."""
    for data in (
        msgpack.packb(whole(msgpack.ExtType(1, b"os.system"))),
        msgpack.packb(whole(msgpack.Timestamp(1, 2))),
    ):
        with pytest.raises(RecordError):
            read(data)
