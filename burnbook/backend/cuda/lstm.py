"""CuPy kernels for lstm: one product and one kernel per step.

The inputs of all gates at all steps are one product before the first step. A step is
then h · U, by cuBLAS, and a kernel that does the rest for all gates of all sequences;
the plain code launches some fifteen kernels per step.
"""

import numpy as np

from burnbook.backend.cuda.recurrent import STEP, first_state, step_before, words_for
from burnbook.backend.cuda.source import (
    each,
    kernel,
    product,
    served,
    whole,
)
from burnbook.backend.kernels import needed
from burnbook.ops.linear import linear
from burnbook.ops.lstm import lstm
from burnbook.ops.recurrent import earlier, from_gates, order, rows_of

CODE = (
    STEP
    + r"""
extern "C" __global__ void lstm_step(
    long long count, const REAL* heads, REAL* gates, REAL* cells, REAL* out,
    REAL* memory, REAL* hidden, long long n, long long steps, long long t
) {
    STAND
    REAL* gate = gates + GATES(t, 4);
    const REAL* head = heads + b * 4 * n + j;
    REAL i = soft(gate[0] + head[0]), f = soft(gate[n] + head[n]);
    REAL o = soft(gate[2 * n] + head[2 * n]), fresh = tanh(gate[3 * n] + head[3 * n]);
    REAL c = f * memory[k] + i * fresh, h = o * tanh(c);
    gate[0] = i, gate[n] = f, gate[2 * n] = o, gate[3 * n] = fresh;
    cells[AT(t)] = memory[k] = c;
    out[AT(t)] = hidden[k] = h;
}
// before: the step before t, or -1. Writes d, all steps, and side, this one alone.
extern "C" __global__ void lstm_slopes(
    long long count, const REAL* g, const REAL* back, const REAL* gates,
    const REAL* cells, const REAL* cell, REAL* dc, REAL* d, REAL* side,
    long long n, long long steps, long long t, long long before
) {
    STAND
    const REAL* gate = gates + GATES(t, 4);
    REAL i = gate[0], f = gate[n], o = gate[2 * n], fresh = gate[3 * n];
    REAL top = tanh(cells[AT(t)]), dh = g[AT(t)] + back[k];
    REAL past = before < 0 ? (cell ? cell[k] : 0) : cells[AT(before)];
    REAL along = dc[k] + dh * o * (1 - top * top);
    REAL* all = d + GATES(t, 4);
    REAL* one = side + b * 4 * n + j;
    all[0] = one[0] = along * fresh * i * (1 - i);
    all[n] = one[n] = along * past * f * (1 - f);
    all[2 * n] = one[2 * n] = dh * top * o * (1 - o);
    all[3 * n] = one[3 * n] = along * i * (1 - fresh * fresh);
    dc[k] = along * f;
}
"""
)


@kernel(lstm)
def lstm_steps(xp, x, weight, recurrent, bias=None, cell=None, hidden=None, *, reverse):
    """lstm: a product and a kernel for each step.

    Shapes: x [b, s, i], weight [i, g], recurrent [h, g], bias [g], cell [b, h],
        hidden [b, h] -> [r, h]; g = 4 h, r = b s + b
    """
    if not served(x, weight, recurrent, bias, cell, hidden) or not x.size:
        return None
    (b, s, _), n, real = x.shape, recurrent.shape[0], x.dtype
    gates = xp.ascontiguousarray(linear.forward(xp, rows_of(x), weight, bias))
    cells, out = xp.empty((b, s, n), real), xp.empty((b * s + b, n), real)
    memory = out[b * s :]
    memory[...] = 0 if cell is None else cell
    held = first_state(xp, hidden, (b, n), real)
    for t in order(s, reverse):
        arrays = (product(xp, held, recurrent), gates, cells, out, memory, held)
        told = (np.int64(n), np.int64(s), np.int64(t))
        each(xp, CODE, "lstm_step", b * n, (*arrays, *told), **words_for(x))
    return out, gates.reshape(b, s, 4 * n), cells


@kernel(lstm.backward)
def lstm_slopes(
    xp,
    g,
    x,
    weight,
    recurrent,
    bias,
    cell,
    hidden,
    out,
    gates,
    cells,
    *,
    needs,
    reverse,
):
    """The gradients of lstm: a kernel and a product for each step, from the last on."""
    if not served(g, x, weight, recurrent, bias, cell, hidden, out) or not x.size:
        return None
    (b, s, n), real = cells.shape, x.dtype
    d, side = xp.empty((b, s, 4 * n), real), xp.empty((b, 4 * n), real)
    back, dc = xp.zeros((b, n), real), xp.array(g[b * s :])
    given = whole(xp, g, gates, cells, cell)
    for t in order(s, not reverse):
        arrays = (given[0], back, *given[1:], dc, d, side)
        told = (n, s, t, step_before(t, s, reverse))
        args = (*arrays, *map(np.int64, told))
        each(xp, CODE, "lstm_slopes", b * n, args, **words_for(x))
        back = product(xp, side, recurrent.swapaxes(0, 1))
    found = earlier(xp, out[: b * s].reshape(b, s, n), hidden, reverse)
    made = from_gates(xp, rows_of(d), x, weight, found, needs)
    return (*made, *needed((dc, back), needs[4:]))
