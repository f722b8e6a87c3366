"""Matrix products, and the linear layer in one pass."""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op
from burnbook.ops.reduce import count, sum_to


def inner_sizes(x: Shape, y: Shape) -> str | None:
    """Why two matrices cannot be multiplied, or None if they can."""
    if len(x) < 2:
        return "a matrix has at least two dims; use unsqueeze to add one"
    if x[-1] != y[-2]:
        return (
            f"{x[-1]} ≠ {y[-2]}: the last dim of x must equal "
            "the second-to-last dim of y"
        )
    for dim, (a, b) in enumerate(zip(x[:-2], y[:-2], strict=True)):
        if a != b and 1 not in (a, b):
            return f"{a} ≠ {b} at dim {dim}: sizes must be equal, or one of them 1"
    return None


@op("FF>F II>I", symbol="@", same_rank=True, reason=inner_sizes)
def matmul(xp: ArrayNamespace, x: Array, y: Array) -> Array:
    """Multiply matrices: outᵢⱼ = Σₖ xᵢₖ yₖⱼ.

    Shapes: x [..., m, k], y [..., k, n] -> [..., m, n]
    """
    if x.ndim == 2:
        return xp.dot(x, y)  # the same, and twice as quick for small matrices
    if x.ndim < 2:
        raise ValueError("NumPy would multiply vectors as well")
    return xp.matmul(x, y)


def matmul_x(xp: ArrayNamespace, g: Array, y: Array) -> Any:
    """∂x = g · yᵀ."""
    return xp.dot(g, y.T) if y.ndim == 2 else xp.matmul(g, y.swapaxes(-1, -2))


def matmul_y(xp: ArrayNamespace, g: Array, x: Array) -> Any:
    """∂y = xᵀ · g."""
    return xp.dot(x.T, g) if x.ndim == 2 else xp.matmul(x.swapaxes(-1, -2), g)


matmul.grad(x=matmul_x, y=matmul_y)

matmul.examples(
    samples=[(normal(3, 4), normal(4, 5)), (normal(2, 3, 4), normal(1, 4, 5))],
    rejects=[(normal(3, 4), normal(5, 4)), (normal(3), normal(3))],
)


def linear_fits(x: Shape, weight: Shape, bias: Shape | None) -> str | None:
    """Why a weight or bias does not fit, or None if both do."""
    if len(weight) != 2:
        return f"a weight has two dims [d_input, d_output], not {len(weight)}"
    if x[-1] != weight[0]:
        return f"{x[-1]} ≠ {weight[0]}: the last dim of x must equal d_input"
    if bias is not None and tuple(bias) != (weight[1],):
        return f"a bias for this weight has shape [{weight[1]}], not {list(bias)}"
    return None


@op("FFF>F FF>F", check=linear_fits)
def linear(
    xp: ArrayNamespace, x: Array, weight: Array, bias: Array | None = None
) -> Array:
    """The linear layer in one pass: out = x · weight + bias.

    Shapes: x [..., i], weight [i, o], bias [o] -> [..., o]
    """
    if x.ndim != 2:  # one product of all rows, not many small ones
        rows = x.reshape(count(x.shape[:-1]), x.shape[-1])
        out = linear.forward(xp, rows, weight, bias)
        return out.reshape(*x.shape[:-1], weight.shape[1])
    out = xp.dot(x, weight)
    if bias is None:
        return out
    out += bias
    return out


def linear_weight(xp: ArrayNamespace, g: Array, x: Array) -> Any:
    """All examples at once: ∂weight = xᵀ · g over rows."""
    if x.ndim == 2:
        return xp.dot(x.swapaxes(0, 1), g)
    rows, slopes = (xp.reshape(a, (count(a.shape[:-1]), a.shape[-1])) for a in (x, g))
    return xp.matmul(rows.swapaxes(-1, -2), slopes)


def linear_bias(xp: ArrayNamespace, g: Array) -> Any:
    """The bias was added to every row, so its gradient is the sum over rows."""
    return sum_to(xp, g, shape=(g.shape[-1],))


linear.grad(
    x=lambda xp, g, weight: linear(xp, g, weight.swapaxes(-1, -2)),
    weight=linear_weight,
    bias=linear_bias,
)

linear.examples(
    samples=[
        (normal(3, 4), normal(4, 5), normal(5)),
        (normal(2, 3, 4), normal(4, 5), normal(5)),
        (normal(4), normal(4, 5)),
    ],
    rejects=[(normal(3, 4), normal(5, 4)), (normal(3, 4), normal(4, 5), normal(4))],
)
