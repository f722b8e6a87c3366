"""Normalization: numbers with mean 0 and variance 1.

What is averaged over differs: one row (layer), the channels of a group in one example
(group), one channel in the whole batch (batch). Each op keeps the mean and the variance
it found, so its gradients are formulas of these and the input. Where steps are remembered
(a gradient of a gradient), they are found again, because they depend on the input too.
"""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op
from burnbook.ops.blocked import on_threads
from burnbook.ops.reduce import count, share, sum_along, sum_to

Axes = Shape
ParamShape = Shape | None  # of a scale or shift that may be missing
Needs = tuple[bool, ...]
MANY = 8192  # rows from which on a sum adds blocks of them
FLOOR = 1e-12  # a smaller standard deviation counts as this one where it divides
BLOCK = 1 << 17  # elements; what lies between the steps of more goes through the memory


def _last_dim(x: Shape, gamma: ParamShape, beta: ParamShape) -> str | None:
    """Why a scale or shift does not fit the last dim, or None if both do."""
    if not x or x[-1] == 0:
        return "there is nothing along the last dim to normalize"
    return _fits(x[-1], "the last dim of x", gamma, beta)


def channels_fit(x: Shape, gamma: ParamShape, beta: ParamShape) -> str | None:
    """Why a scale or shift does not fit the channels, or None if both do."""
    if len(x) < 2:
        return f"x must be [n, c, ...], with at least two dims, not {len(x)}"
    if 0 in x[1:]:
        return "there is nothing to normalize"
    return _fits(x[1], "the channels of x, dim 1,", gamma, beta)


def _fits(size: int, where: str, gamma: ParamShape, beta: ParamShape) -> str | None:
    for name, held in (("gamma", gamma), ("beta", beta)):
        if held is not None and len(held) != 1:
            return f"{name} must have one dim, not {len(held)}"
        if held is not None and held[0] != size:
            return f"{size} ≠ {held[0]}: {where} must equal the size of {name}"
    return None


@op("FFF>F FF>F F>F", check=_last_dim, extra="mean var", method=False)
def layer_norm(
    xp: ArrayNamespace,
    x: Array,
    gamma: Array | None = None,
    beta: Array | None = None,
    *,
    epsilon: float = 1e-5,
) -> Any:
    """Give every row mean 0 and variance 1: out = γ (x − μ) / √(σ² + ε) + β.

    Shapes: x [..., d], gamma [d], beta [d] -> [..., d]
    Why: μ and σ² = mean (x − μ)² are those of the row, so no example sees another one.
    """
    out, mean, var = standard(xp, wide(xp, x), (-1,), epsilon)
    return straight(out, gamma, beta).astype(x.dtype, copy=False), mean, var


def layer_norm_back(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    gamma: Array | None,
    mean: Array,
    var: Array,
    needs: Needs,
    epsilon: float,
) -> Any:
    """∂x as in `gradients`, ∂γ = Σ g x̂ and ∂β = Σ g over rows."""
    if too_large(xp, x):
        given = (g, x, gamma, (mean, var))
        return in_blocks(layer_norm_back, xp, *given, needs, epsilon)
    moments = (mean, var, (-1,), epsilon)
    dx, along = gradients(xp, wide(xp, g), wide(xp, x), gamma, *moments)
    return answer(xp, g, x, dx, along, wide(xp, g), (x.shape[-1],), needs)


layer_norm.grad(x=layer_norm_back, gamma=layer_norm_back, beta=layer_norm_back)

layer_norm.examples(
    samples=[
        (normal(3, 4), normal(4), normal(4), {"epsilon": 1e-5}),
        (normal(2, 3, 5), normal(5), {"epsilon": 0.1}),
        (normal(6), {"epsilon": 1e-5}),
    ],
    rejects=[(normal(3, 4), normal(3), normal(4)), (normal(3, 4), normal(1, 4))],
)


@op(
    "FF>F F>F",
    check=lambda x, gamma: _last_dim(x, gamma, None),
    extra="power",
    method=False,
)
def rms_norm(
    xp: ArrayNamespace, x: Array, gamma: Array | None = None, *, epsilon: float = 1e-5
) -> Any:
    """Give every row the length √d: out = γ x / √(mean x² + ε).

    Shapes: x [..., d], gamma [d] -> [..., d]
    """
    rows = wide(xp, x)
    power = mean_over(xp, rows * rows, (-1,))
    out = straight(rows * scale_of(xp, power, epsilon), gamma, None)
    return out.astype(x.dtype, copy=False), power


def rms_norm_back(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    gamma: Array | None,
    power: Any,
    needs: Needs,
    epsilon: float,
) -> Any:
    """∂x = r (h − x̂ mean(h x̂)), where r = 1 / √(mean x² + ε), x̂ = r x and h = g γ."""
    if too_large(xp, x):
        return in_blocks(rms_norm_back, xp, g, x, gamma, (power,), needs, epsilon)
    rows, slope = wide(xp, x), wide(xp, g)
    if remembers(xp):
        power = mean_over(xp, rows * rows, (-1,))
    scale = scale_of(xp, power, epsilon)
    hat = rows * scale
    along = slope * hat
    h = slope * (1 if gamma is None else gamma)
    hat *= mean_over(xp, h * hat, (-1,))
    h -= hat
    h *= scale
    return answer(xp, g, x, h, along, None, (x.shape[-1],), needs)


rms_norm.grad(x=rms_norm_back, gamma=rms_norm_back)

rms_norm.examples(
    samples=[
        (normal(3, 4), normal(4), {"epsilon": 1e-5}),
        (normal(2, 3, 5), {"epsilon": 0.1}),
    ],
    rejects=[(normal(3, 4), normal(3)), (normal(3, 4), normal(1, 4))],
)


def _groups(x: Shape, gamma: ParamShape, beta: ParamShape, groups: int) -> str | None:
    """Why channels cannot be normalized in groups, or None if they can."""
    if len(x) > 1 and (groups < 1 or x[1] % groups):
        return f"{x[1]} channels do not make {groups} groups"
    return channels_fit(x, gamma, beta)


GROUPS = {"groups": 2, "epsilon": 1e-5}


@op("FFF>F FF>F F>F", check=_groups, extra="mean var", method=False)
def group_norm(
    xp: ArrayNamespace,
    x: Array,
    gamma: Array | None = None,
    beta: Array | None = None,
    *,
    groups: int,
    epsilon: float = 1e-5,
    inside: bool = False,
) -> Any:
    """Normalize groups of channels, each example alone: out = γ (x − μ) / (σ + ε) + β.

    inside: divide by √(σ² + ε), as the other norms do.

    Shapes: x [n, c, ...], gamma [c], beta [c] -> [n, c, ...]
    """
    shape, line = _group_shapes(x.shape, groups)
    rows = wide(xp, x).reshape(shape)
    out, mean, var = standard(xp, rows, (2, 3), epsilon, inside)
    gamma = None if gamma is None else gamma.reshape(line)
    out = straight(out, gamma, None if beta is None else beta.reshape(line))
    return out.reshape(x.shape).astype(x.dtype, copy=False), mean, var


def group_norm_back(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    gamma: Array | None,
    mean: Array,
    var: Array,
    needs: Needs,
    groups: int,
    epsilon: float,
    inside: bool,
) -> Any:
    """The same as for rows, with a group of channels for a row."""
    if too_large(xp, x):
        rest = (needs, groups, epsilon, inside)
        return in_blocks(group_norm_back, xp, g, x, gamma, (mean, var), *rest)
    shape, line = _group_shapes(x.shape, groups)
    gamma = None if gamma is None else gamma.reshape(line)
    slope, rows = wide(xp, g).reshape(shape), wide(xp, x).reshape(shape)
    moments = (mean, var, (2, 3), epsilon, inside)
    dx, along = gradients(xp, slope, rows, gamma, *moments)
    return answer(xp, g, x, dx, along, slope, line, needs)


group_norm.grad(x=group_norm_back, gamma=group_norm_back, beta=group_norm_back)

group_norm.examples(
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


def _group_shapes(x: Shape, groups: int) -> tuple[Shape, Shape]:
    """x as [n, groups, channels of a group, places], and γ as it stretches over that."""
    each = x[1] // groups
    return (x[0], groups, each, count(x[2:])), (groups, each, 1)


def standard(
    xp: ArrayNamespace, x: Array, axes: Axes, epsilon: float, inside: bool = True
) -> tuple[Any, Any, Any]:
    """x̂ = (x − μ) / √(σ² + ε) over some axes, μ and σ²."""
    mean = mean_over(xp, x, axes)
    out = x - mean
    rest = mean_over(xp, out, axes)  # what a rounded mean is off by
    out -= rest
    mean = mean + rest
    var = mean_over(xp, out * out, axes)
    out *= scale_of(xp, var, epsilon, inside)
    return out, mean, var


def straight(out: Array, gamma: Array | None, beta: Array | None) -> Any:
    """γ out + β, in the memory of `out`."""
    if gamma is not None:
        out *= gamma
    if beta is not None:
        out += beta
    return out


def gradients(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    gamma: Array | None,
    mean: Array,
    var: Array,
    axes: Axes,
    epsilon: float,
    inside: bool = True,
) -> tuple[Any, Any]:
    """∂x = r (h − mean h − x̂ mean(h x̂) q), and g x̂, whose sums are ∂γ; h = g γ.

    r is what x − μ was multiplied by. For r = 1/√(σ² + ε) q is 1, for r = 1/(σ + ε) it
    is (σ + ε) / σ.
    """
    if remembers(xp):
        hat, _, var = standard(xp, x, axes, epsilon, inside)
        scale = scale_of(xp, var, epsilon, inside)
    else:
        scale = scale_of(xp, var, epsilon, inside)
        hat = x - mean
        hat *= scale
    along = g * hat
    h = g * (1 if gamma is None else gamma)
    common = mean_over(xp, h * hat, axes)
    if not inside:
        common = common / (scale * xp.maximum(xp.sqrt(var), FLOOR))
    hat *= common
    h -= mean_over(xp, h, axes)
    h -= hat
    h *= scale
    return h, along


def answer(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    dx: Array,
    along: Array,
    slope: Array | None,
    line: Shape,
    needs: Needs,
) -> tuple[Any, ...]:
    """The gradients that are needed: ∂x, and sums for γ and β, each in its shape."""
    found = [dx.reshape(x.shape).astype(x.dtype, copy=False) if needs[0] else None]
    for each, need in zip((along, slope), needs[1:], strict=False):
        if need:
            total = sum_to(xp, each, shape=line).reshape((-1,))
            found.append(total.astype(g.dtype, copy=False))
        else:
            found.append(None)
    return tuple(found)


def too_large(xp: ArrayNamespace, x: Array) -> bool:
    """Whether the arrays between the steps of a rule should be smaller than x."""
    return xp.__name__ == "numpy" and x.size > BLOCK and x.shape[0] > 1


def in_blocks(
    back: Any,
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    gamma: Array | None,
    moments: tuple[Any, ...],
    needs: Needs,
    *rest: Any,
) -> tuple[Any, ...]:
    """A gradient, some rows of the first dim at a time; ∂γ and ∂β add up.

    Why: a fresh array of some megabytes costs more to map than to fill.
    """
    step = max(1, BLOCK * x.shape[0] // x.size)
    blocks = [slice(i, i + step) for i in range(0, x.shape[0], step)]
    found: list[Any] = [None] * len(blocks)

    def work(start: int, stop: int) -> None:
        for i in range(start, stop):
            block = blocks[i]
            kept = [m[block] for m in moments]
            found[i] = back(xp, g[block], x[block], gamma, *kept, needs, *rest)

    on_threads(xp, work, len(blocks), len(blocks) > 1)
    parts, *sums = zip(*found, strict=True)
    totals = [None if some[0] is None else sum(some[1:], some[0]) for some in sums]
    return (xp.concatenate(parts) if needs[0] else None, *totals)


def remembers(xp: ArrayNamespace) -> bool:
    """Whether every step of a rule becomes part of a graph."""
    return xp.__name__ == "burnbook"


def scale_of(
    xp: ArrayNamespace, var: Array, epsilon: float, inside: bool = True
) -> Any:
    """What x − μ is multiplied by."""
    return 1 / (xp.sqrt(var + epsilon) if inside else xp.sqrt(var) + epsilon)


def mean_over(xp: ArrayNamespace, x: Array, axes: Axes) -> Any:
    """The mean over some axes, which stay.

    Why: NumPy adds row after row along all axes but the last, which is quick, but over
    millions of rows the sum would lose digits.
    """
    if x.shape[axes[0]] < MANY:
        total = xp.sum(x, axis=axes, keepdims=True)
    else:
        total = x
        for axis in sorted(axes, reverse=True):
            total = sum_along(xp, total, axis)
    return total * share(count(tuple(x.shape[axis] for axis in axes)))


def wide(xp: ArrayNamespace, x: Array) -> Any:
    """Float16 has too few digits for sums: its rows are summed in float32."""
    return x.astype(xp.float32) if x.dtype.itemsize < 4 else x
