"""Recurrent layers: a state that is carried along sequences.

A whole sequence is one op. The inputs of all gates at all steps need nothing but x, so
they are one matrix product; only h · U has to wait for the step before. The gradient
goes the same way back: step by step to ∂loss/∂gates, then one product for each weight.

Gates lie side by side in the columns of a weight: input, forget, output, cell for lstm,
update, reset, new for gru (in gru.py). `weight` is for x, `recurrent` for the state.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.elementwise import sigmoid
from burnbook.ops.linear import linear
from burnbook.ops.reduce import sum_to
from burnbook.ops.scan import linear_scan

Size = tuple[int, ...] | None


def fits(
    gates: int,
    x: Size,
    weight: Size,
    recurrent: Size,
    rows: Sequence[tuple[str, Size]],
    states: Sequence[tuple[str, Size]],
) -> str | None:
    """Why the inputs of a recurrent op do not go together, or None if they do.

    gates: blocks of columns. rows, states: (name, shape) of the biases and the states.
    """
    if x is None or weight is None or recurrent is None:
        return "x, weight and recurrent must be given"
    if len(x) != 3:
        return f"x must have three dims [batch, steps, d_input], not {len(x)}"
    if x[1] == 0:
        return "a sequence has at least one step"
    if len(recurrent) != 2 or recurrent[1] != gates * recurrent[0]:
        form = (
            f"[d_hidden, {gates} · d_hidden]" if gates > 1 else "[d_hidden, d_hidden]"
        )
        return f"recurrent must have shape {form}"
    hidden, width = recurrent
    if len(weight) != 2 or weight[1] != width:
        return f"weight must have shape [d_input, {width}], as wide as recurrent"
    if x[2] != weight[0]:
        return f"{x[2]} ≠ {weight[0]}: the last dim of x must equal d_input"
    wanted = [(*row, (width,)) for row in rows]
    wanted += [(*state, (x[0], hidden)) for state in states]
    for name, held, shape in wanted:
        if held is not None and tuple(held) != shape:
            return f"{name} must have shape {list(shape)}, not {list(held)}"
    return None


def order(steps: int, backward: bool) -> Iterable[int]:
    """The steps of a sequence, first to last or last to first."""
    return range(steps - 1, -1, -1) if backward else range(steps)


def rows_of(lines: Array) -> Any:
    """All steps of all sequences as rows of a matrix. [b, s, n] -> [b · s, n]"""
    return lines.reshape(lines.shape[0] * lines.shape[1], lines.shape[2])


def step(lines: Array, t: int) -> Any:
    """One step of all sequences. [b, s, n] -> [b, n]"""
    return lines[:, t : t + 1].reshape(lines.shape[0], lines.shape[2])


def earlier(xp: ArrayNamespace, lines: Array, start: Any, reverse: bool) -> Any:
    """What every step finds: the result of the step before it, or the start. [b, s, n]"""
    b, s, n = lines.shape
    if start is None:
        first = xp.zeros((b, 1, n), lines.dtype)
    else:
        first = start.reshape(b, 1, n)
    if reverse:
        return xp.concatenate([lines[:, 1:], first], axis=1)
    return xp.concatenate([first, lines[:, : s - 1]], axis=1)


class Steps:
    """Steps of all sequences, collected one by one, in any order.

    Why: what is differentiated again cannot be written into, so there it is a list.
    """

    def __init__(self, xp: ArrayNamespace, like: Any, width: int):
        b, s = like.shape[:2]
        self.xp = xp
        self.parts: list[Any] = [None] * s
        self.all: Any = None
        if xp.__name__ != "burnbook":
            self.all = xp.empty((b, s, width), like.dtype)

    def put(self, t: int, part: Array) -> None:
        """Keep one step. [b, n]"""
        if self.all is None:
            self.parts[t] = part.reshape(part.shape[0], 1, part.shape[1])
        else:
            self.all[:, t] = part

    def rows(self) -> Any:
        """All of them as rows. [b · s, n]"""
        if self.all is None:
            return rows_of(self.xp.concatenate(self.parts, axis=1))
        return rows_of(self.all)


def from_gates(
    xp: ArrayNamespace,
    d: Any,
    x: Array,
    weight: Array,
    found: Any,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """∂ of x, weight, recurrent and bias; d, in rows, is that of all gates."""
    return (
        d.dot(weight.swapaxes(0, 1)).reshape(x.shape) if needs[0] else None,
        rows_of(x).swapaxes(0, 1).dot(d) if needs[1] else None,
        rows_of(found).swapaxes(0, 1).dot(d) if needs[2] else None,
        sum_to(xp, d, shape=d.shape[1:]) if needs[3] else None,
    )


def turned(xp: ArrayNamespace, weight: Array) -> Any:
    """The transpose of a weight, laid out afresh: products with it are quicker."""
    across = weight.swapaxes(0, 1)
    return across if xp.__name__ == "burnbook" else xp.ascontiguousarray(across)


def squash(xp: ArrayNamespace, z: Array, scale: Array, shift: Array) -> None:
    """σ of the first columns of z and tanh of the rest, in place; see `curves`."""
    z *= scale
    xp.tanh(z, out=z)
    z *= scale
    z += shift


def curves(
    xp: ArrayNamespace, soft: int, width: int, dtype: np.dtype[Any]
) -> tuple[Any, Any]:
    """What `squash` scales and shifts by, where the first columns are σ gates.

    Why: σ(z) = ½ tanh(½ z) + ½ and tanh(z) = 1 tanh(1 z) + 0: one tanh for all gates.
    """
    scale, shift = xp.ones(width, dtype), xp.zeros(width, dtype)
    scale[:soft] = shift[:soft] = 0.5
    return scale, shift


# rnn: the state is the output.


def rnn_fits(
    x: Size, weight: Size, recurrent: Size, bias: Size, hidden: Size
) -> str | None:
    """Why the inputs of rnn do not go together, or None if they do."""
    return fits(1, x, weight, recurrent, [("bias", bias)], [("hidden", hidden)])


@op("FFF>F FFFF>F FFFFF>F", check=rnn_fits, method=False)
def rnn(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array | None = None,
    hidden: Array | None = None,
    *,
    reverse: bool = False,
) -> Array:
    """Carry a state along sequences: hₜ = tanh(xₜ W + hₜ₋₁ U + b).

    Shapes: x [b, s, i], weight [i, h], recurrent [h, h], bias [h], hidden [b, h]
        -> [b, s, h]
    """
    shape = (*x.shape[:2], recurrent.shape[0])
    out = linear.forward(xp, rows_of(x), weight, bias).reshape(shape)
    for t in order(x.shape[1], reverse):
        if hidden is not None:
            out[:, t] += hidden.dot(recurrent)
        hidden = xp.tanh(out[:, t])
        out[:, t] = hidden
    return out


def rnn_all(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array,
    hidden: Array,
    out: Array,
    reverse: bool,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """∂ of all inputs: dₜ = (gₜ + dₜ₊₁ Uᵀ) (1 − hₜ²)."""
    back, across = None, turned(xp, recurrent)
    found, steps = earlier(xp, out, hidden, reverse), Steps(xp, out, out.shape[2])
    for t in order(x.shape[1], not reverse):
        held = step(out, t)
        dh = step(g, t) if back is None else step(g, t) + back
        d = dh * (1 - held * held)
        steps.put(t, d)
        back = d.dot(across)
    weights = from_gates(xp, steps.rows(), x, weight, found, needs)
    return (*weights, back if needs[4] else None)


rnn.grad(**dict.fromkeys(rnn.inputs, rnn_all))

rnn.examples(
    samples=[
        (normal(2, 3, 4), normal(4, 5), normal(5, 5), normal(5), normal(2, 5)),
        (normal(1, 2, 3), normal(3, 2), normal(2, 2), {"reverse": True}),
    ],
    rejects=[
        (normal(2, 3), normal(3, 5), normal(5, 5)),
        (normal(2, 3, 4), normal(4, 5), normal(5, 6)),
    ],
)


# lstm: beside its output it carries a memory, which changes by addition.


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
    form = curves(xp, 3 * n, 4 * n, x.dtype)
    gates = linear.forward(xp, rows_of(x), weight, bias).reshape(b, s, weight.shape[1])
    cells, out = xp.empty((b, s, n), x.dtype), xp.empty((b * s + b, n), x.dtype)
    states = out[: b * s].reshape(b, s, n)
    memory = xp.zeros((b, n), x.dtype) if cell is None else cell
    for t in order(s, reverse):
        z = (
            gates[:, t].copy()
            if hidden is None
            else hidden.dot(recurrent) + gates[:, t]
        )
        squash(xp, z, *form)
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
        xp, g, gates, cells, turned(xp, recurrent), cell, reverse
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
        back = d.dot(across)
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
