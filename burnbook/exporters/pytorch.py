"""Weights for PyTorch: a state dict that `load_state_dict` takes as it is.

    to_pytorch(model, "model.pt")            torch.load("model.pt", weights_only=True)
    to_pytorch(model, "model.safetensors")   safetensors.torch.load_file(...)

Names and layout are those of PyTorch's own layers, by the table that reads its files
(`burnbook.importers.torch_layers`): the weight of a Linear is turned, norms have
`weight` and `bias`, and BatchNorm its `num_batches_tracked`.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from burnbook.core.dtypes import Float
from burnbook.core.errors import RecordError
from burnbook.core.files import PathLike, atomic_write, printable
from burnbook.exporters.paths import export_path
from burnbook.exporters.torch_pickle import torch_pickle
from burnbook.importers.adapter import Adapter, BurnToPyTorchAdapter
from burnbook.importers.lazy_array import LazyArray
from burnbook.importers.safetensors import as_written
from burnbook.importers.torch_layers import pytorch_arrays
from burnbook.module.module import Module
from burnbook.record.safetensors_format import encode
from burnbook.record.tree import Trouble

ALIGNMENT = 64  # bytes, of every storage, so that a file can be mapped into memory
ROOT = "archive"
ZIP64_EXTRA = 20  # bytes that a member of more than 2 GB has more in its header
ENDINGS = (".pt", ".pth", ".bin", ".ckpt")
SAFE = ".safetensors"


def to_pytorch(
    module: Module,
    path: PathLike,
    *,
    adapter: Adapter | None = None,
    top_level_key: str | None = None,
    names: Mapping[str, str] | None = None,
) -> Path:
    """Write a module's parameters as the state dict of its twin in PyTorch.

    path: its ending chooses the format: .pt, .pth, .bin and .ckpt are PyTorch's own,
        a zip archive with a pickle that `torch.load(path, weights_only=True)` reads;
        .safetensors is what its name says. The file appears whole or not at all.
    adapter: changes the arrays on the way; HalfPrecisionAdapter() for half the size.
    top_level_key: the key below which the state dict stands, as in a checkpoint.
    names: other names of parts and parameters by their paths here, as a module has them
        that comes from ONNX: `original_names(module)`. Whole numbers and truths, as
        masks are, are left out then: most are constants of the graph. A weight that has
        a name of its own, and not that of its Linear, is a bare nn.Parameter there
        (`x @ self.text_projection`): it is written as it lies here.

    The twin has the same parts under the same names: a field of a class is an attribute
    there, a list is an nn.ModuleList or nn.Sequential, whose Dropouts and activations
    count as parts. Several Lstms in a list, each reading the one before, are one
    nn.LSTM with num_layers. Quantized weights are written as the numbers they stand
    for, adapters of LoRA under their names beside the weight. A bias that only some
    gates or some of query, key and value have is zero in the others.

    Raises:
        RecordError: PyTorch has no such layer (an Lstm with input_forget), the ending
            is another one, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> from burnbook.backend import Numpy
        >>> from burnbook.importers import SafetensorsStore, PyTorchToBurnAdapter
        >>> from burnbook.nn import LinearConfig
        >>> folder = tempfile.TemporaryDirectory()
        >>> layer = LinearConfig(2, 3).init(Numpy())
        >>> path = to_pytorch(layer, folder.name + "/linear.safetensors")
        >>> store = SafetensorsStore.from_file(path)
        >>> store.get_snapshot("weight")
        LazyArray(weight: f32 [3, 2])
        >>> store = store.with_from_adapter(PyTorchToBurnAdapter())
        >>> _, result = LinearConfig(2, 3).init(Numpy()).load_from(store)
        >>> result
        ApplyResult(2 applied)
        >>> folder.cleanup()
    """
    named = export_path("to_pytorch", module, path)
    where = f"write {printable(path)}"
    if not isinstance(module, Module):
        what = f"{type(module).__name__} is not a module"
        cure = "config.init(device).load_record(record): a record alone has no layers"
        raise RecordError(where, what, cure=cure)
    if not named.name.endswith((*ENDINGS, SAFE)):
        what = "the ending names no format of PyTorch"
        cure = ", ".join((*ENDINGS, SAFE))
        raise RecordError(where, what, cure=cure)
    chosen = None if names is None else lambda spot: spot.param.kind is Float
    adapt = (adapter or BurnToPyTorchAdapter()).adapt
    arrays = pytorch_arrays(module, adapt, chosen, bare=names or ())
    arrays = arrays if names is None else _renamed(arrays, names, where)
    if named.name.endswith(SAFE):
        if top_level_key:
            arrays = {f"{top_level_key}.{name}": held for name, held in arrays.items()}
        return _write_safetensors(arrays, named)
    values: Mapping[str, Any] = {name: held.load() for name, held in arrays.items()}
    return write_state_dict({top_level_key: values} if top_level_key else values, named)


def _renamed(
    arrays: Mapping[str, LazyArray], names: Mapping[str, str], where: str
) -> dict[str, LazyArray]:
    """Arrays under other names: the longest path that begins one is replaced."""
    found: dict[str, LazyArray] = {}
    for name, array in arrays.items():
        words = name.split(".")
        for end in range(len(words), 0, -1):
            told = names.get(".".join(words[:end]))
            if told is not None:
                words[:end] = [told]
                break
        wanted = ".".join(word for word in words if word)
        if wanted in found:
            what = f"two parameters are called {wanted}"
            raise RecordError(where, what, cure="another name for one, in names")
        found[wanted] = array
    return found


def write_state_dict(values: Mapping[str, Any], path: PathLike) -> Path:
    """Write names and values as a `.pt` file, for `torch.load(weights_only=True)`.

    values: TensorData, numbers, texts, truth values, None, and lists and dicts of
        them, by name; names and layout stay as they are. Each tensor has a storage of
        its own, and starts at a multiple of 64 bytes (`torch.load(mmap=True)`).

    Raises:
        RecordError: something else is among them, or the file cannot be written.

    Example:
        >>> import tempfile
        >>> from burnbook.tensor import TensorData
        >>> folder = tempfile.TemporaryDirectory()
        >>> checkpoint = {"epoch": 3, "model": {"weight": TensorData([[1.0, 2.0]])}}
        >>> path = write_state_dict(checkpoint, folder.name + "/checkpoint.pt")
        >>> sorted(zipfile.ZipFile(path).namelist())
        ['archive/byteorder', 'archive/data.pkl', 'archive/data/0', 'archive/version']
        >>> folder.cleanup()
    """
    target = Path(path)
    try:
        pickled, tensors = torch_pickle(values)
    except RecordError as error:
        error.where = f"write {printable(path)}: {error.where}"
        raise
    with (
        atomic_write(target, RecordError) as file,
        zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive,
    ):
        _add(archive, "data.pkl", pickled)
        _add(archive, "byteorder", b"little")
        for key, data in enumerate(tensors):
            _add(archive, f"data/{key}", data.as_bytes())
        _add(archive, "version", b"3\n")
    return target


def _add(archive: zipfile.ZipFile, name: str, content: bytes | memoryview) -> None:
    """Add a member that starts at a multiple of 64 bytes, padded as PyTorch pads."""
    member = zipfile.ZipInfo(f"{ROOT}/{name}")  # of 1980: equal files are equal bytes
    member.file_size = size = memoryview(content).nbytes
    assert archive.fp is not None
    start = archive.fp.tell() + 30 + len(member.filename) + 4
    if size * 1.05 > zipfile.ZIP64_LIMIT:
        start += ZIP64_EXTRA
    padding = bytes(-start % ALIGNMENT)
    member.extra = struct.pack("<2sH", b"FB", len(padding)) + padding
    with archive.open(member, "w") as entry:
        entry.write(content)


def _write_safetensors(arrays: Mapping[str, LazyArray], target: Path) -> Path:
    parts = [as_written(array, name) for name, array in arrays.items()]
    try:
        with atomic_write(target, RecordError) as file:
            file.writelines(encode(parts, {"format": "pt"}))
    except Trouble as trouble:
        where = f"write {printable(target)}"
        raise trouble.explain(where, [], "another name") from None
    return target
