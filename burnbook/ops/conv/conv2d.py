"""Convolution in two dims, and its two gradients.

A convolution is a matrix product in disguise: lay every patch of the image out as a
column, and the kernel is a matrix that multiplies all of them at once. The columns are
laid out for a few rows of a few images at a time, so that they stay in the cache.
"""

from functools import lru_cache
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.conv.im2col2d import Block, Pair, Plan, Shape4


@lru_cache(maxsize=256)
def _fits(
    x: Shape4,
    weight: Shape4,
    bias: tuple[int, ...] | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> str | None:
    if len(x) != 4 or len(weight) != 4:
        return "x must be [n, c, h, w] and weight [o, c / groups, kh, kw]"
    if groups < 1 or x[1] != weight[1] * groups:
        return (
            f"{x[1]} ≠ {weight[1]} · {groups}: the channels of x must equal those of "
            "weight times groups"
        )
    if weight[0] % groups:
        return f"{weight[0]} output channels do not divide into {groups} groups"
    if bias is not None and tuple(bias) != (weight[0],):
        return f"the bias must hold one number per output channel, [{weight[0]}]"
    for dim in (0, 1):
        span = dilation[dim] * (weight[2 + dim] - 1) + 1
        room = x[2 + dim] + 2 * padding[dim]
        if span > room:
            name = ("height", "width")[dim]
            return f"the kernel spans {span} but the padded {name} is {room}"
    return None


@op("FFF>F FF>F", check=_fits)
def conv2d(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    """Slide weight over x, take a dot product at every stop, and add the bias.

    Shapes: x [n, c, h, w], weight [o, c', k, l], bias [o] -> [n, o, h', w']
    """
    plan = Plan.of(x.shape, weight.shape, stride, padding, dilation, groups)
    kernel = weight.reshape(groups, plan.o // groups, plan.taps)
    offsets = None if bias is None else bias.reshape(-1, 1, 1)
    if plan.is_product:
        flat = x.reshape(plan.n, groups, plan.taps, plan.rows * plan.cols)
        out = xp.matmul(kernel, flat).reshape(plan.n, plan.o, plan.rows, plan.cols)
        return out if offsets is None else xp.add(out, offsets, out=out)
    padded = plan.pad(xp, x)
    blocks = plan.blocks(xp, x.dtype)
    if len(blocks) == 1:
        product = blocks[0].product(xp, kernel, padded)
        if offsets is None:
            return xp.ascontiguousarray(product)
        return xp.add(product, offsets)
    out = xp.empty((plan.n, plan.o, plan.rows, plan.cols), dtype=x.dtype)
    if bias is not None:  # one more tap: short runs are copied faster than added to
        taps = [kernel, bias.reshape(groups, plan.o // groups, 1)]
        kernel = xp.concatenate(taps, axis=2)

    def fill(block: Block) -> None:
        out[block.images, :, block.rows] = block.product(xp, kernel, padded)

    plan.each_block(xp, x.dtype, fill)
    return out


@op("FF>F", method=False)
def conv2d_x(
    xp: ArrayNamespace,
    dout: Array,
    weight: Array,
    *,
    x_shape: Shape4,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    """The gradient of conv2d for x: every stop gives its patch back, weighted.

    Shapes: dout [n, o, h', w'], weight [o, c', k, l] -> [n, c, h, w]
    """
    plan = Plan.of(x_shape, weight.shape, stride, padding, dilation, groups)
    padded = xp.zeros(plan.padded_shape, dtype=dout.dtype)
    kernel = weight.reshape(groups, plan.o // groups, plan.taps).swapaxes(1, 2)
    kernel = xp.ascontiguousarray(kernel)

    def add_back(block: Block) -> None:
        block.add_patches(padded, xp.matmul(kernel, block.spread(xp, dout)))

    plan.each_block(xp, dout.dtype, add_back)
    return plan.unpad(padded)


@op("FF>F", method=False)
def conv2d_weight(
    xp: ArrayNamespace,
    dout: Array,
    x: Array,
    *,
    weight_shape: Shape4,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    groups: int = 1,
) -> Array:
    """The gradient of conv2d for weight: how each tap met the gradient, summed.

    Shapes: dout [n, o, h', w'], x [n, c, h, w] -> [o, c', k, l]
    """
    plan = Plan.of(x.shape, weight_shape, stride, padding, dilation, groups)
    padded = plan.pad(xp, x)

    def part(block: Block) -> Any:
        columns = block.columns(xp, padded).swapaxes(-1, -2)
        return xp.matmul(block.spread(xp, dout), columns).sum(axis=0)

    total = xp.zeros((groups, plan.o // groups, plan.taps), dtype=dout.dtype)
    for found in plan.each_block(xp, dout.dtype, part):
        total += found
    return total.reshape(weight_shape)


def _attrs(stride: Pair, padding: Pair, dilation: Pair, groups: int) -> dict[str, Any]:
    return {
        "stride": stride,
        "padding": padding,
        "dilation": dilation,
        "groups": groups,
    }


conv2d.grad(
    x=conv2d_x,
    weight=conv2d_weight,
    bias=lambda xp, g: xp.sum(g, axis=(0, 2, 3)),
)

conv2d.examples(
    samples=[
        (normal(2, 3, 7, 6), normal(4, 3, 3, 2), normal(4)),
        (normal(2, 3, 7, 6), normal(4, 3, 1, 1)),
        (
            normal(2, 4, 8, 9),
            normal(6, 2, 3, 2),
            normal(6),
            {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2), "groups": 2},
        ),
    ],
    rejects=[
        (normal(2, 3, 7, 6), normal(4, 2, 3, 2)),
        (normal(2, 3, 2, 2), normal(4, 3, 3, 3)),
        (normal(2, 3, 7, 6), normal(4, 3, 3, 2), normal(3)),
    ],
)

# Convolution is linear in x and in weight, so its gradients are made of itself.
conv2d_x.grad(
    dout=lambda xp, g, weight, stride, padding, dilation, groups: conv2d(
        xp, g, weight, **_attrs(stride, padding, dilation, groups)
    ),
    weight=lambda xp, g, dout, weight_shape, stride, padding, dilation, groups: (
        conv2d_weight(
            xp,
            dout,
            g,
            weight_shape=weight_shape,
            **_attrs(stride, padding, dilation, groups),
        )
    ),
)
conv2d_weight.grad(
    dout=lambda xp, g, x, stride, padding, dilation, groups: conv2d(
        xp, x, g, **_attrs(stride, padding, dilation, groups)
    ),
    x=lambda xp, g, dout, x_shape, stride, padding, dilation, groups: conv2d_x(
        xp, dout, g, x_shape=x_shape, **_attrs(stride, padding, dilation, groups)
    ),
)
