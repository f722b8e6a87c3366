"""Linear layers, convolution, pooling and resizing as functions.

Burn's `tensor::module`: what the layers of the same names do, with the weights given.
Sizes may be one number for all dims, or one number per dim. Pooling wants its stride
said, as in Burn: `avg_pool2d(x, 2, stride=2)` for windows side by side.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from burnbook.core.errors import ArgumentError, BurnbookError, ConfigError, ShapeError
from burnbook.ops.conv.conv import conv, conv2d as conv2d_op
from burnbook.ops.conv.conv_transpose import conv_transpose
from burnbook.ops.conv.deform import deform_patches
from burnbook.ops.embedding import embedding as embedding_op
from burnbook.ops.interpolate import interpolate as interpolate_op
from burnbook.ops.linear import linear as linear_op
from burnbook.ops.pool.pool import (
    adaptive_avg_pool,
    adaptive_avg_pool2d as adaptive_avg_pool2d_op,
    avg_pool,
    avg_pool2d as avg_pool2d_op,
    max_pool,
    max_pool_indices,
)
from burnbook.ops.unfold import fold4d as fold4d_op, unfold4d as unfold4d_op
from burnbook.tensor import Tensor, apply
from burnbook.tensor.attention import (
    AttentionModuleOptions as AttentionModuleOptions,
    attention as attention,
)
from burnbook.tensor.facts import facts_of
from burnbook.tensor.shape import per_dim

Size = int | Sequence[int]


@dataclass(frozen=True)
class ConvOptions:
    """How a kernel moves: the steps, the zeros around, the gaps inside, the groups."""

    stride: Size = 1
    padding: Size = 0
    dilation: Size = 1
    groups: int = 1


@dataclass(frozen=True)
class ConvTransposeOptions:
    """How a kernel is spread: as ConvOptions, with padding_out places more."""

    stride: Size = 1
    padding: Size = 0
    padding_out: Size = 0
    dilation: Size = 1
    groups: int = 1


@dataclass(frozen=True)
class DeformConvOptions:
    """How a wandering kernel moves: channels share weights and offsets in groups."""

    stride: Size = 1
    padding: Size = 0
    dilation: Size = 1
    weight_groups: int = 1
    offset_groups: int = 1


@dataclass(frozen=True)
class UnfoldOptions:
    """How a window moves over an image."""

    stride: Size = 1
    padding: Size = 0
    dilation: Size = 1


#: What each mode is called in the declaration of the op.
MODES = {
    "Nearest": "nearest",
    "NearestExact": "nearest_exact",
    "Bilinear": "linear",
    "Bicubic": "cubic",
    "Lanczos3": "lanczos",
}


@dataclass(frozen=True)
class InterpolateOptions:
    """How an image is resized.

    mode: "Nearest", "NearestExact", "Bilinear", "Bicubic" or "Lanczos3".
    align_corners: the corners of both images meet; otherwise their edges do.
    """

    mode: str = "Nearest"
    align_corners: bool = True

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            what = f"mode is {self.mode!r}, it must be one of {', '.join(MODES)}"
            raise ConfigError("InterpolateOptions", what)


def conv1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    options: ConvOptions | None = None,
) -> Tensor:
    """Slide weight over lines: out = bias + Σ over the window of x · weight.

    Shapes: x [n, c, l], weight [o, c / groups, k], bias [o] -> [n, o, l']
    Example:
        >>> x = Tensor.from_data([[[1.0, 2.0, 3.0, 4.0]]])
        >>> conv1d(x, Tensor.ones([1, 1, 2])).to_data().to_list()
        [[[3.0, 5.0, 7.0]]]
    """
    return apply(conv, x, weight, bias, **_conv("conv1d", x, options, 1))


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    options: ConvOptions | None = None,
) -> Tensor:
    """Slide weight over images.

    Shapes: x [n, c, h, w], weight [o, c / groups, kh, kw], bias [o] -> [n, o, h', w']
    """
    return apply(conv2d_op, x, weight, bias, **_conv("conv2d", x, options, 2))


def conv3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    options: ConvOptions | None = None,
) -> Tensor:
    """Slide weight over volumes.

    Shapes: x [n, c, d, h, w], weight [o, c / groups, kd, kh, kw], bias [o]
        -> [n, o, d', h', w']
    """
    return apply(conv, x, weight, bias, **_conv("conv3d", x, options, 3))


def conv_transpose1d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    options: ConvTransposeOptions | None = None,
) -> Tensor:
    """Spread weight over lines, once for every element of x.

    Shapes: x [n, c, l], weight [c, o / groups, k], bias [o] -> [n, o, l'];
        l' = (l − 1) stride + dilation (k − 1) + 1 + padding_out − 2 padding
    """
    return apply(
        conv_transpose,
        x,
        weight,
        bias,
        **_transposed("conv_transpose1d", x, options, 1),
    )


def conv_transpose2d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    options: ConvTransposeOptions | None = None,
) -> Tensor:
    """Spread weight over images, once for every element of x.

    Shapes: x [n, c, h, w], weight [c, o / groups, kh, kw], bias [o] -> [n, o, h', w']
    """
    return apply(
        conv_transpose,
        x,
        weight,
        bias,
        **_transposed("conv_transpose2d", x, options, 2),
    )


def conv_transpose3d(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    options: ConvTransposeOptions | None = None,
) -> Tensor:
    """Spread weight over volumes, once for every element of x.

    Shapes: x [n, c, d, h, w], weight [c, o / groups, kd, kh, kw], bias [o]
        -> [n, o, d', h', w']
    """
    return apply(
        conv_transpose,
        x,
        weight,
        bias,
        **_transposed("conv_transpose3d", x, options, 3),
    )


def deform_conv2d(
    x: Tensor,
    offset: Tensor,
    weight: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    options: DeformConvOptions | None = None,
) -> Tensor:
    """Convolve, with every tap of every stop moved by its own offset (dy, dx).

    Shapes: x [n, c, h, w], offset [n, 2 · groups · kh · kw, h', w'],
        weight [o, c / weight_groups, kh, kw], mask [n, groups · kh · kw, h', w'],
        bias [o] -> [n, o, h', w']
    """
    options = _options("deform_conv2d", options, DeformConvOptions)
    groups = options.weight_groups
    _check_deformed(x, weight, bias, groups)
    n = x.dims()[0]
    o, inside, *kernel = weight.dims()
    patches: Tensor = apply(
        deform_patches,
        x,
        offset,
        mask,
        offset_groups=options.offset_groups,
        **_window(
            ("deform_conv2d", x, 2),
            kernel,
            options.stride,
            options.padding,
            dilation=options.dilation,
        ),
    )
    blocks, taps = patches.dims()[1:3]
    rows = patches.reshape([n * blocks, taps, groups, inside]).permute([2, 0, 1, 3])
    turned = weight.reshape([groups, o // groups, inside, taps]).permute([0, 3, 2, 1])
    product = rows.reshape([groups, n * blocks, taps * inside]).matmul(
        turned.reshape([groups, taps * inside, o // groups])
    )
    parts = product.reshape([groups, n, blocks, o // groups]).permute([1, 0, 3, 2])
    out = parts.reshape([n, o, *offset.dims()[2:]])
    return out if bias is None else out + bias.reshape([1, o, 1, 1])


def unfold4d(
    x: Tensor, kernel_size: Size, options: UnfoldOptions | None = None
) -> Tensor:
    """Lay the patches of images out as columns: rows run over channel, kh and kw.

    Shapes: x [n, c, h, w] -> [n, c · kh · kw, blocks]
    """
    return apply(unfold4d_op, x, **_unfolded("unfold4d", x, kernel_size, options))


def fold4d(
    x: Tensor,
    output_size: Size,
    kernel_size: Size,
    options: UnfoldOptions | None = None,
) -> Tensor:
    """Add columns of patches up to images; where patches overlap they are summed.

    Shapes: x [n, c · kh · kw, blocks] -> [n, c, output_size...]
    """
    attrs = _unfolded("fold4d", x, kernel_size, options)
    return apply(fold4d_op, x, **_output("fold4d", x, output_size, 2), **attrs)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Weighted sums of the last dim: out = x · weight + bias.

    What a Linear does, with a weight that it does not hold: an embedding's, turned.

    Shapes: x [..., d_input], weight [d_input, d_output], bias [d_output]
        -> [..., d_output]
    Example:
        >>> weight = Tensor.from_data([[1.0, 2.0], [3.0, 4.0]])
        >>> linear(Tensor.ones([1, 5, 2]), weight.transpose()).shape
        (1, 5, 2)

    Raises:
        ShapeError: weight is no matrix, or a size does not fit.
    """
    return apply(linear_op, x, weight, bias)


def embedding(weights: Tensor, indices: Tensor) -> Tensor:
    """Look rows up: out[i][j] = weights[indices[i][j]].

    Shapes: weights [rows, d], indices [n, l] -> [n, l, d]
    Example:
        >>> weights = Tensor.from_data([[1.0, 2.0], [3.0, 4.0]])
        >>> embedding(weights, Tensor.from_ints([[1, 0]])).to_data().to_list()
        [[[3.0, 4.0], [1.0, 2.0]]]
    """
    return apply(embedding_op, weights, indices)


def max_pool1d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest number of every window of a line; the first one wins a tie.

    A window that sees nothing but padding gives −∞.

    Shapes: x [n, c, l] -> [n, c, l']
    """
    at = ("max_pool1d", x, 1)
    attrs = _window(at, kernel_size, stride, padding, dilation=dilation)
    return _max_pool(x, {**attrs, "ceil_mode": ceil_mode})


def max_pool2d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest number of every window of an image; the first one wins a tie.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    Example:
        >>> x = Tensor.from_data([[[[1.0, 5.0], [7.0, 3.0]]]])
        >>> max_pool2d(x, 2, stride=2).to_data().to_list()
        [[[[7.0]]]]
    """
    at = ("max_pool2d", x, 2)
    attrs = _window(at, kernel_size, stride, padding, dilation=dilation)
    return _max_pool(x, {**attrs, "ceil_mode": ceil_mode})


def max_pool1d_with_indices(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest number of every window, and where it stands on its line."""
    at = ("max_pool1d_with_indices", x, 1)
    attrs = _window(at, kernel_size, stride, padding, dilation=dilation)
    return _max_pool_with_indices(x, {**attrs, "ceil_mode": ceil_mode})


def max_pool2d_with_indices(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest number of every window, and where it stands, counted row by row."""
    at = ("max_pool2d_with_indices", x, 2)
    attrs = _window(at, kernel_size, stride, padding, dilation=dilation)
    return _max_pool_with_indices(x, {**attrs, "ceil_mode": ceil_mode})


def avg_pool1d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The average of every window of a line.

    A window that sees nothing but padding gives 0, or NaN where padding does not count.

    Shapes: x [n, c, l] -> [n, c, l']
    """
    attrs = _window(("avg_pool1d", x, 1), kernel_size, stride, padding)
    if _wide(x, attrs, ceil_mode):
        return _avg_pool_of_padded(x, attrs, count_include_pad)
    attrs["count_include_pad"] = count_include_pad
    return apply(avg_pool, x, ceil_mode=ceil_mode, **attrs)


def avg_pool2d(
    x: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    count_include_pad: bool = True,
    ceil_mode: bool = False,
) -> Tensor:
    """The average of every window of an image.

    A window that sees nothing but padding gives 0, or NaN where padding does not count.

    Shapes: x [n, c, h, w] -> [n, c, h', w']
    """
    attrs = _window(("avg_pool2d", x, 2), kernel_size, stride, padding)
    if _wide(x, attrs, ceil_mode):
        return _avg_pool_of_padded(x, attrs, count_include_pad)
    attrs["count_include_pad"] = count_include_pad
    if ceil_mode:
        return apply(avg_pool, x, ceil_mode=True, **attrs)
    return apply(avg_pool2d_op, x, **attrs)


def adaptive_avg_pool1d(x: Tensor, output_size: Size) -> Tensor:
    """Average over windows that cover a line evenly, however long it is.

    Shapes: x [n, c, l] -> [n, c, output_size]
    """
    attrs = _output("adaptive_avg_pool1d", x, output_size, 1)
    return apply(adaptive_avg_pool, x, **attrs)


def adaptive_avg_pool2d(x: Tensor, output_size: Size) -> Tensor:
    """Average over windows that cover an image evenly, however large it is.

    Shapes: x [n, c, h, w] -> [n, c, output_size...]
    """
    attrs = _output("adaptive_avg_pool2d", x, output_size, 2)
    return apply(adaptive_avg_pool2d_op, x, **attrs)


def adaptive_avg_pool3d(x: Tensor, output_size: Size) -> Tensor:
    """Average over windows that cover a volume evenly, however large it is.

    Shapes: x [n, c, d, h, w] -> [n, c, output_size...]
    """
    attrs = _output("adaptive_avg_pool3d", x, output_size, 3)
    return apply(adaptive_avg_pool, x, **attrs)


def interpolate(
    x: Tensor, output_size: Size, options: InterpolateOptions | None = None
) -> Tensor:
    """Resize lines, images or volumes.

    Shapes: x [n, c, ...] -> [n, c, output_size...]
    Example:
        >>> x = Tensor.from_data([[[1.0, 2.0, 3.0]]])
        >>> interpolate(x, 5, InterpolateOptions("Bilinear")).to_data().to_list()
        [[[1.0, 1.5, 2.0, 2.5, 3.0]]]
    """
    options = _options("interpolate", options, InterpolateOptions)
    return apply(
        interpolate_op,
        x,
        **_output("interpolate", x, output_size, max(x.rank - 2, 1)),
        mode=MODES[options.mode],
        align_corners=options.align_corners,
    )


#: Which function, what it was given, and over how many dims its windows move.
Place = tuple[str, Tensor, int]
Options = TypeVar("Options")


def _attrs(at: Place, **sizes: Size) -> dict[str, Any]:
    """Sizes as attributes of an op: one number per dim."""
    where, x, dims = at
    try:
        return {
            name: per_dim(where, name, size, dims, low=int("padding" not in name))
            for name, size in sizes.items()
        }
    except BurnbookError as error:
        error.facts.extend(facts_of(x=x))
        raise


def _options(where: str, given: Options | None, made: type[Options]) -> Options:
    """The options, those of Burn's default where there are none."""
    if given is None:
        return made()
    if not isinstance(given, made):
        name = next(iter(fields(made))).name  # type: ignore[arg-type] # a dataclass
        shown = given if isinstance(given, (int, str, list, tuple)) else "…"
        what = f"options is {type(given).__name__}, not {made.__name__}"
        raise ArgumentError(where, what, cure=f"{made.__name__}({name}={shown!r})")
    return given


def _moves(where: str, x: Tensor, options: Any, dims: int) -> dict[str, Any]:
    """Options as attributes of an op; the number of groups stays."""
    sizes = dict(vars(options))
    groups = {"groups": sizes.pop("groups")} if "groups" in sizes else {}
    return {**_attrs((where, x, dims), **sizes), **groups}


def _conv(
    where: str, x: Tensor, options: ConvOptions | None, dims: int
) -> dict[str, Any]:
    return _moves(where, x, _options(where, options, ConvOptions), dims)


def _transposed(
    where: str, x: Tensor, options: ConvTransposeOptions | None, dims: int
) -> dict[str, Any]:
    return _moves(where, x, _options(where, options, ConvTransposeOptions), dims)


def _unfolded(
    where: str, x: Tensor, kernel_size: Size, options: UnfoldOptions | None
) -> dict[str, Any]:
    moves = _moves(where, x, _options(where, options, UnfoldOptions), 2)
    return {**_attrs((where, x, 2), kernel_size=kernel_size), **moves}


def _output(where: str, x: Tensor, size: Size, dims: int) -> dict[str, Any]:
    return _attrs((where, x, dims), output_size=size)


def _window(
    at: Place, kernel: Size, stride: Size | None, padding: Size, **others: Size
) -> dict[str, Any]:
    """How a window moves.

    Why no stride of its own: Burn's functions have none, its layers took 1 and take the
    size of the window since, as PyTorch does. Either would be wrong for somebody.
    """
    if stride is None:
        where, x, _ = at
        shown = repr(kernel if isinstance(kernel, int) else list(kernel))
        cure = f"{where}(x, {shown}, stride={shown}) for windows side by side"
        raise ArgumentError(where, "stride is missing", facts_of(x=x), cure)
    return _attrs(at, kernel_size=kernel, stride=stride, padding=padding, **others)


def _wide(x: Tensor, attrs: dict[str, Any], ceil_mode: bool) -> bool:
    """Whether a padding is more than half of its window, which the ops do not take.

    `Same` asks for that with strides above 1 and with dilation. Why not always pad
    beforehand: it costs a copy of x. With ceil_mode, which Burn 0.15 does not have, the
    ops refuse.
    """
    sizes = zip(attrs["kernel_size"], attrs["padding"], strict=False)
    fits = not ceil_mode and x.rank == len(attrs["padding"]) + 2
    return fits and any(2 * pad > kernel > 0 for kernel, pad in sizes)


def _padded(x: Tensor, attrs: dict[str, Any], value: float) -> Tensor:
    return x.pad([(pad, pad) for pad in attrs["padding"]], value)


def _no_padding(attrs: dict[str, Any]) -> dict[str, Any]:
    return {**attrs, "padding": (0,) * len(attrs["padding"])}


def _max_pool(x: Tensor, attrs: dict[str, Any]) -> Tensor:
    if _wide(x, attrs, attrs["ceil_mode"]):
        x, attrs = _padded(x, attrs, -math.inf), _no_padding(attrs)
    return apply(max_pool, x, **attrs)


def _max_pool_with_indices(x: Tensor, attrs: dict[str, Any]) -> tuple[Tensor, Tensor]:
    if not _wide(x, attrs, attrs["ceil_mode"]):
        return apply(max_pool, x, **attrs), apply(max_pool_indices, x, **attrs)
    around, inside = _padded(x, attrs, -math.inf), _no_padding(attrs)
    at = apply(max_pool_indices, around, **inside)
    place: Tensor | None = None
    step = math.prod(around.dims()[2:])
    rows = zip(x.dims()[2:], around.dims()[2:], attrs["padding"], strict=True)
    for size, grown, pad in rows:  # the same place, counted without the padding
        step //= grown
        along = (at // step % grown - pad).clamp(0, size - 1)
        place = along if place is None else place * size + along
    assert place is not None
    return apply(max_pool, around, **inside), place


def _avg_pool_of_padded(x: Tensor, attrs: dict[str, Any], count_pad: bool) -> Tensor:
    inside = {**_no_padding(attrs), "count_include_pad": True, "ceil_mode": False}
    means = apply(avg_pool, _padded(x, attrs, 0.0), **inside)
    if count_pad:
        return means
    real = Tensor.ones([1, 1, *x.dims()[2:]], x.device())
    return means / apply(avg_pool, _padded(real, attrs, 0.0), **inside)


def _check_deformed(
    x: Tensor, weight: Tensor, bias: Tensor | None, groups: int
) -> None:
    """Raise a ShapeError where weight or bias do not fit x."""
    shape, what = weight.dims(), None
    if len(x.dims()) != 4 or len(shape) != 4:
        what = "x must be [n, c, h, w] and weight [o, c / weight_groups, kh, kw]"
    elif groups < 1 or x.dims()[1] != shape[1] * groups:
        what = (
            f"{x.dims()[1]} ≠ {shape[1]} · {groups}: the channels of x must equal "
            "those of weight times weight_groups"
        )
    elif shape[0] % groups:
        what = f"{shape[0]} output channels do not divide into {groups} groups"
    elif bias is not None and bias.dims() != shape[:1]:
        what = f"the bias must hold one number per output channel, [{shape[0]}]"
    if what:
        raise ShapeError("deform_conv2d", what, facts_of(x=x, weight=weight, bias=bias))
