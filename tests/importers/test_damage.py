"""Damaged and hostile files of PyTorch: our errors, bounded memory, nothing run."""

import os
import pickle
import struct
import tracemalloc

import pytest

from burnbook.core.errors import RecordError
from burnbook.importers.pickle_reader import PickleReader
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.record.tree import Trouble
from tests.support.cases import cases
from tests.support.mutated_files import outcome, try_many

PROTO = b"\x80\x02"


def refused(data, text=None):
    with pytest.raises(RecordError, match=text) as error:
        load_all(data)
    return str(error.value)


def load_all(data):
    reader = PytorchReader.from_bytes(data)
    return [reader[name].load() for name in reader]


def test_many_damaged_files(torch_files):
    files = [(name, data) for name, data, _ in torch_files if len(data) < 20_000]
    found, worst = try_many(files, 3000)
    assert found["refused"] > 500
    assert found["read"] > 100
    assert worst < 20_000_000


@pytest.mark.slow
def test_more_damaged_files(torch_files):
    count = int(os.environ.get("BURNBOOK_MUTATIONS", "5000"))
    files = [(name, data) for name, data, _ in torch_files if len(data) < 20_000]
    found, worst = try_many(files, count, seed=1)
    assert sum(found.values()) == count
    assert worst < 20_000_000


def test_every_cut_of_a_file(torch_files):
    for name in ("parameters", "legacy nested", "pickle 2"):
        data = next(data for each, data, _ in torch_files if each == name)
        for end in range(0, len(data), max(len(data) // 300, 1)):
            assert outcome(data[:end]) == "refused", (name, end)


def nested(depth, start=b"]", end=b"a"):
    return PROTO + start * depth + end * (depth - 1) + b"."


@cases(
    "data text",
    (b"", "this is an empty file|not a file of PyTorch"),
    (b"abc", "this is not a file of PyTorch"),
    (nested(5000), "nests too deeply"),
    (PROTO + b"]q\x00h\x00a.", "holds itself"),
    (PROTO + b"}q\x00X\x01\x00\x00\x00ah\x00s.", "holds itself"),
    (PROTO + b"\x8b\xff\xff\xff\x7f" + b"1" * 50 + b".", "huge whole number"),
    (PROTO + b"\x8a\xff" + b"1" * 50 + b".", "ends too early"),
    (b"L" + b"9" * 10_000 + b"L\n.", "not a file of PyTorch"),
    (PROTO + b"X\xff\xff\xff\xff.", "ends too early"),
    (PROTO + b"B\xff\xff\xff\xff.", "ends too early"),
    (PROTO + b"\x8e" + b"\xff" * 8 + b".", "ends too early"),
    (PROTO + b"]" * 40_000 + b".", "more lists than any model has"),
    (PROTO + b"Nr\xff\xff\xff\xff.", "impossible number"),
    (PROTO + b"h\x05.", "recalls what it has not remembered"),
    (PROTO + b"N", "ends too early"),
    (PROTO + b"NN.", "does not end with one value"),
    (PROTO + b"(.", "does not end with one value"),
    (PROTO + b"a.", "takes what it has not put"),
    (PROTO + b"t.", "takes what it has not put"),
    (PROTO + b"}]Ns.", "neither a number nor a text"),
    (PROTO + b"(i__main__\nNet\n.", "instruction INST"),
    (PROTO + b"Pabc\n.", "instruction PERSID"),
    (PROTO + b"\x82\x01.", "instruction EXT1"),
    (PROTO + b"cos\nsystem\n.", r"wants to call os\.system"),
    (PROTO + b"c__builtin__\neval\n.", r"wants to call builtins\.eval"),
    (b"\x80\x04\x8c\x02os\x8c\x06system\x93.", r"wants to call os\.system"),
    (PROTO + b"c__main__\nNet\n)\x81.", r"class __main__\.Net"),
    (PROTO + b"ccollections\nOrderedDict\nN\x85R.", ""),
    (PROTO + b"X\x01\x00\x00\x00aQ.", "no storage"),
    (b"\x80\x07N.", "newer than any"),
    (PROTO + b"\xfe.", "is no instruction"),
)
def test_hostile_pickles(data, text):
    if text:
        assert len(refused(data, text)) < 1500
    else:
        assert outcome(data) == "read"


def laughs(levels, width=b"a"):
    """Lists of ten times the same list: few bytes, 10 to the power of levels parts."""
    parts = [PROTO, b"]q\x00"]
    for level in range(levels):
        recall = b"h" + bytes([level])
        parts += [b"0]", b"(" + recall * 10 + b"e", b"q" + bytes([level + 1])]
    return b"".join([*parts, b"."])


def test_a_few_bytes_do_not_become_millions():
    data = laughs(20)
    tracemalloc.start()
    try:
        refused(data, "stand for millions of parts")
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()


def test_tuples_in_tuples_are_no_keys():
    """Their hash would take as long as their parts are many."""
    parts = [PROTO, b")q\x00"]
    for level in range(60):
        recall = b"h" + bytes([level])
        parts += [b"0" + recall + recall + b"\x86", b"q" + bytes([level + 1])]
    key = b"h" + bytes([60])
    data = b"".join([*parts, b"0}" + key + b"Ns."])
    refused(data, "neither a number nor a text")


def test_storages_are_counted_before_they_are_made():
    torch = pytest.importorskip("torch", reason="PyTorch makes the files")
    from tests.importers.torch_files import saved

    old = saved({"w": torch.zeros(4)}, _use_new_zipfile_serialization=False)
    at = old.rindex(struct.pack("<q", 4) + bytes(16))
    for count in (5, 2**40, 2**62, -1):
        wrong = old[:at] + struct.pack("<q", count) + old[at + 8 :]
        refused(wrong, "ends inside a storage")


@cases("size", 2**40, 2**62, 5)
def test_sizes_beyond_the_storage_are_refused(size):
    torch = pytest.importorskip("torch", reason="PyTorch makes the files")
    from tests.importers.torch_files import saved

    data = saved({"w": torch.zeros(4)})
    at = data.index(b"K\x00K\x04\x85")  # offset 0, size (4,)
    number = b"\x8a\x08" + struct.pack("<q", size)
    pickled = data[:at] + b"K\x00" + number + b"\x85" + data[at + 5 :]
    start = pickled.index(PROTO + b"}")
    end = data.index(b".PK") + 1 + len(number) - 2
    assert refused(_rezipped(data, pickled[start:end]))


def _rezipped(data, pickled):
    import io
    import zipfile

    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(file, "w") as new:
        for member in old.infolist():
            is_pickle = member.filename.endswith("data.pkl")
            new.writestr(member.filename, pickled if is_pickle else old.read(member))
    return file.getvalue()


def test_plain_pickles_of_every_protocol():
    value = {"a": [1, -2, 3.5, None, True, "ü", b"x"], "b": (1, (2,)), 3: {4, 5}}
    value["big"] = 2**100
    for protocol in range(6):
        data = pickle.dumps(value, protocol)
        if protocol < 3:  # bytes and sets go through names there
            with pytest.raises(Trouble, match="wants to call"):
                PickleReader(data).load()
            plain = {"a": [1, -2, 3.5, None, True, "ü", 2**100], "b": (1, (2,))}
            data, wanted = pickle.dumps(plain, protocol), plain
        else:
            wanted = value
        if protocol == 3:
            with pytest.raises(Trouble, match="set"):
                PickleReader(data).load()
        else:
            assert PickleReader(data).load() == wanted
