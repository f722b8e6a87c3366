"""Constants of an ONNX file as NumPy arrays, from the file or files beside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from burnbook.core.errors import RecordError
from burnbook.importers.onnx.values import DTYPES, dtype_of

# The field of a TensorProto where values of a type stand that are not raw bytes.
_FIELDS = {
    **dict.fromkeys((1, 14), "float_data"),
    **dict.fromkeys((11, 15), "double_data"),
    7: "int64_data",
    **dict.fromkeys((12, 13), "uint64_data"),
    8: "string_data",
}
MOST_DENSE = 1 << 24  # elements of a sparse constant, which becomes dense
_PACKED = {21: 4, 22: 4, 23: 4, 25: 2, 26: 2}  # bits of what shares a byte
PACKED = {DTYPES[number]: bits for number, bits in _PACKED.items()}


class Files:
    """The folder where a model's external data lies; nothing outside it is read."""

    def __init__(self, folder: Path | None):
        self.folder = None if folder is None else folder.resolve()
        self.maps: dict[Path, np.ndarray] = {}

    def read(self, name: str, offset: int, length: int | None, where: str) -> Any:
        """Bytes of a file beside the model, as a view of the mapped file."""
        if self.folder is None:
            what = f"{where} lies in a file of its own, and the model in none"
            cure = "load the model by its path"
            raise RecordError("onnx", what, cure=cure)
        path = Path(os.path.normpath(self.folder / name))
        inside = path.is_relative_to(self.folder) and not Path(name).is_absolute()
        try:
            target = path.resolve()
        except (OSError, RuntimeError, ValueError):  # links that point at each other
            what = f"{where} lies in {name!r}, whose links go in circles"
            cure = "put the file itself beside the model"
            raise RecordError("onnx", what, cure=cure) from None
        if not inside or not target.is_relative_to(self.folder):
            what = f"{where} points out of the model's folder: {name!r}"
            raise RecordError("onnx", what)
        if path not in self.maps:
            if not path.is_file():
                what = f"{where} lies in {name!r}, which is not there"
                cure = "put the file beside the model"
                raise RecordError("onnx", what, cure=cure)
            size = path.stat().st_size
            self.maps[path] = (
                np.memmap(path, np.uint8, "r") if size else np.empty(0, np.uint8)
            )
        data = self.maps[path]
        stop = len(data) if length is None else offset + length
        if offset < 0 or stop < offset or stop > len(data):
            what = f"{where} should lie at {offset} to {stop} of {name!r}"
            raise RecordError("onnx", what, [("file", f"{len(data)} bytes")])
        return data[offset:stop]


def array_of(proto: Any, files: Files) -> Any:
    """A TensorProto's elements; sizes are compared before anything is made."""
    where = f"the constant {proto.name!r}" if proto.name else "a constant"
    if proto.data_type not in DTYPES:
        raise RecordError("onnx", f"{where} has element type {proto.data_type}")
    if proto.HasField("segment"):
        raise RecordError("onnx", f"{where} is cut into segments")
    dtype, shape = dtype_of(proto.data_type), tuple(proto.dims)
    if any(n < 0 for n in shape):
        raise RecordError("onnx", f"{where} has the shape {list(shape)}")
    count = prod(shape)
    if proto.data_location == 1:
        about = {entry.key: entry.value for entry in proto.external_data}
        try:
            offset = int(about.get("offset", 0))
            length = int(about["length"]) if "length" in about else None
        except ValueError:
            raise RecordError("onnx", f"{where}: offset or length no number") from None
        data = files.read(about.get("location", ""), offset, length, where)
        return _from_bytes(data, proto.data_type, dtype, shape, where)
    if proto.HasField("raw_data"):
        data = np.frombuffer(proto.raw_data, np.uint8)
        return _from_bytes(data, proto.data_type, dtype, shape, where)
    values = _from_field(proto, dtype, shape, where)
    if values.size != count:
        _wrong_size(where, shape, values.size, "values")
    return values.reshape(shape)


def _from_field(
    proto: Any, dtype: np.dtype[Any], shape: tuple[int, ...], where: str
) -> Any:
    """Elements that stand in a field for values of some types."""
    number = proto.data_type
    held = getattr(proto, _FIELDS.get(number, "int32_data"))
    if dtype.kind == "O":
        return np.array([s.decode("utf-8", "replace") for s in held], object)
    if number in _PACKED:
        data = np.array(held, np.int32).astype(np.uint8)
        return _from_bytes(data, number, dtype, shape, where)
    if dtype.kind == "c":
        pairs = np.array(held, np.float64).reshape(-1, 2)
        return (pairs[:, 0] + 1j * pairs[:, 1]).astype(dtype)
    if number in (10, 16):
        return np.array(held, np.int64).astype(np.uint16).view(dtype)
    if dtype.kind == "V" or dtype.name.startswith("float8"):
        return np.array(held, np.int64).astype(np.uint8).view(dtype)
    return np.array(held).astype(dtype)


def _from_bytes(
    data: Any, number: int, dtype: np.dtype[Any], shape: tuple[int, ...], where: str
) -> Any:
    count = prod(shape)
    if number == 8:
        raise RecordError("onnx", f"{where}: texts do not stand in raw bytes")
    bits = _PACKED.get(number)
    wanted = -(-count * bits // 8) if bits else count * dtype.itemsize
    if len(data) != wanted:
        _wrong_size(where, shape, len(data), "bytes")
    if not bits:
        little = dtype.newbyteorder("<") if dtype.kind in "fiuc" else dtype
        plain = np.frombuffer(data, little) if dtype.kind != "V" else data.view(dtype)
        return plain.astype(dtype, copy=False).reshape(shape)
    return unpacked(data, DTYPES[number], shape)


def unpacked(data: Any, dtype: str, shape: Sequence[int]) -> Any:
    """Elements of 2 or 4 bits, several of which share a byte, lowest first."""
    bits, count = PACKED[dtype], prod(shape)
    parts = np.stack([data >> shift & (1 << bits) - 1 for shift in range(0, 8, bits)])
    values = parts.T.reshape(-1)[:count]
    if dtype.startswith("int"):
        half = 1 << bits - 1
        values = values.astype(np.int8)
        values = np.bitwise_xor(values, half) - half
        return values.astype(dtype_of(dtype)).reshape(shape)
    if dtype.startswith("float"):
        return values.astype(np.uint8).view(dtype_of(dtype)).reshape(shape)
    return values.astype(dtype_of(dtype)).reshape(shape)


def packed(array: NDArray[Any]) -> Any:
    """The bytes of elements of 2 or 4 bits: the way back of `unpacked`."""
    name = array.dtype.name
    bits = PACKED[name]
    values = array.view(np.uint8) if name.startswith("float") else array.astype(np.int8)
    values = values.reshape(-1).astype(np.uint8) & ((1 << bits) - 1)
    each = 8 // bits
    rows = np.zeros(-(-values.size // each) * each, np.uint8)
    rows[: values.size] = values
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return (rows.reshape(-1, each) << shifts).sum(1, dtype=np.uint8)


def sparse_array(proto: Any, files: Files) -> Any:
    """A SparseTensorProto's elements, zeros and all."""
    values, where = array_of(proto.values, files), array_of(proto.indices, files)
    shape = tuple(proto.dims)
    if prod(shape) > MOST_DENSE or len(shape) > 64:
        raise RecordError("onnx", f"a sparse constant of shape {list(shape)[:8]}")
    found = np.zeros(shape, values.dtype)
    try:
        if where.ndim == 1:
            found.reshape(-1)[where] = values
        else:
            found[tuple(where.T)] = values
    except (IndexError, ValueError):
        raise RecordError("onnx", "a sparse constant has odd indices") from None
    return found


def _wrong_size(where: str, shape: tuple[int, ...], found: int, what: str) -> None:
    raise RecordError("onnx", f"{where} has shape {list(shape)} and {found} {what}")


def memory_of(array: NDArray[Any]) -> tuple[int, int]:
    """Where the elements lie, in whatever order, and how many bytes they are."""
    return array.__array_interface__["data"][0], array.nbytes
