"""Normalization of channels, over a batch or by neighbors."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import above, normal, op, positive
from burnbook.ops.norm import (
    BLOCK,
    Needs,
    answer,
    channels_fit,
    gradients,
    scale_of,
    standard,
    straight,
    too_large,
    wide,
)
from burnbook.ops.reduce import count, sum_to


def _some(x: Shape, gamma: Shape, beta: Shape) -> str | None:
    """Why a batch has no moments, or does not fit the channels; None if it does."""
    return channels_fit(x, gamma, beta) or (
        None if x[0] else "a batch of no examples has no mean"
    )


@op("FFF>F", check=_some, extra="mean var", method=False)
def batch_norm(
    xp: ArrayNamespace, x: Array, gamma: Array, beta: Array, *, epsilon: float = 1e-5
) -> Any:
    """Normalize every channel over the batch: out = γ (x − μ) / √(σ² + ε) + β.

    Shapes: x [n, c, ...], gamma [c], beta [c] -> [n, c, ...]
    Why: σ² is the mean of the squares; μ and σ² are extras, which running averages are
    made of.
    """
    shape, line = _shapes(x.shape)
    rows = wide(xp, x).reshape(shape)
    out, mean, var = standard(xp, rows, (0, 2), epsilon)
    out = straight(out, gamma.reshape(line), beta.reshape(line)).reshape(x.shape)
    return out.astype(x.dtype, copy=False), mean.reshape((-1,)), var.reshape((-1,))


def batch_norm_back(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    gamma: Array,
    mean: Array,
    var: Array,
    needs: Needs,
    epsilon: float,
) -> Any:
    """The same as for rows, with a channel of the whole batch for a row."""
    if too_large(xp, x) and x.shape[1] > 1:
        return _channel_by_channel(xp, g, x, (gamma, mean, var), needs, epsilon)
    shape, line = _shapes(x.shape)
    slope, rows = wide(xp, g).reshape(shape), wide(xp, x).reshape(shape)
    moments = (mean.reshape(line), var.reshape(line), (0, 2), epsilon)
    dx, along = gradients(xp, slope, rows, gamma.reshape(line), *moments)
    return answer(xp, g, x, dx, along, slope, line, needs)


batch_norm.grad(x=batch_norm_back, gamma=batch_norm_back, beta=batch_norm_back)

batch_norm.examples(
    samples=[
        (normal(4, 3, 2), normal(3), normal(3), {"epsilon": 1e-5}),
        (normal(5, 3), normal(3), normal(3), {"epsilon": 0.1}),
        (normal(2, 2, 3, 2), normal(2), normal(2), {"epsilon": 1e-5}),
    ],
    rejects=[
        (normal(4, 3, 2), normal(2), normal(3)),
        (normal(3), normal(3), normal(3)),
        (normal(0, 3), normal(3), normal(3)),
    ],
)


def _channel_by_channel(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    lines: tuple[Any, ...],
    needs: Needs,
    epsilon: float,
) -> tuple[Any, ...]:
    """The same for some channels at a time, see `in_blocks`."""
    step, parts = max(1, BLOCK * x.shape[1] // x.size), []
    for first in range(0, x.shape[1], step):
        block = slice(first, first + step)
        gamma, mean, var = (line[block] for line in lines)
        given = (xp, g[:, block], x[:, block], gamma, mean, var)
        parts.append(batch_norm_back(*given, needs, epsilon))
    return tuple(
        xp.concatenate(found, axis=1 if i == 0 else 0) if needs[i] else None
        for i, found in enumerate(zip(*parts, strict=True))
    )


def _shapes(x: Shape) -> tuple[Shape, Shape]:
    """x as [n, c, places], and what γ stretches over that."""
    return (*x[:2], count(x[2:])), (x[1], 1)


def _known(x: Shape, gamma: Shape, beta: Shape, mean: Shape, var: Shape) -> str | None:
    """Why known moments do not fit, or None if they do."""
    if mean != gamma or var != gamma:
        return "the mean and the variance must have the shape of gamma"
    return channels_fit(x, gamma, beta)


@op("FFFFF>F", check=_known, method=False)
def batch_norm_known(
    xp: ArrayNamespace,
    x: Array,
    gamma: Array,
    beta: Array,
    mean: Array,
    var: Array,
    *,
    epsilon: float = 1e-5,
) -> Array:
    """The same with a mean and a variance that are known: a straight line per channel.

    Shapes: x [n, c, ...], gamma [c], beta [c], mean [c], var [c] -> [n, c, ...]
    """
    factor = scale_of(xp, wide(xp, var), epsilon) * gamma
    shift = beta - mean * factor
    out = x * _line(factor, x).astype(x.dtype, copy=False)
    out += _line(shift, x).astype(x.dtype, copy=False)
    return out


def batch_norm_known_x(
    xp: ArrayNamespace, g: Array, gamma: Array, var: Array, epsilon: float
) -> Any:
    """∂x = g γ / √(σ² + ε)."""
    return g * _line(scale_of(xp, var, epsilon) * gamma, g)


def batch_norm_known_gamma(
    xp: ArrayNamespace, g: Array, x: Array, mean: Array, var: Array, epsilon: float
) -> Any:
    """∂γ = Σ g (x − μ) / √(σ² + ε)."""
    return _per_channel(xp, g * (x - _line(mean, x))) * scale_of(xp, var, epsilon)


def batch_norm_known_beta(xp: ArrayNamespace, g: Array) -> Any:
    """∂β = Σ g."""
    return _per_channel(xp, g)


def batch_norm_known_mean(
    xp: ArrayNamespace, g: Array, gamma: Array, var: Array, epsilon: float
) -> Any:
    """∂μ = −Σ g γ / √(σ² + ε)."""
    return -_per_channel(xp, g) * gamma * scale_of(xp, var, epsilon)


def batch_norm_known_var(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    gamma: Array,
    mean: Array,
    var: Array,
    epsilon: float,
) -> Any:
    """∂σ² = −½ Σ g γ (x − μ) (σ² + ε)^(−3/2)."""
    scale = scale_of(xp, var, epsilon)
    along = _per_channel(xp, g * (x - _line(mean, x)))
    return along * gamma * scale * scale * scale * -0.5


batch_norm_known.grad(
    x=batch_norm_known_x,
    gamma=batch_norm_known_gamma,
    beta=batch_norm_known_beta,
    mean=batch_norm_known_mean,
    var=batch_norm_known_var,
)

batch_norm_known.examples(
    samples=[
        (normal(4, 3, 2), normal(3), normal(3), normal(3), positive(3)),
        (normal(4, 2), normal(2), normal(2), normal(2), above(0.0, 2)),
    ],
    rejects=[(normal(4, 3, 2), normal(3), normal(3), normal(3), positive(2))],
)


def _around(x: Shape, before: int, after: int) -> str | None:
    """Why a window of channels cannot be summed, or None if it can."""
    if len(x) < 2:
        return f"x must be [n, c, ...], with at least two dims, not {len(x)}"
    if before < 0 or after < 0:
        return f"a window from {before} before to {after} after is empty"
    return None


@op("F>F", check=_around, method=False)
def neighbor_sum(xp: ArrayNamespace, x: Array, *, before: int, after: int) -> Array:
    """Sum each channel with its neighbors: outᵢ = Σ xⱼ, i − before ≤ j ≤ i + after.

    Shapes: x [n, c, ...] -> [n, c, ...]
    """
    out = x.copy()
    for step in range(1, min(after, x.shape[1] - 1) + 1):
        out[:, :-step] += x[:, step:]
    for step in range(1, min(before, x.shape[1] - 1) + 1):
        out[:, step:] += x[:, :-step]
    return out


neighbor_sum.grad(
    x=lambda xp, g, before, after: neighbor_sum(xp, g, before=after, after=before)
)

neighbor_sum.examples(
    samples=[
        (normal(2, 5, 3), {"before": 1, "after": 2}),
        (normal(2, 3), {"before": 4, "after": 0}),
    ],
    rejects=[(normal(3), {"before": 1, "after": 1})],
)


def _line(values: Array, x: Array) -> Any:
    """One value for each channel, shaped so that it stretches over x."""
    return values.reshape(_line_shape(x))


def _per_channel(xp: ArrayNamespace, g: Array) -> Any:
    """The sums over all but dim 1."""
    return sum_to(xp, g, shape=_line_shape(g)).reshape((-1,))


def _line_shape(x: Array) -> Shape:
    return (x.shape[1], *(1,) * (x.ndim - 2))
