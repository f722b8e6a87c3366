"""Ops on one element as expressions of JavaScript."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.exporters.lowering import Line
from burnbook.exporters.lowering.files import number, size
from burnbook.exporters.lowering.sizes import float_text
from burnbook.program.sizes import Dim

X_SIGMOID = "(1 / (1 + Math.exp(-({x}))))"
SOFT = "(Math.max({x}, 0) + Math.log1p(Math.exp(-Math.abs({x}))))"
EXPRESSIONS = {
    "copy": "{x}",
    "relu": "Math.max({x}, 0)",
    "sigmoid": X_SIGMOID,
    "tanh": "Math.tanh({x})",
    "gelu": "{x} * (0.5 + 0.5 * erf({x} * 0.7071067811865476))",
    "silu": "({x} / (1 + Math.exp(-({x}))))",
    "exp": "Math.exp({x})",
    "log": "Math.log({x})",
    "log1p": "Math.log1p({x})",
    "sqrt": "Math.sqrt({x})",
    "sin": "Math.sin({x})",
    "cos": "Math.cos({x})",
    "tan": "Math.tan({x})",
    "asin": "Math.asin({x})",
    "acos": "Math.acos({x})",
    "atan": "Math.atan({x})",
    "sinh": "Math.sinh({x})",
    "cosh": "Math.cosh({x})",
    "asinh": "Math.asinh({x})",
    "acosh": "Math.acosh({x})",
    "atanh": "Math.atanh({x})",
    "atan2": "Math.atan2({x}, {y})",
    "hypot": "Math.hypot({x}, {y})",
    "abs": "Math.abs({x})",
    "neg": "-{x}",
    "recip": "1 / {x}",
    "square": "{x} * {x}",
    "erf": "erf({x})",
    "floor": "Math.floor({x})",
    "ceil": "Math.ceil({x})",
    "trunc": "Math.trunc({x})",
    "round": "round({x})",
    "sign": "Number({x} > 0) - Number({x} < 0)",
    "log_sigmoid": "Math.min({x}, 0) - Math.log1p(Math.exp(-Math.abs({x})))",
    "mish": "{x} * Math.tanh(" + SOFT + ")",
    "leaky_relu": "{x} > 0 ? {x} : {x} * {negative_slope}",
    "elu": "{x} > 0 ? {x} : {alpha} * Math.expm1({x})",
    "softplus": (
        "(Math.max({x} * {beta}, 0)"
        " + Math.log1p(Math.exp(-Math.abs({x} * {beta})))) / {beta}"
    ),
    "add": "{x} + {y}",
    "sub": "{x} - {y}",
    "mul": "{x} * {y}",
    "div": "{x} / {y}",
    "half_power": "{x} === -Infinity ? Infinity : Math.sqrt({x}) + 0",
    "powf": "power({x}, {y})",
    "remainder": "remainder({x}, {y})",
    "fmod": "{x} % {y}",
    "max_pair": "({x} >= {y} || {x} !== {x}) ? {x} : {y}",
    "min_pair": "({x} <= {y} || {x} !== {x}) ? {x} : {y}",
    "equal": "{x} === {y}",
    "not_equal": "{x} !== {y}",
    "greater": "{x} > {y}",
    "greater_equal": "{x} >= {y}",
    "lower": "{x} < {y}",
    "lower_equal": "{x} <= {y}",
    "bool_and": "{x} && {y}",
    "bool_or": "{x} || {y}",
    "bool_xor": "{x} !== {y}",
    "bool_not": "!{x}",
    "to_bool": "{x} !== 0",
    "is_nan": "Number.isNaN({x})",
    "is_inf": "Math.abs({x}) === Infinity",
    "is_finite": "Number.isFinite({x})",
    "bitwise_and": "{x} & {y}",
    "bitwise_or": "{x} | {y}",
    "bitwise_xor": "{x} ^ {y}",
    "bitwise_not": "~{x}",
    "bitwise_left_shift": "{x} << {y}",
    "bitwise_right_shift": "{x} >> {y}",
    "where": "{x} ? {y} : {z}",
}
WHOLE = {  # of whole numbers
    "div": "Math.trunc({x} / {y})",
    "mul": "Math.imul({x}, {y})",
    "square": "Math.imul({x}, {x})",
}
EXACT = {  # ops whose result needs no rounding: it is one of the elements, or whole
    "f32": {
        *("copy", "relu", "abs", "neg", "floor", "ceil", "trunc", "round", "sign"),
        *("fmod", "max_pair", "min_pair", "where"),
    },
    "i32": {
        *("copy", "relu", "sign", "mul", "square", "max_pair", "min_pair", "where"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not"),
        *("bitwise_left_shift", "bitwise_right_shift"),
    },
}
USES = {  # functions of kernels.js
    "erf": "erf",
    "gelu": "erf",
    "round": "round",
    "powf": "power",
    "remainder": "remainder",
}


def expression(line: Line, names: list[str]) -> str:
    """An op on named elements and numbers; those of kind bool are true and false."""
    if line.op == "cast":
        return _cast(line, names[0])
    text = EXPRESSIONS[line.op]
    if line.takes == "bool" and line.op == "to_bool":
        return names[0]
    if line.takes == "i32":
        text = WHOLE.get(line.op, text)
    given = dict(zip("xyz", names, strict=False))
    attrs = {name: literal(value, line.takes) for name, value in line.attrs.items()}
    return text.format(**given, **attrs)


def kept(line: Line, text: str) -> str:
    """The expression of a line, as the element that an array of its kind would hold.

    Example:
        >>> kept(Line("add", (), "f32", "f32"), "x + y")
        'Math.fround(x + y)'
        >>> kept(Line("add", (), "i32", "i32"), "x + y")
        '(x + y) | 0'
    """
    is_cast_up = line.op == "cast" and line.takes in ("bool", line.gives)
    if line.gives == "bool" or is_cast_up or line.op in EXACT[line.gives]:
        return text
    return f"Math.fround({text})" if line.gives == "f32" else f"({text}) | 0"


def literal(value: Any, kind: str) -> str:
    """A number inside of an expression, in brackets where it is below zero.

    Of kind f32, it is the number that float32 holds.

    Example:
        >>> literal(-2, "i32"), literal(1, "bool"), literal(True, "f32")
        ('(-2)', 'true', '1')
        >>> literal(0.5, "f32"), literal(0.1, "f32")
        ('0.5', '0.10000000149011612')
    """
    if isinstance(value, Dim):
        base = size(Dim(value.scale, value.offset))
        text = float_text(value, base, number(value.factor), "Math.sqrt")
        return f"Math.fround({text})" if kind == "f32" else text
    if kind == "bool":
        return number(bool(value))
    if kind == "f32":
        with np.errstate(over="ignore"):
            held = float(np.float32(value))
        value = held if isinstance(value, float) or held != value else int(value)
    text = number(value)
    return f"({text})" if text.startswith("-") else text


def _cast(line: Line, name: str) -> str:
    if line.takes == line.gives:
        return name
    if line.takes == "bool":
        return f"Number({name})"
    if line.gives == "bool":
        return f"{name} !== 0"
    return f"Math.trunc({name})" if line.gives == "i32" else name
