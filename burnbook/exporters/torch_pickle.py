"""The pickle inside a file of PyTorch, written without PyTorch and without pickle.

Protocol 2, as `torch.save` writes it: dicts, lists, numbers and texts, and for each
tensor a call of `_rebuild_tensor_v2` with a reference to its storage, which is a file
of its own in the archive.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

from burnbook.core.errors import RecordError
from burnbook.record.tree import short
from burnbook.tensor.data import TensorData

STORAGES = {
    "f64": "DoubleStorage",
    "f32": "FloatStorage",
    "f16": "HalfStorage",
    "bf16": "BFloat16Storage",
    "i64": "LongStorage",
    "i32": "IntStorage",
    "i16": "ShortStorage",
    "i8": "CharStorage",
    "u8": "ByteStorage",
    "bool": "BoolStorage",
}
UNTYPED = {"u16": "uint16", "u32": "uint32", "u64": "uint64"}  # newer than storages
PROTO, STOP, MARK, REDUCE, PERSISTENT = b"\x80\x02", b".", b"(", b"R", b"Q"
NONE, TRUE, FALSE = b"N", b"\x88", b"\x89"
EMPTY_DICT, SETITEMS, EMPTY_LIST, APPENDS = b"}", b"u", b"]", b"e"
EMPTY_TUPLE, TUPLE = b")", b"t"
MAX_DEPTH = 100


def torch_pickle(value: object) -> tuple[bytes, list[TensorData]]:
    """The pickle of a value, and the tensors whose storages are "0", "1", … in order.

    value: dicts with texts or whole numbers as keys, lists, tuples, TensorData, text,
        numbers, truth values and None.

    Raises:
        RecordError: it holds anything else, or quantized data.
    """
    writer = _Writer()
    writer.value(value, "", 0)
    return PROTO + b"".join(writer.parts) + STOP, writer.tensors


class _Writer:
    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.tensors: list[TensorData] = []
        self.known: dict[str, int] = {}

    def value(self, value: Any, path: str, depth: int) -> None:
        """Write any value; the reader's stack then has it on top."""
        if depth > MAX_DEPTH:
            what = f"it nests deeper than {MAX_DEPTH} levels"
            raise RecordError(short(path, 20), what, cure="a flatter dict")
        if isinstance(value, TensorData):
            self.tensor(value, path)
        elif isinstance(value, Mapping):
            self.mapping(value, path, depth)
        elif isinstance(value, (list, tuple)):
            is_list = isinstance(value, list)
            self.parts += [EMPTY_LIST, MARK] if is_list else [MARK]
            for i, held in enumerate(value):
                self.value(held, f"{path}.{i}", depth + 1)
            self.parts.append(APPENDS if is_list else TUPLE)
        else:
            self.parts.append(_plain(value, path))

    def mapping(self, value: Mapping[Any, Any], path: str, depth: int) -> None:
        """Write an OrderedDict, as state dicts are."""
        self.name("collections", "OrderedDict")
        self.parts += [EMPTY_TUPLE, REDUCE, MARK]
        for key, held in value.items():
            inner = f"{path}.{key}".lstrip(".")
            if not isinstance(key, (str, int)) or isinstance(key, bool):
                what = f"{key!r} is not a name"
                raise RecordError(inner, what, cure="texts or whole numbers as keys")
            self.parts.append(_plain(key, inner))
            self.value(held, inner, depth + 1)
        self.parts.append(SETITEMS)

    def tensor(self, data: TensorData, path: str) -> None:
        """Write a call that makes the tensor from its storage."""
        shape, dtype = tuple(data.shape), data.dtype
        key, count = str(len(self.tensors)), data.num_elements()
        self.tensors.append(data)
        storage = STORAGES.get(dtype)
        rebuild = "_rebuild_tensor_v2" if storage else "_rebuild_tensor_v3"
        self.name("torch._utils", rebuild)
        self.parts += [MARK, MARK, _plain("storage", path)]
        if storage:
            self.name("torch", storage)
        elif dtype in UNTYPED:
            self.name("torch.storage", "UntypedStorage")
            count *= data.array.itemsize
        else:
            what = f"PyTorch has no element type {str(dtype).partition('(')[0]}"
            raise RecordError(path, what, cure=".dequantize()")
        about = [key, "cpu", count]
        self.parts += [_plain(part, path) for part in about]
        self.parts += [TUPLE, PERSISTENT, _plain(0, path)]  # the offset in the storage
        for sizes in (shape, _strides(shape)):
            self.parts += [MARK, *(_plain(size, path) for size in sizes), TUPLE]
        self.parts.append(FALSE)  # requires_grad
        self.name("collections", "OrderedDict")
        self.parts += [EMPTY_TUPLE, REDUCE]
        if not storage:
            self.name("torch", UNTYPED[dtype])
        self.parts += [TUPLE, REDUCE]

    def name(self, module: str, name: str) -> None:
        """Write a name of a function or class; the second time a reference to it."""
        text = f"{module}\n{name}\n"
        place = self.known.get(text)
        if place is not None:
            self.parts.append(b"h" + bytes([place]))
            return
        self.known[text] = len(self.known)
        self.parts += [b"c" + text.encode(), b"q" + bytes([self.known[text]])]


def _plain(value: object, path: str) -> bytes:
    if value is None or isinstance(value, bool):
        return NONE if value is None else TRUE if value else FALSE
    if isinstance(value, int):
        return _whole(value)
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, str):
        try:
            text = value.encode()
        except UnicodeEncodeError:
            what = "a text is not Unicode"
            raise RecordError(path, what, cure="whole characters") from None
        return b"X" + struct.pack("<I", len(text)) + text
    what = f"{type(value).__name__} has no place in a state dict"
    cure = "tensors, numbers, texts, None, lists, dicts"
    raise RecordError(path or "state dict", what, cure=cure)


def _whole(value: int) -> bytes:
    if 0 <= value < 256:
        return b"K" + bytes([value])
    if 0 <= value < 65536:
        return b"M" + struct.pack("<H", value)
    if -(2**31) <= value < 2**31:
        return b"J" + struct.pack("<i", value)
    size = value.bit_length() // 8 + 1
    if size > 255:
        raise RecordError("state dict", "a whole number has more than 2000 bits")
    return b"\x8a" + bytes([size]) + value.to_bytes(size, "little", signed=True)


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """How many elements lie between neighbors along each dim, row by row.

    Example:
        >>> _strides((2, 3, 4))
        (12, 4, 1)
    """
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))
