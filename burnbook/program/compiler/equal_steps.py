"""Steps that give the very same numbers as others, and cost less.

A tap of a convolution that meets nothing but padding adds zeros; images of one column
are lines; the largest of windows is the same before and after a function that rises; a
leaky unit whose slopes are below one is the larger of two.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from burnbook.core.op import OPS
from burnbook.program.compiler.fusion import attrs_of
from burnbook.program.values import Step, Value

POOLS = ("max_pool2d", "max_pool")
Constants = dict[Value, Any]


def with_equal_steps(
    steps: Sequence[Step], outputs: Iterable[Value], constants: Constants
) -> list[Step]:
    """The steps with cheaper ones for the same results."""
    found = with_pools_first(steps, outputs)
    makers = {step.out: step for step in found}
    kept: list[Step] = []
    for step in found:
        if step.op.name in ("conv2d", "conv"):
            kept += _as_line(_without_idle_taps(step, constants), constants)
        else:
            kept.append(_leaky(step, makers, constants) or step)
    return kept


def with_pools_first(steps: Sequence[Step], outputs: Iterable[Value]) -> list[Step]:
    """The steps with maxima of windows before leaky units that rise, not after them.

    Then fewer numbers go through the unit.
    """
    uses = Counter(value for step in steps for value in step.values)
    uses.update(outputs)
    units = {s.out: s for s in steps if s.op.name == "leaky_relu" and uses[s.out] == 1}
    kept: list[Step] = []
    gone: set[Value] = set()
    for step in steps:
        unit = units.get(step.inputs[0]) if step.op.name in POOLS else None
        is_one = step.outputs[1:] == (None,) * len(step.outputs[1:])
        if unit is None or not is_one or not attrs_of(unit)["negative_slope"] > 0:
            kept.append(step)
            continue
        out = step.out
        largest = replace(out, name=f"{out.name}.first")
        inputs, others = (unit.inputs[0], *step.inputs[1:]), step.outputs[1:]
        kept.append(replace(step, inputs=inputs, outputs=(largest, *others)))
        kept.append(replace(unit, inputs=(largest,), outputs=(out,)))
        gone.add(unit.out)
    return [step for step in kept if step.out not in gone]


def _without_idle_taps(conv: Step, constants: Constants) -> Step:
    """A convolution of fixed weights without taps that meet nothing but padding.

    As many go on each side, so that all else stays as it is.
    """
    x, held = conv.inputs[0], conv.inputs[1]
    weight = constants.get(held)
    if type(weight) is not np.ndarray or any(type(n) is not int for n in x.shape[2:]):
        return conv
    attrs = attrs_of(conv)
    padding, dilation = list(attrs["padding"]), attrs["dilation"]
    index: list[Any] = [slice(None), slice(None)]
    for d, (size, taps) in enumerate(zip(x.shape[2:], weight.shape[2:], strict=True)):
        sizes = size, taps, attrs["stride"][d], padding[d], dilation[d]
        cut = _idle(*sizes, conv.out.shape[2 + d])
        padding[d] -= cut * dilation[d]
        index.append(slice(cut, taps - cut))
    if tuple(padding) == tuple(attrs["padding"]):
        return conv
    array = np.ascontiguousarray(weight[tuple(index)])
    value = Value(f"{held.name}.met", "constant", array.dtype, array.shape)
    constants[value] = array
    inputs = (x, value, *conv.inputs[2:])
    return replace(conv, inputs=inputs, attrs={**attrs, "padding": tuple(padding)})


def _idle(
    size: int, taps: int, stride: int, padding: int, dilation: int, stops: Any
) -> int:
    """How many taps on either side meet nothing."""
    if type(stops) is not int or not stops:
        return 0
    places = np.arange(stops) * stride - padding
    meets = [((p := places + k * dilation) >= 0) & (p < size) for k in range(taps)]
    used = [k for k, where in enumerate(meets) if where.any()]
    if not used:
        return 0
    cut = min(used[0], taps - 1 - used[-1])
    return min(cut, padding // dilation)


def _as_line(conv: Step, constants: Constants) -> list[Step]:
    """A convolution of images with one column as one of images with one line.

    They are the same numbers in a row, and kernels go along lines.
    """
    x, weight = conv.inputs[0], conv.inputs[1]
    attrs = attrs_of(conv)
    is_column = (
        conv.op.name == "conv2d"
        and type(weight) is Value
        and (x.shape[3] == weight.shape[3] == conv.out.shape[3] == 1)
    )
    array = constants.get(weight)
    if not is_column or attrs["padding"][1] or x.shape[2] == 1 or weight.shape[2] == 1:
        return [conv]
    if type(array) is not np.ndarray:
        return [conv]
    turned = np.ascontiguousarray(array.swapaxes(2, 3))
    line = Value(f"{weight.name}.line", "constant", array.dtype, turned.shape)
    constants[line] = turned
    for name in ("stride", "padding", "dilation"):
        attrs[name] = tuple(attrs[name])[::-1]
    before, after = (_turned(value) for value in (x, conv.out))
    inputs = (before, line, *conv.inputs[2:])
    return [
        _reshaped(x, before, conv),
        replace(conv, inputs=inputs, attrs=attrs, outputs=(after,)),
        _reshaped(after, conv.out, conv),
    ]


def _turned(value: Value) -> Value:
    n, c, size, one = value.shape
    name = f"{value.name}.line"
    return replace(value, name=name, kind="result", shape=(n, c, one, size))


def _reshaped(value: Value, to: Value, like: Step) -> Step:
    op: Any = OPS["reshape"]
    return Step(op, (value,), {"shape": to.shape}, (to,), like.path, like.line)


def _leaky(step: Step, makers: dict[Value, Step], constants: Constants) -> Step | None:
    """A leaky unit with a slope for each channel as the larger of two; None otherwise.

    Files have it as a choice: x · slope where x < 0, else x.
    """
    if step.op.name != "mask_where":
        return None
    x, mask, values = step.inputs
    below, product = makers.get(mask), makers.get(values)
    if below is None or product is None or step.out.shape != x.shape:
        return None
    if below.op.name != "lower" or below.inputs[0] is not x:
        return None
    if product.op.name != "mul" or x not in product.inputs or x.dtype.kind != "f":
        return None
    other = product.inputs[1 - product.inputs.index(x)]
    zero, slope = _array(below.inputs[1], constants), _array(other, constants)
    if zero is None or slope is None or np.any(zero):
        return None
    if values.shape != x.shape or not np.all((slope > 0) & (slope <= 1)):
        return None
    op: Any = OPS["max_pair"]
    return Step(op, (x, values), {}, step.outputs, step.path, step.line)


def _array(value: Any, constants: Constants) -> Any:
    """A number or a constant as an array."""
    if type(value) is Value:
        return constants.get(value)
    return np.asarray(value) if type(value) in (int, float) else None
