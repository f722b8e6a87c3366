"""Fewer steps for the same results, and what they cost."""

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from burnbook.core.formulas import Formula
from burnbook.core.op import BackwardOp
from burnbook.module.flops import flops
from burnbook.ops import reshape
from burnbook.program.sizes import Dim, leaves, mapped, resolved
from burnbook.program.values import Step, Value


def simplified(program: Any, constants: bool) -> Any:
    """A program without dead and double steps; see `Program.simplify`.

    A reshape to the shape that is there already goes as well.
    """
    swapped: dict[Value, Value] = {}
    arrays = dict(program.constants)
    seen: dict[Any, Step] = {}
    steps: list[Step] = []

    def swap(leaf: Any) -> Any:
        return swapped.get(leaf, leaf) if type(leaf) is Value else leaf

    for step in program.steps:
        inputs, attrs = mapped(step.inputs, swap), mapped(step.attrs, swap)
        step = replace(step, inputs=inputs, attrs=attrs)
        if constants and _is_constant(step, arrays):
            made = _folded(program, step, arrays)
            swapped |= {old: new for old, new, _ in made}
            arrays |= {new: array for _, new, array in made}
            continue
        if step.op is reshape and step.out.shape == getattr(inputs[0], "shape", None):
            swapped[step.out] = inputs[0]
            continue
        key = (step.op, _key(inputs), _key(attrs))
        same = seen.setdefault(key, step)
        if same is not step:
            pairs = zip(step.outputs, same.outputs, strict=True)
            swapped |= {a: b for a, b in pairs if a is not None and b is not None}
            continue
        steps.append(step)
    outputs = tuple([swap(value) for value in program.outputs])
    updates = tuple([(old, swap(new)) for old, new in program.updates])
    wanted, alive = {*outputs, *(old for old, _ in updates)}, list[Step]()
    for step in reversed(steps):
        if any(value in wanted for value in step.outputs):
            wanted.update(step.values)
            alive.append(step)
    return replace(
        program,
        steps=tuple(reversed(alive)),
        outputs=outputs,
        updates=updates,
        constants={value: held for value, held in arrays.items() if value in wanted},
    )


def _is_constant(step: Step, arrays: dict[Value, Any]) -> bool:
    """Whether a step depends on constants alone, and on no batch size."""
    found = [*leaves(step.inputs), *leaves(step.attrs)]
    known = all(type(v) not in (Dim, Formula) for v in found)
    return known and bool(step.values) and all(value in arrays for value in step.values)


def _folded(
    program: Any, step: Step, arrays: dict[Value, Any]
) -> list[tuple[Value, Value, Any]]:
    """The results of a step as constants: (the result, the constant, its array)."""

    def put(leaf: Any) -> Any:
        return arrays[leaf] if type(leaf) is Value else leaf

    out = program.backend.run(
        step.op, mapped(step.inputs, put), mapped(step.attrs, put)
    )
    outs = out if step.is_tuple else (out,)
    return [
        (value, replace(value, kind="constant"), array)
        for value, array in zip(step.outputs, outs, strict=True)
        if value is not None
    ]


def _key(value: Any) -> Any:
    """What tells equal inputs and attributes: two Values or arrays are never equal."""

    def told(leaf: Any) -> Any:
        if isinstance(leaf, (Value, np.ndarray)):
            return id(leaf)
        return type(leaf).__name__, repr(leaf)

    return repr(mapped(value, told))


def flops_of(step: Step, n: int) -> int:
    """The operations of a step with a batch of n."""
    op, out = step.op, resolved(step.out.shape, n)
    window = prod(step.attrs.get("kernel_size", (1,)))
    if not isinstance(op, BackwardOp):
        given = [value for value in leaves(step.inputs) if type(value) is Value]
        return flops(op.name, [value.shape_at(n) for value in given], out, window)
    held = dict(zip(op.inputs, step.inputs, strict=False))
    first = held.pop("g").shape_at(n)
    shapes: list[Any] = []
    for name in op.source.inputs:
        value = held.get(name, held.get(f"{name}_shape", first))
        shapes.append(value.shape_at(n) if type(value) is Value else resolved(value, n))
    shapes = [shape for shape in shapes if isinstance(shape, tuple)]
    return 2 * flops(op.source.name, shapes, first, window)
