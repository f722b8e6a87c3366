"""Values while a graph runs: tensors where gradients matter, arrays elsewhere.

ONNX has 26 element types and rank 0; a burnbook tensor has a kind, at least one dim,
and the element type of its backend. So numbers of 16, 32 and 64 bits that came from
an input or a weight are tensors here (of any rank, on a sibling of their backend for
another type), and everything else is a NumPy array: shapes, indices, truths, strings,
quantized numbers, bfloat16. While a capture runs, an array that depends on the inputs
is a `TracedArray`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.dtypes import Bool, Float, Int, dtype_name
from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.traced import TracedArray, take, traced
from burnbook.ops import select, shape as shape_ops
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply
from burnbook.tensor.precision import sibling

Value = Any  # a Tensor, an array, a list of values (a sequence) or None
FLOATS = (np.dtype("float32"), np.dtype("float64"), np.dtype("float16"))
# ONNX's number of an element type, and NumPy's name for it (ml_dtypes has the rest).
DTYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "str",
    9: "bool",
    10: "float16",
    11: "float64",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8_e4m3fn",
    18: "float8_e4m3fnuz",
    19: "float8_e5m2",
    20: "float8_e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4_e2m1fn",
    24: "float8_e8m0fnu",
    25: "uint2",
    26: "int2",
}


def dtype_of(name: str | int) -> np.dtype[Any]:
    """An element type by ONNX's number or NumPy's name; strings are objects.

    Example:
        >>> dtype_of(7), dtype_of("float16")
        (dtype('int64'), dtype('float16'))
    """
    name = DTYPES[name] if isinstance(name, int) else name
    if name == "str":
        return np.dtype(object)
    try:
        return np.dtype(name)
    except TypeError:
        pass
    try:
        import ml_dtypes
    except ImportError:
        what = f"{name} needs the package ml_dtypes"
        raise ArgumentError("onnx", what, cure="pip install ml_dtypes") from None
    return np.dtype(getattr(ml_dtypes, name))


def is_float(value: Value) -> bool:
    """Whether a value is a tensor, or an array that may become one."""
    if isinstance(value, (np.ndarray, TracedArray)):
        return value.dtype in FLOATS
    return isinstance(value, (Tensor, float, np.floating))


def float_backend(device: Backend, dtype: np.dtype[Any]) -> Backend:
    """The sibling of a device for floats of a type."""
    own = device.dtype(Float)
    return device if dtype == own else sibling(device, float=dtype_name(dtype))


def as_array(value: Value) -> Any:
    """A NumPy array of the same rank. Python's numbers are int64, float32 and bool."""
    if isinstance(value, Tensor):
        found = traced(value)
        return value.backend.to_numpy(value.value) if found is None else found
    if isinstance(value, TracedArray):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    array = np.asarray(value)
    if array.dtype == np.float64:
        return array.astype(np.float32)
    if array.dtype.kind in "US":
        return array.astype(object)
    if array.size == 0 and isinstance(value, (list, tuple)):
        return array.astype(np.int64)
    return array


def as_tensor(value: Value, device: Backend) -> Tensor:
    """A tensor of the same rank on a device: Float on a sibling of its own type."""
    if isinstance(value, Tensor):
        return value
    if isinstance(value, TracedArray):
        return value.tensor
    array = as_array(value)
    kind = {"f": Float, "b": Bool}.get(array.dtype.kind, Int)
    if kind is Float:
        device = float_backend(device, array.dtype)
    array = np.array(array, device.dtype(kind), copy=None, order="C")
    if type(device) is Numpy:  # nothing here writes to an array that exists
        return Tensor(array, kind, device, array.ndim)
    return Tensor.of(device.from_numpy(array), kind, device)


def device_of(values: Iterable[Value]) -> Backend | None:
    """The device of the first tensor among values and sequences of them."""
    for value in values:
        if isinstance(value, Tensor):
            return value.backend
        if isinstance(value, list) and value and type(value[0]) not in (int, float):
            found = device_of(value)
            if found is not None:
                return found
    return None


def traced_device(values: Iterable[Value]) -> Backend | None:
    """The device of the first value that a capture traces, of arrays."""
    for value in values:
        if type(value) is TracedArray:
            return value.tensor.backend
    return None


def lifted(value: Value, device: Backend) -> Value:
    """Floats as tensors on a device, in sequences too; everything else as an array."""
    if value is None or isinstance(value, (Tensor, dict)):
        return value
    if isinstance(value, list) and not is_literal(value):
        return [lifted(part, device) for part in value]
    return as_tensor(value, device) if is_float(as_array(value)) else as_array(value)


def lowered(value: Value) -> Value:
    """Everything as arrays; maps from class to score stay."""
    if value is None or isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)) and not is_literal(value):
        return type(value)(lowered(part) for part in value)
    return as_array(value)


def settled_input(x: Any) -> Value:
    """What a caller of a graph gives: texts as objects, sequences as lists."""
    if isinstance(x, list):
        return [settled_input(part) for part in x]
    if isinstance(x, np.ndarray) and x.dtype.kind in "US":
        return x.astype(object)
    return None if x is None else np.asarray(x)


def is_literal(value: Sequence[Any]) -> bool:
    """Whether a list is numbers, as a short constant is written, and no sequence."""
    return bool(value) and not any(
        isinstance(part, (Tensor, np.ndarray, dict)) or part is None for part in value
    )


def moved(x: Tensor, device: Backend) -> Tensor:
    """A tensor on a sibling of its backend; gradients come back."""
    return x._move(device)  # pyright: ignore[reportPrivateUsage]


def reshape(x: Tensor, shape: Sequence[int]) -> Tensor:
    """The same elements in a shape of any rank, rank 0 as well."""
    if tuple(x.value.shape) == tuple(shape):
        return x
    return apply(shape_ops.reshape, x, shape=tuple(map(int, shape)))


def aligned(*tensors: Tensor) -> list[Tensor]:
    """Tensors of one rank: the lower ones get leading dims of size 1.

    And of one type: where the model's device has another float type than the file, what
    was cast in the graph meets it here.
    """
    first = tensors[0]
    if all(x.backend is first.backend and x.rank == first.rank for x in tensors):
        return [*tensors]
    if any(x.backend is not tensors[0].backend for x in tensors):
        wide = max((x.backend for x in tensors), key=lambda b: b.dtype(Float).itemsize)
        tensors = tuple(moved(x, wide) for x in tensors)
    rank = max(len(x.value.shape) for x in tensors)
    shapes = [tuple(x.value.shape) for x in tensors]
    return [
        reshape(x, (1,) * (rank - len(s)) + s)
        for x, s in zip(tensors, shapes, strict=True)
    ]


def mask_of(array: Any, like: Tensor) -> Tensor:
    """A Bool tensor where `like` lives."""
    if isinstance(array, TracedArray):
        return array.astype(bool).tensor
    plain = np.array(array, bool, copy=None, order="C")
    if type(like.backend) is Numpy:
        return Tensor(plain, Bool, like.backend, plain.ndim)
    return Tensor.of(like.backend.from_numpy(plain), Bool, like.backend)


def indices_of(array: Any, like: Tensor) -> Tensor:
    """An Int tensor where `like` lives."""
    if isinstance(array, TracedArray):
        return array.astype(np.int64).tensor
    dtype = like.backend.dtype(Int)
    plain = np.array(array, dtype, copy=None, order="C")
    if type(like.backend) is Numpy:
        return Tensor(plain, Int, like.backend, plain.ndim)
    return Tensor.of(like.backend.from_numpy(plain), Int, like.backend)


def ints(value: Value) -> list[int]:
    """A shape, axes, pads …: Python's whole numbers, from a value of rank 0 or 1."""
    if type(value) is list:
        return value
    array = value if type(value) is np.ndarray else as_array(value)
    if array.dtype.kind in "iu" and array.dtype.isnative:
        return array.reshape(-1).tolist()
    return [int(n) for n in array.reshape(-1)]


def number(value: Value) -> Any:
    """The one element of a value, as a Python number."""
    if isinstance(value, (int, float)):
        return value
    return as_array(value).reshape(-1)[0].item()


def default_device() -> Backend:
    """Where constants that meet no tensor are computed."""
    return Numpy()


def rearranged(x: Tensor, move: Callable[[Any], Any]) -> Tensor:
    """Elements of a tensor as a function of arrays arranges their places.

    The function is given where every element stands, in an array of x's shape; what it
    returns says which element of x stands where. Gradients go back the same way.

    Why along dims where that is possible: the indices of a dim do not know the others,
    so that the batch may have any size, and there are few of them.
    """
    shape = tuple(x.value.shape)
    count = int(np.prod(shape, dtype=np.int64))
    places = as_array(move(np.arange(count).reshape(shape)))
    orders = _orders_of(places, shape)
    if orders is not None:
        for dim, order in enumerate(orders):
            if not np.array_equal(order, np.arange(shape[dim])):
                x = apply(select, x, indices_of(order, x), dim=dim)
        return x
    flat, order = reshape(x, (count,)), indices_of(places.reshape(-1), x)
    return reshape(apply(select, flat, order, dim=0), places.shape)


def _orders_of(places: Any, shape: tuple[int, ...]) -> list[Any] | None:
    """For each dim the index that each place of a result takes, if dims are apart.

    places: where each element of the result stands in a tensor of this shape.

    Example:
        >>> _orders_of(np.arange(6).reshape(2, 3)[:, ::-1], (2, 3))
        [array([0, 1]), array([2, 1, 0])]
    """
    if places.ndim != len(shape) or not places.size:
        return None
    orders: list[Any] = []
    found, stride = np.zeros((1,) * len(shape), places.dtype), places.dtype.type(1)
    for dim in reversed(range(len(shape))):
        at = tuple([slice(None) if d == dim else 0 for d in range(len(shape))])
        order = places[at] // stride % shape[dim]
        line = [-1 if d == dim else 1 for d in range(len(shape))]
        found = found + order.reshape(line) * stride
        orders.append(order)
        stride = stride * shape[dim]
    return orders[::-1] if np.array_equal(found, places) else None


def rearranged_array(x: Any, move: Callable[[Any], Any]) -> Any:
    """The same for an array, also one that a capture traces."""
    places = move(np.arange(x.size).reshape(x.shape))
    return take(x.reshape(-1), places.reshape(-1), 0).reshape(places.shape)
