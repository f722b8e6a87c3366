"""Ops on one element as expressions of WGSL."""

from __future__ import annotations

import math
from typing import Any, TypeGuard

import numpy as np

from burnbook.exporters.lowering import Line
from burnbook.exporters.lowering.lowering import NUMBERS
from burnbook.exporters.lowering.sizes import float_text
from burnbook.program.sizes import Dim

EXPRESSIONS = {
    "copy": "{x}",
    "relu": "or_nan({x}, max({x}, 0.0))",
    "sigmoid": "sigmoid({x})",
    "tanh": "squashed({x})",
    "gelu": "{x} * (0.5 + 0.5 * erf({x} * 0.70710678))",
    "silu": "{x} * sigmoid({x})",
    "exp": "exp({x})",
    "log": "log({x})",
    "log1p": "log1p({x})",
    "sqrt": "sqrt({x})",
    "sin": "sin({x})",
    "cos": "cos({x})",
    "tan": "tan({x})",
    "asin": "arcsine({x})",
    "acos": "1.5707963 - arcsine({x})",
    "atan": "or_nan({x}, atan({x}))",
    "sinh": "sinh({x})",
    "cosh": "cosh({x})",
    "asinh": "asinh({x})",
    "acosh": "acosh({x})",
    "atanh": "atanh({x})",
    "atan2": "angle({x}, {y})",
    "hypot": "length(vec2f({x}, {y}))",
    "abs": "abs({x})",
    "neg": "-({x})",
    "recip": "1.0 / {x}",
    "square": "{x} * {x}",
    "erf": "erf({x})",
    "floor": "floor({x})",
    "ceil": "ceil({x})",
    "trunc": "trunc({x})",
    "round": "round({x})",
    "sign": "sign({x})",
    "log_sigmoid": "-softplus(-({x}))",
    "mish": "{x} * squashed(softplus({x}))",
    "leaky_relu": "select({x} * {negative_slope}, {x}, {x} > 0.0)",
    "elu": "select({alpha} * (exp({x}) - 1.0), {x}, {x} > 0.0)",
    "softplus": "softplus({x} * {beta}) / {beta}",
    "add": "{x} + {y}",
    "sub": "{x} - {y}",
    "mul": "{x} * {y}",
    "div": "{x} / {y}",
    "powf": "power({x}, {y})",
    "half_power": "half_power({x})",
    "remainder": "remainder({x}, {y})",
    "fmod": "fmod({x}, {y})",
    "max_pair": "select({y}, {x}, !is_nan({y}) && (is_nan({x}) || {x} >= {y}))",
    "min_pair": "select({y}, {x}, !is_nan({y}) && (is_nan({x}) || {x} <= {y}))",
    "equal": "{x} == {y}",
    "not_equal": "{x} != {y}",
    "greater": "{x} > {y}",
    "greater_equal": "{x} >= {y}",
    "lower": "{x} < {y}",
    "lower_equal": "{x} <= {y}",
    "bool_and": "{x} && {y}",
    "bool_or": "{x} || {y}",
    "bool_xor": "{x} != {y}",
    "bool_not": "!({x})",
    "to_bool": "is_nan({x}) || {x} != 0.0",
    "is_nan": "is_nan({x})",
    "is_inf": "is_inf({x})",
    "is_finite": "!(is_nan({x}) || is_inf({x}))",
    "bitwise_and": "{x} & {y}",
    "bitwise_or": "{x} | {y}",
    "bitwise_xor": "{x} ^ {y}",
    "bitwise_not": "~({x})",
    "bitwise_left_shift": "{x} << u32({y})",
    "bitwise_right_shift": "{x} >> u32({y})",
    "where": "select({z}, {y}, {x})",
}
COMPARISONS = {
    *("equal", "not_equal", "greater", "greater_equal", "lower", "lower_equal"),
}
WHOLE = {  # of whole numbers
    "powf": "whole_power({x}, {y})",
    "remainder": "(({x} % {y}) + {y}) % {y}",
    "fmod": "{x} % {y}",
    "max_pair": "max({x}, {y})",
    "min_pair": "min({x}, {y})",
    "to_bool": "{x} != 0",
    "relu": "max({x}, 0)",
    "is_nan": "false",
}


def expression(line: Line, names: list[str]) -> str:
    """An op on named elements and numbers."""
    if line.op == "cast":
        return _cast(line, names[0])
    text = EXPRESSIONS[line.op]
    if line.takes == "i32":
        text = WHOLE.get(line.op, text)
    if line.takes == "bool" and line.op == "to_bool":
        text = "{x}"
    if line.op == "div" and line.takes == "f32" and _is_zero(line.args[1]):
        sign = math.copysign(1.0, line.args[1])
        return f"{names[0]} * {literal(sign * math.inf, 'f32')}"
    if line.op == "mul" and line.takes == "f32" and any(map(_is_zero, line.args)):
        return f"times_zero({names[0]}, {names[1]})"
    if line.op in COMPARISONS and line.takes == "f32":
        return _compared(line, text.format(x=names[0], y=names[1]), names)
    given = dict(zip("xyz", names, strict=False))
    attrs = {name: literal(value, line.takes) for name, value in line.attrs.items()}
    return text.format(**given, **attrs)


def _compared(line: Line, text: str, names: list[str]) -> str:
    """A comparison that knows of NaN, which compilers may take for a number."""
    pairs = zip(line.args, names, strict=True)
    lost = [
        f"is_nan({name})"
        for argument, name in pairs
        if not (isinstance(argument, NUMBERS) and argument == argument)
    ]
    if line.op == "not_equal":
        return " || ".join([*dict.fromkeys(lost), text])
    return " && ".join([*(f"!{one}" for one in dict.fromkeys(lost)), text])


def _is_zero(value: object) -> TypeGuard[float]:
    """Whether it is a literal 0, with which drivers do not reckon as one expects."""
    return isinstance(value, NUMBERS) and value == 0


def literal(value: Any, kind: str) -> str:
    """A number inside of an expression, in brackets where it is below zero.

    Example:
        >>> literal(0.1, "f32"), literal(-2, "i32"), literal(float("inf"), "f32")
        ('0.1', '(-2)', 'infinity()')
    """
    if isinstance(value, Dim) and kind != "f32":
        return f"{kind}({size(value)})"
    if isinstance(value, Dim):
        base = "f32(batch.n)"
        base += "" if value.scale == 1 else f" * {float(value.scale)}"
        base += f" + {float(value.offset)}" if value.offset else ""
        return float_text(value, base, literal(value.factor, kind), "sqrt")
    if kind == "bool":
        return "true" if value else "false"
    if kind == "i32":
        whole = int(value)
        if whole == -(1 << 31):
            return "(-2147483647 - 1)"
        return f"({whole})" if whole < 0 else str(whole)
    with np.errstate(over="ignore"):
        found = np.float32(value)
    if np.isnan(found):
        return "not_a_number()"
    if np.isinf(found):
        return "infinity()" if found > 0 else "(-infinity())"
    text = str(found)
    return f"({text})" if text.startswith("-") else text


def size(value: Any) -> str:
    """A size as WGSL: "49u", "(batch.n * 49u)"."""
    if not isinstance(value, Dim):
        whole = int(value)
        return f"{whole}u" if whole >= 0 else f"{whole & 0xFFFFFFFF}u"
    text = "batch.n" if value.scale == 1 else f"batch.n * {size(value.scale)}"
    if value.offset:
        text += f" {'+' if value.offset > 0 else '-'} {abs(value.offset)}u"
    return text if text == "batch.n" else f"({text})"


def _cast(line: Line, name: str) -> str:
    if line.takes == line.gives:
        return name
    if line.gives == "bool":
        table = WHOLE if line.takes == "i32" else EXPRESSIONS
        return table["to_bool"].format(x=name)
    return f"{line.gives}({name})"
