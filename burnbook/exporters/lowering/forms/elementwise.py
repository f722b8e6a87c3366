"""Ops that go through elements one by one: lines of chains."""

from __future__ import annotations

from typing import Any

import numpy as np

from burnbook.exporters.forms import narrows, refuse_narrower
from burnbook.exporters.lowering.calls import KINDS, Line, Made, View
from burnbook.exporters.lowering.lowering import Lowering, straight
from burnbook.exporters.lowering.registry import form
from burnbook.program import Step

ONE = (
    *("relu", "sigmoid", "tanh", "gelu", "silu", "exp", "log", "log1p", "sqrt", "sin"),
    *("cos", "tan", "abs", "neg", "recip", "square", "erf", "floor", "ceil", "round"),
    *(
        "trunc",
        "sign",
        "half_power",
        "log_sigmoid",
        "mish",
        "asin",
        "acos",
        "atan",
        "sinh",
        "cosh",
    ),
    *("asinh", "acosh", "atanh", "is_nan", "is_inf", "is_finite", "bool_not"),
    *("to_bool", "bitwise_not"),
)
TWO = (
    *("add", "sub", "mul", "div", "powf", "remainder", "fmod", "max_pair", "min_pair"),
    *("atan2", "hypot", "equal", "not_equal", "greater", "greater_equal", "lower"),
    *("lower_equal", "bool_and", "bool_or", "bool_xor", "bitwise_and", "bitwise_or"),
    *("bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"),
)


@form(*ONE, *TWO)
def plain_op(w: Lowering, step: Step) -> None:
    w.element(step)


@form("leaky_relu", "elu", "softplus")
def with_number(w: Lowering, step: Step, **attrs: Any) -> None:
    w.element(step, **attrs)


@form("clamp")
def clamp(w: Lowering, step: Step, *, min: Any, max: Any) -> None:
    kind = KINDS[step.out.dtype.kind]
    lines: list[Line] = []
    first: Any = step.inputs[0]
    if min is not None:
        lines.append(Line("max_pair", (first, min), kind, kind))
        first = Made(0)
    if max is not None:
        lines.append(Line("min_pair", (first, max), kind, kind))
    w.grow(step.out, lines or [Line("copy", (first,), kind, kind)])


@form("power")
def power(w: Lowering, step: Step, *, exponent: int) -> None:
    """Multiplied as burnbook does: by squares."""
    kind = KINDS[step.out.dtype.kind]
    lines: list[Line] = []
    factor: Any = step.inputs[0]
    out: Any = None
    while exponent:
        if exponent % 2 and out is None:
            out = factor
        elif exponent % 2:
            lines.append(Line("mul", (out, factor), kind, kind))
            out = Made(len(lines) - 1)
        exponent //= 2
        if exponent:
            lines.append(Line("mul", (factor, factor), kind, kind))
            factor = Made(len(lines) - 1)
    w.grow(step.out, lines or [Line("copy", (out,), kind, kind)])


@form("mask_where")
def mask_where(w: Lowering, step: Step) -> None:
    x, mask, values = step.inputs
    kind = KINDS[step.out.dtype.kind]
    w.grow(step.out, [Line("where", (mask, values, x), kind, kind)])


@form("mask_fill")
def mask_fill(w: Lowering, step: Step, *, value: float) -> None:
    x, mask = step.inputs
    kind = KINDS[step.out.dtype.kind]
    w.grow(step.out, [Line("where", (mask, value, x), kind, kind)])


@form("cast", "recast")
def cast(w: Lowering, step: Step, **attrs: Any) -> None:
    refuse_narrower(step, "rounds")
    if narrows(step) != "wraps":
        w.element(step, "cast")
        return
    x, out = step.inputs[0], step.out
    bits = 8 * out.dtype.itemsize
    steps: list[tuple[str, Any, int]] = [("bitwise_and", x, (1 << bits) - 1)]
    if out.dtype.kind == "i":
        steps = [
            ("bitwise_left_shift", x, 32 - bits),
            ("bitwise_right_shift", Made(0), 32 - bits),
        ]
    w.grow(out, [Line(op, (one, y), "i32", "i32") for op, one, y in steps])


@form("batch_norm_known")
def batch_norm(w: Lowering, step: Step, *, epsilon: float) -> None:
    """A straight line for each channel: (x − mean) γ / √(var + ε) + β."""
    x, *given = step.inputs
    line = (1, x.shape[1], *(1,) * (len(x.shape) - 2))
    known = [w.known(value) for value in given]
    if any(one is None for one in known):
        gamma, beta, mean, var = (straight(w.whole(value), line) for value in given)
        parts: list[tuple[str, tuple[Any, ...]]] = [
            ("sub", (x, mean)),
            ("mul", (Made(0), gamma)),
            ("add", (var, epsilon)),
            ("sqrt", (Made(2),)),
            ("div", (Made(1), Made(3))),
            ("add", (Made(4), beta)),
        ]
        w.grow(step.out, [Line(op, args, "f32", "f32") for op, args in parts])
        return
    gamma, beta, mean, var = (np.asarray(one, np.float64) for one in known)
    factor = gamma / np.sqrt(var + epsilon)
    views = [
        View.whole(w.array(np.asarray(array, np.float32), name), line)
        for array, name in ((factor, "factor"), (beta - mean * factor, "shift"))
    ]
    lines = [
        Line("mul", (x, views[0]), "f32", "f32"),
        Line("add", (Made(0), views[1]), "f32", "f32"),
    ]
    w.grow(step.out, lines)
