"""Element by element: arithmetic, functions, activations, comparisons, bits."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burnbook.exporters.onnx.forms.registry import FORMS, NoForm, form
from burnbook.exporters.onnx.writer import Name, Writer
from burnbook.program import Step, Value

# Ops that are one operator of ONNX, with the same inputs and no attributes.
SAME = {
    "add": "Add",
    "sub": "Sub",
    "mul": "Mul",
    "div": "Div",
    "powf": "Pow",
    "matmul": "MatMul",
    "neg": "Neg",
    "abs": "Abs",
    "sign": "Sign",
    "exp": "Exp",
    "log": "Log",
    "sqrt": "Sqrt",
    "recip": "Reciprocal",
    "cos": "Cos",
    "sin": "Sin",
    "tan": "Tan",
    "asin": "Asin",
    "acos": "Acos",
    "atan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "asinh": "Asinh",
    "acosh": "Acosh",
    "atanh": "Atanh",
    "tanh": "Tanh",
    "floor": "Floor",
    "ceil": "Ceil",
    "round": "Round",
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "erf": "Erf",
    "bool_not": "Not",
    "bool_and": "And",
    "bool_or": "Or",
    "bool_xor": "Xor",
    "equal": "Equal",
    "greater": "Greater",
    "greater_equal": "GreaterOrEqual",
    "lower": "Less",
    "lower_equal": "LessOrEqual",
}
BITS = {
    "bitwise_and": "BitwiseAnd",
    "bitwise_or": "BitwiseOr",
    "bitwise_xor": "BitwiseXor",
    "bitwise_not": "BitwiseNot",
}


def _same(operator: str) -> Any:
    def write(w: Writer, step: Step, *inputs: Name) -> Name:
        return w.node(operator, *inputs)

    return write


FORMS.update({name: _same(operator) for name, operator in SAME.items()})


def first_value(step: Step) -> Value:
    """The first input that is an array."""
    return next(v for v in step.inputs if isinstance(v, Value))


def _is_float(step: Step) -> bool:
    return first_value(step).dtype.kind == "f"


@form(*BITS)
def bitwise(w: Writer, step: Step, *inputs: Name) -> Name:
    w.at_least(18, BITS[step.op.name])
    return w.node(BITS[step.op.name], *inputs)


@form("bitwise_left_shift")
def left_shift(w: Writer, step: Step, x: Name, y: Name) -> Name:
    two = w.number(2, first_value(step))
    return w.node("Mul", x, w.node("Pow", two, y))


@form("bitwise_right_shift")
def right_shift(w: Writer, step: Step, x: Name, y: Name) -> Name:
    power = w.node("Pow", w.number(2, first_value(step)), y)
    return w.node("Div", w.node("Sub", x, w.node("Mod", x, power)), power)


@form("not_equal")
def not_equal(w: Writer, step: Step, x: Name, y: Name) -> Name:
    return w.node("Not", w.node("Equal", x, y))


@form("is_nan")
def is_nan(w: Writer, step: Step, x: Name) -> Name:
    if _is_float(step):
        return w.node("IsNaN", x)
    return w.node("Not", w.node("Equal", x, x))


@form("is_inf")
def is_inf(w: Writer, step: Step, x: Name) -> Name:
    return _is_infinite(w, step, x)


@form("is_finite")
def is_finite(w: Writer, step: Step, x: Name) -> Name:
    infinite = _is_infinite(w, step, x)
    return w.node("Not", w.node("Or", w.node("IsNaN", x), infinite))


def _is_infinite(w: Writer, step: Step, x: Name) -> Name:
    """IsInf takes half precision only from opset 20 on."""
    like = first_value(step)
    if w.opset >= 20 or like.dtype.itemsize > 2:
        return w.node("IsInf", x)
    return w.node("Equal", w.node("Abs", x), w.number(math.inf, like))


@form("to_bool")
def to_bool(w: Writer, step: Step, x: Name) -> Name:
    if first_value(step).dtype.kind == "b":
        return w.node("Identity", x)
    zero = w.number(0, first_value(step))
    return w.node("Not", w.node("Equal", x, zero))


@form("remainder")
def remainder(w: Writer, step: Step, x: Name, y: Name) -> Name:
    if not _is_float(step):
        return w.node("Mod", x, y)
    zero = w.number(0, first_value(step))
    rest = w.node("Mod", x, y, fmod=1)
    turned = w.node("Xor", w.node("Less", rest, zero), w.node("Less", y, zero))
    some = w.node("Not", w.node("Equal", rest, zero))
    return w.node("Where", w.node("And", turned, some), w.node("Add", rest, y), rest)


@form("fmod")
def fmod(w: Writer, step: Step, x: Name, y: Name) -> Name:
    return w.node("Mod", x, y, fmod=1)


@form("half_power")
def half_power(w: Writer, step: Step, x: Name) -> Name:
    return w.node("Pow", x, w.number(0.5, first_value(step)))


@form("log1p")
def log1p(w: Writer, step: Step, x: Name) -> Name:
    """Near zero 2 artanh(x / (x + 2)), which is the same and loses no digits there."""
    like = first_value(step)
    one, two = w.number(1, like), w.number(2, like)
    near = w.node("Atanh", w.node("Div", x, w.node("Add", x, two)))
    is_near = w.node("Less", w.node("Abs", x), w.number(0.5, like))
    far = w.node("Log", w.node("Add", x, one))
    return w.node("Where", is_near, w.node("Mul", near, two), far)


@form("clamp")
def clamp(
    w: Writer, step: Step, x: Name, *, min: float | None, max: float | None
) -> Name:
    like = first_value(step)
    low = "" if min is None else w.number(min, like)
    high = "" if max is None else w.number(max, like)
    return w.node("Clip", x, low, high)


@form("gelu")
def gelu(w: Writer, step: Step, x: Name) -> Name:
    if w.opset >= 20:
        return w.node("Gelu", x)
    like = first_value(step)
    root = w.number(math.sqrt(0.5), like)
    grown = w.node("Add", w.node("Erf", w.node("Mul", x, root)), w.number(1, like))
    return w.node("Mul", w.node("Mul", x, grown), w.number(0.5, like))


@form("silu")
def silu(w: Writer, step: Step, x: Name) -> Name:
    return w.node("Mul", x, w.node("Sigmoid", x))


@form("softplus")
def softplus(w: Writer, step: Step, x: Name, *, beta: float) -> Name:
    if beta == 1:
        return w.node("Softplus", x)
    scale = w.number(beta, first_value(step))
    return w.node("Div", w.node("Softplus", w.node("Mul", x, scale)), scale)


@form("log_sigmoid")
def log_sigmoid(w: Writer, step: Step, x: Name) -> Name:
    return w.node("Neg", w.node("Softplus", w.node("Neg", x)))


@form("mish")
def mish(w: Writer, step: Step, x: Name) -> Name:
    if w.opset >= 18:
        return w.node("Mish", x)
    return w.node("Mul", x, w.node("Tanh", w.node("Softplus", x)))


@form("leaky_relu")
def leaky_relu(w: Writer, step: Step, x: Name, *, negative_slope: float) -> Name:
    return w.node("LeakyRelu", x, alpha=w.still(negative_slope))


@form("elu")
def elu(w: Writer, step: Step, x: Name, *, alpha: float) -> Name:
    return w.node("Elu", x, alpha=w.still(alpha))


@form("trunc")
def trunc(w: Writer, step: Step, x: Name) -> Name:
    below = w.node("Less", x, w.number(0, first_value(step)))
    return w.node("Where", below, w.node("Ceil", x), w.node("Floor", x))


@form("square")
def square(w: Writer, step: Step, x: Name) -> Name:
    return w.node("Mul", x, x)


@form("power")
def power(w: Writer, step: Step, x: Name, *, exponent: int) -> Name:
    """By products, as here, so that the digits are the same."""
    out, factor = "", x
    while exponent:
        if exponent % 2:
            out = w.node("Mul", out, factor) if out else factor
        exponent //= 2
        factor = w.node("Mul", factor, factor) if exponent else factor
    return w.node("Identity", out) if out == x else out


@form("max_pair", "min_pair")
def pair(w: Writer, step: Step, x: Name, y: Name) -> Name:
    """The larger or the smaller one."""
    return w.node("Max" if step.op.name == "max_pair" else "Min", x, y)


@form("atan2")
def atan2(w: Writer, step: Step, y: Name, x: Name) -> Name:
    """The angle of (|x|, |y|), mirrored by the signs, which zeros have as well."""
    like = first_value(step)
    height, width = w.node("Abs", y), w.node("Abs", x)
    diagonal = w.node("Sign", height)  # of equals 1, also of ∞; of zeros 0
    ratio = w.node("Div", height, width)
    ratio = w.node("Where", w.node("Equal", height, width), diagonal, ratio)
    angle = w.node("Atan", ratio)
    turned = w.node("Sub", w.number(math.pi, like), angle)
    angle = w.node("Where", _has_minus(w, like, x), turned, angle)
    signs = w.number(-1, like), w.number(1, like)
    # A product, since ONNX Runtime's Where makes 0 of −0.
    return w.node("Mul", angle, w.node("Where", _has_minus(w, like, y), *signs))


def _has_minus(w: Writer, like: Value, x: Name) -> Name:
    """Where the sign is a minus: 1 / −0 is −∞."""
    least = w.node("Min", x, w.node("Reciprocal", x))
    return w.node("Less", least, w.number(0, like))


@form("hypot")
def hypot(w: Writer, step: Step, x: Name, y: Name) -> Name:
    """m √(1 + (k / m)²), with m the larger side: the square would overflow."""
    like = first_value(step)
    sides = w.node("Abs", x), w.node("Abs", y)
    most, least = w.node("Max", *sides), w.node("Min", *sides)
    ratio = w.node("Div", least, most)
    grown = w.node("Add", w.node("Mul", ratio, ratio), w.number(1, like))
    length = w.node("Mul", most, w.node("Sqrt", grown))
    length = w.node("Where", w.node("Equal", most, w.number(0, like)), most, length)
    infinite = w.node("Or", *(_is_infinite(w, step, side) for side in sides))
    return w.node("Where", infinite, w.number(math.inf, like), length)


@form("mask_where")
def mask_where(w: Writer, step: Step, x: Name, mask: Name, values: Name) -> Name:
    return w.node("Where", mask, values, x)


@form("mask_fill")
def mask_fill(w: Writer, step: Step, x: Name, mask: Name, *, value: float) -> Name:
    return w.node("Where", mask, w.number(value, first_value(step)), x)


@form("cast", "recast")
def cast(w: Writer, step: Step, x: Name, *, dtype: Any, **_: Any) -> Name:
    to = w.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return w.node("Cast", x, to=to)


@form("uniform", "normal", "bernoulli", "orthogonal", "dropout")
def drawn(w: Writer, step: Step, *inputs: Name, **_: Any) -> Name:
    raise NoForm("it draws random numbers, which only training needs")
