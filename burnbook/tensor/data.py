"""TensorData: the elements of a tensor, outside any backend.

Raw bytes, a shape and the name of the element type: what tensors are made from, what
they give back, and what records store. The array inside cannot be written to.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, Self

import numpy as np

from burnbook.core.dtypes import Float, Kind, dtype_name, kind_of
from burnbook.core.errors import DataError, KindError, ShapeError
from burnbook.core.other_names import answers
from burnbook.tensor.convert import convert_array, storage, widen
from burnbook.tensor.display import flat_text, number_text, plain_text
from burnbook.tensor.distribution import Bernoulli, Distribution, Normal, Uniform
from burnbook.tensor.foreign_arrays import array_of
from burnbook.tensor.qfloat import QFloat, QuantizationStrategy
from burnbook.tensor.shape import Shape, check_dims

MAX_DIMS = 64  # NumPy's own limit
LISTED = 5  # how many differences an assertion shows


@answers("TensorData")
class TensorData:
    """Elements, shape and element type; lists of floats become f32, of ints i64.

    Example:
        >>> data = TensorData([[1, 2], [3, 4]])
        >>> data
        TensorData i64 [2, 2]
        >>> print(data.convert("f32"))
        [1.0, 2.0, 3.0, 4.0]
        >>> TensorData([1.0, 2.0, 3.0], [1, 2]).to_list()
        [[1.0, 2.0]]
    """

    __slots__ = ("array", "dtype")
    __hash__ = None  # type: ignore[assignment] # equal by content, like a list

    array: np.ndarray  # C-contiguous, little-endian, read-only; bf16 as its u16 bits,
    # a quantized number as its code
    dtype: str

    def __init__(
        self, values: Any, shape: Iterable[int] | None = None, dtype: str | None = None
    ) -> None:
        """Copy `values`; those that `shape` has no room for are cut off, as in Burn."""
        array, name, wanted = _read(values)
        if shape is not None:
            array = _fit(array, check_dims("TensorData", shape))
        wanted = dtype or wanted
        array = convert_array(array, name, wanted)
        self.array = _locked(np.array(array, storage(wanted), order="C"))
        self.dtype = wanted

    @classmethod
    def of(cls, array: np.ndarray, dtype: str | None = None) -> Self:
        """Wrap an array without a copy where its layout allows; "bf16" wraps u16 bits.

        Why: nobody may write to `array` afterwards; the constructor is the safe way.
        """
        data = object.__new__(cls)
        data.dtype = dtype or dtype_name(array.dtype)
        data.array = _locked(
            np.asarray(array, dtype=storage(data.dtype), order="C").view()
        )
        return data

    @classmethod
    def from_bytes(
        cls, raw: bytes | bytearray | memoryview, shape: Iterable[int], dtype: str
    ) -> Self:
        """Read little-endian elements; their number must be that of `shape`, exactly.

        Example:
            >>> print(TensorData.from_bytes(bytes([0, 0, 128, 63]), [1], "f32"))
            [1.0]
        """
        where = "TensorData.from_bytes"
        dims = check_dims(where, shape)
        if isinstance(dtype, QFloat):
            codes, strategy = dtype.strategy.read(memoryview(raw).cast("B"), dims)
            return cls.of(codes.reshape(dims), QFloat(strategy))
        kind = storage(dtype)
        wanted, given = prod(dims) * kind.itemsize, memoryview(raw).nbytes
        if wanted != given or len(dims) > MAX_DIMS:
            facts = [("shape", str(list(dims))), ("dtype", dtype)]
            what = f"{given} bytes given, the shape needs {wanted}"
            if len(dims) > MAX_DIMS:
                what = f"{len(dims)} dims, more than {MAX_DIMS}"
            raise DataError(where, what, facts)
        array = np.frombuffer(raw, dtype=kind) if given else np.empty(0, kind)
        if dtype == "bool" and given and array.view(np.uint8).max() > 1:
            raise DataError(where, "a bool is neither 0 nor 1")
        data = object.__new__(cls)
        data.dtype, data.array = dtype, _locked(array.reshape(dims))
        return data

    @classmethod
    def quantized(
        cls, values: Any, shape: Iterable[int], strategy: QuantizationStrategy
    ) -> Self:
        """Codes, and the strategy that says what they stand for.

        Example:
            >>> from burnbook.tensor.qfloat import PerTensorSymmetricInt8
            >>> halves = PerTensorSymmetricInt8(0.5)
            >>> print(TensorData.quantized([-2, 0, 3], [3], halves).dequantize())
            [-1.0, 0.0, 1.5]
        """
        return cls.of(cls(values, shape, "i8").array, QFloat(strategy))

    @classmethod
    def full(cls, shape: Iterable[int], value: float, dtype: str = "f32") -> Self:
        """Fill every element with `value`."""
        one = cls(value, dtype=dtype).array
        dims = check_dims("TensorData.full", shape)
        return cls.of(np.full(dims, one, one.dtype), dtype)

    @classmethod
    def zeros(cls, shape: Iterable[int], dtype: str = "f32") -> Self:
        """Fill every element with 0."""
        return cls.full(shape, 0, dtype)

    @classmethod
    def ones(cls, shape: Iterable[int], dtype: str = "f32") -> Self:
        """Fill every element with 1."""
        return cls.full(shape, 1, dtype)

    @classmethod
    def random(
        cls,
        shape: Iterable[int],
        distribution: Distribution,
        rng: np.random.Generator,
        dtype: str = "f32",
    ) -> Self:
        """Draw every element from `distribution` with NumPy's generator `rng`."""
        dims = check_dims("TensorData.random", shape)
        whole = storage(dtype).kind in "iub" and dtype != "bf16"
        return cls(_draw(dims, distribution, rng, whole), dtype=dtype)

    @property
    def shape(self) -> Shape:
        """The sizes, one per dim."""
        return Shape.of(self.array.shape)

    @property
    def kind(self) -> Kind:
        """Float, Int or Bool; quantized data is Float."""
        is_float = self.dtype == "bf16" or isinstance(self.dtype, QFloat)
        return Float if is_float else kind_of(self.array.dtype)

    @property
    def bytes(self) -> bytes:
        """The elements as little-endian bytes."""
        return bytes(self.as_bytes())

    def as_bytes(self) -> memoryview:
        """The elements as little-endian bytes, without a copy where there can be none.

        Of quantized data the codes; by newer Burn's schemes in words, scales behind.
        """
        if isinstance(self.dtype, QFloat):
            return self.dtype.strategy.write(self.array)
        return self.array.reshape(-1).view(np.uint8).data

    def num_elements(self) -> int:
        """How many elements: the product of the shape."""
        return self.array.size

    def convert(self, dtype: str) -> TensorData:
        """Change the element type; a number that does not fit is an error.

        Why: floats are cut toward zero on the way to ints; floats too large for a
        smaller float become inf; a number is true when it is from 1 to 255 as u8.
        Of quantized data the codes convert, as in Burn; `dequantize` gives numbers.
        """
        if dtype == self.dtype:
            return self
        if isinstance(dtype, QFloat):
            what, cure = "codes need a strategy", "with_quantization(strategy)"
            raise DataError("TensorData.convert", what, cure=cure)
        return TensorData.of(convert_array(self.array, self.dtype, dtype), dtype)

    def with_quantization(self, strategy: QuantizationStrategy) -> TensorData:
        """The codes of f32 elements, by a strategy."""
        self._expect("f32", "with_quantization")
        return TensorData.of(strategy.quantize(self.array), QFloat(strategy))

    def dequantize(self) -> TensorData:
        """The f32 numbers that codes stand for; other data stays as it is."""
        if not isinstance(self.dtype, QFloat):
            return self
        return TensorData.of(self.dtype.strategy.dequantize(self.array))

    def to_numpy(self, dtype: str | None = None) -> np.ndarray:
        """The elements as a read-only NumPy array (bf16 as float32, codes as int8)."""
        self._expect(dtype, "to_numpy")
        return _locked(widen(self.array)) if self.dtype == "bf16" else self.array

    def as_slice(self, dtype: str | None = None) -> np.ndarray:
        """The elements in one row, read-only."""
        self._expect(dtype, "as_slice")
        return self.to_numpy().reshape(-1)

    def to_vec(self, dtype: str | None = None) -> list[Any]:
        """The elements as one flat list of Python numbers."""
        self._expect(dtype, "to_vec")
        return self.as_slice().tolist()

    def to_list(self) -> Any:
        """The elements as lists in lists, nested like the shape."""
        return self.to_numpy().tolist()

    def iter(self, dtype: str | None = None) -> Iterator[Any]:
        """The elements one by one, converted to `dtype` first."""
        return iter(self.convert(dtype or self.dtype).to_vec())

    def assert_eq(self, other: TensorData, strict: bool = True) -> None:
        """Fail unless shapes and elements agree; `strict` compares the types as well.

        Why: NaN equals NaN here, and -0.0 differs from 0.0: a test wants the same data.
        Codes are compared with codes of the same scheme only.
        """
        kinds = [_strategy_type(d.dtype) for d in (self, other)]
        if kinds[0] != kinds[1]:
            raise AssertionError(f"Quantization differs ({kinds[0]} != {kinds[1]})")
        if strict and self.dtype != other.dtype:
            mine, its = (d.dtype.capitalize() for d in (self, other))
            what = f"Data types differ ({mine} != {its})\n  left: {mine}\n right: {its}"
            raise AssertionError(f"assertion `left == right` failed: {what}")
        x, y = _pairs(self, other, self.dtype)
        unequal = np.asarray(x != y)
        if x.dtype.kind == "f":
            unequal &= ~(np.isnan(x) & np.isnan(y))
            unequal |= (x == 0) & (y == 0) & (np.signbit(x) != np.signbit(y))
        lines = _shape_lines(self, other)
        lines += _difference_lines(x, y, self.dtype, np.flatnonzero(unequal))
        if lines:
            raise AssertionError("\n".join(["Tensors are not eq:", *lines]))

    def assert_approx_eq(self, other: TensorData, precision: int) -> None:
        """Fail unless every |aᵢ − bᵢ| ≤ 0.1 to the power `precision`."""
        self.assert_approx_eq_diff(other, 0.1**precision)

    def assert_approx_eq_diff(self, other: TensorData, tolerance: float) -> None:
        """Fail unless every |aᵢ − bᵢ| ≤ `tolerance`; NaNs agree, and equal infinities.

        Example:
            >>> TensorData([1.0]).assert_approx_eq_diff(TensorData([2.0]), 0.5)
            Traceback (most recent call last):
            AssertionError: Tensors are not approx eq:
              => Position 0: 1 != 2 | difference 1 > tolerance 0.5
        """
        x, y = _pairs(self, other, "f64")
        with np.errstate(invalid="ignore", over="ignore"):
            gap = np.sqrt((x - y) ** 2)  # as Burn works it out, digit for digit
            fine = (gap <= tolerance) | (x == y) | (np.isnan(x) & np.isnan(y))
        places = np.flatnonzero(~fine)
        lines = _shape_lines(self, other)
        lines += _difference_lines(x, y, "f64", places, gap, tolerance)
        if lines:
            raise AssertionError("\n".join(["Tensors are not approx eq:", *lines]))

    def assert_within_range(
        self, low: float | range, high: float | None = None
    ) -> None:
        """Fail unless low ≤ x < high for every element; a `range` gives both ends."""
        if isinstance(low, range):
            low, high = low.start, low.stop
        if high is None:
            raise TypeError("assert_within_range needs both ends: low, high")
        values = self.as_slice().astype(np.float32)
        outside = ~((values >= np.float32(low)) & (values < np.float32(high)))
        if outside.any():
            text = number_text(values[np.argmax(outside)], "f32")
            raise AssertionError(f"Element ({text}) is not within range {low}..{high}")

    def _expect(self, dtype: str | None, where: str) -> None:
        if dtype is not None and dtype != self.dtype:
            raise DataError(
                f"TensorData.{where}",
                f"the elements are {self.dtype}, not {dtype}",
                cure=f'.convert("{dtype}") first',
            )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TensorData):
            return NotImplemented
        same = self.dtype == other.dtype and self.array.shape == other.array.shape
        return same and self.as_bytes() == other.as_bytes()

    def __array__(
        self, dtype: np.dtype | None = None, copy: bool | None = None
    ) -> np.ndarray:
        return np.array(self.to_numpy(), dtype=dtype, copy=copy)

    def __reduce__(self) -> tuple[Any, ...]:
        return (TensorData.of, (self.array, self.dtype))

    def __str__(self) -> str:
        text, name = flat_text(self.to_numpy(), self.dtype), self.dtype
        return f"{text} {name.strategy!r}" if isinstance(name, QFloat) else text

    def __repr__(self) -> str:
        name = self.dtype
        if isinstance(name, QFloat):
            name = f"QFloat({name.strategy.scheme!r})"
        return f"TensorData {name} {list(self.array.shape)}"


def _read(values: Any) -> tuple[np.ndarray, str, str]:
    """The array behind `values`, its element type, and the type it should become."""
    if isinstance(values, TensorData):
        return values.array, values.dtype, values.dtype
    _refuse(values)
    plain = not isinstance(values, np.generic) and not hasattr(values, "__array__")
    if isinstance(values, range):
        values = np.arange(values.start, values.stop, values.step, dtype=np.int64)
    elif isinstance(values, Iterable) and plain and not isinstance(values, Sequence):
        values = list(values)
    if not plain:
        values = array_of("TensorData", values)
    try:
        array = np.asarray(values)
    except (ValueError, OverflowError, TypeError):
        raise ShapeError(
            "TensorData",
            "the lists inside have different lengths",
            cure="one length per dim, as in [[1, 2], [3, 4]]",
        ) from None
    if array.dtype.name == "bfloat16":
        return array.view(np.uint16), "bf16", "bf16"
    if array.dtype.kind not in "fiub" or array.dtype.itemsize > 8:
        raise _no_numbers(values, array)
    name = dtype_name(array.dtype)
    if not plain:
        return array, name, name
    if array.dtype.kind != "b" and _has_bool(values):
        raise KindError(
            "TensorData", "bools and numbers are mixed", cure="int(flag) for each bool"
        )
    return array, name, {"f64": "f32", "u64": "i64"}.get(name, name)


def _refuse(values: Any) -> None:
    """Raise for collections of which a part would be lost in silence."""
    if isinstance(values, (dict, set)):
        what = f"{type(values).__name__} is not a list of numbers"
        raise DataError("TensorData", what, cure="list(data.values()) or sorted(data)")
    if isinstance(values, np.ma.MaskedArray):
        what = "the mask of a masked array would be lost"
        raise DataError("TensorData", what, cure="array.filled(0.0)")


def _no_numbers(values: object, array: np.ndarray) -> DataError:
    """The error for elements of another type, such as texts of a file, or names."""
    if array.dtype.kind not in "UST":
        what = f"elements of {_kinds_in(values, array)} are not numbers of a known type"
        cure = "floats, whole numbers of at most 64 bits, or bools"
        return DataError("TensorData", what, cure=cure)
    texts = array.reshape(-1).tolist()
    name = next((text for text in texts if not _is_number(text)), None)
    if name is None:
        what = f"{texts[0][:MOST_SHOWN]!r} is a text that holds a number"
        cure = "np.array(texts, dtype=float) in place of the texts"
    else:
        what = f"{name[:MOST_SHOWN]!r} is a text, not a number"
        cure = "numbers = {name: i for i, name in enumerate(sorted(set(texts)))}"
        cure += ", and numbers[name] for each"
    return DataError("TensorData", what, cure=cure)


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


MOST_SHOWN = 40  # letters of a text


def _kinds_in(values: Any, array: np.ndarray) -> str:
    if array.dtype != object:
        known = {"U": "type str", "S": "type bytes"}
        return known.get(array.dtype.kind, f"type {array.dtype.name}")
    names = sorted({type(value).__name__ for value in array.reshape(-1)[:1000]})
    return "more than 64 bits" if names == ["int"] else f"type {', '.join(names)}"


def _has_bool(values: Any) -> bool:
    if isinstance(values, (list, tuple)):
        return any(map(_has_bool, values))
    return isinstance(values, (bool, np.bool_))


def _fit(array: np.ndarray, dims: tuple[int, ...]) -> np.ndarray:
    room = prod(dims)
    if array.size < room:
        raise ShapeError(
            "TensorData",
            f"{array.size} values do not fill shape {list(dims)}",
            [("needed", str(room))],
        )
    return array.reshape(-1)[:room].reshape(dims)


def _locked(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def _draw(
    dims: tuple[int, ...],
    distribution: Distribution,
    rng: np.random.Generator,
    whole: bool,
) -> np.ndarray:
    if isinstance(distribution, Bernoulli):
        return (rng.random(dims) < distribution.prob).astype(np.float64)
    if isinstance(distribution, Normal):
        return rng.normal(distribution.mean, distribution.std, dims)
    low, high = (0, 255) if whole else (0.0, 1.0)
    if isinstance(distribution, Uniform):
        low, high = distribution.low, distribution.high
    if whole:
        return rng.integers(int(low), int(high), dims)
    u = rng.random(dims, dtype=np.float32)
    if high - low > float(np.finfo(np.float32).max):  # no number of the type
        values = np.float32(low) * (1 - u) + np.float32(high) * u
    else:
        values = low + (high - low) * u
    return np.minimum(values, np.nextafter(np.float32(high), np.float32(low)))


def _strategy_type(dtype: str) -> str:
    """What kind of quantization a type is: none, or the name of the scheme."""
    return repr(dtype.strategy.scheme) if isinstance(dtype, QFloat) else "none"


def _pairs(a: TensorData, b: TensorData, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    """The elements of both as one type, in a row: as many as there are pairs."""
    if isinstance(dtype, QFloat):
        dtype = "i8"
    rows = [d.convert(dtype).as_slice() for d in (a, b)]
    count = min(map(len, rows))
    return rows[0][:count], rows[1][:count]


def _shape_lines(a: TensorData, b: TensorData) -> list[str]:
    x, y = list(a.shape), list(b.shape)
    return [] if x == y else [f"  => Shape is different: {x} != {y}"]


def _difference_lines(
    x: np.ndarray,
    y: np.ndarray,
    dtype: str,
    places: np.ndarray,
    gap: np.ndarray | None = None,
    tolerance: float = 0.0,
) -> list[str]:
    """The pairs at these places, a line for each of the first, as Burn writes them."""

    def text(number: object) -> str:
        return str(number).lower() if dtype == "bool" else plain_text(number, dtype)

    lines = []
    for i in map(int, places[:LISTED]):
        line = f"  => Position {i}: {text(x[i])} != {text(y[i])}"
        if gap is not None:
            limit = plain_text(np.float64(tolerance), "f64")
            line += f" | difference {text(gap[i])} > tolerance {limit}"
        lines.append(line)
    if len(places) >= LISTED:
        lines.append(f"{len(places) - LISTED} more errors...")
    return lines
