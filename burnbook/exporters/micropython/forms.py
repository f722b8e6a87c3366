"""Which op becomes which call: one function for each form.

A form is handed the file that is written and the step, and adds its calls.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from burnbook.exporters.forms import refuse_narrower
from burnbook.exporters.micropython.registry import (
    BINARY,
    NEVER_ZERO,
    UNARY,
    NoForm,
    form,
    literal,
)
from burnbook.exporters.micropython.writer import Writer
from burnbook.program import Step, Value


@form(*UNARY)
def unary(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    w.unary(step, UNARY[step.op.name])


@form("leaky_relu")
def leaky_relu(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    w.unary(step, f"x * {literal(attrs['negative_slope'])} if x < 0 else x")


@form("elu")
def elu(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    w.unary(step, f"{literal(attrs['alpha'])} * (exp(x) - 1) if x <= 0 else x")


@form("softplus")
def softplus(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    b = literal(attrs["beta"])
    inner = f"max(x * {b}, 0) + log1p(exp(-abs(x * {b})))"
    w.unary(step, f"({inner}) / {b}")


@form("clamp")
def clamp(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    text = "x"
    if attrs["min"] is not None:
        text = f"max({text}, {literal(attrs['min'])})"
    if attrs["max"] is not None:
        text = f"min({text}, {literal(attrs['max'])})"
    w.unary(step, text)


@form("power")
def power(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    exponent = int(attrs["exponent"])
    fits = exponent <= 8  # floats of 32 bits to that power are floats of 64 bits
    w.unary(step, f"x ** {exponent}" if fits else f"power(x, {exponent})")


@form(*BINARY)
def binary(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    x, y = step.inputs
    name = step.op.name
    text = BINARY[name]
    if step.out.dtype.kind == "b":  # numbers are compared as 32 bits hold them
        x, y = (one if isinstance(one, Value) else np.float32(one) for one in (x, y))
    if name in NEVER_ZERO and not w.may_be_zero(y):
        text = NEVER_ZERO[name]
    if name == "div" and step.out.dtype.kind != "f":
        text = "int(x / y)"  # toward zero; by zero it is an error in burnbook too
    if not isinstance(x, Value):
        bound = re.sub(r"\bx\b", literal(x), text)
        w.unary(step, re.sub(r"\by\b", "x", bound), 1)
    elif not isinstance(y, Value):
        w.unary(step, re.sub(r"\by\b", literal(y), text))
    else:
        w.pairs(step, text)


@form("mask_fill")
def mask_fill(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    w.pairs(step, f"{literal(attrs['value'])} if y else x")


@form("cast", "recast")
def cast(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    """Files have floats alone: whole numbers are cut, and what is not zero is true."""
    refuse_narrower(step, "rounds", "wraps")
    before, after = step.inputs[0].dtype.kind, step.out.dtype.kind
    if after == "b" != before:
        w.unary(step, UNARY["to_bool"])
    elif before == "f" != after:
        w.unary(step, UNARY["trunc"])
    else:
        w.same(step)


@form("reshape")
def reshape(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    w.same(step)


@form("linear")
def linear(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    weight = step.inputs[1]
    inputs, outputs = w.shape(weight)
    rows = math.prod(w.shape(step.out)) // outputs
    bias = w.bias(step, outputs)
    if w.is_int8 and rows == 1:
        w.int8(step, weight, bias, (inputs, outputs), None)
        return
    x, out = w.floats(step.inputs[0]), w.result(step.out)
    held = w.constant(weight)
    w.call("linear", x, held, w.array(bias), out, rows, inputs, outputs)


@form("conv2d", "conv")
def conv(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    weight = step.inputs[1]
    rank = len(w.shape(weight)) - 2
    if rank > 2:
        raise NoForm("only images and lines are convolved")
    filters, each, *taps = w.shape(weight)
    plane = (_wide(w.shape(step.inputs[0])[2:]), _wide(w.shape(step.out)[2:]))
    channels = w.shape(step.inputs[0])[1]
    steps = [_wide(attrs[k], n) for k, n in (("stride", 1), ("padding", 0))]
    steps.append(_wide(attrs["dilation"], 1))
    size = (channels, *plane[0])
    sizes = (size, (each, *_wide(taps)), (filters, *plane[1]), *steps, attrs["groups"])
    bias = w.bias(step, filters)
    if w.is_int8:
        w.int8(step, weight, bias, (filters, each * math.prod(taps)), sizes)
        return
    x, out = w.floats(step.inputs[0]), w.result(step.out)
    w.call("conv", x, w.constant(weight), w.array(bias), out, sizes)


def _wide(sizes: Any, more: int = 1) -> tuple[int, ...]:
    """Sizes of an image; a line is an image of one row."""
    found = tuple(int(n) for n in sizes)
    return (more, *found) if len(found) == 1 else found


@form("max_pool2d", "max_pool")
def max_pool(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    if len(attrs["kernel_size"]) > 2:
        raise NoForm("only images and lines are pooled")
    channels, *size = w.shape(step.inputs[0])[1:]
    names = (("stride", 1), ("padding", 0), ("dilation", 1))
    steps = [_wide(attrs[name], n) for name, n in names]
    sizes = ((channels, *_wide(size)), _wide(attrs["kernel_size"]))
    stops = _wide(w.shape(step.out)[2:])
    x = w.as_it_is(step.inputs[0])
    w.call("max_pool", x, w.alike(step.inputs[0], step.out), (*sizes, stops, *steps))


@form("avg_pool2d", "avg_pool")
def avg_pool(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    if len(attrs["kernel_size"]) > 2:
        raise NoForm("only images and lines are pooled")
    counts = attrs["count_include_pad"]
    _, _, *size = w.shape(step.inputs[0])
    _, _, *stops = w.shape(step.out)
    windows = []
    for i, (n, m) in enumerate(zip(size, stops, strict=True)):
        taps, pad = attrs["kernel_size"][i], attrs["padding"][i]
        lines = []
        for k in range(m):
            start = k * attrs["stride"][i] - pad
            end = min(start + taps, n + pad)
            inside = max(start, 0), min(end, n)
            lines.append((*inside, end - start if counts else inside[1] - inside[0]))
        windows.append(tuple(lines))
    _average(w, step, size, windows)


@form("adaptive_avg_pool2d", "adaptive_avg_pool")
def adaptive_avg_pool(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    if len(attrs["output_size"]) > 2:
        raise NoForm("only images and lines are pooled")
    _, _, *size = w.shape(step.inputs[0])
    windows = []
    for n, m in zip(size, attrs["output_size"], strict=True):
        ends = [(i * n // m, -(-(i + 1) * n // m)) for i in range(m)]
        windows.append(tuple((a, b, b - a) for a, b in ends))
    _average(w, step, size, windows)


def _average(w: Writer, step: Step, size: list[int], windows: list[Any]) -> None:
    if len(size) == 1:
        size, windows = [1, *size], [((0, 1, 1),), *windows]
    channels = w.shape(step.inputs[0])[1]
    given = (channels, *size)
    ranges = w.table(tuple(windows), "WINDOWS")
    x, scale = w.any_scale(step.inputs[0])
    w.call("average", x, w.result(step.out), given, ranges, scale)


@form("softmax", "log_softmax")
def softmax(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    w.call(step.op.name, *_along(w, step, attrs["dim"]))


def _along(w: Writer, step: Step, dim: int) -> tuple[Any, ...]:
    shape = w.shape(step.out)
    dim %= len(shape)
    sizes = math.prod(shape[:dim]), shape[dim], math.prod(shape[dim + 1 :])
    return (w.floats(step.inputs[0]), w.result(step.out), *sizes)


@form("layer_norm")
def layer_norm(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    shape = w.shape(step.out)
    size = shape[-1]
    gamma, beta = (
        np.full(size, filled, np.float32)
        if len(step.inputs) <= i or step.inputs[i] is None
        else w.known(step.inputs[i])
        for i, filled in ((1, 1.0), (2, 0.0))
    )
    held = w.array(gamma, "gamma"), w.array(beta, "beta")
    x, out = w.floats(step.inputs[0]), w.result(step.out)
    rows = math.prod(shape) // size
    w.call("layer_norm", x, *held, out, rows, size, float(attrs["epsilon"]))


@form("batch_norm_known")
def batch_norm(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    """A straight line for each channel."""
    gamma, beta, mean, var = (w.known(v) for v in step.inputs[1:])
    factor = gamma / np.sqrt(var + attrs["epsilon"])
    shift = beta - mean * factor
    inner = math.prod(w.shape(step.out)[2:])
    count = len(factor)
    names = (w.array(v, n) for v, n in ((factor, "factor"), (shift, "shift")))
    x, out = w.floats(step.inputs[0]), w.result(step.out)
    whole = math.prod(w.shape(step.out))
    for name, text, given in zip(names, ("x * y", "x + y"), (x, out), strict=True):
        w.call("pairs", w.function(text), given, name, out, 1, whole, inner, count)


@form("embedding")
def embedding(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    weight, indices = step.inputs
    size = w.shape(weight)[1]
    held = w.constant(weight)
    w.call("embedding", held, w.floats(indices), w.result(step.out), size)


@form("lstm")
def lstm(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    if attrs["reverse"] or any(v is not None for v in step.inputs[4:]):
        raise NoForm("it runs backward, or starts with a state")
    steps, inputs = w.shape(step.inputs[0])[1:]
    size = w.shape(step.inputs[2])[0]
    bias = w.bias(step, 4 * size, 3)
    held = w.constant(step.inputs[1]), w.constant(step.inputs[2])
    state = w.scratch(4 * size), w.scratch(size)
    x, out = w.floats(step.inputs[0]), w.result(step.out)
    given = w.array(bias)
    w.call("lstm", x, *held, given, out, steps, inputs, size, state)


@form("permute")
def permute(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    shape = w.shape(step.inputs[0])
    order = [axis % len(shape) for axis in attrs["axes"]]
    _pick(w, step, [shape[i] for i in order], [_steps(shape)[i] for i in order], 0)


@form("swap_dims")
def swap_dims(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    shape = w.shape(step.inputs[0])
    order = [*range(len(shape))]
    a, b = attrs["dim1"], attrs["dim2"]
    order[a], order[b] = order[b], order[a]
    _pick(w, step, [shape[i] for i in order], [_steps(shape)[i] for i in order], 0)


@form("slice")
def slice_(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    shape = w.shape(step.inputs[0])
    steps, start = _steps(shape), 0
    for axis, part in enumerate(w.sized(attrs["index"])):
        first, _, pace = part.indices(shape[axis])
        start += first * steps[axis]
        steps[axis] *= pace
    _pick(w, step, [*w.shape(step.out)], steps, start)


@form("expand")
def expand(w: Writer, step: Step, attrs: dict[str, Any]) -> None:
    shape, out = w.shape(step.inputs[0]), w.shape(step.out)
    shape = (1,) * (len(out) - len(shape)) + shape
    pairs = zip(_steps(shape), shape, out, strict=True)
    steps = [0 if n == 1 < m else step_ for step_, n, m in pairs]
    _pick(w, step, [*out], steps, 0)


def _steps(shape: tuple[int, ...]) -> list[int]:
    return [math.prod(shape[i + 1 :]) for i in range(len(shape))]


def _pick(
    w: Writer, step: Step, sizes: list[int], steps: list[int], start: int
) -> None:
    x = w.as_it_is(step.inputs[0])
    out = w.alike(step.inputs[0], step.out)
    w.call("pick", x, out, tuple(sizes), tuple(steps), start)
