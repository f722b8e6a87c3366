"""The formats in which PyTorch has written files: zip, legacy, tar, and bare pickles.

`open_file` tells them apart and gives the object that was saved, with a description in
the place of every tensor. The bytes of storages stay in the file, which is mapped into
memory, until a tensor is read.
"""

from __future__ import annotations

import io
import struct
import tarfile
import threading
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import IO, Any, Literal

from burnbook.importers.pickle_reader import PickleReader
from burnbook.importers.torch_values import (
    Payload,
    Storage,
    TorchNames,
    is_count,
    item_size,
    storage_id,
)
from burnbook.record.foreign import FROM_PACKAGE, guess, kind_of_member
from burnbook.record.tree import Trouble, short

Format = Literal["zip", "legacy", "tar", "pickle"]
END, MOST_END = b"PK\x05\x06", 1 << 17  # of an archive, and where it stands
MAGIC = 0x1950A86A20F9469CFC6C
UNPACKED = 64  # how many times its size a compressed pickle may have
SHORT = 1 << 18  # bytes of a member that is unpacked as a whole
MOST_TIMES = 32  # how often its size a longer one is unpacked for nothing
HELD = 8  # how many times its compressed size a longer one has that is kept as a whole
OFTEN = 4  # times that a longer one is begun again, before it is kept
SCRIPT_MARK, PACKAGE_MARK = "constants.pkl", ".data/extern_modules"


@dataclass(frozen=True, eq=False)
class FileContent:
    """What a file of PyTorch holds.

    root: the object that was saved.
    version: the text that PyTorch writes into a zip file; that of the protocol else.
    scripted: whether it is TorchScript, a program with its weights.
    """

    format: Format
    version: str
    big_endian: bool
    root: Any
    scripted: bool = False


def zlib_text(cause: BaseException) -> str:
    """What a library says of damage, in our words."""
    return short(str(cause).replace("invalid", "wrong"))


def open_file(data: memoryview, nested: bool = False) -> FileContent:
    """The content of a file of PyTorch.

    Raises:
        Trouble: it is none, is damaged, or holds more than tensors and plain data.
    """
    try:
        if bytes(data[:4]) == b"PK\x03\x04":
            return _from_zip(data, nested)
        if bytes(data[257:262]) == b"ustar":
            return _from_tar(data)
        return _from_pickles(data, nested)
    except (zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError) as cause:
        if bytes(data[:4]) == b"PK\x03\x04" and END not in bytes(data[-MOST_END:]):
            what = "the file is cut off: the end of its archive is missing"
            raise Trouble(what, found=f"{len(data):,} bytes") from None
        raise Trouble(f"the archive is damaged: {zlib_text(cause)}") from None
    except (NotImplementedError, RuntimeError) as cause:  # of zipfile: a password
        raise Trouble(f"the archive cannot be read: {short(cause)}") from None
    except (ValueError, OverflowError, OSError, struct.error, KeyError) as cause:
        raise Trouble(f"the file is damaged: {short(cause)}") from None


class View(io.RawIOBase):
    """Bytes in memory as a file, without a copy.

    Why: of a file, Python reserves as much memory as is asked for, before it looks how
    much there is; a damaged archive may ask for gigabytes.
    """

    def __init__(self, data: memoryview) -> None:
        self.data, self.at = data, 0

    def readable(self) -> bool:
        """Yes."""
        return True

    def seekable(self) -> bool:
        """Yes."""
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        """Go to a byte."""
        start = {0: 0, 1: self.at, 2: len(self.data)}[whence]
        if start + offset < 0:
            raise ValueError("a position before the file")
        self.at = start + offset
        return self.at

    def tell(self) -> int:
        """Which byte comes next."""
        return self.at

    def read(self, size: int | None = -1) -> bytes:
        """The next bytes, as many as there are."""
        end = len(self.data) if size is None or size < 0 else self.at + size
        found = bytes(self.data[self.at : end])
        self.at += len(found)
        return found

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer."""
        found = self.read(len(buffer))
        buffer[: len(found)] = found
        return len(found)


@dataclass(frozen=True)
class Stored:
    """Bytes that stand in the file as they are."""

    data: memoryview

    @property
    def size(self) -> int:
        """How many bytes there are."""
        return len(self.data)

    def read(self, start: int, stop: int) -> bytes:
        """A copy of some of them."""
        return bytes(self.data[start:stop])


@dataclass
class Unpacking:
    """Where unpacking stands; all members of an archive share it.

    name: of the member; file: what it is read from, at `position`. whole: all of the
    member, where it is kept. again: how often a long one was begun again. wasted: bytes
    that were unpacked, and that nobody had asked for.
    """

    name: str = ""
    file: IO[bytes] | None = None
    position: int = 0
    whole: bytes | None = None
    again: int = 0
    wasted: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


@dataclass(frozen=True)
class Packed:
    """Bytes that are compressed in the file."""

    archive: zipfile.ZipFile
    member: zipfile.ZipInfo
    state: Unpacking

    @property
    def size(self) -> int:
        """How many bytes there are, as the file says."""
        return self.member.file_size

    def read(self, start: int, stop: int) -> bytes:
        """Unpack some of them, and keep no others in memory.

        Why: many tensors may be parts of one member. A short one is kept until another
        one is asked for; in a long one, reading goes on where it stood, as a few bytes
        of a file may be unpacked to gigabytes that no tensor uses. One that is not much
        longer than what the file has of it is kept, too, if its parts are out of order.
        """
        with self.state.lock:
            return self._read(start, min(stop, self.size))

    def _read(self, start: int, stop: int) -> bytes:
        state, name = self.state, self.member.filename
        if state.name != name:
            self._begin()
            state.name, state.again, state.wasted = name, 0, 0
        if start < state.position and state.whole is None:
            state.again += 1
            if state.wasted > MOST_TIMES * self.size:
                what = f"{short(name)} is compressed, and its parts are out of order"
                raise Trouble(what, cure="torch.save(torch.load(path), path)")
            self._begin()
        is_kept = self.size <= HELD * self.member.compress_size and state.again > OFTEN
        if self.size <= SHORT or is_kept:
            if state.whole is None:
                self._begin()
                state.whole = self._next(self.size)
            return state.whole[start:stop]
        while state.position < start:
            count = min(start - state.position, SHORT)
            self._next(count)
            state.wasted += count
        return self._next(stop - start)

    def _begin(self) -> None:
        state = self.state
        if state.file is not None:
            state.file.close()
        state.file, state.position, state.whole = None, 0, None

    def _next(self, count: int) -> bytes:
        """The bytes that follow."""
        state = self.state
        try:
            if state.file is None:
                state.file = self.archive.open(self.member)
            found = state.file.read(count)
        except (zipfile.BadZipFile, zlib.error, EOFError) as cause:
            raise Trouble(f"the archive is damaged: {zlib_text(cause)}") from None
        except (ValueError, NotImplementedError, OSError, RuntimeError) as cause:
            raise Trouble(f"the archive cannot be read: {short(cause)}") from None
        state.position += len(found)
        if len(found) != count:
            raise Trouble(f"{short(self.member.filename)} is cut off")
        return found


# Zip, since PyTorch 1.6


def _from_zip(data: memoryview, nested: bool) -> FileContent:
    archive = zipfile.ZipFile(View(data))
    spans: list[tuple[int, int, str]] = []
    state = Unpacking()
    members: dict[str, zipfile.ZipInfo] = {}
    for member in archive.infolist():
        if members.setdefault(member.filename, member) is not member:
            raise Trouble(f"the archive has {short(member.filename)} twice")
    path = _pickle_of(members)
    root = path.removesuffix("data.pkl")
    scripted = root + SCRIPT_MARK in members

    def text(name: str) -> str:
        member = members.get(root + name)
        if member is None or member.file_size > 100:
            return ""
        payload = opened(member)
        return payload.read(0, payload.size).decode("latin-1").strip()

    def opened(member: zipfile.ZipInfo) -> Payload:
        payload, span = _payload(data, archive, member, state)
        spans.append((*span, member.filename))
        return payload

    big = text("byteorder") == "big"

    def storage(key: object) -> Storage:
        dtype, name, count, view = storage_id(key)
        member = members.get(f"{root}data/{name}")
        if member is None:
            raise Trouble(f"the storage {short(name)} is not in the file")
        if name not in known:
            known[name] = opened(member)
        if view is not None:
            raise Trouble("a storage is a view, which zip files do not have")
        return Storage(dtype, name, count, known[name], big_endian=big)

    known: dict[str, Payload] = {}
    pickle = opened(members[path])
    _check_unpacked(members[path])
    inner = None if nested else _Inner(max(len(data), pickle.size))
    reader = PickleReader(
        pickle.read(0, pickle.size), TorchNames(storage, scripted, inner)
    )
    root, version = reader.load(), text("version")
    _check_spans(spans)
    return FileContent("zip", version, big, root, scripted)


def _check_unpacked(pickle: zipfile.ZipInfo) -> None:
    most = UNPACKED * pickle.compress_size + (1 << 20)
    if pickle.file_size > most:
        what = "the pickle unpacks to more than it may"
        raise Trouble(what, f"at most {most:,} bytes", f"{pickle.file_size:,}")


def _check_spans(spans: list[tuple[int, int, str]]) -> None:
    """Raise if two members have bytes in common.

    Why: a thousand members over the same megabyte would be a gigabyte of tensors.
    """
    end = 0
    for start, stop, name in sorted(set(spans)):
        if start < end:
            raise Trouble(f"{short(name)} lies over another member of the archive")
        end = max(end, stop)


def _pickle_of(members: dict[str, zipfile.ZipInfo]) -> str:
    """The pickle of an archive: the one that lies nearest to its root."""
    if any(name.endswith(PACKAGE_MARK) for name in members):
        raise Trouble("this is an archive of torch.package", cure=FROM_PACKAGE)
    found = [n for n in members if n == "data.pkl" or n.endswith("/data.pkl")]
    if not found:
        raise Trouble(*_no_root(members))
    depth = min(name.count("/") for name in found)
    nearest = [name for name in found if name.count("/") == depth]
    if len(nearest) > 1:
        shown = ", ".join(map(short, nearest[:4]))
        raise Trouble("several files of PyTorch are in the archive", found=shown)
    return nearest[0]


def _no_root(
    members: dict[str, zipfile.ZipInfo],
) -> tuple[str, str, str, str | None]:
    """What a zip archive is that has no pickle in it."""
    what = "this is a zip archive, but not of PyTorch: it has no data.pkl"
    names = ", ".join(short(name, 30) for name in list(members)[:4])
    for name in members:
        if known := kind_of_member(name):
            what, cure = known
            return f"this is {what}, not a file of PyTorch", "", names, cure
    cure = None
    return what, "", names, cure


def _payload(
    data: memoryview,
    archive: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    state: Unpacking,
) -> tuple[Payload, tuple[int, int]]:
    """The bytes of a member, and where they are in the file.

    Its own header says how long its name is.
    """
    if member.flag_bits & 1:
        raise Trouble(f"{short(member.filename)} is encrypted")
    if member.compress_type != zipfile.ZIP_STORED:
        if member.file_size > 1032 * member.compress_size + 64:  # deflate's limit
            raise Trouble(f"{short(member.filename)} has an impossible size")
        begin = member.header_offset
        return Packed(archive, member, state), (begin, begin + member.compress_size)
    at = member.header_offset
    head = bytes(data[at : at + 30])
    if len(head) < 30 or head[:4] != b"PK\x03\x04":
        raise Trouble(f"the archive is damaged at {short(member.filename)}")
    name, extra = struct.unpack("<HH", head[26:30])
    start = at + 30 + name + extra
    if start + member.file_size > len(data):
        raise Trouble(f"{short(member.filename)} is cut off")
    end = start + member.file_size
    return Stored(data[start:end]), (start, end)


class _Inner:
    """Reads files inside the pickle of another one.

    Why: a pickle may name the same bytes again and again; so all of them together may
    be no longer than the file, as they are where each is written once.
    """

    def __init__(self, left: int) -> None:
        self.left = left

    def __call__(self, data: bytes) -> object:
        """What one of them holds."""
        self.left -= len(data)
        if self.left < 0:
            raise Trouble("the same file is in the pickle many times")
        return open_file(memoryview(data), nested=True).root


# Legacy, until PyTorch 1.5: pickles one after the other, then the storages


class _Waiting:
    """Storages by their keys, whose bytes come later in the file."""

    def __init__(self) -> None:
        self.storages: list[Storage] = []
        self.dtypes: dict[str, str] = {}

    def storage(self, key: object) -> Storage:
        """A storage without its bytes."""
        dtype, name, count, view = storage_id(key)
        offset = 0
        if view is not None:
            offset, count = _view(view)
        if self.dtypes.setdefault(name, dtype) != dtype:
            raise Trouble(f"the storage {short(name)} has two element types")
        made = Storage(dtype, name, count, offset=offset)
        self.storages.append(made)
        return made

    def fill(self, payloads: dict[str, Payload]) -> None:
        """Give the storages their bytes, now that these are found."""
        for storage in self.storages:
            storage.payload = payloads.get(storage.key)


def _view(view: object) -> tuple[int, int]:
    """Where a view of a storage begins, and how many elements it has."""
    if isinstance(view, tuple) and len(view) == 3:
        offset, count = view[1:]
        if is_count(offset) and is_count(count):
            return offset, count
    raise Trouble("a storage is an impossible view")


def _from_pickles(data: memoryview, nested: bool) -> FileContent:
    waiting = _Waiting()
    inner = None if nested else _Inner(len(data))
    names = TorchNames(waiting.storage, inner=inner)
    reader = PickleReader(data, names)
    if len(data) < 2 or data[0] != 0x80:
        kind, cure = guess(bytes(data[:64]))
        if kind:
            raise Trouble(f"this is {kind}, not a file of PyTorch", cure=cure)
    try:
        first = reader.load()
    except Trouble:
        if len(data) and data[0] == 0x80:
            raise
        what = "this is not a file of PyTorch"
        expected = "a zip archive, a tar archive, or pickles"
        raise Trouble(what, expected, short(bytes(data[:8]))) from None
    if type(first) is not int or first != MAGIC:
        waiting.fill({})
        return FileContent("pickle", "", False, first)
    protocol, about = reader.load(), reader.load()
    if protocol != 1001 or not isinstance(about, dict):
        raise Trouble("the head of the file is not PyTorch's")
    root, keys = reader.load(), reader.load()
    if not isinstance(keys, list) or not all(isinstance(k, (str, int)) for k in keys):
        raise Trouble("the file does not list its storages")
    at, payloads = reader.at, {}
    for key in map(str, keys):
        if key not in waiting.dtypes:
            raise Trouble(f"no tensor has the storage {short(key)}")
        at, payloads[key] = _counted(data, at, waiting.dtypes[key])
    waiting.fill(payloads)
    return FileContent("legacy", str(protocol), False, root)


def _counted(data: memoryview, at: int, dtype: str) -> tuple[int, Payload]:
    """Where a storage ends, and its bytes, behind the count of elements."""
    count = int.from_bytes(data[at : at + 8], "little", signed=True)
    start = at + 8
    end = start + count * item_size(dtype)
    if count < 0 or start > len(data) or end > len(data):
        what = "the file ends inside a storage"
        raise Trouble(what, f"{end} bytes", f"{len(data)} bytes")
    return end, Stored(data[start:end])


# Tar, before PyTorch 0.1.10


def _from_tar(data: memoryview) -> FileContent:
    parts: dict[str, memoryview] = {}
    file: Any = View(data)
    with tarfile.open(fileobj=file, mode="r:") as archive:
        for member in archive:
            if member.isreg() and not member.issparse():
                start = member.offset_data
                if start + member.size > len(data):
                    raise Trouble(f"{short(member.name)} is cut off")
                parts[member.name] = data[start : start + member.size]
    if "pickle" not in parts or "storages" not in parts:
        found = ", ".join(short(name, 30) for name in list(parts)[:4])
        raise Trouble("this is a tar archive, but not of PyTorch", found=found)
    return _TarReader(parts).content()


class _TarReader:
    """Storages by their numbers, views of them, tensors by theirs, and a pickle."""

    def __init__(self, parts: dict[str, memoryview]) -> None:
        self.parts = parts
        self.known: dict[str, Any] = {}  # storages and tensors

    def content(self) -> FileContent:
        """What the archive holds."""
        self.storages()
        if "tensors" in self.parts:
            self.tensors()
        names = TorchNames(self.storage)
        names.persistent = self.persistent  # type: ignore[method-assign] # of this kind
        root = PickleReader(self.parts["pickle"], names).load()
        return FileContent("tar", "", False, root)

    def persistent(self, key: object) -> Any:
        """A tensor or storage by its number, alone or first in a tuple."""
        if isinstance(key, tuple) and key[:1] == ("storage",):
            return self.storage(key)
        name = str(key[0] if isinstance(key, tuple) and key else key)[:60]
        if name not in self.known:
            raise Trouble(f"the archive has no storage {short(name)}")
        return self.known[name]

    def storage(self, key: object) -> Storage:
        """A storage by its id as in newer files."""
        _, name, _, _ = storage_id(key)
        found = self.known.get(name)
        if not isinstance(found, Storage):
            raise Trouble(f"the archive has no storage {short(name)}")
        return found

    def rows(self, name: str) -> tuple[PickleReader, int]:
        """A member, and how many rows it begins to count."""
        waiting = _Waiting()
        reader = PickleReader(self.parts[name], TorchNames(waiting.storage))
        count = reader.load()
        if type(count) is not int or not 0 <= count <= len(self.parts[name]):
            raise Trouble(f"the member {name} does not say how much it holds")
        return reader, count

    def storages(self) -> None:
        """Read where the bytes of each storage are."""
        reader, count = self.rows("storages")
        part = self.parts["storages"]
        for _ in range(count):
            row = reader.load()
            if not isinstance(row, tuple) or len(row) != 3:
                raise Trouble("a storage of the archive is not described")
            dtype, name, _, _ = storage_id(("storage", row[2], _plain(row[0]), "", 0))
            reader.at, payload = _counted(part, reader.at, dtype)
            numel = payload.size // item_size(dtype)
            self.known[name] = Storage(dtype, name, numel, payload)
        if reader.at >= len(part):
            return
        views = reader.load()
        for row in views if isinstance(views, list) else ():
            if not isinstance(row, tuple) or len(row) != 4:
                raise Trouble("a view of the archive is not described")
            root = self.known.get(_plain(row[1]))
            whole = all(map(is_count, row[2:]))
            if not isinstance(root, Storage) or not whole:
                raise Trouble("a view of the archive is impossible")
            name = _plain(row[0])
            view = Storage(root.dtype, name, row[3], root.payload, row[2])
            view.check()
            self.known[name] = view

    def tensors(self) -> None:
        """Read the sizes and strides of each tensor."""
        reader, count = self.rows("tensors")
        for _ in range(count):
            row = reader.load()
            if not isinstance(row, tuple) or len(row) != 3:
                raise Trouble("a tensor of the archive is not described")
            rank = int.from_bytes(reader.take(8)[:4], "little")
            if rank > 64:
                raise Trouble("a tensor has impossible sizes", found=f"{rank} dims")
            numbers = struct.unpack(f"<{2 * rank + 1}q", reader.take(16 * rank + 8))
            args = (numbers[-1], numbers[:rank], numbers[rank : 2 * rank])
            make = reader.names.look_up("torch._utils._rebuild_tensor")
            storage = self.known.get(_plain(row[1]))
            made = reader.names.call(make, (storage, *args))  # type: ignore[arg-type] # a Name
            self.known[_plain(row[0])] = made


def _plain(key: object) -> str:
    if isinstance(key, (str, int)):
        return str(key)[:60]
    raise Trouble("a storage of the archive has no key")
