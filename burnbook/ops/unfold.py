"""Unfold an image into its patches, and fold them back."""

import math
from typing import Any

from burnbook.core.arrays import Array, ArrayNamespace
from burnbook.core.op import normal, op
from burnbook.ops.conv.im2col2d import Pair, Shape4
from burnbook.ops.conv.windows import Shape, Windows, fits_inside


def _fits(
    x: Shape, kernel_size: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> str | None:
    if len(x) != 4:
        return "x must be an image batch [n, c, h, w]"
    return fits_inside("window", x[2:], kernel_size, stride, padding, dilation)


def _folds(
    x: Shape,
    output_size: Pair,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> str | None:
    if len(x) != 3:
        return "x must be columns [n, c · kh · kw, blocks]"
    options = (kernel_size, stride, padding, dilation)
    wrong = fits_inside("window", output_size, *options)
    if wrong:
        return wrong
    if x[1] % math.prod(kernel_size):
        area = math.prod(kernel_size)
        return f"{x[1]} rows do not divide into windows of {area} places"
    blocks = math.prod(Windows(output_size, *options).stops)
    if x[2] != blocks:
        return f"{x[2]} ≠ {blocks}: the columns must be as many as windows that fit"
    return None


def _options(*pairs: Pair) -> dict[str, Any]:
    names = ("kernel_size", "stride", "padding", "dilation", "output_size")
    return dict(zip(names, pairs, strict=False))


@op("F>F", check=_fits, method=False)
def unfold4d(
    xp: ArrayNamespace,
    x: Array,
    *,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> Array:
    """Lay the patches of an image out as columns: rows run over channel, kh and kw.

    Shapes: x [n, c, h, w] -> [n, r, b]
    """
    windows = Windows(x.shape[2:], kernel_size, stride, padding, dilation)
    rows, blocks = math.prod(windows.kernel), math.prod(windows.stops)
    patches = windows.view(xp, windows.pad(xp, x))
    return xp.array(patches).reshape(x.shape[0], x.shape[1] * rows, blocks)


@op("F>F", check=_folds, method=False)
def fold4d(
    xp: ArrayNamespace,
    x: Array,
    *,
    output_size: Pair,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> Array:
    """Add columns of patches up to an image; where patches overlap they are summed.

    Shapes: x [n, r, b] -> [n, c, h, w]
    """
    windows = Windows(output_size, kernel_size, stride, padding, dilation)
    c = x.shape[1] // math.prod(windows.kernel)
    parts = x.reshape(x.shape[0], c, *windows.kernel, *windows.stops)
    grown = xp.zeros((x.shape[0], c, *windows.grown), dtype=x.dtype)
    for (i, j), place in windows.places():
        grown[place] += parts[:, :, i, j]
    return windows.unpad(grown)


def unfold4d_x(
    xp: ArrayNamespace,
    g: Array,
    x_shape: Shape4,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> Any:
    """Add the patches' gradients up."""
    size = (x_shape[2], x_shape[3])
    options = _options(kernel_size, stride, padding, dilation, size)
    return fold4d(xp, g, **options)


def fold4d_x(
    xp: ArrayNamespace,
    g: Array,
    kernel_size: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> Any:
    """Lay the image's gradient out."""
    return unfold4d(xp, g, **_options(kernel_size, stride, padding, dilation))


unfold4d.grad(x=unfold4d_x)

unfold4d.examples(
    samples=[
        (normal(2, 3, 5, 6), _options((2, 3), (1, 1), (0, 0), (1, 1))),
        (normal(2, 3, 5, 6), _options((2, 2), (2, 1), (1, 2), (2, 1))),
    ],
    rejects=[
        (normal(3, 5, 6), _options((2, 2), (1, 1), (0, 0), (1, 1))),
        (normal(2, 3, 5, 6), _options((6, 2), (1, 1), (0, 0), (1, 1))),
    ],
)
fold4d.grad(x=fold4d_x)

fold4d.examples(
    samples=[
        (
            normal(2, 12, 20),
            _options((2, 2), (1, 1), (0, 0), (1, 1), (5, 6)),
        ),
        (
            normal(2, 12, 27),
            _options((2, 2), (2, 1), (1, 2), (2, 1), (5, 6)),
        ),
    ],
    rejects=[
        (normal(2, 11, 20), _options((2, 2), (1, 1), (0, 0), (1, 1), (5, 6))),
        (normal(2, 12, 21), _options((2, 2), (1, 1), (0, 0), (1, 1), (5, 6))),
        (normal(2, 3, 5, 6), _options((2, 2), (1, 1), (0, 0), (1, 1), (5, 6))),
    ],
)
