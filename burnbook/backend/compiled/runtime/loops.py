"""Many small loops in one compiled function.

Most of what numba takes to compile a loop it takes for the function around it. So the
functions of one shape (one input; a gradient and an input; …) become one compiled
function that is told by a number which of its loops to run:

    def loops(code, x, out, start, stop):
        x, out = x[start:stop], out[start:stop]
        if code == 0:
            for i in range(out.size):
                out[i] = f0(x[i])
        elif code == 1:
            …

Functions of two tensors run on tables of rows. A row that stands for all is taken again
for each; a single number that stands for a row is written out in a short line, which
stays in the nearest cache. So there is one loop for each op, whatever stretches.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import kernel_with
from burnbook.backend.compiled.runtime.registry import flat
from burnbook.backend.compiled.runtime.thread_pool import ALONE, threads
from burnbook.backend.compiled.runtime.vector_math import FLAGS
from burnbook.backend.compiled.shape import stretched

Function = Callable[..., Any]
Shape = tuple[int, ...]
GRAIN = 1 << 16  # elements of a part
LINE = 4096  # elements of a row, where nothing stretches
SHORTEST = 16  # elements of a row that is worth a loop

ROWS = """
def {name}(code, xs, ys, outs, start, stop):
    one_x, one_y = xs.shape[0] == 1, ys.shape[0] == 1
    if ys.shape[1] == outs.shape[1]:
        for i in range(start, stop):
            x, y, out = xs[0 if one_x else i], ys[0 if one_y else i], outs[i]
{rows}
    else:
        for i in range(start, stop):
            x, out = xs[0 if one_x else i], outs[i]
            number = ys[0 if one_y else i, 0]
{numbers}
"""


def compile_loops(
    file: str, name: str, functions: list[Function], inputs: int, numbers: int = 0
) -> Any:
    """One function with a loop for each of some functions of float32 numbers.

    inputs: how many arrays they take; numbers: how many more arguments that stay the
    same. file and name tell where the code is kept.
    """
    arrays = [f"x{i}" for i in range(inputs)]
    extras = [f"a{i}" for i in range(numbers)]
    parts = ", ".join([*arrays, "out"])
    cuts = ", ".join(f"{v}[start:stop]" for v in [*arrays, "out"])
    call = ", ".join([*(f"{v}[j]" for v in arrays), *extras])
    lines = [f"def {name}(code, {', '.join([parts, *extras])}, start, stop):"]
    lines += [f"    {parts} = {cuts}"]
    lines += _branches(
        "    ", [f"out[j] = f{i}({call})" for i in range(len(functions))]
    )
    types = ["i8", *["f4[::1]"] * (inputs + 1), *["f4"] * numbers, "i8", "i8"]
    return _compiled(
        file, name, "\n".join(lines), functions, f"void({', '.join(types)})"
    )


def compile_rows(
    file: str, name: str, functions: list[Function], dtype: str, whole: bool = False
) -> Any:
    """The same for functions of two numbers, on tables of rows.

    whole: the functions take whole rows instead, x, y and where the result goes.
    """
    form = "f{i}(x, {row}, out)" if whole else "out[j] = f{i}(x[j], {number})"
    both = (("rows", "y[j]", "y"), ("numbers", "number", "full(x.size, number)"))
    branches = {
        case: "\n".join(
            _branches(
                " " * 12,
                [
                    form.format(i=i, number=number, row=row)
                    for i in range(len(functions))
                ],
            )
        )
        for case, number, row in both
    }
    text = ROWS.format(name=name, **branches)
    signature = f"void(i8, {f'{dtype}[:,::1], ' * 3}i8, i8)"
    return _compiled(file, name, text, functions, signature)


def _branches(indent: str, calls: list[str]) -> list[str]:
    lines: list[str] = []
    for i, call in enumerate(calls):
        lines += [f"{indent}{'el' if i else ''}if code == {i}:"]
        if call.startswith("out"):
            lines += [
                f"{indent}    for j in range(out.size):",
                f"{indent}        {call}",
            ]
        else:
            lines += [f"{indent}    {call}"]
    return lines


def _compiled(
    file: str,
    name: str,
    text: str,
    functions: list[Function],
    signature: str,
) -> Any:
    scope: dict[str, Any] = {f"f{i}": f for i, f in enumerate(functions)}
    scope |= {"__name__": __name__, "full": np.full}
    exec(compile(text, file, "exec"), scope)
    return kernel_with(signature, **FLAGS)(scope[name])


def run_loop(
    loops: Any,
    code: int,
    arrays: tuple[Any, ...],
    *numbers: Any,
    alone: int = ALONE,
) -> Any:
    """Run one of the loops over whole arrays, in parts where there are enough.

    alone: bytes of an array below which one thread does it.
    """
    out = empty(arrays[0].shape)
    size = out.size
    if out.nbytes >= alone:
        args = (code, *map(flat, arrays), flat(out), *numbers)
        threads.run(loops, args, size, GRAIN)
    elif len(arrays) == 1:
        loops(code, flat(arrays[0]), flat(out), *numbers, 0, size)
    else:
        loops(code, *map(flat, arrays), flat(out), *numbers, 0, size)
    return out


def run_rows(
    loops: Any, code: Any, *arrays: Any, head_start: int = 0, alone: int = ALONE
) -> Any:
    """Run one of the loops over rows; None where the shapes are no table of rows.

    A number is an array with one element. head_start: as the pool has it, in elements.
    alone: bytes of the result below which one thread does it.
    """
    table = layout(*[v.shape for v in arrays])
    if table is None:
        return None
    shape, rows, length, sizes, rest = table
    if sizes[0][1] < length:  # the loops know of numbers in the second place only
        arrays = (stretched(arrays[0], shape), *arrays[1:])
        return run_rows(loops, code, *arrays, head_start=head_start, alone=alone)
    out = empty(shape, arrays[-1].dtype)
    if rest:
        lines = [flat(v) for v in (*arrays, out)]
        ends = [v[None] if v.size == 1 else v[None, -rest:] for v in lines]
        loops(code, *ends, 0, 1)
        if not rows:
            return out
        lines = [v if v.size == 1 else v[:-rest] for v in lines]
    else:
        lines = [*arrays, out]
    tables = [v.reshape(size) for v, size in zip(lines, sizes, strict=True)]
    if out.nbytes < alone:
        loops(code, *tables, 0, rows)
    else:
        grain = max(1, GRAIN // length)
        threads.run(loops, (code, *tables), rows, grain, head_start // length)
    return out


Layout = tuple[Shape, int, int, list[Shape], int]


@lru_cache(maxsize=1024)
def layout(*shapes: Shape) -> Layout | None:
    """How shapes become tables: the shape of the result, its rows and their length, the
    size of every table, and how many elements at the end are no whole row.
    """
    shape = np.broadcast_shapes(*shapes)
    if all(one == shape or math.prod(one) == 1 for one in shapes):
        rows, rest = divmod(math.prod(shape), LINE)
        sizes = [(rows, LINE) if one == shape else (1, 1) for one in (*shapes, shape)]
        return shape, rows, LINE, sizes, rest
    for cut in range(1, len(shape)):
        length = math.prod(shape[cut:])
        if length >= SHORTEST and all(
            part == full or set(part) == {1}
            for one in shapes
            for part, full in ((one[:cut], shape[:cut]), (one[cut:], shape[cut:]))
        ):
            tables = (*shapes, shape)
            sizes = [(math.prod(v[:cut]), math.prod(v[cut:])) for v in tables]
            return shape, math.prod(shape[:cut]), length, sizes, 0
    return None
