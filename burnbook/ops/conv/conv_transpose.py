"""Transposed convolution: what a convolution's gradient does.

Every element of x spreads its weighted kernel over the output, stride apart. So the
forward code is the gradient of a convolution, and the gradients are convolutions.
"""

from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op
from burnbook.ops.conv.conv import (
    conv_options,
    conv_weight,
    conv_x,
    convolve_to,
    expected_shapes,
    sum_to_channels,
)
from burnbook.ops.conv.windows import DIMS, LETTERS, Sizes, refuse


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
        return expected_shapes(dims, "c, o")
    if groups < 1 or x[1] % groups:
        return f"{x[1]} input channels do not divide into {groups} groups"
    if x[1] != weight[0]:
        return f"{x[1]} ≠ {weight[0]}: the channels of x must equal the first of weight"
    if bias is not None and tuple(bias) != (weight[1] * groups,):
        return (
            f"the bias must hold one number per output channel, [{weight[1] * groups}]"
        )
    paddings = {"padding": padding, "padding_out": padding_out}
    wrong = refuse(dims, 1, stride=stride, dilation=dilation)
    wrong = wrong or refuse(dims, 0, **paddings)
    if wrong:
        return wrong
    sizes = zip(x[2:], weight[2:], stride, padding, padding_out, dilation, strict=True)
    for name, one in zip(DIMS[dims], sizes, strict=True):
        if transposed_size(*one) < 1:
            return f"a padding of {one[3]} leaves nothing of the {name}"
    return None


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
    sizes = (stride, padding, padding_out, dilation)
    dims = zip(x.shape[2:], weight.shape[2:], *sizes, strict=True)
    shape = (x.shape[0], weight.shape[1] * groups, *[transposed_size(*n) for n in dims])
    options = conv_options(stride, padding, dilation, groups)
    out = conv_x(xp, x, weight, x_shape=shape, **options)
    if bias is None:
        return out
    return out + bias.reshape(-1, *[1] * (len(shape) - 2))


# Turned round, a transposed convolution is a convolution of its gradient.
conv_transpose.grad(
    x=lambda xp, g, weight, x_shape, padding_out, **sizes: convolve_to(
        xp, g, weight, x_shape, sizes
    ),
    weight=lambda xp, g, x, weight_shape, padding_out, **sizes: conv_weight(
        xp, x, g, weight_shape=weight_shape, **sizes
    ),
    bias=sum_to_channels,
)


def _options(*numbers: Any) -> dict[str, Any]:
    names = ("stride", "padding", "padding_out", "dilation", "groups")
    return dict(zip(names, numbers, strict=True))


_PLAIN = _options((2,), (1,), (1,), (1,), 1)
_GROUPED_2D = _options((2, 1), (1, 0), (1, 0), (1, 2), 2)
_ROOMY_3D = _options((1, 2, 2), (0, 0, 1), (0, 1, 0), (2, 1, 1), 1)

conv_transpose.examples(
    samples=[
        (normal(2, 3, 5), normal(3, 4, 3), normal(4), _PLAIN),
        (normal(2, 4, 3), normal(4, 3, 2), _options((1,), (0,), (2,), (3,), 2)),
        (normal(2, 4, 3, 4), normal(4, 2, 3, 2), normal(4), _GROUPED_2D),
        (normal(1, 2, 2, 3, 2), normal(2, 3, 2, 1, 3), normal(3), _ROOMY_3D),
    ],
    rejects=[
        (normal(2, 3, 5), normal(4, 3, 3), _PLAIN),
        (normal(2, 3, 5), normal(3, 3, 3), {**_PLAIN, "groups": 2}),
        (normal(2, 3, 1), normal(3, 3, 3), _options((2,), (2,), (0,), (1,), 1)),
        (normal(2, 3, 5, 5), normal(3, 4, 3), _PLAIN),
    ],
)
