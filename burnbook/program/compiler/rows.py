"""Rows of elementwise steps of a plan, each as one loop of machine code.

Steps in a row that work element by element on arrays of one shape become one loop
(loops.py), which writes only what is read after it. It takes about a second to compile
such a loop for the first time, so that is done once a plan has spent so much on a row
that it pays. Loops whose machine code is kept from before are used at once.
"""

import math
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from burnbook.backend.base import Backend
from burnbook.core.formulas import Formula
from burnbook.program.compiler.bound import Bound, leaves_of
from burnbook.program.compiler.loops import MOST, Loop, can_compile, expressions
from burnbook.program.sizes import Dim, at
from burnbook.program.values import Step, Value

LONGEST = 32  # steps of a row: compiling takes longer the more there are
WORTH = 0.5  # seconds in rows after which they are compiled: what that takes
Arrays = dict[Value, Any]


class Planned(Protocol):
    """What of a plan is asked here; plan.py tells what it is."""

    what: Any
    n: int | None
    backend: Backend
    roots: dict[Value, Value]
    arrays: Arrays
    bounds: dict[int, Bound]
    regions: list[Any]

    def last_uses(self) -> dict[Value, int]:
        """The step that uses each place last."""
        ...


class Rows:
    """The rows of a plan: numbers of steps.

    cost: seconds that those which are no loops yet take in a run.
    """

    def __init__(self, plan: Planned):
        self.found = _rows_of(plan) if can_compile(plan.backend) else []
        made = {row[0]: _loop_of(plan, row) for row in self.found}
        self._loops = {first: loop for first, loop in made.items() if loop.is_kept}
        self.cost = sum(
            len(row) * (0.3e-6 + _size(plan, row[0]) * 0.1e-9)
            for row in self.found
            if row[0] not in self._loops
        )

    def compile(self, plan: Planned) -> None:
        """Make a loop of each row; of none, where one cannot be made."""
        self._loops = {row[0]: _loop_of(plan, row) for row in self.found}

    def joined(
        self, arrays: Arrays, bounds: dict[int, Bound]
    ) -> tuple[dict[int, Bound], dict[int, list[int]]]:
        """Bounds with those of rows that have become loops as one, and these rows by
        their first step."""
        kept, rows = dict(bounds), dict[int, list[int]]()
        for row in self.found:
            loop = self._loops.get(row[0])
            if loop is not None:
                for i in row:
                    del kept[i]
                kept[row[0]], rows[row[0]] = _bound(loop, row, arrays, bounds), row
        return dict(sorted(kept.items())), rows


def _size(plan: Planned, i: int) -> int:
    return math.prod(plan.what.steps[i].out.shape_at(plan.n))


def _rows_of(plan: Planned) -> list[list[int]]:
    """Steps in a row, of one region, that one loop can compute."""
    found: list[list[int]] = []
    for region in plan.regions:
        row: list[int] = []
        for i in region.numbers:
            is_plain = _is_plain(plan, i)
            if row and not (is_plain and _goes_on(plan, row, i)):
                found.append(row)
                row = []
            if is_plain:
                row.append(i)
        found.append(row)
    return [row for row in found if len(row) > 1 and _is_apart(plan, row)]


def _goes_on(plan: Planned, row: Sequence[int], i: int) -> bool:
    """Whether a step may be in one loop with those before it.

    What it reads of them is a number of the loop, and not yet in memory, where a view
    would look for it.
    """
    steps, roots = plan.what.steps, plan.roots
    if len(row) >= LONGEST or not _are_alike(plan, row[-1], i):
        return False
    if _taken([steps[k] for k in (*row, i)]) > MOST:
        return False
    made = {v for k in row for v in steps[k].outputs if v is not None}
    written = {roots[v] for v in made}
    return all(v in made or roots.get(v) not in written for v in steps[i].values)


def _taken(steps: Sequence[Step]) -> int:
    """How many arrays and numbers steps in a row take."""
    made = {v for step in steps for v in step.outputs}
    arrays = {v for step in steps for v in step.values} - made
    numbers = sum(type(v) is not Value for step in steps for v in step.inputs)
    return len(arrays) + numbers + sum(len(step.attrs) for step in steps)


def _are_alike(plan: Planned, i: int, j: int) -> bool:
    steps = plan.what.steps
    return steps[i].out.shape_at(plan.n) == steps[j].out.shape_at(plan.n)


def _is_plain(plan: Planned, i: int) -> bool:
    """Whether a step is one expression of elements, of arrays as long as its result."""
    step, bound = plan.what.steps[i], plan.bounds[i]
    outs = [v for v in step.outputs if v is not None]
    size = _size(plan, i)
    if bound.part is None or bound.units != size or bound.before or bound.after:
        return False
    if any(type(leaf) is Formula for leaf in leaves_of((step.inputs, step.attrs))):
        return False
    if any(type(v) is tuple for v in step.inputs) or expressions(step) is None:
        return False
    shape = step.out.shape_at(plan.n)
    arrays = [plan.arrays.get(v) for v in (*step.values, *outs)]
    return all(
        isinstance(a, np.ndarray)
        and a.flags.c_contiguous
        and a.flags.writeable
        and (a.shape == shape or a.size == 1)
        for a in arrays
    )


def _is_apart(plan: Planned, row: Sequence[int]) -> bool:
    """Whether arrays of a row are the same memory, or apart."""
    steps = [plan.what.steps[i] for i in row]
    values = {v for s in steps for v in (*s.values, *s.outputs) if v is not None}
    written = {v for s in steps for v in s.outputs if v is not None}
    for one in written:
        for other in values:
            a, b = plan.arrays[one], plan.arrays[other]
            same = a.ctypes.data == b.ctypes.data and a.size == b.size
            if not same and np.may_share_memory(a, b):
                return False
    return True


def _loop_of(plan: Planned, row: Sequence[int]) -> Loop:
    def put(value: Any) -> Any:
        return at(value, plan.n) if type(value) is Dim else value

    steps = [plan.what.steps[i] for i in row]
    last = plan.last_uses()
    newest = {plan.roots[v]: v for s in steps for v in s.outputs if v is not None}
    outs = [v for root, v in newest.items() if last[root] > row[-1]]
    values = {v for s in steps for v in (*s.values, *s.outputs) if v is not None}
    size = _size(plan, row[0])
    whole = {v for v in values if plan.arrays[v].size < size}
    steps = [
        Step(
            s.op,
            tuple(map(put, s.inputs)),
            {name: put(v) for name, v in s.attrs.items()},
            s.outputs,
            is_tuple=s.is_tuple,
        )
        for s in steps
    ]
    return Loop(steps, outs, row[-1], whole, {v: plan.roots.get(v, v) for v in values})


def _bound(
    loop: Loop, row: Sequence[int], arrays: Arrays, bounds: dict[int, Bound]
) -> Bound:
    """A row on these arrays."""
    flat = [(arrays[v].reshape(-1), v in loop.whole) for v in loop.reads]
    outs = [arrays[v].reshape(-1) for v in loop.passed]
    kernel, size = loop.kernel, arrays[loop.outs[0]].size
    numbers = [float(number) for number in loop.numbers]

    def part(start: int, stop: int) -> None:
        kernel(
            *[a if is_whole else a[start:stop] for a, is_whole in flat],
            *numbers,
            *[out[start:stop] for out in outs],
        )

    run = partial(kernel, *[a for a, _ in flat], *numbers, *outs)
    cost = sum(bounds[i].cost for i in row) / 2
    stretched = tuple(range(len(flat)))
    return Bound(run, size, part, cost, "one loop", stretched)
