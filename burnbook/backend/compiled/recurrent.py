"""Whole sequences of lstm and gru, four at a time.

No sequence needs another one, so each thread carries its own from the first step to the
last without waiting for anybody. Per step a thread reads the recurrent weight once from
the second cache; states, sums and gates of four sequences stay in the first.
"""

from typing import Any

import numpy as np

from burnbook.backend.compiled.recurrent_loops import (
    GROUP,
    add_product,
    product_turned,
    squash,
    tanhs,
)
from burnbook.backend.compiled.runtime.buffers import empty
from burnbook.backend.compiled.runtime.jit import f32, kernel_code, part
from burnbook.backend.compiled.runtime.registry import F32, kernel, plain_f32
from burnbook.backend.compiled.runtime.thread_pool import team
from burnbook.ops.gru import gru, gru_weights
from burnbook.ops.lstm import from_gates, lstm, rows_of

LINE, ROWS, BLOCKS = "f4[::1], ", "f4[:,::1], ", "f4[:,:,::1], "
ONE = f32(1)


@part
def copy(target: Any, source: Any) -> None:
    for j in range(target.size):
        target[j] = source[j]


@part
def add_lines(target: Any, a: Any, b: Any) -> None:
    for j in range(target.size):
        target[j] = a[j] + b[j]


@part
def lstm_cell(z: Any, c: Any, h: Any) -> None:
    """Gates from z, in place; then the memory and the state of one sequence."""
    n = c.size
    squash(z[: 3 * n])
    new = z[3 * n :]
    tanhs(new, new)
    i, f, o = z[:n], z[n : 2 * n], z[2 * n : 3 * n]
    for j in range(n):
        c[j] = f[j] * c[j] + i[j] * new[j]
    tanhs(c, h)
    for j in range(n):
        h[j] *= o[j]


@kernel_code(f"void({BLOCKS}{ROWS}{LINE}{ROWS * 2}{BLOCKS}{ROWS}b1, i8, i8)")
def lstm_range(
    gates: Any,
    recurrent: Any,
    bias: Any,
    cell: Any,
    hidden: Any,
    cells: Any,
    out: Any,
    reverse: bool,
    start: int,
    stop: int,
) -> None:
    """All steps of some sequences; `gates` holds x · weight and becomes the gates."""
    count, steps, n = cells.shape
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        h, c = np.zeros((GROUP, n), f32), np.zeros((GROUP, n), f32)
        z = np.zeros((GROUP, 4 * n), f32)
        for r in range(rows):
            copy(h[r], hidden[first + r])
            copy(c[r], cell[first + r])
        for k in range(steps):
            t = steps - 1 - k if reverse else k
            for r in range(rows):
                add_lines(z[r], gates[first + r, t], bias)
            add_product(h, recurrent, 0, z)
            for r in range(rows):
                lstm_cell(z[r], c[r], h[r])
                copy(gates[first + r, t], z[r])
                copy(cells[first + r, t], c[r])
                copy(out[(first + r) * steps + t], h[r])
        for r in range(rows):
            copy(out[count * steps + first + r], c[r])


@part
def lstm_slopes(z: Any, past: Any, top: Any, g: Any, dh: Any, dc: Any, d: Any) -> None:
    """The gradients of one sequence's gates at one step; top = tanh of its memory."""
    n = dc.size
    i, f, o, new = z[:n], z[n : 2 * n], z[2 * n : 3 * n], z[3 * n :]
    di, df, do, dnew = d[:n], d[n : 2 * n], d[2 * n : 3 * n], d[3 * n :]
    for j in range(n):
        dh[j] += g[j]
    for j in range(n):
        do[j] = dh[j] * top[j] * o[j] * (ONE - o[j])
    for j in range(n):
        dc[j] += dh[j] * o[j] * (ONE - top[j] * top[j])
    for j in range(n):
        di[j] = dc[j] * new[j] * i[j] * (ONE - i[j])
    for j in range(n):
        dnew[j] = dc[j] * i[j] * (ONE - new[j] * new[j])
    for j in range(n):
        df[j] = dc[j] * past[j] * f[j] * (ONE - f[j])
    for j in range(n):
        dc[j] *= f[j]


@kernel_code(f"void({ROWS}{BLOCKS * 2}{ROWS * 4}{BLOCKS * 2}{ROWS * 2}b1, i8, i8)")
def lstm_back_range(
    g: Any,
    gates: Any,
    cells: Any,
    recurrent: Any,
    cell: Any,
    hidden: Any,
    out: Any,
    d: Any,
    found: Any,
    dcell: Any,
    dhidden: Any,
    reverse: bool,
    start: int,
    stop: int,
) -> None:
    """The gradients of all gates of some sequences, and the states that they found."""
    count, steps, n = cells.shape
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        dh, dc = np.zeros((GROUP, n), f32), np.zeros((GROUP, n), f32)
        dz, top = np.zeros((GROUP, 4 * n), f32), np.empty(n, f32)
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
                    gates[b, t], past, top, g[b * steps + t], dh[r], dc[r], dz[r]
                )
                copy(d[b, t], dz[r])
                copy(found[b, t], held)
            product_turned(dz, recurrent, 0, dh)
        for r in range(rows):
            copy(dcell[first + r], dc[r])
            copy(dhidden[first + r], dh[r])


@kernel(lstm)
def lstm_kernel(
    x: Any,
    weight: Any,
    recurrent: Any,
    bias: Any = None,
    cell: Any = None,
    hidden: Any = None,
    *,
    reverse: bool = False,
) -> Any:
    if not served(x, weight, recurrent, bias, cell, hidden):
        return None
    (b, s, _), n = x.shape, recurrent.shape[0]
    gates, cells = empty((b, s, 4 * n)), empty((b, s, n))
    out = empty((b * s + b, n))
    np.dot(rows_of(x), weight, out=rows_of(gates))
    start = [zeros_for(held, (b, n)) for held in (cell, hidden)]
    args = (gates, recurrent, zeros_for(bias, (4 * n,)), *start, cells, out, reverse)
    team.run(lstm_range, args, b, GROUP)
    return out, gates, cells


@kernel(lstm.backward)
def lstm_backward(
    g: Any,
    x: Any,
    weight: Any,
    recurrent: Any,
    bias: Any,
    cell: Any,
    hidden: Any,
    out: Any,
    gates: Any,
    cells: Any,
    *,
    needs: tuple[bool, ...],
    reverse: bool = False,
) -> Any:
    g = np.ascontiguousarray(g)
    if not served(x, weight, recurrent, cell, hidden, g, out, gates, cells):
        return None
    b, s, n = cells.shape
    d, found = empty((b, s, 4 * n)), empty((b, s, n))
    dcell, dhidden = np.empty((2, b, n), f32)
    start = [zeros_for(held, (b, n)) for held in (cell, hidden)]
    args = (g, gates, cells, recurrent, *start, out, d, found, dcell, dhidden, reverse)
    team.run(lstm_back_range, args, b, GROUP)
    states = (dcell if needs[4] else None, dhidden if needs[5] else None)
    return (*from_gates(np, rows_of(d), x, weight, found, needs), *states)


def served(x: Any, *others: Any) -> bool:
    """Whether a kernel was compiled for these arrays; x itself is copied anyway."""
    given = [held for held in others if held is not None]
    fours = others[1].shape[0] % GROUP == 0
    return fours and x.dtype is F32 and x.size > 0 and all(map(plain_f32, given))


def zeros_for(held: Any, shape: tuple[int, ...]) -> Any:
    """An input that may be missing; missing ones are zero."""
    return np.zeros(shape, f32) if held is None else held


@part
def gru_state(new: Any, z: Any, h: Any) -> None:
    """h = (1 − z) new + z h."""
    for j in range(h.size):
        h[j] = new[j] + z[j] * (h[j] - new[j])


@part
def multiply(target: Any, a: Any, b: Any) -> None:
    for j in range(target.size):
        target[j] = a[j] * b[j]


@kernel_code(f"void({BLOCKS}{ROWS}{LINE * 2}{ROWS}{BLOCKS * 2}b1, b1, i8, i8)")
def gru_range(
    gates: Any,
    recurrent: Any,
    bias: Any,
    more: Any,
    hidden: Any,
    inner: Any,
    out: Any,
    reset_after: bool,
    reverse: bool,
    start: int,
    stop: int,
) -> None:
    """All steps of some sequences; `gates` holds x · weight and becomes the gates."""
    _, steps, n = inner.shape
    both = bias[: 2 * n] + more[: 2 * n]
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        h, a = np.zeros((GROUP, n), f32), np.zeros((GROUP, n), f32)
        soft, late = np.zeros((GROUP, 2 * n), f32), np.zeros((GROUP, n), f32)
        new = np.empty(n, f32)
        for r in range(rows):
            copy(h[r], hidden[first + r])
        for k in range(steps):
            t = steps - 1 - k if reverse else k
            for r in range(rows):
                add_lines(soft[r], gates[first + r, t, : 2 * n], both)
                copy(late[r], more[2 * n :])
            add_product(h, recurrent, 0, soft)
            for r in range(rows):
                squash(soft[r])
                multiply(a[r], soft[r, n:], h[r])
            add_product(h if reset_after else a, recurrent, 2 * n, late)
            for r in range(rows):
                gate = gates[first + r, t]
                copy(inner[first + r, t], late[r] if reset_after else a[r])
                if reset_after:
                    multiply(late[r], late[r], soft[r, n:])
                add_lines(new, gate[2 * n :], bias[2 * n :])
                add_lines(new, new, late[r])
                tanhs(new, new)
                gru_state(new, soft[r, :n], h[r])
                copy(gate[: 2 * n], soft[r])
                copy(gate[2 * n :], new)
                copy(out[first + r, t], h[r])


@part
def gru_slopes(gate: Any, held: Any, g: Any, dh: Any, d: Any) -> None:
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
def reset_slope(dr: Any, dinner: Any, other: Any, r: Any) -> None:
    """dr = dinner · other · (1 − r), where dinner has been scaled by r already."""
    for j in range(dr.size):
        dr[j] = dinner[j] * other[j] * (ONE - r[j])


@kernel_code(f"void({BLOCKS * 3}{ROWS * 2}{BLOCKS * 4}{ROWS}b1, b1, i8, i8)")
def gru_back_range(
    g: Any,
    gates: Any,
    inner: Any,
    recurrent: Any,
    hidden: Any,
    out: Any,
    d: Any,
    dinner: Any,
    found: Any,
    dhidden: Any,
    reset_after: bool,
    reverse: bool,
    start: int,
    stop: int,
) -> None:
    """The gradients of all gates of some sequences, and the states that they found."""
    _, steps, n = inner.shape
    for first in range(start, stop, GROUP):
        rows = min(GROUP, stop - first)
        dh, back = np.zeros((GROUP, n), f32), np.zeros((GROUP, n), f32)
        side, late = np.zeros((GROUP, 2 * n), f32), np.zeros((GROUP, n), f32)
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
                    multiply(late[r], late[r], gates[b, t, n : 2 * n])
            product_turned(late, recurrent, 2 * n, back)
            for r in range(rows):
                b = first + r
                reset, dr = gates[b, t, n : 2 * n], d[b, t, n : 2 * n]
                if reset_after:
                    copy(dinner[b, t], late[r])
                    reset_slope(dr, late[r], inner[b, t], reset)
                else:
                    copy(dinner[b, t], back[r])
                    multiply(back[r], back[r], reset)
                    reset_slope(dr, back[r], found[b, t], reset)
                copy(side[r], d[b, t, : 2 * n])
                add_lines(dh[r], dh[r], back[r])
            product_turned(side, recurrent, 0, back)
            for r in range(rows):
                add_lines(dh[r], dh[r], back[r])
        for r in range(rows):
            copy(dhidden[first + r], dh[r])


@kernel(gru)
def gru_kernel(
    x: Any,
    weight: Any,
    recurrent: Any,
    bias: Any = None,
    recurrent_bias: Any = None,
    hidden: Any = None,
    *,
    reset_after: bool = True,
    reverse: bool = False,
) -> Any:
    if not served(x, weight, recurrent, bias, recurrent_bias, hidden):
        return None
    (b, s, _), n = x.shape, recurrent.shape[0]
    gates, inner, out = empty((b, s, 3 * n)), empty((b, s, n)), empty((b, s, n))
    np.dot(rows_of(x), weight, out=rows_of(gates))
    lines = [zeros_for(held, (3 * n,)) for held in (bias, recurrent_bias)]
    args = (gates, recurrent, *lines, zeros_for(hidden, (b, n)), inner, out)
    team.run(gru_range, (*args, reset_after, reverse), b, GROUP)
    return out, gates, inner


@kernel(gru.backward)
def gru_backward(
    g: Any,
    x: Any,
    weight: Any,
    recurrent: Any,
    bias: Any,
    recurrent_bias: Any,
    hidden: Any,
    out: Any,
    gates: Any,
    inner: Any,
    *,
    needs: tuple[bool, ...],
    reset_after: bool = True,
    reverse: bool = False,
) -> Any:
    g = np.ascontiguousarray(g)
    if not served(x, weight, recurrent, hidden, g, out, gates, inner):
        return None
    b, s, n = inner.shape
    d, dinner, found = empty((b, s, 3 * n)), empty((b, s, n)), empty((b, s, n))
    dhidden = np.empty((b, n), f32)
    args = (g, gates, inner, recurrent, zeros_for(hidden, (b, n)), out)
    args += (d, dinner, found, dhidden, reset_after, reverse)
    team.run(gru_back_range, args, b, GROUP)
    d, dinner = rows_of(d), rows_of(dinner)
    return (
        *gru_weights(np, d, dinner, x, weight, found, inner, reset_after, needs),
        dhidden if needs[5] else None,
    )
