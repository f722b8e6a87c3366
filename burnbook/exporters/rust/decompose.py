"""Operations that Burn has as a layer alone, as those that it has for tensors."""

from dataclasses import replace
from typing import Any

import numpy as np

from burnbook.ops import interpolate, matmul, swap_dims
from burnbook.ops.interpolate import tables
from burnbook.program import Dim, Program, Step, Value


def with_products(program: Program) -> Program:
    """The same program with each linear mix of pixels as a product along each dim.

    Other mixes are of layers alone, and those that Burn lacks are named as layers. A
    size that follows the batch stays as it is, and is refused later.

    Example:
        >>> from burnbook.program import capture
        >>> from burnbook.tensor import Tensor
        >>> from burnbook.tensor.methods import apply
        >>> how = {"output_size": (2,), "mode": "linear", "align_corners": True}
        >>> def wider(x):
        ...     return apply(interpolate, x, **how)
        >>> program = capture(wider, Tensor.ones([2, 1, 3]))
        >>> [step.op.name for step in with_products(program).steps]
        ['matmul']
    """
    if not any(step.op is interpolate for step in program.steps):
        return program
    made = _Products(program)
    steps = [new for step in program.steps for new in made.of(step)]
    return replace(program, steps=tuple(steps), constants=made.constants)


class _Products:
    """The steps of one program, with the matrices that they take."""

    def __init__(self, program: Program):
        self.backend = program.backend
        self.constants = dict(program.constants)
        self.names = {value.name for value in program.values}

    def of(self, step: Step) -> list[Step]:
        """The steps in the place of one."""
        x = step.inputs[0]
        if step.op is not interpolate or any(type(n) is Dim for n in x.shape[2:]):
            return [step]
        size, corners = step.attrs["output_size"], step.attrs["align_corners"]
        if step.attrs["mode"] != "linear" or any(type(n) is Dim for n in size):
            return [step]
        taps = tables(x.shape[2:], size, step.attrs["mode"], corners)
        steps: list[Step] = []
        for dim, table in enumerate(taps, 2):
            if table.changes_nothing:
                continue
            matrix = np.zeros((table.size_in, table.size))
            np.add.at(matrix, (table.places, table.rows), table.weights)
            x = self._product(steps, step, x, matrix, dim)
        if not steps:
            return [step]
        steps[-1] = replace(steps[-1], outputs=(step.out,))
        return steps

    def _product(
        self, steps: list[Step], step: Step, x: Value, matrix: Any, dim: int
    ) -> Value:
        """A matrix times one dim of a value, which is moved to the end and back."""
        last = len(x.shape) - 1
        turn = {"dim1": dim, "dim2": last}
        shaped = matrix.reshape((1,) * (last - 1) + matrix.shape)
        array = shaped.astype(x.dtype)
        weight = self._value(f"{step.out.name}_matrix", array.shape, x, "constant")
        self.constants[weight] = self.backend.from_numpy(array)
        given = x
        if dim < last:
            given = self._add(steps, step, swap_dims, (x,), turn, _swapped(x, turn))
        wide = (*given.shape[:-1], matrix.shape[1])
        made = self._add(steps, step, matmul, (given, weight), {}, wide)
        if dim < last:
            made = self._add(
                steps, step, swap_dims, (made,), turn, _swapped(made, turn)
            )
        return made

    def _add(
        self,
        steps: list[Step],
        step: Step,
        op: Any,
        inputs: Any,
        attrs: Any,
        shape: Any,
    ) -> Value:
        out = self._value(f"{step.out.name}_{op.name}", shape, step.out, "result")
        steps.append(replace(step, op=op, inputs=inputs, attrs=attrs, outputs=(out,)))
        return out

    def _value(self, name: str, shape: Any, like: Value, kind: str) -> Value:
        word, k = name, 2
        while word in self.names:
            word, k = f"{name}_{k}", k + 1
        self.names.add(word)
        return Value(word, kind, like.dtype, tuple(shape))


def _swapped(x: Value, turn: dict[str, int]) -> list[Any]:
    shape = [*x.shape]
    a, b = turn.values()
    shape[a], shape[b] = shape[b], shape[a]
    return shape
