"""Long short-term memory: beside its state, a memory that changes by addition."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.elementwise import sigmoid
from burnbook.ops.linear import linear
from burnbook.ops.recurrent import (
    Size,
    Steps,
    earlier,
    fits,
    from_gates,
    gate_curves,
    order,
    rows_of,
    sigmoid_and_tanh,
    step,
    transposed,
)
from burnbook.ops.scan import linear_scan


def lstm_fits(
    x: Size, weight: Size, recurrent: Size, bias: Size, cell: Size, hidden: Size
) -> str | None:
    """Why the inputs of lstm do not go together, or None if they do."""
    states = [("cell", cell), ("hidden", hidden)]
    return fits(4, x, weight, recurrent, [("bias", bias)], states)


@op("FFF>F FFFF>F FFFFF>F FFFFFF>F", check=lstm_fits, extra="gates cells", method=False)
def lstm(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array | None = None,
    cell: Array | None = None,
    hidden: Array | None = None,
    *,
    reverse: bool = False,
) -> Any:
    """Carry a state and a memory along sequences: cₜ = f cₜ₋₁ + i n, hₜ = o tanh(cₜ).

    The gates are i, f, o = σ(z) and n = tanh(z), where z = xₜ W + hₜ₋₁ U + b, each with
    columns of its own. The output has a row for the state h of every step of every
    sequence, and then one for the last memory c of every sequence.

    Shapes: x [b, s, i], weight [i, g], recurrent [h, g], bias [g], cell [b, h],
        hidden [b, h] -> [r, h]; g = 4 h, r = b s + b
    Why: one output holds both, because the gradient comes back to one.
    """
    (b, s, _), n = x.shape, recurrent.shape[0]
    form = gate_curves(xp, 3 * n, 4 * n, x.dtype)
    gates = linear.forward(xp, rows_of(x), weight, bias).reshape(b, s, weight.shape[1])
    cells, out = xp.empty((b, s, n), x.dtype), xp.empty((b * s + b, n), x.dtype)
    states = out[: b * s].reshape(b, s, n)
    memory = xp.zeros((b, n), x.dtype) if cell is None else cell
    for t in order(s, reverse):
        z = (
            gates[:, t].copy()
            if hidden is None
            else xp.dot(hidden, recurrent) + gates[:, t]
        )
        sigmoid_and_tanh(xp, z, *form)
        memory = z[:, n : 2 * n] * memory
        memory += z[:, :n] * z[:, 3 * n :]
        hidden = xp.tanh(memory)
        hidden *= z[:, 2 * n : 3 * n]
        gates[:, t], cells[:, t], states[:, t] = z, memory, hidden
    out[b * s :] = memory
    return out, gates, cells


def lstm_all(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array,
    cell: Array,
    hidden: Array,
    out: Array,
    gates: Array,
    cells: Array,
    reverse: bool,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """∂ of all inputs, by way of the gates, from the last step to the first."""
    (b, s, _), n = x.shape, recurrent.shape[0]
    found = earlier(xp, out[: b * s].reshape(b, s, n), hidden, reverse)
    if xp.__name__ == "burnbook":  # a gradient of the gradient will be asked for
        z = linear(xp, x, weight, bias) + linear(xp, found, recurrent)
        gates, cells = lstm_again(xp, z, cell, reverse)
    d, dcell, dhidden = lstm_steps(
        xp, g, gates, cells, transposed(xp, recurrent), cell, reverse
    )
    states = (dcell if needs[4] else None, dhidden if needs[5] else None)
    return (*from_gates(xp, d, x, weight, found, needs), *states)


def lstm_steps(
    xp: ArrayNamespace,
    g: Array,
    gates: Array,
    cells: Array,
    across: Array,
    cell: Array,
    reverse: bool,
) -> tuple[Any, Any, Any]:
    """The gradients of all gates before σ and tanh, of the first memory and state."""
    (b, s, n), back, steps = cells.shape, None, Steps(xp, gates, gates.shape[2])
    g, dc = g[: b * s].reshape(b, s, n), g[b * s :]
    memory = earlier(xp, cells, cell, reverse)
    for t in order(s, not reverse):
        z, top = step(gates, t), xp.tanh(step(cells, t))
        i, new = z[:, :n], z[:, 3 * n :]
        dh = step(g, t) if back is None else step(g, t) + back
        dc = dc + dh * z[:, 2 * n : 3 * n] * (1 - top * top)
        slope = (z * (1 - z))[:, : 3 * n]
        soft = xp.concatenate([dc * new, dc * step(memory, t), dh * top], axis=1)
        hard = dc * i * (1 - new * new)
        d = xp.concatenate([soft * slope, hard], axis=1)
        steps.put(t, d)
        back = xp.dot(d, across)
        dc = dc * z[:, n : 2 * n]
    return steps.rows(), dc, back


def lstm_again(
    xp: ArrayNamespace, z: Array, cell: Array | None, reverse: bool
) -> tuple[Any, Any]:
    """Gates and memories once more, as ops: a memory is a running sum that is scaled."""
    n = z.shape[2] // 4
    soft, new = sigmoid(xp, z[:, :, : 3 * n]), xp.tanh(z[:, :, 3 * n :])
    gates = xp.concatenate([soft, new], axis=2)
    added, kept = soft[:, :, :n] * new, soft[:, :, n : 2 * n]
    if reverse:
        added, kept = xp.flip(added, (1,)), xp.flip(kept, (1,))
    start = xp.zeros_like(z[:, :1, :n])
    if cell is not None:
        start = cell.reshape(start.shape)
    lines = xp.concatenate([start, added], axis=1)
    cells = linear_scan(xp, lines, xp.concatenate([start, kept], axis=1), dim=1)[:, 1:]
    return gates, xp.flip(cells, (1,)) if reverse else cells


lstm.grad(**dict.fromkeys(lstm.inputs, lstm_all))

lstm.examples(
    samples=[
        (
            *(normal(2, 3, 4), normal(4, 12), normal(3, 12)),
            *(normal(12), normal(2, 3), normal(2, 3)),
        ),
        (normal(3, 2, 1), normal(1, 8), normal(2, 8), {"reverse": True}),
    ],
    rejects=[
        (normal(2, 3, 5), normal(4, 12), normal(3, 12)),
        (normal(2, 3, 4), normal(4, 12), normal(3, 12), normal(3)),
    ],
)
