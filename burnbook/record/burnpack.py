"""Burnpack (.bpk): the format of Burn since 0.19, and its only one since 0.22.

Ten bytes (a marker, the version, the length of what follows), then names, shapes and
ids as CBOR, zeros, and the elements: each tensor starts at a multiple of 256, so that a
file can be mapped into memory. What is written, Burn 0.22 reads: modules, optimizers
and schedules.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.lr_scheduler.base import WholePlace
from burnbook.module.param import ParamId
from burnbook.record import cbor
from burnbook.record.burnpack_states import named_parts, paths_of, record_of
from burnbook.record.flat import Named, Slot, is_span, read_slots
from burnbook.record.layout import Lowering, Pieces
from burnbook.record.mpk import container_room
from burnbook.record.recorder import FileRecorder
from burnbook.record.settings import (
    FullPrecisionSettings,
    PrecisionSettings,
    Settings,
)
from burnbook.record.tree import BurnRecord, Metadata, Trouble, short

HEAD = struct.Struct("<IHI")
MAGIC = 0x4255524E
VERSION = 1
ALIGNMENT = 256
MAX_TENSORS = 100_000
MAX_DEPTH = 8  # of the CBOR; a quantized tensor in blocks needs them all
BOOL = {"Bool": "Native"}  # the element type; a text before Burn 0.21


@dataclass(frozen=True)
class NamedMetadata(Metadata):
    """The metadata of a file that only names tensors; `texts` are its free ones.

    old_bool: whether the element type of a Bool is a text, as before Burn 0.21.
    """

    texts: dict[str, str] = field(default_factory=dict)
    old_bool: bool = False


class NamedTensorRecorder(FileRecorder):
    """A recorder into a file of named tensors.

    Why: such a file holds no tree and no constants. What is absent keeps the value
    of the module that loads it.
    """

    def __init__(
        self,
        settings: Settings | PrecisionSettings = FullPrecisionSettings,
        metadata: dict[str, str] | None = None,
    ) -> None:
        """Choose the precision, and texts to write ahead of the tensors."""
        super().__init__(settings)
        self.metadata = NamedMetadata("", "", self.written, "", "", metadata or {})

    def lift(self, plain: Any) -> BurnRecord:
        """The record: `decode` has completed it already."""
        return plain

    def texts(self, record: BurnRecord) -> dict[str, str]:
        """The free texts to write with a record."""
        return getattr(record.metadata, "texts", {})


class BurnpackRecorder(NamedTensorRecorder):
    """Burnpack in a file: tensors by name, with the ids of parameters, and numbers.

    Modules, optimizers and schedules are written as Burn 0.22 writes them. Needs the
    package cbor2. Two tensors never share bytes.

    Example:
        >>> import tempfile
        >>> from burnbook.tensor.data import TensorData
        >>> folder = tempfile.TemporaryDirectory()
        >>> recorder = BurnpackRecorder()
        >>> tree = {"norm": {"gamma": TensorData([1.0, 2.0])}, "step": 3}
        >>> path = recorder.record(tree, folder.name + "/model")
        >>> path.name, recorder.load(path)
        ('model.bpk', {'norm': {'gamma': TensorData f32 [2]}, 'step': 3})
        >>> folder.cleanup()
    """

    written = "BurnpackRecorder"
    kind = "burnpack"
    extension = "bpk"

    def encode(self, record: BurnRecord, lower: Lowering) -> Pieces:
        """The record as burnpack; the elements follow in the order of the tree."""
        _cbor2("write")  # without it nobody here could read the file again
        item: Any = record.item
        item = item.into_record() if hasattr(item, "into_record") else item
        tensors: dict[str, Any] = {}
        scalars: dict[str, Any] = {}
        contents: list[memoryview] = []
        end = 0
        old_bool = getattr(record.metadata, "old_bool", False)
        for part in named_parts(item, lower):
            if not isinstance(part, Named):
                if not part[0]:
                    what = "a number alone has no name, which burnpack needs"
                    raise Trouble(what, cure='{"step": 3}, or the schedule itself')
                scalars[part[0]] = _scalar(part[1])
                continue
            start = _aligned(end)
            end = start + len(part.content)
            contents.append(part.content)
            tensors[part.name] = _about(part, start, end, old_bool)
        texts = {**self.texts(record), **paths_of(item)}
        top: dict[str, Any] = {
            "tensors": tensors
        }  # Burn misses it, even if it is empty
        top |= {"metadata": texts} if texts else {}
        top |= {"scalars": scalars} if scalars else {}
        ordered = {key: dict(sorted(held.items())) for key, held in top.items()}
        text = cbor.encode(ordered)
        head = HEAD.pack(MAGIC, VERSION, len(text)) + text
        yield head + bytes(_aligned(len(head)) - len(head))
        end = 0
        for content in contents:
            if not len(content):
                continue
            yield bytes(_aligned(end) - end)
            yield content
            end = _aligned(end) + len(content)

    def decode(self, data: bytes) -> BurnRecord:
        """Read burnpack; anything incomplete raises Trouble."""
        if len(data) < HEAD.size:
            raise Trouble("the file ends inside its header", found=f"{len(data)} bytes")
        magic, version, length = HEAD.unpack_from(data)
        if magic != MAGIC:
            found = data[:4].hex(" ")
            raise Trouble("this is not burnpack", "4e 52 55 42 at the start", found)
        if version != VERSION:
            what = f"this is version {version} of burnpack"
            raise Trouble(what, f"version {VERSION}", cure="a newer burnbook")
        end = HEAD.size + length
        if end > len(data):
            what = "the file ends inside its names"
            raise Trouble(what, f"{length} bytes", f"{len(data) - HEAD.size} bytes")
        top = _read_cbor(data[HEAD.size : end])
        parts = [_part(top, name) for name in ("tensors", "metadata", "scalars")]
        slots = [_slot(name, about) for name, about in parts[0].items()]
        if len(slots) > MAX_TENSORS:
            what = "the file has too many tensors"
            raise Trouble(what, f"at most {MAX_TENSORS}", f"{len(slots)}")
        leaves = read_slots(slots, _elements(memoryview(data), end, slots))
        leaves |= {name: _number(name, held) for name, held in parts[2].items()}
        if not all(isinstance(text, str) for text in parts[1].values()):
            raise Trouble("the metadata of the file is not text", "names and texts")
        old_bool = any(slot.dtype == "Bool" for slot in slots)
        metadata = NamedMetadata("", "", self.written, "", "", parts[1], old_bool)
        return BurnRecord(metadata, record_of(leaves, len(data)))


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT


def _about(part: Named, start: int, end: int, old_bool: bool) -> dict[str, Any]:
    dtype = BOOL if part.dtype == "Bool" and not old_bool else part.dtype
    about: dict[str, Any] = {"dtype": dtype, "shape": part.shape}
    about["data_offsets"] = [start, end]
    if part.id:
        about["param_id"] = int(ParamId.deserialize(part.id))
    return about


def _scalar(value: Any) -> dict[str, Any]:
    kind = getattr(value, "scalar", None)
    if kind is not None:
        return {kind: float(value) if kind == "Float" else int(value)}
    if isinstance(value, bool):
        return {"Bool": value}
    if isinstance(value, int):
        return {"UInt" if value >= 0 else "Int": value}
    return {"Float": float(value)}


def _number(name: str, held: object) -> Any:
    kinds = {"Int": int, "UInt": int, "Float": float, "Bool": bool}
    if isinstance(held, dict) and len(held) == 1:
        ((kind, value),) = held.items()
        if kind in kinds and type(value) is kinds[kind]:
            if kind != "Int":
                return value
            last = name.rpartition(".")[2]  # the type is kept, to be written again
            return WholePlace(int(value), last, kind)
    raise Trouble(f"{short(name)} is not a number", "Int, UInt, Float or Bool")


def _part(top: dict[str, Any], name: str) -> dict[str, Any]:
    found = top.get(name, {})
    if isinstance(found, dict):
        return found
    raise Trouble(f"the {name} of the file have no names", "a map")


def _slot(name: str, about: Any) -> Slot:
    keys = ("dtype", "shape", "data_offsets")
    if not isinstance(about, dict) or not set(keys) <= about.keys():
        raise Trouble(f"{short(name)} is not described", ", ".join(keys))
    number = about.get("param_id")
    if number is not None and (type(number) is not int or not 0 <= number < 2**64):
        what = f"{short(name)} has an invalid id"
        raise Trouble(what, "64 bits", short(repr(number)))
    text = "" if number is None else ParamId(number).serialize()
    dtype, shape, offsets = (about[key] for key in keys)
    return Slot(name, dtype, shape, offsets, text)


def _elements(data: memoryview, end: int, slots: list[Slot]) -> memoryview:
    """The section of the elements: aligned, or at once after the names (Burn 0.19)."""
    spans = [slot.offsets for slot in slots if is_span(slot.offsets)]
    last = max((end for start, end in spans if end > start), default=0)
    start = _aligned(end)
    if last + end == len(data) != last + start:
        start = end
    if len(data) > start and any(data[end:start]):
        raise Trouble("there are bytes between the names and the elements", "zeros")
    return data[min(start, len(data)) :]


def _read_cbor(text: bytes) -> dict[str, Any]:
    cbor2 = _cbor2("read")
    walk = _Walk(text)
    if walk.item(0) != len(text):
        raise Trouble(f"{len(text) - walk.at} bytes follow the names", "none")
    try:
        top = cbor2.loads(text)
    except (cbor2.CBORDecodeError, ValueError) as cause:
        what = "the names are not CBOR"
        raise Trouble(what, found=short(cause)) from None
    if not isinstance(top, dict):
        raise Trouble("the names are not a map", "tensors, metadata, scalars")
    if _entries(top) != walk.entries:
        raise Trouble("the file has a name twice", "one each")
    return top


def _entries(node: object) -> int:
    if isinstance(node, dict):
        return len(node) + sum(map(_entries, node.values()))
    return sum(map(_entries, node)) if isinstance(node, list) else 0


class _Walk:
    """Steps over all items before anything is made of them.

    Why: CBOR has tags that build objects, and a header of nine bytes may promise more
    items than a computer can hold. Here only maps, lists, texts and numbers pass.
    """

    def __init__(self, text: bytes) -> None:
        self.text, self.at, self.entries = text, 0, 0
        self.room = container_room(8 * len(text))

    def item(self, depth: int, key: bool = False) -> int:
        """Step over the item that starts here, and say where the next one starts."""
        start = self.at
        major, count = self.head()
        if (key and major != 3) or major in (2, 6) or depth > MAX_DEPTH:
            expected = "texts as names; numbers, texts, lists, maps"
            raise Trouble(f"the names are not burnpack's at byte {start}", expected)
        if major == 3:
            self.at += count
        if self.at > len(self.text) or (major in (4, 5) and count > len(self.text)):
            raise Trouble("the names end too early", found=f"{len(self.text)} bytes")
        if major in (4, 5):
            self.room -= 1
            if self.room < 0:
                raise Trouble("the names are nested more deeply than in any record")
            for _ in range(count):
                if major == 5:
                    self.entries += 1
                    self.item(depth, key=True)
                self.item(depth + 1)
        return self.at

    def head(self) -> tuple[int, int]:
        """The kind of an item and its count, size or value."""
        if self.at >= len(self.text):
            raise Trouble("the names end too early", found=f"{len(self.text)} bytes")
        major, low = divmod(self.text[self.at], 32)
        self.at += 1
        plain = low < 24 if major != 7 else low in (20, 21, 22)
        if plain:
            return major, low
        width = {24: 1, 25: 2, 26: 4, 27: 8}.get(low, 0)
        if not width or (major == 7 and low == 24):
            raise Trouble(f"the names are not burnpack's at byte {self.at - 1}")
        self.at += width
        return major, int.from_bytes(self.text[self.at - width : self.at], "big")


def _cbor2(verb: str) -> Any:
    """The package that reads CBOR, asked for only here."""
    try:
        import cbor2
    except ImportError:
        what = "the package cbor2 is not installed; burnpack needs it"
        raise RecordError(f"{verb} burnpack", what, cure="pip install cbor2") from None
    return cbor2
