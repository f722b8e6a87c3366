"""The gated recurrent unit over whole sequences.

Where lstm carries a state and a memory, gru has one state that is both: an update gate
says how much of it stays, a reset gate how much of it the new value is made from.
"""

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
from burnbook.ops.reduce import sum_to


def gru_fits(
    x: Size,
    weight: Size,
    recurrent: Size,
    bias: Size,
    recurrent_bias: Size,
    hidden: Size,
) -> str | None:
    """Why the inputs of gru do not go together, or None if they do."""
    rows = [("bias", bias), ("recurrent_bias", recurrent_bias)]
    return fits(3, x, weight, recurrent, rows, [("hidden", hidden)])


@op("FFF>F FFFF>F FFFFF>F FFFFFF>F", check=gru_fits, extra="gates inner", method=False)
def gru(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array | None = None,
    recurrent_bias: Array | None = None,
    hidden: Array | None = None,
    *,
    reset_after: bool = True,
    reverse: bool = False,
) -> Any:
    """Carry a state along sequences: hₜ = (1 − z) n + z hₜ₋₁.

    The gates are z, r = σ(xₜ W + b + hₜ₋₁ U + b′), and n = tanh(xₜ W + b + m) with
    m = r (hₜ₋₁ U + b′), or m = (r hₜ₋₁) U + b′ if the reset comes first; each has
    columns of its own.

    Shapes: x [b, s, i], weight [i, g], recurrent [h, g], bias [g],
        recurrent_bias [g], hidden [b, h] -> [b, s, h]; g = 3 h
    """
    (b, s, _), n = x.shape, recurrent.shape[0]
    form = gate_curves(xp, 2 * n, 2 * n, x.dtype)
    gates = linear.forward(xp, rows_of(x), weight, bias).reshape(b, s, weight.shape[1])
    inner, out = xp.empty((b, s, n), x.dtype), xp.empty((b, s, n), x.dtype)
    hidden = xp.zeros((b, n), x.dtype) if hidden is None else hidden
    for t in order(s, reverse):
        heads = linear.forward(xp, hidden, recurrent, recurrent_bias)
        soft = heads[:, : 2 * n] + gates[:, t, : 2 * n]
        sigmoid_and_tanh(xp, soft, *form)
        z, r = soft[:, :n], soft[:, n:]
        if reset_after:
            held = heads[:, 2 * n :]
            new = r * held
        else:
            held = r * hidden
            new = xp.dot(held, recurrent[:, 2 * n :])
            if recurrent_bias is not None:
                new += recurrent_bias[2 * n :]
        new += gates[:, t, 2 * n :]
        xp.tanh(new, out=new)
        hidden = new + z * (hidden - new)
        gates[:, t, : 2 * n], gates[:, t, 2 * n :] = soft, new
        inner[:, t], out[:, t] = held, hidden
    return out, gates, inner


def gru_all(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    weight: Array,
    recurrent: Array,
    bias: Array,
    recurrent_bias: Array,
    hidden: Array,
    out: Array,
    gates: Array,
    inner: Array,
    reset_after: bool,
    reverse: bool,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """∂ of all inputs, by way of the gates, from the last step to the first."""
    found = earlier(xp, out, hidden, reverse)
    if xp.__name__ == "burnbook":  # a gradient of the gradient will be asked for
        z = linear(xp, x, weight, bias)
        gates, inner = gru_again(xp, z, found, recurrent, recurrent_bias, reset_after)
    blocks = (gates, inner, found, transposed(xp, recurrent))
    d, dinner, dhidden = gru_steps(xp, g, *blocks, reset_after, reverse)
    return (
        *gru_weights(xp, d, dinner, x, weight, found, inner, reset_after, needs),
        dhidden if needs[5] else None,
    )


def gru_weights(
    xp: ArrayNamespace,
    d: Any,
    dinner: Array,
    x: Array,
    weight: Array,
    found: Any,
    inner: Array,
    reset_after: bool,
    needs: tuple[bool, ...],
) -> tuple[Any, ...]:
    """∂ of x, the weights and the biases; the new gate sees the state by way of m."""
    n = found.shape[2]
    side, drecurrent = d, None
    if reset_after and (needs[2] or needs[4]):
        side = xp.concatenate([d[:, : 2 * n], dinner], axis=1)
    if needs[2]:
        across = rows_of(found).swapaxes(0, 1)
        if reset_after:
            drecurrent = xp.dot(across, side)
        else:
            late = xp.dot(rows_of(inner).swapaxes(0, 1), d[:, 2 * n :])
            drecurrent = xp.concatenate([xp.dot(across, d[:, : 2 * n]), late], axis=1)
    dx, dweight, _, dbias = from_gates(
        xp, d, x, weight, found, (needs[0], needs[1], False, needs[3])
    )
    more = sum_to(xp, side, shape=d.shape[1:]) if needs[4] else None
    return dx, dweight, drecurrent, dbias, more


def gru_steps(
    xp: ArrayNamespace,
    g: Array,
    gates: Array,
    inner: Array,
    found: Any,
    across: Array,
    reset_after: bool,
    reverse: bool,
) -> tuple[Any, Any, Any]:
    """The gradients of all gates before σ and tanh, of `inner`, of the first state."""
    (_, s, n), back = found.shape, None
    steps, inners = Steps(xp, gates, 3 * n), Steps(xp, gates, n)
    for t in order(s, not reverse):
        gate, held = step(gates, t), step(found, t)
        z, r, new = gate[:, :n], gate[:, n : 2 * n], gate[:, 2 * n :]
        dh = step(g, t) if back is None else step(g, t) + back
        kept = dh * z
        dnew = (dh - kept) * (1 - new * new)
        dz = kept * (held - new) * (1 - z)
        if reset_after:
            dinner = dnew * r
            dr = dinner * step(inner, t) * (1 - r)
            back = xp.dot(xp.concatenate([dz, dr, dinner], axis=1), across) + kept
        else:
            dinner = xp.dot(dnew, across[2 * n :])
            reached = dinner * r
            dr = reached * held * (1 - r)
            back = xp.dot(xp.concatenate([dz, dr], axis=1), across[: 2 * n])
            back = back + kept + reached
        steps.put(t, xp.concatenate([dz, dr, dnew], axis=1))
        inners.put(t, dinner)
    return steps.rows(), inners.rows(), back


def gru_again(
    xp: ArrayNamespace,
    z: Array,
    found: Any,
    recurrent: Array,
    more: Any,
    reset_after: bool,
) -> tuple[Any, Any]:
    """Gates and `inner` once more, as ops, from the states that every step found."""
    n = recurrent.shape[0]
    heads = linear(xp, found, recurrent, more)
    soft = sigmoid(xp, (z + heads)[:, :, : 2 * n])
    r, new = soft[:, :, n:], z[:, :, 2 * n :]
    if reset_after:
        inner = heads[:, :, 2 * n :]
        new = xp.tanh(new + r * inner)
    else:
        inner = r * found
        late = None if more is None else more[2 * n :]
        new = xp.tanh(new + linear(xp, inner, recurrent[:, 2 * n :], late))
    return xp.concatenate([soft, new], axis=2), inner


gru.grad(**dict.fromkeys(gru.inputs, gru_all))

gru.examples(
    samples=[
        (
            *(normal(2, 3, 4), normal(4, 9), normal(3, 9)),
            *(normal(9), normal(9), normal(2, 3), {"reset_after": after}),
        )
        for after in (True, False)
    ]
    + [(normal(3, 2, 1), normal(1, 6), normal(2, 6), {"reverse": True})],
    rejects=[
        (normal(2, 3, 5), normal(4, 9), normal(3, 9)),
        (normal(2, 3, 4), normal(4, 9), normal(3, 12)),
    ],
)
