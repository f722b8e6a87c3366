"""Turning pairs of numbers by an angle for each position."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op, unit


def _turns_fit(x: Shape, turns: Shape) -> str | None:
    """Why angles do not fit, or None if they do."""
    if len(x) < 2 or x[-1] % 2:
        return f"x must be [..., s, d] with an even d, it is {list(x)}"
    wanted = (x[-2], x[-1] // 2, 2)
    if tuple(turns) != wanted:
        return f"turns must be {list(wanted)} (cosine, sine), it is {list(turns)}"
    return None


@op("FF>F", check=_turns_fit, method=False)
def rotary(xp: ArrayNamespace, x: Array, turns: Array, *, back: bool = False) -> Array:
    """Turn pairs: (a, b) becomes (a cos − b sin, a sin + b cos); or back again.

    Shapes: x [..., s, d], turns [s, h, r] -> [..., s, d]
    Why: as complex numbers, pairs are multiplied with cos + i sin, or its conjugate.
    """
    cos, sin = turns[..., 0], -turns[..., 1] if back else turns[..., 1]
    a, b = x[..., ::2], x[..., 1::2]
    out = xp.empty(x.shape, dtype=x.dtype)
    out[..., ::2] = a * cos - b * sin
    out[..., 1::2] = a * sin + b * cos
    return out


@op("FF>F", method=False)
def rotary_turns(
    xp: ArrayNamespace, dout: Array, x: Array, *, back: bool = False
) -> Array:
    """The gradient of rotary for the turns: Σ of the conjugate of x times dout.

    Shapes: dout [..., s, d], x [..., s, d] -> [s, h, r]
    """
    a, b, da, db = x[..., ::2], x[..., 1::2], dout[..., ::2], dout[..., 1::2]
    sin = a * db - b * da
    out = xp.stack([a * da + b * db, -sin if back else sin], axis=-1)
    return xp.sum(out.reshape(-1, *out.shape[-3:]), axis=0)


def _turn_back(xp: ArrayNamespace, g: Array, turns: Array, back: bool) -> Any:
    return rotary(xp, g, turns, back=not back)


rotary.grad(x=_turn_back, turns=rotary_turns)

rotary.examples(
    samples=[
        (normal(2, 3, 4), unit(3, 2, 2)),
        (normal(3, 6), unit(3, 3, 2), {"back": True}),
    ],
    rejects=[(normal(2, 3, 4), unit(2, 2, 2)), (normal(2, 3, 5), unit(3, 2, 2))],
)
rotary_turns.grad(
    dout=lambda xp, g, x, back: rotary(xp, x, g, back=back),
    x=lambda xp, g, dout, back: rotary(xp, dout, g, back=not back),
)

rotary_turns.examples(
    samples=[
        (normal(2, 3, 4), normal(2, 3, 4)),
        (normal(3, 6), normal(3, 6), {"back": True}),
    ]
)
