"""Recurrent layers of one step, as models give them that hear a piece at a time.

Weights of input and state are laid out once, as one, so that a step is one product and
a few functions of its gates; the kernel of whole sequences lays them out in each run.
"""

from typing import Any

import numpy as np

from burnbook.program.compiler.bound import BYTES, Bound, Call, binder
from burnbook.program.compiler.kernels import F32, is_ready, plain

SIGMOID = "sigmoid"


@binder("lstm")
def bind_lstm(call: Call) -> Bound | None:
    """One step of few sequences, by weights that never change."""
    x, weight, recurrent, *rest = call.values
    bias, cell, hidden = (*rest, None, None, None)[:3]
    if any(a is not None for a in call.outs[1:]) or x.ndim != 3 or x.shape[1] != 1:
        return None
    if not all(call.fixed[1:4]) or not is_ready(call, "linear"):
        return None
    arrays = [a for a in call.values if a is not None]
    if not plain(call.out) or any(a.dtype != F32 for a in arrays):
        return None
    if not is_ready(call, "conv"):
        return None
    from burnbook.backend.compiled import finish, linear

    rows, n = len(x), recurrent.shape[0]
    if not 0 < rows <= linear.MOST_ROWS:
        return None
    joined = weight if hidden is None else np.concatenate([weight, recurrent])
    panels, line = linear.laid_panels(joined, bias)
    given = np.empty((rows, len(joined)), F32)
    z = np.empty((rows, line.size), F32)
    multiply = linear.FewRows(given, panels, line, z, finish.ACTIVATIONS[None])
    which, flat = finish.ACTIVATIONS[SIGMOID], z.reshape(-1)
    starts = [row * line.size for row in range(rows)]
    i, f, o, new = (z[:, k * n : (k + 1) * n] for k in range(4))
    width = weight.shape[0]
    to_x, to_hidden = given[:, :width], given[:, width:]
    states, memory = call.out[:rows], call.out[rows:]

    def run() -> None:
        np.copyto(to_x, x[:, 0])
        if hidden is not None:
            np.copyto(to_hidden, hidden)
        multiply()
        for start in starts:
            finish.activate_some(flat, which, start, start + 3 * n)
        np.tanh(new, new)
        if cell is None:
            np.multiply(i, new, memory)
        else:
            np.multiply(f, cell, memory)
            np.multiply(i, new, new)
            np.add(memory, new, memory)
        np.tanh(memory, states)
        np.multiply(states, o, states)

    return Bound(run, cost=_cost(joined), how="compiled")


def _cost(weight: Any) -> float:
    return 5000 + weight.nbytes / BYTES
