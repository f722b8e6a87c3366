"""Operators that change the element type."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.values import (
    FLOATS,
    Value,
    as_array,
    as_tensor,
    dtype_of,
    float_backend,
    moved,
)
from burnbook.tensor import Tensor


@operator("Cast")
def cast(
    x: Tensor, *, to: int | str, saturate: int = 1, round_mode: str = "up"
) -> Value:
    """The same values in another element type."""
    wanted = dtype_of(to)
    if wanted in FLOATS:
        return moved(x, float_backend(x.backend, wanted))
    return converted(as_array(x), wanted, saturate, round_mode)


@cast.host
def _(x: Value, *, to: int | str, saturate: int = 1, round_mode: str = "up") -> Any:
    return converted(x, dtype_of(to), saturate, round_mode)


@operator("CastLike")
def cast_like(
    x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up"
) -> Value:
    """The same values in the element type of another value."""
    wanted = np.dtype(like.value.dtype) if isinstance(like, Tensor) else like.dtype
    if isinstance(x, Tensor) and wanted in FLOATS:
        return moved(x, float_backend(x.backend, wanted))
    found = converted(as_array(x), wanted, saturate, round_mode)
    return as_tensor(found, like.backend) if isinstance(like, Tensor) else found


@cast_like.host
def _(x: Value, like: Value, *, saturate: int = 1, round_mode: str = "up") -> Any:
    return converted(x, like.dtype, saturate, round_mode)


def converted(
    x: Value, wanted: np.dtype[Any], saturate: int = 1, round_mode: str = "up"
) -> Any:
    """An array in another type: strings read and written, float8 held in its range."""
    name = wanted.name
    if wanted.kind == "O":
        return np.vectorize(_text, otypes=[object])(x) if x.size else x.astype(object)
    if x.dtype.kind == "O":
        x = np.array([float(text) for text in x.reshape(-1)]).reshape(x.shape)
    if name == "float8_e8m0fnu":
        return _power_of_two(x.astype(np.float32), wanted, saturate, round_mode)
    with np.errstate(all="ignore"):
        if saturate and name.startswith("float8"):
            import ml_dtypes

            most = float(ml_dtypes.finfo(wanted).max)
            held = x.astype(np.float32)
            held = np.where(np.isnan(held), held, np.clip(held, -most, most))
            return held.astype(wanted)
        return x.astype(wanted)


def _text(value: Value) -> str:
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "INF" if value > 0 else "-INF"
        return str(value)
    return str(value)


def _power_of_two(
    x: Value, wanted: np.dtype[Any], saturate: int, round_mode: str
) -> Any:
    """Powers of two alone: the exponent of a value, rounded as the mode says."""
    part, exponent = np.frexp(np.abs(x))
    exponent = exponent - 1
    exponent = np.where(x == 0, -127, exponent)
    if round_mode == "up":
        exponent = exponent + (part > 0.5)
    elif round_mode == "nearest":
        exponent = exponent + (part >= 0.75)
    out = (exponent > 127) | np.isinf(x)
    code = np.clip(exponent, -127, 127) + 127
    if not saturate:
        code = np.where(out, 255, code)
    code = np.where(np.isinf(x) & bool(saturate), 254, code)
    return np.where(np.isnan(x), 255, code).astype(np.uint8).view(wanted)


@host_operator("BitCast")
def bit_cast(x: Value, *, to: int) -> Any:
    """The same bits as another element type."""
    return np.asarray(x).reshape(x.shape or (1,)).view(dtype_of(to)).reshape(x.shape)
