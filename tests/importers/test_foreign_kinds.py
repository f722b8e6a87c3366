"""Files of other programs are called what they are, with a cure that fits."""

import io
import zipfile

import numpy as np
import pytest

from burnbook import nn
from burnbook.backend import Numpy
from burnbook.cli import main
from burnbook.core.errors import RecordError
from burnbook.importers import PyTorchFileRecorder, PytorchStore
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.importers.tensor_file import TensorFile
from burnbook.module import Module
from burnbook.record import describe


def archive(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name in names:
            made.writestr(name, b"x")
    return file.getvalue()


def arrays():
    file = io.BytesIO()
    np.savez(file, w=np.ones(2))
    return file.getvalue()


KINDS = {
    "a.gguf": (b"GGUF\3\0\0\0" + bytes(60), "GGUF", "GGUFReader"),
    "a.tflite": (b"\x1c\0\0\0TFL3" + bytes(60), "TensorFlow Lite", "tf2onnx"),
    "a.h5": (b"\x89HDF\r\n\x1a\n" + bytes(60), "HDF5", "save_file"),
    "a.keras": (archive("metadata.json", "config.json"), "Keras", "save_file"),
    "a.npz": (arrays(), "an archive of NumPy", "numpy.load"),
    "a.npy": (b"\x93NUMPY\1\0" + bytes(60), "an array of NumPy", "numpy.load"),
    "a.pt2": (archive("a/archive_format"), "torch.export", "torch.export.load"),
    "a.ort": (b"\x1c\0\0\0ORTM" + bytes(60), "ONNX Runtime", "import-onnx"),
    "package": (
        archive("a/.data/extern_modules", "a/data.pkl"),
        "torch.package",
        "PackageImporter",
    ),
}
READERS = {
    "PytorchReader": PytorchReader,
    "PytorchStore": lambda path: PytorchStore.from_file(path).keys(),
    "PyTorchFileRecorder": lambda path: PyTorchFileRecorder().load(path),
    "TensorFile": TensorFile,
    "describe": describe,
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_of_another_program_is_called_what_it_is(reader, kind, tmp_path):
    data, told, cure = KINDS[kind]
    path = tmp_path / kind
    path.write_bytes(data)
    with pytest.raises(RecordError) as error:
        READERS[reader](path)
    assert told in str(error.value)
    assert cure in error.value.cure
    assert "download" not in error.value.cure


class Net(Module):
    norm: nn.GroupNorm | nn.InstanceNorm


def torch_file(path, value):
    torch = pytest.importorskip("torch", reason="PyTorch makes the files")
    torch.save(value(torch), path)
    return path


@pytest.mark.filterwarnings("ignore:.*(sparse|quantiz|deprecated)")
@pytest.mark.parametrize(
    "kind", ["sparse", "complex", "quantized", "an array of NumPy"]
)
def test_a_wanted_tensor_that_cannot_be_read_is_named_with_its_reason(
    kind, tmp_path, capsys
):
    def value(torch):
        weight = {
            "sparse": lambda: torch.eye(2).to_sparse(),
            "complex": lambda: torch.ones(2, 2, dtype=torch.complex64),
            "quantized": lambda: torch.quantize_per_tensor(
                torch.eye(2), 0.1, 0, torch.qint8
            ),
            "an array of NumPy": lambda: np.eye(2),
        }[kind]()
        return {"weight": weight, "bias": torch.zeros(2)}

    path = torch_file(tmp_path / "a.pt", value)
    model = nn.LinearConfig(2, 2).init(Numpy())
    for load in (
        lambda: model.load_record(PyTorchFileRecorder().load(path)),
        lambda: model.load_from(PytorchStore.from_file(path)),
        lambda: PyTorchFileRecorder().load(path, None, model),
    ):
        with pytest.raises(RecordError) as error:
            load()
        assert f"\n  weight  {'a tensor that is ' * (kind[:2] != 'an')}{kind}" in str(
            error.value
        )
        assert "before torch.save" in str(error.value)
    _, report = model.load_partial(PyTorchFileRecorder().load(path))
    assert kind in report.kept["weight"]
    if kind != "an array of NumPy":
        assert main(["import-pytorch", str(path), "--check"]) == 1
        assert main(["import-pytorch", str(path), "-o", str(tmp_path / "o.mpk")]) == 1
        assert not (tmp_path / "o.mpk").exists()
        assert kind in capsys.readouterr().out


@pytest.mark.parametrize("layer", ["GroupNorm", "InstanceNorm"])
@pytest.mark.parametrize("inside", [False, True])
def test_layers_with_another_formula_are_told(layer, inside, tmp_path):
    def value(torch):
        made = {
            "GroupNorm": lambda: torch.nn.GroupNorm(2, 4),
            "InstanceNorm": lambda: torch.nn.InstanceNorm1d(4, affine=True),
        }[layer]()
        return {f"norm.{name}": tensor for name, tensor in made.state_dict().items()}

    path = torch_file(tmp_path / "a.pt", value)
    configs = {
        "GroupNorm": nn.GroupNormConfig(2, 4),
        "InstanceNorm": nn.InstanceNormConfig(4),
    }
    config = configs[layer].with_epsilon_inside(inside)
    model = Net(config.init(Numpy()))
    for load in (
        lambda: model.load_record(PyTorchFileRecorder().load(path)),
        lambda: model.load_from(PytorchStore.from_file(path)),
    ):
        if inside:
            load()
            continue
        with pytest.warns(UserWarning, match="PyTorch computes") as told:
            load()
        assert f"try: {layer}Config(…).with_epsilon_inside(True)" in str(
            told[0].message
        )
