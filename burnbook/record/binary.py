"""Recorders for bincode: the smallest files of a model.

    recorder = BinFileRecorder(FullPrecisionSettings)
    model.save_file("model", recorder)                  # writes model.bin
    model = model.load_file("model", recorder)

What `load` gives is still sealed: bincode has no names, so the record opens only when
`load_record` of a module says what stands where.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from burnbook.core.files import PathLike
from burnbook.core.versions import VERSION
from burnbook.module import Module
from burnbook.module.records import ModuleRecord
from burnbook.module.schema import schema
from burnbook.record import packing
from burnbook.record.bincode import Reader, Writer
from burnbook.record.bincode_state import (
    is_state,
    read_state,
    refuse,
    state_type,
    write_state,
)
from burnbook.record.layout import Lowering, Pieces, lift
from burnbook.record.precision import to_device
from burnbook.record.recorder import (
    BytesRecorder,
    FileRecorder,
    Recorder,
)
from burnbook.record.settings import FullPrecisionSettings, HalfPrecisionSettings
from burnbook.record.tree import BurnRecord, Convert, Metadata, Trouble, map_tensors

BY_PART = "load_record(record) of the model, optimizer or schedule, then into_record()"


@dataclass(frozen=True, repr=False)
class SealedRecord:
    """A record in bincode, which opens when a module says what stands where."""

    data: bytes
    start: int  # of the item, behind the metadata
    metadata: Metadata
    where: str = "load bytes"
    convert: Convert | None = None

    @property
    def release(self) -> tuple[int, ...]:
        """The release of Burn that wrote it: (0, 15, 0)."""
        return self.metadata.release

    def for_module(self, module: Any) -> Any:
        """The tree of the record, for a module, an optimizer or a schedule like it."""
        kind = "module" if isinstance(module, Module) else "part"
        facts = [(kind, type(module).__name__)]
        try:
            item = self.open(module)
        except Trouble as trouble:
            cure = f"the {kind} that the record was made with"
            raise trouble.explain(self.where, facts, cure) from None
        return item

    def open(self, module: object) -> Any:
        """The same; what is wrong comes as Trouble."""
        reader = self.reader()
        if isinstance(module, Module):
            plain = reader.item(schema(module, release=self.release), ("item",))
        else:
            plain = read_state(reader, module)
        reader.end()
        item = lift({"metadata": vars(self.metadata), "item": plain, "_b": []}).item
        return map_tensors(item, self.convert) if self.convert else item

    def reader(self) -> Reader:
        """A reader at the start of the item."""
        reader = Reader(self.data)
        reader.head()
        return reader

    def scan(self) -> Iterator[Any]:
        """Every parameter that can be found without its module, in order."""
        reader, texts = self.reader(), vars(self.metadata)
        for plain in reader.scan():
            with contextlib.suppress(Trouble):
                yield lift({"metadata": texts, "item": plain, "_b": []}).item

    def scan_states(self) -> dict[str, Any]:
        """What can be found of an optimizer's record without the optimizer."""
        reader, texts = self.reader(), vars(self.metadata)
        found: dict[str, Any] = {}
        with contextlib.suppress(Trouble):
            reader.number(())
            for name, tensors in reader.scan_states():
                plain = {"metadata": texts, "item": tensors, "_b": []}
                found[name] = lift(plain).item
        return found

    def __repr__(self) -> str:
        size = len(self.data) - self.start
        return f"SealedRecord({size} bytes, opens in model.load_record)"


def _encode(record: BurnRecord, lower: Lowering) -> Iterator[Any]:
    item: Any = record.item
    sealed: Any = item
    writer = Writer(record.metadata, lower)
    if type(sealed) is SealedRecord and sealed.metadata == record.metadata:
        yield sealed.data
        return
    given: Any = item
    if hasattr(item, "into_record"):  # a module, an optimizer or a schedule
        item = item.into_record()
    if hasattr(given, "step_multi"):
        state_type(given)  # one for all parameters, or nobody could read the file
    is_module = isinstance(item, ModuleRecord) and item.module is not None
    if not is_module and is_state(item):
        yield writer.head()
        yield from write_state(writer, item)
        return
    if item is not None and not is_module and given is not item:
        refuse(type(given).__name__)
    if item is not None and not is_module:
        what = "this record does not say what stands where, which bincode needs"
        expected = "model.into_record(), optim.into_record() or that of a schedule"
        raise Trouble(what, expected, type(item).__name__, BY_PART)
    yield writer.head()
    if item is None and given is not None and not isinstance(given, Module):
        return  # a constant rate
    if item is None:
        yield b"\0"  # a module without parameters
    else:
        layout = schema(item.module, release=record.metadata.release)
        yield from writer.item(layout, item, ("item",))


def _decode(data: bytes) -> BurnRecord:
    reader = Reader(data)
    metadata = reader.head()
    return BurnRecord(metadata, SealedRecord(data, reader.at, metadata))


class Bincode(Recorder):
    """Bincode, in a file or in memory."""

    kind = "bincode"

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as bincode."""
        return _encode(record, lower)

    def decode(self, data: bytes) -> BurnRecord:
        """Read the metadata; the rest stays sealed."""
        return _decode(data)

    def lift(self, plain: Any) -> BurnRecord:
        """The record, with its item still sealed."""
        return plain


class BinFileRecorder(Bincode, FileRecorder):
    """Bincode in a file: no names, so it is small and opens only in its module.

    Example:
        >>> import tempfile
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> folder = tempfile.TemporaryDirectory()
        >>> model = LinearConfig(2, 3).init(Numpy())
        >>> recorder = BinFileRecorder(FullPrecisionSettings)
        >>> path = recorder.record(model.into_record(), folder.name + "/model")
        >>> path.name, path.stat().st_size
        ('model.bin', 204)
        >>> recorder.load(path)
        SealedRecord(74 bytes, opens in model.load_record)
        >>> _ = model.load_record(recorder.load(path))
        >>> folder.cleanup()
    """

    written = "BinFileRecorder"
    extension = "bin"

    def load(self, path: PathLike, device: Any = None) -> SealedRecord:
        """Read a record; it opens, and is converted, in `model.load_record`."""
        path = self.find(path)
        where = f"load {path}"
        convert = to_device(self.settings, device)
        return replace(self.read(path).item, where=where, convert=convert)


class BinGzFileRecorder(BinFileRecorder):
    """Bincode in a gzip file: the smallest, with a checksum."""

    written = "BinGzFileRecorder"
    kind = "gzip"
    extension = "bin.gz"

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as bincode, compressed."""
        return packing.pack(_encode(record, lower))

    def decode(self, data: bytes) -> BurnRecord:
        """Unpack, and read the metadata."""
        return _decode(packing.unpack(data, self.max_bytes))


class BinBytesRecorder(Bincode, BytesRecorder):
    """Bincode in memory: to embed a model in a program.

    Example:
        >>> from burnbook.backend.numpy import Numpy
        >>> from burnbook.nn import LinearConfig
        >>> model = LinearConfig(2, 3).init(Numpy())
        >>> recorder = BinBytesRecorder(FullPrecisionSettings)
        >>> data = recorder.record(model.into_record())
        >>> data[:8], model.load_record(recorder.load(data)).num_params()
        (b'\\x03f32\\x03i32', 9)
    """

    written = "BinBytesRecorder"

    def load(self, data: bytes, device: Any = None) -> SealedRecord:
        """Read a record; it opens, and is converted, in `model.load_record`."""
        convert = to_device(self.settings, device)
        return replace(self.read(data).item, convert=convert)


class SensitiveCompactRecorder(BinGzFileRecorder):
    """Compressed bincode with half precision: where every byte counts."""

    def __init__(self, *, version: str = VERSION) -> None:
        super().__init__(HalfPrecisionSettings, version=version)


class NoStdTrainingRecorder(BinFileRecorder):
    """Bincode with full precision: what a model without a file system starts from."""

    def __init__(self, *, version: str = VERSION) -> None:
        super().__init__(FullPrecisionSettings, version=version)


class NoStdInferenceRecorder(BinBytesRecorder):
    """Bincode in memory with full precision, for where there are no files."""

    def __init__(self, *, version: str = VERSION) -> None:
        super().__init__(FullPrecisionSettings, version=version)
