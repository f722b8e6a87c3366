"""The parts of a captured program: every constant, input and step, with its shapes.

A program has no values but those of its constants: the others come with each run.
"""

from __future__ import annotations

from typing import Any

from burnbook.core.errors import GraphError
from burnbook.program import Program, Step, Training, Value, mapped
from burnbook_widgets.autodiff.parts import MOST, Part, Parts, ProgramStep

NOTES = {
    "input": "input of the program",
    "parameter": "parameter",
    "buffer": "constant of the model",
    "constant": "constant",
    "state": "state that a step changes",
    "key": "key of random numbers",
}
EACH_RUN = "known in a run only"


def read_program(program: Program | Training) -> Parts:
    """The parts of a program; the steps in their order."""
    if isinstance(program, Training):
        program = program.program
    if len(program.steps) > MOST:
        what = f"the program has {len(program.steps):,} steps, more than {MOST:,}"
        raise GraphError("GraphView", what, cure="print(program)")
    number: dict[Value, int] = {}
    parts: list[Part] = []
    for value in (*program.inputs, *program.keys, *program.constants):
        if program.uses[value]:
            number[value] = len(parts)
            parts.append(_given(program, value))
    for step in program.steps:
        made = [value for value in step.outputs if value is not None]
        number |= dict.fromkeys(made, len(parts))
        parts.append(_ran(step, number))
    return Parts(parts, [])


def _given(program: Program, value: Value) -> Part:
    """An input, a key or a constant."""
    kind = "leaf" if value.kind in ("parameter", "state") else "data"
    shape, note = tuple(value.shape), NOTES[value.kind]
    part = Part(kind, None, value.name, shape, origin=EACH_RUN, note=note)
    if value in program.constants:
        part.value, part.origin = program.array(value), "the program holds it"
    return part


def _ran(step: Step, number: dict[Value, int]) -> Part:
    """A step with what it takes; several results are one part."""
    op = step.op
    named = {}
    for i, value in enumerate(step.inputs):
        named[value if type(value) is Value else i] = op.inputs[
            min(i, len(op.inputs) - 1)
        ]
    part = Part(
        "op",
        ProgramStep(op.name, op, mapped(step.attrs, _text)),
        step.out.name,
        tuple(step.out.shape),
        origin=EACH_RUN,
        path=step.path,
    )
    for value in step.values:
        part.inputs.append((named.get(value, "key"), number[value]))
    return part


def _text(leaf: Any) -> Any:
    """A key of random numbers by its name; everything else as it is."""
    return leaf.name if type(leaf) is Value else leaf
