"""Arrays that are captured: NumPy's functions of them become ops of the program.

Whole numbers and truths are NumPy arrays while a graph runs, and host arithmetic is of
them. While a capture runs, those that depend on the inputs have no elements to compute
with. They are a `TracedArray` then, which answers NumPy's functions with ops on the
tensor that it stands for; so one form of an operator serves for both. What depends on
shapes and constants alone stays an array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import DTypeLike

from burnbook import ops
from burnbook.core.dtypes import Bool, Float, Int, KindType
from burnbook.core.op import Op
from burnbook.tensor import Tensor
from burnbook.tensor.methods import apply

Value = Any  # a TracedArray, an array or a number
Axis = int | tuple[int, ...] | None
PAIRS: dict[str, Any] = {
    "add": ops.add,
    "subtract": ops.sub,
    "multiply": ops.mul,
    "divide": ops.div,
    "floor_divide": ops.div,
    "remainder": ops.remainder,
    "fmod": ops.fmod,
    "power": ops.powf,
    "maximum": ops.max_pair,
    "minimum": ops.min_pair,
    "matmul": ops.matmul,
    "bitwise_and": ops.bitwise_and,
    "bitwise_or": ops.bitwise_or,
    "bitwise_xor": ops.bitwise_xor,
    "left_shift": ops.bitwise_left_shift,
    "right_shift": ops.bitwise_right_shift,
}
OF_TRUTHS: dict[str, Any] = {
    "add": ops.bool_or,
    "maximum": ops.bool_or,
    "bitwise_or": ops.bool_or,
    "logical_or": ops.bool_or,
    "multiply": ops.bool_and,
    "minimum": ops.bool_and,
    "bitwise_and": ops.bool_and,
    "logical_and": ops.bool_and,
    "bitwise_xor": ops.bool_xor,
    "logical_xor": ops.bool_xor,
    "not_equal": ops.bool_xor,
    "equal": ops.equal,
}
COMPARED: dict[str, Any] = {
    "equal": ops.equal,
    "not_equal": ops.not_equal,
    "greater": ops.greater,
    "greater_equal": ops.greater_equal,
    "less": ops.lower,
    "less_equal": ops.lower_equal,
}
SINGLE: dict[str, Any] = {
    "negative": ops.neg,
    "absolute": ops.abs,
    "sign": ops.sign,
    "square": ops.square,
    "invert": ops.bitwise_not,
}
OF_FLOATS: dict[str, Any] = {
    "rint": ops.round,
    "floor": ops.floor,
    "ceil": ops.ceil,
    "trunc": ops.trunc,
    "exp": ops.exp,
    "log": ops.log,
    "sqrt": ops.sqrt,
    "reciprocal": ops.recip,
    "sin": ops.sin,
    "cos": ops.cos,
    "tanh": ops.tanh,
}
ASKED: dict[str, Any] = {
    "isnan": ops.is_nan,
    "isinf": ops.is_inf,
    "isfinite": ops.is_finite,
}
WHOLE = {"rint", "floor", "ceil", "trunc"}  # nothing happens to whole numbers


class TracedArray(NDArrayOperatorsMixin):
    """An array that stands for a tensor of a capture, in an element type of ONNX.

    dtype: what the elements are in the graph; the tensor has its backend's type of the
    same kind. Whole numbers of 8 and 16 bits wrap as they do in NumPy; those of 32 are
    as wide as the backend has them.
    """

    __slots__ = ("dtype", "tensor")

    def __init__(self, tensor: Tensor, dtype: DTypeLike):
        self.tensor, self.dtype = tensor, np.dtype(dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes in this run."""
        return tuple(self.tensor.value.shape)

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return prod(self.shape)

    @property
    def T(self) -> TracedArray:  # noqa: N802 - NumPy's name
        """The dims from last to first."""
        return self.transpose()

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(
        self, dtype: DTypeLike | None = None, copy: bool | None = None
    ) -> Any:
        """Refused by the capture, which names the line."""
        return np.array(self.tensor.backend.to_numpy(self.tensor.value), dtype)

    def __array_ufunc__(
        self, ufunc: np.ufunc, method: str, *given: object, **more: object
    ) -> Any:
        more.pop("out", None)  # what is written into stays, and the result is used
        dtype = more.pop("dtype", None)
        if method != "__call__" or more:
            return self._refused()
        found = _by_ufunc(self, ufunc.__name__, given)
        return found if dtype is None else found.astype(dtype)

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: object,
        given: tuple[Any, ...],
        named: dict[str, Any],
    ) -> Any:
        form = FUNCTIONS.get(function.__name__)
        if form is None or not _fits(form, given, named):
            return self._refused()
        return form(*given, **named)

    def _refused(self) -> Any:
        return self.__array__()

    def __bool__(self) -> bool:
        return bool(self.__array__())

    def __int__(self) -> int:
        return int(self.__array__())

    def __float__(self) -> float:
        return float(self.__array__())

    def __index__(self) -> int:
        return int(self.__array__())

    def item(self) -> Any:
        """Refused by the capture, which names the line."""
        return self.__array__().item()

    def tolist(self) -> Any:
        """Refused by the capture, which names the line."""
        return self.__array__().tolist()

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> TracedArray:
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [k for k in keys if k is Ellipsis]:
            at = next(i for i, k in enumerate(keys) if k is Ellipsis)
            rest = self.ndim - sum(k is not None for k in keys) + 1
            keys[at : at + 1] = [slice(None)] * rest
        keys += [slice(None)] * (self.ndim - sum(k is not None for k in keys))
        found, dim, shape = self.tensor, 0, list[int]()
        for k in keys:
            if k is None:
                shape.append(1)
                continue
            size = int(found.value.shape[dim])
            if isinstance(k, (int, np.integer)):
                begin = int(k) % size if size else 0
                found = _cut(found, dim, slice(begin, begin + 1, 1))
            elif isinstance(k, slice):
                found = _cut(found, dim, slice(*k.indices(size)), k.indices(size))
                shape.append(int(found.value.shape[dim]))
            else:
                return self._refused()
            dim += 1
        return self.like(_shaped(found, shape))

    def __setitem__(self, key: Any, value: Any) -> None:
        """Refused by the capture, which names the line."""
        self._refused()

    def like(self, tensor: Tensor) -> TracedArray:
        """Another tensor, with elements of the same type."""
        return TracedArray(tensor, self.dtype)

    def astype(self, dtype: DTypeLike, copy: bool = True) -> TracedArray:
        """The values in another element type."""
        wanted = np.dtype(dtype)
        if wanted == self.dtype:
            return self
        if wanted.kind not in "fiub" or wanted.isbuiltin != 1:
            return self._refused()
        found = _of_kind(self.tensor, _kind(wanted))
        if self.dtype.kind in "iu":
            found = _wrapped(found, wanted, self.dtype)
        return TracedArray(found, wanted)

    def reshape(self, *shape: Any) -> TracedArray:
        """The elements in another shape; −1 is worked out."""
        wanted = shape[0] if len(shape) == 1 else shape
        sizes = [*wanted] if isinstance(wanted, (tuple, list)) else [int(wanted)]
        if -1 in sizes:
            rest = prod(n for n in sizes if n != -1)
            sizes[sizes.index(-1)] = self.size // rest if rest else 0
        return self.like(_shaped(self.tensor, sizes))

    def transpose(self, *axes: Any) -> TracedArray:
        """The dims in another order."""
        given = axes[0] if len(axes) == 1 else axes
        order = tuple(given) if given else tuple(reversed(range(self.ndim)))
        order = tuple(a % self.ndim for a in order)
        if order == tuple(range(self.ndim)):
            return self
        return self.like(apply(ops.permute, self.tensor, axes=order))

    def copy(self) -> TracedArray:
        """The array itself, as nothing writes to it."""
        return self

    def any(self, axis: Axis = None) -> TracedArray:
        """Whether one element is not 0."""
        return _reduced(self, axis, ops.any_dim, np.dtype(bool))

    def all(self, axis: Axis = None) -> TracedArray:
        """Whether no element is 0."""
        return _reduced(self, axis, ops.all_dim, np.dtype(bool))

    def min(self, axis: Axis = None, **more: bool) -> TracedArray:
        """The least element along axes."""
        return _extreme(self, axis, ops.min_dim, np.minimum, **more)

    def max(self, axis: Axis = None, **more: bool) -> TracedArray:
        """The largest element along axes."""
        return _extreme(self, axis, ops.max_dim, np.maximum, **more)

    def sum(self, axis: Axis = None, keepdims: bool = False) -> TracedArray:
        """The sum along axes."""
        return _sum(self, axis, keepdims=keepdims)


def _fits(
    form: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]
) -> bool:
    """Whether a function takes these arguments; NumPy's take some more."""
    try:
        signature(form).bind(*given, **named)
    except TypeError:
        return False
    return True


def traced(x: Tensor) -> TracedArray | None:
    """A tensor as an array, if a capture runs and it depends on the inputs."""
    value: Any = x.value
    if type(value) is np.ndarray:
        return None
    while hasattr(value, "node"):
        value = value.value
    if not getattr(value, "from_input", False):
        return None
    return TracedArray(x, np.dtype(x.value.dtype))


def _kind(dtype: np.dtype[Any]) -> KindType:
    return {"f": Float, "b": Bool}.get(dtype.kind, Int)


def _of_kind(x: Tensor, kind: KindType) -> Tensor:
    """The same values in another kind; nobody looks whether they fit."""
    if x.kind is kind:
        return x
    if kind is Bool:
        return apply(ops.to_bool, x)
    value: Any = x.value
    while kind is Int and hasattr(value, "node"):  # Int has no gradient
        value = value.value
    made = x.backend.run(ops.cast, (value,), {"dtype": x.backend.dtype(kind)})
    return Tensor(made, kind, x.backend, len(made.shape))


def _wrapped(x: Tensor, wanted: np.dtype[Any], given: np.dtype[Any]) -> Tensor:
    """Whole numbers of few bits, as they are after an overflow."""
    if wanted.kind not in "iu" or wanted.itemsize > 2 or np.can_cast(given, wanted):
        return x
    bits = 8 * wanted.itemsize
    mask, half = (1 << bits) - 1, 1 << (bits - 1)
    if wanted.kind == "u":
        return _pair(ops.bitwise_and, x, _constant(mask, Int, x))
    held = _pair(ops.add, x, _constant(half, Int, x))
    held = _pair(ops.bitwise_and, held, _constant(mask, Int, x))
    return _pair(ops.sub, held, _constant(half, Int, x))


def _constant(value: Value, kind: KindType, like: Tensor) -> Tensor:
    """Known elements as a tensor where another one lives."""
    device = like.backend
    array = np.array(value, device.dtype(kind), copy=None, order="C")
    return Tensor.of(device.from_numpy(array), kind, device)


def _shaped(x: Tensor, shape: Sequence[int]) -> Tensor:
    if tuple(x.value.shape) == tuple(shape):
        return x
    return apply(ops.reshape, x, shape=tuple(map(int, shape)))


def _pair(op: Op, *parts: Tensor) -> Tensor:
    """An op of tensors whose ranks may differ."""
    rank = max(len(x.value.shape) for x in parts)
    same = [_shaped(x, (1,) * (rank - x.value.ndim) + x.value.shape) for x in parts]
    return apply(op, *same)


def _tensor(value: Value, kind: KindType, like: TracedArray, rank: int = 0) -> Tensor:
    """A value as a tensor; a known one with leading dims up to a rank."""
    if isinstance(value, TracedArray):
        return _of_kind(value.tensor, kind)
    held = np.asarray(value)
    held = held.reshape((1,) * (rank - held.ndim) + held.shape)
    return _constant(held, kind, like.tensor)


def _tensors(
    values: Sequence[Value], kind: KindType, like: TracedArray
) -> list[Tensor]:
    rank = max(map(np.ndim, values))
    return [_tensor(v, kind, like, rank) for v in values]


def _types(values: Sequence[Value]) -> list[Any]:
    """What decides the type of a result; Python's numbers give way."""
    weak = (bool, int, float)
    return [v if type(v) in weak else np.asarray(v).dtype for v in map(_plain, values)]


def _plain(value: Value) -> Value:
    return np.empty(0, value.dtype) if isinstance(value, TracedArray) else value


def _by_ufunc(one: TracedArray, name: str, given: Sequence[Value]) -> Value:
    """The result of a function that goes number by number."""
    common = np.result_type(*_types(given))
    kind = _kind(common)
    if len(given) == 1:
        return _by_single(one, name, common)
    if name.startswith("logical_") or (kind is Bool and name in OF_TRUTHS):
        parts = _tensors(given, Bool, one)
        return TracedArray(_pair(OF_TRUTHS[name], *parts), bool)
    if name in COMPARED:
        kind = Int if kind is Bool else kind
        parts = _tensors(given, kind, one)
        return TracedArray(_pair(COMPARED[name], *parts), bool)
    if name not in PAIRS or (name == "matmul" and min(map(np.ndim, given)) < 2):
        return one.__array__()
    if name == "divide" and kind is not Float:
        common, kind = np.dtype(np.float64), Float
    if kind is Bool:
        common, kind = np.dtype(np.int8), Int
    x, y = _tensors(given, kind, one)
    found = _pair(PAIRS[name], x, y)
    if name == "floor_divide" and kind is Float:
        found = apply(ops.floor, found)
    elif name == "floor_divide":  # the op cuts towards 0
        rest = _pair(ops.fmod, x, y)
        below = _pair(ops.lower, _pair(ops.mul, rest, y), _constant(0, Int, x))
        found = _pair(ops.sub, found, _of_kind(below, Int))
    if common.kind in "iu":
        found = _wrapped(found, common, np.dtype(np.int64))
    return TracedArray(found, common)


def _by_single(one: TracedArray, name: str, dtype: np.dtype[Any]) -> Value:
    x = one.tensor
    if name in ASKED:
        if dtype.kind != "f" and name != "isnan":
            x = _of_kind(x, Float)
        return TracedArray(apply(ASKED[name], _of_kind(x, Float)), bool)
    if name == "signbit":
        return one < 0
    if name == "logical_not" or (name == "invert" and dtype.kind == "b"):
        return TracedArray(apply(ops.bool_not, _of_kind(x, Bool)), bool)
    if name in SINGLE and dtype.kind != "b":
        found = apply(SINGLE[name], x)
        return one.like(_wrapped(found, dtype, np.dtype(np.int64)))
    if name in WHOLE and dtype.kind in "iu":
        return one
    if name in OF_FLOATS and dtype.kind == "f":
        return one.like(apply(OF_FLOATS[name], x))
    return one.__array__()


def _one_of(values: Sequence[Value]) -> TracedArray:
    return next(v for v in values if isinstance(v, TracedArray))


def _cut(x: Tensor, dim: int, part: slice, ends: Any = None) -> Tensor:
    """A stretch along a dim; backwards as a choice of places."""
    size = int(x.value.shape[dim])
    if ends is not None and ends[2] < 0:
        places = _constant(np.arange(size)[slice(*_open(ends))], Int, x)
        return apply(ops.select, x, places, dim=dim)
    if (part.start, part.stop, part.step) == (0, size, 1):
        return x
    part = slice(part.start, max(part.start, part.stop), part.step)
    index = [slice(0, n, 1) for n in x.value.shape]
    index[dim] = part
    return apply(ops.slice_, x, index=tuple(index))


def _open(ends: tuple[int, int, int]) -> tuple[int, int | None, int]:
    """Ends of a stretch that goes backwards: −1 is before the first."""
    start, stop, step = ends
    return start, None if stop < 0 else stop, step


def _axes(x: TracedArray, axis: Axis) -> list[int]:
    if axis is None:
        return list(range(x.ndim))
    several = (axis,) if isinstance(axis, (int, np.integer)) else axis
    return sorted({int(a) % x.ndim for a in several})


def _reduced(
    x: TracedArray, axis: Axis, op: Op, dtype: np.dtype[Any], keepdims: bool = False
) -> TracedArray:
    """One element of many along axes, one axis after the other."""
    over, found = _axes(x, axis), x.tensor
    if axis is None and x.ndim > 1 and not keepdims:  # all of them at once
        return _reduced(x.reshape(x.size), 0, op, dtype)
    if not over and dtype.kind == "b":
        found = _of_kind(found, Bool)
    for dim in over:
        found = apply(op, found, dim=dim)
    sizes = enumerate(x.shape)
    if keepdims:
        shape = [1 if i in over else n for i, n in sizes]
    else:
        shape = [n for i, n in sizes if i not in over]
    return TracedArray(_shaped(found, shape), dtype)


def _extreme(
    x: TracedArray,
    axis: Axis,
    op: Op,
    pair: Any,
    initial: Any = None,
    keepdims: bool = False,
) -> TracedArray:
    plain = x.astype(np.int64) if x.dtype.kind == "b" else x
    found = _reduced(plain, axis, op, plain.dtype, keepdims)
    if initial is not None and not _is_end(initial, x.dtype):
        found = pair(found, initial)
    return found.astype(x.dtype)


def _is_end(value: float | None, dtype: np.dtype[Any]) -> bool:
    """Whether nothing lies beyond a value, or nothing before it."""
    if dtype.kind == "b":
        return isinstance(value, bool)
    info: Any = np.iinfo(dtype) if dtype.kind in "iu" else None
    ends = (-np.inf, np.inf) if info is None else (info.min, info.max)
    return value in ends


def _wide(x: TracedArray) -> TracedArray:
    """Whole numbers as sums of them are: 64 bits."""
    if x.dtype.kind == "f":
        return x
    return x.astype(np.uint64 if x.dtype.kind == "u" else np.int64)


def _sum(x: TracedArray, axis: Axis = None, *, keepdims: bool = False) -> TracedArray:
    plain = _wide(x)
    return _reduced(plain, axis, ops.sum_dim, plain.dtype, keepdims)


def _prod(x: TracedArray, axis: Axis = None, *, keepdims: bool = False) -> TracedArray:
    plain = _wide(x)
    return _reduced(plain, axis, ops.prod_dim, plain.dtype, keepdims)


def _mean(x: TracedArray, axis: Axis = None, *, keepdims: bool = False) -> TracedArray:
    plain = x if x.dtype.kind == "f" else x.astype(np.float64)
    return _reduced(plain, axis, ops.mean_dim, plain.dtype, keepdims)


def _cumsum(x: TracedArray, axis: int, dtype: DTypeLike | None = None) -> TracedArray:
    plain = _wide(x)
    found = plain.like(apply(ops.cumsum, plain.tensor, dim=axis % x.ndim))
    return found if dtype is None else found.astype(dtype)


def _place(op: Op) -> Callable[..., TracedArray]:
    """Where the largest or least element stands."""

    def find(x: TracedArray, axis: int) -> TracedArray:
        plain = x.astype(np.int64) if x.dtype.kind == "b" else x
        dim = axis % x.ndim
        found = apply(op, plain.tensor, dim=dim)
        shape = [n for i, n in enumerate(x.shape) if i != dim]
        return TracedArray(_shaped(found, shape), np.int64)

    return find


def _where(cond: Value, x: Value, y: Value) -> TracedArray:
    one = _one_of((cond, x, y))
    common = np.result_type(*_types((x, y)))
    kind = _kind(common)
    rank = max(map(np.ndim, (cond, x, y)))
    kinds = ((y, kind), (cond, Bool), (x, kind))
    parts = [_tensor(value, of, one, rank) for value, of in kinds]
    return TracedArray(_pair(ops.mask_where, *parts), common)


def take(x: Value, indices: Value, axis: int) -> Value:
    """np.take, which would ask known elements of `x` for places that are traced."""
    if not isinstance(x, TracedArray) and not isinstance(indices, TracedArray):
        return np.take(x, indices, axis)
    one = _one_of((x, indices))
    dtype = x.dtype
    held = _tensor(x, _kind(dtype), one)
    shape, size = tuple(held.value.shape), np.shape(indices)
    dim = axis % len(shape)
    places = from_start(indices, shape[dim])
    flat = _shaped(_tensor(places, Int, one), (prod(size),))
    found = apply(ops.select, held, flat, dim=dim)
    return TracedArray(_shaped(found, (*shape[:dim], *size, *shape[dim + 1 :])), dtype)


def take_along(x: Value, indices: Value, axis: int) -> TracedArray:
    """np.take_along_axis, where one of both is traced."""
    one = _one_of((x, indices))
    held = _tensor(x, _kind(x.dtype), one)
    dim = axis % np.ndim(x)
    places = _tensor(from_start(indices, held.value.shape[dim]), Int, one)
    return TracedArray(apply(ops.gather, held, places, dim=dim), x.dtype)


def from_start(indices: Any, size: int) -> Any:
    """Places counted from the first; those below 0 came from the end."""
    if getattr(indices, "dtype", np.dtype(np.int64)).kind == "u":
        return indices
    return np.where(indices < 0, indices + size, indices)


def _concatenate(parts: Sequence[Value], axis: int = 0) -> TracedArray:
    one = _one_of(parts)
    common = np.result_type(*_types(parts))
    held = [_tensor(v, _kind(common), one) for v in parts]
    return TracedArray(apply(ops.cat, *held, dim=axis % one.ndim), common)


def _stack(parts: Sequence[Value], axis: int = 0) -> TracedArray:
    return _concatenate([np.expand_dims(part, axis) for part in parts], axis)


def _split(x: TracedArray, places: Value, axis: int = 0) -> list[TracedArray]:
    if isinstance(places, int):  # so many parts of one size
        each = x.shape[axis] // places
        places = range(each, each * places, each)
    ends = [0, *map(int, places), x.shape[axis]]
    rows = [slice(a, b, 1) for a, b in pairwise(ends)]
    return [x.like(_cut(x.tensor, axis % x.ndim, part)) for part in rows]


def _flip(x: TracedArray, axis: Axis = None) -> TracedArray:
    return x.like(apply(ops.flip, x.tensor, axes=tuple(_axes(x, axis))))


def _tile(x: TracedArray, repeats: Sequence[int]) -> TracedArray:
    for axis, count in enumerate(repeats):
        if count == 0:
            x = x.like(_cut(x.tensor, axis, slice(0, 0, 1)))
        elif count > 1:
            x = _concatenate([x] * count, axis)
    return x


def _repeat(x: TracedArray, count: int, axis: int) -> TracedArray:
    dim = axis % x.ndim
    shape = (*x.shape[: dim + 1], count, *x.shape[dim + 1 :])
    wide: Any = np.broadcast_to(np.expand_dims(x, dim + 1), shape)
    return wide.reshape((*x.shape[:dim], x.shape[dim] * count, *x.shape[dim + 1 :]))


def _broadcast_to(x: TracedArray, shape: Sequence[int]) -> TracedArray:
    wanted = tuple(map(int, shape))
    held = _shaped(x.tensor, (1,) * (len(wanted) - x.ndim) + x.shape)
    if tuple(held.value.shape) == wanted:
        return x.like(held)
    return x.like(apply(ops.expand, held, shape=wanted))


def _expand_dims(x: TracedArray, axis: int | tuple[int, ...]) -> TracedArray:
    several = (axis,) if isinstance(axis, (int, np.integer)) else tuple(axis)
    rank = x.ndim + len(several)
    places, rest = {int(a) % rank for a in several}, iter(x.shape)
    return x.reshape([1 if i in places else next(rest) for i in range(rank)])


def _squeeze(x: TracedArray, axis: Axis = None) -> TracedArray:
    gone = [i for i, n in enumerate(x.shape) if n == 1]
    gone = gone if axis is None else _axes(x, axis)
    return x.reshape([n for i, n in enumerate(x.shape) if i not in gone])


def _moveaxis(
    x: TracedArray, source: Sequence[int] | int, target: Sequence[int] | int
) -> TracedArray:
    shown = np.moveaxis(np.empty(range(1, x.ndim + 1), bool), source, target)
    return x.transpose([n - 1 for n in shown.shape])


def _clip(x: Value, low: Value = None, high: Value = None) -> Value:
    bounds = (low, high)
    if all(v is None or isinstance(v, (int, float, np.number)) for v in bounds):
        limits = {"min": low, "max": high}
        return x.like(apply(ops.clamp, x.tensor, **limits))
    found = x if low is None else np.maximum(x, low)
    return found if high is None else np.minimum(found, high)


def _pad(x: TracedArray, widths: Any, *, constant_values: Any = 0) -> TracedArray:
    pairs = tuple((int(a), int(b)) for a, b in widths)
    value = np.asarray(constant_values).item()
    return x.like(apply(ops.pad, x.tensor, widths=pairs, value=value))


def _argsort(x: TracedArray, axis: int = -1, *, kind: object = None) -> TracedArray:
    plain = x.astype(np.int64) if x.dtype.kind == "b" else x
    found = apply(ops.argsort, plain.tensor, dim=axis % x.ndim)
    return TracedArray(found, np.int64)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "where": _where,
    "take": take,
    "take_along_axis": take_along,
    "concatenate": _concatenate,
    "stack": _stack,
    "split": _split,
    "flip": _flip,
    "tile": _tile,
    "repeat": _repeat,
    "broadcast_to": _broadcast_to,
    "expand_dims": _expand_dims,
    "squeeze": _squeeze,
    "moveaxis": _moveaxis,
    "clip": _clip,
    "pad": _pad,
    "argsort": _argsort,
    "argmax": _place(ops.argmax),
    "argmin": _place(ops.argmin),
    "cumsum": _cumsum,
    "sum": _sum,
    "prod": _prod,
    "mean": _mean,
    "max": TracedArray.max,
    "min": TracedArray.min,
    "any": TracedArray.any,
    "all": TracedArray.all,
    "reshape": TracedArray.reshape,
    "transpose": TracedArray.transpose,
    "copy": TracedArray.copy,
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
    "size": lambda x: x.size,
    "result_type": lambda *given: np.result_type(*_types(given)),
}
