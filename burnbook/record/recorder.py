"""Recorders: where a record goes, in which format.

    recorder = NamedMpkFileRecorder(FullPrecisionSettings)
    recorder.record(model.into_record(), "model")       # writes model.mpk
    model = model.load_record(recorder.load("model", device))

`record` and `load` change the precision to the recorder's settings; `write` and `read`
do not: what `read` gives, `write` puts back byte for byte.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.core.files import (
    Draft,
    PathLike,
    at_home,
    look_around,
    read_whole,
    within_memory,
)
from burnbook.core.versions import VERSION
from burnbook.module.records import LoadedRecord
from burnbook.record import json_text, mpk, packing
from burnbook.record.foreign import guess
from burnbook.record.layout import Lowering, Pieces, envelope, lift
from burnbook.record.precision import to_device, to_settings
from burnbook.record.settings import (
    FullPrecisionSettings,
    HalfPrecisionSettings,
    PrecisionSettings,
    Settings,
)
from burnbook.record.tree import BurnRecord, Metadata, Trouble, map_tensors

READABLE = "the file as it was written: copy or download it again"
OF_SUFFIX = {  # which recorder reads the file of each kind
    ".mpk": "CompactRecorder()",
    ".bpk": "BurnpackRecorder()",
    ".bin": "BinFileRecorder(FullPrecisionSettings)",
    ".json": "PrettyJsonFileRecorder(FullPrecisionSettings)",
    ".safetensors": "SafetensorsRecorder()",
}
EXTENSIONS = (  # of all recorders, the longer first
    *("mpk.gz", "json.gz", "bin.gz"),
    *("mpk", "json", "bin", "bpk", "safetensors"),
)


class Recorder(ABC):
    """Writes records in one format with one precision, and reads them: an interface."""

    place = "file"  # where Burn keeps this recorder
    written: str  # its name in Burn
    kind: str  # what its bytes are, in words
    extension: str  # of its files

    def __init__(
        self,
        settings: Settings | PrecisionSettings = FullPrecisionSettings,
        *,
        version: str = VERSION,
        max_bytes: int | None = None,
    ) -> None:
        """Choose the precision.

        `version` is the Burn release, 0.15 to 0.21, that is to read the file: it says
        which fields modules and optimizers have there.
        `max_bytes` is how far a compressed file may unpack.
        """
        self.settings = settings if isinstance(settings, type) else type(settings)
        if not issubclass(self.settings, PrecisionSettings):
            raise _not_settings(self, settings)
        self.max_bytes = max_bytes
        self.metadata = Metadata(
            float=self.settings.written,
            int=self.settings.int,
            format=f"burn_core::record::{self.place}::{self.written}"
            f"<burn_core::record::settings::{self.settings.__name__}>",
            version=version,
            settings=self.settings.__name__,
        )
        if not (0, 15) <= self.metadata.release < (0, 22):
            raise RecordError(
                repr(self),
                f"version {version!r} cannot be written",
                [("expected", "'0.15' to '0.21'")],
                "BurnpackRecorder() for 0.22"
                if self.metadata.release >= (0, 22)
                else None,
            )

    @abstractmethod
    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The bytes of a record, piece by piece."""

    @abstractmethod
    def decode(self, data: bytes) -> Any:
        """The maps, lists and scalars in the bytes of a file."""

    def lift(self, plain: object) -> BurnRecord:
        """The record behind what `decode` found; everything in it is checked."""
        return lift(plain)

    def __repr__(self) -> str:
        return f"{self.written}({self.settings.__name__})"


class FileRecorder(Recorder):
    """A recorder into files; it adds its extension to a path that has none."""

    def record(self, record: object, path: PathLike) -> Path:
        """Write a record with the precision of the settings; returns the file's path.

        `record` is a tree, or anything with into_record(). The file, that of
        `path(path)`, appears whole or not at all.

        Raises:
            RecordError: `path` names no file, the file cannot be written, or the record
                holds what the format cannot hold.
        """
        record = _to_save(record)
        return self._save(BurnRecord(self.metadata, record), path, self.settings)

    def load(self, path: PathLike, device: Any = None) -> Any:
        """Read a record and convert it: to the settings, then to the device's types.

        The file is that of `find(path)`.

        Raises:
            RecordError: there is no such file, it cannot be read, it is damaged or of
                another format, or it does not fit into memory.
        """
        target = self.find(path)
        where = f"load {target}"
        with within_memory(where, RecordError):
            record = self.read(target)
            self.accept(record, where)
            return _converted(record, self.settings, device, where)

    def accept(self, record: BurnRecord, where: str) -> None:
        """Raise if a module should not load this record as it is."""

    def write(self, record: BurnRecord, path: PathLike) -> Path:
        """Write a record as it is: with its own metadata and element types."""
        return self._save(record, path, None)

    def read(self, path: PathLike) -> BurnRecord:
        """Read a record as it is, with its metadata."""
        target = self.find(path)
        where = f"read {target}"
        with within_memory(where, RecordError):
            return _decoded(self, read_whole(target, RecordError), where)

    def path(self, path: PathLike) -> Path:
        """The file to write for `path`: "a/model" is a/model.mpk.

        The extension of another recorder is replaced, anything else after a dot stays:
        "model_0.15" is model_0.15.mpk.

        Why: Burn removes what follows the last dot, so there `model_0.16` writes
        over `model_0.15`.
        """
        named = Path(at_home(path))
        if named.name in ("", ".."):
            raise RecordError(repr(self), f"{os.fspath(path)!r} names no file")
        for known in (self.extension, *EXTENSIONS):
            if named.name.endswith(f".{known}") and named.name != f".{known}":
                stem = named.name.removesuffix(f".{known}")
                return named.with_name(f"{stem}.{self.extension}")
        return named.with_name(f"{named.name}.{self.extension}")

    def find(self, path: PathLike) -> Path:
        """The file to read for `path`: that of `path()`, or else one that is there.

        Then "model_0.15" may also be model_0.mpk, as Burn and version 0.8 wrote it, or
        a file of exactly that name.
        """
        first, named = self.path(path), Path(at_home(path))
        others = [named.with_suffix(f".{self.extension}"), named]
        places = list(dict.fromkeys([first, *others]))
        for place in places:
            if _is_there(place):
                return place
        for suffix, recorder in OF_SUFFIX.items():
            other = named.with_suffix(suffix)
            if suffix != first.suffix and _is_there(other):
                cure = f"{recorder} as the recorder, which reads {other.name}"
                facts = look_around(first)
                raise RecordError(f"read {first}", "there is no such file", facts, cure)
        if len(places) == 1 or not named.suffix:
            return first  # whose error says what is there
        looked = ", ".join(place.name for place in places)
        facts = [("looked for", looked), *look_around(first)]
        raise RecordError(f"read {first}", "there is no such file", facts)

    def _save(self, record: BurnRecord, path: PathLike, settings: Any) -> Path:
        self._draft(record, path, settings).keep()
        return self.path(path)

    def draft(self, record: object, path: PathLike) -> Draft:
        """Write a file as `record` does, or `write`; `keep()` gives it its name.

        Why: several files are forced to the disk together, see `files.keep_all`.
        """
        if isinstance(record, BurnRecord):
            return self._draft(record, path, None)
        made = BurnRecord(self.metadata, _to_save(record))
        return self._draft(made, path, self.settings)

    def _draft(self, record: BurnRecord, path: PathLike, settings: Any) -> Draft:
        target = self.path(path)
        made = Draft(target, RecordError)
        try:
            with made.open() as file:
                file.writelines(_encoded(self, record, settings))
        except Trouble as trouble:
            raise trouble.explain(f"write {target}", [], "another record") from None
        return made


class NamedMpk(Recorder):
    """Named MessagePack, in a file or in memory."""

    kind = "named MessagePack"

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as MessagePack."""
        return mpk.encode(envelope(record), lower)

    def decode(self, data: bytes) -> Any:
        """Read MessagePack."""
        return mpk.decode(data)


class NamedMpkFileRecorder(NamedMpk, FileRecorder):
    """Named MessagePack in a file: compact, and every part has its name.

    Example:
        >>> import tempfile
        >>> folder = tempfile.TemporaryDirectory()
        >>> recorder = NamedMpkFileRecorder(HalfPrecisionSettings)
        >>> path = recorder.record({"step": 3, "rate": 0.5}, folder.name + "/state")
        >>> path.name, recorder.load(path)
        ('state.mpk', {'step': 3, 'rate': 0.5})
        >>> folder.cleanup()
    """

    written = "NamedMpkFileRecorder"
    extension = "mpk"


class NamedMpkGzFileRecorder(FileRecorder):
    """Named MessagePack in a gzip file: smaller, slower, with a checksum."""

    written = "NamedMpkGzFileRecorder"
    kind = "gzip"
    extension = "mpk.gz"

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as MessagePack, compressed."""
        return packing.pack(mpk.encode(envelope(record), lower))

    def decode(self, data: bytes) -> Any:
        """Unpack and read MessagePack."""
        return mpk.decode(packing.unpack(data, self.max_bytes))


class JsonGzFileRecorder(FileRecorder):
    """JSON in a gzip file."""

    written = "JsonGzFileRecorder"
    kind = "gzip"
    extension = "json.gz"

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as JSON, compressed."""
        return packing.pack(json_text.encode(envelope(record), lower))

    def decode(self, data: bytes) -> Any:
        """Unpack and read JSON."""
        return json_text.decode(packing.unpack(data, self.max_bytes))


class PrettyJsonFileRecorder(FileRecorder):
    """JSON with indentation, to look at; not compressed."""

    written = "PrettyJsonFileRecorder"
    kind = "JSON"
    extension = "json"

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as indented JSON."""
        return json_text.encode(envelope(record), lower, indent=2)

    def decode(self, data: bytes) -> Any:
        """Read JSON."""
        return json_text.decode(data)


class BytesRecorder(Recorder):
    """A recorder into memory."""

    place = "memory"
    extension = ""

    def record(self, record: object, args: tuple[()] = ()) -> bytes:
        """The bytes of a record, with the precision of the settings.

        Raises:
            RecordError: a path is given, which a recorder of bytes does not write, or
                the record holds what the format cannot hold.
        """
        if isinstance(args, (str, os.PathLike)):
            what = f"{type(self).__name__} makes bytes and writes no file"
            cure = "path.write_bytes(recorder.record(record)), or CompactRecorder()"
            raise RecordError("record", what, cure=cure)
        record = _to_save(record)
        return self._bytes(BurnRecord(self.metadata, record), self.settings)

    def load(self, data: bytes, device: Any = None) -> Any:
        """Read a record and convert it: to the settings, then to the device's types.

        Raises:
            RecordError: `data` is not bytes, is damaged or is of another format.
        """
        return _converted(self.read(data), self.settings, device, "load bytes")

    def write(self, record: BurnRecord) -> bytes:
        """The bytes of a record as it is."""
        return self._bytes(record, None)

    def read(self, data: bytes) -> BurnRecord:
        """Read a record as it is, with its metadata."""
        if not isinstance(data, (bytes, bytearray, memoryview)):
            what = f"{type(self).__name__} reads bytes, not {type(data).__name__}"
            cure = "recorder.load(path.read_bytes()), or a recorder for files"
            raise RecordError("read bytes", what, cure=cure)
        return _decoded(self, bytes(data), "read bytes")

    def _bytes(self, record: BurnRecord, settings: Settings | None) -> bytes:
        try:
            return b"".join(_encoded(self, record, settings))
        except Trouble as trouble:
            raise trouble.explain("write bytes", [], "another record") from None


class NamedMpkBytesRecorder(NamedMpk, BytesRecorder):
    """Named MessagePack in memory.

    Example:
        >>> recorder = NamedMpkBytesRecorder(FullPrecisionSettings)
        >>> recorder.load(recorder.record([1, None, "two"]))
        [1, None, 'two']
    """

    written = "NamedMpkBytesRecorder"


class DefaultFileRecorder(NamedMpkFileRecorder):
    """Another name for NamedMpkFileRecorder."""


class DefaultRecorder(NamedMpkFileRecorder):
    """Named MessagePack with full precision."""

    def __init__(self, *, version: str = VERSION) -> None:
        super().__init__(FullPrecisionSettings, version=version)


class CompactRecorder(NamedMpkFileRecorder):
    """Named MessagePack with half precision: small checkpoints."""

    def __init__(self, *, version: str = VERSION) -> None:
        super().__init__(HalfPrecisionSettings, version=version)


class DebugRecordSettings(PrettyJsonFileRecorder):
    """Indented JSON with full precision: Burn's choice for debugging."""

    def __init__(self, *, version: str = VERSION) -> None:
        super().__init__(FullPrecisionSettings, version=version)


def _to_save(record: Any) -> Any:
    """The record as it can be saved, where it is that of another library's file."""
    return record.to_save() if hasattr(record, "to_save") else record


def _is_there(path: Path) -> bool:
    try:
        return not path.is_dir() and os.path.lexists(path)
    except (OSError, ValueError):  # a name that no file can have
        return False


def _encoded(
    recorder: Recorder, record: BurnRecord, settings: Settings | None
) -> Pieces:
    convert = to_settings(settings) if settings else None
    return recorder.encode(record, Lowering(convert, record.metadata.release))


def _decoded(recorder: Recorder, data: bytes, where: str) -> BurnRecord:
    plain = None
    try:
        plain = recorder.decode(data)
        return recorder.lift(plain)
    except Trouble as trouble:
        kind, cure = guess(data)
        if kind and kind != recorder.kind:
            what = f"this is {kind}, not {recorder.kind}"
            raise RecordError(where, what, cure=cure) from None
        raise trouble.explain(where, _about(plain), READABLE) from None


def _converted(record: BurnRecord, settings: Settings, device: Any, where: str) -> Any:
    try:
        item = map_tensors(record.item, to_device(settings, device))
        release = record.metadata.release
        return LoadedRecord(item, release) if type(item) is dict else item
    except Trouble as trouble:
        raise trouble.explain(where, [], "another precision") from None


def _about(plain: object) -> list[tuple[str, str]]:
    """What the metadata say about a file that cannot be read otherwise."""
    metadata = plain.get("metadata") if isinstance(plain, dict) else None
    if not isinstance(metadata, dict):
        return []
    parts = [metadata.get(name) for name in ("settings", "version")]
    if not all(isinstance(part, str) and len(part) < 60 for part in parts):
        return []
    return [("written by", f"Burn {parts[1]} with {parts[0]}")]


def _not_settings(recorder: Recorder, settings: Any) -> RecordError:
    return RecordError(
        type(recorder).__name__,
        f"{settings!r} is not a precision",
        cure="FullPrecisionSettings, HalfPrecisionSettings or DoublePrecisionSettings",
    )
