"""What PyTorch writes is read as PyTorch would read it; what is no data is refused."""

import argparse
import collections
import datetime
import decimal
import enum
import functools
import io
import os
import pathlib
import pickle
import random
import socket
import struct
import tarfile
import uuid
import warnings
import zipfile

import numpy as np
import pytest

from burnbook.core.errors import RecordError
from burnbook.importers.pickle_reader import Name
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.importers.torch_values import (
    Refusal,
    Storage,
    TorchNames,
    TorchTensor,
)
from tests.support.cases import cases

torch = pytest.importorskip("torch", reason="PyTorch makes the files")
from tests.importers.torch_files import as_numpy, numbers, saved  # noqa: E402


def read(data, key=None):
    return PytorchReader.from_bytes(data, key)


def test_there_are_many(torch_files):
    assert len(torch_files) >= 50


def test_every_file_has_its_tensors(torch_files):
    for name, data, tensors in torch_files:
        reader = read(data)
        assert set(reader) == set(tensors), name
        for path, tensor in tensors.items():
            array, wanted = reader[path], as_numpy(tensor)
            assert array.shape == tuple(tensor.shape), name
            found = array.load().to_numpy()
            assert found.dtype == wanted.dtype, (name, path)
            np.testing.assert_array_equal(found, wanted, err_msg=f"{name}: {path}")


def test_float8_codes_are_those_of_pytorch():
    codes = torch.arange(256, dtype=torch.int32).to(torch.uint8)
    for kind in ("e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu"):
        tensor = codes.view(getattr(torch, f"float8_{kind}"))
        array = read(saved({"t": tensor}))["t"]
        assert array.dtype == f"f8_{kind}"
        np.testing.assert_array_equal(array.load().array, tensor.float().numpy())


def test_files_lie_in_the_formats_they_are_said_to(torch_files):
    formats = {name: read(data).metadata().format_type for name, data, _ in torch_files}
    assert formats["views"] == "zip"
    assert formats["legacy views"] == "legacy"
    assert formats["pickle 4"] == "pickle"


def test_a_path_is_mapped_and_read_late(tmp_path):
    path = tmp_path / "model.bin"  # whatever it is called
    path.write_bytes(saved({"w": numbers(3, 2), "b": numbers(2)}))
    reader = PytorchReader(path)
    assert reader.keys() == ["b", "w"]
    assert reader.metadata().total_data_size == 32
    np.testing.assert_array_equal(reader["w"].load().array, numbers(3, 2).numpy())


def test_compressed_members_are_read_too():
    data = saved({"w": numbers(300, 20), "v": numbers(300, 20)[5:9].T})
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for member in old.infolist():
            new.writestr(member.filename, old.read(member))
    reader = read(file.getvalue())
    np.testing.assert_array_equal(reader["w"].load().array, numbers(300, 20).numpy())
    wanted = numbers(300, 20)[5:9].T.numpy()
    np.testing.assert_array_equal(reader["v"].load().array, wanted)


def test_big_endian_files():
    data = saved({"w": numbers(3), "n": torch.tensor([1, 513])})
    file = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(data)) as old,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as new,
    ):
        for member in old.infolist():
            content = old.read(member)
            if "/data/" in member.filename:
                size = 4 if len(content) == 12 else 8
                content = np.frombuffer(content, f"<u{size}").astype(f">u{size}")
                content = content.tobytes()
            if member.filename.endswith("byteorder"):
                content = b"big"
            new.writestr(member.filename, content)
    reader = read(file.getvalue())
    assert reader.metadata().byte_order == "big"
    np.testing.assert_array_equal(reader["w"].load().array, numbers(3).numpy())
    assert reader["n"].load().to_vec() == [1, 513]


def tar_of(tensors):
    """The format before 0.1.10, as PyTorch's own reader expects it."""
    storages, rows, pickled = io.BytesIO(), io.BytesIO(), io.BytesIO()
    kinds = {torch.float32: torch.FloatStorage, torch.int64: torch.LongStorage}
    pickle.dump(len(tensors), storages, 2)
    pickle.dump(len(tensors), rows, 2)
    for i, tensor in enumerate(tensors.values()):
        raw = tensor.untyped_storage()
        held = torch.empty(0, dtype=tensor.dtype).set_(raw)
        pickle.dump((str(i), "cpu", kinds[tensor.dtype]), storages, 2)
        storages.write(struct.pack("<q", held.numel()) + held.numpy().tobytes())
        pickle.dump((str(100 + i), str(i), torch.FloatTensor), rows, 2)
        rank = tensor.ndim
        numbers_ = [*tensor.shape, *tensor.stride(), tensor.storage_offset()]
        rows.write(struct.pack(f"<ii{2 * rank + 1}q", rank, 0, *numbers_))
    pickle.dump([], storages, 2)

    class Pickler(pickle.Pickler):
        def persistent_id(self, value):
            for i, tensor in enumerate(tensors.values()):
                if value is tensor:
                    return (str(100 + i),)
            return None

    Pickler(pickled, 2).dump(dict(tensors))
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w:", format=tarfile.USTAR_FORMAT) as archive:
        for name, part in (
            ("storages", storages),
            ("tensors", rows),
            ("pickle", pickled),
        ):
            about = tarfile.TarInfo(name)
            about.size = len(part.getvalue())
            archive.addfile(about, io.BytesIO(part.getvalue()))
    return file.getvalue()


def test_tar_files():
    tensors = {"w": numbers(3, 4), "t": numbers(2, 5)[:, 1:4].T, "n": torch.arange(4)}
    reader = read(tar_of(tensors))
    assert reader.metadata().format_type == "tar"
    for name, tensor in tensors.items():
        np.testing.assert_array_equal(reader[name].load().array, tensor.numpy())


@pytest.mark.filterwarnings("ignore:.*deprecated")
def test_torchscript_is_read_for_its_weights():
    layers = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    script = torch.jit.script(layers.eval())
    file = io.BytesIO()
    torch.jit.save(script, file)
    reader = read(file.getvalue())
    for name, tensor in layers.state_dict().items():
        if name != "1.num_batches_tracked" or name in reader:
            np.testing.assert_array_equal(reader[name].load().array, tensor.numpy())


# Refused, by name


class Kept(dict):
    """A dict of somebody's own."""


class Colour(enum.Enum):
    RED = 1


#: What checkpoints hold beside the weights.
BESIDE = [
    *(np.float64(0.93), np.int64(3), np.arange(3.0), np.ma.array([1.0])),
    *(np.array(["a"], object), np.random.RandomState(0), np.random.default_rng(0)),
    *(argparse.Namespace(lr=0.1), pathlib.PurePosixPath("a"), pathlib.Path("a")),
    *({"lr": 0.1}, {np.int64(0): 1}, {pathlib.Path("a")}, Colour.RED, 1j, slice(1, 2)),
    *(datetime.datetime(2020, 1, 1), datetime.timedelta(1), decimal.Decimal("1")),
    *(uuid.UUID(int=1), collections.deque([1]), random.Random(0), range(3)),
    *(functools.partial(torch.nn.functional.relu, inplace=True), ValueError("x")),
    *(torch.Generator(), torch.nn.functional.gelu, bytearray(b"x"), np.float32),
    *(torch.device("cpu"), torch.Size([2]), torch.float16, torch.optim.Adam),
    *(collections.Counter("a"), Kept(a=1), torch.nn.CrossEntropyLoss()),
]


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("beside", BESIDE, ids=lambda value: type(value).__name__)
def test_what_stands_beside_the_weights_does_not_keep_them_back(beside, old):
    options = {"_use_new_zipfile_serialization": False} if old else {}
    data = saved({"model": {"w": numbers(2)}, "best": beside}, **options)
    whole = read(data)
    assert whole.keys() == ["model.w"]
    assert read(data, "model").keys() == ["w"]
    assert all(isinstance(text, str) for text in whole.skipped.values())


def test_objects_are_named():
    given = {"a": np.float64(1), "b": np.ones(2), "c": argparse.Namespace()}
    assert read(saved(given)).skipped == {
        "a": "a number of NumPy",
        "b": "an array of NumPy; try: torch.from_numpy(array) before torch.save",
        "c": "an object of the class argparse.Namespace",
    }


def test_an_object_alone_is_refused_with_its_class():
    for alone, told in (
        (argparse.Namespace(lr=0.1), r"argparse\.Namespace"),
        (np.zeros(3), "an array of NumPy"),
        ({"args": argparse.Namespace()}, r"argparse\.Namespace"),
    ):
        with pytest.raises(RecordError, match=told):
            read(saved(alone), "args" if isinstance(alone, dict) else None)


class Whole(torch.nn.Module):
    def __init__(self):
        super().__init__()
        conv, lstm = torch.nn.Conv2d(1, 2, 3), torch.nn.LSTM(2, 3, bidirectional=True)
        self.layers = torch.nn.Sequential(conv, torch.nn.BatchNorm2d(2), lstm)
        self.act, self.options = torch.nn.functional.relu, argparse.Namespace(x=1)
        self.again = self.layers[0]
        self.register_buffer("seen", torch.ones(2))
        self.register_buffer("cache", torch.ones(2), persistent=False)
        self.register_buffer("nothing", None)


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("key", [None, "ema"])
def test_a_whole_module_is_read_as_its_state_dict(key, old):
    module = Whole()
    value = module if key is None else {"epoch": 3, key: module}
    options = {"_use_new_zipfile_serialization": False} if old else {}
    reader = read(saved(value, **options), key)
    wanted = module.state_dict()
    assert reader.keys() == sorted(wanted)
    for name, tensor in wanted.items():
        np.testing.assert_array_equal(reader[name].load().array, tensor.numpy())


def test_the_sign_that_pytorch_keeps_beside_a_tensor_is_obeyed():
    z = torch.complex(torch.ones(2, 3), torch.arange(6.0).reshape(2, 3))
    for dtype in (torch.complex64, torch.complex128):
        given = {"im": z.to(dtype).conj().imag, "t": z.to(dtype).conj().imag.T}
        assert given["im"].is_neg()
        for old in (False, True):
            data = saved(given, _use_new_zipfile_serialization=not old)
            reader = read(data)
            for name, tensor in given.items():
                wanted = tensor.resolve_neg().numpy()
                np.testing.assert_array_equal(reader[name].load().array, wanted)


def test_what_is_not_known_beside_a_tensor_is_refused():
    made = TorchTensor(Storage("f32", "0", 2), 0, (2,), (1,), "f32")
    args = (made.storage, 0, (2,), (1,), False, {})
    names = TorchNames(lambda key: made.storage)
    for function in ("_rebuild_tensor_v2", "_rebuild_tensor_v3"):
        name = Name(f"torch._utils.{function}")
        kind = (Name("torch.float32"),) if function.endswith("v3") else ()
        for metadata, told in (
            (None, ""),
            ({}, ""),
            ({"neg": False}, ""),
            ({"zoom": True}, "kept with 'zoom'"),
            ({"conj": True}, "kept with 'conj' as f32"),
        ):
            held = names.call(name, (*args, *kind, metadata))
            assert isinstance(held, Refusal if told else TorchTensor)
            assert told in str(held)
    unknown = names.call(Name("torch._utils._rebuild_new_kind"), ())
    assert unknown.what == "made by torch._utils._rebuild_new_kind"
    subclass = (name, Name("torchao.Quantized"), (*args, Name("torch.float32")), {})
    held = names.call(Name("torch._tensor._rebuild_from_type_v2"), subclass)
    assert held.what == "of the class torchao.Quantized"


class Calls:
    def __init__(self, function, *args):
        self.function, self.args = function, args

    def __reduce__(self):
        return self.function, self.args


@cases(
    "function args name",
    (os.system, ("touch /tmp/burnbook-was-here",), "posix.system"),
    (eval, ("1 + 1",), "builtins.eval"),
    (exec, ("import os",), "builtins.exec"),
    (open, ("/tmp/burnbook-was-here", "w"), "open"),
    (getattr, ("a", "upper"), "builtins.getattr"),
    (socket.create_connection, (("127.0.0.1", 1),), "socket.create_connection"),
    (__import__, ("os",), "builtins.__import__"),
    (torch.load, ("/etc/passwd",), "torch.serialization.load"),
    (torch.hub.load, ("a", "b"), "torch.hub.load"),
)
@pytest.mark.parametrize("how", ["zip", "legacy", "pickle"])
def test_nothing_is_called(function, args, name, how, tmp_path, monkeypatch):
    calls = Calls(function, *args)
    old = {"_use_new_zipfile_serialization": False}
    if how == "pickle":
        data = pickle.dumps({"w": calls})
    else:
        data = saved({"w": calls}, **(old if how == "legacy" else {}))
    monkeypatch.setattr(pickle, "loads", None)  # ours reads without Python's
    with pytest.raises(RecordError) as error:
        read(data)
    assert name in str(error.value)
    assert not os.path.exists("/tmp/burnbook-was-here")


@cases(
    "name make what cure",
    (
        "complex",
        lambda: torch.ones(2, dtype=torch.complex64),
        "complex",
        "view_as_real",
    ),
    (
        "quantized",
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.qint8),
        "quantized",
        "dequantize",
    ),
    ("sparse", lambda: torch.eye(3).to_sparse(), "sparse", "to_dense"),
    ("meta", lambda: torch.ones(2, device="meta"), "meta", "CPU"),
    ("huge", lambda: torch.ones(1).expand(10**6, 10**6), "shown", "clone"),
)
@pytest.mark.filterwarnings("ignore")
def test_a_tensor_without_a_place_here_is_skipped_alone(name, make, what, cure):
    reader = read(saved({"bad": make(), "good": numbers(2)}))
    assert reader.keys() == ["good"]
    assert what in reader.skipped["bad"]
    assert cure in reader.skipped["bad"]


def zipped(*names):
    """An archive of PyTorch whose members have other names."""
    source = zipfile.ZipFile(io.BytesIO(saved({"w": numbers(2)})))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of names that are there twice
        for name in names:
            root = source.namelist()[0].partition("/")[0]
            held = root + "/" + name.split("/", 1)[1]
            archive.writestr(name, source.read(held))
    return file.getvalue()


def test_an_archive_has_every_name_once_and_one_root():
    whole = ["a/data.pkl", "a/data/0", "a/byteorder"]
    assert set(read(zipped(*whole))) == {"w"}
    with pytest.raises(RecordError, match=r"the archive has a/data\.pkl twice"):
        read(zipped(*whole, "a/data.pkl"))
    with pytest.raises(RecordError, match="several files of PyTorch"):
        read(zipped(*whole, "b/data.pkl"))
