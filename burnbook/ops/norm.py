"""Building blocks · Module. Normalization: numbers with mean 0 and variance 1.

Each op keeps the mean and what it divided by, one number per row, so its gradient is a
formula of the input and these. Where steps are remembered (a gradient of a gradient),
the rules compute both again, because they depend on the input as well.
"""

from typing import Any

from burnbook.op import normal, op
from burnbook.ops.reduce import sum_to


def _last_dim(
    x: tuple[int, ...], gamma: tuple[int, ...] | None, beta: tuple[int, ...] | None
) -> str | None:
    """Why a scale or shift does not fit the last dim, or None if both do."""
    if not x or x[-1] == 0:
        return "there is nothing along the last dim to normalize"
    for name, held in (("gamma", gamma), ("beta", beta)):
        if held is not None and len(held) != 1:
            return f"{name} must have one dim, not {len(held)}"
        if held is not None and held[0] != x[-1]:
            return f"{x[-1]} ≠ {held[0]}: the last dim of x must equal that of {name}"
    return None


@op(
    "FFF>F FF>F F>F",
    check=_last_dim,
    extra="mean scale",
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
    out, mean, scale = _standard(xp, _wide(xp, x), epsilon)
    if gamma is not None:
        out *= gamma
    if beta is not None:
        out += beta
    return out.astype(x.dtype, copy=False), mean, scale


def layer_norm_x(
    xp: Any, g: Any, x: Any, gamma: Any, mean: Any, scale: Any, epsilon: float
) -> Any:
    """∂x = (h − mean h − x̂ mean(h x̂)) / √(σ² + ε), where h = g γ."""
    hat, scale = _again(xp, x, mean, scale, epsilon)
    h = _wide(xp, g) * (1 if gamma is None else gamma)
    along = _mean(xp, h * hat)
    h -= _mean(xp, h)
    hat *= along
    h -= hat
    h *= scale
    return h.astype(x.dtype, copy=False)


def layer_norm_gamma(
    xp: Any, g: Any, x: Any, gamma: Any, mean: Any, scale: Any, epsilon: float
) -> Any:
    """∂γ = Σ g x̂ over rows."""
    hat, _ = _again(xp, x, mean, scale, epsilon)
    hat *= g
    return sum_to(xp, hat, shape=gamma.shape).astype(gamma.dtype, copy=False)


def layer_norm_beta(xp: Any, g: Any) -> Any:
    """∂β = Σ g over rows."""
    total = sum_to(xp, _wide(xp, g), shape=(g.shape[-1],))
    return total.astype(g.dtype, copy=False)


layer_norm.grad(x=layer_norm_x, gamma=layer_norm_gamma, beta=layer_norm_beta)


def _standard(xp: Any, x: Any, epsilon: float) -> tuple[Any, Any, Any]:
    """(x − μ) / √(σ² + ε) along the last dim, μ and 1 / √(σ² + ε)."""
    mean = _mean(xp, x)
    out = x - mean
    scale = (_mean(xp, out * out) + epsilon) ** -0.5
    out *= scale
    return out, mean, scale


def _again(xp: Any, x: Any, mean: Any, scale: Any, epsilon: float) -> tuple[Any, Any]:
    """x̂ and the scale of the rows, as they were forward."""
    x = _wide(xp, x)
    if xp.__name__ == "burnbook":  # a gradient of the gradient will be asked for
        hat, _, scale = _standard(xp, x, epsilon)
        return hat, scale
    hat = x - mean
    hat *= scale
    return hat, scale


def _mean(xp: Any, x: Any) -> Any:
    """The mean along the last dim, which stays."""
    return xp.sum(x, axis=-1, keepdims=True) * (1 / x.shape[-1])


def _wide(xp: Any, x: Any) -> Any:
    """Float16 has too few digits for sums: its rows are summed in float32."""
    return x.astype(xp.float32) if x.dtype.itemsize < 4 else x
