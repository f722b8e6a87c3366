"""Safetensors opened without being read: names at once, elements when asked for.

The elements are mapped into memory, so a tensor that nobody asks for is never read. A
large model lies in several files, its shards; with them an index, a JSON text, says
which tensor is in which.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

from burnbook.core.errors import RecordError
from burnbook.core.files import (
    PathLike,
    at_home,
    look_around,
    open_regular,
    printable,
    read_whole,
    within_memory,
)
from burnbook.record import json_text
from burnbook.record.foreign import guess
from burnbook.record.safetensors_format import (
    HEAD,
    MAX_HEADER,
    Header,
    TensorEntry,
    header_length,
    read_header,
    tensor_of,
)
from burnbook.record.tree import Trouble, short
from burnbook.tensor.data import TensorData

ENDING, INDEX = ".safetensors", ".safetensors.index.json"
WHOLE = "the file as it was written: copy or download it again"


class SafetensorsFile:
    """The tensors of a safetensors file, or of the shards in a folder, by name.

    path: a file; a folder with `model.safetensors.index.json`, or with shards alone;
        or such an index. Opening reads the names only; `file[name]` maps the elements
        into memory and gives them as TensorData, floats of eight bits widened to f32.
    entries: name, element type, shape and position of every tensor. texts: the free
        texts of the files. paths: the files, one for each shard.

    Example:
        >>> import tempfile
        >>> from burnbook.record import SafetensorsRecorder
        >>> folder = tempfile.TemporaryDirectory()
        >>> tree = {"fc": {"weight": TensorData([[1.0, 2.0]])}}
        >>> path = SafetensorsRecorder().record(tree, folder.name + "/model")
        >>> with SafetensorsFile(path) as file:
        ...     print(file.keys(), file.entries["fc.weight"].shape, file["fc.weight"])
        ['fc.weight'] (1, 2) [1.0, 2.0]
        >>> folder.cleanup()

    Raises:
        RecordError: there is no such file, it is damaged or of another format, or two
            shards have a tensor of the same name.
    """

    def __init__(self, path: PathLike) -> None:
        """Read the names of all tensors, and check every claim of the files."""
        paths, index = _shards(Path(at_home(path)))
        self._hold([_Part(path) for path in paths], index, printable(path))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """The tensors of a file that is in memory; it is not copied."""
        made = object.__new__(cls)
        made._hold([_Part(None, memoryview(data).cast("B"))], {}, "bytes")
        return made

    def _hold(self, parts: list[_Part], index: dict[str, str], where: str) -> None:
        self.paths = tuple(part.path for part in parts if part.path is not None)
        self.texts: dict[str, str] = {}
        self.entries: dict[str, TensorEntry] = {}
        self._parts: dict[str, _Part] = {}
        for part in parts:
            self.texts |= part.header.texts
            for entry in part.header.entries:
                name = entry.name
                if index.get(name, part.name) != part.name:
                    continue
                if name in self.entries:
                    _refuse_twins(where, name, self._parts[name], part)
                self.entries[name], self._parts[name] = entry, part
        missing = [name for name in index if name not in self.entries]
        if missing:
            name = missing[0]
            what = f"{short(name)} is not in {short(index[name])}, as the index says"
            facts = [f"so are {len(missing) - 1} others"] if missing[1:] else []
            raise RecordError(f"read {where}", what, facts, "all files of the download")

    def keys(self) -> list[str]:
        """The names of the tensors, file by file, in the order of their bytes."""
        return list(self.entries)

    def __getitem__(self, name: str) -> TensorData:
        """The tensor of this name; its elements stay in the file until they are used.

        Raises:
            RecordError: there is none, the file has changed since it was opened, or the
                element type has no counterpart (complex numbers, floats of 4 bits).
        """
        if name not in self.entries:
            near = _near(name, self.entries)
            raise RecordError(self._where(), f"there is no tensor {name!r}", cure=near)
        entry, part = self.entries[name], self._parts[name]
        with within_memory(part.where, RecordError):
            content = part.content(entry.start, entry.end)
            try:
                return tensor_of(entry, content)
            except Trouble as trouble:
                raise trouble.explain(part.where, [], WHOLE) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files; tensors that were given out keep what they need."""
        for part in self._parts.values():
            part.map = None

    def __repr__(self) -> str:
        tensors = f"{len(self)} tensor" + ("" if len(self) == 1 else "s")
        files = f" in {len(self.paths)} files" if len(self.paths) > 1 else ""
        return f"SafetensorsFile({tensors}{files})"

    def _where(self) -> str:
        return f"read {self.paths[0]}" if self.paths else "read bytes"


class _Part:
    """One file: its header, and its bytes as soon as somebody asks for some."""

    def __init__(self, path: Path | None, data: memoryview | None = None) -> None:
        self.path, self.name = path, "" if path is None else path.name
        self.where = "read bytes" if path is None else f"read {printable(path)}"
        self.map: Any = data
        if path is None:
            body = memoryview(b"") if data is None else data
            first, self.size = bytes(body[:HEAD]), len(body)
            self.header = self._header(first, lambda n: bytes(body[HEAD : HEAD + n]))
            return
        with open_regular(path, RecordError) as file:
            self.size, self.mark = _mark(file.fileno())
            self.header = self._header(file.read(HEAD) or b"", file.read)

    def _header(self, first: bytes, read: Any) -> Header:
        text = b""
        with within_memory(self.where, RecordError):
            try:
                length = header_length(first, self.size)
                text = read(length) or b""
                if len(text) != length:
                    raise Trouble("the file ends inside its names")
                return read_header(text, self.size)
            except Trouble as trouble:
                begin = first + (text or read(64) or b"")
                kind, cure = guess(begin[:64])
                is_ours = begin[HEAD : HEAD + 1] == b"{" and text
                if kind not in ("", "safetensors") and not is_ours:
                    what = f"this is {kind}, not safetensors"
                    raise RecordError(self.where, what, cure=cure) from None
                raise trouble.explain(self.where, [], WHOLE) from None

    def content(self, start: int, end: int) -> memoryview:
        """The bytes of a tensor, mapped from the file.

        Why: reading beyond the end of a mapped file kills the process, so the file is
        asked for its size each time.
        """
        if start == end:
            return memoryview(b"")
        first = self.header.start
        if self.path is not None:
            if self.map is None:
                self.map = self._mapped(self.path)
            if self.map.size() != self.size:
                raise self._changed()
        return memoryview(self.map)[first + start : first + end]

    def _mapped(self, path: Path) -> mmap.mmap:
        with open_regular(path, RecordError) as file:
            if _mark(file.fileno()) != (self.size, self.mark):
                raise self._changed()
            try:
                return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            except OSError as cause:
                what = f"the file cannot be mapped: {cause.strerror or cause}"
                raise RecordError(self.where, what) from None

    def _changed(self) -> RecordError:
        what = "the file has changed since it was opened"
        return RecordError(self.where, what, cure="opening it again")


def _mark(handle: int) -> tuple[int, tuple[int, ...]]:
    """The size of an open file, and what changes when the file does."""
    found = os.fstat(handle)
    return found.st_size, (found.st_dev, found.st_ino, found.st_mtime_ns)


def _shards(path: Path) -> tuple[list[Path], dict[str, str]]:
    """The files to open for a path, and which tensor an index says is in which."""
    where = f"read {printable(path)}"
    try:
        is_folder = path.is_dir()
    except (OSError, ValueError):  # a name that no file can have
        is_folder = False
    if not is_folder:
        if not path.name.endswith(".json"):
            return [path], {}
        index = _read_index(path)
        return [path.parent / name for name in dict.fromkeys(index.values())], index
    try:
        names = sorted(found.name for found in path.iterdir())
    except OSError as cause:
        what = f"the folder cannot be read: {cause.strerror or cause}"
        raise RecordError(where, what) from None
    indexes = [name for name in names if name.endswith(INDEX)]
    if f"model{INDEX}" in indexes or len(indexes) == 1:
        chosen = f"model{INDEX}" if f"model{INDEX}" in indexes else indexes[0]
        return _shards(path / chosen)
    if indexes:
        facts = [("found", short(", ".join(indexes), 200))]
        raise RecordError(where, "the folder has several indexes", facts, "one of them")
    shards = [path / name for name in names if name.endswith(ENDING)]
    if not shards:
        what = f"the folder has no {ENDING} file"
        raise RecordError(where, what, look_around(path / "x"), "another folder")
    return shards, {}


def _read_index(path: Path) -> dict[str, str]:
    """Which tensor is in which file.

    Why: a name with a folder in it could lead anywhere, so none is followed.
    """
    where = f"read {printable(path)}"
    text = read_whole(path, RecordError, where, most=MAX_HEADER)
    with within_memory(where, RecordError):
        try:
            top = json_text.decode(text)
            index = top.get("weight_map") if isinstance(top, dict) else None
            if not isinstance(index, dict) or not index:
                what = "this is no index of safetensors"
                raise Trouble(what, "weight_map: the file of every tensor")
            for name, file in index.items():
                plain = isinstance(file, str) and file.isprintable()
                plain = plain and not {"/", "\\", ":"} & set(file)
                if not plain or not file.endswith(ENDING) or file == ENDING:
                    what = f"{short(name)} is in no file beside the index"
                    expected = f"a name that ends in {ENDING}, without folders"
                    raise Trouble(what, expected, short(repr(file)))
        except Trouble as trouble:
            raise trouble.explain(where, [], WHOLE) from None
    return index


def _refuse_twins(where: str, name: str, first: _Part, second: _Part) -> None:
    what = f"{short(name)} is in two files, and no index says which to take"
    facts = [("files", f"{short(first.name)}, {short(second.name)}")]
    cure = "the path of the file or of the index to read"
    raise RecordError(f"read {where}", what, facts, cure)


def _near(name: str, known: dict[str, TensorEntry]) -> str:
    import difflib

    near = difflib.get_close_matches(str(name), list(known), 3, 0.4)
    return ", ".join(map(short, near)) or "a name of keys()"
