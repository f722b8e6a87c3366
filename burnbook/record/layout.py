"""From the tree to Burn's layout on disk, and back.

On disk the tree stands inside {metadata, item, _b}; a tensor is {bytes, shape, dtype}
and a parameter {id, param}. `Lowering` goes down one node at a time, so that writing
never holds a second copy of a model; `lift` comes back and checks everything. What lies
between them and the file (maps, lists, scalars, bytes) is the business of the formats.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from math import prod
from typing import Any, NamedTuple

import numpy as np

from burnbook.core.errors import DataError, RecordError
from burnbook.module.param import ParamId, ParamRecord
from burnbook.module.releases import Release
from burnbook.record import quantized
from burnbook.record.tree import (
    MAX_DEPTH,
    BurnRecord,
    Convert,
    Marker,
    Metadata,
    Path,
    Trouble,
    named,
    short,
)
from burnbook.tensor.convert import storage
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import QFloat

Pieces = Iterator[bytes | memoryview]

MAX_RANK = 32
MOST = 2**59  # elements, so that their bytes can be counted; where one size is 0, too
FIELDS = [field.name for field in dataclasses.fields(Metadata)]
DTYPES = {
    "f64": "F64",
    "f32": "F32",
    "f16": "F16",
    "bf16": "BF16",
    "i64": "I64",
    "i32": "I32",
    "i16": "I16",
    "i8": "I8",
    "u64": "U64",
    "u32": "U32",
    "u16": "U16",
    "u8": "U8",
    "bool": "Bool",
}
_OURS = {theirs: ours for ours, theirs in DTYPES.items()} | {"Flex32": "f32"}


class Raw(NamedTuple):
    """The content of a tensor, ready to write: its bytes, or in old files an array."""

    content: memoryview | np.ndarray


def envelope(record: BurnRecord) -> dict[str, Any]:
    """What a file holds at its top, in Burn's order."""
    metadata = {name: getattr(record.metadata, name) for name in FIELDS}
    return {"metadata": metadata, "item": record.item, "_b": Marker}


class Lowering:
    """Turns one node of a tree into what the formats write; `convert` sets precision.

    The result is a dict, a list, a scalar, Raw or Marker. A record of a module or a
    state gets the fields that this release of Burn has. Before Burn 0.14 a tensor was
    the list of its elements, so there Raw holds an array.
    """

    def __init__(self, convert: Convert | None = None, release: Release = ()) -> None:
        self.convert = convert
        self.release = release
        self.is_old = () < release < (0, 14)

    def __call__(self, node: object, path: Path) -> Any:
        """Lower `node`, which stands at `path`; its children stay as they are."""
        if len(path) > MAX_DEPTH:
            raise Trouble(f"{named(path[:5])} nests too deeply", f"{MAX_DEPTH} levels")
        if isinstance(node, TensorData):
            return self._tensor(node, path)
        if isinstance(node, ParamRecord):
            return {"id": node.id, "param": node.param}
        if isinstance(node, dict):
            known: Any = node
            if self.release and hasattr(known, "at_release"):
                known = known.at_release(self.release)
            return _with_text_keys(known, path)
        if isinstance(node, list):
            return node
        if isinstance(node, np.generic):
            node = node.item()
        if isinstance(node, int) and not -(2**63) <= node < 2**64:
            raise Trouble(f"{named(path)} is too large a number", "64 bits at most")
        if node is None or node is Marker or isinstance(node, int | float | str | Raw):
            return node
        return self(_from_object(node, path), path)

    def _tensor(self, data: TensorData, path: Path) -> dict[str, Any]:
        path = path[:-1] if path[-1:] == ("param",) else path
        data = self.convert(data, path) if self.convert else data
        shape = [int(size) for size in data.shape]
        if self.is_old and isinstance(data.dtype, QFloat):
            what = f"{named(path)} is quantized, which Burn 0.13 does not know"
            raise Trouble(what, cure=quantized.DEQUANTIZE)
        if self.is_old:
            bits = data.array.view(np.uint16) if data.dtype == "f16" else data.array
            return {"value": Raw(bits.reshape(-1)), "shape": shape}
        if isinstance(data.dtype, QFloat):
            content, dtype = quantized.lowered(data, self.release, path)
            return {"bytes": Raw(content), "shape": shape, "dtype": dtype}
        dtype: Any = DTYPES.get(data.dtype)
        if dtype == "Bool" and self.release >= (0, 21):
            dtype = {"Bool": "Native"}
        content = data.as_bytes() if data.num_elements() else memoryview(b"")
        return {"bytes": Raw(content), "shape": shape, "dtype": dtype}


def _with_text_keys(node: dict[Any, Any], path: Path) -> dict[str, Any]:
    for key in node:
        if not isinstance(key, str):
            what = f"{named(path)} has a key that is not text"
            raise Trouble(what, "names or ids as keys", short(repr(key)))
    return node


def _from_object(node: Any, path: Path) -> Any:
    """The tree inside an object: a module, an optimizer, a tensor, a dataclass."""
    if isinstance(node, tuple):
        return list(node)
    if hasattr(node, "into_record"):
        return node.into_record()
    if hasattr(node, "for_module"):
        what = f"{named(path)} is still sealed: bincode opens only in its module"
        raise Trouble(what, cure="load_record(record) there, then into_record()")
    if hasattr(node, "into_data"):
        return node.into_data()
    if isinstance(node, np.ndarray) and node.dtype.kind in "fiub":
        return TensorData(node)
    if dataclasses.is_dataclass(node) and not isinstance(node, type):
        return {f.name: getattr(node, f.name) for f in dataclasses.fields(node)}
    raise Trouble(
        f"{named(path)} holds {type(node).__name__}, which no record can hold",
        "numbers, text, None, lists, dicts, tensors, arrays, dataclasses",
        cure="give the class into_record() and load_record()",
    )


def lift(plain: object) -> BurnRecord:
    """Build the record from the maps, lists, scalars and bytes of a file."""
    if isinstance(plain, list) and len(plain) == 3:  # a struct written by position
        plain = dict(zip(("metadata", "item", "_b"), plain, strict=True))
    if not isinstance(plain, dict) or not {"metadata", "item"} <= plain.keys():
        found = f"the keys {short(', '.join(plain))}" if isinstance(plain, dict) else ""
        raise Trouble(
            "this is not a record of Burn",
            "the keys metadata, item, _b at the top",
            found or f"a {_kind(plain)} at the top",
            "a file written by a recorder",
        )
    metadata = _metadata(plain["metadata"])
    return BurnRecord(metadata, _Lifting(metadata)(plain["item"], ("item",)))


def _metadata(plain: object) -> Metadata:
    found = plain if isinstance(plain, list) else []  # a struct written by position
    if isinstance(plain, dict):
        found = [plain.get(name) for name in FIELDS]
    texts = [text for text in found if isinstance(text, str)]
    if not len(texts) == len(found) == len(FIELDS):
        expected = f"the texts {', '.join(FIELDS)}"
        raise Trouble("the metadata is not Burn's", expected, _kind(plain))
    return Metadata(*texts)


class _Lifting:
    def __init__(self, metadata: Metadata) -> None:
        self.is_old = metadata.is_old
        self.is_half = "f16" in metadata.float
        self.float = np.float64 if metadata.float == "f64" else np.float32

    def __call__(self, node: object, path: Path) -> Any:
        if len(path) > MAX_DEPTH:
            raise Trouble(f"{named(path[:5])} nests too deeply", f"{MAX_DEPTH} levels")
        if isinstance(node, dict):
            return self._from_dict(node, path)
        if isinstance(node, list):
            return self._from_list(node, path)
        if isinstance(node, bytes | memoryview):
            what = f"{named(path)} holds bytes outside a tensor"
            raise Trouble(what, "a tensor: bytes, shape, dtype", f"{len(node)} bytes")
        return node

    def _from_dict(self, node: dict[str, Any], path: Path) -> Any:
        keys = node.keys()
        if keys == {"bytes", "shape", "dtype"}:
            return read_tensor(node["bytes"], node["shape"], node["dtype"], path)
        if self.is_old and keys == {"value", "shape"}:
            return self._old_tensor(node["value"], node["shape"], path)
        if keys == {"id", "param"}:
            return self._param(node["id"], node["param"], path)
        if len(keys & {"bytes", "shape", "dtype"}) == 2:
            missing = ({"bytes", "shape", "dtype"} - keys).pop()
            raise Trouble(
                f"{named(path)} is a tensor without {missing}", "bytes, shape, dtype"
            )
        return {key: self(value, (*path, key)) for key, value in node.items()}

    def _from_list(self, node: list[Any], path: Path) -> Any:
        if _is_tensor(node):
            return read_tensor(node[0], node[1], node[2], path)
        if len(node) == 2 and isinstance(node[0], str) and _is_tensor(node[1]):
            return self._param(node[0], node[1], path)
        return [self(value, (*path, str(i))) for i, value in enumerate(node)]

    def _param(self, id_text: Any, plain: object, path: Path) -> ParamRecord:
        if not _is_id(id_text):
            expected = "13 characters of 0-9 and a-v (or a UUID, in old files)"
            found = short(repr(id_text)) if isinstance(id_text, str) else _kind(id_text)
            raise Trouble(f"{named(path)} has an invalid id", expected, found)
        data = self(plain, path)
        if not isinstance(data, TensorData):
            what = f"{named(path)} is a parameter without a tensor"
            raise Trouble(what, "bytes, shape, dtype", _kind(plain))
        return ParamRecord(id_text, data)

    def _old_tensor(self, values: Any, shape: Any, path: Path) -> TensorData:
        """A tensor of Burn 0.13 and before: a list of elements, f16 as its bits."""
        dims = read_dims(shape, path)
        if isinstance(values, np.ndarray) and len(values) == prod(dims):  # bincode
            return TensorData.of(values.reshape(dims))
        numbers = isinstance(values, list) and all(map(_is_number, values))
        if not numbers or len(values) != prod(dims):
            what = f"{named(path)} does not fit its shape"
            found = f"{len(values)} elements" if numbers else _kind(values)
            raise Trouble(what, f"{prod(dims)} numbers for {list(dims)}", found)
        return TensorData.of(self._old_array(values, path).reshape(dims))

    def _old_array(self, values: Any, path: Path) -> np.ndarray:
        types = set(map(type, values)) or {float}
        if types == {bool}:
            return np.array(values, bool)
        if types == {int} and self.is_half and 0 <= min(values) <= max(values) < 65536:
            return np.array(values, np.uint16).view(np.float16)
        if types == {int}:
            narrow = min(values) >= -(2**31) and max(values) < 2**31
            return np.array(values, np.int32 if narrow else np.int64)
        if types == {float}:
            with np.errstate(over="ignore"):
                return np.array(values, np.float64).astype(self.float)
        raise Trouble(f"{named(path)} mixes kinds of numbers", "all of one kind")


def _is_id(text: Any) -> bool:
    if not isinstance(text, str) or not text:
        return False
    try:
        ParamId.deserialize(text)
    except RecordError:
        return False
    return True


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _is_tensor(node: object) -> bool:
    """Whether a list is a tensor written by position: [bytes, shape, dtype]."""
    if not isinstance(node, list) or len(node) != 3:
        return False
    content, shape, dtype = node
    fits = isinstance(content, bytes | memoryview | list) and isinstance(shape, list)
    return fits and isinstance(dtype, str) and dtype in _OURS


def read_tensor(content: object, shape: Any, dtype: Any, path: Path) -> TensorData:
    """The tensor of these bytes, sizes and element type, which may be a payload."""
    dims, content = read_dims(shape, path), _as_bytes(content, path)
    if isinstance(dtype, dict) and list(dtype) == ["QFloat"]:
        return quantized.read(content, dims, dtype["QFloat"], path)
    name = _dtype(dtype, path)
    size = storage(name).itemsize
    if isinstance(dtype, dict) and dtype.get("Bool") == "U32":
        size = 4
    wanted = prod(dims) * size
    if wanted != len(content):
        expected = f"{wanted} bytes for {name} {list(dims)}"
        what = f"{named(path)} does not fit its shape"
        raise Trouble(what, expected, f"{len(content)} bytes")
    if name == "bool" and size == 4:
        flags = np.frombuffer(content, "<u4").reshape(dims)
        return TensorData.of(flags != 0)
    try:
        return TensorData.from_bytes(content, dims, name)
    except DataError as cause:
        raise Trouble(f"{named(path)}: {cause.what}") from None


def _as_bytes(content: object, path: Path) -> bytes | memoryview:
    if isinstance(content, bytes | memoryview):
        return content
    try:
        if isinstance(content, list) and all(type(n) is int for n in content):
            return bytes(content)  # JSON has no bytes
    except ValueError:
        pass
    what = f"{named(path)} has something else where bytes belong"
    raise Trouble(what, "bytes, or a list of 0 to 255", _kind(content))


def read_dims(shape: Any, path: Path) -> tuple[int, ...]:
    """The sizes in a file, if a tensor can have them."""
    whole = isinstance(shape, list) and all(type(n) is int and n >= 0 for n in shape)
    if not whole or len(shape) > MAX_RANK or prod(n or 1 for n in shape) >= MOST:
        found = f"{short(shape)}" if isinstance(shape, list) else _kind(shape)
        expected = f"a list of at most {MAX_RANK} sizes"
        raise Trouble(f"{named(path)} has an impossible shape", expected, found)
    return tuple(shape)


def _dtype(plain: object, path: Path) -> str:
    if isinstance(plain, str) and plain in _OURS:
        return _OURS[plain]
    if isinstance(plain, dict) and plain.get("Bool") in ("Native", "U8", "U32"):
        return "bool"
    found = short(repr(plain)) if isinstance(plain, str) else _kind(plain)
    raise Trouble(f"{named(path)} has an unknown element type", _NAMES, found)


_NAMES = ", ".join(DTYPES.values())


def _kind(plain: Any) -> str:
    """What something in a file is, in plain words."""
    names = {dict: "map", list: "list", bytes: "byte string", str: "text"}
    if plain is None or isinstance(plain, bool):
        return "nothing" if plain is None else "truth value"
    return names.get(type(plain), "number")
