"""Parameters in the format of Hugging Face: the store of newer Burn, both ways, and the
recorder of Burn 0.18 to 0.20.

    store = SafetensorsStore.from_file("model.safetensors")
    model, result = model.load_from(store.with_from_adapter(PyTorchToBurnAdapter()))
    model.save_into(SafetensorsStore.from_file("mine.safetensors"))

A file is mapped into memory, and only what a module takes is read; of a folder with
shards likewise (`burnbook.record.safetensors_files`).
"""

from __future__ import annotations

import enum
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.errors import ConfigError, RecordError
from burnbook.core.files import (
    PathLike,
    atomic_write,
    fixed,
    printable,
    shown_path,
)
from burnbook.core.versions import VERSION
from burnbook.importers.adapter import Adapter, IdentityAdapter, PyTorchToBurnAdapter
from burnbook.importers.apply_result import ApplyResult
from burnbook.importers.key_remap import KeyRemapper
from burnbook.importers.lazy_array import LazyArray
from burnbook.importers.pytorch import (
    FileArgs,
    PyTorchFileRecorder,
    PyTorchRecord,
    debug_text,
)
from burnbook.importers.store import ModuleStore
from burnbook.importers.torch_layers import Source, Spot
from burnbook.module.module import Module
from burnbook.record.flat import nest
from burnbook.record.layout import DTYPES
from burnbook.record.quantized import DEQUANTIZE
from burnbook.record.safetensors_files import SafetensorsFile
from burnbook.record.safetensors_format import EIGHT_BITS, Written, encode
from burnbook.record.tree import BurnRecord, Trouble
from burnbook.tensor.qfloat import QFloat

M = TypeVar("M", bound=Module)


class SafetensorsStore(ModuleStore):
    """The parameters of a module in a safetensors file, in shards, or in memory.

    By default names and layout are Burn's own, or PyTorch's where the file says so
    (`format: pt`). For one of PyTorch that says nothing:
    `with_from_adapter(PyTorchToBurnAdapter())`; to write one,
    `with_to_adapter(BurnToPyTorchAdapter())`. Each method that changes something gives
    another store.

    Example:
        >>> from burnbook.backend import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> first, second = (LinearConfig(2, 3).init(Numpy()) for _ in range(2))
        >>> store = SafetensorsStore.from_bytes(None).metadata("author", "me")
        >>> saved = first.save_into(store)
        >>> second, result = second.load_from(SafetensorsStore.from_bytes(saved))
        >>> result, (second.weight.val() == first.weight.val()).all().into_scalar()
        (ApplyResult(2 applied), True)
    """

    def __init__(self, path: Path | None, data: bytes | None = None) -> None:
        """Use `from_file` or `from_bytes`."""
        super().__init__()
        self._path, self._data = path, data
        self._file: SafetensorsFile | None = None
        self._to_adapter: Adapter = IdentityAdapter()
        self._obeys = True  # what the file says of its layout
        self._overwrite = False
        self._texts: dict[str, str] | None = None

    @classmethod
    def from_file(cls, path: PathLike) -> Self:
        """A store in this file; to read, also a folder with shards or their index.

        The file need not be there yet; nothing is added to its name.
        """
        return cls(fixed(path))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview | None = None) -> Self:
        """A store in memory; None to save into.

        Raises:
            ConfigError: `data` is something else, such as a path.
        """
        if not isinstance(data, (bytes, bytearray, memoryview, type(None))):
            what = f"{type(data).__name__} is no file in memory"
            raise ConfigError("from_bytes", what, cure="from_file(path)")
        return cls(None, None if data is None else bytes(data))

    @property
    def source(self) -> str:
        """The path, or "bytes"."""
        return "bytes" if self._path is None else printable(shown_path(self._path))

    # Reading

    def read_arrays(self) -> Mapping[str, LazyArray]:
        """The arrays of the file or of all shards, by name.

        Raises:
            RecordError: there is no such file, or it is damaged.
        """
        file = self._opened()
        return {name: _lazy(file, name) for name in file}

    def with_from_adapter(self, adapter: Adapter) -> Self:
        """With this adapter for reading, whatever the file says of its layout."""
        made = super().with_from_adapter(adapter)
        made._obeys = False
        return made

    def apply_to(self, module: M) -> tuple[M, ApplyResult]:
        """The module with the values of the file, and what came of it; never an error
        because something does not fit.

        Raises:
            RecordError: the file itself cannot be read.
        """
        return ModuleStore.apply_to(self._as_said(), module)

    def load_into(self, module: M) -> tuple[M, ApplyResult]:
        """What `module.load_from(store)` gives: the loaded module, and a result.

        Raises:
            NotApplied: something is missing or does not fit, unless `allow_partial`,
                or the file holds more, unless `allow_unused`; see its `result`.
            RecordError: the file cannot be read.
        """
        return ModuleStore.load_into(self._as_said(), module)

    def _as_said(self) -> Self:
        """The store that reads the layout which the file says it has.

        Why: the weight of a square Linear fits either way round.
        """
        if self._obeys and self._opened().texts.get("format") in ("pt", "pytorch"):
            return self.with_from_adapter(PyTorchToBurnAdapter())
        return self

    def texts(self) -> dict[str, str]:
        """The free texts of the file: `format`, `producer` and others."""
        return dict(self._opened().texts)

    def _opened(self) -> SafetensorsFile:
        if self._file is None and self._path is not None:
            self._file = SafetensorsFile(self._path)
        if self._file is None:
            if self._data is None:
                what = "nothing has been saved into this store yet"
                raise RecordError("read bytes", what, cure="model.save_into(store)")
            self._file = SafetensorsFile.from_bytes(self._data)
        return self._file

    # Writing

    def metadata(self, name: str, text: str) -> Self:
        """With a text to write ahead of the tensors.

        Unless `clear_metadata` comes first, three others are written as well: `format`
        ("pt" in PyTorch's layout), `producer`, and `version`, that of the
        Burn whose layers these are.
        """
        if not isinstance(name, str) or not isinstance(text, str):
            what = "metadata are texts"
            raise ConfigError("metadata", what, cure=f"metadata({name!r}, str(value))")
        known = self._usual() if self._texts is None else self._texts
        return self._with(texts=known | {name: text})

    def clear_metadata(self) -> Self:
        """Without any texts."""
        return self._with(texts={})

    def overwrite(self, on: bool = True) -> Self:
        """Whether saving may replace a file; by default that is an error."""
        return self._with(overwrite=on)

    def with_to_adapter(self, adapter: Adapter) -> Self:
        """With an adapter for writing, such as BurnToPyTorchAdapter().

        Raises:
            ConfigError: this is no adapter.
        """
        if not isinstance(adapter, Adapter):
            what = f"{type(adapter).__name__} is no adapter"
            cure = "BurnToPyTorchAdapter()"
            raise ConfigError("with_to_adapter", what, cure=cure)
        return self._with(to_adapter=adapter)

    def save_from(self, module: Module) -> Path | bytes:
        """Write the parameters that the filter lets pass; gives the path, or the bytes.

        The file appears whole or not at all. Rules for names apply here as well.

        Raises:
            RecordError: a file is there already, without `overwrite(True)`; a parameter
                is quantized; two have one name; or the file cannot be written.
        """
        where = f"save {self.source}"
        arrays = self._to_adapter.collect(module, self._skip_variants, self._chosen)
        parts: dict[str, Written] = {}
        for old, array in arrays.items():
            name = self._remapper.renamed(old)
            if name in parts:
                what = f"two parameters would have the name {name}"
                raise RecordError(where, what, cure="other rules for names")
            if isinstance(array.dtype, QFloat):
                what = f"{name} is quantized, which this format cannot say"
                raise RecordError(where, what, cure=DEQUANTIZE)
            parts[name] = as_written(array, name)
        texts = self._usual() if self._texts is None else self._texts
        try:
            pieces = encode(parts.values(), texts)
            if self._path is None:
                self._data = b"".join(pieces)
            else:
                self._write(self._path, where, pieces)
        except Trouble as trouble:
            raise trouble.explain(where, [], "another name") from None
        self._file = self._named = None
        return self._path or self.get_bytes()

    def _write(self, path: Path, where: str, pieces: Any) -> None:
        if path.exists() and not self._overwrite:
            cure = "overwrite(True), or another path"
            raise RecordError(where, "there is such a file already", cure=cure)
        with atomic_write(path, RecordError) as file:
            file.writelines(pieces)

    def get_bytes(self) -> bytes:
        """What was given or saved, as the bytes of a file.

        Raises:
            RecordError: nothing has been saved yet, or the store is in a file.
        """
        if self._data is None:
            saved = self._path is None
            what = "nothing has been saved yet" if saved else "the store is in a file"
            cure = "model.save_into(store)" if saved else "path.read_bytes()"
            raise RecordError("get_bytes", what, cure=cure)
        return self._data

    def _usual(self) -> dict[str, str]:
        """The texts that say who wrote the file, and in whose layout."""
        kind = "pt" if self._to_adapter.in_pytorch else "safetensors"
        return {"format": kind, "producer": "burnbook", "version": VERSION}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.source})"


class AdapterType(enum.Enum):
    """Whose names and layout a file has: PyTorch's, or the module's own."""

    PyTorch = "PyTorch"
    NoAdapter = "NoAdapter"


@dataclass(frozen=True)
class LoadArgs(FileArgs):
    """What to read of a safetensors file, and how; each method gives other arguments.

    file: the path. key_remap: pairs of a pattern of Rust's regex and a replacement.
    adapter_type: whose names and layout it has (default PyTorch's). debug: print keys
    and shapes.

    Example:
        >>> args = LoadArgs("model.safetensors").with_key_remap(r"conv\\.(.*)", "$1")
        >>> args.with_adapter_type(AdapterType.NoAdapter).adapter_type
        <AdapterType.NoAdapter: 'NoAdapter'>
    """

    adapter_type: AdapterType = AdapterType.PyTorch
    debug: bool = False

    def with_adapter_type(self, adapter_type: AdapterType) -> Self:
        """With the names and the layout that the file has."""
        return replace(self, adapter_type=AdapterType(adapter_type))

    def with_debug_print(self) -> Self:
        """Print every key, what it is remapped to, its shape and its element type."""
        return replace(self, debug=True)


class SafetensorsFileRecorder(PyTorchFileRecorder):
    """Loads safetensors as in Burn 0.18 to 0.20: those of PyTorch, or of Burn.

    settings: to which precision floats and ints are converted, before the device's.

    Why: SafetensorsRecorder writes files too, and reads Burn's own layout.

    Example:
        >>> from burnbook.record import FullPrecisionSettings
        >>> SafetensorsFileRecorder(FullPrecisionSettings)
        SafetensorsFileRecorder(FullPrecisionSettings)
    """

    written = "SafetensorsFileRecorder"
    kind = "safetensors"
    extension = "safetensors"

    def load(  # type: ignore[override] # with LoadArgs of its own, as in Burn
        self,
        path: PathLike | LoadArgs,
        device: Backend | None = None,
        module: Module | None = None,
    ) -> Any:
        """Read a file or the shards of a folder, for `module.load_record`.

        path: a path, with its extension, or LoadArgs. module: with it, the record has
        the names and layout of that module, and every recorder can save it.

        Raises:
            RecordError: there is no such file, it is damaged or of another format;
                with `module`, also that the module misses something.
        """
        args = LoadArgs.of(path)
        remapper = KeyRemapper(args.key_remap)
        with SafetensorsFile(args.file) as file:
            found = {name: _lazy(file, name) for name in file}
            if args.debug:
                rows = sorted((remapper.renamed(name), name) for name in found)
                sys.stdout.write(debug_text(rows, found))
            where = f"load {printable(args.file)}"
            named = remapper.all_renamed(found, where)
            arrays = {new: found[old] for old, new in named.items()}
            is_own = args.adapter_type is AdapterType.NoAdapter
            kind = _OwnRecord if is_own else PyTorchRecord
            record = kind(arrays, self.settings, device, where)
        if module is None:
            return record
        return module.load_record(record).into_record()

    def read(self, path: PathLike) -> BurnRecord:
        """The tensors as they are in the file, nested like their names."""
        with SafetensorsFile(path) as file:
            leaves = {name: file[name] for name in file}
        try:
            item = nest(leaves, max(len(leaves) << 10, 1 << 20))
        except Trouble as trouble:
            where = f"read {printable(path)}"
            raise trouble.explain(where, [], "other names") from None
        return BurnRecord(self.metadata, item)

    def decode(self, data: bytes) -> Any:
        """The tensors in the bytes of a file by name."""
        file = SafetensorsFile.from_bytes(data)
        return {name: file[name] for name in file}


class _OwnRecord(PyTorchRecord):
    """What a file in the names and the layout of a module holds."""

    in_pytorch = False

    def sources(self, spot: Spot) -> tuple[Source, ...]:
        return spot.own


def _lazy(file: SafetensorsFile, name: str) -> LazyArray:
    entry = file.entries[name]
    dtype = EIGHT_BITS.get(entry.dtype, entry.dtype.lower())
    return LazyArray(name, entry.shape, dtype, lambda: file[name])


def as_written(array: LazyArray, name: str) -> Written:
    """An array as a safetensors file has it; it is loaded when its turn has come."""
    dtype = "f32" if array.dtype in EIGHT_BITS.values() else array.dtype
    count, width = int(np.prod(array.shape, dtype=np.int64)), _WIDTHS[dtype]
    shape = [int(size) for size in array.shape]
    content = lambda: array.load().as_bytes()  # noqa: E731 - one line of a table
    return Written(name, DTYPES[dtype], shape, count * width, content)


_WIDTHS = {
    "bool": 1,
    "bf16": 2,
    **{f"{kind}{bits}": bits // 8 for kind in "iuf" for bits in (8, 16, 32, 64)},
}
