"""Products with weights of few bits, in blocks that have a scale each."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.core.arrays import Array
from burnbook.importers.onnx.operators.elementwise import add
from burnbook.importers.onnx.operators.products import mat_mul
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.values import Value, as_array, as_tensor
from burnbook.tensor import Tensor

DOMAIN = "com.microsoft"


def _unpacked(held: Array, bits: int) -> Any:
    """Bytes as the numbers of so many bits in them, the lowest bits first."""
    if bits == 8:
        return held
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    parts = (held[..., None] >> shifts) & np.uint8((1 << bits) - 1)
    return parts.reshape(*held.shape[:-1], -1)


def blocks(
    held: Array,
    scales: Array,
    zeros: Array | None,
    *,
    bits: int,
    size: int,
    columns: int,
) -> Any:
    """Weights as floats, [rows, columns]: (q − zero) · scale for each block of a row.

    zeros: packed as the weights are, or of the type of the scales, or none, which is
    the middle.
    """
    rows = held.shape[0]
    count = -(-columns // size)
    numbers = _unpacked(held.reshape(rows, count, -1), bits)[..., :size]
    middle: Any = np.float32(1 << (bits - 1))
    if zeros is not None and zeros.dtype == np.uint8:
        middle = _unpacked(zeros.reshape(rows, -1), bits)[:, :count, None]
    elif zeros is not None:
        middle = zeros.reshape(rows, count, 1)
    wide = numbers.astype(np.float32) - np.asarray(middle, np.float32)
    wide *= scales.reshape(rows, count, 1).astype(np.float32)
    return wide.reshape(rows, -1)[:, :columns]


@operator("MatMulNBits", domain=DOMAIN)
def mat_mul_n_bits(
    x: Tensor,
    weight: Value,
    scales: Value,
    zero_points: Value = None,
    g_idx: Value = None,
    bias: Tensor | None = None,
    *,
    K: int,
    N: int,
    bits: int = 4,
    block_size: int,
    accuracy_level: int = 0,
    weight_prepacked: int = 0,
) -> Tensor:
    """x wᵀ with weights of 2, 4 or 8 bits; g_idx: the block of each column."""
    held, steps = as_array(weight), as_array(scales)
    zeros = None if zero_points is None else as_array(zero_points)
    if g_idx is None:
        about = {"bits": bits, "size": block_size, "columns": K}
        wide = blocks(held.reshape(N, -1), steps, zeros, **about)
    else:
        wide = _of_groups(held, steps, zeros, as_array(g_idx), (N, K), bits)
    turned = np.ascontiguousarray(wide.T).astype(x.value.dtype, copy=False)
    found = mat_mul(x, as_tensor(turned, x.backend))
    return found if bias is None else add(found, bias)


def _of_groups(
    held: Array,
    scales: Array,
    zeros: Array | None,
    groups: Any,
    shape: tuple[int, int],
    bits: int,
) -> Any:
    """Weights whose columns name their blocks."""
    rows, columns = shape
    numbers = _unpacked(held.reshape(rows, -1), bits)[:, :columns].astype(np.float32)
    places = groups.reshape(-1)[:columns]
    steps = scales.reshape(rows, -1).astype(np.float32)
    middle: Any = np.float32(1 << (bits - 1))
    if zeros is not None:
        flat = zeros.reshape(rows, -1)
        flat = _unpacked(flat, bits) if zeros.dtype == np.uint8 else flat
        middle = flat.astype(np.float32)[:, places]
    return (numbers - middle) * steps[:, places]


@host_operator("GatherBlockQuantized", domain=DOMAIN)
def gather_block_quantized(
    data: Value,
    indices: Value,
    scales: Value,
    zero_points: Value = None,
    *,
    bits: int = 4,
    block_size: int = 128,
    gather_axis: int = 0,
    quantize_axis: int = 1,
) -> Any:
    """Rows of a table of few bits, as floats."""
    places = np.asarray(indices)
    held, steps = (np.take(part, places, gather_axis) for part in (data, scales))
    zeros = None if zero_points is None else np.take(zero_points, places, gather_axis)
    axis = quantize_axis % data.ndim + (places.ndim - 1 if quantize_axis else 0)
    packed = data.dtype == np.uint8
    numbers = _unpacked(held, bits) if packed else held
    wide = numbers.astype(np.float32)
    spread = np.repeat(steps, block_size, axis)
    cut = tuple(slice(0, n) for n in wide.shape)
    middle: Any = np.float32((1 << (bits - 1)) if packed else 0)
    if zeros is not None:
        zeros = _unpacked(zeros, bits) if packed else zeros
        zeros = zeros[tuple(slice(0, n) for n in steps.shape)]
        middle = np.repeat(zeros.astype(np.float32), block_size, axis)[cut]
    return ((wide - middle) * spread[cut]).astype(scales.dtype)
