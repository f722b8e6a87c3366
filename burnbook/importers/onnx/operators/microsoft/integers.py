"""Arithmetic of quantized numbers, as ONNX Runtime's quantizer writes it.

What is taken is freed of its scale and zero point, computed with in float32, and
quantized again; products of whole numbers are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.backend.base import plain_backend
from burnbook.core.arrays import Array
from burnbook.core.errors import ArgumentError
from burnbook.importers.onnx.operators.elementwise import leaky_relu, sigmoid
from burnbook.importers.onnx.operators.microsoft.attention import (
    FILTER,
    attend_parts,
    by_heads,
)
from burnbook.importers.onnx.operators.norms import softmax
from burnbook.importers.onnx.operators.pooling import average_pool
from burnbook.importers.onnx.operators.quantized import (
    dequantize_linear,
    exact_product,
    in_bytes,
    q_linear_conv,
    quantize_linear,
    without_zero,
)
from burnbook.importers.onnx.operators.registry import host_operator
from burnbook.importers.onnx.values import Value, as_array, as_tensor, default_device

DOMAIN = "com.microsoft"


def _wide(x: Value, scale: Value, zero: Value) -> Any:
    return as_array(dequantize_linear(x, scale, zero))


def _narrow(x: Array, scale: Value, zero: Value, like: Any) -> Any:
    """Quantized again; without a zero point in the type of what was given."""
    zero = np.zeros((), like.dtype) if zero is None else zero
    return quantize_linear(x.astype(np.float32), scale, zero)


def _pair(name: str, word: str, how: Callable[[Any, Any], Any]) -> None:
    def run(
        a: Value,
        a_scale: Value,
        a_zero: Value,
        b: Value,
        b_scale: Value,
        b_zero: Value,
        scale: Value,
        zero: Value = None,
    ) -> Any:
        found = how(_wide(a, a_scale, a_zero), _wide(b, b_scale, b_zero))
        return _narrow(found, scale, zero, a)

    run.__name__ = f"q_linear_{word}"
    run.__doc__ = f"{word} of quantized numbers, quantized again."
    host_operator(name, domain=DOMAIN)(run)


_pair("QLinearAdd", "add", lambda a, b: a + b)
_pair("QLinearMul", "mul", lambda a, b: a * b)


@host_operator("QLinearSigmoid", domain=DOMAIN)
def q_linear_sigmoid(
    x: Value, x_scale: Value, x_zero: Value, scale: Value, zero: Value = None
) -> Any:
    """1 / (1 + e⁻ˣ) of quantized numbers."""
    return _narrow(as_array(sigmoid(_wide(x, x_scale, x_zero))), scale, zero, x)


@host_operator("QLinearLeakyRelu", domain=DOMAIN)
def q_linear_leaky_relu(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    scale: Value,
    zero: Value = None,
    *,
    alpha: float = 0.01,
) -> Any:
    """x, and alpha x below 0, of quantized numbers."""
    found = as_array(leaky_relu(_wide(x, x_scale, x_zero), alpha=alpha))
    return _narrow(found, scale, zero, x)


@host_operator("QLinearSoftmax", domain=DOMAIN)
def q_linear_softmax(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    scale: Value,
    zero: Value = None,
    *,
    axis: int = -1,
    opset: int,
) -> Any:
    """softmax of quantized numbers; opset: by which definition of Softmax."""
    flat = int(opset < 13)
    found = softmax(_wide(x, x_scale, x_zero), axis=axis, flattened=flat)
    return _narrow(as_array(found), scale, zero, x)


@host_operator("QLinearConcat", domain=DOMAIN)
def q_linear_concat(scale: Value, zero: Value, *parts: Value, axis: int) -> Any:
    """Quantized numbers one after another, brought to one scale."""
    threes = [parts[k : k + 3] for k in range(0, len(parts), 3)]
    wide = [_wide(*three) for three in threes]
    return _narrow(np.concatenate(wide, axis), scale, zero, parts[0])


@host_operator("QLinearWhere", domain=DOMAIN)
def q_linear_where(
    condition: Value,
    x: Value,
    x_scale: Value,
    x_zero: Value,
    y: Value,
    y_scale: Value,
    y_zero: Value,
    scale: Value,
    zero: Value = None,
) -> Any:
    """Elements of one of two, brought to one scale."""
    wide = _wide(x, x_scale, x_zero), _wide(y, y_scale, y_zero)
    return _narrow(np.where(condition, *wide), scale, zero, x)


@host_operator("QLinearReduceMean", domain=DOMAIN)
def q_linear_reduce_mean(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    scale: Value,
    zero: Value = None,
    *,
    axes: Sequence[int] = (),
    keepdims: int = 1,
) -> Any:
    """The mean along axes of quantized numbers."""
    over = tuple(axes) or tuple(range(x.ndim))
    found = np.mean(_wide(x, x_scale, x_zero), axis=over, keepdims=bool(keepdims))
    return _narrow(found, scale, zero, x)


def _channels_first(x: Array, last: int) -> Any:
    return x.transpose(0, x.ndim - 1, *range(1, x.ndim - 1)) if last else x


def _channels_last(x: Array, last: int) -> Any:
    return x.transpose(0, *range(2, x.ndim), 1) if last else x


@host_operator("QLinearAveragePool", domain=DOMAIN)
def q_linear_average_pool(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    scale: Value,
    zero: Value = None,
    *,
    channels_last: int = 0,
    **how: Value,
) -> Any:
    """The mean of every window of quantized numbers."""
    wide = _channels_first(_wide(x, x_scale, x_zero), channels_last)
    found = _channels_last(as_array(average_pool(wide, **how)), channels_last)
    return _narrow(found, scale, zero, x)


@host_operator("QLinearGlobalAveragePool", domain=DOMAIN)
def q_linear_global_average_pool(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    scale: Value,
    zero: Value,
    *,
    channels_last: int = 0,
) -> Any:
    """The mean of every channel of quantized numbers."""
    wide = _channels_first(_wide(x, x_scale, x_zero), channels_last)
    for axis in range(2, wide.ndim):
        wide = np.mean(wide, axis=axis, keepdims=True)
    return _narrow(_channels_last(wide, channels_last), scale, zero, x)


@host_operator("QLinearConv", domain=DOMAIN)
def q_linear_conv_of_runtime(
    x: Value,
    x_scale: Value,
    x_zero: Value,
    w: Value,
    w_scale: Value,
    w_zero: Value,
    y_scale: Value,
    y_zero: Value,
    bias: Value = None,
    *,
    channels_last: int = 0,
    **how: Value,
) -> Any:
    """A convolution of quantized numbers, whose channels may stand last."""
    given = [x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero]
    found = q_linear_conv(_channels_first(x, channels_last), *given, bias, **how)
    return _channels_last(as_array(found), channels_last)


@host_operator("QGemm", domain=DOMAIN)
def q_gemm(
    a: Value,
    a_scale: Value,
    a_zero: Value,
    b: Value,
    b_scale: Value,
    b_zero: Value,
    c: Value = None,
    y_scale: Value = None,
    y_zero: Value = None,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Any:
    """alpha a b + c of quantized matrices; as floats where no scale is given."""
    first, second = (a.T if transA else a), (b.T if transB else b)
    found = exact_product(
        without_zero(first, a_zero, -2), without_zero(second, b_zero, -1)
    )
    found = found if c is None else found + c
    scale = np.float32(alpha) * a_scale.astype(np.float32) * b_scale
    found = found * scale
    if y_scale is None:
        return found.astype(np.float32)
    return _narrow(found, y_scale, y_zero, a)


def _times(
    a: Any, b: Any, a_scale: Any, b_scale: Any, a_zero: Any, b_zero: Any, bias: Any
) -> Any:
    found = exact_product(without_zero(a, a_zero, -2), without_zero(b, b_zero, -1))
    rows = a_scale[:, None] if a_scale.ndim == 1 and a_scale.size > 1 else a_scale
    found = found.astype(np.float32) * (rows * b_scale).astype(np.float32)
    return found if bias is None else found + bias


@host_operator("MatMulIntegerToFloat", domain=DOMAIN)
def mat_mul_integer_to_float(
    a: Value,
    b: Value,
    a_scale: Value,
    b_scale: Value,
    a_zero: Value = None,
    b_zero: Value = None,
    bias: Value = None,
) -> Any:
    """The product of quantized matrices, as floats."""
    return _times(a, b, a_scale, b_scale, a_zero, b_zero, bias)


@host_operator("DynamicQuantizeMatMul", domain=DOMAIN)
def dynamic_quantize_mat_mul(
    a: Value, b: Value, b_scale: Value, b_zero: Value = None, bias: Value = None
) -> Any:
    """The product of floats, quantized over their range, and a quantized matrix."""
    held, scale, zero = in_bytes(a)
    return _times(held, b, scale, b_scale, zero, b_zero, bias)


@host_operator("QAttention", domain=DOMAIN, many=True)
def q_attention(
    x: Value,
    weight: Value,
    bias: Value,
    x_scale: Value,
    w_scale: Value,
    mask_index: Value = None,
    x_zero: Value = None,
    w_zero: Value = None,
    past: Value = None,
    *,
    num_heads: int,
    unidirectional: int = 0,
    do_rotary: int = 0,
    past_present_share_buffer: int = 0,
    mask_filter_value: float = FILTER,
    scale: float | None = None,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """Attention whose q, k, v are a product of quantized numbers."""
    if do_rotary or past_present_share_buffer:
        what = "do_rotary and a shared buffer are not known here"
        raise ArgumentError("onnx QAttention", what)
    rows = _times(x, weight, x_scale, w_scale, x_zero, w_zero, bias)
    device = default_device()
    parts = [
        by_heads(as_tensor(part, device), num_heads) for part in np.split(rows, 3, -1)
    ]
    before = None if past is None else as_tensor(past, device)
    found, present = attend_parts(
        parts, before, mask_index, None, unidirectional, scale, mask_filter_value
    )
    return as_array(found), as_array(present)


@host_operator("DynamicQuantizeLSTM", domain=DOMAIN, many=True)
def dynamic_quantize_lstm(
    x: Value,
    w: Value,
    r: Value,
    b: Value = None,
    sequence_lens: Value = None,
    initial_h: Value = None,
    initial_c: Value = None,
    p: Value = None,
    w_scale: Value = None,
    w_zero: Value = None,
    r_scale: Value = None,
    r_zero: Value = None,
    *,
    activation_alpha: Sequence[float] = (),
    activation_beta: Sequence[float] = (),
    activations: Sequence[str] = (),
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int,
    input_forget: int = 0,
    outputs: int = 1,
) -> tuple[Any, ...]:
    """An LSTM with quantized weights; what it takes is quantized over its range.

    Shapes: x [s, b, i]; w [directions, i, 4h], r [directions, h, 4h]
    """
    ways = {"forward": [0], "reverse": [1], "bidirectional": [0, 1]}[direction]
    names = [name.lower() for name in activations]
    if names and names != ["sigmoid", "tanh", "tanh"] * len(ways):
        what = f"the activations {', '.join(activations)} are not known here"
        raise ArgumentError("onnx DynamicQuantizeLSTM", what)
    if p is not None or input_forget or clip is not None:
        what = "peepholes, input_forget and clip are not known here"
        raise ArgumentError("onnx DynamicQuantizeLSTM", what)
    shape = (len(ways), x.shape[1], hidden_size)
    h, c = (
        np.zeros(shape, np.float32) if s is None else as_array(s)
        for s in (initial_h, initial_c)
    )
    ends = None if sequence_lens is None else np.asarray(sequence_lens)
    rows: list[Any] = []
    lasts: list[tuple[Any, Any]] = []
    for d, way in enumerate(ways):
        bias = None if b is None else np.add(*np.split(b[d], 2))
        given = _from_bytes(x, w[d], w_scale[d], w_zero[d])
        given = given if bias is None else given + bias
        weights = without_zero(r[d], r_zero[d], -1), r_scale[d]
        made, last = _steps(given, weights, (h[d], c[d]), ends, bool(way))
        rows.append(made)
        lasts.append(last)
    hidden, cell = (np.stack(part) for part in zip(*lasts, strict=True))
    return np.stack(rows, 1), hidden, cell


def _from_bytes(x: Any, weight: Any, scale: Any, zero: Any) -> Any:
    """x, quantized over its range, times a quantized matrix, as floats."""
    held, by, shift = in_bytes(x)
    found = exact_product(without_zero(held, shift, -2), without_zero(weight, zero, -1))
    return found.astype(np.float32) * (by * scale).astype(np.float32)


def _steps(
    given: Any, weights: Sequence[Any], state: tuple[Any, Any], ends: Any, back: bool
) -> tuple[Any, tuple[Any, Any]]:
    """All states of one direction, and the last. given: x W + b of every step."""
    h, c = state
    matrix, scale = weights  # floats now, or every step would make them
    rows: list[Any] = [None] * len(given)
    for t in reversed(range(len(given))) if back else range(len(given)):
        held, by, shift = in_bytes(h)
        found = exact_product(without_zero(held, shift, -2), matrix)
        gates = given[t] + found.astype(np.float32) * (by * scale).astype(np.float32)
        n = gates.shape[-1] // 4
        open_ = _logistic(gates[..., : 3 * n])
        i, o, f = open_[..., :n], open_[..., n : 2 * n], open_[..., 2 * n :]
        cell = f * c + i * np.tanh(gates[..., 3 * n :])
        hidden = o * np.tanh(cell)
        row = hidden
        if ends is not None:
            over = (ends <= t)[:, None]
            row = np.where(over, np.float32(0), hidden)
            hidden, cell = np.where(over, h, hidden), np.where(over, c, cell)
        h, c, rows[t] = hidden, cell, row
    return np.stack(rows), (h, c)


def _logistic(x: Array) -> Any:
    if (
        type(x) is np.ndarray and x.dtype.kind == "f"
    ):  # a tensor takes ten times as long
        return plain_backend(default_device()).run(ops.sigmoid, (x,), {})
    return as_array(sigmoid(x))
