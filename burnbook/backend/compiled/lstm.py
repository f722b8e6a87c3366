"""Whole sequences of lstm, sixteen at a time.

No sequence needs another one, so each thread carries its own from the first step to the
last without waiting for anybody. Per step a thread reads the recurrent weight once from
the second cache, as panels (runtime/gemm.py); states and sums stay in the first.

Measured by W4 and the family lstm, of tests/bench.
"""

import numpy as np

from burnbook.backend.compiled.recurrent import (
    BLOCKS,
    GROUP,
    LEAST,
    LINE,
    ONE,
    ROWS,
    add_vectors,
    copy,
    served,
    sigmoids,
    tanhs,
    tanhs_in_place,
    zeros_for,
)
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.gemm import (
    ROWS as ROWS_OF_TILE,
    WIDTH,
    lay_panels,
    lay_transposed,
    multiply,
    whole,
)
from burnbook.backend.compiled.runtime.jit import f32, kernel_code, part
from burnbook.backend.compiled.runtime.registry import kernel
from burnbook.backend.compiled.runtime.simd import LANES, broadcast, load, store
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.products import dot, xp
from burnbook.ops.lstm import lstm
from burnbook.ops.recurrent import from_gates, rows_of


@part
def lstm_cell(z, c, h):
    """Gates from z, in place; then the memory and the state of one sequence."""
    n = c.size
    sigmoids(z[: 3 * n])
    new = z[3 * n :]
    tanhs_in_place(new)
    i, f, o = z[:n], z[n : 2 * n], z[2 * n : 3 * n]
    for j in range(n):
        c[j] = f[j] * c[j] + i[j] * new[j]
    tanhs(c, h)
    for j in range(n):
        h[j] *= o[j]


@part
def lstm_steps(panels, sources, results, bias, states, first, rows, reverse):
    """All steps of a group of sequences, from `first` on; states: h, c and room for z.

    A part, which does not count references to the rows of what its caller has made.
    """
    gates, cell, hidden = sources
    cells, out = results
    h, c, z = states
    count, steps, n = cells.shape
    for r in range(rows):
        copy(h[r], hidden[first + r])
        copy(c[r], cell[first + r])
    for k in range(steps):
        t = steps - 1 - k if reverse else k
        for r in range(rows):
            add_vectors(z[r, : 4 * n], gates[first + r, t], bias)
        multiply(h, False, panels, n, n, z, z.shape[1], True)
        for r in range(rows):
            lstm_cell(z[r, : 4 * n], c[r], h[r])
            copy(gates[first + r, t], z[r, : 4 * n])
            copy(cells[first + r, t], c[r])
            copy(out[(first + r) * steps + t], h[r])
    for r in range(rows):
        copy(out[count * steps + first + r], c[r])


@kernel_code(f"void({BLOCKS}{ROWS}{LINE}{ROWS * 2}{BLOCKS}{ROWS}b1, i8, i8)")
def lstm_range(gates, recurrent, bias, cell, hidden, cells, out, reverse, start, stop):
    """All steps of some sequences; `gates` holds x · weight and becomes the gates."""
    n = cells.shape[2]
    panels = np.empty(n * whole(4 * n, WIDTH), f32)
    lay_panels(recurrent.reshape(n, 1, 4 * n), 0, panels)
    sources, results = (gates, cell, hidden), (cells, out)
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        used = whole(rows, ROWS_OF_TILE)
        h, c = np.zeros((used, n), f32), np.zeros((used, n), f32)
        states = h, c, np.zeros((used, whole(4 * n, WIDTH)), f32)
        lstm_steps(panels, sources, results, bias, states, first, rows, reverse)


@part
def lstm_slopes(z, past, top, g, dh, dc, d):
    """The gradients of one sequence's gates at one step; top = tanh of its memory."""
    n = dc.size
    full, one = n // LANES * LANES, broadcast(ONE)
    for j in range(0, full, LANES):
        i, f, o = load(z, j), load(z, n + j), load(z, 2 * n + j)
        new, above, slope = load(z, 3 * n + j), load(top, j), load(dh, j) + load(g, j)
        memory = load(dc, j) + slope * o * (one - above * above)
        store(d, j, memory * new * i * (one - i))
        store(d, n + j, memory * load(past, j) * f * (one - f))
        store(d, 2 * n + j, slope * above * o * (one - o))
        store(d, 3 * n + j, memory * i * (one - new * new))
        store(dc, j, memory * f)
    for j in range(full, n):
        i, f, o, new = z[j], z[n + j], z[2 * n + j], z[3 * n + j]
        slope = dh[j] + g[j]
        memory = dc[j] + slope * o * (ONE - top[j] * top[j])
        d[j] = memory * new * i * (ONE - i)
        d[n + j] = memory * past[j] * f * (ONE - f)
        d[2 * n + j] = slope * top[j] * o * (ONE - o)
        d[3 * n + j] = memory * i * (ONE - new * new)
        dc[j] = memory * f


@part
def lstm_steps_back(panels, sources, results, states, first, rows, reverse):
    """The gradients of all gates of a group of sequences; states: dh, dc and room."""
    g, gates, cells, cell, hidden, out = sources
    d, found, dcell, dhidden = results
    dh, dc, dz, top = states
    count, steps, n = cells.shape
    for r in range(rows):
        copy(dc[r], g[count * steps + first + r])
    for k in range(steps):
        t = k if reverse else steps - 1 - k
        before = t + 1 if reverse else t - 1
        for r in range(rows):
            b = first + r
            tanhs(cells[b, t], top)
            past, held = cell[b], hidden[b]
            if k < steps - 1:
                past, held = cells[b, before], out[b * steps + before]
            lstm_slopes(
                gates[b, t], past, top, g[b * steps + t], dh[r, :n], dc[r], dz[r]
            )
            copy(d[b, t], dz[r])
            copy(found[b, t], held)
        multiply(dz, False, panels, 4 * n, 4 * n, dh, dh.shape[1], False)
    for r in range(rows):
        copy(dcell[first + r], dc[r])
        copy(dhidden[first + r], dh[r, :n])


@kernel_code(f"void({ROWS}{BLOCKS * 2}{ROWS * 4}{BLOCKS * 2}{ROWS * 2}b1, i8, i8)")
def lstm_back_range(
    g,
    gates,
    cells,
    recurrent,
    cell,
    hidden,
    out,
    d,
    found,
    dcell,
    dhidden,
    reverse,
    start,
    stop,
):
    """The gradients of all gates of some sequences, and the states that they found."""
    n = cells.shape[2]
    panels = np.empty(4 * n * whole(n, WIDTH), f32)
    lay_transposed(recurrent.reshape(n, 1, 4 * n), 0, panels)
    sources = g, gates, cells, cell, hidden, out
    results = d, found, dcell, dhidden
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        used = whole(rows, ROWS_OF_TILE)
        dh, dc = np.zeros((used, whole(n, WIDTH)), f32), np.zeros((used, n), f32)
        states = dh, dc, np.zeros((used, 4 * n), f32), np.empty(n, f32)
        lstm_steps_back(panels, sources, results, states, first, rows, reverse)


@kernel(lstm)
def lstm_kernel(x, weight, recurrent, bias=None, cell=None, hidden=None, *, reverse):
    if not served(x, weight, recurrent, bias, cell, hidden):
        return None
    (b, s, _), n = x.shape, recurrent.shape[0]
    gates, cells = empty((b, s, 4 * n)), empty((b, s, n))
    out = empty((b * s + b, n))
    dot(rows_of(x), weight, out=rows_of(gates))
    start = [zeros_for(held, (b, n)) for held in (cell, hidden)]
    args = (gates, recurrent, zeros_for(bias, (4 * n,)), *start, cells, out, reverse)
    threads.run(lstm_range, args, b, LEAST)
    return out, gates, cells


@kernel(lstm.backward)
def lstm_backward(
    g, x, weight, recurrent, bias, cell, hidden, out, gates, cells, *, needs, reverse
):
    g = np.ascontiguousarray(g)
    if not served(x, weight, recurrent, cell, hidden, g, out, gates, cells):
        return None
    b, s, n = cells.shape
    d, found = empty((b, s, 4 * n)), empty((b, s, n))
    dcell, dhidden = np.empty((2, b, n), f32)
    start = [zeros_for(held, (b, n)) for held in (cell, hidden)]
    args = (g, gates, cells, recurrent, *start, out, d, found, dcell, dhidden, reverse)
    threads.run(lstm_back_range, args, b, LEAST)
    states = (dcell if needs[4] else None, dhidden if needs[5] else None)
    return (
        *from_gates(xp, rows_of(d), x, weight, found, needs),
        *states,
    )
