"""Recurrent layers: a state that is carried along sequences.

A whole sequence is one op. The inputs of all gates at all steps need nothing but x, so
they are one matrix product; only h · U has to wait for the step before. The gradient
goes the same way back: step by step to ∂loss/∂gates, then one product for each weight.

Gates lie side by side in the columns of a weight: input, forget, output, cell for lstm,
update, reset, new for gru. `weight` is for x, `recurrent` for the state.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.ops.reduce import sum_to

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
        xp.dot(d, weight.swapaxes(0, 1)).reshape(x.shape) if needs[0] else None,
        xp.dot(rows_of(x).swapaxes(0, 1), d) if needs[1] else None,
        xp.dot(rows_of(found).swapaxes(0, 1), d) if needs[2] else None,
        sum_to(xp, d, shape=d.shape[1:]) if needs[3] else None,
    )


def transposed(xp: ArrayNamespace, weight: Array) -> Any:
    """The transpose of a weight, laid out afresh: products with it are quicker."""
    across = weight.swapaxes(0, 1)
    return across if xp.__name__ == "burnbook" else xp.ascontiguousarray(across)


def sigmoid_and_tanh(xp: ArrayNamespace, z: Array, scale: Array, shift: Array) -> None:
    """σ of the first columns of z and tanh of the rest, in place; see `gate_curves`."""
    z *= scale
    xp.tanh(z, out=z)
    z *= scale
    z += shift


def gate_curves(
    xp: ArrayNamespace, soft: int, width: int, dtype: np.dtype[Any]
) -> tuple[Any, Any]:
    """What `sigmoid_and_tanh` scales and shifts by, where the first columns are σ gates.

    Why: σ(z) = ½ tanh(½ z) + ½ and tanh(z) = 1 tanh(1 z) + 0: one tanh for all gates.
    """
    scale, shift = xp.ones(width, dtype), xp.zeros(width, dtype)
    scale[:soft] = shift[:soft] = 0.5
    return scale, shift
