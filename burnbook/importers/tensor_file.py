"""TensorFile: the tensors of any file of weights by name, read one by one.

    file = TensorFile("model.pt")
    file.names, file.shapes, file.dtypes   # in milliseconds, however large the file is
    file.load("conv1.weight").mean()       # reads this one

PyTorch's files (`.pt`, `.pth`, in all their forms), safetensors and their shards, ONNX,
and Burn's records in every format.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from burnbook.core.errors import RecordError
from burnbook.core.files import (
    PathLike,
    fixed,
    open_regular,
    printable,
    within_memory,
)
from burnbook.importers.lazy_array import FLOAT8
from burnbook.importers.onnx.file import OnnxFile
from burnbook.importers.pytorch_reader import PytorchReader
from burnbook.importers.torch_values import item_size
from burnbook.module.param import ParamRecord
from burnbook.record.inspection import (
    Entry,
    RecordSummary,
    entries_of,
    is_safetensors,
    leaves_of,
    recorder_for,
)
from burnbook.record.mapped import can_be_mapped, read_mapped
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.record.tree import Metadata, short
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import QFloat

PIECE = 1 << 20  # elements at a time
MOST_NEAR = 2_000  # names that a wrong one is compared with
CHANGED = "the file has changed since it was opened"
TORCH = (".pt", ".pth", ".ckpt", ".pt.tar", ".th")
_SAFE = {"BF16": "bf16", "BOOL": "bool"}
_WIDTHS = {"f4_e2m1fn": 0.5, "i4": 0.5, "u4": 0.5, "c64": 8.0, "c128": 16.0}


class TensorFile:
    """The tensors of a file by name; opening it reads names, shapes and types only.

    path: a file, or a folder with shards of safetensors.
    kind: of which format it is. names, shapes, dtypes, sizes: of the tensors, in the
        order of the file; sizes in bytes. others: what is no tensor, by name.
    facts: what the file says of itself. onnx: the graph, of an ONNX file.

    Example:
        >>> import tempfile
        >>> from burnbook.record import SafetensorsRecorder
        >>> folder = tempfile.TemporaryDirectory()
        >>> tree = {"fc": {"weight": TensorData([[1.0, 2.0]])}}
        >>> file = TensorFile(SafetensorsRecorder().record(tree, folder.name + "/m"))
        >>> file
        TensorFile(m.safetensors: safetensors, 1 tensor)
        >>> file.shapes, file.load("fc.weight").tolist()
        ([(1, 2)], [[1.0, 2.0]])
        >>> folder.cleanup()

    Raises:
        RecordError: there is no such file, it is damaged or of no known format.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = fixed(path)
        self.where = f"read {printable(path)}"
        self.names: list[str] = []
        self.shapes: list[tuple[int, ...]] = []
        self.dtypes: list[str] = []
        self.sizes: list[int] = []
        self.others: dict[str, str] = {}
        self.facts: list[tuple[str, str]] = []
        self.note = ""
        self.onnx: OnnxFile | None = None
        self._summary: RecordSummary | None = None
        self._mark = None if self.path.is_dir() else _mark(self.path)
        if self.path.name.endswith(".onnx"):
            self._read = self._open_onnx()
        elif is_safetensors(self.path):
            self._read = self._open_safetensors()
        elif is_of_pytorch(self.path):
            self._read = self._open_pytorch()
        else:
            self._read = self._open_record()
        self._places: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self.places

    @property
    def places(self) -> dict[str, int]:
        """Where each name stands in `names`."""
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self.names)}
        return self._places

    @property
    def num_elements(self) -> int:
        """How many numbers all tensors hold together."""
        return sum(map(prod, self.shapes))

    def load(self, name: str) -> np.ndarray:
        """The elements as plain numbers: bf16, float8 and quantized ones as f32.

        Raises:
            RecordError: there is no such tensor, the file has changed since it was
                opened, or its element type has no counterpart.
        """
        pieces = list(self.pieces(name))
        shape = self.shapes[self.places[name]]
        whole = np.concatenate(pieces) if len(pieces) > 1 else pieces[0]
        return whole.reshape(shape)

    def pieces(self, name: str) -> Iterator[np.ndarray]:
        """The same one piece after the other, each of at most a million elements.

        Why: statistics of a tensor of gigabytes need no second copy of it.
        """
        if name not in self.places:
            what = f"there is no tensor {short(repr(name))}"
            near = get_close_matches(name, self.names[:MOST_NEAR], 1)
            raise RecordError(self.where, what, cure=short(near[0]) if near else None)
        if self._mark is not None and _mark(self.path) != self._mark:
            raise RecordError(self.where, CHANGED, cure="opening it again")
        with within_memory(f"{self.where}: {short(name)}", RecordError):
            return _in_pieces(self._read(name))

    def _add(
        self, name: str, shape: tuple[int, ...], dtype: str, size: int | None = None
    ) -> None:
        self.names.append(name)
        self.shapes.append(shape)
        self.dtypes.append(dtype)
        self.sizes.append(_num_bytes(shape, dtype) if size is None else size)

    def _open_pytorch(self) -> Callable[[str], Any]:
        reader = PytorchReader(self.path)
        for name, array in reader.arrays.items():
            size = prod(array.shape) * item_size(array.dtype)
            self._add(name, array.shape, array.dtype, size)
        self.others = reader.skipped
        about = reader.metadata()
        self.kind = f"PyTorch, {about.format_type}"
        self.facts = [("version", about.pytorch_version)]
        self.facts += [("byte order", "big")] if about.byte_order == "big" else []
        return lambda name: reader[name].load()

    def _open_safetensors(self) -> Callable[[str], Any]:
        file = SafetensorsFile(self.path)
        for name, entry in file.entries.items():
            dtype = _SAFE.get(entry.dtype, entry.dtype.lower())
            self._add(name, entry.shape, dtype, entry.end - entry.start)
        self.kind = "safetensors"
        self.facts = [(short(k), short(text, 120)) for k, text in file.texts.items()]
        if len(file.paths) > 1:
            self.note = f"in {len(file.paths)} files"
            self.facts.append(("files", str(len(file.paths))))
        return lambda name: file[name]

    def _open_onnx(self) -> Callable[[str], Any]:
        self.onnx = file = OnnxFile(self.path)
        for name, weight in file.weights.items():
            self._add(name, weight.shape, weight.dtype, weight.num_bytes)
        self.kind = "ONNX"
        self.facts = file.facts()
        return file.load

    def _open_record(self) -> Callable[[str], Any]:
        recorder = recorder_for(self.path, self.where)
        mapped = can_be_mapped(recorder)

        def record() -> Any:
            path = self.path
            return read_mapped(recorder, path) if mapped else recorder.read(path)

        opened = record()
        entries, note = entries_of(opened.item)
        for entry in entries:
            if entry.value:
                self.others[entry.name] = entry.value
            else:
                self._add(entry.name, entry.shape, entry.dtype)
        meta = opened.metadata
        self.kind = meta.format.split("<")[0].split(":")[-1] or type(recorder).__name__
        texts = getattr(meta, "texts", {})
        self.facts = [(short(k), short(text, 120)) for k, text in texts.items()]
        self.facts += [("precision", short(meta.settings))] if meta.settings else []
        self.facts += [("Burn", short(meta.version))] if meta.version else []
        self.note = note
        self._summary = RecordSummary(self.path, meta, entries, note)
        held = opened if mapped else None
        where = self.where
        return lambda name: _leaf((held or record()).item, self.places[name], where)

    def describe(self) -> RecordSummary:
        """The same as a table to print, with rows to iterate over."""
        if self._summary is not None:
            return self._summary
        rows = zip(self.names, self.shapes, self.dtypes, strict=True)
        entries = [Entry(short(n), shape, dtype) for n, shape, dtype in rows]
        entries += [
            Entry(short(n), (), "", value=short(v)) for n, v in self.others.items()
        ]
        notes = [self.note] if self.note else []
        if self.onnx is not None:
            notes += _about_graph(self.onnx)
        words = ", ".join(f"{key} {text}" for key, text in self.facts[:4] if text)
        metadata = Metadata("", "", self.kind, "", words)
        return RecordSummary(self.path, metadata, tuple(entries), "\n  ".join(notes))

    def __repr__(self) -> str:
        count = f"{len(self)} tensor" + ("" if len(self) == 1 else "s")
        return f"TensorFile({short(self.path.name)}: {self.kind}, {count})"


def describe_file(path: PathLike) -> RecordSummary:
    """What a file of PyTorch or an ONNX file holds; no elements are read."""
    return TensorFile(path).describe()


def is_of_pytorch(path: Path) -> bool:
    """Whether a file is one of PyTorch, by its name or its first bytes."""
    if path.name.endswith(TORCH):
        return True
    if path.suffix not in (".bin", ".tar", ".jit", ".model", ".pkl"):
        return False
    with open_regular(path, RecordError) as file:
        head = file.read(262)
    if head[257:262] == b"ustar":
        return True
    return head[:4] == b"PK\x03\x04" or (head[:1] == b"\x80" and head[1:2] < b"\x06")


def _about_graph(file: OnnxFile) -> list[str]:
    """Inputs, outputs and operators of a graph in a few lines."""
    counts: dict[str, int] = {}
    for node in file.nodes:
        counts[node.op] = counts.get(node.op, 0) + 1
    most = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    lines = [
        f"{word} {short(name)}  {short(file.types.get(name, 'of unknown type'), 80)}"
        for word, names in (("input", file.inputs), ("output", file.outputs))
        for name in names[:20]
    ]
    shown = ", ".join(f"{short(op, 40)} {count}" for op, count in most[:12])
    more = ", …" if len(most) > 12 else ""
    return [*lines, f"{len(file.nodes)} nodes: {shown}{more}"]


def _num_bytes(shape: tuple[int, ...], dtype: str) -> int:
    count = prod(shape)
    if dtype in FLOAT8 or dtype in ("bool", "text"):
        return count if dtype != "text" else 0
    if dtype in _WIDTHS:
        return int(count * _WIDTHS[dtype])
    bits = "".join(letter for letter in dtype if letter.isdigit())
    return count * int(bits) // 8 if bits and len(bits) < 3 else count


def _mark(path: Path) -> tuple[int, int, int]:
    """What changes when a file does."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return 0, 0, 0
    return found.st_size, found.st_ino, found.st_mtime_ns


def _leaf(item: Any, place: int, where: str) -> TensorData:
    """The tensor at a place among those of a record, as `entries_of` counts them."""
    for at, data in enumerate(leaves_of(item)):
        if at == place:
            return data
    raise RecordError(where, CHANGED, cure="opening it again")


def _in_pieces(held: Any) -> Iterator[np.ndarray]:
    """The elements of what was loaded, as arrays that NumPy can average."""
    if isinstance(held, ParamRecord):
        held = held.param
    if isinstance(held, TensorData) and isinstance(held.dtype, QFloat):
        held = held.dequantize()
    dtype = held.dtype if isinstance(held, TensorData) else ""
    array = held.array if isinstance(held, TensorData) else np.asarray(held)
    flat = array.reshape(-1)
    for at in range(0, max(flat.size, 1), PIECE):
        part = flat[at : at + PIECE]
        if dtype == "bf16":
            part = (part.astype(np.uint32) << 16).view(np.float32)
        elif part.dtype.kind == "V" or part.dtype.name.startswith(("bfloat", "float8")):
            part = part.astype(np.float32)
        elif part.dtype.name in ("int4", "uint4", "int2", "uint2"):
            part = part.astype(np.int8 if part.dtype.name[0] == "i" else np.uint8)
        yield part
