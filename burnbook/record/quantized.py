"""Quantized tensors in a record, as Burn 0.15 has them.

The bytes are the codes, one each; what they stand for is inside the dtype:
{QFloat: {PerTensorAffineInt8: {scale, offset, _a}}}, or PerTensorSymmetricInt8.
"""

from __future__ import annotations

from typing import Any

from burnbook.core.errors import DataError
from burnbook.record.tree import Marker, Path, Single, Trouble, named, short
from burnbook.tensor.data import TensorData
from burnbook.tensor.qfloat import (
    PerTensorAffineInt8,
    PerTensorSymmetricInt8,
    QFloat,
    QuantizationStrategy,
    SchemeStrategy,
)
from burnbook.tensor.quantization_scheme import QuantValue, ScaleDtype

AFFINE, SYMMETRIC = "PerTensorAffineInt8", "PerTensorSymmetricInt8"


def as_burn_has_it(data: TensorData, path: Path) -> tuple[TensorData, Any]:
    """The codes as plain i8, and the dtype that says what they stand for."""
    known = getattr(data.dtype, "strategy", None)
    strategy = _int8(known)
    codes = TensorData.of(data.array, "i8")
    if isinstance(strategy, PerTensorAffineInt8):
        held = {"scale": Single(strategy.scale), "offset": strategy.offset}
        return codes, {"QFloat": {AFFINE: {**held, "_a": Marker}}}
    if isinstance(strategy, PerTensorSymmetricInt8):
        held = {"scale": Single(strategy.scale), "_q": Marker}
        return codes, {"QFloat": {SYMMETRIC: held}}
    raise Trouble(
        f"{named(path)} is quantized in a way that records of Burn 0.15 cannot hold",
        "PerTensorAffine, PerTensorSymmetric, or Q8S with one F32 scale",
        short(repr(known)),
        "model.map(Dequantize()) before saving",
    )


def _int8(strategy: QuantizationStrategy | None) -> QuantizationStrategy | None:
    """A strategy of Burn 0.15: itself, or the one that says the same as a newer one."""
    if not isinstance(strategy, SchemeStrategy):
        return strategy
    scheme = strategy.scheme
    one = scheme.block_size is None and scheme.scale_dtype is ScaleDtype.F32
    if scheme.value is not QuantValue.Q8S or not one:
        return None
    return PerTensorSymmetricInt8(float(strategy.params().scales[0]))


def read_qfloat(plain: object, path: Path) -> QFloat:
    """The element type of codes, from the payload of their dtype."""
    name, held = "", plain
    if isinstance(plain, dict) and len(plain) == 1:
        ((name, held),) = plain.items()
    if isinstance(held, list):  # a struct written by position
        held = dict(zip(("scale", "offset"), held, strict=False))
    held = held if isinstance(held, dict) else {}
    scale, offset = held.get("scale"), held.get("offset")
    try:
        if isinstance(scale, float | int) and name == SYMMETRIC:
            return QFloat(PerTensorSymmetricInt8(scale))
        if isinstance(scale, float | int) and name == AFFINE and type(offset) is int:
            return QFloat(PerTensorAffineInt8(scale, offset))
    except (DataError, OverflowError) as cause:
        raise Trouble(f"{named(path)}: {getattr(cause, 'what', cause)}") from None
    raise Trouble(
        f"{named(path)} is quantized in an unknown way",
        f"{AFFINE} or {SYMMETRIC} with their numbers",
        short(name) if name else "",
        "dequantize the module in Burn before saving it",
    )
