"""Files of PyTorch: Burn 0.15's recorder, and the store of newer Burn.

    record = PyTorchFileRecorder(FullPrecisionSettings).load("model.pt", device)
    model = Net.init(device).load_record(record)

    model, result = Net.init(device).load_from(PytorchStore.from_file("model.pt"))

Both read by the same table of PyTorch's names and layouts (`torch_layers`), and nothing
that a file names is imported or called.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, overload

from burnbook.backend.base import Backend
from burnbook.core.errors import ArgumentError, RecordError
from burnbook.core.files import PathLike, fixed, printable, shown_path
from burnbook.importers.absence import common_prefix, reason_among, without_prefix
from burnbook.importers.adapter import Adapter, PyTorchToBurnAdapter
from burnbook.importers.apply_result import ApplyResult
from burnbook.importers.formulas import warn_of_formulas
from burnbook.importers.key_remap import KeyRemapper, contiguous
from burnbook.importers.lazy_array import LazyArray
from burnbook.importers.pytorch_reader import Plain, PytorchMetadata, PytorchReader
from burnbook.importers.store import (
    ModuleStore,
    counter_beside,
    found_among,
    taken,
)
from burnbook.importers.torch_layers import Source, Spot, spots
from burnbook.module.module import Module
from burnbook.module.param import ParamId, ParamRecord
from burnbook.module.records import Choices, Unreadable
from burnbook.record.conversion import with_lists_and_ids
from burnbook.record.flat import nest
from burnbook.record.layout import Lowering, Pieces
from burnbook.record.precision import to_device
from burnbook.record.recorder import FileRecorder
from burnbook.record.settings import (
    FullPrecisionSettings,
    PrecisionSettings,
    Settings,
)
from burnbook.record.tree import BurnRecord, Trouble, short
from burnbook.tensor.data import TensorData

C = TypeVar("C")
NOTHING: Mapping[str, str] = {}
UNREADABLE = ("c64", "f4", "f6_e2m3", "f6_e3m2")  # element types of safetensors


@dataclass(frozen=True)
class FileArgs:
    """Which file to load, and rules for its names: what all formats ask for."""

    file: PathLike
    key_remap: tuple[tuple[str, str], ...] = ()

    @classmethod
    def new(cls, file: PathLike) -> Self:
        """The arguments for a file, without rules."""
        return cls(fixed(file))

    @classmethod
    def of(cls, given: PathLike | Self) -> Self:
        """The arguments for a path; arguments stay as they are.

        Raises:
            ArgumentError: it is neither, such as the arguments for another format.
        """
        if isinstance(given, cls):
            return given
        if isinstance(given, (str, os.PathLike)):
            return cls(given)
        what = f"{type(given).__module__}.{type(given).__name__} is no path"
        cure = f"a path, or LoadArgs of {cls.__module__}"
        raise ArgumentError("load", what, cure=cure)

    def with_key_remap(self, pattern: str, replacement: str) -> Self:
        """With one more rule: each key is what all rules in their order make of it.

        Raises:
            ConfigError: `pattern` is none of Rust's regex.
        """
        rules = KeyRemapper(self.key_remap).add_pattern(pattern, replacement).rules
        return replace(self, key_remap=rules)


@dataclass(frozen=True)
class LoadArgs(FileArgs):
    """What to read of a file of PyTorch, and how; each method gives other arguments.

    file: the path. key_remap: pairs of a pattern of Rust's regex and a replacement.
    top_level_key: read the part under this key only. debug: print keys and shapes.

    Example:
        >>> args = LoadArgs("model.pt").with_key_remap(r"conv\\.(.*)", "$1")
        >>> args.with_top_level_key("state_dict").key_remap
        (('conv\\\\.(.*)', '$1'),)
    """

    top_level_key: str | None = None
    debug: bool = False

    def with_top_level_key(self, key: str) -> Self:
        """Read only what the file has under this key."""
        return replace(self, top_level_key=key)

    def with_debug_print(self) -> Self:
        """Print every key, what it is remapped to, its shape and its element type."""
        return replace(self, debug=True)


class PyTorchRecord(Choices, dict[str, Any]):
    """What a file of PyTorch holds, in PyTorch's names and layout, as a tree.

    `module.load_record(record)` takes from it what the module needs, in Burn's layout.
    Nested like the names: record["fc"]["weight"]. others: what is no tensor, or none
    that can be read, with what it is; refused: which of these are tensors.
    """

    in_pytorch = True
    cure = "LoadArgs(path).with_key_remap(pattern, replacement) where names differ"

    def __init__(
        self,
        arrays: Mapping[str, LazyArray],
        settings: Settings,
        device: Backend | None,
        where: str,
        others: Mapping[str, str] = NOTHING,
        refused: Iterable[str] = (),
        top_level_keys: Iterable[str] = (),
    ) -> None:
        self.where, self.device = where, device
        self.others, self.refused = dict(others), set(refused)
        self.top_level_keys = list(top_level_keys)
        self._convert = to_device(settings, device)
        self.arrays: dict[str, LazyArray] = {}
        for name, array in arrays.items():
            try:
                data = array.load()
            except RecordError as error:  # of a type that has no counterpart
                if array.dtype not in UNREADABLE:
                    raise
                self.others[name] = error.what
                self.refused.add(name)
                continue
            with suppress(Trouble):  # it matters only to a module that needs this one
                data = self._convert(data, (name,))
            self.arrays[name] = LazyArray.of(name, data)
        leaves = {name: array.load() for name, array in self.arrays.items()}
        try:
            super().__init__(nest(leaves, max(len(leaves) << 10, 1 << 20)))
        except Trouble as trouble:
            raise trouble.explain(where, [], "with_key_remap") from None

    def for_module(self, module: object) -> dict[str, Any]:
        """The record with the names and the layout of a module."""
        made: dict[str, Any] = {}
        found: list[Spot] = []
        for spot in spots(module, self.arrays):
            data = self._data_for(spot)
            if isinstance(data, TensorData):
                data = ParamRecord(ParamId.new().serialize(), data)
                found.append(spot)
            if data is not None:
                _put(made, spot.keys, data)
        if self.in_pytorch:
            warn_of_formulas(f"load into {type(module).__name__}", found)
        return made

    def sources(self, spot: Spot) -> tuple[Source, ...]:
        """Where the file may have a parameter, the likeliest place first."""
        return spot.theirs

    def _data_for(self, spot: Spot) -> TensorData | Unreadable | None:
        source = found_among(self.arrays, self.sources(spot))
        if source is None:
            why = reason_among(self.others, self.sources(spot))
            return Unreadable(why) if why else None
        array = taken(self.arrays, source)
        if isinstance(array, str):
            return Unreadable(array)
        try:
            return self._convert(array.load(), (spot.path,))
        except Trouble as trouble:
            raise trouble.explain(self.where, [], "another precision") from None

    def unused_by(self, module: object) -> list[str]:
        """The names that a module has no place for."""
        used: set[str] = set()
        for spot in spots(module, self.arrays):
            sources = self.sources(spot)
            source = found_among(self.arrays, sources)
            used |= {source.name} if source else {each.name for each in sources}
            used |= {counter_beside(each.name) for each in sources}
        return sorted((self.arrays.keys() | self.refused) - used)

    def cure_for(self, module: object, missing: list[str]) -> str:
        """What to do about missing names, if all the file's begin with something."""
        if not missing:
            return ""
        prefix = common_prefix(spots(module), self.sources, self.arrays)
        calls = without_prefix(prefix, self.top_level_keys, "with_key_remap")
        return f"LoadArgs(path){calls}" if calls else ""

    def meant(self, path: str, unused: list[str]) -> str:
        """What to say about a path that is not in the record."""
        meant = ApplyResult(unused=tuple(unused)).suggestion(path)
        told = f"; did you mean {printable(meant)}?" if meant else ""
        return f"not in the record{told}"

    def to_save(self) -> Any:
        """The record for a recorder, if its layout does not depend on a module.

        Raises:
            RecordError: it holds layers that PyTorch lays out otherwise, or may.
        """
        for name, array in self.arrays.items():
            last = name.rpartition(".")[2]
            if "weight" in last and len(array.shape) < 3:
                what = f"only a module knows which layer {short(name)} is of"
                shown = f"{array.dtype} {list(array.shape)}, as PyTorch lays it out"
                cure = (
                    "model.load_record(record).into_record(), or --module "
                    "package.file:function where this is a command"
                )
                raise RecordError("save", what, [(name, shown)], cure)
        named = contiguous(self.arrays)
        leaves = {named[name]: array.load() for name, array in self.arrays.items()}
        return with_lists_and_ids(nest(leaves, max(len(leaves) << 10, 1 << 20)))

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def _put(tree: dict[str, Any], keys: tuple[str, ...], value: object) -> None:
    for key in keys[:-1]:
        tree = tree.setdefault(key, {})
    tree[keys[-1]] = value


class PyTorchFileRecorder(FileRecorder):
    """Loads files of PyTorch; to write one, see `burnbook.exporters`.

    settings: to which precision floats and ints are converted, before the device's.

    Example:
        >>> PyTorchFileRecorder(FullPrecisionSettings)
        PyTorchFileRecorder(FullPrecisionSettings)
    """

    written = "PyTorchFileRecorder"
    kind = "a file of PyTorch"
    extension = "pt"

    def __init__(
        self, settings: Settings | PrecisionSettings = FullPrecisionSettings
    ) -> None:
        super().__init__(settings)

    @overload
    def load(
        self,
        path: PathLike | LoadArgs,
        device: Backend | None = None,
        module: None = None,
    ) -> PyTorchRecord: ...

    @overload
    def load(
        self, path: PathLike | LoadArgs, device: Backend | None, module: Module
    ) -> dict[str, Any]: ...

    def load(
        self,
        path: PathLike | LoadArgs,
        device: Backend | None = None,
        module: Module | None = None,
    ) -> Any:
        """Read a file, for `module.load_record`.

        path: a path, with its extension, or LoadArgs. module: with it, the record has
        the names and layout of that module, and every recorder can save it.

        Raises:
            RecordError: there is no such file, it is damaged or of another format, it
                has no such key, or it holds more than tensors and plain data; with
                `module`, also that the module misses something.
        """
        args = LoadArgs.of(path)
        reader = PytorchReader(args.file, args.top_level_key)
        remapper = KeyRemapper(args.key_remap)
        if args.debug:
            rows = sorted((remapper.renamed(name), name) for name in reader)
            sys.stdout.write(debug_text(rows, reader.arrays))
        where = f"load {printable(args.file)}"
        named = remapper.all_renamed(reader, where)
        arrays = {new: reader[old] for old, new in named.items()}
        others = {remapper.renamed(name): why for name, why in reader.skipped.items()}
        refused = map(remapper.renamed, reader.refused)
        keys = () if args.top_level_key else reader.top_level_keys
        record = PyTorchRecord(
            arrays, self.settings, device, where, others, refused, keys
        )
        if module is None:
            return record
        return module.load_record(record).into_record()

    def record(self, record: object, path: PathLike) -> Path:
        """Say that this recorder only reads.

        Raises:
            RecordError: always.
        """
        raise self._only_reads(path)

    def write(self, record: BurnRecord, path: PathLike) -> Path:
        """Say that this recorder only reads.

        Raises:
            RecordError: always.
        """
        raise self._only_reads(path)

    def read(self, path: PathLike) -> BurnRecord:
        """The tensors as they are in the file, nested like their names."""
        reader = PytorchReader(path)
        leaves = {name: reader[name].load() for name in reader}
        try:
            item = nest(leaves, max(len(leaves) << 10, 1 << 20))
        except Trouble as trouble:
            where = f"read {printable(path)}"
            raise trouble.explain(where, [], "other names") from None
        return BurnRecord(self.metadata, item)

    def path(self, path: PathLike) -> Path:
        """The file itself: no extension is added."""
        return Path(path)

    def find(self, path: PathLike) -> Path:
        """The file itself."""
        return Path(path)

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """Say that this recorder only reads."""
        raise self._only_reads("")

    def decode(self, data: bytes) -> Any:
        """The tensors in the bytes of a file by name."""
        return dict(PytorchReader.from_bytes(data).arrays)

    def _only_reads(self, path: PathLike) -> RecordError:
        what = "PyTorchFileRecorder only reads"
        cure = "a recorder of Burn's, or burnbook.exporters for a file of PyTorch"
        return RecordError(f"write {os.fspath(path)}", what, cure=cure)


def debug_text(rows: list[tuple[str, str]], arrays: Mapping[str, LazyArray]) -> str:
    """The keys of a file, new and old, with shapes and types, as Burn 0.15 prints them.

    rows: (remapped key, key), sorted.
    """
    lines = ["Debug information of keys and tensor shapes:", "---"]
    for new, old in rows:
        was, now = printable(old), printable(new)
        if new == old:
            lines.append(f"Key: {was}")
        else:
            lines += [f"Original Key: {was}", f"Remapped Key: {now}"]
        array = arrays[old]
        lines += [f"Shape: {list(array.shape)}", f"Dtype: {array.dtype.upper()}", "---"]
    return "\n".join(lines) + "\n"


@overload
def config_from_file(
    path: PathLike, top_level_key: str | None = None, config: None = None
) -> dict[str, Plain]: ...


@overload
def config_from_file(
    path: PathLike, top_level_key: str | None, config: type[C]
) -> C: ...


def config_from_file(
    path: PathLike, top_level_key: str | None = None, config: type[Any] | None = None
) -> Any:
    """A config from a file of PyTorch, in which it was saved as a dict.

    config: the Config class; fields that the file lacks keep their defaults, and other
    names of the file do not matter. Without it, the dict itself is given.

    Raises:
        ConfigError: a field has no value, or one of another type.
        RecordError: the file cannot be read, or has no dict there.
    """
    reader = PytorchReader(path, top_level_key)
    if config is not None:
        return reader.load_config(config)
    plain = reader.plain()
    if not isinstance(plain, dict):
        what = "a config is a map of names and values, and this is none"
        cure = "the key under which the config was saved"
        raise RecordError(f"read {printable(path)}", what, cure=cure)
    return plain


def read_pickle_data(path: PathLike, top_level_key: str | None = None) -> Plain | None:
    """What a file holds besides tensors, as plain data.

    Raises:
        RecordError: the file cannot be read.
    """
    return PytorchReader(path, top_level_key).plain()


class PytorchStore(ModuleStore):
    """A file of PyTorch as a store; it only reads.

    Numbers in names close their gaps, names leave out variants of unions, and the
    adapter for PyTorch's names and layouts is always on.

    Example:
        >>> store = PytorchStore.from_file("model.pt").with_top_level_key("state_dict")
        >>> store = store.with_key_remapping(r"^module\\.", "").allow_partial(True)
        >>> store
        PytorchStore('model.pt')
    """

    enum_variants_skipped: ClassVar[bool] = True
    indices_contiguous: ClassVar[bool] = True

    def __init__(self, path: PathLike) -> None:
        """A store of a file, which is opened when it is first needed."""
        super().__init__(PyTorchToBurnAdapter())
        self.path = fixed(path)
        self._top_level_key: str | None = None
        self._reader: PytorchReader | None = None

    @classmethod
    def from_file(cls, path: PathLike) -> Self:
        """The store of a file."""
        return cls(path)

    def with_top_level_key(self, key: str) -> Self:
        """Only what the file has under this key."""
        return self._with(top_level_key=key, reader=None)

    def with_from_adapter(self, adapter: Adapter) -> Self:
        """With another adapter behind that for PyTorch's names and layouts."""
        if isinstance(adapter, Adapter) and not adapter.in_pytorch:
            adapter = PyTorchToBurnAdapter().chain(adapter)
        return super().with_from_adapter(adapter)

    @property
    def reader(self) -> PytorchReader:
        """The reader of the file."""
        if self._reader is None:
            self._reader = PytorchReader(self.path, self._top_level_key)
        return self._reader

    @property
    def source(self) -> str:
        """The path, for errors."""
        return printable(shown_path(self.path))

    def read_arrays(self) -> Mapping[str, LazyArray]:
        """The tensors under their names in the file."""
        return self.reader.arrays

    def read_others(self) -> Mapping[str, str]:
        """What is no tensor, or none that can be read, with what it is."""
        return self.reader.skipped

    def read_refused(self) -> Iterable[str]:
        """Which of these are tensors."""
        return self.reader.refused

    @property
    def top_level_keys(self) -> list[str]:
        """What `with_top_level_key` may be given."""
        return [] if self._top_level_key else self.reader.top_level_keys

    def metadata(self) -> PytorchMetadata:
        """What the file says about itself."""
        return self.reader.metadata()

    def __repr__(self) -> str:
        return f"PytorchStore({self.source!r})"
