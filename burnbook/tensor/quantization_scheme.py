"""Schemes: what a code means, and how far one scale reaches.

`QuantizationScheme` has Burn 0.15's two schemes: one scale for a whole tensor of 8-bit
codes, with or without an offset. `QuantScheme` is newer Burn's: smaller codes, a scale
for each block, scales of fewer bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np

from burnbook.core.errors import ConfigError, DimError, ShapeError
from burnbook.ops.quantize import CODE_TYPES, CodeType


class QuantValue(Enum):
    """What codes are: whole numbers (F: full range, S: symmetric) or small floats.

    Example:
        >>> QuantValue.Q4S.range(), QuantValue.E4M3.size_bits()
        ((-7, 7), 8)
    """

    Q8F = "Q8F"
    Q4F = "Q4F"
    Q2F = "Q2F"
    Q8S = "Q8S"
    Q4S = "Q4S"
    Q2S = "Q2S"
    E4M3 = "E4M3"
    E5M2 = "E5M2"
    E2M1 = "E2M1"

    @property
    def type(self) -> CodeType:
        """Bits and range."""
        return CODE_TYPES[self.value]

    def range(self) -> tuple[float, float]:
        """The smallest and the largest number that a code can be."""
        return self.type.low, self.type.high

    def size_bits(self) -> int:
        """How many bits one code takes."""
        return self.type.bits

    def __repr__(self) -> str:
        return f"QuantValue.{self.name}"


class QuantMode(Enum):
    """How numbers map to codes; Symmetric: 0 is code 0."""

    Symmetric = "symmetric"


class ScaleDtype(Enum):
    """What a scale is stored as; a scale that does not fit is rounded up.

    Why: a scale rounded down would push the largest number of its block out of range.
    """

    F32 = "f32"
    F16 = "f16"
    BF16 = "bf16"
    UE8M0 = "ue8m0"
    UE4M3 = "ue4m3"

    def max_representable(self) -> float:
        """The largest scale that there is."""
        return _GRIDS[self][0]

    def round_up(self, scales: Any) -> np.ndarray:
        """The smallest numbers of this type that are not below `scales`; never inf.

        Example:
            >>> ScaleDtype.UE4M3.round_up([0.3, 0.0001, 1000.0]).tolist()
            [0.3125, 0.001953125, 448.0]
        """
        wide = np.array(scales, np.float64)
        top, digits, lowest = _GRIDS[self]
        if self is ScaleDtype.F32:
            return wide.astype(np.float32)
        power = np.maximum(np.frexp(wide)[1] - digits, lowest)
        step = np.ldexp(1.0, power)
        rounded = np.minimum(np.ceil(wide / step) * step, top).astype(np.float32)
        if self is ScaleDtype.UE8M0:  # it has no 0
            return np.maximum(rounded, np.ldexp(np.float32(1), lowest))
        return rounded

    def __repr__(self) -> str:
        return f"ScaleDtype.{self.name}"


# The largest number, the digits of a number, the exponent of the smallest step.
_GRIDS: dict[ScaleDtype, tuple[float, int, int]] = {
    ScaleDtype.F32: (float(np.finfo(np.float32).max), 24, -149),
    ScaleDtype.F16: (65504.0, 11, -24),
    ScaleDtype.BF16: (float.fromhex("0x1.fep127"), 8, -133),
    ScaleDtype.UE8M0: (2.0**127, 1, -127),
    ScaleDtype.UE4M3: (448.0, 4, -9),
}


@dataclass(frozen=True, slots=True)
class QuantStore:
    """How codes are kept: one each, or several in a word of `word` bits along a dim.

    dim: counted from the last one. A word holds whole codes of 2, 4 or 8 bits. Native:
    each code has a byte of its own, whatever its bits.
    """

    name: str
    dim: int = 0
    word: int = 0

    Native: ClassVar[QuantStore]

    @classmethod
    def PackedNative(cls, dim: int = 0) -> QuantStore:
        """In bytes."""
        return cls("PackedNative", dim, 8)

    @classmethod
    def PackedU32(cls, dim: int = 0) -> QuantStore:
        """In words of 32 bits."""
        return cls("PackedU32", dim, 32)

    def __repr__(self) -> str:
        return f"QuantStore.{self.name}" + (f"({self.dim})" if self.word else "")


QuantStore.Native = QuantStore("Native")


class QuantizationType(Enum):
    """What codes of Burn 0.15 are: whole numbers of 8 bits with a sign."""

    QInt8 = "QInt8"

    def __repr__(self) -> str:
        return f"QuantizationType.{self.name}"


@dataclass(frozen=True, slots=True)
class CalibrationRange:
    """The smallest and the largest number seen, as tensors; one of each per block."""

    min: Any
    max: Any


@dataclass(frozen=True, slots=True)
class QuantizationParameters:
    """What turns numbers into codes: a scale, an offset or None, as tensors.

    global_scale: with two levels, the scale that the scales of the blocks multiply.
    """

    scale: Any
    offset: Any = None
    global_scale: Any = None


class Scheme:
    """What all schemes answer; `value`, `store` and the type of the scales first."""

    __slots__ = ()

    value: QuantValue
    store: QuantStore
    is_affine: ClassVar[bool] = False
    propagates: ClassVar[bool] = False  # whether results are quantized again

    @property
    def scale_dtype(self) -> ScaleDtype:
        """What the scales are stored as."""
        return ScaleDtype.F32

    @property
    def has_global(self) -> bool:
        """Whether the scales of blocks multiply one scale of the whole tensor."""
        return False

    def block(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """How far one scale reaches along every dim; None: over the whole tensor."""
        return None

    def params_shape(self, shape: Sequence[int]) -> tuple[int, ...]:
        """The shape of the scales of a tensor of this shape."""
        block = self.block(shape)
        if block is None:
            return (1,)
        return tuple(n // b for n, b in zip(shape, block, strict=True))

    def permuted(self, axes: Sequence[int]) -> Self:
        """The scheme of a tensor whose dims were put in another order."""
        return self

    def compute_q_params(self, range: CalibrationRange) -> QuantizationParameters:
        """The parameters for numbers in a range.

        symmetric: scale = 2 max(|min|, |max|) / (b − a), with codes in [a, b];
        affine: scale = (max − min) / 255, offset = −⌊min / scale + 128⌋ toward zero.
        """
        low, high = self.value.range()
        if not self.is_affine:
            top = range.min.abs().max_pair(range.max.abs())
            return QuantizationParameters(top * 2.0 / (high - low))
        lowest, highest = range.min.clamp_max(0.0), range.max.clamp_min(0.0)
        scale = (highest - lowest) / (high - low)
        scale = scale.mask_fill(scale.equal(0.0), NO_SCALE)
        return QuantizationParameters(scale, -(lowest / scale - low).int())


NO_SCALE = 0.1  # in the place of a scale of 0, which nothing can be divided by


@dataclass(frozen=True, slots=True, repr=False)
class QuantizationScheme(Scheme):
    """Burn 0.15's schemes: 8-bit codes, one scale for the whole tensor.

    Example:
        >>> QuantizationScheme.PerTensorAffine(QuantizationType.QInt8)
        PerTensorAffine(QInt8)

    Why: as in Burn 0.15, what comes of a quantized tensor is often quantized again.
    """

    name: str
    quantization_type: QuantizationType

    propagates: ClassVar[bool] = True

    @classmethod
    def PerTensorAffine(
        cls, quantization_type: QuantizationType = QuantizationType.QInt8
    ) -> Self:
        """Codes from −128 to 127; an offset moves them to where the numbers are."""
        return cls("PerTensorAffine", quantization_type)

    @classmethod
    def PerTensorSymmetric(
        cls, quantization_type: QuantizationType = QuantizationType.QInt8
    ) -> Self:
        """Codes from −127 to 127; 0 is code 0."""
        return cls("PerTensorSymmetric", quantization_type)

    @property
    def is_affine(self) -> bool:  # type: ignore[override] # here it depends
        """Whether there is an offset."""
        return self.name == "PerTensorAffine"

    @property
    def value(self) -> QuantValue:  # type: ignore[override] # here it follows
        """What the codes are."""
        return QuantValue.Q8F if self.is_affine else QuantValue.Q8S

    @property
    def store(self) -> QuantStore:  # type: ignore[override] # here it is fixed
        """One byte for each code."""
        return QuantStore.Native

    def __repr__(self) -> str:
        return f"{self.name}({self.quantization_type.name})"


@dataclass(frozen=True, slots=True, repr=False)
class QuantScheme(Scheme):
    """Newer Burn's scheme: value, store, mode, and up to two levels of scales.

    Example:
        >>> QuantScheme().with_value(QuantValue.Q4S).per_block([32], ScaleDtype.F16)
        QuantScheme(Q4S, PackedU32(0), per_block([32], F16))

    Why: as in newer Burn, what comes of a quantized tensor is Float again, except for
    the same codes in another place.
    """

    value: QuantValue = QuantValue.Q8F
    store: QuantStore = QuantStore.PackedU32()  # noqa: RUF009 - it never changes
    mode: QuantMode = QuantMode.Symmetric
    tensor_scale: ScaleDtype | None = None
    block_size: tuple[int, ...] | None = None
    block_scale: ScaleDtype | None = None

    def with_value(self, value: QuantValue) -> Self:
        """The same scheme with other codes."""
        return replace(self, value=value)

    def with_store(self, store: QuantStore) -> Self:
        """The same scheme with codes kept in another way."""
        return replace(self, store=store)

    def with_mode(self, mode: QuantMode) -> Self:
        """The same scheme with another mode."""
        return replace(self, mode=mode)

    def per_tensor(self, dtype: ScaleDtype = ScaleDtype.F32) -> Self:
        """A scale for the whole tensor; beside blocks, what their scales multiply."""
        return replace(self, tensor_scale=dtype)

    def per_block(
        self, block: Iterable[int], dtype: ScaleDtype = ScaleDtype.F32
    ) -> Self:
        """A scale for each block: [16] along the last dim, [2, 16] along two."""
        size = tuple(int(n) for n in block)
        if not all(1 <= n <= 255 for n in size):
            what = f"a block of {list(size)}"
            raise ConfigError("per_block", what, cure="sizes from 1 to 255")
        while size[:1] == (1,):
            size = size[1:]
        return replace(self, block_size=size, block_scale=dtype)

    @property
    def scale_dtype(self) -> ScaleDtype:
        """What the scales are stored as; of two levels, those of the blocks."""
        return self.block_scale or self.tensor_scale or ScaleDtype.F32

    @property
    def has_global(self) -> bool:
        """Whether there are both levels."""
        return self.block_scale is not None and self.tensor_scale is not None

    def check(self, where: str) -> None:
        """Say which parts of the scheme do not go together."""
        bits, store = self.value.size_bits(), self.store
        shown = [("scheme", repr(self))]
        if store.name == "Native" and bits < 8 and self.value.type.exponent:
            what = f"floats of {bits} bits must be packed into words"
            raise ConfigError(where, what, shown, "with_store(QuantStore.PackedU32(0))")
        if not self.has_global:
            return
        if self.tensor_scale is not ScaleDtype.F32:
            what = "beside blocks, the scale of the whole tensor is F32"
            raise ConfigError(where, what, shown, "per_tensor(ScaleDtype.F32)")
        if self.scale_dtype.max_representable() > 65504:
            what = f"{self.scale_dtype.name} has a range that needs no second level"
            cure = "per_block(…, ScaleDtype.F16) or ScaleDtype.UE4M3"
            raise ConfigError(where, what, shown, cure)

    def block(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """How far one scale reaches along every dim, or why blocks do not fit."""
        size = self.block_size
        if size is None:
            return None
        if len(size) > len(shape):
            what = f"a block of {list(size)} in a tensor of rank {len(shape)}"
            raise DimError("quantize", what, [("tensor", str(list(shape)))])
        full = (1,) * (len(shape) - len(size)) + size
        if any(n % b for n, b in zip(shape, full, strict=True)):
            raise ShapeError(
                "quantize",
                f"blocks of {list(size)} do not fill the tensor",
                [("tensor", str(list(shape)))],
                "sizes that divide it, or quantize_weights_group for some parameters",
            )
        return full

    def permuted(self, axes: Sequence[int]) -> Self:
        """The scheme whose blocks and words were turned with the dims."""
        places = [axis % len(axes) for axis in axes]
        moved = self
        if self.store.word:
            last = len(axes) - 1
            dim = last - places.index(last - self.store.dim)
            moved = self.with_store(replace(self.store, dim=dim))
        if self.block_size is None or self.block_scale is None:
            return moved
        full = (1,) * (len(axes) - len(self.block_size)) + self.block_size
        return moved.per_block([full[i] for i in places], self.block_scale)

    def compute_q_params(self, range: CalibrationRange) -> QuantizationParameters:
        """The parameters for numbers in a range.

        scale = 2 max(|min|, |max|) / (b − a) for each block, with codes in [a, b]; with
        two levels the largest becomes the largest that the type of the scales can be.
        """
        self.check("QuantScheme")
        params = Scheme.compute_q_params(self, range)
        if not self.has_global:
            return params
        top = self.scale_dtype.max_representable()
        whole = (params.scale.max() / top).clamp_min(float(np.finfo(np.float32).tiny))
        spread = whole.reshape_to((1,) * params.scale.rank)
        return QuantizationParameters(params.scale / spread, None, whole)

    def __repr__(self) -> str:
        parts = [self.value.name, repr(self.store).removeprefix("QuantStore.")]
        if self.block_size is not None and self.block_scale is not None:
            parts.append(f"per_block({list(self.block_size)}, {self.block_scale.name})")
        if self.tensor_scale is not None:
            parts.append(f"per_tensor({self.tensor_scale.name})")
        return f"QuantScheme({', '.join(parts)})"
