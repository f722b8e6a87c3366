"""What is in a record file, without a model to load it into.

print(describe("checkpoint/model-3.mpk"))
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import PathLike
from burnbook.module.param import ParamRecord
from burnbook.record.binary import BinFileRecorder, BinGzFileRecorder, SealedRecord
from burnbook.record.burnpack import BurnpackRecorder, NamedMetadata
from burnbook.record.flat import ATTACHED
from burnbook.record.recorder import (
    FileRecorder,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    NamedMpkGzFileRecorder,
    PrettyJsonFileRecorder,
)
from burnbook.record.safe import SafetensorsRecorder
from burnbook.record.safetensors_files import ENDING, INDEX, SafetensorsFile
from burnbook.record.tree import Metadata, short
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import QFloat


@dataclass(frozen=True)
class Entry:
    """One row: a tensor with shape and dtype, or a value that is not a tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    id: str = ""  # of a parameter
    value: str = ""  # of a number or text

    def __iter__(self) -> Any:
        return iter((self.name, self.shape, self.dtype))


@dataclass(frozen=True, repr=False)
class RecordSummary:
    """Metadata and entries of a record; prints as a table."""

    path: Path
    metadata: Metadata
    entries: tuple[Entry, ...]
    note: str = ""  # what a format without names leaves open

    @property
    def num_elements(self) -> int:
        """How many numbers all tensors hold together."""
        return sum(prod(e.shape) for e in self.entries if not e.value)

    def __iter__(self) -> Any:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        return f"RecordSummary({self.path.name}, {len(self)} entries)"

    def __str__(self) -> str:
        meta = self.metadata
        kind = meta.format.split("<")[0].split(":")[-1]
        version = meta.version and f"Burn {meta.version}"
        about = [short(text) for text in (kind, meta.settings, version) if text]
        lines = [f"{self.path.name}: {', '.join(about)}"]
        rows = [(e.name, e.value or str(list(e.shape)), e.dtype) for e in self.entries]
        wide = [max((len(row[i]) for row in rows), default=0) for i in (0, 1)]
        lines += [f"  {n:<{wide[0]}}  {s:<{wide[1]}}  {d}" for n, s, d in rows]
        tensors = sum(not e.value for e in self.entries)
        lines.append(f"  {tensors} tensors, {self.num_elements} elements")
        lines += [f"  {self.note}"] if self.note else []
        return "\n".join(lines)


def describe(path: PathLike) -> RecordSummary:
    """List what a record file holds, whatever its precision and kind.

    Iterating gives rows that unpack as (name, shape, dtype). Bincode has no names:
    there parameters are numbered, and so are the tensors of each state. Of safetensors
    only the names are read, also of a folder with shards or of their index.
    """
    if is_safetensors(Path(path)):
        return _describe_safetensors(Path(path))
    recorder = recorder_for(Path(path), f"describe {path}")
    record = recorder.read(path)
    item = record.item
    note = ""
    if isinstance(item, SealedRecord):
        sealed, item = item, list(item.scan())
        if not item:
            item = sealed.scan_states()
            note = OPTIMIZER if item else UNKNOWN
    entries = tuple(_entries(item, ""))
    return RecordSummary(Path(path), record.metadata, entries, note)


def is_safetensors(path: Path) -> bool:
    """Whether a path is that of safetensors: a file, an index, a folder with some."""
    if path.name.endswith((ENDING, INDEX)):
        return True
    try:
        return path.is_dir() and any(path.glob(f"*{ENDING}*"))
    except (OSError, ValueError):  # a name that no file can have
        return False


def _describe_safetensors(path: Path) -> RecordSummary:
    """The names of one file or of several shards."""
    with SafetensorsFile(path) as file:
        rows = [
            Entry(short(one.name), one.shape, one.dtype.lower())
            for one in file.entries.values()
        ]
        metadata = NamedMetadata("", "", "SafetensorsRecorder", "", "", file.texts)
        note = ""
        if len(file.paths) > 1:
            names = ", ".join(short(shard.name) for shard in file.paths[:3])
            more = ", …" if len(file.paths) > 3 else ""
            note = f"in {len(file.paths)} files: {names}{more}"
        return RecordSummary(path, metadata, tuple(rows), note)


OPTIMIZER = (
    "the states of an optimizer by the ids of its parameters; bincode has no names, "
    "and numbers such as the steps made are seen in the optimizer alone"
)
UNKNOWN = (
    "no parameter is found: a schedule or a module without parameters; bincode has no "
    "names, so it opens where it was made"
)


_RECORDERS: list[type[FileRecorder]] = [
    NamedMpkGzFileRecorder,
    JsonGzFileRecorder,
    NamedMpkFileRecorder,
    PrettyJsonFileRecorder,
    BurnpackRecorder,
    SafetensorsRecorder,
    BinGzFileRecorder,
    BinFileRecorder,
]


def recorder_for(path: Path, where: str) -> FileRecorder:
    """The recorder that the name of a file asks for."""
    for recorder in _RECORDERS:
        if path.name.endswith(f".{recorder.extension}"):
            return recorder()
    for ending, (kind, cure) in _FOREIGN.items():
        if path.name.endswith(ending):
            raise RecordError(where, kind, cure=cure)
    known = ", ".join(f".{r.extension}" for r in _RECORDERS)
    raise RecordError(
        where,
        "the name does not say which format this is",
        [("expected", f"a name that ends in {known}")],
        "renaming the file",
    )


_TORCH = (
    "a file of PyTorch is no record",
    "burnbook import-pytorch FILE -o OUT.mpk --module package.file:function, "
    "or PyTorchFileRecorder in burnbook.importers.pytorch",
)
_FOREIGN = {
    **dict.fromkeys((".pt", ".pth", ".ckpt"), _TORCH),
    ".onnx": (
        "an ONNX model cannot be read or written yet",
        "its weights as safetensors",
    ),
}


def _entries(item: object, name: str) -> list[Entry]:
    if isinstance(item, ParamRecord):
        return [Entry(name, tuple(item.param.shape), _name_of(item.param), item.id)]
    if isinstance(item, TensorData):
        return [Entry(name, tuple(item.shape), _name_of(item))]
    if isinstance(item, dict) and name and set(item) == {"base", ATTACHED}:
        inside = _entries(item[ATTACHED], f"{name}.{ATTACHED}")
        return _entries(item["base"], name) + inside
    if isinstance(item, dict | list):
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        inner = [
            _entries(v, f"{name}.{short(k)}" if name else short(k)) for k, v in pairs
        ]
        return [entry for entries in inner for entry in entries]
    if item is None:
        return []
    return [Entry(name, (), type(item).__name__, value=short(repr(item)))]


def _name_of(data: TensorData) -> str:
    """The element type; of codes the scheme, without the numbers."""
    dtype = data.dtype
    return repr(dtype.strategy.scheme) if isinstance(dtype, QFloat) else dtype
