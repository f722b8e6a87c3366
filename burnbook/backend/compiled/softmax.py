"""Softmax along the last dim, row by row in the first cache.

Measured by the family softmax, of tests/bench.
"""

import math
from functools import partial
from typing import Any

from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import f32, kernel_code, part
from burnbook.backend.compiled.runtime.registry import kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.compiled.runtime.vector_rows import (
    exp_and_sum,
    exp_below,
    largest,
)
from burnbook.ops.softmax import log_softmax, softmax

GRAIN = 1 << 16  # elements of a part; less is done before a second thread wakes


@part
def shift(x, by, out):
    """out = x − by."""
    for c in range(x.size):
        out[c] = x[c] - by


@kernel_code("void(f4[:,::1], f4[:,::1], i8, i8)")
def softmax_rows(x, out, start, stop):
    for i in range(start, stop):
        row = out[i]
        shift(x[i], f32(0), row)
        share = f32(1) / exp_and_sum(row, largest(row))
        for c in range(row.size):
            row[c] *= share


@kernel_code("void(f4[:,::1], f4[:,::1], i8, i8)")
def log_rows(x, out, start, stop):
    for i in range(start, stop):
        row, total = out[i], f32(0)
        shift(x[i], largest(x[i]), row)
        for c in range(row.size):
            total += exp_below(row[c])
        rest = f32(math.log(total))
        for c in range(row.size):
            row[c] -= rest


@kernel_code("void(f4[:,::1], f4[:,::1], f4[:,::1], i8, i8)")
def softmax_rows_back(g, y, out, start, stop):
    """out = y (g − Σ g y)."""
    for i in range(start, stop):
        slope, share, row = g[i], y[i], out[i]
        along = f32(0)
        for c in range(row.size):
            along += slope[c] * share[c]
        for c in range(row.size):
            row[c] = share[c] * (slope[c] - along)


@kernel_code("void(f4[:,::1], f4[:,::1], f4[:,::1], i8, i8)")
def log_rows_back(g, y, out, start, stop):
    """out = g − exp(y) Σ g."""
    for i in range(start, stop):
        slope, logs, row = g[i], y[i], out[i]
        total = f32(0)
        for c in range(row.size):
            total += slope[c]
        for c in range(row.size):
            row[c] = slope[c] - exp_below(logs[c]) * total


def by_rows(code: Any, *arrays: Any, dim: int) -> Any:
    """Run a kernel on the rows of arrays of one shape; None where it does not serve."""
    first = arrays[0]
    if dim not in (-1, first.ndim - 1) or not first.size:
        return None
    if not all(map(plain_f32, arrays)):
        return None
    out, d = empty(first.shape), first.shape[-1]
    rows = [a.reshape(-1, d) for a in (*arrays, out)]
    threads.run(code, tuple(rows), len(rows[0]), max(GRAIN // d, 1))
    return out


def slopes_by_rows(code: Any, g: Any, y: Any, *, needs: Any, dim: int) -> Any:
    """The same for a gradient."""
    made = by_rows(code, g, y, dim=dim)
    return None if made is None else (made,)


for _op, _rows, _rows_back in (
    (softmax, softmax_rows, softmax_rows_back),
    (log_softmax, log_rows, log_rows_back),
):
    kernel(_op)(partial(by_rows, _rows))
    kernel(_op.backward)(partial(slopes_by_rows, _rows_back))
