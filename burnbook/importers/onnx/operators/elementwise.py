"""Operators that go number by number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from burnbook import ops
from burnbook.importers.onnx.operators.registry import host_operator, operator
from burnbook.importers.onnx.values import (
    Value,
    aligned,
    as_array,
    mask_of,
    reshape,
)
from burnbook.tensor import Tensor, activation
from burnbook.tensor.methods import apply


def _unary(name: str, op: Any, host: Callable[..., Any]) -> Any:
    """An operator of one input: a function of tensors, and NumPy's."""

    def on_tensor(x: Tensor) -> Tensor:
        return apply(op, x)

    on_tensor.__name__ = name.lower()
    on_tensor.__doc__ = f"{name}: {(op.__doc__ or '').strip().splitlines()[0]}"
    return operator(name)(on_tensor).host(host)


abs_ = _unary("Abs", ops.abs, np.abs)
neg = _unary("Neg", ops.neg, np.negative)
exp = _unary("Exp", ops.exp, np.exp)
log = _unary("Log", ops.log, np.log)
sqrt = _unary("Sqrt", ops.sqrt, np.sqrt)


def _second(y: Value, rank: int, axis: int | None) -> Value:
    """The second input as it lies against the first, in opset 6 and before."""
    if axis is None:
        return y
    shape = tuple(y.value.shape) if isinstance(y, Tensor) else y.shape
    wanted = shape + (1,) * (rank - axis % rank - len(shape))
    return reshape(y, wanted) if isinstance(y, Tensor) else y.reshape(wanted)


def _binary(name: str, word: str, op: Any, host: Any) -> Any:
    def on_tensors(x: Tensor, y: Tensor, *, axis_of_second: int | None = None) -> Any:
        y = _second(y, len(x.value.shape), axis_of_second)
        return apply(op, *aligned(x, y))

    on_tensors.__name__ = word
    on_tensors.__doc__ = f"{name} of two inputs, which broadcast."
    made = operator(name)(on_tensors)

    def on_arrays(x: Any, y: Any, *, axis_of_second: int | None = None) -> Any:
        y = _second(y, x.ndim, axis_of_second)
        with np.errstate(all="ignore"):
            return np.asarray(host(x, y))

    return made.host(on_arrays)


def _divided(x: Any, y: Any) -> Any:
    """Whole numbers are cut towards zero; NumPy would go down."""
    if x.dtype.kind not in "iu":
        return x / y
    quotient = np.floor_divide(x, y)
    return (quotient + ((quotient < 0) & (quotient * y != x))).astype(x.dtype)


add = _binary("Add", "add", ops.add, np.add)
sub = _binary("Sub", "sub", ops.sub, np.subtract)
mul = _binary("Mul", "mul", ops.mul, np.multiply)
div = _binary("Div", "div", ops.div, _divided)


@operator("Relu")
def relu(x: Tensor) -> Tensor:
    """The larger of x and 0."""
    return apply(ops.relu, x)


@relu.host
def _(x: Any) -> Any:
    return np.maximum(x, np.zeros((), x.dtype))


@operator("Where")
def where(cond: Any, x: Tensor, y: Tensor) -> Tensor:
    """x where cond is true, y elsewhere; all three broadcast."""
    shape = np.broadcast_shapes(cond.shape, tuple(x.value.shape), tuple(y.value.shape))
    x, y = (_spread(part, shape) for part in (x, y))
    return apply(ops.mask_where, y, mask_of(np.broadcast_to(cond, shape), x), x)


@where.host
def _(cond: Any, x: Any, y: Any) -> Any:
    return np.where(cond, x, y).astype(x.dtype, copy=False)


def _spread(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    own = tuple(x.value.shape)
    x = reshape(x, (1,) * (len(shape) - len(own)) + own)
    return x if x.value.shape == shape else apply(ops.expand, x, shape=shape)


@host_operator("Not")
def not_(x: Any) -> Any:
    """True where x is false."""
    return np.logical_not(x)
