"""The element type of quantized data: codes, and what they stand for.

In Burn the parameters of quantized data live in its element type: QFloat(strategy).
Here QFloat is a text like every element type, "QFloat(…)", that knows its strategy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from burnbook.core.errors import DataError
from burnbook.ops.quantize import from_codes, to_codes
from burnbook.tensor.display import number_text
from burnbook.tensor.quantization_scheme import (
    NO_SCALE,
    QuantizationScheme,
    QuantScheme,
    Scheme,
)
from burnbook.tensor.quantized_packing import (
    SCALE_TYPES,
    Shape,
    beside,
    divided,
    kept_as,
    narrow_scales,
    packed,
    unpacked,
    wide_scales,
)


class Params(NamedTuple):
    """The scales (f32), the offset (i32) or None, the scale over all (f32) or None."""

    scales: np.ndarray
    offset: np.ndarray | None = None
    global_scale: np.ndarray | None = None


class QuantizationStrategy:
    """A scheme with its parameters, outside any backend; one of the three below."""

    __slots__ = ()

    PerTensorAffineInt8: ClassVar[type[PerTensorAffineInt8]]
    PerTensorSymmetricInt8: ClassVar[type[PerTensorSymmetricInt8]]

    @property
    def scheme(self) -> Scheme:
        """The scheme alone."""
        raise TypeError(f"{type(self).__name__} must say what its scheme is")

    def params(self) -> Params:
        """The parameters alone."""
        raise TypeError(f"{type(self).__name__} must say what its parameters are")

    def quantize(self, values: Any) -> np.ndarray:
        """The codes of f32 numbers, as i8."""
        return self._map(to_codes, np.asarray(values, np.float32))

    def dequantize(self, codes: Any) -> np.ndarray:
        """The f32 numbers that codes stand for."""
        return self._map(from_codes, np.asarray(codes, np.int8))

    def _map(self, op: Any, array: np.ndarray) -> np.ndarray:
        scales, offset, whole = self.params()
        scale = scales if whole is None else scales * whole
        scale = beside(
            scale + (scale == 0) * np.float32(NO_SCALE), array.shape, self.scheme
        )
        if offset is not None:
            offset = offset.reshape((1,) * array.ndim)
        parts = array.reshape(divided(array.shape, self.scheme))
        out = op(np, parts, scale, offset, value=self.scheme.value.name)
        return out.reshape(array.shape)

    def write(self, codes: np.ndarray) -> memoryview:
        """The bytes of data with these codes: one for each."""
        return codes.reshape(-1).view(np.uint8).data

    def read(self, raw: memoryview, shape: Shape) -> tuple[np.ndarray, Any]:
        """The codes in such bytes, and the strategy that goes with them."""
        return np.frombuffer(_whole(raw, prod(shape), shape), np.int8), self


@dataclass(frozen=True, slots=True, repr=False)
class PerTensorAffineInt8(QuantizationStrategy):
    """Burn 0.15's affine strategy: x = scale · (code − offset).

    Example:
        >>> strategy = PerTensorAffineInt8(0.009019608, 72)
        >>> strategy.quantize([-1.8, -1.0, 0.0, 0.5]).tolist()
        [-128, -39, 72, 127]
    """

    scale: float
    offset: int

    def __post_init__(self) -> None:
        where = "PerTensorAffineInt8"
        object.__setattr__(self, "scale", _known_scale(where, self.scale))
        object.__setattr__(self, "offset", int(self.offset))
        if not -128 <= self.offset <= 127:
            what = f"the offset is {self.offset}"
            raise DataError(where, what, cure="a code, from -128 to 127")

    @property
    def scheme(self) -> Scheme:
        """The scheme alone."""
        return QuantizationScheme.PerTensorAffine()

    def params(self) -> Params:
        """The parameters alone."""
        offset = np.array([self.offset], np.int32)
        return Params(np.array([self.scale], np.float32), offset)

    def __repr__(self) -> str:
        scale = number_text(np.float32(self.scale), "f32")
        inner = f"scale: {scale}, offset: {self.offset}, _a: PhantomData<i32>"
        return f"PerTensorAffineInt8(AffineQuantization {{ {inner} }})"


@dataclass(frozen=True, slots=True, repr=False)
class PerTensorSymmetricInt8(QuantizationStrategy):
    """Burn 0.15's symmetric strategy: x = scale · code.

    Example:
        >>> PerTensorSymmetricInt8(0.5).dequantize([-2, 0, 3]).tolist()
        [-1.0, 0.0, 1.5]
    """

    scale: float

    def __post_init__(self) -> None:
        scale = _known_scale("PerTensorSymmetricInt8", self.scale)
        object.__setattr__(self, "scale", scale)

    @property
    def scheme(self) -> Scheme:
        """The scheme alone."""
        return QuantizationScheme.PerTensorSymmetric()

    def params(self) -> Params:
        """The parameters alone."""
        return Params(np.array([self.scale], np.float32))

    def __repr__(self) -> str:
        scale = number_text(np.float32(self.scale), "f32")
        inner = f"scale: {scale}, _q: PhantomData<i8>"
        return f"PerTensorSymmetricInt8(SymmetricQuantization {{ {inner} }})"


QuantizationStrategy.PerTensorAffineInt8 = PerTensorAffineInt8
QuantizationStrategy.PerTensorSymmetricInt8 = PerTensorSymmetricInt8


class SchemeStrategy(QuantizationStrategy):
    """A scheme of newer Burn, the scales of its blocks, and the one over all.

    Its data is the codes, in words where they are small, then the scales, then the one
    over all.
    """

    __slots__ = ("_params", "_scheme")

    def __init__(
        self, scheme: QuantScheme, scales: Any = 1.0, global_scale: Any = None
    ):
        scheme.check("QuantScheme")
        self._scheme = scheme
        rounded = scheme.scale_dtype.round_up(np.atleast_1d(scales))
        whole = None
        if scheme.has_global:
            whole = np.array(1.0 if global_scale is None else global_scale, np.float32)
        self._params = Params(rounded, None, whole)

    @property
    def scheme(self) -> QuantScheme:
        """The scheme alone."""
        return self._scheme

    def params(self) -> Params:
        """The parameters alone."""
        return self._params

    def write(self, codes: np.ndarray) -> memoryview:
        """The bytes of data with these codes."""
        scales, _, whole = self._params
        kept = np.ascontiguousarray(packed(np, codes, self._scheme))
        parts = [kept, narrow_scales(scales, self._scheme.scale_dtype)]
        parts += [] if whole is None else [whole]
        return memoryview(b"".join(part.tobytes() for part in parts))

    def read(self, raw: memoryview, shape: Shape) -> tuple[np.ndarray, Any]:
        """The codes in such bytes, and the strategy with the scales in them."""
        scheme = self._scheme
        sizes, word = kept_as(shape, scheme)
        grid, scale = scheme.params_shape(shape), SCALE_TYPES[scheme.scale_dtype]
        first = prod(sizes) * word.itemsize
        second = first + prod(grid) * scale.itemsize
        raw = _whole(raw, second + 4 * scheme.has_global, shape)
        kept = np.frombuffer(raw[:first], word).reshape(sizes)
        scales = np.frombuffer(raw[first:second], scale).reshape(grid)
        whole = np.frombuffer(raw[second:], "<f4")[0] if scheme.has_global else None
        found = wide_scales(np, scales, scheme.scale_dtype)
        return unpacked(np, kept, shape, scheme), SchemeStrategy(scheme, found, whole)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SchemeStrategy):
            return NotImplemented
        (mine, _, whole), (its, _, other_whole) = self._params, other._params
        same = self._scheme == other._scheme and whole == other_whole
        return bool(same and np.array_equal(mine, its))

    def __hash__(self) -> int:
        return hash(self._scheme)

    def __reduce__(self) -> Any:
        scales, _, whole = self._params
        return SchemeStrategy, (self._scheme, scales, whole)

    def __repr__(self) -> str:
        return repr(self._scheme)


class QFloat(str):
    """The name of a quantized element type, with its strategy.

    Example:
        >>> print(QFloat(SchemeStrategy(QuantScheme())))
        QFloat(QuantScheme(Q8F, PackedU32(0)))
    """

    strategy: QuantizationStrategy

    def __new__(cls, strategy: QuantizationStrategy) -> QFloat:
        """The name that Burn's debug text has."""
        made = super().__new__(cls, f"QFloat({strategy!r})")
        made.strategy = strategy
        return made

    def __eq__(self, other: object) -> bool:
        if isinstance(other, QFloat):
            return self.strategy == other.strategy
        return str(self) == other

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> Any:
        return QFloat, (self.strategy,)


def _known_scale(where: str, scale: float) -> float:
    """A scale as a number of f32; NO_SCALE in the place of 0."""
    number = np.float32(scale)
    if not 0 <= number < np.inf:
        what = f"the scale is {number_text(number, 'f32')}"
        raise DataError(where, what, cure="a number above 0")
    return float(number or np.float32(NO_SCALE))


def _whole(raw: memoryview, wanted: int, shape: Shape) -> memoryview:
    """The bytes, if they are as many as they should be."""
    if raw.nbytes != wanted:
        what = f"{raw.nbytes} bytes given, the shape needs {wanted}"
        raise DataError("TensorData.from_bytes", what, [("shape", str(list(shape)))])
    return raw
