"""What the names in PyTorch's pickles stand for: an allow-list, and nothing is called.

A tensor is a view into a storage: where it starts, its sizes and its strides, all
counted in elements. Here it stays a description (`TorchTensor`) until it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np

from burnbook.importers.inert_names import makes_object, may_be_named
from burnbook.importers.lazy_array import FLOAT8
from burnbook.importers.pickle_reader import Inert, Name, key_of, refused
from burnbook.record.layout import MAX_RANK
from burnbook.record.tree import Trouble, short
from burnbook.tensor.convert import storage as numpy_type
from burnbook.tensor.data import TensorData

PLAIN = "f16 bf16 f32 f64 i8 i16 i32 i64 u8 u16 u32 u64 bool".split()  # noqa: SIM905
#: PyTorch's storage classes; what is not one of our element types is refused later.
STORAGES = {
    "FloatStorage": "f32",
    "DoubleStorage": "f64",
    "HalfStorage": "f16",
    "BFloat16Storage": "bf16",
    "LongStorage": "i64",
    "IntStorage": "i32",
    "ShortStorage": "i16",
    "CharStorage": "i8",
    "ByteStorage": "u8",
    "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64",
    "ComplexDoubleStorage": "complex128",
    "ComplexHalfStorage": "complex32",
    "QInt8Storage": "qint8",
    "QUInt8Storage": "quint8",
    "QInt32Storage": "qint32",
    "QUInt4x2Storage": "quint4x2",
    "QUInt2x4Storage": "quint2x4",
    "UntypedStorage": "",
    "_UntypedStorage": "",
    "TypedStorage": "",
    "_TypedStorage": "",
}
DTYPES = {
    "float32": "f32",
    "float64": "f64",
    "float16": "f16",
    "bfloat16": "bf16",
    "int64": "i64",
    "int32": "i32",
    "int16": "i16",
    "int8": "i8",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "bool": "bool",
    "float8_e4m3fn": "f8_e4m3fn",
    "float8_e5m2": "f8_e5m2",
    "float8_e4m3fnuz": "f8_e4m3fnuz",
    "float8_e5m2fnuz": "f8_e5m2fnuz",
    "float8_e8m0fnu": "f8_e8m0fnu",
    "float4_e2m1fn_x2": "float4_e2m1fn_x2",
    "complex64": "complex64",
    "complex128": "complex128",
    "complex32": "complex32",
    "qint8": "qint8",
    "quint8": "quint8",
    "qint32": "qint32",
    "quint4x2": "quint4x2",
    "quint2x4": "quint2x4",
}
OTHER_SIZES = {
    "": 1,
    "complex32": 4,
    "complex64": 8,
    "complex128": 16,
    "qint8": 1,
    "quint8": 1,
    "qint32": 4,
    "quint4x2": 1,
    "quint2x4": 1,
    "float4_e2m1fn_x2": 1,
}


def item_size(dtype: str) -> int:
    """How many bytes an element has."""
    if dtype in PLAIN:
        return numpy_type(dtype).itemsize
    return OTHER_SIZES.get(dtype, 1)


class Payload(Protocol):
    """The bytes of a storage, wherever they are."""

    @property
    def size(self) -> int:
        """How many bytes there are."""
        ...

    def read(self, start: int, stop: int) -> bytes:
        """Some of them."""
        ...


@dataclass(eq=False)
class Storage:
    """The elements that tensors are views of: an element type, and how many.

    payload: the bytes; None until the file has been read so far.
    offset: where the first element is, in elements; not 0 only in very old files.
    """

    dtype: str
    key: str
    numel: int
    payload: Payload | None = None
    offset: int = 0
    big_endian: bool = False

    def check(self) -> None:
        """Raise if the bytes are not there."""
        size = item_size(self.dtype)
        if self.payload is None:
            raise Trouble(f"the storage {short(self.key)} is not in the file")
        if (self.offset + self.numel) * size > self.payload.size:
            what = f"the storage {short(self.key)} is cut off"
            wanted = f"{self.numel} elements of {size} bytes"
            raise Trouble(what, wanted, f"{self.payload.size} bytes")


@dataclass(frozen=True, eq=False)
class TorchTensor:
    """A tensor in a file: a part of a storage, with sizes and strides in elements."""

    storage: Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    negative: bool = False  # the elements stand with the other sign

    @property
    def span(self) -> int:
        """How many elements of the storage lie between the first and the last."""
        if 0 in self.shape:
            return 0
        steps = zip(self.shape, self.strides, strict=True)
        return 1 + sum((size - 1) * stride for size, stride in steps)

    @property
    def num_bytes(self) -> int:
        """How many bytes the elements take, one by one."""
        return prod(self.shape) * item_size(self.dtype)

    def check(self) -> None:
        """Raise if it reaches beyond its storage."""
        self.storage.check()
        unit = item_size(self.storage.dtype)
        room = self.storage.numel * unit // item_size(self.dtype)
        if self.offset + self.span > room:
            shape = list(self.shape)
            what = f"a tensor {shape} reaches beyond its storage"
            raise Trouble(what, f"{self.offset + self.span} elements", f"{room}")

    def read(self) -> TensorData:
        """The elements, row by row; float8 kinds as f32."""
        self.check()
        size, payload = item_size(self.dtype), self.storage.payload
        assert payload is not None  # checked
        start = self.storage.offset * item_size(self.storage.dtype) + self.offset * size
        raw = payload.read(start, start + self.span * size)
        kind = np.dtype(np.uint8)
        if self.dtype in PLAIN and self.dtype != "bool":
            kind = numpy_type(self.dtype)
        kind = kind.newbyteorder(">" if self.storage.big_endian else "<")
        flat = np.frombuffer(raw, kind) if raw else np.empty(0, kind)
        if 0 in self.shape:
            array = np.empty(self.shape, kind)
        else:
            steps = [stride * size for stride in self.strides]
            array = np.lib.stride_tricks.as_strided(
                flat, self.shape, steps, writeable=False
            )
        if self.dtype in FLOAT8:
            return TensorData.of(float8_table(self.dtype)[array])
        if self.dtype == "bool":
            return TensorData.of(array != 0)
        array = np.array(array, kind.newbyteorder("="), order="C")
        if self.negative:
            np.negative(array, out=array)
        return TensorData.of(array, self.dtype)


@dataclass(frozen=True)
class Refusal:
    """A tensor that cannot be imported: what it is, and what to do in PyTorch."""

    what: str
    cure: str


@dataclass(frozen=True)
class ScriptClass:
    """A class of TorchScript, whose objects are maps of their attributes."""

    name: str


class TorchNames:
    """The names in PyTorch's pickles.

    storage: makes what an id stands for; scripted: whether this is TorchScript, whose
    own classes are maps of attributes. inner: reads the bytes of a file in the file.
    """

    def __init__(
        self,
        storage: Callable[[object], Storage],
        scripted: bool = False,
        inner: Callable[[bytes], object] | None = None,
    ) -> None:
        self.storage, self.scripted, self.inner = storage, scripted, inner

    def look_up(self, name: str) -> object:
        """The name, which nothing imports; one that may run a program is refused."""
        if _is_known(name) or may_be_named(name):
            return Name(name)
        raise Trouble(*refused(name))

    def call(self, name: Name, args: tuple[Any, ...]) -> object:
        """What PyTorch would make, described; of other classes their names."""
        if self.scripted and name.text.startswith("__torch__."):
            return {}
        if name.text == "torch.storage._load_from_bytes" and self.inner is not None:
            (data,) = _checked(name, args, bytes)
            return self.inner(data)
        make = CALLS.get(name.text)
        if make is not None:
            return make(self, name, args)
        if name.text.startswith("torch._utils._rebuild_"):
            return Refusal(f"made by {short(name)}", PLAIN_TENSOR)
        if not makes_object(name.text):
            raise Trouble(*refused(name.text))
        if name.text.endswith(REBUILT) and args and isinstance(args[0], Name):
            return Inert(args[0].text, args[1:])
        return Inert(name.text, args)

    def build(self, made: object, state: object) -> object:
        """Attributes in TorchScript and of objects; of tensors they do not matter."""
        if isinstance(made, Inert):
            made.state = state
        elif self.scripted and type(made) is dict and isinstance(state, dict):
            made.update((key_of(key), value) for key, value in state.items())
        elif not isinstance(made, (dict, TorchTensor, Refusal)):
            raise Trouble("the pickle sets the state of something that has none")
        return made

    def persistent(self, key: object) -> object:
        """A storage by its id; a class, which old files keep with its source."""
        if isinstance(key, tuple) and key[:1] == ("module",) and len(key) == 4:
            return key[1]
        return self.storage(key)


def _is_known(name: str) -> bool:
    return name in CALLS or name in TAGS or _is_storage(name) or _is_dtype(name)


def storage_id(key: object) -> tuple[str, str, int, object]:
    """Element type, key, count and view of ("storage", class, key, place, count, view).

    Raises:
        Trouble: it is no such id.
    """
    if not isinstance(key, tuple) or len(key) not in (5, 6) or key[0] != "storage":
        raise Trouble("the pickle speaks of something that is no storage")
    kind, name, count = key[1], key[2], key[4]
    kind = kind.text if isinstance(kind, Name) else f"torch.{kind}"
    if not _is_storage(kind):
        raise Trouble("a storage has no known class", found=short(kind))
    plain = isinstance(name, (str, int)) and not isinstance(name, bool)
    if not plain or not is_count(count):
        raise Trouble("a storage has no key or no size")
    view = key[5] if len(key) == 6 else None
    return STORAGES[kind.rpartition(".")[2]], str(name), count, view


def _is_storage(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return last in STORAGES and module in ("torch", "torch.cuda", "torch.storage")


def _is_dtype(name: str) -> bool:
    module, _, last = name.rpartition(".")
    return module == "torch" and last in DTYPES


def is_count(value: object) -> bool:
    """Whether it is a size or an offset that a file can have."""
    return type(value) is int and 0 <= value < 2**48


def _checked(name: Name, args: tuple[Any, ...], *kinds: Any) -> tuple[Any, ...]:
    """The first arguments of a call, which must be of these types."""
    if len(args) < len(kinds) or not all(map(isinstance, args, kinds)):
        raise Trouble(f"{name} has other arguments than PyTorch gives it")
    return args[: len(kinds)]


def _sizes(value: object) -> tuple[int, ...]:
    counts = isinstance(value, (tuple, list)) and all(map(is_count, value))
    if not counts or len(value) > MAX_RANK:  # type: ignore[arg-type] # a tuple
        raise Trouble("a tensor has impossible sizes", f"at most {MAX_RANK} sizes")
    sizes = tuple(value)  # type: ignore[arg-type] # of ints
    if prod(size or 1 for size in sizes) >= 2**48:
        raise Trouble("a tensor has impossible sizes", found=short(list(sizes)))
    return sizes


def _tensor(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    storage, offset, size, stride = _checked(
        name, args, Storage | tuple, int, tuple | list, tuple | list
    )
    if isinstance(storage, tuple):  # its id itself, in some old files
        storage = names.storage(storage)
    dtype = storage.dtype
    if name.text.endswith("_v3"):
        if len(args) < 7 or not isinstance(args[6], Name):
            raise Trouble(f"{name} has other arguments than PyTorch gives it")
        dtype = DTYPES.get(args[6].text.rpartition(".")[2], "")
    shape, strides = _sizes(size), _sizes_of_strides(stride)
    if not is_count(offset) or len(shape) != len(strides):
        raise Trouble("a tensor has impossible strides", found=short(list(strides)))
    if not dtype:
        raise Trouble("a tensor has no element type")
    made = TorchTensor(storage, offset, shape, strides, dtype)
    place = 7 if name.text.endswith("_v3") else 6
    return _with_metadata(made, args[place] if len(args) > place else None)


def _with_metadata(made: TorchTensor, metadata: object) -> object:
    """The tensor as what stands beside it says; what is not known here is refused.

    Why: PyTorch keeps the sign of a whole tensor there ("neg"), so who ignores it reads
    other numbers.
    """
    if metadata is None:
        return made
    if not isinstance(metadata, dict):
        raise Trouble("what stands beside a tensor is no map")
    on = [key for key, value in metadata.items() if value is not False]
    unknown = [key for key in on if key not in ("neg", "conj")]
    if unknown:
        what = f"kept with {short(repr(unknown[0]))}, which is not known here"
        return Refusal(what, PLAIN_TENSOR)
    if made.dtype.startswith("complex") or not on:
        return made  # complex ones are refused in any case
    if on == ["neg"] and made.dtype in ("f16", "f32", "f64"):
        return replace(made, negative=True)
    return Refusal(f"kept with {on[0]!r} as {made.dtype}", PLAIN_TENSOR)


def _sizes_of_strides(value: Iterable[object]) -> tuple[int, ...]:
    strides = tuple(value)
    if not all(map(is_count, strides)) or len(strides) > MAX_RANK:
        raise Trouble("a tensor has impossible strides", "whole numbers from 0 up")
    return strides  # type: ignore[return-value] # checked


def _first(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    (value,) = _checked(name, args, object)
    return value


def _by_type(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    make, kind, inner = _checked(name, args, Name, Name, tuple)
    if make.text == name.text:
        raise Trouble(f"{name} has other arguments than PyTorch gives it")
    made = names.call(make, inner)
    if kind.text not in TAGS and kind.text not in CALLS:
        return Refusal(f"of the class {short(kind)}", PLAIN_TENSOR)
    return made


def _map(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    rows = args[-1] if args and isinstance(args[-1], (dict, list, tuple)) else ()
    if isinstance(rows, dict):
        return dict(rows)
    made: dict[Any, Any] = {}
    for row in rows:
        if not isinstance(row, (tuple, list)) or len(row) != 2:
            raise Trouble(f"{name} is not made from pairs")
        made[key_of(row[0])] = row[1]
    return made


def _set(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    rows = args[0] if args and isinstance(args[0], (list, tuple, set)) else ()
    return set(map(key_of, rows))


def _bytes(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    text, _ = _checked(name, args, str, str)
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        raise Trouble("bytes in the pickle are no bytes") from None


def _tuple(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    (value,) = _checked(name, args, tuple | list)
    return tuple(value)


def _words(names: TorchNames, name: Name, args: tuple[Any, ...]) -> object:
    return ":".join(str(arg) for arg in args if isinstance(arg, (str, int)))[:200]


def _no(what: str, cure: str) -> Callable[..., object]:
    return lambda names, name, args: Refusal(what, cure)


DENSE = "tensor.to_dense() before torch.save"
PLAIN_TENSOR = "torch.empty_like(tensor).copy_(tensor) before torch.save"
REBUILT = ("copyreg._reconstructor", "copyreg.__newobj__", "multiarray._reconstruct")
CALLS: dict[str, Callable[[TorchNames, Name, tuple[Any, ...]], object]] = {
    "torch._utils._rebuild_tensor": _tensor,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_tensor_v3": _tensor,
    "torch._utils._rebuild_parameter": _first,
    "torch._utils._rebuild_parameter_with_state": _first,
    "torch._tensor._rebuild_from_type_v2": _by_type,
    "torch._tensor._rebuild_from_type": _by_type,
    "torch.nn.parameter.Parameter": _first,
    "torch.nn.parameter.Buffer": _first,
    "torch._utils._rebuild_qtensor": _no(
        "quantized", "tensor.dequantize() before torch.save"
    ),
    "torch._utils._rebuild_sparse_tensor": _no("sparse", DENSE),
    "torch._utils._rebuild_sparse_csr_tensor": _no("sparse", DENSE),
    "torch._utils._rebuild_nested_tensor": _no(
        "nested", "tensor.to_padded_tensor(0.0) before torch.save"
    ),
    "torch._utils._rebuild_wrapper_subclass": _no(
        "of a class of its own", "torch.empty_like(tensor).copy_(tensor)"
    ),
    "torch._utils._rebuild_meta_tensor_no_storage": _no(
        "without elements (meta)", "a model on the CPU"
    ),
    "torch.serialization._get_layout": _words,
    "torch.Size": _tuple,
    "torch.device": _words,
    "torch.torch_version.TorchVersion": _words,
    "torch.storage._load_from_bytes": _no("a file in the file", "torch.save"),
    "torch.jit._pickle.restore_type_tag": _first,
    "torch.jit._pickle.build_intlist": _first,
    "torch.jit._pickle.build_tensorlist": _first,
    "torch.jit._pickle.build_doublelist": _first,
    "torch.jit._pickle.build_boollist": _first,
    "collections.OrderedDict": _map,
    "collections.defaultdict": _map,
    "collections.Counter": _map,
    "builtins.dict": _map,
    "builtins.set": _set,
    "builtins.frozenset": _set,
    "_codecs.encode": _bytes,
}
SCHEMES = "per_tensor_affine per_channel_affine per_channel_affine_float_qparams"
LAYOUTS = "strided sparse_coo sparse_csr sparse_csc sparse_bsr sparse_bsc jagged"
#: Names that only say what something is.
TAGS = frozenset(
    [
        "torch.Tensor",
        "torch._tensor.Tensor",
        *(f"builtins.{name}" for name in ("list", "tuple", "int", "float", "bool")),
        *(f"torch.{name}" for name in [*SCHEMES.split(), *LAYOUTS.split()]),
        *(f"torch.{name.replace('Storage', 'Tensor')}" for name in STORAGES),
    ]
)


def refusal_of(tensor: TorchTensor) -> Refusal | None:
    """Why a tensor has no place here, if its elements are of an unknown type."""
    dtype = tensor.dtype
    if dtype in PLAIN or dtype in FLOAT8:
        return None
    if dtype.startswith("complex"):
        cure = "torch.view_as_real(tensor) before torch.save"
        return Refusal(f"complex ({dtype})", cure)
    if dtype.startswith("q"):
        cure = "tensor.dequantize() before torch.save"
        return Refusal(f"quantized ({dtype})", cure)
    return Refusal(f"of the type {dtype}", "tensor.float() before torch.save")


#: Bits of the exponent and of the mantissa, the exponent's bias, and how it ends.
FLOAT8_KINDS = {
    "f8_e4m3fn": (4, 3, 7, "fn"),
    "f8_e5m2": (5, 2, 15, "ieee"),
    "f8_e4m3fnuz": (4, 3, 8, "fnuz"),
    "f8_e5m2fnuz": (5, 2, 16, "fnuz"),
}


def float8_table(dtype: str) -> np.ndarray:
    """The f32 numbers of all 256 codes of a float8 kind.

    Example:
        >>> [float(x) for x in float8_table("f8_e4m3fn")[[0x38, 0x7E, 0xB8]]]
        [1.0, 448.0, -1.0]
    """
    codes = np.arange(256)
    if dtype == "f8_e8m0fnu":
        powers = np.ldexp(1.0, codes - 127)
        powers[255] = np.nan
        return powers.astype(np.float32)
    exponent_bits, bits, bias, ending = FLOAT8_KINDS[dtype]
    exponent = (codes >> bits) & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << bits) - 1)).astype(np.float32)
    whole = np.where(exponent > 0, mantissa + (1 << bits), mantissa)
    values = np.ldexp(whole, np.maximum(exponent, 1) - bias - bits).astype(np.float32)
    values = np.where(codes >= 128, -values, values)
    if ending == "fn":
        values[[0x7F, 0xFF]] = np.nan
    elif ending == "fnuz":
        values[0x80] = np.nan
    else:
        top = exponent == (1 << exponent_bits) - 1
        values[top] = np.nan
        values[[0x7C, 0xFC]] = np.inf, -np.inf
    return values.astype(np.float32)
