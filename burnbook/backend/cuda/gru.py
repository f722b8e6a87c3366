"""CuPy kernels for gru: a product and a kernel per step.

Where the reset comes before the product, the new gate has to wait for a product of its
own, and a step is two of each.
"""

from typing import Any

import numpy as np

from burnbook.backend.cuda.recurrent import (
    STEP,
    first_state,
    words_for,
)
from burnbook.backend.cuda.source import each, kernel, product, served, whole
from burnbook.ops.gru import gru, gru_weights
from burnbook.ops.linear import linear
from burnbook.ops.recurrent import earlier, order, rows_of

CODE = (
    STEP
    + r"""
#define MORE(place) (more ? more[place] : 0)

// The soft gates, and with AFTER the whole step; else late = r h waits for a product.
extern "C" __global__ void gru_step(
    long long count, const REAL* heads, const REAL* more, REAL* gates, REAL* inner,
    REAL* out, REAL* hidden, REAL* late, long long n, long long steps, long long t
) {
    STAND
    REAL* gate = gates + GATES(t, 3);
    const REAL* head = heads + b * WIDTH * n + j;
    REAL z = soft(gate[0] + head[0] + MORE(j));
    REAL r = soft(gate[n] + head[n] + MORE(n + j));
    gate[0] = z, gate[n] = r;
#if AFTER
    REAL held = head[2 * n] + MORE(2 * n + j);
    REAL fresh = tanh(gate[2 * n] + r * held);
    inner[AT(t)] = held;
    gate[2 * n] = fresh;
    out[AT(t)] = hidden[k] = fresh + z * (hidden[k] - fresh);
#else
    inner[AT(t)] = late[k] = r * hidden[k];
#endif
}
extern "C" __global__ void gru_fresh(
    long long count, const REAL* heads, const REAL* more, REAL* gates, REAL* out,
    REAL* hidden, long long n, long long steps, long long t
) {
    STAND
    REAL* gate = gates + GATES(t, 3);
    REAL fresh = tanh(gate[2 * n] + heads[k] + MORE(2 * n + j));
    gate[2 * n] = fresh;
    out[AT(t)] = hidden[k] = fresh + gate[0] * (hidden[k] - fresh);
}
// d: ∂ of the gates at all steps; side: what goes through the product at this one;
// kept: what reaches the state before without it.
extern "C" __global__ void gru_slopes(
    long long count, const REAL* g, const REAL* back, const REAL* gates,
    const REAL* inner, const REAL* found, REAL* d, REAL* dinner, REAL* side,
    REAL* kept, long long n, long long steps, long long t
) {
    STAND
    const REAL* gate = gates + GATES(t, 3);
    REAL z = gate[0], r = gate[n], fresh = gate[2 * n];
    REAL dh = g[AT(t)] + back[k], stays = dh * z;
    REAL dfresh = (dh - stays) * (1 - fresh * fresh);
    REAL dz = stays * (found[AT(t)] - fresh) * (1 - z);
    REAL* all = d + GATES(t, 3);
    REAL* one = side + b * WIDTH * n + j;
    kept[k] = stays;
    all[0] = one[0] = dz;
    all[2 * n] = dfresh;
#if AFTER
    REAL deep = dfresh * r;
    all[n] = one[n] = deep * inner[AT(t)] * (1 - r);
    dinner[AT(t)] = one[2 * n] = deep;
#else
    dinner[k] = dfresh;
#endif
}
extern "C" __global__ void gru_reset_slopes(
    long long count, const REAL* reached, const REAL* gates, const REAL* found,
    REAL* d, REAL* side, REAL* kept, long long n, long long steps, long long t
) {
    STAND
    REAL r = gates[GATES(t, 3) + n], deep = reached[k] * r;
    d[GATES(t, 3) + n] = side[b * 2 * n + n + j] = deep * found[AT(t)] * (1 - r);
    kept[k] += deep;
}
"""
)


@kernel(gru)
def gru_steps(
    xp,
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
    """gru: a product and a kernel for each step, two where the reset comes first.

    Shapes: x [b, s, i], weight [i, g], recurrent [h, g], bias [g],
        recurrent_bias [g], hidden [b, h] -> [b, s, h]; g = 3 h
    """
    given = (weight, recurrent, bias, recurrent_bias, hidden)
    if not served(x, *given) or not x.size:
        return None
    (b, s, _), n, real = x.shape, recurrent.shape[0], x.dtype
    gates = xp.ascontiguousarray(linear.forward(xp, rows_of(x), weight, bias))
    inner, out = xp.empty((b, s, n), real), xp.empty((b, s, n), real)
    held, late = first_state(xp, hidden, (b, n), real), xp.empty((b, n), real)
    (more,) = whole(xp, recurrent_bias)
    soft, new = _halves(xp, recurrent, n, reset_after)
    for t in order(s, reverse):
        told = (np.int64(n), np.int64(s), np.int64(t))
        args = (product(xp, held, soft), more, gates, inner, out, held, late, *told)
        each(xp, CODE, "gru_step", b * n, args, **_words(x, reset_after))
        if not reset_after:
            args = (product(xp, late, new), more, gates, out, held, *told)
            each(xp, CODE, "gru_fresh", b * n, args, **_words(x, reset_after))
    return out, gates.reshape(b, s, 3 * n), inner


@kernel(gru.backward)
def gru_slopes(
    xp,
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
    """The gradients of gru: kernels and products for each step, from the last on."""
    if not served(g, x, weight, recurrent, hidden, out) or not x.size:
        return None
    found = earlier(xp, out, hidden, reverse)
    blocks = (g, gates, inner, found, recurrent)
    d, dinner, back = _back(xp, *blocks, reset_after, reverse)
    made = gru_weights(xp, d, dinner, x, weight, found, inner, reset_after, needs)
    return (*made, back if needs[5] else None)


def _back(
    xp: Any,
    g: Any,
    gates: Any,
    inner: Any,
    found: Any,
    recurrent: Any,
    reset_after: bool,
    reverse: bool,
) -> tuple[Any, Any, Any]:
    """∂ of all gates, of `inner` (where the reset comes after), of the first state."""
    (b, s, n), real = found.shape, found.dtype
    soft, new = (u.swapaxes(0, 1) for u in _halves(xp, recurrent, n, reset_after))
    d, side = xp.empty((b, s, 3 * n), real), xp.empty((b, soft.shape[0]), real)
    dinner = xp.empty((b, s, n) if reset_after else (b, 1, n), real)
    back, kept = xp.zeros((b, n), real), xp.empty((b, n), real)
    g, gates, inner, found = whole(xp, g, gates, inner, found)
    words = _words(found, reset_after)
    for t in order(s, not reverse):
        told = (np.int64(n), np.int64(s), np.int64(t))
        args = (g, back, gates, inner, found, d, dinner, side, kept, *told)
        each(xp, CODE, "gru_slopes", b * n, args, **words)
        if not reset_after:
            reached = product(xp, dinner[:, 0], new)
            args = (reached, gates, found, d, side, kept, *told)
            each(xp, CODE, "gru_reset_slopes", b * n, args, **words)
        back = product(xp, side, soft) + kept
    return rows_of(d), rows_of(dinner), back


def _halves(xp: Any, recurrent: Any, n: int, reset_after: bool) -> tuple[Any, Any]:
    """The columns that meet the state, and those that meet what the reset left."""
    if reset_after:
        return recurrent, recurrent[:, 2 * n :]
    halves = (recurrent[:, : 2 * n], recurrent[:, 2 * n :])
    return xp.ascontiguousarray(halves[0]), xp.ascontiguousarray(halves[1])


def _words(x: Any, reset_after: bool) -> dict[str, Any]:
    return {**words_for(x), "AFTER": int(reset_after), "WIDTH": 3 if reset_after else 2}
