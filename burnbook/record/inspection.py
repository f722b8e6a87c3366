"""What is in a record file, without a model to load it into.

print(describe("checkpoint/model-3.mpk"))
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from math import prod
from pathlib import Path
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import (
    PathLike,
    at_home,
)
from burnbook.module.param import ParamRecord
from burnbook.record.binary import BinFileRecorder, BinGzFileRecorder, SealedRecord
from burnbook.record.burnpack import BurnpackRecorder, NamedMetadata
from burnbook.record.flat import ATTACHED
from burnbook.record.foreign import guess
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
    only the names are read, also of a folder with shards or of their index, and so are
    those of PyTorch's files and of ONNX's.
    """
    path = at_home(path)
    if is_safetensors(Path(path)):
        return _describe_safetensors(Path(path))
    other = _reader_of_others(Path(path))
    if other is not None:
        return other(path)
    recorder = recorder_for(Path(path), f"describe {path}")
    record = recorder.read(path)
    entries, note = entries_of(record.item)
    return RecordSummary(Path(path), record.metadata, entries, note)


def _reader_of_others(path: Path) -> Callable[[PathLike], RecordSummary] | None:
    """What describes files that are no records, if this is one by its name.

    Why: importers stand on records and not the other way round, so the place of that
    function is looked up when it is needed.
    """
    if not path.name.endswith(tuple(_FOREIGN)):
        return None
    home, name = OTHERS
    return getattr(import_module(home), name)


def entries_of(item: object) -> tuple[tuple[Entry, ...], str]:
    """The rows of what a record holds, and what a format without names leaves open."""
    item, note = _opened(item)
    return tuple(_entries(item, "")), note


def leaves_of(item: object) -> Iterator[TensorData]:
    """The tensors of a record, in the order of its rows."""
    for _, data in _walk(_opened(item)[0], ""):
        if isinstance(data, ParamRecord):
            data = data.param
        if isinstance(data, TensorData):
            yield data


def _opened(item: object) -> tuple[object, str]:
    """What a record holds, of bincode as far as that can be told without names."""
    if not isinstance(item, SealedRecord):
        return item, ""
    found = list(item.scan())
    if found:
        return found, ""
    states = item.scan_states()
    return states, OPTIMIZER if states else UNKNOWN


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


OTHERS = ("burnbook.importers.tensor_file", "describe_file")
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
    head = _head(path)
    kind, cure = guess(head) if head else ("", "")
    if kind:
        raise RecordError(where, f"this is {kind}", cure=cure)
    endings = [f".{r.extension}" for r in _RECORDERS]
    known = ", ".join([*endings, *_FOREIGN])
    raise RecordError(
        where,
        "the name does not say which format this is",
        [("expected", f"a name that ends in {known}")],
        "renaming the file",
    )


def recorder_to_write(target: Path, source: Path) -> FileRecorder:
    """The recorder for a file that is to be written from the record in `source`."""
    where = f"write {target}"
    written = _WRITTEN.get(target.suffix)
    if written is not None:
        kind, command, more = written
        what = f"{kind} is no record; {command} writes it"
        cure = f"burnbook {command} {source} {target} --module package.file:function"
        raise RecordError(where, what, cure=cure + more)
    for recorder in _RECORDERS:
        if target.name.endswith(f".{recorder.extension}"):
            return recorder()
    endings = ", ".join(f".{recorder.extension}" for recorder in _RECORDERS)
    raise RecordError(
        where,
        "the name does not say which format it is to have",
        [("expected", f"a name that ends in {endings}")],
        f"burnbook convert {source} {target.with_suffix('.safetensors')}",
    )


_EXAMPLE = " --input 1x28x28"
_WRITTEN = {
    **dict.fromkeys(
        (".pt", ".pth", ".ckpt"), ("a file of PyTorch", "export-pytorch", "")
    ),
    ".onnx": ("an ONNX model", "export-onnx", _EXAMPLE),
    ".js": ("JavaScript", "export-javascript", _EXAMPLE),
}
_TORCH = (
    "a file of PyTorch is no record",
    "burnbook import-pytorch FILE -o OUT.mpk --module package.file:function, "
    "or PyTorchFileRecorder in burnbook.importers.pytorch",
)
_FOREIGN = {
    **dict.fromkeys((".pt", ".pth", ".ckpt"), _TORCH),
    ".onnx": (
        "an ONNX model is no record",
        "burnbook import-onnx FILE -o FOLDER, or burnbook.importers.onnx.load",
    ),
}


def _head(path: Path) -> bytes:
    """The first bytes of a file; none where there is no such file."""
    try:
        with path.open("rb") as file:
            return file.read(512) if path.is_file() else b""
    except (OSError, ValueError):
        return b""


def _entries(item: object, name: str) -> list[Entry]:
    found: list[Entry] = []
    for path, held in _walk(item, name):
        if isinstance(held, ParamRecord):
            data, number = held.param, held.id
            found.append(Entry(path, tuple(data.shape), _name_of(data), number))
        elif isinstance(held, TensorData):
            found.append(Entry(path, tuple(held.shape), _name_of(held)))
        else:
            text = short(repr(held))
            found.append(Entry(path, (), type(held).__name__, value=text))
    return found


def _walk(item: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Everything in a record that is no map or list, with its name."""
    if isinstance(item, ParamRecord | TensorData):
        yield name, item
    elif isinstance(item, dict) and name and set(item) == {"base", ATTACHED}:
        yield from _walk(item["base"], name)
        yield from _walk(item[ATTACHED], f"{name}.{ATTACHED}")
    elif isinstance(item, dict | list):
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        for key, value in pairs:
            yield from _walk(value, f"{name}.{short(key)}" if name else short(key))
    elif item is not None:
        yield name, item


def _name_of(data: TensorData) -> str:
    """The element type; of codes the scheme, without the numbers."""
    dtype = data.dtype
    return repr(dtype.strategy.scheme) if isinstance(dtype, QFloat) else dtype
