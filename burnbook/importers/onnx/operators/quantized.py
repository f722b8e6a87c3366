"""Quantized numbers: whole numbers with a scale and a zero point."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from burnbook.importers.onnx.operators.convolution import conv
from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.operators.types import converted
from burnbook.importers.onnx.traced import TracedArray
from burnbook.importers.onnx.values import Value, as_array, dtype_of


def _spread(part: Value, x: Value, axis: int, block_size: int) -> Any:
    """A scale or zero point as it lies against x: one, one per slice, or per block."""
    if part.ndim == 0 or (part.ndim == 1 and part.size == 1 and not block_size):
        return part.reshape(())
    if block_size:
        wide = np.repeat(part, block_size, axis)
        return wide[tuple(slice(0, n) for n in x.shape)]
    shape = [1] * x.ndim
    shape[axis] = part.size
    return part.reshape(shape)


def _is_nothing(zero: Value) -> bool:
    """Whether a zero point is known to change nothing."""
    return zero is None or (isinstance(zero, np.ndarray) and not zero.any())


def _held(x: Value, wanted: np.dtype[Any], saturate: int = 1) -> Any:
    """Whole numbers within the range of a type."""
    import ml_dtypes

    name = wanted.name
    if name.startswith("float"):
        return converted(x.astype(np.float32), wanted, saturate)
    info = (
        ml_dtypes.iinfo(wanted)
        if "int4" in name or "int2" in name
        else np.iinfo(wanted)
    )
    return np.clip(np.rint(x), int(info.min), int(info.max)).astype(wanted)


@host_operator("QuantizeLinear")
def quantize_linear(
    x: Value,
    scale: Value,
    zero: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
    precision: int = 0,
    saturate: int = 1,
) -> Any:
    """x / scale + zero point, rounded to even and held in the type's range."""
    wanted = (
        zero.dtype
        if zero is not None
        else dtype_of(output_dtype)
        if output_dtype
        else np.dtype(np.uint8)
    )
    wide = dtype_of(precision) if precision else np.dtype(np.float32)
    s = _spread(scale, x, axis, block_size).astype(wide)
    found = (x.astype(wide) / s).astype(np.float32)
    if wanted.name.startswith("float"):
        return _held(found, wanted, saturate)
    shift = 0 if zero is None else _spread(zero, x, axis, block_size).astype(np.int64)
    return _held(np.rint(found) + shift, wanted)


@host_operator("DequantizeLinear")
def dequantize_linear(
    x: Value,
    scale: Value,
    zero: Value = None,
    *,
    axis: int = 1,
    block_size: int = 0,
    output_dtype: int = 0,
) -> Any:
    """(x − zero point) scale, in the scale's type."""
    wanted = dtype_of(output_dtype) if output_dtype else scale.dtype
    s = _spread(scale, x, axis, block_size).astype(np.float32)
    if _is_nothing(zero):
        found = x.astype(np.float32)
    elif x.dtype.itemsize < 3:  # float32 holds all of them
        found = x.astype(np.float32)
        found -= _spread(zero, x, axis, block_size).astype(np.float32)
    else:
        wide = x.astype(np.int64) - _spread(zero, x, axis, block_size).astype(np.int64)
        found = wide.astype(np.float32)
    return np.multiply(found, s, out=found).astype(wanted, copy=False)


@host_operator("DynamicQuantizeLinear", many=True)
def dynamic_quantize_linear(x: Value, *, outputs: int = 1) -> tuple[Any, ...]:
    """uint8 over the range of x, which includes 0: numbers, scale and zero point."""
    return in_bytes(x)


def in_bytes(x: Value) -> tuple[Any, Any, Any]:
    """The same, for operators that quantize what they are given."""
    low, high = x.min(initial=0), x.max(initial=0)
    scale = (high - low) / np.float32(255)
    scale = np.where(scale == 0, np.float32(1), scale)
    zero = np.clip(np.rint((0 - low) / scale), 0, 255)
    found = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8)
    return found, as_array(scale), as_array(zero).astype(np.uint8)


@host_operator("MatMulInteger")
def mat_mul_integer(
    a: Value, b: Value, a_zero: Value = None, b_zero: Value = None
) -> Any:
    """The product of whole numbers without their zero points, as int32."""
    found = exact_product(without_zero(a, a_zero, -2), without_zero(b, b_zero, -1))
    return found.astype(np.int32)


def without_zero(x: Value, zero: Value, axis: int) -> Any:
    """Whole numbers without their zero point, as floats that hold them exactly."""
    wide = x.astype(np.float32 if x.dtype.itemsize < 3 else np.float64)
    if _is_nothing(zero):
        return wide
    if zero.ndim == 1 and zero.size > 1:
        zero = zero[:, None] if axis == -2 else zero[None, :]
    wide -= zero.astype(wide.dtype)
    return wide


def exact_product(x: Value, y: Value) -> Any:
    """The exact product of whole numbers that are held as floats.

    Why: a product of floats has fast kernels. Those of float32 are exact up to 2²⁴,
    which sums of 256 products of 8 bits do not exceed; such sums are added as float64.
    """
    if x.dtype == y.dtype == np.float32 and x.ndim > 1 and y.ndim > 1:
        found: Any = None
        for start in range(0, x.shape[-1], PIECE):
            rows = slice(start, start + PIECE)
            part = np.matmul(x[..., rows], y[..., rows, :])
            if isinstance(part, TracedArray):  # a backend has one type of floats
                part = np.rint(part).astype(np.int64)
                found = part if found is None else found + part
            else:
                found = part if found is None else np.add(found, part, dtype=np.float64)
        if found is not None:
            return found
    return np.matmul(x.astype(np.float64), y.astype(np.float64))


PIECE = 256


@host_operator("QLinearMatMul")
def q_linear_mat_mul(
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    y_scale: Value,
    y_zero: Value,
) -> Any:
    """A product of quantized matrices, quantized again."""
    exact = exact_product(without_zero(a, a_zero, -2), without_zero(b, b_zero, -1))
    rows = a_scale.astype(np.float64)
    rows = rows[:, None] if rows.ndim == 1 and rows.size > 1 else rows
    scale = rows * b_scale.astype(np.float64) / y_scale.astype(np.float64)
    return _held(np.rint(exact * scale) + y_zero.astype(np.int64), y_zero.dtype)


@host_operator("ConvInteger")
def conv_integer(
    x: Value, w: Value, x_zero: Value = None, w_zero: Value = None, **how: Value
) -> Any:
    """A convolution of whole numbers without their zero points, as int32."""
    shape = (-1, *[1] * (w.ndim - 1))
    few = max(1, PIECE // prod(w.shape[2:]))  # channels whose sums float32 holds
    if isinstance(x, TracedArray) and w.shape[1] > few and how.get("group", 1) == 1:
        total: Any = None  # a backend has one type of floats
        for start in range(0, w.shape[1], few):
            some = slice(start, start + few)
            part = conv_integer(x[:, some], w[:, some], x_zero, w_zero, **how)
            total = part if total is None else total + part
        return total
    narrow = x.dtype.itemsize < 3 and prod(w.shape[1:]) <= PIECE
    dtype = np.float32 if narrow else np.float64
    wide, taps = x.astype(dtype), w.astype(dtype)
    if not _is_nothing(x_zero):
        wide -= x_zero.astype(dtype)
    if not _is_nothing(w_zero):
        zero = w_zero.astype(dtype)
        taps -= zero.reshape(shape) if zero.size > 1 else zero.reshape(())
    return np.rint(as_array(conv(wide, taps, **how))).astype(np.int32)


@host_operator("QLinearConv")
def q_linear_conv(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value = None,
    **how: Value,
) -> Any:
    """A convolution of quantized numbers, quantized again."""
    line = (1, -1, *[1] * (w.ndim - 2))
    exact = conv_integer(x, w, x_zero, w_zero, **how).astype(np.float64)
    if bias is not None:
        exact = exact + bias.reshape(line)
    scale = x_scale.astype(np.float64) * w_scale.astype(np.float64) / y_scale
    scale = scale.reshape(line) if np.size(scale) > 1 else np.reshape(scale, ())
    return _held(np.rint(exact * scale) + y_zero.astype(np.int64), y_zero.dtype)
