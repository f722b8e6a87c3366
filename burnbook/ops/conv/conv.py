"""Convolution in any number of dims, and its two gradients.

A convolution is a matrix product in disguise: lay every patch of the image out as a
column, and the kernel is a matrix that multiplies all of them at once. The columns are
laid out for a few rows of a few images at a time, so that they stay in the cache.

`conv2d` serves images, with compiled kernels of its own; `conv` serves sounds and texts
(one dim) and films and scans (three), and leaves no option out.
"""

from functools import lru_cache
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op
from burnbook.ops.conv.im2col import Block, Plan
from burnbook.ops.conv.windows import LETTERS, Pair, Shape4, Sizes, fits_inside
from burnbook.ops.reduce import sum_to


def expected_shapes(dims: int, channels: str) -> str:
    """What x and weight must be, for images of so many dims."""
    sizes = LETTERS.get(dims, "l")
    kernel = ", ".join(f"k{name}" for name in sizes.split(", "))
    return f"x must be [n, c, {sizes}] and weight [{channels} / groups, {kernel}]"


def _fits(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> str | None:
    dims = len(weight) - 2
    if len(x) != len(weight) or dims not in LETTERS:
        return expected_shapes(dims, "o, c")
    if groups < 1 or x[1] != weight[1] * groups:
        return (
            f"{x[1]} ≠ {weight[1]} · {groups}: the channels of x must equal those of "
            "weight times groups"
        )
    if weight[0] % groups:
        return f"{weight[0]} output channels do not divide into {groups} groups"
    if bias is not None and tuple(bias) != (weight[0],):
        return f"the bias must hold one number per output channel, [{weight[0]}]"
    return fits_inside("kernel", x[2:], weight[2:], stride, padding, dilation)


@lru_cache(maxsize=256)
def _fits_images(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> str | None:
    if len(weight) != 4:
        return expected_shapes(2, "o, c")
    return _fits(x, weight, bias, stride, padding, dilation, groups)


@op("FFF>F FF>F", check=_fits_images)
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
    return _convolve(xp, x, weight, bias, plan)


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
    return _give_back(xp, dout, weight, plan)


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
    return _meet(xp, dout, x, plan).reshape(weight_shape)


def conv_options(
    stride: Sizes, padding: Sizes, dilation: Sizes, groups: int = 1
) -> dict[str, Any]:
    """How a kernel moves, as the attributes of `conv`."""
    steps = {"stride": stride, "padding": padding, "dilation": dilation}
    return {**steps, "groups": groups}


@op("FFF>F FF>F", check=_fits, method=False)
def conv(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    """Slide weight over x, take a dot product at every stop, and add the bias.

    Shapes: x [n, c, ...], weight [o, c', ...], bias [o] -> [n, o, ...]
    """
    plan = Plan.of(x.shape, weight.shape, stride, padding, dilation, groups)
    return _convolve(xp, x, weight, bias, plan)


@op("FF>F", method=False)
def conv_x(
    xp: ArrayNamespace,
    dout: Array,
    weight: Array,
    *,
    x_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    """The gradient of conv for x: every stop gives its patch back, weighted.

    Shapes: dout [n, o, ...], weight [o, c', ...] -> [n, c, ...]
    """
    sizes = (stride, padding, dilation, groups, dout.shape[2:])
    return _give_back(xp, dout, weight, Plan.of(x_shape, weight.shape, *sizes))


@op("FF>F", method=False)
def conv_weight(
    xp: ArrayNamespace,
    dout: Array,
    x: Array,
    *,
    weight_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    """The gradient of conv for weight: how each tap met the gradient, summed.

    Shapes: dout [n, o, ...], x [n, c, ...] -> [o, c', ...]
    """
    sizes = (stride, padding, dilation, groups, dout.shape[2:])
    plan = Plan.of(x.shape, weight_shape, *sizes)
    return _meet(xp, dout, x, plan).reshape(weight_shape)


def _convolve(
    xp: ArrayNamespace, x: Array, weight: Array, bias: Array | None, plan: Plan
) -> Array:
    """The kernel times the columns, block by block, plus the bias."""
    kernel = weight.reshape(plan.kernel_shape)
    offsets = None if bias is None else bias.reshape(plan.bias_shape)
    if plan.is_product:
        flat = x.reshape(plan.n, plan.groups, plan.taps, plan.count)
        out = xp.matmul(kernel, flat).reshape(plan.out_shape)
        return out if offsets is None else xp.add(out, offsets, out=out)
    padded = plan.pad(xp, x)
    blocks = plan.blocks(xp, x.dtype)
    if len(blocks) == 1:
        product = blocks[0].product(xp, kernel, padded)
        if offsets is None:
            return xp.ascontiguousarray(product)
        return xp.add(product, offsets)
    out = xp.empty(plan.out_shape, dtype=x.dtype)
    if bias is not None:  # one more tap: short runs are copied faster than added to
        taps = [kernel, bias.reshape(*kernel.shape[:2], 1)]
        kernel = xp.concatenate(taps, axis=2)

    def fill(block: Block) -> None:
        out[block.images, :, block.rows] = block.product(xp, kernel, padded)

    plan.each_block(xp, x.dtype, fill)
    return out


def _give_back(xp: ArrayNamespace, dout: Array, weight: Array, plan: Plan) -> Array:
    """The turned kernel times the gradient gives columns; each returns to its patch."""
    kernel = weight.reshape(plan.kernel_shape).swapaxes(1, 2)
    kernel = xp.ascontiguousarray(kernel)
    if plan.is_product:
        flat = dout.reshape(plan.n, *plan.kernel_shape[:2], plan.count)
        return xp.matmul(kernel, flat).reshape(plan.padded_shape)
    padded = xp.zeros(plan.padded_shape, dtype=dout.dtype)

    def add_back(block: Block) -> None:
        block.add_patches(padded, xp.matmul(kernel, block.spread(xp, dout)))

    plan.each_block(xp, dout.dtype, add_back)
    return plan.windows.unpad(padded)


def _meet(xp: ArrayNamespace, dout: Array, x: Array, plan: Plan) -> Array:
    """The gradient times the columns, summed over all images: one number per tap."""
    padded = plan.pad(xp, x)

    def part(block: Block) -> Array:
        columns = block.columns(xp, padded).swapaxes(-1, -2)
        return xp.matmul(block.spread(xp, dout), columns).sum(axis=0)

    total = xp.zeros(plan.kernel_shape, dtype=dout.dtype)
    for found in plan.each_block(xp, dout.dtype, part):
        total += found
    return total


def sum_to_channels(xp: ArrayNamespace, g: Array) -> Array:
    """The gradient of a bias: one number per channel."""
    line = (1, g.shape[1], *(1,) * (len(g.shape) - 2))
    return sum_to(xp, g, shape=line).reshape((-1,))


def convolve_to(
    xp: ArrayNamespace, x: Array, weight: Array, out_shape: Shape, sizes: dict[str, Any]
) -> Array:
    """Convolve; a stop that the output does not have is left out."""
    out = conv(xp, x, weight, **sizes)
    if tuple(out.shape) == tuple(out_shape):
        return out
    return out[tuple([slice(0, n) for n in out_shape])]


conv2d.grad(x=conv2d_x, weight=conv2d_weight, bias=sum_to_channels)
conv.grad(x=conv_x, weight=conv_weight, bias=sum_to_channels)

# Convolution is linear in x and in weight, so its gradients are made of itself.

conv2d_x.grad(
    dout=lambda xp, g, weight, x_shape, **sizes: conv2d(xp, g, weight, **sizes),
    weight=lambda xp, g, dout, weight_shape, x_shape, **sizes: conv2d_weight(
        xp, dout, g, weight_shape=weight_shape, **sizes
    ),
)
conv2d_weight.grad(
    dout=lambda xp, g, x, weight_shape, **sizes: conv2d(xp, x, g, **sizes),
    x=lambda xp, g, dout, x_shape, weight_shape, **sizes: conv2d_x(
        xp, dout, g, x_shape=x_shape, **sizes
    ),
)
conv_x.grad(
    dout=lambda xp, g, weight, dout_shape, x_shape, **sizes: convolve_to(
        xp, g, weight, dout_shape, sizes
    ),
    weight=lambda xp, g, dout, weight_shape, x_shape, **sizes: conv_weight(
        xp, dout, g, weight_shape=weight_shape, **sizes
    ),
)
conv_weight.grad(
    dout=lambda xp, g, x, dout_shape, weight_shape, **sizes: convolve_to(
        xp, x, g, dout_shape, sizes
    ),
    x=lambda xp, g, dout, x_shape, weight_shape, **sizes: conv_x(
        xp, dout, g, x_shape=x_shape, **sizes
    ),
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

_PLAIN = conv_options((1,), (0,), (1,))
_PLAIN_3D = conv_options((1, 1, 1), (0, 0, 0), (1, 1, 1))
_GROUPED = conv_options((2,), (4,), (2,), 2)
_GROUPED_3D = conv_options((2, 1, 3), (1, 0, 1), (1, 2, 2), 2)
_PADDED_2D = conv_options((1, 2), (1, 0), (1, 1))
_PADDED_3D = conv_options((1, 1, 1), (1, 0, 2), (1, 1, 2))

conv.examples(
    samples=[
        (normal(2, 3, 7), normal(4, 3, 3), normal(4), _PLAIN),
        (normal(2, 4, 9), normal(6, 2, 3), _GROUPED),
        (normal(2, 3, 5), normal(4, 3, 1), _PLAIN),
        (normal(2, 2, 4, 5, 6), normal(3, 2, 2, 3, 2), normal(3), _PADDED_3D),
        (normal(1, 4, 5, 4, 6), normal(4, 2, 3, 1, 2), _GROUPED_3D),
        (normal(2, 2, 6, 5), normal(3, 2, 2, 3), _PADDED_2D),
    ],
    rejects=[
        (normal(2, 3, 7), normal(4, 2, 3), _PLAIN),
        (normal(2, 3, 7), normal(4, 3, 3, 3), _PLAIN),
        (normal(2, 3, 2), normal(4, 3, 3), _PLAIN),
        (normal(2, 3, 7), normal(4, 3, 3), {**_PLAIN, "stride": (1, 1)}),
        (normal(2, 3, 7), normal(4, 3, 3), {**_PLAIN, "stride": (0,)}),
    ],
)

conv_x.examples(
    samples=[
        (normal(2, 6, 7), normal(6, 2, 3), {"x_shape": (2, 4, 9), **_GROUPED}),
        (
            normal(1, 2, 3, 4, 3),
            normal(2, 3, 2, 1, 2),
            {"x_shape": (1, 3, 4, 4, 4), **_PLAIN_3D},
        ),
    ],
)

conv_weight.examples(
    samples=[
        (normal(2, 6, 7), normal(2, 4, 9), {"weight_shape": (6, 2, 3), **_GROUPED}),
        (
            normal(1, 2, 3, 4, 3),
            normal(1, 3, 4, 4, 4),
            {"weight_shape": (2, 3, 2, 1, 2), **_PLAIN_3D},
        ),
    ],
)
