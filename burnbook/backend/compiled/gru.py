"""Whole sequences of gru, as those of lstm.

Measured by the family gru, of tests/bench.
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
from burnbook.backend.compiled.runtime.thread_pool import threads
from burnbook.backend.products import dot, xp
from burnbook.ops.gru import gru, gru_weights
from burnbook.ops.recurrent import rows_of


@part
def gru_state(new, z, h):
    """h = (1 − z) new + z h."""
    for j in range(h.size):
        h[j] = new[j] + z[j] * (h[j] - new[j])


@part
def multiply_vectors(target, a, b):
    for j in range(target.size):
        target[j] = a[j] * b[j]


@part
def multiply_by(target, a):
    for j in range(target.size):
        target[j] *= a[j]


@part
def add(target, a):
    for j in range(target.size):
        target[j] += a[j]


@part
def gru_steps(panels, sources, results, lines, states, first, rows, how):
    """All steps of a group of sequences, from `first` on; states: h and room.

    A part, which does not count references to the rows of what its caller has made.
    """
    gates, hidden = sources
    inner, out = results
    bias, more, both = lines
    h, a, update, reset, late, new = states
    reset_after, reverse = how
    _, steps, n = inner.shape
    wide = whole(n, WIDTH)
    for r in range(rows):
        copy(h[r], hidden[first + r])
    for k in range(steps):
        t = steps - 1 - k if reverse else k
        for r in range(rows):
            gate = gates[first + r, t]
            add_vectors(update[r, :n], gate[:n], both[:n])
            add_vectors(reset[r, :n], gate[n : 2 * n], both[n:])
            copy(late[r, :n], more[2 * n :])
        multiply(h, False, panels[0], n, n, update, wide, True)
        multiply(h, False, panels[1], n, n, reset, wide, True)
        for r in range(rows):
            sigmoids(update[r, :n])
            sigmoids(reset[r, :n])
            multiply_vectors(a[r], reset[r, :n], h[r])
        multiply(h if reset_after else a, False, panels[2], n, n, late, wide, True)
        for r in range(rows):
            gate = gates[first + r, t]
            copy(inner[first + r, t], late[r, :n] if reset_after else a[r])
            if reset_after:
                multiply_by(late[r, :n], reset[r, :n])
            add_vectors(new, gate[2 * n :], bias[2 * n :])
            add(new, late[r, :n])
            tanhs_in_place(new)
            gru_state(new, update[r, :n], h[r])
            copy(gate[:n], update[r, :n])
            copy(gate[n : 2 * n], reset[r, :n])
            copy(gate[2 * n :], new)
            copy(out[first + r, t], h[r])


@kernel_code(f"void({BLOCKS}{ROWS}{LINE * 2}{ROWS}{BLOCKS * 2}b1, b1, i8, i8)")
def gru_range(
    gates, recurrent, bias, more, hidden, inner, out, reset_after, reverse, start, stop
):
    """All steps of some sequences; `gates` holds x · weight and becomes the gates."""
    n = inner.shape[2]
    wide = whole(n, WIDTH)
    panels = np.empty((3, n * wide), f32)
    for k in range(3):
        lay_panels(recurrent.reshape(n, 3, n), k, panels[k])
    lines = bias, more, bias[: 2 * n] + more[: 2 * n]
    sources, results, how = (gates, hidden), (inner, out), (reset_after, reverse)
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        used = whole(rows, ROWS_OF_TILE)
        h, a = np.zeros((used, n), f32), np.zeros((used, n), f32)
        update, reset = np.zeros((used, wide), f32), np.zeros((used, wide), f32)
        late, new = np.zeros((used, wide), f32), np.empty(n, f32)
        states = h, a, update, reset, late, new
        gru_steps(panels, sources, results, lines, states, first, rows, how)


@part
def gru_slopes(gate, held, g, dh, d):
    """The gradients of the update and the new gate; dh becomes what z lets through."""
    n = dh.size
    z, new, dz, dnew = gate[:n], gate[2 * n :], d[:n], d[2 * n :]
    for j in range(n):
        dnew[j] = dh[j] + g[j]
    for j in range(n):
        dh[j] = dnew[j] * z[j]
    for j in range(n):
        dz[j] = dh[j] * (held[j] - new[j]) * (ONE - z[j])
    for j in range(n):
        dnew[j] = (dnew[j] - dh[j]) * (ONE - new[j] * new[j])


@part
def reset_slope(dr, dinner, other, r):
    """dr = dinner · other · (1 − r), where dinner has been scaled by r already."""
    for j in range(dr.size):
        dr[j] = dinner[j] * other[j] * (ONE - r[j])


@part
def gru_steps_back(panels, sources, results, states, first, rows, how):
    """The gradients of all gates of a group of sequences; states: dh and room."""
    g, gates, inner, hidden, out = sources
    d, dinner, found, dhidden = results
    dh, back, update, reset, late = states
    reset_after, reverse = how
    _, steps, n = inner.shape
    wide = whole(n, WIDTH)
    for k in range(steps):
        t = k if reverse else steps - 1 - k
        before = t + 1 if reverse else t - 1
        for r in range(rows):
            b = first + r
            held = out[b, before] if k < steps - 1 else hidden[b]
            copy(found[b, t], held)
            gru_slopes(gates[b, t], held, g[b, t], dh[r], d[b, t])
            copy(late[r], d[b, t, 2 * n :])
            if reset_after:
                multiply_by(late[r], gates[b, t, n : 2 * n])
        multiply(late, False, panels[2], n, n, back, wide, False)
        for r in range(rows):
            b = first + r
            gate, dr = gates[b, t, n : 2 * n], d[b, t, n : 2 * n]
            part_of_h = back[r, :n]
            if reset_after:
                copy(dinner[b, t], late[r])
                reset_slope(dr, late[r], inner[b, t], gate)
            else:
                copy(dinner[b, t], part_of_h)
                multiply_by(part_of_h, gate)
                reset_slope(dr, part_of_h, found[b, t], gate)
            copy(update[r], d[b, t, :n])
            copy(reset[r], dr)
            add(dh[r], part_of_h)
        multiply(update, False, panels[0], n, n, back, wide, False)
        multiply(reset, False, panels[1], n, n, back, wide, True)
        for r in range(rows):
            add(dh[r], back[r, :n])
    for r in range(rows):
        copy(dhidden[first + r], dh[r])


@kernel_code(f"void({BLOCKS * 3}{ROWS * 2}{BLOCKS * 4}{ROWS}b1, b1, i8, i8)")
def gru_back_range(
    g,
    gates,
    inner,
    recurrent,
    hidden,
    out,
    d,
    dinner,
    found,
    dhidden,
    reset_after,
    reverse,
    start,
    stop,
):
    """The gradients of all gates of some sequences, and the states that they found."""
    n = inner.shape[2]
    wide = whole(n, WIDTH)
    panels = np.empty((3, n * wide), f32)
    for k in range(3):
        lay_transposed(recurrent.reshape(n, 3, n), k, panels[k])
    sources, how = (g, gates, inner, hidden, out), (reset_after, reverse)
    results = d, dinner, found, dhidden
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        used = whole(rows, ROWS_OF_TILE)
        dh, back = np.zeros((used, n), f32), np.zeros((used, wide), f32)
        update, reset = np.zeros((used, n), f32), np.zeros((used, n), f32)
        states = dh, back, update, reset, np.zeros((used, n), f32)
        gru_steps_back(panels, sources, results, states, first, rows, how)


@kernel(gru)
def gru_kernel(
    x,
    weight,
    recurrent,
    bias=None,
    recurrent_bias=None,
    hidden=None,
    *,
    reset_after,
    reverse,
):
    if not served(x, weight, recurrent, bias, recurrent_bias, hidden):
        return None
    (b, s, _), n = x.shape, recurrent.shape[0]
    gates, inner, out = empty((b, s, 3 * n)), empty((b, s, n)), empty((b, s, n))
    dot(rows_of(x), weight, out=rows_of(gates))
    lines = [zeros_for(held, (3 * n,)) for held in (bias, recurrent_bias)]
    args = (gates, recurrent, *lines, zeros_for(hidden, (b, n)), inner, out)
    threads.run(gru_range, (*args, reset_after, reverse), b, LEAST)
    return out, gates, inner


@kernel(gru.backward)
def gru_backward(
    g,
    x,
    weight,
    recurrent,
    bias,
    recurrent_bias,
    hidden,
    out,
    gates,
    inner,
    *,
    needs,
    reset_after,
    reverse,
):
    g = np.ascontiguousarray(g)
    if not served(x, weight, recurrent, hidden, g, out, gates, inner):
        return None
    b, s, n = inner.shape
    d, dinner, found = empty((b, s, 3 * n)), empty((b, s, n)), empty((b, s, n))
    dhidden = np.empty((b, n), f32)
    args = (g, gates, inner, recurrent, zeros_for(hidden, (b, n)), out)
    args += (d, dinner, found, dhidden, reset_after, reverse)
    threads.run(gru_back_range, args, b, LEAST)
    d, dinner = rows_of(d), rows_of(dinner)
    return (
        *gru_weights(xp, d, dinner, x, weight, found, inner, reset_after, needs),
        dhidden if needs[5] else None,
    )
