"""Results and inputs of rank 0, which an imported model shows as one element.

Callers hold tensors of a dim at least, so an imported model begins with a reshape from
[1] to [] and ends with one from [] to [1]: in the lines of its forward that call
`from_tensors` and `to_tensors`. In a file both are what they were.
"""

from dataclasses import replace
from typing import Any

from burnbook.ops import reshape
from burnbook.program import Program, Step, Value, mapped


def with_rank_zero(program: Program) -> Program:
    """The same program with results and inputs of rank 0 where it has them inside."""
    makers = {step.out: step for step in program.steps if _is_shown(step)}
    ends = [makers[v].inputs[0] if v in makers else v for v in program.outputs]
    kept = len(program.results)
    outputs = (*ends[:kept], *program.outputs[kept:])
    uses = {v for step in program.steps for v in step.values} | set(outputs)
    steps = [s for s in program.steps if s.out not in makers or s.out in uses]
    changed: dict[Value, Value] = {}
    for value in program.inputs:
        users = [step for step in steps if value in step.values]
        if value in outputs or not users or not all(_is_taken(s) for s in users):
            continue
        changed[value] = replace(value, shape=())
        changed |= {step.out: changed[value] for step in users}
    if not changed and outputs == program.outputs:
        return program

    def put(leaf: Any) -> Any:
        return changed.get(leaf, leaf) if type(leaf) is Value else leaf

    steps = [
        replace(step, inputs=mapped(step.inputs, put), attrs=mapped(step.attrs, put))
        for step in steps
        if step.out not in changed
    ]
    inputs = tuple(map(put, program.inputs))
    outputs = tuple(map(put, outputs))
    return replace(program, inputs=inputs, steps=tuple(steps), outputs=outputs)


def _is_shown(step: Step) -> bool:
    """Whether a step makes a value of rank 0 one element for the caller."""
    return _changes(step, (), (1,), "ops.to_tensors(")


def _is_taken(step: Step) -> bool:
    """Whether a step makes one element of the caller a value of rank 0."""
    return _changes(step, (1,), (), "ops.from_tensors(")


def _changes(step: Step, before: object, after: object, within: str) -> bool:
    if step.op is not reshape or step.out.shape != after:
        return False
    is_from = getattr(step.inputs[0], "shape", None) == before
    return is_from and step.line is not None and within in step.line.text
