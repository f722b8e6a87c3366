"""Building blocks · Module. Normalization: numbers with mean 0 and variance 1.

What is averaged over differs: one row (layer), the channels of a group in one example
(group), one channel in the whole batch (batch). Each op keeps the mean and the variance
it found, so its gradient is a formula of these and the input. Where steps are
remembered (a gradient of a gradient), the rules find both again, because they depend
on the input as well.
"""

from typing import Any

from burnbook.op import normal, op
from burnbook.ops.reduce import sum_to

Axes = tuple[int, ...]
FLOOR = 1e-12  # a smaller standard deviation counts as this one where it divides


def _last_dim(
    x: tuple[int, ...], gamma: tuple[int, ...] | None, beta: tuple[int, ...] | None
) -> str | None:
    """Why a scale or shift does not fit the last dim, or None if both do."""
    if not x or 0 in x:
        return "there is nothing to normalize"
    return _fits(x[-1], "the last dim of x", gamma, beta)


def channels_fit(
    x: tuple[int, ...], gamma: tuple[int, ...] | None, beta: tuple[int, ...] | None
) -> str | None:
    """Why a scale or shift does not fit the channels, or None if both do."""
    if len(x) < 2:
        return f"x must be [n, c, ...], with at least two dims, not {len(x)}"
    if 0 in x:
        return "there is nothing to normalize"
    return _fits(x[1], "the channels of x, dim 1,", gamma, beta)


def _fits(
    size: int, where: str, gamma: tuple[int, ...] | None, beta: tuple[int, ...] | None
) -> str | None:
    for name, held in (("gamma", gamma), ("beta", beta)):
        if held is not None and len(held) != 1:
            return f"{name} must have one dim, not {len(held)}"
        if held is not None and held[0] != size:
            return f"{size} ≠ {held[0]}: {where} must equal the size of {name}"
    return None


@op(
    "FFF>F FF>F F>F",
    check=_last_dim,
    extra="mean var",
    method=False,
    samples=[
        (normal(3, 4), normal(4), normal(4), {"epsilon": 1e-5}),
        (normal(2, 3, 5), normal(5), {"epsilon": 0.1}),
        (normal(6), {"epsilon": 1e-5}),
    ],
    rejects=[(normal(3, 4), normal(3), normal(4)), (normal(3, 4), normal(1, 4))],
)
def layer_norm(
    xp: Any, x: Any, gamma: Any = None, beta: Any = None, *, epsilon: float = 1e-5
) -> Any:
    """Give every row mean 0 and variance 1: out = γ (x − μ) / √(σ² + ε) + β.

    Shapes: x [..., d], gamma [d], beta [d] -> [..., d]
    Why: μ and σ² = mean (x − μ)² are those of the row, so no example sees another one.
    """
    out, mean, var = standard(xp, wide(xp, x), (-1,), epsilon)
    if gamma is not None:
        out *= gamma
    if beta is not None:
        out += beta
    return out.astype(x.dtype, copy=False), mean, var


def layer_norm_x(
    xp: Any, g: Any, x: Any, gamma: Any, mean: Any, var: Any, epsilon: float
) -> Any:
    """∂x = (h − mean h − x̂ mean(h x̂)) / √(σ² + ε), where h = g γ."""
    h = wide(xp, g) * (1 if gamma is None else gamma)
    dx = slope(xp, h, wide(xp, x), mean, var, (-1,), epsilon)
    return dx.astype(x.dtype, copy=False)


def layer_norm_gamma(
    xp: Any, g: Any, x: Any, mean: Any, var: Any, epsilon: float
) -> Any:
    """∂γ = Σ g x̂ over rows."""
    hat = standard_again(xp, wide(xp, x), mean, var, (-1,), epsilon)
    hat *= g
    return sum_to(xp, hat, shape=(g.shape[-1],)).astype(g.dtype, copy=False)


def layer_norm_beta(xp: Any, g: Any) -> Any:
    """∂β = Σ g over rows."""
    total = sum_to(xp, wide(xp, g), shape=(g.shape[-1],))
    return total.astype(g.dtype, copy=False)


layer_norm.grad(x=layer_norm_x, gamma=layer_norm_gamma, beta=layer_norm_beta)


@op(
    "FF>F F>F",
    check=lambda x, gamma: _last_dim(x, gamma, None),
    extra="power",
    method=False,
    samples=[
        (normal(3, 4), normal(4), {"epsilon": 1e-5}),
        (normal(2, 3, 5), {"epsilon": 0.1}),
    ],
    rejects=[(normal(3, 4), normal(3)), (normal(3, 4), normal(1, 4))],
)
def rms_norm(xp: Any, x: Any, gamma: Any = None, *, epsilon: float = 1e-5) -> Any:
    """Give every row the length √d: out = γ x / √(mean x² + ε).

    Shapes: x [..., d], gamma [d] -> [..., d]
    """
    rows = wide(xp, x)
    power = _mean(xp, rows * rows, (-1,))
    out = rows * scale_of(xp, power, epsilon)
    if gamma is not None:
        out *= gamma
    return out.astype(x.dtype, copy=False), power


def rms_norm_x(xp: Any, g: Any, x: Any, gamma: Any, power: Any, epsilon: float) -> Any:
    """∂x = r (h − x r² mean(h x)), where r = 1 / √(mean x² + ε) and h = g γ."""
    x, kind = wide(xp, x), x.dtype
    h = wide(xp, g) * (1 if gamma is None else gamma)
    scale = scale_of(xp, _power_again(xp, x, power), epsilon)
    h -= x * (_mean(xp, h * x, (-1,)) * scale * scale)
    h *= scale
    return h.astype(kind, copy=False)


def rms_norm_gamma(xp: Any, g: Any, x: Any, power: Any, epsilon: float) -> Any:
    """∂γ = Σ g x r over rows."""
    x = wide(xp, x)
    hat = x * scale_of(xp, _power_again(xp, x, power), epsilon)
    hat *= g
    return sum_to(xp, hat, shape=(g.shape[-1],)).astype(g.dtype, copy=False)


rms_norm.grad(x=rms_norm_x, gamma=rms_norm_gamma)


def _power_again(xp: Any, x: Any, power: Any) -> Any:
    return _mean(xp, x * x, (-1,)) if remembers(xp) else power


def _groups(
    x: tuple[int, ...],
    gamma: tuple[int, ...] | None,
    beta: tuple[int, ...] | None,
    groups: int,
) -> str | None:
    """Why channels cannot be normalized in groups, or None if they can."""
    if len(x) > 1 and (groups < 1 or x[1] % groups):
        return f"{x[1]} channels do not make {groups} groups"
    return channels_fit(x, gamma, beta)


GROUPS = {"groups": 2, "epsilon": 1e-5}


@op(
    "FFF>F FF>F F>F",
    check=_groups,
    extra="mean var",
    method=False,
    samples=[
        (normal(2, 4, 3), normal(4), normal(4), GROUPS),
        (normal(2, 4, 3), normal(4), normal(4), {**GROUPS, "inside": True}),
        (normal(3, 2, 2, 3), {**GROUPS, "epsilon": 0.1}),
        (normal(2, 4), normal(4), GROUPS),
    ],
    rejects=[
        (normal(2, 3, 4), {"groups": 2}),
        (normal(2, 4, 3), normal(3), normal(4), GROUPS),
        (normal(4), {"groups": 2}),
    ],
)
def group_norm(
    xp: Any,
    x: Any,
    gamma: Any = None,
    beta: Any = None,
    *,
    groups: int,
    epsilon: float = 1e-5,
    inside: bool = False,
) -> Any:
    """Normalize groups of channels, each example alone: out = γ (x − μ) / (σ + ε) + β.

    inside: divide by √(σ² + ε), as the other norms do.

    Shapes: x [n, c, ...], gamma [c], beta [c] -> [n, c, ...]
    """
    rows = wide(xp, x).reshape((x.shape[0], groups, -1))
    out, mean, var = standard(xp, rows, (-1,), epsilon, inside)
    out = out.reshape((*x.shape[:2], -1))
    if gamma is not None:
        out *= gamma.reshape((-1, 1))
    if beta is not None:
        out += beta.reshape((-1, 1))
    return out.reshape(x.shape).astype(x.dtype, copy=False), mean, var


def group_norm_x(
    xp: Any,
    g: Any,
    x: Any,
    gamma: Any,
    mean: Any,
    var: Any,
    groups: int,
    epsilon: float,
    inside: bool,
) -> Any:
    """∂x, as in layer_norm, with a group of channels for a row."""
    h = wide(xp, g).reshape((*x.shape[:2], -1))
    h = h * (1 if gamma is None else gamma.reshape((-1, 1)))
    rows = (x.shape[0], groups, -1)
    x_rows = wide(xp, x).reshape(rows)
    dx = slope(xp, h.reshape(rows), x_rows, mean, var, (-1,), epsilon, inside)
    return dx.reshape(x.shape).astype(x.dtype, copy=False)


def group_norm_gamma(
    xp: Any,
    g: Any,
    x: Any,
    mean: Any,
    var: Any,
    groups: int,
    epsilon: float,
    inside: bool,
) -> Any:
    """∂γ = Σ g x̂ over examples and places."""
    rows = wide(xp, x).reshape((x.shape[0], groups, -1))
    hat = standard_again(xp, rows, mean, var, (-1,), epsilon, inside)
    return per_channel(xp, hat.reshape(x.shape) * g).astype(g.dtype, copy=False)


def channel_sums(xp: Any, g: Any) -> Any:
    """∂β = Σ g over examples and places."""
    return per_channel(xp, wide(xp, g)).astype(g.dtype, copy=False)


group_norm.grad(x=group_norm_x, gamma=group_norm_gamma, beta=channel_sums)


def standard(
    xp: Any, x: Any, axes: Axes, epsilon: float, inside: bool = True
) -> tuple[Any, Any, Any]:
    """x̂ = (x − μ) / √(σ² + ε) over some axes, μ and σ²."""
    mean = _mean(xp, x, axes)
    out = x - mean
    var = _mean(xp, out * out, axes)
    out *= scale_of(xp, var, epsilon, inside)
    return out, mean, var


def slope(
    xp: Any,
    h: Any,
    x: Any,
    mean: Any,
    var: Any,
    axes: Axes,
    epsilon: float,
    inside: bool = True,
) -> Any:
    """How x̂ answers to a change of x, times h: r (h − mean h) − (x − μ) mean(h x̂) s.

    r is what x − μ was multiplied by, and s how r falls with σ: r² for r = 1/√(σ² + ε),
    r/σ for r = 1/(σ + ε).
    """
    if remembers(xp):
        mean = _mean(xp, x, axes)
    centered = x - mean
    if remembers(xp):
        var = _mean(xp, centered * centered, axes)
    scale = scale_of(xp, var, epsilon, inside)
    fall = scale * scale * scale
    if not inside:
        fall = scale * scale / xp.maximum(xp.sqrt(var), FLOOR)
    along = _mean(xp, h * centered, axes)
    along *= fall
    centered *= along
    h -= _mean(xp, h, axes)
    h *= scale
    h -= centered
    return h


def standard_again(
    xp: Any,
    x: Any,
    mean: Any,
    var: Any,
    axes: Axes,
    epsilon: float,
    inside: bool = True,
) -> Any:
    """x̂, as it was forward."""
    if remembers(xp):
        return standard(xp, x, axes, epsilon, inside)[0]
    hat = x - mean
    hat *= scale_of(xp, var, epsilon, inside)
    return hat


def remembers(xp: Any) -> bool:
    """Whether every step of a rule becomes part of a graph."""
    return xp.__name__ == "burnbook"


def scale_of(xp: Any, var: Any, epsilon: float, inside: bool = True) -> Any:
    """What x − μ is multiplied by."""
    return 1 / (xp.sqrt(var + epsilon) if inside else xp.sqrt(var) + epsilon)


def _mean(xp: Any, x: Any, axes: Axes) -> Any:
    """The mean over some axes, which stay."""
    count = 1
    for axis in axes:
        count *= x.shape[axis]
    return xp.sum(x, axis=axes, keepdims=True) * (1 / count)


def per_channel(xp: Any, x: Any) -> Any:
    """The sums of all but dim 1."""
    flat = x.reshape((*x.shape[:2], -1))
    return xp.sum(flat, axis=(0, 2)).reshape(-1)


def wide(xp: Any, x: Any) -> Any:
    """Float16 has too few digits for sums: its rows are summed in float32."""
    return x.astype(xp.float32) if x.dtype.itemsize < 4 else x
