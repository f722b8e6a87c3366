"""A file of another kind is named for what it is, with what reads it."""

import numpy as np
import pytest

from burnbook.cli import main
from burnbook.core.errors import RecordError
from burnbook.exporters.pytorch import write_state_dict
from burnbook.importers import PytorchStore
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.importers.safetensors import SafetensorsStore
from burnbook.importers.tensor_file import TensorFile
from burnbook.record import (
    FullPrecisionSettings,
    NamedMpkFileRecorder,
    SafetensorsRecorder,
)
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.tensor.data import TensorData
from tests.support.cases import cases

# An ONNX model of the version 9: its producer, a graph of one name, and an opset.
ONNX = b"\x08\x09\x12\x01p:\x03\x12\x01gB\x04\n\x00\x10\x15"
VALUES = {f"layer{k}.weight": TensorData(np.ones((4, 9), "f4")) for k in range(9)}


@pytest.fixture
def files(tmp_path):
    """A file of each kind."""
    full = NamedMpkFileRecorder(FullPrecisionSettings)
    torch = write_state_dict(VALUES, tmp_path / "a.pt")
    safe = SafetensorsRecorder().record(VALUES, tmp_path / "a")
    (tmp_path / "a.onnx").write_bytes(ONNX)
    return {
        "pt": torch,
        "safetensors": safe,
        "mpk": full.record(VALUES, tmp_path / "a"),
        "onnx": tmp_path / "a.onnx",
    }


READERS = {
    "pt": PytorchReader,
    "store of pt": lambda path: PytorchStore.from_file(path).keys(),
    "safetensors": SafetensorsFile,
    "store of safetensors": lambda path: SafetensorsStore.from_file(path).keys(),
}
WORDS = {
    "pt": ("a zip archive, perhaps of PyTorch", "burnbook import-pytorch FILE"),
    "safetensors": ("safetensors", "SafetensorsRecorder"),
    "mpk": ("named MessagePack", "NamedMpkFileRecorder"),
    "onnx": ("an ONNX model", "burnbook import-onnx FILE"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", WORDS)
def test_each_reader_names_the_files_of_the_others(kind, reader, files):
    if kind in reader:
        assert len(files) == 4
        return
    with pytest.raises(RecordError) as caught:
        READERS[reader](files[kind])
    what, cure = WORDS[kind]
    assert f"this is {what}" in str(caught.value)
    assert cure in caught.value.cure


@pytest.mark.parametrize("kind", ["pt", "safetensors", "mpk"])
def test_import_onnx_names_the_files_of_others(kind, files, capsys):
    pytest.importorskip("onnx")
    assert main(["import-onnx", str(files[kind])]) == 1
    told = capsys.readouterr().err
    what, cure = WORDS[kind]
    assert what in told
    assert f"try: {cure}" in told


@pytest.mark.parametrize("kind", ["safetensors", "mpk", "onnx"])
def test_import_pytorch_names_the_files_of_others(kind, files, capsys):
    assert main(["import-pytorch", str(files[kind])]) == 1
    told = capsys.readouterr().err
    what, cure = WORDS[kind]
    assert f"this is {what}, not a file of PyTorch" in told
    assert f"try: {cure}" in told


def test_a_model_of_onnx_under_another_name_is_named(files):
    renamed = files["onnx"].rename(files["onnx"].with_name("b.safetensors"))
    with pytest.raises(RecordError, match="this is an ONNX model, not safetensors"):
        TensorFile(renamed)
    for kind in ("pt", "safetensors", "mpk"):
        other = files[kind].rename(files[kind].with_name(f"{kind}.onnx"))
        with pytest.raises(RecordError, match="no ONNX model"):
            TensorFile(other)


@cases("part", 0.1, 0.5, 0.9, 0.99)
def test_a_part_of_an_archive_is_cut_off(part, files):
    data = files["pt"].read_bytes()
    files["pt"].write_bytes(data[: int(len(data) * part)])
    with pytest.raises(RecordError, match="the file is cut off"):
        PytorchReader(files["pt"])


@pytest.mark.parametrize("length", [0, 1])
def test_a_head_without_names_is_said_to_be_empty(length, tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_bytes(bytes([length]) + bytes(40))
    with pytest.raises(RecordError, match="the head is empty"):
        TensorFile(path)
