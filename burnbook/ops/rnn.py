"""A plain recurrent layer: the state is the output."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.linear import linear
from burnbook.ops.recurrent import (
    Size,
    Steps,
    earlier,
    fits,
    from_gates,
    order,
    rows_of,
    step,
    transposed,
)


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
            out[:, t] += xp.dot(hidden, recurrent)
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
    back, across = None, transposed(xp, recurrent)
    found, steps = earlier(xp, out, hidden, reverse), Steps(xp, out, out.shape[2])
    for t in order(x.shape[1], not reverse):
        held = step(out, t)
        dh = step(g, t) if back is None else step(g, t) + back
        d = dh * (1 - held * held)
        steps.put(t, d)
        back = xp.dot(d, across)
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
