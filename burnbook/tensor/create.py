"""Making tensors: from data, from numbers, from chance."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from burnbook.backend.base import Backend
from burnbook.backend.numpy import Numpy
from burnbook.core.argument_cures import for_kind, given, joined
from burnbook.core.call_source import texts_of_call
from burnbook.core.converters import type_spec
from burnbook.core.cures import explains_arguments
from burnbook.core.dtypes import Bool, Float, Int, KindType, dtype_name
from burnbook.core.errors import (
    ArgumentError,
    BackendError,
    BurnbookError,
    ConfigError,
    DataError,
    KindError,
    ShapeError,
)
from burnbook.core.held_tensors import cure_for_holder, facts_of_tensors
from burnbook.ops import random as random_ops, shape as shape_ops
from burnbook.tensor.data import MAX_DIMS, TensorData
from burnbook.tensor.distribution import Bernoulli, Distribution, Normal, Uniform
from burnbook.tensor.foreign_arrays import array_of
from burnbook.tensor.methods import Methods, apply
from burnbook.tensor.qfloat import QFloat
from burnbook.tensor.shape import check_dims

DataLike = Any
MOST_BYTES = 2**46  # 64 TiB: more than any machine has


class Creation(Methods):
    """How a tensor comes into being; `device` is a backend, `Numpy()` if left out."""

    __slots__ = ()

    holder: ClassVar[Any]  # the class of tensors that hold codes, which stands above

    @classmethod
    def of(cls, value: Any, kind: KindType, backend: Backend) -> Self:
        """Wrap a raw value that already lives on a backend."""
        return cls(value, kind, backend, len(value.shape))

    @classmethod
    @explains_arguments("Tensor.from_data")
    def from_data(
        cls,
        data: DataLike,
        device: Backend | None = None,
        kind: KindType | None = None,
    ) -> Self:
        """Copy nested lists, TensorData or an array to a device.

        Values convert to the device's element type; without `kind`, whole numbers make
        an Int tensor and truth values a Bool tensor.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.from_data([[1.0, 2.0]]).shape
            (1, 2)
        """
        backend = some_device("from_data", device, kind)
        if kind is not None and kind.__class__ is not KindType:
            raise no_kind("from_data", kind)
        if not isinstance(data, TensorData):
            data = _data_of(data, backend, kind)
        found = data.kind if kind is None else kind
        if not data.shape:
            raise ShapeError(
                "from_data",
                "a tensor has at least one dim",
                [("data", "a single number")],
                "put the number into a list: [3.0]",
            )
        if isinstance(data.dtype, QFloat) and found is Float:
            codes = backend.from_numpy(data.array)
            return cls.holder.of_codes(codes, data.dtype.strategy, backend)
        wanted = dtype_name(backend.dtype(found))
        array = data.convert(wanted).array
        return cls(backend.from_numpy(array), found, backend, array.ndim)

    @classmethod
    @explains_arguments("Tensor.from_numpy")
    def from_numpy(cls, array: Any, device: Backend | None = None) -> Self:
        """Copy a NumPy array to a device; its kind follows from its element type."""
        try:
            data = TensorData.of(array_of("from_numpy", array))
        except KindError as error:
            error.where = "from_numpy"
            raise
        return cls.from_data(data, device)

    @classmethod
    @explains_arguments("Tensor.from_floats")
    def from_floats(cls, data: DataLike, device: Backend | None = None) -> Self:
        """A Float tensor from nested lists of numbers."""
        return cls.from_data(data, device, Float)

    @classmethod
    @explains_arguments("Tensor.from_ints")
    def from_ints(cls, data: DataLike, device: Backend | None = None) -> Self:
        """An Int tensor from nested lists of whole numbers."""
        return cls.from_data(data, device, Int)

    @classmethod
    def from_bool(cls, data: DataLike, device: Backend | None = None) -> Self:
        """A Bool tensor from nested lists of truth values."""
        return cls.from_data(data, device, Bool)

    @classmethod
    @explains_arguments("Tensor.full")
    def full(
        cls,
        shape: Iterable[int],
        value: float,
        device: Backend | None = None,
        kind: KindType = Float,
    ) -> Self:
        """A tensor with the same value everywhere."""
        return cls._filled("full", shape, value, device, kind)

    @classmethod
    def _filled(
        cls,
        where: str,
        shape: Iterable[int],
        value: float,
        device: Backend | None,
        kind: KindType,
    ) -> Self:
        backend = some_device(where, device, shape)
        dims = some_dims(where, shape)
        if kind.__class__ is not KindType:
            raise no_kind(where, kind)
        dtype = backend.dtype(kind)
        _enough_room(where, dims, dtype.itemsize)
        held: Any = value
        if held is None or isinstance(held, np.ndarray):  # NumPy would take it
            what = f"the value is {given(value)}, not a number"
            raise ArgumentError(where, what, cure="0.0")
        try:
            if kind is Int and value != int(value):
                raise ValueError
            array = np.full(dims, value, dtype)
        except MemoryError:
            raise _no_room(where, dims, dtype.itemsize) from None
        except (TypeError, ValueError, OverflowError):
            if kind is Int and isinstance(value, float):
                what = f"a tensor of Int cannot hold {value!r}"
                cure = f"kind Float, or {math.floor(value)}" if value == value else None
                raise KindError(where, what, cure=cure) from None
            what = f"a tensor of {kind.__name__} cannot hold {value!r}"
            raise DataError(where, what, cure="a number of at most 64 bits") from None
        return cls(backend.from_numpy(array), kind, backend, len(dims))

    @classmethod
    @explains_arguments("Tensor.zeros")
    def zeros(
        cls,
        shape: Iterable[int],
        device: Backend | None = None,
        kind: KindType = Float,
    ) -> Self:
        """A tensor of zeros (of False, for Bool)."""
        return cls._filled("zeros", shape, 0, device, kind)

    @classmethod
    @explains_arguments("Tensor.ones")
    def ones(
        cls,
        shape: Iterable[int],
        device: Backend | None = None,
        kind: KindType = Float,
    ) -> Self:
        """A tensor of ones (of True, for Bool)."""
        return cls._filled("ones", shape, 1, device, kind)

    @classmethod
    @explains_arguments("Tensor.empty")
    def empty(
        cls,
        shape: Iterable[int],
        device: Backend | None = None,
        kind: KindType = Float,
    ) -> Self:
        """A tensor with unspecified elements; here they are zeros."""
        return cls._filled("empty", shape, 0, device, kind)

    def full_like(self, value: float) -> Self:
        """A tensor of one value, with the shape, kind and device of this one.

        An Int tensor takes whole numbers.
        """
        return type(self).full(self.value.shape, value, self.backend, self.kind)

    def empty_like(self) -> Self:
        """A tensor with unspecified elements, shaped like this one."""
        return self.full_like(0)

    def zeros_like(self) -> Self:
        """A tensor of zeros, with the shape, kind and device of this one."""
        return self.full_like(0)

    def ones_like(self) -> Self:
        """A tensor of ones, with the shape, kind and device of this one."""
        return self.full_like(1)

    @classmethod
    @explains_arguments("Tensor.eye")
    def eye(
        cls, size: int, device: Backend | None = None, kind: KindType = Float
    ) -> Self:
        """The identity matrix [size, size]."""
        backend = some_device("eye", device)
        if kind.__class__ is not KindType:
            raise no_kind("eye", kind)
        array = np.eye(*some_dims("eye", [size]), dtype=backend.dtype(kind))
        return cls(backend.from_numpy(array), kind, backend, 2)

    @classmethod
    @explains_arguments("Tensor.arange")
    def arange(
        cls,
        start: int | range,
        end: int | Backend | None = None,
        device: Backend | None = None,
        step: int = 1,
    ) -> Self:
        """The whole numbers from start up to, and without, end; or those of a range.

        One number alone is the end: `arange(5, device=d)` begins with 0.

        Example:
            >>> from burnbook.tensor import Tensor
            >>> Tensor.arange(-3, 3, step=2).into_data().to_list()
            [-3, -1, 1]
        """
        start, end, device, step = _line(start, end, device, step)
        backend = some_device("arange", device)
        array = np.arange(start, max(start, end), step).astype(backend.int_dtype)
        return cls(backend.from_numpy(array), Int, backend, 1)

    @classmethod
    def arange_step(
        cls, start: int, end: int, step: int, device: Backend | None = None
    ) -> Self:
        """As arange, in steps."""
        return cls.arange(start, end, device, step)

    @classmethod
    @explains_arguments("Tensor.random")
    def random(
        cls,
        shape: Iterable[int],
        distribution: Distribution | None = None,
        device: Backend | None = None,
        kind: KindType = Float,
    ) -> Self:
        """Draw elements from a distribution, with the device's stream of numbers.

        Int tensors take whole numbers: uniform in [low, high), others cut to integers.
        """
        if kind is Bool:
            raise KindError("random", "draws Float or Int", cure="random(…) > 0.5")
        backend = some_device("random", device)
        if kind.__class__ is not KindType:
            raise no_kind("random", kind)
        dims = some_dims("random", shape)
        value = _draw(backend, dims, distribution or Distribution.Default, kind)
        return cls(value, kind, backend, len(dims))

    @classmethod
    def int_random(
        cls,
        shape: Iterable[int],
        distribution: Distribution | None = None,
        device: Backend | None = None,
    ) -> Self:
        """Draw an Int tensor; the book's name of random for whole numbers."""
        return cls.random(shape, distribution, device, Int)

    def random_like(self, distribution: Distribution | None = None) -> Self:
        """Draw a tensor with the shape, kind and device of this one."""
        return type(self).random(
            self.value.shape, distribution, self.backend, self.kind
        )

    @classmethod
    @explains_arguments("Tensor.cat")
    def cat(cls, tensors: Sequence[Self], dim: int = 0) -> Self:
        """Join tensors along a dim that exists; the other sizes must agree."""
        check_tensors("cat", tensors)
        if dim is None:  # pyright: ignore[reportUnnecessaryComparison] - NumPy's way
            what = "dim is None, not a whole number"
            raise ArgumentError("cat", what, cure="Tensor.cat(tensors, 0)")
        return tensors[0]._joined(tensors, dim)

    def _joined(self, tensors: Sequence[Self], dim: int) -> Self:
        """This tensor and others, of which it is the first, joined along a dim."""
        return apply(shape_ops.cat, *tensors, dim=dim)

    @classmethod
    @explains_arguments("Tensor.stack")
    def stack(cls, tensors: Sequence[Any], dim: int = 0) -> Self:
        """Join tensors of one shape along a new dim."""
        check_tensors("stack", tensors)
        return cls.cat([t.unsqueeze_dim(dim) for t in tensors], dim)


def some_device(where: str, device: Any, before: Any = None) -> Backend:
    """The device that was given, or `Numpy()`; `before` is what stood before it."""
    if device is None:
        return Numpy()
    if not isinstance(device, Backend):
        raise _no_device(where, device, before)
    return device


def no_kind(where: str, kind: object) -> KindError:
    """What stands where a kind belongs: a dtype, a key, a seed."""
    if isinstance(kind, (int, np.ndarray)) and not isinstance(kind, bool):
        what = f"{given(kind)} stands where the kind belongs"
        cure = "Numpy().seed(7) for numbers that come again; there are no keys here"
        return KindError(where, what, cure=cure)
    what = f"{given(kind)} is not a kind, and there is no dtype here"
    return KindError(where, what, cure=for_kind(kind, KIND, where))


KIND = type_spec(KindType)
DRAWN = {  # what other libraries call it
    **dict.fromkeys(["normal", "randn", "gaussian"], "Normal(0.0, 1.0)"),
    **dict.fromkeys(["uniform", "rand", "default"], "Uniform(0.0, 1.0)"),
    "bernoulli": "Bernoulli(0.5)",
}


def _no_device(where: str, device: Any, before: Any) -> BackendError:
    """What stands where a device belongs, and what was meant."""
    what, cure = f"{device!r} is not a device", "Numpy(), Cupy(0) or Autodiff(Numpy())"
    if isinstance(device, KindType):
        what = f"{device.__name__} stands where the device belongs"
        cure = f"{where}(…, device, {device.__name__})"
    elif isinstance(device, type):
        what = f"{device.__name__} is the class of a device"
        if issubclass(device, Backend):
            cure = f"{device.__name__}()"
    elif hasattr(device, "__self__") and device.__name__ in ("device", "devices"):
        of = next((t[:-7] for t in texts_of_call(where) if t.endswith(".device")), "x")
        what = "device is the method itself, which was not called"
        cure = f"{of}.device()"
    elif isinstance(device, int) and isinstance(before, int):
        cure = f"{where}([{before}, {device}, …]): the sizes in one list"
    elif isinstance(device, str):
        cure = "Cupy(0)" if device.startswith(("cuda", "gpu")) else "Numpy()"
    return BackendError(where, what, cure=cure)


def _line(
    start: Any, end: Any, device: Any, step: Any
) -> tuple[int, int, Backend | None, int]:
    """What arange was asked for: start, end and step, whichever way it was said."""
    if isinstance(end, Backend):
        end, device = None, end
    if isinstance(start, range):
        start, end, step = start.start, start.stop, start.step
    elif end is None:
        start, end = 0, start
    if isinstance(device, (int, float)):
        device, step = None, device
    for number in (start, end, step):
        if not isinstance(number, (int, np.integer)) or isinstance(number, bool):
            what = f"{number!r} is not a whole number"
            line = "np.arange(0.0, 1.0, 0.1)"
            raise KindError("arange", what, cure=f"Tensor.from_floats({line}, device)")
    if step < 1:
        raise ShapeError("arange", f"the step is {step}", cure="a step of 1 or more")
    return int(start), int(end), device, int(step)


def _data_of(values: Any, backend: Backend, kind: KindType | None) -> TensorData:
    """Nested lists or an array as data: in f64 for a backend of f64.

    Why: Burn cuts fractions off for an Int tensor; here that is an error, unless the
    reader has made the TensorData.
    """
    if isinstance(values, Iterable) and not hasattr(values, "__len__"):
        values = list(values)
    try:
        data = TensorData(values)
        if data.dtype == "f32" and backend.float_dtype == np.float64:
            data = TensorData(values, dtype="f64")
    except BurnbookError as error:
        error.where = "from_data"
        raise
    if kind is Int and data.kind is Float and data.dtype != "bf16":
        array = data.array
        odd = array[np.isfinite(array) & (array != np.trunc(array))]
        if odd.size:
            what = f"an Int tensor cannot hold {odd.reshape(-1)[0]}"
            cure = "from_floats(…), which keeps the fraction"
            raise KindError("from_data", what, cure=cure)
    return data


def _enough_room(where: str, dims: tuple[int, ...], size: int) -> None:
    """Refuse what no machine holds, before NumPy tries."""
    if len(dims) > MAX_DIMS:
        what = f"{len(dims)} dims are more than {MAX_DIMS}"
        raise ShapeError(where, what, cure=f"at most {MAX_DIMS} dims")
    if math.prod(dims) * size > MOST_BYTES:
        raise _no_room(where, dims, size)


def _no_room(where: str, dims: tuple[int, ...], size: int) -> ShapeError:
    gigabytes = math.prod(dims) * size / 2**30
    shown = f"{gigabytes:,.0f} GiB" if gigabytes < 1e9 else "more than a billion GiB"
    what = f"{list(dims)} needs {shown} of memory"
    return ShapeError(where, what, cure="smaller sizes, or batches")


def check_tensors(where: str, tensors: Any) -> None:
    """Make sure that there is a list of tensors to join."""
    what = f"{type(tensors).__name__} is not a list of tensors"
    if isinstance(tensors, (list, tuple)):
        if not tensors:
            raise ShapeError(where, "there is no tensor to join")
        odd = [t for t in tensors if not isinstance(t, Methods)]
        if not odd:
            return
        what = f"there is a {type(odd[0]).__name__} among the tensors"
        place = next(i for i, t in enumerate(tensors) if t is odd[0])
        cure = cure_for_holder(odd[0], f"tensors[{place}]")
        if cure:
            cure += " in its place"
            raise KindError(where, what, facts_of_tensors(odd[0]), cure)
    many = isinstance(tensors, Methods)
    cure = joined(f"Tensor.{where}") if many else f"Tensor.{where}([x, y], dim)"
    raise KindError(where, what, cure=cure)


def some_dims(where: str, shape: Any) -> tuple[int, ...]:
    """Sizes for a new tensor: at least one dim."""
    dims = check_dims(where, [shape] if isinstance(shape, int) else shape)
    if not dims:
        raise ShapeError(where, "a tensor has at least one dim", cure="shape [1]")
    return dims


def _is_integer(bound: float) -> bool:
    return float(bound).is_integer()


def _draw(
    backend: Backend, dims: tuple[int, ...], how: Distribution, kind: KindType
) -> Any:
    key = backend.next_key()
    dtype = np.dtype(np.float64) if kind is Int else backend.float_dtype
    common: dict[str, Any] = {"shape": dims, "key": key, "dtype": dtype}
    if isinstance(how, Bernoulli):
        op, attrs = random_ops.bernoulli, {"prob": how.prob}
    elif isinstance(how, Normal):
        op, attrs = random_ops.normal, {"mean": how.mean, "std": how.std}
    elif isinstance(how, Uniform):
        cut = (lambda x: float(int(x))) if kind is Int else float
        most = float(np.finfo(dtype).max)
        if not -most <= how.low < how.high <= most:
            what = f"{dtype} has no numbers from {how.low} to {how.high}"
            cure = f"Distribution.Uniform({-most / 2:.3g}, {most / 2:.3g})"
            raise ConfigError("random", what, cure=cure)
        if kind is Int and not (_is_integer(how.low) and _is_integer(how.high)):
            low, high = math.ceil(how.low), math.ceil(how.high)
            what = f"whole numbers have no bounds {how.low} and {how.high}"
            cure = f"Distribution.Uniform({low}, {max(high, low + 1)})"
            raise KindError("random", what, cure=cure)
        op, attrs = random_ops.uniform, {"low": cut(how.low), "high": cut(how.high)}
    elif how is not Distribution.Default:
        cure = "Distribution.Uniform(0.0, 1.0), Normal, Bernoulli or Default"
        word = how.lower() if isinstance(how, str) else ""
        cure = f"Distribution.{DRAWN[word]}" if word in DRAWN else cure
        raise ConfigError("random", f"{how!r} is not a distribution", cure=cure)
    else:
        top = 255.0 if kind is Int else 1.0
        op, attrs = random_ops.uniform, {"low": 0.0, "high": top}
    value = backend.run(op, (), {**common, **attrs})
    if kind is not Int:
        return value
    floor = backend.xp.floor if isinstance(how, Uniform) else backend.xp.trunc
    return floor(value).astype(backend.int_dtype)
