"""Transposed convolution: what a convolution's gradient does.

Every element of x spreads its weighted kernel over the output, stride apart. So the
forward code is the gradient of a convolution, and the gradients are convolutions.
"""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.conv.conv import conv_weight, conv_x, conv_x_dout, sum_to_channels
from burnbook.ops.conv.windows import DIMS, LETTERS, Shape, Sizes, same_length


def transposed_size(
    size: int, kernel: int, stride: int, padding: int, padding_out: int, dilation: int
) -> int:
    """How large the output is along one dim.

    Example:
        >>> transposed_size(4, 3, stride=2, padding=1, padding_out=1, dilation=1)
        8
    """
    reach = (size - 1) * stride + dilation * (kernel - 1) + 1
    return reach + padding_out - 2 * padding


def _fits(
    x: Shape,
    weight: Shape,
    bias: Shape | None,
    stride: Sizes,
    padding: Sizes,
    padding_out: Sizes,
    dilation: Sizes,
    groups: int,
) -> str | None:
    dims = len(weight) - 2
    if len(x) != len(weight) or dims not in LETTERS:
        sizes = LETTERS.get(dims, "l")
        kernel = ", ".join(f"k{name}" for name in sizes.split(", "))
        return f"x must be [n, c, {sizes}] and weight [c, o / groups, {kernel}]"
    if groups < 1 or x[1] % groups:
        return f"{x[1]} input channels do not divide into {groups} groups"
    if x[1] != weight[0]:
        return f"{x[1]} ≠ {weight[0]}: the channels of x must equal the first of weight"
    if bias is not None and tuple(bias) != (weight[1] * groups,):
        return (
            f"the bias must hold one number per output channel, [{weight[1] * groups}]"
        )
    options = {"stride": stride, "dilation": dilation}
    paddings = {"padding": padding, "padding_out": padding_out}
    wrong = same_length(dims, **options, **paddings)
    if wrong:
        return wrong
    for name, given in (options | paddings).items():
        low = 1 if name in options else 0
        if min(given) < low:
            return f"{name} {list(given)} must be at least {low} in every dim"
    sizes = zip(x[2:], weight[2:], stride, padding, padding_out, dilation, strict=True)
    for name, one in zip(DIMS[dims], sizes, strict=True):
        if transposed_size(*one) < 1:
            return f"a padding of {one[3]} leaves nothing of the {name}"
    return None


def _options(*numbers: Any) -> dict[str, Any]:
    names = ("stride", "padding", "padding_out", "dilation", "groups")
    return dict(zip(names, numbers, strict=True))


@op("FFF>F FF>F", check=_fits, method=False)
def conv_transpose(
    xp: ArrayNamespace,
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: Sizes,
    padding: Sizes,
    padding_out: Sizes,
    dilation: Sizes,
    groups: int,
) -> Array:
    """Spread weight over the output, once for every element of x, and add the bias.

    Shapes: x [n, c, ...], weight [c, o, ...], bias [k] -> [n, k, ...]
    """
    sizes = zip(
        x.shape[2:],
        weight.shape[2:],
        stride,
        padding,
        padding_out,
        dilation,
        strict=True,
    )
    shape = (
        x.shape[0],
        weight.shape[1] * groups,
        *[transposed_size(*n) for n in sizes],
    )
    out = conv_x(
        xp,
        x,
        weight,
        x_shape=shape,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )
    if bias is None:
        return out
    return out + bias.reshape(-1, *[1] * (len(shape) - 2))


def conv_transpose_weight(
    xp: ArrayNamespace,
    g: Array,
    x: Array,
    weight_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """How each tap met the gradient: the convolution's weight gradient, turned round."""
    return conv_weight(
        xp,
        x,
        g,
        weight_shape=weight_shape,
        stride=stride,
        padding=padding,
        dilation=dilation,
        groups=groups,
    )


def conv_transpose_x(
    xp: ArrayNamespace,
    g: Array,
    weight: Array,
    x_shape: Shape,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
) -> Any:
    """Convolve the gradient."""
    return conv_x_dout(xp, g, weight, x_shape, stride, padding, dilation, groups)


conv_transpose.grad(
    x=conv_transpose_x, weight=conv_transpose_weight, bias=sum_to_channels
)

conv_transpose.examples(
    samples=[
        (
            normal(2, 3, 5),
            normal(3, 4, 3),
            normal(4),
            _options((2,), (1,), (1,), (1,), 1),
        ),
        (normal(2, 4, 3), normal(4, 3, 2), _options((1,), (0,), (2,), (3,), 2)),
        (
            normal(2, 4, 3, 4),
            normal(4, 2, 3, 2),
            normal(4),
            _options((2, 1), (1, 0), (1, 0), (1, 2), 2),
        ),
        (
            normal(1, 2, 2, 3, 2),
            normal(2, 3, 2, 1, 3),
            normal(3),
            _options((1, 2, 2), (0, 0, 1), (0, 1, 0), (2, 1, 1), 1),
        ),
    ],
    rejects=[
        (normal(2, 3, 5), normal(4, 3, 3), _options((2,), (1,), (1,), (1,), 1)),
        (normal(2, 3, 5), normal(3, 3, 3), _options((2,), (1,), (1,), (1,), 2)),
        (normal(2, 3, 1), normal(3, 3, 3), _options((2,), (2,), (0,), (1,), 1)),
        (normal(2, 3, 5, 5), normal(3, 4, 3), _options((2,), (1,), (1,), (1,), 1)),
    ],
)
