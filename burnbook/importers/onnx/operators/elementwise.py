"""Operators that go number by number."""

from __future__ import annotations

import operator as signs
import re
from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.values import (
    Value,
    aligned,
    as_array,
    as_tensor,
    mask_of,
    moved,
    number,
    reshape,
)
from burnbook.tensor import Tensor, activation
from burnbook.tensor.methods import apply


def _unary(name: str, op: Value, host: Callable[..., Any]) -> Any:
    """An operator of one input: a function of tensors, and NumPy's."""

    def on_tensor(x: Tensor) -> Tensor:
        return apply(op, x)

    on_tensor.__name__ = _name(name)
    on_tensor.__doc__ = f"{name}: {(op.__doc__ or '').strip().splitlines()[0]}"
    return operator(name)(on_tensor).host(host)


def _name(op: str) -> str:
    """The function's name for an operator: IsNaN -> is_nan."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", op).lower()
    return {"is_na_n": "is_nan", "erf": "erf"}.get(text, text)


def _rounded(x: Value) -> Any:
    return np.rint(x)


for _op, _ours, _theirs in (
    ("Abs", ops.abs, np.abs),
    ("Neg", ops.neg, np.negative),
    ("Exp", ops.exp, np.exp),
    ("Log", ops.log, np.log),
    ("Sqrt", ops.sqrt, np.sqrt),
    ("Reciprocal", ops.recip, np.reciprocal),
    ("Floor", ops.floor, np.floor),
    ("Ceil", ops.ceil, np.ceil),
    ("Round", ops.round, _rounded),
    ("Sign", ops.sign, np.sign),
    ("Sin", ops.sin, np.sin),
    ("Cos", ops.cos, np.cos),
    ("Tan", ops.tan, np.tan),
    ("Asin", ops.asin, np.arcsin),
    ("Acos", ops.acos, np.arccos),
    ("Atan", ops.atan, np.arctan),
    ("Sinh", ops.sinh, np.sinh),
    ("Cosh", ops.cosh, np.cosh),
    ("Asinh", ops.asinh, np.arcsinh),
    ("Acosh", ops.acosh, np.arccosh),
    ("Atanh", ops.atanh, np.arctanh),
    ("Tanh", ops.tanh, np.tanh),
):
    _unary(_op, _ours, _theirs)


@operator("Erf")
def erf(x: Tensor) -> Tensor:
    """2/√π ∫₀ˣ e^(−t²) dt."""
    return apply(ops.erf, x)


@operator("Sigmoid")
def sigmoid(x: Tensor) -> Tensor:
    """1 / (1 + e⁻ˣ)."""
    return activation.sigmoid(x)


def _second(y: Value, rank: int, axis: int | None) -> Value:
    """The second input as it lies against the first, in opset 6 and before."""
    if axis is None:
        return y
    shape = tuple(y.value.shape) if isinstance(y, Tensor) else y.shape
    wanted = shape + (1,) * (rank - axis % rank - len(shape))
    return reshape(y, wanted) if isinstance(y, Tensor) else y.reshape(wanted)


def _binary(name: str, word: str, op: Value, sign: Value, host: Value) -> Any:
    def on_tensors(x: Value, y: Value, *, axis_of_second: int | None = None) -> Any:
        if isinstance(x, float) or isinstance(y, float):
            return sign(x, y)
        y = _second(y, x.rank, axis_of_second)
        if x.backend is y.backend and x.rank == y.rank:
            return sign(x, y)
        return apply(op, *aligned(x, y))

    on_tensors.__name__ = word
    on_tensors.__doc__ = f"{name} of two inputs, which broadcast."
    made = operator(name, numbers=True)(on_tensors)

    def on_arrays(x: Value, y: Value, *, axis_of_second: int | None = None) -> Any:
        y = _second(y, x.ndim, axis_of_second)
        with np.errstate(all="ignore"):
            return as_array(host(x, y))

    return made.host(on_arrays)


def _divided(x: Value, y: Value) -> Any:
    """Whole numbers are cut towards zero; NumPy would go down."""
    if x.dtype.kind not in "iu":
        return x / y
    quotient = np.floor_divide(x, y)
    return (quotient + ((quotient < 0) & (quotient * y != x))).astype(x.dtype)


add = _binary("Add", "add", ops.add, signs.add, np.add)
sub = _binary("Sub", "sub", ops.sub, signs.sub, np.subtract)
mul = _binary("Mul", "mul", ops.mul, signs.mul, np.multiply)
div = _binary("Div", "div", ops.div, signs.truediv, _divided)


def _power(x: Value, y: Value) -> Any:
    return np.power(x.astype(np.result_type(x, y)), y).astype(x.dtype)


@operator("Pow", numbers=True)
def pow_(x: Value, y: Tensor, *, axis_of_second: int | None = None) -> Tensor:
    """x to the power of y, in the type of x."""
    if not isinstance(x, Tensor):  # a whole number to the power of a float
        if isinstance(x, float):  # where the exponent is a tensor
            x = as_tensor(np.array(x, y.value.dtype), y.backend)
        else:
            return _power(x, as_array(y))
    if isinstance(y, float):
        return apply(ops.square, x) if y == 2 else x.powf(y)
    if not isinstance(y, Tensor):
        y = as_tensor(y.astype(x.value.dtype), x.backend)
    y = moved(y, x.backend)
    y = _second(y, len(x.value.shape), axis_of_second)
    return apply(ops.powf, *aligned(x, y))


@pow_.host
def _(x: Value, y: Value, *, axis_of_second: int | None = None) -> Any:
    with np.errstate(all="ignore"):
        return _power(x, _second(y, x.ndim, axis_of_second))


@operator("Mod")
def mod(x: Tensor, y: Tensor, *, fmod: int = 0) -> Tensor:
    """What is left of a division: with the sign of y, or of x with fmod."""
    return apply(ops.fmod if fmod else ops.remainder, *aligned(x, y))


@mod.host
def _(x: Value, y: Value, *, fmod: int = 0) -> Any:
    with np.errstate(all="ignore"):
        return np.fmod(x, y) if fmod else np.mod(x, y)


@operator("Relu")
def relu(x: Tensor) -> Tensor:
    """The larger of x and 0."""
    return apply(ops.relu, x)


@relu.host
def _(x: Value) -> Any:
    return np.maximum(x, np.zeros((), x.dtype))


@operator("LeakyRelu")
def leaky_relu(x: Tensor, *, alpha: float = 0.01) -> Tensor:
    """x, or alpha x below 0."""
    return activation.leaky_relu(x, alpha)


@operator("PRelu")
def p_relu(x: Tensor, slope: Tensor, *, axis_of_second: int | None = None) -> Tensor:
    """x, or slope x below 0; the slope broadcasts."""
    x, slope = aligned(x, _slope(slope, tuple(x.value.shape), axis_of_second))
    scaled = apply(ops.mul, x, slope)
    below = as_array(x) < 0
    return apply(ops.mask_where, x, mask_of(below, x), scaled)


@p_relu.host
def _(x: Value, slope: Value, *, axis_of_second: int | None = None) -> Any:
    return np.where(x < 0, x * _second(slope, x.ndim, axis_of_second), x)


def _slope(slope: Tensor, shape: tuple[int, ...], axis: int | None) -> Tensor:
    """A slope as it lies against x; in opset 6, one for each channel."""
    size = slope.value.shape[0] if len(slope.value.shape) == 1 else 1
    last = shape[-1] if shape else 1
    if axis is None and size > 1 and size != last and len(shape) > 1:
        axis = 1
    return _second(slope, len(shape), axis)


@operator("Elu")
def elu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x, or alpha (eˣ − 1) below 0."""
    return activation.elu(x, alpha)


@operator("Celu")
def celu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x, or alpha (e^(x / alpha) − 1) below 0."""
    return activation.celu(x, alpha)


@operator("Selu")
def selu(
    x: Tensor,
    *,
    alpha: float = 1.67326319217681884765625,
    gamma: float = 1.05070102214813232421875,
) -> Tensor:
    """gamma times elu."""
    return activation.elu(x, alpha) * gamma


@operator("HardSigmoid")
def hard_sigmoid(x: Tensor, *, alpha: float = 0.2, beta: float = 0.5) -> Tensor:
    """alpha x + beta, held between 0 and 1."""
    return activation.hard_sigmoid(x, alpha, beta)


@operator("HardSwish")
def hard_swish(x: Tensor) -> Tensor:
    """x times hard_sigmoid with 1/6 and 1/2."""
    return activation.hard_swish(x)


@operator("Gelu")
def gelu(x: Tensor, *, approximate: str = "none") -> Tensor:
    """x times the normal distribution at x, exactly or by tanh."""
    if approximate == "tanh":
        return activation.gelu_approximate(x)
    return activation.gelu(x)


@operator("Swish")
def swish(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x σ(alpha x)."""
    return activation.silu(x) if alpha == 1 else x * activation.sigmoid(x * alpha)


@operator("Mish")
def mish(x: Tensor) -> Tensor:
    """x tanh(softplus(x))."""
    return activation.mish(x)


@operator("Softplus")
def softplus(x: Tensor) -> Tensor:
    """log(1 + eˣ)."""
    return activation.softplus(x, 1.0)


@operator("Softsign")
def softsign(x: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return activation.softsign(x)


@operator("ThresholdedRelu")
def thresholded_relu(x: Tensor, *, alpha: float = 1.0) -> Tensor:
    """x above alpha, 0 elsewhere."""
    gone = mask_of(~(as_array(x) > alpha), x)
    return apply(ops.mask_fill, x, gone, value=0.0)


@operator("Shrink")
def shrink(x: Tensor, *, lambd: float = 0.5, bias: float = 0.0) -> Tensor:
    """Nearer to 0 by bias; 0 between −lambd and lambd."""
    held = as_array(x)
    below, above = held < -lambd, held > lambd
    found = apply(ops.mask_where, x - bias, mask_of(below, x), x + bias)
    return apply(ops.mask_fill, found, mask_of(~(below | above), x), value=0.0)


@shrink.host
def _(x: Value, *, lambd: float = 0.5, bias: float = 0.0) -> Any:
    found = np.where(x < -lambd, x + bias, np.where(x > lambd, x - bias, 0))
    return found.astype(x.dtype)


@operator("Clip", numbers=True)
def clip(x: Tensor, low: Value = None, high: Value = None) -> Tensor:
    """No less than low, then no more than high; either may be absent."""
    if isinstance(x, float):  # so one of the bounds is a tensor
        like = low if isinstance(low, Tensor) else high
        x = as_tensor(np.array(x, like.value.dtype), like.backend)  # type: ignore[union-attr]
    if isinstance(low, Tensor):  # it is computed, so it may be another one each time
        x, low = apply(ops.max_pair, *aligned(x, low)), None
        if high is None:
            return x
    if isinstance(high, Tensor):
        x = x if low is None else clip(x, low)
        return apply(ops.min_pair, *aligned(x, high))
    least = -np.inf if low is None else float(number(low))
    most = np.inf if high is None else float(number(high))
    if most < least:
        return x * 0.0 + most
    return apply(ops.clamp, x, min=least, max=most)


@clip.host
def _(x: Value, low: Value = None, high: Value = None) -> Any:
    if low is not None:
        x = np.maximum(x, low)
    return x if high is None else np.minimum(x, high)


def _many(name: str, op: Value, host: Value, mean: bool = False) -> None:
    """An operator of any number of inputs that broadcast."""

    def on_tensors(*parts: Tensor) -> Tensor:
        found = parts[0]
        for part in parts[1:]:
            found = apply(op, *aligned(found, part))
        return found * (1 / len(parts)) if mean and len(parts) > 1 else found

    def on_arrays(*parts: Value) -> Any:
        found = parts[0]
        for part in parts[1:]:
            found = host(found, part)
        return as_array(found)

    on_tensors.__name__ = _name(name)
    on_tensors.__doc__ = f"{name} of any number of inputs, which broadcast."
    operator(name)(on_tensors).host(on_arrays)


_many("Sum", ops.add, np.add)
_many("Mean", ops.add, np.add, mean=True)
_many("Max", ops.max_pair, np.maximum)
_many("Min", ops.min_pair, np.minimum)


def _compared(name: str, word: str, function: Value) -> None:
    """An operator on arrays, of two inputs that broadcast."""

    def on_arrays(x: Value, y: Value, *, axis_of_second: int | None = None) -> Any:
        return as_array(function(x, _second(y, x.ndim, axis_of_second)))

    on_arrays.__name__ = word
    on_arrays.__doc__ = f"{name} of two inputs, which broadcast."
    host_operator(name)(on_arrays)


_compared("Equal", "equal", np.equal)
_compared("Greater", "greater", np.greater)
_compared("GreaterOrEqual", "greater_or_equal", np.greater_equal)
_compared("Less", "less", np.less)
_compared("LessOrEqual", "less_or_equal", np.less_equal)
_compared("And", "and_", np.logical_and)
_compared("Or", "or_", np.logical_or)
_compared("Xor", "xor", np.logical_xor)
_compared("BitwiseAnd", "bitwise_and", np.bitwise_and)
_compared("BitwiseOr", "bitwise_or", np.bitwise_or)
_compared("BitwiseXor", "bitwise_xor", np.bitwise_xor)


@host_operator("BitShift")
def bit_shift(x: Value, y: Value, *, direction: str) -> Any:
    """Bits moved to the LEFT or RIGHT."""
    return np.left_shift(x, y) if direction == "LEFT" else np.right_shift(x, y)


@host_operator("BitwiseNot")
def bitwise_not(x: Value) -> Any:
    """Every bit turned."""
    return np.invert(x)


@host_operator("IsNaN")
def is_nan(x: Value) -> Any:
    """Where there is no number."""
    return np.isnan(x.astype(np.float32) if x.dtype.kind == "V" else x)


@host_operator("IsInf")
def is_inf(x: Value, *, detect_negative: int = 1, detect_positive: int = 1) -> Any:
    """Where a value is infinite, of the signs asked for."""
    x = x.astype(np.float32) if x.dtype.kind == "V" else x
    sign = (np.signbit(x) & bool(detect_negative)) | (
        ~np.signbit(x) & bool(detect_positive)
    )
    return np.isinf(x) & sign


@operator("Where")
def where(cond: Value, x: Tensor, y: Tensor) -> Tensor:
    """x where cond is true, y elsewhere; all three broadcast."""
    shape = np.broadcast_shapes(cond.shape, tuple(x.value.shape), tuple(y.value.shape))
    x, y, mask = (_spread(part, shape) for part in (x, y, mask_of(cond, x)))
    return apply(ops.mask_where, y, mask, x)


@where.host
def _(cond: Value, x: Value, y: Value) -> Any:
    return np.where(cond, x, y).astype(x.dtype, copy=False)


def _spread(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    own = tuple(x.value.shape)
    x = reshape(x, (1,) * (len(shape) - len(own)) + own)
    return x if x.value.shape == shape else apply(ops.expand, x, shape=shape)


@host_operator("Not")
def not_(x: Value) -> Any:
    """True where x is false."""
    return np.logical_not(x)
