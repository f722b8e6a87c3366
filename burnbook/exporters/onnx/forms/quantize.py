"""Quantized weights: codes and scales, as QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

import numpy as np

from burnbook.exporters.onnx.forms.registry import NoForm, form
from burnbook.exporters.onnx.writer import Name, Writer
from burnbook.ops.quantize import CODE_TYPES
from burnbook.program import Step


@form("from_codes")
def from_codes(
    w: Writer, step: Step, codes: Name, scale: Name, offset: Name = "", *, value: str
) -> Name:
    """One scale for all, or one for each place of a dim; blocks need opset 21."""
    if CODE_TYPES[value].exponent:
        raise NoForm(f"codes of {value} are floats of a few bits")
    held, scales = w.array(codes), w.array(scale)
    shift = w.array(offset) if offset else np.zeros(1)
    wide = [] if scales is None else [i for i, n in enumerate(scales.shape) if n > 1]
    if held is None or scales is None or shift is None or len(wide) > 1:
        return _by_formula(w, step, codes, scale, offset)
    axis = {"axis": wide[0]} if wide else {}
    flat = scales.reshape(-1) if wide else scales.reshape(())
    zero = ""
    if offset:
        zeros = np.broadcast_to(shift, scales.shape).reshape(flat.shape)
        zero = w.constant(zeros.astype(np.int8), "zero_point")
    narrow = w.constant(held.astype(np.int8), f"{codes}.codes")
    factor = w.constant(flat, f"{codes}.scale")
    return w.node("DequantizeLinear", narrow, factor, zero, **axis)


def _by_formula(w: Writer, step: Step, codes: Name, scale: Name, offset: Name) -> Name:
    dtype = step.out.dtype
    numbers = w.cast(codes, dtype)
    if offset:
        numbers = w.node("Sub", numbers, w.cast(offset, dtype))
    return w.node("Mul", numbers, scale)


@form("to_codes")
def to_codes(
    w: Writer, step: Step, x: Name, scale: Name, offset: Name = "", *, value: str
) -> Name:
    """By its formula, since QuantizeLinear rounds halves to even."""
    kind, dtype = CODE_TYPES[value], step.inputs[0].dtype
    if kind.exponent:
        raise NoForm(f"codes of {value} are floats of a few bits")
    ratio = w.node("Div", x, scale)
    if offset:
        ratio = w.node("Add", ratio, w.cast(offset, dtype))
    below = np.nextafter(dtype.type(0.5), dtype.type(0))
    half = w.node("Mul", w.node("Sign", ratio), w.constant(below))
    moved = w.node("Add", ratio, half)
    zero = w.constant(np.zeros((), dtype))
    cut = w.node(
        "Where",
        w.node("Less", moved, zero),
        w.node("Ceil", moved),
        w.node("Floor", moved),
    )
    ends = (w.constant(np.asarray(n, dtype)) for n in (kind.low, kind.high))
    return w.cast(w.node("Clip", cut, *ends), np.int8)
