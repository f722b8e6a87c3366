"""Bincode: values back to back, without any names.

Small whole numbers are one byte, larger ones a marker and 2, 4 or 8 bytes; lists and
texts start with their length, options with a byte 0 or 1, and a constant is one byte 0.
The module that loads the record says what stands where, see `schema`.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from math import prod
from typing import Any, NoReturn

import numpy as np

from burnbook.core.dtypes import Bool, Float, Int
from burnbook.module.param import ParamRecord
from burnbook.module.schema import (
    CHOICE,
    CONSTANT,
    LIST,
    MAP,
    PARAM,
    STRUCT,
    TUPLE,
    Part,
    without_place,
)
from burnbook.record import quantized
from burnbook.record.layout import FIELDS, MAX_RANK, Lowering, Pieces, Raw
from burnbook.record.tree import OTHERWISE, Metadata, Path, Trouble, named, short

_DTYPES = "F64 F32 Flex32 F16 BF16 I64 I32 I16 I8 U64 U32 U16 U8 Bool QFloat".split()  # noqa: SIM905
_BOOLS = ["Native", "U8", "U32"]
_WIDTHS = {251: "<H", 252: "<I", 253: "<Q"}
MAX_TEXT = 1000
_NUMBERS = {"f32": "<f", "i8": "b", "u8": "B"}
# What the elements of a tensor are before Burn 0.14, by what the metadata says.
_ELEMENTS = {"f32": "<f4", "f64": "<f8", "i16": "i2", "i32": "i4", "i64": "i8"}
_SIZES = {"F64": 8, "F32": 4, "Flex32": 4, "F16": 2, "BF16": 2}  # of states
_BETWEEN = 12  # bytes between the tensors of a state, and after the last one
NEWER = f"BurnpackRecorder, or {OTHERWISE}"


def dtype_table(metadata: Metadata) -> list[str]:
    """The element types in the order of their numbers in that release of Burn.

    Why: newer releases put U16 and Flex32 into the middle, so a number alone says
    nothing.
    """
    release = metadata.release
    if not release:
        version = short(metadata.version)
        what = f"{version!r} is not a version of Burn, so its layout is not known"
        raise Trouble(what, "Burn 0.8 to 0.21", cure="named MessagePack (.mpk)")
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


def signed_number(value: int) -> bytes:
    """A signed number: 0, -1, 1, -2 … as 0, 1, 2, 3 …"""
    return whole_number(2 * value if value >= 0 else -2 * value - 1)


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
        elif part.kind == CHOICE:
            yield from self.item(part.parts[0][1], node, path)
        else:
            yield from self._group(part, node, path)

    def _group(self, part: Part, node: object, path: Path) -> Pieces:
        values: Any = node
        if node is None:
            self._absent(part, path)
        if part.kind == STRUCT and isinstance(node, dict):
            self._refuse_rest(part, node, path)
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

    def _refuse_rest(self, part: Part, node: dict[str, Any], path: Path) -> None:
        """Raise for parameters that the release has no field for."""
        for name in without_place(part, node):
            burn = self.metadata.version
            what = f"{named((*path, name))} has no place in bincode of Burn {burn}"
            raise Trouble(what, cure=NEWER)

    def _absent(self, part: Part, path: Path) -> NoReturn:
        """Refuse to leave out a part that the release always has."""
        burn = self.metadata.version
        what = f"{named(path)} is absent, which Burn {burn} does not allow there"
        raise Trouble(what, part.kind, cure=NEWER)

    def _param(self, node: object, path: Path) -> Pieces:
        if node is None:
            self._absent(Part(PARAM), path)
        if not isinstance(node, ParamRecord):
            what = f"{named(path)} does not match its module"
            raise Trouble(what, PARAM, type(node).__name__)
        yield text(node.id)
        yield from self.tensor(self.lower(node.param, path), path)

    def tensor(self, low: Any, path: Path) -> Pieces:
        """Bytes, shape and element type of a tensor."""
        if "value" in low:
            what = f"bincode of Burn {self.metadata.version} is only read"
            raise Trouble(what, cure="version='0.15.0' on the recorder")
        content = low["bytes"].content if isinstance(low["bytes"], Raw) else b""
        content = memoryview(content).cast("B")
        yield whole_number(len(content))
        yield content
        yield whole_number(len(low["shape"]))
        yield b"".join(map(whole_number, low["shape"]))
        yield self._dtype(low["dtype"], path)

    def _dtype(self, dtype: str | dict[str, Any], path: Path) -> bytes:
        payload: Any = {} if isinstance(dtype, str) else dtype
        name = dtype if isinstance(dtype, str) else next(iter(payload))
        if name not in self.dtypes:
            what = f"{named(path)} is {name}, which Burn {self.metadata.version} lacks"
            raise Trouble(what, cure="another element type")
        number = whole_number(self.dtypes.index(name))
        if isinstance(dtype, str):
            return number
        if name == "Bool":
            return number + whole_number(_BOOLS.index(payload["Bool"]))
        form = quantized.form(self.metadata.release)
        return number + _in_form(form, payload["QFloat"])


def _in_form(form: Any, value: Any) -> bytes:
    """The payload of a dtype, see `quantized.form`."""
    if isinstance(form, dict):
        return b"".join(_in_form(inner, value[name]) for name, inner in form.items())
    if isinstance(form, tuple):
        pairs = zip(form, value, strict=True)
        return b"".join(_in_form(inner, one) for inner, one in pairs)
    if isinstance(form, list):
        name: Any = value if isinstance(value, str) else next(iter(value))
        names = [variant for variant, _ in form]
        place = names.index(name)
        inner = form[place][1]
        made = whole_number(place)
        return made if inner is None else made + _in_form(inner, value[name])
    if form == "usize":
        return whole_number(value)
    return struct.pack(_NUMBERS[form], value) if form else b""


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
        if part.kind == CONSTANT:
            if self.flag(path):
                raise Trouble(f"{named(path)} is a constant in the module", "byte 0")
            return None
        if part.kind == CHOICE:
            return self.item(part.parts[0][1], path)
        if part.kind == PARAM:
            return {"id": self.text(path), "param": self.tensor(path, part.element)}
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

    def tensor(self, path: Path, kind: Any = Float) -> dict[str, Any]:
        """Bytes, shape and element type of a tensor.

        kind: what it is in the module, which files before Burn 0.14 do not say.
        """
        if self.metadata.is_old:
            values = self._values(path, kind)
            return {"value": values, "shape": self._shape(path)}
        content = self.take(self.number(path), path)
        shape = self._shape(path)
        return {"bytes": content, "shape": shape, "dtype": self._dtype(path)}

    def _shape(self, path: Path) -> list[int]:
        rank = self.number(path)
        if rank > MAX_RANK:
            what = f"{named(path)} has an impossible shape"
            raise Trouble(what, f"at most {MAX_RANK} sizes", f"{rank}")
        return [self.number(path) for _ in range(rank)]

    def _values(self, path: Path, kind: Any) -> np.ndarray:
        """The elements of a tensor before Burn 0.14: a list of numbers."""
        count = self.number(path)
        if count > len(self.data) - self.at:
            what = f"the file ends inside {named(path)}"
            raise Trouble(what, f"{count} elements", f"{len(self.data)} bytes")
        if kind is Bool:
            return np.array([self.flag(path) for _ in range(count)], bool)
        if kind is Int:
            known = self.metadata.int if self.metadata.int in _ELEMENTS else "i32"
            numbers = [self.signed(path) for _ in range(count)]
            return _fitting(numbers, _ELEMENTS[known], path)
        if "f16" in self.metadata.float:
            bits = [self.number(path) for _ in range(count)]
            return _fitting(bits, "u2", path).view(np.float16)
        element = np.dtype(_ELEMENTS.get(self.metadata.float, "<f4"))
        return np.frombuffer(self.take(count * element.itemsize, path), element)

    def _dtype(self, path: Path) -> Any:
        name = self._choice(self.dtypes, path)
        if name == "Bool" and self.metadata.release >= (0, 21):
            return {"Bool": self._choice(_BOOLS, path)}
        if name != "QFloat":
            return name
        form = quantized.form(self.metadata.release)
        return {"QFloat": self._in_form(form, path)}

    def _in_form(self, form: Any, path: Path) -> Any:
        """The payload of a dtype, see `quantized.form`."""
        if isinstance(form, dict):
            return {name: self._in_form(inner, path) for name, inner in form.items()}
        if isinstance(form, tuple):
            return [self._in_form(inner, path) for inner in form]
        if isinstance(form, list):
            name = self._choice([variant for variant, _ in form], path)
            inner = dict(form)[name]
            return name if inner is None else {name: self._in_form(inner, path)}
        if form == "usize":
            return self.number(path)
        if not form:
            return None
        size = struct.calcsize(_NUMBERS[form])
        return struct.unpack(_NUMBERS[form], self.take(size, path))[0]

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

    def signed(self, path: Path) -> int:
        """A signed number."""
        found = self.number(path)
        return (found >> 1) ^ -(found & 1)

    def text(self, path: Path) -> str:
        """A text of moderate length."""
        size = self.number(path)
        if size > MAX_TEXT:
            raise Trouble(f"{named(path)} has no text where one belongs")
        try:
            return bytes(self.take(size, path)).decode()
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
            for kind in (Float, Int, Bool) if self.metadata.is_old else (Float,):
                self.at = found.start()
                try:
                    number, tensor = self.text(()), self.tensor((), kind)
                    self._believable(tensor)
                except Trouble:
                    start = found.start() + 1
                else:
                    start = self.at
                    yield {"id": number, "param": tensor}
                    break

    def _believable(self, tensor: dict[str, Any]) -> None:
        """Raise if a tensor of Burn 0.13 has not as many elements as its shape."""
        count, shape = tensor.get("value"), tensor["shape"]
        if count is not None and (prod(shape) != len(count) or not shape):
            raise Trouble("no tensor is here")

    def scan_states(self) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Every state of an optimizer with its id: the tensors that stand in it.

        Between them are only numbers and options, of nine bytes at most.
        """
        while _ID.match(self.data, self.at):
            name = self.text(())
            if self.take(1, ()) != b"\0":
                return
            rank, tensors = self.number(()), list[dict[str, Any]]()
            while (tensor := self._near(rank)) is not None:
                tensors.append(tensor)
            yield name, tensors
            following = _ID.search(self.data, self.at)
            if following is None or following.start() - self.at > _BETWEEN:
                return
            self.at = following.start()

    def _near(self, rank: int) -> dict[str, Any] | None:
        """The tensor of this rank that begins within a few bytes, if there is one."""
        start = self.at
        for at in range(start, min(start + _BETWEEN, len(self.data))):
            if _ID.match(self.data, at):
                break
            self.at = at
            try:
                tensor = self.tensor(())
                self._believable(tensor)
            except Trouble:
                continue
            size = _SIZES.get(tensor.get("dtype", ""), 0)
            fits = "value" in tensor or prod(tensor["shape"]) * size == len(
                tensor["bytes"]
            )
            if len(tensor["shape"]) == rank and fits:
                return tensor
        self.at = start
        return None


def _fitting(numbers: list[int], dtype: str, path: Path) -> np.ndarray:
    try:
        return np.array(numbers, dtype)
    except OverflowError:
        raise Trouble(f"{named(path)} holds a number that is too large") from None


_ID = re.compile(rb"\x24[0-9a-f]{8}-[0-9a-f-]{27}|\x0d[0-9a-v]{13}|\x0a[0-9a-v]{10}")
