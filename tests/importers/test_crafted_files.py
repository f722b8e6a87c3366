"""Files by somebody who knows the formats: our errors, and little time and memory."""

import io
import os
import struct
import tarfile
import tracemalloc
import zipfile

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.core.errors import RecordError
from burnbook.exporters import write_state_dict
from burnbook.importers import LoadArgs, PytorchStore, SafetensorsStore
from burnbook.importers.apply_result import MEANT, ApplyResult
from burnbook.importers.key_remap import contiguous, numbers_below
from burnbook.importers.pickle_reader import PickleReader
from burnbook.importers.pytorch import PyTorchFileRecorder
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.importers.pytorch_report import inspect_file
from burnbook.record.tree import Trouble
from burnbook.tensor import TensorData
from tests.support.crafted_files import limited, try_many

PROTO = b"\x80\x02"
PRIME = 2**61 - 1  # whole numbers that differ by it have one hash in Python
COUNT = int(os.environ.get("BURNBOOK_MUTATIONS", "2000"))


def text(value):
    raw = value.encode()
    return b"X" + struct.pack("<I", len(raw)) + raw


def whole(value):
    raw = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return b"\x8a" + bytes([len(raw)]) + raw


def tensor(key, count, name="w"):
    """The pickle of one name and its tensor of f32."""
    storage = text("storage") + b"ctorch\nFloatStorage\n" + text(key) + text("cpu")
    head = text(name) + b"ctorch._utils\n_rebuild_tensor_v2\n((" + storage
    size = whole(count)
    hooks = b"\x89ccollections\nOrderedDict\n)R"
    return head + size + b"tQK\x00(" + size + b"t(K\x01t" + hooks + b"tR"


def peak_of(call):
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", ["pt", "safetensors"])
def test_crafted_files_give_our_errors_or_their_tensors(kind):
    found = try_many(kind, 300)
    assert found.findings == []
    assert found.counts["refused"] > 100
    assert found.counts["read"] > 0


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["pt", "safetensors", "onnx"])
def test_many_crafted_files_in_a_process_with_limits(kind):
    if kind == "onnx":
        pytest.importorskip("onnx", reason="ONNX files are read with it")
    found = limited(kind, COUNT, start=300)
    assert found.findings == []
    assert found.counts.total() == COUNT


def test_what_opens_files_or_runs_programs_is_seen(monkeypatch):
    """The hook of the child process, which notices what a pickle made happen."""
    from tests.support import crafted_files

    monkeypatch.setattr(crafted_files, "_watching", True)
    for event, arguments in (
        ("os.system", (b"true",)),
        ("pickle.find_class", ("os", "system")),
        ("socket.connect", (None, "example.org")),
        ("open", ("a.txt", "w", 0)),
    ):
        with pytest.raises(crafted_files.Ran, match=event.partition(".")[0]):
            crafted_files.watch(event, arguments)
    crafted_files.watch("open", ("a.txt", "rb", 0))


def test_numbers_of_one_hash_are_no_keys():
    rows = b"".join(whole(i * PRIME) + b"N" for i in range(1, 50_000))
    with pytest.raises(Trouble, match="neither a number nor a text"):
        PickleReader(PROTO + b"}(" + rows + b"u.").load()
    for parts in (whole(2**40) + b"K\x01", b"G" + bytes(8) + b"K\x01"):
        with pytest.raises(Trouble, match="neither a number nor a text"):
            PickleReader(PROTO + b"}" + parts + b"\x86Ns.").load()
    plain = PickleReader(PROTO + b"}K\x01K\x02\x86Ns.").load()
    assert plain == {(1, 2): None}


def test_far_places_of_the_memo_cost_nothing():
    far = PROTO + b"N" + b"r" + struct.pack("<I", 900_000) + b"." + bytes(1_000_000)
    assert peak_of(lambda: PickleReader(far).load()) < 100_000


def test_many_short_lines_are_read_in_one_pass():
    count = 50_000
    data = PROTO + b"](" + b"I1\n" * count + b"e."
    assert PickleReader(data).load() == [1] * count


def archive(pickled, members, twice=0):
    """A zip archive; its last member stands `twice` more times in the directory."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("a/data.pkl", pickled)
        for name, content, method in members:
            made.writestr(f"a/data/{name}", content, method)
        last = made.filelist[-1]
        for i in range(1, twice + 1):
            again = zipfile.ZipInfo(f"a/data/{i}")
            for field in ("CRC", "compress_size", "file_size", "header_offset"):
                setattr(again, field, getattr(last, field))
            again.compress_type = last.compress_type
            made.filelist.append(again)
            made.NameToInfo[again.filename] = again
    return file.getvalue()


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_members_over_the_same_bytes_are_refused(method):
    """A file of 70 kB would be tensors of 50 MB."""
    rows = b"".join(tensor(str(i), 16_384, f"w{i}") for i in range(800))
    data = archive(PROTO + b"}(" + rows + b"u.", [("0", bytes(65_536), method)], 799)
    with pytest.raises(RecordError, match="lies over another member"):
        PytorchReader.from_bytes(data)
    one = archive(
        PROTO + b"}" + tensor("0", 16_384) + b"s.", [("0", bytes(65_536), method)]
    )
    assert not PytorchReader.from_bytes(one)["w"].load().array.any()


def test_parts_of_a_packed_storage_are_unpacked_once(monkeypatch):
    from burnbook.importers.torch_formats import Packed

    unpacked = []
    original = Packed._next
    monkeypatch.setattr(
        Packed,
        "_next",
        lambda self, count: unpacked.append(count) or original(self, count),
    )
    part = tensor("0", 100).replace(b"tQK\x00(" + whole(100), b"tQK\x02(K\x05", 1)
    rows = b"".join(part.replace(text("w"), text(f"w{i}")) for i in range(20))
    content = np.arange(100, dtype="<f4").tobytes()
    packed = ("0", content, zipfile.ZIP_DEFLATED)
    reader = PytorchReader.from_bytes(archive(PROTO + b"}(" + rows + b"u.", [packed]))
    assert len(reader) == 20
    for name in reader:
        assert reader[name].load().to_list() == [2.0, 3.0, 4.0, 5.0, 6.0]
    assert unpacked == [400]


def long_member(count, starts, content=None):
    """An archive of one packed storage, and tensors that are parts of it."""
    part = tensor("0", count).replace(b"tQK\x00(" + whole(count), b"tQ%s(K\x05", 1)
    rows = b""
    for i, start in enumerate(starts):
        at = b"J" + start.to_bytes(4, "little")
        rows += part.replace(b"%s", at).replace(text("w"), text(f"w{i}"))
    content = np.arange(count, dtype="<f4") if content is None else content
    packed = ("0", content.tobytes(), zipfile.ZIP_DEFLATED)
    return PytorchReader.from_bytes(archive(PROTO + b"}(" + rows + b"u.", [packed]))


def test_of_a_long_packed_storage_only_what_is_used_is_held():
    count = 2_000_000
    starts = [7, 1_000_000, 500_000, count - 5]
    reader = long_member(count, starts)

    def read():
        for name, start in zip(reader, starts, strict=True):
            assert reader[name].load().to_list() == list(range(start, start + 5))

    assert peak_of(read) < 2_000_000  # of 8,000,000


def test_a_long_packed_storage_is_not_unpacked_again_and_again():
    starts = list(range(199_000, 1_000, -2_000))
    reader = long_member(200_000, starts, np.zeros(200_000, "<f4"))
    with pytest.raises(RecordError, match="its parts are out of order"):
        [reader[name].load() for name in reader]


def test_parts_out_of_order_are_read_of_a_packed_storage_that_is_no_bomb(monkeypatch):
    from burnbook.importers.torch_formats import Packed

    unpacked = []
    original = Packed._next
    monkeypatch.setattr(
        Packed,
        "_next",
        lambda self, count: unpacked.append(count) or original(self, count),
    )
    numbers = np.random.default_rng(0).standard_normal(200_000).astype("<f4")
    starts = list(range(199_000, 1_000, -500))
    reader = long_member(200_000, starts, numbers)
    for name, start in zip(reader, starts, strict=True):
        np.testing.assert_array_equal(
            reader[name].load().array, numbers[start : start + 5]
        )
    assert sum(unpacked) < 10 * numbers.nbytes


@pytest.mark.parametrize("fill", [np.zeros, np.random.default_rng(0).random])
def test_a_packed_storage_is_read_as_often_as_one_likes(fill):
    count = 90_000
    content = fill(count).astype("<f4")
    data = archive(
        PROTO + b"}" + tensor("0", count) + b"s.",
        [("0", content.tobytes(), zipfile.ZIP_DEFLATED)],
    )
    reader = PytorchReader.from_bytes(data)
    for _ in range(60):
        np.testing.assert_array_equal(reader["w"].load().array, content)


def test_a_tar_archive_reserves_no_more_than_it_has():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as made:
        made.addfile(tarfile.TarInfo("pickle"), io.BytesIO(b""))
    head = tarfile.TarInfo("x")
    head.size, head.type = 8**10 - 1, tarfile.GNUTYPE_LONGNAME
    data = head.tobuf(tarfile.GNU_FORMAT) + file.getvalue()

    def load():
        with pytest.raises(RecordError):
            PytorchReader.from_bytes(data)

    assert peak_of(load) < 1_000_000


def test_one_file_inside_is_not_read_again_and_again(tmp_path):
    values = {f"w{i}": TensorData([1.0]) for i in range(30)}
    inner = write_state_dict(values, tmp_path / "a.pt").read_bytes()
    head = b"\x80\x03]q\x000B" + struct.pack("<I", len(inner)) + inner + b"q\x010"
    load = b"ctorch.storage\n_load_from_bytes\nq\x020h\x00("
    once = head + load + b"h\x02h\x01\x85Re."
    assert len(PytorchReader.from_bytes(once)) == 30
    with pytest.raises(RecordError, match="the same file is in the pickle many times"):
        PytorchReader.from_bytes(head + load + b"h\x02h\x01\x85R" * 3000 + b"e.")


def test_names_of_thousands_of_dots(tmp_path):
    long = "a" + ".0" * 8000
    path = write_state_dict({long: TensorData([1.0])}, tmp_path / "a.pt")
    with pytest.raises(RecordError, match="a name has 16,001 characters"):
        PytorchReader(path)
    nested = PROTO + b"}" + text("b" * 3000) + b"}" + text("c" * 3000) + b"K\x01ss."
    with pytest.raises(RecordError, match="a name has 6,001 characters"):
        PytorchReader.from_bytes(nested)


def test_a_file_of_nothing_but_lists_keeps_its_names():
    names = [f"{i}.{j}.7.weight" for i in range(300) for j in range(400)]
    assert numbers_below(names) == {}
    assert contiguous(names)["5.3.7.weight"] == "5.3.7.weight"


def test_names_are_compared_for_the_first_of_many_missing_paths():
    paths = [f"layers.{i}.attention.query.weight" for i in range(1000)]
    unused = tuple(path.replace("layers", "layer") for path in paths)
    result = ApplyResult(missing=tuple((path, "") for path in paths), unused=unused)
    told = [told for _, told in result.facts()[:-1]]
    assert sum("did you mean" in one for one in told) == MEANT
    assert told[0] == f"missing; did you mean {unused[0]}?"
    assert result.suggestion("fc.bias") is None
    assert ApplyResult(unused=("x" * 3000,)).suggestion("fc.weight") is None


ESCAPE = "a\x1b]0;owned\x07\nKey: b"


def test_names_do_not_write_into_the_terminal(tmp_path, capsys):
    path = write_state_dict({ESCAPE: TensorData([1.0])}, tmp_path / "a.pt")
    PyTorchFileRecorder().load(LoadArgs(path).with_debug_print())
    _, result = PytorchStore.from_file(path).apply_to(
        nn.LinearConfig(2, 3).init(Numpy())
    )
    shown = [
        capsys.readouterr().out,
        str(inspect_file(path)),
        repr(PytorchReader(path)[ESCAPE]),
        str(result),
        *(str(fact) for fact in result.facts()),
    ]
    assert [one for one in shown if "\x1b" in one or "\nKey: b" in one] == []
    assert r"a\x1b]0;owned\x07\nKey: b" in shown[0]


def test_a_file_that_became_shorter_is_not_read(tmp_path):
    """Reading beyond the end of a mapped file would kill the process."""
    values = {"w": TensorData(np.ones(100_000, np.float32))}
    path = write_state_dict(values, tmp_path / "a.pt")
    array = PytorchReader(path)["w"]
    os.truncate(path, 1000)
    with pytest.raises(RecordError, match="the file has changed"):
        array.load()


def test_the_layout_of_pytorch_is_recognized(tmp_path):
    from burnbook.exporters import to_pytorch
    from burnbook.importers import IdentityAdapter

    def own(path):  # whatever the file says
        return SafetensorsStore.from_file(path).with_from_adapter(IdentityAdapter())

    layer = nn.LinearConfig(2, 3).init(Numpy())
    path = to_pytorch(layer, tmp_path / "a.safetensors")
    with pytest.raises(RecordError, match=r"try: with_from_adapter\(PyTorchToBurn"):
        layer.load_from(own(path))
    assert len(layer.load_from(SafetensorsStore.from_file(path))[1].applied) == 2
    norm = nn.LayerNormConfig(2).init(Numpy())
    path = to_pytorch(norm, tmp_path / "b.safetensors")
    with pytest.raises(RecordError, match=r"try: with_from_adapter\(PyTorchToBurn"):
        norm.load_from(own(path))
    other = nn.LinearConfig(2, 5).init(Numpy())
    with pytest.raises(RecordError, match="try: with_key_remapping"):
        other.load_from(SafetensorsStore.from_file(path))
