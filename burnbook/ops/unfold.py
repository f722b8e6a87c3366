"""Unfold an image into its patches, and fold them back."""

import math

from burnbook.core.arrays import Array, ArrayNamespace, Shape
from burnbook.core.op import normal, op
from burnbook.ops.conv.windows import Pair, Windows, fits_inside, window_options


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
    for (i, j), place in windows.places:
        grown[place] += parts[:, :, i, j]
    return windows.unpad(grown)


unfold4d.grad(
    x=lambda xp, g, x_shape, **sizes: fold4d(
        xp, g, output_size=tuple(x_shape[2:]), **sizes
    )
)
fold4d.grad(x=lambda xp, g, output_size, **sizes: unfold4d(xp, g, **sizes))

_STEPS = window_options((2, 2), (1, 1), (0, 0), (1, 1))
_WIDE_STEPS = window_options((2, 2), (2, 1), (1, 2), (2, 1))
_FOLDED = {**_STEPS, "output_size": (5, 6)}

unfold4d.examples(
    samples=[
        (normal(2, 3, 5, 6), {**_STEPS, "kernel_size": (2, 3)}),
        (normal(2, 3, 5, 6), _WIDE_STEPS),
    ],
    rejects=[
        (normal(3, 5, 6), _STEPS),
        (normal(2, 3, 5, 6), {**_STEPS, "kernel_size": (6, 2)}),
    ],
)

fold4d.examples(
    samples=[
        (normal(2, 12, 20), _FOLDED),
        (normal(2, 12, 27), {**_WIDE_STEPS, "output_size": (5, 6)}),
    ],
    rejects=[
        (normal(2, 11, 20), _FOLDED),
        (normal(2, 12, 21), _FOLDED),
        (normal(2, 3, 5, 6), _FOLDED),
    ],
)
