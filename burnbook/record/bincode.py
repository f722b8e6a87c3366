"""Bincode: values back to back, without any names.

Small whole numbers are one byte, larger ones a marker and 2, 4 or 8 bytes; lists and
texts start with their length, options with a byte 0 or 1, and a constant is one byte 0.
The module that loads the record says what stands where, see `schema`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from typing import Any

from burnbook.module.param import ParamRecord
from burnbook.record.layout import FIELDS, Lowering, Pieces, Raw
from burnbook.record.schema import (
    CONSTANT,
    LIST,
    MAP,
    PARAM,
    STRUCT,
    TUPLE,
    Part,
)
from burnbook.record.tree import Metadata, Path, Trouble, named, short

_DTYPES = "F64 F32 Flex32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 Bool QFloat".split()  # noqa: SIM905
_STRATEGIES = ["PerTensorAffineInt8", "PerTensorSymmetricInt8"]
_BOOLS = ["Native", "U8", "U32"]
_WIDTHS = {251: "<H", 252: "<I", 253: "<Q"}
MAX_TEXT = 1000
MAX_RANK = 32


def dtype_table(metadata: Metadata) -> list[str]:
    """The element types in the order of their numbers in that release of Burn.

    Why: newer releases put U16 and Flex32 into the middle, so a number alone says
    nothing.
    """
    release = metadata.release
    if release < (0, 14):
        version = short(metadata.version)
        what = f"bincode of Burn {version} has another layout"
        raise Trouble(what, "Burn 0.14 to 0.21", cure="named MessagePack (.mpk)")
    missing = {"Flex32"} if release < (0, 17) else set()
    missing |= {"U16"} if release < (0, 16) else set()
    return [name for name in _DTYPES if name not in missing]


def whole_number(value: int) -> bytes:
    """An unsigned number: 1, 3, 5 or 9 bytes.

    Example:
        >>> whole_number(250).hex(), whole_number(288).hex(" ")
        ('fa', 'fb 20 01')
    """
    if value < 251:
        return bytes([value])
    mark = 251 if value < 2**16 else 252 if value < 2**32 else 253
    return bytes([mark]) + struct.pack(_WIDTHS[mark], value)


def text(value: str) -> bytes:
    """A text: the length of its UTF-8, and that."""
    raw = value.encode()
    return whole_number(len(raw)) + raw


class Writer:
    """Writes the parts of a record as a schema says."""

    def __init__(self, metadata: Metadata, lower: Lowering) -> None:
        self.metadata, self.lower = metadata, lower
        self.dtypes = dtype_table(metadata)

    def head(self) -> bytes:
        """The metadata: five texts."""
        return b"".join(text(getattr(self.metadata, name)) for name in FIELDS)

    def item(self, part: Part, node: object, path: Path) -> Pieces:
        """The bytes of one part, piece by piece."""
        if part.optional:
            there = node is not None or (part.kind == CONSTANT and part.present)
            yield bytes([there])
            if not there:
                return
        if part.variant:
            yield whole_number(part.variant[0])
            node = node.get(part.variant[1]) if isinstance(node, dict) else None
        if part.kind == CONSTANT:
            yield b"\0"
        elif part.kind == PARAM:
            yield from self._param(node, path)
        else:
            yield from self._group(part, node, path)

    def _group(self, part: Part, node: object, path: Path) -> Pieces:
        values: Any = node
        if part.kind in (STRUCT, MAP) and isinstance(node, dict):
            values = [node.get(name) for name, _ in part.parts]
        if not isinstance(values, list | tuple) or len(values) != len(part.parts):
            what = f"{named(path)} does not match its module"
            raise Trouble(what, part.kind, type(node).__name__)
        if part.kind in (LIST, MAP):
            yield whole_number(len(part.parts))
        for (name, inner), value in zip(part.parts, values, strict=True):
            if part.kind == MAP:
                yield text(name)
            yield from self.item(inner, value, (*path, name))

    def _param(self, node: object, path: Path) -> Pieces:
        if not isinstance(node, ParamRecord):
            what = f"{named(path)} does not match its module"
            raise Trouble(what, PARAM, type(node).__name__)
        yield text(node.id)
        yield from self.tensor(self.lower(node.param, path), path)

    def tensor(self, low: Any, path: Path) -> Pieces:
        """Bytes, shape and element type of a tensor."""
        content = low["bytes"].content if isinstance(low["bytes"], Raw) else b""
        content = memoryview(content).cast("B")
        yield whole_number(len(content))
        yield content
        yield whole_number(len(low["shape"]))
        yield b"".join(map(whole_number, low["shape"]))
        yield self._dtype(low["dtype"], path)

    def _dtype(self, dtype: str | dict[str, Any], path: Path) -> bytes:
        name = dtype if isinstance(dtype, str) else "QFloat"
        if name not in self.dtypes:
            what = f"{named(path)} is {name}, which Burn {self.metadata.version} lacks"
            raise Trouble(what, cure="another element type")
        number = whole_number(self.dtypes.index(name))
        if isinstance(dtype, str):
            return number
        if self.metadata.release >= (0, 16):
            what = f"{named(path)} is quantized, which is written for Burn 0.15 only"
            raise Trouble(what, cure="model.map(Dequantize()) before saving")
        ((strategy, held),) = dtype["QFloat"].items()
        made = number + whole_number(_STRATEGIES.index(strategy))
        made += struct.pack("<f", held["scale"])
        return made + (struct.pack("b", held["offset"]) if "offset" in held else b"")


class Reader:
    """Reads the parts of a record as a schema says; checks every length first."""

    def __init__(self, data: bytes, at: int = 0) -> None:
        self.data, self.at = data, at
        self.metadata = Metadata("", "", "", "", "")
        self.dtypes: list[str] = []

    def head(self) -> Metadata:
        """The metadata that a file starts with."""
        texts = [self.text(("metadata", name)) for name in FIELDS]
        self.metadata = Metadata(*texts)
        self.dtypes = dtype_table(self.metadata)
        return self.metadata

    def item(self, part: Part, path: Path) -> Any:
        """What stands here, as maps, lists, texts and bytes."""
        if part.optional and not self.flag(path):
            return None
        if part.variant:
            position, name = part.variant
            found = self.number(path)
            if found != position:
                what = f"{named(path)} is a different variant"
                raise Trouble(what, f"{name}, number {position}", f"number {found}")
            return {name: self._bare(part, path)}
        return self._bare(part, path)

    def _bare(self, part: Part, path: Path) -> Any:
        collapsed = part.plain and self.metadata.release >= (0, 21)
        if part.kind == CONSTANT or collapsed:
            if self.flag(path):
                raise Trouble(f"{named(path)} is a constant in the module", "byte 0")
            return None
        if part.kind == PARAM:
            return {"id": self.text(path), "param": self.tensor(path)}
        if part.kind in (LIST, MAP):
            count = self.number(path)
            if count != len(part.parts):
                what = f"{named(path)} differs in length from the module"
                raise Trouble(what, f"{len(part.parts)}", f"{count}")
        if part.kind in (LIST, TUPLE):
            return [self.item(inner, (*path, name)) for name, inner in part.parts]
        found = {}
        for name, inner in part.parts:
            key = self.text(path) if part.kind == MAP else name
            found[key] = self.item(dict(part.parts).get(key, inner), (*path, key))
        return found

    def tensor(self, path: Path) -> dict[str, Any]:
        """Bytes, shape and element type of a tensor."""
        content = self.take(self.number(path), path)
        rank = self.number(path)
        if rank > MAX_RANK:
            what = f"{named(path)} has an impossible shape"
            raise Trouble(what, f"at most {MAX_RANK} sizes", f"{rank}")
        shape = [self.number(path) for _ in range(rank)]
        return {"bytes": content, "shape": shape, "dtype": self._dtype(path)}

    def _dtype(self, path: Path) -> Any:
        name = self._choice(self.dtypes, path)
        if name == "Bool" and self.metadata.release >= (0, 21):
            return {"Bool": self._choice(_BOOLS, path)}
        if name != "QFloat":
            return name
        if self.metadata.release >= (0, 16):
            raise Trouble(f"{named(path)} is quantized in an unknown way")
        strategy = self._choice(_STRATEGIES, path)
        held: dict[str, Any] = {"scale": struct.unpack("<f", self.take(4, path))[0]}
        if strategy == _STRATEGIES[0]:
            held["offset"] = struct.unpack("b", self.take(1, path))[0]
        return {"QFloat": {strategy: held}}

    def _choice(self, names: list[str], path: Path) -> str:
        number = self.number(path)
        if number >= len(names):
            what = f"{named(path)} has an unknown element type"
            raise Trouble(what, f"a number below {len(names)}", f"{number}")
        return names[number]

    def flag(self, path: Path) -> bool:
        """A byte that is 0 or 1."""
        found = self.take(1, path)[0]
        if found > 1:
            raise Trouble(f"{named(path)} is not there", "byte 0 or 1", f"{found}")
        return bool(found)

    def number(self, path: Path) -> int:
        """An unsigned number."""
        first = self.take(1, path)[0]
        if first < 251:
            return first
        if first not in _WIDTHS:
            raise Trouble(f"{named(path)} is not a valid number", found=f"{first:#x}")
        form = _WIDTHS[first]
        return struct.unpack(form, self.take(struct.calcsize(form), path))[0]

    def text(self, path: Path) -> str:
        """A text of moderate length."""
        size = self.number(path)
        if size > MAX_TEXT:
            raise Trouble(f"{named(path)} has no text where one belongs")
        try:
            return self.take(size, path).decode()
        except UnicodeDecodeError:
            raise Trouble(f"a text in {named(path)} is not UTF-8") from None

    def take(self, count: int, path: Path) -> bytes:
        """The next bytes."""
        if count > len(self.data) - self.at:
            what = f"the file ends inside {named(path)}"
            raise Trouble(what, found=f"{len(self.data)} bytes")
        self.at += count
        return self.data[self.at - count : self.at]

    def end(self) -> None:
        """Complain about bytes that are left."""
        left = len(self.data) - self.at
        if left:
            raise Trouble(f"{left} bytes follow the end of the record", "none")

    def scan(self) -> Iterator[dict[str, Any]]:
        """Every parameter that can be found without knowing the module.

        Why: the text of an id, a length and a shape do not agree by chance.
        """
        start = self.at
        while found := _ID.search(self.data, start):
            self.at = found.start()
            try:
                param = {"id": self.text(()), "param": self.tensor(())}
                start = self.at
                yield param
            except Trouble:
                start = found.start() + 1


_ID = re.compile(rb"\x24[0-9a-f]{8}-[0-9a-f-]{27}|\x0d[0-9a-v]{13}|\x0a[0-9a-v]{10}")
