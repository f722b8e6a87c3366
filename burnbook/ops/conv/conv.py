"""Convolution in any number of dims, and its two gradients.

In two dims `conv2d` says the same and has kernels of its own; this one serves sounds
and texts (one dim) and films and scans (three).
"""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.conv.im2col import Layout
from burnbook.ops.conv.windows import LETTERS, Shape, Sizes, fits_inside


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
        sizes = LETTERS.get(dims, "l")
        kernel = ", ".join(f"k{name}" for name in sizes.split(", "))
        return f"x must be [n, c, {sizes}] and weight [o, c / groups, {kernel}]"
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


def _options(*numbers: Any) -> dict[str, Any]:
    names = ("stride", "padding", "dilation", "groups")
    return dict(zip(names, numbers, strict=True))


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
    layout = Layout(x.shape, weight.shape, stride, padding, dilation, groups)
    out = xp.empty((layout.n, layout.o, *layout.stops), dtype=x.dtype)
    kernel = weight.reshape(groups, layout.o // groups, layout.taps)
    if layout.is_product:
        flat = x.reshape(layout.n, groups, layout.taps, layout.count)
        into = out.reshape(layout.n, groups, layout.o // groups, layout.count)
        xp.matmul(kernel, flat, out=into)
    else:
        padded = layout.windows.pad(xp, x)
        for block in layout.blocks(xp, x.dtype):
            product = xp.matmul(kernel, block.columns(padded))
            out[block.images, :, block.rows] = block.crop(product)
    if bias is not None:
        out += bias.reshape(-1, *[1] * len(layout.stops))
    return out


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
    sizes = (stride, padding, dilation, groups)
    layout = Layout(x_shape, weight.shape, *sizes, tuple(dout.shape[2:]))
    kernel = weight.reshape(groups, layout.o // groups, layout.taps).swapaxes(1, 2)
    kernel = xp.ascontiguousarray(kernel)
    if layout.is_product:
        flat = dout.reshape(layout.n, groups, layout.o // groups, layout.count)
        return xp.matmul(kernel, flat).reshape(x_shape)
    padded = xp.zeros((*x_shape[:2], *layout.windows.grown), dtype=dout.dtype)
    for block in layout.blocks(xp, dout.dtype):
        block.add_patches(padded, xp.matmul(kernel, block.spread(dout)))
    return layout.windows.unpad(padded)


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
    sizes = (stride, padding, dilation, groups)
    layout = Layout(x.shape, weight_shape, *sizes, tuple(dout.shape[2:]))
    padded = layout.windows.pad(xp, x)
    total = xp.zeros((groups, layout.o // groups, layout.taps), dtype=dout.dtype)
    for block in layout.blocks(xp, dout.dtype):
        columns = block.columns(padded).swapaxes(-1, -2)
        total += xp.matmul(block.spread(dout), columns).sum(axis=0)
    return total.reshape(weight_shape)


def sum_to_channels(xp: ArrayNamespace, g: Array) -> Any:
    """The gradient of a bias: one number per channel."""
    return xp.sum(g, axis=(0, *range(2, len(g.shape))))


conv.grad(x=conv_x, weight=conv_weight, bias=sum_to_channels)

conv.examples(
    samples=[
        (normal(2, 3, 7), normal(4, 3, 3), normal(4), _options((1,), (0,), (1,), 1)),
        (normal(2, 4, 9), normal(6, 2, 3), _options((2,), (4,), (2,), 2)),
        (normal(2, 3, 5), normal(4, 3, 1), _options((1,), (0,), (1,), 1)),
        (
            normal(2, 2, 4, 5, 6),
            normal(3, 2, 2, 3, 2),
            normal(3),
            _options((1, 1, 1), (1, 0, 2), (1, 1, 2), 1),
        ),
        (
            normal(1, 4, 5, 4, 6),
            normal(4, 2, 3, 1, 2),
            _options((2, 1, 3), (1, 0, 1), (1, 2, 2), 2),
        ),
        (
            normal(2, 2, 6, 5),
            normal(3, 2, 2, 3),
            _options((1, 2), (1, 0), (1, 1), 1),
        ),
    ],
    rejects=[
        (normal(2, 3, 7), normal(4, 2, 3), _options((1,), (0,), (1,), 1)),
        (normal(2, 3, 7), normal(4, 3, 3, 3), _options((1,), (0,), (1,), 1)),
        (normal(2, 3, 2), normal(4, 3, 3), _options((1,), (0,), (1,), 1)),
        (normal(2, 3, 7), normal(4, 3, 3), _options((1, 1), (0,), (1,), 1)),
        (normal(2, 3, 7), normal(4, 3, 3), _options((0,), (0,), (1,), 1)),
    ],
)


# Convolution is linear in x and in weight, so its gradients are made of itself.


def conv_x_dout(
    xp: ArrayNamespace,
    g: Array,
    weight: Array,
    dout_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Convolve; a stop that dout does not have is left out."""
    out = conv(xp, g, weight, **_options(stride, padding, dilation, groups))
    if tuple(out.shape) == tuple(dout_shape):
        return out
    return out[tuple([slice(0, n) for n in dout_shape])]


def conv_x_weight(
    xp: ArrayNamespace,
    g: Array,
    dout: Array,
    weight_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """How each tap met g, where dout says how much that counts."""
    options = _options(stride, padding, dilation, groups)
    return conv_weight(xp, dout, g, weight_shape=weight_shape, **options)


def conv_weight_x(
    xp: ArrayNamespace,
    g: Array,
    dout: Array,
    x_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Every stop gives its patch back, weighted by g."""
    options = _options(stride, padding, dilation, groups)
    return conv_x(xp, dout, g, x_shape=x_shape, **options)


def conv_weight_dout(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    dout_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Convolve x with g."""
    sizes = (stride, padding, dilation, groups)
    return conv_x_dout(xp, x, g, dout_shape, *sizes)


conv_x.grad(dout=conv_x_dout, weight=conv_x_weight)

conv_x.examples(
    samples=[
        (
            normal(2, 6, 7),
            normal(6, 2, 3),
            {"x_shape": (2, 4, 9), **_options((2,), (4,), (2,), 2)},
        ),
        (
            normal(1, 2, 3, 4, 3),
            normal(2, 3, 2, 1, 2),
            {"x_shape": (1, 3, 4, 4, 4), **_options((1, 1, 1), (0, 0, 0), (1,) * 3, 1)},
        ),
    ]
)
conv_weight.grad(dout=conv_weight_dout, x=conv_weight_x)

conv_weight.examples(
    samples=[
        (
            normal(2, 6, 7),
            normal(2, 4, 9),
            {"weight_shape": (6, 2, 3), **_options((2,), (4,), (2,), 2)},
        ),
        (
            normal(1, 2, 3, 4, 3),
            normal(1, 3, 4, 4, 4),
            {
                "weight_shape": (2, 3, 2, 1, 2),
                **_options((1, 1, 1), (0, 0, 0), (1, 1, 1), 1),
            },
        ),
    ]
)
